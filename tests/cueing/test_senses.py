"""What the organs report: transfer functions as published, specific force and rates by rotations of SciPy."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from motioncue.core.channels import GRAVITY, MOTION_DTYPE
from motioncue.cueing import senses

OMCT = 10.0 ** (np.arange(12) / 5.0 - 1.0)
"""The twelve frequencies of the Objective Motion Cueing Test [rad/s]."""


@pytest.mark.parametrize("sense", range(6))
def test_an_organ_responds_as_published(sense):
    s = 1j * OMCT
    published = (
        0.4 * (10 * s + 1) / ((5 * s + 1) * (0.016 * s + 1))
        if sense < 3
        else 458.4 * s**2 / ((5.73 * s + 1) * (80 * s + 1))
    )
    threshold = [0.17, 0.17, 0.28, *np.radians([3.0, 3.6, 2.6])][sense]
    forward, back = senses.organ(sense)
    z = np.exp(-s / senses.RATE_HZ)
    found = np.polyval(forward[::-1], z) / np.polyval(back[::-1], z)
    # The bilinear transform shifts frequencies by (w T)^2 / 12: 5 % at the highest.
    np.testing.assert_allclose(found, published / threshold, rtol=0.02)


@pytest.mark.parametrize("sense", [0, 5])
def test_the_stages_of_an_organ_are_the_organ(sense):
    s = 1j * OMCT
    whole = senses.OTOLITH if sense < 3 else senses.CANAL
    product = np.prod([a + b / (lag_s * s + 1) for a, b, lag_s in senses.STAGES[sense < 3]], axis=0)
    np.testing.assert_allclose(product, np.polyval(whole[0], s) / np.polyval(whole[1], s), rtol=1e-12)


def by_rotations(acceleration, attitude, rates):
    """Return what is felt: specific force less that of standing level, and rates; x forward, y right, z down."""
    gravity = np.array([0.0, 0.0, GRAVITY])
    force = attitude.inv().apply(acceleration - gravity) + gravity
    return np.hstack([force * [1.0, 1.0, -1.0], rates])


def test_a_car_on_a_slope_is_felt_as_its_attitude_says():
    rng = np.random.default_rng(3)
    motion = np.zeros(50, MOTION_DTYPE)
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate"):
        motion[name] = rng.normal(size=50)
    attitude = Rotation.from_euler("ZYX", np.column_stack([motion["yaw"], motion["pitch"], motion["roll"]]))
    body = np.column_stack([motion["surge"], motion["sway"], -motion["heave"]])
    rates = np.column_stack([motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"]])
    np.testing.assert_allclose(
        senses.felt_in_car(motion), by_rotations(attitude.apply(body), attitude, rates), atol=1e-12
    )


def test_nose_up_is_felt_as_force_forward_and_right_side_down_as_force_to_the_left():
    poses = np.zeros((40, 6))
    poses[:, 4] = 0.1
    assert senses.felt_by_pose(poses, 100.0)[20, 0] == pytest.approx(GRAVITY * np.sin(0.1))
    poses[:, 4], poses[:, 3] = 0.0, 0.1
    assert senses.felt_by_pose(poses, 100.0)[20, 1] == pytest.approx(-GRAVITY * np.sin(0.1))


def test_a_pose_is_felt_as_rotations_and_a_spline_say():
    rng = np.random.default_rng(4)
    at = np.linspace(0.0, 4.0, 21)
    spline = CubicSpline(at, rng.normal(size=(21, 6)) * [0.2, 0.2, 0.2, 0.2, 0.2, 0.4])
    rate = 1000.0
    time = np.arange(4000) / rate
    poses = spline(time)
    attitude = Rotation.from_euler("ZYX", poses[:, [5, 4, 3]])
    nudge = 1e-4
    later, before = (Rotation.from_euler("ZYX", spline(time + side)[:, [5, 4, 3]]) for side in (nudge, -nudge))
    rates = (before.inv() * later).as_rotvec() / (2.0 * nudge)
    expected = by_rotations(spline(time, 2)[:, :3] * [1.0, 1.0, -1.0], attitude, rates)
    found = senses.felt_by_pose(poses, rate)
    # Second differences round the corners that the spline's acceleration has at its knots.
    smooth = np.abs((time * 5.0 + 0.5) % 1.0 - 0.5) > 0.02
    np.testing.assert_allclose(found[smooth][5:-5], expected[smooth][5:-5], atol=1e-3)


def test_the_band_ends_at_3_hz_without_delay():
    rate = 333.33
    time = np.arange(int(30 * rate)) / rate
    for frequency, gain in ((0.3, 1.0), (3.0, 0.5), (9.0, 1.0 / (1.0 + 3.0**4))):  # Butterworth, twice
        wave = np.sin(2 * np.pi * frequency * time)[:, None]
        middle = slice(int(10 * rate), int(20 * rate))
        found = senses.low_passed(wave, rate)[middle]
        np.testing.assert_allclose(found, gain * wave[middle], atol=0.012)


def test_rows_of_the_band_reach_the_last_tick():
    ramp = np.arange(1000.0)[:, None]
    found = senses.banded(ramp, 333.33)
    assert (len(found) - 1) / senses.RATE_HZ >= 999 / 333.33
    np.testing.assert_allclose(found[10:40, 0], np.arange(10, 40) * 333.33 / 20.0, rtol=1e-4)


def test_sustained_force_is_reported_and_sustained_turning_fades():
    told = senses.perceived(np.ones((int(400 * senses.RATE_HZ), 6)))
    np.testing.assert_allclose(told[-1, :3], 0.4 / np.array([0.17, 0.17, 0.28]), rtol=1e-6)
    assert np.abs(told[-1, 3:]).max() < 0.02 * np.abs(told[:, 3:]).max()
