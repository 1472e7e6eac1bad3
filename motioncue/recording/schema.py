"""The topics of a recording, each with its schema, its bytes on disk and its NumPy dtype.

A recording is an MCAP file (https://mcap.dev/spec).  Every message is plain little-endian CDR with a ``ros2msg``
schema, which Foxglove, Lichtblick and PlotJuggler plot without a plug-in.  All fields of `frame` and `tick` have 8
bytes, so CDR needs no padding and the payload after its 4 header bytes is the record's own memory: schema and payload
follow from the NumPy dtype alone.
"""

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import CHASSIS as CHASSIS_CHANNELS
from motioncue.core.channels import CHASSIS_DTYPE, CUE, MOTION, MOTION_DTYPE, TICK_DTYPE
from motioncue.errors import PacketError
from motioncue.safety.supervisor import State

HEADER = b"\x00\x01\x00\x00"
"""Header of every payload: plain CDR, little-endian (OMG RTPS 2.3, 10.5; DDS-XTypes 7.6.3.1.2)."""

_TYPES = {"f8": "float64", "i8": "int64", "u4": "uint32"}


class Topic(NamedTuple):
    """One kind of record in a recording."""

    name: str
    schema: str
    """Name of its ROS 2 message type."""
    text: str
    """Its ``ros2msg`` definition."""
    dtype: np.dtype[np.void] | None = None
    """Dtype of its payload, if all records have the same size."""


def bare(text: str) -> str:
    """Return a definition without comments and constants: the layout alone."""
    lines = (line.split("#")[0].rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and (line[0] == "=" or "=" not in line))


# What comments say of each field: unit and sense.
_SAID = {
    **{channel.name: f"[{channel.unit}] {channel.positive}" for channel in (*MOTION, *CUE, *CHASSIS_CHANNELS)},
    "time": "[ns] monotonic clock: when the frame came; in a cue, the tick's deadline",
    "index": "[1] place on the time grid; a gap is a skipped tick",
    "deadline": "[ns] monotonic clock",
    "lateness": "[ns] from the deadline to just before sending",
    "state": "one of the constants",
    "frames": "[1] number of frames when the tick read its motion",
    "operation": "0 engage, 1 hold, 2 park, 3 end, 4 leave; plus 8: engaged since, 16: output lost, 32: not "
    "ready, 64: not engaged, 128: faulty, 256: its emergency stop pressed, 512: silent, 1024: stands, 2048: found, "
    "4096: nobody listens",
    "settings": "[1] number of the settings in force",
    "weight": "[1] of the fade: 0 neutral, 1 the whole cue",
    "actuators": "[m or rad] positions sent to the first output with a platform",
    "feedback": "[m or rad] positions that this platform replies",
}
_NUMBERS = {"state": "\n".join(f"int64 {state.name}={state.value}" for state in State)}


def _definition(dtype: np.dtype[np.void], nested: dict[str, str]) -> str:
    """Return the ``ros2msg`` text of a flat or once nested record of 8-byte fields."""
    lines, appended = [_NUMBERS[name] for name in dtype.names or () if name in _NUMBERS], []
    assert dtype.names is not None
    for name in dtype.names:
        inner = dtype[name]
        if inner.names is None:
            several = f"[{inner.shape[0]}]" if inner.shape else ""
            said = _SAID.get(name)
            lines.append(f"{_TYPES[inner.base.str[1:]]}{several} {name}{f'  # {said}' if said else ''}")
        else:
            lines.append(f"{nested[name]} {name}")
            appended.append(f"{'=' * 80}\nMSG: {nested[name]}\n{_definition(inner, {})}")
    return "\n".join([*lines, *appended])


def _record(name: str, schema: str, dtype: np.dtype[np.void], **nested: str) -> Topic:
    return Topic(name, schema, _definition(dtype, nested), dtype)


FRAME = _record("/motioncue/frame", "motioncue/msg/Motion", MOTION_DTYPE)
"""The motion of each frame of the simulator."""

CHASSIS = _record("/motioncue/chassis", "motioncue/msg/Chassis", CHASSIS_DTYPE)
"""What a frame says of wheels, suspension and cab, of a source that does; NaN where it says nothing."""

TICK = _record("/motioncue/tick", "motioncue/msg/Tick", TICK_DTYPE, motion="motioncue/Motion", cue="motioncue/Cue")
"""Each tick of the emitter: motion used, cue and actuators sent, state, weight, lateness."""

PACKAGE = Topic("/motioncue/package", "motioncue/msg/Package", "int64 time\nuint32 endpoint\nuint8[] data")
"""A package of the simulator: arrival [ns, monotonic], index among the profile's endpoints, bytes."""

EVENT = Topic(
    "/motioncue/event",
    "motioncue/msg/Event",
    "int64 time\nint64 detail\nfloat64 value\nfloat64 limit\nstring what\nstring reason\nstring before\nstring after",
)
"""An event: a transition of the supervisor, a session, a refusal; with the measured value and its limit."""

SETTINGS = Topic("/motioncue/settings", "motioncue/msg/Settings", "int64 time\nint64 number\nstring profile")
"""The profile in force from a time on, as JSON of its tables; numbers begin at 0 and grow by 1 at each retune."""

LAPS = Topic("/motioncue/laps", "motioncue/msg/Laps", "int64 time\nint64 number\nuint8[] data")
"""What an earlier session felt along the way, as a file of `[laps]` has it; it comes with the settings of a number."""

TOPICS = {topic.name: topic for topic in (PACKAGE, FRAME, CHASSIS, TICK, EVENT, SETTINGS, LAPS)}
"""The topics by name."""


class Package(NamedTuple):
    """A package as it arrived."""

    time: int
    endpoint: int
    data: bytes


