"""The other end of a described packet: splits what comes, names it, and decodes its numbers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from motioncue.core.channels import CUE
from motioncue.errors import ConfigError, PacketError
from motioncue.output.packet import LARGEST, checked_text, checksum_of, layout_of, pieces_of
from motioncue.wire.checksum import Seal
from motioncue.wire.description import PacketLayout, PacketTable, Value
from motioncue.wire.packet import Field, Packet

__all__ = ["Described"]


class Described:
    """A platform whose packet is described; it has what the module of a built-in one has for decoding."""

    STREAMS = ("motion",)

    def __init__(self, table: PacketTable) -> None:
        names = ("motion", *(f"other_{number}" for number in range(1, len(table.others) + 1)))
        self._packets = [_packet_of(each, name) for each, name in zip((table, *table.others), names, strict=True)]
        self.values: Mapping[str, Value] = self._packets[0].values
        self.numbers = [name for name in self._packets[0].fields if not name.startswith(("constants", "checksum"))]
        self._scale = table.scale

    def identify(self, data: bytes) -> Any:
        """Return the layout of a packet, whose name is ``motion``, or ``other_1`` and so on."""
        first: PacketError | None = None
        for packet in self._packets:
            try:
                packet.check(data)
            except PacketError as error:
                first = first or error
            else:
                return packet
        assert first is not None
        raise first

    def framed(self, data: bytes) -> Iterator[bytes]:
        """Yield the packets in a file, and what is between them, which `identify` refuses."""
        pieces, rest = self.split(data)
        yield from pieces
        if rest:
            yield rest

    def split(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the packets in a piece of a stream with what is between them, and the rest to be continued."""
        pieces: list[bytes] = []
        at = 0
        for start, end in _spans(self._packets, data, 0):
            pieces += [data[at:start]] if start > at else []
            pieces.append(data[start:end])
            at = end
        if len(data) - at >= 2 * LARGEST:  # no packet is so long
            pieces.append(data[at:-LARGEST])
            at = len(data) - LARGEST
        return pieces, data[at:]

    def channels(self, fields: Mapping[str, Any]) -> dict[str, float]:
        """Return the cue's channels in SI units from decoded fields; those in sums are left out."""
        names = {channel.name for channel in CUE}
        return {
            value.channel: (fields[name] - value.bias) / (value.scale * self._scale)
            for name, value in self.values.items()
            if value.channel in names and name in fields and value.scale * self._scale
        }


def _packet_of(table: PacketLayout, name: str) -> "_Binary | _Text":
    """Return what recognizes a packet."""
    if (table.size is None) == (table.text is None):
        raise ConfigError("output.packet: allowed is one of size (of a binary packet) and text")
    return _Binary(table, name) if table.text is None else _Text(table, table.text, name)


