"""Settings of `classical`, the classical washout, and its published parameter sets.

Frequencies are published in rad/s; the sets hold Hz, as profiles do.
"""

import math
from collections.abc import Mapping
from math import tau
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from motioncue.core.table import ChannelWorkspace, CueingTable, Positive, Table

__all__ = [
    "Axis",
    "Classical",
    "ForceScaling",
    "RateScaling",
    "RotationAxis",
    "Scaling",
    "Texture",
    "Tilt",
    "TranslationAxis",
]


def _axis(gain: float, omega: float, break_omega: float | None = None, order: int | None = None) -> dict[str, Any]:
    axis: dict[str, Any] = {"gain": gain, "order": order or (2 if break_omega is None else 3), "cutoff_hz": omega / tau}
    if axis["order"] > 1:
        axis["damping"] = 1.0
    if break_omega is not None:
        axis["break_hz"] = break_omega / tau
    return axis


def _found(yaw_deg: float, **axes: tuple[float, ...]) -> dict[str, dict[str, Any]]:
    """Return a set that a search found: third-order washout of displacements, first-order of roll and pitch."""
    slides, turns = ("gain", "cutoff_hz", "damping", "break_hz", "limit_m_s2"), ("gain", "cutoff_hz", "limit_deg_s")
    keys = {"surge": slides, "sway": slides, "heave": slides, "roll": turns, "pitch": turns, "tilt": TILT}
    order = {"surge": 3, "sway": 3, "heave": 3, "roll": 1, "pitch": 1}
    tables: dict[str, dict[str, Any]] = {
        axis: dict(zip(keys[axis], values, strict=True)) | ({"order": order[axis]} if axis in order else {})
        for axis, values in axes.items()
    }
    yaw = {"order": 2, "gain": 0.8, "cutoff_hz": 0.03, "damping": 1.0, "limit_deg_s": 25.0, "angle_limit_deg": yaw_deg}
    return {**tables, "yaw": yaw}


TILT = (
    "surge_cutoff_hz",
    "sway_cutoff_hz",
    "damping",
    "surge_gain",
    "sway_gain",
    "surge_limit_m_s2",
    "sway_limit_m_s2",
    "rate_limit_deg_s",
    "acceleration_limit_deg_s2",
)

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
    # Found by search for three workspaces: docs/search_presets.py, docs/tuning.md.
    "small": _found(
        surge=(0.716, 0.496, 1.21, 0.0258, 1.03),
        sway=(0.597, 0.673, 0.726, 0.0129, 1.4),
        heave=(0.922, 0.788, 0.526, 0.0479, 2.0),
        roll=(0.576, 0.263, 8.0),
        pitch=(0.9, 0.501, 10.0),
        yaw_deg=10.5,
        tilt=(0.984, 1.15, 1.08, 0.921, 0.541, 1.73, 1.78, 18.0, 200.0),
    ),
    "medium": _found(
        surge=(0.716, 0.4, 1.21, 0.0258, 1.55),
        sway=(0.597, 0.673, 0.726, 0.0129, 1.4),
        heave=(0.922, 0.788, 0.526, 0.0479, 2.0),
        roll=(0.576, 0.263, 8.0),
        pitch=(0.9, 0.501, 10.0),
        yaw_deg=15.5,
        tilt=(0.984, 1.15, 1.08, 0.921, 0.541, 2.1, 2.2, 18.0, 200.0),
    ),
    "large": _found(
        surge=(1.05, 0.208, 1.56, 0.0342, 2.2),
        sway=(0.369, 1.01, 0.676, 0.0159, 2.68),
        heave=(0.804, 0.347, 0.468, 0.0823, 2.4),
        roll=(0.428, 0.167, 8.0),
        pitch=(0.8, 0.303, 10.0),
        yaw_deg=21.0,
        tilt=(0.544, 0.754, 0.905, 1.0, 0.78, 2.45, 2.77, 18.0, 200.0),
    ),
}

