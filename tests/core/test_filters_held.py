"""Filters whose input is held from one tick to the next: SciPy's zero-order hold, and the continuous step response."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import sections
from scipy import signal
from test_filters import DESIGNS, RATES, run, settled
from test_washout import measured_gain, motion_of, profile, rough_drive

import motioncue
from motioncue.core.filters import HighPass, held_response
from motioncue.recording.recording import at_ticks, read_motion, sample_recording
from motioncue.scoring import transfer_function

every = pytest.mark.parametrize("design", DESIGNS, ids=lambda d: f"{d[0]}Hz")
rates = pytest.mark.parametrize("rate", RATES)


def made(order, rate, design):
    cutoff, zeta, break_hz = design
    omega, omega_b = 2 * np.pi * cutoff, 2 * np.pi * break_hz
    kernel = HighPass(order, omega, zeta, omega_b if order == 3 else 0.0, dt=1.0 / rate, hold=True)
    return kernel, omega, zeta, omega_b


def discrete(section, u, rate):
    """Return the outputs of a section that SciPy has made discrete, shape (outputs, n)."""
    a, b = np.atleast_2d(section.a), np.reshape(section.b, (-1, 1))
    c, d = np.atleast_2d(section.c), np.reshape(section.d, (-1, 1))
    phi, gamma, c, d, _ = signal.cont2discrete((a, b, c, d), 1.0 / rate, method="zoh")
    x, rows = np.zeros(len(a)), []
    for value in u:
        rows.append(c @ x + d[:, 0] * value)
        x = phi @ x + gamma[:, 0] * value
    return np.array(rows).T


@pytest.mark.grid
@every
@rates
@pytest.mark.parametrize("order", [1, 2, 3])
def test_output_and_integrals_are_those_of_scipys_zero_order_hold(rng, order, rate, design):
    kernel, omega, zeta, omega_b = made(order, rate, design)
    u = rng.normal(size=1500) + 1.0
    inner = discrete(sections.high_pass_1(omega_b), u, rate)[0] if order == 3 else u
    section = sections.high_pass_1_integrated(omega) if order == 1 else sections.high_pass_2(omega, zeta)
    for found, right in zip(run(kernel, u), discrete(section, inner, rate), strict=True):
        assert found == pytest.approx(right, rel=1e-12, abs=1e-12 * np.abs(right).max())


@pytest.mark.grid
@every
@rates
def test_the_step_response_is_the_continuous_one_at_every_tick(rate, design):
    """x'' = 1 - 2 z w x' - w^2 x from rest, solved by its two exponentials."""
    kernel, omega, zeta, _ = made(2, rate, design)
    t = np.arange(2000) / rate
    split = np.sqrt(complex(zeta**2 - 1 + (1e-9 if zeta == 1.0 else 0.0)))  # double roots: beside each other
    one, two = omega * (-zeta + split), omega * (-zeta - split)
    x = (1 + (two * np.exp(one * t) - one * np.exp(two * t)) / (one - two)).real / omega**2
    v = ((np.exp(one * t) - np.exp(two * t)) / (one - two)).real
    a = ((one * np.exp(one * t) - two * np.exp(two * t)) / (one - two)).real
    close = 1e-4 if zeta == 1.0 else 1e-11
    for found, right in zip(run(kernel, np.ones(2000)), (a, v, x), strict=True):
        assert found == pytest.approx(right, abs=close * np.abs(right).max())


@rates
@pytest.mark.parametrize("zeta_is_1", [False, True])
def test_first_order_and_equal_roots_have_the_continuous_step_response(rate, zeta_is_1):
    omega, t = 3.0, np.arange(3000) / rate
    decay = np.exp(-omega * t)
    if zeta_is_1:
        rows = (1 - omega * t) * decay, t * decay, (1 - (1 + omega * t) * decay) / omega**2
    else:
        rows = decay, (1 - decay) / omega, (t - (1 - decay) / omega) / omega
    kernel = HighPass(2 if zeta_is_1 else 1, omega, dt=1 / rate, hold=True)
    for found, right in zip(run(kernel, np.ones(len(t))), rows, strict=True):
        assert found == pytest.approx(right, abs=1e-12 * np.abs(right).max())


