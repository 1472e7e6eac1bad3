"""Laps kept from run to run: the next one begins with what the last one felt; no file, and no disk, does any harm."""

import errno
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from contextlib import nullcontext

import numpy as np
import pytest
from helpers import eventually
from test_along import PACKET, RATE_HZ, SPEED, driven, error, felt_at, rough_at

import motioncue
from motioncue.core.channels import AHEAD_S
from motioncue.core.clock import FakeClock
from motioncue.engine import laps as keeping
from motioncue.engine.along import LARGEST, Recalled
from motioncue.engine.assembly import load_profile
from motioncue.engine.embed import Feeder
from motioncue.engine.laps import LapKeeper, laps_file, read_laps, write_laps
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.replay import first_difference, repeat
from motioncue.errors import PacketError
from motioncue.profile.profile import KeptLaps, Record

START = 1_000_000_000
ROW = struct.Struct("<dddfffffffffffi")  # time, place, heading, speed, what was felt, whether it begins anew
MOST_ROWS = 1 << 16


def profile_of(*overrides):
    tables = {"source": {"packet": PACKET}, "platform": {"preset": "box-large"}}
    return load_profile("program-dk", "cueing.algorithm=predictive", "limits=none", *overrides, tables)


def session(rows, folder, *overrides, car=None, record=None, after=lambda pipeline, index: None):
    """Return the pipeline and the keeper of a run on a clock that takes no time, ended."""
    clock = FakeClock(START)
    pipeline = Pipeline(profile_of(*overrides), clock, trace=20_000)
    feeder = Feeder(pipeline.intake, clock)
    at = [0]
    says = None if car is None else lambda: car[at[0]]
    laps = KeptLaps(folder=str(folder), name="ring")
    keeper = LapKeeper(laps, "", pipeline.emitter.along, pipeline.recall, says)
    with nullcontext() if record is None else pipeline.record(Record(file=str(record)), {}):
        for index, row in enumerate(rows):
            at[0] = index
            keeper.look(index / RATE_HZ)
            after(pipeline, index)
            pipeline.emitter.run(until_ns=START + round(index * 1e9 / RATE_HZ))
            feeder.feed(row.tobytes())
            if record is not None and index % 100 == 0:  # seconds pass faster than a disk writes
                eventually(lambda: not any(ring.waiting for ring in pipeline.recorder._rings))
        keeper.end()
    return pipeline, keeper


def kept(*rows, mark=b"motioncue laps 1", count=None):
    """Return a file of rows: 16 bytes of mark and version, how many, their CRC-32, the rows."""
    body = b"".join(ROW.pack(*row) for row in rows)
    return mark + struct.pack("<II", len(rows) if count is None else count, zlib.crc32(body)) + body


def straight(number, **changed):
    """Return a row of a straight drive to the north at 20 m/s."""
    named = {"time": 0.04 * number, "north": 0.8 * number, "speed": 20.0, "surge": 0.0, "heading": 1.0, **changed}
    place, heading = (named["north"], 0.0), (named["heading"], 0.0)
    return (named["time"], *place, *heading, named["speed"], named["surge"], *[0.0] * 7, int(number == 0))


def test_a_second_session_begins_with_what_the_first_learned(tmp_path):
    rows, _, _ = driven(SPEED, 1.05 * SPEED, felt=rough_at)
    first, keeper = session(rows, tmp_path)
    assert keeper.counts()["written"] == 1
    assert keeper.counts()["rows"] == 0
    lap = rows[:1250]
    second, keeper = session(lap, tmp_path)
    assert keeper.counts()["rows"] > 800
    plain, _ = session(lap, tmp_path / "another")
    missed, before = (error(pipeline, lap, 7.0, 22.0) for pipeline in (second, plain))
    assert missed < 0.8 * before
    assert missed < 1.1 * error(first, rows, 32.0, 47.0)  # the first one's second lap, a little faster


