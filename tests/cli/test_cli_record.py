"""Commands that record: flushed data outlive the process, a full disk ends no run, no file is overwritten."""

import contextlib
import os
import signal
import socket
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from engine_rig import Rig
from helpers import FRAMES, INIT_PACKAGE, Sink, eventually, free_port, stream_url
from mcap.exceptions import McapError
from mcap.reader import NonSeekingReader, make_reader
from programs import INTERRUPT, STREAM, Feeder, Program, soon_connected
from same_bits import assert_same_bits

from motioncue.cli import cli
from motioncue.cli import watch as watching
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.terminal import Screen
from motioncue.errors import PacketError
from motioncue.profile.profile import Record, parse_profile, profile_text
from motioncue.recording.recording import read
from motioncue.virtual.installation import recorded_packages

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX")


def ticks_of(path):
    """Return the number of readable ticks in a file; 0 before it exists."""
    try:
        return len(read(path).ticks)
    except PacketError:
        return 0


def by_the_library(path):
    """Return the payloads of ticks that the reference MCAP library reads, up to where a file is cut."""
    found = []
    with path.open("rb") as file:
        try:
            for _, channel, message in NonSeekingReader(file).iter_messages(log_time_order=False):
                if channel.topic == "/motioncue/tick":
                    found.append(message.data[4:])
        except McapError:
            pass
    return found


@pytest.mark.rt
@POSIX
@pytest.mark.check
def test_what_was_flushed_outlives_a_process_that_is_killed(tmp_path):
    path = tmp_path / "drive.mcap"
    with Program("demo", "--record", str(path)) as demo:
        eventually(lambda: ticks_of(path) > 400)
        before = ticks_of(path)
        demo.signal(signal.SIGKILL)
        demo.process.wait(60)
    drive = read(path)
    assert len(drive.ticks) >= before
    assert (np.diff(drive.ticks["index"]) >= 1).all()
    assert len(drive.motion) > 0
    assert len(drive.packages) > 0
    assert drive.profile["name"] == "ccd-hexapod"
    assert by_the_library(path) == [row.tobytes() for row in drive.ticks]


@pytest.mark.rt
@POSIX
@pytest.mark.check
def test_a_run_whose_file_may_grow_no_more_goes_on_in_others_and_says_what_was_lost(tmp_path):
    import resource

    path = tmp_path / "drive.mcap"
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))}
    with Program("demo", "--record", str(path), "--duration", "8", "--json", **limit) as demo:
        stats = demo.end()
        said = [line for line in demo._said if "recording" in line]
    recorded = stats["recorded"]
    assert f"recording: {path}: File too large; the run goes on and records again as soon as it can" in said[0]
    assert f"recording: goes on in {recorded['files'][1]}; " in said[1]
    drives = [read(file) for file in recorded["files"]]
    assert sum(len(drive.ticks) for drive in drives) >= recorded["ticks"] > 0
    assert recorded["lost"] >= stats["packets_sent"] - recorded["ticks"] > 0
    assert stats["state"] == "OFFLINE"
    assert by_the_library(path) == [row.tobytes() for row in drives[0].ticks]


@pytest.mark.check
@pytest.mark.rt
def test_a_recording_that_ended_well_has_an_index_and_the_library_reads_the_same_with_it(tmp_path):
    path = tmp_path / "drive.mcap"
    with Program("demo", "--record", str(path), "--duration", "3", "--json") as demo:
        stats = demo.end()
    drive = read(path)
    assert drive.unreadable == ()
    assert len(drive.ticks) == stats["recorded"]["ticks"] == stats["packets_sent"]
    with path.open("rb") as file:
        indexed = [message.data[4:] for _, _, message in make_reader(file).iter_messages(topics=["/motioncue/tick"])]
    assert indexed == by_the_library(path) == [row.tobytes() for row in drive.ticks]