class Laps(NamedTuple):
    """What a run went on from: felt along the way by an earlier one."""

    time: int
    number: int
    """That of the settings with which it came."""
    data: bytes


class Event(NamedTuple):
    """An event at a time [ns]."""

    time: int
    what: str
    reason: str
    before: str = ""
    after: str = ""
    detail: int = 0
    value: float = 0.0
    limit: float = 0.0


class Hole(NamedTuple):
    """A span of a recording in which records are missing."""

    begin: int
    """Everything from before this time is there [ns, monotonic clock]."""
    end: int
    """Everything from after this time is there [ns, monotonic clock]."""
    records: int
    """Number of ticks, frames, packages and events that are missing."""
    reason: str
    """``disk``: the file could not be written; ``memory``: the disk was slower than the memory lasts."""

    def event(self) -> Event:
        """Return the event that stands for it in a file."""
        return Event(self.end, HOLE, self.reason, detail=self.records, value=1e-9 * (self.end - self.begin))

    @classmethod
    def of(cls, event: Event) -> "Hole":
        """Return the hole that an event stands for."""
        length = 1e9 * event.value if 0.0 <= event.value < 1e9 else 0.0
        return cls(max(event.time - round(length), 0), event.time, event.detail, event.reason)


HOLE = "hole"
"""What an event says that stands for missing records."""


def records_at(data: bytes, places: npt.NDArray[np.int64], dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Return the records that begin at given places of some bytes."""
    if not len(places):
        return np.zeros(0, dtype)
    # Every place is the beginning of an item of this array, which overlap; an item is copied at once.
    windows = np.ndarray((len(data) - dtype.itemsize + 1,), f"V{dtype.itemsize}", data, strides=(1,))
    return windows[places].view(dtype)


def _string(text: str) -> bytes:
    data = text.encode() + b"\0"
    return struct.pack("<I", len(data)) + data


_PACKAGE_HEAD = struct.Struct("<4sqII")


def encode_package(package: Package) -> bytes:
    """Return the payload of a package."""
    return HEADER + struct.pack("<qII", package.time, package.endpoint, len(package.data)) + package.data


def decode_package(payload: bytes) -> Package:
    """Return the package in a payload; raise PacketError if it is not one."""
    try:
        header, time, endpoint, size = _PACKAGE_HEAD.unpack_from(payload)
    except struct.error as error:
        raise PacketError(f"{PACKAGE.name}: found {len(payload)} bytes, allowed are 20 and more") from error
    if header != HEADER:
        _body(payload)
    data = payload[20 : 20 + size]
    if len(data) != size:
        raise PacketError(f"{PACKAGE.name}: found {len(data)} bytes of data, allowed are {size}, as its length says")
    return Package(time, endpoint, data)


def encode_event(event: Event) -> bytes:
    """Return the payload of an event."""
    body = struct.pack("<qqdd", event.time, event.detail, event.value, event.limit)
    for text in (event.what, event.reason, event.before, event.after):
        body += b"\0" * (-len(body) % 4) + _string(text)  # a string's length is aligned
    return HEADER + body


def decode_event(payload: bytes) -> Event:
    """Return the event in a payload; raise PacketError if it is not one."""
    body = _body(payload)
    try:
        time, detail, value, limit = struct.unpack_from("<qqdd", body)
        (what, reason, before, after), _ = _strings(body, 32, 4)
    except (struct.error, ValueError) as error:
        raise PacketError(f"{EVENT.name}: {error}") from error
    return Event(time, what, reason, before, after, detail, value, limit)


def encode_settings(time: int, number: int, profile: str) -> bytes:
    """Return the payload of the settings in force from a time on."""
    return HEADER + struct.pack("<qq", time, number) + _string(profile)


def decode_settings(payload: bytes) -> tuple[int, int, str]:
    """Return time, number and profile text of a payload; raise PacketError if it is not valid."""
    body = _body(payload)
    try:
        time, number = struct.unpack_from("<qq", body)
        (text,), _ = _strings(body, 16, 1)
    except (struct.error, ValueError) as error:
        raise PacketError(f"{SETTINGS.name}: {error}") from error
    return time, number, text


def encode_laps(laps: Laps) -> bytes:
    """Return the payload of what an earlier session felt."""
    return HEADER + struct.pack("<qqI", laps.time, laps.number, len(laps.data)) + laps.data


def decode_laps(payload: bytes) -> Laps:
    """Return what an earlier session felt, in a payload; raise PacketError if it is not valid."""
    body = _body(payload)
    try:
        time, number, size = struct.unpack_from("<qqI", body)
    except struct.error as error:
        raise PacketError(f"{LAPS.name}: found {len(payload)} bytes, allowed are 24 and more") from error
    if len(body) != 20 + size:
        raise PacketError(f"{LAPS.name}: found {len(body) - 20} bytes of data, allowed are {size}, as its length says")
    return Laps(time, number, body[20:])


def _body(payload: bytes) -> bytes:
    if payload[:4] != HEADER:
        raise PacketError(f"found header {payload[:4].hex()}, allowed is {HEADER.hex()}, plain little-endian CDR")
    return payload[4:]


def _strings(body: bytes, place: int, count: int) -> tuple[list[str], int]:
    found = []
    for _ in range(count):
        place += -place % 4
        (size,) = struct.unpack_from("<I", body, place)
        data = body[place + 4 : place + 4 + size]
        if len(data) != size or not data.endswith(b"\0"):
            raise ValueError(f"found a string cut at byte {place}, allowed are {size} bytes that end with zero")
        found.append(data[:-1].decode("utf-8", "replace"))
        place += 4 + size
    return found, place
