"""Road noise and engine vibration: the band that goes round the classical washout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from test_tuning import steps
from test_washout import PERIOD, body_rates, measured_gain, motion_of, profile, turned

import motioncue

ALONE = tuple(f"cueing.{axis}.gain=0" for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw"))


def textured(*overrides):
    """Return a profile that sends the texture of all four axes and nothing else."""
    gains = (f"cueing.texture.{axis}_gain=1" for axis in ("sway", "heave", "roll", "pitch"))
    return profile("simona", *ALONE, *gains, "cueing.texture.limit_m=1", "cueing.texture.limit_deg=45", *overrides)


@pytest.mark.parametrize("channel", ["sway", "heave", "roll_rate", "pitch_rate"])
@pytest.mark.parametrize("cutoff_hz", [3.0, 6.0])
def test_the_band_is_a_butterworth_filter_of_third_order(channel, cutoff_hz):
    """|T|^2 = 1 / (1 + (w_c / w)^6)."""
    found = textured(f"cueing.texture.cutoff_hz={cutoff_hz}")
    for share in (0.25, 1.0, 2.0, 4.0):
        gain = measured_gain(found, channel, 2.0 * np.pi * cutoff_hz * share, amplitude=0.01, settle_s=5.0)
        warped = 0.01 if share > 1.0 else 1e-3  # the bilinear transform is exact at the cutoff frequency only
        assert abs(gain) == pytest.approx(1.0 / np.sqrt(1.0 + share**-6.0), abs=warped)


@pytest.mark.parametrize(("channel", "moves"), [("sway", "sway_displacement"), ("heave", "heave_displacement")])
def test_an_acceleration_becomes_its_own_displacement(channel, moves):
    """Far above the cutoff frequency: -a / w^2, for a sine of 10 Hz."""
    n, omega = 6000, 2.0 * np.pi * 10.0
    wave = np.sin(omega * PERIOD * np.arange(n))
    cue = motioncue.cue(textured("cueing.texture.cutoff_hz=0.5"), motion_of(n, **{channel: 2.0 * wave}))
    end = slice(-3000, None)
    assert cue[moves][end] == pytest.approx(-2.0 * wave[end] / omega**2, abs=0.15 * 2.0 / omega**2)
    assert cue[channel][end] == pytest.approx(2.0 * wave[end], abs=0.3)


def test_it_is_added_to_what_the_washout_does(rng):
    """Heave and sway move the platform without turning it, so both are sums."""
    motion = motion_of(2000, heave=rng.normal(size=2000), sway=rng.normal(size=2000))
    plain, both = (motioncue.cue(profile("simona", *more), motion) for more in ((), ("cueing.texture.sway_gain=0.6",)))
    alone = motioncue.cue(profile("simona", *ALONE, "cueing.texture.sway_gain=0.6"), motion)
    for name in ("heave_displacement", "sway_displacement"):
        assert both[name] == pytest.approx(plain[name] + alone[name], abs=1e-12)
        assert np.abs(alone[name]).max() > 1e-4


def test_there_is_none_unless_it_is_asked_for(rng):
    motion = motion_of(300, heave=rng.normal(size=300))
    assert profile("simona").cueing.texture is None
    muted = profile("simona", "cueing.texture.heave_gain=0")
    assert_same_bits(motioncue.cue(muted, motion), motioncue.cue(profile("simona"), motion))


CHANNELS = {"sway": "sway_displacement", "heave": "heave_displacement", "roll_rate": "roll", "pitch_rate": "pitch"}


@pytest.mark.search
@settings(max_examples=60)
@given(
    channel=st.sampled_from(sorted(CHANNELS)),
    limit=st.floats(1e-4, 0.1),
    cutoff=st.floats(0.5, 20.0),
    values=st.lists(st.tuples(st.floats(-1e3, 1e3), st.integers(1, 200)), min_size=1, max_size=10),
)
def test_no_input_goes_beyond_the_limit(channel, limit, cutoff, values):
    keys = (f"limit_m={limit}", f"limit_deg={np.degrees(limit)}", f"cutoff_hz={cutoff}")
    motion = motion_of(sum(ticks for _, ticks in values))
    motion[channel] = np.concatenate([np.full(ticks, value) for value, ticks in values])
    cue = motioncue.cue(textured(*(f"cueing.texture.{key}" for key in keys)), motion)
    assert np.abs(cue[CHANNELS[channel]]).max() <= limit * (1 + 1e-12)


def test_near_the_limit_acceleration_is_that_of_the_displacement():
    """A sine of 4 Hz whose displacement reaches 1.8 limits before it is softened."""
    n, omega, limit = 3000, 2.0 * np.pi * 4.0, 0.002
    motion = motion_of(n, heave=1.8 * limit * omega**2 * np.sin(omega * PERIOD * np.arange(n)))
    cue = motioncue.cue(textured(f"cueing.texture.limit_m={limit}", "cueing.texture.cutoff_hz=0.5"), motion)
    second = np.diff(cue["heave_displacement"], 2)[2000:] / PERIOD**2
    felt = cue["heave"][2001:-1]
    assert np.abs(cue["heave_displacement"])[2000:].max() == pytest.approx(limit, rel=0.02)
    assert second == pytest.approx(felt, abs=0.02 * np.abs(felt).max())


def test_at_the_limit_acceleration_has_no_step():
    """A sine whose displacement would reach three limits; a bound on the third derivative of its softened value.

    With Z = 1.875 limits, the derivatives of the softened value by the value are at most 1, 8 / (3 sqrt(3) Z) and
    8 / Z^2.
    """
    n, omega, limit = 3000, 2.0 * np.pi * 2.0, 0.01
    motion = motion_of(n, heave=3.0 * limit * omega**2 * np.sin(omega * PERIOD * np.arange(n)))
    cue = motioncue.cue(textured(f"cueing.texture.limit_m={limit}", "cueing.texture.cutoff_hz=0.2"), motion)
    v, a, j = (3.0 * limit * omega**order for order in (1, 2, 3))
    end = 1.875 * limit
    most = j + 3.0 * v * a * 8.0 / (3.0 * np.sqrt(3.0) * end) + v**3 * 8.0 / end**2
    assert np.abs(cue["heave_displacement"][1500:]).max() == limit
    assert np.abs(np.diff(cue["heave"][1500:])).max() < most * PERIOD


def test_rates_are_those_of_the_attitude_with_texture():
    n = 3000
    waves = np.sin(np.outer([25.0, 30.0], PERIOD * np.arange(n)))
    cue = motioncue.cue(textured("cueing.texture.limit_deg=2"), motion_of(n, roll_rate=waves[0], pitch_rate=waves[1]))
    rates = body_rates(cue)
    middle = 0.5 * (rates[:-1] + rates[1:])
    # Trapezoid against the true mean: rate times frequency squared over 12; softening adds its third harmonic.
    assert np.abs(turned(cue) - middle).max() < 2.0 * (30.0 * PERIOD) ** 2
    assert np.abs(rates).max() > 0.5


def test_texture_that_is_switched_on_or_off_keeps_the_washout():
    motion = motion_of(4000, surge=1.0, sway=-0.5, heave=np.sin(0.09 * np.arange(4000)))
    for before, change in (
        (["cueing.texture.heave_gain=1"], "cueing.texture=none"),
        ([], "cueing.texture.heave_gain=2"),
    ):
        stepper = motioncue.bind(profile("simona", *before))
        sent = [steps(stepper, motion[:2000])]
        stepper.retune({"cueing.texture": None} if "none" in change else change)
        sent.append(steps(stepper, motion[2000:]))
        plain = motioncue.cue(profile("simona"), motion)
        for name in ("surge_displacement", "sway_displacement", "roll", "pitch"):
            np.testing.assert_allclose(np.concatenate(sent)[name], plain[name], rtol=0, atol=1e-12)
