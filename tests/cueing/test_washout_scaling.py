"""Non-linear scaling of the classical washout: a third-order polynomial in place of a gain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from test_washout import motion_of, profile

import motioncue
from motioncue import ConfigError
from motioncue.core.channels import CUE_DTYPE
from motioncue.engine.batch import Batch

RATE_HZ = 333.0


def scaled(channel, values, *overrides):
    """Return what a high-pass is given: its output at the first tick, at which it passes everything."""
    algorithm = motioncue.cueing.design(profile("simona", *overrides).cueing, RATE_HZ)
    out, cue = [], np.zeros(1, CUE_DTYPE)
    for value in values:
        algorithm.reset()
        algorithm.step(motion_of(1, **{channel: value}), cue)
        out.append(cue[channel][0])
    return np.array(out)


def shape(axis, key, largest, share, slope, gain=1.0):
    table = f"cueing.{axis}.scaling"
    return f"cueing.{axis}.gain={gain}", f"{table}.{key}={largest}", f"{table}.share={share}", f"{table}.slope={slope}"


@pytest.mark.parametrize(
    ("share", "slope", "gain"), [(0.4, 0.0, 1.0), (0.6, 0.3, 0.5), (1.0, 1.0, -2.0), (1 / 3, 0.0, 1.0)]
)
def test_the_polynomial_has_the_given_values_and_slopes(share, slope, gain):
    largest, step = 8.0, 1e-5
    at = [0.0, step, largest - step, largest, largest + 1.0, -largest, -step]
    zero, small, before, end, beyond, negative, small_negative = scaled(
        "surge", at, *shape("surge", "largest_m_s2", largest, share, slope, gain)
    )
    assert zero == 0.0
    assert small / step == pytest.approx(gain, rel=1e-4)
    assert end == pytest.approx(gain * share * largest, rel=1e-12)
    assert (end - before) / step == pytest.approx(gain * slope, abs=1e-4)
    assert (beyond, negative, small_negative) == (end, -end, -small)


def test_a_rate_is_scaled_likewise():
    largest = np.radians(90.0)
    values = np.linspace(-2.0, 2.0, 41)
    found = scaled("yaw_rate", values, *shape("yaw", "largest_deg_s", 90, 0.5, 0.1, 0.8))
    conditions = [[largest, largest**2, largest**3], [1, 0, 0], [1, 2 * largest, 3 * largest**2]]
    c = np.linalg.solve(conditions, [0.8 * 0.5 * largest, 0.8, 0.8 * 0.1])
    size = np.minimum(np.abs(values), largest)
    assert found == pytest.approx(np.sign(values) * (c[0] * size + c[1] * size**2 + c[2] * size**3), abs=1e-12)


def test_tilt_has_the_same_shape_with_its_own_gain():
    """At the largest input: share times the tilt's gain."""
    keys = (*shape("sway", "largest_m_s2", 6.0, 0.5, 0.0, 0.2), "cueing.tilt.sway_gain=0.7")
    cue = motioncue.cue(profile("simona", *keys), motion_of(10_000, sway=6.0))
    assert np.sin(cue["roll"][-1]) == pytest.approx(-0.7 * 0.5 * 6.0 / 9.80665, rel=1e-3)


def test_limit_is_that_of_the_scaled_input():
    found = scaled("heave", [0.1, 20.0], *shape("heave", "largest_m_s2", 10.0, 0.5, 0.0), "cueing.heave.limit_m_s2=2")
    assert found == pytest.approx([0.1, 2.0], rel=0.02)


def monotone(share, slope):
    """Say whether y' is nowhere below 0, by looking at it in many places."""
    c = np.linalg.solve([[1, 1], [2, 3]], [share - 1, slope - 1])
    z = np.linspace(0, 1, 4001)
    return (1 + 2 * c[0] * z + 3 * c[1] * z**2).min() >= -1e-7


@pytest.mark.search
@settings(max_examples=60)
@given(share=st.floats(0.05, 1.0), slope=st.floats(0.0, 1.0))
def test_exactly_the_shapes_that_are_not_monotone_are_refused(share, slope):
    keys = shape("surge", "largest_m_s2", 5.0, share, slope)
    if not monotone(share, slope):
        with pytest.raises(ConfigError, match=r"cueing\.surge\.scaling\.share: found .* allowed with the slope"):
            scaled("surge", [1.0], *keys)
        return
    try:
        found = scaled("surge", np.linspace(-6.0, 6.0, 61), *keys)
    except ConfigError:  # within rounding of the boundary
        assert not monotone(share - 1e-6, slope)
        return
    assert np.diff(found).min() >= -1e-12


def test_linear_rigs_beside_a_curved_one_keep_their_bits(rng):
    """In lanes the polynomial is worked out for all of them."""
    drives = [motion_of(50, surge=rng.normal(size=50), yaw_rate=rng.normal(size=50)) for _ in range(3)]
    motion = np.stack(drives, axis=1)
    kinds = [profile("simona").cueing, profile("simona", *shape("surge", "largest_m_s2", 1.0, 0.4, 0.0)).cueing]
    rigs = [motioncue.cueing.design(kinds[i % 2], RATE_HZ) for i in range(3)]
    together = Batch(rigs).process(motion)
    for i in range(3):
        alone = motioncue.cueing.design(kinds[i % 2], RATE_HZ).process(np.ascontiguousarray(motion[:, i]))
        assert_same_bits(np.ascontiguousarray(together[:, i]), alone)
