"""Settings of `adaptive`, the coordinated adaptive washout, and its parameter sets."""

from collections.abc import Mapping
from math import degrees, sqrt, tau
from typing import Annotated, Any, ClassVar

import msgspec

from motioncue.core.table import ChannelWorkspace, CueingTable, Positive, Table

__all__ = ["Adapted", "Adaptive", "Force", "Heave", "Rotation", "Turning", "Weights", "Yaw"]

THRESHOLDS: Mapping[str, float] = {"surge": 0.17, "sway": 0.17, "heave": 0.28, "roll": 3.0, "pitch": 3.6, "yaw": 2.6}
"""Perception thresholds [m/s^2, deg/s] by which errors are weighed; widely quoted after Reid and Nahon."""

ONSET_M_S2 = 4.0
"""Acceleration whose onset fills the range of a preset; the root of their ratio is the washout's frequency."""

TURN_DEG_S = 20.0
"""Yaw rate of a long turn that fills the range of a preset."""

YAW = 0.5
"""Gain of yaw in a preset."""

PART = 0.95
"""Share of a range that a preset plans with."""

Frequency = Annotated[float, msgspec.Meta(ge=0.001, le=10)]
Share = Annotated[float, msgspec.Meta(ge=0, le=2)]
Weight = Annotated[float, msgspec.Meta(ge=0, le=100)]


class Adapted(Table, frozen=True, kw_only=True):
    """An axis whose share of the input adapts."""

    ordered: ClassVar[tuple[str, ...]] = ("least", "start", "most")

    gain: Annotated[float, msgspec.Meta(ge=-10, le=10)] = 0.95
    """Factor on the input, before limit and share; the scaled input is what errors are measured against."""
    start: Share = 1.0
    """Share of the scaled input that is presented at first, and to which it returns."""
    least: Share = 0.0
    """Smallest share."""
    most: Share = 1.0
    """Largest share."""


class Force(Adapted, frozen=True, kw_only=True):
    """Surge or sway: what tilt does not present is washed out into travel."""

    limit_m_s2: Annotated[float, msgspec.Meta(gt=0, le=100)] = 20.0
    """Largest scaled specific force [m/s^2]."""
    cutoff_hz: Frequency
    """Natural frequency of the washout [Hz]."""
    damping: Annotated[float, msgspec.Meta(ge=0.1, le=10)] = 0.75
    """Damping ratio of the washout."""
    range_m: Annotated[float, msgspec.Meta(ge=0.001, le=100)]
    """Travel to each side that costs as much as one threshold of error [m]."""


class Heave(Force, frozen=True, kw_only=True):
    """Heave: a third-order washout, because nothing else presents its sustained force."""

    break_hz: Frequency = 0.03
    """Break frequency of the third order's section [Hz]."""


class Turning(Adapted, frozen=True, kw_only=True):
    """An axis of rotation."""

    limit_deg_s: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 100.0
    """Largest scaled rate [deg/s]."""
    cutoff_hz: Frequency
    """Corner frequency [Hz]: turning is washed out below it; in pitch and roll, tilt presents force below it."""


class Rotation(Turning, frozen=True, kw_only=True):
    """Pitch or roll: rotation of the car, and tilt for surge or sway."""

    cutoff_ratio: Annotated[float, msgspec.Meta(ge=1, le=3)] = 2.5
    """How far the corner frequency adapts: down to its value divided by this, up to its value times this."""
    tilt_deg: Annotated[float, msgspec.Meta(gt=0, le=60)]
    """Largest tilt for sustained force [deg]."""


class Yaw(Turning, frozen=True, kw_only=True):
    """Yaw: a first-order washout."""

    range_deg: Annotated[float, msgspec.Meta(ge=0.1, le=180)]
    """Angle to each side that costs as much as one threshold of error [deg]."""


