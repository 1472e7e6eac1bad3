"""What the package exports: every promised name is there, typed, and nothing else is promised."""

import doctest
import importlib
import importlib.metadata
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import motioncue

PACKAGE = Path(motioncue.__file__).parent
SOURCE = Path(__file__).parents[2] / "motioncue"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages([str(PACKAGE)], "motioncue.")
    if not module.name.rpartition(".")[2].startswith("_")
)


def test_every_promised_name_exists_once():
    assert len(set(motioncue.__all__)) == len(motioncue.__all__)
    assert [name for name in motioncue.__all__ if not hasattr(motioncue, name)] == []


def test_contract_names_are_exported():
    assert {"Engine", "cue", "load_profile", "body_motion", "get_include"} <= set(motioncue.__all__)
    assert list(inspect.signature(motioncue.cue).parameters)[:2] == ["profile", "motion"]
    assert next(iter(inspect.signature(motioncue.Engine).parameters)) == "profile"
    assert next(iter(inspect.signature(motioncue.load_profile).parameters)) == "name_or_path"
    assert {"stats", "__enter__", "__exit__"} <= set(dir(motioncue.Engine))


@pytest.mark.parametrize("name", sorted(set(motioncue.__all__) - {"__version__"}))
def test_every_public_name_has_an_example_and_it_says_what_comes_out(name):
    page = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
    tests = doctest.DocTestFinder().find(getattr(motioncue, name), name, globs={"motioncue": motioncue, "np": np})
    examples = [each for each in tests if each.examples and each.name.partition(".")[0] == name]
    assert examples or f"motioncue.{name}" in page
    for each in examples:
        said = []
        assert doctest.DocTestRunner().run(each, out=said.append).failed == 0, "".join(said)


BARE = """
import importlib, sys

EXTRAS = "quaternion scipy matplotlib pytest hypothesis mpmath clarabel platformdirs cma"
for name in EXTRAS.split():
    sys.modules[name] = None  # to import it is an error now
for name in sys.argv[1:]:
    importlib.import_module(name)
import motioncue
motion = motioncue.body_motion([[1, 0, 0, 0]], [[0, 0, 10]], [[0, 0, 2]], [[0, 0, 0]])
assert motion["surge"][0] == 2.0
"""


def test_everything_but_plots_is_imported_with_the_installed_dependencies_alone():
    names = MODULES
    subprocess.run([sys.executable, "-c", BARE, *names], check=True)


def test_version_is_that_of_the_distribution():
    assert motioncue.__version__ == importlib.metadata.version("motioncue")


def test_stubs_and_declarations_are_shipped():
    stubs = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.pyi")]
    declared = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.pxd")]
    assert stubs
    assert declared
    assert [path for path in (*stubs, *declared) if not (PACKAGE / path).exists()] == []


def test_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_headers_and_what_is_compiled_with_them_are_found_from_the_include_directory():
    headers = [path.relative_to(SOURCE.parent) for path in SOURCE.rglob("*.h")]
    assert headers
    library = Path("motioncue/engine/fmu.c")  # which `motioncue export` compiles
    assert [path for path in (*headers, library) if not (Path(motioncue.get_include()) / path).exists()] == []
