"""Which bounds of a profile are in force, and which are off, in words for people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from motioncue.settings.limits import Limits

if TYPE_CHECKING:
    from motioncue.profile import Profile

__all__ = ["bounds_off"]

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


def _far(table: msgspec.Struct, place: str) -> Iterator[str]:
    """Yield key and value of the numbers in a table that are missing, or far above their defaults."""
    for field in msgspec.structs.fields(table):
        value: Any = getattr(table, field.name)
        if field.default is not None and (value is None or value >= FAR * field.default):
            yield f"{place}.{field.name} = {'none' if value is None else format(value, 'g')}"
