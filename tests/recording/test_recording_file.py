"""Recordings as files: what goes in comes out, other programs read them, damage costs what is damaged and no more."""

import io
import os
import struct

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer
from mcap_ros2.decoder import DecoderFactory
from same_bits import assert_same_bits

from motioncue.core.channels import MOTION_DTYPE, TICK_DTYPE
from motioncue.errors import ConfigError, PacketError
from motioncue.recording.mcap_reader import LARGEST_CHUNK, MAGIC
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.recording import read
from motioncue.recording.schema import Event, Package

SECONDS = 5


def noise(dtype, n, seed):
    """Return rows with another value in every field."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(n, dtype)
    rows.view("f8")[:] = rng.normal(size=rows.nbytes // 8)
    return rows


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a recording of five seconds, flushed after each, and what was written."""
    ticks, frames = noise(TICK_DTYPE, 333 * SECONDS, 1), noise(MOTION_DTYPE, 60 * SECONDS, 2)
    ticks["deadline"] = ticks["cue"]["time"] = np.arange(len(ticks)) * 3_000_030
    frames["time"] = np.arange(len(frames)) * 16_666_667
    for name in ("index", "lateness", "state"):
        ticks[name] = np.arange(len(ticks)) % 7 - (name == "lateness") * 3
    packages = [Package(int(time), i % 3, bytes([i % 251]) * (i % 300)) for i, time in enumerate(frames["time"])]
    events = [Event(i, "transition", "input", "OFFLINE", "ENGAGING é", i, 1.5 * i, -2.0) for i in range(SECONDS)]
    path = tmp_path_factory.mktemp("recording") / "drive.mcap"
    with RecordingWriter(path, epoch_ns=10**18, about={"granted": "realtime"}) as writer:
        writer.settings(0, 0, {"name": "rig", "source": {"system": "beamng"}})
        for second in range(SECONDS):
            writer.ticks(ticks[333 * second : 333 * (second + 1)])
            writer.frames(frames[60 * second : 60 * (second + 1)])
            writer.packages(packages[60 * second : 60 * (second + 1)])
            writer.events(events[second : second + 1])
            writer.flush()
        writer.settings(7, 1, {"name": "rig2"})
    return path, ticks, frames, packages, events


def test_what_goes_in_comes_out(written):
    path, ticks, frames, packages, events = written
    drive = read(path)
    assert_same_bits(drive.ticks, ticks)
    assert_same_bits(drive.motion, frames)
    assert drive.packages == packages
    assert drive.events == events
    assert [row.number for row in drive.settings] == [0, 1]
    assert drive.profile == {"name": "rig", "source": {"system": "beamng"}}
    assert drive.about["granted"] == "realtime"
    assert drive.unreadable == ()


def test_other_programs_decode_every_field(written):
    path, ticks, frames, packages, events = written
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        messages = {}
        for _, channel, message, decoded in reader.iter_decoded_messages():
            messages.setdefault(channel.topic, []).append((message.log_time, decoded))
    assert len(messages["/motioncue/tick"]) == len(ticks)
    for row, (time, message) in list(zip(ticks, messages["/motioncue/tick"], strict=True))[::97]:
        assert time == 10**18 + row["deadline"]
        for name in TICK_DTYPE.names:
            if TICK_DTYPE[name].names is None:
                assert np.array_equal(getattr(message, name), row[name])
            else:
                for inner in TICK_DTYPE[name].names:
                    assert getattr(getattr(message, name), inner) == row[name][inner]
    for row, (_, message) in list(zip(frames, messages["/motioncue/frame"], strict=True))[::31]:
        assert all(getattr(message, name) == row[name] for name in MOTION_DTYPE.names)
    for package, (_, message) in zip(packages, messages["/motioncue/package"], strict=True):
        assert (message.time, message.endpoint, bytes(message.data)) == package
    for event, (_, message) in zip(events, messages["/motioncue/event"], strict=True):
        assert [getattr(message, name) for name in Event._fields] == list(event)


