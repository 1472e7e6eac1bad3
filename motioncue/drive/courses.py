"""The courses by name: the scripted drives, and the drive with trouble."""

import math
from collections.abc import Mapping

import numpy as np

from motioncue.drive.car import DRIVES, drive
from motioncue.drive.drives import SCRIPTS
from motioncue.drive.trouble import DESCRIPTION, DURATION_S, Course, troubled
from motioncue.errors import ConfigError, not_among

__all__ = ["COURSES", "Course", "course", "length_s"]

COURSES: Mapping[str, str] = {**DRIVES, "trouble": DESCRIPTION}
"""The courses by name, each with a one-line description."""


def _check(name: str) -> None:
    if name not in COURSES:
        raise ConfigError(f"drive: {not_among(name, COURSES)}")


def length_s(name: str) -> float:
    """Return the duration of a course [s]; raise ConfigError if it does not exist."""
    _check(name)
    return DURATION_S if name == "trouble" else SCRIPTS[name].duration


def course(name: str, rate_hz: float = 60.0, duration_s: float | None = None) -> Course:
    """Return what a simulator reports on a course.

    Parameters
    ----------
    name : str
        One of `COURSES`.
    rate_hz : float, optional
        Frames per second [Hz].
    duration_s : float, optional
        Time to drive [s]; the whole course if not given; after its end the car stays parked.

    Raises
    ------
    ConfigError
        If the course does not exist, or the rate or the duration is out of range.
    """
    _check(name)
    if name == "trouble":
        return troubled(rate_hz, duration_s)
    states = drive(name, rate_hz, duration_s)
    period = np.full(len(states), 1.0 / rate_hz if math.isfinite(rate_hz) else 0.0)
    return Course(states, period, period, np.ones(len(states), np.int64))
