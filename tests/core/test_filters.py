"""High-pass filters: equal to scipy's discrete design, exact at their design frequency, and bounded forever."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import sections
from same_bits import assert_same_bits
from scipy import signal

from motioncue.core.filters import HighPass
from motioncue.errors import ConfigError

RATES = [100.0, 250.0, 333.33, 1000.0]
ORDERS = [1, 2, 3]
DESIGNS = [  # cutoff [Hz], damping, break [Hz]
    (0.05, 1.0, 0.01),
    (0.4, 0.7, 0.04),
    (1.0, 1.0, 1.0),
    (7.0, 0.35, 0.5),
    (40.0, 2.0, 5.0),
]
EVERY = [pytest.mark.parametrize("order", ORDERS), pytest.mark.parametrize("rate", RATES)]


def every(test):
    for mark in (pytest.mark.grid, *EVERY, pytest.mark.parametrize("design", DESIGNS, ids=lambda d: f"{d[0]}Hz")):
        test = mark(test)
    return test


def make(order, rate, design):
    """Return the kernel and its parameters in rad/s."""
    cutoff, zeta, break_hz = design
    omega, omega_b = 2 * np.pi * cutoff, 2 * np.pi * break_hz
    kernel = HighPass(order, omega, zeta, omega_b if order == 3 else 0.0, dt=1.0 / rate)
    return kernel, omega, zeta, omega_b


def run(kernel, u):
    """Return output, first and second integral: shape (3, n)."""
    return np.array([kernel.step(x) for x in u.tolist()]).T


def bilinear(numerator, denominator, omega, rate):
    """Return scipy's bilinear transform, prewarped at `omega`, as the roots and gain of the discrete filter."""
    k = sections.half_tick(omega, 1.0 / rate)
    return signal.bilinear_zpk(*signal.tf2zpk(numerator, denominator), fs=1.0 / (2.0 * k))


def in_series(u, *filters):
    for zpk in filters:
        u = signal.sosfilt(signal.zpk2sos(*zpk), u)
    return u


def smooth_start(rng, n):
    """Return noise that is zero at first, so that rest before the first sample and rest at it are the same."""
    u = rng.normal(size=n)
    u[0] = 0.0
    return u


def settled(kernel, omega, rate, at):
    """Return the complex gain at `at` [rad/s], by summing the response to one pulse until it has decayed."""
    n = int(60.0 / omega * rate) + 400
    u = np.zeros(n)
    u[1] = 1.0
    y = run(kernel, u)[0]
    assert abs(y[-1]) < 1e-16
    return np.exp(-1j * np.outer(np.atleast_1d(at), np.arange(n) - 1) / rate) @ y


@every
def test_output_is_that_of_scipys_prewarped_bilinear_transform(rng, order, rate, design):
    kernel, omega, zeta, omega_b = make(order, rate, design)
    u = smooth_start(rng, 2000)
    outer = [bilinear([1, 0], [1, omega_b], omega_b, rate)] if order == 3 else []
    inner = ([1, 0], [1, omega]) if order == 1 else ([1, 0, 0], [1, 2 * zeta * omega, omega**2])
    expected = in_series(u, *outer, bilinear(*inner, omega, rate))
    assert run(kernel, u)[0] == pytest.approx(expected, rel=1e-9, abs=1e-10)


@every
def test_first_integral_is_that_of_scipys_filter_over_s(rng, order, rate, design):
    kernel, omega, zeta, omega_b = make(order, rate, design)
    u = smooth_start(rng, 2000)
    outer = [bilinear([1, 0], [1, omega_b], omega_b, rate)] if order == 3 else []
    inner = ([1], [1, omega]) if order == 1 else ([1, 0], [1, 2 * zeta * omega, omega**2])
    expected = in_series(u, *outer, bilinear(*inner, omega, rate))
    assert run(kernel, u)[1] == pytest.approx(expected, rel=1e-7, abs=1e-9 * np.abs(expected).max())


@every
def test_second_integral_is_that_of_scipys_filter_over_s_squared(rng, order, rate, design):
    kernel, omega, zeta, omega_b = make(order, rate, design)
    u = smooth_start(rng, 2000)
    outer = [bilinear([1, 0], [1, omega_b], omega_b, rate)] if order == 3 else []
    inner = ([1], [1, omega, 0]) if order == 1 else ([1], [1, 2 * zeta * omega, omega**2])
    expected = in_series(u, *outer, bilinear(*inner, omega, rate))
    assert run(kernel, u)[2] == pytest.approx(expected, rel=1e-7, abs=1e-9 * np.abs(expected).max())


