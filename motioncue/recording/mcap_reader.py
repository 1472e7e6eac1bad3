"""The walk through an MCAP file, past every kind of damage and in bounded memory.

The records of MCAP are parsed here and not by its library, for two reasons: a file without its end is an ordinary case,
and ticks and frames become one array without a Python loop over messages.  Layout of the records: MCAP specification,
"Records".
"""

import copy
import io
import json
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import zstandard

from motioncue.errors import PacketError
from motioncue.recording.schema import (
    EVENT,
    LAPS,
    PACKAGE,
    SETTINGS,
    Event,
    Laps,
    Package,
    Topic,
    bare,
    decode_event,
    decode_laps,
    decode_package,
    decode_settings,
    records_at,
)

MAGIC = b"\x89MCAP0\r\n"
LARGEST_CHUNK = 64 << 20  # [bytes] unpacked: motioncue's own have 256 KiB, the library's default is 1 MiB
LARGEST_RECORD = 64 << 20  # [bytes]
LARGEST_FILE = 4 << 30  # [bytes] unpacked: nine hours at 333.33 Hz, three at 1000 Hz
PACKED = 64  # largest ratio of unpacked content to file size; a platform at rest is packed nine times
PIECE = 8 << 20  # [bytes] unpacked: twenty thousand ticks
SEARCHED = 4 << 20  # [bytes] after damage that are searched for the next chunk
SAID = 100  # damages that are described one by one

FILE_HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE = 0x01, 0x02, 0x03, 0x04, 0x05
CHUNK, MESSAGE_INDEX, METADATA, DATA_END = 0x06, 0x07, 0x0C, 0x0F
MESSAGE_HEAD = 9 + 22  # opcode, length; channel, sequence, two times
PACKINGS = b"\4\0\0\0zstd", b"\3\0\0\0lz4"
PACKING_PLACE = 9 + 28  # offset of the packing's name in a chunk's record


def is_mcap(data: bytes) -> bool:
    """Say whether a file is an MCAP file."""
    return data.startswith(MAGIC)


class Damage:
    """The unreadable parts of a file: the first hundred findings as text, the others counted."""

    def __init__(self) -> None:
        self.count = 0  # findings
        self.ended = False  # whether the data have an end: without one, their writer was killed or still writes
        self._said: list[str] = []

    def add(self, text: str) -> None:
        """Add a finding."""
        self.count += 1
        if self.count <= SAID:
            self._said.append(text)

    def texts(self) -> tuple[str, ...]:
        """Return the findings as texts."""
        more = self.count - len(self._said)
        return (*self._said, *([f"and {more} more"] if more else []))


def _records(file: IO[bytes], size: int, damage: Damage) -> Iterator[tuple[int, bytes, int]]:
    """Yield opcode, content and place of each record; after the data, only the repeated schemas and channels."""
    place, ended, searches = len(MAGIC), False, 0
    while place < size:
        file.seek(place)
        head = file.read(9)
        wrong, opcode, length = _head(head, size - place)
        if wrong and ended:
            return
        if wrong:
            searches += 1
            found = _next_chunk(file, place + 1, size) if searches <= SAID else None
            lost = size - place if found is None else found - place
            damage.add(f"byte {place}: {wrong}, {lost} bytes were passed over")
            place = size if found is None else found
            continue
        ended = damage.ended = ended or opcode == DATA_END
        behind = size - place - 9 - length - len(MAGIC)
        if opcode == FOOTER:
            if behind > 0:
                damage.add(f"byte {size - behind}: {behind} bytes behind the file's end were not read")
            return
        if length > LARGEST_RECORD:
            damage.add(f"byte {place}: a record of {length} bytes was passed over, allowed are {LARGEST_RECORD}")
        elif not ended or opcode in (SCHEMA, CHANNEL):
            yield opcode, file.read(length), place
        place += 9 + length


def _head(head: bytes, left: int) -> tuple[str, int, int]:
    """Return what is wrong with a record's head, if anything, its opcode, and the length of its content."""
    if len(head) < 9:
        return "the file ends within a record", 0, 0
    opcode, length = struct.unpack("<BQ", head)
    if opcode == 0:
        return "no record begins with opcode 0", 0, 0
    if 9 + length > left:
        return f"a record of {length} bytes is cut short", 0, 0
    return "", opcode, length


