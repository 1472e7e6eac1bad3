"""motioncue on Windows end to end: a simulator that is not Python, the command line, consoles, programs of stand-ins."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from helpers import Sink, eventually

import motioncue
from motioncue.protocols import dk

windows = pytest.mark.skipif(sys.platform != "win32", reason="Windows pipes, consoles and programs")
pytestmark = [windows, pytest.mark.rt]

BUILT = "built by .ci/windows, which sets MOTIONCUE_PROGRAMS"
programs = pytest.mark.skipif("MOTIONCUE_PROGRAMS" not in os.environ, reason=BUILT)

SURGE = 2.0  # of the simulator that is not Python, along the body's axes [m/s^2]


def program(name, *arguments, **options):
    """Start a program of tests/windows."""
    path = Path(os.environ["MOTIONCUE_PROGRAMS"]) / f"{name}.exe"
    return subprocess.Popen([path, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **options)


def command(*arguments, **options):
    """Start a motioncue command with pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "motioncue", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def outcome(process, encoding="cp1252"):
    """Wait for a command; return its JSON, its stdout and its stderr; it must have ended well, without a traceback."""
    out, err = (text.decode(encoding).replace("\r\n", "\n") for text in process.communicate(timeout=100))
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return json.loads(out.splitlines()[-1]), out, err


def surges(packets):
    """Return the surge of every motion packet of DK."""
    return [float(fields["surge"]) for fields in (dk.identify(packet).decode(packet) for packet in packets)]


@pytest.fixture
def url():
    """Return a pipe of its own."""
    return f"pipe://motioncue-test-{uuid.uuid4().hex[:8]}"


@programs
@pytest.mark.parametrize("name", ["timer", "datagrams"])
def test_calls_to_the_system_are_as_wanted(name):
    process = program(name)
    assert process.communicate(timeout=60)[0] == "all as wanted\n"
    assert process.returncode == 0


@programs
@pytest.mark.parametrize("how", [(), ("pieces",)], ids=["whole", "pieces"])
def test_a_simulator_that_is_not_python_drives_the_platform(url, how):
    with Sink() as sink:
        profile = motioncue.load_profile("ccd-dk", f"source.endpoint={url}", f"output.motion={sink.url}")
        with motioncue.Engine(profile) as engine:
            process = program("simulator", url.removeprefix("pipe://"), "120", *how)
            out, _ = process.communicate(timeout=60)
            stats = engine.stats()
        packets = list(sink.packets)
    assert process.returncode == 0, out
    assert "frames=120 replies=121 connections=1" in out
    assert (stats["frames_received"], stats["replies_sent"], stats["sessions"]) == (120, 121, 1)
    assert stats["rejected"] == {}
    assert max(surges(packets)) == pytest.approx(SURGE, rel=1e-6)
    eventually(lambda: len(sink.packets) >= stats["packets_sent"])


@programs
def test_a_simulator_killed_in_mid_drive_fades_and_comes_back(url):
    with Sink() as sink:
        profile = motioncue.load_profile("ccd-dk", f"source.endpoint={url}", f"output.motion={sink.url}")
        with motioncue.Engine(profile) as engine:
            for drive in range(1, 4):
                process = program("simulator", url.removeprefix("pipe://"), "100000")
                eventually(lambda drive=drive: engine.stats()["sessions"] == drive)
                eventually(lambda: engine.newest()["weight"][0] == 1.0)
                process.kill()
                process.wait()
                process.stdout.close()
                eventually(lambda: engine.newest()["weight"][0] == 0.0)
            sent = engine.stats()["packets_sent"]
            eventually(lambda: engine.stats()["packets_sent"] > sent + 10)     # packets keep flowing
            assert set(engine.stats()["rejected"]) <= {"stalled"}
        assert surges(list(sink.packets))[-1] == 0.0


@programs
def test_the_engine_may_be_restarted_under_a_simulator(url):
    with Sink() as sink:
        profile = motioncue.load_profile("ccd-dk", f"source.endpoint={url}", f"output.motion={sink.url}")
        process = program("simulator", url.removeprefix("pipe://"), "200")
        for _ in range(2):
            with motioncue.Engine(profile) as engine:
                eventually(lambda engine=engine: engine.stats()["frames_received"] >= 60)
        with motioncue.Engine(profile):
            out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert "connections=3" in out
    assert "lost after frame" in out


def test_what_was_asked_for_to_be_on_time_is_reported(url):
    with motioncue.Engine(motioncue.load_profile("ccd-dk", f"source.endpoint={url}")) as engine:
        eventually(lambda: engine.stats()["granted"])
        granted = engine.stats()["granted"]
    assert set(granted) >= {"high_resolution_timer", "timer_throttling_off", "power_throttling_off", "mmcss"}
    assert all(isinstance(value, bool) for value in granted.values())
    assert ("timer_period_1ms" in granted) == (not granted["high_resolution_timer"])
    assert ("time_critical" in granted) == (not granted["mmcss"])


