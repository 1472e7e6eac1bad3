"""Body-frame motion from world-frame state, twice: with quaternions, and with rotation matrices.

Both convert "car coordinates to world coordinates" into "body axes (forward, right, down) to world axes (north, east,
down)" and read angles and projections from that.  They share no code.
"""

from typing import Any, NamedTuple

import numpy as np
import quaternion as npq
from scipy.spatial.transform import Rotation

GRAVITY = 9.80665  # [m/s^2], the standard value


class Axes(NamedTuple):
    """The conventions of a source."""

    north: Any = (0.0, 0.0, -1.0)
    up: Any = (0.0, 1.0, 0.0)
    car_forward: Any = (0.0, 0.0, 1.0)
    car_up: Any = (0.0, 1.0, 0.0)
    head: Any = (0.0, 0.0, 0.0)  # forward, right, up [m]
    conjugated: bool = False
    rates_in_car: bool = False
    gravity_included: bool = False


CITY_CAR_DRIVING = Axes()


def _basis(first: Any, up: Any) -> Any:
    """Return the matrix whose columns are first, right and down."""
    first, up = np.asarray(first, float), np.asarray(up, float)
    return np.column_stack([first, np.cross(first, up), -up])


def _channels(roll: Any, pitch: Any, yaw: Any, a: Any, omega: Any, alpha: Any, velocity: Any, axes: Axes) -> Any:
    arm = np.array([axes.head[0], axes.head[1], -axes.head[2]])
    a = a + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
    return {
        "surge": a[:, 0],
        "sway": a[:, 1],
        "heave": -a[:, 2],
        "roll": roll,
        "pitch": pitch,
        "yaw": yaw,
        "roll_rate": omega[:, 0],
        "pitch_rate": omega[:, 1],
        "yaw_rate": omega[:, 2],
        "speed": np.linalg.norm(velocity, axis=1),
    }


def by_matrices(q: Any, velocity: Any, a: Any, omega: Any, alpha: Any, axes: Axes = CITY_CAR_DRIVING) -> Any:
    """Return the channels of the motion by name; `q` is w, x, y, z of any length."""
    turn = Rotation.from_quat(np.roll(q, -1, axis=1)).as_matrix()
    if axes.conjugated:
        turn = turn.transpose(0, 2, 1)
    world, car = _basis(axes.north, axes.up), _basis(axes.car_forward, axes.car_up)
    body = np.einsum("ji,njk,kl->nil", world, turn, car)  # body axes to north, east, down
    yaw, pitch, roll = Rotation.from_matrix(body).as_euler("ZYX").T
    from_world = np.einsum("njk,kl->nlj", turn, car)  # world coordinates to body axes

    def project(v: Any) -> Any:
        return np.einsum("nij,nj->ni", from_world, v)

    rates = (omega @ car, alpha @ car) if axes.rates_in_car else (project(omega), project(alpha))
    a = project(a - GRAVITY * np.asarray(axes.up) if axes.gravity_included else a)
    return _channels(roll, pitch, yaw, a, *rates, velocity, axes)


def by_quaternions(q: Any, velocity: Any, a: Any, omega: Any, alpha: Any, axes: Axes = CITY_CAR_DRIVING) -> Any:
    """Return the channels of the motion by name; `q` is w, x, y, z of any length."""
    turn = np.normalized(npq.as_quat_array(np.ascontiguousarray(q, float)))
    if axes.conjugated:
        turn = turn.conjugate()
    car = npq.from_rotation_matrix(_basis(axes.car_forward, axes.car_up))
    world = npq.from_rotation_matrix(_basis(axes.north, axes.up))
    body = world.conjugate() * turn * car
    w, x, y, z = npq.as_float_array(body).T
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

    def rotate(p: Any, v: Any) -> Any:
        pure = npq.from_vector_part(np.asarray(v, float))
        return npq.as_vector_part(p * pure * p.conjugate())

    to_body = (turn * car).conjugate()
    spin = car.conjugate() if axes.rates_in_car else to_body
    a = rotate(to_body, a)
    if axes.gravity_included:
        a = a + rotate(body.conjugate(), np.broadcast_to([0.0, 0.0, GRAVITY], a.shape))
    return _channels(roll, pitch, yaw, a, rotate(spin, omega), rotate(spin, alpha), velocity, axes)
