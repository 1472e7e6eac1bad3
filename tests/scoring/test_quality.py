"""What drivers say: the worst moment, wrong ways, against rest, sickness; values from equations and the standard."""

import numpy as np
import pytest

pytest.importorskip("scipy")

import motioncue
from motioncue.core.channels import GRAVITY, MOTION_DTYPE
from motioncue.cueing.senses import RATE_HZ, perceived
from motioncue.engine.assembly import load_profile_on
from motioncue.engine.fitting import DRIVES, against_rest, told_of_rest
from motioncue.platforms.settings import platform_presets
from motioncue.profile.profile import builtin_profiles
from motioncue.scoring import quality as module
from motioncue.scoring.quality import (
    GROWING_S,
    Felt,
    conflict,
    dose,
    incidence,
    sickness,
    weighting,
    worst,
)
from motioncue.scoring.scene import Scene, with_platform
from motioncue.virtual.installation import drive_motion

WF = {  # ISO 2631-1:1997, table 3: a thousand times the weighting
    0.02: 24.2, 0.025: 37.7, 0.0315: 59.7, 0.04: 97.1, 0.05: 157, 0.063: 267, 0.08: 461, 0.1: 695, 0.125: 895,
    0.16: 1006, 0.2: 992, 0.25: 854, 0.315: 619, 0.4: 384, 0.5: 224, 0.63: 116, 0.8: 53.0, 1.0: 23.5,
}  # fmt: skip


def sine(hz, seconds=400.0):
    return np.sin(2.0 * np.pi * hz * np.arange(round(seconds * RATE_HZ)) / RATE_HZ)


@pytest.mark.parametrize("hz", WF)
def test_weighting_is_that_of_the_standard(hz):
    assert 1e3 * abs(weighting(np.array([2j * np.pi * hz]))[0]) == pytest.approx(WF[hz], rel=3e-3)


@pytest.mark.parametrize("hz", [0.1, 0.2, 0.5])
def test_dose_of_a_sine_is_its_weighted_effective_value_times_the_root_of_time(hz):
    assert dose(2.0 * sine(hz), RATE_HZ) == pytest.approx(WF[hz] * 1e-3 * np.sqrt(2.0) * 20.0, rel=0.02)


def resting(n):
    """Return specific force, rates and up of who stands still."""
    up = np.tile([0.0, 0.0, 1.0], (n, 1))
    return GRAVITY * up, np.zeros((n, 3)), up


@pytest.mark.parametrize("axis", range(3), ids=["forward", "right", "up"])
@pytest.mark.parametrize("hz", [0.05, 0.2, 0.5])
@pytest.mark.check
def test_conflict_of_a_sine_without_turning_is_that_of_the_equations(axis, hz):
    """Of v' = (f - v) / 2 and its expectation, solved by hand: c = 0.9 a / (3 s + 1 + 5 / s), largest at 0.2 Hz."""
    force, rates, up = resting(8000)
    force[:, axis] += 1.5 * sine(hz)
    s = 2j * np.pi * hz
    expected = 1.5 * abs(0.9 / (3.0 * s + 1.0 + 5.0 / s)) / np.sqrt(2.0)
    found = conflict(force, rates, up, RATE_HZ)[4000:]
    assert np.sqrt(np.mean(found**2)) == pytest.approx(expected, rel=5e-3)


def test_who_stands_or_turns_about_the_vertical_has_no_conflict():
    force, rates, up = resting(2000)
    assert sickness(force, rates, up, RATE_HZ) == (0.0, 0.0, 0.0)
    rates[:, 2] = sine(0.1, 100.0)
    assert conflict(force, rates, up, RATE_HZ).max() < 1e-12


@pytest.mark.parametrize(("axis", "felt_along", "sign"), [(0, 1, -1.0), (1, 0, 1.0)], ids=["roll", "pitch"])
@pytest.mark.parametrize("hz", [0.05, 0.2])
def test_conflict_of_a_lean_is_that_of_the_equations(axis, felt_along, sign, hz):
    """For small angles, c = g (1 + 3 s (H' - H")) lean / (3 s + 1 + 5 / s), with H' as canals sense, H" as expected.

    Who rolls right side down feels up to the left; who pitches nose up, forward.
    """
    lean = 0.01 * sine(hz)
    _, rates, up = resting(len(lean))
    up[:, felt_along] = sign * lean
    rates[:, axis] = 0.01 * 2.0 * np.pi * hz * np.cos(2.0 * np.pi * hz * np.arange(len(lean)) / RATE_HZ)
    s = 2j * np.pi * hz
    sensed = 7.0 * 190.0 * s**2 / ((7.0 * s + 1.0) * (190.0 * s + 1.0))
    expected = (0.1 + 10.0 * sensed) * 7.0 * s / (77.0 * s + 1.0)
    size = 0.01 * GRAVITY * abs((1.0 + 3.0 * s * (sensed - expected)) / (3.0 * s + 1.0 + 5.0 / s))
    found = conflict(GRAVITY * up, rates, up, RATE_HZ)[4000:]
    assert np.sqrt(np.mean(found**2)) == pytest.approx(size / np.sqrt(2.0), rel=0.02)


