"""An honest drive never jolts, however its frames are delivered: stalls, then what was missed in a bunch."""

import numpy as np
import pytest
from delivery_rig import ANGLES, LINEAR, PERIOD, SOURCES, Drive, deliver, stalls

from motioncue.kernels.bridge import KINDS

FADE = 15 / 8 * PERIOD * 1e-9  # largest step of a fade of 1 s, of what it takes away


def swinging(phase):
    """Return a drive whose surge swings by 9 m/s^2, 0.2 m/s^2 a tick, and whose other channels move as well."""
    return Drive(
        [[(9.0, 7.4, phase)], [(3.0, 5.0, 1.0 + phase)], [(2.0, 9.0, 2.0 + 3 * phase)]],
        [[(0.1, 3.0, 0.5 - phase)], [(0.05, 4.0, phase)], [(0.2, 1.0, 2 * phase)]],
    )


def steps(values, name):
    """Return the steps of a channel from tick to tick; angles the short way."""
    moved = np.abs(np.diff(values))
    return np.minimum(moved, 2 * np.pi - moved) if name in ANGLES else moved


def assert_no_jolt(run, bridge, interval_s):
    """Show that no step is larger than 1.2 of the drive's own and a fade's, and no value beyond what the drive had.

    Attitude is one quantity: its angles are held to the fastest turn.  `hold` moves once a frame, so its measure is
    what the drive moves between two frames.
    """
    stretch = max(interval_s / (PERIOD * 1e-9), 1.0) if bridge == "hold" else 1.0
    turn = max(steps(run.truth[name], name).max() for name in ANGLES)
    # A turn from one attitude straight to another takes its angles beyond both by the product of two of them.
    spans = sorted(np.ptp(run.truth[name]) for name in ANGLES)
    beyond = spans[-1] * spans[-2] / 4
    for name in (*LINEAR, *ANGLES):
        truth, cue = run.truth[name], run.trace["cue"][name]
        own = turn if name in ANGLES else steps(truth, name).max()
        step = steps(cue, name).max()
        # From neutral to the drive's own level and back, fades move what is there.
        largest = max(np.ptp(truth), np.abs(truth).max())
        assert step <= stretch * (1.2 * own + FADE * largest), name
        if name != "speed":
            slack = own * (interval_s / (PERIOD * 1e-9) if bridge == "predict" else 0.1)
            slack += beyond if name in ANGLES else 0.0
            assert cue.max() <= max(truth.max(), 0.0) + slack, name
            assert cue.min() >= min(truth.min(), 0.0) - slack, name


@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("stall_s", "every_s"), [(0.08, 1.0), (0.2, 1.3), (0.3, 1.7), (0.08, 0.12), (0.3, 0.35), (0.7, 1.0)]
)
@pytest.mark.parametrize("phase", [0.3, 1.9, 4.1])
def test_a_sender_that_stalls_and_then_sends_what_it_missed_makes_no_jolt(bridge, source, stall_s, every_s, phase):
    interval = 1.0 / SOURCES[source].rate_hz
    taken = np.arange(0.0, 12.0, interval)
    arrivals = stalls(taken, 0.002, [(at, stall_s) for at in np.arange(3.0, 9.0, every_s)])
    run = deliver(swinging(phase), source, bridge, taken, arrivals)
    assert run.events == {}
    assert_no_jolt(run, bridge, interval)
    # It comes back: at the end the cue is again where the drive is.
    whole = (run.trace["weight"] == 1.0) & (run.trace["deadline"] > run.trace["deadline"][0] + 11_000_000_000)
    whole &= run.trace["deadline"] < run.trace["deadline"][0] + 11_900_000_000
    assert whole.any()
    off = np.abs(run.trace["cue"]["surge"] - run.truth["surge"])[whole].max()
    assert off < 9.0 * 7.4 * (2.1 * interval + 0.002)
