"""``motioncue omct``: what it prints, its JSON, its report, its refusals."""

import json

import pytest
from click.testing import CliRunner

from motioncue.cli import cli

pytestmark = pytest.mark.search

BOUNDS = """
source = "figure 3 of <a document>"
[[boundary]]
test = 6
frequency_rad_s = [0.1, 15.85]
gain_low = [0.5, 0.5]
"""


def run(*arguments):
    return CliRunner().invoke(cli, ["omct", *map(str, arguments)])


def test_json_is_a_list_with_a_row_for_every_sine():
    result = run("ccd-dk", "--acceleration", "1", "--rate", "5", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout.splitlines()[-1])
    assert len(rows) == 120
    assert {"test", "frequency_rad_s", "gain", "phase_deg", "residual"} <= set(rows[0])
    assert [row["test"] for row in rows[::12]] == list(range(1, 11))
    assert rows[0]["gain"] == pytest.approx(1.0)
    assert next(row for row in rows if row["test"] == 2)["theory_phase_deg"] is None  # a gain of 0 has none
    assert "7: pitch due to surge [rad/(m/s^2)]" in result.stdout


def test_report_draws_every_test_and_names_the_source_of_boundaries(tmp_path):
    pytest.importorskip("matplotlib")
    bounds, report = tmp_path / "bounds.toml", tmp_path / "omct.html"
    bounds.write_text(BOUNDS, encoding="utf-8")
    result = run(
        "ccd-dk-classical", "--set", "cueing.preset=utias", "--platform",
        "posts-3", "--acceleration", "1", "--rate", "2",
        "--boundaries", bounds, "--report", report, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    page = report.read_text(encoding="utf-8")
    assert page.count("<img") == 10
    assert "figure 3 of &lt;a document&gt;" in page
    assert "ccd-dk-classical on posts-3" in page
    rows = [row for row in json.loads(result.stdout.splitlines()[-1]) if row["test"] == 6]
    assert [row["inside"] for row in rows] == [row["gain"] >= 0.5 for row in rows]  # posts surge by tilt alone
    assert "OUTSIDE" in result.stdout


def test_an_auto_preset_is_that_of_the_platform_beside_it():
    given = ["ccd-dk-classical", "--set", "output.rate_hz=60", "--acceleration", "0.5", "--rate", "2", "--json"]
    auto, small = ["--set", "cueing.preset=auto"], ["--platform", "box-small"]
    rows = []
    for arguments in ([*auto, *small], [*auto, "--set", "platform.preset=box-small"], small):
        result = run(*given, *arguments)
        assert result.exit_code == 0, result.output
        rows.append(json.loads(result.stdout.splitlines()[-1]))
    assert rows[0] == rows[1] != rows[2]


def test_figure_shows_points_and_equations_by_whole_turns_inside_the_boundaries():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from motioncue.scoring.omct import TESTS, Boundaries, Boundary, omct
    from motioncue.scoring.reports import omct_figure

    rows = omct("ccd-dk-classical", accelerations=[0.01, 1.0], rates_deg_s=[0.05])
    limits = Boundary(test=9, frequency_rad_s=(0.1, 16.0), phase_low_deg=(0.0, 0.0), phase_high_deg=(180.0, 180.0))
    gain, phase = omct_figure(TESTS[8], rows, Boundaries(source="an example", boundary=(limits,))).axes
    own = [row for row in rows if row.test == 9]
    assert [list(line.get_ydata()) for line in gain.lines] == [
        pytest.approx([row.theory_gain for row in own[:12]]),
        pytest.approx([row.gain for row in own[:12]]),
        pytest.approx([row.gain for row in own[12:]]),
    ]
    assert gain.get_ylabel() == "gain [rad/(m/s^2)]"
    for line in phase.lines:  # a low-pass filter of second order, turned round: from 180 deg down to 0
        assert all(-1.0 < value < 181.0 for value in line.get_ydata())
    pyplot.close("all")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "PROFILE"),
        (["nope"], "'nope'"),
        (["ccd-dk", "--platform", "box-small"], "whose cue is no pose"),
        (["ccd-dk", "--acceleration", "0"], "accelerations: found 0 m/s^2"),
        (["ccd-dk", "--boundaries", "nowhere.toml"], "'nowhere.toml' cannot be read"),
    ],
)
def test_refusals_are_one_line(arguments, said):
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line
