"""The kernels' own sines and angles, against two hundred bits: errors in units of the last place of the exact value."""

import itertools
import math
import subprocess

import mpmath
import numpy as np
import pytest
from helpers import LINUX_PROGRAMS, compiled
from mpmath import mp, mpf
from same_bits import assert_same_bits

# Largest errors found in 36 million random arguments: sine 0.78, cosine 0.78, arc sine 0.86, angle 0.83.
ALLOWED = 0.9  # [ulp]
TINY, LARGEST = 5e-324, math.nextafter(math.inf, 0.0)


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workprec(200):
        yield


def around(values, steps=2):
    """Return values, as many neighbors on both sides, and all of them negative."""
    near = [np.asarray(values, float)]
    for _ in range(steps):
        near = [np.nextafter(near[0], -np.inf), *near, np.nextafter(near[-1], np.inf)]
    both = np.concatenate(near)
    return np.concatenate([both, -both])


def worst_error(found, exact):
    """Return the largest difference in units in the last place of `exact`; zeros must be zeros."""
    worst = 0.0
    for value, right in zip(found.tolist(), exact, strict=True):
        if right == 0:
            assert value == 0.0
            continue
        ulp = max(mpf(2) ** (mpmath.frexp(right)[1] - 53), mpf(TINY))
        worst = max(worst, float(abs(mpf(value) - right) / ulp))
    return worst


def nearest_to_quarters(count, top):
    """Return the doubles below `top` that are nearest to whole multiples of half pi, relative to their size."""
    scale = 180
    half_pi = int(mpmath.floor(mp.pi / 2 * mpf(2) ** scale))
    found = []
    for k in range(1, int(top / (math.pi / 2))):
        exact = k * half_pi
        unit = 1 << (exact.bit_length() - 53)
        rest = exact % unit
        found.append((min(rest, unit - rest) / unit, k))
    return np.array([float(k * mp.pi / 2) for _, k in sorted(found)[:count]])


def sines(probe, x):
    sine, cosine = np.empty_like(x), np.empty_like(x)
    probe.sines(x, sine, cosine)
    return sine, cosine


def arc_sines(probe, x):
    out = np.empty_like(x)
    probe.arc_sines(x, out)
    return out


def angles(probe, y, x):
    out = np.empty_like(x)
    probe.angles(y, x, out)
    return out


# ---- sine and cosine -------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "within a quarter of pi": lambda rng: np.linspace(-0.79, 0.79, 4001),
    "within a few turns": lambda rng: rng.uniform(-10, 10, 4000),
    "up to a million": lambda rng: rng.uniform(-1e6, 1e6, 4000),
    "of any size": lambda rng: rng.choice([-1, 1], 4000) * 2.0 ** rng.uniform(-1074, 1024, 4000),
    "at multiples of an eighth of a turn": lambda rng: around(np.arange(1, 400) * math.pi / 4),
    "nearest to multiples of half pi": lambda rng: around(nearest_to_quarters(300, 1e6), 1),
    "where the C library takes over": lambda rng: around([1e6, 2.0**20, 2.0**20 * math.pi / 2, 1e22, LARGEST / 2], 1),
    "known to be hard": lambda rng: np.array([6381956970095103.0 * 2.0**797, 2.0**1023, LARGEST, -LARGEST]),
    "hardly numbers": lambda rng: around([3e-324, 1e-310, 2.3e-308, 1e-160, 1e-8, 2.0**-27]),
}


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_sine_and_cosine_are_within_one_ulp(probe, rng, kind):
    x = ARGUMENTS[kind](rng)
    sine, cosine = sines(probe, x)
    with mp.workprec(1400):  # to reduce the largest double
        exact = [(mpmath.sin(value), mpmath.cos(value)) for value in map(mpf, x.tolist())]
    assert worst_error(sine, [right for right, _ in exact]) < ALLOWED
    assert worst_error(cosine, [right for _, right in exact]) < ALLOWED


def test_sine_keeps_the_sign_of_zero_and_of_the_smallest(probe):
    x = np.array([0.0, -0.0, TINY, -TINY, 1e-300, -1e-300])
    sine, cosine = sines(probe, x)
    assert_same_bits(sine, x)
    assert np.all(cosine == 1.0)


def test_sine_of_nan_or_infinity_is_nan(probe):
    sine, cosine = sines(probe, np.array([np.inf, -np.inf, np.nan]))
    assert np.isnan(sine).all()
    assert np.isnan(cosine).all()


def test_sines_are_odd_cosines_even_and_neither_exceeds_one(probe, rng):
    x = np.concatenate([rng.uniform(0, 100, 100_000), around(np.arange(1, 1000) * math.pi / 2)])
    (sine, cosine), (back, same) = sines(probe, x), sines(probe, -x)
    assert (-sine).tobytes() == back.tobytes()
    assert_same_bits(cosine, same)
    assert np.abs(sine).max() == np.abs(cosine).max() == 1.0
    np.testing.assert_allclose(sine**2 + cosine**2, 1.0, rtol=0, atol=5e-16)


