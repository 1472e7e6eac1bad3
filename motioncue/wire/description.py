"""Packets as described in a profile: a platform's in ``[output.packet]``, a simulator's in ``[source.packet]``."""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from motioncue.core.table import Table

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


class Measured(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A number that is a measure of something, times `scale` plus `bias`."""

    measure: Literal["position", "stroke", "share"] = "position"
    """For actuators: length, height or angle [m or rad]; the same from neutral; or the share of the range, 0 to 1."""
    scale: Factor = 1.0
    """Factor on the channel or sum."""
    bias: Factor = 0.0
    """Added after that."""


class Value(Measured, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A number computed from a channel or a weighted sum of some: times `scale` plus `bias`, in range."""

    channel: str | None = None
    """A channel of the cue, in SI units; or car_surge and so on, what the car itself does; or car_suspension_front_left
    and so on, its wheels, suspension and cab; or tactile, for shakers; or up_east, up_north, up_up, the body's up
    axis in world axes; or an actuator of the platform, such as leg_1, also as actuator_1."""
    sum: Annotated[dict[str, Factor], msgspec.Meta(min_length=1, max_length=16)] | None = None
    """Weights of several channels, in place of `channel`."""
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


class LifeBit(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A bit that changes again and again, by which the controller knows that this side lives."""

    offset: Offset
    """Offset of its byte from the packet's first one [bytes]."""
    bit: Annotated[int, msgspec.Meta(ge=0, le=7)] = 0
    """Its place, 0 for the least significant one; the byte's other bits may be those of a constant."""
    every_s: Annotated[float, msgspec.Meta(ge=0.0, le=10.0)] = 0.0
    """Time after which it changes [s]; 0: with every packet."""


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


class Layout(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a packet to a platform and a reply of one have in common."""

    size: Annotated[int, msgspec.Meta(ge=1, le=512)] | None = None
    """Size of the whole binary packet [bytes]."""
    byte_order: ByteOrder = "little"
    """Byte order of all numbers, counter and checksum included."""
    constants: tuple[Constant, ...] = ()
    checksum: Checksum | None = None


class PacketLayout(Layout, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A binary packet, in which bytes that no table describes are zero, or a text."""

    scale: Factor = 1.0
    """Factor on every number before its bias: for a controller whose unit is set up, such as pulses per meter."""
    fields: tuple[PacketField, ...] = ()
    counter: Counter | None = None
    clock: Clock | None = None
    state: StateWord | None = None
    life: LifeBit | None = None
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=512)] | None = None
    """A text packet, such as "X{surge:.2f}Y{tilt:+06.1f}\\r\\n": in braces a channel or one of `values`, then the
    format: an optional + and 0, least width, digits after the point; behind all numbers {checksum:02X}."""
    values: dict[str, Value] = {}
    """Numbers of a text packet by the name in its braces."""


Claim = Literal["ready", "engaged", "fault", "emergency_stop", "moving"]


class ReplyValue(Measured, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a number of a reply says; as in a packet, the number is the measure times `scale` plus `bias`."""

    channel: str
    """ready (it would follow), engaged (it follows), fault, emergency_stop or moving; an actuator of the platform, such
    as leg_1, also as actuator_1; or temperature [degC]."""
    mask: Word | None = None
    """The bits of the number that count, for what is said by yes or no."""
    among: Annotated[tuple[Word, ...], msgspec.Meta(min_length=1, max_length=16)] | None = None
    """The numbers, or those bits of them, that mean yes; any but 0 if not given."""


class ReplyField(ReplyValue, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A number of a binary reply; several may read the same one."""

    offset: Offset
    """Offset from the packet's first byte [bytes]."""
    type: Number
    """IEEE float, signed or unsigned integer, with its size [bytes]."""
    byte_order: ByteOrder | None = None
    """If it differs from the packet's."""


class Length(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Where a reply says how long its payload is, because zeros at the payload's end are left out, as in MAVLink 2."""

    offset: Offset
    """Offset of the byte that holds the payload's length [bytes]."""
    first: Offset
    """Offset of the payload's first byte [bytes]; behind its last one stands the checksum."""


class ReplyTable(Layout, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A binary packet or a text that the controller sends; several tables if it sends several."""

    fields: tuple[ReplyField, ...] = ()
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    """A text, such as "S{ready} T{temperature}\\r\\n": in braces what a number says, or the name of one of `values`."""
    values: dict[str, ReplyValue] = {}
    """Numbers of a text by the name in its braces."""
    length: Length | None = None
    """If it may be shorter; `size` and all offsets are those of the whole reply."""
    lost_s: Annotated[float, msgspec.Meta(ge=0.02, le=60)] | None = None
    """Time without it that is a fault, once it has come [s]; never if not given."""


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
    reply: Annotated[tuple[ReplyTable, ...], msgspec.Meta(max_length=4)] = ()
    """What the controller answers to where the packets come from; without it nothing is read."""

    @property
    def channels(self) -> frozenset[str]:
        """The names of what the numbers of all its packets are computed from."""
        found: set[str] = set()
        for each in (self, *self.others):
            for value in (*each.fields, *each.values.values()):
                found |= {value.channel} if value.channel is not None else set(value.sum or ())
            found |= set(re.findall(r"{(\w+)", each.text or "")) - set(each.values)
        return frozenset(found)

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
    sign: float = 1.0
    """The controller is sent `sign` times the position plus `shift`: how the actuator hangs at it."""
    shift: float = 0.0


_FOLDER = resources.files("motioncue") / "output" / "controllers"


@cache
def packet_presets() -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of the ready descriptions by the name of the controller."""
    names = sorted(Path(entry.name).stem for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))
    return {name: tomllib.loads(packet_text(name)) for name in names}


def packet_text(name: str) -> str:
    """Return the TOML text of a ready description."""
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


LARGEST = 65_507
"""Largest size of a datagram [bytes]."""

SourceOffset = Annotated[int, msgspec.Meta(ge=0, le=LARGEST - 1)]
Size = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
World = Literal["north", "east", "south", "west", "up", "down"]
Car = Literal["forward", "right", "back", "left", "up", "down"]
Angle = Literal["yaw", "pitch", "roll"]


class SourceField(Table, frozen=True, kw_only=True):
    """A number of the packet: its channel is the number times `scale` plus `bias`, in `unit`."""

    offset: SourceOffset
    """Offset from the packet's first byte [bytes]."""
    type: Number
    """IEEE float, signed or unsigned integer, with its size [bytes]."""
    channel: str | None = None
    """A channel of the motion (surge, roll, speed ...), or an element of a vector (velocity_x, quaternion_w ...), or
    time; not used if left out."""
    unit: str | None = None
    """Unit of the scaled number; the channel's SI unit if left out."""
    scale: Factor = 1.0
    """Negative if the packet's number grows where the channel falls."""
    bias: Factor = 0.0
    """In `unit`."""
    limit: Annotated[float, msgspec.Meta(gt=0, le=1e300)] | None = None
    """Largest plausible magnitude of the number as it is in the packet."""
    optional: bool = False
    """A number that is not finite or beyond the limit is unknown, instead of the whole packet being refused."""
    name: str | None = None
    """Name shown by `motioncue decode`; the channel's if left out."""


class Mark(Table, frozen=True, kw_only=True):
    """Bytes by which a packet is known, or bits of them."""

    offset: SourceOffset
    """Offset from the packet's first byte [bytes]."""
    bytes: str
    """Hexadecimal digits such as "4d 43 01"."""
    mask: str | None = None
    """The bits that count, likewise; all if left out."""


class Blocks(Table, frozen=True, kw_only=True):
    """The packet has one block for each car, and a field that says whose block is used.

    The offsets of `fields` are those of the first block.
    """

    count: Annotated[int, msgspec.Meta(ge=2, le=64)]
    """Number of blocks."""
    stride: Size
    """Distance from block to block [bytes]."""
    first: SourceOffset
    """Offset of the first block; fields before it are not moved."""
    index: SourceOffset
    """Offset of the number of the block to use, from 0."""
    type: Literal["u1", "u2", "u4"] = "u1"
    """Type of that number: an unsigned integer, with its size [bytes]."""


class Form(Table, frozen=True, kw_only=True):
    """Another packet that the simulator sends."""

    size: Size | Annotated[tuple[Size, ...], msgspec.Meta(min_length=1, max_length=16)]
    """Size of the whole packet [bytes], or several."""
    longer: bool = False
    """Whether it may be longer."""
    fields: tuple[SourceField, ...] = ()
    constants: tuple[Mark, ...] = ()
    """Bytes by which it is known."""
    role: Literal["motion", "part", "needed", "other"] = "other"
    """Another form of the motion's packet, with its fields and constants, and these besides; a part of the next motion;
    a part without which there is no motion; or not used."""
    name: str = "other"
    """Name shown by `motioncue decode`."""


class Answer(Table, frozen=True, kw_only=True):
    """The answer to a packet: its beginning repeated, then other bytes."""

    echo: Annotated[int, msgspec.Meta(ge=0, le=512)] = 0
    """Number of bytes of the packet's beginning that the answer repeats."""
    bytes: str = ""
    """Hexadecimal digits that follow them."""
    repeat: Annotated[int, msgspec.Meta(ge=1, le=512)] = 1
    """How often they follow."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port of the simulator's machine to which the answer goes; 0: the port that the packet came from."""


class Enciphering(Table, frozen=True, kw_only=True):
    """How every packet is enciphered; offsets and bytes elsewhere are those of the deciphered packet."""

    type: Literal["salsa20"]
    """Salsa20 with 20 rounds and a key of 32 bytes."""
    key: str
    """The 32 bytes of the key in hexadecimal digits."""
    nonce: tuple[SourceOffset, SourceOffset]
    """Offsets of the two halves of the nonce in the packet, 4 bytes each [bytes]; they are not enciphered."""
    mask: str = "00 00 00 00 00 00 00 00"
    """The 8 bytes in hexadecimal digits that the nonce is combined with by exclusive or."""


class Beat(Table, frozen=True, kw_only=True):
    """A datagram without which the simulator sends nothing: it goes to the hosts in `source.allow`."""

    bytes: str
    """Hexadecimal digits of the datagram, of up to 64 bytes."""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    """Port of the simulator's machine."""
    every_s: Annotated[float, msgspec.Meta(ge=0.05, le=3600)]
    """Time from one to the next [s]."""


class SourceWindow(Table, frozen=True, kw_only=True):
    """A part of the shared memory; with `index` it is that of one block, such as the player's car."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)] | None = None
    """Offset in the mapping [bytes]; with `index` that of the first block's part."""
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=31)] | None = None
    """In place of `offset`: the variable's name, in memory that lists its variables as iRacing's SDK does."""
    size: Annotated[int, msgspec.Meta(ge=1, le=4096)]
    """Size [bytes]."""
    index: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)] | None = None
    """Offset in the mapping of the number of the block to use, from 0."""
    type: Literal["u1", "u2", "u4"] = "u1"
    """Type of that number: an unsigned integer, with its size [bytes]."""
    stride: Annotated[int, msgspec.Meta(ge=1, le=1 << 24)] | None = None
    """Distance from block to block [bytes]."""
    block: Literal["player", "beside"] | None = None
    """Whether it is a part of the block that `memory.player` finds in this mapping, or in the one beside it: `offset`
    is that of the first block's part, and without a player all its bytes are 0."""
    sampled: bool = False
    """Whether it is `samples` such parts, one after the other: the oldest sample's first."""
    between: Literal["line", "circle"] | None = None
    """What the packets of older samples have of a float that has none: the number on the straight line from the state
    before, or the angle [rad] on the shorter way round from there; by default the state's own."""
    optional: bool = False
    """Whether the memory may lack the variable, as that of another car: its floats are NaN then."""


