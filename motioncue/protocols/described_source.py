"""A simulator without built-in support: its packet is described by the profile's ``[source.packet]``.

A description becomes the tables that a built-in module gives to the intake: messages with takes, stages, body stage.
Its axes and signs are converted here and nowhere else:

* The telemetry's world axes are the direction of yaw 0, right of it, down.  Its car axes are forward, right, down; or,
  if the attitude is a quaternion, the source's own axes named as in the world, so that its elements only change sign.
* A turn about z takes x to y, in left-handed axes too; so if the source's axes are left-handed, turns change sign.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError, PacketError
from motioncue.intake.intake import Intake
from motioncue.intake.messages import CompiledMessage, Echo
from motioncue.intake.stages import TelemetryStages
from motioncue.kernels.body import BodyStage
from motioncue.protocols.described_bytes import (
    cipher_of,
    heartbeat_of,
    marks_of,
    refuse_always_paused,
    reply_of,
)
from motioncue.protocols.described_channels import (
    CAR,
    CHANNELS,
    KEY,
    LIMITS,
    UNITS,
    WORLD,
    Channel,
    checked,
    directions,
    in_car,
)
from motioncue.protocols.layout import NATIVE, Derivation, Field, Message, Packet, Take
from motioncue.settings.telemetry import LARGEST, Mark, SourceField, SourcePacket

__all__ = ["DescribedSource"]

AS_DESCRIBED = "as_described"

SIGNED = ("angles", "velocity", "acceleration", "angular_velocity")
"""Vectors whose elements may be tried with the opposite sign."""

MESSAGES = 128
"""Most packets that an intake distinguishes."""

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


class _Form(NamedTuple):
    """One of the source's packets."""

    packet: Packet
    largest: int
    role: str
    takes: tuple[Take, ...]
    masked: tuple[tuple[int, bytes, bytes], ...]  # offset, bytes and mask of marks of which some bits count

    def fits(self, data: bytes) -> bool:
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


