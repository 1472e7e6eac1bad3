"""The session of City Car Driving: announced axes, and the readings that its document leaves open."""

import math
from functools import partial

import numpy as np
import pytest
from helpers import (
    AXES,
    BAD_AXES,
    CHANNELS,
    DEFAULT_AXES,
    FRAMES,
    INIT_REPLY,
    began,
    frame,
    init,
    new_session,
)
from scipy.spatial.transform import Rotation

from motioncue.sources.beamng import packets as beamng
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.wire.packet import Derivation


def in_axes(packages, forward, up):
    """Return frames of the same drive from a car with other axes."""
    frames = np.frombuffer(b"".join(packages), FRAME.dtype).copy()

    def base(forward, up):
        f, u = (np.array(v, float) / np.linalg.norm(v) for v in (forward, up))
        return np.column_stack([f, u, np.cross(f, u)])

    change = Rotation.from_matrix(base(*DEFAULT_AXES) @ base(forward, up).T)  # new car coordinates to the default ones
    frames["orientation"] = (Rotation.from_quat(frames["orientation"].astype(float)) * change).as_quat()
    return [frames[i : i + 1].tobytes() for i in range(len(frames))]


def motions_of(session, packages):
    rows = []
    for package in packages:
        session.feed(package, 0)
        rows.append(session.newest())
    return np.concatenate(rows)


def assert_same_drive(actual, expected):
    for name in CHANNELS:
        # The quaternion was rounded to single precision once more.
        np.testing.assert_allclose(actual[name], expected[name], rtol=0, atol=1e-5, err_msg=name)


TURNING = FRAMES[1500:1520]


@pytest.fixture(scope="module")
def drive():
    return motions_of(began(), TURNING)


@pytest.mark.parametrize("name", AXES)
def test_body_motion_does_not_depend_on_the_axes_a_car_announces(drive, name):
    session = new_session()
    session.feed(init(*AXES[name]), 0)
    assert_same_drive(motions_of(session, in_axes(TURNING, *AXES[name])), drive)


def test_a_second_init_package_replaces_the_axes(drive):
    session = began(frame())
    session.newest()
    for name in ("X forward, Z up", "oblique", "default"):
        assert session.feed(init(*AXES[name]), 0) == (INIT_REPLY, True)
        assert_same_drive(motions_of(session, in_axes(TURNING, *AXES[name])), drive)
    assert session.rejected == {}
    assert session.sessions == 1


@pytest.mark.parametrize("name", BAD_AXES)
@pytest.mark.parametrize("before", [None, "X forward, Z up"])
def test_bad_axes_fall_back_to_the_default_ones_with_a_warning(drive, name, before):
    session = new_session()
    if before:
        session.feed(init(*AXES[before]), 0)
    session.events()
    assert session.feed(init(*BAD_AXES[name]), 7) == (INIT_REPLY, True)
    assert session.events() == [(7, "axes", 39)]
    assert session.rejected == {"axes": 1}
    assert_same_drive(motions_of(session, TURNING), drive)


def test_axes_slightly_off_a_right_angle_are_taken_and_straightened():
    session = new_session()
    session.feed(init((0, 0.05, 1), (0, 1, 0)), 0)
    session.feed(frame(acceleration=(0, 0, 2)), 0)
    assert session.rejected == {}
    # Forward is as announced: 0.05 upwards.
    assert session.newest()["pitch"][0] == pytest.approx(math.atan(0.05), abs=1e-8)


# Options.


def test_quaternion_order_sense_rates_and_gravity_can_be_set():
    turn = Rotation.from_euler("yxz", [0.7, -0.2, 0.1])
    x, y, z, w = turn.as_quat()
    acceleration, omega = np.array([0.3, -0.4, 2.0]), np.array([0.2, -0.5, 0.1])
    plain = began(frame(orientation=(x, y, z, w), acceleration=acceleration, angular_velocity=omega)).newest()
    others = [
        ({"quaternion": "wxyz"}, {"orientation": (w, x, y, z)}),
        ({"rotation": "world_to_car"}, {"orientation": turn.inv().as_quat()}),
        ({"rates": "car"}, {"angular_velocity": turn.inv().apply(omega)}),
        ({"gravity": "included"}, {"acceleration": acceleration + np.array([0, 9.80665, 0])}),
    ]
    for options, fields in others:
        defaults = {"orientation": (x, y, z, w), "acceleration": acceleration, "angular_velocity": omega}
        motion = began(frame(**{**defaults, **fields}), **options).newest()
        for name in CHANNELS[:9]:
            assert motion[name][0] == pytest.approx(plain[name][0], abs=2e-6), (options, name)


