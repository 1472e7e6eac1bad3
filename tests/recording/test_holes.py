"""Records that are missing: written into the recording, and said by whoever reads it."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import eventually
from kept_drives import path_of
from recorder_rig import SETTINGS, Loop, errors, indices
from same_bits import assert_same_bits

from motioncue.cli import cli
from motioncue.cli.terminal import recorded
from motioncue.core.channels import CHASSIS_DTYPE
from motioncue.core.threads import KINDS, RecordRing
from motioncue.engine import replay
from motioncue.engine.replay import repeat
from motioncue.errors import PacketError
from motioncue.profile.profile import Record
from motioncue.recording import mcap_writer
from motioncue.recording import recorder as recording
from motioncue.recording.mcap_reader import McapFile
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.recorder import Recorder
from motioncue.recording.recording import read, read_pieces
from motioncue.recording.schema import Hole

KEPT = path_of("beamng")


@pytest.fixture
def hurried(monkeypatch):
    """Have the recorder look, flush and try again often."""
    for name, value in {"TAKE_S": 0.002, "FLUSH_S": 0.01, "AGAIN_S": 0.02, "LONGEST_S": 0.1}.items():
        monkeypatch.setattr(recording, name, value)


def test_records_without_room_in_memory_are_a_hole_at_their_place(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=1.0)
    clock.monotonic_ns, clock.monotonic, clock.time_ns = (
        lambda: round(1e9 * clock.now),
        lambda: clock.now,
        lambda: 10**18,
    )
    monkeypatch.setattr(recording, "time", clock)
    ring = RecordRing(4096)
    recorder = Recorder(tmp_path / "drive.mcap", [ring], SETTINGS)
    recorder._open()
    for now, count in ((2.0, 2), (3.5, 9), (4.0, 1)):  # four of 916 bytes fit
        for number in range(count):
            ring.write(KINDS["package"], round(1e9 * now) - count + number, bytes(900))
        clock.now = now
        recorder._take()
    recorder._close()
    drive = read(recorder.paths[0])
    assert drive.holes == [Hole(2_000_000_000, 3_500_000_000, 5, "memory")]
    assert drive.unreadable == ("5 records are missing between 0.000 s and 1.500 s: the disk was too slow",)
    assert recorder.counts()["lost"] == 5
    assert len(drive.packages) == 7


def test_a_disk_that_fails_for_a_while_leaves_a_hole_between_two_files(tmp_path, monkeypatch, hurried):
    flush, broken = mcap_writer.RecordingWriter.flush, threading.Event()

    def fails(writer):
        if broken.is_set():
            raise OSError(28, "No space left on device")
        flush(writer)

    monkeypatch.setattr(mcap_writer.RecordingWriter, "flush", fails)
    loop = Loop()
    with Recorder(tmp_path / "drive.mcap", [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: recorder.counts()["ticks"])
        broken.set()
        loop.until(lambda: recorder.counts()["lost"])
        broken.clear()
        loop.until(lambda: len(recorder.paths) > 1)
        loop.tick(10)
    lost = recorder.counts()["lost"]
    drive = read(*reversed(recorder.paths))
    (hole,) = drive.holes
    assert (hole.reason, hole.records) == ("disk", lost)
    assert len(drive.ticks) >= loop.made - lost  # of what was not flushed, some was written
    assert f"{lost} records are missing between" in drive.unreadable[0]
    assert drive.unreadable[0].endswith("the file could not be written")
    assert f"{lost} records were lost" in recorded(recorder.counts())


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_files_the_one_with_the_damage_is_named(tmp_path, hurried, order):
    loop = Loop()
    with Recorder(Record(file=str(tmp_path / "drive.mcap"), roll_s=0.2), [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: len(recorder.paths) > 1)
        loop.tick(10)
    first, files = recorder.paths[0], recorder.paths[::order]
    first.write_bytes(first.read_bytes()[: first.stat().st_size // 2])
    whole, (piece, *_) = read(*files), read_pieces(*files)
    assert whole.unreadable
    for text in (*whole.unreadable, *piece.unreadable):
        assert text.startswith(f"'{first}': byte ")
    said = CliRunner().invoke(cli, ["export", *map(str, files), "--to", str(tmp_path / "x.csv")])
    assert f"\n'{first}': byte " in "\n" + said.stderr


def test_losses_are_counted_in_full_when_the_disk_never_answers(tmp_path, monkeypatch, hurried, caplog):
    asked, ends = threading.Event(), threading.Event()
    flush = mcap_writer.RecordingWriter.flush

    def hangs(writer):
        if len(loop_made) and loop_made[0]:
            asked.set()
            ends.wait(60)
        flush(writer)

    loop_made = [0]
    monkeypatch.setattr(mcap_writer.RecordingWriter, "flush", hangs)
    monkeypatch.setattr(recording, "PATIENCE_S", 0.05)
    loop = Loop()
    with Recorder(tmp_path / "drive.mcap", [loop.ring], SETTINGS) as recorder:
        loop_made[0] = loop.tick(100).made
        assert asked.wait(60)
        loop.tick(200)
    counts = recorder.counts()
    assert (counts["ticks"], counts["lost"]) == (0, 300)
    assert errors(caplog) == ["recording: the disk does not answer; 300 records that it has not taken are lost"]
    ends.set()
    eventually(lambda: recorder.counts()["ticks"] == 300)  # it answers after all
    assert recorder.counts()["lost"] == 0
    recorder._thread.join(60)
    assert indices(recorder.paths[0]) == list(range(300))


def torn(tmp_path, first, last):
    """Write a kept drive without the records from one tick up to another, and with the hole instead."""
    drive = read(KEPT)
    begin, end = drive.ticks["deadline"][[first, last]].tolist()
    path = tmp_path / "torn.mcap"
    with RecordingWriter(path, epoch_ns=int(drive.about["epoch_ns"])) as writer:
        for row in drive.settings:
            writer.settings(*row)
        writer.packages([row for row in drive.packages if not begin <= row.time < end])
        hole = Hole(begin, end, last - first, "disk")
        writer.events(sorted([*drive.events, hole.event()]))
        writer.frames(drive.motion[(drive.motion["time"] < begin) | (drive.motion["time"] >= end)])
        writer.ticks(np.delete(drive.ticks, slice(first, last)))
    return drive, path


def test_verify_compares_up_to_a_hole_and_says_so(tmp_path):
    drive, path = torn(tmp_path, 300, 360)
    begin, end = ((drive.ticks["deadline"][place] - drive.zero) * 1e-9 for place in (300, 360))
    done = CliRunner().invoke(cli, ["replay", str(path), "--verify"])
    said = f"60 records are missing between {begin:.3f} s and {end:.3f} s: the file could not be written"
    assert f"up to a hole, every bit: {said}" in " ".join(done.output.split())
    assert done.exit_code == 1
    assert "ticks 300" in " ".join(done.output.split())


def test_a_replay_goes_on_behind_a_hole_with_what_had_arrived(tmp_path):
    drive, path = torn(tmp_path, 300, 360)
    done = CliRunner().invoke(cli, ["replay", str(path), "--record", str(tmp_path / "again.mcap")])
    assert done.exit_code == 0, done.output
    assert "60 records are missing" in done.output
    again = read(tmp_path / "again.mcap")
    assert again.ticks["index"].tolist() == np.delete(drive.ticks["index"], slice(300, 360)).tolist()
    assert [hole.records for hole in again.holes] == [60]
    # The last tick of the drive reads the last frame, as in the run: nothing is read ahead of its time.
    assert again.ticks["motion"]["frame_time"][-1] == drive.ticks["motion"]["frame_time"][-1]
    # What frames in the hole would have told of the time between frames is not known for a while.
    assert again.ticks["motion"]["speed"][-1] == pytest.approx(drive.ticks["motion"]["speed"][-1], rel=1e-7)


def test_a_run_killed_before_its_first_second_was_written_is_named_as_such(tmp_path):
    recorder = Recorder(tmp_path / "drive.mcap", [], SETTINGS)
    recorder._open()  # and then nothing
    drive = read(recorder.paths[0])
    (said,) = drive.unreadable
    assert said.startswith("the run was killed before the first second of it was written")
    file, table = str(recorder.paths[0]), str(tmp_path / "drive.csv")
    for words in (["replay", file], ["check", file], ["export", file, "--to", table]):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 2
        assert said in done.output
    with pytest.raises(PacketError, match="killed before the first second"):
        repeat(drive)


# Files that are removed while a long run goes on.


@pytest.mark.check
def test_a_run_of_days_keeps_within_its_size_and_what_is_left_reads_as_one(tmp_path, hurried):
    loop = Loop()
    record = Record(file=str(tmp_path / "days.mcap"), keep_mb=10.0, roll_mb=1.0)
    with Recorder(record, [loop.ring], SETTINGS) as recorder:
        recorder._keep_bytes, recorder._roll_bytes = 500_000, 100_000
        loop.until(lambda: recorder.counts()["removed"] >= 3)
        loop.tick(500)
    assert sorted(tmp_path.iterdir()) == sorted(recorder.paths)
    assert sum(path.stat().st_size for path in recorder.paths) <= 500_000
    assert "older files were removed" in recorded(recorder.counts())
    drive = read(*recorder.paths)
    index = drive.ticks["index"].tolist()
    assert index == list(range(index[0], loop.made))
    assert drive.unreadable == ()
    pieces = list(read_pieces(*recorder.paths))
    assert [number for piece in pieces for number in piece.ticks["index"].tolist()] == index
    out = tmp_path / "days.csv"
    done = CliRunner().invoke(cli, ["export", *map(str, recorder.paths), "--to", str(out)])
    assert done.exit_code == 0, done.output
    assert len(out.read_text().splitlines()) == 1 + len(index)


def test_pieces_hold_what_the_whole_holds(monkeypatch):
    whole = read(KEPT)
    monkeypatch.setattr(McapFile.parts, "__defaults__", (20_000,))
    pieces = list(read_pieces(KEPT))
    assert len(pieces) > 1
    assert all(len(piece.ticks) < len(whole.ticks) for piece in pieces)
    assert all(piece.profile in [row.profile for row in whole.settings] for piece in pieces)
    for name in ("motion", "ticks"):
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        assert_same_bits(joined, getattr(whole, name))
    assert [package for piece in pieces for package in piece.packages] == whole.packages
    assert sorted(event for piece in pieces for event in piece.events) == whole.events


def test_what_was_in_memory_is_written_in_the_order_of_a_run(tmp_path, monkeypatch):
    """So that it is read in pieces as a run is: with the same zero, and all from the same time together."""
    drive = read(KEPT)
    chassis = np.zeros(len(drive.motion), CHASSIS_DTYPE)
    chassis["time"] = drive.motion["time"]
    monkeypatch.setattr(replay, "ROWS", 100)
    path = replay.keep(drive._replace(chassis=chassis), tmp_path / "kept.mcap", about=drive.about)
    again = read(path)
    for name in ("motion", "ticks", "chassis"):
        assert_same_bits(getattr(again, name), {"chassis": chassis}.get(name, getattr(drive, name)))
    assert (again.packages, again.events) == (drive.packages, drive.events)
    monkeypatch.setattr(McapFile.parts, "__defaults__", (20_000,))
    first, *others = read_pieces(path)
    assert others
    assert first.zero == drive.zero
    assert len(first.motion) < len(drive.motion) / 2