# ---- arc sine --------------------------------------------------------------------------------------------------------

SINES = {
    "everywhere": lambda rng: np.linspace(-1, 1, 8001),
    "near one": lambda rng: 1.0 - 10.0 ** rng.uniform(-16, -1, 3000),
    "near one half": lambda rng: np.concatenate([around([0.5], 50), rng.uniform(0.49, 0.51, 3000)]),
    "of any size": lambda rng: 2.0 ** rng.uniform(-1074, 0, 3000),
    "edges": lambda rng: around([0.25, 0.5, math.sqrt(0.5), 2.3e-308, TINY]),
}


@pytest.mark.parametrize("kind", SINES)
def test_arc_sine_is_within_one_ulp(probe, rng, kind):
    x = SINES[kind](rng)
    assert worst_error(arc_sines(probe, x), [mpmath.asin(value) for value in map(mpf, x.tolist())]) < ALLOWED


def test_arc_sine_at_its_ends_at_zero_and_beyond(probe):
    x = np.array([1.0, -1.0, 0.0, -0.0])
    assert_same_bits(arc_sines(probe, x), np.array([math.pi / 2, -math.pi / 2, 0.0, -0.0]))
    assert np.isnan(arc_sines(probe, np.array([np.nextafter(1, 2), -1.5, 2.0, np.inf, -np.inf, np.nan]))).all()


# ---- the angle of a vector -------------------------------------------------------------------------------------------


def sides(rng, n):
    return rng.choice([-1.0, 1.0], n)


VECTORS = {
    "everywhere": lambda rng: rng.uniform(-1, 1, (2, 6000)),
    "of any size": lambda rng: sides(rng, (2, 4000)) * 2.0 ** rng.uniform(-1074, 1024, (2, 4000)),
    "of sizes that are not far apart": lambda rng: (
        sides(rng, (2, 4000)) * 2.0 ** (rng.uniform(-1070, 1020, 4000) + rng.uniform(0, 4, (2, 4000)))
    ),
    "of the smallest numbers": lambda rng: rng.integers(-50, 51, (2, 2000)) * TINY,
    "near the diagonals": lambda rng: sides(rng, (2, 2000)) * (1.0 + 1e-15 * rng.integers(0, 60, (2, 2000))),
    "near one half and one quarter": lambda rng: (
        sides(rng, (2, 4000))
        * np.array([np.ones(4000), rng.choice([0.25, 0.2553, 0.5], 4000) * (1.0 + rng.uniform(-1e-3, 1e-3, 4000))])[
            rng.permutation(2)
        ]
    ),
}


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.check
def test_angle_is_within_one_ulp(probe, rng, kind):
    y, x = np.ascontiguousarray(VECTORS[kind](rng))
    exact = [mpmath.atan2(*pair) for pair in zip(map(mpf, y.tolist()), map(mpf, x.tolist()), strict=True)]
    assert worst_error(angles(probe, y, x), exact) < ALLOWED


def test_angle_at_zeros_infinities_and_axes_is_that_of_the_standard(probe):
    # C99, annex F.9.1.4; Python's math follows it.
    values = [0.0, -0.0, 1.0, -1.0, TINY, -TINY, LARGEST, -LARGEST, math.inf, -math.inf, math.nan, 0.5, 2.3e-308]
    y, x = np.array(list(itertools.product(values, repeat=2))).T.copy()
    found = angles(probe, y, x)
    right = np.array([math.atan2(*pair) for pair in zip(y, x, strict=True)])
    np.testing.assert_allclose(found, right, rtol=2.3e-16, atol=0)
    numbers = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(right[numbers]))


@LINUX_PROGRAMS
def test_no_angle_needs_undefined_behavior(tmp_path):
    program = compiled(tmp_path, "turns", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "as the C library\n", "")


def test_two_at_a_time_have_the_bits_of_each_alone(probe, rng):
    """Whichever of the two is small, large, farther than a million turns, or no number."""
    kinds = [0.0, -0.0, 0.3, -0.6, 0.5, 1.0, -1.5, 3.0, 1e4, 2e7, 1e300, 1e-310, math.inf, math.nan]
    x = np.concatenate([list(itertools.product(kinds, kinds)), rng.uniform(-2.0, 2.0, (2000, 2))])
    out = np.empty((3, *x.shape))
    probe.by_twos(x, out)
    alone = [*sines(probe, x.ravel()), arc_sines(probe, x.ravel())]
    for found, single in zip(out, alone, strict=True):
        assert_same_bits(found.ravel(), single)
