"""Poses at which the actuators do not hold a frame, however firmly they stand."""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from motioncue.errors import ConfigError
from motioncue.platforms.kinematics import Kinematics

__all__ = ["SINGULAR", "Frame", "refuse_singular_neutral", "refuse_singular_reach"]

FloatArray: TypeAlias = NDArray[np.float64]

SINGULAR = 0.02
"""Smallest allowed ratio of the least to the largest singular value of the Jacobian at neutral, with turns weighted by
the size of the frame.  Hexapods of laboratories have 0.3 to 0.6.  Below a fiftieth, a millimeter of play in an actuator
moves the frame by five centimeters."""

LESS_HELD = 0.3
"""Share of the ratio at neutral below which no pose within reach may fall: where it does, a singular pose is near."""

# How reach is searched: directions, steps from neutral to its end, rounds around the weakest pose.
DIRECTIONS, STEPS, ROUNDS = 400, 60, 20


class Frame(NamedTuple):
    """A frame and what holds it."""

    kinematics: Kinematics
    actuators: int
    """Number of actuators that hold it; single axes come after them."""
    ways: int
    """Number of independent motions that they are to hold: posts do not hold surge, sway and yaw."""
    size: float
    """From its center to its joints [m]."""

    def held(self, poses: FloatArray) -> FloatArray:
        """Return how firmly it is held at poses: the least singular value over the largest.

        Of the directions in which legs, rods and posts push, as Pluecker lines.
        """
        rows = self.kinematics.jacobian(poses)[:, : self.actuators]
        rows = rows / np.linalg.norm(rows[:, :, :3], axis=2, keepdims=True) / [1, 1, 1, *(3 * [self.size])]
        values = np.linalg.svd(rows, compute_uv=False)
        return np.asarray(values[:, self.ways - 1] / values[:, 0])


def refuse_singular_neutral(frame: Frame) -> None:
    """Refuse a frame that is not held at neutral: all legs parallel, joints mirrored, posts on a line."""
    if not frame.actuators:
        return
    held = frame.held(np.zeros((1, 6)))[0]
    if not held >= SINGULAR:
        raise ConfigError(
            "platform: found a frame that its actuators do not hold at neutral: the least singular value of the "
            f"Jacobian is {held:.2g} of the largest, allowed is {SINGULAR} or more; are joints mirrored or in line?"
        )


def refuse_singular_reach(frame: Frame, bounds: Any, farthest: FloatArray) -> None:
    """Refuse ranges that reach a pose at which the frame is not held.

    Its actuators could lose it there, or break it.  Looks along ways from neutral to the end of reach, then around the
    weakest pose, with a fixed seed.

    Units: `farthest` [m, rad].
    """
    random = np.random.default_rng(1)
    least = max(SINGULAR, LESS_HELD * float(frame.held(np.zeros((1, 6)))[0]))
    worst, weakest = np.zeros(6), math.inf

    def look(poses: FloatArray) -> NDArray[np.bool_]:
        nonlocal worst, weakest
        positions = frame.kinematics.inverse(poses, held=True)
        inside: NDArray[np.bool_] = np.all((positions >= bounds.low) & (positions <= bounds.high), axis=1)
        if inside.any():
            held = frame.held(poses[inside])
            if not held.min() >= weakest:
                worst, weakest = poses[inside][held.argmin()], float(held.min())
        return inside

    ways = random.normal(size=(DIRECTIONS, 6))
    ways *= farthest / np.linalg.norm(ways, axis=1, keepdims=True)
    for step in range(1, STEPS + 1):
        ways = ways[look(3.0 * step / STEPS * ways)]
    for near in np.geomspace(0.3, 0.01, ROUNDS):
        look(worst + near * farthest * random.normal(size=(100, 6)))
    if not weakest >= least:
        x, y, z, *angles = worst
        raise ConfigError(
            f"platform: found a pose within reach that the actuators do not hold (surge {x:.3f} m, sway {y:.3f} m, "
            f"heave {z:.3f} m, roll, pitch, yaw {', '.join(f'{math.degrees(angle):.1f}' for angle in angles)} deg): "
            f"the least singular value of the Jacobian is {weakest:.2g} of the largest, allowed is {least:.2g} or "
            "more; narrow the range of the actuators, or set their joints closer together in pairs"
        )
