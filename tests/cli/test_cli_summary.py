"""The verdict of a run: what is most wrong with it, and what to do next."""

import pytest

from motioncue.cli.terminal import engine_rows
from motioncue.view.model import grade, verdict

OUTPUT = {"endpoint": "udp://127.0.0.1:4444", "refused": 0, "unheard": 0, "error": "", "sent": 3333}
DROVE = [
    {"t": 0.1, "to": "ENGAGING", "reason": "input"},
    {"t": 1.1, "to": "RUNNING", "reason": "cue_reached"},
]
WELL = {
    "duration_s": 10.0,
    "frames_received": 600,
    "packets_sent": 3333,
    "rate_hz": 333.33,
    "outputs": [OUTPUT],
    "lateness_us": {"p50": 30.0, "p99": 60.0, "p999": 90.0, "max": 120.0},
    "skipped": 0,
    "rejected": {},
    "state": "OFFLINE",
    "transitions": DROVE,
    "events": {},
    "limited": {"surge": 0.001},
    "limits": "default",
}


def test_events_count_what_the_list_shows():
    moves = [
        *DROVE,
        {"t": 2.0, "to": "PARKING", "reason": "teleport"},
        *({"t": at, "to": "PARKING", "reason": "input_lost"} for at in (3.0, 5.0)),
        {"t": 6.0, "to": "PARKING", "reason": "operator_park"},
    ]
    rows = dict(engine_rows({**WELL, "transitions": moves, "events": {"teleport": 1}}))
    assert rows["events"] == "1 teleport, 2 input lost"
    assert dict(engine_rows(WELL))["events"] == "0"


def test_a_good_run_is_well():
    assert verdict(WELL) == ("good", "all is well: every frame was followed, and a packet left on time at every tick")
    assert next(name for name, _ in engine_rows(WELL)) == "verdict"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"frames_received": 0}, "nothing was driven"),
        ({"outputs": [{**OUTPUT, "refused": 3, "error": "not allowed"}]}, "did not get every packet"),
        ({"outputs": [{**OUTPUT, "unheard": 3}]}, "nobody heard"),
        ({"transitions": [*DROVE, {"t": 2.0, "to": "FAULT", "reason": "not_finite"}]}, "there was a fault"),
        ({"transitions": []}, "never driven"),
        ({"frames_received": 80, "transitions": [{"t": 1.0, "to": "PARKING", "reason": "input_lost"}] * 70}, "hold_s"),
        ({"frames_received": 80, "transitions": [{"t": 1.0, "to": "PARKING", "reason": "input_lost"}] * 9}, "never"),
        ({"skipped": 40}, "ticks were left out"),
        ({"events": {"teleport": 1}}, "the drive was not whole"),
        ({"rejected": {"size": 1}}, "the drive was not whole"),
        (
            {
                "transitions": [
                    *DROVE,
                    {"t": 3.0, "to": "PARKING", "reason": "input_lost"},
                    {"t": 4.0, "to": "ENGAGING", "reason": "input"},
                ]
            },
            "came back (1)",
        ),
        ({"transitions": [*DROVE, {"t": 3.0, "to": "PARKING", "reason": "input_lost"}]}, "all is well"),
        ({"skipped": 2}, "every frame was followed; 2 of 3335 ticks were left out"),
        (
            {"limited": {"surge": 0.001, "surge_displacement": 0.3}},
            "what was asked met its limits (surge displacement)",
        ),
        (
            {"algorithm": {"plans": 1000, "failed": 300, "stopped": 0, "most_steps": 60}},
            "30% of the plans were not found",
        ),
        ({"algorithm": {"plans": 1000, "failed": 50, "stopped": 0, "most_steps": 60}}, "all is well"),
        ({"algorithm": {"plans": 0, "failed": 0, "stopped": 0, "most_steps": 0}}, "all is well"),
    ],
)
def test_what_is_most_wrong_is_said(change, words):
    assert words in verdict({**WELL, **change}).words


# At 100 Hz a tenth of a period is 1000 us.
@pytest.mark.parametrize(
    ("late", "skipped", "level", "words"),
    [
        ({"p99": 900.0, "p999": 1000.0}, 0, "good", "all is well"),
        ({"p99": 900.0, "p999": 1100.0}, 0, "warn", "mostly on time: every frame was followed; one packet in "
         "1,000 left 1.1 ms late or more"),
        ({"p99": 900.0, "p999": 1000.0}, 3, "warn", "mostly on time: every frame was followed; 3 of 3336 ticks were"),
        ({"p99": 1100.0, "p999": 1200.0}, 0, "bad", "not on time: one packet in 100 left 1.1 ms late or more"),
    ],
)  # fmt: skip
def test_all_is_well_only_where_the_packets_left_on_time(late, skipped, level, words):
    stats = {**WELL, "lateness_us": {**WELL["lateness_us"], **late}, "skipped": skipped}
    found = verdict(stats, 100.0)
    assert found.level == level
    assert found.words.startswith(words)
    assert (found.level == "good") == (grade(stats, 100.0) == "on time")
    assert verdict({**stats, "rate_hz": 100.0}) == found


def test_what_was_sent_once_has_no_rate_and_is_not_said_to_be_late():
    assert verdict({**WELL, "packets_sent": 1, "rate_hz": 0.0}).level == "good"


def test_a_run_without_a_simulator_reports_no_fine_statistics():
    names = [name for name, _ in engine_rows({**WELL, "frames_received": 0})]
    assert "late by" not in names
    assert "skipped" not in names
