"""Platforms: from a profile's table to the kernels.

The built-in tables are in ``platforms/presets``.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from motioncue.core.channels import ACTUATION
from motioncue.errors import ConfigError
from motioncue.platforms.actuators import Actuators
from motioncue.platforms.geometry import (
    Frame,
    joints_of,
    refuse_reversed_crank,
    refuse_singular_neutral,
    refuse_singular_reach,
)
from motioncue.platforms.kinematics import Kinematics
from motioncue.platforms.settings import (
    ActuatorBounds,
    Axes,
    Axis,
    CrankHexapod,
    Hexapod,
    Platform,
    Posts,
    Travel,
    Turning,
    Wiring,
    platform_presets,
)
from motioncue.wire.description import Actuated

__all__ = ["CHANNELS", "Built", "build", "channels_of", "parked_of", "platform_named", "ranges", "stage_of"]

CHANNELS = ("surge_displacement", "sway_displacement", "heave_displacement", "roll", "pitch", "yaw")
"""Components of a pose, in order [m, rad]."""

TABLES = ("surge_displacement", "sway_displacement", "yaw")
"""Channels of which something that carries the frame can take a part."""

OTHERS = tuple(channel.name for channel in ACTUATION)

FARTHEST = (*(3 * (5.0,)), *(3 * (math.pi / 2,)))  # limits of the search for the end of a range [m, rad]

STEEPEST = math.radians(45.0)  # of a frame on two posts
LEAST = 5e-324  # the smallest number above 0
SLOWEST_S = 60.0  # from neutral to the end of an actuator's range


class Built(NamedTuple):
    """A platform in the form that the kernels take."""

    kinematics: Kinematics
    names: tuple[str, ...]
    bounds: tuple[ActuatorBounds, ...]
    """Those of each actuator."""
    neutral: tuple[float, ...]
    """Positions at neutral [m or rad]."""
    size: float
    """Size of the frame, from its center to its joints [m]; 1 if it has none."""
    lag_s: float
    """Delay with which its actuators follow slow motions [s]; 0 if none is stated."""
    frame: Kinematics
    """What its tables carry: the same kinematics without them, of the frame's own pose."""
    tables: dict[str, int]
    """Channels of which sleds and turntables under the frame take a part, and which of the actuators each is."""


def build(platform: Platform) -> Built:
    """Return a platform in the form that the kernels take."""
    held, bounds = carriers_of(platform)
    names = [f"{_word(platform)}_{number}" for number in range(1, len(held) + 1)]
    tables: dict[str, int] = {}
    for axis in sorted(platform.axes, key=lambda axis: axis.carries_below_hz is not None):
        if axis.carries_below_hz is not None:
            refuse_table(platform, axis)
            tables[axis.channel] = len(names)
        else:
            held.append({"kind": "axis", "share": _share(axis)})
        if (axis.travel is None) == (axis.turn is None):
            raise ConfigError(f"platform.axes: {axis.name}: allowed is one of travel and turn")
        bounds.append(_bounds(axis.travel or axis.turn))
        names.append(axis.name)
    if not names:
        raise ConfigError("platform.axes: missing, and nothing else moves this platform")
    if len({*names, *OTHERS}) < len(names) + len(OTHERS):
        raise ConfigError(
            f"platform.axes: found the names {', '.join(names)}, allowed are different ones, "
            "and none of a channel of the cue"
        )
    try:
        kinematics = frame = Kinematics(held)
        if tables:
            kinematics = Kinematics([*held, *_tables(platform, frame, bounds)], _line(platform))
    except ValueError as error:
        raise ConfigError(f"platform: {error}") from error
    neutral = kinematics.inverse(np.zeros((1, 6)), held=True)[0]
    for name, at, (low, high, *_) in zip(names, neutral.tolist(), bounds, strict=True):
        turns = name.startswith("crank")
        if math.isnan(at):
            raise ConfigError(
                f"platform: {name} cannot reach neutral: for height_m its rod is too short or too long, or within 15 "
                "degrees of one line with the crank"
            )
        if not low < high:
            raise ConfigError(
                f"platform: {name}: found {_said(low, turns)} to {_said(high, turns)}, allowed is a range"
            )
        if not low <= at <= high:
            raise ConfigError(
                f"platform: {name} is at {_said(at, turns)} at neutral, beyond its range of {_said(low, turns)} to "
                f"{_said(high, turns)}"
            )
    for name, at, each in zip(names, neutral.tolist(), bounds, strict=True):
        way = max(at - each.low, each.high - at)
        # A tiny number of degrees is no radians at all.
        needs_s = way / max(each.speed, LEAST) + 2.0 * math.sqrt(way / max(each.acceleration, LEAST))
        needs_s += 4.0 * (way / max(each.jerk, LEAST)) ** (1.0 / 3.0)
        if not needs_s <= SLOWEST_S:
            raise ConfigError(
                f"platform: {name} needs {needs_s:.3g} s from neutral to an end, with its speed, acceleration and "
                f"jerk; allowed are up to {SLOWEST_S:g} s"
            )
    size = max([1e-3, *(math.hypot(*row["platform"][:2]) for row in held if "platform" in row)])
    lag_s = platform.lag_s or 0.0
    built = Built(kinematics, tuple(names), tuple(bounds), tuple(neutral.tolist()), size, lag_s, frame, tables)
    refuse_singular_neutral(frame_of(platform, built))
    if isinstance(platform, Posts) and len(platform.at_m) == 2:
        refuse_steep_seat(platform, built)
    return built


