"""motioncue on Windows end to end: a simulator that is not Python, the command line, consoles, stand-ins."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from helpers import PACKAGES, WINE, Sink, eventually, free_port, press

from motioncue import Engine, load_profile
from motioncue.cli.operator_input import event_name
from motioncue.output import dk
from motioncue.profile.profile import profile_text
from motioncue.virtual.installation import Installation

pytestmark = [
    pytest.mark.rt,
    pytest.mark.skipif(sys.platform != "win32", reason="Windows pipes, consoles and programs"),
]
programs = pytest.mark.skipif("MOTIONCUE_PROGRAMS" not in os.environ, reason="built by .ci/windows, which says where")

SURGE = 2.0  # the C simulator's, along the body's axes [m/s^2]
PERIOD_NS = round(1e9 / 333.33)


class Started:
    """A process that does not outlive its context."""

    def __init__(self, arguments, **options):
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    def __enter__(self):
        return self.process

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()


def program(name, *arguments):
    """Start a program of tests/windows."""
    return Started([str(Path(os.environ["MOTIONCUE_PROGRAMS"]) / f"{name}.exe"), *arguments])


def command(*arguments, **options):
    """Start a motioncue command, with pipes for a console."""
    return Started([sys.executable, "-m", "motioncue", *arguments], **options)


def printed(process, status=0, encoding="cp1252"):
    """Wait for a process; return what it printed on stdout and stderr; it must have ended with `status`."""
    out, err = (text.decode(encoding, "replace").replace("\r\n", "\n") for text in process.communicate(timeout=60))
    assert process.returncode == status, out + err
    assert "Traceback" not in out + err
    assert "Logging error" not in err
    return out, err


def outcome(process):
    """Wait for a command; return its JSON."""
    return json.loads(printed(process)[0].splitlines()[-1])


def surges(packets):
    """Return the surge in every motion packet of DK."""
    return [float(dk.MOTION.decode(packet)["surge"]) for packet in packets]


@pytest.fixture
def url():
    """Return a pipe of its own."""
    return f"pipe://motioncue-test-{uuid.uuid4().hex[:8]}"


def overrides(url, sink):
    """Return what makes a profile one from a pipe to UDP ports of its own."""
    gauges = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    return [f"source.endpoint={url}", f"output.motion={sink.url}", f"output.gauges={gauges}"]


def run(url, sink, *arguments, **options):
    """Start `motioncue run` from a pipe to UDP ports of its own, in a console of its own."""
    to = [word for override in overrides(url, sink) for word in ("--set", override)]
    return command("run", *to, "--json", *arguments, creationflags=subprocess.CREATE_NEW_CONSOLE, **options)


def profile(url, sink):
    """Return a profile from a pipe to UDP ports of its own."""
    return load_profile("ccd-dk", *overrides(url, sink))


@programs
@pytest.mark.parametrize("name", ["timer", "datagrams", "pipe", "pipe_held", "line"])
def test_calls_to_the_system_are_as_wanted(name):
    with program(name) as process:
        assert printed(process)[0] == "all as wanted\n"


@programs
@pytest.mark.parametrize("how", [(), ("pieces",)], ids=["whole", "pieces"])
def test_a_simulator_that_is_not_python_drives_the_platform(url, how):
    with Sink() as sink:
        with (
            Engine(profile(url, sink)) as engine,
            program("simulator", url.removeprefix("pipe://"), "120", *how) as process,
        ):
            out, _ = printed(process)
        stats = engine.stats()
        packets = sink.all(stats["packets_sent"])
    assert "frames=120 replies=121 connections=1" in out
    assert (stats["frames_received"], stats["replies_sent"], stats["sessions"]) == (120, 121, 1)
    assert stats["rejected"] == {}
    assert max(surges(packets)) == pytest.approx(SURGE, rel=1e-6)
    assert surges(packets)[-1] == 0.0


@programs
def test_a_simulator_killed_in_mid_drive_fades_and_comes_back(url):
    with Sink() as sink, Engine(profile(url, sink)) as engine:
        for drive in range(1, 4):
            with program("simulator", url.removeprefix("pipe://"), "100000"):
                eventually(lambda drive=drive: engine.stats()["sessions"] == drive)
                eventually(lambda: engine.newest()["weight"][0] == 1.0)
            eventually(lambda: engine.newest()["weight"][0] == 0.0)  # it has been killed
        sent = engine.stats()["packets_sent"]
        assert set(surges(sink.all(sent + 10)[sent:])) == {0.0}  # packets keep flowing
        assert engine.stats()["rejected"] == {}


@programs
def test_the_engine_may_be_restarted_under_a_simulator(url):
    with Sink() as sink, program("simulator", url.removeprefix("pipe://"), "1000") as process:
        for _ in range(2):
            with Engine(profile(url, sink)) as engine:
                eventually(lambda engine=engine: engine.stats()["frames_received"] >= 30)
        with Engine(profile(url, sink)):
            out, _ = printed(process)
    assert "connections=3" in out
    assert out.count("lost after frame") == 2


def test_requests_for_punctuality_are_reported(url):
    with Sink() as sink, Engine(profile(url, sink)) as engine:
        eventually(lambda: engine.stats()["granted"])
        granted = engine.stats()["granted"]
    always = {"high_resolution_timer", "timer_throttling_off", "power_throttling_off", "mmcss", "machine_awake"}
    assert set(granted) >= always
    assert all(isinstance(value, bool) for value in granted.values())
    assert ("timer_period_1ms" in granted) == (not granted["high_resolution_timer"])
    assert ("time_critical" in granted) == (not granted["mmcss"])


def test_ticks_are_on_the_grid_in_order_and_never_early(url):
    """Their lateness is left to tests on real Windows."""
    with Sink() as sink, Engine(profile(url, sink), trace=300) as engine:
        eventually(lambda: len(engine.trace) == 300)
        ticks = engine.trace.copy()
    assert (ticks["lateness"] >= 0).all()
    assert (ticks["index"][1:] > ticks["index"][:-1]).all()
    assert (ticks["deadline"] - ticks["deadline"][0] == (ticks["index"] - ticks["index"][0]) * PERIOD_NS).all()


def test_the_rig_of_the_demo_is_a_pipe():
    with Installation("ccd-dk", "still", 0.1) as installation:
        assert installation.profile.source.endpoints[0].startswith("pipe://")


def test_run_and_simulate_meet_at_the_pipe(url):
    with Sink() as sink:
        with (
            run(url, sink) as running,
            command("simulate", "city-car-driving", "--to", url, "--duration", "2", "--json") as simulate,
        ):
            played = outcome(simulate)
            press(running.pid, signal.CTRL_C_EVENT)
            stats = outcome(running)
        packets = sink.all(stats["packets_sent"])
    assert played["frames_sent"] == stats["frames_received"] == 120
    assert played["replies_received"] == stats["replies_sent"] == 121
    assert (stats["sessions"], stats["rejected"]) == (1, {})
    assert surges(packets)[-1] == 0.0


BREAK = pytest.param(
    "CTRL_BREAK_EVENT",
    marks=pytest.mark.skipif(WINE, reason="Wine 8's GenerateConsoleCtrlEvent refuses Ctrl-Break: error 6"),
)


@programs
@pytest.mark.parametrize("key", ["CTRL_C_EVENT", BREAK])
def test_a_console_key_ends_a_run_with_a_fade(url, key):
    with Sink() as sink:
        with run(url, sink) as running, program("simulator", url.removeprefix("pipe://"), "100000"):
            eventually(lambda: surges(sink.packets[-1:]) == [pytest.approx(SURGE)])
            press(running.pid, getattr(signal, key))
            stats = outcome(running)
        packets = sink.all(stats["packets_sent"])
    assert surges(packets)[-1] == 0.0
    assert any(0.0 < surge < 0.9 * SURGE for surge in surges(packets)[-400:])  # on its way to neutral


# The C library calls the handler in a thread of its own; so does this.
RAISE = """
import os, signal, sys, threading, time
from motioncue.cli import main

