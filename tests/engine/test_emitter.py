"""The emitting loop on a clock that takes no time: its grid, its fade, and the bytes it sends."""

import itertools
import math

import numpy as np
import pytest
from emitter_rig import CHANNELS, DIRECT, PERIOD, PRESENT, START, WASHOUT, Rig
from helpers import bits, engaged, frame
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from test_supervisor import Rig as LooseRig

import motioncue
from motioncue.core.clock import FakeClock


def smooth(x):
    """Return the quintic step: 0 to 1 with no slope and no curvature at the ends."""
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10 - 15 * x + 6 * x**2)


def run_with_stalls(stalls, wake_ns=0, ticks=None):
    rig = Rig(clock=FakeClock(START, wake_ns, stalls), trace=2000)
    rig.emitter.run(ticks=len(stalls) + 3 if ticks is None else ticks)
    return rig


# The grid.


def test_deadlines_are_whole_periods_from_the_start():
    trace = run_with_stalls([], ticks=40).trace
    assert trace["index"].tolist() == list(range(40))
    assert trace["deadline"].tolist() == [START + PERIOD * (index + 1) for index in range(40)]
    assert (trace["cue"]["time"] == trace["deadline"]).all()


@pytest.mark.parametrize("rate_hz", [10.0, 60.0, 100.0, 333.33, 400.0])
def test_the_period_is_the_rate_in_whole_nanoseconds(rate_hz):
    rig = Rig(motioncue.load_profile("ccd-dk", f"output.rate_hz={rate_hz}"))
    rig.emitter.run(ticks=5)
    assert np.diff(rig.trace["deadline"]).tolist() == [round(1e9 / rate_hz)] * 4


def test_a_grid_goes_on_over_many_runs_whatever_passes_between():
    rig = Rig()
    rig.emitter.run(ticks=3)
    rig.emitter.run(ticks=2)
    rig.emitter.run(until_ns=START + 9 * PERIOD)  # not including it
    rig.emitter.run(until_ns=START + 9 * PERIOD)
    assert rig.trace["index"].tolist() == list(range(8))


@pytest.mark.parametrize("wake_ns", [0, 3_000, 15_000])
def test_packets_that_are_made_early_leave_at_the_deadline_and_never_before(wake_ns):
    rig = Rig(clock=FakeClock(START, wake_ns, lead_ns=10_000), trace=100)
    rig.emitter.run(ticks=100)
    assert rig.trace["deadline"].tolist() == [START + PERIOD * (index + 1) for index in range(100)]
    # Waking before the deadline, the loop waits once more, and is late once; waking after it, it sends at once.
    assert (rig.trace["lateness"] == (wake_ns if wake_ns < 10_000 else wake_ns - 10_000)).all()
    assert rig.emitter.counts()["skipped"] == 0


def test_waking_late_does_not_move_the_grid():
    late = 70_001
    rig = run_with_stalls([], wake_ns=late, ticks=200)
    assert rig.trace["index"].tolist() == list(range(200))
    assert (rig.trace["lateness"] == late).all()
    assert (np.diff(rig.trace["deadline"]) == PERIOD).all()
    assert rig.emitter.counts()["skipped"] == 0


@pytest.mark.parametrize("late", [0, 100, 127])
def test_lateness_is_reported_as_it_was(late):
    rig = run_with_stalls([], wake_ns=late, ticks=200)
    assert rig.emitter.lateness_us() == dict.fromkeys(("p50", "p99", "p999", "max"), late / 1000.0)


def test_lateness_tells_the_rare_from_the_common():
    rig = run_with_stalls([100] * 990 + [1_000_000] * 9 + [2_000_000], ticks=1000)
    lateness = rig.emitter.lateness_us()
    assert lateness["p50"] == 0.1
    assert lateness["p99"] == 0.1
    assert lateness["p999"] == pytest.approx(1000.0, rel=1 / 64)
    assert lateness["max"] == 2000.0