def test_chunks_are_small_and_schemas_are_ros2msg(written):
    with written[0].open("rb") as file:
        records = list(StreamReader(file, emit_chunks=True).records)
    chunks = [record for record in records if type(record).__name__ == "Chunk"]
    assert len(chunks) >= SECONDS
    assert max(chunk.uncompressed_size for chunk in chunks) <= (256 << 10) + 4096
    with written[0].open("rb") as file:
        summary = make_reader(file).get_summary()
    assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
    assert {channel.message_encoding for channel in summary.channels.values()} == {"cdr"}


def test_a_file_cut_anywhere_gives_all_whole_seconds_before_the_cut(written, tmp_path):
    path, ticks, _, _, _ = written
    data = path.read_bytes()
    whole = [0]  # ticks readable when the file ends at each chunk's end
    ends, bounds = [], set()  # ends of chunks, and of all records
    place = len(MAGIC)
    while place < len(data) - len(MAGIC):
        opcode, length = struct.unpack_from("<BQ", data, place)
        place += 9 + length
        bounds.add(place)
        if opcode == 6:
            ends.append(place)
        elif opcode == 15:  # an index follows
            data_end = place
    cut = tmp_path / "cut.mcap"
    for size in sorted({*ends, *(end - 1 for end in ends), *range(ends[-1], len(data), 997)}):
        cut.write_bytes(data[:size])
        try:
            drive = read(cut)
        except PacketError:
            assert size < ends[0]
            continue
        n = len(drive.ticks)
        assert n >= whole[-1]
        assert_same_bits(drive.ticks, ticks[:n])
        assert bool(drive.unreadable) == (size not in bounds and size < data_end)
        whole.append(n)
    assert whole[-1] == len(ticks)


def chunk(size, name, packed):
    content = struct.pack("<QQQI", 0, 0, size, 0) + struct.pack("<I", len(name)) + name
    content += struct.pack("<Q", len(packed)) + packed
    return struct.pack("<BQ", 6, len(content)) + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an MCAP file"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "not a pcap or pcapng file"),
        (MAGIC, "no message"),
        (MAGIC + bytes(100), "opcode 0"),
        (MAGIC + struct.pack("<BQ", 6, 2**63), "cut short"),
        (MAGIC + chunk(2**40, b"", b"x"), "allowed are"),
        (MAGIC + chunk(LARGEST_CHUNK, b"zstd", b"nonsense"), "byte 8"),
        (MAGIC + chunk(5, b"brotli", b"12345"), "'brotli'"),
        (MAGIC + chunk(3, b"", b"12345"), "unpacks to 5"),
    ],
)
def test_what_is_no_recording_is_refused_with_what_was_found(tmp_path, content, message):
    path = tmp_path / "bad.mcap"
    path.write_bytes(content)
    with pytest.raises(PacketError, match=message):
        read(path)


def test_foreign_topics_are_named(tmp_path):
    stream = io.BytesIO()
    writer = Writer(stream, compression=CompressionType.NONE)
    writer.start()
    schema = writer.register_schema("std_msgs/msg/Float64", "ros2msg", b"float64 data")
    writer.add_message(writer.register_channel("/wheel", "cdr", schema), 1, b"\0\1\0\0" + bytes(8), 1)
    writer.finish()
    path = tmp_path / "foreign.mcap"
    path.write_bytes(stream.getvalue())
    with pytest.raises(PacketError, match="/wheel"):
        read(path)


def test_an_existing_file_is_kept_and_the_new_one_gets_a_number(tmp_path):
    path = tmp_path / "drive.mcap"
    path.write_bytes(b"precious")
    for name in ("drive-1.mcap", "drive-2.mcap"):
        with RecordingWriter(path) as writer:
            assert writer.path.name == name
    assert path.read_bytes() == b"precious"
    with RecordingWriter(path, force=True):
        pass
    assert path.read_bytes().startswith(MAGIC)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("place", "words"), [("missing/drive.mcap", "cannot be made: No such file"), (".", "found a folder")]
)
def test_a_file_that_cannot_be_made_is_refused_by_name(tmp_path, place, words, force):
    with pytest.raises(ConfigError, match=words):
        RecordingWriter(tmp_path / place, force=force)


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a file that is open")
def test_a_file_removed_while_it_is_written_is_noticed(tmp_path):
    writer = RecordingWriter(tmp_path / "drive.mcap")
    writer.flush()
    writer.path.unlink()
    with pytest.raises(FileNotFoundError, match="removed"):
        writer.flush()
    writer.abandon()