@every
def test_everything_agrees_with_the_state_equations_from_rest_at_the_first_tick(rng, order, rate, design):
    kernel, omega, zeta, omega_b = make(order, rate, design)
    u = rng.normal(size=1500) + 3.0  # present at once, so that the start matters
    oracle = sections.HighPass(order, omega, zeta, omega_b, 1.0 / rate)
    expected = np.array([oracle.step(x) for x in u]).T
    for found, right in zip(run(kernel, u), expected, strict=True):
        assert found == pytest.approx(right, rel=1e-9, abs=1e-11 * np.abs(right).max())


@every
def test_the_first_sample_passes_whole_and_its_integrals_begin_at_zero(order, rate, design):
    y, v, x = make(order, rate, design)[0].step(2.5)
    assert y == pytest.approx(2.5, rel=1e-14)
    assert (v, x) == pytest.approx((0.0, 0.0), abs=1e-15)


@pytest.mark.grid
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("cutoff", [0.1, 1.0, 12.0, 0.45])
@pytest.mark.parametrize("zeta", [0.5, 1 / np.sqrt(2), 1.0])
def test_gain_of_second_order_at_its_natural_frequency_is_exact(rate, cutoff, zeta):
    omega = 2 * np.pi * (cutoff if cutoff != 0.45 else 0.45 * rate)  # also beside half the tick rate
    gain = settled(HighPass(2, omega, zeta, dt=1 / rate), omega * min(zeta, 1 / zeta), rate, omega)[0]
    assert gain == pytest.approx(1j / (2 * zeta), rel=1e-9)


@pytest.mark.grid
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("cutoff", [0.1, 1.0, 12.0, 0.45])
def test_gain_of_first_order_at_its_break_frequency_is_3_db_down(rate, cutoff):
    omega = 2 * np.pi * (cutoff if cutoff != 0.45 else 0.45 * rate)
    gain = settled(HighPass(1, omega, dt=1 / rate), omega, rate, omega)[0]
    assert abs(gain) == pytest.approx(1 / np.sqrt(2), rel=1e-9)
    assert np.angle(gain) == pytest.approx(np.pi / 4, abs=1e-9)


@pytest.mark.parametrize("rate", RATES)
def test_each_section_of_third_order_is_exact_at_its_own_frequency(rate):
    omega, omega_b, zeta = 2.5, 0.25, 0.8
    at = np.array([omega, omega_b])
    found = settled(HighPass(3, omega, zeta, omega_b, dt=1 / rate), omega_b, rate, at)
    # Prewarping one section moves the other by less than (w dt)^2 / 12.
    right = sections.gain(3, 1j * at, omega, zeta, omega_b)
    assert found == pytest.approx(right, rel=(omega / rate) ** 2 / 6)


@pytest.mark.grid
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rate", RATES)
def test_slope_below_the_cutoff_is_6_db_per_octave_and_order(order, rate):
    omega, zeta, omega_b = 40.0, 1.0, 30.0
    at = omega / np.array([64.0, 128.0])
    high, low = np.abs(settled(HighPass(order, omega, zeta, omega_b, dt=1 / rate), omega_b, rate, at))
    assert 20 * np.log10(high / low) == pytest.approx(order * 20 * np.log10(2), abs=0.02)


@pytest.mark.grid
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rate", RATES)
def test_high_frequencies_pass(order, rate):
    gain = settled(HighPass(order, 1.0, 1.0, 0.2, dt=1 / rate), 0.2, rate, np.pi * rate)[0]
    assert gain == pytest.approx(1.0, abs=1e-9)


@pytest.mark.grid
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("omega", [0.8, 4.0])
@pytest.mark.parametrize("zeta", [0.5, 1.0])
def test_a_step_moves_second_order_by_the_step_over_the_stiffness(rate, omega, zeta):
    kernel = HighPass(2, omega, zeta, dt=1 / rate)
    x = run(kernel, np.full(int(60 / omega * rate), 3.0))[2][-1]
    assert x == pytest.approx(3.0 / omega**2, rel=1e-9)


@pytest.mark.parametrize("rate", RATES)
def test_third_order_comes_back_from_a_step(rate):
    kernel = HighPass(3, 2.5, 1.0, 0.25, dt=1 / rate)
    _, v, x = run(kernel, np.full(int(60 / 0.25 * rate), 3.0))
    assert np.abs(x).max() > 0.1
    assert abs(x[-1]) < 1e-12
    assert abs(v[-1]) < 1e-12


