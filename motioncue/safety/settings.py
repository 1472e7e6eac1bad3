"""Settings of bounds: on each channel that is sent, for all outputs or for one."""

import math
from typing import Literal

import msgspec

from motioncue.core.table import Positive, Table

__all__ = [
    "OF_CAR",
    "AccelerationBounds",
    "AngleBounds",
    "DisplacementBounds",
    "EngineBounds",
    "Free",
    "HeadingBounds",
    "HeaveBounds",
    "Limits",
    "OutputLimits",
    "RateBounds",
    "ShareBounds",
    "SpeedBounds",
    "TravelBounds",
    "TravelSpeedBounds",
    "in_si",
]

Bound = Positive | None
Free = Literal["none"]


class AccelerationBounds(Table, frozen=True, kw_only=True):
    """Bounds on surge or sway as sent, and on their derivatives; docs/safety.md has the reasons."""

    value_m_s2: Positive = 25.0
    """Largest magnitude [m/s^2].

    2.5 g: a tenth above the hardest braking and cornering of a recorded rally stage.
    """
    rate_m_s3: Bound = 2500.0
    """Largest change per second [m/s^3].

    7.5 m/s^2 from packet to packet: the smallest that lets a rough road pass at 60 frames a second with `hold`.
    """
    acceleration_m_s4: Bound = 600_000.0
    """Largest change of that [m/s^4].

    A step begins with 5.4 m/s^2 in the first packet and ends as gently; chosen like the rate.
    """
    jerk_m_s5: Bound = None
    """Largest change of that [m/s^5]; not bounded if not given."""


class HeaveBounds(AccelerationBounds, frozen=True, kw_only=True):
    """Bounds on heave as sent, and on its derivatives."""

    value_m_s2: Positive = 30.0
    """Largest magnitude [m/s^2].

    A hard curb; for any waveform the load on the spine is half of what STANAG 4569 allows.
    """


class AngleBounds(Table, frozen=True, kw_only=True):
    """Bounds on roll or pitch as sent, and on their derivatives."""

    value_deg: Positive = 60.0
    """Largest magnitude [deg].

    Steeper than roads and than a washout's tilt on a rally stage, and far from half a turn, where angles jump.
    """
    rate_deg_s: Bound = 300.0
    """Largest change per second [deg/s].

    0.9 degrees from packet to packet: the smallest that lets attitudes pass at 30 frames a second with `hold`.
    """
    acceleration_deg_s2: Bound = 100_000.0
    """Largest change of that [deg/s^2].

    A turn begins with 0.9 degrees in the first packet; chosen like the rate.
    """
    jerk_deg_s3: Bound = None
    """Largest change of that [deg/s^3]; not bounded if not given."""


class HeadingBounds(AngleBounds, frozen=True, kw_only=True):
    """Bounds on yaw as sent, and on its derivatives."""

    value_deg: Positive = 180.0
    """Largest magnitude [deg].

    A heading may turn all the way round.
    """
    rate_deg_s: Bound = 900.0
    """Largest change per second [deg/s].

    Faster than any spin: it slows only a heading that reverses at once, as when the nose passes the vertical.
    """
    acceleration_deg_s2: Bound = 240_000.0
    """Largest change of that [deg/s^2].

    Chosen as for roll and pitch.
    """


class RateBounds(Table, frozen=True, kw_only=True):
    """Bounds on an angular rate as sent, and on its derivatives."""

    value_deg_s: Positive = 300.0
    """Largest magnitude [deg/s].

    The bound on the rate of roll and pitch.
    """
    rate_deg_s2: Bound = 30_000.0
    """Largest change per second [deg/s^2].

    90 deg/s from packet to packet: the smallest that lets a rally stage pass at 66 frames a second with `hold`.
    """
    acceleration_deg_s3: Bound = None
    """Largest change of that [deg/s^3]; not bounded if not given."""
    jerk_deg_s4: Bound = None
    """Largest change of that [deg/s^4]; not bounded if not given."""


