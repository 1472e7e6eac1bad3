"""Half a turn to either side is the same: heading and roll cross that line without a step."""

import math

import numpy as np
import pytest
from same_bits import assert_same_bits

from motioncue.core.channels import CUE_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import load_profile
from motioncue.engine.pipeline import Pipeline
from motioncue.safety.limiter import CueLimits
from motioncue.sources.city_car_driving.packets import FRAME, INIT

START = 1_000_000_000
RATE_HZ = 60.0
TURN = 0.5  # [rad/s]


def turned(angle, axis):
    """Return the quaternion x, y, z, w of a turn about a car axis."""
    return (*(math.sin(angle / 2) * np.array(axis)), math.cos(angle / 2))


def ticks(channel, crossing_s, gaps):
    """Return the trace of a drive whose angle crosses pi `crossing_s` seconds after its first frame."""
    # Heading turns against the world's up axis and is pi for an unturned car, whose forward axis is +Z; roll turns
    # about that axis and is pi when turned by pi.
    axis, sense, at_line = ((0.0, 1.0, 0.0), -1.0, 0.0) if channel == "yaw" else ((0.0, 0.0, 1.0), 1.0, math.pi)
    profile = load_profile("ccd-dk", "limits=none")  # bounds would hide a step
    pipeline = Pipeline(profile, FakeClock(START), trace=5000)
    pipeline.intake.begin(START)
    pipeline.intake.feed(INIT.encode({"forward": (0, 0, 1), "up": (0, 1, 0)}), START)
    for t in np.arange(0.0, 4.0, 1 / RATE_HZ):
        if any(start <= t < end for start, end in gaps):
            continue
        frame = {
            "frame_time": 1 / RATE_HZ,
            "orientation": turned(sense * (at_line + TURN * (t - crossing_s)), axis),
            "angular_velocity": sense * TURN * np.array(axis),
        }
        time = START + round(t * 1e9)
        pipeline.emitter.run(until_ns=time)
        pipeline.intake.feed(FRAME.encode(frame), time)
    pipeline.emitter.run(until_ns=START + 6_000_000_000)
    return pipeline.emitter.trace


@pytest.mark.parametrize("gaps", [(), ((1.5, 1.9),), ((0.4, 0.7), (1.6, 2.3))], ids=["whole", "one gap", "two gaps"])
@pytest.mark.parametrize("crossing_s", [0.2, 0.5, 0.9, 1.7, 2.4, 4.05])
@pytest.mark.parametrize("channel", ["yaw", "roll"])
def test_an_angle_crosses_half_a_turn_without_a_step(channel, crossing_s, gaps):
    trace = ticks(channel, crossing_s, gaps)
    angle = trace["motion"][channel][trace["weight"] > 0]
    assert np.abs(np.diff(angle)).max() > 5.0 or crossing_s > 4.0  # the line was crossed
    sent = trace["cue"][channel]
    steps = np.abs(np.remainder(np.diff(sent) + math.pi, 2 * math.pi) - math.pi)
    # A frame's turn; the fade's slope (15/8 of its mean) on 3/2 of a half turn; a joined difference, the same.
    pace = 1 / 333.33
    assert steps.max() <= TURN / RATE_HZ + 1.875 * pace * (1.5 * math.pi) * 2
    assert sent[-1] == 0.0


@pytest.mark.parametrize("channel", ["roll", "yaw"])
def test_a_bounded_angle_that_goes_round_passes_bit_for_bit(channel):
    limits = CueLimits()
    limits.add(channel, math.pi, rate=1.0, acceleration=10.0, dt=0.003)
    cues = np.zeros(20_000, CUE_DTYPE)
    t = np.arange(len(cues)) * 0.003
    cues[channel] = np.remainder(0.3 * (t - np.tanh(t)) + math.pi, 2 * math.pi) - math.pi
    limited = cues.copy()
    limits.process(limited)
    assert np.abs(np.diff(cues[channel])).max() > 6.0
    assert_same_bits(limited, cues)
    assert limits.shares() == {channel: 0.0}


@pytest.mark.parametrize("channel", ["roll", "yaw"])
def test_a_bounded_angle_goes_the_short_way_round_and_keeps_its_bounds(channel):
    limits = CueLimits()
    limits.add(channel, math.pi, rate=0.5, acceleration=2.0, jerk=20.0, dt=0.003)
    cues = np.zeros(6000, CUE_DTYPE)
    cues[channel][1000:] = 3.0
    cues[channel][3000:] = -3.0  # 0.28 rad further, across the line
    limits.process(cues)
    angle = np.unwrap(cues[channel])
    assert angle[-1] == pytest.approx(2 * math.pi - 3.0, abs=1e-9)
    for order, bound in ((1, 0.5), (2, 2.0), (3, 20.0)):
        assert np.abs(np.diff(angle, order)).max() / 0.003**order <= bound * (1 + 1e-6)


