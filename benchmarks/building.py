"""Compilation of what the benchmarks compare with, with the package's compiler and flags."""

import ctypes
import importlib
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import motioncue

HERE = Path(__file__).resolve().parent
SETUP = HERE.parent / "setup.py"
BUILD = HERE.parent / "build" / "benchmarks"
PACKAGE = Path(motioncue.__file__).resolve().parents[1]


def package_flags() -> list[str]:
    """Return the flags of the package's setup.py; what depends on the build (-g) is left out."""
    return [flag for flag in runpy.run_path(str(SETUP))["COMPILE"] if not flag.startswith("-g")]


@cache
def built() -> tuple[ModuleType, ModuleType]:
    """Return the modules `_floor` and `_loops` as they were compiled last."""
    sys.path.insert(0, str(BUILD))
    return importlib.import_module("_floor"), importlib.import_module("_loops")


@cache
def build() -> tuple[ModuleType, ModuleType]:
    """Return the modules `_floor` and `_loops`, compiled first if necessary."""
    from Cython.Build import cythonize  # here, because under callgrind the import alone takes seconds
    from setuptools import Distribution, Extension

    package = PACKAGE / "motioncue"
    headers = [SETUP, HERE / "floor.h", HERE / "floor_adaptive.h", *package.rglob("*.pxd"), *package.rglob("*.h")]
    extensions = [
        Extension(
            name,
            [str(HERE / source) for source in sources],
            include_dirs=[str(HERE), str(PACKAGE)],
            depends=[str(path) for path in headers],
            extra_compile_args=package_flags(),
            libraries=["m"],
        )
        for name, sources in (("_floor", ["_floor.pyx", "floor.c"]), ("_loops", ["_loops.pyx"]))
    ]
    directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}
    modules = cythonize(
        extensions,
        compiler_directives={**directives, "initializedcheck": False},
        include_path=[str(PACKAGE)],
        build_dir=str(BUILD),
        quiet=True,
    )
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib = command.build_temp = str(BUILD)
    command.ensure_finalized()
    command.run()
    return built()


COUNTER = """
#include <valgrind/callgrind.h>
void count_begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void count_end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
void count_stop(void) { CALLGRIND_STOP_INSTRUMENTATION; }
"""


@cache
def counter() -> ctypes.CDLL:
    """Return the library that tells callgrind what to count; outside of callgrind its functions do nothing.

    Beginning goes on where counting was not stopped: callgrind translates all code anew after a stop.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    library = BUILD / "counter.so"
    command = ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=COUNTER, text=True, check=True)
    return ctypes.CDLL(str(library))
