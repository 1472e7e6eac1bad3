"""The classical washout: measured on the running kernel against its closed form, and whole against a slow oracle."""

import numpy as np
import pytest
from reference import responses
from reference.classical import CHANNELS, Washout, matrix, platform_force
from same_bits import assert_same_bits
from scipy.spatial.transform import Rotation

import motioncue
from motioncue.core.channels import MOTION_DTYPE
from motioncue.cueing.classical.settings import Classical

G = 9.80665  # [m/s^2]
PERIOD = 1e-9 * round(1e9 / 333.33)  # [s], the grid of the built-in profiles
OMEGA = 10.0 ** (np.arange(12) / 5 - 1)  # [rad/s], the twelve frequencies of the Objective Motion Cueing Test

# Gain and phase [deg] of the felt specific force (of the rate, for roll) over the twelve frequencies, as published in
# the project's collection of parameter sets: computed from the transfer functions by another program.
TABLE = {
    ("simona", "surge"): (
        [0.589, 0.574, 0.541, 0.478, 0.403, 0.369, 0.369, 0.402, 0.477, 0.540, 0.574, 0.589],
        [-5.6, -8.5, -12.3, -15.3, -12.8, -4.2, 4.0, 12.7, 15.3, 12.4, 8.6, 5.6],
    ),
    ("simona", "sway"): (
        [0.593, 0.582, 0.556, 0.501, 0.406, 0.300, 0.270, 0.349, 0.458, 0.533, 0.571, 0.588],
        [-5.7, -8.8, -13.4, -19.2, -23.1, -16.3, 6.1, 21.7, 21.8, 16.3, 11.0, 7.1],
    ),
    ("utias", "surge"): (
        [0.500, 0.499, 0.496, 0.487, 0.465, 0.414, 0.326, 0.226, 0.206, 0.285, 0.381, 0.445],
        [-2.3, -3.7, -6.0, -9.6, -14.8, -21.5, -26.4, -18.4, 9.3, 24.9, 23.5, 17.2],
    ),
    ("simona", "heave"): (
        [0.0022, 0.0076, 0.0232, 0.0611, 0.1357, 0.2451, 0.3548, 0.4302, 0.4697, 0.4875, 0.4950, 0.4980],
        None,
    ),
    ("simona", "roll_rate"): (
        [0.0059, 0.0147, 0.0356, 0.0821, 0.1708, 0.3000, 0.4292, 0.5179, 0.5644, 0.5853, 0.5941, 0.5976],
        None,
    ),
}
ROWS = [(preset, channel) for preset, axes in responses.SETS.items() for channel in axes]


def profile(preset, *overrides):
    return motioncue.load_profile("ccd-dk-classical", "limits=none", f"cueing.preset={preset}", *overrides)


def motion_of(n, **channels):
    motion = np.zeros(n, MOTION_DTYPE)
    for name, values in channels.items():
        motion[name] = values
    return motion


def measured_gain(settings, channel, omega, amplitude=0.02, settle_s=100.0):
    """Return the complex gain of one channel at `omega` [rad/s], by correlation over whole periods.

    The frequency moves by less than half a tick in the window, so that whole periods are whole ticks.
    """
    periods = max(1, round(20.0 * omega / (2 * np.pi)))
    window = round(2 * np.pi * periods / (omega * PERIOD))
    phase = 2 * np.pi * periods / window * np.arange(round(settle_s / PERIOD) + window)
    cue = motioncue.cue(settings, motion_of(len(phase), **{channel: amplitude * np.sin(phase)}))
    end = slice(-window, None)
    # Of A sin the correlation with exp(-j phase) is A window / 2j.
    return 2j / (amplitude * window) * np.sum(cue[channel][end] * np.exp(-1j * phase[end]))


def degrees_between(a, b):
    return np.degrees(np.angle(a / b))


@pytest.fixture(scope="module")
def measured():
    """Return a function that measures a row of gains, once."""
    known = {}

    def row(preset, channel):
        if (preset, channel) not in known:
            settings = profile(preset)
            known[preset, channel] = np.array([measured_gain(settings, channel, omega) for omega in OMEGA])
        return known[preset, channel]

    return row