def test_a_new_session_forgets_the_axes_of_the_one_before(drive):
    session = new_session()
    session.feed(init(*AXES["oblique"]), 0)
    session.begin(0)
    session.feed(init(*BAD_AXES["parallel"]), 0)
    assert_same_drive(motions_of(session, TURNING), drive)


def test_the_world_of_the_newest_frame_is_north_east_down_whatever_the_axes(monkeypatch):
    """A world whose axes stand obliquely in the source's: every component of the vectors counts, with its sign."""
    turn = Rotation.from_euler("ZYX", [0.7, -0.4, 1.1])
    north, down = turn.apply([1.0, 0.0, 0.0]), turn.apply([0.0, 0.0, 1.0])
    oblique = {"world_north": north, "world_up": -down}
    monkeypatch.setattr(beamng, "datagram_intake", partial(beamng.datagram_intake, body=oblique))
    intake = beamng.intake(beamng.Options())
    place, speed = np.array([3.0, 5.0, 7.0]), np.array([11.0, 13.0, 17.0])
    values = {"yaw": 0.0}
    for name, (y, x, z) in (("position", place), ("velocity", speed)):  # beamng: x east, y north, z up
        values |= {f"{name}_x": x, f"{name}_y": y, f"{name}_z": -z}
    intake.feed(beamng.MOTION.encode(values), 0)
    rows = np.array([north, np.cross(down, north), down])
    np.testing.assert_allclose(intake.world(), [rows @ place, rows @ speed], rtol=1e-6)


# What is derived, when a car with other axes comes in mid-session.

DERIVED = 60
"""Frames before the other car."""


def changed_car(axes, speeds, rates="derived", acceleration="native", pause_s=2.0):
    """Return the motion of each frame of a car that goes straight north, 60 a second, with other axes after a pause."""
    session = city_car_driving.intake(city_car_driving.Options(rates=rates), derivation=Derivation(acceleration))
    session.begin(0)
    session.feed(init(), 0)
    rows = []
    for i in range(2 * DERIVED):
        before = i < DERIVED
        speed = speeds[not before]
        way = -speed * i / 60.0
        now = round(1e9 * (1.0 + i / 60.0 + (0.0 if before else pause_s)))
        package = frame(position=(0, 0, way), velocity=(0, 0, -speed), orientation=(0, 1, 0, 0))
        if i == DERIVED:
            session.feed(init(*AXES[axes]), now)
        session.feed(package if before else in_axes([package], *AXES[axes])[0], now)
        rows.append(session.newest())
    assert session.discontinuities == {"reconnect": 1}
    return np.concatenate(rows)


@pytest.mark.parametrize("axes", ["right-handed Y-up", "X forward, Z up", "Y forward, Z up", "oblique"])
def test_a_car_with_other_axes_that_goes_straight_on_does_not_turn(axes):
    """The quaternion jumps by the turn from one car's axes to the other's; the car's attitude does not change."""
    motion = changed_car(axes, (20.0, 20.0))
    for name in ("roll_rate", "pitch_rate", "yaw_rate"):
        np.testing.assert_allclose(motion[name], 0.0, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("speeds", [(20.0, 5.0), (5.0, 20.0), (20.0, 20.5)])
def test_a_car_with_other_axes_has_not_gained_its_speed_in_one_frame(speeds):
    """What the car before it did says nothing of how it came to its speed, which does not change from then on."""
    motion = changed_car("X forward, Z up", speeds, rates="world", acceleration="from_velocity")
    for name in ("surge", "sway", "heave"):
        np.testing.assert_allclose(motion[name], 0.0, atol=1e-3, err_msg=name)
