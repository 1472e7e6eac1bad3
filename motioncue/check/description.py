"""The usual mistakes in a description: what its packet may mean instead, by the correction to make.

A unit, two channels exchanged, the order of a quaternion or of angles, the directions of axes, the sign of an element.
"""

import json
from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product

import msgspec

from motioncue.errors import ConfigError
from motioncue.sources.described.channels import CAR, CHANNELS, UNITS, WORLD
from motioncue.sources.described.source import DescribedSource
from motioncue.wire.description import SourceField, SourcePacket

__all__ = ["axes_changed", "corrected", "corrections"]

SCALED = {"angles": (), "angular_velocity": (), "acceleration": (), "velocity": (), "position": ("m", "cm", "ft")}
"""Vectors whose unit is often another, and the units to try; all if none are named."""

TURNED = ("forward", "right", "up", "position", "orientation")
"""Vectors whose elements have a sign that is no option."""

QUATERNION = tuple(f"quaternion_{axis}" for axis in "wxyz")


def axes_changed(words: str, source: DescribedSource) -> tuple[str, int]:
    """Return whose directions of axes a correction turns, and how many; none if it is of another kind."""
    key, _, said = words.partition(" = ")
    now = getattr(source.table, key, None) if key in ("world", "car") else None
    if now is None or ";" in said:
        return "", 0
    return key, sum(name != axis for name, axis in zip(json.loads(said), now, strict=True))


def corrected(source: DescribedSource, words: str) -> DescribedSource | None:
    """Return the source with corrections, separated by semicolons; None if they contradict each other."""
    for each in words.split("; "):
        table = corrections(source).get(each)
        try:
            source = DescribedSource(table, source.name) if table is not None else source
        except ConfigError:
            return None
        if table is None:
            return None
    return source


def corrections(source: DescribedSource) -> dict[str, SourcePacket]:
    """Return other descriptions of a source's packet, by what was changed in words for its author."""
    table, channels = source.table, source.channels
    out: dict[str, SourcePacket] = {}
    for name, other in (*_units(table, channels), *_exchanges(table, channels), *_signs(table, channels)):
        out.setdefault(name, other)
    for key, value in _axes(table, channels):
        text = f'"{value}"' if isinstance(value, str) else str(list(value)).replace("'", '"')
        out[f"{key} = {text}"] = msgspec.structs.replace(table, **{key: value})
    return out


def _each(table: SourcePacket, change: Callable[[SourceField], SourceField]) -> SourcePacket:
    """Return a description with all its fields changed."""
    forms = tuple(msgspec.structs.replace(form, fields=tuple(map(change, form.fields))) for form in table.forms)
    return msgspec.structs.replace(table, fields=tuple(map(change, table.fields)), forms=forms)


def _named(table: SourcePacket, names: dict[str, str]) -> SourcePacket:
    """Return a description with channels renamed."""
    return _each(
        table, lambda field: msgspec.structs.replace(field, channel=names.get(field.channel or "", field.channel))
    )


def _of(vector: str, channels: dict[str, SourceField]) -> list[str]:
    return [name for name in channels if CHANNELS[name].vector == vector]


def _units(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, SourcePacket]]:
    """Yield the description with a vector in each other unit."""
    for vector, tried in SCALED.items():
        names = _of(vector, channels)
        if not names:
            continue
        units = UNITS[CHANNELS[names[0]].quantity]
        now = channels[names[0]].unit or next(iter(units))
        for unit in tried or units:
            if unit != now:
                yield f"{', '.join(names)}: unit = '{unit}'", _in_unit(table, names, unit)


def _in_unit(table: SourcePacket, names: list[str], unit: str) -> SourcePacket:
    """Return the description with channels in a unit."""
    return _each(table, lambda f: msgspec.structs.replace(f, unit=unit) if f.channel in names else f)


def _exchanges(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, SourcePacket]]:
    """Yield the description with two elements of a vector exchanged, or a quaternion's w moved."""
    for vector in (*SCALED, "forward", "right", "up"):
        for one, other in combinations(_of(vector, channels), 2):
            yield f"{one} and {other} exchanged", _named(table, {one: other, other: one})
    if "quaternion_w" in channels:
        fields = sorted((channels[name].offset, name) for name in QUATERNION)
        order = [name for _, name in fields]
        for turned in (order[1:] + order[:1], order[-1:] + order[:-1]):
            said = ", ".join(name[-1] for name in turned)
            yield f"the quaternion's numbers are {said}", _named(table, dict(zip(order, turned, strict=True)))


def _signs(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, SourcePacket]]:
    """Yield the description with the sign of an element turned that is no option."""
    for name in channels:
        if CHANNELS[name].vector in TURNED and name != "quaternion_w":
            yield f"{name}: the opposite sign (scale = {-channels[name].scale:g})", _turned(table, name)


def _turned(table: SourcePacket, name: str) -> SourcePacket:
    """Return the description with the sign of a channel turned."""
    return _each(table, lambda f: msgspec.structs.replace(f, scale=-f.scale, bias=-f.bias) if f.channel == name else f)


def _axes(table: SourcePacket, channels: dict[str, SourceField]) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    """Yield other directions of the axes, and other orders of angles: key and value."""
    for key, known, now in (("world", WORLD, table.world), ("car", CAR, table.car)):
        for axes in _directions(known) if now is not None else ():
            if axes != now:
                yield key, axes
    if "yaw" in channels:
        yield from (("heading_from", side) for side in ("north", "east", "south", "west") if side != table.heading_from)
        if table.rates != "angles" or "roll_rate" not in channels:
            yield from (("order", order) for order in permutations(("yaw", "pitch", "roll")) if order != table.order)


def _directions(known: dict[str, tuple[int, int, int]]) -> Iterator[tuple[str, ...]]:
    """Yield the 48 ways in which x, y and z can point along a world's or a car's directions."""
    opposite = {name: next(o for o, d in known.items() if d == tuple(-n for n in way)) for name, way in known.items()}
    halves = list(known)[:3]
    for axes in permutations(halves):
        yield from product(*((name, opposite[name]) for name in axes))
