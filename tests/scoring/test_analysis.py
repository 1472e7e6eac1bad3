"""Responses: the kernel, its closed forms and the papers' equations agree."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import signal

from motioncue import ConfigError, cueing, load_profile
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.scoring import frequency_response, step_response, transfer_function
from motioncue.scoring.omct import INPUTS, OUTPUTS

G = 9.80665
OMCT = 10.0 ** (np.arange(12) / 5.0 - 1.0)  # the twelve frequencies of the Objective Motion Cueing Test [rad/s]


# The published sets as polynomials in s, written out from the parameters in rad/s.
def high_pass(gain, omega, omega_b=None):
    num, den = np.array([gain, 0.0, 0.0]), np.array([1.0, 2.0 * omega, omega**2])
    if omega_b is not None:
        num, den = np.polymul(num, [1.0, 0.0]), np.polymul(den, [1.0, omega_b])
    return num, den


def low_pass(gain, omega):
    return np.array([gain * omega**2]), np.array([1.0, 2.0 * omega, omega**2])


def parallel(a, b):
    return np.polyadd(np.polymul(a[0], b[1]), np.polymul(b[0], a[1])), np.polymul(a[1], b[1])


SPECIFIC_FORCE = {
    ("simona", "surge"): parallel(high_pass(0.6, 0.8), low_pass(0.6, 2.0)),
    ("simona", "sway"): parallel(high_pass(0.6, 1.0), low_pass(0.6, 2.0)),
    ("simona", "heave"): high_pass(0.5, 1.0, 0.2),
    ("simona", "roll_rate"): high_pass(0.6, 1.0),
    ("simona", "pitch_rate"): high_pass(0.6, 0.8),
    ("simona", "yaw_rate"): high_pass(0.6, 1.0),
    ("utias", "surge"): parallel(high_pass(0.5, 2.5, 0.25), low_pass(0.5, 5.0)),
    ("utias", "sway"): parallel(high_pass(0.5, 4.0, 0.4), low_pass(0.5, 8.0)),
    ("utias", "heave"): high_pass(0.5, 4.0, 0.4),
    ("utias", "roll_rate"): (np.array([0.5, 0.0]), np.array([1.0, 1.0])),
    ("utias", "yaw_rate"): high_pass(0.5, 1.0),
}
ONSET = {
    ("simona", "surge"): high_pass(0.6, 0.8),
    ("simona", "sway"): high_pass(0.6, 1.0),
    ("utias", "surge"): high_pass(0.5, 2.5, 0.25),
}


def washout(preset, *overrides):
    return load_profile("ccd-dk-classical", f"cueing.preset={preset}", *overrides)


@pytest.mark.grid
@pytest.mark.parametrize(("preset", "channel"), SPECIFIC_FORCE)
@pytest.mark.check
def test_kernel_has_the_frequency_response_of_the_equations(preset, channel):
    expected = signal.freqresp(SPECIFIC_FORCE[preset, channel], OMCT)[1]
    measured = frequency_response(washout(preset), channel, channel, OMCT)
    np.testing.assert_allclose(np.abs(measured), np.abs(expected), rtol=0, atol=1e-3)
    np.testing.assert_allclose(np.degrees(np.angle(measured / expected)), 0.0, atol=0.5)


@pytest.mark.parametrize(("preset", "channel"), SPECIFIC_FORCE)
def test_closed_form_is_that_of_the_equations(preset, channel):
    expected = signal.freqresp(SPECIFIC_FORCE[preset, channel], OMCT)[1]
    np.testing.assert_allclose(transfer_function(washout(preset), channel, channel, OMCT), expected, rtol=1e-12)


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize("preset", ["simona", "utias"])
@pytest.mark.parametrize("channel_in", INPUTS)
def test_closed_form_names_every_output_that_follows_an_input(preset, channel_in):
    # 1e-4 absolute for what the small-angle forms neglect at an amplitude of 0.01.
    profile = washout(preset)
    omega = np.array([0.3, 1.0, 7.0])
    half_a_tick = 0.5 / profile.output.rate_hz
    for channel_out in OUTPUTS:
        measured = frequency_response(profile, channel_in, channel_out, omega, settle_s=80.0, periods=2)
        expected = transfer_function(profile, channel_in, channel_out, omega)
        if channel_out.endswith("_rate") and not channel_in.endswith("_rate"):  # tilt: the change over a tick
            expected = expected * np.exp(-1j * omega * half_a_tick)
        np.testing.assert_allclose(measured, expected, rtol=1e-3, atol=1e-4, err_msg=channel_out)


@pytest.mark.parametrize(("preset", "channel"), ONSET)
def test_platform_travels_as_the_step_response_says(preset, channel):
    num, den = ONSET[preset, channel]
    time, travel = step_response(washout(preset), channel, f"{channel}_displacement", 12.0)
    expected = signal.step((num, np.polymul(den, [1.0, 0.0, 0.0])), T=time)[1]
    np.testing.assert_allclose(travel, expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    at = np.searchsorted(time, [1.0, 5.0])
    np.testing.assert_allclose(travel[at], expected[at], rtol=1e-3)


@pytest.mark.parametrize("preset", ["simona", "utias"])
def test_second_order_travel_ends_at_gain_over_stiffness_and_third_order_at_zero(preset):
    end = {"simona": 0.6 / 0.8**2, "utias": 0.0}[preset]
    _, travel = step_response(washout(preset), "surge", "surge_displacement", 60.0)
    assert travel[-1] == pytest.approx(end, abs=1e-5)


@pytest.mark.parametrize(("preset", "channel"), ONSET)
def test_specific_force_sags_as_the_step_response_says(preset, channel):
    # A small step: the sine of the tilt equals its angle, and no rate is limited.
    time, force = step_response(washout(preset), channel, channel, 6.0, amplitude=0.01)
    expected = 0.01 * signal.step(SPECIFIC_FORCE[preset, channel], T=time)[1]
    np.testing.assert_allclose(force, expected, rtol=0, atol=1e-3 * expected.max())
    assert time[np.argmin(force)] == pytest.approx(time[np.argmin(expected)], abs=0.02)


def test_tilt_rate_follows_a_step_until_it_is_limited():
    # K omega^2 t exp(-omega t) / g has its peak, K omega / (e g), at 1 / omega.
    _, rate = step_response(washout("simona"), "surge", "pitch_rate", 6.0)
    assert rate.max() == pytest.approx(0.6 * 2.0 / (np.e * G), rel=2e-3)
    _, limited = step_response(washout("simona"), "surge", "pitch_rate", 6.0, amplitude=5.0)
    assert limited.max() == pytest.approx(np.radians(3.0), rel=1e-9)


@pytest.mark.parametrize("omega", [0.1, 1.234567, 3.0, 100.0, 1000.0])
def test_gain_of_one_is_measured_as_one_whatever_the_period(omega):
    measured = frequency_response("ccd-dk", "sway", "sway", omega, settle_s=0.5, periods=1)
    np.testing.assert_allclose(measured, [1.0 + 0j], rtol=0, atol=1e-11)
    np.testing.assert_array_equal(transfer_function("ccd-dk", "sway", "sway", omega), [1.0 + 0j])
    np.testing.assert_array_equal(transfer_function("ccd-dk", "sway", "surge", omega), [0j])


def test_algorithm_measures_as_its_profile_and_is_left_at_rest():
    profile = washout("utias")
    rate_hz = 1e9 / round(1e9 / profile.output.rate_hz)
    algorithm = cueing.design(profile.cueing, rate_hz)
    measured = frequency_response(algorithm, "surge", "surge", [1.0], rate_hz=rate_hz)
    np.testing.assert_array_equal(measured, frequency_response(profile, "surge", "surge", [1.0]))
    motion = np.ones(50, MOTION_DTYPE)
    np.testing.assert_array_equal(
        algorithm.process(motion), cueing.design(profile.cueing, rate_hz).process(motion, np.zeros(50, CUE_DTYPE))
    )


def test_response_that_has_not_settled_is_refused():
    with pytest.raises(ValueError, match=r"settle_s: found 0 s, at 3 rad/s heave_displacement still changes"):
        frequency_response(washout("simona"), "heave", "heave_displacement", [3.0], settle_s=0.0, periods=1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("ccd-dk", "time", "surge", [1.0]), {}, "channel_in: found 'time', allowed are surge, "),
        (("ccd-dk", "surge", "frame_time", [1.0]), {}, "channel_out: found 'frame_time', allowed are surge, "),
        (("ccd-dk", "surge", "surge", [0.0]), {}, r"omega: found 0.0 rad/s, allowed is above 0 and below 1047"),
        (("ccd-dk", "surge", "surge", [1048.0]), {}, r"omega: found 1048.0 rad/s"),
        (("ccd-dk", "surge", "surge", [1.0]), {"rate_hz": 100.0}, "rate_hz: found 100.0, but a profile has its own"),
    ],
)
def test_impossible_measurement_is_refused_and_named(arguments, options, message):
    with pytest.raises(ConfigError, match=message):
        frequency_response(*arguments, **options)


def test_algorithm_without_its_rate_is_refused():
    algorithm = cueing.design(washout("simona").cueing, 100.0)
    with pytest.raises(ConfigError, match="rate_hz: found None"):
        step_response(algorithm, "surge", "surge", 1.0)
    with pytest.raises(ConfigError, match="duration_s: found 0"):
        step_response(algorithm, "surge", "surge", 0, rate_hz=100.0)


@pytest.fixture
def plots():
    """The module, with a backend that draws into memory."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from motioncue.scoring import reports

    yield reports
    pyplot.close("all")


