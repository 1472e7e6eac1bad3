"""The best motion: drives whose best motion is known, a small program solved by SciPy, and the bounds."""

import numpy as np
import pytest

pytest.importorskip("clarabel")
pytest.importorskip("scipy")

from scipy.optimize import LinearConstraint, minimize
from scipy.signal import lfilter

from motioncue.core.channels import GRAVITY
from motioncue.cueing.senses import RATE_HZ, felt_by_pose, organ, perceived, sampled
from motioncue.engine.assembly import load_profile_on
from motioncue.platforms.build import build
from motioncue.platforms.settings import ActuatorBounds
from motioncue.profile.profile import platform_table
from motioncue.scoring import optimum
from motioncue.scoring.scene import Scene
from motioncue.virtual.installation import drive_motion

EVEN = np.ones(6)


def axes(**bounds):
    """Return a platform of single axes: channel to half range, speed, acceleration in m or deg."""
    rows = []
    for channel, (half, speed, acceleration) in bounds.items():
        if channel.endswith("displacement"):
            keys = {"min_m": -half, "max_m": half, "speed_m_s": speed, "acceleration_m_s2": acceleration}
            rows.append({"name": f"{channel}_axis", "channel": channel, "travel": keys})
        else:
            keys = {"min_deg": -half, "max_deg": half, "speed_deg_s": speed, "acceleration_deg_s2": acceleration}
            rows.append({"name": f"{channel}_axis", "channel": channel, "turn": keys})
    return build(platform_table({"kind": "axes", "axes": rows}))


def rows(n):
    return np.arange(n) / RATE_HZ


def error(felt, motion, built):
    """Return the error of a motion in thresholds, by sense, with the exact equations at the ticks of 200 Hz."""
    ticks = np.arange(10 * (len(felt) - 1) + 1) / (10 * RATE_HZ)
    moved = felt_by_pose(optimum.poses_at(motion, built, ticks), 10 * RATE_HZ)[::10]
    return np.sqrt(np.mean((perceived(felt) - perceived(moved)) ** 2, axis=0))


def test_of_nothing_the_best_is_nothing():
    motion = optimum.best_motion(np.zeros((100, 6)), build(platform_table("hexapod-dim")), EVEN, passes=1)
    np.testing.assert_allclose(motion, 0.0, atol=1e-6)


def test_a_motion_within_all_bounds_is_followed():
    # The platform can do what the car does: the best motion is the car's own, and no error is left.
    built = axes(heave_displacement=(0.5, 2.0, 20.0), yaw=(60.0, 90.0, 400.0))
    time = rows(161)
    swell = np.sin(0.5 * np.pi * time / 8.0) ** 2
    heave, yaw = 0.1 * swell * (1 - np.cos(2.5 * time)), 0.1 * swell * (1 - np.cos(2.0 * time))
    felt = np.zeros((161, 6))
    felt[:, 2] = np.gradient(np.gradient(heave, time), time)
    felt[:, 5] = np.gradient(yaw, time)
    motion = optimum.best_motion(felt, built, EVEN)
    assert (
        error(felt, motion, built)[[2, 5]].max() < 0.02 * np.sqrt(np.mean(perceived(felt) ** 2, axis=0))[[2, 5]].min()
    )
    np.testing.assert_allclose(optimum.poses_at(motion, built, time)[:, 2], heave, atol=0.01)


def test_sustained_acceleration_on_tilt_alone_is_shown_by_the_angle_whose_gravity_it_is():
    built = axes(pitch=(30.0, 60.0, 500.0))
    felt = np.zeros((801, 6))
    felt[:, 0] = 2.0
    pitch = optimum.poses_at(optimum.best_motion(felt, built, EVEN), built, rows(801))[:, 4]
    np.testing.assert_allclose(pitch[600:], np.arcsin(2.0 / GRAVITY), rtol=0.01)


def test_sustained_acceleration_to_the_right_is_shown_by_leaning_to_the_left():
    built = axes(roll=(30.0, 60.0, 500.0), sway_displacement=(0.2, 1.0, 5.0))
    felt = np.zeros((801, 6))
    felt[:, 1] = 1.0
    poses = optimum.poses_at(optimum.best_motion(felt, built, EVEN), built, rows(801))
    np.testing.assert_allclose(poses[400:700, 3], -np.arcsin(1.0 / GRAVITY), rtol=0.03)
    assert poses[10, 1] > 0.0  # to the right until the tilt is there