# ---- one axis, small signals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "channel"), TABLE)
def test_the_running_kernel_has_the_published_response(measured, preset, channel):
    gain, phase = TABLE[preset, channel]
    found = measured(preset, channel)
    assert np.abs(found) == pytest.approx(gain, abs=1e-3)
    if phase is not None:
        assert np.degrees(np.angle(found)) == pytest.approx(phase, abs=0.5)


@pytest.mark.parametrize(("preset", "channel"), ROWS)
def test_the_running_kernel_has_the_closed_form_response(measured, preset, channel):
    found, right = measured(preset, channel), responses.gains(preset, channel, OMEGA)
    assert np.abs(found) == pytest.approx(np.abs(right), abs=1e-3)
    assert np.abs(degrees_between(found, right)).max() < 0.5


@pytest.mark.parametrize(("preset", "channel"), TABLE)
def test_the_closed_form_is_the_published_one(preset, channel):
    gain, phase = TABLE[preset, channel]
    digit = 5e-5 if channel in ("heave", "roll_rate") else 5e-4
    right = responses.gains(preset, channel, OMEGA)
    assert np.abs(right) == pytest.approx(gain, abs=1.01 * digit)
    if phase is not None:
        assert np.degrees(np.angle(right)) == pytest.approx(phase, abs=0.0501)


@pytest.mark.parametrize(
    ("preset", "channel", "omega", "gain"),
    [
        # Second order with damping ratio 1 is half its gain at the natural frequency; first order -3 dB at the break.
        ("simona", "roll_rate", 1.0, 0.6 / 2),
        ("simona", "pitch_rate", 0.8, 0.6 / 2),
        ("simona", "yaw_rate", 1.0, 0.6 / 2),
        ("utias", "roll_rate", 1.0, 0.5 / np.sqrt(2)),
        ("utias", "pitch_rate", 1.0, 0.5 / np.sqrt(2)),
        ("utias", "yaw_rate", 1.0, 0.5 / 2),
    ],
)
def test_design_points_are_at_the_designed_frequencies(preset, channel, omega, gain):
    assert abs(measured_gain(profile(preset), channel, omega)) == pytest.approx(gain, rel=1e-4)


@pytest.mark.parametrize("rate_hz", [60.0, 100.0, 400.0])
def test_the_response_does_not_depend_on_the_rate(rate_hz):
    settings = profile("simona", f"output.rate_hz={rate_hz}")
    period, omega = 1e-9 * round(1e9 / rate_hz), 1.0
    window = round(2 * np.pi * 4 / (omega * period))
    phase = 2 * np.pi * 4 / window * np.arange(round(60 / period) + window)
    cue = motioncue.cue(settings, motion_of(len(phase), surge=0.02 * np.sin(phase)))
    found = 2j / (0.02 * window) * np.sum(cue["surge"][-window:] * np.exp(-1j * phase[-window:]))
    right = responses.gains("simona", "surge", omega)
    assert abs(found) == pytest.approx(abs(right), abs=1e-3)
    assert abs(degrees_between(found, right)) < 0.5


# ---- a step of 1 m/s^2 -----------------------------------------------------------------------------------------------

# Travel at 1 s and 5 s and at the end [m]; lowest felt specific force [m/s^2] and its time [s]; peak tilt rate [deg/s].
STEPS = {
    ("simona", "surge"): (0.17926, 0.85165, 0.9375, 0.3951, 0.64, 2.58),
    ("simona", "sway"): (0.15854, 0.57574, 0.6000, 0.3335, 0.65, 2.58),
    ("utias", "surge"): (0.05057, 0.02829, 0.0, 0.2616, 0.27, 5.37),
}
TILT_ANGLE = {"surge": "pitch", "sway": "roll"}


def peak(time, values):
    """Return where a sampled curve has its largest value, and that value: the parabola through three samples."""
    i = int(np.argmax(values))
    left, middle, right = values[i - 1 : i + 2]
    shift = 0.5 * (left - right) / (left - 2 * middle + right)
    return time[i] + shift * (time[1] - time[0]), middle - 0.25 * (left - right) * shift


@pytest.fixture(scope="module", params=STEPS, ids="-".join)
def stepped(request):
    """Return preset, channel, the times of the ticks and the cues after a step of 1 m/s^2 at the first."""
    preset, channel = request.param
    n = round(150.0 / PERIOD)
    return preset, channel, PERIOD * np.arange(n), motioncue.cue(profile(preset), motion_of(n, **{channel: 1.0}))