def test_a_channel_that_a_platform_has_not_is_said_in_words(plots):
    nothing = (float("nan"),) * 3
    asked = {"surge_displacement": nothing, "pitch": (0.5, 0.25, 0.1)}
    motions = {"fits": SimpleNamespace(use={"post_1": (0.78, 0.62, 0.06)})}
    page = plots._use_table(SimpleNamespace(asked=asked, motions=motions))
    assert "<td>surge, asked for</td>" + 3 * "<td>no actuator</td>" in page
    assert "<td>pitch, asked for</td><td>50 %</td><td>25 %</td><td>10 %</td>" in page
    assert "nan" not in page


def test_traces_of_car_and_cue_lie_over_each_other_in_degrees(plots):
    time = np.arange(5) * 0.1
    motion, cue = np.zeros(5, MOTION_DTYPE), np.zeros(5, CUE_DTYPE)
    motion["surge"], motion["roll"] = 2.0 * time, np.radians(time)
    cue["surge"], cue["surge_displacement"] = time, 3.0 * time
    figure = plots.plot_traces(time, motion, cue, ["surge", "roll", "surge_displacement"], title="drive")
    drawn = [{line.get_label(): line.get_ydata() for line in row.lines[1:]} for row in figure.axes]
    for found, expected in zip(
        drawn, [{"car": 2.0 * time, "cue": time}, {"car": time, "cue": 0 * time}, {"cue": 3 * time}], strict=True
    ):
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=1e-12)
    assert "[deg]" in figure.axes[1].get_ylabel()


