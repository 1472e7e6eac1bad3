"""What `tune` and `compare` say at the end: use the new one, or keep the old one."""

from types import SimpleNamespace

import pytest

from motioncue.cli.score import Row, _table, _verdict
from motioncue.cli.tune import _verdict as tuned_verdict
from motioncue.tuning.tune import Sensitivity


def tuned(
    before=50.0,
    after=55.0,
    held=(40.0, 45.0),
    excess=None,
    excess_before=None,
    drives=(),
    ended="evaluations",
    sensitivities=(),
):
    return SimpleNamespace(
        before=before,
        after=after,
        hold_out_before=held[0],
        hold_out_after=held[1],
        excess=excess or {"use": 0.0},
        excess_before=excess_before or {"use": 0.0},
        drives=[
            SimpleNamespace(drive=name, held_out=False, before=SimpleNamespace(score=a), after=SimpleNamespace(score=b))
            for name, a, b in drives
        ],
        evaluations=300,
        ended=ended,
        sensitivities=sensitivities,
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (tuned(), "better on what you drove, and on the held-out drive too: use the new one"),
        (
            tuned(held=(45.2, 44.0)),
            "worse on the held-out drive: keep the old one; go on with --resume --evaluations 900",
        ),
        (tuned(held=(45.2, 44.9)), "better on what you drove, no better on the held-out drive: keep the old one"),
        (tuned(after=50.0), "nothing better was found: keep the old one"),
        (tuned(excess={"fast_tilt": 0.1}), "a bound is not kept (fast tilt): do not use it as it is"),
        (tuned(held=(None, None)), "no drive was held out (--hold-out)"),
        (tuned(drives=[("sample", 58.5, 56.7)]), "worse on one or more of its drives (sample 58.5 -> 56.7)"),
        (tuned(after=48.0, excess_before={"fast_tilt": 0.1}), "which the old one exceeded (fast tilt)"),
    ],
)
def test_tune_ends_with_a_plain_verdict(found, words):
    assert words in tuned_verdict(found)


def test_one_change_that_is_better_alone_is_named_if_it_keeps_the_bounds():
    """The best of those that were tried: neither one beyond a bound, nor one that nobody could tell."""
    beside = [
        Sensitivity("cueing.gain", 1.0, 0.812, 1.23, -6.0, 2.7),
        Sensitivity("cueing.tilt.rate_limit_deg_s", 2.6, 2.11, 3.2, 9.0, 1.0, ("fast_tilt",)),
    ]
    found = tuned(after=50.0, sensitivities=beside)
    assert "keep the old one, or try cueing.gain=1.23, alone worth +2.7; go on" in tuned_verdict(found)
    beside = [Sensitivity("cueing.gain", 1.0, 0.812, 1.23, -6.0, 0.3)]
    assert "or try" not in tuned_verdict(tuned(after=50.0, sensitivities=beside))


def test_a_search_that_converged_is_not_to_go_on():
    assert "--resume" not in tuned_verdict(tuned(after=50.0, ended="converged"))


def row(name, *values):
    return Row(
        name,
        [
            SimpleNamespace(
                score=value, motions={"fits": SimpleNamespace(fast_tilt=0.25)}, asked={"surge": (0.5, 1.1, 0.2)}
            )
            for value in values
        ],
    )


def test_compare_names_the_best_and_by_how_much():
    rows = [row("new", 60.0, 50.0), row("old", 48.0, 46.0)]
    assert _verdict(rows) == "new is best, by 8 points."
    lines = _table(rows, ["tour", "turns"])
    assert lines[0].split() == ["score", "tour", "turns", "fast", "tilt", "asks", "for"]
    assert lines[1].split() == ["new", "55", "60", "50", "25", "%", "110", "%"]


def test_compare_does_not_call_a_winner_what_nobody_could_tell():
    assert _verdict([row("new", 50.4), row("old", 50.0)]).startswith("No clear winner: new and old")
