"""The search on problems with a known answer: best settings, bounds, seeds, what is kept of it; and its parameters."""

import json
import math
import subprocess
import sys
from typing import Annotated, Literal

import msgspec
import pytest

pytest.importorskip("cma")
pytest.importorskip("clarabel")
pytest.importorskip("scipy")
pytest.importorskip("platformdirs")

import motioncue
from motioncue.core.table import CueingTable, Positive, Table
from motioncue.cueing import design
from motioncue.cueing.settings import ALGORITHMS
from motioncue.errors import ConfigError
from motioncue.tuning.evaluator import (
    DOUBLINGS,
    IMPOSSIBLE,
    Outcome,
    Parameter,
    in_order,
    orders_of,
    parameters_of,
    with_values,
)
from motioncue.tuning.search import Bounds, FileState, Found, Search, Task, neighbors
from motioncue.tuning.tune import _sensitivities

PARAMETERS = [
    Parameter("cueing.frequency_hz", 1.0, 1.0 / 64.0, 64.0, 0.0),
    Parameter("cueing.gain", 0.5, 0.0, 10.0, 0.5),
    Parameter("cueing.damping", 1.0, 0.1, 10.0, 0.0),
]
ANSWER = {"cueing.frequency_hz": 0.25, "cueing.gain": 0.8, "cueing.damping": 0.7}
ANYTHING = Bounds(1e9, 1.0, 1.0)


def worth(values):
    """Return 80 at the answer, less by the squares of what is wrong; use grows with the gain: 1 at 0.6."""
    wrong = [math.log2(values[key] / ANSWER[key]) for key in ("cueing.frequency_hz", "cueing.damping")]
    score = 80.0 - 10.0 * sum(each**2 for each in wrong) - 50.0 * (values["cueing.gain"] - 0.8) ** 2
    return [Outcome(score, score, values["cueing.gain"] / 0.6, 0.0, 0.0)]


class Workers:
    """Scores by `worth`, and counts."""

    def __init__(self):
        self.scored = []

    def __call__(self, settings):
        self.scored += settings
        return [worth(values) for values in settings]


def searched(evaluations=300, seed=1, bounds=ANYTHING, parameters=PARAMETERS, state=None, pool=None, others=()):
    search = Search(Task(parameters, pool or Workers(), bounds, seed, others, state))
    done = list(search.run(evaluations))
    assert done[-1] == search.evaluations
    return search


def test_the_best_settings_are_found():
    found = searched().best
    assert found.values == pytest.approx(ANSWER, rel=0.02)
    assert found.outcomes[0].score == pytest.approx(80.0, abs=0.01)


def test_a_bound_is_kept_and_reached():
    found = searched(bounds=Bounds(1.0, 1.0, 1.0)).best
    assert 0.59 < found.values["cueing.gain"] <= 0.6 + 1e-9
    assert {key: found.values[key] for key in ("cueing.frequency_hz", "cueing.damping")} == pytest.approx(
        {"cueing.frequency_hz": 0.25, "cueing.damping": 0.7}, rel=0.05
    )


def test_of_settings_that_all_break_a_bound_the_nearest_are_kept():
    far = [each._replace(value=0.9, low=0.7) if each.key == "cueing.gain" else each for each in PARAMETERS]
    search = searched(bounds=Bounds(1.0, 1.0, 1.0), parameters=far)
    assert search.best.values["cueing.gain"] == pytest.approx(0.7, abs=0.01)
    assert search.task.bounds.excess(search.best.outcomes)["use"] == pytest.approx(math.log(0.7 / 0.6), abs=0.02)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_parameters_is_searched(count):
    answer = {**{each.key: each.value for each in PARAMETERS}, **ANSWER}
    others = {each.key: ANSWER[each.key] for each in PARAMETERS[count:]}

    def pool(settings):
        return [worth({**others, **values}) for values in settings]

    found = searched(200, parameters=PARAMETERS[:count], pool=pool).best
    assert found.values == pytest.approx({each.key: answer[each.key] for each in PARAMETERS[:count]}, rel=0.02)


