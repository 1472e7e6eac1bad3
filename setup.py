"""Build the Cython kernels; everything else about the package is in pyproject.toml."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

# A compiler's cache, where one is installed, makes the second of two equal builds quick, in whatever folder.
if sys.platform == "linux" and "CC" not in os.environ and shutil.which("ccache"):
    os.environ["CC"] = f"ccache {sysconfig.get_config_var('CC') or 'cc'}"

DEBUG = os.environ.get("MOTIONCUE_CYTHON_DEBUG") == "1"
JOBS = os.cpu_count() or 1


def accepted(flags: list[str]) -> list[str]:
    """Return the flags if the compiler knows them, else none."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    tried = subprocess.run([*compiler, *flags, "-fsyntax-only", "-x", "c", os.devnull], capture_output=True)
    return [] if tried.returncode else flags


# No contraction, so that a replay gives the same bits in every build.  No superword vectorization, because it packs a
# filter's states only to unpack them at the next tick.  Structures are copied and cleared a double at a time: gcc's own
# choice on x86, one instruction for all of it, takes as long to begin as a fifth of a tick.
STRINGS = [f"-m{each}-strategy=unrolled_loop:1024:noalign,libcall:-1:noalign" for each in ("memcpy", "memset")]
if sys.platform == "win32" and "gcc" not in os.environ.get("CC", ""):
    COMPILE = ["/O2", "/fp:precise"]
    COLD = COMPILE
else:
    COMPILE = [
        "-O2",
        "-g" if DEBUG else "-g0",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-tree-slp-vectorize",
        "-Wall",
        "-Wno-unused-function",
        *accepted(STRINGS),
    ]
    COLD = [*COMPILE, "-O1"]  # for modules that no tick runs: builds faster
    if DEBUG:
        COMPILE = COLD
LIBRARIES = ["ws2_32", "advapi32"] if sysconfig.get_platform().startswith("win") else ["m"]  # also in a cross build

# The solver of quadratic programs, in C by others: its names stay inside the module, whoever else has it in the
# process.  Its loops over independent elements are worth vectorizing; sums keep their order, and a replay its bits.
SOLVER = Path("motioncue/cueing/predictive/solver.pyx")
DAQP = SOLVER.parent / "daqp"
FAST = [] if "/O2" in COMPILE else ["-fvisibility=hidden", *([] if DEBUG else ["-O3", "-ftree-slp-vectorize"])]

# Cython's utility code for memoryviews, functions and classes, shared because copies would be half of every module.
SHARED = "motioncue._cython"

SOURCES = ["*.pyx", "*.pxd", "*.h", "*.c"]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": not DEBUG,
    "initializedcheck": DEBUG,
    "embedsignature": False,
    "binding": True,
    "freethreading_compatible": False,
}


class Build(build_ext):
    """Run Cython only when something is built, on all processors."""

    def finalize_options(self) -> None:
        """Build in place without a copy elsewhere, so that what an editable install has built is not built again."""
        super().finalize_options()
        if self.inplace and not self.editable_mode:
            self.inplace, self.build_lib = False, "."

    def run(self) -> None:
        """Translate changed modules, then compile them; for an editable install, take what a plain one has left.

        Each install runs Cython from a folder of its own, which is newer than all that the one before has made.
        """
        variant, stamp = "cython-debug" if DEBUG else "cython", Path("build/variant")
        left = Path("build", f"lib.{self.plat_name}-{sys.implementation.cache_tag}")
        made = {self.get_ext_fullpath(each.name): left / self.get_ext_filename(each.name) for each in self.extensions}
        sources = [stamp, Path("setup.py"), *(path for kind in SOURCES for path in Path("motioncue").rglob(kind))]
        same = stamp.exists() and stamp.read_text() == variant
        if self.editable_mode and same and not any(newer_group(sources, path) for path in made.values()):
            for wanted, path in made.items():
                os.makedirs(os.path.dirname(wanted), exist_ok=True)
                shutil.copy2(path, wanted)
            return
        translated = cythonize(
            self.extensions,
            compiler_directives=DIRECTIVES,
            build_dir=f"build/{variant}",
            nthreads=JOBS if JOBS > 1 else 0,
            shared_utility_qualified_name=SHARED,
        )
        # A change between debug and normal build compiles everything again; the same build compiles only changes.
        if not stamp.exists() or stamp.read_text() != variant:
            stamp.write_text(variant)
        for extension, made in zip(self.extensions, translated, strict=True):
            written = extension.sources
            extension.sources = made.sources
            extension.depends = [*with_included([*written, *made.depends]), str(stamp), "setup.py"]
        super().run()


def with_included(names: list[str]) -> list[str]:
    """Return the files `names` and the headers that C in them includes, since Cython does not look for those."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        if name.endswith((".h", ".pxd", ".pyx")) and os.path.exists(name):
            included = re.findall(r'^\s*#\s*include\s+"([^"]+)"', Path(name).read_text(), re.MULTILINE)
            for place in (*included, *(str(Path(name).parent / other) for other in included)):
                if os.path.exists(place):
                    waiting.append(place)
    return list(found)


def extensions() -> list[Extension]:
    """Return one extension per .pyx file; headers beside it are found through the repository root."""
    kernels = [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path), *(map(str, sorted(DAQP.glob("src/*.c"))) if path == SOLVER else ())],
            include_dirs=[".", *([f"{DAQP}/include"] if path == SOLVER else ())],
            extra_compile_args=[*COMPILE, *FAST] if path == SOLVER else COMPILE,
            libraries=LIBRARIES,
        )
        for path in sorted(Path("motioncue").rglob("*.pyx"))
    ]
    shared = Extension(SHARED, [f"{SHARED.replace('.', '/')}.c"], extra_compile_args=COLD)
    return [shared, *kernels]  # the slowest one starts first


if __name__ == "__main__":  # Cython's worker processes may import this file again
    setup(ext_modules=extensions(), cmdclass={"build_ext": Build}, options={"build_ext": {"parallel": JOBS}})
