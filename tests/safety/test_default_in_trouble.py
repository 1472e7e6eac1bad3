"""Every trouble a simulator makes, with the default cueing on platforms of long travel: forces and turning."""

import numpy as np
import pytest
from trouble_helpers import Bench, driven, knocks, turns

RATE_HZ = 60
LENGTH_S = 20.0
FORCE = {"hexapod-simona": 0.5}
"""Largest change of what acts along an axis from tick to tick [m/s^2]; 0.35 elsewhere: a fade of 1 m adds 0.26."""
TURNING = 1.75
"""Largest change of angular acceleration from tick to tick [rad/s^2]; without trouble 1.5."""
STILL = ("velocity", "acceleration", "angular_velocity", "angular_acceleration")


def silence(frames, times, at, length_s=2.0):
    """Say nothing for a while; the drive has gone on when it is back."""
    heard = (times < times[at]) | (times >= times[at] + length_s)
    return frames[heard], times[heard]


def gap(frames, times, at):
    """Say nothing for a fifth of a second."""
    return silence(frames, times, at, 0.2)


def end(frames, times, at):
    """Say nothing any more."""
    return frames[:at], times[:at]


def frozen(frames, times, at):
    """Repeat a frame for two seconds."""
    frames[at : at + 2 * RATE_HZ] = frames[at]
    return frames, times


def paused(frames, times, at):
    """Repeat a frame in which no time passes."""
    frames, times = frozen(frames, times, at)
    frames["frame_time"][at : at + 2 * RATE_HZ] = 0
    return frames, times


def teleport(frames, times, at):
    """Go on elsewhere."""
    frames["position"][at:] += np.array([500.0, 0.0, 300.0], np.float32)
    return frames, times


def respawn(frames, times, at):
    """Stand still elsewhere."""
    frames, times = teleport(frames, times, at)
    for name in STILL:
        frames[name][at:] = 0
    for name in ("position", "orientation"):
        frames[name][at:] = frames[name][at]
    return frames, times


def lossy(frames, times, at):
    """Lose three frames of ten."""
    heard = np.random.default_rng(at).random(len(frames)) > 0.3
    return frames[heard], times[heard]


def uneven(frames, times, at):
    """Come up to 12 ms late."""
    late = np.random.default_rng(at).uniform(0.0, 0.012, len(times))
    return frames, np.maximum.accumulate(times + late)


def bunches_of_four(frames, times, at):
    """Come four at a time."""
    return frames, np.floor(np.arange(len(times)) / 4) * 4 / RATE_HZ


def bunches_of_eight(frames, times, at):
    """Come eight at a time, farther apart than the hold time."""
    return frames, np.floor(np.arange(len(times)) / 8) * 8 / RATE_HZ


def spike(frames, times, at):
    """Say 30 m/s^2 once."""
    frames["acceleration"][at, 0] += 30.0
    return frames, times


def spikes(frames, times, at):
    """Say 60 m/s^2 three times."""
    frames["acceleration"][at : at + 3, 1] += 60.0
    return frames, times


def nan(frames, times, at):
    """Say what is no number."""
    frames["acceleration"][at, 0] = np.nan
    return frames, times


TROUBLES = [
    silence, gap, end, frozen, paused, teleport, respawn, lossy, uneven, bunches_of_four, bunches_of_eight,
    spike, spikes, nan,
]  # fmt: skip


@pytest.mark.parametrize("platform", ["box-small", "box-large", "hexapod-dim", "hexapod-simona", "hexapod-cranks"])
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("at_s", [9.0, 12.0, 14.3])
@pytest.mark.search
def test_the_default_takes_every_trouble_gently(platform, trouble, at_s):
    frames = driven("tour", RATE_HZ)[: round(LENGTH_S * RATE_HZ)].copy()
    bench = Bench(f"platform.preset={platform}", profile="ccd-dk-washout").connect()
    bench.play(*trouble(frames, np.arange(len(frames)) / RATE_HZ, round(at_s * RATE_HZ)))
    bench.run(3.0)
    trace = bench.trace
    assert trace["weight"].max() > 0.2  # it does drive
    assert knocks(trace).max() < FORCE.get(platform, 0.35)
    assert turns(trace).max() < TURNING
