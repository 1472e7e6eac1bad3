"""The front of a search: on a problem whose front is known, and of a real score against use and fast tilt."""

import json
import math

import pytest

pytest.importorskip("cma")
pytest.importorskip("tomlkit")
pytest.importorskip("clarabel")
pytest.importorskip("scipy")
pytest.importorskip("platformdirs")

from click.testing import CliRunner
from tune_helpers import UTIAS, driven, profile

import motioncue
from motioncue.cli import cli
from motioncue.errors import ConfigError
from motioncue.scoring import score as module
from motioncue.tuning.evaluator import IMPOSSIBLE, Outcome, Parameter
from motioncue.tuning.search import SHARES, Archive, Bounds, FileState, FrontSearch, Search, Task, staircase
from motioncue.tuning.tune import tune
from motioncue.virtual.installation import drive_motion

PARAMETERS = [Parameter("cueing.gain", 0.5, 0.0, 10.0, 0.5), Parameter("cueing.frequency_hz", 1.0, 1 / 64, 64.0, 0.0)]
BOUNDS = Bounds(2.0, 1.0, 1.0)
GIVEN = {"platform": "box-small", "parameters": ["surge", "sway.gain", "pitch.gain"], "evaluations": 40}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """Keep best motions in a folder of this file's tests."""
    kept = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "cache_folder", lambda: kept)
        yield kept


def worth(values):
    """Return 80 at gain 1 and 0.25 Hz, less by squares of what is wrong; the gain is what is used, and fast tilt."""
    gain, octaves = values["cueing.gain"], math.log2(values["cueing.frequency_hz"] / 0.25)
    score = 80.0 - 50.0 * (gain - 1.0) ** 2 - 10.0 * octaves**2
    return [Outcome(score, score, gain, gain / 4.0, 0.0), Outcome(score, score, 0.5 * gain, 0.0, 0.0)]


class Workers:
    """Scores by `worth`, and counts."""

    def __init__(self):
        self.scored = []

    def __call__(self, settings):
        self.scored += settings
        return [worth(values) for values in settings]


def searched(aim="use", bounds=BOUNDS, evaluations=150, seed=1, pool=None, state=None, others=()):
    search = FrontSearch(aim, Task(PARAMETERS, pool or Workers(), bounds, seed, others, state))
    done = list(search.run(evaluations))
    assert done == sorted(done)
    assert done[-1] == search.evaluations
    return search


def test_points_are_the_best_within_each_share():
    # Within a use u below 1 the best gain is u and the score 80 - 50 (u - 1)^2; from 1 on it is 80.
    points, missed = searched().found()
    assert missed == []
    assert [share for share, _ in points][:2] == [0.25, 0.5]
    for share, best in points:
        gain = min(2.0 * share, 1.0)
        assert best.values["cueing.gain"] == pytest.approx(gain, rel=0.01)
        assert best.values["cueing.gain"] <= 2.0 * share
        assert best.outcomes[0].score == pytest.approx(80.0 - 50.0 * (gain - 1.0) ** 2, abs=0.6)


@pytest.mark.parametrize("aim", ["use", "fast_tilt"])
def test_no_point_is_worse_than_what_was_scored_with_less_of_the_aim(aim):
    bounds = Bounds(0.9, 1.0, 1.0) if aim == "use" else Bounds(9.0, 0.22, 1.0)
    search = searched(aim, bounds, evaluations=40)
    points, _ = search.found()
    assert [share for share, _ in points] == sorted(SHARES)
    scored = [worth(values) for values in search.task.pool.scored]
    for share, best in points:
        bound = share * getattr(bounds, aim)
        within = [own[0].score for own in scored if getattr(own[0], aim) <= bound]
        assert getattr(best.outcomes[0], aim) <= bound
        assert best.outcomes[0].score == max(within)
    scores = [best.outcomes[0].score for _, best in points]
    assert scores == sorted(set(scores))  # more of the aim only for a better score
    assert sorted(search.scored()) == sorted({(getattr(own[0], aim), own[0].score) for own in scored})


def test_the_whole_bound_finds_what_a_search_without_a_front_finds_or_better():
    bounds = Bounds(0.9, 1.0, 1.0)
    alone = Search(Task(PARAMETERS, Workers(), bounds, 3))
    list(alone.run(60))
    search = searched(bounds=bounds, seed=3, evaluations=60)
    assert search.best.cost <= alone.best.cost
    assert search.task.pool.scored[:60] == searched(bounds=bounds, seed=3, evaluations=60).task.pool.scored[:60]
    first = Workers()
    list(Search(Task(PARAMETERS, first, bounds, 3)).run(60))
    assert search.task.pool.scored[:60] == first.scored


def test_a_share_that_nothing_keeps_is_missed():
    least = [each._replace(value=0.5, low=0.4) if each.key == "cueing.gain" else each for each in PARAMETERS]
    search = FrontSearch("use", Task(least, Workers(), Bounds(1.0, 1.0, 1.0), 1))
    list(search.run(60))
    points, missed = search.found()
    assert missed == [0.25]
    assert [share for share, _ in points] == [0.5, 0.75, 1.0]