def test_travel_after_a_step(stepped):
    preset, channel, time, cue = stepped
    at_1, at_5, end, *_ = STEPS[preset, channel]
    travel = cue[f"{channel}_displacement"]
    found = np.interp([1.0, 5.0], time, travel)
    assert found == pytest.approx([at_1, at_5], rel=1e-3)
    fine = np.linspace(0, 5, 5001)
    assert found == pytest.approx(responses.travel(preset, channel, fine)[[1000, 5000]], rel=1e-3)
    assert travel[-1] == pytest.approx(end, rel=1e-3, abs=1e-6)


def test_peak_travel_of_third_order_after_a_step():
    n = round(5.0 / PERIOD)
    cue = motioncue.cue(profile("utias"), motion_of(n, surge=1.0))
    when, what = peak(PERIOD * np.arange(n), cue["surge_displacement"])
    assert what == pytest.approx(0.0579, rel=1e-3)
    assert when == pytest.approx(1.607, rel=1e-3)
    fine = np.linspace(0, 5, 5001)
    assert (when, what) == pytest.approx(peak(fine, responses.travel("utias", "surge", fine)), rel=1e-3)


def test_sag_between_onset_and_tilt_after_a_step(stepped):
    preset, channel, time, cue = stepped
    *_, sag, when, _ = STEPS[preset, channel]
    early = time < 2.0
    found_when, found = peak(time[early], -cue[channel][early])
    assert -found == pytest.approx(sag, rel=1e-3)
    assert found_when == pytest.approx(when, abs=0.006)  # published to 0.01 s
    fine = np.linspace(0, 2, 20001)
    assert (found_when, found) == pytest.approx(peak(fine, -responses.felt(preset, channel, fine)), rel=2e-3)


def test_specific_force_begins_and_ends_at_the_gain(stepped):
    preset, channel, _, cue = stepped
    gain = responses.SETS[preset][channel].gain
    assert cue[channel][0] == pytest.approx(gain, rel=1e-12)
    assert cue[channel][-1] == pytest.approx(gain, rel=1e-3)


def test_peak_tilt_rate_after_a_step(stepped):
    preset, channel, _, cue = stepped
    *_, rate = STEPS[preset, channel]
    angle = cue[TILT_ANGLE[channel]]
    found = np.degrees(np.abs(np.diff(angle)).max() / PERIOD)
    assert found == pytest.approx(rate, abs=0.005 + 1e-3 * rate)  # published to 0.01 deg/s
    fine = np.linspace(0, 5, 50001)
    assert found == pytest.approx(np.degrees(responses.tilt_rate(preset, channel, fine).max()), rel=1e-3)


# ---- several axes at once --------------------------------------------------------------------------------------------


