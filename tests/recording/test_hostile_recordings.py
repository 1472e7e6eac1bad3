"""Files that are damaged, foreign or malicious: refused by name, or read as far as possible, in bounded memory."""

import io
import json
import os
import struct

import msgspec
import numpy as np
import pytest
from hostile_rig import COMMANDS, PROFILE, chunks_of, command, everything, is_part_of, recorded_run
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType, Writer
from same_bits import assert_same_bits

from motioncue.errors import PacketError
from motioncue.recording import mcap_reader
from motioncue.recording.mcap_reader import MAGIC, McapFile
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.recording import read, read_recording
from motioncue.recording.schema import EVENT, HEADER, PACKAGE, SETTINGS, TICK, Event, bare
from motioncue.virtual.installation import recorded_packages

pytestmark = pytest.mark.search


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return recorded_run(tmp_path_factory.mktemp("whole") / "drive.mcap")


def test_the_whole_file_satisfies_every_command(whole):
    path, packages, ticks = whole
    for name in COMMANDS:
        assert command(name, path).exit_code == 0
    assert [each.package for each in recorded_packages("beamng", str(path))] == [package.data for package in packages]
    assert_same_bits(read(path).ticks, ticks)
    assert read(path).unreadable == ()


# Damage.


@pytest.mark.grid
@pytest.mark.parametrize("phase", range(49))
def test_a_file_cut_at_any_length_gives_what_is_before_the_cut(whole, tmp_path, phase):
    path, packages, ticks = whole
    content, cut = path.read_bytes(), tmp_path / "cut.mcap"
    known, said = 0, []
    for size in range(phase, len(content), 49):
        cut.write_bytes(content[:size])
        try:
            drive = read(cut)
        except PacketError as error:
            said.append((size, str(error)))
            continue
        assert_same_bits(drive.ticks, ticks[: len(drive.ticks)])
        assert drive.packages == packages[: len(drive.packages)]
        assert len(drive.ticks) >= known
        known = len(drive.ticks)
    assert known == len(ticks)
    first = sum(chunks_of(content)[0])
    assert all("cut.mcap" in words and size < first for size, words in said)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 0.5, 0.77, 0.95, 0.99, 0.9999])
def test_every_command_takes_what_is_before_a_cut_or_refuses_it(whole, tmp_path, share):
    content, cut = whole[0].read_bytes(), tmp_path / "cut.mcap"
    cut.write_bytes(content[: round(share * len(content))])
    everything(cut)


def damaged(content, data):
    """Return the contents of a file with up to four changes chosen by hypothesis."""
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 9))
        change = data.draw(st.sampled_from(["flip", "length", "zero", "lose", "twice"]))
        if change == "flip":
            content[place] ^= data.draw(st.integers(1, 255))
        elif change == "length":
            content[place : place + 8] = struct.pack("<Q", data.draw(st.integers(0, 2**64 - 1)))
        elif change == "zero":
            content[place : place + 512] = bytes(len(content[place : place + 512]))
        elif change == "lose":
            del content[place : place + data.draw(st.integers(1, 600))]
        else:
            content[place:place] = content[place : place + data.draw(st.integers(1, 600))]
    return bytes(content)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damage_never_changes_a_value_that_is_read(whole, tmp_path_factory, data):
    path, packages, ticks = whole
    broken = tmp_path_factory.getbasetemp() / "broken.mcap"
    broken.write_bytes(damaged(path.read_bytes(), data))
    try:
        drive = read(broken)
    except PacketError:
        return
    known = {row.tobytes() for row in ticks}
    assert all(row.tobytes() in known for row in drive.ticks)
    assert set(drive.packages) <= set(packages)
    assert drive.unreadable or len(drive.ticks) == len(ticks)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_command_takes_a_damaged_file_or_refuses_it(whole, tmp_path_factory, data):
    broken = tmp_path_factory.getbasetemp() / "broken.mcap"
    broken.write_bytes(damaged(whole[0].read_bytes(), data))
    everything(broken)


