"""Which simulator drives: a silent one does not keep the next one out, a paused one keeps its place."""

import contextlib
import errno
import os
import selectors
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from helpers import (
    FRAME_REPLY,
    FRAMES,
    INIT_PACKAGE,
    INIT_REPLY,
    closed,
    eventually,
    free_port,
    receive,
    serving,
    stream_url,
)

from motioncue.core.clock import FakeClock
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.twin import Simulator, driven
from motioncue.transports.endpoint import connect, packed_hosts

pytestmark = pytest.mark.rt

SCHEMES = ["pipe", "tcp"] if sys.platform == "win32" else ["unix", "tcp"]
SECOND = 1_000_000_000  # [ns]


@pytest.fixture(params=SCHEMES)
def url(request, tmp_path):
    return stream_url(request.param, tmp_path)


@pytest.fixture
def session():
    return city_car_driving.intake(city_car_driving.Options())


def drive(client, *packages):
    """Send packages in lock-step."""
    for package in packages:
        client.sendall(package)
        reply = INIT_REPLY if package[2] == 1 else FRAME_REPLY
        assert receive(client, len(reply)) == reply


def names(session):
    return [name for _, name, _ in session.events()]


SENT = {
    "nothing": (),
    "an init package": (INIT_PACKAGE,),
    "a drive": (INIT_PACKAGE, *FRAMES[:20]),
    "frames that are refused": (FRAMES[0],),
}
REFUSED = {"frames that are refused": {"before_init": 1}}


@pytest.mark.parametrize("sent", SENT)
def test_after_a_second_without_a_frame_the_next_simulator_takes_over(url, session, sent):
    clock = FakeClock()
    with serving(url, session, clock):
        first = connect(url, timeout_s=30)
        drive(first, *SENT[sent])
        eventually(lambda: session.sessions == 1)
        # The reply leaves before the receiver has read the clock, so one is refused before the clock moves.
        for wait in (0, SECOND - 1):
            clock.advance(wait)
            with connect(url) as second:
                assert closed(second)
        clock.advance(1)
        with connect(url, timeout_s=30) as third:
            drive(third, INIT_PACKAGE, FRAMES[30])
            assert closed(first)
            first.close()
    assert session.rejected == {
        "second_simulator": 2,
        **({"before_init": 1} if sent == "frames that are refused" else {}),
    }
    events = [(name, detail) for _, name, detail in session.events() if name != "before_init"]
    assert events == [
        ("session_began", 1), ("second_simulator", 0), ("second_simulator", 0), ("session_ended", 1),
        ("taken_over", 1000), ("session_began", 2), ("session_ended", 2),
    ]  # fmt: skip


def test_bytes_that_are_no_frames_do_not_keep_the_place(url, session):
    clock = FakeClock()
    with serving(url, session, clock):
        first = connect(url, timeout_s=30)
        drive(first, INIT_PACKAGE)
        clock.advance(SECOND)
        drive(first, INIT_PACKAGE)
        with connect(url, timeout_s=30) as second:
            drive(second, INIT_PACKAGE, FRAMES[0])
        assert closed(first)
        first.close()


def test_a_paused_simulator_that_repeats_its_frame_keeps_its_place(url, session):
    clock = FakeClock()
    with serving(url, session, clock):
        first = connect(url, timeout_s=30)
        drive(first, INIT_PACKAGE)
        for _ in range(5):
            drive(first, FRAMES[0])
            clock.advance(SECOND - 1)
            with connect(url) as second:
                assert closed(second)
        drive(first, FRAMES[1])
        first.close()
    assert session.repeats == 4
    assert session.rejected == {"second_simulator": 5}


def test_an_engine_that_was_stopped_itself_hears_the_one_that_waits_for_it_first(url, session):
    """After a suspension of the machine both connect, and the one whose frame has arrived keeps the place."""
    clock = FakeClock()
    with serving(url, session, clock):
        first = connect(url, timeout_s=30)
        drive(first, INIT_PACKAGE, FRAMES[0])
        clock.advance(60 * SECOND)
        drive(first, FRAMES[1])
        with connect(url) as second:
            assert closed(second)
        first.close()
    assert session.sessions == 1


@pytest.mark.skipif(sys.platform != "linux", reason="another loopback address to come from")
def test_a_host_that_may_not_drive_takes_no_place(session):
    port = free_port()
    url, clock = f"tcp://127.0.0.1:{port}", FakeClock()
    with serving(url, session, clock, packed_hosts(["127.0.0.1"])):
        first = connect(url, timeout_s=30)
        drive(first, INIT_PACKAGE, FRAMES[0])
        clock.advance(10 * SECOND)
        with socket.create_connection(("127.0.0.1", port), 30, source_address=("127.0.0.2", 0)) as foreign:
            assert closed(foreign)
        drive(first, FRAMES[1])
        first.close()
    assert session.rejected == {"not_allowed": 1}
    assert session.sessions == 1


