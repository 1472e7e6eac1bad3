"""A recording as arrays: `read`, and the walk through an MCAP file that survives every kind of damage.

The records of MCAP are parsed here and not by its library, for two reasons: a file whose end is missing is an ordinary
case, and ticks and frames become one array without a Python loop over messages.  Layout of the records: MCAP
specification, "Records".
"""

import io
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zstandard

from motioncue.errors import PacketError
from motioncue.motion import MOTION_DTYPE, TICK_DTYPE
from motioncue.recording.topics import (
    EVENT,
    FRAME,
    PACKAGE,
    SETTINGS,
    TICK,
    TOPICS,
    Event,
    Package,
    decode_event,
    decode_package,
    decode_settings,
)

__all__ = ["Drive", "is_mcap", "read"]

MAGIC = b"\x89MCAP0\r\n"
LARGEST_CHUNK = 64 << 20  # bytes, unpacked: motioncue's own have 256 KiB, the library's default is 1 MiB
LARGEST_RECORD = 64 << 20  # bytes

SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, METADATA, DATA_END = 0x03, 0x04, 0x05, 0x06, 0x07, 0x0C, 0x0F
MESSAGE_HEAD = 9 + 22  # opcode, length; channel, sequence, two times


class Settings(NamedTuple):
    """The profile in force from a time on."""

    time: int
    number: int
    profile: dict[str, Any]


class Drive(NamedTuple):
    """What a recording holds."""

    motion: npt.NDArray[np.void]
    """The motion of each frame: MOTION_DTYPE."""
    ticks: npt.NDArray[np.void]
    """Every tick: TICK_DTYPE."""
    packages: list[Package]
    """What the simulator sent, as it came."""
    events: list[Event]
    """What happened, in order of time."""
    settings: list[Settings]
    """The profile in force at the beginning, then after each change."""
    about: dict[str, str]
    """How the recording was made: versions, host, what the system granted."""
    unreadable: tuple[str, ...]
    """What could not be read, and where; empty for a whole file."""

    @property
    def profile(self) -> dict[str, Any] | None:
        """The tables of the profile at the beginning; None if the recording has none."""
        return self.settings[0].profile if self.settings else None


def is_mcap(data: bytes) -> bool:
    """Say whether a file is an MCAP file.

    Parameters
    ----------
    data : bytes
        Its first bytes, eight at least.
    """
    return data.startswith(MAGIC)


def _records(file: IO[bytes], size: int, bad: list[str]) -> Iterator[tuple[int, bytes, int]]:
    """Yield opcode, content and place of each record; what ends the walk too early is added to `bad`."""
    place = len(MAGIC)
    file.seek(place)
    while place < size:
        head = file.read(9)
        if len(head) < 9:
            bad.append(f"byte {place}: the file ends within a record")
            return
        opcode, length = struct.unpack("<BQ", head)
        if opcode == 0:
            bad.append(f"byte {place}: no record begins with opcode 0")
            return
        if place + 9 + length > size:
            bad.append(f"byte {place}: a record of {length} bytes is cut short, {size - place - 9} are there")
            return
        if opcode == DATA_END:
            return
        if length > LARGEST_RECORD:
            bad.append(f"byte {place}: a record of {length} bytes was passed over, allowed are {LARGEST_RECORD}")
            file.seek(length, os.SEEK_CUR)
        else:
            yield opcode, file.read(length), place
        place += 9 + length


def _unpacked(content: bytes) -> bytes:
    """Return the records in a chunk; ValueError if its content is not what it says."""
    _, _, size, _, name_size = struct.unpack_from("<QQQII", content)
    name = content[32 : 32 + name_size].decode("ascii", "replace")
    (packed_size,) = struct.unpack_from("<Q", content, 32 + name_size)
    packed = content[40 + name_size :]
    if len(packed) != packed_size:
        raise ValueError(f"a chunk of {packed_size} bytes has {len(packed)}")
    if size > LARGEST_CHUNK:
        raise ValueError(f"a chunk unpacks to {size} bytes, allowed are {LARGEST_CHUNK}")
    if name == "":
        data = packed
    elif name == "zstd":
        if zstandard.frame_content_size(packed) not in (size, -1):
            raise ValueError("a chunk has another size than it says")
        data = zstandard.decompress(packed, max_output_size=size)
    elif name == "lz4":
        import lz4.frame

        decompressor = lz4.frame.LZ4FrameDecompressor()
        data = decompressor.decompress(packed, max_length=size + 1)
    else:
        raise ValueError(f"a chunk is packed with {name!r}, allowed are zstd, lz4 and none")
    if len(data) != size:
        raise ValueError(f"a chunk of {size} bytes unpacks to {len(data)}")
    return data


