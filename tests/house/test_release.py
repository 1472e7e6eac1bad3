"""What a release rests on: pinned actions, one version, wheels for every Python that the package says it runs on."""

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

import motioncue

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not in the sdist")
def test_every_action_is_pinned_by_a_commit_with_its_version_beside_it():
    uses = [line for path in WORKFLOWS for line in re.findall(r"uses: *(.+)", path.read_text(encoding="utf-8"))]
    foreign = [line for line in uses if not line.startswith("./")]
    assert len(foreign) >= 5
    assert [line for line in foreign if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not in the sdist")
def test_only_a_tag_is_published_after_all_tests():
    publish = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8").partition("\n  publish:")[2]
    assert "if: startsWith(github.ref, 'refs/tags/v')" in publish
    assert "needs: [tests, wheels, sdist]" in publish
    assert "id-token: write" in publish


def test_the_changelog_begins_with_this_version():
    (newest, *_) = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert newest == motioncue.__version__


def test_wheels_are_built_for_every_python_that_is_promised():
    built = re.findall(r"cp3(\d+)", PROJECT["tool"]["cibuildwheel"]["build"])
    oldest = re.fullmatch(r">=3\.(\d+)", PROJECT["project"]["requires-python"])[1]
    promised = re.search(r"3\.(\d+) to 3\.(\d+) work", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert (built[0], built[-1]) == (oldest, promised[2])
    assert promised[1] == oldest
    assert list(map(int, built)) == list(range(int(oldest), int(promised[2]) + 1))


def test_the_conda_recipe_says_what_the_project_says():
    recipe = (ROOT / "contrib/conda/recipe.yaml").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^ +- ([\w-]+) (>=\S+)$", recipe.partition("  run:")[2], re.M))
    other = {"msgspec": "msgspec-python"}  # what conda calls it
    wanted = [re.fullmatch(r"([\w-]+)(>=\S+)", each).groups() for each in PROJECT["project"]["dependencies"]]
    wanted.append(("python", PROJECT["project"]["requires-python"]))
    assert listed == {other.get(name, name): least for name, least in wanted}
    assert f'version: "{motioncue.__version__}"' in recipe
    assert re.findall(r"^    - (\S*LICENSE)$", recipe, re.M) == PROJECT["project"]["license-files"]


@pytest.mark.skipif(not WORKFLOWS, reason="what runs under Wine is not in the sdist")
def test_windows_python_under_wine_has_what_the_package_needs():
    pinned = set(re.findall(r"^([\w-]+)==", (ROOT / ".ci/windows-requirements.txt").read_text(encoding="utf-8"), re.M))
    needed = {re.match(r"[\w-]+", each)[0] for each in PROJECT["project"]["dependencies"]}
    assert needed - pinned == set()


@pytest.mark.parametrize("place", ["motioncue/data", "tests/data/rally", "tests/data/packets/described"])
def test_recordings_of_others_have_their_license_beside_them(place):
    folder = ROOT / place
    (said,) = set(re.findall(r"\(MIT, (Copyright \(c\) [^)]+)\)", (folder / "README.md").read_text(encoding="utf-8")))
    text = (folder / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("MIT License")
    assert said in text.splitlines()
    assert (f"{place}/LICENSE" in PROJECT["project"]["license-files"]) == place.startswith("motioncue/")


@pytest.mark.parametrize("place", ["cueing/predictive/daqp", "view/page/uplot"])
def test_vendored_sources_are_those_of_their_release(place):
    folder = ROOT / "motioncue" / place
    listed = re.findall(r"^([0-9a-f]{64})  (\S+)$", (folder / "README.md").read_text(encoding="utf-8"), re.M)
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "README.md"]
    assert {name for _, name in listed} == {path.relative_to(folder).as_posix() for path in files}
    changed = [name for told, name in listed if hashlib.sha256((folder / name).read_bytes()).hexdigest() != told]
    assert changed == []
    assert (folder / "LICENSE").relative_to(ROOT).as_posix() in PROJECT["project"]["license-files"]