class DisplacementBounds(Table, frozen=True, kw_only=True):
    """Bounds on a displacement as sent, and on its derivatives."""

    value_m: Positive = 10.0
    """Largest magnitude [m].

    More than the presets need; set the platform's stroke instead.
    """
    rate_m_s: Bound = 10.0
    """Largest change per second [m/s].

    More than the presets need; set the platform's speed instead.
    """
    acceleration_m_s2: Bound = 30.0
    """Largest change of that [m/s^2].

    The bound on heave, because this is the seat's acceleration if the platform follows exactly.
    """
    jerk_m_s3: Bound = 2500.0
    """Largest change of that [m/s^3].

    The bound on the rate of surge, sway and heave, because this is how fast that acceleration changes.
    """


class SpeedBounds(Table, frozen=True, kw_only=True):
    """Bounds on the car's speed as sent, and on its derivatives."""

    value_m_s: Positive = 150.0
    """Largest magnitude [m/s].

    540 km/h.
    """
    rate_m_s2: Bound = 500.0
    """Largest change per second [m/s^2].

    More than any car's, so that the largest speed fades within a second, as everything else does.
    """
    acceleration_m_s3: Bound = None
    """Largest change of that [m/s^3]; not bounded if not given."""
    jerk_m_s4: Bound = None
    """Largest change of that [m/s^4]; not bounded if not given."""


class EngineBounds(Table, frozen=True, kw_only=True):
    """Bounds on the engine's speed as sent, and on its derivatives."""

    value_rpm: Positive = 20_000.0
    """Largest magnitude [rpm].

    More than any engine of a car turns.
    """
    rate_rpm_s: Bound = 100_000.0
    """Largest change per second [rpm/s].

    From idle to the end of the scale in a fifth of a second.
    """
    acceleration_rpm_s2: Bound = None
    """Largest change of that [rpm/s^2]; not bounded if not given."""
    jerk_rpm_s3: Bound = None
    """Largest change of that [rpm/s^3]; not bounded if not given."""


class TravelBounds(Table, frozen=True, kw_only=True):
    """Bounds on suspension travel or a cab's offset as sent, and on its derivatives."""

    value_m: Positive = 0.5
    """Largest magnitude [m].

    The travel of a desert racer.
    """
    rate_m_s: Bound = 10.0
    """Largest change per second [m/s].

    A wheel that drops into a hole.
    """
    acceleration_m_s2: Bound = 2000.0
    """Largest change of that [m/s^2].

    A curb at speed, and more than frames at 60 Hz can show.
    """
    jerk_m_s3: Bound = None
    """Largest change of that [m/s^3]; not bounded if not given."""


class TravelSpeedBounds(SpeedBounds, frozen=True, kw_only=True):
    """Bounds on the velocity of suspension travel as sent, and on its derivatives."""

    value_m_s: Positive = 10.0
    """Largest magnitude [m/s].

    The bound on the rate of the travel.
    """
    rate_m_s2: Bound = 2000.0
    """Largest change per second [m/s^2].

    The bound on the acceleration of the travel.
    """


class ShareBounds(Table, frozen=True, kw_only=True):
    """Bounds on slip or rumble as sent, and on its derivatives."""

    value: Positive = 10.0
    """Largest magnitude [1].

    Simulators differ in scale; a wheel that spins has a slip of several.
    """
    rate_per_s: Bound = 500.0
    """Largest change per second [1/s].

    From nothing to all within 20 ms.
    """
    acceleration_per_s2: Bound = None
    """Largest change of that [1/s^2]; not bounded if not given."""
    jerk_per_s3: Bound = None
    """Largest change of that [1/s^3]; not bounded if not given."""


class Limits(Table, frozen=True, kw_only=True):
    """Bounds on what is sent, for any input.

    Missing keys have their defaults; `"none"` in place of a channel's table removes that channel's bounds.
    """

    surge: AccelerationBounds | Free = AccelerationBounds()
    sway: AccelerationBounds | Free = AccelerationBounds()
    heave: HeaveBounds | Free = HeaveBounds()
    roll: AngleBounds | Free = AngleBounds()
    pitch: AngleBounds | Free = AngleBounds()
    yaw: HeadingBounds | Free = HeadingBounds()
    roll_rate: RateBounds | Free = RateBounds()
    pitch_rate: RateBounds | Free = RateBounds()
    yaw_rate: RateBounds | Free = RateBounds()
    surge_displacement: DisplacementBounds | Free = DisplacementBounds()
    sway_displacement: DisplacementBounds | Free = DisplacementBounds()
    heave_displacement: DisplacementBounds | Free = DisplacementBounds()