@pytest.mark.rt
@POSIX
def test_a_signal_and_the_end_write_the_last_seconds(tmp_path):
    url, path = stream_url(STREAM, tmp_path), tmp_path / "last.mcap"
    keys = [
        f"source.endpoint={url}",
        "supervisor.fade_s=0.2",
        *(f"output.{name}=udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}" for name in ("motion", "gauges")),
    ]
    arguments = [item for key in keys for item in ("--set", key)]
    with Program("run", *arguments, "--record", str(path), "--record-last", "3600", "--json") as run, Feeder(url):
        run.says("engaging to running")
        run.signal(signal.SIGALRM)
        eventually(lambda: ticks_of(path) > 0)
        run.signal(INTERRUPT)
        stats = run.end()
    first, last = read(path), read(tmp_path / "last-1.mcap")
    assert stats["recorded"]["ticks"] == len(first.ticks) + len(last.ticks)
    assert stats["recorded"]["lost"] == 0
    assert stats["recorded"]["files"] == [str(path), str(tmp_path / "last-1.mcap")]
    assert len(last.ticks) == stats["packets_sent"]
    assert_same_bits(first.ticks, last.ticks[: len(first.ticks)])
    assert len(last.packages) == stats["frames_received"] + 1  # and init


def test_key_r_asks_for_the_last_seconds_and_changes_nothing_else(monkeypatch):
    asked, typed = [], ["r\r", "h\rr\r", "q\r"]
    keys = SimpleNamespace(active=True, pressed=lambda: typed.pop(0) if typed else "")
    monkeypatch.setattr(watching, "Keys", lambda: contextlib.nullcontext(keys))
    engine = SimpleNamespace(
        profile=parse_profile(profile_text("ccd-dk"), overrides=["supervisor.fade_s=0.1"]),
        over=True,
        stop=lambda wait, leave: asked.append("stop"),
        **{name: lambda name=name: asked.append(name) for name in ("keep", "hold", "engage", "park")},
    )
    watching.watch(engine, lambda *_, **__: None, Screen(live=False), Interrupts(), None)
    assert asked == ["keep", "keep", "hold", "stop"]


@pytest.mark.rt
def test_a_fault_writes_the_last_seconds(tmp_path, monkeypatch):
    fault = {"time": 1, "from": "RUNNING", "to": "FAULT", "reason": "not_finite_cue", "value": 1e309, "limit": 0.0}
    record = Record(file=str(tmp_path / "last.mcap"), last_s=60.0)
    with Rig(tmp_path) as rig, rig.engine(record=record) as engine:
        eventually(lambda: engine.newest()["index"][0] > 50)
        assert engine.recordings == []
        with monkeypatch.context() as patched:
            moves = lambda known=0: ([fault][known:], 1)  # noqa: E731
            patched.setattr(engine._pipeline, "transitions", moves)
            eventually(lambda: ticks_of(tmp_path / "last.mcap") > 0)
        assert len(engine.recordings) == 1
    assert [path.name for path in engine.recordings] == ["last.mcap", "last-1.mcap"]
    assert len(read(engine.recordings[1]).ticks) == engine.stats()["packets_sent"]


@pytest.mark.rt
def test_listen_adds_a_number_to_the_name_of_a_file_that_exists(tmp_path):
    url, file = stream_url(STREAM, tmp_path), tmp_path / "drive.mcap"
    file.write_bytes(b"an hour of driving")
    sent = [INIT_PACKAGE, *FRAMES[:10]]
    with Program("listen", "city-car-driving", "--at", url, "--record", str(file), "--json") as listen:
        listen.says("waiting for")
        with soon_connected(url) as client:
            client.sendall(b"".join(sent))
            eventually(lambda: len(client.recv(4096)) > 0)
        listen.signal(INTERRUPT)
        stats = listen.end()
    assert file.read_bytes() == b"an hour of driving"
    drive = read(tmp_path / "drive-1.mcap")
    assert [package.data for package in drive.packages] == sent[: stats["recorded"]["packages"]]
    assert stats["recorded"]["lost"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["listen", "morai", "--at", f"udp://127.0.0.1:{free_port()}"],
        ["demo", "--duration", "1"],
        ["demo", "--duration", "1", "--record-last", "5"],
    ],
)
def test_a_folder_that_does_not_exist_is_one_plain_line(tmp_path, arguments):
    file = tmp_path / "no" / "drive.mcap"
    result = CliRunner().invoke(cli, [*arguments, "--record", str(file)])
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert line.startswith("error: recording ")
    assert repr(str(file)) in line


