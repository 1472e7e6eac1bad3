"""Half a turn one way is half a turn the other: heading and roll cross that line without a step."""

import math

import numpy as np
import pytest

from motioncue.kernels.clock import FakeClock
from motioncue.kernels.limiter import CueLimits
from motioncue.motion import CUE_DTYPE
from motioncue.protocols.city_car_driving import FRAME, INIT
from motioncue.runtime.assembly import load_profile
from motioncue.runtime.engine import Pipeline

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
    pipeline = Pipeline(load_profile("ccd-dk"), FakeClock(START), trace=5000)
    pipeline.session.begin(START)
    pipeline.session.feed(INIT.encode({"forward": (0, 0, 1), "up": (0, 1, 0)}), START)
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
        pipeline.session.feed(FRAME.encode(frame), time)
    pipeline.emitter.run(until_ns=START + 6_000_000_000)
    return pipeline.emitter.trace


@pytest.mark.grid
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
    assert limited.tobytes() == cues.tobytes()
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
