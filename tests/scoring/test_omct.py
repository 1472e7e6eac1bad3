"""The Objective Motion Cueing Test: kernels and equations agree, limits and lags show."""

import msgspec
import numpy as np
import pytest
from scipy import signal

import motioncue
from motioncue import ConfigError
from motioncue.profile.profile import platform_table
from motioncue.scoring.omct import FREQUENCIES, TESTS, boundaries_of, omct

pytestmark = pytest.mark.search

G = 9.80665
SMALL = {"accelerations": [0.01], "rates_deg_s": [0.05]}
DIAGONAL = (1, 3, 5, 6, 8, 10)
SIX = ("hexapod-simona", "box-small")  # platforms that move along all six channels


def washout(preset, *overrides):
    return motioncue.load_profile("ccd-dk-classical", f"cueing.preset={preset}", *overrides)


def gains(rows, test, level=None):
    """Return the complex gains of a test by frequency."""
    own = [row for row in rows if row.test == test and level in (None, row.level)]
    return np.array([row.gain * np.exp(1j * np.radians(row.phase_deg)) for row in own])


def residuals(rows, test):
    return np.array([row.residual for row in rows if row.test == test])


# The published sets in rad/s (SIMONA, TU Delft; UTIAS) as products of first and second-order sections in s.
def second(s, omega):
    return s**2 + 2.0 * omega * s + omega**2


def expected(preset, s):
    """Return the gains of the ten tests: specific force K (HP + LP), tilt K LP / g, rotation K HP, gravity by angle."""
    if preset == "simona":
        k, heave = 0.6, 0.5 * s**2 / second(s, 1.0) * s / (s + 0.2)
        surge, sway = s**2 / second(s, 0.8), s**2 / second(s, 1.0)
        sustained_x, sustained_y = (4.0 / second(s, 2.0),) * 2
        roll, pitch, yaw = s**2 / second(s, 1.0), s**2 / second(s, 0.8), s**2 / second(s, 1.0)
    else:
        k, heave = 0.5, 0.5 * s**2 / second(s, 4.0) * s / (s + 0.4)
        surge, sway = s**2 / second(s, 2.5) * s / (s + 0.25), s**2 / second(s, 4.0) * s / (s + 0.4)
        sustained_x, sustained_y = 25.0 / second(s, 5.0), 64.0 / second(s, 8.0)
        roll, pitch, yaw = s / (s + 1.0), s / (s + 1.0), s**2 / second(s, 1.0)
    return {
        1: k * (pitch + sustained_x),
        2: k * G * (pitch + sustained_x),
        3: k * (roll + sustained_y),
        4: -k * G * (roll + sustained_y),
        5: k * yaw,
        6: k * (surge + sustained_x),
        7: k * sustained_x / G,
        8: k * (sway + sustained_y),
        9: -k * sustained_y / G,
        10: heave,
    }


@pytest.mark.parametrize("platform", [None, *SIX])
@pytest.mark.parametrize("preset", ["simona", "utias"])
def test_measured_equals_the_equations(preset, platform):
    rows = omct(washout(preset), platform=platform, **SMALL)
    assert len(rows) == 120
    for test, gain in expected(preset, 1j * FREQUENCIES).items():
        size = np.abs(gain).max()
        np.testing.assert_allclose(gains(rows, test), gain, rtol=0, atol=1e-3 * size, err_msg=str(test))
        own = [row for row in rows if row.test == test]
        theory = [row.theory_gain * np.exp(1j * np.radians(row.theory_phase_deg)) for row in own]
        np.testing.assert_allclose(theory, gain, rtol=0, atol=1e-6 * size, err_msg=str(test))
        assert (
            residuals(rows, test).max() < 1e-5 * size
        )  # 0.05 deg/s at 0.1 rad/s are 0.5 deg: its sine has a third harmonic


def test_the_published_moduli_of_surge():
    # Computed from the same sets by an independent program.
    rows = omct(washout("simona"), frequencies=FREQUENCIES, **SMALL)
    moduli = [0.589, 0.574, 0.541, 0.478, 0.403, 0.369, 0.369, 0.402, 0.477, 0.540, 0.574, 0.589]
    np.testing.assert_allclose(np.abs(gains(rows, 6)), moduli, atol=1.5e-3)