SIZES: Mapping[str, tuple[float, float]] = {"small": (0.15, 12.0), "medium": (0.4, 18.0), "large": (1.1, 25.0)}
"""Travel along surge and sway [m], and roll and pitch [deg], for which presets were searched."""


Gain = Annotated[float, msgspec.Meta(ge=-10, le=10)]


class Axis(Table, frozen=True, kw_only=True):
    """An axis with washout."""

    gain: Gain = 1.0
    """Factor on the input, before limit and filter."""
    order: Literal[1, 2, 3] = 2
    """Order of the high-pass filter."""
    cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=100)]
    """Natural (first order: break) frequency of the high-pass filter [Hz]."""
    damping: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0
    """Damping ratio of the second-order section."""
    break_hz: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None
    """Break frequency of the third order's additional section [Hz]; not used by other orders."""


class Scaling(Table, frozen=True, kw_only=True):
    """A third-order polynomial in place of a gain: large inputs are compressed, small ones keep it.

    Notes
    -----
    With X the largest input, z = |x|/X and K the gain, y = K x (1 + c2 z + c3 z^2).  The slope at 0 is K.  The other
    two conditions, y(X) = K X share and y'(X) = K slope, are two equations for the coefficients::

        1 + c2 + c3 = share        1 + 2 c2 + 3 c3 = slope
        c2 = 3 share - 2 - slope   c3 = 1 + slope - 2 share

    Beyond X the value is held.  The slope y'/K = 1 + 2 c2 z + 3 c3 z^2 is a parabola in z from 1 at z = 0 to `slope` at
    z = 1, both not negative, so it is negative somewhere between only if it opens upward, has its vertex -c2/(3 c3)
    between 0 and 1, and its least value 1 - c2^2/(3 c3) is negative.  In terms of the share these are one condition,
    share < (1 + slope - sqrt(slope))/3.  Such a shape is refused: a larger input would give a smaller cue.

    References
    ----------
    R. J. Telban and F. M. Cardullo, NASA/CR-2005-213747: the polynomial from its slope at 0 and from value and slope
    at the largest input.  In shares of the gain, and the condition: own derivation.
    """

    share: Annotated[float, msgspec.Meta(gt=0, le=1)]
    """Scaled value at the largest input, as a share of gain times that input."""
    slope: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """Slope there as a share of the gain."""

    def coefficients(self) -> tuple[float, float]:
        """Return the coefficients of second and third order, c2 and c3."""
        return 3.0 * self.share - 2.0 - self.slope, 1.0 + self.slope - 2.0 * self.share

    def least_share(self) -> float:
        """Return the least share with which a larger input never gives a smaller value."""
        return (1.0 + self.slope - math.sqrt(self.slope)) / 3.0


class ForceScaling(Scaling, frozen=True, kw_only=True):
    """A third-order polynomial in place of a gain: large inputs are compressed, small ones keep it."""

    largest_m_s2: Positive
    """Largest input [m/s^2]; beyond it the scaled value is held."""


class RateScaling(Scaling, frozen=True, kw_only=True):
    """A third-order polynomial in place of a gain: large inputs are compressed, small ones keep it."""

    largest_deg_s: Positive
    """Largest input [deg/s]; beyond it the scaled value is held."""


