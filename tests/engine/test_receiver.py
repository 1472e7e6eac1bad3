"""The receiving loop at real sockets: simulators that behave, leave, return, die, crowd, flood and fall silent."""

import contextlib
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from helpers import (
    FRAME_REPLY,
    FRAMES,
    INIT_PACKAGE,
    INIT_REPLY,
    PACKAGES,
    closed,
    eventually,
    expected_motion,
    frame,
    init,
    new_session,
    receive,
    serving,
    stream_url,
)
from same_bits import assert_same_bits

from motioncue.core.clock import FakeClock, now_ns
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.transports.endpoint import connect

pytestmark = pytest.mark.rt

SCHEMES = ["pipe", "tcp"] if sys.platform == "win32" else ["unix", "tcp"]


@pytest.fixture(params=SCHEMES)
def url(request, tmp_path):
    return stream_url(request.param, tmp_path)


@pytest.fixture
def session():
    """A session that has not begun, which is the receiver's task."""
    return city_car_driving.intake(city_car_driving.Options())


def simulator(url, *packages):
    """Return a connected simulator that has sent `packages`, each after the reply to the one before."""
    client = connect(url, timeout_s=30)
    exchange(client, *packages)
    return client


def exchange(client, *packages):
    for package in packages:
        client.sendall(package)
        reply = INIT_REPLY if package[2] == 1 else FRAME_REPLY
        assert receive(client, len(reply)) == reply


def newest(session):
    rows = []
    eventually(lambda: rows.append(session.newest()) or rows[-1] is not None)
    return rows[-1]


def assert_newest_is(session, package):
    """Assert that the newest motion is that of `package`."""
    motion = newest(session)
    expected = expected_motion(np.frombuffer(package, FRAME.dtype))
    for name, values in expected.items():
        np.testing.assert_allclose(motion[name], values, rtol=0, atol=1e-12, err_msg=name)


def test_a_simulator_in_lock_step_is_answered_package_by_package(url, session):
    before = now_ns()
    with serving(url, session):
        client = simulator(url, *PACKAGES[:200])
        assert session.accepted == 199
        assert session.replies == 200
        motion = session.newest()
        client.close()
    assert before < motion["time"][0] < now_ns()
    assert session.rejected == {}
    assert session.sessions == 1
    assert [name for _, name, _ in session.events()] == ["session_began", "session_ended"]


def test_one_byte_in_each_write_changes_nothing(url, session):
    with serving(url, session):
        client = simulator(url)
        for package in PACKAGES[:4]:
            for offset in range(len(package)):
                client.sendall(package[offset : offset + 1])
            reply = INIT_REPLY if package[2] == 1 else FRAME_REPLY
            assert receive(client, len(reply)) == reply
        client.close()
    assert session.accepted == 3
    assert session.rejected == {}
    assert_newest_is(session, PACKAGES[3])


def test_many_packages_in_one_write_are_all_taken_and_answered(url, session):
    with serving(url, session):
        client = simulator(url)
        client.sendall(b"".join(PACKAGES[:301]))
        assert receive(client, 6 + 300 * 4) == INIT_REPLY + 300 * FRAME_REPLY
        client.close()
    assert session.accepted == 300
    assert session.rejected == {}
    assert_newest_is(session, PACKAGES[300])


def test_writes_that_end_anywhere_are_joined(url, session):
    data = b"".join(PACKAGES[:61])
    with serving(url, session):
        client = simulator(url)
        for start in range(0, len(data), 41):
            client.sendall(data[start : start + 41])
        assert receive(client, 6 + 60 * 4) == INIT_REPLY + 60 * FRAME_REPLY
        client.close()
    assert session.accepted == 60
    assert_newest_is(session, PACKAGES[60])


@pytest.mark.parametrize("url", [scheme for scheme in SCHEMES if scheme != "pipe"], indirect=True)  # no half-close
def test_packages_sent_before_leaving_are_taken(url, session):
    with serving(url, session):
        client = simulator(url)
        client.sendall(b"".join(PACKAGES[:101]))
        client.shutdown(socket.SHUT_WR)
        assert receive(client, 6 + 100 * 4 + 1) == INIT_REPLY + 100 * FRAME_REPLY
        client.close()
    assert session.accepted == 100


def test_a_simulator_may_leave_and_return(url, session):
    with serving(url, session):
        for count in range(1, 6):
            client = simulator(url, INIT_PACKAGE, *FRAMES[:10])
            assert session.sessions == count
            client.close()
    assert session.accepted == 50
    assert session.rejected == {}
    assert [name for _, name, _ in session.events()] == ["session_began", "session_ended"] * 5


def test_every_connection_needs_its_own_init_package(url, session):
    with serving(url, session):
        simulator(url, INIT_PACKAGE, FRAMES[0]).close()
        client = simulator(url, FRAMES[0], FRAMES[1], INIT_PACKAGE, FRAMES[2])
        client.close()
    assert session.accepted == 2
    assert session.rejected == {"before_init": 2}