def test_what_is_told_in_the_first_lap_is_what_was_felt_there(tmp_path):
    rows, way, _ = driven(SPEED, SPEED)
    session(rows, tmp_path)
    second, _ = session(rows[:450], tmp_path)
    told = second.emitter.along.newest()
    expected = felt_at(way[449] + SPEED * np.array(AHEAD_S))
    for name, size in (("surge", 2.0), ("sway", 3.0), ("roll", 0.03), ("yaw_rate", 0.25)):
        np.testing.assert_allclose(told[name][:5], expected[name][:5], atol=0.12 * size, err_msg=name)


def test_a_replay_needs_no_file_and_has_the_same_bits(tmp_path):
    """A car that changes, and settings that replace those with which laps came before a tick has taken them."""
    rows, _, _ = driven(SPEED, SPEED, felt=rough_at)
    session(rows, tmp_path / "laps", car=["a"] * len(rows))
    session(rows[:600], tmp_path / "laps", car=["b"] * 600)
    cars = ["a"] * 650 + ["b"] * 550  # its laps come a second later, at 700

    def retune(pipeline, index):
        if index in (0, 300, 700):
            pipeline.retune(f"cueing.weights.travel={0.3 + index * 1e-4}")

    run, keeper = session(rows[:1200], tmp_path / "laps", car=cars, record=tmp_path / "run.mcap", after=retune)
    assert keeper.counts()["errors"] == 0
    for file in (tmp_path / "laps").iterdir():
        file.unlink()
    drive = motioncue.read(tmp_path / "run.mcap")
    assert [laps.number for laps in drive.laps] == [1, 4]
    assert first_difference(drive.ticks, run.emitter.trace[: len(drive.ticks)]) is None
    assert first_difference(drive.ticks, repeat(drive).ticks) is None
    assert first_difference(drive.ticks, repeat(drive._replace(laps=())).ticks) is not None
    with pytest.raises(PacketError, match=r"laps in the recording: found no mark"):
        repeat(drive._replace(laps=(drive.laps[0]._replace(data=b"hostile"),)))