def _walk(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, start and end of the content of each record in a chunk; ValueError where one does not fit."""
    place = 0
    while place < len(data):
        if place + 9 > len(data):
            raise ValueError("a chunk ends within a record")
        opcode, length = struct.unpack_from("<BQ", data, place)
        if place + 9 + length > len(data):
            raise ValueError("a record is longer than its chunk")
        yield opcode, place + 9, place + 9 + length
        place += 9 + length


class McapFile:
    """The messages of an MCAP file by topic, with whatever of it can be read.

    Parameters
    ----------
    path : str or Path
        The file.
    data : bytes, optional
        What is in it, if somebody has read it already.

    Raises
    ------
    PacketError
        If it cannot be opened or is no MCAP file.
    """

    def __init__(self, path: str | Path, data: bytes | None = None) -> None:
        self.bad: list[str] = []
        self.metadata: dict[str, dict[str, str]] = {}
        self.schemas: dict[int, tuple[str, str, bytes]] = {}  # name, encoding, definition
        self.topics: dict[int, tuple[str, str, int]] = {}  # of each channel: topic, encoding, schema
        self._chunks: list[tuple[bytes, dict[int, npt.NDArray[np.int64]]]] = []  # unpacked; places by channel
        try:
            with Path(path).open("rb") if data is None else io.BytesIO(data) as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise PacketError(f"recording {str(path)!r}: not an MCAP file")
                self._read(file, file.seek(0, os.SEEK_END))
        except OSError as error:
            raise PacketError(f"recording {str(path)!r}: {error.strerror}") from error

    def _read(self, file: IO[bytes], size: int) -> None:
        loose = bytearray()  # messages outside chunks
        chunk, index = b"", {}  # the newest chunk, and the places of its messages by channel
        for opcode, content, place in _records(file, size, self.bad):
            try:
                if opcode == MESSAGE_INDEX:
                    channel, places = _index(content)
                    index[channel] = places
                    continue
                self._take(chunk, index)
                chunk, index = b"", {}
                if opcode == CHUNK:
                    chunk = _unpacked(content)
                elif opcode == MESSAGE:
                    loose += struct.pack("<BQ", opcode, len(content)) + content
                elif opcode == METADATA:
                    name, end = _text(content, 0)
                    self.metadata[name] = _map(content, end)
                else:
                    self._declare(opcode, content)
            except (ValueError, struct.error, zstandard.ZstdError, RuntimeError, MemoryError) as error:
                self.bad.append(f"byte {place}: {error}")
        self._take(chunk, index)
        self._take(bytes(loose), {})

    def _declare(self, opcode: int, content: bytes) -> None:
        if opcode == SCHEMA:
            (number,) = struct.unpack_from("<H", content)
            name, end = _text(content, 2)
            encoding, end = _text(content, end)
            (length,) = struct.unpack_from("<I", content, end)
            self.schemas[number] = (name, encoding, content[end + 4 : end + 4 + length])
        elif opcode == CHANNEL:
            number, schema = struct.unpack_from("<HH", content)
            topic, end = _text(content, 4)
            encoding, _ = _text(content, end)
            self.topics[number] = (topic, encoding, schema)

    def _take(self, data: bytes, index: dict[int, npt.NDArray[np.int64]]) -> None:
        """Keep a chunk: by its index if that accounts for every byte, else by a walk through its records."""
        if not data:
            return
        if not _complete(data, index):
            found: dict[int, list[int]] = {}
            try:
                for opcode, start, end in _walk(data):
                    if opcode == MESSAGE and end - start >= 22:
                        found.setdefault(data[start] | data[start + 1] << 8, []).append(start - 9)
                    elif opcode in (SCHEMA, CHANNEL):
                        self._declare(opcode, data[start:end])
            except (ValueError, struct.error) as error:
                self.bad.append(f"in a chunk: {error}")
            index = {channel: np.array(places, np.int64) for channel, places in found.items()}
        self._chunks.append((data, index))

    def packages(self) -> list[Package]:
        """Return the packages of a simulator, as they came."""
        return _decoded(self, PACKAGE.name, decode_package)

    def payloads(self, topic: str) -> Iterator[bytes]:
        """Yield the payload of each message of a topic, in order of the file."""
        channels = [number for number, (name, _, _) in self.topics.items() if name == topic]
        for data, index in self._chunks:
            for channel in channels:
                for place in index.get(channel, _NONE).tolist():
                    (length,) = struct.unpack_from("<Q", data, place + 1)
                    yield data[place + MESSAGE_HEAD : place + 9 + length]

    def rows(self, topic: str, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
        """Return the messages of a topic that are rows of `dtype`; others are counted as bad."""
        size = MESSAGE_HEAD + 4 + dtype.itemsize
        channels = [number for number, (name, _, _) in self.topics.items() if name == topic]
        parts = []
        for data, index in self._chunks:
            memory = np.frombuffer(data, np.uint8)
            for channel in channels:
                places = index.get(channel, _NONE)
                right = places[_lengths(memory, places) == size]
                if len(right) < len(places):
                    others, wanted = len(places) - len(right), size - MESSAGE_HEAD
                    self.bad.append(f"{topic}: {others} messages of another size than {wanted} bytes")
                parts.append(memory[right[:, None] + np.arange(MESSAGE_HEAD + 4, size)].reshape(-1).view(dtype))
        return np.concatenate(parts) if parts else np.zeros(0, dtype)


_NONE = np.zeros(0, np.int64)


def _lengths(memory: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many bytes each record at these places has, its own 9 included."""
    lengths: npt.NDArray[np.int64] = 9 + memory[places[:, None] + np.arange(1, 9)].reshape(-1).view("<i8")
    return lengths


def _complete(data: bytes, index: dict[int, npt.NDArray[np.int64]]) -> bool:
    """Say whether an index names messages that fill the whole chunk."""
    memory, total = np.frombuffer(data, np.uint8), 0
    for channel, places in index.items():
        if not len(places) or places.min() < 0 or places.max() + MESSAGE_HEAD > len(data):
            return False
        heads = memory[places[:, None] + np.array([0, 9, 10])]
        lengths = _lengths(memory, places)
        if (heads != (MESSAGE, channel & 255, channel >> 8)).any() or (lengths < MESSAGE_HEAD).any():
            return False
        if (lengths > len(data) - places).any():
            return False
        total += int(lengths.sum())
    return total == len(data)


def _index(content: bytes) -> tuple[int, npt.NDArray[np.int64]]:
    """Return channel and places of messages from the content of a message index."""
    channel, size = struct.unpack_from("<HI", content)
    if size % 16 or 6 + size > len(content):
        raise ValueError(f"a message index of {size} bytes has {len(content) - 6}")
    return channel, np.frombuffer(content, "<i8", size // 8, 6)[1::2].astype(np.int64)


def _text(content: bytes, place: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("<I", content, place)
    end = place + 4 + size
    if end > len(content):
        raise ValueError(f"a text of {size} bytes is longer than its record")
    return content[place + 4 : end].decode("utf-8", "replace"), end


def _map(content: bytes, place: int) -> dict[str, str]:
    (size,) = struct.unpack_from("<I", content, place)
    end, place, found = place + 4 + size, place + 4, {}
    if end > len(content):
        raise ValueError(f"a map of {size} bytes is longer than its record")
    while place < end:
        key, place = _text(content, place)
        found[key], place = _text(content, place)
    return found


def read(path: str | Path) -> Drive:
    """Return what is in a recording, as arrays.

    Parameters
    ----------
    path : str or Path
        An MCAP file that ``--record`` has written, or a recording of ROS 2 with `sensor_msgs/msg/Imu`.

    Returns
    -------
    Drive
        With `motion` (MOTION_DTYPE), `ticks` (TICK_DTYPE), `packages`, `events`, `settings`, `about`, and in
        `unreadable` what a damaged or unfinished file has lost.

    Raises
    ------
    PacketError
        If the file cannot be opened, is no MCAP file, or there is no motion in it that can be read.

    Examples
    --------
    >>> drive = motioncue.read("drive.mcap")                                 # doctest: +SKIP
    >>> pandas.DataFrame(drive.motion)                                       # doctest: +SKIP
    """
    file = McapFile(path)
    names = {name for name, _, _ in file.topics.values()}
    if not names & set(TOPICS):
        from motioncue.recording.ros2 import ros2_motion

        try:
            return Drive(ros2_motion(file), np.zeros(0, TICK_DTYPE), [], [], [], {}, tuple(file.bad))
        except PacketError as error:
            what = f"topics {', '.join(sorted(names)[:5])}" if names else "no message that can be read"
            lost = f" ({file.bad[0]})" if file.bad else ""
            raise PacketError(
                f"recording {str(path)!r}: found {what}{lost}, allowed are topics of motioncue, or of ROS 2: {error}"
            ) from error
    motion, ticks = file.rows(FRAME.name, MOTION_DTYPE), file.rows(TICK.name, TICK_DTYPE)
    packages = file.packages()
    events = _decoded(file, EVENT.name, decode_event)
    settings = [
        Settings(time, number, json.loads(text))
        for time, number, text in _decoded(file, SETTINGS.name, decode_settings)
    ]
    about = file.metadata.get("motioncue", {})
    return Drive(motion, ticks, packages, sorted(events), settings, about, tuple(file.bad))


def _decoded(file: McapFile, topic: str, decode: Any) -> list[Any]:
    found = []
    for payload in file.payloads(topic):
        try:
            found.append(decode(payload))
        except PacketError as error:
            file.bad.append(str(error))
    return found