def held_while_turning(channel, *overrides):
    """Return the cue of a car that is held 0.3 rad before half a turn, and engaged 1.75 rad after that."""
    axis, sense, at_line = ((0.0, 1.0, 0.0), -1.0, 0.0) if channel == "yaw" else ((0.0, 0.0, 1.0), 1.0, math.pi)
    pipeline = Pipeline(load_profile("ccd-dk", *overrides), FakeClock(START), trace=5000)
    pipeline.intake.begin(START)
    pipeline.intake.feed(INIT.encode({"forward": (0, 0, 1), "up": (0, 1, 0)}), START)
    held, engaged = 3.0, 3.0 + 1.75 / TURN
    for t in np.arange(0.0, 9.0, 1 / RATE_HZ):
        time = START + round(t * 1e9)
        pipeline.emitter.run(until_ns=time)
        if abs(t - held) < 1e-3:
            pipeline.emitter.hold()
        if abs(t - engaged) < 1e-3:
            pipeline.emitter.engage()
        frame = {
            "frame_time": 1 / RATE_HZ,
            "orientation": turned(sense * (at_line + TURN * (t - held) - 0.3), axis),
            "angular_velocity": sense * TURN * np.array(axis),
        }
        pipeline.intake.feed(FRAME.encode(frame), time)
    trace = pipeline.emitter.trace
    return trace["cue"][channel], (trace["deadline"] - START) * 1e-9, engaged


@pytest.mark.parametrize("channel", ["yaw", "roll"])
@pytest.mark.parametrize("limits", ["limits=none", "limits.roll.value_deg=180"])
def test_a_hold_that_ends_beyond_half_a_turn_is_joined_the_short_way(channel, limits):
    angle, time, engaged = held_while_turning(channel, limits)
    before, after = (angle[np.searchsorted(time, at)] for at in (engaged - 0.1, engaged + 2.0))
    assert before == pytest.approx(math.pi - 0.3, abs=0.02)
    assert after == pytest.approx(-math.pi - 0.3 + 1.75 + 2.0 * TURN, abs=0.02)
    sent = np.unwrap(angle[(time > engaged - 0.1) & (time < engaged + 2.0)])
    assert np.diff(sent).min() > -1e-6
    # Joined over a fade of 1 s, whose slope is 15/8 of its mean at most, while the car turns on.
    assert np.diff(sent).max() <= (1.75 * 15 / 8 + TURN) * 3_000_030e-9 * 1.01
    assert sent[-1] - sent[0] == pytest.approx(1.75 + 2.0 * TURN, abs=0.02)


@pytest.mark.parametrize("channel", ["roll", "yaw"])
def test_an_unbounded_angle_is_sent_within_half_a_turn(channel):
    limits = CueLimits()
    limits.add(channel, math.pi, rate=5.0, acceleration=100.0, dt=0.003)
    cues = np.zeros(4000, CUE_DTYPE)
    cues[channel] = 2.0 * np.arange(4000) * 0.003 * np.linspace(0, 1, 4000)  # 3.8 turns, counted without wrapping
    wanted = cues[channel].copy()
    limits.process(cues)
    assert np.abs(cues[channel]).max() <= math.pi
    assert np.exp(1j * cues[channel]) == pytest.approx(np.exp(1j * wanted), abs=1e-12)


# ---- a roll with a bound ---------------------------------------------------------------------------------------------


def leaning(values, bound=1.0, **bounds):
    limits = CueLimits()
    limits.add("roll", bound, dt=0.003, **bounds)
    cues = np.zeros(len(values), CUE_DTYPE)
    cues["roll"] = values
    limits.process(cues)
    return cues["roll"], limits.shares()["roll"]


def test_a_roll_within_its_bound_keeps_its_bits_and_one_beyond_a_right_angle_is_its_lean():
    rolls = np.array([0.0, 0.3, -0.9, 2.5, -2.5, math.pi, -math.pi, 3.0, -3.0, 2 * math.pi + 0.25, -7.0])
    sent, share = leaning(np.repeat(rolls, 2))
    sent = sent[1::2]
    assert_same_bits(sent[:3], rolls[:3])
    assert sent == pytest.approx(np.arcsin(np.sin(rolls)), abs=1e-15)
    assert share == 0.0


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_a_barrel_roll_leans_to_the_bound_back_and_to_the_other_side(sense):
    roll = np.remainder(sense * np.linspace(0.0, 4 * math.pi, 4000) + math.pi, 2 * math.pi) - math.pi
    sent, share = leaning(roll, rate=20.0, acceleration=5000.0)
    assert np.abs(np.diff(roll)).max() > 6.0
    assert np.abs(np.diff(sent)).max() <= 4 * math.pi / 3999 * (1 + 1e-9)  # the car's own
    assert sent == pytest.approx(np.clip(np.arcsin(np.sin(roll)), -1.0, 1.0), abs=0.02)
    assert 0.3 < share < 0.7