class VehicleBlocks(Table, frozen=True, kw_only=True):
    """Blocks of one size, one for each vehicle, in an order that may change at any time."""

    count: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
    """Offset in the mapping of the number of blocks in use, 4 bytes."""
    most: Annotated[int, msgspec.Meta(ge=1, le=256)]
    """Number of blocks for which there is room."""
    first: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
    """Offset in the mapping of the first block."""
    stride: Annotated[int, msgspec.Meta(ge=4, le=1 << 24)]
    """Distance from block to block [bytes]."""
    id: Annotated[int, msgspec.Meta(ge=0, le=1 << 24)] = 0
    """Offset in a block of the vehicle's number, 4 bytes."""


class PlayerTable(Table, frozen=True, kw_only=True):
    """Another mapping says which vehicle is the player's, by its number; the packet is made of that vehicle's blocks.

    Without that mapping the simulator is not read.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    """Name of the mapping that says it."""
    size: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
    """Size of that mapping [bytes]."""
    begin: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
    """Offset in it of a counter of 4 bytes, which is written before all else."""
    end: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
    """Offset in it of the counter's copy, which is written last: if they differ, it is being written."""
    mark: Annotated[int, msgspec.Meta(ge=0, le=1 << 24)]
    """Offset in a block of it of a byte that is 1 in the player's."""
    there: VehicleBlocks
    """The vehicles' blocks in it."""
    here: VehicleBlocks
    """The vehicles' blocks in the mapping that is read."""


