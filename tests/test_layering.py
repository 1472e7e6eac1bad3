"""Who may import whom: a file imports from its own line of the design and from lines above it, never from below."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "motioncue"

LINES = (
    {"errors", "explain", "motion", "packets", "settings", "profile", "profiles", "data", "motioncue", "_version"},
    {"kernels"},
    {"intake"},
    {"cueing", "protocols", "transports", "platforms"},
    {"recording"},
    {"runtime"},
    {"virtual"},
    {"analysis", "bench", "view"},
    {"tuning"},
    {"cli", "__main__"},
)
LINE = {unit: number for number, line in enumerate(LINES) for unit in line}
STRANGERS = LINES[3]  # on the same line, but they never import each other

SYSTEM_CALLS = re.compile(
    r"motioncue/(transports/.*|bench/arrival\.h|kernels/(clock\.\w+|fpu\.h|atomics\.h)|cli/keys\.py)"
)
PORTABLE = {"float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "Python.h"}
SYSTEM_MODULES = {"_winapi", "fcntl", "grp", "msvcrt", "posix", "pwd", "resource", "termios", "tty", "winreg"}

FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n]*)", re.M)
IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n]*)", re.M)
HEADER = re.compile(r"^[ \t]*cdef extern from [\"']<?([^\"'>]+)|^[ \t]*#[ \t]*include[ \t]+[<\"]([^>\"]+)", re.M)
NO_CODE = re.compile(r'"""[\s\S]*?"""|#[^\n]*')


def absolute(path, module, level):
    """Return the dotted name of a module that `path` imports with `level` leading dots."""
    if level == 0:
        return module
    package = path.split("/")[:-level]
    return ".".join([*package, module] if module else package)


def imports(path, text):
    """Return (module, name or None) for every import and cimport in a source file, also inside functions."""
    found = []
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found += [(alias.name, None) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = absolute(path, node.module or "", node.level)
                found += [(module, alias.name) for alias in node.names]
    elif path.endswith((".pyx", ".pxd")):
        code = NO_CODE.sub("", text)
        for module, names in FROM.findall(code):
            dots = len(module) - len(module.lstrip("."))
            found += [(absolute(path, module[dots:], dots), name.split()[0]) for name in listed(names)]
        found += [(name.split()[0], None) for names in IMPORT.findall(code) for name in listed(names)]
    return found


def listed(names):
    return [name for name in names.strip("() \t\n").replace("\n", " ").split(",") if name.strip()]


def headers(path, text):
    """Return the C headers that a source file includes."""
    code = text if path.endswith(".h") else NO_CODE.sub("", text)
    return [] if path.endswith(".py") else [first or second for first, second in HEADER.findall(code)]


def unit(dotted):
    """Return the part of the package that a dotted name belongs to, or None for the package itself."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else None


def violations(path, text):
    """Return what is wrong with a source file; `path` begins with ``motioncue/``."""
    own = unit(path.removesuffix(Path(path).suffix).replace("/", "."))
    if own == "__init__":
        return []
    if own not in LINE:
        return [f"{path}: {own!r} has no line in the design"]
    wrong = []
    uses = [
        unit(f"{module}.{name}") if module == "motioncue" and name in LINE else unit(module)
        for module, name in imports(path, text)
        if module.split(".")[0] == "motioncue"
    ]
    uses += [unit(header.replace("/", ".")) for header in headers(path, text) if header.startswith("motioncue/")]
    for used in uses:
        if used is None:
            if LINE[own] < LINE["cli"]:
                wrong.append(f"{path}: imports the bare package")
        elif used not in LINE or LINE[used] > LINE[own]:
            wrong.append(f"{path}: {own} imports {used}, which is below it")
        elif used != own and {used, own} <= STRANGERS:
            wrong.append(f"{path}: {own} imports {used}, and these never import each other")
    if not SYSTEM_CALLS.fullmatch(path):
        wrong += [
            f"{path}: includes {header}, which not every system has"
            for header in headers(path, text)
            if header not in PORTABLE and not header.startswith("motioncue/")
        ]
        wrong += [
            f"{path}: imports {module}, which not every system has"
            for module, _ in imports(path, text)
            if module.split(".")[0] in SYSTEM_MODULES
        ]
    return wrong


SOURCES = sorted(path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".pyx", ".pxd", ".h"} and path.is_file())


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_file_imports_only_from_its_line_and_above(source):
    path = source.relative_to(PACKAGE.parent).as_posix()
    assert violations(path, source.read_text(encoding="utf-8")) == []


def test_every_layer_was_seen():
    seen = {path.relative_to(PACKAGE).parts[0].partition(".")[0] for path in SOURCES}
    assert {"errors", "kernels", "cueing", "protocols", "transports", "runtime", "recording", "virtual"} <= seen


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("errors.py", "import motioncue.kernels.clock"),
        ("profile.py", "def f():\n    from motioncue.cueing import design\n"),
        ("kernels/body.pyx", "from motioncue.runtime.emitter import Emitter\n"),
        ("kernels/body.pyx", "cdef f():\n    from ..protocols import (\n        dk,\n        layout,\n    )\n"),
        ("kernels/body.pxd", "from motioncue.transports.sockets cimport (\n    mc_fd, mc_poll,\n)\n"),
        ("kernels/body.pxd", "cimport motioncue.runtime.emitter as e\n"),
        ("kernels/body.pxd", 'cdef extern from "motioncue/transports/sockets.h":\n    pass\n'),
        ("kernels/slot.h", '#include "motioncue/transports/sockets.h"\n'),
        ("kernels/slot.h", "#include <sys/socket.h>\n"),
        ("kernels/slot.h", "#ifdef _WIN32\n#  include <windows.h>\n#endif\n"),
        ("kernels/slot.pxd", 'cdef extern from "<poll.h>" nogil:\n    pass\n'),
        ("kernels/slot.pyx", "from posix.unistd cimport close\n"),
        ("runtime/engine.py", "import fcntl\n"),
        ("cueing/direct.py", "from motioncue.protocols import dk\n"),
        ("cueing/direct.py", "from motioncue import transports\n"),
        ("protocols/dk.py", "from ..transports.udp import open_sender\n"),
        ("runtime/engine.py", "import motioncue\n"),
        ("runtime/engine.py", "from motioncue import Engine\n"),
        ("recording/read.py", "from motioncue import virtual\n"),
        ("unplaced.py", ""),
    ],
)
def test_checker_refuses(path, text):
    assert len(violations(f"motioncue/{path}", text)) >= 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("kernels/body.pyx", '"""From motioncue.runtime\n\nfrom motioncue.runtime import x\n"""\n# import motioncue\n'),
        ("kernels/body.pyx", "from motioncue.errors import ConfigError\nfrom libc.math cimport sin\n"),
        ("kernels/clock.h", "#include <windows.h>\n"),
        ("kernels/slot.pxd", 'cdef extern from "motioncue/kernels/atomics.h":\n    pass\n'),
        ("transports/sockets.h", "#include <sys/socket.h>\n"),
        ("protocols/dk.py", "from .layout import Packet\n"),
        ("runtime/engine.py", "from motioncue import cueing, protocols\n"),
        ("cli/main.py", "import motioncue\n"),
        ("__init__.py", "from motioncue.runtime.engine import Engine\n"),
    ],
)
def test_checker_accepts(path, text):
    assert violations(f"motioncue/{path}", text) == []