def refuse_steep_seat(platform: Posts, built: Built) -> None:
    """Refuse two posts so near to the joint that they hold that their ends turn the frame far, as parking does.

    And a lift beside them: on the ground they would pitch what it lifts.
    """
    if lifts := [axis.name for axis in platform.axes if axis.channel == "heave_displacement"]:
        raise ConfigError(
            f"platform.axes: {lifts[0]}: found channel = 'heave_displacement' beside two posts, whose joint holds it; "
            "allowed are the other channels, or three posts"
        )
    ends = np.array([[one, other] for one in built.bounds[0][:2] for other in built.bounds[1][:2]])
    rest = np.tile(built.neutral[2:], (4, 1))
    leans = built.kinematics.forward(np.hstack([ends, rest]))[:, 3:5]
    if not np.abs(leans).max() <= STEEPEST:
        raise ConfigError(
            "platform.at_m: found two posts whose ends turn the frame by more than "
            f"{math.degrees(STEEPEST):.0f} deg, allowed is less: they count from the joint about which it turns"
        )


def refuse_table(platform: Platform, axis: Axis) -> None:
    """Refuse what cannot carry a frame, and other axes that cannot be beside it."""
    key = f"platform.axes: {axis.name}"
    if not isinstance(platform, Hexapod | CrankHexapod):
        raise ConfigError(f"{key}: found carries_below_hz, allowed is that under a hexapod alone")
    if axis.channel not in TABLES:
        raise ConfigError(f"{key}: found channel = {axis.channel!r} of what carries, allowed are {', '.join(TABLES)}")
    if axis.scale != 1.0 or (axis.turn is None) == (axis.channel == "yaw"):
        raise ConfigError(f"{key}: allowed for what carries is scale = 1, with turn for yaw and travel for the others")
    for other in platform.axes:
        if (other is not axis and other.channel == axis.channel) or (
            other.channel in TABLES and other.carries_below_hz is None
        ):
            raise ConfigError(
                f"platform.axes: {other.name}: found channel = {other.channel!r} where {axis.name} carries the frame, "
                "allowed is each of them once, and beside what carries only heave_displacement, roll, pitch"
            )


def _tables(platform: Platform, frame: Kinematics, bounds: Sequence[ActuatorBounds]) -> list[dict[str, Any]]:
    """Return the sleds and turntables that carry a frame, as the kernels take them."""
    found = []
    tables = [axis for axis in platform.axes if axis.carries_below_hz is not None]
    for axis, own in zip(tables, bounds[frame.count :], strict=True):
        place = CHANNELS.index(axis.channel)
        alone = _ends(frame, bounds[: frame.count], place, FARTHEST[place], 1001)
        room = 0.5 * min(abs(end or 0.0) for end in alone)
        found.append(
            {
                "kind": "table",
                "channel": place,
                "low": own.low,
                "high": own.high,
                "room": room,
                "below": axis.carries_below_hz,
            }
        )
    return found


def _line(platform: Platform) -> tuple[float, float]:
    """Return where the vertical line is about which a table under the frame turns: its joints' center."""
    forward, right, _ = getattr(platform, "reference_m", (0.0, 0.0, 0.0))
    return -forward, -right


