"""Build a controller that cimports motioncue's kernels."""

import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

import motioncue

setup(
    name="controller",
    ext_modules=cythonize(
        Extension(
            "controller",
            ["controller.pyx"],
            include_dirs=[motioncue.get_include()],
            # As motioncue itself is built, so that the same inputs give the same bits.
            extra_compile_args=["/fp:precise"] if sys.platform == "win32" else ["-O2", "-ffp-contract=off"],
        ),
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
    ),
)
