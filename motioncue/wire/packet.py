"""Packets as tables, used alike by NumPy, the documentation, the tests and the compiled codec."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import ACTUATION, TELEMETRY_DTYPE
from motioncue.errors import PacketError
from motioncue.wire.checksum import Seal
from motioncue.wire.codec import Number, Table
from motioncue.wire.messages import CompiledMessage, Echo

UNFRAGMENTED = 1472
"""Largest datagram that an Ethernet carries in one piece [bytes]; what tells no length is not taken for longer."""

ACTUATION_PLACES = {channel.name: place for place, channel in enumerate(ACTUATION)}
"""Index of each channel among the doubles of an actuation."""

TELEMETRY_PLACES = {name: place[1] // 8 for name, place in (TELEMETRY_DTYPE.fields or {}).items()}
"""Index of each field's first element among the doubles of a telemetry record."""


class Field(NamedTuple):
    """One field of a packet, as the vendor's document states it."""

    name: str
    offset: int
    format: Any  # NumPy format such as "<f4", "3<f4", "S4"; for a slot its Packet, repeated (Packet, count)
    unit: str = ""
    limit: float = math.inf  # largest plausible magnitude, in `unit`
    low: float = -math.inf  # smallest and largest value that may be sent
    high: float = math.inf
    among: tuple[int, ...] = ()  # the only values that may be sent, if not all between
    words: Mapping[int, str] = MappingProxyType({})  # names of values; the first that has a name is sent for it
    needed: bool = False  # must be given, because zero has a meaning
    when: tuple[str, int] | None = None  # another field and the only value of it with which this one is active

    @property
    def slot(self) -> "Packet | None":
        """The packet of a slot or of repeated slots; None for numbers and text."""
        kind = self.format[0] if isinstance(self.format, tuple) else self.format
        return kind if isinstance(kind, Packet) else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the field."""
        count = self.format[1] if isinstance(self.format, tuple) else ()
        dtype: np.dtype[Any] = np.dtype(self.format if self.slot is None else (self.slot.dtype, count))
        return dtype


class Take(NamedTuple):
    """Decoding: the field, and its element, that fills one element of a telemetry field."""

    telemetry: str  # or "chassis", whose elements are its channels: one that is not plausible is NaN
    element: int
    field: str
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which is not used
    scale: float = 1.0  # telemetry = wire * scale
    optional: bool = False  # a value that is not finite or is beyond the limit is decoded as NaN, not refused
    whole: bool = False  # for an f8: refuse anything but whole numbers from 0 on
    bias: float = -0.0  # telemetry = wire * scale + bias


class Send(NamedTuple):
    """Encoding: the actuation channel that fills a field."""

    field: str
    channel: str
    absent: float = 0.0  # sent when the channel is NaN
    scale: float = 1.0  # wire = channel / scale
    low: float = -math.inf  # smallest value sent


class Packet:
    """A packet of fixed size.

    Units: `size` [bytes].
    """

    def __init__(
        self,
        name: str,
        size: int,
        fields: Iterable[Field],
        constants: Mapping[str, Any] | None = None,
        *,
        absent: float = 0.0,
    ) -> None:
        self.name = name
        self.size = size
        self.absent = absent
        self.fields: dict[str, Field] = {}
        for field in fields:
            if field.name in self.fields:
                raise ValueError(f"{name}: found two fields named {field.name!r}")
            self.fields[field.name] = field
        self.constants = dict(constants or {})
        self._refuse_overlap()

    def _refuse_overlap(self) -> None:
        end, before = 0, ""
        for field in sorted(self.fields.values(), key=lambda field: field.offset):
            if field.offset < end:
                raise ValueError(f"{self.name}: field {field.name!r} at {field.offset} overlaps {before!r}")
            end, before = field.offset + field.dtype.itemsize, field.name
            if end > self.size:
                raise ValueError(f"{self.name}: field {field.name!r} ends at {end}, the packet at {self.size}")

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """NumPy dtype of the packet, offsets as in the document."""
        return np.dtype(
            {
                "names": list(self.fields),
                "formats": [field.dtype for field in self.fields.values()],
                "offsets": [field.offset for field in self.fields.values()],
                "itemsize": self.size,
            }
        )

    def cut(self, size: int) -> "Packet":
        """Return the packet's first `size` bytes as a packet of its own, without constants."""
        whole = (field for field in self.fields.values() if field.offset + field.dtype.itemsize <= size)
        return Packet(self.name, size, whole)

    def identifies(self, data: bytes) -> bool:
        """Say whether `data` holds this packet's constants; its size is not checked."""
        if len(data) < self.size:
            data = data + bytes(self.size - len(data))
        row = np.frombuffer(data, self.dtype, count=1)[0]
        return all(row[name] == value for name, value in self.constants.items())

    def decode(self, data: bytes) -> dict[str, Any]:
        """Return the fields by name, in the units on the wire; vectors are lists."""
        if len(data) != self.size:
            raise PacketError(f"{self.name}: found {len(data)} bytes, allowed are {self.size}")
        row = np.frombuffer(data, self.dtype)[0]
        for name, value in self.constants.items():
            if row[name] != value:
                offset = self.fields[name].offset
                raise PacketError(f"{self.name}: found {name} {row[name]!r} at offset {offset}, allowed is {value!r}")
        return {name: plain(row[name]) for name in self.fields}

    def encode(self, values: Mapping[str, Any] | None = None) -> bytes:
        """Return the packet with `values`, in `decode`'s form, and constants; other fields are absent or zero."""
        return self._row(values or {}).tobytes()

    def _row(self, values: Mapping[str, Any]) -> npt.NDArray[np.void]:
        """Return the packet as an array of shape (1,)."""
        row = np.zeros(1, self.dtype)
        for name in self.fields if self.absent != 0.0 else ():
            if self.dtype[name].base.kind == "f":
                row[name] = self.absent
        for name, value in {**values, **self.constants}.items():
            if name not in self.fields:
                raise PacketError(f"{self.name}: found field {name!r}, allowed are {', '.join(self.fields)}")
            slot = self.fields[name].slot
            if slot is None:
                row[name] = self._text(name, value) if isinstance(value, str) else value
                continue
            room = row[name].reshape(-1)
            items = [value] if isinstance(value, Mapping) else list(value)
            if len(items) > len(room):
                raise PacketError(f"{self.name}: found {len(items)} {name}, allowed are up to {len(room)}")
            for place, item in enumerate(items):
                room[place] = slot._row(item)[0]
        return row

    def _text(self, name: str, value: str) -> bytes:
        data, size = value.encode("utf-8", "surrogateescape"), self.fields[name].dtype.itemsize
        if len(data) > size:
            raise PacketError(f"{self.name}: found {name} of {len(data)} bytes, allowed are {size}")
        return data

    def where(self, field: str, index: int = 0) -> tuple[int, np.dtype[Any]]:
        """Return the offset [bytes] and the dtype of one number of the packet."""
        dtype = self.fields[field].dtype
        base = dtype.base
        return self.fields[field].offset + index * base.itemsize, base

    def fixed(self) -> list[tuple[int, bytes]]:
        """Return the offset and the bytes of each constant."""
        data = self.encode()
        return [
            (self.fields[name].offset, data[self.fields[name].offset :][: self.fields[name].dtype.itemsize])
            for name in self.constants
        ]

    def taking(self, takes: Iterable[Take]) -> Table:
        """Compile the packet for decoding into a telemetry record."""
        numbers = []
        for take in takes:
            place = (0 if take.telemetry == "chassis" else TELEMETRY_PLACES[take.telemetry]) + take.element
            limit = self.fields[take.field].limit
            where = self.where(take.field, take.index)
            numbers.append(
                Number(*where, place, take.scale, limit, optional=take.optional, bias=take.bias, whole=take.whole)
            )
        return Table(self.size, numbers)

    def sending(self, sends: Iterable[Send]) -> Table:
        """Compile the packet for encoding from an actuation; raise ValueError if a field does not allow it."""
        numbers = []
        for send in sends:
            offset, dtype = self.where(send.field)
            if dtype.str != "<f4":
                raise ValueError(f"{self.name}: found field {send.field!r} of format {dtype.str}, allowed is <f4")
            place = ACTUATION_PLACES[send.channel]
            numbers.append(Number(offset, dtype, place, send.scale, absent=send.absent, low=send.low))
        return Table(self.size, numbers)


