"""The packets of a described source, made of its fields and marks as the intake takes them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError
from motioncue.sources.described.bytes import marks_of
from motioncue.sources.described.channels import (
    CAR,
    CHANNELS,
    KEY,
    LIMITS,
    UNITS,
    WORLD,
    Channel,
    directions,
    in_car,
)
from motioncue.wire.messages import CompiledMessage, Echo
from motioncue.wire.packet import Field, Message, Packet, Take
from motioncue.wire.source_description import LARGEST, Mark, SourceField, SourcePacket

__all__ = ["Axes", "Form", "axes_of", "forms_of"]

Matrix = npt.NDArray[np.float64]


class Axes(NamedTuple):
    """Matrices from a source's axes to the telemetry's; columns are the source's x, y, z."""

    world: Matrix
    car: Matrix
    car_directions: Matrix  # columns: the car's forward, right, down in the telemetry's car axes
    north: tuple[float, ...]  # in the telemetry's world axes

    def take(self, name: str, channel: Channel, table: SourcePacket) -> tuple[str, int, float]:
        """Return the telemetry field, the element and the sign that a channel fills."""
        turns = channel.vector in ("angular_velocity", "angular_acceleration")
        if channel.along or channel.vector == "angles":
            if not channel.along or (turns and table.rates == "angles"):
                return channel.vector, channel.element, 1.0
            direction = self.car_directions @ np.array(CAR[channel.along])
        elif channel.vector == "orientation" and channel.element == 0:
            return "orientation", 0, 1.0
        elif channel.vector in ("stamp", "frame_duration", "speed", "engine_speed"):
            return channel.vector, 0, 1.0
        else:
            matrix = self.car if in_car(name, channel, table) else self.world
            axis = channel.element - (channel.vector == "orientation")
            direction = matrix[:, axis]
            if turns or channel.vector == "orientation":
                direction = direction * np.linalg.det(matrix)
        element = int(np.flatnonzero(np.round(direction))[0])
        sign = float(np.round(direction[element]))
        if channel.vector == "orientation":
            return "orientation", element + 1, sign
        return ("up" if channel.vector == "right" else channel.vector), element, sign


class Form(NamedTuple):
    """One of the source's packets."""

    packet: Packet
    largest: int
    role: str
    takes: tuple[Take, ...]
    masked: tuple[tuple[int, bytes, bytes], ...]  # offset, bytes and mask of marks of which some bits count

    def fits(self, data: bytes) -> bool:
        """Say whether a packet, deciphered, is one of this form."""
        sized = self.packet.size <= len(data) <= self.largest
        return sized and self.packet.identifies(data[: self.packet.size]) and not any(self._wrong_bits(data))

    def _wrong_bits(self, data: bytes) -> Iterator[int]:
        """Yield for each byte of the masked marks the bits that differ."""
        for at, own, mask in self.masked:
            yield from ((a ^ b) & bits for a, b, bits in zip(data[at:], own, mask, strict=False))

    def compiled(self, reply: bytes, echo: Echo) -> CompiledMessage:
        """Return the form as an intake takes it; only a motion is answered."""
        message = Message(self.packet, self.role, self.takes, largest=self.largest)
        if self.role == "motion":
            message = message._replace(reply=reply, echo=echo)
        compiled = message.compiled()
        return compiled._replace(constants=[*compiled.constants, *self.masked])


def axes_of(table: SourcePacket, channels: Mapping[str, SourceField]) -> Axes:
    """Return the matrices from the source's axes to the telemetry's."""
    heading = np.array(WORLD[table.heading_from], dtype=np.float64)
    down = np.array(WORLD["down"], dtype=np.float64)
    frame = np.stack([heading, np.cross(down, heading), down])  # rows: yaw 0, right of it, down
    world = frame @ directions(table.world, WORLD, "world").T
    own = directions(table.car, CAR, "car").T
    north = tuple((frame @ np.array(WORLD["north"])).tolist())
    if "quaternion_w" not in channels:
        return Axes(world, own, np.eye(3), north)
    if np.linalg.det(world) * np.linalg.det(own) < 0:
        raise ConfigError(
            f"{KEY}.car: found {list(table.car or ())} beside world {list(table.world or ())}, one of them "
            f"left-handed; allowed with a quaternion are both right-handed or both left-handed"
        )
    return Axes(world, world, world @ own.T, north)


