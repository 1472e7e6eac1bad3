"""Recorded data survive disk and file errors; the loops go on, and losses are counted."""

import errno
import io
import os
import re
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import eventually
from mcap.reader import NonSeekingReader, SeekingReader
from recorder_rig import SETTINGS, Disk, Loop, errors, indices

from motioncue.cli.terminal import recorded
from motioncue.core.channels import TICK_DTYPE
from motioncue.core.threads import KINDS, RecordRing
from motioncue.errors import ConfigError
from motioncue.profile.profile import Record
from motioncue.recording import mcap_writer
from motioncue.recording import recorder as recording
from motioncue.recording.recorder import RING_BYTES, Recorder
from motioncue.recording.recording import read

SAYS_AGAIN = "the run goes on and records again as soon as it can"


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Have the recorder look and flush often."""
    monkeypatch.setattr(recording, "TAKE_S", 0.002)
    monkeypatch.setattr(recording, "FLUSH_S", 0.01)


def library_indices(path, reader=NonSeekingReader):
    """Return the indices of the ticks that the reference MCAP library reads."""
    place = 4 + TICK_DTYPE.fields["index"][1]
    found = []
    with path.open("rb") as file:
        try:
            for _, channel, message in reader(file).iter_messages(log_time_order=False):
                if channel.topic == "/motioncue/tick":
                    found.append(int.from_bytes(message.data[place : place + 8], "little"))
        except Exception:
            if reader is SeekingReader:
                raise
    return found


# The disk.


def test_a_full_disk_costs_what_was_not_flushed_and_is_said_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(
        mcap_writer.Path, "open", lambda path, mode: io.BufferedWriter(Disk(path, mode.replace("b", "")))
    )
    loop = Loop()
    with Recorder(tmp_path / "drive.mcap", [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: errors(caplog))
        loop.tick(100)
    monkeypatch.undo()
    path, counts = recorder.paths[0], recorder.counts()
    assert errors(caplog) == [f"recording: {path}: No space left on device; {SAYS_AGAIN}"]
    found = indices(path)
    assert found == list(range(len(found)))
    assert len(found) >= counts["ticks"] > 0
    assert counts["lost"] == loop.made - counts["ticks"]
    assert recorded(counts).endswith(f"in {path}; {counts['lost']} records were lost")
    assert library_indices(path) == found


def removed(path):
    path.unlink()


def replaced(path):
    path.rename(path.with_suffix(".other"))
    path.write_bytes(b"something else")


def removed_with_its_folder(path):
    shutil.rmtree(path.parent)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
@pytest.mark.parametrize("happens", [removed, replaced, removed_with_its_folder])
def test_a_file_that_is_taken_away_is_said_once_and_the_rest_is_counted(tmp_path, caplog, happens):
    folder, loop = tmp_path / "drives", Loop()
    folder.mkdir()
    with Recorder(folder / "drive.mcap", [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: recorder.counts()["ticks"])
        before = recorder.counts()["ticks"]
        happens(recorder.paths[0])
        loop.until(lambda: errors(caplog))
        loop.tick(100)
    (line,) = errors(caplog)
    assert str(recorder.paths[0]) in line
    assert SAYS_AGAIN in line
    counts = recorder.counts()
    assert counts["ticks"] >= before
    assert counts["ticks"] + counts["lost"] == loop.made
    if happens is replaced:
        assert recorder.paths[0].read_bytes() == b"something else"
        assert len(indices(folder / "drive.other")) >= before


def test_whatever_goes_wrong_in_the_writer_is_said_and_ends_nothing_else(tmp_path, caplog, monkeypatch):
    def fails(*_):
        raise ValueError("packing failed")

    loop = Loop()
    with Recorder(tmp_path / "drive.mcap", [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: recorder.counts()["ticks"])
        monkeypatch.setattr(mcap_writer.RecordingWriter, "ticks", fails)
        loop.until(lambda: errors(caplog))
        loop.until(lambda: recorder.counts()["lost"] > 100)
    assert errors(caplog) == [f"recording: packing failed; {SAYS_AGAIN}"]
    assert recorder.counts()["ticks"] + recorder.counts()["lost"] == loop.made


@pytest.mark.skipif(os.name == "nt" or not os.path.exists("/dev/full"), reason="needs a device without room")
def test_a_disk_that_is_full_from_the_beginning_is_refused():
    with (
        pytest.raises(ConfigError, match="'/dev/full': cannot be written: No space left"),
        Recorder(Record(file="/dev/full", force=True), [], SETTINGS),
    ):
        pass


def test_a_refused_recording_leaves_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(Disk, "room", 100)
    monkeypatch.setattr(
        mcap_writer.Path, "open", lambda path, mode: io.BufferedWriter(Disk(path, mode.replace("b", "")))
    )
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        mcap_writer.RecordingWriter(tmp_path / "drive.mcap")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("last_s", [None, 5.0])
def test_a_folder_that_does_not_exist_is_refused_before_anything_runs(tmp_path, last_s):
    with (
        pytest.raises(ConfigError, match=r"drive\.mcap'.*(No such file|does not exist)"),
        Recorder(Record(file=str(tmp_path / "no" / "drive.mcap"), last_s=last_s), [], SETTINGS),
    ):
        pass


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
@pytest.mark.parametrize("last_s", [None, 5.0])
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_runs(tmp_path, last_s, monkeypatch):
    tmp_path.chmod(0o555)
    if os.geteuid() == 0:  # root may do anything, so fake the refusal
        denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        monkeypatch.setattr(mcap_writer.Path, "open", lambda *_: (_ for _ in ()).throw(denied))
        monkeypatch.setattr(recording.os, "access", lambda *_: False)
    with (
        pytest.raises(ConfigError, match=r"drive\.mcap'.*(Permission denied|cannot be written to)"),
        Recorder(Record(file=str(tmp_path / "drive.mcap"), last_s=last_s), [], SETTINGS),
    ):
        pass
    tmp_path.chmod(0o755)


@pytest.mark.parametrize("rate_hz", [333.33, 1000.0])
@pytest.mark.check
def test_a_disk_that_stalls_for_ten_seconds_loses_nothing(tmp_path, monkeypatch, rate_hz):
    """While a flush hangs, the rings take ten seconds of ticks, and of packages of 2 kB at 400 Hz."""
    asked, goes_on = threading.Event(), threading.Event()
    flush = mcap_writer.RecordingWriter.flush

    def hangs(writer):
        asked.set()
        goes_on.wait(60)
        flush(writer)

    loop, source = Loop(rate_hz), RecordRing(RING_BYTES)
    with Recorder(tmp_path / "drive.mcap", [source, loop.ring], SETTINGS) as recorder:
        monkeypatch.setattr(mcap_writer.RecordingWriter, "flush", hangs)
        assert asked.wait(60)
        packages = sum(source.write(KINDS["package"], n, bytes(2000)) for n in range(4000))
        loop.tick(round(10 * rate_hz))
        goes_on.set()
    counts = recorder.counts()
    assert (counts["lost"], packages, loop.made) == (0, 4000, round(10 * rate_hz))
    assert (counts["ticks"], counts["packages"]) == (loop.made, 4000)
    assert indices(recorder.paths[0]) == list(range(loop.made))


def test_records_that_do_not_fit_into_a_ring_are_counted_and_logged_once(tmp_path, caplog):
    small = RecordRing(4096)
    with Recorder(tmp_path / "drive.mcap", [small], SETTINGS) as recorder:
        wrote = sum(small.write(KINDS["package"], 1, bytes(900)) for _ in range(100))
        eventually(lambda: "too slow" in caplog.text)
        wrote += sum(small.write(KINDS["package"], 1, bytes(900)) for _ in range(100))
    counts = recorder.counts()
    assert (counts["packages"], counts["lost"]) == (wrote, 200 - wrote)
    assert caplog.text.count("too slow") == 1
    assert len(read(recorder.paths[0]).packages) == wrote


# Rolling.


@pytest.mark.parametrize("roll", [{"roll_mb": 0.1}, {"roll_s": 0.05}])
@pytest.mark.check
def test_rolled_files_hold_every_record_once_and_each_can_be_read_alone(tmp_path, roll):
    loop = Loop()
    (tmp_path / "drive-2.mcap").write_bytes(b"of an earlier run")
    with Recorder(Record(file=str(tmp_path / "drive.mcap"), **roll), [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: len(recorder.paths) >= 2)
        recorder.retuned(recording.time.monotonic_ns(), 1, {"name": "changed"})
        loop.until(lambda: len(recorder.paths) >= 5)
        loop.tick(500)
    assert [path.name for path in recorder.paths[:4]] == [f"drive{n}.mcap" for n in ("", "-1", "-3", "-4")]
    drives = [read(path) for path in recorder.paths]
    assert [index for path in recorder.paths for index in indices(path)] == list(range(loop.made))
    assert {drive.about["epoch_ns"] for drive in drives} == {drives[0].about["epoch_ns"]}
    numbers = [[row.number for row in drive.settings] for drive in drives]
    assert numbers[0] == [0]
    assert numbers[-1] == [1]
    assert all(drive.unreadable == () for drive in drives)
    assert (recorder.counts()["ticks"], recorder.counts()["lost"]) == (loop.made, 0)
    for path in recorder.paths:
        assert library_indices(path, SeekingReader) == library_indices(path) == indices(path)


# The last seconds.


class Time(SimpleNamespace):
    """A clock that is set by hand [s], in place of the module `time`."""

    def monotonic_ns(self):
        return round(1e9 * self.now)

    def monotonic(self):
        return self.now

    def time_ns(self):
        return 10**18 + self.monotonic_ns()


@pytest.fixture
def flight(tmp_path, monkeypatch):
    """Return a recorder of the last ten seconds, its loop, and a function that lets time pass; no thread runs."""
    clock = Time(now=100.0)
    monkeypatch.setattr(recording, "time", clock)
    loop = Loop()
    recorder = Recorder(Record(file=str(tmp_path / "last.mcap"), last_s=10.0), [loop.ring], SETTINGS)

    def run(seconds, ticks=100):
        for _ in range(round(10 * seconds)):
            loop.tick(ticks // 10)
            clock.now += 0.1
            recorder._take()

    return recorder, loop, run


def test_only_the_last_seconds_are_written_each_time_they_are_asked_for(flight):
    recorder, loop, run = flight
    run(4)
    recorder._dump()
    run(46)
    recorder._dump()
    recorder._dump()
    first, second, third = (indices(path) for path in recorder.paths)
    assert first == list(range(400))
    assert second == third == list(range(second[0], loop.made))
    assert 10.0 <= len(second) / 100 <= 10.2
    assert recorder.counts()["lost"] == 0
    assert recorder.counts()["ticks"] == 400 + 2 * len(second)


def test_a_flood_keeps_less_than_asked_for_and_counts_what_it_drops(flight, monkeypatch):
    recorder, loop, run = flight
    monkeypatch.setattr(recording, "KEPT_BYTES_S", 10_000)
    run(30)
    assert sum(len(batch.data) for batch in recorder._recent) <= 10 * 10_000
    recorder._dump()
    (kept,) = (indices(path) for path in recorder.paths)
    assert kept == list(range(kept[0], loop.made))
    assert 0 < recorder.counts()["lost"] <= loop.made - len(kept)


def test_settings_in_force_at_the_first_kept_tick_are_written_and_older_ones_forgotten(flight):
    recorder, _, run = flight
    for number in range(1, 41):
        recorder.retuned(recording.time.monotonic_ns(), number, {"name": f"rig {number}"})
        run(1)
    recorder._dump()
    numbers = [row.number for row in read(recorder.paths[0]).settings]
    assert numbers == list(range(numbers[0], 41))
    assert 10 <= len(numbers) <= 12
    assert len(recorder._in_force) == len(numbers)


def test_last_seconds_that_cannot_be_written_stay_in_memory_for_the_next_time(flight, tmp_path, caplog):
    recorder, _, run = flight
    run(5)
    moved = tmp_path.rename(tmp_path.with_name("away"))
    recorder._dump()
    (line,) = errors(caplog)
    assert "the run goes on and keeps the last seconds in memory" in line
    recorder._dump()
    assert recorder.counts()["lost"] == 0
    moved.rename(tmp_path)
    recorder._dump()
    assert indices(recorder.paths[0]) == list(range(500))
    run(20)
    assert (recorder.counts()["lost"], recorder.counts()["ticks"]) == (0, 500)


def test_of_two_recorders_on_one_path_each_has_a_file_of_its_own(tmp_path):
    loops = Loop(), Loop()
    with (
        Recorder(tmp_path / "drive.mcap", [loops[0].ring], SETTINGS) as first,
        Recorder(tmp_path / "drive.mcap", [loops[1].ring], SETTINGS) as second,
    ):
        loops[0].tick(30)
        loops[1].tick(70)
    assert [recorder.paths[0].name for recorder in (first, second)] == ["drive.mcap", "drive-1.mcap"]
    assert [len(indices(recorder.paths[0])) for recorder in (first, second)] == [30, 70]


@pytest.mark.skipif(os.name == "nt", reason="a file that is written cannot be replaced there")
def test_a_recorder_that_replaces_the_file_of_another_ends_that_and_mixes_nothing(tmp_path, caplog):
    loops = Loop(), Loop()
    with Recorder(tmp_path / "drive.mcap", [loops[0].ring], SETTINGS) as first:
        loops[0].until(lambda: first.counts()["ticks"])
        with Recorder(Record(file=str(tmp_path / "drive.mcap"), force=True), [loops[1].ring], SETTINGS) as second:
            loops[0].until(lambda: errors(caplog))
            loops[1].tick(70)
    # Between the old file's end and the new one's beginning it is gone.
    assert re.search("re(plac|mov)ed while it was written; the run goes on and records again", errors(caplog)[0])
    assert second.paths == [tmp_path / "drive.mcap"]
    assert indices(tmp_path / "drive.mcap") == list(range(70))
    assert read(tmp_path / "drive.mcap").unreadable == ()


@pytest.mark.skipif(os.name == "nt", reason="a file that is written cannot be replaced there")
def test_a_recorder_that_replaces_a_file_never_writes_into_one_that_another_makes_meanwhile(tmp_path, monkeypatch):
    path, remove, others = tmp_path / "drive.mcap", Path.unlink, []
    path.write_bytes(b"old")

    def removed(self, missing_ok=False):
        remove(self, missing_ok)
        if not others:
            others.append(self.open("xb"))

    monkeypatch.setattr(Path, "unlink", removed)
    with mcap_writer.RecordingWriter(path, force=True):
        assert os.fstat(others[0].fileno()).st_ino != path.stat().st_ino
    others[0].close()


def test_last_seconds_that_never_could_be_written_are_lost_once(flight, tmp_path):
    recorder, _, run = flight
    run(5)
    tmp_path.rename(tmp_path.with_name("gone"))
    recorder._dump()
    recorder._dump()
    assert recorder.counts()["lost"] == 0
    run(15)
    assert recorder.counts()["lost"] == 500
    recorder._stopping.set()
    recorder._run()
    counts = recorder.counts()
    in_memory = sum(len(recording.sorted_out(batch.data).ticks) for batch in recorder._recent)
    assert (counts["lost"], counts["ticks"]) == (500 + in_memory, 0)


def test_last_seconds_of_which_a_disk_took_a_part_are_counted_when_they_are_written_whole(flight, monkeypatch):
    recorder, _, run = flight
    run(5)
    ticks = mcap_writer.RecordingWriter.ticks

    def full(writer, rows):
        if rows["index"][0] >= 300:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        ticks(writer, rows)

    with monkeypatch.context() as patched:
        patched.setattr(mcap_writer.RecordingWriter, "ticks", full)
        recorder._dump()
    assert (recorder.counts()["lost"], recorder.counts()["ticks"]) == (0, 0)
    recorder._dump()
    assert (recorder.counts()["lost"], recorder.counts()["ticks"]) == (0, 500)
    assert indices(recorder.paths[1]) == list(range(500))


@pytest.mark.check
def test_rings_are_emptied_while_the_last_seconds_are_written(flight, monkeypatch):
    """An hour takes longer to write than the rings hold."""
    recorder, loop, run = flight
    run(10)
    ticks = mcap_writer.RecordingWriter.ticks

    def slow(writer, rows):
        ticks(writer, rows)
        recording.time.now += 1.0
        loop.tick(1000)

    monkeypatch.setattr(mcap_writer.RecordingWriter, "ticks", slow)
    recorder._dump()
    assert recorder.counts()["lost"] == 0
    assert indices(recorder.paths[0]) == list(range(1000))


def test_the_thread_writes_the_last_seconds_when_asked_and_at_the_end(tmp_path):
    loop = Loop()
    with Recorder(Record(file=str(tmp_path / "last.mcap"), last_s=3600.0), [loop.ring], SETTINGS) as recorder:
        loop.tick(50)
        recorder.keep()
        eventually(lambda: recorder.counts()["ticks"])
        assert len(recorder.paths) == 1
        loop.tick(50)
    first, last = (indices(path) for path in recorder.paths)
    assert first == list(range(len(first)))
    assert last == list(range(100))


def test_a_recording_of_the_whole_run_goes_on_when_the_last_seconds_are_asked_for(tmp_path):
    """A fault asks for them, and so does key r."""
    loop = Loop()
    with Recorder(Record(file=str(tmp_path / "whole.mcap")), [loop.ring], SETTINGS) as recorder:
        loop.tick(50)
        recorder.keep()
        eventually(lambda: recorder.counts()["ticks"] == 50)
        loop.tick(50)
    (path,) = recorder.paths
    assert indices(path) == list(range(100))
