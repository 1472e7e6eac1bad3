"""Who may import whom: a file imports from its own room and from rooms above it, from no other."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "motioncue"
GUIDE = PACKAGE.parent / "CONTRIBUTING.md"

# The rooms in the order of the data; rooms of one line never import each other.
ROOMS = (
    {"errors", "data", "motioncue", "_version"},
    {"core"},
    {"wire"},
    {"frames", "platforms", "safety"},
    {"bridge", "cueing"},
    {"profile", "transports"},
    {"output"},
    {"drive"},
    {"sources"},
    {"recording"},
    {"engine"},
    {"virtual"},
    {"scoring", "check", "bench"},
    {"tuning"},
    {"view"},
    {"cli"},
    {"__main__"},
)
LINE = {room: number for number, line in enumerate(ROOMS) for room in line}

SYSTEM_CALLS = re.compile(r"motioncue/(transports/.*|core/(clock\.\w+|threads\.h)|cli/operator_input\.py)")
PORTABLE = {"float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "Python.h"}
SYSTEM_MODULES = {"_winapi", "fcntl", "grp", "msvcrt", "posix", "pwd", "resource", "termios", "tty", "winreg"}

FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n]*)", re.M)
IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n]*)", re.M)
HEADER = re.compile(
    r"^[ \t]*cdef extern from [\"']<?([^\"'>]+)|^[ \t]*#[ \t]*include[ \t]+[<\"]([^>\"]+)"
    r"|^[ \t]*#[ \t]*define[ \t]+MC_\w+[ \t]+\"([^\"]+\.h)\"",
    re.M,
)
NO_CODE = re.compile(r'"""[\s\S]*?"""|#[^\n]*')


def imports(path, text):
    """Return the dotted names that a source file imports or cimports, also inside functions."""
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif path.endswith((".pyx", ".pxd")):
        code = NO_CODE.sub("", text)
        for module, names in FROM.findall(code):
            yield from (f"{module}.{name.split()[0]}" for name in listed(names))
        for names in IMPORT.findall(code):
            yield from (name.split()[0] for name in listed(names))


def listed(names):
    return [name for name in names.strip("() \t\n").replace("\n", " ").split(",") if name.strip()]


def headers(path, text):
    """Return the C headers that a source file includes, or names as a template."""
    if path.endswith(".py"):
        return []
    # What a header includes stands in lines with the sign that begins a comment in Cython.
    code = text if path.endswith(".h") else re.sub(r"^[ \t]*#(?!include|define)[^\n]*", "", text, flags=re.M)
    return [next(filter(None, found)) for found in HEADER.findall(code)]


def wrong(path, text):
    """Return what is wrong with a source file; `path` begins with ``motioncue/``."""
    own = path.split("/")[1].partition(".")[0]
    if own == "__init__":
        return []
    if own not in LINE:
        return [f"{path}: there is no room {own!r}"]
    names = list(imports(path, text))
    used = [name.split(".")[1] for name in names if name.startswith("motioncue.")]
    used += [name.split("/")[1].partition(".")[0] for name in headers(path, text) if name.startswith("motioncue/")]
    found = [
        f"{path}: {own} imports {room}, which is not above it"
        for room in used
        if room != own and LINE.get(room, len(ROOMS)) >= LINE[own]
    ]
    if LINE[own] < LINE["cli"] and "motioncue" in names:
        found.append(f"{path}: imports the bare package")
    if not SYSTEM_CALLS.fullmatch(path):
        found += [
            f"{path}: includes {header}, which not every system has"
            for header in headers(path, text)
            if header not in PORTABLE and not header.startswith("motioncue/")
        ]
        found += [
            f"{path}: imports {name}, which not every system has"
            for name in names
            if name.split(".")[0] in SYSTEM_MODULES
        ]
    return found


VENDORED = PACKAGE / "cueing" / "predictive" / "daqp"  # includes its own headers and those of standard C
SOURCES = sorted(
    path
    for path in PACKAGE.rglob("*")
    if path.suffix in {".py", ".pyx", ".pxd", ".h"} and path.is_file() and VENDORED not in path.parents
)


@pytest.mark.parametrize("room", sorted({path.relative_to(PACKAGE).parts[0].partition(".")[0] for path in SOURCES}))
def test_a_room_imports_only_from_above(room):
    found = []
    for source in SOURCES:
        if source.relative_to(PACKAGE).parts[0].partition(".")[0] == room:
            path = source.relative_to(PACKAGE.parent).as_posix()
            found += wrong(path, source.read_text(encoding="utf-8"))
    assert found == []


def test_the_guide_has_the_same_rooms_in_the_same_order():
    block = GUIDE.read_text(encoding="utf-8").partition("## Who may import whom")[2].split("```")[1]
    lines = [re.findall(r"(?<!\w)(\w+)/", line.partition("  ")[0]) for line in block.splitlines()]
    assert [set(line) for line in lines if line] == [
        rooms for line in ROOMS if (rooms := {room for room in line if (PACKAGE / room).is_dir()})
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("errors.py", "import motioncue.core.clock"),
        ("profile/profile.py", "def f():\n    from motioncue.engine import assembly\n"),
        ("frames/body.pyx", "cdef f():\n    from motioncue.platforms cimport (\n        reach,\n    )\n"),
        ("core/threads.pxd", 'cdef extern from "motioncue/transports/sockets.h":\n    pass\n'),
        ("core/threads.h", '#include "motioncue/transports/sockets.h"\n'),
        ("core/records.h", "#ifdef _WIN32\n#  include <windows.h>\n#endif\n"),
        ("core/threads.pyx", 'cdef extern from *:\n    """\n    #include "motioncue/cueing/pose.h"\n    """\n'),
        ("core/threads.pyx", "from posix.unistd cimport close\n"),
        ("engine/engine.py", "import fcntl\n"),
        ("engine/engine.py", "import motioncue\n"),
        ("cueing/direct/design.py", "from motioncue import bridge\n"),
        ("unplaced.py", ""),
    ],
)
def test_checker_refuses(path, text):
    assert wrong(f"motioncue/{path}", text)


def test_a_module_or_a_stub_more_is_meant():
    """Each extension module costs a compilation and a load, each stub is kept in step by hand: grow one that exists."""
    modules = [path for path in SOURCES if path.suffix == ".pyx"]
    assert 20 < len(modules) <= 34
    assert {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.pyi")} == {
        *("core/clock.pyi", "core/interfaces.pyi", "engine/batch.pyi", "engine/embed.pyi", "frames/convert.pyi")
    }


def test_no_source_is_empty_and_no_package_holds_nothing_but_its_name():
    assert [path for path in SOURCES if not path.read_text(encoding="utf-8").strip()] == []
    code = [path.parent for path in SOURCES if path.suffix in {".py", ".pyx"} and path.name != "__init__.py"]
    named = [path for path in SOURCES if path.name == "__init__.py" and len(ast.parse(path.read_bytes()).body) < 2]
    assert {path.parent for path in named} - set(code) == set()


def test_a_folder_can_be_looked_through():
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in SOURCES)
    assert {folder: count for folder, count in counts.items() if count > 26} == {}