def test_what_is_felt_in_the_car_is_drawn_in_place_of_its_acceleration(plots):
    motion, cue = np.zeros(2, MOTION_DTYPE), np.zeros(2, CUE_DTYPE)
    motion["surge"], motion["pitch"] = 1.0, np.radians(10.0)
    figure = plots.plot_traces(np.arange(2.0), motion, cue, ["surge"], felt=True)
    felt = figure.axes[0].lines[1]
    assert felt.get_label() == "felt in the car"
    np.testing.assert_allclose(felt.get_ydata(), 1.0 + 9.80665 * np.sin(np.radians(10.0)))  # nose up presses back


def test_response_shows_gain_and_phase_of_measurement_and_theory(plots):
    omega, gains = np.array([1.0, 2.0]), np.array([1j, 0.5 + 0j])
    figure = plots.plot_response(omega, {"surge": gains}, theory={"surge": 2.0 * gains})
    gain, phase = figure.axes
    np.testing.assert_allclose([line.get_ydata() for line in gain.lines], [[2.0, 1.0], [1.0, 0.5]])
    np.testing.assert_allclose([line.get_ydata() for line in phase.lines], [[90.0, 0.0], [90.0, 0.0]])
    assert len({line.get_color() for line in gain.lines}) == 1


def test_phase_is_continued_from_the_highest_frequency(plots):
    # A third-order high-pass leads by 270 degrees at low frequencies: atan2 alone would say -90.
    omega = np.geomspace(1e-3, 1e3, 25)
    response = signal.freqresp(high_pass(1.0, 1.0, 1.0), omega)[1]
    phase = plots.plot_response(omega, {"heave": response}).axes[1].lines[0].get_ydata()
    np.testing.assert_allclose(phase, 270.0 - 3.0 * np.degrees(np.arctan(omega)), atol=1e-9)