@pytest.mark.grid
@rates
@pytest.mark.parametrize("cutoff", [0.1, 1.0, 12.0])
def test_gain_at_the_break_frequency_is_that_of_sampled_data(rate, cutoff):
    """(z - 1) / (z - exp(-w dt)) at z = exp(i w dt): 3 dB down times 1 + w dt/2 + ...; the bilinear one is exact."""
    omega = 2 * np.pi * cutoff
    angle = omega / rate
    gain = settled(HighPass(1, omega, dt=1 / rate, hold=True), omega, rate, omega)[0]
    z = np.exp(1j * angle)
    assert gain == pytest.approx((z - 1) / (z - np.exp(-angle)), rel=1e-9)
    assert abs(gain) * np.sqrt(2) == pytest.approx(1 + angle / 2, abs=angle**2)


@given(st.floats(1e-6, 1e3), st.floats(0.0, 100.0), st.floats(1e-4, 0.02))
def test_a_tick_of_any_section_is_two_of_half_its_length(omega, zeta, dt):
    damping, stiffness = 2 * zeta * omega, omega**2
    h, x = held_response(damping, stiffness, dt / 2)
    a = 1 - damping * h - stiffness * x
    twice = h + h * a - stiffness * x * h, x + x * a + (h + damping * x) * h
    assert held_response(damping, stiffness, dt) == pytest.approx(twice, rel=1e-12, abs=1e-16)
    assert held_response(damping, 0.0, dt)[1] > 0.0


# ---- in the washout --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "channel"), [("simona", "surge"), ("utias", "sway"), ("utias", "yaw_rate")])
@pytest.mark.parametrize("omega", [0.4, 2.0, 12.0])
def test_theory_of_sampled_data_is_what_the_kernel_does(preset, channel, omega):
    settings = profile(preset, "cueing.filters=hold")
    found = measured_gain(settings, channel, omega, amplitude=1e-3)
    right = transfer_function(settings, channel, channel, [omega])[0]
    assert found == pytest.approx(right, rel=5e-5)
    continuous = transfer_function(profile(preset), channel, channel, [omega])[0]
    assert abs(right - continuous) > 1e-4 * abs(right)


def test_a_drive_moves_the_platform_by_as_much_differently_as_another_program_says():
    """An independent washout with such filters differs from the bilinear one by 0.0006 m and 0.00026 rad."""
    drive = at_ticks(read_motion(sample_recording()), 333.33)
    one, two = (motioncue.cue(profile("simona", *more), drive) for more in ((), ("cueing.filters=hold",)))
    apart = {name: np.abs(one[name] - two[name]).max() for name in ("surge_displacement", "pitch")}
    assert 0.0006 / 2 < apart["surge_displacement"] < 0.0006 * 2
    assert 0.00026 / 2 < apart["pitch"] < 0.00026 * 2
    speed = np.abs(np.diff(one["surge_displacement"])).max()
    assert apart["surge_displacement"] < speed  # half a tick later, and another second order


@pytest.mark.parametrize("axis", [("order=1", "cutoff_hz=0.02"), ("cutoff_hz=0.2", "damping=0.7"), ("cutoff_hz=100",)])
def test_a_bounded_angle_stays_within_its_limit(rng, axis):
    keys = [f"cueing.yaw.{each}" for each in (*axis, "gain=2", "angle_limit_deg=5")]
    motion = motion_of(6000, yaw_rate=np.repeat(rng.normal(size=60), 100) * 100.0)
    yaw = motioncue.cue(profile("simona", "cueing.filters=hold", *keys), motion)["yaw"]
    assert np.abs(yaw).max() <= np.radians(5) * (1 + 1e-12)
    assert np.abs(yaw).max() > np.radians(5) * (0.9 if "cutoff_hz=100" not in axis else 1e-3)


def test_a_bound_that_is_far_away_changes_nothing(rng):
    motion = rough_drive(rng, 1500)
    plain, bound = (
        motioncue.cue(profile("utias", "cueing.filters=hold", *more), motion)
        for more in ((), ("cueing.yaw.angle_limit_deg=1e7",))
    )
    assert bound["yaw"] == pytest.approx(plain["yaw"], abs=1e-9)


def test_rest_stays_rest_and_the_first_tick_starts_from_it(rng):
    settings = profile("utias", "cueing.filters=hold", "cueing.texture.roll_gain=1")
    cue = motioncue.cue(settings, motion_of(500))
    for name in cue.dtype.names[:12]:
        assert np.all(cue[name] == 0.0), name
    first = motioncue.cue(settings, rough_drive(rng, 400)[300:])[0]
    for name in ("roll", "pitch", "yaw", "surge_displacement", "sway_displacement", "heave_displacement"):
        assert first[name] == 0.0