class DescribedSource:
    """A source that a profile describes; used as the module of a built-in one.

    Parameters
    ----------
    table : SourcePacket
        The profile's ``[source.packet]``.
    name : str
        Shown in messages.
    options : mapping, optional
        The profile's ``[source.options]``.
    derivation : Derivation
        The profile's ``source.acceleration`` and ``source.derivative_delay_s``.

    Raises
    ------
    ConfigError
        If the description is contradictory or incomplete; names the key, what was found and what is allowed.
    """

    SCHEMES = ("udp",)
    VELOCITY_IN_CAR = True  # unless the option `velocity` says otherwise

    def __init__(
        self,
        table: SourcePacket,
        name: str = "custom",
        options: Mapping[str, Any] | None = None,
        derivation: Derivation = NATIVE,
    ) -> None:
        self.table, self.name = table, name
        self.options, self.derivation = dict(options or {}), derivation
        self.channels = checked(table)
        self.axes = _axes(table, self.channels)
        self.forms = tuple(_forms(table, self.axes))
        refuse_always_paused(table)
        self._reply = reply_of(table)
        self._heartbeat = heartbeat_of(table)
        self._cipher = cipher_of(table, [form.packet.size for form in self.forms])
        if len(self.forms) > MESSAGES:
            raise ConfigError(f"{KEY}: found {len(self.forms)} forms, blocks and sizes, allowed are {MESSAGES}")

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    @cached_property
    def Options(self) -> type[msgspec.Struct]:
        """Readings to try instead of the described ones, the defaults: axes, gravity, signs of channels."""
        fields = [(name, Literal[values], values[0]) for name, values in self._readings().items()]
        return msgspec.defstruct("Options", fields, forbid_unknown_fields=True, frozen=True)

    def _readings(self) -> dict[str, tuple[str, ...]]:
        """Return the values of each option that make a description, the described one first."""
        table, vectors = self.table, self._vectors
        tried: dict[str, tuple[str, ...]] = {
            "velocity": ("world", "car") if "velocity" in vectors else (),
            "acceleration": ("world", "car") if "acceleration_x" in self.channels else (),
            "rates": ("car", "world", "angles", "derived") if "angular_velocity" in vectors else (),
            "gravity": ("excluded", "included") if "acceleration" in vectors else (),
        }
        out = {}
        for name, values in tried.items():
            now = getattr(table, name)
            possible = (now, *(value for value in values if value != now and self._possible({name: value})))
            if possible[1:]:
                out[name] = possible
        signed = (
            name
            for name, channel in ((name, CHANNELS[name]) for name in self.channels)
            if channel.along or channel.vector in SIGNED or name == "quaternion_w"  # the opposite is the inverse turn
        )
        return out | dict.fromkeys(signed, (AS_DESCRIBED, "opposite"))

    def _possible(self, options: Mapping[str, str]) -> bool:
        try:
            DescribedSource(self._read(options))
        except ConfigError:
            return False
        return True

    def _read(self, options: Mapping[str, str]) -> SourcePacket:
        """Return the description with other readings."""
        table = self.table
        axes = {name: value for name, value in options.items() if hasattr(table, name) and value != "derived"}
        turned = {name for name, value in options.items() if value == "opposite"}
        derived = options.get("rates") == "derived"

        def read(fields: Iterable[SourceField]) -> tuple[SourceField, ...]:
            return tuple(
                msgspec.structs.replace(field, scale=-field.scale, bias=-field.bias)
                if field.channel in turned
                else field
                for field in fields
                if not (derived and field.channel and CHANNELS[field.channel].vector.startswith("angular_"))
            )

        forms = tuple(msgspec.structs.replace(form, fields=read(form.fields)) for form in table.forms)
        return msgspec.structs.replace(table, fields=read(table.fields), forms=forms, **axes)

    @cached_property
    def VECTORS(self) -> list[set[str]]:
        """The options that turn the elements of one vector."""
        return [{name for name in self.channels if CHANNELS[name].vector == vector} for vector in SIGNED]

    @property
    def RATES_DERIVED(self) -> bool:
        """Whether the rates are derived from the attitude."""
        return "angular_velocity" not in self._vectors

    @cached_property
    def _vectors(self) -> set[str]:
        return {CHANNELS[name].vector for name in self.channels}

    def intake(
        self, options: Any = None, head_m: Sequence[float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE
    ) -> Intake:
        """Return an intake for the described packets.

        Parameters
        ----------
        options : Options, optional
            Readings to try instead of the described ones.
        head_m : sequence of 3 floats
            The occupant's head from the car's reference point: forward, right, up [m].
        derivation : Derivation
            Source of the acceleration, and delay of derived quantities.
        """
        said = {} if options is None else msgspec.structs.asdict(options)
        now = {
            name: value for name, value in said.items() if value not in (AS_DESCRIBED, getattr(self.table, name, None))
        }
        if now:
            return DescribedSource(self._read(now), self.name).intake(None, head_m, derivation)
        table, axes = self.table, self.axes
        car = axes.car_directions
        rates_in_car = self.RATES_DERIVED or table.rates != "world"
        stage = BodyStage(
            world_north=axes.north,
            world_up=(0, 0, -1),
            car_forward=car[:, 0].tolist(),
            car_up=(-car[:, 2]).tolist(),
            head_m=head_m,
            rates="car" if rates_in_car else "world",
            gravity=table.gravity,
        )
        native = "acceleration" in self._vectors and derivation.acceleration == "native"
        stages = TelemetryStages(
            attitude=_attitude(self.channels),
            order=table.order,
            velocity=table.velocity,
            acceleration_axes="car" if _acceleration_in_car(table, self.channels) else "world",
            rates="angles" if table.rates == "angles" and not self.RATES_DERIVED else "said",
            acceleration="native" if native else "from_velocity",
            delay_s=derivation.delay_s,
            same=("orientation", "up" if "forward" in self._vectors else "angular_acceleration"),
        )
        return Intake(
            [form.compiled(*self._reply) for form in self.forms],
            stage,
            stages,
            reply_port=0 if table.reply is None else table.reply.port,
            cipher=self._cipher,
            heartbeat=self._heartbeat,
        )

    def plain(self, data: bytes) -> bytes:
        """Return a packet deciphered, or a deciphered one enciphered; unchanged if the source has no cipher.

        Parameters
        ----------
        data : bytes
            The whole packet.
        """
        return data if self._cipher is None else self._cipher.applied(data)

    def is_motion(self, data: bytes) -> bool:
        """Say whether a packet carries the motion.

        Parameters
        ----------
        data : bytes
            As it came.
        """
        plain = self.plain(data)
        return any(form.role == "motion" and form.fits(plain) for form in self.forms)

    def framed(self, data: bytes) -> Iterator[bytes]:
        """Split concatenated datagrams by the sizes of the packets that fit.

        Raises
        ------
        PacketError
            If no packet fits at some place; names the offset.
        """
        start = 0
        sizes = sorted({size for form in self.forms for size in (form.packet.size,)}, reverse=True)
        even = [size for size in sizes if len(data) % size == 0 and self._all_fit(data, size)]
        while start < len(data):
            here = [size for size in even[:1] or sizes if self._fits(data[start : start + size], size)]
            ends = (start + size for size in here)
            end = next((end for end in ends if end == len(data) or self._starts(data, end, sizes)), None)
            if end is None and not here:
                found = data[start : start + 16].hex(" ")
                raise PacketError(
                    f"{self.name}: found {found} at offset {start}, {len(data) - start} bytes before the end; "
                    f"allowed are {self._allowed()}"
                )
            end = start + here[0] if end is None else end
            yield data[start:end]
            start = end

    def _all_fit(self, data: bytes, size: int) -> bool:
        return all(self._fits(data[start : start + size], size) for start in range(0, len(data), size))

    def _starts(self, data: bytes, start: int, sizes: Iterable[int]) -> bool:
        return any(self._fits(data[start : start + size], size) for size in sizes)

    def _fits(self, package: bytes, size: int) -> bool:
        if len(package) != size:
            return False
        plain = self.plain(package)
        return any(form.fits(plain) for form in self.forms)

    def _allowed(self) -> str:
        shown = {
            f"{form.packet.name} ({form.packet.size}{'' if form.largest == form.packet.size else ' or more'} bytes"
            + "".join(f", {data.hex(' ')} at {at}" for at, data in form.packet.fixed()[:2])
            + "".join(f", bits {mask.hex(' ')} {data.hex(' ')} at {at}" for at, data, mask in form.masked[:2])
            + ")": None
            for form in self.forms
        }
        names = list(shown)
        return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")

    def identify(self, data: bytes) -> Packet:
        """Return the layout of one datagram.

        Raises
        ------
        PacketError
            If it is none of the described packets.
        """
        plain = self.plain(data)
        for form in self.forms:
            if form.fits(plain):
                packet = form.packet
                if packet.size == len(data) and self._cipher is None:
                    return packet
                return _Read(self, packet.name, len(data), packet.fields.values(), packet.constants)
        raise PacketError(
            f"{self.name}: found {len(data)} bytes beginning {data[:8].hex(' ') or 'nowhere'}, allowed are "
            f"{self._allowed()}"
        )


class _Read(Packet):
    """A packet as it came: longer than described, or enciphered."""

    def __init__(self, source: DescribedSource, *of: Any) -> None:
        self._source = source
        super().__init__(*of)

    def decode(self, data: bytes) -> dict[str, Any]:
        return super().decode(self._source.plain(data))


def _attitude(channels: Mapping[str, SourceField]) -> str:
    """Return the attitude's name in `TelemetryStages`."""
    if "quaternion_w" in channels:
        return "quaternion"
    if "forward_x" in channels:
        return "forward_right" if "right_x" in channels else "forward_up"
    return "angles"


def _acceleration_in_car(table: SourcePacket, channels: Mapping[str, SourceField]) -> bool:
    return "acceleration_x" not in channels or table.acceleration == "car"


def _axes(table: SourcePacket, channels: Mapping[str, SourceField]) -> Axes:
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


def _forms(table: SourcePacket, axes: Axes) -> Iterator[_Form]:
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
            yield _Form(_packet("paused", smallest, parts, values), largest, "other", (), masked)
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
) -> _Form:
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
    return _Form(_packet(name, size, parts, fixed, key), size, "motion", tuple(takes), masked)


def _packet(name: str, size: int, parts: Iterable[Field], constants: Mapping[str, Any], key: str = KEY) -> Packet:
    try:
        return Packet(name, size, parts, constants)
    except ValueError as error:
        raise ConfigError(f"{key}.fields: {error}; allowed are fields that do not share bytes or names") from error