def test_settings_that_break_another_bound_are_no_part_of_a_front():
    pool = Workers()
    points, _ = searched("use", Bounds(2.0, 0.1, 1.0), pool=pool).found()  # a fast tilt of 0.1 is a gain of 0.4
    assert [share for share, _ in points] == [0.25]
    assert points[0][1].values["cueing.gain"] == pytest.approx(0.4, rel=0.02)
    assert all(use <= 0.4 for use, _ in searched("use", Bounds(2.0, 0.1, 1.0), pool=pool).scored())


def test_of_settings_with_the_same_score_those_with_less_of_the_aim_are_kept():
    archive = Archive("use", [Bounds()])
    outcomes = [[Outcome(50.0, 50.0, use, 0.0, 0.0)] for use in (0.8, 0.6, 0.7)]
    archive.add([{"a": 1.0}, {"a": 2.0}, {"a": 3.0}], outcomes)
    assert archive.best[0].values == {"a": 2.0}
    archive.add([{"a": 4.0}], [[IMPOSSIBLE]])
    assert archive.best[0].values == {"a": 2.0}


def test_a_staircase_has_what_nothing_is_better_than_with_less():
    scored = [(0.5, 40.0), (0.2, 10.0), (0.3, 9.0), (0.5, 45.0), (0.7, 45.0), (0.9, 60.0)]
    assert staircase(scored) == [(0.2, 10.0), (0.5, 45.0), (0.9, 60.0)]
    assert staircase([]) == []


@pytest.mark.parametrize("until", [10, 70])  # within the first point, and within the second
def test_an_interrupted_front_goes_on_and_finds_the_same(tmp_path, until):
    content = {"parameters": {each.key: [] for each in PARAMETERS}}
    expected = searched(evaluations=50)
    file = tmp_path / "it.search"
    first = FrontSearch("use", Task(PARAMETERS, Workers(), BOUNDS, 1, (), FileState(file, content)))
    for done in first.run(50):
        if done > until:
            break
    assert first.best is not None
    rest = Workers()
    again = searched(evaluations=50, pool=rest, state=FileState(file, content, resume=True))
    assert again.found() == expected.found()
    assert again.scored() == expected.scored()
    assert rest.scored == expected.task.pool.scored[len(first.task.pool.scored) :]


def test_nothing_is_scored_twice():
    scored = [tuple(values.values()) for values in searched(evaluations=60).task.pool.scored]
    assert len(set(scored)) == len(scored)


# ---- a real score ----------------------------------------------------------------------------------------------------


@pytest.mark.search
@pytest.mark.parametrize("aim", ["use", "fast_tilt"])
def test_points_are_worth_what_they_score(aim):
    drives, other = {"one": driven(), "two": driven(6.0, braking=2.0)}, driven(7.0, braking=-5.0)
    found = tune(profile(UTIAS), drives, hold_out=[other], front=aim, bounds=Bounds(1.0, 0.4, 1.0), **GIVEN)
    front = found.front
    assert found.evaluations == 160
    assert front.aim == aim
    assert len(front.points) >= 2
    assert front.points[-1].values == {key: after for key, (_, after) in found.changes.items()}
    assert front.points[-1].score == found.after
    assert front.points[-1].hold_out == found.hold_out_after
    for point in front.points:
        own = motioncue.load_profile("ccd-dk-classical", "output.rate_hz=60", UTIAS, point.values)
        scores = [motioncue.score(own, motion, platform="box-small") for motion in drives.values()]
        assert point.score == pytest.approx(sum(each.score for each in scores) / 2, abs=1e-9)
        assert point.hold_out == pytest.approx(motioncue.score(own, other, platform="box-small").score, abs=1e-9)
        assert point.fast_tilt == max(each.motions["fits"].fast_tilt for each in scores)
        use = max(max(max(shares) for shares in each.motions["fits"].use.values()) for each in scores)
        assert point.use >= use - 1e-9
        assert getattr(point, aim) <= point.bound == pytest.approx(point.share * (1.0 if aim == "use" else 0.4))
    for less, more in zip(front.points, front.points[1:], strict=False):
        assert getattr(less, aim) < getattr(more, aim)
        assert less.score < more.score


@pytest.mark.search
def test_a_front_is_the_same_with_workers_and_after_an_interruption(tmp_path):
    given = {**GIVEN, "evaluations": 16, "front": "use"}
    expected = tune(profile(UTIAS), [driven(5.0)], **given)
    assert tune(profile(UTIAS), [driven(5.0)], workers=2, **given).front == expected.front

    def interrupt(done, total, best):
        assert total == 64
        if done > 40:
            raise KeyboardInterrupt

    state = tmp_path / "it.search"
    half = tune(profile(UTIAS), [driven(5.0)], **given, state=state, progress=interrupt)
    assert half.ended == "interrupted"
    assert 40 < half.evaluations < 64
    assert half.front.points  # what was found so far
    again = tune(profile(UTIAS), [driven(5.0)], **given, state=state, resume=True)
    assert again.front == expected.front
    assert (again.changes, again.evaluations) == (expected.changes, 64)
    with pytest.raises(ConfigError, match="--resume: found other front in"):
        tune(profile(UTIAS), [driven(5.0)], **{**given, "front": "opposite"}, state=state, resume=True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"front": "travel"}, "front: found 'travel', allowed are use, fast_tilt, opposite"),
        ({"front": "fast_tilt", "bounds": Bounds(1.0, 0.0, 1.0)}, "fast_tilt: found 0, allowed with front"),
    ],
)
def test_a_front_that_cannot_be_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        tune(profile(), [driven(4.0)], platform="box-small", **given)


