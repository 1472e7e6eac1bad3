"""Tilt coordination of the classical washout: signs, gains, limits, and the law by which the tilt moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import responses
from same_bits import assert_same_bits
from test_washout import PERIOD, G, degrees_between, measured_gain, motion_of, profile, rough_drive

import motioncue


def test_a_sustained_force_ahead_puts_the_nose_up():
    cue = motioncue.cue(profile("simona"), motion_of(10_000, surge=2.0))
    assert np.sin(cue["pitch"][-1]) == pytest.approx(0.6 * 2.0 / G, rel=1e-3)
    assert cue["roll"][-1] == 0.0
    assert np.all(np.diff(cue["pitch"]) > -1e-12)


def test_a_sustained_force_to_the_right_puts_the_left_side_down():
    cue = motioncue.cue(profile("simona"), motion_of(10_000, sway=2.0))
    assert np.sin(cue["roll"][-1]) == pytest.approx(-0.6 * 2.0 / G, rel=1e-3)
    assert cue["pitch"][-1] == 0.0


def test_a_car_that_stands_on_a_slope_is_a_sustained_force():
    # Nose up by 0.1 at rest the seat pushes forward with g sin 0.1; right side down it pushes to the left.
    cue = motioncue.cue(profile("simona"), motion_of(10_000, pitch=0.1))
    assert np.sin(cue["pitch"][-1]) == pytest.approx(0.6 * np.sin(0.1), rel=1e-3)
    cue = motioncue.cue(profile("simona"), motion_of(10_000, roll=0.1))
    assert np.sin(cue["roll"][-1]) == pytest.approx(0.6 * np.sin(0.1), rel=1e-3)


@pytest.mark.parametrize(("channel", "angle", "side"), [("surge", "pitch", 1.0), ("sway", "roll", -1.0)])
def test_tilt_has_a_gain_and_a_limit_of_its_own(channel, angle, side):
    settings = profile("simona", f"cueing.{channel}.gain=0.2", f"cueing.tilt.{channel}_gain=0.9")
    cue = motioncue.cue(settings, motion_of(10_000, **{channel: 2.0}))
    assert cue[channel][0] == pytest.approx(0.2 * 2.0, rel=1e-12)
    assert side * np.sin(cue[angle][-1]) == pytest.approx(0.9 * 2.0 / G, rel=1e-3)
    limited = profile("simona", f"cueing.{channel}.limit_m_s2=1.1", f"cueing.tilt.{channel}_limit_m_s2=0.3")
    cue = motioncue.cue(limited, motion_of(10_000, **{channel: 5.0}))
    assert cue[channel][0] == pytest.approx(1.1, rel=1e-12)
    assert side * np.sin(cue[angle][-1]) == pytest.approx(0.3 / G, rel=1e-3)


@pytest.mark.parametrize("channel", ["surge", "sway"])
def test_own_tilt_gain_has_the_closed_form_response(channel):
    """K HP + T LP, from the numbers of the set: HP is s^2/(s + w)^2, LP is w_t^2/(s + w_t)^2."""
    settings = profile("simona", f"cueing.{channel}.gain=0.25", f"cueing.tilt.{channel}_gain=0.8")
    axis, w_t = responses.SETS["simona"][channel], responses.TILT["simona"][channel]
    for omega in (0.3, 1.0, 4.0):
        s = 1j * omega
        right = 0.25 * s**2 / (s + axis.omega) ** 2 + 0.8 * w_t**2 / (s + w_t) ** 2
        found = measured_gain(settings, channel, omega)
        assert abs(found) == pytest.approx(abs(right), abs=1e-3)
        assert abs(degrees_between(found, right)) < 0.5


def test_tilt_without_a_gain_of_its_own_has_that_of_the_axis(rng):
    motion = rough_drive(rng, 500)
    same = ("surge.gain=0.3", "surge.limit_m_s2=1", "sway.gain=-0.4", "sway.limit_m_s2=2")
    said = ("tilt.surge_gain=0.3", "tilt.surge_limit_m_s2=1", "tilt.sway_gain=-0.4", "tilt.sway_limit_m_s2=2")
    left_out, given = (
        motioncue.cue(profile("simona", *(f"cueing.{each}" for each in each_of)), motion)
        for each_of in (same, same + said)
    )
    assert_same_bits(given, left_out)


@pytest.mark.parametrize("size", [0.5, 5.0, 50.0, 2000.0])
@pytest.mark.parametrize("limit", [1.0, 3.0, 5.0])
def test_the_tilt_rate_limit_holds_at_every_tick(rng, size, limit):
    n = 6000
    settings = profile("simona", f"cueing.tilt.rate_limit_deg_s={limit}")
    held = np.repeat(rng.normal(size=(2, n // 50)) * size, 50, axis=1)  # steps every 50 ticks
    cue = motioncue.cue(settings, motion_of(n, surge=held[0], sway=held[1] + rng.normal(size=n) * size))
    for angle in ("pitch", "roll"):
        change = np.abs(np.diff(cue[angle], prepend=0.0))
        assert change.max() <= np.radians(limit) * PERIOD * (1 + 1e-12) + 1e-15
        if size >= 50.0:
            assert change.max() == pytest.approx(np.radians(limit) * PERIOD, rel=1e-9)  # it does act


def test_a_limited_tilt_moves_at_the_limit_until_it_is_there():
    cue = motioncue.cue(profile("simona"), motion_of(5000, surge=8.0))
    rate = np.degrees(np.diff(cue["pitch"])) / PERIOD
    moving = np.flatnonzero(cue["pitch"][1:] < 0.9 * cue["pitch"].max())
    assert rate.max() == pytest.approx(3.0, rel=1e-9)
    assert np.mean(rate[moving] > 2.999) > 0.9


def test_no_force_tilts_beyond_upright():
    cue = motioncue.cue(profile("utias"), motion_of(5000, surge=2000.0, sway=-2000.0))
    assert cue["pitch"][-1] == pytest.approx(np.pi / 2, rel=1e-12)
    assert cue["roll"][-1] == pytest.approx(np.pi / 2, rel=1e-12)
    assert np.abs(cue["pitch"]).max() <= np.pi / 2


@pytest.mark.parametrize(("channel", "angle", "side"), [("surge", "pitch", 1.0), ("sway", "roll", -1.0)])
def test_the_linear_law_is_the_force_over_g(channel, angle, side):
    linear = ("cueing.tilt.law=linear", f"cueing.{channel}.gain=1")
    for force, right in ((5.0, 5.0 / G), (-3.0, -3.0 / G), (50.0, 1.0)):
        cue = motioncue.cue(profile("utias", *linear), motion_of(5_000, **{channel: force}))
        assert side * cue[angle][-1] == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize(("angle", "share"), [("pitch", 0.0), ("pitch", 0.4), ("roll", 0.0), ("roll", 1.5)])
def test_a_share_of_the_slope_becomes_tilt(angle, share):
    cue = motioncue.cue(profile("simona", f"cueing.tilt.{angle}_share={share}"), motion_of(10_000, **{angle: 0.1}))
    assert np.sin(cue[angle][-1]) == pytest.approx(0.6 * share * np.sin(0.1), rel=1e-3, abs=1e-12)


def test_accelerations_turned_by_the_platform_are_felt_along_the_cars_axes():
    """A sustained force ahead has pitched the platform; a bump along the car's z axis is then felt along the seat's."""
    motion = motion_of(5_000, surge=4.0)
    motion["heave"][4_000] = 3.0
    felt = {}
    for by in ("car", "platform"):
        cue = motioncue.cue(profile("utias", f"cueing.turned_by={by}"), motion)
        felt[by] = np.array([cue[name][4_000] - cue[name][3_999] for name in ("surge", "heave")])
        pitch = cue["pitch"][3_999]
    assert np.degrees(pitch) > 8.0
    assert felt["platform"] == pytest.approx([0.0, 0.5 * 3.0], abs=0.02)
    assert felt["car"] == pytest.approx([0.5 * 3.0 * np.sin(pitch), 0.5 * 3.0 * np.cos(pitch)], abs=0.02)


# ---- the law by which the tilt moves ---------------------------------------------------------------------------------

# A low-pass far above the tilt's own motion, so that the target is known: T times the force over g, after some ticks.
FREE = tuple(f"cueing.{axis}.gain=0" for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw"))
QUICK = (*FREE, "cueing.tilt.surge_gain=1", "cueing.tilt.sway_gain=1", "cueing.tilt.surge_cutoff_hz=60")


def tilts(rate, push, force):
    """Return the angles of a tilt with limits [deg/s, deg/s^2] for a force [m/s^2] at each tick, from rest."""
    limits = (f"cueing.tilt.rate_limit_deg_s={rate}", f"cueing.tilt.acceleration_limit_deg_s2={push}")
    return np.degrees(motioncue.cue(profile("simona", *QUICK, *limits), motion_of(len(force), surge=force))["pitch"])


LIMITS = st.tuples(st.floats(0.2, 60.0), st.floats(0.5, 2000.0))


@pytest.mark.search
@settings(max_examples=60)
@given(limits=LIMITS, forces=st.lists(st.tuples(st.floats(-12.0, 12.0), st.integers(1, 300)), min_size=1, max_size=12))
def test_rate_and_acceleration_of_the_tilt_are_bounded_for_any_target(limits, forces):
    rate, push = limits
    force = np.concatenate([np.full(ticks, value) for value, ticks in forces])
    angle = np.concatenate([[0.0, 0.0], tilts(rate, push, force)])
    speed = np.diff(angle) / PERIOD
    assert np.abs(speed).max() <= rate * (1 + 1e-9) + 1e-9
    assert np.abs(np.diff(speed)).max() / PERIOD <= push * (1 + 1e-9) + 1e-6  # differences of angles of some 10 deg


@pytest.mark.search
@settings(max_examples=60)
@given(limits=LIMITS, before=st.floats(-9.0, 9.0), force=st.floats(-9.0, 9.0))
def test_a_constant_target_is_reached_without_overshoot(limits, before, force):
    """From rest at one angle to rest at another; a stop from the largest rate takes rate / push.

    The low-pass needs some ten ticks; a step so small that the tilt is there as soon follows it, and may pass it by
    what stopping takes: a few times the largest change of the rate in a tick.
    """
    rate, push = limits
    start, end = np.degrees(np.arcsin(before / G)), np.degrees(np.arcsin(force / G))

    def ticks_for(way):
        return round((abs(way) / rate + rate / push + 2.0 * np.sqrt(abs(way) / push) + 0.5) / PERIOD)

    first, second = ticks_for(start), ticks_for(end - start)
    angle = tilts(rate, push, np.repeat([before, force], [first, second]))
    for begin, target, part in ((0.0, start, angle[:first]), (start, end, angle[first:])):
        toward = np.sign(target - begin)
        least = push * PERIOD**2
        assert (toward * (part - target)).max() <= (4.0 * least if abs(target - begin) < 100.0 * least else 1e-5)
        assert part[-1] == pytest.approx(target, abs=1e-6)


@pytest.mark.parametrize(("rate", "push", "way"), [(3.0, 30.0, 8.0), (3.0, 1.5, 8.0), (50.0, 20.0, 10.0)])
def test_a_step_of_the_target_takes_as_long_as_the_limits_allow(rate, push, way):
    """The quickest way between two rests takes way / rate + rate / push, or 2 sqrt(way / push) if it is short."""
    quickest = way / rate + rate / push if way > rate**2 / push else 2.0 * np.sqrt(way / push)
    angle = tilts(rate, push, np.full(round(2.0 * quickest / PERIOD), G * np.sin(np.radians(way))))
    there = PERIOD * np.flatnonzero(angle > way - 0.01)[0]
    assert quickest - np.sqrt(2 * 0.01 / push) - 2 * PERIOD <= there <= quickest + 8 * PERIOD + 0.05


def test_a_tilt_within_its_limits_is_the_closed_form(rng):
    """Limits that do not act change nothing but rounding."""
    motion = motion_of(4000, surge=0.5 * np.sin(0.01 * np.arange(4000)), sway=np.linspace(0.0, 1.0, 4000))
    free = motioncue.cue(profile("simona", "cueing.tilt.rate_limit_deg_s=90"), motion)
    held = motioncue.cue(
        profile("simona", "cueing.tilt.rate_limit_deg_s=90", "cueing.tilt.acceleration_limit_deg_s2=500"), motion
    )
    for name in ("pitch", "roll", "surge", "sway"):
        assert held[name] == pytest.approx(free[name], abs=1e-14)
        assert np.abs(free[name]).max() > 1e-2


def test_a_tilt_that_has_fallen_behind_catches_up_with_a_moving_target():
    """The target moves by 1 deg/s; the tilt starts from rest, is 2 deg behind, and never passes it."""
    ticks = 4000
    target = 2.0 + 1.0 * PERIOD * np.arange(ticks)
    angle = tilts(5.0, 4.0, G * np.sin(np.radians(target)))
    lag = 1.0 * 2.0 / (2.0 * np.pi * 60.0)  # [deg] that of the low-pass: 2 / w at 1 deg/s
    assert (angle - target).max() <= 1e-9
    assert np.abs(angle - target)[-1000:].max() < 1.01 * lag