class OutputLimits(Table, frozen=True, kw_only=True):
    """Bounds for one output; a channel that is left out keeps only the profile's, one of the car its defaults."""

    surge: AccelerationBounds | None = None
    sway: AccelerationBounds | None = None
    heave: HeaveBounds | None = None
    roll: AngleBounds | None = None
    pitch: AngleBounds | None = None
    yaw: HeadingBounds | None = None
    roll_rate: RateBounds | None = None
    pitch_rate: RateBounds | None = None
    yaw_rate: RateBounds | None = None
    surge_displacement: DisplacementBounds | None = None
    sway_displacement: DisplacementBounds | None = None
    heave_displacement: DisplacementBounds | None = None
    car_surge: AccelerationBounds | None = None
    car_sway: AccelerationBounds | None = None
    car_heave: HeaveBounds | None = None
    car_roll: AngleBounds | None = None
    car_pitch: AngleBounds | None = None
    car_yaw: HeadingBounds | None = None
    car_roll_rate: RateBounds | None = None
    car_pitch_rate: RateBounds | None = None
    car_yaw_rate: RateBounds | None = None
    car_speed: SpeedBounds | None = None
    car_engine_speed: EngineBounds | None = None
    car_suspension: TravelBounds | None = None
    car_suspension_velocity: TravelSpeedBounds | None = None
    car_slip: ShareBounds | None = None
    car_rumble: ShareBounds | None = None
    car_cabin: TravelBounds | None = None
    car_cabin_angle: AngleBounds | None = None

    def bounds(self) -> dict[str, list[float | None]]:
        """Return value, rate, acceleration and jerk bound of each bounded channel of the cue [SI]; None: unbounded."""
        return {name: bounds for name, bounds in in_si(self).items() if not name.startswith(OF_CAR)}

    def car_bounds(self) -> dict[str, list[float | None]]:
        """Return the same of every channel of the car, by the name of the cue's channel: all are bounded."""
        every = msgspec.structs.replace(
            self, **{name: kind() for name, kind in CAR_BOUNDS.items() if getattr(self, name) is None}
        )
        return {name.removeprefix(OF_CAR): bounds for name, bounds in in_si(every).items() if name in CAR_BOUNDS}

    def chassis_bounds(self) -> list[list[float | None]]:
        """Return the same of wheels, suspension and cab, in the order of ``CHASSIS``; one kind shares its bounds."""
        kinds = ("suspension", "suspension_velocity", "slip", "rumble", "cabin", "cabin_angle")
        every = msgspec.structs.replace(
            self,
            **{f"car_{kind}": CHASSIS_BOUNDS[kind]() for kind in kinds if getattr(self, f"car_{kind}") is None},
        )
        found = in_si(every)
        return [found[f"car_{kind}"] for kind in kinds for _ in range(3 if kind.startswith("cabin") else 4)]


OF_CAR = "car_"
"""Begins the names of the car's own channels."""

CAR_BOUNDS: dict[str, type[Table]] = {
    **dict.fromkeys(("car_surge", "car_sway"), AccelerationBounds),
    "car_heave": HeaveBounds,
    **dict.fromkeys(("car_roll", "car_pitch"), AngleBounds),
    "car_yaw": HeadingBounds,
    **dict.fromkeys(("car_roll_rate", "car_pitch_rate", "car_yaw_rate"), RateBounds),
    "car_speed": SpeedBounds,
    "car_engine_speed": EngineBounds,
}
"""The bounds of the car's own channels, in their order."""


CHASSIS_BOUNDS: dict[str, type[Table]] = {
    "suspension": TravelBounds,
    "suspension_velocity": TravelSpeedBounds,
    "slip": ShareBounds,
    "rumble": ShareBounds,
    "cabin": TravelBounds,
    "cabin_angle": AngleBounds,
}
"""The bounds of wheels, suspension and cab, in the order of their channels; one for all wheels."""


def in_si(limits: Limits | OutputLimits) -> dict[str, list[float | None]]:
    """Return value, rate, acceleration and jerk bound of each bounded channel [SI]; None: unbounded."""
    return {
        name: [
            math.radians(value) if value is not None and "_deg" in key else value
            for key, value in msgspec.structs.asdict(table).items()
        ]
        for name, table in msgspec.structs.asdict(limits).items()
        if table not in ("none", None)
    }