def forms_of(table: SourcePacket, axes: Axes) -> Iterator[Form]:
    """Yield the source's packets: paused ones first, because they may have no other mark."""
    shapes = [(KEY, table.size, table.longer, table.fields, table.constants, "motion")]
    for index, form in enumerate(table.forms):
        if form.role == "motion":
            fields, constants = (*table.fields, *form.fields), (*table.constants, *form.constants)
            shapes.append((f"{KEY}.forms[{index}]", form.size, form.longer, fields, constants, form.name))
    for key, size, longer, _, constants, _ in shapes if table.paused else ():
        marks = (*table.paused, *(each for each in constants if not any(_share(each, mark) for mark in table.paused)))
        for smallest, largest in _sizes(size, longer, key):
            marks_of(table.paused, smallest, KEY, "paused")
            parts, values, masked = marks_of(marks, smallest, KEY)
            yield Form(_packet("paused", smallest, parts, values), largest, "other", (), masked)
    for key, size, longer, fields, constants, name in shapes:
        for smallest, largest in _sizes(size, longer, key):
            for block in range(1 if table.blocks is None else table.blocks.count):
                body = _form(table, axes, name, fields, constants, smallest, block, key)
                yield body._replace(largest=largest, role="motion")
    for index, form in enumerate(table.forms):
        key = f"{KEY}.forms[{index}]"
        for smallest, largest in _sizes(form.size, form.longer, key) if form.role != "motion" else ():
            body = _form(table, axes, form.name, form.fields, form.constants, smallest, None, key)
            yield body._replace(largest=largest, role=form.role)


def _share(one: Mark, other: Mark) -> bool:
    """Say whether two constants cover the same bytes, at least some."""
    ends = [constant.offset + len(constant.bytes.replace(" ", "")) // 2 for constant in (one, other)]
    return one.offset < ends[1] and other.offset < ends[0]


def _sizes(size: int | tuple[int, ...], longer: bool, key: str) -> list[tuple[int, int]]:
    """Return the smallest and the largest size of each form."""
    if isinstance(size, int):
        return [(size, LARGEST if longer else size)]
    if longer:
        raise ConfigError(f"{key}.longer: found true with several sizes, allowed is one size then")
    return [(each, each) for each in dict.fromkeys(size)]


def _form(
    table: SourcePacket,
    axes: Axes,
    name: str,
    fields: Sequence[SourceField],
    constants: Sequence[Mark],
    size: int,
    block: int | None,
    key: str,
) -> Form:
    """Return one packet of the source, with the takes that fill the telemetry; `block` is None if it has no blocks."""
    order = "<" if table.byte_order == "little" else ">"
    parts, fixed, masked = marks_of(constants, size, key)
    blocks = None if block is None else table.blocks
    if blocks is not None:
        kind = np.dtype(order + blocks.type)
        parts.append(Field("block", blocks.index, kind.str))
        fixed["block"] = block
    takes = []
    for index, field in enumerate(fields):
        moved = 0 if blocks is None or field.offset < blocks.first else (block or 0) * blocks.stride
        dtype = np.dtype(order + field.type)
        where = f"{key}.fields[{index}].offset"
        if field.offset + moved + dtype.itemsize > size:
            raise ConfigError(
                f"{where}: found {field.offset}{f' in block {block}' if moved else ''}, allowed is up to "
                f"{size - dtype.itemsize - moved} for {field.type} in a packet of {size} bytes"
            )
        label = field.name or field.channel or f"field_{index}"
        unit, limit = field.unit or "", math.inf
        if field.channel is not None:
            channel = CHANNELS[field.channel]
            units = UNITS[channel.quantity]
            factor = units[field.unit or next(iter(units))]
            unit = field.unit or next(iter(units))
            telemetry, element, sign = axes.take(field.channel, channel, table)
            scale = sign * (field.scale * factor)
            limit = (LIMITS[channel.quantity] + abs(field.bias * factor)) / abs(scale)
            bias = sign * field.bias * factor if field.bias else -0.0
            optional = field.optional or channel.optional
            takes.append(Take(telemetry, element, label, scale=scale, optional=optional, bias=bias))
        parts.append(Field(label, field.offset + moved, dtype.str, unit, field.limit or limit))
    return Form(_packet(name, size, parts, fixed, key), size, "motion", tuple(takes), masked)


def _packet(name: str, size: int, parts: Iterable[Field], constants: Mapping[str, Any], key: str = KEY) -> Packet:
    try:
        return Packet(name, size, parts, constants)
    except ValueError as error:
        raise ConfigError(f"{key}.fields: {error}; allowed are fields that do not share bytes or names") from error