def rough_drive(rng, n, *, force=4.0, angle=0.35, rate=0.8):
    """Return a drive with every axis busy: smooth waves, sudden changes, and not at rest at the first tick."""
    time = PERIOD * np.arange(n)

    def busy(size):
        waves = sum(np.sin(rng.uniform(0.2, 12) * time + rng.uniform(0, 7)) * rng.normal() for _ in range(4))
        steps = np.repeat(rng.normal(size=n // 200 + 1), 200)[:n]
        return size * (0.4 * waves + 0.6 * steps)

    forces = {name: busy(force) for name in ("surge", "sway", "heave")}
    angles = {name: np.clip(busy(angle), -3 * angle, 3 * angle) for name in ("roll", "pitch", "yaw")}
    rates = {f"{name}_rate": busy(rate) for name in ("roll", "pitch", "yaw")}
    return motion_of(n, **forces, **angles, **rates, speed=20.0, engine_speed=3000.0)


MIXTURES = {
    "simona": [],
    "utias": ["cueing.preset=utias"],
    "orders 1 2 3, 3 2 1": [
        "cueing.surge.order=1",
        "cueing.sway.order=2",
        "cueing.heave.order=3",
        "cueing.roll.order=3",
        "cueing.roll.break_hz=0.02",
        "cueing.pitch.order=2",
        "cueing.yaw.order=1",
        "cueing.pitch.damping=0.6",
        "cueing.tilt.damping=0.7",
    ],
    "every limit": [
        "cueing.surge.limit_m_s2=1.0",
        "cueing.sway.limit_m_s2=1.5",
        "cueing.heave.limit_m_s2=0.7",
        "cueing.roll.limit_deg_s=10",
        "cueing.pitch.limit_deg_s=7",
        "cueing.yaw.limit_deg_s=5",
        "cueing.tilt.rate_limit_deg_s=2",
    ],
    "every limit after the turn": [
        *("cueing.surge.limit_m_s2=1.0", "cueing.sway.limit_m_s2=1.5", "cueing.heave.limit_m_s2=0.7"),
        *("cueing.roll.limit_deg_s=10", "cueing.pitch.limit_deg_s=7", "cueing.yaw.limit_deg_s=5"),
        *("cueing.limited=after_turn", "cueing.tilt.sway_limit_m_s2=0.9"),
    ],
    "limits after the turn by the platform": [
        *(
            "cueing.preset=utias",
            "cueing.turned_by=platform",
            "cueing.limited=after_turn",
            "cueing.sway.limit_m_s2=1.5",
        ),
        *("cueing.heave.limit_m_s2=0.7", "cueing.pitch.limit_deg_s=7", "cueing.filters=hold"),
    ],
    "tilt of its own": [
        "cueing.tilt.surge_gain=0.9",
        "cueing.tilt.sway_gain=-0.3",
        "cueing.tilt.surge_limit_m_s2=1.5",
        "cueing.sway.limit_m_s2=0.8",
    ],
    "tilt without corners": [
        "cueing.tilt.rate_limit_deg_s=4",
        "cueing.tilt.acceleration_limit_deg_s2=8",
        "cueing.tilt.sway_cutoff_hz=2",
    ],
    "bounded angles": [
        *("cueing.yaw.order=1", "cueing.yaw.cutoff_hz=0.03", "cueing.yaw.gain=1", "cueing.yaw.angle_limit_deg=12"),
        *("cueing.roll.angle_limit_deg=6", "cueing.pitch.order=3", "cueing.pitch.break_hz=0.02"),
        "cueing.pitch.angle_limit_deg=3",
    ],
    "texture": [
        *("cueing.texture.sway_gain=0.5", "cueing.texture.roll_gain=1", "cueing.texture.pitch_gain=-0.7"),
        *("cueing.texture.limit_m=0.003", "cueing.texture.limit_deg=0.4", "cueing.texture.cutoff_hz=2"),
    ],
    "polynomials": [
        *("cueing.surge.scaling.largest_m_s2=8", "cueing.surge.scaling.share=0.4", "cueing.tilt.surge_gain=0.9"),
        *("cueing.heave.scaling.largest_m_s2=3", "cueing.heave.scaling.share=0.7", "cueing.heave.scaling.slope=0.3"),
        *("cueing.yaw.scaling.largest_deg_s=40", "cueing.yaw.scaling.share=0.34", "cueing.surge.limit_m_s2=1.5"),
    ],
    "linear tilt of half the slope": [
        *("cueing.tilt.law=linear", "cueing.tilt.pitch_share=0.5", "cueing.tilt.roll_share=0")
    ],
    "held": ["cueing.filters=hold", "cueing.roll.order=1", "cueing.tilt.damping=0.4", "cueing.yaw.limit_deg_s=5"],
    "held, third order and texture": [
        *("cueing.preset=utias", "cueing.filters=hold", "cueing.texture.sway_gain=0.5", "cueing.texture.roll_gain=1"),
        "cueing.turned_by=platform",
    ],
    "force turned by the platform": [
        *("cueing.turned=specific_force", "cueing.turned_by=platform", "cueing.heave.gain=0.8"),
        *("cueing.tilt.surge_gain=1.2", "cueing.tilt.pitch_share=0.7", "cueing.sway.limit_m_s2=1.5"),
    ],
    "force turned by the car, limited afterwards": [
        *("cueing.turned=specific_force", "cueing.limited=after_turn", "cueing.sway.limit_m_s2=1.5"),
        *("cueing.heave.limit_m_s2=0.7", "cueing.filters=hold", "cueing.heave.negative_share=0.5"),
    ],
    "dead zones and gains of two sides": [
        *("cueing.surge.negative_share=0.4", "cueing.heave.negative_share=1.6", "cueing.sway.dead_zone_m_s2=0.8"),
        *("cueing.heave.dead_zone_m_s2=0.3", "cueing.yaw.dead_zone_deg_s=10", "cueing.tilt.surge_gain=0.9"),
        *("cueing.surge.scaling.largest_m_s2=8", "cueing.surge.scaling.share=0.4", "cueing.surge.limit_m_s2=1.5"),
    ],
    "turned by the platform": ["cueing.preset=utias", "cueing.turned_by=platform"],
    "a gain the other way": [
        "cueing.preset=utias",
        "cueing.surge.gain=-0.8",
        "cueing.yaw.gain=-1",
        "cueing.sway.gain=0",
    ],
}


SOME = ("simona", "utias", "every limit")  # for a quick run


@pytest.mark.parametrize(
    "mixture", [name if name in SOME else pytest.param(name, marks=pytest.mark.search) for name in MIXTURES]
)
@pytest.mark.check
def test_every_axis_at_once_agrees_with_the_slow_oracle(rng, mixture):
    settings = motioncue.load_profile("ccd-dk-classical", "limits=none", *MIXTURES[mixture])
    assert isinstance(settings.cueing, Classical)
    motion = rough_drive(rng, 2500)
    cue = motioncue.cue(settings, motion)
    oracle = Washout(settings.cueing, PERIOD)
    rows = [oracle.step(row) for row in motion]
    for name in CHANNELS:
        right = np.array([row[name] for row in rows])
        assert np.abs(right).max() > 1e-3 or settings.cueing.sway.gain == 0.0
        assert cue[name] == pytest.approx(right, abs=1e-9 * max(1.0, np.abs(right).max())), name


def test_what_is_not_cued_goes_straight_through(rng):
    motion = rough_drive(rng, 50)
    motion["time"] = np.arange(50) * 3
    motion["speed"][7] = motion["engine_speed"][9] = np.nan
    cue = motioncue.cue(profile("simona"), motion)
    for name in ("speed", "engine_speed", "time"):
        np.testing.assert_array_equal(cue[name], motion[name])


@pytest.mark.parametrize("preset", responses.SETS)
def test_specific_force_is_that_of_the_platforms_attitude_and_acceleration(rng, preset):
    # The acceleration is the second difference of the displacement, so no filter is needed to know it: the
    # trapezoidal rule gives x[n+1] - 2 x[n] + x[n-1] = k^2 (a[n+1] + 2 a[n] + a[n-1]), with k half a prewarped tick.
    n = 3000
    settings = profile(preset)
    cue = motioncue.cue(settings, rough_drive(rng, n))
    felt = np.column_stack([cue["surge"], cue["sway"], -cue["heave"]])
    attitudes = np.stack([matrix(c["roll"], c["pitch"], c["yaw"]) for c in cue])
    down = np.array([0.0, 0.0, G])
    a = np.einsum("nij,nj->ni", attitudes, felt - down) + down  # in level axes
    moved = np.column_stack([cue["surge_displacement"], cue["sway_displacement"], -cue["heave_displacement"]])
    for axis, name in enumerate(("surge", "sway", "heave")):
        omega = 2 * np.pi * getattr(settings.cueing, name).cutoff_hz
        k = np.tan(omega * PERIOD / 2) / omega
        second = np.diff(moved[:, axis], 2)
        weighted = k * k * (a[2:, axis] + 2 * a[1:-1, axis] + a[:-2, axis])
        assert second == pytest.approx(weighted, abs=1e-13)
        assert np.abs(second).max() > 1e-6


def test_specific_force_at_rest_in_any_attitude_is_gravity_seen_from_there(rng):
    # Fast turns only: no translation, so what is felt is gravity in platform axes, plus g.
    n = 1500
    waves = np.sin(np.outer([3.0, 2.0, 2.5], PERIOD * np.arange(n))) * 1.5
    cue = motioncue.cue(profile("simona"), motion_of(n, roll_rate=waves[0], pitch_rate=waves[1], yaw_rate=waves[2]))
    assert np.abs(cue["roll"]).max() > 0.2
    for c in cue[::10]:
        attitude = Rotation.from_euler("ZYX", [c["yaw"], c["pitch"], c["roll"]])
        right = attitude.inv().apply([0, 0, -G]) + np.array([0, 0, G])
        assert [c["surge"], c["sway"], -c["heave"]] == pytest.approx(right, abs=1e-12)
        assert platform_force(np.zeros(3), c["roll"], c["pitch"], c["yaw"]) == pytest.approx(right, abs=1e-12)


def turned(cue):
    """Return the mean body rates between ticks, from the attitudes alone: shape (n - 1, 3)."""
    attitudes = Rotation.from_euler("ZYX", np.column_stack([cue["yaw"], cue["pitch"], cue["roll"]]))
    return (attitudes[:-1].inv() * attitudes[1:]).as_rotvec() / PERIOD


def body_rates(cue):
    return np.column_stack([cue["roll_rate"], cue["pitch_rate"], cue["yaw_rate"]])


def test_body_rates_are_those_of_the_attitude_when_it_turns():
    n = 3000
    waves = np.sin(np.outer([3.0, 2.0, 2.5], PERIOD * np.arange(n)) + np.array([[0.0], [1.0], [2.0]]))
    motion = motion_of(n, roll_rate=1.2 * waves[0], pitch_rate=waves[1], yaw_rate=1.5 * waves[2])
    cue = motioncue.cue(profile("simona"), motion)
    rates = body_rates(cue)
    middle = 0.5 * (rates[:-1] + rates[1:])
    # Trapezoid against the true mean: second order, with a third derivative of some ten rad/s^3.
    assert np.abs(turned(cue) - middle).max() < 20 * PERIOD**2
    assert np.abs(rates).max() > 0.5


def test_body_rates_are_those_of_the_attitude_when_it_tilts():
    n = 3000
    waves = np.sin(np.outer([1.0, 1.7], PERIOD * np.arange(n)))
    cue = motioncue.cue(profile("utias"), motion_of(n, surge=4 * waves[0], sway=3 * waves[1]))
    rates = body_rates(cue)
    # The tilt rate is the change since the tick before: half a tick late, so first order in the tick.
    difference = np.abs(turned(cue) - rates[1:]).max()
    assert difference < np.abs(np.diff(rates, axis=0)).max()
    assert difference < 2e-3 * np.abs(rates).max()
    assert np.abs(rates).max() > 0.1


@pytest.mark.parametrize(
    ("pitch_deg", "cosine"), [(60.0, 0.5), (75.0, np.cos(np.radians(75.0))), (85.0, 0.2), (-85.0, 0.2)]
)
def test_turning_near_straight_up_or_down_is_divided_by_a_cosine_of_a_fifth_at_least(pitch_deg, cosine):
    free = [
        f"cueing.{axis}.{key}" for axis in ("roll", "pitch", "yaw") for key in ("gain=1", "cutoff_hz=0.0001", "order=1")
    ]
    settings = profile("simona", *free, *(f"cueing.{axis}.limit_deg_s=1000" for axis in ("roll", "pitch", "yaw")))
    motion = motion_of(1020)
    motion["pitch_rate"][10:1000] = np.radians(pitch_deg) / (990 * PERIOD)
    motion["yaw_rate"][1005:] = 0.5
    cue = motioncue.cue(settings, motion)
    assert cue["pitch"][1000] == pytest.approx(np.radians(pitch_deg), rel=5e-3)
    # Euler rates of a body rate r about the down axis, level: yaw' = r / cos(pitch), roll' = yaw' sin(pitch).
    yaw, roll = (np.diff(cue[name])[1006:1012] / PERIOD for name in ("yaw", "roll"))
    assert yaw == pytest.approx(0.5 / cosine, rel=0.03)
    assert roll == pytest.approx(0.5 / cosine * np.sin(np.radians(pitch_deg)), rel=0.03)


# ---- start -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", responses.SETS)
def test_engaging_in_the_middle_of_a_drive_starts_from_rest(rng, preset):
    motion = rough_drive(rng, 400)[300:]
    cue = motioncue.cue(profile(preset), motion)[0]
    for name in ("roll", "pitch", "yaw", "surge_displacement", "sway_displacement", "heave_displacement"):
        assert abs(cue[name]) < 1e-15


@pytest.mark.parametrize("preset", responses.SETS)
def test_rest_stays_rest(preset):
    cue = motioncue.cue(profile(preset), motion_of(2000))
    for name in CHANNELS:
        assert np.all(cue[name] == 0.0), name


@pytest.mark.parametrize("preset", responses.SETS)
def test_a_heading_that_is_not_north_makes_no_difference(rng, preset):
    motion = rough_drive(rng, 500)
    other = motion.copy()
    other["yaw"] += 2.0
    assert_same_bits(motioncue.cue(profile(preset), other), motioncue.cue(profile(preset), motion))
