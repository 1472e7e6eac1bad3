"""Settings of a platform: its geometry, and the bounds of its actuators.

A platform is a frame carried by actuators of one kind, and any number of single-axis actuators beside them.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from motioncue.core.table import Positive, Table

__all__ = [
    "ActuatorBounds",
    "Axes",
    "Axis",
    "CrankHexapod",
    "Hexapod",
    "Joints",
    "Platform",
    "PlatformTable",
    "Posts",
    "Travel",
    "Turning",
    "platform_presets",
    "platform_text",
]

Length = Annotated[float, msgspec.Meta(ge=-100, le=100)]
Size = Annotated[float, msgspec.Meta(gt=0, le=100)]
Place: TypeAlias = tuple[Length, Length, Length]
Angle = Annotated[float, msgspec.Meta(ge=-360, le=360)]
Part = Literal["yaw", "heave", "travel", "tilt"]


class ActuatorBounds(NamedTuple):
    """What an actuator may do, in m or rad and s."""

    low: float
    """Lowest position."""
    high: float
    """Highest position."""
    speed: float
    """Largest speed, in both directions."""
    acceleration: float
    """Largest acceleration, in both directions."""
    jerk: float = math.inf
    """Largest jerk, in both directions."""

    @staticmethod
    def columns(bounds: "Sequence[ActuatorBounds]") -> Any:
        """Return those of all actuators as one, each an array."""
        return ActuatorBounds(*np.array(bounds).T)


class Travel(Table, frozen=True, kw_only=True):
    """Bounds of an actuator that moves along a line."""

    min_m: Length
    """Shortest length of a leg, or lowest position of another actuator, from neutral [m]."""
    max_m: Length
    """Longest length or highest position [m]."""
    speed_m_s: Positive
    """Largest speed [m/s]."""
    acceleration_m_s2: Positive
    """Largest acceleration [m/s^2]."""
    jerk_m_s3: Positive | None = None
    """Largest jerk [m/s^3]; not bounded if not given."""


class Turning(Table, frozen=True, kw_only=True):
    """Bounds of an actuator that turns; a crank's angle is measured from the horizontal, upwards."""

    min_deg: Angle
    """Least angle [deg]."""
    max_deg: Angle
    """Largest angle [deg]."""
    speed_deg_s: Positive
    """Largest speed [deg/s]."""
    acceleration_deg_s2: Positive
    """Largest acceleration [deg/s^2]."""
    jerk_deg_s3: Positive | None = None
    """Largest jerk [deg/s^3]; not bounded if not given."""


Legs = Annotated[tuple[Travel, ...], msgspec.Meta(min_length=6, max_length=6)]
Cranks = Annotated[tuple[Turning, ...], msgspec.Meta(min_length=6, max_length=6)]


class Joints(Table, frozen=True, kw_only=True):
    """Six joints: three pairs on a circle, or each at its own place."""

    radius_m: Size | None = None
    """Distance of the joints from the center [m]."""
    pair_m: Size | None = None
    """Distance between the joints of a pair [m]."""
    at_m: Annotated[tuple[Place, ...], msgspec.Meta(min_length=6, max_length=6)] | None = None
    """Place of each joint, in the order of the actuators, instead of radius_m and pair_m: forward, right, up [m]."""


class Axis(Table, frozen=True, kw_only=True):
    """An actuator that follows one channel of the pose."""

    name: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_]{0,31}$")]
    """Name of the actuator as a channel of packets."""
    channel: Literal["surge_displacement", "sway_displacement", "heave_displacement", "roll", "pitch", "yaw"]
    """The channel of the pose that it follows."""
    scale: Annotated[float, msgspec.Meta(ge=-100, le=100)] = 1.0
    """Position for one unit of the channel [m/m, m/rad, rad/m, rad/rad]."""
    travel: Travel | None = None
    """Bounds if it moves along a line; otherwise `turn` has them."""
    turn: Turning | None = None
    """Bounds if it turns."""
    carries_below_hz: Annotated[float, msgspec.Meta(ge=0.01, le=100)] | None = None
    """It carries a hexapod, which is then moved by what is left of its channel (surge, sway or yaw): the sled or table
    takes what is slower than this [Hz], and what the legs have no room for; under `predictive`, all that it can follow.
    Not given: it stands beside the frame."""


AxisNumber = Annotated[int, msgspec.Meta(ge=1, le=12)]


class Wiring(Table, frozen=True, kw_only=True):
    """How the actuators hang at the controller, as `motioncue wire` finds it; one value for each actuator, in order."""

    order: Annotated[tuple[AxisNumber, ...], msgspec.Meta(max_length=12)] = ()
    """The controller's axis at which each hangs, from 1; in their own order if not given."""
    reversed: Annotated[tuple[bool, ...], msgspec.Meta(max_length=12)] = ()
    """Whether one goes down where the controller's axis goes up; none if not given."""
    offset: Annotated[tuple[Annotated[float, msgspec.Meta(ge=-0.25, le=0.25)], ...], msgspec.Meta(max_length=12)] = ()
    """By how much one stands higher than it is asked to, as a share of its range; 0 if not given."""


