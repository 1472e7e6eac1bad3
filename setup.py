"""Build the Cython kernels; everything else about the package is in pyproject.toml."""

import os
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("MOTIONCUE_CYTHON_DEBUG") == "1"
JOBS = os.cpu_count() or 1

# The two builds keep their C files apart, and every extension depends on the name of the build that was made last: to
# change from one to the other recompiles, to build the same again compiles only what has changed.
BUILD = "cython-debug" if DEBUG else "cython"
STAMP = Path("build/variant")

# Contraction off: a replay gives the same bits on every machine and in every build of one architecture.
if sys.platform == "win32" and "gcc" not in os.environ.get("CC", ""):
    COMPILE = ["/O2", "/fp:precise"]
else:
    COMPILE = ["-O2", "-g" if DEBUG else "-g0", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wno-unused-function"]
LIBRARIES = ["ws2_32"] if sysconfig.get_platform().startswith("win") else ["m"]  # the target's, also in a cross build

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


def stamp() -> str:
    """Return the file that says which build was made last, changed only if that changes."""
    STAMP.parent.mkdir(exist_ok=True)
    if not STAMP.exists() or STAMP.read_text() != BUILD:
        STAMP.write_text(BUILD)
    return str(STAMP)


def extensions() -> list[Extension]:
    """Return one extension per .pyx file; headers beside it are found through the repository root."""
    depends = [*(str(path) for path in Path("motioncue").rglob("*.h")), stamp()]
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            include_dirs=["."],
            depends=depends,
            extra_compile_args=COMPILE,
            libraries=LIBRARIES,
        )
        for path in sorted(Path("motioncue").rglob("*.pyx"))
    ]


if __name__ == "__main__":  # the processes that translate in parallel may import this file again
    setup(
        ext_modules=cythonize(
            extensions(),
            compiler_directives=DIRECTIVES,
            build_dir=f"build/{BUILD}",
            nthreads=JOBS if JOBS > 1 else 0,
        ),
        options={"build_ext": {"parallel": JOBS}},
    )