class SharedMemory(Table, frozen=True, kw_only=True):
    """Shared memory that the simulator writes: the packet is made of parts of it, one for each state."""

    size: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
    """Size of the mapping [bytes]; systems round it up."""
    gather: Annotated[tuple[SourceWindow, ...], msgspec.Meta(min_length=1, max_length=32)]
    """Parts that are joined to the packet, in this order; all other offsets are those in the packet."""
    counter: SourceOffset
    """Offset of a number that changes with every state."""
    type: Literal["u4", "u8"] = "u4"
    """Size of that number, whatever it means: 4 or 8 bytes."""
    end: SourceOffset | None = None
    """Offset of a copy of the counter that is written after the state: if they differ, a state is being written."""
    odd: bool = False
    """Whether the counter is odd while a state is written."""
    player: PlayerTable | None = None
    """How the player's vehicle is found if its place is not said by a number in the mapping."""
    poll_hz: Annotated[float, msgspec.Meta(ge=10, le=4000)] = 1000.0
    """How often the counter is looked at [Hz]."""
    still_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 1.0
    """Time without a new state after which it is looked whether the simulator still runs [s]."""
    samples: Annotated[int, msgspec.Meta(ge=1, le=16)] = 1
    """Samples of a state: each becomes a packet, and follows the one before in its time."""
    sample_hz: Annotated[float, msgspec.Meta(ge=10, le=4000)] | None = None
    """How many of them there are in a second [Hz]; only with `samples`."""
    time: SourceOffset | None = None
    """Offset of the last sample's time, an `f8` in seconds, from which the others' follow; only with `samples`."""


