"""Physical parameters to coefficients: one file an algorithm, one row here."""

from collections.abc import Callable
from typing import Any

from motioncue.cueing import classical, direct
from motioncue.kernels.algorithm import Algorithm
from motioncue.profile import Classical, Direct

__all__ = ["design"]

_DESIGNS: dict[type, Callable[[Any, float], Algorithm]] = {Direct: direct.design, Classical: classical.design}


def design(settings: Direct | Classical, rate_hz: float) -> Algorithm:
    """Return the algorithm that `settings` describe, ready to step at `rate_hz`.

    Parameters
    ----------
    settings : Direct or Classical
        The ``cueing`` table of a profile.
    rate_hz : float
        Ticks a second [Hz].

    Raises
    ------
    ConfigError
        If a parameter is not possible at this rate: names it, what was found and what is allowed.
    """
    return _DESIGNS[type(settings)](settings, rate_hz)
