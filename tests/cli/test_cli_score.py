"""``motioncue score``: what it prints, its JSON, its report, its refusals."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("clarabel")
pytest.importorskip("scipy")
pytest.importorskip("platformdirs")

import motioncue
from motioncue.cli import cli
from motioncue.scoring import score as module
from motioncue.virtual.installation import drive_packages

pytestmark = pytest.mark.search


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "kept")


def run(*arguments):
    return CliRunner().invoke(cli, ["score", *map(str, arguments)])


@pytest.mark.search
def test_json_is_a_list_of_every_profile_on_every_drive(tmp_path):
    report = tmp_path / "score.html"
    result = run(
        "ccd-dk-classical", "beamng-dk", "--set", "cueing.algorithm=classical", "--set", "cueing.preset=utias",
        "--drive", "brake", "--platform", "box-small", "--report", report, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert [(row["profile"], row["drive"], row["platform"]) for row in found] == [
        ("ccd-dk-classical", "brake", "box-small"),
        ("beamng-dk", "brake", "box-small"),
    ]
    assert found[0]["score"] == pytest.approx(found[1]["score"], abs=1.0)  # the same settings
    assert {"stopped", "rates_first", "still", "asked", "turned_down", "motions", "car_jolts"} <= set(found[0])
    assert "ccd-dk-classical on brake" in result.stdout
    page = report.read_text(encoding="utf-8")
    assert page.count("<img") == 4
    assert "beamng-dk on brake" in page
    assert f"<p>motioncue {motioncue.__version__}, 20" in page
    assert "platform box-small: <code>motioncue score ccd-dk-classical beamng-dk --set" in page
    assert "nan" not in re.sub(r'src="[^"]*"', "", page)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ccd-dk-classical"], "--drive"),
        (["--drive", "tour"], "PROFILE"),
        (
            ["ccd-dk-classical", "--drive", "nowhere.bin"],
            "--drive: found no file 'nowhere.bin', allowed are recordings and tour",
        ),
        (["ccd-dk-classical", "--drive", "brake"], "platform: missing"),
        (["ccd-dk-classical", "--drive", "brake", "--platform", "hexapod"], "platform: found 'hexapod'"),
        (["ccd-dk-classical", "--drive", "still", "--platform", "box-small"], "nothing is felt"),
        (["nope", "--drive", "brake"], "'nope'"),
    ],
)
def test_refusals_are_one_line(arguments, said):
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line


@pytest.mark.parametrize("own", [[], ["--set", "platform.preset=box-large"]])
def test_an_auto_preset_is_that_of_the_platform_beside_it(own):
    auto = [
        "ccd-dk-classical",
        "--set",
        "cueing.preset=auto",
        "--set",
        "output.rate_hz=60",
        "--drive",
        "brake",
        "--json",
    ]
    scores = []
    for platform in ([*own, "--platform", "box-small"], ["--set", "platform.preset=box-small"], own):
        result = run(*auto, *platform)
        assert result.exit_code == (0 if platform else 2), result.output
        found = json.loads(result.stdout.splitlines()[-1]) if platform else [{}]
        scores.append({key: value for key, value in found[0].items() if key != "platform"})
    assert scores[0] == scores[1] != scores[2]
    if not own:
        assert "cueing.preset: found 'auto', which scales its gains to a [platform], and there is none" in result.stderr


def test_recordings_bytes_and_described_sources_are_drives(tmp_path):
    packets = tmp_path / "rally.bin"
    packets.write_bytes(b"".join(each.package for each in drive_packages("dirt-rally-dk", "brake", duration_s=12.0)))
    for arguments in (
        ["--drive", Path(__file__).parents[1] / "data" / "drives" / "beamng.mcap"],
        ["--drive", packets, "--system", "dirt-rally-dk"],
    ):
        result = run("ccd-dk-classical", *arguments, "--platform", "posts-3", "--json")
        assert result.exit_code == 0, result.output
        (row,) = json.loads(result.stdout.splitlines()[-1])
        assert -100.0 < row["score"] < 100.0
        assert row["asked"]["yaw"] == [None, None, None]  # three posts do not yaw
