"""Where frames are placed in time: the interval follows the rate of the source, not lost frames or bursts."""

import numpy as np
import pytest

from motioncue.frames.convert import BodyStage, TelemetryStages
from motioncue.frames.intake import Intake
from motioncue.wire.packet import Field, Message, Packet, Take, vector

START = 1_000_000_000
DT = 1 / 60


def intervals(probe, times, stamped):
    """Return the interval after each frame [s]: frames come at `times` [s], 1 ms late in turn if they are stamped."""
    times = np.asarray(times)
    late = np.where(np.arange(len(times)) % 3 == 1, 1e-3, 0.0) if stamped else 0.0
    arrivals = START + np.round((times + late) * 1e9).astype(np.int64)
    rows = probe.placed(arrivals, 5.0 + times if stamped else np.full(len(times), np.nan))
    return np.array([interval for interval, _, _ in rows])


def at_rates(*stretches):
    """Return times of frames, from stretches of (rate, frames)."""
    return np.cumsum(np.concatenate([np.full(n, 1.0 / rate) for rate, n in stretches]))


@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "unstamped"])
@pytest.mark.parametrize("rate", [15.0, 30.0, 36.0, 50.0, 72.0, 144.0, 240.0])
def test_the_interval_is_that_of_another_rate_after_it_has_changed(probe, stamped, rate):
    # A lower rate is believed after eight frames; a higher one, which bunches look like, over some hundred.
    found = intervals(probe, at_rates((60.0, 120), (rate, 120 if rate < 60.0 else 1000)), stamped)
    assert found[60:120] == pytest.approx(1 / 60, rel=0.07)
    assert found[-20:] == pytest.approx(1 / rate, rel=0.15 if stamped else 0.01)


@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "unstamped"])
def test_frames_lost_or_bunched_now_and_then_do_not_change_the_interval(probe, stamped):
    times = at_rates((60.0, 600))
    lost = np.delete(times, np.arange(100, 600, 9))
    assert intervals(probe, lost, stamped)[60:] == pytest.approx(1 / 60, rel=0.07)
    slow = at_rates((60.0, 120), (15.0, 7), (60.0, 60))  # seven of them are no rate yet
    assert intervals(probe, slow, stamped)[60:] == pytest.approx(1 / 60, rel=0.07)


def test_stamped_frames_were_taken_when_they_say_however_late_they_come(probe, rng):
    times = at_rates((60.0, 300))
    late = np.where(rng.random(300) < 0.5, 0.0, rng.uniform(0.0, 5e-3, 300))
    late[:2] = 0.0
    arrivals = START + np.round((times + late) * 1e9).astype(np.int64)
    taken = np.array([taken for _, taken, _ in probe.placed(arrivals, 5.0 + times)])
    # Four late frames in a row are taken for a slower link, until the next that is early.
    error = (taken - START) * 1e-9 - times
    assert np.median(np.abs(error)) < 1e-6
    assert np.abs(error).max() <= late.max() + 1e-6
    assert np.mean(np.abs(error) < 1e-6) > 0.8


