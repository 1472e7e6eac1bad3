"""``motioncue tell``: what another terminal of the same user may ask of a run."""

import contextlib
import json
import os
import socket
import threading

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import eventually, free_port
from programs import INTERRUPT, WINDOWS, Program

from motioncue.cli import cli
from motioncue.cli import tell as telling
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.tell import LARGEST, Hearing, folder, known_runs, reach
from motioncue.core.channels import TICK_DTYPE
from motioncue.engine.assembly import load_profile
from motioncue.engine.pipeline import changed
from motioncue.safety.supervisor import Platform


class Running:
    """An engine that only notes what it is asked to change."""

    def __init__(self):
        self.profile = self.requested = load_profile("ccd-dk-classical")

    def retune(self, change):
        self.requested = self.profile = changed(self.profile, change)

    def stats(self):
        said = {"received": 7, "refused": 0, "skipped": 0, "emergency_stop": True, "temperature": 41.5, "text": "AL 14"}
        return {"state": "RUNNING", "outputs": [{"endpoint": "serial://COM3", "replies": said}, {"endpoint": "a"}]}

    def newest(self):
        tick = np.zeros(1, TICK_DTYPE)
        tick["operation"] = Platform.STOPPED | Platform.STANDS
        return tick


@pytest.fixture(params=["sockets", "ports"])
def mine(request, tmp_path, monkeypatch):
    """Use a folder of our own for runs, and one of both ways to reach them."""
    if WINDOWS and request.param == "sockets":
        pytest.skip("Python has no Unix sockets on Windows")
    monkeypatch.setattr(telling, "PORTS", request.param == "ports")
    for name in ("XDG_RUNTIME_DIR", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def raw(message):
    """Return what a run answers to bytes; none if it answers nothing."""
    with socket.socket(socket.AF_INET if telling.PORTS else socket.AF_UNIX) as client:
        word = reach(known_runs()[0], client)
        client.settimeout(10)
        try:
            client.sendall(message if message.startswith(b"stranger") else word + message)
            client.shutdown(socket.SHUT_WR)
            return client.recv(LARGEST)
        except TimeoutError:
            raise
        except OSError:  # the run has closed it, before or after all was sent
            return b""


@pytest.fixture
def run(mine):
    """Return a run that hears, and what it was asked."""
    engine, interrupts = Running(), Interrupts()
    with Hearing(engine, interrupts):
        yield engine, interrupts


def tell(*words):
    result = CliRunner().invoke(cli, ["tell", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def gain(engine):
    return engine.profile.cueing.surge.gain


def test_operations_go_the_way_of_keys_and_signals(run):
    engine, interrupts = run
    assert "ccd-dk-classical" in tell().stdout
    assert tell().stdout.rstrip().endswith("running; platform: EMERGENCY STOP, 42 °C, says 'AL 14'")
    for words in (["park"], ["hold", "engage"], ["keep"]):
        assert tell(*words).exit_code == 0
        assert interrupts.asked() == words
    assert tell("quit").exit_code == 0
    assert interrupts.asked() == ["quit"]
    assert interrupts.count == 1
    assert engine.profile == load_profile("ccd-dk-classical")


def test_settings_change_together_or_not_at_all(run):
    engine, _ = run
    before = gain(engine)
    answer = json.loads(tell(f"cueing.surge.gain={0.8 * before}", "limits.surge.value_m_s2=24", "--json").stdout)
    assert answer["runs"][0]["process"] == os.getpid()
    assert gain(engine) == pytest.approx(0.8 * before)
    assert engine.profile.limits.surge.value_m_s2 == 24
    result = tell(f"cueing.surge.gain={0.7 * before}", "cueing.surge.gian=1")
    assert (result.exit_code, "cueing.surge.gian" in result.stderr) == (2, True)
    assert gain(engine) == pytest.approx(0.8 * before)


def test_what_could_be_a_slip_needs_a_word_more(run):
    engine, _ = run
    before = gain(engine)
    for slip in (-before, 3 * before):
        result = tell(f"cueing.surge.gain={slip}")
        assert (result.exit_code, "--sure" in result.stderr, gain(engine)) == (2, True, before)
    assert tell(f"cueing.surge.gain={-before}", "--sure").exit_code == 0
    assert gain(engine) == -before


def test_parking_does_not_wait_for_settings_that_are_refused(run):
    _, interrupts = run
    assert tell("park", "no.key=1").exit_code == 2
    assert interrupts.asked() == ["park"]


@pytest.mark.parametrize(
    "message",
    [
        b"\n",
        b"{}" * LARGEST,
        b'{"operations": ["explode"]}\n',
        b'{"operations": ["park"], "more": 1}\n',
        b'{"changes": ["no equals sign"]}\n',
        b'{"changes": ["%s=1"]}\n' % (b"k" * 300),
        b"\xff\xfe\n",
        b'{"operations": ["park"',
    ],
)
def test_what_is_no_request_does_nothing(run, mine, message):
    engine, interrupts = run
    answer = raw(message)
    assert not answer or json.loads(answer)["refused"]
    assert interrupts.asked() == []
    assert tell("hold").exit_code == 0  # the next one is heard
    assert interrupts.asked() == ["hold"]
    assert engine.profile == load_profile("ccd-dk-classical")


def test_a_port_hears_only_who_can_read_the_users_file(run):
    if not telling.PORTS:
        pytest.skip("the system says whose a socket's other end is")
    _, interrupts = run
    word = known_runs()[0].read_bytes().partition(b" ")[2]
    assert len(word) == 33
    for wrong in (b"", b"0" * 32 + b" ", word[:-2] + b"? ", word.upper() + b" "):
        assert raw(b"stranger" + wrong + b'{"operations": ["park"]}\n') == b""
    assert interrupts.asked() == []
    if not WINDOWS:
        assert known_runs()[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(WINDOWS, reason="Windows keeps others out of a user's folder")
def test_a_folder_that_others_may_write_to_is_not_used(mine):
    folder().chmod(0o777)
    with Hearing(Running(), Interrupts()):
        assert list(mine.glob("motioncue/*")) == []
    result = tell("park")
    assert (result.exit_code, "not this user's alone" in result.stderr) == (2, True)
    folder_of_another = mine / "motioncue"
    folder_of_another.rmdir()
    folder_of_another.symlink_to(mine)
    assert "not this user's alone" in tell("park").stderr


def test_nothing_runs_and_what_a_killed_run_left_goes(mine):
    assert tell().stdout == "nothing runs\n"
    left = folder() / f"1{telling.SUFFIX[telling.PORTS]}"
    if telling.PORTS:
        left.write_bytes(b"%d %s " % (free_port(socket.SOCK_STREAM), b"0" * 32))
    else:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(left))
    result = tell("engage")
    assert (result.exit_code, "running: none" in result.stderr) == (2, True)
    assert not left.exists()
    assert "'prk'" in tell("prk").stderr


@pytest.mark.check
def test_of_many_who_tell_at_once_nobody_is_lost(mine, monkeypatch):
    monkeypatch.setattr(telling, "WAITING", 1)  # so that most find no place at first
    monkeypatch.setattr(telling, "PATIENCE_S", 30.0)
    interrupts, answers, begin = Interrupts(), [], threading.Barrier(10)

    def teller():
        begin.wait(30)
        answers.append(telling.told(telling.Request(["park"]), known_runs()))

    with Hearing(Running(), interrupts):
        tellers = [threading.Thread(target=teller) for _ in range(10)]
        for each in tellers:
            each.start()
        for each in tellers:
            each.join(60)
    assert [(len(answered), silent) for answered, silent in answers] == [(1, [])] * 10
    assert interrupts.asked() == ["park"] * 10


@contextlib.contextmanager
def hanging(number):
    """Let a run of this number be found that never answers, as one that is suspended."""
    path = folder() / f"{number}{telling.SUFFIX[telling.PORTS]}"
    with socket.socket(socket.AF_INET if telling.PORTS else socket.AF_UNIX) as listening:
        listening.bind(("127.0.0.1", 0) if telling.PORTS else str(path))
        listening.listen()
        if not telling.PORTS:
            yield
            return
        with path.open("wb", buffering=0) as file:  # a run that lives holds it: on Windows that is how it is known
            file.write(b"%d %s " % (listening.getsockname()[1], b"0" * 32))
            yield


@pytest.mark.check
def test_a_run_that_hangs_keeps_nothing_from_the_others_and_is_named(run, monkeypatch):
    _, interrupts = run
    monkeypatch.setattr(telling, "ANSWER_S", 0.5)
    with hanging(1):
        result = tell("park")
        assert (result.exit_code, "run 1: gave no answer" in result.stderr) == (2, True)
        assert f"{os.getpid()}  " in result.stdout
        assert interrupts.asked() == ["park"]
        assert tell("hold", "--run", str(os.getpid())).exit_code == 0
        assert interrupts.asked() == ["hold"]
        result = tell("engage")  # which of them?
        assert (result.exit_code, "run 1: gave no answer" in result.stderr) == (2, True)
        assert interrupts.asked() == []


def test_a_run_that_ends_before_it_has_heard_is_said_so(mine, monkeypatch):
    told = telling.told
    hearing = Hearing(Running(), Interrupts())

    def told_late(request, among):
        if request.operations:
            hearing.__exit__()
        return told(request, among)

    monkeypatch.setattr(telling, "told", told_late)
    with hearing:
        result = tell("hold")
    assert (result.exit_code, "has ended meanwhile" in result.stderr) == (2, True)


def test_who_tells_in_the_moment_in_which_a_run_begins_leaves_it_reachable(mine, monkeypatch):
    class Socket(socket.socket):
        def listen(self, *count):
            assert "nothing runs" in tell().stdout
            super().listen(*count)

    write = os.fdopen

    def fdopen(*arguments, **options):  # the file of a port, before anything is in it
        file = write(*arguments, **options)
        if telling.PORTS:
            assert "nothing runs" in tell().stdout
        return file

    monkeypatch.setattr(telling.socket, "socket", Socket)
    monkeypatch.setattr(telling.os, "fdopen", fdopen)
    with Hearing(Running(), Interrupts()):
        assert "ccd-dk-classical" in tell().stdout
    assert not any(folder().iterdir())


@pytest.mark.rt
@pytest.mark.parametrize("mine", ["ports" if WINDOWS else "sockets"], indirect=True)
@pytest.mark.check
def test_two_terminals(mine):
    with Program("demo", "--duration", "60", "--json") as demo, Program("demo", "--duration", "60", "--json") as other:

        def both():
            return len(json.loads(tell("--json").stdout)["runs"]) == 2

        eventually(both)
        result = tell("hold")
        assert (result.exit_code, "several run" in result.stderr) == (2, True)
        number = str(demo.process.pid)
        assert tell("limits.surge.value_m_s2=24", "--run", number).exit_code == 0
        assert tell("park").exit_code == 0
        assert tell("quit", "--run", number).exit_code == 0
        stats = demo.end()
        other.signal(INTERRUPT)
        other.end()
    assert stats["duration_s"] < 60
    assert stats["state"] == "OFFLINE"
