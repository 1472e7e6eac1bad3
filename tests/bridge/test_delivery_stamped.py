"""Sources that say when their frames were taken: their rate may jump, their stamps may be coarse."""

import numpy as np
import pytest
from delivery_rig import GAMES, PERIOD, START, Drive, deliver, jittered, lost, worst
from hypothesis import given, settings
from hypothesis import strategies as st
from test_delivery import swinging

import motioncue
from motioncue.bridge.bridge import KINDS
from motioncue.core.channels import MOTION
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline

# Those that stamp frames with a clock.  Gran Turismo 7 counts frames at 60 Hz, so it has no other rate.
CLOCKS = ("vehicle-physics-pro", *sorted(set(GAMES) - {"gran-turismo-7"}))
# Hundredths of a second are the unit of Live for Speed's OutSim Delay: it sends no faster.
FASTEST_HZ = {"live-for-speed": 100.0}
DAY_S = 86_400.0
LENGTH_S = 8.0


def jumping(slow, fast, stretches, begins):
    """Return times of frames [s] that come at two rates [Hz] in turn, for `stretches` [s] each, the last for good."""
    times, time, ends = [], begins, np.cumsum([1.5, *stretches])
    while time < LENGTH_S:
        times.append(time)
        time += 1.0 / (fast, slow)[np.searchsorted(ends, time) % 2]
    return np.array(times)


def check(source, bridge, drive, taken, rng, slow, clock_s=None, most=1.0):
    """Assert that frames which come up to 0.2 ms late, some `slow` [Hz], make no step beyond the bound."""
    run = deliver(drive, source, bridge, taken, taken + 0.002 + rng.uniform(0.0, 2e-4, len(taken)), clock_s=clock_s)
    assert run.events == {}
    found = worst(run, source, bridge, 1.0 / slow)
    assert found.step <= most, found


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", CLOCKS)
@pytest.mark.parametrize("phase", range(4))
def test_a_rate_that_jumps_makes_no_jolt(source, bridge, phase):
    taken = jumping(20.0, 500.0, np.full(9, 0.7 + 0.1 * phase), 0.001 * phase)
    check(source, bridge, swinging(phase), taken, np.random.default_rng(phase), 20.0)


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", ["dirt-rally", "f1", "f1-2026", "x-plane"])
@pytest.mark.parametrize("rate", [20.0, 50.0, 60.0, 100.0, 144.0, 300.0])
@pytest.mark.parametrize("clock_s", [2.0**16, DAY_S, 2.0**17 + 5.0, 2.0**18 + 5.0, 2.0**19 + 5.0, 2.0**21])
def test_an_old_clock_of_4_bytes_makes_no_jolt(source, bridge, rate, clock_s):
    """After a day its stamps are multiples of 1/128 s, of 1/64 s from 2^17 s on, and of 1/4 s after 24 days."""
    taken = np.arange(0.0, LENGTH_S, 1.0 / rate)
    check(source, bridge, swinging(1.9), taken, np.random.default_rng(1), rate, clock_s)


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", ["dirt-rally", "f1", "f1-2026", "x-plane"])
@pytest.mark.parametrize("clock_s", [16_376.0, 2.0**15 + 5.0, DAY_S, 2.0**18 + 5.0, 2.0**21])
@pytest.mark.parametrize("phase", range(4))
def test_an_old_clock_and_a_rate_that_jumps_are_as_without_stamps(source, bridge, clock_s, phase):
    """The first of the clocks becomes too coarse on the way."""
    taken = jumping(20.0, 500.0, np.full(9, 0.7 + 0.1 * phase), 0.001 * phase)
    check(source, bridge, swinging(phase), taken, np.random.default_rng(phase), 20.0, clock_s, 2.0)


@pytest.mark.parametrize("source", ["program", "forza", "x-plane"])
@pytest.mark.parametrize(("rate", "most"), [(60.0, 1.1), (120.0, 1.3), (250.0, 4.0)])
def test_frames_that_come_unevenly_do_not_shake_the_car(source, rate, most):
    """The second derivative of a pitch of 0.05 sin(5 t) is 1.25 at most, and a root of 2 less in the mean [rad/s^2]."""
    drive = Drive([[(1.5, 5.0, 0.0)], [(1.0, 7.0, 0.0)], [(0.5, 9.0, 0.0)]], [[], [(0.05, 5.0, 0.0)], []])
    taken = np.arange(0.0, LENGTH_S, 1.0 / rate)
    run = deliver(drive, source, "predict", *jittered(taken, np.random.default_rng(3)))
    time = (run.trace["deadline"] - START) * 1e-9
    shown = run.trace["motion"]["pitch"][(time > 3.0) & (time < LENGTH_S)]
    shaken = np.diff(shown, 2) / (PERIOD * 1e-9) ** 2
    assert np.sqrt(np.mean(shaken**2)) <= most * 1.25 / np.sqrt(2.0)


