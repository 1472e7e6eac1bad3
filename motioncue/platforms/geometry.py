"""Where a frame's joints are, mistakes in them that can be told, poses at which it is not held."""

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from motioncue.errors import ConfigError
from motioncue.platforms.kinematics import Kinematics
from motioncue.platforms.settings import ActuatorBounds, CrankHexapod, Hexapod, Joints

__all__ = [
    "SINGULAR",
    "Frame",
    "joints_of",
    "refuse_reversed_crank",
    "refuse_singular_neutral",
    "refuse_singular_reach",
]

Point: TypeAlias = tuple[float, float, float]
FloatArray: TypeAlias = NDArray[np.float64]

# Directions of the pairs, from forward towards right [deg].  Leg 1 goes from the right joint of the front pair of the
# base to the front joint of the right pair of the platform, and so on clockwise.
PLATFORM_PAIRS, BASE_PAIRS = (60, 180, 300), (0, 120, 240)

REVERSED = 0.05
"""Least share of the joints' spread that must be reversed for the base to count as mirrored."""

ALIKE = 0.9
"""Mean of five unit vectors from which on they count as one direction: within 25 degrees of each other."""


def joints_of(platform: Hexapod | CrankHexapod) -> list[tuple[Point, Point]]:
    """Return each actuator's joints on the platform and on the base.

    From the motion reference point at neutral: x forward, y right, z down [m].
    """
    top = _places(platform.platform, PLATFORM_PAIRS, "platform")
    bottom = _places(platform.base, BASE_PAIRS, "base")
    if platform.base.at_m is None:
        bottom = [*bottom[1:], bottom[0]]
    _refuse_mirrored(top, bottom)
    forward, right, up = platform.reference_m
    return [
        (
            (a[0] - forward, a[1] - right, up - a[2]),
            (b[0] - forward, b[1] - right, up - b[2] + platform.height_m),
        )
        for a, b in zip(top, bottom, strict=True)
    ]


def _places(joints: Joints, centers_deg: tuple[int, int, int], key: str) -> list[Point]:
    """Return the places of six joints: forward, right, up [m]."""
    radius, pair = joints.radius_m, joints.pair_m
    if joints.at_m is not None:
        if radius is not None or pair is not None:
            raise ConfigError(f"platform.{key}: found at_m beside radius_m or pair_m, allowed is one of both ways")
        return list(joints.at_m)
    if radius is None or pair is None:
        missing = "radius_m" if radius is None else "pair_m"
        raise ConfigError(f"platform.{key}.{missing}: missing, allowed are radius_m and pair_m, or at_m")
    if pair >= 2 * radius:
        raise ConfigError(f"platform.{key}: found joints {pair} m apart on a circle of radius {radius} m")
    half = math.asin(pair / 2 / radius)
    angles = [math.radians(center) + side * half for center in centers_deg for side in (-1, 1)]
    return [(radius * math.cos(angle), radius * math.sin(angle), 0.0) for angle in angles]


def _refuse_mirrored(top: list[Point], bottom: list[Point]) -> None:
    """Refuse joints that follow each other clockwise on the platform and counterclockwise on the base."""
    above, below = (np.array(places)[:, :2] - np.mean(places, axis=0)[:2] for places in (top, bottom))
    shared = above.T @ below  # its determinant has the sign of the map from one to the other
    if np.linalg.det(shared) < -REVERSED * np.linalg.norm(shared) ** 2:
        raise ConfigError(
            "platform: found joints of the platform that are mirrored against those of the base: seen from above, one "
            "goes clockwise where the other goes counterclockwise; is right positive in both, and the order the same?"
        )


def refuse_reversed_crank(platform: CrankHexapod) -> None:
    """Refuse one crank that points the other way than the five others, where joints are pairs on a circle."""
    if platform.base.at_m is not None:
        return
    # Direction from the middle of the pair, the same for both joints if they are mirror images of each other.
    centers = [0, 120, 120, 240, 240, 360]
    sides = [1, -1, 1, -1, 1, -1]
    turned = [
        side * math.radians(azimuth - center)
        for azimuth, center, side in zip(platform.azimuths_deg, centers, sides, strict=True)
    ]
    vectors = np.array([(math.cos(angle), math.sin(angle)) for angle in turned])
    for number, own in enumerate(vectors):
        others = np.delete(vectors, number, axis=0).mean(axis=0)
        if np.linalg.norm(others) > ALIKE and own @ others < 0.0:
            like = math.degrees(math.atan2(others[1], others[0]))
            fitting = (centers[number] + sides[number] * like) % 360.0
            raise ConfigError(
                f"platform.azimuths_deg[{number}]: found {platform.azimuths_deg[number]:g}, so that crank_{number + 1} "
                f"points the other way than the five others do; {fitting:.0f} would be like them"
            )


# ---- poses at which the actuators do not hold the frame, however firmly they stand ---------------------------------

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
        pushes = np.linalg.norm(rows[:, :, :3], axis=2, keepdims=True)
        pushes[pushes == 0.0] = 1.0  # of two posts, whose joint takes it
        rows = rows / pushes / [1, 1, 1, *(3 * [self.size])]
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
            f"Jacobian is {held:.2g} of the largest, allowed is {SINGULAR} or more; are joints mirrored or in line? "
            "Two posts count from the joint about which they roll and pitch it"
        )


def refuse_singular_reach(frame: Frame, bounds: tuple[ActuatorBounds, ...], farthest: FloatArray) -> None:
    """Refuse ranges that reach a pose at which the frame is not held.

    Its actuators could lose it there, or break it.  Looks along ways from neutral to the end of reach, then around the
    weakest pose, with a fixed seed.

    Units: `farthest` [m, rad].
    """
    low, high, *_ = np.array(bounds).T
    random = np.random.default_rng(1)
    least = max(SINGULAR, LESS_HELD * float(frame.held(np.zeros((1, 6)))[0]))
    worst, weakest = np.zeros(6), math.inf

    def look(poses: FloatArray) -> NDArray[np.bool_]:
        nonlocal worst, weakest
        positions = frame.kinematics.inverse(poses, held=True)
        inside: NDArray[np.bool_] = np.all((positions >= low) & (positions <= high), axis=1)
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