PLAYER = textwrap.dedent("""
    import sys
    from motioncue.transports.endpoint import connect
    client = connect(sys.argv[1], 30)
    for package in sys.argv[2:]:
        client.sendall(bytes.fromhex(package))
        client.recv(6)
    print("driving", flush=True)
    while client.recv(6):
        pass
    print("closed", flush=True)
""")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGSTOP")
def test_a_stopped_simulator_makes_room_and_learns_it_when_it_goes_on(url, session):
    arguments = [sys.executable, "-c", PLAYER, url, INIT_PACKAGE.hex(), FRAMES[0].hex()]
    with serving(url, session), subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as player:
        try:
            assert player.stdout.readline() == "driving\n"
            player.send_signal(signal.SIGSTOP)

            def served():
                with connect(url, timeout_s=30) as client, contextlib.suppress(OSError):
                    client.sendall(INIT_PACKAGE)
                    return receive(client, 6) == INIT_REPLY

            eventually(served)
            player.send_signal(signal.SIGCONT)
            assert player.stdout.readline() == "closed\n"
        finally:
            player.kill()


# Connections that send nothing.

sockets_only = pytest.mark.parametrize("url", [scheme for scheme in SCHEMES if scheme != "pipe"], indirect=True)


@pytest.mark.parametrize("silent", [1, 2, 10, 17, 60])
def test_the_first_that_sends_anything_drives_past_all_that_were_silent_before(url, session, silent):
    """The clock stands still, so that nobody's second is over."""
    with serving(url, session, FakeClock()), contextlib.ExitStack() as clients:
        crowd = [clients.enter_context(connect(url, timeout_s=30)) for _ in range(silent)]
        client = clients.enter_context(connect(url, timeout_s=30))
        drive(client, INIT_PACKAGE, *FRAMES[:3])
        assert all(closed(each) for each in crowd)
        with connect(url) as late:
            assert closed(late)
        drive(client, FRAMES[3])
    assert session.sessions == 2
    assert session.rejected == {"second_simulator": silent}  # but for the one that had the place, and the late one
    assert names(session).count("taken_over") == 1


def test_one_byte_of_a_silent_simulator_keeps_its_place(url, session):
    with serving(url, session, FakeClock()), connect(url, timeout_s=30) as first:
        eventually(lambda: session.sessions == 1)
        first.sendall(INIT_PACKAGE[:1])
        with connect(url) as second, contextlib.suppress(OSError):
            second.sendall(INIT_PACKAGE)
            assert closed(second)
        first.sendall(INIT_PACKAGE[1:])
        assert receive(first, 6) == INIT_REPLY
    assert session.sessions == 1
    assert session.rejected == {"second_simulator": 1}


def test_who_leaves_while_it_is_held_is_forgotten(url, session):
    with serving(url, session, FakeClock()):
        crowd = [connect(url, timeout_s=30) for _ in range(30)]
        for each in reversed(crowd):
            each.close()
        with connect(url, timeout_s=30) as client:
            drive(client, INIT_PACKAGE, FRAMES[0])
    assert session.accepted == 1


@sockets_only
@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="reads the clock of a thread")
def test_a_crowd_that_never_speaks_costs_no_processor(url, session):
    with serving(url, session, FakeClock()), contextlib.ExitStack() as clients:
        crowd = [clients.enter_context(connect(url, timeout_s=30)) for _ in range(60)]
        assert all(closed(each) for each in crowd[1:])
        before = receivers_cpu_s()
        time.sleep(1.0)
        assert receivers_cpu_s() - before < 0.1
    assert session.sessions == 1


def crowd(url, count, stop):
    """Keep `count` silent connections, each of which comes back as soon as it is closed, until `stop` is set."""
    scheme, _, where = url.partition("://")
    address = where if scheme == "unix" else ("127.0.0.1", int(where.rpartition(":")[2]))

    def come():
        client = socket.socket(socket.AF_UNIX if scheme == "unix" else socket.AF_INET)
        client.setblocking(False)
        client.connect_ex(address)
        waiting.register(client, selectors.EVENT_READ)

    with selectors.DefaultSelector() as waiting:
        for _ in range(count):
            come()
        while not stop.is_set():
            for key, _ in waiting.select(0.05):
                waiting.unregister(key.fileobj)
                key.fileobj.close()
                come()
        for key in list(waiting.get_map().values()):
            key.fileobj.close()