def press():
    while not os.path.exists(word):  # the test makes it
        time.sleep(0.05)
    signal.raise_signal(signal.SIGBREAK)

word = sys.argv.pop()
threading.Thread(target=press, daemon=True).start()
main()
"""


def test_the_signal_of_ctrl_break_ends_a_run_with_a_fade(url, tmp_path):
    with Sink() as sink:
        to = [word for override in overrides(url, sink) for word in ("--set", override)]
        with Started([sys.executable, "-c", RAISE, "run", *to, "--json", str(tmp_path / "press")]) as running:
            eventually(lambda: sink.packets)
            (tmp_path / "press").touch()
            stats = outcome(running)
    assert stats["packets_sent"] > 0
    assert surges(sink.packets)[-1] == 0.0


# What the system does in a process whose console's window closes: it calls every handler, then ends the process.
CLOSE = """
import ctypes, os, sys, threading, time
from motioncue.cli import main

def close():
    while not os.path.exists(word):
        time.sleep(0.05)
    ctypes.windll.kernelbase.CtrlRoutine(ctypes.c_void_p(event))
    ctypes.windll.kernel32.ExitProcess(99)

event = int(sys.argv.pop())
word = sys.argv.pop()
threading.Thread(target=close, daemon=True).start()
main()
"""


@pytest.mark.parametrize("event", [2, 5, 6], ids=["close", "log off", "shut down"])
def test_a_window_that_closes_ends_a_run_with_a_fade(url, event, tmp_path):
    close = tmp_path / "close"
    with Sink() as sink:
        keys = [*overrides(url, sink), "supervisor.fade_s=8", "supervisor.leave_s=1"]
        to = [word for key in keys for word in ("--set", key)]
        started = Started([sys.executable, "-c", CLOSE, "run", *to, "--json", str(close), str(event)])
        with started as running, command("simulate", "city-car-driving", "--to", url, "--drive", "turns"):
            eventually(lambda: sink.packets and any(surges(sink.packets[-1:])))
            close.touch()
            out, err = (text.decode("utf-8", "replace") for text in running.communicate(timeout=60))
        stats = json.loads(out.splitlines()[-1])
    assert "Traceback" not in err
    assert stats["frames_received"] > 0
    parking, offline = stats["transitions"][-2:]
    assert (parking["reason"], offline["reason"]) == ("end_of_run", "neutral_reached")
    assert offline["t"] - parking["t"] <= 1.0  # not the eight seconds that an operator's end takes
    assert surges(sink.packets)[-1] == 0.0


def ask(name, word):
    """Set the event that requests an operation from a run; return false if it does not exist."""
    kernel = ctypes.windll.kernel32
    kernel.OpenEventW.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenEventW(2, False, event_name(name, word)))  # EVENT_MODIFY_STATE
    return bool(handle.value) and bool(kernel.SetEvent(handle)) and bool(kernel.CloseHandle(handle))


def test_a_run_without_a_console_is_parked_engaged_held_and_ended_by_events(url, tmp_path):
    with Sink() as sink:
        to = [word for override in overrides(url, sink) for word in ("--set", override)]
        (tmp_path / "rig 7.toml").write_text(profile_text("ccd-dk"), encoding="utf-8")
        named = ["--profile", str(tmp_path / "rig 7.toml")]
        arguments = [sys.executable, "-m", "motioncue", "run", *named, *to, "--set", "watch.frozen_s=1000", "--json"]
        with (
            Started(arguments, creationflags=subprocess.DETACHED_PROCESS) as running,
            command("simulate", "city-car-driving", "--to", url, "--drive", "turns"),
        ):
            eventually(lambda: sink.packets and any(surges(sink.packets[-1:])))
            assert ask("rig 7", "park")
            eventually(lambda: not any(surges(sink.packets[-300:])))
            assert ask("rig 7", "engage")
            eventually(lambda: any(surges(sink.packets[-1:])))
            assert ask("rig 7", "hold")
            eventually(lambda: len(set(surges(sink.packets[-100:]))) == 1)
            assert ask("rig 7", "quit")
            stats = outcome(running)
    reasons = [move["reason"] for move in stats["transitions"]]
    assert {"operator_park", "operator_hold", "end_of_run"} <= set(reasons)
    assert surges(sink.packets)[-1] == 0.0


# One process for all commands of an encoding, because starting Python takes most of the time.
SHOW = """
import sys
from motioncue.cli import cli

