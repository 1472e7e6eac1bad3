"""A simulator's packet as described in a profile: the tables in ``[source.packet]``."""

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import msgspec

from motioncue.core.table import Table
from motioncue.wire.description import Number

LARGEST = 65_507
"""Largest size of a datagram [bytes]."""

Offset = Annotated[int, msgspec.Meta(ge=0, le=LARGEST - 1)]
Size = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Factor = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
World = Literal["north", "east", "south", "west", "up", "down"]
Car = Literal["forward", "right", "back", "left", "up", "down"]
Angle = Literal["yaw", "pitch", "roll"]


class SourceField(Table, frozen=True, kw_only=True):
    """A number of the packet: its channel is the number times `scale` plus `bias`, in `unit`."""

    offset: Offset
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

    offset: Offset
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
    first: Offset
    """Offset of the first block; fields before it are not moved."""
    index: Offset
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
    nonce: tuple[Offset, Offset]
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

    offset: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
    """Offset in the mapping [bytes]; with `index` that of the first block's part."""
    size: Annotated[int, msgspec.Meta(ge=1, le=4096)]
    """Size [bytes]."""
    index: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)] | None = None
    """Offset in the mapping of the number of the block to use, from 0."""
    type: Literal["u1", "u2", "u4"] = "u1"
    """Type of that number: an unsigned integer, with its size [bytes]."""
    stride: Annotated[int, msgspec.Meta(ge=1, le=1 << 24)] | None = None
    """Distance from block to block [bytes]."""


class SharedMemory(Table, frozen=True, kw_only=True):
    """Shared memory that the simulator writes: the packet is made of parts of it, one for each state."""

    size: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
    """Size of the mapping [bytes]; systems round it up."""
    gather: Annotated[tuple[SourceWindow, ...], msgspec.Meta(min_length=1, max_length=16)]
    """Parts that are joined to the packet, in this order; all other offsets are those in the packet."""
    counter: Offset
    """Offset of a number that changes with every state."""
    type: Literal["u4", "u8"] = "u4"
    """Size of that number, whatever it means: 4 or 8 bytes."""
    end: Offset | None = None
    """Offset of a copy of the counter that is written after the state: if they differ, a state is being written."""
    odd: bool = False
    """Whether the counter is odd while a state is written."""
    poll_hz: Annotated[float, msgspec.Meta(ge=10, le=4000)] = 1000.0
    """How often the counter is looked at [Hz]."""
    still_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 1.0
    """Time without a new state after which it is looked whether the simulator still runs [s]."""


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