def stage_of(platform: Platform, period_ns: int, *, planned: bool = False) -> Actuators:
    """Return the stage that moves a platform's actuators."""
    built = _within_reach(platform, _held(platform))
    if platform.lag_damping is not None and platform.lag_s is None:
        raise ConfigError(f"platform.lag_s: missing, but there is lag_damping = {platform.lag_damping:g}")
    try:
        return Actuators(
            built.kinematics,
            built.names,
            built.bounds,
            parked_of(platform, built),
            platform.rise_s,
            platform.gives_way,
            period_ns * 1e-9,
            built.lag_s,
            platform.lag_damping or 0.0,
            planned,
        )
    except ValueError as error:  # begins with the key
        raise ConfigError(f"platform.{error}") from error


def parked_of(platform: Platform, built: Built) -> list[float]:
    """Return the position of each actuator while a platform is parked [m or rad]."""
    actuators = len(built.names) - len(platform.axes)
    return [
        bounds.low if platform.park == "down" and number < actuators else at
        for number, (bounds, at) in enumerate(zip(built.bounds, built.neutral, strict=True))
    ]


@lru_cache(maxsize=16)  # the search takes a quarter of a second, and outputs are designed again whenever one changes
def _held(platform: Platform) -> Built:
    """Return a platform in the form that the kernels take; refuse one with a singular pose within reach."""
    built = build(platform)
    frame = frame_of(platform, built)
    if frame.ways == 6:
        own = built._replace(kinematics=built.frame, bounds=built.bounds[: built.frame.count], tables={})
        farthest = np.array([max(abs(end or 0.0) for end in ends) for ends in ranges(own).values()])
        refuse_singular_reach(frame, own.bounds, farthest)
    return built


def platform_named(name: str) -> Platform:
    """Return a built-in platform."""
    platform: Platform = msgspec.convert(platform_presets()[name], Platform)
    return platform


def ranges(built: Built) -> dict[str, tuple[float | None, float | None]]:
    """Return how far a platform goes along each channel while the others are at neutral.

    In m or rad; None if no end was found.
    """
    found: dict[str, tuple[float | None, float | None]] = {}
    for place, (channel, farthest) in enumerate(zip(CHANNELS, FARTHEST, strict=True)):
        if channel in built.tables:
            farthest += max(map(abs, built.bounds[built.tables[channel]][:2]))
        found[channel] = _ends(built.kinematics, built.bounds, place, farthest)
    return found


def _ends(
    kinematics: Kinematics, bounds: Sequence[ActuatorBounds], place: int, farthest: float, points: int = 20_001
) -> tuple[float | None, float | None]:
    """Return how far actuators go along one channel [m or rad]; None if no end was found."""
    ends = ActuatorBounds.columns(bounds)
    sides: list[float | None] = []
    for sign in (-1, 1):
        poses = np.zeros((points, 6))
        poses[:, place] = sign * farthest * np.linspace(0.0, 1.0, points)
        positions = kinematics.inverse(poses, held=True)
        beyond = ~((positions >= ends.low) & (positions <= ends.high)).all(axis=1)
        sides.append(float(poses[np.argmax(beyond) - 1, place]) if beyond.any() else None)
    return sides[0], sides[1]


def channels_of(platform: Platform) -> dict[str, Actuated]:
    """Return the actuators that a packet's fields can carry, by name of the controller's axis at which each hangs."""
    built = build(platform)
    order, reverse, offset = _wired(platform, len(built.names))
    found = {}
    for axis, name in enumerate(built.names, 1):
        place = order.index(axis)
        low, high = built.bounds[place].low, built.bounds[place].high
        off = offset[place] * (high - low)
        sign, shift = (-1.0, low + high + off) if reverse[place] else (1.0, -off)
        found[name] = Actuated(f"actuator_{place + 1}", built.neutral[place], low, high, sign, shift)
    return found