DELAY_S = 0.04  # [s] of what is derived, unless an option says otherwise


class Derivation(NamedTuple):
    """Source of a system's acceleration, and delay of derived quantities."""

    acceleration: str = "native"  # or "from_velocity"
    delay_s: float = DELAY_S  # delay of an acceleration from velocity, and of rates from attitude [s]


NATIVE = Derivation()
"""Acceleration as the source reports it."""


class Message(NamedTuple):
    """One of the packets a source sends, and its use."""

    packet: Packet
    role: str  # "axes", "motion", "part" of the next motion, "needed" part of it, or "other": not used
    takes: Iterable[Take] = ()
    reply: bytes = b""
    echo: Echo = Echo()  # bytes of the packet repeated in the reply
    largest: int = 0  # size of the packet's longest form [bytes]; 0: its own size

    def compiled(self) -> CompiledMessage:
        """Compile the message for `motioncue.frames.intake.Intake`."""
        takes = list(self.takes)
        beside = [take._replace(optional=True) for take in takes if take.telemetry == "chassis"]
        return CompiledMessage(
            self.packet.taking(take for take in takes if take.telemetry != "chassis"),
            self.packet.size,
            max(self.packet.size, self.largest),
            self.packet.fixed(),
            self.role,
            self.reply,
            self.echo,
            self.packet.taking(beside) if beside else None,
        )