@pytest.mark.parametrize("evaluations", [1, 2, 5, 50])
def test_as_many_settings_are_scored_as_allowed(evaluations):
    pool = Workers()
    assert searched(evaluations, pool=pool).evaluations == evaluations == len(pool.scored)
    assert pool.scored[0] == {each.key: each.value for each in PARAMETERS}  # what the profile has


def test_other_settings_are_scored_first_and_the_search_goes_on_from_the_best():
    pool = Workers()
    others = [{"cueing.gain": 0.75, "cueing.frequency_hz": 0.3}, {"cueing.frequency_hz": 999.0, "cueing.order": 2.0}]
    searched(60, pool=pool, others=others)
    keys = [each.key for each in PARAMETERS]
    assert [[values[key] for key in keys] for values in pool.scored[:3]] == [
        [1.0, 0.5, 1.0],
        [0.3, 0.75, 1.0],
        [64.0, 0.5, 1.0],
    ]
    assert all(values["cueing.frequency_hz"] < 0.9 for values in pool.scored[3:10])  # near 0.3, not near 1
    assert searched(2, others=others).evaluations == 2


def test_a_search_depends_on_the_seed_alone():
    teams = [Workers() for _ in range(3)]
    for pool, seed in zip(teams, (7, 7, 8), strict=True):
        searched(60, seed=seed, pool=pool)
    assert teams[0].scored == teams[1].scored != teams[2].scored


def test_settings_that_cannot_be_designed_cost_most():
    def pool(settings):
        return [[IMPOSSIBLE] if values["cueing.gain"] < 0.55 else worth(values) for values in settings]

    assert searched(pool=pool).best.values == pytest.approx(ANSWER, rel=0.05)
    nan = Outcome(math.nan, math.nan, math.nan, 0.0, 0.0)
    assert ANYTHING.cost([nan]) == ANYTHING.cost([IMPOSSIBLE]) > 1e5


def test_bounds_hold_on_every_drive():
    fine, bad = Outcome(50.0, 40.0, 0.9, 0.1, 0.1), Outcome(70.0, 60.0, 0.8, 0.5, 0.3)
    bounds = Bounds()
    assert set(bounds.excess([fine]).values()) == {0.0}
    assert bounds.excess([fine, bad]) == {"use": 0.0, "fast_tilt": 0.25, "opposite": pytest.approx(0.05)}
    assert bounds.cost([fine, bad]) == pytest.approx(-60.0 + 300.0 * 0.3)


def test_an_interrupted_search_goes_on_and_finds_the_same(tmp_path):
    content = {"parameters": {each.key: [] for each in PARAMETERS}, "seed": 1}
    whole = Workers()
    expected = searched(80, pool=whole).best
    file = tmp_path / "it.search"
    first = Search(Task(PARAMETERS, Workers(), ANYTHING, 1, (), FileState(file, content)))
    for done in first.run(80):
        if done > 30:
            break
    with file.open("a") as out:
        out.write("[[0.5, 0.")  # what was being written when the process was killed
    rest = Workers()
    again = searched(80, pool=rest, state=FileState(file, content, resume=True))
    assert again.best == expected
    assert rest.scored == whole.scored[first.evaluations :]
    nothing = Workers()
    assert searched(80, pool=nothing, state=FileState(file, content, resume=True)).best == expected
    assert nothing.scored == []
    assert len(file.read_text().splitlines()) == 81  # what is searched, and every setting once


