"""A platform's packet as described in a profile: the tables in ``[output.packet]``."""

from typing import Annotated, Literal, NamedTuple

import msgspec

__all__ = ["Actuated", "Checksum", "Constant", "Counter", "PacketField", "PacketTable"]

Offset = Annotated[int, msgspec.Meta(ge=0, le=511)]
Number = Literal["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8"]
Unsigned = Literal["u1", "u2", "u4"]


class PacketField(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A number computed from a channel: channel times `scale` plus `bias`; integers are kept in range."""

    offset: Offset
    """Offset from the packet's first byte [bytes]."""
    type: Number
    """IEEE float, signed or unsigned integer, with its size [bytes]."""
    channel: str
    """A channel of the cue, in SI units; or up_east, up_north, up_up, the body's up axis in world axes; or an actuator
    of the platform, such as leg_1."""
    measure: Literal["position", "stroke", "share"] = "position"
    """For an actuator: its length, height or angle [m or rad]; the same from neutral; or the share of its range, 0 to
    1."""
    scale: Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)] = 1.0
    bias: Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)] = 0.0
    absent: Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)] = 0.0
    """Value of the channel if the simulator does not report it."""


class Constant(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Bytes that are the same in every packet."""

    offset: Offset
    bytes: str
    """Hexadecimal digits such as "4d 43 01"."""


class Counter(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Counts the packets from 0 and wraps around at the end of its type's range."""

    offset: Offset
    type: Unsigned = "u4"


class Checksum(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Covers the packet's bytes from `first` up to but not including `end`; written last."""

    offset: Offset
    kind: Literal["sum8", "xor8", "sum16", "crc16", "crc32"]
    """Sum of the bytes modulo 2^8 or 2^16; exclusive or; CRC-16/CCITT-FALSE; CRC-32 (IEEE 802.3)."""
    first: Offset = 0
    end: Annotated[int, msgspec.Meta(ge=1, le=512)] | None = None
    """The checksum's own offset by default."""


class PacketTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A packet; bytes that no table describes are zero."""

    size: Annotated[int, msgspec.Meta(ge=1, le=512)]
    """Size of the whole packet [bytes]."""
    byte_order: Literal["little", "big"] = "little"
    """Byte order of all numbers, counter and checksum included."""
    fields: tuple[PacketField, ...]
    constants: tuple[Constant, ...] = ()
    counter: Counter | None = None
    checksum: Checksum | None = None


class Actuated(NamedTuple):
    """An actuator that a packet's field can carry."""

    channel: str
    """Name of its channel in `motioncue.motion.ACTUATION`."""
    neutral: float
    """Position at neutral [m or rad]."""
    low: float
    high: float
