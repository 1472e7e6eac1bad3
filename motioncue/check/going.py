"""The drive according to one track, from which the questions about its channels are answered."""

from typing import NamedTuple

import numpy as np

from motioncue.check.compare import Finding, open_
from motioncue.check.windows import SLOW_M_S, Array, Drive, Mask, Track, Windows

__all__ = ["Going"]


class Going(NamedTuple):
    """The drive according to one track."""

    drive: Drive
    forward: Array  # (n, 3), the body's axes in world axes, for each frame
    down: Array
    w: Windows
    track: Track | None  # None: at most the speed is known
    velocity: Array = np.zeros((0, 3))  # mean of each window [m/s]; NaN without a track
    slip: Array = np.zeros(0)  # angle of the nose to the right of the course [rad]; 0 where unreliable
    back: Mask = np.zeros(0, bool)  # the nose points away from the course, and accelerations or stops confirm it

    @property
    def speed(self) -> Array:
        """The mean speed along the track in each window [m/s]."""
        return np.asarray(np.linalg.norm(self.velocity, axis=1))


def unseen(g: Going, name: str, maneuver: str) -> Finding:
    """Return why the question cannot be answered without a track."""
    if np.isfinite(g.drive.position).all():
        return open_(name, "the position changes by less than 1 m", maneuver)
    return open_(name, "no position, and the velocity is along the car's axes", maneuver)


def slip_of(g: Going) -> Array:
    """Return the angle of the nose to the right of the course in each window [rad]; NaN at low speed."""
    yaw = g.drive.motion["yaw"][(g.w.first + g.w.last) // 2]
    course = np.arctan2(g.velocity[:, 1], g.velocity[:, 0])
    slip = (yaw - course + np.pi) % (2 * np.pi) - np.pi
    return np.asarray(np.where(g.speed > SLOW_M_S, slip, np.nan))
