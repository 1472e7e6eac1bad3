"""Endpoints and their sockets: which are understood, which are refused, and what they leave behind."""

import os
import socket
import stat
import struct
import subprocess
import sys
import textwrap
import uuid

import pytest
from helpers import bindable, free_port, loopbacks
from hypothesis import given
from hypothesis import strategies as st

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import (
    FORMS,
    UNIX_PATH_MAX,
    Endpoint,
    Listener,
    as_socket,
    connect,
    open_receiver,
    open_sender,
    parse_endpoint,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")

# URLs.

GOOD = {
    "pipe://DynamicCabPipe": Endpoint("pipe", path="DynamicCabPipe"),
    "unix:///run/user/1000/cab": Endpoint("unix", path="/run/user/1000/cab"),
    "unix://relative.sock": Endpoint("unix", path="relative.sock"),
    "tcp://127.0.0.1:4444": Endpoint("tcp", "127.0.0.1", 4444),
    "tcp://localhost:1": Endpoint("tcp", "localhost", 1),
    "tcp://:4444": Endpoint("tcp", "127.0.0.1", 4444),
    "tcp://[::1]:65535": Endpoint("tcp", "::1", 65535),
    "udp://192.168.0.17:4445": Endpoint("udp", "192.168.0.17", 4445),
    "udp://[fe80::1%eth0]:4445": Endpoint("udp", "fe80::1%eth0", 4445),
    "udp://rig.example:4445": Endpoint("udp", "rig.example", 4445),
}


@pytest.mark.parametrize("url", GOOD)
def test_an_endpoint_is_what_its_url_says(url):
    assert parse_endpoint(url) == GOOD[url]


@pytest.mark.parametrize("url", [url for url in GOOD if url != "tcp://:4444"])
def test_an_endpoint_prints_as_its_url(url):
    assert str(parse_endpoint(url)) == url


def test_no_host_means_loopback():
    assert str(parse_endpoint("udp://:4445")) == "udp://127.0.0.1:4445"
    assert parse_endpoint("udp://:4445").local


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("pipe://a", True), ("unix:///a", True), ("tcp://localhost:1", True), ("tcp://127.8.9.1:1", True),
        ("tcp://[::1]:1", True), ("tcp://0.0.0.0:1", False), ("udp://192.168.0.17:1", False), ("tcp://[::]:1", False),
        ("tcp://rig.example:1", False),
    ],
)  # fmt: skip
def test_an_endpoint_knows_whether_others_can_reach_it(url, local):
    assert parse_endpoint(url).local is local


BAD = [
    "", "DynamicCabPipe", "/tmp/s", "http://localhost:80", "tcp:/localhost:1", "TCP://localhost:1", "tcp://localhost",
    "tcp://localhost:", "tcp://localhost:0", "tcp://localhost:65536", "tcp://localhost:-1", "tcp://localhost:http",
    "tcp://localhost:٣", "tcp://::1:4444", "tcp://[::1]", "tcp://user@localhost:1", "tcp://a b:1", "tcp://a/b:1",
    "udp://localhost:4444/path", "pipe://", "pipe://a/b", "pipe://a\\b", 'pipe://a"b', "pipe://a\0b", "unix://",
    "unix://a\0b", "unix:///" + UNIX_PATH_MAX * "x",
]  # fmt: skip


