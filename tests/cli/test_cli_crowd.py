"""A crowd at the page's port: hundreds of connections that say nothing, or little, while a run has few descriptors."""

import contextlib
import json
import os
import select
import signal
import socket
import threading

import pytest
from helpers import eventually, free_port, nowhere
from programs import Feeder, Program

from motioncue.recording.recording import read

pytestmark = [pytest.mark.rt, pytest.mark.skipif(os.name == "nt", reason="limits on descriptors, of POSIX")]

client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")

DESCRIPTORS = 128  # of the run
AT_ONCE = 300  # connections of the crowd: more than that
SAID = 10_000  # [bytes] on stderr, whatever the crowd does


class Crowd:
    """Holds connections at a port that send one byte after the other of `text`; comes back whenever it is ended."""

    def __init__(self, port, text=b""):
        self.came = 0
        self._port, self._text = port, text
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        held = []
        while not self._stop.is_set():
            while len(held) < AT_ONCE and not self._stop.is_set():
                each = socket.socket()
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", self._port))
                held.append(each)
                self.came += 1
            poll = select.poll()
            for each in held:
                poll.register(each, select.POLLIN)
            ended = {descriptor for descriptor, _ in poll.poll(20)}
            for each in [each for each in held if each.fileno() in ended]:
                held.remove(each)
                each.close()
            for each in held if self._text else ():
                with contextlib.suppress(OSError):
                    each.send(self._text[self.came % len(self._text) :][:1])
        for each in held:
            each.close()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)


@pytest.fixture(autouse=True)
def _many_descriptors():
    """Let this process hold the crowd."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def few_descriptors():
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def run(port, url, folder):
    """Return a run with few descriptors, a page, and a recording that begins another file each second."""
    sets = ["source.endpoint=" + url, f"output.motion={nowhere()}", f"output.gauges={nowhere()}"]
    sets += ["supervisor.fade_s=0.1", f"record.file={folder}/drive.mcap", "record.roll_s=1"]
    options = [part for each in sets for part in ("--set", each)]
    return Program("run", "--view", str(port), "--json", *options, preexec_fn=few_descriptors)


def page(port):
    """Return a page's connection, however often it has to ask."""
    found = []

    def attempt():
        with contextlib.suppress(OSError, EOFError, TimeoutError, exceptions.WebSocketException):
            where = f"127.0.0.1:{port}"
            found.append(client.connect(f"ws://{where}/live", origin=f"http://{where}", open_timeout=5))
        return found

    eventually(attempt)
    return found[0]


def told(connection, fits):
    """Return the newest statistics that fit, within a minute of frames; acknowledge them as a page does."""
    for _ in range(4000):
        message = connection.recv(timeout=60)
        if isinstance(message, bytes):
            connection.frames = getattr(connection, "frames", 0) + 1  # of the whole connection
            connection.send(json.dumps({"do": "seen", "frames": connection.frames}))
        elif (said := json.loads(message))["kind"] == "stats" and fits(said):
            return said
    raise AssertionError("never")


def parked(stats):
    return any(move["reason"] == "operator_park" for move in stats["transitions"])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="silent", marks=pytest.mark.search),
        pytest.param(b"GET / HTTP/1.1\r\nX: x\r\n", id="a byte now and then"),
    ],
)
@pytest.mark.check
def test_simulator_park_recording_and_a_new_page_get_by_a_crowd(tmp_path, text):
    port, url = free_port(), f"tcp://127.0.0.1:{free_port()}"
    with run(port, url, tmp_path) as program:
        program.says("waiting for")
        with page(port) as first, Crowd(port, text) as crowd:
            told(first, lambda stats: crowd.came > 2 * AT_ONCE)
            with Feeder(url):
                told(first, lambda stats: stats["state"] == "RUNNING")
                with page(port) as second:
                    second.send('{"do": "operate", "what": "engage"}')
                    told(second, lambda stats: stats["frames_received"])
                first.send('{"do": "operate", "what": "park"}')
                told(first, parked)
                files = len(list(tmp_path.iterdir()))
                told(first, lambda stats: len(list(tmp_path.iterdir())) >= files + 2)
            first.close()
        program.signal(signal.SIGINT)
        stats = program.end()
        said = sum(map(len, program._said))
    assert stats["frames_received"] > 0
    assert stats["recorded"]["lost"] == 0
    assert said < SAID, "".join(program._said)[:SAID]
    ticks = [index for path in stats["recorded"]["files"] for index in read(path).ticks["index"].tolist()]
    assert ticks == sorted(set(ticks))
    assert len(ticks) == stats["recorded"]["ticks"]
