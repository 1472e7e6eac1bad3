"""Settings of `predictive`, receding horizon cueing, and its workspaces."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from motioncue.core.table import CueingTable, Positive, Table

__all__ = ["Gains", "Predictive", "Tilt", "Travel", "Turn", "Weights", "Workspace"]

Weight = Annotated[float, msgspec.Meta(ge=0, le=1000)]
Share = Annotated[float, msgspec.Meta(ge=0, le=2)]
Seconds = Annotated[float, msgspec.Meta(ge=0.02, le=100)]


def _workspace(travel_m: float, speed_m_s: float, acceleration_m_s2: float, angle_deg: float) -> dict[str, Any]:
    travel = {"range_m": travel_m, "speed_m_s": speed_m_s, "acceleration_m_s2": acceleration_m_s2}
    turn = {"range_deg": angle_deg, "speed_deg_s": 30.0, "acceleration_deg_s2": 500.0}
    return {
        "workspace": {
            **{axis: dict(travel) for axis in ("surge", "sway", "heave")},
            **{axis: dict(turn) for axis in ("roll", "pitch", "yaw")},
        }
    }


PRESETS: dict[str, dict[str, Any]] = {
    "small": _workspace(0.15, 0.5, 6.0, 12.0),
    "medium": _workspace(0.3, 0.8, 8.0, 18.0),
    "large": _workspace(0.7, 1.5, 10.0, 25.0),
}


class Travel(Table, frozen=True, kw_only=True):
    """Bounds of a translation, the same in both directions."""

    range_m: Positive
    """Largest displacement from neutral [m]."""
    speed_m_s: Positive
    """Largest speed [m/s]."""
    acceleration_m_s2: Positive
    """Largest acceleration [m/s^2]."""


class Turn(Table, frozen=True, kw_only=True):
    """Bounds of a rotation, the same in both directions."""

    range_deg: Positive
    """Largest angle from neutral [deg]."""
    speed_deg_s: Positive
    """Largest angular speed [deg/s]."""
    acceleration_deg_s2: Positive
    """Largest angular acceleration [deg/s^2]."""


class Workspace(Table, frozen=True, kw_only=True):
    """Bounds of the pose in addition to those of the platform's actuators."""

    surge: Travel | None = None
    sway: Travel | None = None
    heave: Travel | None = None
    roll: Turn | None = None
    pitch: Turn | None = None
    yaw: Turn | None = None


class Gains(Table, frozen=True, kw_only=True):
    """Share of the car's motion that the plan aims at, sense by sense, times `gain`; 0: it aims at feeling none."""

    surge: Share = 1.0
    """Longitudinal specific force."""
    sway: Share = 1.0
    """Lateral specific force."""
    heave: Share = 1.0
    """Vertical specific force."""
    roll: Share = 1.0
    """Roll rate."""
    pitch: Share = 1.0
    """Pitch rate."""
    yaw: Share = 1.0
    """Yaw rate."""


class Weights(Table, frozen=True, kw_only=True):
    """What the plan weighs against each other; squares of these multiply squares of shares."""

    surge: Weight = 1.0
    """Perceived error of longitudinal specific force, in thresholds."""
    sway: Weight = 1.0
    """Perceived error of lateral specific force, in thresholds."""
    heave: Weight = 1.0
    """Perceived error of vertical specific force, in thresholds."""
    roll_rate: Weight = 1.0
    """Perceived error of roll rate, in thresholds."""
    pitch_rate: Weight = 1.0
    """Perceived error of pitch rate, in thresholds."""
    yaw_rate: Weight = 1.0
    """Perceived error of yaw rate, in thresholds."""
    travel: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 0.8
    """Displacement of each actuator from neutral, in shares of half its range: it brings the platform back."""
    speed: Weight = 0.3
    """Speed, in shares of the largest speed."""
    effort: Weight = 0.1
    """Acceleration, in shares of the largest acceleration."""
    smoothness: Weight = 0.02
    """Change of acceleration: a tenth of a second from none to the largest is one, of turning a second.  At least a
    20th of `travel`, `speed` and `effort` and a 1000th of the others counts: with less, plans swing to and fro."""
    conflict: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0
    """Conflict between sensed and expected vertical on the platform, which makes sick, in 0.17 m/s^2; 0: not
    weighed.  From about 5 it outweighs the drive: where the seat slides far, it leans against the car."""


