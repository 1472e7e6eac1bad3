"""Where the limits of the classical washout act: on the car's axes, or on level accelerations and Euler rates."""

import numpy as np
import pytest
from same_bits import assert_same_bits
from test_washout import PERIOD, motion_of, profile, rough_drive

import motioncue

LIMITS = ("cueing.surge.limit_m_s2=1", "cueing.heave.limit_m_s2=0.5", "cueing.yaw.limit_deg_s=10")
WHOLE = ("cueing.surge.gain=1", "cueing.heave.gain=1", "cueing.yaw.gain=1", "cueing.tilt.surge_gain=0")


def accelerated(where, **channels):
    """Return surge and heave of the first tick, at which the platform is level: what the filters were given."""
    cue = motioncue.cue(profile("simona", *LIMITS, *WHOLE, f"cueing.limited={where}"), motion_of(1, **channels))
    return cue["surge"][0], cue["heave"][0]


def test_a_car_that_brakes_nose_down_is_limited_before_or_after_the_turn():
    # 4 m/s^2 ahead along a car with its nose up by 0.5 rad: level 4 cos 0.5 ahead, 4 sin 0.5 up.
    before, after = (accelerated(where, surge=4.0, pitch=0.5) for where in ("before_turn", "after_turn"))
    assert before == pytest.approx((np.cos(0.5), np.sin(0.5)), rel=1e-12)
    assert after == pytest.approx((1.0, 0.5), rel=1e-12)  # 3.5 and 1.9, each at its limit


def test_level_accelerations_within_the_limits_pass_though_the_cars_are_beyond():
    # 1.2 m/s^2 along the car and 0.9 above it: level they are 0.42 ahead and 1.44 up.
    angle = np.arctan2(0.9, 1.2)
    ahead = 1.2 * np.cos(angle) - 0.9 * np.sin(angle)
    after = accelerated("after_turn", surge=1.2, heave=0.9, pitch=angle)
    assert after == pytest.approx((ahead, 0.5), rel=1e-12)
    before = accelerated("before_turn", surge=1.2, heave=0.9, pitch=angle)
    assert before[0] == pytest.approx(np.cos(angle) - 0.5 * np.sin(angle), rel=1e-12)


def test_euler_rates_are_limited_where_the_platform_leans():
    # Nose up by 60 degrees, a rate about the platform's own down axis is twice as much yaw: 9 deg/s are 18.
    free = [f"cueing.pitch.{key}" for key in ("gain=1", "cutoff_hz=0.0001", "order=1")]
    yaw = ("cueing.yaw.gain=1", "cueing.yaw.cutoff_hz=0.0001", "cueing.yaw.order=1", "cueing.yaw.limit_deg_s=10")
    motion = motion_of(1020)
    motion["pitch_rate"][10:1000] = np.radians(60) / (990 * PERIOD)
    motion["yaw_rate"][1005:] = np.radians(9)
    turned = {
        where: np.diff(motioncue.cue(profile("simona", *free, *yaw, f"cueing.limited={where}"), motion)["yaw"])[1010]
        for where in ("before_turn", "after_turn")
    }
    assert np.degrees(turned["before_turn"]) / PERIOD == pytest.approx(18.0, rel=0.02)
    assert np.degrees(turned["after_turn"]) / PERIOD == pytest.approx(10.0, rel=0.02)


def test_without_limits_it_makes_no_difference(rng):
    motion = rough_drive(rng, 800)
    one, two = (
        motioncue.cue(profile("utias", f"cueing.limited={where}"), motion) for where in ("before_turn", "after_turn")
    )
    assert_same_bits(one, two)


def test_the_limit_of_the_tilt_stays_along_the_cars_axes():
    settings = profile("simona", "cueing.limited=after_turn", "cueing.tilt.surge_limit_m_s2=0.5")
    pitch = motioncue.cue(settings, motion_of(12_000, surge=5.0))["pitch"]
    assert np.sin(pitch[-1]) == pytest.approx(0.5 / 9.80665, rel=1e-3)