CarType = Literal["i1", "u1", "i2", "u2", "i4", "u4", "i8", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"]


class CarField(Table, frozen=True, kw_only=True):
    """Where the simulator's packets say which car it is, or which game."""

    offset: SourceOffset
    """Offset from the packet's first byte [bytes]."""
    type: CarType
    """Integer with its size [bytes], or S and the number of characters of a text that are compared."""
    size: Size | None = None
    """Size of the packets that say it, if there are others [bytes]."""
    byte_order: ByteOrder = "little"
    """Byte order of an integer."""

    @property
    def width(self) -> int:
        """Number of bytes that are read."""
        return int(self.type[1:])

    def value(self, data: bytes) -> int | str:
        """Return what bytes say."""
        data = data[: self.width]
        if self.type[0] == "S":
            return data.partition(b"\0")[0].decode("latin-1")
        order: Any = self.byte_order
        return int.from_bytes(data, order, signed=self.type[0] == "i")


class SourcePacket(Table, frozen=True, kw_only=True):
    """A packet that carries the vehicle's state, and how it is read."""

    size: Size | Annotated[tuple[Size, ...], msgspec.Meta(min_length=1, max_length=16)]
    """Size of the whole packet [bytes]; several if its forms differ only after the fields used."""
    longer: bool = False
    """Whether packets may be longer."""
    byte_order: Literal["little", "big"] = "little"
    """Byte order of all numbers."""
    world: tuple[World, World, World] | None = None
    """Directions of the world's x, y and z axes; any level direction may be called north if there is no map."""
    car: tuple[Car, Car, Car] | None = None
    """Directions of the car's x, y and z axes."""
    velocity: Literal["world", "car"] = "world"
    """Axes of velocity_x, _y, _z."""
    acceleration: Literal["world", "car"] = "car"
    """Axes of acceleration_x, _y, _z."""
    rates: Literal["car", "world", "angles"] = "car"
    """Angular velocity about the car's axes, about the world's, or as rates of roll, pitch and yaw."""
    gravity: Literal["excluded", "included"] = "excluded"
    """Whether the acceleration is kinematic, or an accelerometer's reading (up at rest)."""
    heading_from: Literal["north", "east", "south", "west"] = "north"
    """World direction of the nose at yaw 0."""
    order: tuple[Angle, Angle, Angle] = ("yaw", "pitch", "roll")
    """Order in which the angles turn the car, each about the axis that the turns before have left."""
    fields: tuple[SourceField, ...]
    constants: tuple[Mark, ...] = ()
    """Bytes by which the packet is known; one that lacks them is refused."""
    paused: tuple[Mark, ...] = ()
    """Bytes of packets that come while the simulation does not run: they are counted and not followed."""
    blocks: Blocks | None = None
    reply: Answer | None = None
    """Answer to each packet of the motion, for a simulator that waits for one."""
    cipher: Enciphering | None = None
    """Cipher of every packet; they come as they are if left out."""
    heartbeat: Beat | None = None
    """Datagram without which the simulator sends nothing."""
    memory: SharedMemory | None = None
    """Shared memory from which the packet is read, instead of being received."""
    forms: Annotated[tuple[Form, ...], msgspec.Meta(max_length=32)] = ()
    """Other packets that the simulator sends."""


class Window(NamedTuple):
    """A part of the mapping."""

    offset: int  # [bytes]
    size: int  # [bytes]
    number: int = -1  # offset of the number of the block to use; -1: none
    number_size: int = 1  # [bytes]
    stride: int = 0  # from block to block [bytes]
    name: str = ""  # of the variable, if the memory lists its variables; then `offset` is 0
    sampled: bool = False  # whether it is as many such parts as a state has samples, the oldest first
    between: str = ""  # how older samples have it: "line", "circle"; "": as the state has it
    block: str = ""  # of the player's block: "player" in this mapping, "beside" in the other; "": of none
    optional: bool = False  # whether the memory may lack the variable; every bit of it is set then, NaN as a float


class Gather(NamedTuple):
    """How states are read; offsets of `counter` and `end` are those of the packet."""

    size: int  # of the mapping [bytes]
    windows: tuple[Window, ...]
    counter: int  # changes with every state
    counter_size: int  # [bytes]
    end: int = -1  # a copy of the counter that is written after the state; -1: none
    odd: bool = False  # whether the counter is odd while a state is written
    poll_hz: float = 1000.0
    still_s: float = 1.0  # without a new state, after which the simulator may have ended
    fits: Callable[[bytes], bool] = bool  # whether a packet is one of the motion, with plausible numbers
    tail: int = 0  # behind the last numbers that change while the car moves; 0: nothing tells a half-written state
    samples: int = 1  # packets of a state
    sample_hz: float = 1000.0  # of them in a second
    time: int = 0  # offset of the last sample's time, a double [s]
    player: PlayerTable | None = None  # how the player's vehicle is found, if another mapping says which it is

    def count(self, part: Window) -> int:
        """Return how many parts of its size a part is in the mapping."""
        return self.samples if part.sampled else 1