def _next_chunk(file: IO[bytes], start: int, size: int) -> int | None:
    """Return the place of the next packed chunk near `start`; None if there is none."""
    file.seek(start)
    data = file.read(SEARCHED)
    places = sorted(place for packing in PACKINGS for place in _all(data, packing))
    for place in (place - PACKING_PLACE for place in places if place >= PACKING_PLACE):
        opcode, length = struct.unpack_from("<BQ", data, place)
        if opcode == CHUNK and start + place + 9 + length <= size:
            return start + place
    return None


def _all(data: bytes, part: bytes) -> Iterator[int]:
    place = data.find(part)
    while place >= 0:
        yield place
        place = data.find(part, place + 1)


def _unpacked(content: bytes) -> bytes:
    """Return the records in a chunk; raise ValueError if its content does not match its head."""
    _, _, size, crc, name_size = struct.unpack_from("<QQQII", content)
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
    if crc and zlib.crc32(data) != crc:
        raise ValueError(f"a chunk of {size} bytes has another checksum than it says")
    return data


def _record_places(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, start and end of each record in a chunk; raise ValueError at an impossible one."""
    place = 0
    while place < len(data):
        if place + 9 > len(data):
            raise ValueError("an end within a record")
        opcode, length = struct.unpack_from("<BQ", data, place)
        if opcode not in (SCHEMA, CHANNEL, MESSAGE):
            raise ValueError(f"a record of opcode {opcode}, allowed in a chunk are {SCHEMA}, {CHANNEL} and {MESSAGE}")
        if place + 9 + length > len(data):
            raise ValueError("a record that is longer than itself")
        yield opcode, place + 9, place + 9 + length
        place += 9 + length


class _Chunk(NamedTuple):
    """A chunk that is held."""

    content: bytes
    """The records in it; empty if they are unpacked from the file whenever they are asked for."""
    place: int
    """Where its record's content begins in the file [bytes]."""
    size: int
    """Length of that content [bytes]."""
    unpacked: int
    """Length of the records in it [bytes]."""
    places: dict[int, npt.NDArray[np.int32]]
    """Places of the messages of each channel among its records."""


class McapFile:
    """The readable messages of an MCAP file by topic.

    Chunks stay in the file and are unpacked one at a time, whenever messages in them are asked for.  Unpacked they may
    have up to 4 GiB, and up to 64 times the size of the file plus one chunk of 64 MiB; the rest is not read, and
    counted as damage.
    """

    def __init__(self, path: str | Path, data: bytes | None = None) -> None:
        self.damage = Damage()
        self.profile = ""  # which says what encodings to expect, such as ros2
        self.metadata: dict[str, dict[str, str]] = {}
        self.schemas: dict[int, tuple[str, str, bytes]] = {}  # name, encoding, definition
        self.topics: dict[int, tuple[str, str, int]] = {}  # topic, encoding and schema of each channel
        self._chunks: list[_Chunk] = []
        self._room = 0  # [bytes] that may still be unpacked
        self._path, self._data = Path(path).absolute(), data
        self._which: tuple[int, int] | None = None  # device and number of the file
        try:
            if data is None and Path(path).exists() and not Path(path).is_file():
                raise PacketError(f"recording {str(path)!r}: found no file but a folder or a device")
            with self._opened() as file:
                head = file.read(len(MAGIC))
                if head != MAGIC:
                    found = f"begins with {head.hex()}" if head else "is empty"
                    raise PacketError(f"recording {str(path)!r}: not an MCAP file: it {found}")
                size = file.seek(0, os.SEEK_END)
                self._room = min(LARGEST_FILE, LARGEST_CHUNK + PACKED * size)
                self._read(file, size)
        except OSError as error:
            raise PacketError(f"recording {str(path)!r}: {error.strerror}") from error

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Open the file; raise PacketError if it is another one than before."""
        with self._path.open("rb") if self._data is None else io.BytesIO(self._data) as file:
            if self._data is None:
                found = os.fstat(file.fileno())
                which = found.st_dev, found.st_ino
                if self._which not in (None, which):
                    raise PacketError(f"recording {str(self._path)!r}: was replaced while it was read")
                self._which = which
            yield file

    @property
    def ended(self) -> bool:
        """Whether the file has its end: else its writer was killed, or still writes."""
        return self.damage.ended

    @property
    def empty(self) -> bool:
        """Whether there is no message that can be read."""
        return not self._chunks

    def _read(self, file: IO[bytes], size: int) -> None:
        loose = bytearray()  # messages outside chunks
        chunk, where = b"", (0, 0)  # the newest chunk, and place and size of its content in the file
        index: dict[int, npt.NDArray[np.int64]] = {}  # places of its messages, by channel
        for opcode, content, place in _records(file, size, self.damage):
            try:
                if opcode == MESSAGE_INDEX:
                    _add_index(index, content, len(chunk) // MESSAGE_HEAD)
                    continue
                self._take(chunk, where, index)
                chunk, where, index = b"", (0, 0), {}
                if opcode == CHUNK:
                    self._admit(min(struct.unpack_from("<Q", content, 16)[0], LARGEST_CHUNK))
                    chunk, where = _unpacked(content), (place + 9, len(content))
                elif opcode == MESSAGE:
                    self._admit(9 + len(content))
                    loose += struct.pack("<BQ", opcode, len(content)) + content
                elif opcode == FILE_HEADER:
                    self._admit(len(content))
                    self.profile, _ = _text(content, 0)
                elif opcode == METADATA:
                    self._add_metadata(content)
                else:
                    self._declare(opcode, content)
            except (ValueError, struct.error, zstandard.ZstdError, RuntimeError, MemoryError) as error:
                self.damage.add(f"byte {place}: {error}")
        self._take(chunk, where, index)
        self._take(bytes(loose), None, {})

    def _admit(self, size: int) -> None:
        """Reserve room for bytes that are kept; raise ValueError if there is none left."""
        if size > self._room:
            raise ValueError(
                f"{size} bytes were not unpacked, the file has had its room: allowed are {LARGEST_FILE >> 30} GiB, and "
                f"{PACKED} times the file's size"
            )
        self._room -= size

    @property
    def about(self) -> dict[str, str]:
        """What motioncue's recorder wrote of the run; empty in a file of other software."""
        return self.metadata.get("motioncue", {})

    def _add_metadata(self, content: bytes) -> None:
        self._admit(len(content))
        name, end = _text(content, 0)
        self.metadata[name] = _map(content, end)

    def _declare(self, opcode: int, content: bytes) -> None:
        """Store a schema or a channel."""
        if opcode == SCHEMA:
            self._admit(len(content))
            (number,) = struct.unpack_from("<H", content)
            name, end = _text(content, 2)
            encoding, end = _text(content, end)
            (length,) = struct.unpack_from("<I", content, end)
            self.schemas[number] = (name, encoding, content[end + 4 : end + 4 + length])
        elif opcode == CHANNEL:
            self._admit(len(content))
            number, schema = struct.unpack_from("<HH", content)
            topic, end = _text(content, 4)
            encoding, _ = _text(content, end)
            self.topics[number] = (topic, encoding, schema)

    def _take(self, data: bytes, where: tuple[int, int] | None, index: dict[int, npt.NDArray[np.int64]]) -> None:
        """Store a chunk: by its index if that accounts for every byte, else by a walk through its records."""
        if not data:
            return
        if not _complete(data, index):
            found: dict[int, list[int]] = {}
            try:
                for opcode, start, end in _record_places(data):
                    if opcode == MESSAGE and end - start >= 22:
                        found.setdefault(data[start] | data[start + 1] << 8, []).append(start - 9)
                    elif opcode in (SCHEMA, CHANNEL):
                        self._declare(opcode, data[start:end])
            except (ValueError, struct.error) as error:
                self.damage.add(f"a chunk of {len(data)} bytes has {error}")
            index = {channel: np.array(places, np.int64) for channel, places in found.items()}
        if any(len(places) for places in index.values()):
            places = {channel: found.astype(np.int32) for channel, found in index.items()}
            self._chunks.append(_Chunk(data if where is None else b"", *(where or (0, 0)), len(data), places))

    def parts(self, most: int = PIECE) -> Iterator["McapFile"]:
        """Yield parts of the file, in its order, as files of their own; the first has the damage found so far.

        Units: `most` [bytes].
        """
        first, size = 0, 0
        for place, held in enumerate([*self._chunks, None]):
            if held is not None and (size == 0 or size + held.unpacked <= most):
                size += held.unpacked
                continue
            part = copy.copy(self)
            part._chunks = self._chunks[first:place]
            if first:
                part.damage = Damage()
                part.damage.ended = self.ended
            yield part
            first, size = place, 0 if held is None else held.unpacked

    def _with(self, channels: Collection[int]) -> Iterator[tuple[bytes, int, npt.NDArray[np.int64]]]:
        """Yield a chunk's records, a channel, and the places of its messages there, for each that has any."""
        try:
            with self._opened() as file:
                for held in self._chunks:
                    inside = [channel for channel in channels if channel in held.places]
                    data = self._records_of(held, file) if inside else b""
                    for channel in inside:
                        yield data, channel, held.places[channel].astype(np.int64)
        except OSError as error:
            raise PacketError(f"recording {str(self._path)!r}: {error.strerror}") from error

    def _records_of(self, held: _Chunk, file: IO[bytes]) -> bytes:
        """Return the records in a chunk; raise PacketError if the file has changed."""
        if held.content:
            return held.content
        file.seek(held.place)
        try:
            return _unpacked(file.read(held.size))
        except (ValueError, struct.error, zstandard.ZstdError, RuntimeError) as error:
            raise PacketError(f"recording {str(self._path)!r}: was changed while it was read: {error}") from error

    def stamped(self, channel: int) -> Iterator[tuple[int, bytes]]:
        """Yield when each message of a channel was recorded [ns], and its payload, in the file's order."""
        for data, _, places in self._with([channel]):
            for place in places.tolist():
                length, _, _, time = struct.unpack_from("<QHIQ", data, place + 1)
                yield time, data[place + MESSAGE_HEAD : place + 9 + length]

    def messages(self) -> Iterator[tuple[int, int, int, int, bytes]]:
        """Yield channel, sequence, times of recording and publishing [ns], and payload of each message."""
        with self._opened() as file:
            for held in self._chunks:
                data = self._records_of(held, file)
                for place in np.sort(np.concatenate(list(held.places.values()))).tolist():
                    length, channel, sequence, logged, published = struct.unpack_from("<QHIQQ", data, place + 1)
                    yield channel, sequence, logged, published, data[place + MESSAGE_HEAD : place + 9 + length]

    def own_payloads(self, topic: Topic) -> Iterator[bytes]:
        """Yield the payload of each message of one of motioncue's topics, as written by this version.

        Messages of another version are counted as damage.
        """
        for data, _, places in self._with(self._own(topic)):
            for place in places.tolist():
                (length,) = struct.unpack_from("<Q", data, place + 1)
                yield data[place + MESSAGE_HEAD : place + 9 + length]

    def rows(self, topic: Topic) -> npt.NDArray[np.void]:
        """Return the messages of one of motioncue's topics as an array; count others as damage."""
        assert topic.dtype is not None
        size = MESSAGE_HEAD + 4 + topic.dtype.itemsize
        channels, others, row = self._own(topic), 0, 0
        out = np.empty(sum(self._count(channel) for channel in channels), topic.dtype)
        memory = out.view(f"V{topic.dtype.itemsize}")  # copied whole, not field by field
        for data, _, places in self._with(channels):
            right = places[_lengths(data, places) == size]
            others += len(places) - len(right)
            memory[row : row + len(right)] = records_at(data, right + (MESSAGE_HEAD + 4), memory.dtype)
            row += len(right)
        if others:
            self.damage.add(f"{topic.name}: {others} messages of another size than {size - MESSAGE_HEAD} bytes")
        return out[:row]

    def count(self, topic: Topic) -> int:
        """Return the number of messages of one of motioncue's topics."""
        return sum(self._count(channel) for channel in self._own(topic))

    def _count(self, channel: int) -> int:
        """Return the number of messages of a channel."""
        return sum(len(held.places[channel]) for held in self._chunks if channel in held.places)

    def _own(self, topic: Topic) -> list[int]:
        """Return the channels of a topic with motioncue's schema; count the messages of other channels as damage."""
        own = []
        for number, (name, encoding, schema) in self.topics.items():
            if name != topic.name:
                continue
            _, kind, definition = self.schemas.get(schema, ("", "", b""))
            text = bare(definition.decode("utf-8", "replace"))
            if (encoding, kind, text) == ("cdr", "ros2msg", bare(topic.text)):
                own.append(number)
            elif count := self._count(number):
                self.damage.add(f"{name}: {count} messages of another version: {_differing(definition, topic.text)}")
        return own


def _differing(definition: bytes, allowed: str) -> str:
    """Return a text on how a schema differs from the allowed one."""
    found, own = (dict.fromkeys(bare(text).splitlines()) for text in (definition.decode("utf-8", "replace"), allowed))
    more, less = ([line for line in one if line not in other] for one, other in ((found, own), (own, found)))
    if not definition:
        return "found no schema"
    if not more and not less:
        return "found its fields in another order"
    return f"found {', '.join(more[:5]) or 'no other field'}, missing is {', '.join(less[:5]) or 'none'}"


_HEAD_DTYPE = np.dtype([("opcode", "u1"), ("length", "<i8"), ("channel", "<u2")])  # the beginning of a message


def _lengths(data: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of bytes of the messages at these places, with 9 bytes of head each."""
    lengths: npt.NDArray[np.int64] = 9 + records_at(data, places, _HEAD_DTYPE)["length"]
    return lengths


def _complete(data: bytes, index: dict[int, npt.NDArray[np.int64]]) -> bool:
    """Say whether an index names messages that fill the whole chunk, each once."""
    found = [np.zeros((0, 2), np.int64)]  # start and end of each message
    for channel, places in index.items():
        if not len(places) or places.min() < 0 or places.max() + MESSAGE_HEAD > len(data):
            return False
        heads = records_at(data, places, _HEAD_DTYPE)
        lengths = 9 + heads["length"]
        if (heads["opcode"] != MESSAGE).any() or (heads["channel"] != channel).any():
            return False
        if (lengths < MESSAGE_HEAD).any() or (lengths > len(data) - places).any():
            return False
        found.append(np.stack([places, places + lengths], axis=1))
    bounds = np.concatenate(found)
    bounds = bounds[np.argsort(bounds[:, 0])]
    edges = np.concatenate([[0], bounds[:, 1]]), np.concatenate([bounds[:, 0], [len(data)]])
    return bool((edges[0] == edges[1]).all())


def _add_index(index: dict[int, npt.NDArray[np.int64]], content: bytes, most: int) -> None:
    """Add the places of a channel's messages, unless damaged or too many: then the chunk is walked instead."""
    if len(content) < 6:
        return
    channel, size = struct.unpack_from("<HI", content)
    if size % 16 == 0 and 6 + size <= len(content) and size // 16 + sum(map(len, index.values())) <= most:
        index[channel] = np.frombuffer(content, "<i8", size // 8, 6)[1::2].astype(np.int64)


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


LATEST_NS = 2**62  # [ns, monotonic clock] a century and a half, so that differences of times fit into 64 bits
MOST = 8_000_000  # most messages of a kind with variable size: seven hours of 300 a second

Decoded = TypeVar("Decoded", Package, Event, Laps, "Settings")


class Settings(NamedTuple):
    """The profile in force from a time on."""

    time: int
    number: int
    profile: dict[str, Any]


def packages_in(file: McapFile) -> list[Package]:
    """Return the packages of a simulator, as they arrived."""
    return _decoded(file, PACKAGE, decode_package)


def events_in(file: McapFile) -> list[Event]:
    """Return the events in order of time."""
    return sorted(_decoded(file, EVENT, decode_event))


def laps_in(file: McapFile) -> list[Laps]:
    """Return what a run went on from of earlier ones, in the order of the file."""
    return _decoded(file, LAPS, decode_laps)


def settings_in(file: McapFile) -> list[Settings]:
    """Return the profiles in force, in the order of the file."""
    return _decoded(file, SETTINGS, _settings)


def _settings(payload: bytes) -> Settings:
    """Return the settings in a payload; raise PacketError if it is not valid."""
    time, number, text = decode_settings(payload)
    try:
        profile = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PacketError(f"{SETTINGS.name}: found a profile that is no JSON: {error}") from error
    if not isinstance(profile, dict):
        raise PacketError(f"{SETTINGS.name}: found a profile of type {type(profile).__name__}, allowed are tables")
    return Settings(time, number, profile)


def _decoded(file: McapFile, topic: Topic, decode: Callable[[bytes], Decoded]) -> list[Decoded]:
    """Return the messages of a topic that can be decoded; count the others as damage."""
    found: list[Decoded] = []
    for payload in file.own_payloads(topic):
        if len(found) == MOST:
            file.damage.add(f"{topic.name}: found more than {MOST} messages, the rest was not read")
            break
        try:
            message = decode(payload)
        except PacketError as error:
            file.damage.add(str(error))
            continue
        if 0 <= message.time < LATEST_NS:
            found.append(message)
        else:
            file.damage.add(f"{topic.name}: a message of the time {message.time} ns")
    return found
