"""What other open washouts have: force turned by the platform, dead zones, gains of two sides, returns."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from test_washout import PERIOD, motion_of, profile
from test_washout_scaling import scaled

import motioncue
from motioncue import ConfigError, cueing
from motioncue.core.channels import GRAVITY

# ---- force with gravity, turned by the platform ----------------------------------------------------------------------

# The project MCIS (E. Loewenthal, 2018, BSD-3; github.com/ericloewe/MCIS, testinputs/test1, 2 and 4 with their outputs,
# 120 Hz): 5 m/s^2 along x as a step and as a ramp of 960 samples, 1 m/s^2 along z as a step.  Its configuration is
# binary; these settings were fitted to its outputs.  Its pitch has the other sign than its force would need, so the
# tilt has a negative gain here.
OMEGA = 1.95509  # [rad/s] of all its filters
MCIS = (
    *("preset=utias", "turned=specific_force", "turned_by=platform", "limited=after_turn", "filters=hold"),
    *(f"{axis}.gain=0.25" for axis in ("surge", "sway", "heave")),
    *(f"{axis}.cutoff_hz={OMEGA / (2 * np.pi)}" for axis in ("surge", "sway", "heave")),
    *(f"{axis}.break_hz={OMEGA / (2 * np.pi)}" for axis in ("surge", "sway", "heave")),
    *("surge.limit_m_s2=1.25", "tilt.law=linear", f"tilt.surge_gain={-0.0879994 * GRAVITY / 5}"),
    f"tilt.surge_cutoff_hz={OMEGA / (2 * np.pi)}",
)


def as_mcis(channel, values):
    """Return the cues of a drive that is at rest at first, for every sample."""
    settings = profile("utias", *(f"cueing.{each}" for each in MCIS))
    return cueing.design(settings.cueing, 120.0).process(motion_of(len(values), **{channel: values}))


def test_a_step_of_surge_as_mcis_has_it():
    cue = as_mcis("surge", np.repeat([0.0, 5.0], [1, 999]))
    samples = [2, 12, 22, 32, 52, 72, 92]  # after the first with the step
    travel = [0.000168045, 0.0051401, 0.014679, 0.0263873, 0.0503023, 0.0696197, 0.0820595]
    pitch = [4.57153e-05, 0.0014779, 0.00446751, 0.00851387, 0.0183275, 0.0288299, 0.038879]
    at = np.array(samples) + 1
    assert cue["surge_displacement"][at] == pytest.approx(travel, abs=1e-3)
    assert -cue["pitch"][at] == pytest.approx(pitch, abs=4e-7)
    late = [(0.0879174, 0.00128993, -0.000930224), (0.0879719, 0.000499504, -0.00046076)]
    late += [(0.0879952, 0.000102269, -0.000132954)]
    for angle, ahead, up in late:  # found by the pitch, which rises all the time
        row = cue[np.searchsorted(-cue["pitch"], angle)]
        assert (row["surge_displacement"], row["heave_displacement"]) == pytest.approx((ahead, up), abs=3e-5)


def test_a_ramp_of_surge_as_mcis_has_it():
    cue = as_mcis("surge", np.minimum(5.0 / 960.0 * np.arange(1500), 5.0))
    rows = [
        (0.0856736, 0.00470709, -0.00260562),
        (0.086642, 0.00300056, -0.00221382),
        (0.0876171, 0.00101082, -0.00131235),
    ]
    for angle, ahead, up in rows:
        row = cue[np.searchsorted(-cue["pitch"], angle)]
        assert (row["surge_displacement"], row["heave_displacement"]) == pytest.approx((ahead, up), abs=1e-4)


def test_a_step_of_heave_as_mcis_has_it():
    cue = as_mcis("heave", np.repeat([0.0, 1.0], [1, 300]))
    travel = {10: 0.000737548, 20: 0.00250665, 50: 0.00960954, 100: 0.0170207}
    assert cue["heave_displacement"][np.array([*travel]) + 1] == pytest.approx([*travel.values()], abs=2e-4)
    assert cue["heave_displacement"].max() == pytest.approx(0.017703, abs=2e-4)


def test_tilt_that_presents_the_force_leaves_nothing_to_the_onset():
    """With unit gains, what is turned by the platform is f cos(pitch) - g sin(pitch): nothing where tilt presents f."""
    whole = (
        *(f"cueing.{axis}.gain=1" for axis in ("surge", "heave")),
        *("cueing.surge.order=1", "cueing.surge.cutoff_hz=1e-7", "cueing.tilt.law=linear"),
    )
    by = ("cueing.turned=specific_force", "cueing.turned_by=platform")
    cue = motioncue.cue(profile("simona", *whole, *by), motion_of(6000, surge=1.0))
    speed = np.diff(cue["surge_displacement"]) / PERIOD
    level = np.diff(speed) / PERIOD
    right = np.cos(cue["pitch"]) - GRAVITY * np.sin(cue["pitch"])
    assert level == pytest.approx(right[1:-1], abs=5e-3)
    assert abs(level[-1]) < 6e-3  # f/g in place of arcsin(f/g)
    free = motioncue.cue(profile("simona", *whole, by[1]), motion_of(6000, surge=1.0))
    assert np.diff(free["surge_displacement"], 2)[-1] / PERIOD**2 == pytest.approx(1.0, abs=6e-3)


def test_a_car_that_stands_on_a_slope_displaces_nothing_by_its_own_attitude():
    """Its specific force is gravity, which its own attitude turns back into the vertical."""
    same = [f"cueing.{axis}.gain=0.6" for axis in ("surge", "sway", "heave")]
    motion = motion_of(2000, pitch=0.2, roll=-0.1)
    motion["pitch"][:500] = 0.0
    cue = motioncue.cue(profile("simona", *same, "cueing.turned=specific_force"), motion)
    for name in ("surge", "sway", "heave"):
        assert np.abs(cue[f"{name}_displacement"]).max() < 1e-14
    assert cue["pitch"][-1] > 0.05


# ---- small inputs, and those of the two sides ------------------------------------------------------------------------


def test_nothing_passes_up_to_the_dead_zone_half_at_twice_and_all_far_beyond():
    keys = ("cueing.sway.gain=0.8", "cueing.sway.dead_zone_m_s2=0.3")
    found = scaled("sway", [0.0, 0.1, -0.3, 0.3 + 1e-6, 0.6, -0.6, 30.0], *keys)
    assert np.all(found[:3] == 0.0)
    assert found[3] == pytest.approx(0.0, abs=1e-10)  # without a corner
    assert found[4:6] == pytest.approx([0.24, -0.24], rel=1e-12)
    assert found[6] == pytest.approx(0.8 * 30.0, rel=2e-4)
    assert scaled(
        "yaw_rate", np.radians([3.0, 8.0]), "cueing.yaw.gain=1", "cueing.yaw.dead_zone_deg_s=4"
    ) == pytest.approx([0.0, np.radians(4.0)], abs=1e-15)


def test_noise_at_standstill_moves_nothing(rng):
    noise = {name: rng.uniform(-0.1, 0.1, 2000) for name in ("surge", "sway", "heave")}
    zones = [f"cueing.{axis}.dead_zone_m_s2=0.1" for axis in noise]
    cue = motioncue.cue(profile("utias", *zones), motion_of(2000, **noise))
    for name in ("surge_displacement", "sway_displacement", "heave_displacement", "roll", "pitch"):
        assert not cue[name].any(), name


@pytest.mark.parametrize(("axis", "share"), [("surge", 0.4), ("heave", 1.7), ("sway", 0.0)])
def test_negative_inputs_have_a_gain_of_their_own_without_a_corner(axis, share):
    inputs = np.array([-50.0, -1e-4, 0.0, 1e-4, 50.0])
    found = scaled(axis, inputs, f"cueing.{axis}.gain=0.5", f"cueing.{axis}.negative_share={share}")
    assert found[[0, -1]] == pytest.approx([0.5 * share * -50.0, 0.5 * 50.0], abs=2e-3)
    # About 0 both slopes are the mean of the two gains.
    assert found[[1, 2, 3]] == pytest.approx(0.25 * (1.0 + share) * inputs[[1, 2, 3]], abs=1e-7)


def test_tilt_has_the_same_share_of_braking():
    keys = ("cueing.surge.negative_share=0.5", "cueing.tilt.surge_gain=0.8")
    ahead, back = (motioncue.cue(profile("simona", *keys), motion_of(8000, surge=a))["pitch"][-1] for a in (3.0, -3.0))
    assert np.sin(back) / np.sin(ahead) == pytest.approx(-0.5, abs=4e-3)


# ---- return below a threshold ----------------------------------------------------------------------------------------


def test_yaw_returns_no_faster_than_its_threshold_and_as_its_equation_says():
    """Angle' = -r angle / sqrt(angle^2 + r^2) with no input, and nothing at all above the threshold r."""
    free = ("cueing.yaw.order=1", "cueing.yaw.gain=1", "cueing.yaw.cutoff_hz=1e-7", "cueing.yaw.return_deg_s=2")
    rate = np.repeat(np.radians([10.0, 0.0]), [700, 5000])
    yaw = motioncue.cue(profile("simona", *free), motion_of(5700, yaw_rate=rate))["yaw"]
    assert yaw[699] == pytest.approx(np.radians(10.0) * 699 * PERIOD, rel=1e-6)
    r, time = np.radians(2.0), PERIOD * np.arange(5000)
    right = solve_ivp(lambda _, a: -r * a / np.sqrt(a**2 + r**2), (0.0, time[-1]), [yaw[700]], t_eval=time, rtol=1e-8)
    assert yaw[700:] == pytest.approx(right.y[0], abs=2e-4)
    assert np.abs(np.diff(yaw[700:])).max() <= r * PERIOD * (1.0 + 1e-9)
    assert abs(yaw[-1]) < np.radians(0.3)