def test_incidence_is_the_step_response_of_two_lags():
    """A conflict of 0.5 m/s^2 is half of the most: 42.5 % in the end, less what is left after five lags."""
    time = np.arange(0.0, 3600.0, 0.1)
    grown = 0.1 * np.sum(time / GROWING_S**2 * np.exp(-time / GROWING_S))
    assert incidence(np.full(100, 0.5)) == pytest.approx(42.5 * grown, rel=1e-4)


def felt(surge, sway):
    acting = np.zeros((len(surge), 6))
    acting[:, 0], acting[:, 1] = surge, sway
    return Felt(acting, acting, perceived(acting))


def test_the_worst_moment_is_the_end_of_the_longest_miss_and_names_its_sense():
    """Behind a lag T, a miss of 1 m/s^2 for t seconds comes to w (1 - exp(-t / T))."""
    time = np.arange(0.0, 60.0, 0.01)
    surge = ((time >= 10.0) & (time < 12.0)).astype(float)
    sway = ((time >= 40.0) & (time < 40.5)).astype(float)
    still = felt(0.0 * time, 0.0 * time)
    found = worst(felt(surge, sway), still, 100.0, 1.0)
    assert found.mismatch == pytest.approx(0.34 * (1.0 - np.exp(-2.0)), rel=1e-6)
    assert found.time == pytest.approx(12.0, abs=0.011)
    assert found.sense == "surge"
    assert worst(felt(0.1 * surge, sway), still, 100.0, 1.0).sense == "sway"
    assert worst(still, still, 100.0, 5.0).mismatch == 0.0


def profile_of(*overrides):
    return motioncue.load_profile("ccd-dk-classical", *overrides, {"platform": {"preset": "box-large"}})


@pytest.mark.parametrize("override", ["cueing.preset=utias", "cueing.preset=simona", "cueing.algorithm=optimal"])
@pytest.mark.check
def test_against_rest_is_the_error_of_the_score(override):
    """By spectra at once, and by filters in time, on the same three drives."""
    profile = profile_of(override)
    missed = rest = 0.0
    for name in DRIVES:
        scene = Scene(with_platform(profile), drive_motion(name))
        n = len(scene.car.told)
        missed += n * np.sum(scene.errors(scene.felt(scene.stopped(scene.cues(profile.cueing)))) ** 2)
        rest += n * np.sum(scene.still**2)
    assert against_rest(profile) == pytest.approx(np.sqrt(missed / rest), abs=0.03)


def test_a_platform_that_hardly_moves_or_moves_the_wrong_way_is_warned_of():
    nothing = profile_of(*(f"cueing.{axis}.gain=1e-9" for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw")))
    assert against_rest(nothing) == pytest.approx(1.0, abs=1e-6)
    wrong = profile_of("cueing.preset=utias", "cueing.surge.gain=-1", "cueing.sway.gain=-1")
    share = against_rest(wrong)
    assert share > 1.0
    assert told_of_rest(share)[0]
    assert "more wrongly than one that stands still" in told_of_rest(share)[1]
    assert told_of_rest(0.95)[0]
    assert told_of_rest(0.6) == (False, "on the standard drives the platform takes away 40 % of what is missed at rest")
    assert against_rest(motioncue.load_profile("ccd-dk")) is None


def test_wrong_way_counts_any_sense():
    """Surge is against the car in the first half, sway in the second: each half of the time, one of them always."""
    n = 4000
    car, platform = np.ones((n, 6)), np.full((n, 6), 2.0)
    platform[: n // 2, 0] = platform[n // 2 :, 1] = -2.0
    found = module.quality(Felt(car, car, car), Felt(car, car, platform), 100.0, sickness(*resting(40), RATE_HZ), {})
    assert found.wrong_way == 1.0
    assert (found.opposite["surge"], found.opposite["sway"], found.opposite["heave"]) == (0.5, 0.5, 0.0)


@pytest.mark.check
def test_built_in_profiles_with_a_platform_of_their_own_are_better_than_rest():
    for name in builtin_profiles():
        share = against_rest(motioncue.load_profile(name))
        assert share is None or not told_of_rest(share)[0], name


@pytest.mark.check
@pytest.mark.parametrize("platform", platform_presets())
@pytest.mark.parametrize("drive", DRIVES)
def test_the_default_is_felt_on_every_platform(platform, drive):
    """A cue that a platform cannot make, as heave on two posts that only pitch, would leave an error as at rest."""
    profile = load_profile_on("ccd-dk-washout", platform)
    scene = Scene(profile, drive_motion(drive))
    missed = scene.errors(scene.felt(scene.stopped(scene.cues(profile.cueing))))
    assert np.sqrt(np.sum(missed**2)) < 0.85 * np.sqrt(np.sum(scene.still**2))


@pytest.mark.check
def test_score_tells_it_of_each_motion(tmp_path, monkeypatch):
    pytest.importorskip("clarabel")
    from motioncue.scoring import score

    monkeypatch.setattr(score, "cache_folder", lambda: tmp_path)
    motion = np.zeros(500, MOTION_DTYPE)
    motion["time"] = np.arange(500) * 20_000_000
    motion["heave"] = np.sin(2.0 * np.pi * 0.5 * 0.02 * np.arange(500))
    found = motioncue.score("ccd-dk-classical", motion, platform="box-large")
    assert set(found.motions["fits"].worst) == {"1 s", "5 s"}
    assert 0.0 < found.motions["fits"].sickness.dose < found.car_sickness.dose
    assert score.apart(found)["forces"] < 1.0
