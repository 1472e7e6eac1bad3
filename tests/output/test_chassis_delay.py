"""How far wheels are behind when frames are lost or come unevenly, from a source without times of its own."""

from functools import partial

import numpy as np
import pytest
from delivery_rig import jittered, lost
from test_chassis_channels import START, Drive, profile_of


@pytest.mark.parametrize("rate_hz", [60, 250])
@pytest.mark.parametrize(
    "deliver", [partial(lost, share=0.3), partial(jittered, most_s=0.012)], ids=["lost", "jittered"]
)
def test_a_source_without_times_of_its_own_does_not_fall_further_and_further_behind(deliver, rate_hz):
    car = Drive(profile_of())
    taken = np.arange(12 * rate_hz) / rate_hz
    taken, came = deliver(taken, np.random.default_rng(rate_hz))
    car.deliver(taken, came, lambda time: {"suspension_front_left": 0.03 * time, "frame_time": 0.0})
    car.close()
    late = car.ticks["deadline"] > START + 10_000_000_000
    assert set(car.ticks["weight"][late]) == {1.0}
    shown = car.sent["suspension_front_left"][late] / 0.03
    behind = (car.ticks["deadline"][late] - START) * 1e-9 - shown
    # A line to the frame after the longest silence needs as long again, and as much is allowed for what is not known.
    assert behind.max() < 4.0 * np.diff(came).max()