@sockets_only
def test_a_simulator_gets_in_past_200_silent_connections_that_come_back(url, session):
    stop, attempts = threading.Event(), []
    simulator = Simulator(url, driven("tour", 60.0, 2.0), timeout_s=10.0)
    simulator.on_sent = lambda package, _: attempts.append(package) if package[2] == 1 else None
    threads = [
        threading.Thread(target=crowd, args=(url, 200, stop), daemon=True),
        threading.Thread(target=simulator.run, daemon=True),
    ]
    with serving(url, session):
        threads[0].start()
        eventually(lambda: session.rejected.get("second_simulator", 0) > 400)  # each has been turned away and is back
        threads[1].start()
        eventually(lambda: len(attempts) > 5 or session.accepted >= 30)
        simulator.stop()
        stop.set()
        for thread in threads:
            thread.join(30)
    assert len(attempts) <= 5
    assert session.accepted >= 30
    assert simulator.connections == 1


# Connections that are never closed.

TCP_REPAIR = 19


def accepted(url):
    """Return the kernel's data on the connection accepted at a port: bytes not acknowledged, its timer."""
    port = int(url.rpartition(":")[2])
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    established = "01"
    (row,) = [row for row in rows if int(row[1].partition(":")[2], 16) == port and row[3] == established]
    kind, _, left = row[5].partition(":")
    return int(row[4].partition(":")[0], 16), kind, int(left, 16)


@pytest.mark.skipif(sys.platform != "linux", reason="what the kernel says of its timers")
def test_the_system_asks_after_a_connection_that_has_been_silent_for_five_seconds(session, tmp_path):
    url = stream_url("tcp", tmp_path)
    with serving(url, session), connect(url, timeout_s=30) as client:
        drive(client, INIT_PACKAGE)
        keepalive = "02"
        eventually(lambda: accepted(url)[1] == keepalive)
        assert 0 < accepted(url)[2] <= 5 * os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="a way to die without a word")
def test_a_peer_that_dies_without_a_word_leaves(session, tmp_path):
    """TCP_REPAIR closes a socket without telling the other end; only a keep-alive probe detects that."""
    url = stream_url("tcp", tmp_path)
    with serving(url, session):
        client = connect(url, timeout_s=30)
        drive(client, INIT_PACKAGE, FRAMES[0])
        eventually(lambda: accepted(url)[0] == 0)  # an answer that is under way would find out, too
        try:
            client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except PermissionError:
            pytest.skip("needs CAP_NET_ADMIN")
        finally:
            client.close()
        eventually(lambda: "session_ended" in names(session))


# No descriptor is left for a client.


@pytest.fixture
def exhausted():
    """Return a context in which this process can open nothing more."""
    resource = pytest.importorskip("resource")

    @contextlib.contextmanager
    def nothing_left():
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(16)]  # every number below the newest one is taken
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened[-1], before[1]))
        try:
            with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
                os.open(os.devnull, os.O_RDONLY)
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for number in opened:
                os.close(number)

    return nothing_left


def receivers_cpu_s():
    """Return the processor time that the receiver's thread has taken [s]."""
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "receiver"]
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


@pytest.mark.parametrize("driving", [False, True], ids=["free", "driving"])
def test_without_a_descriptor_the_receiver_rests_says_so_once_and_recovers(url, session, exhausted, driving):
    clock = FakeClock()
    with serving(url, session, clock), contextlib.ExitStack() as clients:
        if driving:
            first = clients.enter_context(connect(url, timeout_s=30))
            drive(first, INIT_PACKAGE)
        scheme, _, where = url.partition("://")
        late = clients.enter_context(socket.socket(socket.AF_UNIX if scheme == "unix" else socket.AF_INET))
        late.settimeout(30)
        with exhausted():
            late.connect(where if scheme == "unix" else ("127.0.0.1", int(where.rpartition(":")[2])))
            eventually(lambda: session.rejected)
            for package in FRAMES[:3] if driving else ():  # the present simulator does not notice
                drive(first, package)
            before = receivers_cpu_s()
            for _ in range(5):  # it tries again, and logs nothing more
                time.sleep(0.2)
                clock.advance(SECOND // 10)
            assert receivers_cpu_s() - before < 0.1
            assert session.rejected == {"no_descriptor": 1}
        clock.advance(SECOND)
        if driving:
            first.close()
        drive(late, INIT_PACKAGE, FRAMES[0])
        if not driving:  # a condition that has ended may recur, and is logged again
            with socket.socket(late.family) as later, exhausted():
                later.connect(late.getpeername())
                eventually(lambda: session.rejected == {"no_descriptor": 2})
    assert names(session).count("no_descriptor") == (1 if driving else 2)
