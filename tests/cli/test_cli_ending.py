"""A run ends whether or not its output is read: not at all, slowly, or by a frozen terminal."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading

import pytest
from helpers import Sink, eventually, nowhere, stream_url
from programs import STREAM, SURGE, Feeder
from test_cli_signals import assert_fades, neutral, surge_of

import motioncue
from motioncue.cli.common import ROOM, NonblockingOutput

pytestmark = pytest.mark.rt
fcntl = pytest.importorskip("fcntl", reason="signals and terminals of POSIX")
termios = pytest.importorskip("termios")

ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.fixture
def setup(tmp_path):
    """Return a sink for motion, and a function that starts a run with a simulator."""
    url = stream_url(STREAM, tmp_path)
    with Sink() as motion, contextlib.ExitStack() as running:
        keys = {
            "source.endpoint": url,
            "supervisor.fade_s": "0.5",
            "supervisor.hold_s": "5",  # so that a stall of the machine does not start a fade
            "output.motion": motion.url,
            "output.gauges": nowhere(),
        }
        words = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]

        def run(*arguments, **streams):
            command = [sys.executable, "-m", "motioncue", "run", *words, *arguments]
            streams = {"stdin": subprocess.DEVNULL, "env": {**os.environ, "TERM": "xterm-256color"}, **streams}
            process = running.enter_context(subprocess.Popen(command, **streams))
            running.callback(process.kill)
            running.enter_context(Feeder(url))
            eventually(lambda: motion.packets and surge_of(motion.packets[-1:]) == SURGE)
            return process

        yield motion, run


@pytest.fixture
def full_pipe():
    """Return the end for writing of a pipe into which nothing fits, and the end for reading."""
    read, write = os.pipe()
    flags = fcntl.fcntl(write, fcntl.F_GETFL)
    fcntl.fcntl(write, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    fcntl.fcntl(write, fcntl.F_SETFL, flags)
    yield write, read
    os.close(read)
    os.close(write)


@pytest.fixture
def terminal():
    master, slave = os.openpty()
    yield master, slave
    for end in (master, slave):
        os.close(end)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.check
def test_nobody_reads_what_is_logged(setup, full_pipe, ending):
    motion, run = setup
    process = run("--json", stdout=subprocess.PIPE, stderr=full_pipe[0])
    process.send_signal(ending)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    stats = json.loads(out.splitlines()[-1])
    assert stats["transitions"][-1]["reason"] == "neutral_reached"
    packets = motion.all(stats["packets_sent"])
    assert_fades(surge_of(packets))
    assert neutral(packets[-1])


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.check
def test_the_terminal_is_frozen(setup, terminal, ending):
    """Freezes the terminal as Ctrl-S does: the view stands still, operator and engine do not."""
    motion, run = setup
    master, slave = terminal
    process = run(stdin=slave, stdout=slave, stderr=slave)
    termios.tcflow(slave, termios.TCOOFF)
    os.write(master, b"p")
    eventually(lambda: neutral(motion.packets[-1]))
    os.write(master, b"\re\r")  # Enter ends what might be a word
    eventually(lambda: surge_of(motion.packets[-1:]) == SURGE)
    process.send_signal(ending)
    assert process.wait(60) == 0
    assert neutral(motion.packets[-1])


def test_a_second_signal_ends_a_run_whose_summary_nobody_reads(setup, full_pipe):
    motion, run = setup
    process = run(stdout=full_pipe[0], stderr=subprocess.PIPE)
    process.send_signal(signal.SIGTERM)
    # It has closed its socket, as the last thing before the summary.
    eventually(lambda: writes(process.pid))
    assert neutral(motion.packets[-1])
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert b"Traceback" not in err


def writes(pid):
    """Say whether the main thread of a process is blocked in a write to its standard output."""
    with open(f"/proc/{pid}/syscall") as file:
        call = file.read().split()
    return call[:2] == [{"x86_64": "1", "aarch64": "64"}[os.uname().machine], "0x1"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is full")
@pytest.mark.parametrize("arguments", [(), ("--json",)], ids=["summary", "json"])
def test_no_room_for_the_summary_is_one_line(setup, arguments):
    motion, run = setup
    with open("/dev/full", "w") as full:
        process = run(*arguments, stdout=full, stderr=subprocess.PIPE, text=True)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.splitlines()[-1] == "error: output cannot be written: No space left on device"
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert neutral(motion.packets[-1])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is full")
@pytest.mark.parametrize("command", ["profiles", "--help", "run --help", "decode city-car-driving --hex 04000100"])
@pytest.mark.parametrize("buffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_no_room_for_what_any_command_says_is_one_line(command, buffered):
    words = [sys.executable, "-m", "motioncue", *command.split()]
    environment = {**os.environ, "PYTHONUNBUFFERED": buffered}
    with open("/dev/full", "w") as full:
        result = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=environment)
    assert (result.returncode, result.stderr) == (1, "error: output cannot be written: No space left on device\n")


# Engines of one's own.


def test_a_log_that_blocks_does_not_keep_an_engine_from_its_end(tmp_path):
    blocked, go_on = threading.Event(), threading.Event()

    class Stuck(logging.Handler):
        def emit(self, record):
            if threading.current_thread().name == "motioncue _drain":
                blocked.set()
                go_on.wait(120)

    handler, log = Stuck(), logging.getLogger("motioncue")
    profile = motioncue.load_profile(
        "ccd-dk",
        f"source.endpoint={stream_url(STREAM, tmp_path)}",
        f"output.motion={nowhere()}",
        f"output.gauges={nowhere()}",
    )
    log.addHandler(handler)
    try:
        with motioncue.Engine(profile) as engine, Feeder(profile.source.endpoints[0]):
            assert blocked.wait(60)
        assert engine.stats()["state"] == "OFFLINE"
    finally:
        go_on.set()
        log.removeHandler(handler)


# The output thread.


@pytest.fixture
def pipe():
    """Return a stream into a small pipe, and the end for reading."""
    read, write = os.pipe()
    with open(write, "w", encoding="utf-8", errors="backslashreplace") as stream:
        yield stream, read
    os.close(read)


def read_all(descriptor, until):
    data = b""
    while until not in data:
        data += os.read(descriptor, 65536)
    return data.decode()


def test_texts_arrive_complete_in_order_and_the_stream_stays_open(pipe):
    stream, read = pipe
    output = NonblockingOutput(stream)
    for number in range(500):
        output.write(f"line {number} äöü\n")
    assert output.close()
    stream.write("and on\n")
    stream.flush()
    assert read_all(read, b"and on\n") == "".join(f"line {number} äöü\n" for number in range(500)) + "and on\n"
    assert output.dropped == 0
    assert not output.pending


def test_records_that_do_not_fit_are_counted_and_logged(full_pipe):
    write, read = full_pipe
    with open(write, "w", encoding="utf-8", closefd=False) as stream:
        output = NonblockingOutput(stream)
        output.write("first\n")
        eventually(lambda: not output._texts)  # its write blocks
        for number in range(ROOM + 77):
            output.write(f"{number}\n")
        assert output.pending
        assert not output.close(0.0)
        assert output.dropped == 77
        text = read_all(read, b"dropped: nobody read them in time\n")
        assert text.lstrip("\0").splitlines()[:2] == ["first", "... 77 more were dropped: nobody read them in time"]
        assert output.close(60.0)


def test_a_reader_that_has_gone_is_no_error():
    read, write = os.pipe()
    os.close(read)
    with contextlib.suppress(BrokenPipeError), open(write, "w", encoding="utf-8") as stream:
        output = NonblockingOutput(stream)
        for _ in range(10):
            output.write("nobody reads this\n")
        assert output.close(60.0)


def test_a_stream_that_is_no_file_is_written_to_as_well(capsys):
    output = NonblockingOutput(sys.stderr)
    output.write("captured\n")
    assert output.close(60.0)
    assert capsys.readouterr().err == "captured\n"