class Encoding(NamedTuple):
    """How a packet is encoded at each tick."""

    table: Table
    packet: bytes  # initial bytes; kept where the table has no row
    seal: Seal | None  # counter and checksum, written last
    reads: frozenset[str]  # the channels in the table, and in those of the others
    others: tuple[tuple["Encoding", float], ...] = ()  # packets beside it, each with its interval [s]; 0: once


class Stream(NamedTuple):
    """One of the packets sent to a platform at every tick."""

    packet: Packet
    sends: tuple[Send, ...]
    defaults: Mapping[str, Any] = MappingProxyType({})  # values of fields without a channel

    def table(self) -> Table:
        """Compile the packet for encoding from an actuation."""
        return self.packet.sending(self.sends)

    def encoding(self) -> Encoding:
        """Return how the packet is encoded at each tick."""
        return Encoding(
            self.table(), self.packet.encode(self.defaults), None, frozenset(send.channel for send in self.sends)
        )


def plain(value: npt.ArrayLike) -> Any:
    """Return `value` as plain Python: numbers, text, lists; repeated slots as dicts; non-finite numbers unchanged."""
    value = np.asarray(value)
    if value.dtype.names is not None:
        if value.ndim:
            return [plain(item) for item in value]
        return {name: plain(value[name]) for name in value.dtype.names}
    if value.dtype.kind == "S":
        return bytes(value.item()).decode("utf-8", "surrogateescape")  # encodes to the same bytes again
    return value.tolist()


def vector(
    telemetry: str, field: str, order: tuple[int, ...] = (0, 1, 2), scale: float | tuple[float, ...] = 1.0
) -> list[Take]:
    """Return the takes that fill a telemetry vector from a field's elements, in `order`, times `scale`."""
    scales = scale if isinstance(scale, tuple) else (scale,) * len(order)
    return [
        Take(telemetry, element, field, index, factor)
        for element, (index, factor) in enumerate(zip(order, scales, strict=True))
    ]
