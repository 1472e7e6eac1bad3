"""The classical washout: design from checked settings, and its theoretical responses."""

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.core.filters import held_response
from motioncue.cueing.classical.kernel import ClassicalWashout
from motioncue.cueing.classical.settings import Axis, Classical, RotationAxis, Scaling, Texture, TranslationAxis
from motioncue.errors import ConfigError

__all__ = ["design", "theory"]

AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")


def design(settings: Classical, rate_hz: float) -> ClassicalWashout:
    """Return the washout described by `settings`, ready to step at `rate_hz`."""
    frequencies: dict[str, float] = {}
    for name in AXES:
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


def theory(
    settings: Classical, channel: str, s: npt.NDArray[np.complex128], rate_hz: float | None = None
) -> dict[str, Any]:
    """Return the small-signal response of every cue channel that follows a channel of the motion.

    Notes
    -----
    Continuous time, small angles, no limits reached; K is the gain of the axis, T that of its tilt, g gravity:

    * surge, sway: specific force K HP + T LP, displacement K HP/s^2, tilt angle T LP/g (to the left for sway)
    * heave: specific force K HP, displacement K HP/s^2
    * roll, pitch, yaw rate: rate K HP, angle K HP/s; a platform that leans also feels g times the angle
    * roll, pitch: a car that leans feels g times the angle; the share of it that counts is low-passed as sustained
      specific force
    * ``turned = "specific_force"``: the car's lean is high-passed as its forces are, and all of it less the gain of
      heave times g times the angle of what turns it, the platform or the car
    * texture: what a channel's own gain times s^3/((s + w)(s^2 + w s + w^2)) adds, in place of K HP

    The kernel's tilt rate is the change of the angle in a tick, so it lags the theory by half a tick.

    Dead zones, gains of two sides and returns below a threshold depend on the size of the input and have none: refused.

    With ``filters = "hold"`` sections are those of sampled data: with z = exp(s dt), and h and m the velocity and the
    displacement that a unit of acceleration has made after a tick, x'' = u - c1 x' - c0 x becomes
    (z - 1) v = h a - c0 m v and (z - 1) x = m a + (h + c1 m) v, a = u - c1 v - c0 x.

    References
    ----------
    L. D. Reid and M. A. Nahon, UTIAS reports 296 (1985), 307 and 319 (1986): the structure.  The small-angle
    couplings are our own derivation from ``cueing/classical/kernel.pxd``.

    Units: `s` [rad/s].
    """
    for name in AXES:
        axis: TranslationAxis | RotationAxis = getattr(settings, name)
        if axis.returns or (axis.shaped and msgspec.structs.replace(axis, scaling=None).shaped):
            raise ConfigError(
                f"cueing.{name}: there is no closed form with a dead zone, a share of negative inputs or a return"
            )
    dt = 1.0 / rate_hz if rate_hz is not None and settings.filters == "hold" else None
    responses = _washout(settings, channel, s, dt)
    for name, response in _added(settings.texture, channel, s, dt).items():
        responses[name] = responses.get(name, 0.0) + response
    return responses


