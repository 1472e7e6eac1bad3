"""Packets that do not arrive are counted, logged once, and not confused with those that left."""

import contextlib
import errno
import logging
import os
import socket
import sys

import pytest
from emitter_rig import START, Rig
from engine_rig import SCHEME
from helpers import MORE, closed, eventually, frame, free_port, loopbacks, new_session, nowhere, said_in, stream_url
from test_receive_fails import failing

import motioncue
from motioncue.cli.terminal import engine_rows, none_received
from motioncue.core.clock import FakeClock
from motioncue.engine.journal import Journal, Outputs, SourceLog
from motioncue.output import dk
from motioncue.transports.endpoint import connect, fail_if_unheard, open_sender
from motioncue.view.model import replied

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say that nobody listens")
if sys.platform == "win32":
    import ctypes

    NOT_ALLOWED, UNREACHABLE, meaning = 10013, 10051, ctypes.FormatError  # WSAEACCES, WSAENETUNREACH
else:
    NOT_ALLOWED, UNREACHABLE, meaning = errno.EACCES, errno.ENETUNREACH, os.strerror
BROADCAST = "udp://255.255.255.255:4445"
"""Where a socket without the permission to may not send: each datagram is refused at once."""


class Time:
    """Seconds that pass when told to."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


# The emitter's counters.


def output(emitter, url, beside=False, index=0):
    sender, address = open_sender(url)
    fail_if_unheard(sender)
    stream = dk.STREAMS["motion"]
    emitter.add_output(
        sender, address, stream.table(), stream.packet.encode(stream.defaults), output=index, beside=beside
    )
    return sender


@linux
@pytest.mark.rt
@pytest.mark.parametrize("host", loopbacks())
def test_a_port_at_which_nobody_listens_is_noticed_and_whoever_comes_later_misses_nothing(host):
    rig, port = Rig(), free_port(socket.SOCK_DGRAM, host)
    output(rig.emitter, f"udp://[{host}]:{port}" if ":" in host else f"udp://{host}:{port}")
    rig.emitter.run(ticks=200)
    (counts,) = rig.emitter.outputs()
    # Each datagram is answered before the next one is sent: the machine does both.
    assert counts == {"sent": 200, "unheard": 199, "refused": 0, "error": 0}
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as platform:
        platform.bind((host, port))
        platform.settimeout(30)
        for _ in range(200):
            rig.emitter.run(ticks=1)
            assert len(platform.recv(4096)) == 88
    assert rig.emitter.outputs()[0] == {"sent": 400, "unheard": 200, "refused": 0, "error": 0}
    rig.emitter.run(ticks=100)  # it has gone again
    assert rig.emitter.outputs()[0]["unheard"] == 299


def bound(port):
    """Return a socket that somebody listens at."""
    platform = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    platform.bind(("127.0.0.1", port))
    return platform


def said_of_platform(emitter):
    """Return what the terminal, `--json` and the page say of a platform that answers nothing."""
    return replied({"outputs": emitter.outputs()}, int(emitter.newest()["operation"][0]))


@linux
@pytest.mark.rt
def test_whoever_comes_back_finds_the_platform_parked_and_it_rises_again_by_itself():
    rig, port = Rig(), free_port(socket.SOCK_DGRAM)
    output(rig.emitter, f"udp://127.0.0.1:{port}")
    with bound(port):
        rig.frames_for(5.0)
        assert rig.emitter.state == "RUNNING"
    rig.frames_for(0.1)  # shorter than the hold time
    assert rig.emitter.state == "RUNNING"
    rig.frames_for(3.0)
    moves = [(each["to"], each["reason"]) for each in rig.emitter.transitions()]
    assert moves[-2:] == [("PARKING", "output_unheard"), ("OFFLINE", "neutral_reached")]
    assert said_of_platform(rig.emitter) == ["nobody listens"]
    with bound(port) as platform:
        rig.frames_for(3.9)
        assert rig.emitter.state == "OFFLINE"
        platform.settimeout(30)
        assert len({platform.recv(4096)[20:60] for _ in range(100)}) == 1  # at rest
        rig.frames_for(2.5)
        assert rig.emitter.state == "RUNNING"
        assert rig.trace["weight"][-1] == 1.0
        assert said_of_platform(rig.emitter) == []


@linux
@pytest.mark.rt
def test_a_platform_that_has_gone_from_the_network_is_parked_until_it_is_there_again():
    """Linux says so every 3.07 s: three questions for its address, a second and some ticks of the kernel apart.

    Packets that the system has refused once say nothing of that, since what follows them may have arrived.
    """
    rig, port = Rig(), free_port(socket.SOCK_DGRAM)
    sender = output(rig.emitter, f"udp://127.0.0.1:{port}")
    with bound(port):
        rig.frames_for(0.1)
        with failing(sender):
            rig.frames_for(0.02)
        rig.frames_for(5.0)
        assert rig.emitter.outputs()[0]["refused"] > 0
    for told in range(4):
        rig.frames_for(0.007)  # what is sent is lost, and reported; what follows is lost without a report
        with bound(port):
            rig.frames_for(3.065)
        assert rig.emitter.state == ("RUNNING" if told == 0 else "OFFLINE")
    with bound(port):
        rig.frames_for(3.0)
        assert rig.emitter.state == "RUNNING"


@linux
@pytest.mark.rt
def test_a_machine_that_slept_does_not_take_the_silence_for_a_listener():
    clock = FakeClock(START)
    rig, port = Rig(clock=clock), free_port(socket.SOCK_DGRAM)
    output(rig.emitter, f"udp://127.0.0.1:{port}")
    with bound(port):
        rig.frames_for(5.0)
    rig.frames_for(3.0)
    assert rig.emitter.state == "OFFLINE"
    rig.emitter.transitions()
    clock.advance(10_000_000_000)
    rig.now = rig.next_frame = clock.now_ns()
    rig.frames_for(3.0)
    assert rig.emitter.transitions() == []
    with bound(port):
        rig.frames_for(5.5)
        assert rig.emitter.state == "RUNNING"


LEGS = {"size": 24, "fields": [{"offset": 4 * n, "type": "f4", "channel": f"leg_{n + 1}"} for n in range(6)]}
POSE = {"size": 8, "fields": [{"offset": 0, "type": "f8", "channel": "pose_up"}]}
FANS = {"size": 8, "fields": [{"offset": 0, "type": "f8", "channel": "speed"}]}
LEGS, POSE, FANS = ({"system": "custom", "gauges": None, "packet": packet} for packet in (LEGS, POSE, FANS))
DK = {"system": "dk", "gauges": None}


@linux
@pytest.mark.rt
@pytest.mark.parametrize(
    ("outputs", "moves"),
    [((LEGS, LEGS), (0, 1)), ((POSE, LEGS), (1,)), ((POSE, DK), (1,)), ((DK, POSE), (0,)), ((DK, FANS), (0,))],
    ids=["two controllers", "headset, legs", "headset, DK", "DK, headset", "DK, fans"],
)
def test_every_output_that_moves_the_platform_counts_and_no_headset(outputs, moves):
    ports = [free_port(socket.SOCK_DGRAM) for _ in outputs]
    urls = [f"udp://127.0.0.1:{port}" for port in ports]
    table = {"output": [{**each, "motion": url} for each, url in zip(outputs, urls, strict=True)]}
    profile = motioncue.load_profile("ccd-dk-classical", table | {"platform": {"preset": "hexapod-dim"}})
    rig = Rig(profile)
    for index, url in enumerate(urls):
        output(rig.emitter, url, index=index)
    with contextlib.ExitStack() as platforms:
        there = [platforms.enter_context(bound(port)) for port in ports]
        rig.frames_for(5.0)
        for index, port in enumerate(ports):
            there[index].close()
            rig.frames_for(1.0)
            assert rig.emitter.state == ("PARKING" if index in moves else "RUNNING")
            there[index] = platforms.enter_context(bound(port))
            rig.frames_for(15.0)
            assert rig.emitter.state == "RUNNING"


@linux
@pytest.mark.rt
@pytest.mark.parametrize("beside", [False, True], ids=["nobody has been there", "gauges"])
def test_who_only_looks_on_and_who_takes_the_gauges_away_leave_the_platform_alone(beside):
    rig, port = Rig(), free_port(socket.SOCK_DGRAM)
    output(rig.emitter, f"udp://127.0.0.1:{port}", beside)
    if beside:
        with bound(port):
            rig.frames_for(5.0)
    rig.frames_for(8.0)
    assert rig.emitter.outputs()[0]["unheard"] > 2000
    assert rig.emitter.state == "RUNNING"


@linux
@pytest.mark.rt
def test_packets_that_the_system_refuses_now_and_then_do_not_park_the_platform():
    """Only refusals that last for longer than the hold time, 0.1 s, do."""
    rig, port = Rig(), free_port(socket.SOCK_DGRAM)
    sender = output(rig.emitter, f"udp://127.255.255.255:{port}")

    def allow(allowed):
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, int(allowed))

    allow(True)
    rig.frames_for(5.0)
    for _ in range(6):
        allow(False)
        rig.frames_for(0.05)
        allow(True)
        rig.frames_for(1.0)
    assert rig.emitter.outputs()[0]["refused"] > 60
    assert rig.emitter.state == "RUNNING"
    allow(False)
    rig.frames_for(0.2)
    assert rig.emitter.transitions()[-1]["reason"] == "output_unheard"
    for _ in range(6):  # what gets through now and then does not make it rise
        allow(True)
        rig.frames_for(0.1)
        allow(False)
        rig.frames_for(0.05)
    assert "ENGAGING" not in {each["to"] for each in rig.emitter.transitions()}
    allow(True)
    rig.frames_for(3.9)
    assert rig.emitter.state == "OFFLINE"
    rig.frames_for(2.0)
    assert rig.emitter.state == "RUNNING"


@pytest.mark.rt
def test_a_tick_of_which_nothing_leaves_is_no_packet():
    rig = Rig()
    output(rig.emitter, BROADCAST)
    rig.emitter.run(ticks=244)
    counts = rig.emitter.counts()
    assert (counts["ticks"], counts["packets"], counts["send_errors"]) == (244, 0, 244)
    assert rig.emitter.outputs() == [{"sent": 0, "unheard": 0, "refused": 244, "error": NOT_ALLOWED}]
    output(rig.emitter, f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}")
    rig.emitter.run(ticks=10)
    counts = rig.emitter.counts()
    assert (counts["ticks"], counts["packets"], counts["send_errors"]) == (254, 10, 254)


# The log.


@pytest.fixture
def said(caplog):
    """Return a function that returns the lines logged since the last call."""
    caplog.set_level(logging.DEBUG, "motioncue")

    def lines():
        texts = [(record.levelname, record.getMessage()) for record in caplog.records]
        caplog.clear()
        return texts

    return lines


def counted(sent, unheard=0, refused=0, error=0):
    return {"sent": sent, "unheard": unheard, "refused": refused, "error": error}


def test_trouble_is_said_when_it_begins_and_when_it_ends(time, said):
    outputs = Outputs(Journal(time), ["udp://a:1", "udp://b:2"], time)
    outputs.look([counted(0), counted(0)])
    assert said() == []
    outputs.look([counted(33), counted(33, 32)])
    assert said() == [("WARNING", "udp://b:2: nobody listens there, what is sent is lost")]
    for tick in range(100):  # a host far away says it once a second
        time.now += 0.1
        outputs.look([counted(66 + tick, 0, 0), counted(66 + tick, 33 + tick // 10)])
    assert said() == []
    outputs.look([counted(166, 0, 1, UNREACHABLE), counted(166, 42)])
    assert said() == [("WARNING", f"udp://a:1: sending fails: {meaning(UNREACHABLE)}")]
    time.now += 4.1
    outputs.look([counted(199, 0, 2, UNREACHABLE), counted(199, 42)])
    assert said() == [("INFO", "udp://b:2: somebody listens there now")]
    time.now += 4.1
    outputs.look([counted(230, 0, 2, UNREACHABLE), counted(230, 42)])
    assert said() == [("INFO", "udp://a:1: sending works again")]


@pytest.mark.rt
@pytest.mark.parametrize("url", [BROADCAST, pytest.param(None, marks=linux)], ids=["refused", "unheard"])
def test_an_engine_says_once_that_nothing_arrives_and_its_summary_says_how_much(tmp_path, caplog, url):
    caplog.set_level(logging.INFO, "motioncue")
    url = url or f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    text = motioncue.profile.profile.profile_text("ccd-dk").replace("gauges =", "# gauges =")
    (tmp_path / "motion.toml").write_text(text, encoding="utf-8")
    overrides = [f"source.endpoint={stream_url(SCHEME, tmp_path)}", f"output.motion={url}"]
    with motioncue.Engine(motioncue.load_profile(tmp_path / "motion.toml", *overrides)) as engine:
        eventually(lambda: said_in(caplog, url))
        eventually(lambda: engine.stats()["send_errors"] + engine.stats()["unheard"] > 200)
    stats = {"duration_s": 1.0, **engine.stats()}
    (found,) = stats["outputs"]
    rows = dict(engine_rows(stats))
    if url == BROADCAST:
        assert stats["packets_sent"] == found["sent"] == 0
        assert stats["send_errors"] == found["refused"] > 200
        assert rows["packets out"] == "0"
        assert rows["not sent"] == f"{found['refused']} to {url}: {found['error']}"
        assert found["error"] == meaning(NOT_ALLOWED)
    else:
        assert stats["packets_sent"] == found["sent"] > stats["unheard"] == found["unheard"] > 200
        assert (stats["send_errors"], found["error"]) == (0, None)
        assert rows["nobody there"] == f"for {found['unheard']} to {url}"
    assert said_in(caplog, url).total() == 1


# The log is never flooded.


def test_repetitions_of_a_line_are_counted_and_told_every_ten_seconds(time, said):
    journal = Journal(time)
    for tick in range(1200):  # 12 s
        for session in range(10 * tick, 10 * tick + 10):
            journal.say("began", logging.INFO, f"a simulator connected (session {session + 1})")
        if tick == 500:
            journal.say("other", logging.WARNING, "something else")
        journal.tell()
        time.now += 0.01
    assert said() == [
        *(("INFO", f"a simulator connected (session {number})") for number in (1, 2, 3)),
        ("WARNING", "something else"),
        ("INFO", "a simulator connected (session 10010) ... 10007 more in the last 10 s"),
    ]
    journal.tell(end=True)
    assert said() == [("INFO", "a simulator connected (session 12000) ... 1990 more in the last 2 s")]


@pytest.mark.parametrize("apart_s", [1.0, 30.0])
def test_what_is_refused_again_and_again_is_counted_in_the_log(time, said, apart_s):
    """The first ten are events, each with a line at most; then the log goes on with their number."""
    intake = new_session()
    journal = Journal(time)
    log = SourceLog(journal, "the simulator", intake)
    for _ in range(100):
        intake.feed(frame(), 0)  # before its session's init package
        log.look()
        journal.tell()
        time.now += apart_s
    journal.tell(end=True)
    lines = [text for _, text in said() if "before_init" in text]
    counted = [int(found[1]) if (found := MORE.search(line)) else 1 for line in lines]
    assert sum(counted) == intake.rejected["before_init"] == 100
    assert len(lines) <= (3 + 100 / 10 if apart_s < 10.0 else 100)


def test_after_a_quiet_while_a_line_is_new_again(time, said):
    journal = Journal(time)
    for _ in range(5):
        journal.say("kind", logging.INFO, "line")
    for _ in range(40):
        time.now += 1.0
        journal.tell()
    journal.say("kind", logging.INFO, "line")
    assert [text for _, text in said()] == ["line"] * 3 + ["line ... 2 more in the last 10 s", "line"]


@pytest.mark.rt
def test_simulators_that_come_and_go_all_the_time_do_not_flood_the_log(tmp_path, caplog):
    caplog.set_level(logging.INFO, "motioncue")
    url = stream_url(SCHEME, tmp_path)
    profile = motioncue.load_profile(
        "ccd-dk", f"source.endpoint={url}", f"output.motion={nowhere()}", f"output.gauges={nowhere()}"
    )
    with motioncue.Engine(profile) as engine:
        for _ in range(300):
            with connect(url, timeout_s=30) as client:
                client.sendall(b"\0\0")
                assert closed(client)
        eventually(lambda: engine.stats()["sessions"] == 300)
    lines = [record.getMessage() for record in caplog.records]
    windows = 1 + sum(1 for line in lines if MORE.search(line))
    assert len(lines) <= 3 * 4 + windows + 4
    # The first ten refusals are queued, then every thousandth; the others are only counted.
    told = sum(
        said_in(caplog, words).total() for words in ("a simulator connected", "the simulator left", "framing is lost")
    )
    lost = [int(line.split()[0]) for line in lines if "too fast to be logged" in line]
    assert told + max(lost, default=0) == 300 + 300 + 300


def test_a_summary_without_frames_names_what_was_refused():
    """Packages that were all refused were heard: the reason is their refusal."""
    assert "no simulator was heard" in none_received({})
    found = none_received({"size": 100, "not_finite": 2})
    assert "no simulator" not in found
    assert "refused (100 size, 2 not finite)" in found
