"""A platform's packet as described in a profile: the tables in ``[output.packet]``."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

Offset = Annotated[int, msgspec.Meta(ge=0, le=511)]
Factor = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
Number = Literal["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8"]
Unsigned = Literal["u1", "u2", "u4"]
ByteOrder = Literal["little", "big"]
Kind = Literal[
    "sum8",
    "sum8-inverted",
    "sum8-negated",
    "sum16",
    "xor8",
    "crc8-smbus",
    "crc8-maxim",
    "crc8-sae-j1850",
    "crc16-arc",
    "crc16-ccitt-false",
    "crc16-dnp",
    "crc16-genibus",
    "crc16-kermit",
    "crc16-maxim",
    "crc16-mcrf4xx",
    "crc16-modbus",
    "crc16-spi-fujitsu",
    "crc16-umts",
    "crc16-usb",
    "crc16-x25",
    "crc16-xmodem",
    "crc32",
    "crc32-bzip2",
    "crc32-mpeg-2",
    "crc32c",
]


class Value(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A number computed from a channel or a weighted sum of some: times `scale` plus `bias`, in range."""

    channel: str | None = None
    """A channel of the cue, in SI units; or up_east, up_north, up_up, the body's up axis in world axes; or an actuator
    of the platform, such as leg_1, also as actuator_1."""
    sum: Annotated[dict[str, Factor], msgspec.Meta(min_length=1, max_length=16)] | None = None
    """Weights of several channels, in place of `channel`."""
    measure: Literal["position", "stroke", "share"] = "position"
    """For actuators: length, height or angle [m or rad]; the same from neutral; or the share of the range, 0 to 1."""
    scale: Factor = 1.0
    """Factor on the channel or sum."""
    bias: Factor = 0.0
    """Added after that."""
    absent: Factor = 0.0
    """Value of a channel that the simulator does not report, or in its measure of an actuator (actuator_1 to
    actuator_12) that the platform does not have."""
    min: Factor | None = None
    """Smallest number sent; by default the smallest of the type."""
    max: Factor | None = None
    """Largest number sent; by default the largest of the type."""
    wrap: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | None = None
    """The remainder modulo this is sent, from 0 on: 360 for degrees without a sign."""