CASES = {
    "less than a period": (PERIOD - 1, [0, 1, 2]),
    "one period exactly": (PERIOD, [0, 2, 3]),
    "a little more than one": (PERIOD + 1, [0, 2, 3]),
    "two and a half": (PERIOD * 5 // 2, [0, 3, 4]),
    "seven exactly": (PERIOD * 7, [0, 8, 9]),
}


@pytest.mark.parametrize("name", CASES)
def test_ticks_missed_in_a_stall_are_skipped_and_counted(name):
    stall, indices = CASES[name]
    rig = run_with_stalls([stall], ticks=3)
    assert rig.trace["index"].tolist() == indices
    assert rig.trace["lateness"].tolist() == [stall, 0, 0]
    assert rig.emitter.counts()["skipped"] == indices[-1] - 2
    assert rig.emitter.counts()["ticks"] == 3


@given(
    stalls=st.lists(
        st.one_of(st.just(0), st.integers(0, 8 * PERIOD), st.integers(0, 5).map(lambda n: n * PERIOD)), max_size=60
    ),
    wake_ns=st.integers(0, PERIOD - 1),
)
def test_a_stall_is_never_followed_by_two_packets_for_one_period(stalls, wake_ns):
    rig = run_with_stalls(stalls, wake_ns)
    trace, counts = rig.trace, rig.emitter.counts()
    assert (trace["deadline"] == START + PERIOD * (trace["index"] + 1)).all()
    sent = trace["deadline"] + trace["lateness"]
    assert (trace["lateness"] >= 0).all()
    assert (np.diff((sent - START) // PERIOD) >= 1).all()
    # Every point of the grid was sent or skipped; the last ticks had no stall.
    assert counts["ticks"] == len(trace)
    assert counts["ticks"] + counts["skipped"] == trace["index"][-1] + 1
    # No tick was skipped that could have been sent: the next one is the first that was not due yet.
    due = (sent[:-1] - START) // PERIOD
    assert (trace["index"][1:] == np.maximum(due, trace["index"][:-1] + 1)).all()


def test_the_rate_is_that_of_the_packets():
    rig = run_with_stalls([], ticks=1001)
    assert rig.emitter.counts()["rate_hz"] == pytest.approx(1e9 / PERIOD, rel=1e-12)


def test_the_trace_keeps_the_first_ticks_and_the_newest_is_always_there():
    rig = Rig(trace=10)
    assert rig.emitter.newest()["deadline"][0] == 0
    rig.emitter.run(ticks=25)
    assert rig.trace["index"].tolist() == list(range(10))
    assert rig.emitter.newest()["index"][0] == 24
    assert rig.emitter.counts()["ticks"] == 25


# The motion read by a tick.


def test_a_tick_reads_the_newest_motion_that_came_before_its_deadline():
    rig = Rig(motioncue.load_profile("ccd-dk", "source.bridge=hold"), trace=1000)
    session, emitter = rig.pipeline.intake, rig.emitter
    for number in range(1, 40):
        now = START + number * 1_000_000
        emitter.run(until_ns=now)
        session.feed(frame(velocity=(0, 0, number / 100)), now)  # a frame that continues the drive
    emitter.run(until_ns=START + 40_000_000)
    trace = rig.trace
    assert (np.round(100 * trace["motion"]["speed"]) == (trace["deadline"] - START) // 1_000_000).all()
    assert (trace["motion"]["time"] <= trace["deadline"]).all()


def test_before_any_motion_the_platform_is_at_neutral():
    rig = Rig().silence_for(0.2)
    assert len(rig.trace) == 66
    assert (rig.trace["weight"] == 0).all()
    assert not any(rig.trace["cue"][name].any() for name in PRESENT)


def test_direct_passes_the_body_frame_through():
    rig = Rig().frames_for(1.5)
    last = rig.trace[-1]
    assert last["weight"] == 1.0
    assert (last["cue"]["surge"], last["cue"]["sway"], last["cue"]["heave"]) == (2.0, 0.5, 0.25)
    for name in motioncue.CUE_DTYPE.names[:10]:
        assert last["cue"][name] == last["motion"][name], name


# Hold and fade.


@pytest.mark.parametrize(("hold_s", "fade_s"), [(0.1, 1.0), (0.02, 0.5), (0.5, 2.0), (0.1, 0.2)])
@pytest.mark.parametrize("name", ["ccd-dk", "ccd-dk-classical"])
def test_a_motion_is_held_then_fades_to_exactly_neutral_and_packets_keep_flowing(name, hold_s, fade_s):
    rig = Rig(motioncue.load_profile(name, "limits=none", f"supervisor.hold_s={hold_s}", f"supervisor.fade_s={fade_s}"))
    rig.frames_for(fade_s + 0.5)
    last_frame = rig.last_frame
    rig.silence_for(hold_s + fade_s + 0.5)
    trace = rig.trace
    pace = PERIOD * 1e-9 / fade_s
    first = np.flatnonzero(trace["motion"]["time"])[0]
    steps_in = np.arange(1, len(trace) - first + 1)
    held = trace["deadline"] - last_frame <= round(hold_s * 1e9)
    steps_out = np.cumsum(~held)
    expected = np.where(held[first:], smooth(steps_in * pace), smooth(1 - steps_out[first:] * pace))
    np.testing.assert_allclose(trace["weight"][first:], expected, rtol=0, atol=1e-11)
    # Each phase ends exactly: neutral, full weight, fading, neutral.
    assert (trace["weight"] == 1.0).any()
    assert trace["weight"][-1] == 0.0
    gone = trace["weight"] == 0
    assert gone[-100:].all()
    for channel in PRESENT:
        assert not trace["cue"][channel][gone].any(), channel
    # At full rate throughout.
    assert (np.diff(trace["index"]) == 1).all()
    assert rig.emitter.counts()["skipped"] == 0


def test_held_means_unchanged():
    rig = Rig().frames_for(2)
    whole = rig.trace[-1]["cue"].copy()
    rig.silence_for(0.08)
    for cue in rig.trace["cue"][-20:]:
        for name in PRESENT:
            assert cue[name] == whole[name]


def test_the_fading_cue_is_the_held_cue_times_the_weight():
    rig = Rig().frames_for(2).silence_for(1.5)
    trace = rig.trace
    for name in ("surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate", "speed"):
        expected = trace["motion"][name] * trace["weight"]
        assert (trace["cue"][name] == expected)[trace["weight"] > 0].all(), name


@pytest.mark.parametrize("settings", [DIRECT, WASHOUT])
def test_a_return_fades_in_the_same_way_as_it_went(settings):
    rig = Rig(settings).frames_for(2).silence_for(2)
    gone = len(rig.trace)
    rig.frames_for(2)
    weight = rig.trace["weight"]
    pace = PERIOD * 1e-9
    first = gone + np.flatnonzero(weight[gone:])[0]
    assert weight[first - 1] == 0.0
    ticks = np.arange(1, 400)
    np.testing.assert_allclose(weight[first : first + 399], smooth(ticks * pace), rtol=0, atol=1e-11)


def assert_blended(trace, cues):
    """Assert that the offline cue times the weight was sent, and at weight 1, bit for bit the cue."""
    whole = trace["weight"] == 1.0
    for name in CHANNELS:
        assert_same_bits(trace["cue"][name][whole], cues[name][whole], name)
        np.testing.assert_array_equal(trace["cue"][name], cues[name] * trace["weight"], err_msg=name)


@pytest.mark.parametrize(
    "settings", [DIRECT, WASHOUT, motioncue.load_profile("ccd-dk-classical", "source.head_m=[0.3, 0.4, 1.1]")]
)
def test_the_washout_starts_from_rest_when_it_engages_after_a_complete_fade(settings):
    rig = Rig(settings).frames_for(1.5).silence_for(1.5).frames_for(1.5)
    trace = rig.trace
    stretches = engaged(trace)
    assert len(stretches) == 2
    for start, end in stretches:
        assert (trace["weight"][start:end] == 1.0).any()
        assert_blended(trace[start:end], motioncue.cue(settings, trace["motion"][start:end]))


def test_a_car_on_its_roof_fades_in_by_its_lean():
    """A bounded roll is sent as the lean of its sine: half of a lean of 0.2 rad is 0.1 rad, not half of pi - 0.2."""
    half = 0.5 * (math.pi - 0.2)
    about_forward = (0.0, 0.0, math.sin(half), math.cos(half))
    trace = Rig(motioncue.load_profile("ccd-dk"), orientation=about_forward).frames_for(2.0).trace
    faded = (trace["weight"] > 0.0) & (trace["weight"] < 1.0)
    assert faded.sum() > 300
    assert np.abs(trace["motion"]["roll"][faded]).min() > 2.9
    np.testing.assert_allclose(np.abs(trace["cue"]["roll"]), 0.2 * trace["weight"], atol=1e-6)


@pytest.mark.parametrize("gap", [0.12, 0.3, 0.6, 0.9, 1.0])
def test_an_interruption_that_does_not_reach_neutral_keeps_the_state_of_the_washout(gap):
    rig = Rig(WASHOUT).frames_for(1.5).silence_for(gap).frames_for(2.0)
    trace = rig.trace
    first = np.flatnonzero(trace["weight"])[0]
    assert (trace["weight"][first:] > 0).all()
    assert trace["weight"][-1] == 1.0
    assert trace["weight"][first + 400 :].min() < 1.0
    assert_blended(trace[first:], motioncue.cue(WASHOUT, trace["motion"][first:]))


@settings(max_examples=150)
@given(
    gaps=st.lists(st.tuples(st.floats(0.03, 1.2), st.floats(0.05, 1.5)), max_size=6),
    fade_s=st.sampled_from([0.3, 1.0, 2.5]),
)
@pytest.mark.check
def test_no_interruption_makes_the_weight_jump_or_bend_sharply(gaps, fade_s):
    """The weight's slope stays within that of an undisturbed fade, and its bend within half as much again."""
    settings = motioncue.load_profile("ccd-dk-classical", f"supervisor.fade_s={fade_s}")
    rig = Rig(settings).frames_for(0.5)
    for silence, frames in gaps:
        rig.silence_for(silence).frames_for(frames)
    weight = rig.trace["weight"]
    assert ((weight >= 0) & (weight <= 1)).all()
    pace = PERIOD * 1e-9 / fade_s
    # dw/dx = 30 x^2 (1 - x)^2 is 15/8 at most.
    assert np.abs(np.diff(weight)).max() <= 1.875 * pace * (1 + 1e-9)
    # d2w/dx2 is 10/sqrt(3) at most.
    assert np.abs(np.diff(weight, 2)).max() <= 1.5 * 10 / math.sqrt(3) * pace**2
    # Frames have come for a while: whatever happened before, it ends at the whole cue.
    rig.frames_for(fade_s * 1.5 + 0.1)
    assert rig.trace["weight"][-1] == 1.0


def test_park_fades_to_neutral_in_spite_of_frames_and_back():
    rig = Rig().frames_for(2)
    rig.emitter.park()
    rig.frames_for(1.5)
    assert rig.trace["weight"][-1] == 0.0
    assert bits(rig.trace["cue"]["surge"][-100:]) == bytes(800)
    rig.emitter.engage()
    rig.frames_for(1.5)
    assert rig.trace["weight"][-1] == 1.0
    assert (np.diff(rig.trace["index"]) == 1).all()


@pytest.mark.parametrize("moving", [True, False])
def test_stop_fades_to_neutral_and_then_ends(moving):
    rig = Rig(motioncue.load_profile("ccd-dk"))
    if moving:
        rig.frames_for(2)
    rig.emitter.stop()
    rig.emitter.run()
    trace = rig.trace
    # Two more at neutral: the limits come to rest, and the supervisor goes offline.
    ticks = round(1e9 / PERIOD) + 3 if moving else 1
    assert len(trace) == ticks + (np.flatnonzero(trace["weight"] == 1)[-1] + 1 if moving else 0)
    last = trace[-1]
    assert last["weight"] == 0.0
    assert not any(last["cue"][name] for name in PRESENT)
    if moving:
        assert (trace["weight"][-ticks:-3] > 0).all()
        assert np.abs(np.diff(trace["cue"]["surge"])).max() <= 2.0 * 1.875 * PERIOD * 1e-9 * (1 + 1e-9)


def test_stop_during_a_fade_goes_on_with_it():
    rig = Rig(motioncue.load_profile("ccd-dk")).frames_for(2).silence_for(0.5)
    rig.emitter.stop()
    rig.emitter.run()
    weight = rig.trace["weight"]
    start = np.flatnonzero(weight == 1.0)[-1]
    steps = np.arange(len(weight) - start)
    np.testing.assert_allclose(weight[start:], smooth(1 - steps * PERIOD * 1e-9), rtol=0, atol=1e-11)
    assert not weight[-3:].any()
    assert weight[-4] > 0.0
    assert rig.emitter.state == "OFFLINE"


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("signs", list(itertools.product((-1.2e308, 1.2e308), repeat=2)))
def test_channels_too_large_to_be_added_are_a_fault_whatever_their_signs(pair, signs):
    rig = LooseRig("limits=none", profile="ccd-dk").drive(2.0)
    acceleration = np.zeros(3)
    acceleration[list(pair)] = signs
    rig.feed(acceleration=tuple(acceleration)).run(0.1)
    assert rig.emitter.state == "FAULT"
    cue = rig.emitter.trace["cue"]
    assert all(np.isfinite(cue[name]).all() for name in ("surge", "sway", "heave"))
