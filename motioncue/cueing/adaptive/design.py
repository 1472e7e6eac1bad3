"""The coordinated adaptive washout: design from checked settings; responses of its linear counterpart."""

from math import pi, tau
from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.cueing.adaptive.kernel import AdaptiveWashout
from motioncue.cueing.adaptive.settings import Adapted, Adaptive, Force
from motioncue.errors import ConfigError

__all__ = ["design", "theory"]


def design(settings: Adaptive, rate_hz: float) -> AdaptiveWashout:
    """Return the washout described by `settings`, ready to step at `rate_hz`."""
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
        axis: Adapted = getattr(settings, name)
        if not axis.least <= axis.start <= axis.most:
            raise ConfigError(
                f"cueing.{name}.start: found {axis.start:g}, allowed is {name}.least to {name}.most, "
                f"{axis.least:g} to {axis.most:g}"
            )
    highest = {f"{name}.cutoff_hz": (getattr(settings, name).cutoff_hz, 2.0) for name in ("surge", "sway", "heave")}
    highest["heave.break_hz"] = settings.heave.break_hz, 2.0
    highest["roll.cutoff_hz"] = settings.roll.cutoff_hz, pi * settings.roll.cutoff_ratio
    highest["pitch.cutoff_hz"] = settings.pitch.cutoff_hz, pi * settings.pitch.cutoff_ratio
    highest["tilt.smooth_hz"] = settings.tilt.smooth_hz, pi
    highest["yaw.cutoff_hz"] = settings.yaw.cutoff_hz, pi
    for key, (found_hz, times) in highest.items():
        if found_hz * times >= rate_hz:
            raise ConfigError(
                f"cueing.{key}: found {found_hz:g} Hz, allowed is below {rate_hz / times:.4g} Hz "
                f"at {rate_hz:g} ticks a second"
            )
    return AdaptiveWashout(settings, rate_hz)


def theory(
    settings: Adaptive, channel: str, s: npt.NDArray[np.complex128], rate_hz: float | None = None
) -> dict[str, Any]:
    """Return the small-signal response of the linear counterpart, which is the washout if nothing adapts.

    Notes
    -----
    Continuous time, small angles, no limits reached; K is the gain of an axis, p its share, w the corner frequency,
    LP = w / (s + w) w_s / (s + w_s), HP = s^2 / (s^2 + 2 z w_n s + w_n^2), g gravity:

    * surge, sway: tilt angle K LP / g, travel K p HP (1 - LP) / s^2, specific force K (LP + p HP (1 - LP))
    * a lean of the car is felt as g times the angle, and presented like any specific force
    * roll, pitch rate: angle K p / (s + w), of which g times the angle is felt; travel takes off what it leaves
    * heave: K p HP s / (s + w_b); yaw rate: angle K p / (s + w)

    Our own derivation from ``cueing/adaptive/kernel.pyx``.

    Units: `s` [rad/s].
    """
    if settings.adaptation > 0.0:
        raise ConfigError(
            f"cueing.adaptation: found {settings.adaptation:g}, allowed is 0 for a closed form, "
            "because what adapts has none"
        )
    axis: Any
    if channel in ("surge", "pitch", "sway", "roll"):
        force, angle, side = ("surge", "pitch", 1.0) if channel in ("surge", "pitch") else ("sway", "roll", -1.0)
        axis, turning = getattr(settings, force), getattr(settings, angle)
        w = tau * turning.cutoff_hz
        felt = axis.gain * (side * GRAVITY if channel == angle else 1.0)
        smooth = tau * settings.tilt.smooth_hz
        tilt = felt * w / (s + w) * smooth / (s + smooth)
        onset = (felt - tilt) * axis.start * _high_pass(axis, s)
        return {
            force: tilt + onset,
            f"{force}_displacement": onset / s**2,
            angle: side * tilt / GRAVITY,
            f"{angle}_rate": side * s * tilt / GRAVITY,
        }
    if channel in ("pitch_rate", "roll_rate"):
        force, angle, side = ("surge", "pitch", 1.0) if channel == "pitch_rate" else ("sway", "roll", -1.0)
        axis, turning = getattr(settings, force), getattr(settings, angle)
        turned = turning.gain * turning.start / (s + tau * turning.cutoff_hz)
        lean = side * GRAVITY * turned
        onset = -lean * axis.start * _high_pass(axis, s)
        return {channel: s * turned, angle: turned, force: lean + onset, f"{force}_displacement": onset / s**2}
    if channel == "heave":
        outer = s / (s + tau * settings.heave.break_hz)
        onset = settings.heave.gain * settings.heave.start * _high_pass(settings.heave, s) * outer
        return {"heave": onset, "heave_displacement": onset / s**2}
    if channel == "yaw_rate":
        turned = settings.yaw.gain * settings.yaw.start / (s + tau * settings.yaw.cutoff_hz)
        return {"yaw_rate": s * turned, "yaw": turned}
    return {channel: np.ones(s.shape)} if channel in ("speed", "engine_speed") else {}


def _high_pass(axis: Force, s: Any) -> Any:
    omega = tau * axis.cutoff_hz
    return s**2 / (s**2 + 2.0 * axis.damping * omega * s + omega**2)