class Tilt(Table, frozen=True, kw_only=True):
    """Tilt coordination of both pairs."""

    rate_limit_deg_s: Positive | None = None
    """Largest tilt rate [deg/s]; unlimited if not given."""
    smooth_hz: Frequency = 1.5
    """Frequency of the low-pass that takes vibration off the force before it becomes tilt [Hz]."""


class Weights(Table, frozen=True, kw_only=True):
    """What it minimizes; with ones, a threshold of error costs as much as the whole range of travel."""

    force: Weight = 1.0
    """Of the error of specific force, in thresholds (0.17, 0.17, 0.28 m/s^2)."""
    rate: Weight = 1.0
    """Of the error of turning, in thresholds (3.0, 3.6, 2.6 deg/s)."""
    travel: Weight = 1.0
    """Of travel, in ranges."""
    speed: Weight = 1.0
    """Of speed of travel, in ranges times the natural frequency of the washout."""


def _suited(surge: float, sway: float, heave: float, roll: float, pitch: float, yaw: float) -> dict[str, Any]:
    """Return tables for ranges to each side [m, deg]; 0: the platform does not move that way."""

    def travel(range_m: float) -> dict[str, Any]:
        if not range_m:
            return {"cutoff_hz": 1.0, "range_m": 0.1, "start": 0.0, "most": 0.0}
        range_m = min(max(PART * range_m, 0.005), 5.0)
        return {"cutoff_hz": sqrt(ONSET_M_S2 / range_m) / tau, "range_m": range_m}

    yaw = min(max(PART * yaw, 0.1), 90.0)
    return {
        "surge": travel(surge),
        "sway": travel(sway),
        "heave": travel(heave),
        "roll": {"tilt_deg": min(max(PART * roll, 0.1), 30.0), "cutoff_hz": 0.4},
        "pitch": {"tilt_deg": min(max(PART * pitch, 0.1), 30.0), "cutoff_hz": 0.4},
        "yaw": {"range_deg": yaw, "cutoff_hz": min(YAW * TURN_DEG_S / yaw / tau, 1.0), "gain": YAW},
    }


class Adaptive(CueingTable, frozen=True, kw_only=True, tag="adaptive"):
    """Coordinated adaptive washout; the preset supplies values that are not given."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "small": _suited(0.15, 0.15, 0.15, 12.0, 12.0, 12.0),
        "medium": _suited(0.4, 0.4, 0.3, 18.0, 18.0, 18.0),
        "large": _suited(1.1, 1.1, 0.7, 25.0, 25.0, 25.0),
    }
    moves: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "surge_displacement": ("surge",),
        "sway_displacement": ("sway",),
        "heave_displacement": ("heave",),
        "roll": ("roll", "sway"),
        "pitch": ("pitch", "surge"),
        "yaw": ("yaw",),
    }
    thresholds: ClassVar[Mapping[str, float]] = THRESHOLDS
    default_preset: ClassVar[str | None] = "medium"
    auto: ClassVar[str | None] = "medium"
    preset: str | None = None
    """A parameter set for a workspace: small (0.15 m, 12 deg), medium (0.4 m, 18 deg), large (1.1 m, 25 deg), or auto:
    made for the platform.  It supplies what is left out; without it, if a required value is left out, auto does so
    with a platform, and medium without one."""
    adaptation: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.02
    """How fast parameters descend the cost [1/s]; 0: a linear washout."""
    return_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 4.0
    """Time constant with which parameters return to their start [s]."""
    surge: Force
    sway: Force
    heave: Heave
    roll: Rotation
    pitch: Rotation
    yaw: Yaw
    tilt: Tilt = Tilt()
    weights: Weights = Weights()

    @staticmethod
    def suited(room: Mapping[str, ChannelWorkspace], size: str = "") -> Mapping[str, Any] | None:
        """Return the tables of the preset ``auto`` for a platform."""
        travel = (room[f"{name}_displacement"].travel for name in ("surge", "sway", "heave"))
        return _suited(*travel, *(degrees(room[name].travel) for name in ("roll", "pitch", "yaw")))
