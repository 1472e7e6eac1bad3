"""Where frames say their time, the cue is where the drive is, however regularly they come in bunches."""

import numpy as np
import pytest
from delivery_rig import SOURCES, START, Drive, deliver, worst

from motioncue.kernels.bridge import KINDS

SWAY, ROLL = (2.0, 3.0), (0.1, 2.0)  # amplitude [m/s^2, rad] and frequency [rad/s]
DRIVE = Drive([[], [(*SWAY, 0.0)], []], [[(*ROLL, 0.0)], [], []])


def bunched(taken, interval, size):
    """Return arrivals [s] of frames of which `size` arrive together, 0.1 ms apart, when the last has been taken."""
    n = np.arange(len(taken))
    return (n // size + 1) * size * interval + 0.001 + (n % size) * 1e-4


def jittered(taken, most):
    """Return arrivals [s] that are late by up to `most` [s], in the order of the frames."""
    return np.maximum.accumulate(taken + 0.001 + np.random.default_rng(1).uniform(0.0, most, len(taken)))


def off(run, since, until):
    """Return the largest distances of sway and roll from the drive, as times [s] in which it moves so far."""
    time = (run.trace["deadline"] - START) * 1e-9
    k = (time > since) & (time < until)
    return [
        np.abs(run.trace["cue"][name] - run.truth[name])[k].max() / (amplitude * omega)
        for name, (amplitude, omega) in (("sway", SWAY), ("roll", ROLL))
    ]


@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", [name for name in SOURCES if name not in ("beamng", "morai")])
@pytest.mark.parametrize("delivery", ["pairs", "triples", "fours", "jitter"])
@pytest.mark.parametrize("stall", [False, True], ids=["start", "stall"])
def test_frames_that_come_in_bunches_leave_the_cue_at_the_drive(bridge, source, delivery, stall):
    interval = 1.0 / SOURCES[source].rate_hz
    taken = np.arange(0.0, 10.0, interval)
    size = {"pairs": 2, "triples": 3, "fours": 4, "jitter": 4}[delivery]
    arrivals = jittered(taken, 4 * interval) if delivery == "jitter" else bunched(taken, interval, size)
    if stall:
        arrivals = np.where((arrivals >= 4.0) & (arrivals < 4.3), 4.3, arrivals)
    run = deliver(DRIVE, source, bridge, taken, arrivals)
    assert run.events == {}
    assert worst(run, source, bridge).step <= 1.0
    # A frame is shown until the next bunch has come, so up to two intervals of bunches after it was taken; the join
    # takes up to two more.
    assert max(off(run, 6.5 if stall else 2.5, 9.9)) < 4.0 * size * interval
