"""Rotations of the virtual car's states: unit quaternions w, x, y, z along the last axis; angles."""

import numpy as np
import numpy.typing as npt

__all__ = ["angles_and_rates", "body_axes", "product"]

Array = npt.NDArray[np.float64]


def product(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """Return the quaternion product of `a` and `b`: first the rotation `b`, then `a`.

    Parameters
    ----------
    a, b : array_like of shape (..., 4)
        Quaternions w, x, y, z; the shapes are broadcast.
    """
    (aw, ax, ay, az), (bw, bx, by, bz) = (np.moveaxis(np.asarray(q, np.float64), -1, 0) for q in (a, b))
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def body_axes(states: npt.NDArray[np.void], name: str) -> Array:
    """Return a vector of `states`, ndarray of STATE_DTYPE, along the car's forward, right, down axes."""
    w, back, vector = states["orientation"][:, :1], -states["orientation"][:, 1:], states[name]
    half = np.cross(back, vector)
    turned: Array = vector + 2.0 * (w * half + np.cross(back, half))
    return turned


def angles_and_rates(states: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Return roll, pitch, yaw (z-y-x) with their first and second derivatives.

    Parameters
    ----------
    states : ndarray of STATE_DTYPE, shape (n,)
        States of the car.

    Returns
    -------
    ndarray of float64, shape (3, 3, n)
        By order of derivative [rad, rad/s, rad/s^2], then roll, pitch, yaw; yaw in (-pi, pi].
    """
    w, x, y, z = states["orientation"].T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - x * z), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    p, q, r = body_axes(states, "angular_velocity").T
    pp, qq, rr = body_axes(states, "angular_acceleration").T
    sin, cos, slope = np.sin(roll), np.cos(roll), np.tan(pitch)
    level = q * sin + r * cos  # rate about the world's down axis, times the cosine of pitch
    pitch_rate = q * cos - r * sin
    yaw_rate = level / np.cos(pitch)
    roll_rate = p + level * slope
    pitch_change = qq * cos - rr * sin - roll_rate * level
    level_change = qq * sin + rr * cos + roll_rate * pitch_rate
    yaw_change = (level_change + yaw_rate * pitch_rate * np.sin(pitch)) / np.cos(pitch)
    roll_change = pp + level_change * slope + level * pitch_rate / np.cos(pitch) ** 2
    return np.array([[roll, pitch, yaw], [roll_rate, pitch_rate, yaw_rate], [roll_change, pitch_change, yaw_change]])