@pytest.mark.parametrize("what", ["length", "opcode", "content", "hole"])
@pytest.mark.parametrize("number", [0, 3])
def test_damage_to_a_chunk_costs_that_chunk_and_is_said(whole, tmp_path, caplog, what, number):
    path, _, ticks = whole
    content = bytearray(path.read_bytes())
    place, size = chunks_of(content)[number]
    if what == "length":
        content[place + 1 : place + 9] = struct.pack("<Q", 2**40)
    elif what == "opcode":
        content[place] = 0
    elif what == "content":
        content[place + size // 2] ^= 255
    else:
        content[place : place + size] = bytes(size)
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(content)
    drive = read(broken)
    lost = 0 if number == 0 else len(ticks) // 8 + 1  # the first chunk holds the settings
    assert len(ticks) - lost <= len(drive.ticks) <= len(ticks)
    assert is_part_of(drive.ticks, ticks)
    assert any(f"byte {place}" in line for line in drive.unreadable)
    assert bool(drive.settings) == (number != 0)
    result = command("check", broken)
    timing = json.loads(result.output.splitlines()[-1])["timing"]
    assert timing["rejected"]["unreadable"] >= 1
    assert f"byte {place}" in result.stderr
    assert f"byte {place}" in command("decode", broken).stderr
    caplog.clear()
    recorded_packages("beamng", str(broken))
    assert f"byte {place}" in caplog.text


def test_what_is_behind_the_end_of_a_file_is_counted(whole, tmp_path):
    two = tmp_path / "two.mcap"
    content = whole[0].read_bytes()
    two.write_bytes(content + content)
    drive = read(two)
    assert len(drive.ticks) == len(whole[2])
    assert drive.unreadable == (f"byte {len(content)}: {len(content)} bytes behind the file's end were not read",)


def test_a_hundred_findings_are_told_and_the_others_counted(tmp_path):
    nothing = struct.pack("<BQ", mcap_reader.CHUNK, 3) + b"abc"
    path = tmp_path / "nothing.mcap"
    path.write_bytes(MAGIC + 1000 * nothing)
    damage = McapFile(path).damage
    assert damage.count == 1000
    assert len(damage.texts()) == 101
    assert damage.texts()[-1] == "and 900 more"


def test_damage_everywhere_is_not_searched_for_ever(tmp_path, monkeypatch):
    """Behind each of many false heads there is an apparent name of a packing."""
    searched = []
    following = mcap_reader._next_chunk
    monkeypatch.setattr(mcap_reader, "_next_chunk", lambda *where: searched.append(1) or following(*where))
    false = struct.pack("<BQ", mcap_reader.CHUNK, 40) + bytes(28) + b"\4\0\0\0zstd" + bytes(4)
    path = tmp_path / "false.mcap"
    path.write_bytes(MAGIC + 2000 * (false + b"\0"))
    assert McapFile(path).damage.count > 100
    assert len(searched) <= 100


# Foreign files.


def mcap_of(topics, packing=CompressionType.ZSTD):
    """Return an MCAP file: for each topic its schema's name and text, and payloads with their times."""
    stream = io.BytesIO()
    writer = Writer(stream, compression=packing)
    writer.start()
    for topic, (name, text, payloads) in topics.items():
        channel = writer.register_channel(topic, "cdr", writer.register_schema(name, "ros2msg", text.encode()))
        for time, payload in payloads:
            writer.add_message(channel, max(time, 0), payload, max(time, 0))
    writer.finish()
    return stream.getvalue()


def own(topic, payloads, text=None):
    return {topic.name: (topic.schema, topic.text if text is None else text, payloads)}


def refused_or_read(tmp_path, content):
    path = tmp_path / "foreign.mcap"
    path.write_bytes(content)
    everything(path)
    return path


@pytest.mark.parametrize(
    "content", [b"", b"\x89", MAGIC, b"\x89PNG\r\n\x1a\n" + bytes(50), b"time,surge\n0,1\n", b"{}"]
)
def test_what_is_no_recording_is_refused_by_every_command(tmp_path, content):
    path = refused_or_read(tmp_path, content)
    for name in COMMANDS:
        result = command(name, path)
        assert result.exit_code == 2
        assert "foreign.mcap" in result.stderr


def test_a_folder_a_device_and_a_missing_file_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing.mcap", *([os.devnull] if os.name == "posix" else [])):
        for name in COMMANDS:
            assert command(name, path).exit_code == 2
        with pytest.raises(PacketError, match=str(path)):
            read(path)


def test_an_mcap_file_of_somebody_else_is_refused_with_its_topics(tmp_path):
    wheel = {"/wheel": ("std_msgs/msg/Float64", "float64 data", [(1, HEADER + bytes(8))])}
    path = refused_or_read(tmp_path, mcap_of(wheel))
    for name in COMMANDS:
        assert "/wheel" in command(name, path).stderr
    with pytest.raises(PacketError, match="found no package; topics /wheel; allowed is at least one package of beamng"):
        read_recording(path, "beamng")


FEWER = bare(TICK.text).replace("float64 weight\n", "", 1)
TURNED = bare(TICK.text).replace("int64 index\nint64 deadline", "int64 deadline\nint64 index", 1)


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [
        (FEWER, TICK.dtype.itemsize - 8, "found no other field, missing is float64 weight"),
        (bare(TICK.text) + "\nint64 wobble", TICK.dtype.itemsize + 8, "found int64 wobble, missing is none"),
        (TURNED, TICK.dtype.itemsize, "found its fields in another order"),
        ("", TICK.dtype.itemsize, "found no schema"),
    ],
)
def test_ticks_of_another_version_are_named_and_never_misread(tmp_path, text, size, words):
    ticks = own(TICK, [(n, HEADER + bytes(size)) for n in range(5)], text)
    events = own(EVENT, [(1, load_event())])
    path = refused_or_read(tmp_path, mcap_of({**ticks, **events}))
    drive = read(path)
    assert len(drive.ticks) == 0
    assert len(drive.events) == 1
    (line,) = drive.unreadable
    assert line == f"/motioncue/tick: 5 messages of another version: {words}"
    result = command("replay", path)
    assert result.exit_code == 2


