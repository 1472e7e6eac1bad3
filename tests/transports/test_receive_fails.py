"""A system that gives nothing of what comes to the endpoint: said once, no processor is kept busy, and it passes."""

import contextlib
import errno
import logging
import os
import socket
import sys
import threading
import time

import pytest
from helpers import FRAMES, INIT_PACKAGE, eventually, free_port, stream_url
from test_datagrams import new_intake, sender, state
from test_seat import drive, names, receivers_cpu_s

from motioncue.core.clock import FakeClock
from motioncue.engine.journal import event_line
from motioncue.engine.receiver import DatagramReceiver, StreamReceiver
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.transports.endpoint import Listener, connect, open_receiver

pytestmark = [
    pytest.mark.rt,
    pytest.mark.skipif(sys.platform == "win32", reason="a descriptor is given another file, or a limit"),
]


@contextlib.contextmanager
def receiving(intake, sockets):
    """Serve a source of datagrams in a thread named as an engine's."""
    receiver = DatagramReceiver(intake, sockets, FakeClock())
    thread = threading.Thread(target=receiver.run, daemon=True, name="receiver")
    thread.start()
    yield
    receiver.stop()
    thread.join(30)
    assert not thread.is_alive()


@contextlib.contextmanager
def served(url, session, clock):
    """Serve a stream source likewise; give the socket that listens."""
    listener = Listener(url)
    receiver = StreamReceiver(session, listener.server, clock)
    thread = threading.Thread(target=receiver.run, daemon=True, name="receiver")
    thread.start()
    yield listener.server.listener
    receiver.stop()
    thread.join(30)
    assert not thread.is_alive()
    listener.close()


@contextlib.contextmanager
def failing(sock):
    """Let every receive from a socket fail, although something seems to wait there: it is another file meanwhile."""
    kept, zeros = os.dup(sock.fileno()), os.open("/dev/zero", os.O_RDONLY)
    os.dup2(zeros, sock.fileno())
    try:
        yield
    finally:
        os.dup2(kept, sock.fileno())
        os.close(kept)
        os.close(zeros)


@contextlib.contextmanager
def no_waits():
    """Let every wait at more than one descriptor fail: more are not allowed."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def failures(intake):
    return [detail for _, reason, detail in intake.events() if reason == "receive_failed"]


@pytest.fixture
def sockets():
    with contextlib.ExitStack() as opened:
        found = [
            opened.enter_context(open_receiver(f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}")) for _ in range(2)
        ]
        for each in found:
            each.setblocking(False)
        yield found


def sent(host, intake, to):
    """Send a state, and wait until it has been taken."""
    before = intake.accepted
    host.sendto(state(), to)
    eventually(lambda: intake.accepted == before + 1)


@pytest.mark.check
def test_a_socket_that_fails_rests_is_named_once_and_is_heard_again(sockets):
    intake, addresses = new_intake(), [each.getsockname() for each in sockets]
    with receiving(intake, sockets), sender() as host:
        sent(host, intake, addresses[0])
        for occasion in (1, 2):  # what has passed may come again, and is said again
            with failing(sockets[0]):
                sent(host, intake, addresses[1])  # the other one is heard meanwhile, and the wait turns to the file
                eventually(lambda occasion=occasion: intake.rejected == {"receive_failed": occasion})
                before = receivers_cpu_s()
                time.sleep(1.0)
                assert receivers_cpu_s() - before < 0.1
                for _ in range(10):
                    sent(host, intake, addresses[1])
                assert intake.rejected == {"receive_failed": occasion}
            sent(host, intake, addresses[0])
    assert failures(intake) == [errno.ENOTSOCK] * 2


@pytest.mark.check
def test_a_wait_that_fails_rests_is_named_once_and_is_over_with_its_cause(sockets):
    intake = new_intake()
    with receiving(intake, sockets), sender() as host:
        sent(host, intake, sockets[0].getsockname())
        with no_waits():
            host.sendto(state(), sockets[0].getsockname())
            eventually(lambda: intake.rejected == {"receive_failed": 1})
            before = receivers_cpu_s()
            time.sleep(1.0)
            assert receivers_cpu_s() - before < 0.1
        sent(host, intake, sockets[0].getsockname())
        assert intake.rejected == {"receive_failed": 1}
    assert failures(intake) == [errno.EINVAL]


@pytest.mark.check
@pytest.mark.parametrize("broken", ["wait", "accept"])
def test_a_stream_s_server_that_fails_rests_is_named_once_and_is_reached_again(tmp_path, broken):
    url, session, clock = stream_url("unix", tmp_path), city_car_driving.intake(city_car_driving.Options()), FakeClock()
    with served(url, session, clock) as listener, contextlib.ExitStack() as late:
        with contextlib.ExitStack() as trouble, connect(url, timeout_s=30) as first:
            drive(first, INIT_PACKAGE)
            trouble.enter_context(no_waits() if broken == "wait" else failing(listener))
            first.sendall(FRAMES[0])  # what it waits for now comes
            eventually(lambda: session.rejected == {"receive_failed": 1})
            before = receivers_cpu_s()
            for _ in range(5):  # it tries again, and logs nothing more
                time.sleep(0.2)
                clock.advance(100_000_000)
            assert receivers_cpu_s() - before < 0.1
            assert session.rejected == {"receive_failed": 1}
        clock.advance(1_000_000_000)
        drive(late.enter_context(connect(url, timeout_s=30)), INIT_PACKAGE, FRAMES[0])
    assert names(session).count("receive_failed") == 1


def test_the_log_says_what_the_system_says():
    level, text = event_line("receive_failed", errno.ENETDOWN)
    assert level == logging.ERROR
    assert os.strerror(errno.ENETDOWN) in text
