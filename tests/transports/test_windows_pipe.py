"""Windows named pipes: created as in the document's sample, and used by simulators in every way."""

import contextlib
import ctypes
import sys
import threading
import time
import uuid

import pytest
from helpers import FRAME_REPLY, FRAMES, INIT_PACKAGE, INIT_REPLY, eventually, init, new_session, receive

from motioncue.core.clock import FakeClock
from motioncue.engine.receiver import StreamReceiver
from motioncue.errors import EndpointError
from motioncue.transports.endpoint import Listener, connect
from motioncue.transports.handles import PipeConnection, PipeServer

windows = pytest.mark.skipif(sys.platform != "win32", reason="Windows named pipes")
WINE = sys.platform == "win32" and hasattr(ctypes.windll.ntdll, "wine_get_version")

FRAME = FRAMES[0]
PIPE_ACCESS_DUPLEX, PIPE_SERVER_END = 3, 1
BUSY, GONE = 231, 109


class Served:
    """A receiver at a pipe, in a thread that `run` starts."""

    def __init__(self):
        self.name = f"motioncue-test-{uuid.uuid4().hex[:8]}"
        self.url = f"pipe://{self.name}"
        self.intake = new_session()
        self.listener = Listener(self.url)
        self.receiver = StreamReceiver(self.intake, self.listener.server, FakeClock())  # never silent for long
        self.thread = threading.Thread(target=self.receiver.run, daemon=True)

    def run(self):
        """Start to serve."""
        self.thread.start()
        return self

    def close(self):
        """Stop, and assert that the loop has ended and the pipe is gone."""
        if self.thread.is_alive():
            self.receiver.stop()
            self.thread.join(30)
        assert not self.thread.is_alive()
        self.listener.close()
        with pytest.raises(EndpointError, match="cannot connect"):
            connect(self.url)

    def client(self):
        """Return a connection that waits long."""
        client = connect(self.url)
        client.settimeout(30)
        return client


@pytest.fixture
def served():
    """Return a receiver at a pipe of its own, not running yet."""
    served = Served()
    yield served
    served.close()


def drive(client, frames=3):
    """Send an init package and frames in lock-step; every reply must be the right one."""
    client.sendall(INIT_PACKAGE)
    assert receive(client, 6) == INIT_REPLY
    for package in FRAMES[:frames]:
        client.sendall(package)
        assert receive(client, 4) == FRAME_REPLY


def ended(client):
    """Return what the server still sends until it closes."""
    data = b""
    while True:
        try:
            piece = client.recv(4096)
        except OSError:
            return data
        if not piece:
            return data
        data += piece


@pytest.mark.skipif(sys.platform == "win32", reason="off Windows there are no such pipes")
def test_off_windows_there_is_no_such_pipe():
    for make in (PipeServer, PipeConnection):
        with pytest.raises(OSError, match="no Windows named pipes"):
            make("x")


@windows
@pytest.mark.rt
def test_a_simulator_drives_in_lock_step(served):
    served.run()
    with served.client() as client:
        drive(client, 100)
    eventually(lambda: served.intake.accepted == 100)
    assert served.intake.rejected == {}


@windows
@pytest.mark.rt
def test_merged_writes_are_answered_one_by_one(served):
    served.run()
    with served.client() as client:
        client.sendall(INIT_PACKAGE + b"".join(FRAMES[:10]))
        assert receive(client, 6 + 10 * 4) == INIT_REPLY + 10 * FRAME_REPLY
    assert served.intake.accepted == 10


@windows
@pytest.mark.rt
@pytest.mark.parametrize("size", [1, 2, 3, 38, 50, 106])
def test_split_writes_make_whole_packages(served, size):
    served.run()
    data = INIT_PACKAGE + b"".join(FRAMES[:5])
    with served.client() as client:
        for start in range(0, len(data), size):
            client.sendall(data[start : start + size])
        assert receive(client, 6 + 5 * 4) == INIT_REPLY + 5 * FRAME_REPLY
    assert served.intake.accepted == 5
    assert served.intake.rejected == {}


