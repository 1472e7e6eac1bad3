"""A recorder that has lost its file, or cannot begin the next, goes on as soon as it can, and says what was lost."""

import errno
import io
import os
import shutil
from types import SimpleNamespace

import pytest
from helpers import eventually
from recorder_rig import SETTINGS, Disk, Loop, errors, indices

from motioncue.profile.profile import Record
from motioncue.recording import mcap_writer
from motioncue.recording import recorder as recording
from motioncue.recording.recorder import Recorder


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Have the recorder look, flush and try again often."""
    for name, value in {"TAKE_S": 0.002, "FLUSH_S": 0.01, "AGAIN_S": 0.02, "LONGEST_S": 0.1}.items():
        monkeypatch.setattr(recording, name, value, raising=name.startswith(("TAKE", "FLUSH")))


class Descriptors:
    """The system's: as long as there are none, no file can be opened."""

    def __init__(self, monkeypatch):
        self.left, self.asked = True, 0
        opens = mcap_writer.Path.open

        def opened(path, mode):
            self.asked += 1
            if not self.left:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return opens(path, mode)

        monkeypatch.setattr(mcap_writer.Path, "open", opened)


def warnings(caplog):
    return [line.getMessage() for line in caplog.records if line.levelname == "WARNING"]


def test_a_disk_that_has_room_again_gets_another_file_and_what_was_lost_is_said(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(
        mcap_writer.Path, "open", lambda path, mode: io.BufferedWriter(Disk(path, mode.replace("b", "")))
    )
    free = SimpleNamespace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    loop = Loop()
    with Recorder(tmp_path / "drive.mcap", [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: errors(caplog))
        for _ in range(20):
            loop.until(lambda made=loop.made: recorder.counts()["lost"] > made // 2)
        assert len(recorder.paths) == 1  # while the disk is full, none is tried
        free.free = 1 << 30
        monkeypatch.setattr(Disk, "room", 1 << 30)
        loop.until(lambda: warnings(caplog))
        lost = recorder.counts()["lost"]
        loop.tick(100)
    monkeypatch.undo()
    first, second = recorder.paths
    assert warnings(caplog) == [f"recording: goes on in {second}; {lost} records were lost in between"]
    assert len(errors(caplog)) == 1
    counts = recorder.counts()
    assert (counts["lost"], counts["ticks"] + counts["lost"]) == (lost, loop.made)
    found = indices(second)
    assert found == list(range(found[0], loop.made))
    assert found[0] - lost <= len(indices(first))


@pytest.mark.parametrize("roll", [{"roll_mb": 0.1}, {"roll_s": 0.05}])
def test_without_a_descriptor_for_the_next_file_the_one_before_goes_on_and_nothing_is_lost(
    tmp_path, caplog, monkeypatch, roll
):
    descriptors, loop = Descriptors(monkeypatch), Loop()
    with Recorder(Record(file=str(tmp_path / "drive.mcap"), **roll), [loop.ring], SETTINGS) as recorder:
        loop.until(lambda: len(recorder.paths) >= 2)
        descriptors.left, asked = False, descriptors.asked
        loop.until(lambda: descriptors.asked >= asked + 5)
        files = len(recorder.paths)
        assert recorder.counts()["lost"] == 0
        descriptors.left = True
        loop.until(lambda: len(recorder.paths) >= files + 2)
    (said,) = errors(caplog)
    assert "cannot be made: Too many open files; goes on in the file before" in said
    assert recorder.counts()["lost"] == 0
    assert [index for path in recorder.paths for index in indices(path)] == list(range(loop.made))


def test_the_last_seconds_are_written_as_soon_as_there_is_a_descriptor_without_being_asked_again(
    tmp_path, caplog, monkeypatch
):
    descriptors, loop = Descriptors(monkeypatch), Loop()
    with Recorder(Record(file=str(tmp_path / "last.mcap"), last_s=60.0), [loop.ring], SETTINGS) as recorder:
        loop.tick(100)
        descriptors.left = False
        recorder.keep()
        eventually(lambda: descriptors.asked >= 3)
        assert recorder.paths == []
        descriptors.left = True
        eventually(lambda: recorder.counts()["ticks"] == 100)
        (path,) = recorder.paths
        assert indices(path) == list(range(100))
    assert len(errors(caplog)) == 1
    assert recorder.counts()["lost"] == 0