def load_event():
    from motioncue.recording.schema import encode_event

    return encode_event(Event(1, "connected", ""))


def test_a_file_of_which_nothing_can_be_read_is_refused(tmp_path):
    path = refused_or_read(tmp_path, mcap_of(own(TICK, [(1, HEADER + bytes(8))], "int64 other")))
    with pytest.raises(PacketError, match="found nothing that can be read: /motioncue/tick: 1 messages of another"):
        read(path)


def settings_payload(text):
    data = text.encode() + b"\0"
    return HEADER + struct.pack("<qqI", 1, 0, len(data)) + data


@pytest.mark.parametrize("text", ["{", "[]", "7", "null", "[" * 100_000, "{}", '{"source": 3}', '{"source": {}}'])
def test_settings_that_are_none_are_counted_or_refused(whole, tmp_path, text):
    ticks = whole[2]
    rows = [(int(row["deadline"]), HEADER + row.tobytes()) for row in ticks[:20]]
    topics = own(SETTINGS, [(1, settings_payload(text))]) | own(TICK, rows)
    path = refused_or_read(tmp_path, mcap_of(topics))
    assert len(read(path).ticks) == 20
    for name in ("replay", "replay with other settings"):
        assert command(name, path).exit_code == 2


EXTREMES = [0, 1, -1, 2**31, 2**62, -(2**62), 2**63 - 1, -(2**63)]


@pytest.mark.grid
@pytest.mark.parametrize("seed", range(56))
def test_ticks_and_packages_of_any_numbers_can_be_replayed(whole, tmp_path, seed):
    rng = np.random.default_rng(seed)

    def extreme():
        return int(rng.choice(EXTREMES)) if rng.random() < 0.7 else int(rng.integers(-(2**63), 2**63 - 1))

    made = np.zeros(10, TICK.dtype)
    for row in made:
        for name in ("index", "deadline", "frames", "operation", "settings", "state"):
            row[name] = extreme()
    made[0]["index"], made["deadline"][:5] = 0, rng.integers(0, 2**62, 5)
    sent = [(1, package_payload(extreme(), package.data)) for package in whole[1][:40]]
    topics = (
        own(SETTINGS, [(1, settings_payload(json.dumps(msgspec.to_builtins(PROFILE))))])
        | own(TICK, [(1, HEADER + row.tobytes()) for row in made])
        | own(PACKAGE, sent)
    )
    refused_or_read(tmp_path, mcap_of(topics))


def package_payload(time, data):
    return HEADER + struct.pack("<qII", time, 0, len(data)) + data


def test_times_that_go_back_are_counted(whole, tmp_path):
    _, packages, ticks = whole
    order = [0, 1, 2, 5, 4, 3, 6]
    path = tmp_path / "back.mcap"
    with RecordingWriter(path) as writer:
        writer.settings(1, 0, msgspec.to_builtins(PROFILE))
        writer.ticks(ticks[order])
        writer.packages([packages[n] for n in (0, 40, 20, 10)])
    assert read(path).unreadable == (
        "/motioncue/tick: times go back 2 times",
        "/motioncue/package: times go back 2 times",
    )
    everything(path)