@pytest.mark.parametrize("size", [2, 5, 8, 16])
@pytest.mark.parametrize("apart_s", [0.0, 0.0005, 0.002])
@pytest.mark.parametrize("even", [0, 60])
def test_without_a_time_the_interval_is_that_of_the_source_however_long_bunches_are(probe, size, apart_s, even):
    place = np.arange(600)
    last = np.where(place < even, place, place // size * size + size - 1)
    times = last / 60.0 + np.where(place < even, 0.0, place % size * apart_s)
    found = intervals(probe, times, stamped=False)
    assert found[even + 3 * size : even + 5 * size] == pytest.approx(1 / 60, rel=0.26)  # at least three quarters
    assert found[-100:] == pytest.approx(1 / 60, rel=0.15)


@pytest.mark.parametrize(("hours", "tells"), [(0.0, True), (2.5, True), (4.4, True), (4.6, False), (11.0, False)])
def test_a_clock_of_4_bytes_tells_the_time_between_frames_for_four_hours_and_a_half(probe, hours, tells):
    """Twice 2^-24 of 16,000 s are 1.9 ms, which is the least that makes an arrival the better clock."""
    stamps = (3600.0 * hours + np.arange(200) / 60.0).astype(np.float32).astype(np.float64)
    found = np.array(probe.stamped(stamps, 1 / 60, 0.0, 2.0**-23))
    if tells:
        assert found[100:].mean() == pytest.approx(1 / 60, rel=0.01)
    else:
        assert np.isnan(found).all()


@pytest.mark.parametrize(("before", "after"), [(60.0, 39.6), (60.0, 91.3), (30.0, 101.7), (30.0, 60.0)])
def test_where_the_rate_changes_a_stamp_in_milliseconds_tells_the_time_between_frames_to_a_tenth_of_one(
    probe, before, after
):
    """The difference of two such stamps is wrong by 0.41 ms: the root of a sixth.  Frames arrive as they are taken."""
    errors = []
    for begun in np.arange(40) * 0.00123 / 40:  # in every phase of the clock
        times = begun + np.cumsum(np.repeat([1.0 / before, 1.0 / after], [60, 40]))
        stamps = np.floor(times / 0.001) * 0.001
        errors.append((np.array(probe.stamped(stamps, 1.0 / after, 0.001, 0.0)) - np.diff(times))[59:])
    errors = np.array(errors)
    assert np.sqrt(np.mean(errors**2)) < 1e-4
    assert np.sqrt(np.mean(errors[:, 0] ** 2)) < 1e-4  # and already of the first
    assert np.abs(errors).max() < 5e-4  # nor is any wrong by more than half of one


@pytest.mark.parametrize("rate", [700.0, 1500.0, 3000.0])
def test_several_frames_within_one_millisecond_are_as_far_apart_as_they_are_on_average(probe, rate):
    times = np.arange(400) / rate
    stamps = np.floor((times + 1e-9) / 0.001) * 0.001
    found = np.array(probe.stamped(stamps, 1.0 / rate, 0.001, 0.0))[100:]
    assert found == pytest.approx(1.0 / rate, rel=0.1)


@pytest.mark.parametrize("unit", [0.001, 0.0019])
def test_stamps_that_repeat_or_not_never_take_time_back(probe, unit, rng):
    for most in range(1, 20):
        ticks = np.cumsum(rng.integers(0, most, 200) * (rng.random(200) < 0.5))
        for gap in (0.0, 1e-4, 0.016):
            assert min(probe.stamped(ticks * unit, gap, unit, 0.0)) >= 0.0


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.4, 0.5, 0.7])
def test_a_frame_after_lost_ones_is_never_taken_for_the_next_and_up_to_a_fifth_lost_the_others_are(probe, share, rng):
    times = np.arange(2000) / 60.0
    taken = times[rng.random(2000) >= share]
    follows, many = np.array(probe.judged_lost(taken)[120:], bool).T
    next_one = np.diff(taken)[120:] < 1.5 / 60.0
    assert not (follows & ~many & ~next_one).any()
    if share <= 0.2:
        assert np.mean((follows & ~many)[next_one]) > 0.9


def test_a_rate_that_halves_is_no_loss_of_every_other_frame_for_longer_than_some_seconds(probe):
    taken = at_rates((120.0, 600), (60.0, 600))
    many = np.array(probe.judged_lost(taken), bool)[:, 1]
    assert not many[600 + 60 * 5 :].any()


def test_another_drive_begins_with_a_join_and_knows_nothing_of_the_rate_before(probe):
    times = np.concatenate([np.arange(100) / 60.0, 2.0 + np.arange(10) / 30.0])
    arrivals = START + np.round(times * 1e9).astype(np.int64)
    rows = probe.placed(arrivals, np.full(110, np.nan), 100)
    # The interval is not known with the first frame, and is that of the second.
    assert rows[100][0] == 0.0
    assert rows[101][0] == pytest.approx(1 / 30)
    # Who counts the joins sees one more, not that they begin anew.
    assert rows[100][2] == rows[99][2] + 1


def test_whole_numbers_of_a_unit_that_no_clock_has_are_counts_of_frames(probe):
    assert probe.stamped(np.array([0.0, 0.02, 0.04, 0.1]), 0.02, 0.02, 0.0) == pytest.approx([0.02, 0.02, 0.06])


def test_the_drives_time_goes_on_where_its_clock_becomes_too_coarse():
    """A game at one and a half times the pace: from 15,938 s on, only arrivals tell how long it has driven."""
    fields = [Field("time", 0, "<f4"), Field("orientation", 4, "4<f8"), Field("velocity", 36, "3<f8")]
    takes = [Take("stamp", 0, "time"), *vector("orientation", "orientation", range(4)), *vector("velocity", "velocity")]
    packet = Packet("coarse", 60, fields)
    stages = TelemetryStages(acceleration="from_velocity", rates="derived")
    axes = {"world_north": (1, 0, 0), "world_up": (0, 0, -1), "car_forward": (1, 0, 0), "car_up": (0, 0, -1)}
    intake = Intake([Message(packet, "motion", takes).compiled()], BodyStage(**axes), stages)
    intake.begin(START)
    told, came = np.arange(900) / 60.0, np.arange(900) / 90.0
    found = []
    for at, arrival in zip(told, came, strict=True):
        state = {"time": 15_930.0 + at, "orientation": (1.0, 0.0, 0.0, 0.0), "velocity": (20.0 + 0.1 * at, 0.0, 0.0)}
        intake.feed(packet.encode(state), START + round(1e9 * arrival))
        found.append(intake.newest()["frame_time"][0])
    steps = np.diff(found)
    coarse = np.float32(15_930.0 + told) * 2.0**-23 > 0.0019
    assert 500 <= np.flatnonzero(coarse)[0] < 510
    assert steps.min() >= 0.0
    assert found[-1] == pytest.approx(told[~coarse][-1] + came[-1] - came[~coarse][-1], abs=0.05)