def test_the_demo_drives_through_a_pipe(url):
    stats, _, err = outcome(command("demo", "--duration", "4", "--json"))
    assert "pipe://" in err
    assert stats["frames_received"] > 60
    assert stats["platform"]["streams"]["motion"]["packets_received"] > 100
    assert stats["rejected"] == {}


def test_run_and_simulate_meet_at_the_pipe(url):
    with Sink() as sink:
        run = command(
            "run", "--set", f"source.endpoint={url}", "--set", f"output.motion={sink.url}", "--duration", "12", "--json"
        )
        simulate = command(
            "simulate", "city-car-driving", "--to", url, "--recording", "sample", "--duration", "3", "--json"
        )
        played, _, _ = outcome(simulate)
        stats, _, _ = outcome(run)
    assert played["replies_received"] == played["frames_sent"] + 1 == 181
    assert stats["frames_received"] == 180
    assert stats["sessions"] == 1
    assert surges(sink.packets)[-1] == 0.0


@pytest.mark.parametrize("name", ["CTRL_C_EVENT", "CTRL_BREAK_EVENT"])
def test_a_console_key_ends_a_run_with_a_fade(url, name):
    """The keys of a console are sent to a command with a console of its own, by a helper that joins that console."""
    with Sink() as sink:
        run = command(
            *("run", "--set", f"source.endpoint={url}", "--set", f"output.motion={sink.url}", "--json"),
            creationflags=subprocess.CREATE_NEW_CONSOLE,
        )
        simulate = command("simulate", "city-car-driving", "--to", url, "--drive", "tour", "--json")
        eventually(lambda: any(value != 0.0 for value in surges(sink.packets[-1:])))
        press(run.pid, name)
        stats, _, _ = outcome(run)
        simulate.kill()
        simulate.communicate()
    assert stats["packets_sent"] > 100
    assert surges(sink.packets)[-1] == 0.0


PRESS = """
import ctypes, sys, time
kernel = ctypes.windll.kernel32
kernel.FreeConsole()
assert kernel.AttachConsole(int(sys.argv[1])), kernel.GetLastError()
kernel.SetConsoleCtrlHandler(None, True)
assert kernel.GenerateConsoleCtrlEvent(int(sys.argv[2]), 0), kernel.GetLastError()
time.sleep(0.5)
"""


def press(pid, name):
    """Press Ctrl-C or Ctrl-Break in another process's console."""
    event = getattr(signal, name)
    subprocess.run(
        [sys.executable, "-c", PRESS, str(pid), str(int(event))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=True,
    )


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii", "utf-8"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",), ("run", "--help"), ("profiles",), ("profiles", "show", "ccd-dk-washout"),
        ("decode", "dk", "--hex", "00"), ("demo", "--duration", "1.5"), ("run", "--profile", "Größe→.toml"),
    ],
    ids=lambda arguments: " ".join(arguments),
)  # fmt: skip
def test_every_console_encoding_can_show_what_is_printed(encoding, arguments):
    process = command(*arguments, env={**os.environ, "PYTHONIOENCODING": encoding})
    out, err = process.communicate(timeout=60)
    assert process.returncode == (2 if arguments[0] == "decode" or arguments[-1].endswith(".toml") else 0)
    for text in (out, err):
        assert "Error" not in text.decode(encoding).replace("Errors", "")
        assert "Traceback" not in text.decode(encoding)


def test_a_profile_and_a_recording_may_have_any_name_and_line_ending(tmp_path):
    folder = tmp_path / "Fahrt über die Brücke"
    folder.mkdir()
    text = motioncue.profile.profile_text("ccd-dk") if hasattr(motioncue, "profile") else ""
    profile = folder / "größe.toml"
    profile.write_bytes(text.replace("\n", "\r\n").encode())
    assert motioncue.load_profile(profile).output.rate_hz == 333.33
    recording = folder / "straße.bin"
    recording.write_bytes(motioncue.recording.read.sample_recording().read_bytes()[: 39 + 10 * 107])
    process = command("decode", "city-car-driving", "--json", str(recording))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(out.splitlines()) == 11


def test_time_keeps_its_mean_rate_and_order():
    """Waits end at or after their deadline, on a grid that does not drift; how late is for real Windows to show."""
    clock = motioncue.kernels.clock.MonotonicClock()
    start = clock.now_ns()
    period = 3_000_030
    with Sink() as sink:
        profile = motioncue.load_profile(
            "ccd-dk", f"source.endpoint=pipe://motioncue-{uuid.uuid4().hex[:8]}", f"output.motion={sink.url}"
        )
        with motioncue.Engine(profile, trace=300) as engine:
            eventually(lambda: len(engine.trace) == 300)
            ticks = engine.trace.copy()
    assert (ticks["lateness"] >= 0).all()
    assert (ticks["deadline"] - ticks["deadline"][0] == (ticks["index"] - ticks["index"][0]) * round(1e9 / 333.33)).all()
    assert (ticks["index"][1:] > ticks["index"][:-1]).all()
    assert ticks["deadline"][0] >= start + period
    assert time.monotonic() > 0