@pytest.mark.parametrize(("half", "speed", "acceleration"), [(0.05, 5.0, 50.0), (5.0, 0.12, 50.0), (5.0, 5.0, 0.7)])
@pytest.mark.check
def test_a_small_program_has_the_solution_that_scipy_finds(half, speed, acceleration):
    # Unknown here: the acceleration at every second row, linear between; integrated exactly from row to row.
    n, step = 61, 1.0 / RATE_HZ
    felt = np.zeros((n, 6))
    felt[:, 2] = 1.2 * np.sin(2 * np.pi * 0.8 * rows(n)) + 0.3
    accelerations = np.array([np.interp(rows(n), rows(n)[::2], unit) for unit in np.eye(31)[1:]]).T
    speeds, places = np.zeros((n, 30)), np.zeros((n, 30))
    for k in range(n - 1):
        a, b = accelerations[k], accelerations[k + 1]
        speeds[k + 1] = speeds[k] + step * (a + b) / 2
        places[k + 1] = places[k] + step * speeds[k] + step**2 * (a / 3 + b / 6)
    between = []  # positions a quarter of a row apart
    for t in step * np.arange(0.0, 1.0, 0.25):
        a, b = accelerations[:-1], accelerations[1:]
        between.append(places[:-1] + t * speeds[:-1] + t**2 * a / 2 + t**3 * (b - a) / (6 * step))
    forward, back = organ(2)
    wanted, reported = lfilter(forward, back, felt[:, 2]), lfilter(forward, back, accelerations, axis=0)
    sizes = ((np.concatenate([places, *between]), half), (speeds, speed), (accelerations, acceleration))
    found = minimize(
        lambda x: np.sum((wanted - reported @ x) ** 2),
        np.zeros(30),
        jac=lambda x: -2.0 * reported.T @ (wanted - reported @ x),
        method="SLSQP",
        constraints=[LinearConstraint(each, -most, most) for each, most in sizes],
        options={"maxiter": 500, "ftol": 1e-7},
    )
    assert found.success
    motion = optimum.best_motion(felt, axes(heave_displacement=(half, speed, acceleration)), EVEN, passes=1)
    mine = (motion[:-2, 0] - 2 * motion[1:-1, 0] + motion[2:, 0]) / (2 * step) ** 2
    assert found.fun > 0.05 * np.sum(wanted**2)  # the bounds matter
    assert np.sum((wanted - reported @ mine[1:]) ** 2) == pytest.approx(found.fun, rel=5e-3)


