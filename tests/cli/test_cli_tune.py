"""``motioncue tune``: its file, its JSON, its report, Ctrl-C, its refusals."""

import json
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from programs import Program

pytest.importorskip("cma")
pytest.importorskip("tomlkit")
pytest.importorskip("clarabel")
pytest.importorskip("scipy")
pytest.importorskip("platformdirs")

import motioncue
from motioncue.cli import cli
from motioncue.cueing.settings import ALGORITHMS
from motioncue.profile.profile import profile_text
from motioncue.scoring import score as module
from motioncue.virtual.installation import drive_motion

pytestmark = pytest.mark.search

GIVEN = ["ccd-dk-classical", "--drive", "brake", "--platform", "box-small", "--parameter", "surge"]
GIVEN += ["--set", "output.rate_hz=60", "--set", "cueing.preset=utias", "--set", "cueing.surge.gain=0.1"]
COMPLETE = ["--drive", "brake", "--out", "mine.toml", "--platform", "box-small"]


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """Keep best motions in a folder of this file's tests."""
    kept = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "cache_folder", lambda: kept)
        yield kept


def run(*arguments):
    return CliRunner().invoke(cli, ["tune", *map(str, arguments)])


def test_a_profile_is_written_that_scores_what_is_said(tmp_path):
    out, report = tmp_path / "mine.toml", tmp_path / "tuned.html"
    result = run(*GIVEN, "--hold-out", "turns", "--evaluations", 40, "--out", out, "--report", report, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert {"before", "after", "hold_out_before", "hold_out_after", "evaluations"} <= set(found)
    assert found["evaluations"] == 40
    assert found["after"] > found["before"]
    tuned = motioncue.score(motioncue.load_profile(out), drive_motion("brake"), platform="box-small")
    unseen = motioncue.score(motioncue.load_profile(out), drive_motion("turns"), platform="box-small")
    assert found["after"] == pytest.approx(tuned.score, abs=1e-9)
    assert found["hold_out_after"] == pytest.approx(unseen.score, abs=1e-9)
    assert [(each["drive"], each["held_out"]) for each in found["drives"]] == [("brake", False), ("turns", True)]
    searched = ("gain", "negative_share", "dead_zone_m_s2", "cutoff_hz", "damping", "break_hz")
    assert set(found["changes"]) == {f"cueing.surge.{key}" for key in searched}
    assert {each["key"] for each in found["sensitivities"]} == set(found["changes"])
    assert "brake" in result.stdout
    assert "turns (held out)" in result.stdout
    assert "40 of 40 settings" in result.stderr
    assert report.read_text(encoding="utf-8").count("<img") == 2
    again = run(*GIVEN, "--evaluations", 5, "--out", out)
    assert again.exit_code == 2
    assert "exists; allowed are another name, --force, or --resume" in again.stderr
    more = run(*GIVEN, "--evaluations", 50, "--out", out, "--resume", "--json")
    assert more.exit_code == 0, more.output
    assert json.loads(more.stdout.splitlines()[-1])["after"] >= found["after"]


@pytest.mark.parametrize("rig", [None, "[platform]\npreset = 'box-large'  # the old one\n"])
def test_an_auto_preset_is_that_of_the_platform_beside_it_and_its_values_are_written(tmp_path, monkeypatch, rig):
    monkeypatch.chdir(tmp_path)
    name = "ccd-dk-classical" if rig is None else "rig.toml"
    if rig is not None:
        Path(name).write_text(profile_text("ccd-dk-classical") + rig, encoding="utf-8")
    given = [name, "--drive", "brake", "--set", "cueing.preset=auto", "--set", "output.rate_hz=60"]
    given += ["--parameter", "surge.gain", "--evaluations", 6, "--json"]
    beside = run(*given, "--platform", "box-small", "--out", "beside.toml")
    within = run(*given, "--set", "platform.preset=box-small", "--out", "within.toml")
    assert beside.exit_code == within.exit_code == 0, beside.output + within.output
    found, same = (json.loads(each.stdout.splitlines()[-1]) for each in (beside, within))
    assert (found["before"], found["after"], found["changes"]) == (same["before"], same["after"], same["changes"])
    for file, platform in (("beside.toml", "box-small"), ("within.toml", None)):
        tuned = motioncue.load_profile(file)
        assert motioncue.score(tuned, drive_motion("brake"), platform=platform).score == found["after"]
    # Another platform in the file does not change what was found for this one.
    assert motioncue.load_profile("beside.toml", "platform.preset=posts-3").cueing == (
        motioncue.load_profile("beside.toml").cueing
    )


def test_another_algorithm_takes_the_place_of_all_settings_before(tmp_path):
    rig, out = tmp_path / "rig.toml", tmp_path / "mine.toml"
    old = profile_text("ccd-dk-classical").replace('preset = "simona"', 'tilt.rate_limit_deg_s = 4\npreset = "simona"')
    rig.write_text(old, encoding="utf-8")
    result = run(
        rig, "--drive", "brake", "--platform", "box-small", "--set", "output.rate_hz=60", "--set",
        "cueing.algorithm=adaptive", "--parameter", "surge.gain", "--evaluations", 4, "--out", out, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    tuned = motioncue.load_profile(out)
    assert type(tuned.cueing) is ALGORITHMS["adaptive"]
    assert motioncue.score(tuned, drive_motion("brake"), platform="box-small").score == found["after"]


@pytest.mark.rt
def test_ctrl_c_keeps_the_best(tmp_path):
    out = tmp_path / "mine.toml"
    with Program("tune", *GIVEN, "--evaluations", "100000", "--workers", "2", "--out", str(out), "--json") as program:
        program.says("of 100000 settings")
        program.signal(signal.CTRL_C_EVENT if sys.platform == "win32" else signal.SIGINT)
        found = program.end()
    assert found["ended"] == "interrupted"
    assert 1 < found["evaluations"] < 100000
    assert found["after"] >= found["before"]
    assert motioncue.load_profile(out).cueing.surge.gain == found["changes"]["cueing.surge.gain"][1]


def test_a_folder_in_place_of_the_file_is_refused_before_the_search(tmp_path):
    (tmp_path / "mine.toml").mkdir()
    result = run(*GIVEN, "--evaluations", 5, "--out", tmp_path / "mine.toml", "--force")
    assert result.exit_code == 2
    assert "mine.toml' is a folder; allowed is a file" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--drive"),
        (["--drive", "brake"], "--out"),
        (["--drive", "brake", "--out", "mine.json"], "--out: found 'mine.json', allowed is a name that ends in .toml"),
        (["--drive", "brake", "--out", "nowhere/mine.toml"], "--out: found no folder 'nowhere'"),
        ([*COMPLETE, "--opposite", "nan"], "opposite: found nan"),
        (["--drive", "nowhere.bin", "--out", "mine.toml"], "--drive: found no file 'nowhere.bin'"),
        (["--drive", "brake", "--hold-out", "x.bin", "--out", "mine.toml"], "--hold-out: found no file 'x.bin'"),
        (["--drive", "brake", "--out", "mine.toml"], "platform: missing"),
        ([*COMPLETE, "--parameter", "surge.gian"], "parameter: found 'surge.gian', allowed are surge.gain"),
        ([*COMPLETE, "--resume"], "no search that can go on"),
    ],
)
def test_refusals_are_one_line(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("ccd-dk-classical", *arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert list(tmp_path.iterdir()) == []