@pytest.mark.parametrize("url", BAD)
def test_a_bad_url_is_refused_with_itself_and_what_is_allowed(url):
    with pytest.raises(EndpointError) as refusal:
        parse_endpoint(url)
    assert repr(url) in str(refusal.value)
    assert "allowed" in str(refusal.value) or "has no" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_longest_unix_path_is_counted_in_bytes():
    assert parse_endpoint("unix://" + "x" * UNIX_PATH_MAX).path == "x" * UNIX_PATH_MAX
    with pytest.raises(EndpointError):
        parse_endpoint("unix://" + "ü" * (UNIX_PATH_MAX // 2 + 1))


@pytest.mark.parametrize("scheme", FORMS)
def test_a_scheme_out_of_place_is_refused(scheme):
    others = tuple(other for other in FORMS if other != scheme)
    with pytest.raises(EndpointError, match=FORMS[others[0]]):
        parse_endpoint(FORMS[scheme].replace("PORT", "1"), others)


@given(st.text(max_size=40), st.sampled_from(["", *(f"{scheme}://" for scheme in FORMS)]))
@pytest.mark.check
def test_any_text_is_an_endpoint_or_refused(text, prefix):
    try:
        endpoint = parse_endpoint(prefix + text)
    except EndpointError:
        return
    assert parse_endpoint(str(endpoint)) == endpoint


@posix
def test_a_pipe_is_the_unix_socket_that_dotnet_uses_for_it():
    where = as_socket(parse_endpoint("pipe://DynamicCabPipe"))
    assert where.scheme == "unix"
    assert os.path.basename(where.path) == "CoreFxPipe_DynamicCabPipe"


# Listening.


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s"


@pytest.fixture
def url(path):
    return f"unix://{path}"


def leave_stale(path):
    """Leave the socket of a process that was killed."""
    program = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()"
    subprocess.run([sys.executable, "-S", "-c", program, str(path)], check=True)
    assert stat.S_ISSOCK(path.stat().st_mode)


@posix
@pytest.mark.rt
def test_a_unix_socket_is_the_owners_alone_and_goes_with_its_listener(path, url):
    before = os.umask(0)
    try:
        listener = Listener(url)
    finally:
        os.umask(before)
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    listener.close()
    assert not path.exists()


@posix
@pytest.mark.rt
def test_the_socket_of_a_killed_process_is_reclaimed(path, url):
    leave_stale(path)
    listener = Listener(url)
    connect(url).close()
    listener.close()
    assert not path.exists()


@posix
@pytest.mark.rt
def test_the_socket_of_a_living_process_is_refused_and_left_alone(path, url):
    first = Listener(url)
    inode = path.stat().st_ino
    for _ in range(3):
        with pytest.raises(EndpointError, match="in use") as refusal:
            Listener(url)
        assert url in str(refusal.value)
    assert path.stat().st_ino == inode
    connect(url).close()
    first.close()
    assert bindable(url)


@posix
@pytest.mark.rt
def test_the_socket_of_a_process_that_hangs_is_refused(path, url):
    hanging = socket.socket(socket.AF_UNIX)
    hanging.bind(str(path))
    hanging.listen(0)
    waiting = []
    try:
        for _ in range(4):  # soon the queue is full, as no connection is accepted
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(str(path))
        with pytest.raises(EndpointError, match="cannot listen"):
            Listener(url)
        assert path.exists()
    finally:
        for each in (hanging, *waiting):
            each.close()


@posix
@pytest.mark.rt
def test_a_file_that_is_not_a_socket_is_never_removed(path, url):
    path.write_text("precious")
    with pytest.raises(EndpointError, match="not a socket"):
        Listener(url)
    assert path.read_text() == "precious"


@posix
@pytest.mark.rt
def test_a_folder_in_the_way_and_a_missing_folder_are_refused(path, url):
    path.mkdir()
    with pytest.raises(EndpointError, match="not a socket"):
        Listener(url)
    with pytest.raises(EndpointError, match="No such file"):
        Listener(f"unix://{path}/missing/s")


@posix
@pytest.mark.rt
def test_a_forked_process_that_closes_does_not_remove_the_socket_of_its_parent(path, url):
    listener = Listener(url)
    child = os.fork()
    if child == 0:
        try:
            listener.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    connect(url).close()
    listener.close()
    assert not path.exists()


@posix
@pytest.mark.rt
def test_closing_does_not_remove_the_socket_of_a_successor(path, url):
    first = Listener(url)
    path.unlink()
    second = Listener(url)
    first.close()
    assert path.exists()
    connect(url).close()
    second.close()
    assert not path.exists()


@pytest.mark.rt
def test_a_busy_tcp_port_is_refused_and_free_again_after_close():
    url = f"tcp://127.0.0.1:{free_port()}"
    first = Listener(url)
    with pytest.raises(EndpointError, match="in use"):
        Listener(url)
    connect(url).close()
    first.close()
    with pytest.raises(EndpointError, match="cannot connect"):
        connect(url)
    Listener(url).close()


@pytest.mark.rt
def test_tcp_replies_are_not_held_back():
    url = f"tcp://127.0.0.1:{free_port()}"
    listener = Listener(url)
    client = connect(url)
    listener.server.listener.settimeout(30)
    server, _ = listener.server.listener.accept()
    for each in (client, server):
        assert each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        each.close()
    listener.close()


@pytest.mark.rt
@pytest.mark.parametrize("url", ["tcp://256.0.0.1:4444", "tcp://192.0.2.1:4444", "tcp://no-such-host.invalid:4444"])
def test_a_host_that_is_not_ours_cannot_be_listened_at(url):
    with pytest.raises(EndpointError, match="cannot listen"):
        Listener(url)


@posix
@pytest.mark.rt
def test_a_pipe_listens_and_connects_by_name():
    url = f"pipe://motioncue-test-{uuid.uuid4().hex[:8]}"
    listener = Listener(url)
    where = as_socket(listener.endpoint).path
    connect(url).close()
    listener.close()
    assert not os.path.exists(where)


@pytest.mark.rt
@pytest.mark.parametrize("scheme", ["tcp"] if sys.platform == "win32" else ["unix", "tcp"])
def test_an_endpoint_without_a_listener_is_an_error(scheme, path):
    url = f"unix://{path}" if scheme == "unix" else f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(EndpointError, match="cannot connect"):
        connect(url)


@pytest.mark.parametrize("url", ["udp://127.0.0.1:4444", "tcp://localhost", "nonsense"])
@pytest.mark.parametrize("function", [Listener, connect])
def test_an_endpoint_that_is_not_a_stream_is_refused(function, url):
    with pytest.raises(EndpointError, match="allowed"):
        function(url)


# Datagrams.


@pytest.mark.rt
@pytest.mark.parametrize("host", loopbacks())
def test_datagrams_arrive_whole_and_in_order(host):
    url = str(Endpoint("udp", host, free_port(socket.SOCK_DGRAM, host)))
    receiver = open_receiver(url)
    receiver.settimeout(30)
    sender, address = open_sender(url)
    assert address[0] == host
    for number in range(20):
        sender.sendto(struct.pack("<I", number), address[:2])
    assert [receiver.recv(100) for _ in range(20)] == [struct.pack("<I", number) for number in range(20)]
    sender.close()
    receiver.close()


@pytest.mark.rt
def test_a_name_becomes_a_number_before_anything_is_sent():
    sender, (host, port, scope) = open_sender("udp://localhost:4445")
    sender.close()
    assert host in ("127.0.0.1", "::1")
    assert (port, scope) == (4445, 0)


@pytest.mark.rt
def test_a_busy_udp_port_is_refused():
    url = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    first = open_receiver(url)
    with pytest.raises(EndpointError, match="in use"):
        open_receiver(url)
    first.close()
    open_receiver(url).close()


@pytest.mark.rt
@pytest.mark.parametrize("function", [open_receiver, open_sender])
@pytest.mark.parametrize("url", ["udp://no-such-host.invalid:4444", "tcp://127.0.0.1:4444", "udp://127.0.0.1"])
def test_a_bad_datagram_endpoint_is_refused(function, url):
    with pytest.raises(EndpointError) as refusal:
        function(url)
    assert url in str(refusal.value)


@posix
@pytest.mark.rt
def test_nothing_is_left_open_after_a_refusal(path):
    """Files are counted in a process of its own, so that one left open shows as one more."""
    port, datagram = free_port(), free_port(socket.SOCK_DGRAM)
    program = textwrap.dedent(f"""
        import os
        from motioncue.errors import EndpointError
        from motioncue.transports.endpoint import Listener, connect, open_receiver
        held = [Listener("unix://{path}"), Listener("tcp://127.0.0.1:{port}"), open_receiver("udp://127.0.0.1:{datagram}")]
        attempts = [
            (Listener, "unix://{path}"), (Listener, "tcp://127.0.0.1:{port}"), (Listener, "unix://{path}/x"),
            (open_receiver, "udp://127.0.0.1:{datagram}"), (connect, "unix://{path}x"), (connect, "tcp://127.0.0.1:1"),
        ]
        files = lambda: len(os.listdir("/dev/fd"))
        before = files()
        kept = []
        for function, url in attempts:
            try:
                function(url)
            except EndpointError as error:
                kept.append(error)      # with its traceback, and all that holds
        assert len(kept) == len(attempts)
        assert files() == before, (files(), before)
    """)
    subprocess.run([sys.executable, "-c", program], check=True)
