"""Wheels of a source whose rates are derived: these begin at zero and settle, and wheels have no part in it."""

import numpy as np
import pytest
from test_chassis_channels import FIELDS, START, Drive, profile_of

from motioncue.core.channels import WHEELS

WHEEL = f"suspension_{WHEELS[0]}"
RATES = ("roll_rate", "pitch_rate", "yaw_rate")


def steady(fields, rate_hz, lost):
    """Return ticks' times [s] and how far a wheel that moves steadily is behind then [s]; frames `lost` do not come."""
    taken = np.delete(np.arange(5 * rate_hz) / rate_hz, lost)
    car = Drive(profile_of(fields=fields))
    car.deliver(taken, taken, lambda time: {WHEEL: 0.03 * time})
    car.close()
    whole = car.ticks["weight"] == 1.0
    time = (car.ticks["deadline"][whole] - START) * 1e-9
    return time, time - car.sent[WHEEL][whole] / 0.03


@pytest.mark.parametrize("rate_hz", [60, 120])
@pytest.mark.parametrize("lost", [[], range(160, 170)], ids=["all come", "ten are lost"])
def test_a_wheel_is_no_later_where_rates_are_derived_than_where_they_are_told(rate_hz, lost):
    derived = [field for field in FIELDS if field["channel"] not in RATES]
    time, told = steady(FIELDS, rate_hz, lost)
    same_time, behind = steady(derived, rate_hz, lost)
    np.testing.assert_array_equal(same_time, time)
    np.testing.assert_allclose(behind, told, atol=1e-9)
    # One frame, the longest wait of all, and a tick.
    assert behind.max() < (2 + len(lost)) / rate_hz + 0.003