class PlatformTable(Table, frozen=True, kw_only=True, tag_field="kind"):
    """Keys of every platform; its tag is its kind."""

    preset: str | None = None
    """A built-in platform, which supplies the keys that are left out."""
    description: str = ""
    """A line that names the platform."""
    source: str = ""
    """Source of the numbers."""
    gives_way: tuple[Part, Part, Part, Part] = ("yaw", "heave", "travel", "tilt")
    """Order in which parts of a pose out of reach give way.  Yaw is felt least; a tilt stands for sustained
    acceleration."""
    park: Literal["down", "neutral"] = "down"
    """Where the actuators rest while the platform is parked: at their lowest, or as at neutral."""
    rise_s: Annotated[float, msgspec.Meta(ge=0.5, le=60)] = 4.0
    """Duration of the way from there to neutral, and of the way back [s].  The cue fades in meanwhile, unless
    `supervisor.engage_s` is as long."""
    lag_s: Annotated[float, msgspec.Meta(gt=0, le=0.5)] | None = None
    """Delay with which the actuators follow slow motions [s]: commands lead by it; not compensated if not given."""
    lag_damping: Annotated[float, msgspec.Meta(ge=0.1, le=1)] | None = None
    """Damping ratio of a lag of second order; first order if not given."""
    dead_time_s: Annotated[float, msgspec.Meta(gt=0, le=0.5)] | None = None
    """Time before a command has any effect [s]; not compensated, virtual platforms have it."""
    wiring: Wiring | None = None
    """Order, directions and offsets of the actuators at the controller, if they are not those of the packet."""
    axes: tuple[Axis, ...] = ()
    """Single-axis actuators beside those of the frame: a sled, a yaw table."""


class Hexapod(PlatformTable, frozen=True, kw_only=True, tag="hexapod"):
    """Six legs that change their length (6-UPS): `leg_1` at the right front, then clockwise."""

    platform: Joints
    """Pairs at 60, 180 and 300 degrees, clockwise from above; numbers of the legs: docs/glossary.md."""
    base: Joints
    """Pairs at 0, 120 and 240 degrees; each leg goes to the nearer joint of the neighboring pair."""
    height_m: Length
    """Height of the platform's joints above the base's, at neutral [m]; negative for a platform that hangs."""
    leg: Travel | Legs
    """Bounds of the legs: one table for all, or a list of six."""
    reference_m: Place = (0.0, 0.0, 0.0)
    """The point moved by the cue, from the center of the frame's joints: forward, right, up [m]."""


class CrankHexapod(PlatformTable, frozen=True, kw_only=True, tag="crank-hexapod"):
    """Six cranks that hold the platform by rods (6-RSS): `crank_1` at the right front, then clockwise."""

    platform: Joints
    base: Joints
    height_m: Length
    """Height of the platform's joints above the cranks' shafts, at neutral [m]; negative for a platform that hangs."""
    crank_m: Size
    """Length of a crank, from its axis to the rod's joint [m]."""
    rod_m: Size
    """Length of a rod, between its joints [m]."""
    azimuths_deg: tuple[Angle, Angle, Angle, Angle, Angle, Angle]
    """Direction of each crank when horizontal, in its vertical plane: from forward towards right [deg]."""
    crank: Turning | Cranks
    """Bounds of the cranks: one table for all, or a list of six."""
    reference_m: Place = (0.0, 0.0, 0.0)
    """The point moved by the cue, from the center of the frame's joints: forward, right, up [m]."""


class Corners(Table, frozen=True, kw_only=True):
    """What the posts add of the car's own suspension, each of its corner's wheel: bumps that a washout levels out.

    Four posts carry one stiff frame, so they move by the plane that is nearest to the four wheels.
    """

    gain: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    """Height of the seat's corner for the travel of its wheel [m/m]: a wheel that goes up lifts its corner."""
    cutoff_hz: Annotated[float, msgspec.Meta(ge=0.1, le=20)] = 1.0
    """What is slower than this is left out [Hz]: the load in a long turn is no bump."""
    most_m: Annotated[float, msgspec.Meta(gt=0, le=0.1)] = 0.01
    """Largest height that one wheel asks of its corner [m], at half of the posts' speed and acceleration at most."""


class Posts(PlatformTable, frozen=True, kw_only=True, tag="posts"):
    """Two to four posts that carry a frame: `post_1` and so on; two of them with a joint that holds it."""

    at_m: Annotated[tuple[tuple[Length, Length], ...], msgspec.Meta(min_length=2, max_length=4)]
    """Position of each post, from the motion reference point: forward, right [m].  With two posts that point is the
    joint about which the frame rolls and pitches, and heave moves nothing."""
    post: Travel | tuple[Travel, ...]
    """Bounds of the posts: one table for all, or a list with one for each."""
    corners: Corners | None = None
    """The car's suspension at four posts, one at each corner; not given: none."""


class Axes(PlatformTable, frozen=True, kw_only=True, tag="axes"):
    """Only single-axis actuators."""


Platform: TypeAlias = Hexapod | CrankHexapod | Posts | Axes
"""The ``platform`` table of a profile: one type per kind."""


_FOLDER = resources.files("motioncue") / "platforms" / "presets"


@cache
def platform_presets() -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of the built-in platforms by name."""
    names = sorted(Path(entry.name).stem for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))
    return {name: tomllib.loads(platform_text(name)) for name in names}


def platform_text(name: str) -> str:
    """Return the TOML text of a built-in platform."""
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