def test_a_simulator_may_reset_its_connection(session, tmp_path):
    url = stream_url("tcp", tmp_path)
    with serving(url, session):
        client = simulator(url, INIT_PACKAGE, FRAMES[0])
        client.sendall(FRAMES[1][:60])
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        simulator(url, INIT_PACKAGE, FRAMES[2]).close()
    assert session.accepted == 2
    assert session.rejected == {}
    assert_newest_is(session, FRAMES[2])


VICTIM = textwrap.dedent("""
    import socket, sys
    scheme, _, rest = sys.argv[1].partition("://")
    if scheme == "unix":
        client = socket.socket(socket.AF_UNIX)
        client.connect(rest)
    else:
        host, _, port = rest.rpartition(":")
        client = socket.create_connection((host, int(port)))
    client.sendall(bytes.fromhex(sys.argv[2]))
    print("sent", flush=True)
    input()  # until it is killed
""")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("cut", [1, 2, 3, 60, 106])
def test_a_simulator_killed_inside_a_package_leaves_the_next_one_a_clean_start(session, tmp_path, cut):
    url = stream_url("unix", tmp_path)
    sent = b"".join(PACKAGES[:11]) + FRAMES[20][:cut]
    command = [sys.executable, "-S", "-c", VICTIM, url, sent.hex()]
    with serving(url, session):
        for count in (10, 20):
            victim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert victim.stdout.readline() == b"sent\n"
            eventually(lambda count=count: session.accepted == count)
            victim.send_signal(signal.SIGKILL)
            victim.communicate()
            assert victim.returncode == -signal.SIGKILL
        client = simulator(url, INIT_PACKAGE, *FRAMES[30:35])
        client.close()
    assert session.accepted == 25
    assert session.rejected == {}
    assert session.sessions == 3
    assert_newest_is(session, FRAMES[34])


def test_a_second_simulator_is_closed_and_counted_while_the_first_goes_on(url, session):
    with serving(url, session, FakeClock()):
        first = simulator(url, INIT_PACKAGE, FRAMES[0])
        for number in range(1, 4):
            second = connect(url)
            assert closed(second)
            second.close()
            exchange(first, FRAMES[number])
        assert session.rejected == {"second_simulator": 3}
        assert session.sessions == 1
        first.close()
        # There are descriptors again.
        simulator(url, INIT_PACKAGE, FRAMES[9]).close()
    assert session.accepted == 5
    assert session.rejected == {"second_simulator": 3}


def test_nothing_a_second_simulator_sends_is_taken(url, session):
    with serving(url, session, FakeClock()):
        first = simulator(url, INIT_PACKAGE, FRAMES[0])
        second = connect(url)
        with contextlib.suppress(OSError):  # already closed
            second.sendall(b"".join(PACKAGES[:50]))
        assert closed(second)
        second.close()
        exchange(first, FRAMES[1])
        first.close()
    assert session.accepted == 2
    assert session.replies == 3
    assert session.rejected == {"second_simulator": 1}


# `serving` stops the receiver, and fails unless that ends it.


def test_stop_ends_a_receiver_without_a_simulator(url, session):
    with serving(url, session):
        pass
    assert session.sessions == 0


def test_stop_before_anything_ends_it_too(url, session):
    with serving(url, session) as receiver:
        receiver.stop()
        receiver.stop()


@pytest.mark.parametrize("sent", [b"", INIT_PACKAGE, INIT_PACKAGE + FRAMES[0], INIT_PACKAGE + FRAMES[0][:50], b"\x6b"])
def test_stop_closes_the_connection_wherever_it_is(url, session, sent):
    with serving(url, session):
        client = connect(url)
        client.sendall(sent)
        eventually(lambda: session.sessions == 1)
    assert closed(client)
    client.close()
    assert [name for _, name, _ in session.events()] == ["session_began", "session_ended"]


# TCP buffers about a million replies for a reader that does not read.
@pytest.mark.parametrize("url", [SCHEMES[0], pytest.param("tcp", marks=pytest.mark.slow)], indirect=True)
def test_a_simulator_that_never_reads_its_replies_is_still_heard(url, session):
    frames = frame(acceleration=(0, 0, 1)) * 5000
    count = 0
    with serving(url, session):
        client = connect(url, timeout_s=60)
        client.sendall(INIT_PACKAGE)
        while not session.replies_lost:  # until no socket holds any more
            client.sendall(frames)
            count += 5000
        client.sendall(frame(acceleration=(0, 0, 7)))
        eventually(lambda: session.accepted == count + 1)
        assert newest(session)["surge"][0] == 7.0
        lost = session.replies_lost
        assert session.rejected == {}
        # What it reads in the end is still whole replies, in order, and none is made up.
        answered = count + 2 - lost
        assert session.replies == answered
        assert receive(client, 6 + 4 * (answered - 1)) == INIT_REPLY + FRAME_REPLY * (answered - 1)
        exchange(client, FRAMES[0])
        client.close()


