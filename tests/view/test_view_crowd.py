"""The page's port without descriptors, with endless headers, with floods: what it counts, says, and keeps in memory."""

import contextlib
import os
import socket

import pytest
from view_rig import profile, soon
from view_visitor import Visitor

from motioncue.engine.engine import Engine
from motioncue.view.access import Address
from motioncue.view.server import Server

pytestmark = pytest.mark.rt

entrance = pytest.importorskip("motioncue.view.access")
exceptions = pytest.importorskip("websockets.exceptions")


@pytest.fixture
def server():
    with Engine(profile()) as engine, Server(engine, Address("127.0.0.1", 0)) as server:
        yield server


def where(server):
    return server.url.removeprefix("http://").rstrip("/")


def come(server):
    """Return a connection that has said nothing yet."""
    return socket.create_connection(("127.0.0.1", int(where(server).rpartition(":")[2])))


def ended(connection):
    """Say whether the other end has closed a connection, within a minute; what it sent before is read away."""
    connection.settimeout(60)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.skipif(os.name == "nt", reason="limits on descriptors, of POSIX")
@pytest.mark.check
def test_without_a_descriptor_the_port_rests_and_says_so_a_few_times(server, caplog):
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Visitor(server) as page:
        waiting = [socket.socket() for _ in range(3 * entrance.ACCEPTED)]
        taken = [os.open(os.devnull, os.O_RDONLY)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], taken[0] + 200), before[1]))
        try:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.open(os.devnull, os.O_RDONLY))
            for each in waiting:
                each.connect(("127.0.0.1", int(where(server).rpartition(":")[2])))
            soon(lambda: server.counts["starved"])
            looks = 10
            for _ in range(looks):
                page.next("stats")  # each half a second of the server's own time
            assert page.next("frame")
            turns = server.counts["starved"]
        finally:
            for each in taken:
                os.close(each)
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        # It rests a second after each turn; the looks may come late, never early.
        assert turns <= (entrance.ACCEPTED + 1) * looks
        with Visitor(server) as other:
            assert other.next("frame")
        for each in waiting:
            each.close()
    lines = [record for record in caplog.records if "Too many open files" in record.getMessage()]
    assert 1 <= len(lines) <= 5
    assert not any(record.exc_info for record in caplog.records)
    assert "socket.accept() out of system resource" not in caplog.text


def test_headers_without_end_are_ended(server):
    with come(server) as endless, contextlib.suppress(ConnectionError):
        endless.sendall(b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (n, bytes(400)) for n in range(60)))
        assert ended(endless)
    assert server.counts["turned_away"] == 1


def test_a_request_that_does_not_come_is_not_waited_for_long(server, monkeypatch):
    monkeypatch.setattr(entrance, "REQUEST_S", 0.2)
    with come(server) as silent, come(server) as half:
        half.sendall(b"GET / HTTP/1.1\r\nHost: ")
        half.shutdown(socket.SHUT_WR)
        assert ended(silent)
        assert ended(half)
    with Visitor(server) as page:
        assert page.next("frame")


def test_the_oldest_of_the_crowd_makes_room_and_who_asks_is_served(server):
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(come(server)) for _ in range(entrance.MOST + 5)]
        soon(lambda: server.counts["turned_away"] >= 5)
        assert all(ended(each) for each in crowd[:5])
        page = stack.enter_context(Visitor(server))
        assert page.next("frame")
        assert len(server._entrance.connections) <= entrance.MOST


def test_a_page_that_floods_pings_and_reads_nothing_is_dropped_before_it_fills_the_memory(server):
    with come(server) as flood, Visitor(server) as other:
        host = where(server)
        flood.sendall(
            f"GET /live HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        ping = b"\x89\xfd" + bytes(4) + bytes(125)
        flood.settimeout(60)
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                flood.sendall(1000 * ping)
        soon(lambda: server.counts["turned_away"])  # before anything is read
        assert ended(flood)
        assert other.next("frame")
    assert server.counts["turned_away"] == 1
