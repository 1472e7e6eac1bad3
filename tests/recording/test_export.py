"""Exports: another program reads from the file what was recorded, units included."""

import csv
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kept_drives import MAKINGS, path_of

from motioncue.cli import cli
from motioncue.core.channels import CUE, MOTION_DTYPE, TICK_DTYPE
from motioncue.errors import ConfigError
from motioncue.recording.drive import FORMATS, columns, export
from motioncue.recording.recording import Drive, read
from motioncue.recording.schema import Event
from motioncue.safety.supervisor import State

pytestmark = pytest.mark.check

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
    assert export(drive, tmp_path / "ticks.csv", progress=done.append).rows == N
    with (tmp_path / "ticks.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[0] == "t [s]"
    units = {channel.name: channel.unit for channel in CUE}
    assert all(f"cue_{name} [{units[name]}]" in header for name in ("surge", "roll", "surge_displacement", "time"))
    place = header.index("cue_heave [m/s^2]")
    assert [float(row[place]) for row in rows] == drive.ticks["cue"]["heave"].tolist()
    assert done[-1] == N
    assert len(done) > 1


def test_parquet_is_what_pyarrow_reads(drive, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(drive, tmp_path / "ticks.parquet")
    table = parquet.read_table(tmp_path / "ticks.parquet")
    assert table["motion_yaw_rate"].to_numpy().tolist() == drive.ticks["motion"]["yaw_rate"].tolist()
    assert table.schema.field("motion_yaw_rate").metadata == {b"unit": b"rad/s"}


def test_mdf4_is_what_asammdf_reads(drive, tmp_path):
    asammdf = pytest.importorskip("asammdf")
    began = datetime(2026, 5, 17, 12, 30, 15, 250_000, UTC)
    about = {"epoch_ns": str(round(began.timestamp() * 1e6) * 1000)}
    export(drive._replace(ticks=drive.ticks[:0], about=about), tmp_path / "frames.mf4", "frames")
    file = asammdf.MDF(tmp_path / "frames.mf4")
    assert file.start_time.astimezone(UTC) == began
    assert len(file.channels_db["time"]) == 1
    signal = file.get("sway")
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


# A drive with a platform, an operator and changed settings, opened by other programs.

KEPT = path_of("vehicle-physics-pro")


def opened(path):
    """Return the columns of an exported table as its usual reader gives them."""
    if path.suffix == ".csv":
        table = pytest.importorskip("pandas").read_csv(path)
        return {name.split(" [")[0]: values.to_numpy() for name, values in table.items()}
    if path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        return {name: table[name].to_numpy() for name in table.column_names}
    with pytest.importorskip("asammdf").MDF(path) as file:
        return {signal.name: signal.samples for signal in file.iter_channels()}


@pytest.mark.parametrize("ending", FORMATS)
def test_a_drive_with_a_platform_has_the_same_numbers_in_every_program(tmp_path, ending):
    if library := {".parquet": "pyarrow", ".mf4": "asammdf"}.get(ending):
        pytest.importorskip(library)
    drive = read(KEPT)
    assert np.isfinite(drive.ticks["actuators"][:, 0]).any()
    path = export(drive, tmp_path / f"ticks{ending}").path
    found = opened(path)
    legs = [name for name in found if name.startswith("leg_")]
    assert legs == [f"leg_{number}" for number in range(1, 7)]
    for name, _, values in columns(drive.ticks):
        if name == "state":
            assert [text if isinstance(text, str) else text.decode() for text in found[name]] == [
                State(state).name.lower() for state in values.tolist()
            ]
        elif not name.startswith("actuator_"):
            np.testing.assert_array_equal(found[name], values, err_msg=name)  # CSV has every bit too
    for number, name in enumerate(legs):
        np.testing.assert_array_equal(found[name], drive.ticks["actuators"][:, number])


@pytest.mark.parametrize("system", MAKINGS)
def test_the_library_of_mcaps_makers_decodes_every_message_of_ours(system):
    """Its decoder knows nothing of motioncue: it reads the schemas in the file."""
    reader = pytest.importorskip("mcap_ros2.reader")
    drive = read(path_of(system))
    found = {}
    for message in reader.read_ros2_messages(path_of(system)):
        found.setdefault(message.channel.topic.removeprefix("/motioncue/"), []).append(message.ros_msg)
    ticks = drive.ticks
    assert [tick.index for tick in found["tick"]] == ticks["index"].tolist()
    assert [tick.cue.pitch for tick in found["tick"]] == ticks["cue"]["pitch"].tolist()
    np.testing.assert_array_equal([list(tick.actuators) for tick in found["tick"]], ticks["actuators"])
    assert [frame.surge for frame in found["frame"]] == drive.motion["surge"].tolist()
    assert [(each.time, bytes(each.data)) for each in found["package"]] == [(p.time, p.data) for p in drive.packages]
    assert [(each.what, each.reason, each.value) for each in found["event"]] == [
        (event.what, event.reason, event.value) for event in drive.events
    ]


# Files that exist, and writing that fails.


def exported(*arguments):
    return CliRunner().invoke(cli, ["export", str(KEPT), "--to", *map(str, arguments)])


@pytest.mark.parametrize("ending", FORMATS)
def test_an_existing_file_is_replaced_by_force_alone(tmp_path, ending):
    pytest.importorskip({".parquet": "pyarrow", ".mf4": "asammdf"}.get(ending, "csv"))
    path = tmp_path / f"drive{ending}"
    path.write_bytes(b"somebody's table")
    done = exported(path)
    assert done.exit_code == 0, done.output
    assert str(tmp_path / f"drive-1{ending}") in done.stdout
    assert path.read_bytes() == b"somebody's table"
    done = exported(path, "--force")
    assert str(path) in done.stdout
    assert path.read_bytes() == (tmp_path / f"drive-1{ending}").read_bytes() or ending == ".mf4"
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"drive-1{ending}", f"drive{ending}"]


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_recording_is_not_exported_onto_itself(tmp_path):
    source, link = tmp_path / "drive.csv", tmp_path / "link.csv"
    source.write_bytes(KEPT.read_bytes())
    link.symlink_to(source)
    for target in (source, link):
        done = CliRunner().invoke(cli, ["export", str(source), "--to", str(target), "--force"])
        assert done.exit_code == 2
        assert f"--to: found {str(target)!r}, the recording that is read" in done.stderr
    assert source.read_bytes() == KEPT.read_bytes()


LIMITED = """
import resource, signal, sys
from motioncue.recording.drive import export
from motioncue.recording.recording import read
drive = read(sys.argv[1])
drive = drive._replace(ticks=drive.ticks.repeat(30))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    export(drive, sys.argv[2], force=True)
except ValueError as error:
    print(error)
"""


@pytest.mark.search
@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
@pytest.mark.parametrize("ending", FORMATS)
def test_a_disk_that_is_full_leaves_the_folder_as_it_was(tmp_path, ending):
    pytest.importorskip({".parquet": "pyarrow", ".mf4": "asammdf"}.get(ending, "csv"))
    path = tmp_path / f"drive{ending}"
    path.write_bytes(b"somebody's table")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, KEPT, path], capture_output=True, text=True, timeout=300, check=False
    )
    assert f"--to: {str(path)!r} cannot be written: " in done.stdout, done.stderr
    assert path.read_bytes() == b"somebody's table"
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_leaves_nothing_behind(tmp_path, drive):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(drive, tmp_path / "ticks.csv", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_vanishes_is_one_plain_line(tmp_path, drive):
    folder = tmp_path / "gone"
    folder.mkdir()

    def vanish(*_):
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()

    if os.name != "nt":  # where an open file cannot be removed
        with pytest.raises(ConfigError, match="cannot be written: No such file"):
            export(drive._replace(ticks=drive.ticks[:5]), folder / "ticks.csv", progress=vanish)
    assert not Path(folder).exists() or os.name == "nt"


KILLED = """
import os, signal, sys
from motioncue.recording.drive import export
from motioncue.recording.recording import read
export(read(sys.argv[1]), sys.argv[2], progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_what_a_killed_export_leaves_is_no_table_and_goes_with_the_next_one(tmp_path):
    path = tmp_path / "drive.csv"
    done = subprocess.run([sys.executable, "-c", KILLED, KEPT, path], timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".drive-")
    assert left.name.endswith(".part.csv")
    mine = tmp_path / left.name.replace(re.findall(r"-(\d+)-", left.name)[-1], str(os.getpid()))
    others = [tmp_path / f".other{left.name[6:]}", tmp_path / left.name.replace(".part", ""), mine]
    for other in others:
        other.write_bytes(b"somebody's")
    assert exported(path).exit_code == 0
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])
    assert all(other.read_bytes() == b"somebody's" for other in others)


@pytest.mark.parametrize("links", [True, False])
def test_a_table_is_never_written_over_a_file_that_appears_meanwhile(tmp_path, drive, monkeypatch, links):
    path = tmp_path / "ticks.csv"
    if not links:

        def refuses(*_):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuses)
    done = export(drive, path, progress=lambda *_: path.write_bytes(b"somebody's table"))
    assert done.path == tmp_path / "ticks-1.csv"
    assert path.read_bytes() == b"somebody's table"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "ticks-1.csv", path]
