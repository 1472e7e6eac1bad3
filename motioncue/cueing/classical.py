"""The classical washout: design from checked settings, and its theoretical responses."""

from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.kernels.washout import ClassicalWashout
from motioncue.motion import GRAVITY
from motioncue.settings.classical import Axis, Classical, RotationAxis, Scaling, Texture, TranslationAxis

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
        If a frequency is not below half of `rate_hz`, a third-order axis has no `break_hz`, or a scaling is not
        monotone.
    """
    frequencies: dict[str, float] = {}
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
        axis: TranslationAxis | RotationAxis = getattr(settings, name)
        _check_scaling(name, axis.scaling)
        if axis.order == 3 and axis.break_hz is None:
            raise ConfigError(f"cueing.{name}.break_hz: missing, a third-order axis needs it")
        frequencies[f"{name}.cutoff_hz"] = axis.cutoff_hz
        frequencies[f"{name}.break_hz"] = axis.break_hz or 0.0
    frequencies["tilt.surge_cutoff_hz"] = settings.tilt.surge_cutoff_hz
    frequencies["tilt.sway_cutoff_hz"] = settings.tilt.sway_cutoff_hz
    if settings.texture is not None:
        frequencies["texture.cutoff_hz"] = settings.texture.cutoff_hz
    for key, found_hz in frequencies.items():
        if found_hz >= 0.5 * rate_hz:
            raise ConfigError(
                f"cueing.{key}: found {found_hz} Hz, allowed is below {0.5 * rate_hz:g} Hz, half the output rate"
            )
    return ClassicalWashout(settings, rate_hz)


def _check_scaling(name: str, scaling: Scaling | None) -> None:
    """Refuse a polynomial with which a larger input gives a smaller value."""
    if scaling is not None and scaling.share < scaling.least_share() * (1.0 - 1e-9):
        raise ConfigError(
            f"cueing.{name}.scaling.share: found {scaling.share:g}, allowed with the slope {scaling.slope:g} is "
            f"{scaling.least_share():.4g} or more: below it a larger input gives a smaller cue"
        )


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
    Continuous time, small angles, no limits reached; K is the gain of the axis, T that of its tilt, g gravity:

    * surge, sway: specific force K HP + T LP, displacement K HP/s^2, tilt angle T LP/g (to the left for sway)
    * heave: specific force K HP, displacement K HP/s^2
    * roll, pitch, yaw rate: rate K HP, angle K HP/s; a platform that leans also feels g times the angle
    * roll, pitch: a car that leans feels g times the angle; the share of it that counts is low-passed as sustained
      specific force
    * texture: what a channel's own gain times s^3/((s + w)(s^2 + w s + w^2)) adds, in place of K HP

    The kernel's tilt rate is the change of the angle in a tick, so it lags the theory by half a tick.

    References
    ----------
    L. D. Reid and M. A. Nahon, UTIAS reports 296 (1985), 307 and 319 (1986): the structure.  The small-angle
    couplings are our own derivation from ``kernels/washout.pxd``.
    """
    responses = _washout(settings, channel, s)
    for name, response in _added(settings.texture, channel, s).items():
        responses[name] = responses.get(name, 0.0) + response
    return responses


def _washout(settings: Classical, channel: str, s: Any) -> dict[str, Any]:
    """Return the responses without texture."""
    tilt = settings.tilt
    if channel in ("surge", "pitch"):
        onset = _high_pass(settings.surge, s)
        sustained = settings.sustained("surge")[0] * _low_pass(tilt.surge_cutoff_hz, tilt.damping, s)
        lean, angle, force = 1.0, "pitch", "surge"
    elif channel in ("sway", "roll"):
        onset = _high_pass(settings.sway, s)
        sustained = settings.sustained("sway")[0] * _low_pass(tilt.sway_cutoff_hz, tilt.damping, s)
        lean, angle, force = -1.0, "roll", "sway"
    elif channel == "heave":
        onset = _high_pass(settings.heave, s)
        return {"heave": onset, "heave_displacement": onset / s**2}
    elif channel in ("roll_rate", "pitch_rate", "yaw_rate"):
        angle = channel.removesuffix("_rate")
        onset = _high_pass(getattr(settings, angle), s)
        return _turned(angle, onset, s)
    else:  # heading has no effect; speed and engine speed pass unchanged
        return {channel: np.ones(s.shape)} if channel in ("speed", "engine_speed") else {}

    if channel == angle:  # the car's lean changes specific force without acceleration, so only tilt follows
        onset, sustained = 0.0 * onset, getattr(tilt, f"{angle}_share") * lean * GRAVITY * sustained
    return {
        force: onset + sustained,
        f"{force}_displacement": onset / s**2,
        angle: lean * sustained / GRAVITY,
        f"{angle}_rate": lean * s * sustained / GRAVITY,
    }


def _added(texture: Texture | None, channel: str, s: Any) -> dict[str, Any]:
    """Return the responses of the texture alone."""
    name = channel.removesuffix("_rate")
    if texture is None or channel not in ("sway", "heave", "roll_rate", "pitch_rate"):
        return {}
    omega = 2.0 * np.pi * texture.cutoff_hz
    band = getattr(texture, f"{name}_gain") * s**3 / ((s + omega) * (s**2 + omega * s + omega**2))
    return _turned(name, band, s) if channel.endswith("_rate") else {name: band, f"{name}_displacement": band / s**2}


def _turned(angle: str, rate: Any, s: Any) -> dict[str, Any]:
    """Return what a platform that rolls, pitches or yaws at a rate does and feels."""
    felt = {"pitch": {"surge": GRAVITY * rate / s}, "roll": {"sway": -GRAVITY * rate / s}, "yaw": {}}[angle]
    return {f"{angle}_rate": rate, angle: rate / s, **felt}


def _high_pass(axis: Axis, s: Any) -> Any:
    omega = 2.0 * np.pi * axis.cutoff_hz
    if axis.order == 1:
        return axis.gain * s / (s + omega)
    second = axis.gain * s**2 / (s**2 + 2.0 * axis.damping * omega * s + omega**2)
    return second if axis.order == 2 else second * s / (s + 2.0 * np.pi * (axis.break_hz or 0.0))


def _low_pass(cutoff_hz: float, damping: float, s: Any) -> Any:
    omega = 2.0 * np.pi * cutoff_hz
    return omega**2 / (s**2 + 2.0 * damping * omega * s + omega**2)