@pytest.mark.parametrize("order", ORDERS)
def test_the_step_response_is_the_continuous_one_to_second_order_in_the_tick(order):
    omega, zeta, omega_b, end = 3.0, 0.9, 0.5, 4.0
    errors = []
    for rate in (50.0, 100.0, 200.0):
        n = int(end * rate) + 1
        found = run(HighPass(order, omega, zeta, omega_b, dt=1 / rate), np.ones(n))
        numerator, denominator = sections.polynomials(order, omega, zeta, omega_b)
        for row, extra in enumerate(([1.0], [1.0, 0.0], [1.0, 0.0, 0.0])):
            system = signal.TransferFunction(numerator, np.polymul(denominator, extra))
            right = signal.step(system, T=np.arange(n) / rate)[1]
            errors.append((row, rate, np.abs(found[row] - right).max()))
    for row in range(3):
        coarse, middle, fine = (error for r, _, error in errors if r == row)
        assert fine < 1e-4
        assert coarse / middle == pytest.approx(4.0, rel=0.15)
        assert middle / fine == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize("order", ORDERS)
def test_a_million_ticks_of_silence_do_not_grow(rng, order):
    omega = 0.63
    kernel = HighPass(order, omega, 0.7, 0.1, dt=0.003)
    _, v, x = np.abs(run(kernel, rng.normal(size=2000))[:, -1])
    room = x + v / omega  # a first-order section coasts this far; what stands still comes no further
    step = kernel.step
    for _ in range(1_000_000):
        y, v, x = step(0.0)
    assert abs(y) < 1e-100
    assert abs(v) < 1e-100
    if order == 1:
        assert abs(x) <= 1.01 * room
        assert step(0.0)[2] == x
    else:
        assert abs(x) < 1e-100


@pytest.mark.parametrize("order", ORDERS)
def test_reset_forgets_everything(rng, order):
    u = rng.normal(size=300)
    kernel = HighPass(order, 2.0, 0.7, 0.4, dt=0.01)
    first = run(kernel, u)
    kernel.reset()
    assert_same_bits(run(kernel, u), first)


def test_two_filters_do_not_know_each_other(rng):
    u = rng.normal(size=200)
    alone = run(HighPass(3, 2.0, 0.7, 0.4, dt=0.01), u)
    one, other = HighPass(3, 2.0, 0.7, 0.4, dt=0.01), HighPass(3, 2.0, 0.7, 0.4, dt=0.01)
    both = np.array([(one.step(x), other.step(-5.0 * x))[0] for x in u]).T
    assert_same_bits(both, alone)


@given(
    order=st.sampled_from(ORDERS),
    share=st.floats(1e-5, 0.99),
    share_b=st.floats(1e-5, 0.99),
    zeta=st.floats(0.05, 10.0),
    u=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200),
)
def test_any_allowed_design_is_stable_and_finite(order, share, share_b, zeta, u):
    top = np.pi * 333.33
    kernel = HighPass(order, share * top, zeta, share_b * top, dt=1 / 333.33)
    found = run(kernel, np.array(u))
    assert np.isfinite(found).all()
    # In continuous time the worst input gives 2 for a first-order section, at most 2 + 2/zeta for a second-order one.
    assert np.abs(found[0]).max() <= 2 * (2 + 2 / zeta) * max(map(abs, u)) + 1e-300


GOOD = {"order": 2, "omega": 1.0, "zeta": 1.0, "omega_b": 0.2, "dt": 0.003}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        *(({"order": order}, "order") for order in (0, 4, -1)),
        *(({"omega": omega}, "omega") for omega in (0.0, -1.0, np.nan, np.inf, np.pi / 0.003, 1e9)),
        *(({"order": 1, "omega": omega}, "omega") for omega in (0.0, np.nan)),
        *(({"order": order, "zeta": zeta}, "zeta") for order in (2, 3) for zeta in (0.0, -0.5, np.nan, np.inf, 101.0)),
        *(({"order": 3, "omega_b": omega}, "omega_b") for omega in (0.0, -1.0, np.nan, np.inf, np.pi / 0.003)),
        *(({"dt": dt}, "dt") for dt in (0.0, -0.003, np.nan, np.inf, 1.0)),
    ],
)
def test_a_bad_parameter_is_refused_by_name_with_what_was_found_and_allowed(change, name):
    with pytest.raises(ConfigError, match=rf"^{name}: found .*allowed"):
        HighPass(**{**GOOD, **change})


@pytest.mark.parametrize("change", [{"order": 1, "zeta": -1.0}, {"order": 2, "omega_b": -1.0}])
def test_a_parameter_that_an_order_does_not_have_is_not_looked_at(change):
    HighPass(**{**GOOD, **change}).step(1.0)