def test_a_long_drive_with_corners_has_a_solution():
    # A corner of 90 degrees every 18 s, straight roads between: what is not felt goes on for minutes.
    n = 3000
    felt = np.zeros((n, 6))
    for number, time in enumerate(range(12, 140, 18)):
        felt[:, 5] += (-1) ** (number // 2) * 0.45 * np.exp(-(((rows(n) - time) / 1.6) ** 2))
    built = axes(yaw=(12.0, 30.0, 500.0))
    motion = optimum.best_motion(felt, built, EVEN, passes=1)
    still = np.sqrt(np.mean(perceived(felt) ** 2, axis=0))
    assert error(felt, motion, built)[5] < 0.85 * still[5]


def rough(n, seed=1):
    """Return a hard drive: noise below 0.5 Hz of up to several thresholds."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, 6)) * [4.0, 4.0, 2.0, 0.3, 0.3, 0.5]
    return lfilter([0.15], [1.0, -0.85], noise, axis=0)


@pytest.mark.search
@pytest.mark.parametrize("name", ["hexapod-dim", "hexapod-cranks", "posts-4", "seat-2", "box-small"])
def test_every_actuator_keeps_its_bounds(name):
    n = 81
    felt, built = rough(n), build(platform_table(name))
    motion = optimum.best_motion(felt, built, EVEN, passes=2)
    time = np.arange(20 * (n - 1) + 1) / (20 * RATE_HZ)
    positions = built.kinematics.inverse(optimum.poses_at(motion, built, time))
    low, high, speed, acceleration, *_ = np.array(built.bounds).T
    span, knots = high - low, slice(None, None, 40)
    assert (positions >= low - 0.02 * span).all()
    assert (positions <= high + 0.02 * span).all()
    assert (positions[knots] >= low - 2e-3 * span).all()
    assert (positions[knots] <= high + 2e-3 * span).all()
    speeds, accelerations = np.gradient(positions, time, axis=0), np.diff(positions, 2, axis=0) * (20 * RATE_HZ) ** 2
    assert (np.abs(speeds[knots]) <= 1.02 * speed).all()
    assert (np.abs(accelerations) <= 1.02 * acceleration).all()
    assert np.abs(positions - built.neutral).max() > 0.15 * span.max()  # it does move
    assert np.sum(error(felt, motion, built) ** 2) < 0.98 * np.sum(np.mean(perceived(felt) ** 2, axis=0))


@pytest.mark.check
@pytest.mark.parametrize("name", [pytest.param("hexapod-dim", marks=pytest.mark.check), "hexapod-simona"])
def test_legs_keep_their_bounds_between_the_knots_too(name):
    """Every millisecond, by the exact kinematics: a tenth of a millimeter and a thousandth of the largest speed."""
    felt, built = rough(161), build(platform_table(name))
    motion = optimum.best_motion(felt, built, EVEN)
    time = np.arange(8000) / 1000.0
    legs = built.kinematics.inverse(optimum.poses_at(motion, built, time))
    low, high, speed, *_ = np.array(built.bounds).T
    assert (legs > low - 1e-4).all()
    assert (legs < high + 1e-4).all()
    assert (np.abs(np.diff(legs, axis=0)) < 1.001e-3 * speed).all()
    assert np.abs(legs - built.neutral).max() > 0.99 * np.min([high - built.neutral, built.neutral - low])  # they act


@pytest.mark.check
def test_a_motion_beyond_the_reach_of_the_cranks_ends_within_it():
    felt, built = np.zeros((81, 6)), build(platform_table("hexapod-cranks"))
    felt[:, 0] = 3.0 * np.sin(2.0 * rows(81))
    motion = optimum.best_motion(felt, built, EVEN)
    poses = optimum.poses_at(motion, built, rows(81))
    assert np.isfinite(built.kinematics.inverse(poses)).all()
    assert np.sum(error(felt, motion, built) ** 2) < 0.9 * np.sum(np.mean(perceived(felt) ** 2, axis=0))


def test_more_room_is_never_worse():
    felt = rough(161, seed=2)
    errors = []
    for half in (0.05, 0.2, 1.0):
        built = axes(surge_displacement=(half, 1.0, 10.0), pitch=(10.0, 30.0, 300.0))
        errors.append(np.sum(error(felt, optimum.best_motion(felt, built, EVEN), built)[[0, 4]] ** 2))
    assert errors[0] > errors[1] > errors[2]


def test_weights_move_error_from_one_sense_to_the_other():
    felt, built = rough(161, seed=3), axes(pitch=(20.0, 60.0, 500.0))
    forces, rates = (
        error(felt, optimum.best_motion(felt, built, weights), built)
        for weights in (EVEN, np.array([1.0, 1.0, 1.0, 4.0, 4.0, 4.0]))
    )
    assert rates[4] < forces[4]
    assert rates[0] > forces[0]


@pytest.mark.check
def test_a_leg_that_follows_the_others_keeps_its_ends_where_a_table_turns_under_them():
    """Of six legs on a yaw table five are independent; the sixth is far from linear in them in a bend."""
    built = build(platform_table("hexapod-on-yaw-table"))
    motion = drive_motion("tour")
    scene = Scene(load_profile_on("ccd-dk-washout", "hexapod-on-yaw-table"), motion[motion["time"] < 20e9])
    felt = sampled(scene.car.slow, scene.rate_hz)
    found = optimum.best_motion(felt, built, EVEN)
    ticks = np.arange(8 * (len(found) - optimum.REST) - 7) * (optimum.STEP_S / 8)
    bounds = ActuatorBounds.columns(built.bounds)
    places = built.kinematics.inverse(optimum.poses_at(found, built, ticks))
    assert (places <= bounds.high + 1e-4).all()
    assert (places >= bounds.low - 1e-4).all()
    assert (error(felt, found, built) ** 2).sum() < 0.2 * (perceived(felt) ** 2).sum() / len(felt)