def test_direct_is_unity():
    rows = omct("ccd-dk", accelerations=[0.5, 4.0], rates_deg_s=[5.0], settle_s=1.0)
    for test in TESTS:
        value = 1.0 if test.number in DIAGONAL else 0.0
        np.testing.assert_allclose(gains(rows, test.number), value, atol=1e-9)
        np.testing.assert_allclose(residuals(rows, test.number), 0.0, atol=1e-9)
    assert {row.inside for row in rows} == {None}


def test_tilt_rate_at_its_limit_shows_a_residual():
    # Sustained tilt K a w / g exceeds 3 deg/s = 0.0524 rad/s at 0.6 * 4 / g * 1 rad/s / 1.25 = 0.196, not with a = 0.5.
    rows = omct(washout("simona"), accelerations=[0.5, 4.0], rates_deg_s=[2.0], frequencies=[1.0])
    free, limited = residuals(rows, 7)
    assert free < 1e-4 * 0.6 / G
    assert limited > 0.02 * 0.6 / G
    # A rate limit makes a triangle of slope 0.0524 rad/s: its first harmonic is 8 / pi^2 of the height, slope * pi / 2.
    triangle = 8.0 / np.pi**2 * np.radians(3.0) * np.pi / 2.0 / 4.0
    assert abs(gains(rows, 7, 4.0)[0]) == pytest.approx(triangle, rel=0.02)
    # The third harmonic of a triangle is a ninth of the first, the fifth a twenty-fifth.
    assert limited == pytest.approx(triangle * np.sqrt(np.pi**4 / 96.0 - 1.0), rel=0.1)


def test_actuators_at_their_bounds_show_a_residual_and_less_gain():
    # 0.6 m/s^2 of 1 at 1 rad/s asks for 0.37 m of surge, where the small box has 0.15 m.
    rows = omct(
        washout("simona"), platform="box-small", accelerations=[0.01, 2.0], rates_deg_s=[0.05], frequencies=[1.0]
    )
    small, large = residuals(rows, 6)
    assert small < 1e-6
    assert large > 0.02
    assert abs(gains(rows, 6, 2.0)[0]) != pytest.approx(abs(gains(rows, 6, 0.01)[0]), rel=0.05)


@pytest.mark.parametrize("damping", [None, 0.7])
def test_a_lag_shows_as_phase(damping):
    # Behind its lead a lag of T leaves 1 / (T s / 16 + 1), or 1 / (T s / (8 damping) + 1)^2 of second order, and half
    # a tick of holding (platforms/actuator_limits.h states the leads).
    table = msgspec.structs.replace(platform_table("box-large"), lag_s=0.1, lag_damping=damping)
    without, behind = (omct(washout("utias"), platform=each, **SMALL) for each in ("box-large", table))
    s = 1j * FREQUENCIES
    held = np.exp(-s * 0.5 / 333.33)
    late = held / (0.1 * s / 16.0 + 1.0) if damping is None else held / (0.1 * s / (8.0 * damping) + 1.0) ** 2
    assert np.degrees(np.angle(late[-1])) < -5.0
    for test in TESTS:
        gain = gains(without, test.number)
        size = np.abs(gain).max()
        np.testing.assert_allclose(gains(behind, test.number), gain * late, rtol=0, atol=1e-3 * size)
        own = [row for row in behind if row.test == test.number]
        theory = [row.theory_gain * np.exp(1j * np.radians(row.theory_phase_deg)) for row in own]
        np.testing.assert_allclose(gains(behind, test.number), theory, rtol=0, atol=1e-3 * size)


def test_posts_show_surge_by_tilt_alone_and_no_yaw():
    rows = omct(washout("utias"), platform="posts-3", **SMALL)
    np.testing.assert_allclose(gains(rows, 5), 0.0, atol=1e-9)
    tilt = 0.5 * signal.freqresp(([25.0], [1.0, 10.0, 25.0]), FREQUENCIES)[1]
    np.testing.assert_allclose(gains(rows, 6), tilt, rtol=0, atol=1e-3)


def test_rows_name_their_units_and_amplitudes():
    rows = omct("ccd-dk", accelerations=[2.0], rates_deg_s=[10.0], frequencies=[0.1, 10.0], settle_s=1.0)
    units = {row.test: row.unit for row in rows}
    assert [units[test] for test in (1, 2, 6, 7)] == ["1", "m/s^2/rad", "1", "rad/(m/s^2)"]
    turn = [row.amplitude for row in rows if row.test == 5]
    np.testing.assert_allclose(turn, np.radians([10.0, 1.0]))  # 10 deg/s at 0.1 rad/s would be 100 deg
    assert [row.amplitude for row in rows if row.test == 10] == [2.0, 2.0]