@pytest.mark.parametrize(
    "line",
    ["null", "3", "[1, 2]", '"ab"', "[[0.5], [[1, 2]]]", "[[0.5], []]", "[[[1]], [[1, 2, 3, 4, 5]]]",
     "[[0.5], [[1, 2, 3, 4, null]]]", '[[0.5], [["a", "b", "c", "d", "e"]]]'],
)  # fmt: skip
def test_a_line_that_says_nothing_of_settings_is_passed_over(tmp_path, line):
    content = {"parameters": {"a": []}}
    file = tmp_path / "it"
    good = [[0.25], [list(IMPOSSIBLE)]]  # has infinities
    file.write_text("".join(f"{row}\n" for row in (json.dumps(content), line, json.dumps(good))))
    state = FileState(file, content, resume=True)
    assert state.outcomes_of({"a": 0.25}) == [IMPOSSIBLE]
    assert state.outcomes_of({"a": 0.5}) is None
    assert len(file.read_text().splitlines()) == 2


def test_a_finished_search_goes_on_with_more_settings(tmp_path):
    content = {"parameters": {each.key: [] for each in PARAMETERS}}
    expected = searched(90).best
    searched(47, state=FileState(tmp_path / "it", content))  # ends within a generation
    assert searched(90, state=FileState(tmp_path / "it", content, resume=True)).best == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is no search that can go on"),
        ("", "is no search that can go on"),
        ("what?\n", "is no search that can go on"),
        (json.dumps({"parameters": {"a": []}, "seed": 2}) + "\n", "found other seed in"),
        (json.dumps({"parameters": {"b": []}, "seed": 1}) + "\n", "found other parameters in"),
        ("[1]\n", "found other parameters in"),
    ],
)
def test_a_file_of_another_search_is_refused(tmp_path, text, said):
    file = tmp_path / "it"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        FileState(file, {"parameters": {"a": []}, "seed": 1}, resume=True)


class Inner(Table, frozen=True, kw_only=True):
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    left_out: Positive | None = None
    order: Literal[1, 2] = 1


class Settings(CueingTable, frozen=True, kw_only=True, tag="settings"):
    gain: Annotated[float, msgspec.Meta(ge=-10, le=10)] = -0.5
    nothing: Annotated[float, msgspec.Meta(ge=-10, le=10)] = 0.0
    cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=3)] = 0.2
    below: Annotated[float, msgspec.Meta(lt=2)] = 1.0
    limit: Positive | None = 3
    free: float = 4.0
    on: bool = True
    count: int = 3
    name: str = "a"
    inner: Inner = Inner()
    perhaps: Inner | None = None


def test_numbers_are_searched_within_what_their_settings_declare():
    found = {each.key.removeprefix("cueing."): each for each in parameters_of(Settings())}
    assert list(found) == ["gain", "nothing", "cutoff_hz", "below", "limit", "free", "inner.share"]
    assert found["gain"][2:] == (-10.0, 0.0, 0.5)  # a search does not turn a sign
    assert found["nothing"][2:] == (-10.0, 10.0, 2.0)
    assert found["cutoff_hz"][2:] == (0.2 / 2**DOUBLINGS, 3.0, 0.0)
    assert found["below"][2:] == (0.0, pytest.approx(2.0, abs=1e-3), 1.0)
    assert found["below"].high < 2.0
    assert found["limit"][1:] == (3.0, 3.0 / 2**DOUBLINGS, 3.0 * 2**DOUBLINGS, 0.0)
    assert found["free"][2:] == (0.0, math.inf, 4.0)
    assert found["inner.share"][2:] == (0.5 / 2**DOUBLINGS, 1.0, 0.0)