class TranslationAxis(Axis, frozen=True, kw_only=True):
    """Surge, sway or heave."""

    scaling: ForceScaling | None = None
    """Non-linear scaling, of onset and tilt alike; linear if not given."""

    limit_m_s2: Positive | None = None
    """Largest scaled input [m/s^2]; unlimited if not given."""
    negative_share: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    """Gain of negative inputs (braking, force to the left, downward) as a share of that of positive ones, of onset and
    tilt alike; the one goes over into the other within some 0.3 m/s^2 about 0."""
    dead_zone_m_s2: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0
    """Input up to which nothing passes [m/s^2], of onset and tilt alike; half of it passes at twice that."""
    return_m_s2: Positive | None = None
    """Threshold [m/s^2]: while the filter's input is below it, travel is brought back to neutral by no more than it.
    If not given, the filter alone does that."""

    @property
    def shaped(self) -> bool:
        """Whether its input is scaled by more than a gain and a limit."""
        return self.scaling is not None or self.negative_share != 1.0 or self.dead_zone_m_s2 > 0.0

    @property
    def returns(self) -> bool:
        """Whether it is brought back to neutral below a threshold."""
        return self.return_m_s2 is not None


class RotationAxis(Axis, frozen=True, kw_only=True):
    """Roll, pitch or yaw."""

    scaling: RateScaling | None = None
    """Non-linear scaling; linear if not given."""

    limit_deg_s: Positive | None = None
    """Largest scaled input [deg/s]; unlimited if not given."""
    angle_limit_deg: Positive | None = None
    """Largest angle of the high-passed rotation [deg]: away from 0, a rate is followed by 1 - (angle/limit)^2 of it.
    Unlimited if not given."""
    dead_zone_deg_s: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    """Rate up to which nothing passes [deg/s]; half of it passes at twice that."""
    return_deg_s: Positive | None = None
    """Threshold [deg/s]: while the filter's input is below it, the angle is brought back to 0 by no more than it.
    If not given, the filter alone does that."""

    @property
    def shaped(self) -> bool:
        """Whether its input is scaled by more than a gain and a limit."""
        return self.scaling is not None or self.dead_zone_deg_s > 0.0

    @property
    def returns(self) -> bool:
        """Whether it is brought back to neutral below a threshold."""
        return self.return_deg_s is not None


class Tilt(Table, frozen=True, kw_only=True):
    """Tilt coordination: sustained specific force as platform tilt."""

    surge_cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=100)]
    """Natural frequency of the low-pass filter of surge [Hz]."""
    sway_cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=100)]
    """Natural frequency of the low-pass filter of sway [Hz]."""
    damping: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0
    """Damping ratio of both."""
    law: Literal["exact", "linear"] = "exact"
    """Angle for a specific force f: arcsin(f/g), or f/g, which never exceeds 57 deg."""
    pitch_share: Annotated[float, msgspec.Meta(ge=0, le=2)] = 1.0
    """Share of the gravity along surge in a car that pitches which becomes tilt: 1 all of it, 0 none."""
    roll_share: Annotated[float, msgspec.Meta(ge=0, le=2)] = 1.0
    """Share of the gravity along sway in a car that rolls or is banked which becomes tilt."""
    surge_gain: Gain | None = None
    """Factor on the specific force along surge before the low-pass filter; that of the axis if not given."""
    sway_gain: Gain | None = None
    """Factor on the specific force along sway before the low-pass filter; that of the axis if not given."""
    surge_limit_m_s2: Positive | None = None
    """Largest scaled specific force along surge [m/s^2]; that of the axis if not given."""
    sway_limit_m_s2: Positive | None = None
    """Largest scaled specific force along sway [m/s^2]; that of the axis if not given."""
    rate_limit_deg_s: Positive | None = None
    """Largest tilt rate [deg/s]; unlimited if not given."""
    acceleration_limit_deg_s2: Positive | None = None
    """Largest acceleration of the tilt [deg/s^2]; it brakes in time for its target.  Unlimited if not given."""