def _wired(platform: Platform, count: int) -> tuple[tuple[int, ...], tuple[bool, ...], tuple[float, ...]]:
    """Return order, directions and offsets of a platform's actuators; refuse what they cannot be."""
    wiring = platform.wiring or Wiring()
    plain = tuple(range(1, count + 1))
    for key in ("order", "reversed", "offset"):
        if len(getattr(wiring, key)) not in (0, count):
            raise ConfigError(
                f"platform.wiring.{key}: found {len(getattr(wiring, key))} values, allowed is one for each of {count} "
                "actuators"
            )
    if wiring.order and sorted(wiring.order) != list(plain):
        raise ConfigError(f"platform.wiring.order: found {list(wiring.order)}, allowed is each of 1 to {count} once")
    return wiring.order or plain, wiring.reversed or (False,) * count, wiring.offset or (0.0,) * count


def _within_reach(platform: Platform, built: Built) -> Built:
    """Return a platform whose actuators end where the controller's axes do: offsets take from their ranges."""
    bounds = []
    for name, at, each, share in zip(
        built.names, built.neutral, built.bounds, _wired(platform, len(built.names))[2], strict=True
    ):
        off = share * (each.high - each.low)
        low, high = each.low + max(off, 0.0), each.high + min(off, 0.0)
        if not low < at < high:
            raise ConfigError(f"platform.wiring.offset: {name} does not reach neutral with {share:g} of its range")
        bounds.append(each._replace(low=low, high=high))
    return built._replace(bounds=tuple(bounds))


def _word(platform: Platform) -> str:
    """Return the name of an actuator that carries the frame."""
    if isinstance(platform, Hexapod):
        return "leg"
    return "crank" if isinstance(platform, CrankHexapod) else "post"


def carriers_of(platform: Platform) -> tuple[list[dict[str, Any]], list[ActuatorBounds]]:
    """Return the actuators that carry the frame, and their bounds; refuse joints that are clearly a mistake."""
    if isinstance(platform, Axes):
        return [], []
    if isinstance(platform, Posts):
        count = len(platform.at_m)
        # Two posts do not tell heave from pitch: a joint at the motion reference point holds it.
        share = (0.0, 0.0, float(count > 2), 0.0, 0.0, 0.0)
        posts = [{"kind": "post", "platform": (x, y, 0.0), "share": share} for x, y in platform.at_m]
        return posts, _each(platform.post, count, "post")
    pairs = joints_of(platform)
    if isinstance(platform, Hexapod):
        return [{"kind": "leg", "platform": a, "base": b} for a, b in pairs], _each(platform.leg, 6, "leg")
    refuse_reversed_crank(platform)
    return [
        {
            "kind": "crank",
            "platform": a,
            "base": b,
            "azimuth": math.radians(azimuth),
            "crank": platform.crank_m,
            "rod": platform.rod_m,
        }
        for (a, b), azimuth in zip(pairs, platform.azimuths_deg, strict=True)
    ], _each(platform.crank, 6, "crank")


def _each(bounds: Travel | Turning | Sequence[Travel | Turning], count: int, key: str) -> list[ActuatorBounds]:
    """Return the bounds of each of `count` actuators: one table is that of all."""
    if isinstance(bounds, Travel | Turning):
        return count * [_bounds(bounds)]
    if len(bounds) != count:
        raise ConfigError(f"platform.{key}: found a list of {len(bounds)}, allowed is one table, or a list of {count}")
    return [_bounds(each) for each in bounds]


def _bounds(travel: Travel | Turning | None) -> ActuatorBounds:
    if isinstance(travel, Travel):
        jerk = math.inf if travel.jerk_m_s3 is None else travel.jerk_m_s3
        return ActuatorBounds(travel.min_m, travel.max_m, travel.speed_m_s, travel.acceleration_m_s2, jerk)
    assert travel is not None
    jerk = math.inf if travel.jerk_deg_s3 is None else travel.jerk_deg_s3
    turns = travel.min_deg, travel.max_deg, travel.speed_deg_s, travel.acceleration_deg_s2, jerk
    return ActuatorBounds(*map(math.radians, turns))


def _share(axis: Axis) -> tuple[float, ...]:
    return tuple(axis.scale if channel == axis.channel else 0.0 for channel in CHANNELS)


def _said(position: float, turns: bool) -> str:
    return f"{math.degrees(position):.2f} deg" if turns else f"{position:.4f} m"


def frame_of(platform: Platform, built: Built) -> Frame:
    """Return a platform's frame and what holds it."""
    count = len([None for kind in built.frame.kinds if kind != "axis"])
    return Frame(built.frame, count, min(count, 3 if isinstance(platform, Posts) else 6), built.size)
