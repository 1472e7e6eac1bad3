"""Settings of a platform: its geometry, and what its actuators can do.

A platform is a frame that actuators of one kind carry, and any single-axis actuators beside them.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from motioncue.settings.table import Positive, Table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
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
Angle = Annotated[float, msgspec.Meta(ge=-360, le=360)]
Part = Literal["yaw", "heave", "travel", "tilt"]


class Travel(Table, frozen=True, kw_only=True):
    """What an actuator that moves along a line can do."""

    min_m: Length
    """Shortest length of a leg, or lowest position from neutral of any other [m]."""
    max_m: Length
    """Longest, or highest [m]."""
    speed_m_s: Positive
    acceleration_m_s2: Positive


class Turning(Table, frozen=True, kw_only=True):
    """What an actuator that turns can do; a crank's angle is that above the horizontal."""

    min_deg: Angle
    max_deg: Angle
    speed_deg_s: Positive
    acceleration_deg_s2: Positive


class Joints(Table, frozen=True, kw_only=True):
    """Six joints on a circle, in three pairs."""

    radius_m: Positive
    pair_m: Positive
    """Distance of the joints of a pair from each other [m]."""


class Axis(Table, frozen=True, kw_only=True):
    """An actuator that follows one channel of the pose."""

    name: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_]{0,31}$")]
    channel: Literal["surge_displacement", "sway_displacement", "heave_displacement", "roll", "pitch", "yaw"]
    scale: Annotated[float, msgspec.Meta(ge=-100, le=100)] = 1.0
    """Its position for one unit of the channel [m/m, m/rad, rad/m, rad/rad]."""
    travel: Travel | None = None
    """What it can do if it moves along a line; else `turn` says it."""
    turn: Turning | None = None


class PlatformTable(Table, frozen=True, kw_only=True, tag_field="kind"):
    """What every platform has; its tag is its kind."""

    preset: str | None = None
    """A built-in platform, which fills what is left out."""
    description: str = ""
    source: str = ""
    """Where the numbers are from."""
    reference_m: tuple[Length, Length, Length] = (0.0, 0.0, 0.0)
    """The point that the cue moves, from the center of the frame's joints: forward, right, up [m]."""
    gives_way: tuple[Part, Part, Part, Part] = ("yaw", "heave", "travel", "tilt")
    """What goes first where a pose is out of reach.  Yaw is felt least; a tilt stands for acceleration that lasts."""
    park: Literal["down", "neutral"] = "down"
    """Where the actuators rest while nothing moves the platform: at their lowest, or as at neutral."""
    rise_s: Annotated[float, msgspec.Meta(ge=0.5, le=60)] = 4.0
    """How long the way from there to neutral takes, and the way back [s]."""
    axes: tuple[Axis, ...] = ()
    """Single-axis actuators beside those of the frame: a sled, a yaw table."""


class Hexapod(PlatformTable, frozen=True, kw_only=True, tag="hexapod"):
    """Six legs that change their length (6-UPS): `leg_1` at the right front, then clockwise."""

    platform: Joints
    """Pairs at 60, 180 and 300 degrees from forward towards right."""
    base: Joints
    """Pairs at 0, 120 and 240 degrees; each leg goes to the nearer joint of the neighboring pair."""
    height_m: Positive
    """Of the platform's joints above the base's, at neutral [m]."""
    leg: Travel


class CrankHexapod(PlatformTable, frozen=True, kw_only=True, tag="crank-hexapod"):
    """Six cranks that hold the platform by rods (6-RSS): `crank_1` at the right front, then clockwise."""

    platform: Joints
    base: Joints
    height_m: Positive
    """Of the platform's joints above the cranks' shafts, at neutral [m]."""
    crank_m: Positive
    rod_m: Positive
    azimuths_deg: tuple[Angle, Angle, Angle, Angle, Angle, Angle]
    """Of each crank's vertical plane, the way that it points when horizontal: from forward towards right [deg]."""
    crank: Turning


class Posts(PlatformTable, frozen=True, kw_only=True, tag="posts"):
    """Two to four posts that hold a frame up: `post_1` and so on."""

    at_m: Annotated[tuple[tuple[Length, Length], ...], msgspec.Meta(min_length=2, max_length=4)]
    """Where each holds it, from the motion reference point: forward, right [m]."""
    post: Travel


class Axes(PlatformTable, frozen=True, kw_only=True, tag="axes"):
    """Nothing but single-axis actuators."""


Platform: TypeAlias = Hexapod | CrankHexapod | Posts | Axes
"""What the ``platform`` table of a profile can be."""


_FOLDER = resources.files("motioncue.settings.platforms")


@cache
def platform_presets() -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of the built-in platforms, by name."""
    names = sorted(Path(entry.name).stem for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))
    return {name: tomllib.loads(platform_text(name)) for name in names}


def platform_text(name: str) -> str:
    """Return the TOML text of a built-in platform.

    Parameters
    ----------
    name : str
        One of `platform_presets`.
    """
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
