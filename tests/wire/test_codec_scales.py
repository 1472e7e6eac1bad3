"""A number that is sent is divided by its scale, to the last bit, whichever way that is computed."""

from math import inf

import numpy as np
import pytest

from motioncue.wire.codec import Number, Table

VALUES = [
    *(0.0, -0.0, 1.0, -3.7, 0.1, 1e-300, -2.2250738585072014e-308, 2.225e-308, 5e-324, -1e-310),
    *(1e300, 1.7976931348623157e308, -inf, inf),
]


@pytest.mark.parametrize(
    "scale",
    [1.0, -1.0, 2.0, 0.5, -0.25, 2.0**31, 2.0**-1000, 2.0**1000, 2.0**1023, 2.0**-1074, 0.1, 3.0, 180.0 / np.pi, 1e300],
)
def test_a_number_is_divided_by_its_scale_to_the_last_bit(probe, rng, scale):
    values = np.concatenate([VALUES, rng.normal(0.0, 1.0, 40) * 10.0 ** rng.integers(-307, 307, 40)])
    table = Table(8 * len(values), [Number(8 * i, "<f8", i, scale) for i in range(len(values))])
    packet = bytearray(8 * len(values))
    probe.encoded(table, values, packet)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.frombuffer(packet, np.int64), (values / scale + -0.0).view(np.int64))