def test_replies_that_one_simulator_left_unread_are_not_given_to_the_next(session, tmp_path):
    url = stream_url(SCHEMES[0], tmp_path)
    with serving(url, session):
        client = connect(url, timeout_s=60)
        while not session.replies_lost:
            client.sendall(frame() * 5000)
        client.close()
        simulator(url, INIT_PACKAGE, FRAMES[0]).close()
    assert session.accepted == 1


JUNK = {
    "packages of no known type": struct.pack("<HB", 3, 9) * 20_000,
    "frames of the wrong size": (struct.pack("<HB", 106, 2) + bytes(103)) * 500,
    "frames without an init package": frame() * 500,
    "frames that are not finite": (frame(position=(np.nan, 0, 0))) * 500,
}


@pytest.mark.parametrize("name", JUNK)
def test_a_flood_of_junk_moves_nothing_and_stop_ends_it(session, tmp_path, name):
    ended = threading.Event()

    def flood(client):
        try:
            while True:
                client.sendall(JUNK[name])
        except OSError:
            ended.set()

    url = stream_url(SCHEMES[0], tmp_path)
    with serving(url, session, FakeClock()):
        client = connect(url, timeout_s=None)
        thread = threading.Thread(target=flood, args=(client,), daemon=True)
        thread.start()
        eventually(lambda: sum(session.rejected.values()) > 50_000)
        # Another simulator is refused in between.
        assert closed(connect(url))
    assert ended.wait(30)
    client.close()
    assert session.accepted == 0
    assert session.newest() is None
    assert session.rejected["second_simulator"] == 1


LOST = {
    b"\0\0": "framing",
    b"\xff\xff": "framing",
    struct.pack(">HB", 39, 1) + bytes(36): "big_endian",
    struct.pack(">HB", 107, 2): "big_endian",
}


@pytest.mark.parametrize("sent", LOST)
def test_a_lost_stream_is_answered_closed_and_makes_room(url, session, sent):
    with serving(url, session):
        client = connect(url, timeout_s=30)
        client.sendall(sent)
        assert receive(client, 4) == FRAME_REPLY
        assert closed(client)
        client.close()
        simulator(url, INIT_PACKAGE, FRAMES[0]).close()
    assert session.accepted == 1
    assert session.rejected == {LOST[sent]: 1}


def test_a_package_whose_rest_never_comes_is_counted_answered_and_ends_the_connection(url, session):
    clock = FakeClock()
    with serving(url, session, clock):
        client = simulator(url, INIT_PACKAGE, FRAMES[0])
        client.sendall(FRAMES[1][:50])
        eventually(lambda: session.accepted == 1)
        clock.advance(999_000_000)  # patience lasts a second from the last byte
        client.sendall(FRAMES[1][50:] + FRAMES[2][:50])
        assert receive(client, 4) == FRAME_REPLY
        clock.advance(999_000_000)
        assert not closed_within(client, 0.05)
        client.settimeout(60)
        client.sendall(FRAMES[2][50:])
        assert receive(client, 4) == FRAME_REPLY
        client.sendall(FRAMES[3][:50])
        while not closed_within(client, 0.05):
            clock.advance(500_000_000)
        client.close()
        simulator(url, INIT_PACKAGE, FRAMES[4]).close()
    assert session.accepted == 4
    assert session.rejected == {"stalled": 1}
    (stalled,) = [event for event in session.events() if event[1] == "stalled"]
    assert stalled[2] == 50


def closed_within(client, seconds):
    """Say whether the peer closes soon; what it sends before must be the answer to a refused package."""
    client.settimeout(seconds)
    try:
        data = client.recv(100)
    except TimeoutError:
        return False
    if data:
        assert data == FRAME_REPLY
        return closed(client)
    return True


def test_a_simulator_that_is_silent_between_packages_is_kept(url, session):
    clock = FakeClock()
    with serving(url, session, clock):
        client = simulator(url, INIT_PACKAGE, FRAMES[0])
        clock.advance(3_600_000_000_000)
        exchange(client, *FRAMES[1:4])
        client.close()
    assert session.accepted == 4
    assert session.rejected == {}


def test_receiving_gives_the_bits_that_feeding_gives(url, session):
    reference = new_session()
    reference.feed(b"".join(PACKAGES[:500]), 0)
    with serving(url, session, FakeClock(0)):
        simulator(url, *PACKAGES[:500]).close()
    assert_same_bits(session.newest(), reference.newest())


def test_axes_come_with_each_simulator(url, session):
    with serving(url, session):
        simulator(url, init((1, 0, 0), (0, 0, 1)), frame(acceleration=(4, 0, 0))).close()
        assert newest(session)["surge"][0] == 4.0
        simulator(url, init(), frame(acceleration=(0, 0, 5))).close()
        assert newest(session)["surge"][0] == 5.0
