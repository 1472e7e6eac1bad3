"""The cueing algorithms: one file per algorithm, found by the name of its settings.

An algorithm's file has `design(settings, rate_hz)`, which returns a kernel ready to step; where the settings say
`for_platform`, it is `design(settings, rate_hz, platform)`.  If the algorithm is linear for small signals, the file
also has `theory(settings, channel, s, rate_hz)`: the responses of the cue's channels to one channel of the motion, by
name, at the complex frequencies `s` [rad/s]; without a rate (None), for infinitely short ticks.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.cueing.seen import Platform
from motioncue.errors import ConfigError
from motioncue.kernels.algorithm import Algorithm
from motioncue.settings import ALGORITHMS, Cueing

__all__ = ["design", "name_of", "theory"]

_FILES: dict[str, ModuleType] = {name: import_module(f"motioncue.cueing.{name}") for name in ALGORITHMS}


def name_of(settings: Cueing) -> str:
    """Return the name of the algorithm that settings belong to.

    Parameters
    ----------
    settings : Cueing
        The ``cueing`` table of a profile.
    """
    return str(settings.__struct_config__.tag)


def design(settings: Cueing, rate_hz: float, platform: Platform | None = None) -> Algorithm:
    """Return the algorithm described by `settings`, ready to step at `rate_hz`.

    Parameters
    ----------
    settings : Cueing
        The ``cueing`` table of a profile.
    rate_hz : float
        Ticks per second [Hz].
    platform : Platform, optional
        What the cue is made for, such as `motioncue.platforms.build` returns; only some algorithms use it.

    Raises
    ------
    ConfigError
        If a parameter is not possible at this rate; names it, what was found and what is allowed.
    """
    known = (platform,) if settings.for_platform else ()
    designed: Algorithm = _FILES[name_of(settings)].design(settings, rate_hz, *known)
    designed.eases = settings.eases
    return designed


def theory(
    settings: Cueing, channel: str, s: npt.NDArray[np.complex128], rate_hz: float | None = None
) -> Mapping[str, Any]:
    """Return the small-signal response of every cue channel that follows a channel of the motion.

    Parameters
    ----------
    settings : Cueing
        The ``cueing`` table of a profile.
    channel : str
        The motion channel.
    s : ndarray of complex128, shape (n,)
        Complex frequencies [rad/s]; not 0.
    rate_hz : float, optional
        Ticks per second [Hz], for filters whose response depends on them; infinitely many if not given.

    Returns
    -------
    mapping of str to ndarray of complex128, shape (n,)
        Responses by cue channel; channels that do not follow are left out.

    Raises
    ------
    ConfigError
        If the algorithm has no closed form.
    """
    name = name_of(settings)
    if not hasattr(_FILES[name], "theory"):
        known = [name for name, file in _FILES.items() if hasattr(file, "theory")]
        raise ConfigError(f"cueing.algorithm: found {name!r}, allowed are those with a closed form: {', '.join(known)}")
    responses: Mapping[str, Any] = _FILES[name].theory(settings, channel, s, rate_hz)
    return responses
