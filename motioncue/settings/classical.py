"""Settings of `classical`, the classical washout, and its published parameter sets.

Frequencies are published in rad/s; the sets hold Hz, as profiles do.
"""

from collections.abc import Mapping
from math import tau
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from motioncue.settings.table import CueingTable, Positive, Table

__all__ = ["Axis", "Classical", "RotationAxis", "Tilt", "TranslationAxis"]


def _axis(gain: float, omega: float, break_omega: float | None = None, order: int | None = None) -> dict[str, Any]:
    axis: dict[str, Any] = {"gain": gain, "order": order or (2 if break_omega is None else 3), "cutoff_hz": omega / tau}
    if axis["order"] > 1:
        axis["damping"] = 1.0
    if break_omega is not None:
        axis["break_hz"] = break_omega / tau
    return axis


PRESETS: dict[str, dict[str, Any]] = {
    # SIMONA research simulator, TU Delft, read from its configuration.
    "simona": {
        "surge": _axis(0.6, 0.8),
        "sway": _axis(0.6, 1.0),
        "heave": _axis(0.5, 1.0, 0.2),
        "roll": _axis(0.6, 1.0),
        "pitch": _axis(0.6, 0.8),
        "yaw": _axis(0.6, 1.0),
        "tilt": {
            "surge_cutoff_hz": 2.0 / tau,
            "sway_cutoff_hz": 2.0 / tau,
            "damping": 1.0,
            "rate_limit_deg_s": 3.0,
        },
    },
    # From the open project hexi; apparently that of Reid & Nahon (UTIAS reports 296, 307, 319).
    "utias": {
        "surge": _axis(0.5, 2.5, 0.25),
        "sway": _axis(0.5, 4.0, 0.4),
        "heave": _axis(0.5, 4.0, 0.4),
        "roll": _axis(0.5, 1.0, order=1),
        "pitch": _axis(0.5, 1.0, order=1),
        "yaw": _axis(0.5, 1.0),
        "tilt": {"surge_cutoff_hz": 5.0 / tau, "sway_cutoff_hz": 8.0 / tau, "damping": 1.0},
    },
}


class Axis(Table, frozen=True, kw_only=True):
    """An axis with washout."""

    gain: Annotated[float, msgspec.Meta(ge=-10, le=10)] = 1.0
    """Factor on the input, before limit and filter."""
    order: Literal[1, 2, 3] = 2
    """Order of the high-pass filter."""
    cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=100)]
    """Natural (first order: break) frequency of the high-pass filter [Hz]."""
    damping: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0
    """Damping ratio of the second-order section."""
    break_hz: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None
    """Break frequency of the third order's additional section [Hz]; not used by other orders."""


class TranslationAxis(Axis, frozen=True, kw_only=True):
    """Surge, sway or heave."""

    limit_m_s2: Positive | None = None
    """Largest scaled input [m/s^2]; unlimited if not given."""


class RotationAxis(Axis, frozen=True, kw_only=True):
    """Roll, pitch or yaw."""

    limit_deg_s: Positive | None = None
    """Largest scaled input [deg/s]; unlimited if not given."""


class Tilt(Table, frozen=True, kw_only=True):
    """Tilt coordination: sustained specific force as platform tilt."""

    surge_cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=100)]
    """Natural frequency of the low-pass filter of surge [Hz]."""
    sway_cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=100)]
    """Natural frequency of the low-pass filter of sway [Hz]."""
    damping: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0
    """Damping ratio of both."""
    rate_limit_deg_s: Positive | None = None
    """Largest tilt rate [deg/s]; unlimited if not given."""


class Classical(CueingTable, frozen=True, kw_only=True, tag="classical"):
    """Classical washout; the preset supplies values that are not given."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    moves: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "surge_displacement": ("surge",),
        "sway_displacement": ("sway",),
        "heave_displacement": ("heave",),
        "roll": ("roll", "sway"),
        "pitch": ("pitch", "surge"),
        "yaw": ("yaw",),
    }
    default_preset: ClassVar[str | None] = "simona"
    auto: ClassVar[str | None] = "utias"
    preset: str | None = None
    """A published parameter set (simona, utias), or auto: utias scaled to the platform.  It supplies what is left out;
    without it, if a required value is left out, auto does so with a platform, and simona without one."""
    surge: TranslationAxis
    sway: TranslationAxis
    heave: TranslationAxis
    roll: RotationAxis
    pitch: RotationAxis
    yaw: RotationAxis
    tilt: Tilt