for command in sys.argv[1:]:
    words, _, status = command.rpartition(" = ")
    try:
        cli(words.split(), "motioncue")
    except SystemExit as end:
        assert end.code == int(status), ascii(command)
        print("-" * 8, flush=True)
"""
SHOWN = [
    "--help = 0", "run --help = 0", "profiles = 0", "profiles show ccd-dk-classical = 0",
    "decode city-car-driving --hex 04000100 = 0", "demo --duration 1.5 = 0", "run --profile Größe→.toml = 2",
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_every_console_encoding_can_show_what_is_printed(encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    with Started([sys.executable, "-c", SHOW, *SHOWN], env=environment) as process:
        out, err = printed(process, encoding=encoding)
    *shown, refused, rest = out.split("--------\n")
    assert len(shown) == len(SHOWN) - 1
    assert all(shown)
    assert (refused, rest) == ("", "")
    assert ".toml" in err


def test_files_may_have_any_name_and_line_ending(tmp_path):
    folder = tmp_path / "Fahrt über die Brücke"
    folder.mkdir()
    (folder / "größe.toml").write_bytes(profile_text("ccd-dk").replace("\n", "\r\n").encode())
    assert load_profile(folder / "größe.toml") == load_profile(folder / "größe.toml", "output.rate_hz=333.33")
    (folder / "straße.bin").write_bytes(b"".join(PACKAGES[:11]))
    with command("decode", "city-car-driving", "--json", str(folder / "straße.bin")) as process:
        assert len(printed(process)[0].splitlines()) == 11