class PacketField(Value, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A number of a binary packet; integers are rounded."""

    offset: Offset
    """Offset from the packet's first byte [bytes]."""
    type: Number
    """IEEE float, signed or unsigned integer, with its size [bytes]."""
    byte_order: ByteOrder | None = None
    """If it differs from the packet's."""


class Constant(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Bytes that are the same in every packet."""

    offset: Offset
    """Offset from the packet's first byte [bytes]."""
    bytes: str
    """Hexadecimal digits such as "4d 43 01"."""


class Counter(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Counts the packets from 0 and wraps around at the end of its type's range."""

    offset: Offset
    """Offset from the packet's first byte [bytes]."""
    type: Unsigned = "u4"
    """Unsigned integer, with its size [bytes]."""
    byte_order: ByteOrder | None = None
    """If it differs from the packet's."""


class Clock(Counter, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Time since the first packet, in whole units; wraps around at the end of its type's range."""

    unit_s: Annotated[float, msgspec.Meta(ge=1e-6, le=1.0)] = 0.001
    """Length of a unit [s]."""


Word = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]


class StateWord(Counter, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the platform is doing: a number for each state of the supervisor; not in a text."""

    offline: Word
    """At rest, where the platform is parked."""
    rising: Word | None = None
    """Rising from where the platform was parked, or at neutral for `supervisor.engage_s`; as engaging if not given.
    It has precedence: a fade that begins while the platform rises is not said as engaging."""
    engaging: Word
    """Fading in."""
    running: Word
    """The whole cue, as soon as the platform has risen."""
    holding: Word
    """The last motion, held: input is late."""
    parking: Word
    """Fading out, and sinking."""
    fault: Word
    """At rest or on the way there, until an operator engages."""


class Checksum(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Covers the packet's bytes from `first` up to but not including `end`; written last."""

    offset: Offset | None = None
    """Offset from the packet's first byte [bytes]; in a text, {checksum:02X} is its place."""
    kind: Kind
    """Sum of the bytes modulo 2^8 or 2^16, as it is or its one's or two's complement; exclusive or; or a cyclic
    redundancy check by its name in the CRC catalogue."""
    first: Offset = 0
    """Offset of the first byte that it covers [bytes]."""
    end: Annotated[int, msgspec.Meta(ge=-64, le=512)] | None = None
    """Offset of the first byte after those that it covers [bytes]; the checksum's own by default, and if it is negative
    counted back from there: -1 leaves out the one before."""
    extra: str = ""
    """Up to eight more bytes that it covers after those and that are not sent, in hexadecimal digits."""
    byte_order: ByteOrder | None = None
    """If it differs from the packet's."""


class PacketLayout(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A binary packet, in which bytes that no table describes are zero, or a text."""

    scale: Factor = 1.0
    """Factor on every number before its bias: for a controller whose unit is set up, such as pulses per meter."""
    size: Annotated[int, msgspec.Meta(ge=1, le=512)] | None = None
    """Size of the whole binary packet [bytes]."""
    byte_order: ByteOrder = "little"
    """Byte order of all numbers, counter and checksum included."""
    fields: tuple[PacketField, ...] = ()
    constants: tuple[Constant, ...] = ()
    counter: Counter | None = None
    clock: Clock | None = None
    state: StateWord | None = None
    checksum: Checksum | None = None
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=512)] | None = None
    """A text packet, such as "X{surge:.2f}Y{tilt:+06.1f}\\r\\n": in braces a channel or one of `values`, then the
    format: an optional + and 0, least width, digits after the point; behind all numbers {checksum:02X}."""
    values: dict[str, Value] = {}
    """Numbers of a text packet by the name in its braces."""


class OtherPacket(PacketLayout, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A packet that goes to the same place beside those of the motion: a greeting, a sign of life."""

    every_s: Annotated[float, msgspec.Meta(ge=0.01, le=60)] | None = None
    """Interval [s]; if not given it is sent once, before the first packet of the motion and whenever a serial line is
    taken into use again."""


class Exchange(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A message over the connection by which a controller is checked in."""

    send: str
    """Its bytes as hexadecimal digits."""
    answer: str = ""
    """The bytes with which the answer must begin; none is waited for if not given."""


class CheckIn(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Messages over a TCP connection that is open as long as packets are sent."""

    endpoint: str | None = None
    """``tcp://HOST:PORT``; nothing is checked in if not given."""
    begin: tuple[Exchange, ...] = ()
    """Messages before the first packet; if one is not answered as it should be, the run does not begin."""
    end: tuple[Exchange, ...] = ()
    """Messages behind the last packet."""


class PacketTable(PacketLayout, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A binary packet, in which bytes that no table describes are zero, or a text."""

    preset: str | None = None
    """A ready description, which supplies the keys that are left out."""
    description: str = ""
    """A line that names the controller."""
    source: str = ""
    """The document that the layout is from."""
    max_rate_hz: Annotated[float, msgspec.Meta(ge=10, le=2000)] | None = None
    """The highest rate that the controller takes [Hz]."""
    baud: Annotated[int, msgspec.Meta(ge=50, le=1_000_000)] | None = None
    """Speed of a serial line whose endpoint does not have one."""
    others: Annotated[tuple[OtherPacket, ...], msgspec.Meta(max_length=4)] = ()
    check_in: CheckIn | None = None

    @property
    def uses_ranges(self) -> bool:
        """Whether numbers depend on the ranges of the platform's actuators, which a text's are kept in."""
        return self.text is not None or any(field.measure == "share" for field in self.fields)


class Actuated(NamedTuple):
    """An actuator that a packet's field can carry."""

    channel: str
    """Name of its channel in `motioncue.core.channels.ACTUATION`."""
    neutral: float
    """Position at neutral [m or rad]."""
    low: float
    high: float


_FOLDER = resources.files("motioncue.output.controllers")


@cache
def packet_presets() -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of the ready descriptions by the name of the controller."""
    names = sorted(Path(entry.name).stem for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))
    return {name: tomllib.loads(packet_text(name)) for name in names}


def packet_text(name: str) -> str:
    """Return the TOML text of a ready description."""
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
