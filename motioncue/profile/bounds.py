"""Which bounds of a profile are in force, and which are off, in words for people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from motioncue.platforms.settings import Travel, Turning
from motioncue.safety.settings import Limits

if TYPE_CHECKING:
    from motioncue.profile.profile import Profile

__all__ = ["bounds_in_force", "bounds_off"]

TABLES = ("watch", "supervisor")
"""Tables beside the limits that keep a platform from harm; their defaults are their types'."""

FAR = 10.0
"""A bound of this many times its default, or more, bounds nothing that a car or a fault does: it counts as off."""


def bounds_off(profile: "Profile") -> list[str]:
    """Return the bounds of a profile that are off: key, value, and what that means.

    Parameters
    ----------
    profile : Profile
        The settings in force.

    Returns
    -------
    list of str
        Empty if all are on.  A bound is off if it is ``"none"``, left out where its default bounds, or ten times its
        default or more.
    """
    if profile.limits == "none":
        off = ['limits = "none": nothing bounds what the platform is asked to do']
    else:
        off = []
        for name in Limits.__struct_fields__:
            table, channel = getattr(profile.limits, name), name.replace("_", " ")
            if table == "none":
                off.append(f'limits.{name} = "none": {channel} is not bounded')
                continue
            off += [f"{line}: {channel} may do nearly anything" for line in _far(table, f"limits.{name}")]
    return off + [f"{line}: the watch lets nearly anything pass" for line in _far(profile.watch, "watch")]


def bounds_in_force(profile: "Profile") -> list[str]:
    """Return the bounds of a profile in few lines: limits, watch, supervisor and platform.

    Parameters
    ----------
    profile : Profile
        The settings in force.

    Returns
    -------
    list of str
        What differs from the defaults, by key and value; one line if nothing does and there is no platform.
    """
    lines, same = [], []
    for name, default in (("limits", Limits()), *((name, type(getattr(profile, name))()) for name in TABLES)):
        table = getattr(profile, name)
        if table == default:
            same.append(name)
        elif table == "none":
            lines.append('limits: "none", nothing is bounded')
        else:
            rest = "" if _all_differ(table, default) else "; the rest as by default"
            lines.append(f"{name}: {', '.join(_differing(table, default))}{rest}")
    for index, output in enumerate(profile.outputs):
        own = list(_differing(output.limits, type(output.limits)()))
        lines += [f"output[{index}].limits: {', '.join(own)}"] if own else []
    if profile.platform is not None:
        lines.append(f"platform: {', '.join(_actuators(profile.platform))}")
    beside = "" if profile.platform is not None else "; no [platform] bounds actuators"
    if same:
        lines.insert(0, f"{' and '.join([', '.join(same[:-1]), same[-1]] if same[1:] else same)} as by default{beside}")
    return [f"bounds in force: {line}" for line in lines]


def _all_differ(table: msgspec.Struct, default: msgspec.Struct) -> bool:
    """Say whether no key has its default."""
    return all(getattr(table, name) != getattr(default, name) for name in table.__struct_fields__)


def _differing(table: Any, default: Any, place: str = "") -> Iterator[str]:
    """Yield key and value of what differs from the defaults."""
    for name in table.__struct_fields__:
        value, usual = getattr(table, name), getattr(default, name, None)
        if value == usual:
            continue
        if isinstance(value, msgspec.Struct):
            other = usual if isinstance(usual, msgspec.Struct) else None
            yield from _differing(value, other, f"{place}{name}.")
        else:
            yield f"{place}{name} {format(value, 'g') if isinstance(value, float | int) else value or 'none'}"


def _actuators(platform: Any) -> Iterator[str]:
    """Yield the range, speed and acceleration of a platform's actuators, those of a kind once if they are alike."""
    kinds = [(name, getattr(platform, name, None)) for name in ("leg", "crank", "post")]
    kinds += [(axis.name, axis.travel or axis.turn) for axis in platform.axes]
    for name, bounds in kinds:
        several = bounds if isinstance(bounds, tuple) else (bounds,)
        for number, each in enumerate(dict.fromkeys(several), 1):
            called = f"{name}_{number}" if len(set(several)) > 1 else name
            if isinstance(each, Travel):
                speed, most = f"{each.speed_m_s:g} m/s", f"{each.acceleration_m_s2:g} m/s²"
                yield f"{called} {each.min_m:+g} to {each.max_m:+g} m, {speed}, {most}"
            elif isinstance(each, Turning):
                speed, most = f"{each.speed_deg_s:g} °/s", f"{each.acceleration_deg_s2:g} °/s²"
                yield f"{called} {each.min_deg:+g} to {each.max_deg:+g}°, {speed}, {most}"


def _far(table: msgspec.Struct, place: str) -> Iterator[str]:
    """Yield key and value of the numbers in a table that are missing, or far above their defaults."""
    for field in msgspec.structs.fields(table):
        value: Any = getattr(table, field.name)
        if field.default is not None and (value is None or value >= FAR * field.default):
            yield f"{place}.{field.name} = {'none' if value is None else format(value, 'g')}"