class Texture(Table, frozen=True, kw_only=True):
    """Road noise and engine vibration: a band of the motion added to the pose, past the washout."""

    cutoff_hz: Annotated[float, msgspec.Meta(gt=0, le=100)] = 3.0
    """Frequency from which on they pass [Hz]: a Butterworth filter of third order."""
    sway_gain: Gain = 0.0
    """Factor on the acceleration to the side, beside what the washout passes of it."""
    heave_gain: Gain = 1.0
    """Factor on the acceleration upward, likewise."""
    roll_gain: Gain = 0.0
    """Factor on the roll rate, likewise."""
    pitch_gain: Gain = 0.0
    """Factor on the pitch rate, likewise."""
    limit_m: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.01
    """Largest displacement that they add [m]; reached smoothly, at 1.875 times as much."""
    limit_deg: Annotated[float, msgspec.Meta(gt=0, le=45)] = 1.0
    """Largest roll and largest pitch that they add [deg], likewise."""


LIMITED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "surge_displacement": (("surge", "limit_m_s2"),),
    "sway_displacement": (("sway", "limit_m_s2"),),
    "heave_displacement": (("heave", "limit_m_s2"),),
    "roll": (("roll", "limit_deg_s"), ("tilt", "sway_limit_m_s2")),
    "pitch": (("pitch", "limit_deg_s"), ("tilt", "surge_limit_m_s2")),
    "yaw": (("yaw", "angle_limit_deg"),),
}
"""Limits that bound each channel of the pose: table and key."""


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
    auto: ClassVar[str | None] = "small"
    gives_room: ClassVar[bool] = True
    sizes: ClassVar[tuple[str, ...]] = tuple(SIZES)
    preset: str | None = None
    """A published parameter set (simona, utias), one searched for a workspace (small: 0.15 m, 12 deg; medium: 0.4 m,
    18 deg; large: 1.1 m, 25 deg), or auto: the one of these that is felt best on the platform, its limits within the
    platform's ranges.  It supplies what is left out; without it, if a required value is left out, auto does so with a
    platform, and simona without one."""
    surge: TranslationAxis
    sway: TranslationAxis
    heave: TranslationAxis
    roll: RotationAxis
    pitch: RotationAxis
    yaw: RotationAxis
    tilt: Tilt
    turned_by: Literal["car", "platform"] = "car"
    """Attitude that turns what is scaled into the level axes in which the platform is displaced: the car's, as in the
    world, or the platform's, so that it is felt along the axes of the car."""
    turned: Literal["acceleration", "specific_force"] = "acceleration"
    """What is scaled and turned: acceleration, or specific force with gravity, to which that of a level car is added
    afterwards.  Turned by the platform's attitude, the onset is then less by what tilt presents already."""
    limited: Literal["before_turn", "after_turn"] = "before_turn"
    """What the limits of the axes act on: accelerations and rates along the car's axes, or what these have become,
    level accelerations and Euler rates."""
    filters: Literal["bilinear", "hold"] = "bilinear"
    """How the filters are made discrete: by the bilinear transform, exact at their own frequencies, or with their input
    held from one tick to the next, exact at the ticks after a step, and half a tick later."""
    texture: Texture | None = None
    """Road noise and engine vibration; none if not given."""

    @staticmethod
    def suited(room: Mapping[str, ChannelWorkspace], size: str = "small") -> Mapping[str, Any] | None:
        """Return the tables of the preset ``auto`` for a platform, from those of a searched set.

        Where the platform has less than that is for, the limits are less by as much; a channel without an actuator
        keeps its limit.
        """
        m, deg = SIZES[size]
        tables = {name: dict(table) for name, table in PRESETS[size].items()}
        for name, limited in LIMITED.items():
            has = room[name].travel
            whole = m if name.endswith("_displacement") else math.radians(deg)
            for table, key in limited if 0.0 < has < whole else ():
                tables[table][key] *= has / whole
        return tables

    def sustained(self, name: str) -> tuple[float, float | None]:
        """Return gain and limit of the specific force along an axis, surge or sway, that becomes tilt."""
        axis: TranslationAxis = getattr(self, name)
        gain, limit = (getattr(self.tilt, f"{name}_{key}") for key in ("gain", "limit_m_s2"))
        return axis.gain if gain is None else gain, axis.limit_m_s2 if limit is None else limit
