"""A simulator that stutters for half a second: what is felt on platforms of long travel, with the default cueing."""

import numpy as np
import pytest
from trouble_helpers import Bench, driven, knocks

RATE_HZ = 60


def knocks_of(platform, at_s, stutter_s):
    """Return what is felt of a stutter, as `knocks` has it."""
    frames = driven("tour", RATE_HZ)[: round((at_s + 2.5) * RATE_HZ)]
    times = np.arange(len(frames)) / RATE_HZ
    heard = (times < at_s) | (times >= at_s + stutter_s)
    bench = Bench(f"platform.preset={platform}", profile="ccd-dk-washout").connect()
    bench.play(frames[heard], times[heard])
    assert ("PARKING", "ENGAGING", "input_back") in bench.moves()
    return knocks(bench.trace)


@pytest.mark.parametrize("platform", ["box-small", "box-large", "hexapod-dim", "hexapod-simona", "hexapod-on-sled"])
@pytest.mark.parametrize(
    "at_s", [6.0, 10.0, 12.0, *(pytest.param(each, marks=pytest.mark.search) for each in np.arange(5.0, 24.0, 0.7))]
)
# Longer than the hold time, shorter than the fade: the platform is on its way to neutral, and turns.
@pytest.mark.parametrize("stutter_s", [0.2, 0.6, pytest.param(0.9, marks=pytest.mark.search)])
@pytest.mark.check
def test_a_stutter_is_no_jolt(platform, at_s, stutter_s):
    """Fading 1 m to nothing and back in a second changes forces by 0.26 m/s^2 a tick at most, the drive by its own."""
    steady = 0.3 if platform == "hexapod-simona" else 0.15  # as docs/predictive.md promises
    assert knocks_of(platform, at_s, stutter_s).max() < 0.26 + steady