def test_travel_returns_with_no_more_than_its_threshold_and_as_its_equation_says():
    """x'' = -r p / sqrt(p^2 + r^2), p = 2 x' + x / sqrt(1 + |x| / 4 r), with no input and no filter of its own."""
    free = ("cueing.surge.order=1", "cueing.surge.gain=1", "cueing.surge.cutoff_hz=1e-7", "cueing.tilt.surge_gain=0")
    surge = np.zeros(12_000)
    surge[1:300], surge[301:600] = 1.0, -1.0
    motion = motion_of(12_000, surge=surge)
    cue = motioncue.cue(profile("simona", *free, "cueing.surge.return_m_s2=0.1"), motion)
    kept = motioncue.cue(profile("simona", *free), motion)["surge_displacement"]
    at, x = 620, cue["surge_displacement"]
    assert x[599] == pytest.approx(kept[599], rel=1e-3)  # it pushes by more than the threshold until then
    r, time = 0.1, PERIOD * np.arange(12_000 - at)

    def change(_, state):
        pull = 2.0 * state[1] + state[0] / np.sqrt(1.0 + abs(state[0]) / (4.0 * r))
        return [state[1], -r * pull / np.hypot(pull, r)]

    start = [x[at], (x[at + 1] - x[at - 1]) / (2.0 * PERIOD)]
    right = solve_ivp(change, (0.0, time[-1]), start, t_eval=time, rtol=1e-8)
    assert x[at:] == pytest.approx(right.y[0], abs=3e-3)
    assert np.abs(cue["surge"][at:]).max() <= r
    assert (abs(x[-1]), kept[-1]) == (pytest.approx(0.0, abs=0.01), pytest.approx(kept[600], rel=1e-3))


def test_a_response_that_depends_on_the_size_of_the_input_has_no_closed_form():
    for key in ("surge.negative_share=0.5", "sway.dead_zone_m_s2=0.1", "yaw.return_deg_s=2", "heave.return_m_s2=0.1"):
        axis = key.split(".")[0]
        with pytest.raises(ConfigError, match=rf"cueing\.{axis}: there is no closed form"):
            cueing.theory(profile("simona", f"cueing.{key}").cueing, "surge", np.array([1j]))