class Tilt(Table, frozen=True, kw_only=True):
    """Tilt coordination: sustained specific force as platform tilt."""

    rate_limit_deg_s: Positive = 2.6
    """How much faster than the car it rolls and pitches at most, most of the time [deg/s]; below about 3 a tilt tends
    to go unnoticed, and what the car does next is not known exactly."""
    hurry_deg_s: Positive = 30.0
    """The same in a burst [deg/s]: a short fast tilt may be felt less than a wait."""
    burst_deg: Annotated[float, msgspec.Meta(ge=0, le=180)] | None = None
    """How far it has to turn beyond what is slow in the next half second before it is that fast [deg]; 180: never.
    Without it, 2.3 where the seat slides up to 0.3 m from neutral, to 3.5 from 0.7 m on, since a slide bridges the
    wait; the mean of surge and sway, over 1 + `weights.conflict`, which weighs turning by itself, over 3 at most."""
    fast_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.22
    """Share of the time in which it should tilt fast: with less of late, a burst takes as little as a quarter of
    `burst_deg`, with more, up to 1.35 times it."""
    acceleration_limit_deg_s2: Positive = 300.0
    """Largest roll and pitch acceleration [deg/s^2]."""


class Predictive(CueingTable, frozen=True, kw_only=True, tag="predictive"):
    """Receding horizon cueing: the plan with the least perceived error within all bounds."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    for_platform: ClassVar[bool] = True
    eases: ClassVar[bool] = True
    planned: ClassVar[bool] = True
    bridge: ClassVar[str] = "linear"
    unsearched: ClassVar[tuple[str, ...]] = (
        "plan_rate_hz",
        "horizon_s",
        *(f"gains.{axis}" for axis in Gains.__struct_fields__),
    )
    preset: str | None = None
    """A workspace for who has no `[platform]`: small, medium or large; without either, medium."""
    workspace: Workspace = Workspace()
    plan_rate_hz: Annotated[float, msgspec.Meta(ge=10, le=200)] = 100.0
    """New plans per second [Hz]; rounded to a whole number of ticks."""
    horizon_s: Annotated[float, msgspec.Meta(ge=0.5, le=10)] = 4.7
    """How far a plan looks ahead [s]."""
    gain: Annotated[float, msgspec.Meta(gt=0, le=2)] = 1.0
    """Share of the car's motion that the plan aims at."""
    gains: Gains = Gains()
    forecast: Literal["decay", "learned"] = "learned"
    """What the car is expected to do next: let its motion decay, or what was learned from this drive so far."""
    memory_s: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 60.0
    """How far back what is learned goes [s]; the decay times below are what holds before anything is."""
    laps: bool = True
    """Whether what was felt when the car came by the same way before counts, as far as it has just proved right; for a
    learned forecast, where the source sends a position."""
    force_decay_s: Seconds = 10.0
    """Time in which the car's present longitudinal and lateral specific force is expected to decay to 37 % [s]; who
    brakes or bends goes on with it, and what ends it is learned."""
    rate_decay_s: Seconds = 0.15
    """The same of its vertical specific force, and of its roll and pitch rates [s]."""
    yaw_decay_s: Seconds = 1.0
    """The same of its yaw rate [s]."""
    iterations: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200
    """Most steps of the solver for a plan; one that needs more, or too much work, fails, and the tick follows the plan
    before."""
    weights: Weights = Weights()
    tilt: Tilt = Tilt()
