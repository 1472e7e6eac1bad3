"""Where the joints of a hexapod are, and mistakes in their places that can be told."""

import math
from typing import TypeAlias

import numpy as np

from motioncue.errors import ConfigError
from motioncue.platforms.settings import CrankHexapod, Hexapod, Joints

__all__ = ["joints_of", "refuse_reversed_crank"]

Point: TypeAlias = tuple[float, float, float]

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