def timed(probe, gaps):
    """Return the time of each slope [s], whether the interval is known, and the joins so far, by arrivals alone."""
    arrivals = START + np.round(np.cumsum(gaps) * 1e9).astype(np.int64)
    elapsed, known, joins = np.array(probe.timed(arrivals, np.full(len(gaps), np.nan))).T
    return np.diff(elapsed) * 1e-9, known, joins


def test_a_stall_that_was_made_up_for_is_over_on_an_uneven_link_too(probe):
    """All that were missing have come in a bunch; what comes a little early behind it has not been waiting."""
    even, bunch = np.full(120, DT), [7 * DT, *np.full(6, 5e-4)]
    uneven = np.tile([0.85 * DT, 1.15 * DT], 60)
    elapsed, _, joins = timed(probe, [*even, *bunch, *uneven])
    assert joins[-1] == joins[140]
    assert elapsed[140:] == pytest.approx(uneven[14:], rel=1e-6)


def test_frames_that_make_up_for_a_stall_between_others_have_each_been_waiting(probe):
    """Each fourth one comes after 0.7 intervals: the drive has gone on by a whole one, and its slope is over that."""
    even, stall = np.full(120, DT), [7 * DT]
    elapsed, _, _ = timed(probe, [*even, *stall, *np.tile([DT, DT, DT, 0.7 * DT], 19)])
    assert elapsed[122:].min() > 0.9 * DT


def test_before_the_pace_is_told_frames_have_to_come_evenly_for_longer_than_a_bunch_behind_each_gap(probe):
    """A bunch lasts less than 0.05 s: until then, frames that come evenly may be one, and make no slope too steep."""
    gaps = np.array([*np.full(20, 0.004), 0.03, *np.full(30, 0.004)])
    _, known, _ = timed(probe, gaps)
    came = np.cumsum(gaps)
    assert not known[came - came[0] < 0.0499].any()
    assert known[19]
    behind = came - came[20]
    assert not known[(behind >= 0.0) & (behind < 0.0499)].any()
    assert known[behind > 0.0501].all()


def test_a_clock_that_stands_for_most_of_a_frame_makes_no_slope_steep(probe):
    """It counts lost frames, but shows less than has passed here: a slope over that would be too steep."""
    late = np.where(np.arange(200) % 2 == 1, 1e-3, 0.0)  # else it would be no time of its own
    arrivals = START + np.round((np.arange(200) * DT + late) * 1e9).astype(np.int64)
    passed = np.full(200, DT)
    passed[100] = 0.2 * DT
    elapsed = np.diff([row[0] for row in probe.timed(arrivals, 5.0 + np.cumsum(passed))]) * 1e-9
    assert elapsed[50:] == pytest.approx(DT, abs=1.1e-3)


@pytest.mark.parametrize("share", [0.2, 0.45, 0.55, 0.8])
def test_a_frame_that_comes_half_an_interval_late_is_after_lost_ones_if_its_simulator_does_not_count_them(probe, share):
    """One that is less late has been on its way for longer: its slope is over the time that it says."""
    late = np.where(np.arange(200) % 2 == 1, share * DT, 0.0)
    arrivals = START + np.round((np.arange(200) * DT + late) * 1e9).astype(np.int64)
    elapsed = np.diff([row[0] for row in probe.timed(arrivals, 5.0 + np.arange(200) * DT, False)]) * 1e-9
    assert elapsed[100::2] == pytest.approx(DT if share < 0.5 else (1.0 + share) * DT, rel=1e-3)
    assert elapsed[101::2] == pytest.approx(DT, rel=1e-3)


@pytest.mark.parametrize("share", [1 / 64, 1 / 32, 1 / 16, 1 / 5])
def test_the_time_of_a_simulator_that_runs_faster_places_no_frame_far_from_where_it_came(probe, share):
    """Its offset moves all the time, and the place lags by what that is in half a second: by half an interval at most.

    That becomes less with the pace, and nothing at a sixteenth.
    """
    arrivals = START + np.round(np.arange(600) * DT / (1.0 + share) * 1e9).astype(np.int64)
    placed = np.array([taken for _, taken, _ in probe.placed(arrivals, 5.0 + np.arange(600) * DT)])
    most = 0.5 * DT * max(0.0, 1.0 - 16.0 * share)
    assert most < 0.5 * share
    assert (placed - arrivals)[300:] * 1e-9 == pytest.approx(most, abs=1e-5)
