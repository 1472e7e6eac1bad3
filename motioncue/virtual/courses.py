"""What a virtual car can be made to do, by name: the scripted drives, and the one full of trouble."""

import math
from collections.abc import Mapping

import numpy as np

from motioncue.errors import ConfigError, not_among
from motioncue.virtual.car import DRIVES, drive
from motioncue.virtual.drives import SCRIPTS
from motioncue.virtual.trouble import DESCRIPTION, DURATION_S, Course, troubled

__all__ = ["COURSES", "Course", "course", "length_s"]

COURSES: Mapping[str, str] = {**DRIVES, "trouble": DESCRIPTION}
"""Every drive by its name, with one line that says what happens on it."""


def _check(name: str) -> None:
    if name not in COURSES:
        raise ConfigError(f"drive: {not_among(name, COURSES)}")


def length_s(name: str) -> float:
    """Return how long a drive takes [s]; ConfigError if there is none of that name."""
    _check(name)
    return DURATION_S if name == "trouble" else SCRIPTS[name].duration


def course(name: str, rate_hz: float = 60.0, duration_s: float | None = None) -> Course:
    """Return what a simulator says on a drive.

    Parameters
    ----------
    name : str
        One of `COURSES`.
    rate_hz : float, optional
        Frames a second [Hz].
    duration_s : float, optional
        How long to drive [s]; the whole drive if not given, parked beyond it.

    Raises
    ------
    ConfigError
        If there is no such drive, or the rate or the duration is out of its range.
    """
    _check(name)
    if name == "trouble":
        return troubled(rate_hz, duration_s)
    states = drive(name, rate_hz, duration_s)
    period = np.full(len(states), 1.0 / rate_hz if math.isfinite(rate_hz) else 0.0)
    return Course(states, period, period, np.ones(len(states), np.int64))