def surge_between(bridge, told, taken, stamps, arrivals):
    """Return what is shown of a surge of 2 sin(3 t), taken and told at these times [s] by the channel `told`."""
    packet = np.dtype([(name, "<f8") for name in (told, *(channel.name for channel in MOTION[:11]))])
    fields = [{"offset": 8 * i, "type": "f8", "channel": name} for i, name in enumerate(packet.names)]
    source = {"system": "custom", "bridge": bridge, "packet": {"size": packet.itemsize, "fields": fields}}
    profile = motioncue.load_profile("program-dk", {"source": source, "cueing": {"algorithm": "direct"}}, "limits=none")
    pipeline = Pipeline(profile, FakeClock(START), trace=4000)
    pipeline.intake.begin(START)
    for time, stamp, came in zip(taken, stamps, arrivals, strict=True):
        pipeline.emitter.run(until_ns=START + round(1e9 * came))
        row = np.zeros((), packet)
        row[told], row["speed"], row["surge"] = stamp, 20.0, 2.0 * np.sin(3.0 * time)
        pipeline.intake.feed(row.tobytes(), START + round(1e9 * came))
    return pipeline.emitter.trace["motion"]["surge"]


def slopes(shown):
    """Return the slopes of what is shown; those of the drive are up to 6."""
    return np.abs(np.diff(shown)) / (PERIOD * 1e-9)


def test_a_sum_of_durations_does_not_count_lost_frames():
    """A frame after a lost one has moved twice as far as its duration says: taken at its word, it would be a dash."""
    taken, came = lost(np.arange(480) / 60, np.random.default_rng(5))
    shown = surge_between("predict", "frame_duration", taken, np.full(len(taken), 1 / 60), came)
    assert slopes(shown[600:2400]).max() < 2.0 * 6.0


@pytest.mark.parametrize("bridge", ["linear", "predict"])
@pytest.mark.parametrize("back", [0.01, 0.02, 0.03])
def test_a_clock_that_goes_back_a_little_makes_no_dash(bridge, back):
    """A frame is refused, and the stamp of the next shows less than has passed: a slope over that would be a dash."""
    taken = np.arange(480) / 60
    shown = surge_between(bridge, "time", taken, 10.0 + taken - back * (taken >= 5.0), taken)
    assert slopes(shown[600:2400]).max() < 1.6 * 6.0


def test_a_clock_that_stands_now_and_then_does_not_shake_the_car():
    """Where it stands, only the arrival tells when a frame was taken: places that go by an offset would jump.

    The second derivative of the surge is 18 at most, and a root of 2 less in the mean [m/s^4].
    """
    taken = np.arange(0.0, 7.0, 0.01)
    stamps = 10.0 + taken
    stamps[5::17] = stamps[4:-1:17]
    shaken = np.diff(surge_between("predict", "time", taken, stamps, taken)[700:2300], 2) / (PERIOD * 1e-9) ** 2
    assert np.sqrt(np.mean(shaken**2)) < 10.0 * 18.0 / np.sqrt(2.0)


def test_the_first_interval_of_a_slow_clock_makes_no_dash():
    """Nothing else is known of a clock at half the pace: a slope over its first interval would be twice the drive's."""
    taken = np.arange(0.0, 1.0, 0.05)
    shown = slopes(surge_between("predict", "time", taken, 10.0 + 0.5 * taken, taken))
    assert shown.max() < 1.6 * 6.0


jumps = {
    "slow": st.floats(20.0, 60.0),
    "fast": st.floats(60.0, 500.0),
    "stretches": st.lists(st.floats(0.2, 1.5), min_size=1, max_size=8),
    "begins": st.floats(0.0, 0.01),
    "phase": st.floats(0.0, 6.0),
    "seed": st.integers(0, 99),
}


@pytest.mark.search
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", ["dirt-rally", "f1", "f1-2026", "x-plane"])
@settings(max_examples=30, deadline=None)
@given(clock_s=st.floats(2.0**13, 2.0**21), **jumps)
def test_any_old_clock_and_any_jump_of_the_rate_are_as_without_stamps(
    source, bridge, clock_s, slow, fast, stretches, begins, phase, seed
):
    taken = jumping(slow, fast, stretches, begins)
    check(source, bridge, swinging(phase), taken, np.random.default_rng(seed), slow, clock_s, 2.0)


@pytest.mark.search
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", CLOCKS)
@settings(max_examples=30, deadline=None)
@given(**jumps)
def test_any_jump_of_the_rate_makes_no_jolt(source, bridge, slow, fast, stretches, begins, phase, seed):
    taken = jumping(slow, min(fast, FASTEST_HZ.get(source, fast)), stretches, begins)
    check(source, bridge, swinging(phase), taken, np.random.default_rng(seed), slow)
