"""Rates that a source stops telling: what is derived begins at zero, and nobody is thrown to it and back."""

import math

import numpy as np
import pytest
from test_chassis_channels import FIELDS, START, Drive, profile_of

RATES = ("roll_rate", "pitch_rate", "yaw_rate")
TURNING = 0.5  # [rad/s]
DELAY_S = 0.05  # of what is derived
TOLD_S = 4.0


def turned(bridge, tells, to_s=6.0):
    """Return the ticks of a car that turns steadily, and that tells its rates at times [s] or not."""
    fields = [{**field, "optional": True} if field["channel"] in RATES else field for field in FIELDS]
    car = Drive(profile_of(f"source.bridge={bridge}", f"source.derivative_delay_s={DELAY_S}", fields=fields))
    for time in np.arange(0.0, to_s, 1 / 60).tolist():
        rates = dict.fromkeys(RATES, 0.0 if tells(time) else math.nan)
        rates["yaw_rate"] = TURNING if tells(time) else math.nan
        car.run((START - car.now) * 1e-9 + time)
        car.send(time, {"yaw": math.remainder(TURNING * time, 2.0 * math.pi), **rates})
    car.close()
    assert car.pipeline.intake.discontinuities == {}
    assert set(car.ticks["weight"][car.ticks["deadline"] > START + 2_000_000_000]) == {1.0}
    return car.ticks


@pytest.mark.parametrize("bridge", ["hold", "linear", "predict"])
def test_where_rates_are_told_no_more_the_output_joins_what_is_derived(bridge):
    """The car turns on as it did; its derived rate is zero in the first frame, and right after some delays.

    The join is no faster than 1.19 times the drive's largest slope and a fade.  The drive has none; of what settles,
    the whole turn in five delays is the most that counts.
    """
    ticks = turned(bridge, lambda time: time < TOLD_S)
    rate = ticks["motion"]["yaw_rate"][ticks["deadline"] > START + 3_500_000_000]
    fastest = np.abs(np.diff(rate)).max() / 0.00300003
    assert fastest < 1.19 * TURNING / (5.0 * DELAY_S) + 15 / 8 * TURNING
    assert rate.min() < 0.95 * TURNING  # it is derived
    assert rate[-1] == pytest.approx(TURNING, rel=1e-6)


@pytest.mark.parametrize("again_s", [1 / 60, 0.5, 3.0])
@pytest.mark.parametrize("bridge", ["hold", "linear", "predict"])
def test_rates_that_come_and_go_are_derived_of_each_frame_and_the_next(bridge, again_s):
    """Not of the frames before and after a while in which they are told: nobody feels when that is."""
    ticks = turned(bridge, lambda time: time < 2.0 or 0.0 <= time - 4.0 < again_s - 1e-9, 6.0 + again_s)
    rate = ticks["motion"]["yaw_rate"][ticks["deadline"] > START + 3_500_000_000]
    np.testing.assert_allclose(rate, TURNING, rtol=1e-5)