GOOD = [straight(number) for number in range(100)]
HOSTILE = {
    "empty": b"",
    "noise": np.random.default_rng(1).bytes(5000),
    "another version": kept(*GOOD, mark=b"motioncue laps 9"),
    "cut": kept(*GOOD)[:-7],
    "too long": kept(*GOOD) + b"0",
    "a wrong count": kept(*GOOD, count=2**32 - 1),
    "a bit": kept(*GOOD)[:500] + b"\xff" + kept(*GOOD)[501:],
    "no number": kept(*GOOD, straight(100, surge=np.nan)),
    "infinity": kept(*GOOD, straight(100, north=np.inf)),
    "too much": kept(*GOOD, straight(100, surge=1e30)),
    "back in time": kept(*GOOD, straight(100, time=0.0)),
    "no speed": kept(*GOOD, straight(100, speed=0.0)),
    "no direction": kept(*GOOD, straight(100, heading=50.0)),
    "far too large": bytes(LARGEST + 1),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_said_and_changes_no_bit(tmp_path, caplog, data):
    rows, _, _ = driven(SPEED)
    plain, _ = session(rows[:200], tmp_path)
    path = laps_file(KeptLaps(folder=str(tmp_path), name="ring"), "", None)
    path.write_bytes(data)
    run, keeper = session(rows[:200], tmp_path)
    assert keeper.counts()["errors"] == 1
    assert keeper.counts()["rows"] == 0
    assert "the run goes on without" in caplog.text
    assert str(path) in caplog.text
    assert first_difference(plain.emitter.trace, run.emitter.trace) is None
    assert len(Recalled(read_laps(path))) > 50  # it is replaced by what was driven


def test_a_good_file_of_these_bytes_is_taken(tmp_path):
    assert len(Recalled(kept(*GOOD))) == len(GOOD)
    assert Recalled(kept(*GOOD)).data() == kept(*GOOD)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_what_is_no_plain_file_is_not_opened(tmp_path):
    rows, _, _ = driven(SPEED)
    path = laps_file(KeptLaps(folder=str(tmp_path), name="ring"), "", None)
    os.mkfifo(path)  # opened, it would wait for a writer
    _, keeper = session(rows[:50], tmp_path)
    assert keeper.counts()["errors"] == 1


def test_a_file_that_lies_does_no_harm(tmp_path):
    """Another track of this name: the same way with forces of opposite signs."""
    rows, _, _ = driven(SPEED, SPEED, felt=rough_at)
    lie = rows.copy()
    for name in ("surge", "sway"):
        lie["motion"][name] *= -1.0
    session(lie, tmp_path / "laps")
    run, keeper = session(rows[:1250], tmp_path / "laps")
    plain, _ = session(rows[:1250], tmp_path / "none")
    assert keeper.counts()["rows"] > 800
    assert error(run, rows[:1250], 1.0, 24.0) < 1.03 * error(plain, rows[:1250], 1.0, 24.0)


def test_a_file_never_has_more_than_the_newest_rows(tmp_path):
    path = laps_file(KeptLaps(folder=str(tmp_path), name="ring"), "", None)
    write_laps(path, kept(*(straight(number) for number in range(MOST_ROWS))))
    rows, _, _ = driven(SPEED)
    session(rows[:500], tmp_path)
    data = path.read_bytes()
    assert len(data) <= LARGEST
    assert len(Recalled(data)) == MOST_ROWS - 2  # one could be half written, another not yet counted
    newest = ROW.unpack(data[-ROW.size :])
    assert np.hypot(newest[1], newest[2]) == pytest.approx(60.0, abs=0.1)  # the circle's
    oldest = ROW.unpack(data[24 : 24 + ROW.size])
    assert oldest[2] == 0.0
    assert oldest[1] > 0.8 * 150  # as many of the first ones have made room as came in 10 s


def test_each_car_has_its_file_and_one_that_is_not_named_none(tmp_path, caplog):
    rows, _, _ = driven(SPEED)
    cars = [None] * 100 + ["lotus/49"] * 300 + [7] * 150 + [8, 9] * 5 + [7] * 140  # 8 and 9 in a menu
    session(rows[:700], tmp_path, car=cars)
    laps = KeptLaps(folder=str(tmp_path), name="ring")
    paths = [laps_file(laps, "", car) for car in ("lotus/49", 7)]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert [path.name[:10] for path in paths] == ["ring-lotus", "ring-7.lap"]
    for path, seconds in zip(paths, (9, 5), strict=True):  # what came before the car was named is the first one's
        assert 16 * seconds < len(Recalled(path.read_bytes())) <= 25 * seconds
    _, keeper = session(rows[:100], tmp_path / "none", car=[None] * 100)
    assert "has not said which car" in caplog.text
    assert keeper.counts()["errors"] == 1
    assert not (tmp_path / "none").exists()


def test_the_last_seconds_of_a_run_have_its_laps_once(tmp_path):
    rows, _, _ = driven(SPEED)
    session(rows[:500], tmp_path / "laps")
    clock = FakeClock(START)
    pipeline = Pipeline(profile_of(), clock, trace=20_000)
    feeder = Feeder(pipeline.intake, clock)
    keeper = LapKeeper(
        KeptLaps(folder=str(tmp_path / "laps"), name="ring"), "", pipeline.emitter.along, pipeline.recall
    )
    with pipeline.record(Record(file=str(tmp_path / "run.mcap"), last_s=60.0), {}):
        for index, row in enumerate(rows[:300]):
            keeper.look(index / RATE_HZ)
            pipeline.emitter.run(until_ns=START + round(index * 1e9 / RATE_HZ))
            feeder.feed(row.tobytes())
        pipeline.recorder.keep()
    size = len((tmp_path / "laps" / "ring.laps").read_bytes())
    for path in pipeline.recorder.paths:
        (laps,) = motioncue.read(path).laps
        assert len(laps.data) == size
        assert first_difference(motioncue.read(path).ticks, repeat(motioncue.read(path)).ticks) is None


def test_names_stay_inside_the_folder_and_apart():
    laps = KeptLaps(folder="laps", name="../../etc/passwd")
    names = [laps_file(laps, "", car) for car in (None, "a/b", "a_b", "\0", "é" * 500)]
    assert len({name.name for name in names}) == len(names)
    assert {name.parent.name for name in names} == {"laps"}
    assert all(len(os.fsencode(name.name)) < 200 for name in names)
    assert laps_file(KeptLaps(folder="laps"), "rig", None).name == "rig.laps"


def test_a_disk_that_is_full_is_said_once_and_the_old_file_stays(tmp_path, caplog, monkeypatch):
    rows, _, _ = driven(SPEED, SPEED)
    session(rows[:1000], tmp_path)
    path = laps_file(KeptLaps(folder=str(tmp_path), name="ring"), "", None)
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(keeping, "EVERY_S", 5.0)
    _, keeper = session(rows, tmp_path)
    assert keeper.counts()["errors"] > 5
    assert caplog.text.count("cannot be written: No space left") == 1
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before
    monkeypatch.undo()
    keeper.write()  # there is room again
    assert len(Recalled(path.read_bytes())) > len(Recalled(before))


def test_a_folder_that_cannot_be_made_is_said(tmp_path, caplog):
    (tmp_path / "file").write_text("no folder")
    rows, _, _ = driven(SPEED)
    _, keeper = session(rows[:200], tmp_path / "file" / "laps")
    # To write, and to read; but on Windows nothing is found behind a file, and that is how a first run begins.
    assert keeper.counts()["errors"] == (1 if sys.platform == "win32" else 2)
    assert keeper.counts()["written"] == 0
    assert "cannot be written" in caplog.text


def test_a_disk_that_does_not_answer_holds_nobody_up(tmp_path, caplog, monkeypatch):
    rows, _, _ = driven(SPEED)
    run, _ = session(rows[:200], tmp_path)
    answers = threading.Event()
    monkeypatch.setattr(keeping, "write_laps", lambda path, data: answers.wait())
    monkeypatch.setattr(keeping, "PATIENCE_S", 0.05)
    keeper = LapKeeper(KeptLaps(folder=str(tmp_path / "other")), "rig", run.emitter.along, run.recall)
    keeper.look(0.0)
    with keeper:
        pass
    answers.set()
    assert keeper.counts()["errors"] == 1
    assert "the disk does not answer" in caplog.text


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="a signal that kills")
def test_a_run_that_is_killed_while_it_writes_leaves_a_whole_file(tmp_path):
    path = tmp_path / "ring.laps"
    data = kept(*(straight(number) for number in range(50_000)))
    (tmp_path / "data").write_bytes(data)
    code = (
        "import pathlib, sys; from motioncue.engine.laps import write_laps\n"
        "folder = pathlib.Path(sys.argv[1]); data = (folder / 'data').read_bytes()\n"
        "while True: write_laps(folder / 'ring.laps', data)"
    )
    for wait_s in (0.0, 0.003, 0.01, 0.02):
        path.unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as process:
            eventually(path.exists)
            time.sleep(wait_s)
            process.send_signal(signal.SIGKILL)
        assert len(Recalled(read_laps(path))) == 50_000
    write_laps(path, data)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "ring.laps"]  # what was left is removed


@pytest.mark.rt
def test_an_engine_keeps_its_laps_and_begins_with_them(tmp_path):
    rows, _, _ = driven(SPEED)
    profile = profile_of(f"laps.folder={tmp_path}", "output.motion=udp://127.0.0.1:9", "laps.name=ring")
    for begins in (False, True):
        with motioncue.Engine(profile) as engine:
            if begins:
                eventually(lambda engine=engine: engine.stats()["laps"]["rows"] > 0)
            for row in rows[:30]:
                engine.feed(row.tobytes())
                time.sleep(1 / RATE_HZ)
        assert engine.stats()["laps"]["written"] == 1
        assert engine.stats()["laps"]["errors"] == 0
    assert len(Recalled((tmp_path / "ring.laps").read_bytes())) > 15
