"""Exports: another program reads from the file what was recorded, units included."""

import csv

import numpy as np
import pytest

from motioncue.errors import ConfigError
from motioncue.motion import CUE, MOTION_DTYPE, TICK_DTYPE
from motioncue.recording.export import export
from motioncue.recording.load import Drive
from motioncue.recording.topics import Event

N = 12_345  # more than one piece, and no multiple of it


@pytest.fixture(scope="module")
def drive():
    rng = np.random.default_rng(4)
    ticks, frames = np.zeros(N, TICK_DTYPE), np.zeros(777, MOTION_DTYPE)
    for rows in (ticks, frames):
        rows.view("f8")[:] = rng.normal(size=rows.nbytes // 8)
    ticks["deadline"] = 10**15 + np.arange(N) * 3_000_030
    for name in ("index", "lateness", "state"):
        ticks[name] = np.arange(N)
    ticks["motion"]["time"] = ticks["cue"]["time"] = 7
    frames["time"] = np.arange(len(frames)) * 16_666_667
    events = [Event(5, "transition", "input", "OFFLINE", "ENGAGING", 1, 2.5, -3.0), Event(9, "intake", "größe")]
    return Drive(frames, ticks, [], events, [], {}, ())


def test_csv_has_units_in_its_header_and_every_bit_in_its_rows(drive, tmp_path):
    done = []
    assert export(drive, tmp_path / "ticks.csv", progress=lambda *counts: done.append(counts)).rows == N
    with (tmp_path / "ticks.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[0] == "t [s]"
    units = {channel.name: channel.unit for channel in CUE}
    assert all(f"cue_{name} [{units[name]}]" in header for name in ("surge", "roll", "surge_displacement", "time"))
    place = header.index("cue_heave [m/s^2]")
    assert [float(row[place]) for row in rows] == drive.ticks["cue"]["heave"].tolist()
    assert done[-1] == (N, N)
    assert len(done) > 1


def test_parquet_is_what_pyarrow_reads(drive, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(drive, tmp_path / "ticks.parquet")
    table = parquet.read_table(tmp_path / "ticks.parquet")
    assert table["motion_yaw_rate"].to_numpy().tolist() == drive.ticks["motion"]["yaw_rate"].tolist()
    assert table.schema.field("motion_yaw_rate").metadata == {b"unit": b"rad/s"}


def test_mdf4_is_what_asammdf_reads(drive, tmp_path):
    asammdf = pytest.importorskip("asammdf")
    export(drive, tmp_path / "frames.mf4", "frames")
    signal = asammdf.MDF(tmp_path / "frames.mf4").get("sway")
    assert signal.samples.tolist() == drive.motion["sway"].tolist()
    assert signal.unit == "m/s^2"
    assert signal.timestamps == pytest.approx(np.arange(777) / 60, abs=1e-6)


def test_events_keep_their_words(drive, tmp_path):
    assert export(drive, tmp_path / "events.csv", "events").rows == 2
    text = (tmp_path / "events.csv").read_text(encoding="utf-8")
    assert "transition,input,OFFLINE,ENGAGING,1,2.5,-3.0" in text
    assert "größe" in text


@pytest.mark.parametrize(
    ("name", "what", "message"),
    [
        ("a.xlsx", "ticks", "found '.xlsx', allowed are .csv, .parquet"),
        ("a.csv", "tick", "found 'tick'"),
        ("missing/a.csv", "ticks", "cannot be written"),
    ],
)
def test_what_cannot_be_exported_is_refused(drive, tmp_path, name, what, message):
    with pytest.raises(ConfigError, match=message):
        export(drive, tmp_path / name, what)


def test_a_recording_without_events_has_none_to_export(drive, tmp_path):
    with pytest.raises(ConfigError, match="no events"):
        export(drive._replace(events=[]), tmp_path / "a.csv", "events")
