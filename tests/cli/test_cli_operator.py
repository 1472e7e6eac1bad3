"""The operator of a run: keys on a terminal, signals, and their traces in `--json`."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import Sink, eventually, free_port, stream_url
from programs import INTERRUPT, STREAM, SURGE, WINDOWS, Feeder, Program
from test_cli_signals import neutral, surge_of

from motioncue.cli import watch as watching
from motioncue.cli.operator_input import ENDINGS, REQUESTS, WORDS, Decoder, Interrupts, Keys, operation
from motioncue.cli.terminal import Screen
from motioncue.cli.watch import APART_S, KEYS, WAITS_S, EngineView, Operator, watch
from motioncue.core.channels import TICK_DTYPE
from motioncue.profile.profile import parse_profile, profile_text


class Engine:
    """The methods of an engine that `watch` calls: records requests; reaches neutral a little after it was parked."""

    def __init__(self):
        self.profile = parse_profile(profile_text("ccd-dk"), overrides=["supervisor.fade_s=0.1"])
        self.asked = []
        self.weight = 1.0

    def engage(self):
        self.asked.append("engage")

    def hold(self):
        self.asked.append("hold")

    def park(self):
        self.asked.append("park")
        self.weight = 0.0

    def stop(self, *, wait, leave):
        assert not wait  # the view continues during the fade
        self.asked.append("stop")
        self.weight = 0.0

    @property
    def over(self):
        return self.weight == 0.0


class Typed(Keys):
    """A keyboard on which keys are typed before each look."""

    looks = ()

    def __enter__(self):
        self.left = list(self.looks)
        self.active = True
        return self

    def __exit__(self, *error):
        self.active = False

    def pressed(self):
        return self.left.pop(0) if self.left else ""


@pytest.fixture
def typed(monkeypatch):
    """Return a function that watches an engine while keys are typed, and returns the requests it got."""

    def run(*looks, duration_s=None, requests=()):
        monkeypatch.setattr(Typed, "looks", looks)
        monkeypatch.setattr(watching, "Keys", Typed)
        monkeypatch.setattr(watching, "PERIOD_S", 0.002)  # looks follow each other faster than for people
        engine, interrupts = Engine(), Interrupts()
        interrupts.requests.extend(requests)
        watch(engine, lambda *_, **__: None, Screen(live=False), interrupts, duration_s)
        return engine.asked

    return run


def test_each_key_asks_the_engine_for_its_word(typed):
    asked = typed("h\r", "e", "\n", "p", "\r", "e\r", "\x1b", "\r", "q\r")
    assert asked == ["hold", "engage", "park", "engage", "park", "stop"]


def test_several_keys_at_once_count_in_order(typed):
    assert typed("h\re\r", "q\r") == ["hold", "engage", "stop"]


@pytest.mark.parametrize("text", ["hexa\r", "ehqr", "he\r", "ee\r", "x e\r", "qe", "hold\r"])
def test_a_word_or_a_letter_by_itself_asks_for_nothing(typed, text):
    assert typed(text, "\r", "q\r") == ["stop"]


@pytest.mark.parametrize("text", ["p", "P", "hexapod\r", "type\r", "hope", "\x1b", "e\x1b\r", "ep\r", "з"])
def test_p_and_esc_park_whatever_was_typed_before_and_nothing_else_is_done(typed, text):
    decoder = Decoder()
    assert typed(decoder.feed(text) + decoder.feed(""), "\r", "q\r") == ["park", "stop"]


def test_keys_of_a_word_come_fast_and_a_choice_does_not_wait_for_ever():
    operator = Operator()
    assert operator.asked("p", 10.0) == ["park"]
    assert operator.asked("e", 10.0 + 0.9 * APART_S) == []
    assert operator.asked("\r", 11.0) == []
    assert operator.asked("p", 20.0) == ["park"]
    assert operator.asked("e", 20.0 + APART_S) == []
    assert operator.chosen == "e"
    assert operator.asked("\r", 20.0 + APART_S + 0.9 * WAITS_S) == ["engage"]
    assert operator.asked("e", 40.0) == []
    assert operator.asked("\r", 40.0 + WAITS_S) == []


def test_quitting_is_final(typed):
    assert typed("q\re\r", "e\r", "h\r") == ["stop"]


def test_signals_ask_before_keys_do(typed):
    assert typed("e\r", "q\r", requests=["park", "hold"]) == ["park", "hold", "engage", "stop"]


def test_a_duration_ends_a_run_that_the_operator_holds(typed):
    assert typed("h\r", duration_s=0.3) == ["hold", "stop"]


SEQUENCES = ("\x1b[A", "\x1bOP", "\x1bOH", "\x1bOE", "\x1b[15~", "\x1b[1;5P", "\x1b[H", "\x1b]11;rgb:0/0/0\x07")


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_keys_that_send_sequences_mean_nothing_even_in_pieces(sequence):
    for cut in range(1, len(sequence) + 1):
        decoder = Decoder()
        assert decoder.feed(f"a{sequence[:cut]}") + decoder.feed(f"{sequence[cut:]}b") == "ab"


@pytest.mark.parametrize("sequence", ["\x1b[A", "\x1bOP", "\x1bOH", "\x1bOE", "\x1b[1;5P"])
def test_a_sequence_that_is_torn_by_a_slow_line_is_esc_and_no_letter(sequence):
    for cut in range(1, len(sequence)):
        decoder = Decoder()
        found = [decoder.feed(text) for text in (sequence[:cut], "", "", sequence[cut:], "", "e")]
        assert found == ["", "\x1b", "", "", "", "e"]


@pytest.mark.parametrize(
    ("looks", "keys"),
    [
        (["\x1b", ""], ["", "\x1b"]),
        (["\x1b", "", "", "e"], ["", "\x1b", "", "e"]),
        (["\x1b\x1b", ""], ["\x1b", "\x1b"]),
        (["\x1be", ""], ["\x1b", ""]),  # Alt-E
        (["\x1b\r"], ["\x1b"]),
        (["P", "З", "π"], ["p", "p", "p"]),
    ],
)
def test_esc_is_told_from_the_beginning_of_a_sequence_by_the_next_look(looks, keys):
    decoder = Decoder()
    assert [decoder.feed(text) for text in looks] == keys


def test_without_a_terminal_there_are_no_keys(monkeypatch):
    for stdin in (None, open(os.devnull)):  # noqa: SIM115
        monkeypatch.setattr(sys, "stdin", stdin)
        with Keys() as keys:
            assert not keys.active
            assert keys.pressed() == ""


def test_every_key_and_every_way_to_ask_is_in_the_help():
    text = subprocess.run(
        [sys.executable, "-m", "motioncue", "run", "--help"], capture_output=True, text=True, timeout=60
    ).stdout
    assert re.search(r"^ +p, Esc +park.*at once", text, re.M)
    for key, word in KEYS.items():
        assert re.search(rf"^ +{key} Enter  .*{word}", text, re.M)
    for line in operation(sys.platform).splitlines():
        assert line.strip() in text
    assert "Ctrl-C" in text
    assert "<operation>" not in text


def test_each_systems_help_names_its_own_operations_only():
    posix, windows = operation("linux"), operation("win32")
    assert operation("darwin") == posix
    for name in (*REQUESTS, *ENDINGS):
        assert name in posix or name in ("SIGINT", "SIGBREAK")  # Ctrl-C, and Ctrl-Break on Windows
        assert name not in windows
    for word in ("Ctrl-Break", "window", "shutting down", "motioncue-ccd-dk-quit", *(f"-{word}" for word in WORDS)):
        assert word in windows
        assert word not in posix


@pytest.mark.parametrize("event", [2, 5, 6], ids=["close", "log off", "shut down"])
def test_a_window_that_closes_asks_to_end_and_is_delayed_until_the_end(event):
    with Interrupts(operator="ccd-dk") as interrupts:
        handled = []
        thread = threading.Thread(target=lambda: handled.append(interrupts._closing.handle(event)), daemon=True)
        thread.start()
        eventually(lambda: interrupts.count == 1)
        assert interrupts.asked() == ["quit"]
        assert handled == []  # Windows would end the process now
    thread.join(30)
    assert handled == [True]


def test_the_keys_of_a_console_are_left_to_their_signals():
    with Interrupts() as interrupts:
        assert not interrupts._closing.handle(0)
        assert not interrupts._closing.handle(1)
        assert interrupts.count == 0


def test_requests_come_in_order_and_the_end_goes_on_being_asked_for():
    interrupts = Interrupts(operator="ccd-dk")
    interrupts.requests.extend(["hold", "engage"])
    assert interrupts.asked() == ["hold", "engage"]
    assert interrupts.asked() == []
    interrupts._events.asked = lambda: ["park", "quit"]
    assert interrupts.asked() == ["quit"]
    interrupts._events.asked = list
    assert interrupts.asked() == ["quit"]


@pytest.mark.skipif(WINDOWS, reason="signals of POSIX")
def test_operators_signals_are_requests_and_go_back_to_what_they_were():
    numbers = [getattr(signal, name) for name in REQUESTS]
    before = [signal.getsignal(number) for number in numbers]
    with Interrupts(operator="ccd-dk") as interrupts:
        for number in numbers:
            os.kill(os.getpid(), number)
        eventually(lambda: len(interrupts.requests) == len(numbers))
        assert list(interrupts.requests) == list(REQUESTS.values())
        assert interrupts.count == 0
    assert [signal.getsignal(number) for number in numbers] == before
    with Interrupts():
        assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.skipif(WINDOWS, reason="signals of POSIX")
def test_an_ignored_suspension_stays_ignored():
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        with Interrupts(operator="ccd-dk"):
            assert signal.getsignal(signal.SIGTSTP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTSTP, before)


@pytest.mark.skipif(WINDOWS, reason="a process that ends by a signal")
def test_an_interrupt_while_a_command_is_imported_leaves_no_traceback():
    text = (
        "import motioncue.cli, os, signal, sys\n"
        "motioncue.cli.import_module = lambda name: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['motioncue', 'run']\n"
        "motioncue.cli.main()\n"
    )
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert result.returncode == -signal.SIGINT
    assert result.stdout == result.stderr == ""


def test_commands_get_the_interrupt_as_they_know_it():
    text = (
        "import motioncue.cli, signal, sys\n"
        "sys.argv = ['motioncue', 'profiles']\n"
        "try: motioncue.cli.main()\n"
        "finally: assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


# ---- views of an engine ----------------------------------------------------------------------------------------------


class Told:
    """An engine with given statistics."""

    def __init__(self, **stats):
        tick = np.zeros(1, TICK_DTYPE)
        self.newest = lambda: tick
        self.profile = parse_profile(profile_text("ccd-dk"))
        self.stats = lambda: {
            "frames_received": 10, "packets_sent": 50, "skipped": 0, "rejected": {"not_finite": 1}, "state": "PARKING",
            "outputs": [],
            "lateness_us": dict.fromkeys(("p50", "p99", "p999", "max"), 20.0), "events": {"teleport": 2},
            "limited": {"surge": 0.25, "sway": 0.0}, "send_errors": 0, "unheard": 0,
            "transitions": [{"t": 12.3, "from": "RUNNING", "to": "PARKING", "reason": "teleport"}], **stats,
        }  # fmt: skip


def test_a_view_says_what_the_engine_says():
    shown = EngineView(
        Told(), "title", None, ["12:00:00 warning: running to parking: teleport (9, allowed 1)", "other"]
    )
    view = shown(13.0, operator="hold", keys=True)
    assert view.state == "parking"
    assert dict(view.caught) == {"teleport": 2, "not_finite": 1}
    assert dict(view.limited) == {"surge": 0.25}
    assert list(view.transitions) == [(12.3, "teleport", "parking")]
    assert list(view.messages) == ["other"]
    assert ("operator", "hold") in view.facts[0]


@pytest.mark.parametrize(
    ("state", "operator", "keys", "words"),
    [
        ("RUNNING", "engage", True, ["e engage", "h hold", "p or Esc parks", "q park and quit"]),
        ("RUNNING", "engage", False, ["Ctrl-C"]),
        ("FAULT", "engage", True, ["after a fault only e"]),
        ("PARKING", "quit", True, ["ending"]),
    ],
)
def test_the_hint_says_what_can_be_done(state, operator, keys, words):
    hint = EngineView(Told(state=state), "title", None, [])(1.0, operator=operator, keys=keys).hint
    assert all(word in hint for word in words)


# ---- whole programs --------------------------------------------------------------------------------------------------


@pytest.fixture
def setup(tmp_path):
    """Return an endpoint, a sink for motion, and the arguments of a run with them."""
    url = stream_url(STREAM, tmp_path)
    with Sink() as motion:
        keys = {
            "source.endpoint": url,
            "supervisor.fade_s": "0.2",
            "limits": "none",  # so short a fade of so much is faster than the built-in bounds allow
            "supervisor.hold_s": "5",  # so that a stall of the machine does not start a fade
            "watch.frozen_s": "1000",  # the feeder repeats one state
            "output.motion": motion.url,
            "output.gauges": f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}",
        }
        yield url, motion, ["run", *[item for key, value in keys.items() for item in ("--set", f"{key}={value}")]]


def reasons(stats):
    """Return the reason of a transition."""
    return [move["reason"] for move in stats["transitions"]]


def settled(motion, surge):
    """Say whether the newest packets have this surge; a state is reported a tick or two after its value is reached."""
    newest = motion.packets[-10:]
    return len(newest) == 10 and (surge_of(newest) == surge).all()


@pytest.mark.rt
@pytest.mark.skipif(WINDOWS, reason="signals of POSIX")
def test_signals_hold_engage_and_park_a_run(setup):
    url, motion, arguments = setup
    with Program(*arguments, "--json") as run, Feeder(url):
        eventually(lambda: settled(motion, SURGE))
        run.signal(signal.SIGTSTP)
        eventually(lambda: settled(motion, 0.0))
        run.signal(signal.SIGUSR2)
        eventually(lambda: settled(motion, SURGE))
        run.signal(signal.SIGUSR1)
        time.sleep(0.3)
        run.signal(signal.SIGQUIT)
        stats = run.end()
        packets = motion.all(stats["packets_sent"])
    assert reasons(stats)[:6] == ["input", "cue_reached", "operator_park", "neutral_reached", "input", "cue_reached"]
    assert reasons(stats)[6:8] == ["operator_hold", "end_of_run"]
    assert neutral(packets[-1])
    for move in stats["transitions"]:
        assert set(move) == {"t", "from", "to", "reason"}
    assert (stats["limits"], stats["limited"]) == ("none", {})


if not WINDOWS:
    import pty
    import termios

    @pytest.fixture
    def terminal():
        master, slave = pty.openpty()
        yield master, slave
        for end in (master, slave):
            os.close(end)

    @pytest.mark.rt
    def test_keys_hold_engage_and_park_a_run_and_the_terminal_is_given_back(setup, terminal):
        url, motion, arguments = setup
        master, slave = terminal
        before = termios.tcgetattr(slave)
        with Program(*arguments, "--json", stdin=slave) as run, Feeder(url):
            eventually(lambda: settled(motion, SURGE))
            assert not termios.tcgetattr(slave)[3] & termios.ICANON
            os.write(master, b"p")
            eventually(lambda: settled(motion, 0.0))
            os.write(master, b"\nE\n")
            eventually(lambda: settled(motion, SURGE))
            os.write(master, b"\x1b[Ah\n")  # cursor up means nothing
            time.sleep(0.3)
            os.write(master, b"q\n")
            stats = run.end()
            packets = motion.all(stats["packets_sent"])
        assert termios.tcgetattr(slave) == before
        assert reasons(stats)[2:8] == [
            "operator_park", "neutral_reached", "input", "cue_reached", "operator_hold", "end_of_run",
        ]  # fmt: skip
        assert neutral(packets[-1])

    @pytest.mark.rt
    @pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda s: s.name)
    def test_a_signal_gives_the_terminal_back(setup, terminal, ending):
        _, motion, arguments = setup
        slave = terminal[1]
        before = termios.tcgetattr(slave)
        with Program(*arguments, "--json", stdin=slave) as run:
            motion.all(10)
            eventually(lambda: not termios.tcgetattr(slave)[3] & termios.ICANON)
            run.signal(ending)
            run.end()
        assert termios.tcgetattr(slave) == before

    def test_an_exception_gives_the_terminal_back(terminal, monkeypatch):
        slave = terminal[1]
        before = termios.tcgetattr(slave)
        with open(slave, closefd=False) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            keys = Keys()
            with keys:
                assert keys.active
                assert termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO) == 0
                assert termios.tcgetattr(slave)[3] & termios.ISIG  # Ctrl-C stays a signal
            assert not keys.active
            assert termios.tcgetattr(slave) == before
            with pytest.raises(ZeroDivisionError), keys:
                raise ZeroDivisionError
        assert termios.tcgetattr(slave) == before

    def test_a_terminal_that_goes_away_gives_no_more_keys(monkeypatch):
        master, slave = pty.openpty()
        with open(slave) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            with Keys() as keys:
                os.write(master, b"H")
                eventually(lambda: keys.pressed() == "h")
                os.close(master)
                eventually(lambda: (keys.pressed(), keys.active) == ("", False))

    @pytest.mark.rt
    def test_a_run_in_the_background_leaves_the_terminal_alone(setup, tmp_path):
        """In the background of a job-control shell, reading or changing the terminal would stop the process."""
        url, motion, arguments = setup
        out = tmp_path / "out"
        command = " ".join(map(shlex.quote, [sys.executable, "-m", "motioncue", *arguments, "--json"]))
        script = f"set -m; {command} > {out} 2>&1 & echo $! > {tmp_path / 'pid'}; wait"
        pid, master = pty.fork()
        if pid == 0:
            os.execv("/bin/sh", ["sh", "-c", script])
        try:
            with Feeder(url):
                eventually(lambda: settled(motion, SURGE))
                os.write(master, b"p\nq\n")
                time.sleep(0.3)
                assert settled(motion, SURGE)
                os.kill(int((tmp_path / "pid").read_text()), INTERRUPT)
                eventually(lambda: '"transitions"' in Path(out).read_text())
        finally:
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGCONT)
            os.close(master)
            os.waitpid(pid, 0)