def _washout(settings: Classical, channel: str, s: Any, dt: float | None) -> dict[str, Any]:
    """Return the responses without texture."""
    tilt = settings.tilt
    if channel in ("surge", "pitch"):
        onset, _, travel = _high_pass(settings.surge, s, dt)
        sustained = settings.sustained("surge")[0] * _low_pass(tilt.surge_cutoff_hz, tilt.damping, s, dt)
        lean, angle, force = 1.0, "pitch", "surge"
    elif channel in ("sway", "roll"):
        onset, _, travel = _high_pass(settings.sway, s, dt)
        sustained = settings.sustained("sway")[0] * _low_pass(tilt.sway_cutoff_hz, tilt.damping, s, dt)
        lean, angle, force = -1.0, "roll", "sway"
    elif channel == "heave":
        onset, _, travel = _high_pass(settings.heave, s, dt)
        return {"heave": onset, "heave_displacement": travel}
    elif channel in ("roll_rate", "pitch_rate", "yaw_rate"):
        angle = channel.removesuffix("_rate")
        rate, turned, _ = _high_pass(getattr(settings, angle), s, dt)
        responses = _turned(angle, rate, turned)
        if settings.turned == "specific_force" and settings.turned_by == "platform" and angle != "yaw":
            force, lean = ("surge", 1.0) if angle == "pitch" else ("sway", -1.0)
            more, _, travel = _high_pass(_with_gain(settings, force, -lean * GRAVITY * settings.heave.gain), s, dt)
            responses[force] += more * turned
            responses[f"{force}_displacement"] = travel * turned
        return responses
    else:  # heading has no effect; speed and engine speed pass unchanged
        return {channel: np.ones(s.shape)} if channel in ("speed", "engine_speed") else {}

    level = channel != angle  # the car's lean changes specific force without acceleration
    felt = 1.0 if level else getattr(tilt, f"{angle}_share") * lean * GRAVITY
    sustained = felt * sustained
    if settings.turned == "specific_force":
        turning = sustained if settings.turned_by == "platform" else 0.0 if level else lean * GRAVITY
        by_gain, _, by_travel = _high_pass(_with_gain(settings, force, settings.heave.gain), s, dt)
        onset, travel = felt * onset - turning * by_gain, felt * travel - turning * by_travel
    else:
        onset, travel = (onset, travel) if level else (0.0 * onset, 0.0 * travel)
    return {
        force: onset + sustained,
        f"{force}_displacement": travel,
        angle: lean * sustained / GRAVITY,
        f"{angle}_rate": lean * s * sustained / GRAVITY,
    }


def _added(texture: Texture | None, channel: str, s: Any, dt: float | None) -> dict[str, Any]:
    """Return the responses of the texture alone."""
    name = channel.removesuffix("_rate")
    if texture is None or channel not in ("sway", "heave", "roll_rate", "pitch_rate"):
        return {}
    band = Axis(
        gain=getattr(texture, f"{name}_gain"),
        order=3,
        cutoff_hz=texture.cutoff_hz,
        damping=0.5,
        break_hz=texture.cutoff_hz,
    )
    a, v, x = _high_pass(band, s, dt)
    return _turned(name, a, v) if channel.endswith("_rate") else {name: a, f"{name}_displacement": x}


def _with_gain(settings: Classical, name: str, gain: float) -> Axis:
    """Return an axis with another gain."""
    axis: TranslationAxis = getattr(settings, name)
    return Axis(gain=gain, order=axis.order, cutoff_hz=axis.cutoff_hz, damping=axis.damping, break_hz=axis.break_hz)


def _turned(angle: str, rate: Any, turned: Any) -> dict[str, Any]:
    """Return what a platform that rolls, pitches or yaws at a rate, and is turned by it, does and feels."""
    felt = {"pitch": {"surge": GRAVITY * turned}, "roll": {"sway": -GRAVITY * turned}, "yaw": {}}[angle]
    return {f"{angle}_rate": rate, angle: turned, **felt}


def _section(damping: float, stiffness: float, s: Any, dt: float | None) -> tuple[Any, Any, Any]:
    """Return s^2 / (s^2 + damping s + stiffness) and its first and second integrals; `dt` of a held input."""
    if dt is None:
        a = s**2 / (s**2 + damping * s + stiffness)
        return a, a / s, a / s**2
    h, m = held_response(damping, stiffness, dt)
    tick = np.expm1(s * dt)
    v = h / (tick + stiffness * m)
    x = (m + (h + damping * m) * v) / tick
    a = 1.0 / (1.0 + damping * v + stiffness * x)
    return a, a * v, a * x


def _high_pass(axis: Axis, s: Any, dt: float | None) -> tuple[Any, Any, Any]:
    """Return gain times high-pass and its first and second integrals."""
    omega, omega_b = 2.0 * np.pi * axis.cutoff_hz, 2.0 * np.pi * (axis.break_hz or 0.0)
    a, v, x = _section(*((omega, 0.0) if axis.order == 1 else (2.0 * axis.damping * omega, omega**2)), s, dt)
    outer = axis.gain
    if axis.order == 3:
        outer = axis.gain * (
            s / (s + omega_b) if dt is None else 1.0 / (1.0 - np.expm1(-omega_b * dt) / np.expm1(s * dt))
        )
    return outer * a, outer * v, outer * x


def _low_pass(cutoff_hz: float, damping: float, s: Any, dt: float | None) -> Any:
    omega = 2.0 * np.pi * cutoff_hz
    return omega**2 * _section(2.0 * damping * omega, omega**2, s, dt)[2]
