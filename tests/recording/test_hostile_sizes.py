"""Recordings larger than they look, or that change while they are read: bounded memory, and a count of the rest."""

import struct
import sys
import tracemalloc
import zlib

import lz4.frame
import pytest
import zstandard
from hostile_rig import chunks_of, command, is_part_of, recorded_run
from same_bits import assert_same_bits

from motioncue.errors import PacketError
from motioncue.recording import mcap_reader
from motioncue.recording import packages as packages_of
from motioncue.recording.mcap_reader import MAGIC, PACKED, McapFile
from motioncue.recording.recording import read

pytestmark = pytest.mark.search


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return recorded_run(tmp_path_factory.mktemp("whole") / "drive.mcap")


def chunk(size, name, packed, crc=0):
    content = struct.pack("<QQQI", 0, 0, size, crc) + struct.pack("<I", len(name)) + name
    content += struct.pack("<Q", len(packed)) + packed
    return struct.pack("<BQ", mcap_reader.CHUNK, len(content)) + content


def resident():
    """Return the peak memory of this process [bytes]; 0 if the system does not report it."""
    if sys.platform != "linux":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


PACK = {b"zstd": zstandard.ZstdCompressor(level=3).compress, b"lz4": lz4.frame.compress, b"": bytes}


@pytest.mark.parametrize("name", [b"zstd", b"lz4"])
@pytest.mark.parametrize("says", [64 << 20, 1000, 0, 2**40, 2**63])
def test_a_bomb_takes_no_more_memory_than_allowed(tmp_path, name, says):
    bomb = PACK[name](bytes(64 << 20))
    path = tmp_path / "bomb.mcap"
    path.write_bytes(MAGIC + 10 * chunk(says, name, bomb))
    allowed = mcap_reader.LARGEST_CHUNK + PACKED * path.stat().st_size
    tracemalloc.start()
    before = resident()
    try:
        file = McapFile(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    grown = resident() - before
    held = sum(len(chunk.content) for chunk in file._chunks)
    assert held <= path.stat().st_size
    assert peak <= allowed + (192 << 20)  # one chunk more while it is unpacked, and looked at
    assert grown <= allowed + (256 << 20)
    assert file.damage.count >= (10 if says != 64 << 20 else 10 - allowed // (64 << 20))


@pytest.mark.parametrize("name", [b"zstd", b"lz4", b""])
@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_chunk_that_is_not_as_long_as_it_says_is_counted(tmp_path, name, wrong):
    path = tmp_path / "lying.mcap"
    path.write_bytes(MAGIC + chunk(1000 + wrong, name, PACK[name](bytes(range(250)) * 4)))
    assert McapFile(path).damage.count == 1


@pytest.mark.parametrize("name", [b"zstd", b"lz4", b""])
def test_a_chunk_with_another_checksum_is_not_believed(tmp_path, name):
    data = struct.pack("<BQHIQQ", mcap_reader.MESSAGE, 22, 1, 0, 0, 0)
    path = tmp_path / "checksum.mcap"
    for crc, count in ((zlib.crc32(data), 0), (zlib.crc32(data) ^ 1, 1), (0, 0)):  # 0: no checksum was written
        path.write_bytes(MAGIC + chunk(len(data), name, PACK[name](data), crc))
        assert McapFile(path).damage.count == count


def test_ten_gigabytes_of_nothing_take_neither_memory_nor_time(whole, tmp_path):
    huge = tmp_path / "huge.mcap"
    huge.write_bytes(whole[0].read_bytes()[:-8])
    with huge.open("r+b") as file:
        file.truncate(10 << 30)
    tracemalloc.start()
    drive = read(huge)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert len(drive.ticks) == len(whole[2])
    assert "behind the file's end" in drive.unreadable[0]
    for name in ("check", "decode"):
        result = command(name, huge)
        assert result.exit_code == 0
        assert "behind the file's end" in result.stderr


def sparse(path, heads):
    """Write heads of records at their places into a file that is otherwise holes."""
    with path.open("wb") as file:
        file.write(MAGIC)
        for place, opcode, length in heads:
            file.seek(place)
            file.write(struct.pack("<BQ", opcode, length))
        file.truncate(place + 9 + length)


@pytest.mark.parametrize(
    "opcode",
    [
        mcap_reader.MESSAGE,
        mcap_reader.SCHEMA,
        mcap_reader.CHANNEL,
        mcap_reader.METADATA,
        mcap_reader.MESSAGE_INDEX,
        0x80,
    ],
)
def test_many_large_records_in_a_sparse_file_are_not_all_kept(tmp_path, opcode, monkeypatch):
    """Of half a gigabyte, at most a hundred megabytes may be kept here."""
    monkeypatch.setattr(mcap_reader, "LARGEST_FILE", 100 << 20)
    length = 16 << 20
    path = tmp_path / "sparse.mcap"
    sparse(path, [(8 + n * (9 + length), opcode, length) for n in range(32)])
    tracemalloc.start()
    McapFile(path)
    assert tracemalloc.get_traced_memory()[1] < 3 * (100 << 20)
    tracemalloc.stop()


def test_many_indices_of_one_chunk_are_not_all_kept(tmp_path):
    message = struct.pack("<BQHIQQ", mcap_reader.MESSAGE, 22, 1, 0, 0, 0)
    entries = struct.pack("<QQ", 0, 0) * 100_000
    path = tmp_path / "indices.mcap"
    with path.open("wb") as file:
        file.write(MAGIC + chunk(len(message), b"", message))
        for channel in range(1, 60):
            file.write(
                struct.pack("<BQHI", mcap_reader.MESSAGE_INDEX, 6 + len(entries), channel, len(entries)) + entries
            )
    tracemalloc.start()
    McapFile(path)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_an_index_that_names_a_message_twice_is_not_used(tmp_path):
    first, second = (struct.pack("<BQHIQQ", mcap_reader.MESSAGE, 22 + 5, 1, n, 0, 0) + b"%5d" % n for n in range(2))
    index = struct.pack("<HIQQQQ", 1, 32, 0, 0, 0, 0)
    channel = struct.pack("<HHI1sI3sI", 1, 0, 1, b"t", 3, b"cdr", 0)
    path = tmp_path / "twice.mcap"
    path.write_bytes(
        MAGIC
        + struct.pack("<BQ", mcap_reader.CHANNEL, len(channel))
        + channel
        + chunk(62 + 10, b"", first + second)
        + struct.pack("<BQ", mcap_reader.MESSAGE_INDEX, len(index))
        + index
    )
    assert [payload for _, payload in McapFile(path).stamped(1)] == [b"    0", b"    1"]


@pytest.mark.parametrize("name", ["check", "decode"])
def test_a_recording_of_many_hours_is_taken_by_every_command(whole, monkeypatch, name):
    """Other files are held in memory whole and so refused above a size that hours of a run exceed."""
    expected = command(name, whole[0]).stdout
    monkeypatch.setattr(packages_of, "LARGEST", 1000)
    assert whole[0].stat().st_size > 1000
    assert command(name, whole[0]).stdout == expected


def test_more_messages_than_any_drive_has_are_not_all_read(whole, monkeypatch):
    monkeypatch.setattr(mcap_reader, "MOST", 10)
    drive = read(whole[0])
    assert len(drive.packages) == 10
    assert drive.unreadable == ("/motioncue/package: found more than 10 messages, the rest was not read",)


# Files that change while they are read.


def test_a_file_that_grows_while_it_is_read_gives_what_was_there(whole, tmp_path, monkeypatch):
    content = whole[0].read_bytes()
    half = chunks_of(content)[4][0]
    path = tmp_path / "grows.mcap"
    path.write_bytes(content[:half])
    once = read(path)
    unpacked = mcap_reader._unpacked

    def grows(data):
        with path.open("ab") as file:
            file.write(content[half : half + 1000])
        return unpacked(data)

    monkeypatch.setattr(mcap_reader, "_unpacked", grows)
    drive = read(path)
    assert_same_bits(drive.ticks, once.ticks)
    assert drive.unreadable == once.unreadable == ()


def test_a_file_that_shrinks_while_it_is_read_gives_what_is_left(whole, tmp_path, monkeypatch):
    content = whole[0].read_bytes()
    path = tmp_path / "shrinks.mcap"
    path.write_bytes(content)
    unpacked = mcap_reader._unpacked

    def shrinks(data):
        with path.open("r+b") as file:
            file.truncate(len(content) // 2)
        return unpacked(data)

    monkeypatch.setattr(mcap_reader, "_unpacked", shrinks)
    drive, said = None, ""
    try:
        drive = read(path)
    except PacketError as error:  # Python 3.14's first buffer holds all of this file, so only the second look tells
        said = str(error)
    if drive is None:
        assert "was changed while it was read" in said
    else:
        assert is_part_of(drive.ticks, whole[2])
        assert drive.unreadable
