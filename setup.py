"""Build the Cython kernels; everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("MOTIONCUE_CYTHON_DEBUG") == "1"

# Contraction off: a replay gives the same bits on every machine and in every build of one architecture.
if sys.platform == "win32" and "gcc" not in os.environ.get("CC", ""):
    COMPILE, LIBRARIES = ["/O2", "/fp:precise"], ["ws2_32"]
else:
    COMPILE = ["-O2", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wno-unused-function"]
    LIBRARIES = ["ws2_32"] if sys.platform == "win32" else ["m"]

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


def extensions() -> list[Extension]:
    """Return one extension per .pyx file; headers beside it are found through the repository root."""
    headers = [str(path) for path in Path("motioncue").rglob("*.h")]
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            include_dirs=["."],
            depends=headers,
            extra_compile_args=COMPILE,
            libraries=LIBRARIES,
        )
        for path in sorted(Path("motioncue").rglob("*.pyx"))
    ]


setup(ext_modules=cythonize(extensions(), compiler_directives=DIRECTIVES, build_dir="build/cython"))