def _spans(packets: Sequence["_Binary | _Text"], data: bytes, offset: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each packet in a piece of a stream: the next kind is looked for between those of one."""
    if not packets:
        return
    at = 0
    for start, end in packets[0].found(data):
        yield from _spans(packets[1:], data[at:start], offset + at)
        yield offset + start, offset + end
        at = end
    yield from _spans(packets[1:], data[at:], offset + at)


class _Binary(Packet):
    """A binary packet whose fields have the names of their channels."""

    def __init__(self, table: PacketLayout, name: str) -> None:
        layout = layout_of(table)
        self.values: dict[str, Value] = {}
        names = {}
        for index, field in enumerate(table.fields):
            own = _unused(_name_of(field), self.values)
            self.values[own] = field
            names[f"fields[{index}]"] = own
        parts = [part for name, part in layout.fields.items() if not name.startswith("constants")]
        self._constants = [(constant.offset, bytes.fromhex(constant.bytes)) for constant in table.constants]
        checksum = checksum_of(table)
        self._seal = None if checksum is None else Seal(None, checksum)
        super().__init__(name, layout.size, [part._replace(name=names.get(part.name, part.name)) for part in parts])

    def check(self, data: bytes) -> None:
        """Raise PacketError if `data` is not this packet."""
        if len(data) != self.size:
            raise PacketError(f"custom: found {len(data)} bytes, allowed are {self.size}")
        for offset, constant in self._constants:
            found = data[offset : offset + len(constant)]
            if found != constant:
                raise PacketError(f"custom: found {found.hex(' ')} at offset {offset}, allowed is {constant.hex(' ')}")
        if self._seal is not None and self._seal.sealed(data) != data:
            raise PacketError(
                f"custom: found checksum {self.decode(data)['checksum']:#x}, "
                f"allowed is {self.decode(self._seal.sealed(data))['checksum']:#x}"
            )

    def found(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each packet in a stream."""
        offset, mark = max(self._constants, key=lambda each: len(each[1]), default=(0, b""))
        at = 0
        while (at := data.find(mark, at + offset) - offset) >= 0 and at + self.size <= len(data):
            try:
                self.check(data[at : at + self.size])
            except PacketError:
                at += 1
                continue
            yield at, at + self.size
            at += self.size


class _Text:
    """A text packet."""

    def __init__(self, table: PacketLayout, text: str, name: str) -> None:
        self.name = name
        literal, inserted = pieces_of(text)
        checksum = checked_text(table, literal, inserted)[1]
        self._seal = None if checksum is None else Seal(None, checksum)
        self.values: dict[str, Value] = {}
        pattern, at = b"", 0
        for index, each in enumerate(inserted):
            following = inserted[index + 1] if index + 1 < len(inserted) else None
            if each.hexadecimal:
                pattern += re.escape(literal[at : each.at]) + b"[0-9A-Fa-f]{%d}" % int(each.hexadecimal[0])
                at = each.at
                continue
            own = _unused(each.name, self.values)
            self.values[own] = table.values.get(each.name) or Value(channel=each.name)
            adjacent = following is not None and following.at == each.at
            fraction = rb"\.\d{%d}" % each.spec.digits if each.spec.digits else b""
            number = rb"[ +\-\d.]{%d}" % each.spec.width if adjacent else rb" {0,24}[+-]?\d{1,24}" + fraction
            pattern += re.escape(literal[at : each.at]) + b"(" + number + b")"
            at = each.at
        self._pattern = re.compile(pattern + re.escape(literal[at:]))
        self._open = at == len(literal)  # only what follows tells where the last number ends
        self.fields = {name: Field(name, 0, "f8") for name in self.values}
        self.size = 0

    def check(self, data: bytes) -> None:
        """Raise PacketError if `data` is not this packet."""
        if not self._pattern.fullmatch(data):
            raise PacketError(f"custom: found {data[:80]!r}, which is not the described text")
        if self._seal is not None and self._seal.sealed(data).upper() != data.upper():
            raise PacketError(f"custom: found {data[:80]!r}, whose checksum is wrong: {self._seal.sealed(data)[:80]!r}")
        self.size = len(data)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Return the numbers by name, as they are in the text."""
        match = self._pattern.fullmatch(data)
        if match is None:
            raise PacketError(f"custom: found {data[:80]!r}, which is not the described text")
        return dict(zip(self.values, map(_number, match.groups()), strict=True))

    def found(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each packet in a stream."""
        for match in self._pattern.finditer(data):
            if self._open and match.end() == len(data) and match.start() > 0:
                return
            yield match.span()


def _number(text: bytes) -> float:
    try:
        return float(text) if b"." in text else int(text)
    except ValueError as error:  # a fixed width full of signs
        raise PacketError(f"custom: found {text!r}, allowed is a number") from error


def _name_of(value: Value) -> str:
    return value.channel or "+".join(value.sum or {}) or "?"


def _unused(name: str, names: Mapping[str, Any]) -> str:
    """Return the name, with a number if it is used already."""
    number, found = 1, name
    while found in names:
        number += 1
        found = f"{name}_{number}"
    return found
