"""The watch's quick tests: what they let pass, the whole tests would too, for any numbers."""

from itertools import pairwise
from math import inf, nan, sqrt

import numpy as np
import pytest

HOSTILE = np.array(
    [0.0, -0.0, 5e-324, -1e-310, 1e-160, 1e-9, 0.1, 1.0, -3.0, 14.9, 15.0, 15.1, -1e6, 1e160, inf, -inf, nan]
)
LIMITS = (1e-9, 0.1, 1.0, 3.0, 15.0, 1e18)
DT, DOUBT = 0.01, 0.001


def distance(a, b):
    x, y, z = (float(p) - float(q) for p, q in zip(a, b, strict=True))
    return sqrt(x * x + y * y + z * z)


def supports(change, before, now):
    """Whether what is shown is at least a quarter of the step's integral, give or take the doubt."""
    steps = [float(n) - float(b) for n, b in zip(now, before, strict=True)]
    shown = least = 0.0
    for c, b, step in zip(change, before, steps, strict=True):
        shown += float(c) * step
        least += (float(b) + 0.25 * step) * step
    return shown >= least * DT - abs(least) * DOUBT


def judge(claims, changes, limit, evident):
    """Judge each claim by the rule as its docstring has it, always with both distances."""
    followed = newest = claims[0]
    held = unclear = False
    waited = value = 0.0
    for i in range(1, len(claims)):
        now, change, whole = claims[i], changes[i], i % 5 != 0
        size = distance(now, followed)
        repeated = distance(now, newest) <= limit
        certain = whole and not unclear
        spike = held and size <= limit and certain and evident and not supports(change, now, newest)
        newest = now
        if size > limit and not (supports(change, followed, now) if evident else repeated):
            held, unclear, waited, spike = True, not whole, waited + DT, False
            value = value if value > size else size
        else:
            followed, held, waited = now, False, 0.0
            value = value if spike else 0.0
        yield spike, held, followed, waited, value


def claims_of(rng, limit, n):
    """Numbers around a limit, a third of the rows hostile, and rows that repeat."""
    rows = limit * rng.choice([0.1, 0.5773502691896258, 1.0, 3.0], (n, 1)) * rng.normal(0.0, 1.0, (n, 3)).round(1)
    hostile = rng.random(n) < 0.3
    rows[hostile] = rng.choice(HOSTILE, (hostile.sum(), 3))
    repeats = np.flatnonzero(rng.random(n - 1) < 0.3) + 1
    rows[repeats] = rows[repeats - 1]
    return rows


@pytest.mark.check
@pytest.mark.parametrize("evident", [True, False])
@pytest.mark.parametrize("limit", LIMITS)
def test_a_claim_is_judged_as_by_the_whole_test(probe, rng, limit, evident):
    for _ in range(30):
        claims = claims_of(rng, limit, 60)
        changes = DT * claims_of(rng, limit, 60)
        found = probe.judged(claims, changes, limit, evident)
        assert {each[1] for each in found} == {0, 1}  # both kinds are among them
        for i, (one, other) in enumerate(zip(found, judge(claims, changes, limit, evident), strict=True)):
            assert [bool(one[0]), bool(one[1])] == [bool(other[0]), bool(other[1])], i
            np.testing.assert_array_equal(one[2], other[2])
            np.testing.assert_array_equal(one[3:], other[3:])


@pytest.mark.parametrize("before", [True, False])
def test_sums_contradict_each_other_where_their_difference_is_beyond_the_limit(probe, rng, before):
    counts = [0, 0]
    for i in range(6000):
        noise = float(rng.choice([*LIMITS, nan, inf]))
        shown, claimed = claims_of(rng, min(noise, 1e6) if noise == noise else 1.0, 2)
        coarse, peak = (float(x) for x in rng.choice([0.0, 0.0, 0.5, 1.0, -1.0, -30.0, inf, nan], 2))
        found, limit = probe.contradicts(shown, claimed, coarse, peak, noise, before)
        assert found == (distance(shown, claimed) > (0.5 * limit if before else limit)), i
        counts[found] += 1
    assert min(counts) > 300


def test_distances_at_a_limit_are_on_the_same_side_of_it_squared_and_not(probe, rng):
    for limit in 10.0 ** rng.uniform(-6.0, 6.0, 2000):
        way = rng.normal(0.0, 1.0, 3)
        rows = np.array([[0.0, 0.0, 0.0], way * (limit / np.linalg.norm(way))])
        for row in (rows[1], np.nextafter(rows[1], 0.0), np.nextafter(rows[1], 2.0 * rows[1])):
            rows[1] = row
            ((_, held, *_),) = probe.judged(rows, np.zeros((2, 3)), limit, False)
            assert bool(held) == any(distance(a, b) > limit for a, b in pairwise(rows))