BOUNDS = """
source = "an example"
[[boundary]]
test = 6
frequency_rad_s = [0.1, 10.0]
gain_low = [0.0, 1.0]
gain_high = [2.0, 2.0]
phase_low_deg = [-10, -10]
phase_high_deg = [10, 10]
[[boundary]]
test = 9
frequency_rad_s = [0.1, 10.0]
phase_low_deg = [170, 170]
phase_high_deg = [190, 190]
"""


@pytest.fixture
def bounds(tmp_path):
    def written(text):
        file = tmp_path / "bounds.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return written


def test_boundaries_are_lines_over_the_logarithm_of_frequency(bounds):
    limits = boundaries_of(bounds(BOUNDS))
    assert limits.source == "an example"
    assert limits.inside(6, 1.0, 0.51, 0.0)  # half way between 0 and 1
    assert not limits.inside(6, 1.0, 0.49, 0.0)
    assert not limits.inside(6, 1.0, 2.01, 0.0)
    assert limits.inside(6, 1.0, 0.6, -9.9)
    assert not limits.inside(6, 1.0, 0.6, -10.1)
    assert limits.inside(9, 1.0, 7.0, -175.0)  # 185 deg
    assert not limits.inside(9, 1.0, 7.0, -165.0)
    assert limits.inside(6, 20.0, 1.0, 0.0) is None
    assert limits.inside(5, 1.0, 1.0, 0.0) is None


def test_rows_are_judged_by_the_users_file_alone(bounds):
    rows = omct(
        "ccd-dk",
        boundaries=bounds(BOUNDS),
        accelerations=[1.0],
        rates_deg_s=[1.0],
        frequencies=[1.0, 15.0],
        settle_s=1.0,
    )
    assert {row.test: row.inside for row in rows if row.frequency_rad_s == 1.0 and row.inside is not None} == {
        6: True,
        9: False,  # of a gain of 0 the phase is 0
    }
    assert all(row.inside is None for row in rows if row.frequency_rad_s == 15.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('source = "an example"', ""), "missing required field `source`"),
        (lambda text: text.replace('"an example"', '""'), "length >= 1"),
        (lambda text: text.replace("test = 9", "test = 11"), "<= 10"),
        (lambda text: text.replace("test = 9", "test = 6"), r"found tests \[6, 6\], allowed is each once"),
        (lambda text: text.replace("gain_low = [0.0, 1.0]", "gain_low = [0.0]"), "gain_low: found .* 2 numbers"),
        (
            lambda text: text.replace("gain_low = [0.0, 1.0]", "gain_low = [0.0, 3.0]"),
            "gain_low: found .* up to gain_high",
        ),
        (lambda text: text.replace("[0.1, 10.0]", "[10.0, 0.1]"), "frequency_rad_s: found .* ascending"),
        (lambda text: text.replace("[0.1, 10.0]", "[0.1, nan]"), "frequency_rad_s"),
        (lambda text: text.replace("phase_low_deg = [170, 170]", ""), "allowed are both or none"),
        (lambda text: text.replace("gain_low", "gain_least"), "gain_least"),
        (lambda text: text + "[[", "bounds.toml"),
    ],
)
def test_a_file_that_is_no_boundary_is_refused(change, said, bounds):
    with pytest.raises(ConfigError, match=said):
        boundaries_of(bounds(change(BOUNDS)))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere.toml' cannot be read: No such file"):
        boundaries_of(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"accelerations": [0.0]}, r"accelerations: found 0 m/s\^2, allowed is above 0 and below 100"),
        ({"accelerations": []}, r"accelerations: found \[\], allowed are different numbers, at least one"),
        ({"rates_deg_s": [1.0, 1.0]}, "rates_deg_s: found"),
        ({"rates_deg_s": [float("nan")]}, "rates_deg_s: found nan deg/s"),
        ({"frequencies": [2000.0]}, "frequencies: found 2000 rad/s, allowed is above 0 and below 1047.1"),
        ({"settle_s": -1.0}, "settle_s: found -1 s"),
        ({"platform": "box-small"}, "cueing.algorithm: found 'direct', whose cue is no pose"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        motioncue.omct("ccd-dk", **arguments)
