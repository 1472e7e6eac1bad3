"""The histogram of latenesses: quantiles within a bin, at every size of number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.core.threads import quantiles

# Sums of powers of two: a level times a count is exact.
LEVELS = [0.0625, 0.25, 0.5, 0.75, 0.9375, 0.9990234375, 1.0]
DAYS = 6 * 24 * 3600 * 10**9  # [ns], the width of the histogram


def exact(values, level):
    """Return the smallest value that a share `level` of all values does not exceed."""
    ordered = np.sort(values)
    return int(ordered[max(0, int(np.ceil(level * len(values))) - 1)])


@given(st.lists(st.integers(0, DAYS), min_size=1, max_size=300))
def test_quantiles_are_at_most_a_64th_above_the_exact_ones(values):
    values = np.array(values, dtype=np.int64)
    for level, found in zip(LEVELS, quantiles(values, LEVELS), strict=True):
        right = exact(values, level)
        assert right <= found <= right * (1 + 1 / 64)


def test_values_below_128_are_exact(rng):
    values = rng.integers(0, 128, 1000)
    assert quantiles(values, LEVELS) == [exact(values, level) for level in LEVELS]


@pytest.mark.parametrize("shape", ["exponential", "lognormal", "two_peaks"])
def test_lateness_like_distributions_agree_with_numpy(rng, shape):
    n = 20_001
    draws = {
        "exponential": rng.exponential(5e4, n),
        "lognormal": rng.lognormal(10, 2, n),
        "two_peaks": np.where(rng.random(n) < 0.999, rng.normal(5e4, 1e3, n), rng.normal(5e6, 1e5, n)),
    }
    values = np.maximum(draws[shape], 0).astype(np.int64)
    levels = [0.5, 0.99, 0.999, 1.0]
    right = np.quantile(values, levels, method="inverted_cdf")
    found = np.array(quantiles(values, levels))
    assert np.all(found >= right)
    assert np.all(found <= right * (1 + 1 / 64))


@given(st.lists(st.integers(0, DAYS), min_size=1, max_size=50))
def test_the_largest_value_is_exact(values):
    assert quantiles(np.array(values, dtype=np.int64), [1.0]) == [max(values)]


def test_quantiles_rise_with_their_level(rng):
    values = rng.integers(0, 10**9, 999)
    found = quantiles(values, list(np.linspace(0.001, 1.0, 200)))
    assert found == sorted(found)


def test_an_empty_histogram_gives_zero():
    assert quantiles(np.zeros(0, np.int64), [0.0, 0.5, 1.0]) == [0, 0, 0]


def test_what_is_early_counts_as_not_late():
    assert quantiles(np.array([-5, -1000, -(2**62), 0]), [0.5, 1.0]) == [0, 0]


def test_what_is_later_than_the_last_bin_is_counted_there():
    assert quantiles(np.array([1, 2, 2**62]), [0.5, 1.0]) == [2, 2**49 - 1]


@pytest.mark.check
def test_bins_never_go_down_and_leave_none_out(probe):
    values = np.arange(0, 1 << 15)
    steps = np.diff(probe.bins(values))
    assert set(steps.tolist()) == {0, 1}
    assert set(probe.bins(np.array([-1, -1000, -(2**40)]))) == {0}  # none in front of the first
