"""The classical washout: design from checked settings, and its theoretical responses."""

from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.kernels.washout import ClassicalWashout
from motioncue.motion import GRAVITY
from motioncue.settings.classical import Axis, Classical

__all__ = ["design", "theory"]


def design(settings: Classical, rate_hz: float) -> ClassicalWashout:
    """Return the washout described by `settings`, ready to step at `rate_hz`.

    Parameters
    ----------
    settings : Classical
        The ``cueing`` table of a profile.
    rate_hz : float
        Ticks per second [Hz].

    Raises
    ------
    ConfigError
        If a frequency is not below half of `rate_hz`, or a third-order axis has no `break_hz`.
    """
    frequencies: dict[str, float] = {}
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
        axis: Axis = getattr(settings, name)
        if axis.order == 3 and axis.break_hz is None:
            raise ConfigError(f"cueing.{name}.break_hz: missing, a third-order axis needs it")
        frequencies[f"{name}.cutoff_hz"] = axis.cutoff_hz
        frequencies[f"{name}.break_hz"] = axis.break_hz or 0.0
    frequencies["tilt.surge_cutoff_hz"] = settings.tilt.surge_cutoff_hz
    frequencies["tilt.sway_cutoff_hz"] = settings.tilt.sway_cutoff_hz
    for key, found_hz in frequencies.items():
        if found_hz >= 0.5 * rate_hz:
            raise ConfigError(
                f"cueing.{key}: found {found_hz} Hz, allowed is below {0.5 * rate_hz:g} Hz, half the output rate"
            )
    return ClassicalWashout(settings, rate_hz)


def theory(settings: Classical, channel: str, s: npt.NDArray[np.complex128]) -> dict[str, Any]:
    """Return the small-signal response of every cue channel that follows a channel of the motion.

    Parameters
    ----------
    settings : Classical
        The ``cueing`` table of a profile.
    channel : str
        The motion channel.
    s : ndarray of complex128, shape (n,)
        Complex frequencies [rad/s]; not 0.

    Notes
    -----
    Continuous time, small angles, no limits reached; K is the gain of the axis, g gravity:

    * surge, sway: specific force K (HP + LP), displacement K HP/s^2, tilt angle K LP/g (to the left for sway)
    * heave: specific force K HP, displacement K HP/s^2
    * roll, pitch, yaw rate: rate K HP, angle K HP/s; a platform that leans also feels g times the angle
    * roll, pitch: a car that leans feels g times the angle, and that is low-passed as sustained specific force

    The kernel's tilt rate is the change of the angle in a tick, so it lags the theory by half a tick.

    References
    ----------
    L. D. Reid and M. A. Nahon, UTIAS reports 296 (1985), 307 and 319 (1986): the structure.  The small-angle
    couplings are our own derivation from ``kernels/washout.pxd``.
    """
    tilt = settings.tilt
    if channel in ("surge", "pitch"):
        onset = _high_pass(settings.surge, s)
        sustained = settings.surge.gain * _low_pass(tilt.surge_cutoff_hz, tilt.damping, s)
        lean, angle, force = 1.0, "pitch", "surge"
    elif channel in ("sway", "roll"):
        onset = _high_pass(settings.sway, s)
        sustained = settings.sway.gain * _low_pass(tilt.sway_cutoff_hz, tilt.damping, s)
        lean, angle, force = -1.0, "roll", "sway"
    elif channel == "heave":
        onset = _high_pass(settings.heave, s)
        return {"heave": onset, "heave_displacement": onset / s**2}
    elif channel in ("roll_rate", "pitch_rate", "yaw_rate"):
        angle = channel.removesuffix("_rate")
        onset = _high_pass(getattr(settings, angle), s)
        felt = {"pitch": {"surge": GRAVITY * onset / s}, "roll": {"sway": -GRAVITY * onset / s}, "yaw": {}}[angle]
        return {channel: onset, angle: onset / s, **felt}
    else:  # heading has no effect; speed and engine speed pass unchanged
        return {channel: np.ones(s.shape)} if channel in ("speed", "engine_speed") else {}

    if channel == angle:  # the car's lean changes specific force without acceleration, so only tilt follows
        onset, sustained = 0.0 * onset, lean * GRAVITY * sustained
    return {
        force: onset + sustained,
        f"{force}_displacement": onset / s**2,
        angle: lean * sustained / GRAVITY,
        f"{angle}_rate": lean * s * sustained / GRAVITY,
    }


def _high_pass(axis: Axis, s: Any) -> Any:
    omega = 2.0 * np.pi * axis.cutoff_hz
    if axis.order == 1:
        return axis.gain * s / (s + omega)
    second = axis.gain * s**2 / (s**2 + 2.0 * axis.damping * omega * s + omega**2)
    return second if axis.order == 2 else second * s / (s + 2.0 * np.pi * (axis.break_hz or 0.0))


def _low_pass(cutoff_hz: float, damping: float, s: Any) -> Any:
    omega = 2.0 * np.pi * cutoff_hz
    return omega**2 / (s**2 + 2.0 * damping * omega * s + omega**2)