def test_values_are_those_that_a_profile_can_hold():
    gain, cutoff = Parameter("gain", -0.5, -10.0, 0.0, 0.5), Parameter("cutoff", 0.2, 0.003125, 3.0, 0.0)
    assert [gain.from_search(place) for place in (0.0, 1.0, 5.0, -100.0)] == [-0.5, 0.0, 0.0, -10.0]
    assert [cutoff.from_search(place) for place in (0.0, 1.0, -1.0, 9.0)] == [0.2, 0.4, 0.1, 3.0]
    assert cutoff.from_search(1.0 / 3.0) == 0.25198  # 0.2 * 2^(1/3) = 0.251984...
    assert gain.to_search(gain.from_search(-2.0)) == -2.0
    assert cutoff.to_search(0.8) == 2.0


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["gain"], ["gain"]),
        (["cueing.gain", "inner"], ["gain", "inner.share"]),
        (["*.share", "cut*"], ["inner.share", "cutoff_hz"]),
        (["*"], ["gain", "nothing", "cutoff_hz", "below", "limit", "free", "inner.share"]),
    ],
)
def test_parameters_are_named_by_key_table_or_pattern(names, expected):
    assert [each.key.removeprefix("cueing.") for each in parameters_of(Settings(), names)] == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gian", r"parameter: found 'gian', allowed are gain, nothing, .*did you mean 'gain'"),
        ("order", "parameter: found 'order', allowed are"),
        ("inner.left_out", "parameter: found 'inner.left_out', which has no value to begin from"),
        ("perhaps", "parameter: found 'perhaps', which has no value to begin from"),
    ],
)
def test_a_name_that_is_no_parameter_is_refused(name, said):
    with pytest.raises(ConfigError, match=said):
        parameters_of(Settings(), [name])


def test_an_algorithm_without_numbers_is_refused():
    with pytest.raises(ConfigError, match=r"cueing.algorithm: found 'direct', which has no numbers to search"):
        parameters_of(motioncue.load_profile("ccd-dk").cueing)


@pytest.mark.parametrize("name", [name for name, table in ALGORITHMS.items() if table.poses])
def test_every_algorithm_has_parameters_whose_ends_it_allows(name):
    kind = ALGORITHMS[name]
    preset = dict(kind.presets.get(kind.default_preset or "", {}))
    cueing = msgspec.convert({"algorithm": name, **preset}, kind)  # not designed: that may need a library
    parameters = parameters_of(cueing)
    assert parameters
    for each in parameters:
        assert each.low <= each.value <= each.high
        for end in (each.low, each.high):
            if math.isfinite(end):
                changed = with_values(cueing, {each.key: end})
                assert type(changed) is type(cueing)
        assert with_values(cueing, {each.key: each.value}) == cueing


def test_neighbors_differ_in_one_parameter():
    found = {**ANSWER, "cueing.gain": 0.01}
    settings = neighbors(PARAMETERS, found, 1.0)
    assert [values["cueing.frequency_hz"] for values in settings] == [0.125, 0.5, 0.25, 0.25, 0.25, 0.25]
    assert [values["cueing.gain"] for values in settings[2:4]] == [0.0, 0.51]  # not below 0


ORDER = {"cueing.least": 0.0, "cueing.start": 1.0, "cueing.most": 1.0}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"cueing.start": 1.3}, {"cueing.start": 1.0}),  # most is not searched: it stays
        ({"cueing.most": 0.5}, {"cueing.most": 1.0}),  # nor is start
        ({"cueing.start": 1.3, "cueing.most": 0.8}, {"cueing.start": 0.8, "cueing.most": 0.8}),
        (
            {"cueing.least": 0.9, "cueing.start": 0.4, "cueing.most": 0.7},
            dict.fromkeys(ORDER, 0.4) | {"cueing.most": 0.7},
        ),
        ({"cueing.least": 0.2, "cueing.gain": 5.0}, {"cueing.least": 0.2, "cueing.gain": 5.0}),
        ({"cueing.least": 3.0}, {"cueing.least": 1.0}),
    ],
)
def test_values_are_put_in_order(values, expected):
    assert in_order(values, [ORDER]) == expected
    assert in_order(values, []) == values


