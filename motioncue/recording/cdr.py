"""Messages of ROS 2, plain little-endian CDR, read by their own definitions.

Alignment: OMG DDS-XTypes 1.3, 7.4.1 (encoding version 1): a number is aligned to its size, counted from behind the four
header bytes.  Definitions: ROS 2 interface definition, with nested ones behind lines of ``=``, as MCAP's registry says
for ``ros2msg``.
"""

import re
import struct
from typing import NamedTuple

__all__ = ["Layout"]

HEADER = b"\x00\x01"
SIZES = {
    **dict.fromkeys(("bool", "byte", "char", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}
CODES = {"int32": "i", "uint32": "I", "float64": "d"}
"""Types that a value may have that is read."""

MOST = 1000  # fields of a message
CONSTANT = re.compile(r"[\w/]+\s+\w+\s*=")  # takes no place in a message
FIELD = re.compile(r"([\w/]+)(?:\[(\d+)\])?\s+(\w+)")


class _Field(NamedTuple):
    name: str
    kind: str
    length: int


class Layout:
    """The places of chosen values in the messages of a definition.

    Parameters
    ----------
    text : str
        The definition, ``ros2msg``.
    wanted : dict of str to str
        Type of each value by its path, such as ``header.stamp.sec``.

    Raises
    ------
    ValueError
        If the definition has no such value, or an array of unknown length.
    """

    def __init__(self, text: str, wanted: dict[str, str]) -> None:
        own, *others = re.split(r"^=+\s*$", text, flags=re.M)
        nested = {}
        for part in others:
            name, _, body = part.strip().partition("\n")
            nested[name.removeprefix("MSG:").strip()] = body
        fields: list[_Field] = []
        _flatten(own, "", nested, fields, 0)
        kinds = {field.name: (field.kind, field.length) for field in fields}
        for name, kind in wanted.items():
            found = kinds.get(name, ("nothing", 0))
            if found[0] != kind or not found[1]:
                raise ValueError(f"its definition has {found[0]} for {name}, allowed is {kind}")
        self._segments: list[list[_Field]] = [[]]  # between strings
        for field in fields:
            if field.kind == "string":
                self._segments += [[] for _ in range(field.length)]
            else:
                self._segments[-1].append(field)
        self._wanted = {name: (f"<{kinds[name][1]}{CODES[kind]}") for name, kind in wanted.items()}
        self._known: dict[tuple[int, int], tuple[list[tuple[str, int]], int]] = {}

    def values(self, payload: bytes) -> dict[str, tuple[float, ...]]:
        """Return the wanted values of a message by their paths.

        Parameters
        ----------
        payload : bytes
            The message with its header.

        Raises
        ------
        ValueError
            If it has another encoding, or is too short.
        """
        if payload[:2] != HEADER:
            raise ValueError(f"header {payload[:4].hex()} is not plain little-endian CDR")
        body, place, found = payload[4:], 0, {}
        try:
            for number, segment in enumerate(self._segments):
                if number:
                    place += -place % 4
                    place += 4 + int(struct.unpack_from("<I", body, place)[0])
                offsets, size = self._offsets(number, segment, place % 8)
                for name, offset in offsets:
                    found[name] = struct.unpack_from(self._wanted[name], body, place + offset)
                place += size
            if place > len(body):
                raise ValueError(f"{len(body)} bytes are too few")
        except struct.error as error:
            raise ValueError(f"{len(body)} bytes are too few") from error
        return found

    def _offsets(self, number: int, segment: list[_Field], phase: int) -> tuple[list[tuple[str, int]], int]:
        """Return the offsets of the wanted values in a segment that begins at `phase` modulo 8, and its size."""
        if (number, phase) not in self._known:
            place, offsets = phase, []
            for field in segment:
                size = SIZES[field.kind]
                place += -place % size
                if field.name in self._wanted:
                    offsets.append((field.name, place - phase))
                place += size * field.length
            self._known[number, phase] = offsets, place - phase
        return self._known[number, phase]


def _flatten(text: str, prefix: str, nested: dict[str, str], out: list[_Field], depth: int) -> None:
    """Add the fields of a definition, nested ones by their paths."""
    for line in text.splitlines():
        bare = line.split("#")[0].strip()
        if not bare or CONSTANT.match(bare):
            continue
        match = FIELD.match(bare)
        if match is None or depth > 8 or len(out) > MOST:
            raise ValueError(f"its definition has {bare!r}, allowed are fields of known size and strings")
        kind, count, name = match[1], int(match[2] or 1), match[3]
        path = f"{prefix}{name}"
        if kind in SIZES or kind == "string":
            if kind == "string" and count > MOST:
                raise ValueError(f"its definition has {count} strings")
            out.append(_Field(path, kind, count))
            continue
        inner = _nested(kind, nested)
        for place in range(min(count, MOST)):
            _flatten(inner, f"{path}[{place}]." if match[2] else f"{path}.", nested, out, depth + 1)


def _nested(kind: str, nested: dict[str, str]) -> str:
    """Return the definition of a nested message, by its full name or, within a package, its last part."""
    short = kind.replace("/msg/", "/")
    for name, text in nested.items():
        full = name.replace("/msg/", "/")
        if full == short or full.endswith(f"/{short}") or (short == "Header" and full == "std_msgs/Header"):
            return text
    if short in ("builtin_interfaces/Time", "Time"):
        return "int32 sec\nuint32 nanosec"
    raise ValueError(f"its definition has no {kind}")
