"""The classical washout's parameters to its coefficients."""

import math
from typing import Any

from motioncue.errors import ConfigError
from motioncue.kernels.washout import ClassicalWashout
from motioncue.profile import Axis, Classical, RotationAxis, TranslationAxis

__all__ = ["design"]


def design(settings: Classical, rate_hz: float) -> ClassicalWashout:
    """Return the washout that `settings` describe, ready to step at `rate_hz`.

    Parameters
    ----------
    settings : Classical
        The ``cueing`` table of a profile.
    rate_hz : float
        Ticks a second [Hz].

    Raises
    ------
    ConfigError
        If a frequency is not below half of `rate_hz`, or a third-order axis has no `break_hz`.
    """
    translation = [_translation(name, getattr(settings, name), rate_hz) for name in ("surge", "sway", "heave")]
    rotation = [_rotation(name, getattr(settings, name), rate_hz) for name in ("roll", "pitch", "yaw")]
    tilt = settings.tilt
    rate_limit = math.inf if tilt.rate_limit_deg_s is None else math.radians(tilt.rate_limit_deg_s)
    return ClassicalWashout(
        translation,
        rotation,
        [
            {
                "cutoff_hz": _below_nyquist(f"cueing.tilt.{name}_cutoff_hz", cutoff_hz, rate_hz),
                "damping": tilt.damping,
                "rate_limit": rate_limit,
            }
            for name, cutoff_hz in (("surge", tilt.surge_cutoff_hz), ("sway", tilt.sway_cutoff_hz))
        ],
        rate_hz,
    )


def _translation(name: str, axis: TranslationAxis, rate_hz: float) -> dict[str, Any]:
    return {**_high_pass(name, axis, rate_hz), "limit": math.inf if axis.limit_m_s2 is None else axis.limit_m_s2}


def _rotation(name: str, axis: RotationAxis, rate_hz: float) -> dict[str, Any]:
    limit = math.inf if axis.limit_deg_s is None else math.radians(axis.limit_deg_s)
    return {**_high_pass(name, axis, rate_hz), "limit": limit}


def _high_pass(name: str, axis: Axis, rate_hz: float) -> dict[str, Any]:
    break_hz = axis.break_hz
    if axis.order == 3 and break_hz is None:
        raise ConfigError(f"cueing.{name}.break_hz: missing, a third-order axis needs it")
    return {
        "gain": axis.gain,
        "order": axis.order,
        "cutoff_hz": _below_nyquist(f"cueing.{name}.cutoff_hz", axis.cutoff_hz, rate_hz),
        "damping": axis.damping,
        "break_hz": _below_nyquist(f"cueing.{name}.break_hz", break_hz or 0.0, rate_hz),
    }


def _below_nyquist(path: str, value_hz: float, rate_hz: float) -> float:
    if value_hz >= 0.5 * rate_hz:
        raise ConfigError(f"{path}: found {value_hz} Hz, allowed is below {0.5 * rate_hz:g} Hz, half the output rate")
    return value_hz
