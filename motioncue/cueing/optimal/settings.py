"""Settings of `optimal`, the linear-quadratic washout, and its sets for platforms of three sizes."""

from collections.abc import Mapping
from math import degrees, isfinite
from typing import Annotated, Any, ClassVar

import msgspec

from motioncue.core.table import ChannelWorkspace, CueingTable, Positive, Table

__all__ = ["Heave", "Optimal", "OptimalTilt", "Rotation", "Translation", "Yaw"]

Weight = Annotated[float, msgspec.Meta(ge=0.01, le=100)]
Gain = Annotated[float, msgspec.Meta(ge=-10, le=10)]
Limit = Annotated[float, msgspec.Meta(gt=0, le=1000)]
LimitRate = Annotated[float, msgspec.Meta(gt=0, le=10000)]
Hertz = Annotated[float, msgspec.Meta(ge=0.001, le=10)]


def _set(travel_m: float, heave_m: float, speed_m_s: float, angle_deg: float) -> dict[str, Any]:
    along = {"travel_m": travel_m, "speed_m_s": speed_m_s}
    turning = {"angle_deg": angle_deg}
    return {
        "surge": along,
        "sway": along,
        "heave": {"travel_m": heave_m, "speed_m_s": speed_m_s},
        "roll": turning,
        "pitch": turning,
        "yaw": turning,
    }


PRESETS: dict[str, dict[str, Any]] = {
    "small": _set(0.15, 0.15, 0.5, 12.0),
    "medium": _set(0.4, 0.3, 0.8, 18.0),
    "large": _set(1.1, 0.7, 1.5, 25.0),
}


LEAST_ROOM = ((0.001, 0.01), (0.001, 0.1))  # [m, m/s], [deg, deg/s]; where no actuator moves the platform
MOST_ROOM = ((10.0, 10.0), (90.0, 1000.0))  # what is allowed: a platform may go farther
ROOM_S = 9.9  # of a slow platform's way, as much as it goes in this time; a little less than is allowed


class Translation(Table, frozen=True, kw_only=True):
    """Surge or sway."""

    travel_m: Annotated[float, msgspec.Meta(ge=0.001, le=10)]
    """How far the platform goes from neutral along this axis [m]; less moves it less."""
    speed_m_s: Annotated[float, msgspec.Meta(ge=0.01, le=10)]
    """How fast it goes [m/s]; at least `travel_m` in 10 s."""
    weight: Weight = 1.0
    """Weight of what the driver feels wrong along this axis, in thresholds; 1 is balanced."""
    gain: Gain = 1.0
    """Factor on the car's specific force, before its limit."""
    limit_m_s2: Limit | None = None
    """Largest scaled specific force, of acceleration and gravity together [m/s^2]; if not given, the one that leans the
    platform by its largest angle if it lasts."""
    noise_hz: Hertz = 0.02
    """Break frequency of the car's specific force as filtered white noise [Hz]: lower expects forces to last."""


class Heave(Translation, frozen=True, kw_only=True):
    """Heave."""

    limit_m_s2: Limit | None = 4.0
    noise_hz: Hertz = 1.0


class Rotation(Table, frozen=True, kw_only=True):
    """Roll or pitch."""

    angle_deg: Annotated[float, msgspec.Meta(ge=0.001, le=90)]
    """How far the platform turns from neutral about this axis [deg]."""
    rate_deg_s: Annotated[float, msgspec.Meta(ge=0.1, le=1000)] = 30.0
    """How fast it turns [deg/s]; at least `angle_deg` in 10 s."""
    weight: Weight = 1.0
    """Weight of what the driver feels wrong about this axis, in thresholds; 1 is balanced."""
    gain: Gain = 1.0
    """Factor on the car's rate, before its limit."""
    limit_deg_s: LimitRate | None = 100.0
    """Largest scaled rate [deg/s]; if not given (yaw), the one that turns the platform by its largest angle if it
    lasts."""
    noise_hz: Hertz = 0.5
    """Break frequency of the car's rate as filtered white noise [Hz]: lower expects turns to last."""


class Yaw(Rotation, frozen=True, kw_only=True):
    """Yaw."""

    limit_deg_s: LimitRate | None = None


class OptimalTilt(Table, frozen=True, kw_only=True):
    """Roll and pitch of the platform."""

    rate_limit_deg_s: Positive | None = None
    """Largest rate by which the platform turns faster than the car, or against it [deg/s]; unlimited if not given."""


class Optimal(CueingTable, frozen=True, kw_only=True, tag="optimal"):
    """Linear-quadratic washout: the filter with the least perceived error for the travel; needs SciPy."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    default_preset: ClassVar[str | None] = "medium"
    auto: ClassVar[str | None] = "medium"
    gives_room: ClassVar[bool] = True
    preset: str | None = None
    """Ranges of a small, medium or large platform, or auto: those of the profile's platform.  It supplies what is left
    out; without it, if a required value is left out, auto does so with a platform, and medium without one."""
    restraint: Annotated[float, msgspec.Meta(ge=0.01, le=100)] = 1.0
    """Weight of travel, speed, angle and rate, in ranges, against perceived errors; more moves the platform less."""
    roll_off_hz: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 5.0
    """Break frequency above which the car's motion is taken for noise [Hz]: lower asks less of the actuators on rough
    telemetry, and is later by 160 ms divided by this."""
    surge: Translation
    sway: Translation
    heave: Heave
    roll: Rotation
    pitch: Rotation
    yaw: Yaw
    tilt: OptimalTilt = OptimalTilt()

    @staticmethod
    def suited(room: Mapping[str, ChannelWorkspace], size: str = "") -> Mapping[str, Any] | None:
        """Return the tables of the preset ``auto`` for a platform: what it has along each channel."""
        tables: dict[str, dict[str, float]] = {}
        for channel, has in room.items():
            turns = not channel.endswith("_displacement")
            keys = ("angle_deg", "rate_deg_s") if turns else ("travel_m", "speed_m_s")
            if isfinite(has.travel):
                has = has._replace(travel=min(has.travel, ROOM_S * has.speed))
            tables[channel.removesuffix("_displacement")] = {
                key: min(max(float(f"{degrees(value) if turns else value:.3g}"), least), most)
                for key, value, least, most in zip(keys, has, LEAST_ROOM[turns], MOST_ROOM[turns], strict=True)
                if isfinite(value)
            }
        return tables

    @property
    def pairs(self) -> tuple[tuple[Translation, Rotation], ...]:
        """The translations and rotations that are designed together."""
        return (self.surge, self.pitch), (self.sway, self.roll), (self.heave, self.yaw)
