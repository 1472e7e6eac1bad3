"""The cueing algorithms: one folder per algorithm, found by the name of its settings.

An algorithm's ``design.py`` has `design(settings, rate_hz)`, which returns a kernel ready to step; where the settings
say `for_platform`, it is `design(settings, rate_hz, built)`, with the platform as kernels take it, or None.  If the
algorithm is linear for small signals, the file also has `theory(settings, channel, s, rate_hz)`: the responses of the
cue's channels to one channel of the motion, by name, at the complex frequencies `s` [rad/s]; without a rate (None), for
infinitely short ticks.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.core.interfaces import Algorithm
from motioncue.cueing.settings import ALGORITHMS, Cueing
from motioncue.errors import ConfigError
from motioncue.platforms.settings import Platform

__all__ = ["design", "name_of", "theory"]


@cache
def _file(name: str) -> ModuleType:
    """Return the module that designs an algorithm; not before it is needed, because settings are read without it."""
    return import_module(f"motioncue.cueing.{name}.design")


def name_of(settings: Cueing) -> str:
    """Return the name of the algorithm that settings belong to."""
    return str(settings.__struct_config__.tag)


def design(settings: Cueing, rate_hz: float, platform: Platform | None = None) -> Algorithm:
    """Return the algorithm described by `settings`, ready to step at `rate_hz`, for the platform if it uses one."""
    from motioncue.platforms.build import build  # loads the kinematics, which settings are read without

    built = (platform and build(platform),) if settings.for_platform else ()
    designed: Algorithm = _file(name_of(settings)).design(settings, rate_hz, *built)
    designed.eases = settings.eases
    return designed


def theory(
    settings: Cueing, channel: str, s: npt.NDArray[np.complex128], rate_hz: float | None = None
) -> Mapping[str, Any]:
    """Return the small-signal response of every cue channel that follows a channel of the motion.

    Units: `s` [rad/s].
    """
    name = name_of(settings)
    if not hasattr(_file(name), "theory"):
        known = [name for name in ALGORITHMS if hasattr(_file(name), "theory")]
        raise ConfigError(f"cueing.algorithm: found {name!r}, allowed are those with a closed form: {', '.join(known)}")
    responses: Mapping[str, Any] = _file(name).theory(settings, channel, s, rate_hz)
    return responses
