"""Between frames: exact where an equation gives the value, bounded and smooth for any arrivals."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from scipy.spatial.transform import Rotation

from motioncue.bridge.bridge import KINDS, Bridge
from motioncue.core.channels import MOTION_DTYPE
from motioncue.errors import ConfigError

PERIOD = 3_000_030
START = 1_000_000_000
VALUES = [name for name in MOTION_DTYPE.names if name not in ("roll", "pitch", "yaw", "time", "frame_time")]
ANGLES = ["roll", "pitch", "yaw"]


def frames_of(interval_s, count, late_ns=0, **channels):
    """Return even frames; a channel is given as a function of time since the first [s]."""
    time = interval_s * np.arange(count)
    frames = np.zeros(count, MOTION_DTYPE)
    frames["frame_time"] = time
    frames["time"] = START + np.round(1e9 * time).astype(np.int64) + late_ns
    for name, values in channels.items():
        frames[name] = values(time)
    return frames


def ticks_over(frames, after_s=0.0):
    return np.arange(frames["time"][0], frames["time"][-1] + round(after_s * 1e9), PERIOD)


def since_first(ticks):
    return (ticks - START) * 1e-9


def attitude(motion):
    """Return the rotation body to world that the angles of every row describe."""
    return Rotation.from_euler("ZYX", np.stack([motion[name] for name in ("yaw", "pitch", "roll")], axis=-1))


def turns(kind, frames, ticks):
    """Return the angle between the attitudes of successive ticks [rad], and the motion."""
    motion = Bridge(kind).process(frames, ticks)
    rotation = attitude(motion)
    return (rotation[:-1].inv() * rotation[1:]).magnitude(), motion


# Hold.


@given(
    gaps=st.lists(st.integers(13_000_000, 19_000_000), min_size=1, max_size=40),  # no frame is missing or in a burst
    seed=st.integers(0, 999),
)
def test_hold_is_the_newest_frame_bit_for_bit(gaps, seed):
    rng = np.random.default_rng(seed)
    frames = np.zeros(len(gaps), MOTION_DTYPE)
    for name in MOTION_DTYPE.names[:-2]:
        frames[name] = rng.choice([np.nan, -0.0, np.inf, 1e300, *rng.normal(size=9)], len(gaps))
    frames["time"] = START + np.cumsum(gaps)
    frames["frame_time"] = frames["time"] * 1e-9
    ticks = ticks_over(frames, 0.05)
    newest = np.searchsorted(frames["time"], ticks, side="right") - 1
    assert_same_bits(Bridge("hold").process(frames, ticks), frames[newest])


@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_frame_nothing_moves_and_until_the_second_it_stays(kind):
    frames = frames_of(0.1, 1, surge=lambda t: t + 3.0, roll=lambda t: t + 0.5, roll_rate=lambda t: t + 1.0)
    motion = Bridge(kind).process(frames, np.arange(START - 30 * PERIOD, START + 30 * PERIOD, PERIOD))
    assert_same_bits(motion[:30], np.zeros(30, MOTION_DTYPE))
    np.testing.assert_array_equal(motion["surge"][30:], 3.0)
    np.testing.assert_allclose(motion["roll"][30:], 0.5, rtol=0, atol=1e-15)


# Linear.


@pytest.mark.parametrize("rate_hz", [30.0, 60.0, 100.0, 144.0])
def test_linear_is_one_frame_late_and_exact_in_between(rate_hz):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(len(VALUES), 50))
    frames = frames_of(1 / rate_hz, 50, late_ns=70_000)
    for name, row in zip(VALUES, values, strict=True):
        frames[name] = row
    frames["roll"] = rng.uniform(-1, 1, 50)
    ticks = ticks_over(frames)[:-1]
    motion = Bridge("linear").process(frames, ticks)
    shown = since_first(ticks - 70_000) - 1 / rate_hz
    inside = shown > 0
    for name in [*VALUES, "roll"]:
        expected = np.interp(shown, frames["frame_time"], frames[name])
        np.testing.assert_allclose(motion[name][inside], expected[inside], rtol=0, atol=2e-6, err_msg=name)


def test_constant_acceleration_is_exact_one_frame_late():
    frames = frames_of(0.02, 60, speed=lambda t: 3.0 + 4.0 * t)
    ticks = ticks_over(frames)
    motion = Bridge("linear").process(frames, ticks)
    expected = 3.0 + 4.0 * (since_first(ticks) - 0.02)
    np.testing.assert_allclose(motion["speed"][8:], expected[8:], rtol=0, atol=1e-9)


def test_linear_turns_about_one_axis_at_one_rate_from_frame_to_frame():
    rng = np.random.default_rng(4)
    frames = frames_of(0.02, 40)
    rotation = Rotation.random(40, rng=rng)
    frames["yaw"], frames["pitch"], frames["roll"] = rotation.as_euler("ZYX").T
    ticks = ticks_over(frames)
    motion = Bridge("linear").process(frames, ticks)[8:]
    place = since_first(ticks[8:]) / 0.02 - 1
    before = np.minimum(np.floor(place + 1e-9).astype(int), 38)
    turn = rotation[before].inv() * rotation[before + 1]
    expected = rotation[before] * Rotation.from_rotvec(turn.as_rotvec() * (place - before)[:, None])
    assert (expected.inv() * attitude(motion)).magnitude().max() < 1e-5


# Predict, where an equation gives the next value.


@pytest.mark.parametrize("rate_hz", [30.0, 60.0, 144.0])
def test_a_constant_rate_is_predicted_exactly(rate_hz):
    frames = frames_of(
        1 / rate_hz, 60, speed=lambda t: 3.0 + 4.0 * t, surge=lambda t: -2.0 * t, sway=lambda t: 0 * t + 1
    )
    ticks = ticks_over(frames)
    motion = Bridge("predict").process(frames, ticks)
    # The second frame shows the slope; the offset from before fades within the next frame.
    third = since_first(ticks) > 2.01 / rate_hz
    np.testing.assert_allclose(motion["speed"][third], (3.0 + 4.0 * since_first(ticks))[third], rtol=0, atol=2e-8)
    np.testing.assert_allclose(motion["surge"][third], (-2.0 * since_first(ticks))[third], rtol=0, atol=2e-8)
    np.testing.assert_array_equal(motion["sway"], 1.0)


@pytest.mark.parametrize(
    "rate", [(0.4, 0.0, 0.0), (0.3, -0.2, 0.5), (0.0, 2.0, 0.0), (3.0, -2.0, 1.0), (0.0, 0.0, 9.0)]
)
def test_constant_body_rates_are_followed_exactly_over_the_poles_and_round(rate):
    """Body rates that stay what they are turn the body about one axis at one speed, whatever the angles do."""
    frames = frames_of(1 / 60, 400)
    start = Rotation.from_euler("ZYX", [3.0, 0.3, -0.2])
    frames["roll_rate"], frames["pitch_rate"], frames["yaw_rate"] = rate
    moving = start * Rotation.from_rotvec(np.outer(frames["frame_time"], rate))
    frames["yaw"], frames["pitch"], frames["roll"] = moving.as_euler("ZYX").T
    ticks = ticks_over(frames)
    motion = Bridge("predict").process(frames, ticks)
    expected = start * Rotation.from_rotvec(np.outer(since_first(ticks), rate))
    off = (expected.inv() * attitude(motion)).magnitude()
    assert off[since_first(ticks) > 2.01 / 60].max() < 1e-7
    for name in ANGLES:
        assert np.abs(motion[name]).max() <= math.pi


def test_without_body_rates_the_attitude_is_predicted_from_itself():
    frames = frames_of(1 / 60, 200, roll=lambda t: 0.3 * np.sin(3 * t))
    ticks = ticks_over(frames)
    worst = {
        kind: np.abs(Bridge(kind).process(frames, ticks)["roll"] - 0.3 * np.sin(3 * since_first(ticks)))[100:].max()
        for kind in KINDS
    }
    assert worst["predict"] < 0.1 * worst["hold"]


def test_rates_that_the_attitude_does_not_follow_are_not_followed():
    frames = frames_of(1 / 60, 200, roll=lambda t: 0 * t + 0.2, roll_rate=lambda t: 0 * t + 1.0)
    motion = Bridge("predict").process(frames, ticks_over(frames))
    assert np.abs(motion["roll"] - 0.2)[40:].max() < 1e-12


@pytest.mark.parametrize("part", [0.05, 0.1, 0.15, 0.2, 0.25])
def test_a_sine_is_bridged_by_the_parabola_that_theory_says(part):
    """Expected exactly, a sine leaves what a parabola cannot follow between two frames.

    With x and z at the two frames, u from 0 to 1 between them and theta the phase of a frame, the second differences of
    a sine are -4 sin^2(theta/2) times it, and half of their mean is the parabola's bulge.
    """
    rate_hz = 60.0
    omega, theta = 2 * math.pi * part * rate_hz, 2 * math.pi * part
    frames = frames_of(1 / rate_hz, 1500, surge=lambda t: np.sin(omega * t))
    ticks = ticks_over(frames)[4000:]
    place = since_first(ticks) * rate_hz
    n = np.floor(place + 1e-6)
    u = place - n
    x, z = np.sin(theta * n), np.sin(theta * (n + 1))
    expected = (1 - u) * x + u * z + 2 * math.sin(theta / 2) ** 2 * u * (1 - u) * 0.5 * (x + z)
    motion = Bridge("predict").process(frames, ticks_over(frames))["surge"][4000:]
    held = np.sin(theta * n)
    # The ridge keeps a thousandth in doubt: a few percent of hold's error.
    assert np.abs(motion - expected).max() < 0.04 * np.abs(held - np.sin(omega * since_first(ticks))).max()


@pytest.mark.parametrize("rate_hz", [30.0, 60.0, 144.0])
def test_frames_taken_unevenly_show_a_sine_nearly_as_even_ones_do(rate_hz):
    """At a tenth of the frame rate the parabola leaves a hundredth of what hold misses; the ridge a few per cent."""
    rng = np.random.default_rng(8)
    frames = frames_of(1 / rate_hz, 1500)
    frames["frame_time"] += rng.uniform(-0.2, 0.2, 1500) / rate_hz
    frames["time"] = START + np.round(1e9 * frames["frame_time"])
    omega = 2 * math.pi * 0.1 * rate_hz
    frames["surge"] = np.sin(omega * frames["frame_time"])
    ticks = ticks_over(frames)
    true = np.sin(omega * since_first(ticks))
    missed = {
        kind: np.std((Bridge(kind).process(frames, ticks)["surge"] - true)[len(ticks) // 5 :])
        for kind in ("hold", "predict")
    }
    assert missed["predict"] < 0.08 * missed["hold"]


def test_of_noise_without_memory_the_next_frame_is_expected_at_the_average():
    """There it misses the noise, nothing more; the five weights learned from 64 frames add a few per cent.

    From the last frame it would miss the difference of two: 1.41 times as much; along the last slope 2.45 times.
    """
    frames = frames_of(1 / 60, 3000)
    frames["surge"] = np.random.default_rng(1).normal(size=3000)
    just_before = frames["time"][1:] - 1
    expected = Bridge("predict").process(frames, just_before)["surge"]
    assert np.std((frames["surge"][1:] - expected)[200:]) < 1.15
    assert np.std(expected[200:]) < 0.4


# Smooth, and nothing invented.


@pytest.mark.parametrize("rate_hz", [30.0, 60.0, 144.0])
@given(values=st.lists(st.floats(-1, 1), min_size=3, max_size=40))
def test_a_tick_moves_no_more_than_the_frames_allow(rate_hz, values):
    """Frames on time: a slope of 3 changes a frame, bent by half as much, and an offset of 4 that fades over it."""
    frames = frames_of(1 / rate_hz, len(values))
    frames["surge"] = values
    largest = np.abs(np.diff(values)).max()
    share = PERIOD * 1e-9 * rate_hz
    ticks = ticks_over(frames, 0.05)
    for kind, most in (("linear", 1.0), ("predict", 8.5)):
        moved = np.abs(np.diff(Bridge(kind).process(frames, ticks)["surge"])).max()
        assert moved <= most * share * largest * (1 + 1e-5) + 1e-12


ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 100_000, 3_000_030, 6_900_000, 16_666_667, 33_000_000, 95_000_000]),  # since the last
        st.sampled_from([0.0, 1 / 144, 1 / 60, 1 / 60, 0.05, -1.0, 30.0, math.nan]),  # by its own time
        st.floats(-1, 1),
    ),
    min_size=2,
    max_size=60,
)


def arrived(arrivals):
    frames = np.zeros(len(arrivals), MOTION_DTYPE)
    frames["time"] = START + np.cumsum([gap for gap, _, _ in arrivals])
    frames["frame_time"] = np.cumsum([own for _, own, _ in arrivals])
    for name in (*VALUES, *ANGLES):
        frames[name] = [value for _, _, value in arrivals]
    return frames


@settings(max_examples=300)
@given(arrivals=ARRIVALS, scale=st.sampled_from([1e-12, 1.0, 1e9]))
def test_whatever_arrives_the_motion_stays_finite_and_near_the_frames(arrivals, scale):
    frames = arrived(arrivals)
    for name in VALUES:
        frames[name] *= scale
    frames["engine_speed"] = math.nan
    ticks = ticks_over(frames, 0.1)
    seen = np.searchsorted(frames["time"], ticks, side="right") - 1
    for kind in ("linear", "predict"):
        motion = Bridge(kind).process(frames, ticks)
        assert np.isnan(motion["engine_speed"]).all()
        for name in (*VALUES[:-1], *ANGLES):
            y = motion[name]
            assert np.isfinite(y).all()
            largest = np.abs(np.diff(frames[name][np.unique(seen)])).max(initial=0.0)
            slack = 1e-12 * np.abs(frames[name]).max()
            if kind == "linear" and name in VALUES:  # between what was seen
                assert y.min() >= frames[name].min() - slack
                assert y.max() <= frames[name].max() + slack
            elif name in VALUES:
                assert np.abs(y - frames[name][seen]).max() <= 40 * largest + slack
                assert np.abs(np.diff(y)).max(initial=0.0) <= 40 * largest + slack
        for name in ("time", "frame_time"):
            np.testing.assert_array_equal(motion[name], frames[name][seen])


@pytest.mark.parametrize("kind", ["linear", "predict"])
@pytest.mark.parametrize("size", [1e150, 1e200, 1.7e308])
def test_numbers_too_large_to_be_squared_leave_the_frame_as_it_is(kind, size):
    frames = frames_of(
        1 / 60, 30, surge=lambda t: size * np.where(np.arange(len(t)) % 2, 1, -1), yaw_rate=lambda t: 0 * t + size
    )
    motion = Bridge(kind).process(frames, ticks_over(frames))
    assert np.isfinite(motion["surge"]).all()
    for name in ANGLES:
        assert np.isfinite(motion[name]).all()
    frames["surge"][15:] = 1.0
    frames["yaw_rate"][15:] = 0.0
    frames = frames[np.r_[0:30, [29] * 200]]
    frames["time"][30:] = frames["time"][29] + np.arange(1, 201) * 16_666_667
    frames["frame_time"][30:] = frames["frame_time"][29] + np.arange(1, 201) / 60
    assert Bridge(kind).process(frames, ticks_over(frames))["surge"][-1] == 1.0


def test_a_late_frame_is_waited_for_ever_more_slowly_and_then_held():
    """In full for one and a half frames, then at a rate that decreases to zero over one more: half a frame further."""
    frames = frames_of(1 / 60, 60, surge=lambda t: 5.0 * t, roll=lambda t: 0.4 * t, roll_rate=lambda t: 0 * t + 0.4)
    ticks = ticks_over(frames, 0.2)
    motion = Bridge("predict").process(frames, ticks)
    over = 60.0 * since_first(ticks) - 60.5  # frames since the one that is missing, less half a frame
    expected = since_first(ticks) - np.where(over < 0, 0.0, np.where(over < 1, 0.5 * over**2, over - 0.5)) / 60.0
    late = since_first(ticks) > 0.1
    np.testing.assert_allclose(motion["surge"][late], 5.0 * expected[late], rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion["roll"][late], 0.4 * expected[late], rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", ["linear", "predict"])
def test_headings_cross_half_a_turn_the_short_way(kind):
    frames = frames_of(1 / 60, 300, yaw_rate=lambda t: 0 * t + 1.0)
    frames["yaw"] = np.angle(np.exp(1j * (3.0 + frames["frame_time"])))
    turned, motion = turns(kind, frames, ticks_over(frames))
    assert turned.max() <= PERIOD * 1e-9 * 2.01
    assert np.abs(motion["yaw"]).max() <= math.pi
    assert np.abs(motion["roll"]).max() < 1e-12


@pytest.mark.parametrize("kind", ["linear", "predict"])
@pytest.mark.parametrize("height", [1e-3, 1e-9, 0.0])
def test_near_the_vertical_the_body_turns_no_faster_than_it_does(kind, height):
    """A loop through straight up: roll and yaw step by half a turn there, the attitude does not."""
    frames = frames_of(1 / 60, 200)
    start = Rotation.from_euler("ZYX", [0.4, 0.5 * math.pi - 100 * 0.6 / 60, height])
    moving = start * Rotation.from_rotvec(np.outer(frames["frame_time"], [0.0, 0.6, 0.0]))
    frames["pitch_rate"] = 0.6
    with warnings.catch_warnings():  # gimbal lock, where one of the angles is arbitrary
        warnings.simplefilter("ignore")
        frames["yaw"], frames["pitch"], frames["roll"] = moving.as_euler("ZYX").T
    turned, motion = turns(kind, frames, ticks_over(frames))
    assert np.isfinite(motion["roll"]).all()
    assert turned.max() <= PERIOD * 1e-9 * 0.6 * 2.05


# When a frame was taken.


@pytest.mark.parametrize("rate_hz", [30.0, 60.0, 144.0])
def test_frames_that_arrive_late_are_placed_where_they_were_taken(rate_hz):
    rng = np.random.default_rng(5)
    frames = frames_of(1 / rate_hz, 300, surge=lambda t: 5.0 * t)
    late = np.where(rng.uniform(size=300) < 0.2, rng.uniform(0, 0.2 / rate_hz, 300), 0.0)
    frames["time"] += np.round(late * 1e9).astype(np.int64)
    ticks = ticks_over(frames)
    off = Bridge("predict").process(frames, ticks)["surge"] - 5.0 * since_first(ticks)
    # Four late ones in a row, once in six hundred frames, count as the delay of the link until one is earlier again.
    assert np.abs(off[since_first(ticks) > 3 / rate_hz]).max() <= 5.0 * 0.2 / rate_hz
    assert np.std(off[since_first(ticks) > 3 / rate_hz]) <= 5.0 * 0.02 / rate_hz


@pytest.mark.parametrize("own", [0.0, 0.5, 2.0, math.nan])
def test_a_simulator_whose_time_means_nothing_is_followed_by_arrival(own):
    frames = frames_of(1 / 60, 400, surge=lambda t: 5.0 * t)
    frames["frame_time"] *= own
    ticks = ticks_over(frames)
    off = Bridge("predict").process(frames, ticks)["surge"] - 5.0 * since_first(ticks)
    assert np.abs(off[100:]).max() <= 5.0 * 0.75 / 60  # hold is late by up to 5.0 / 60
    assert abs(off[100:].mean()) <= 5.0 * 0.25 / 60


def test_lost_frames_of_a_simulator_that_counts_durations_are_noticed():
    frames = frames_of(1 / 60, 400, surge=lambda t: 5.0 * t)
    kept = np.delete(frames, [100, 200, 201, 300])
    kept["frame_time"] = np.arange(len(kept)) / 60
    ticks = ticks_over(kept)
    off = np.abs(Bridge("predict").process(kept, ticks)["surge"] - 5.0 * since_first(ticks))
    time = since_first(ticks)
    for lost in (100, 200, 300):
        settled = (time > (lost + 20) / 60) & (time < (lost + 95) / 60)
        assert off[settled].max() < 0.1 * 5.0 / 60  # not detected as late: a whole frame


# The bridge's own figures.


@pytest.mark.parametrize(("kind", "frames_late"), [("hold", 0.5), ("linear", 1.0), ("predict", 0.0)])
def test_latency_is_half_a_frame_a_whole_one_or_none(kind, frames_late):
    frames = frames_of(1 / 60, 3000, surge=np.sin)
    bridge = Bridge(kind)
    assert bridge.latency_s == 0.0
    bridge.process(frames, ticks_over(frames))
    assert bridge.latency_s == pytest.approx(frames_late / 60, abs=2e-4)
    assert bridge.interval_s == pytest.approx(1 / 60, abs=1e-9)


def test_a_fresh_start_forgets_everything():
    rng = np.random.default_rng(6)
    frames = frames_of(1 / 60, 100)
    for name in (*VALUES, *ANGLES):
        frames[name] = rng.uniform(-1, 1, 100)
    ticks = ticks_over(frames)
    bridge = Bridge("predict")
    first = bridge.process(frames, ticks)
    out = np.zeros(len(ticks), MOTION_DTYPE)
    bridge.process(frames, ticks, out)
    assert_same_bits(out, first)


def test_an_unknown_kind_and_another_length_are_refused():
    with pytest.raises(ConfigError, match=r"'cubic'.*hold, linear, predict"):
        Bridge("cubic")
    with pytest.raises(ValueError, match="2 rows, allowed are 3"):
        Bridge("hold").process(np.zeros(1, MOTION_DTYPE), np.zeros(3, np.int64), np.zeros(2, MOTION_DTYPE))
