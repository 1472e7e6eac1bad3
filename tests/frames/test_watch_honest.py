"""No honest drive trips the watch: every source, at any rate, over lines that jitter, lose, stall and fall silent."""

import numpy as np
import pytest
import rough_drives
from watch_helpers import LINES, SYSTEMS, delivered, fed, new_intake, records_of, states_of

from motioncue.drive.car import SCRIPTS

pytestmark = pytest.mark.search

WITHOUT_TIME = ("beamng", "morai")
"""Systems whose packets carry no time, so a drive at another pace is another drive."""


def tripped(system, drive, rate_hz, line, seed, acceleration="native"):
    """Return the watch's counts for a drive over a line, and the refusals."""
    rows = records_of(system, states_of(drive, rate_hz), rate_hz)
    which, when = delivered(len(rows), rate_hz, np.random.default_rng([seed, int(rate_hz), len(line)]), **LINES[line])
    rows = rows[which]
    if system == "city-car-driving":  # in lock-step no frame is lost: a missing one was never taken
        rows["frame_time"] = np.diff(which, prepend=which[0] - 1) / rate_hz
    intake = new_intake(system, rate_hz, acceleration)
    fed(intake, rows, when)
    return intake.discontinuities, intake.rejected


def lines_of(system):
    return [line for line in LINES if system not in WITHOUT_TIME or "pace" not in LINES[line]]


CASES = [(system, line) for system in SYSTEMS for line in lines_of(system)]


@pytest.mark.grid
@pytest.mark.parametrize(("system", "line"), CASES)
@pytest.mark.parametrize("rate_hz", [30, 60, 100])
@pytest.mark.parametrize("drive", ["real", "rally", "hard", "tour"])
def test_an_honest_drive_of_any_source_never_trips(system, line, rate_hz, drive):
    assert tripped(system, drive, rate_hz, line, 0) == ({}, {})


@pytest.mark.grid
@pytest.mark.parametrize(("system", "line"), CASES)
def test_nor_does_one_whose_acceleration_is_derived(system, line):
    assert tripped(system, "turns", 60, line, 1, "from_velocity") == ({}, {})


@pytest.mark.parametrize("system", WITHOUT_TIME)
@pytest.mark.parametrize(
    ("rate_hz", "line", "seed"),
    [
        *((30, "stalls and loss", seed) for seed in (5, 43, 47, 102)),
        *((100, "stalls and loss", seed) for seed in (22, 145)),
        (20, "stalls and loss", 107),
        (20, "gaps", 120),
    ],
)
def test_a_silence_right_after_a_stall_is_no_jump_where_only_arrivals_tell_the_time(system, rate_hz, line, seed):
    """The frames held up by a stall end in a bunch, and the next frame is of a second later."""
    assert tripped(system, "hard", rate_hz, line, seed) == ({}, {})


ROUGH = [
    *(
        (drive, rate_hz, line)
        for drive in rough_drives.DRIVES
        for rate_hz in (25, 60)
        for line in ("jitter", "loss in bursts")
    ),
    ("landings", 50, "loss in bursts"),
    ("washboard", 30, "loss in bursts"),
    ("washboard", 50, "stalls and loss"),
    ("washboard", 100, "loss in bursts"),
]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("drive", "rate_hz", "line"), ROUGH)
def test_landings_a_washboard_and_a_spin_do_not_trip(system, drive, rate_hz, line):
    """Lost frames hide part of a landing, and few frames a second most of a corrugation."""
    for seed in range(2):
        assert tripped(system, drive, rate_hz, line, seed) == ({}, {}), seed


def test_nor_does_a_stage_whose_physics_is_slower_than_the_noisy_packets_of_it():
    assert tripped("morai", "rally", 144, "a perfect line", 0) == ({}, {})


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("drive", list(rough_drives.DRIVES))
def test_rough_drives_never_trip_over_many_lines(system, drive):
    for rate_hz in (25, 30, 50, 60, 100, 144):
        for line in lines_of(system):
            for seed in range(4):
                assert tripped(system, drive, rate_hz, line, seed) == ({}, {}), (rate_hz, line, seed)


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("drive", ["real", "rally", "hard", *SCRIPTS])
def test_an_honest_drive_never_trips_over_many_lines(system, drive):
    for rate_hz in (
        (20, 30, 60, 100) if drive == "rally" else (20, 30, 60, 100, 144)
    ):  # the stage has 60 states a second
        for line in lines_of(system):
            assert tripped(system, drive, rate_hz, line, 0) == ({}, {}), (rate_hz, line)
