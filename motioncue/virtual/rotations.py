"""Rotations of the virtual car's states: unit quaternions w, x, y, z along the last axis of an array."""

import numpy as np
import numpy.typing as npt

__all__ = ["body_axes", "product"]

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