@pytest.mark.parametrize("name", [name for name, table in ALGORITHMS.items() if table.poses])
@pytest.mark.check
def test_nearly_all_settings_that_a_search_asks_for_are_possible(name):
    # Of ten settings beside the algorithm's own, drawn as the search draws them; most are possible by chance alone only
    # if no values depend on each other.
    kind = ALGORITHMS[name]
    cueing = motioncue.load_profile("ccd-dk-classical", f"cueing.algorithm={name}").cueing
    assert type(cueing) is kind
    possible = []

    def pool(settings):
        for values in settings:
            try:
                design(with_values(cueing, values), 333.33)
                possible.append(True)
            except ConfigError:
                possible.append(False)
        return [[IMPOSSIBLE] for _ in settings]

    search = Search(Task(parameters_of(cueing), pool, ANYTHING, 1, (), None, orders_of(cueing)))
    list(search.run(11))
    assert possible[0]
    assert sum(possible) >= 9


def test_sensitivities_are_those_of_the_equations_and_what_matters_most_comes_first():
    # About the answer of `worth`: 2^0.3 times a frequency or damping costs 10 * 0.3^2, 0.15 more gain 50 * 0.15^2.
    idle = Parameter("cueing.idle", 2.0, 0.0, 9.0, 2.0)
    walled = Parameter("cueing.wall", 1.0, 0.0, 9.0, 1.0)

    def pool(settings):
        return [[IMPOSSIBLE] if values["cueing.wall"] > 1.0 else worth(values) for values in settings]

    best = Found({**ANSWER, "cueing.idle": 2.0, "cueing.wall": 1.0}, worth(ANSWER), -80.0)
    bounds = Bounds(use=0.9 / 0.6, fast_tilt=1.0, opposite=1.0)  # kept up to a gain of 0.9
    rows = _sensitivities(pool, [idle, walled, *PARAMETERS], [], best, bounds)
    assert [row.key.removeprefix("cueing.") for row in rows] == ["gain", "frequency_hz", "damping", "idle", "wall"]
    gain, frequency, damping, nothing, wall = rows
    assert gain[1:6] == pytest.approx((0.8, 0.65, 0.95, -50.0 * 0.15**2, -50.0 * 0.15**2))
    assert gain[6:] == ((), ("use",))
    for row, value in ((frequency, 0.25), (damping, 0.7)):
        assert row[1:6] == pytest.approx((value, value * 2**-0.3, value * 2**0.3, -0.9, -0.9), rel=1e-3)
    assert nothing[1:] == (2.0, 1.4, 2.6, 0.0, 0.0, (), ())
    assert wall[1:6] == (1.0, 0.7, 1.3, 0.0, -math.inf)  # not first: that nothing larger is possible says nothing of it

    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from motioncue.tuning.tune import sensitivities_figure

    (side,) = sensitivities_figure(rows).axes
    smaller, larger = ([bar.get_width() for bar in bars] for bars in side.containers)
    assert smaller == [row.by_smaller for row in rows]
    assert larger == [*(row.by_larger for row in rows[:4]), 0.0]
    assert [label.get_text() for label in side.get_yticklabels()] == [
        "gain = 0.8", "frequency_hz = 0.25", "damping = 0.7", "idle = 2", "wall = 1",
    ]  # fmt: skip
    heights = [[bar.get_y() + bar.get_height() / 2 for bar in bars] for bars in side.containers]
    assert heights == [pytest.approx([place + shift for place in range(5)]) for shift in (-0.2, 0.2)]
    assert side.yaxis_inverted()  # the first row at the top
    assert [text.get_text().strip() for text in side.texts] == ["beyond use", "larger: not possible"]
    assert [text.get_text() for text in side.get_legend().get_texts()] == ["smaller", "larger"]
    pyplot.close("all")


ENDS = """
import signal, sys
from motioncue.tuning.search import delayed_interrupt
try:
    with delayed_interrupt():
        eval("signal.raise_signal(signal.SIGINT)")
        print("done")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_inside_the_search_waits_for_it_and_the_program_ends_as_usual(tmp_path):
    (tmp_path / "ends.py").write_text(ENDS)
    ended = subprocess.run([sys.executable, "-m", "ends"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout.split()) == (0, ["done", "interrupted"])