def test_the_figure_shows_points_front_and_start():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from motioncue.tuning.search import Front, Point
    from motioncue.tuning.tune import front_figure, front_rows

    points = (
        Point(0.5, 0.5, {}, 41.0, 40.0, 0.24, 0.1, 0.02),
        Point(1.0, 1.0, {}, 60.0, None, 0.98, 0.2, 0.03),
    )
    scored = ((0.24, 41.0), (0.5, 30.0), (0.98, 60.0), (1.4, 70.0))
    front = Front("use", points, (0.25,), scored, (0.6, 35.0))
    (side,) = front_figure(front).axes
    cloud, line, before, *marks = [list(zip(*each.get_data(), strict=True)) for each in side.lines]
    assert cloud == list(scored)
    assert line == [(0.24, 41.0), (0.98, 60.0), (1.4, 70.0)]
    assert before == [(0.6, 35.0)]
    assert [mark for own in marks for mark in own] == [(0.24, 41.0), (0.98, 60.0)]
    assert [each.get_text() for each in side.texts] == ["50 %", "100 %"]
    heads, rows = front_rows(front)
    assert heads == ["use at most", "score", "held out", "use", "fast tilt", "opposite"]
    assert rows[0][:2] == ["0.25 (25 %)", "none found"]
    assert rows[1] == ["0.5 (50 %, no better up to 75 %)", "41.0", "40.0", "0.24", "10 %", "2 %"]
    assert rows[2][:3] == ["1 (100 %)", "60.0", "-"]
    front_figure(Front("fast_tilt", (), SHARES, (), (math.inf, -math.inf)))
    pyplot.close("all")


COMMAND = ["tune", "ccd-dk-classical", "--drive", "brake", "--hold-out", "turns", "--platform", "box-small"]
COMMAND += ["--parameter", "surge", "--set", "output.rate_hz=60", "--set", UTIAS, "--evaluations", "25"]


@pytest.mark.search
def test_each_point_is_saved_as_a_profile_that_scores_what_is_said(tmp_path):
    out, report = tmp_path / "mine.toml", tmp_path / "it.html"
    command = [*COMMAND, "--front", "use", "--save-front", "--out", str(out), "--report", str(report), "--json"]
    (tmp_path / "mine-use-25.toml").write_text("old", encoding="utf-8")
    assert CliRunner().invoke(cli, command).exit_code == 2
    result = CliRunner().invoke(cli, [*command, "--force"])
    assert result.exit_code == 0, result.output
    front = json.loads(result.stdout.splitlines()[-1])["front"]
    assert front["aim"] == "use"
    assert "scored" not in front
    assert len(front["points"]) >= 2
    files = {"mine.toml", "mine.toml.search", "it.html"}
    for point in front["points"]:
        assert f"{point['bound']:.3g} ({100 * point['share']:.0f} %" in result.stdout
    for share in (0.25, 0.5, 0.75, 1.0):
        file = out if share == 1.0 else tmp_path / f"mine-use-{100 * share:.0f}.toml"
        within = [point for point in front["points"] if point["share"] <= share]
        if not within:
            assert not file.exists()  # the one that was there is of no search
            continue
        point = within[-1]
        files.add(file.name)
        found = motioncue.score(motioncue.load_profile(file), drive_motion("brake"), platform="box-small")
        assert found.score == pytest.approx(point["score"], abs=1e-9)
        if file != out:
            text = file.read_text(encoding="utf-8")
            assert f"# tuned: use of {point['use']:.3g} within {point['bound']:.3g}: score" in text
    assert {each.name for each in tmp_path.iterdir()} == files
    assert report.read_text(encoding="utf-8").count("<img") == 3
    again = CliRunner().invoke(cli, [*command[:-3], "--out", str(tmp_path / "mine.toml")])
    assert again.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--save-front"], "--save-front: allowed with --front"),
        (["--front", "use", "--save-front"], "mine-use-50.toml' exists; allowed are another name"),
        (["--front", "travel"], "travel"),
    ],
)
def test_refusals_come_before_the_search(arguments, said, tmp_path):
    (tmp_path / "mine-use-50.toml").touch()
    result = CliRunner().invoke(cli, [*COMMAND, *arguments, "--out", str(tmp_path / "mine.toml")])
    assert result.exit_code == 2
    assert said in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["mine-use-50.toml"]