@pytest.mark.parametrize("last_s", ["0.5", "3601"])
def test_a_time_that_cannot_be_kept_is_refused(tmp_path, last_s):
    result = CliRunner().invoke(cli, ["demo", "--record", str(tmp_path / "a.mcap"), "--record-last", last_s])
    assert result.exit_code == 2
    assert f"--record-last: found {last_s}, allowed are 1 to 3600 s" in result.stderr
    assert list(tmp_path.iterdir()) == []


# Recordings of a virtual simulator.

PLAYED = {
    "beamng": (2, ["--drive", "turns", "--duration", "1"]),
    "beamng-simulink": (1, ["--drive", "turns", "--duration", "2"]),
    "city-car-driving": (1, ["--recording", "sample", "--duration", "1"]),
    "morai": (3, ["--drive", "turns", "--duration", "1"]),
    "vehicle-physics-pro": (1, ["--drive", "turns", "--duration", "1"]),
}


@pytest.mark.rt
@pytest.mark.parametrize("system", PLAYED)
def test_what_a_simulator_sent_is_recorded_with_its_times_and_every_command_takes_it(system, tmp_path):
    """The engine's side is a listener that records too: both files hold the same bytes."""
    count, played = PLAYED[system]
    stream = system == "city-car-driving"
    urls = [
        stream_url(STREAM, tmp_path) if stream else f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
        for _ in range(count)
    ]
    sent, heard = tmp_path / "sent.mcap", tmp_path / "heard.mcap"
    at, to = ([item for url in urls for item in (option, url)] for option in ("--at", "--to"))
    with Program("listen", system, *at, "--record", str(heard), "--json") as listen:
        listen.says("waiting for")
        with Program("simulate", system, *to, *played, "--record", str(sent), "--json") as simulate:
            stats = simulate.end()
        listen.signal(INTERRUPT)
        listen.end()
    mine, theirs = read(sent), read(heard)
    assert stats["recorded"]["packages"] == len(mine.packages) > 0
    assert stats["recorded"]["lost"] == 0
    own = {(package.endpoint, package.data) for package in mine.packages}
    assert {(package.endpoint, package.data) for package in theirs.packages} <= own
    if stream:  # a stream loses nothing
        assert [package.data for package in mine.packages] == [package.data for package in theirs.packages]
    times = np.array([package.time for package in mine.packages])
    assert (np.diff(times) >= 0).all()
    assert times[0] < times[-1]
    assert mine.profile == {"source": {"system": system, "endpoint": urls}}
    runner = CliRunner()
    for arguments in (["check", str(sent)], ["decode", system, str(sent)]):
        result = runner.invoke(cli, [*arguments, "--json"])
        assert result.exit_code == 0, result.output
    again = [each.package for each in recorded_packages(system, str(sent))]
    assert again == [package.data for package in mine.packages]


@pytest.mark.rt
def test_a_simulator_that_cannot_record_sends_nothing(tmp_path):
    file = tmp_path / "no" / "drive.mcap"
    with Sink() as sink:
        result = CliRunner().invoke(cli, ["simulate", "beamng", "--to", sink.url, "--record", str(file)])
    assert result.exit_code == 2
    assert (
        result.stderr.splitlines()[-1] == f"error: recording {str(file)!r}: cannot be made: No such file or directory"
    )
    assert sink.packets in ([], [b""])