@windows
@pytest.mark.rt
def test_more_than_fits_a_buffer_is_taken_in_turns(served):
    served.run()
    count = 2000  # 214 kB in, 8 kB of replies
    with served.client() as client:
        client.sendall(INIT_PACKAGE)
        writer = threading.Thread(target=client.sendall, args=(b"".join(FRAMES[:100] * (count // 100)),), daemon=True)
        writer.start()
        assert receive(client, 6 + 4 * count) == INIT_REPLY + count * FRAME_REPLY
        writer.join(30)
        assert not writer.is_alive()
    assert served.intake.accepted == count


@windows
@pytest.mark.rt
def test_a_simulator_that_came_before_anybody_served_is_served(served):
    """The client has connected before the server asks: ERROR_PIPE_CONNECTED."""
    with served.client() as client:
        client.sendall(INIT_PACKAGE)
        served.run()
        assert receive(client, 6) == INIT_REPLY


@windows
@pytest.mark.rt
def test_a_simulator_that_came_and_left_before_anybody_served_is_no_obstacle(served):
    """The client has connected and left before the server asks: ERROR_NO_DATA; what it wrote counts."""
    with served.client() as client:
        client.sendall(b"\x00\x00")
    served.run()
    with served.client() as client:
        drive(client)
    assert served.intake.rejected == {"framing": 1}
    assert served.intake.sessions == 3  # one was begun when it was made


@windows
@pytest.mark.rt
@pytest.mark.parametrize("sent", [0, 1, 39, 39 + 50, 39 + 107])
def test_simulators_may_leave_at_any_byte_and_come_back(served, sent):
    served.run()
    data = (INIT_PACKAGE + FRAME)[:sent]
    for count in range(1, 6):
        with served.client() as client:
            client.sendall(data)
        eventually(lambda count=count: served.intake.sessions == 1 + count)  # one was begun when it was made
    with served.client() as client:
        drive(client)
    assert served.intake.rejected == {}


@windows
@pytest.mark.rt
def test_a_write_of_no_bytes_is_not_the_end(served):
    served.run()
    kernel = ctypes.windll.kernel32
    kernel.CreateFileW.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.CreateFileW(rf"\\.\pipe\{served.name}", 0xC0000000, 0, None, 3, 0, None))
    done = ctypes.c_ulong()
    for data in (b"", INIT_PACKAGE, b"", b"", FRAME):
        assert kernel.WriteFile(handle, data, len(data), ctypes.byref(done), None)
    replies = ctypes.create_string_buffer(10)
    got = b""
    while len(got) < 10:
        assert kernel.ReadFile(handle, replies, 10, ctypes.byref(done), None)
        got += replies.raw[: done.value]
    assert got == INIT_REPLY + FRAME_REPLY
    kernel.CloseHandle(handle)


@windows
@pytest.mark.rt
def test_a_second_simulator_is_closed_and_the_first_drives_on(served):
    served.run()
    with served.client() as first:
        drive(first)
        for count in range(1, 4):
            with served.client() as second:
                assert ended(second) == b""
            eventually(lambda count=count: served.intake.rejected.get("second_simulator", 0) >= count)
        drive(first)
    with served.client() as third:
        drive(third)


@windows
@pytest.mark.rt
def test_the_last_answer_arrives_before_the_end(served):
    """When framing is lost the package is answered, then the connection closed; what was written can still be read."""
    served.run()
    with served.client() as client:
        drive(client)
        client.sendall(b"\x00\x00\x00")
        assert ended(client) == FRAME_REPLY
    with served.client() as client:
        drive(client)
    assert served.intake.rejected == {"framing": 1}


@windows
@pytest.mark.rt
def test_a_simulator_that_never_reads_does_not_stop_the_server(served):
    served.run()
    with served.client() as client:
        client.settimeout(0.5)
        client.sendall(INIT_PACKAGE)
        with contextlib.suppress(OSError):
            for _ in range(3000):
                client.sendall(FRAME)
    with served.client() as client:
        drive(client)


@windows
@pytest.mark.rt
@pytest.mark.parametrize("state", ["waiting", "driving", "in a package"])
def test_stop_cancels_whatever_is_pending(served, state):
    served.run()
    clients = [] if state == "waiting" else [served.client()]
    for client in clients:
        drive(client)
        if state == "in a package":
            client.sendall(FRAME[:50])
    time.sleep(0.05)
    served.receiver.stop()
    served.thread.join(30)
    assert not served.thread.is_alive()
    for client in clients:
        assert ended(client) == b""
        client.close()


@windows
@pytest.mark.rt
def test_a_listener_that_never_served_can_be_closed(served):
    assert served.intake.accepted == 0


@windows
@pytest.mark.rt
def test_nothing_is_left_open():
    kernel = ctypes.windll.kernel32

    def handles():
        count = ctypes.c_ulong()
        assert kernel.GetProcessHandleCount(ctypes.c_void_p(-1), ctypes.byref(count))
        return count.value

    def use():
        served = Served().run()
        for _ in range(3):
            with served.client() as client:
                drive(client)
        served.close()

    use()
    before = handles()
    for _ in range(5):
        use()
    assert handles() <= before + 2


@windows
@pytest.mark.rt
def test_the_pipe_is_what_the_documents_sample_creates(served):
    """Duplex, byte mode, 10 instances."""
    kernel = ctypes.windll.kernel32
    kernel.CreateFileW.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.CreateFileW(rf"\\.\pipe\{served.name}", 0xC0000000, 0, None, 3, 0, None))
    flags, instances, mode = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_ulong()
    assert kernel.GetNamedPipeInfo(handle, ctypes.byref(flags), None, None, ctypes.byref(instances))
    assert flags.value & 4 == 0  # PIPE_TYPE_MESSAGE
    assert instances.value == 10
    message_mode = ctypes.c_ulong(2)
    assert not kernel.SetNamedPipeHandleState(handle, ctypes.byref(message_mode), None, None)
    assert kernel.GetLastError() == 87  # a byte pipe cannot be read as messages
    assert kernel.GetNamedPipeHandleStateW(handle, ctypes.byref(mode), None, None, None, None, 0)
    assert mode.value & 2 == 0
    kernel.CloseHandle(handle)


@windows
@pytest.mark.rt
def test_only_this_user_and_the_system_may_open_the_pipe(served):
    kernel, advapi = ctypes.windll.kernel32, ctypes.windll.advapi32
    kernel.CreateFileW.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.CreateFileW(rf"\\.\pipe\{served.name}", 0xC0000000, 0, None, 3, 0, None))
    descriptor, text = ctypes.c_void_p(), ctypes.c_wchar_p()
    KERNEL_OBJECT, DACL = 6, 4
    assert not advapi.GetSecurityInfo(handle, KERNEL_OBJECT, DACL, None, None, None, None, ctypes.byref(descriptor))
    assert advapi.ConvertSecurityDescriptorToStringSecurityDescriptorW(descriptor, 1, DACL, ctypes.byref(text), None)
    entries = text.value.partition("(")[2].rstrip(")").split(")(")
    assert len(entries) == 2
    assert all(entry.startswith("A;;") for entry in entries)
    users = [entry.rpartition(";")[2] for entry in entries]
    assert users[0] == "SY"
    assert users[1].startswith("S-1-5-21-") or users[1] == "LA"
    kernel.CloseHandle(handle)


class Occupied:
    """A pipe of one instance, made with plain calls, that is in use."""

    def __init__(self, name):
        kernel = self.kernel = ctypes.windll.kernel32
        kernel.CreateNamedPipeW.restype = kernel.CreateFileW.restype = ctypes.c_void_p
        self.server = ctypes.c_void_p(
            kernel.CreateNamedPipeW(rf"\\.\pipe\{name}", PIPE_ACCESS_DUPLEX, 0, 1, 64, 64, 0, None)
        )
        self.client = ctypes.c_void_p(kernel.CreateFileW(rf"\\.\pipe\{name}", 0xC0000000, 0, None, 3, 0, None))

    def free(self):
        """Let the next one in."""
        self.kernel.CloseHandle(self.client)
        self.kernel.DisconnectNamedPipe(self.server)
        threading.Thread(target=self.kernel.ConnectNamedPipe, args=(self.server, None), daemon=True).start()


@windows
@pytest.mark.rt
def test_a_busy_pipe_is_waited_for_as_long_as_allowed_then_refused():
    name = f"motioncue-test-{uuid.uuid4().hex[:8]}"
    occupied = Occupied(name)
    with pytest.raises(OSError) as refusal:  # noqa: PT011
        PipeConnection(name, 0.1)
    assert refusal.value.winerror == BUSY
    with pytest.raises(EndpointError, match="cannot connect"):
        connect(f"pipe://{name}", 0.1)
    timer = threading.Timer(0.2, occupied.free)
    timer.start()
    PipeConnection(name, 30.0).close()
    timer.join()


@windows
@pytest.mark.rt
def test_a_server_that_is_silent_ends_a_call_in_time_and_no_byte_is_lost(served):
    with served.client() as client:
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.recv(10)
        client.sendall(INIT_PACKAGE)
        served.run()
        client.settimeout(30)
        assert receive(client, 6) == INIT_REPLY


@windows
@pytest.mark.rt
def test_a_closed_connection_refuses_to_be_used(served):
    client = served.client()
    client.close()
    client.close()
    for call in (lambda: client.recv(1), lambda: client.sendall(b"x")):
        with pytest.raises(OSError, match="closed"):
            call()


@windows
@pytest.mark.rt
def test_nobody_there_is_an_endpoint_error_that_names_the_pipe():
    with pytest.raises(EndpointError, match="pipe://nobody-here: cannot connect"):
        connect("pipe://nobody-here")


@windows
@pytest.mark.rt
@pytest.mark.skipif(WINE, reason="Wine 8 ignores FILE_FLAG_FIRST_PIPE_INSTANCE")
def test_a_pipe_that_somebody_else_serves_is_refused(served):
    with pytest.raises(EndpointError, match="in use"):
        Listener(served.url)


@windows
@pytest.mark.rt
def test_an_engine_that_comes_back_waits_for_a_simulator_to_close_its_old_end():
    """The name stays until then; Wine gives it back at once."""
    session, url = new_session(), f"pipe://motioncue-test-{uuid.uuid4().hex[:8]}"
    before = Listener(url)
    client = connect(url)
    before.close()
    listener = Listener(url)
    assert listener.server.held == (not WINE)
    receiver = StreamReceiver(session, listener.server, FakeClock())
    thread = threading.Thread(target=receiver.run, daemon=True)
    thread.start()
    client.close()
    clients = []

    def served():
        with contextlib.suppress(EndpointError):
            clients.append(connect(url))
        return clients

    eventually(served)
    drive(clients[0])
    clients[0].close()
    receiver.stop()
    thread.join(30)
    assert not thread.is_alive()
    listener.close()


@windows
@pytest.mark.rt
def test_a_name_that_is_too_long_is_refused():
    with pytest.raises(EndpointError, match="cannot listen"):
        Listener("pipe://" + "x" * 400)


@windows
@pytest.mark.rt
def test_axes_are_renewed_by_a_second_init(served):
    served.run()
    with served.client() as client:
        drive(client)
        client.sendall(init(forward=(0.0, 0.0, -1.0)))
        assert receive(client, 6) == INIT_REPLY
        drive(client)
