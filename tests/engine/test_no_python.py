"""Ticks go out and frames come in while the GIL is held, garbage is collected, a log is slow and a viewer is dead.

Every test shows first that Python really stood still, and then what the loops did in that time.  The clock only tells
which ticks lie in it; the required number is far below the expected one, and far above what Python could have allowed.
"""

import array
import contextlib
import ctypes
import gc
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from engine_rig import Rig, assert_grid, assert_offline_gives_the_same, player
from helpers import FRAMES, PACKAGES, eventually

from motioncue.core.clock import FakeClock, now_ns
from motioncue.engine.assembly import load_profile
from motioncue.engine.pipeline import Pipeline
from motioncue.output.dk import MOTION, STREAMS

PERIOD = 3_000_030
HELD_MS = 200


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as rig:
        yield rig


class Witness:
    """A Python thread that notes the time as often as it is let."""

    def __init__(self):
        self.times = array.array("q")
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._done.is_set():
            self.times.append(now_ns())
            time.sleep(0.0005)
        self.times.append(now_ns())

    def __enter__(self):
        self._thread.start()
        eventually(lambda: len(self.times) > 10)
        return self

    def __exit__(self, *error):
        self._done.set()
        self._thread.join(30)

    def stood_still(self, calls):
        """Return the longest pause of this thread during each call: begin and end [ns]."""
        times = np.array(self.times)
        found = []
        for before, after in calls:
            inside = np.flatnonzero((times[1:] > before) & (times[:-1] < after))
            longest = inside[np.argmax(np.diff(times)[inside])]
            found.append((int(times[longest]), int(times[longest + 1])))
        return found


def timed(call):
    """Return when a call began and ended [ns]."""
    before = now_ns()
    call()
    return before, now_ns()


def assert_ticks_and_frames_went_on(trace, begin, end):
    """Assert that ticks of a time span were sent, and that they read ever newer frames.

    Loops that needed Python would have sent the tick that began before the span and the one that ended it, with one
    frame.  How many more there are depends on the machine; `test_emitter` shows on a fake clock that none is left out.
    """
    sent = trace["deadline"] + trace["lateness"]
    inside = trace[(sent > begin) & (sent < end)]
    due = (end - begin) // PERIOD
    assert due > 5
    assert len(inside) >= 4
    assert len(np.unique(inside["motion"]["time"])) >= 3


@contextlib.contextmanager
def driven(rig):
    """Run an engine while a process plays the whole real drive; show at the end that neither side lost anything."""
    with rig.engine("ccd-dk-classical") as engine:
        process = player(rig.url, 1000.0)
        try:
            eventually(lambda: engine.newest()["weight"][0] == 1.0)
            yield engine
            sent, replies, lost = map(int, process.communicate(timeout=100)[0].split())
        finally:
            process.kill()
    stats = engine.stats()
    assert (sent, replies, lost) == (len(FRAMES), len(PACKAGES), 0)
    assert (stats["frames_received"], stats["replies_sent"], stats["rejected"]) == (len(FRAMES), len(PACKAGES), {})
    assert (stats["datagrams_sent"], stats["send_errors"]) == (2 * stats["packets_sent"], 0)
    assert_grid(engine)
    assert_offline_gives_the_same(engine.profile, engine.trace)
    assert len(rig.motion.all(stats["packets_sent"])) == stats["packets_sent"]


def stand_still():
    """Keep the GIL for `HELD_MS`, in one C call, without using the processor."""
    if sys.platform == "win32":
        ctypes.PyDLL("kernel32").Sleep(HELD_MS)
    else:
        ctypes.PyDLL(None).usleep(1000 * HELD_MS)


@pytest.mark.rt
@pytest.mark.alone
def test_a_thread_that_holds_the_gil_moves_no_tick_and_loses_no_package(rig):
    with driven(rig) as engine, Witness() as witness:
        calls = []
        for _ in range(5):
            calls.append(timed(stand_still))
            time.sleep(0.05)
    for begin, end in witness.stood_still(calls):
        assert end - begin >= HELD_MS * 1e6  # no Python ran: a tick that needed the GIL would have waited as long
        assert_ticks_and_frames_went_on(engine.trace, begin, end)


@pytest.mark.rt
@pytest.mark.alone
@pytest.mark.parametrize("objects", [1_000_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_a_collection_of_many_objects_moves_no_tick_and_loses_no_package(rig, objects):
    gc.disable()  # but for the one that is meant
    try:
        garbage = [[] for _ in range(objects)]
        with driven(rig) as engine, Witness() as witness:
            call = timed(gc.collect)
        assert len(garbage) == objects
    finally:
        gc.enable()
    ((begin, end),) = witness.stood_still([call])
    assert_ticks_and_frames_went_on(engine.trace, begin, end)


class SlowLog(logging.Handler):
    """A handler that is slow for every line logged by the engine's own thread."""

    def __init__(self):
        super().__init__()
        self.times = []

    def emit(self, record):
        if record.threadName == "motioncue _drain":
            begin = now_ns()
            time.sleep(0.5)
            self.times.append((begin, now_ns()))


@pytest.mark.rt
@pytest.mark.alone
def test_a_slow_log_moves_no_tick_and_loses_no_package(rig, caplog):
    caplog.set_level(logging.DEBUG, "motioncue")
    log, slow = logging.getLogger("motioncue"), SlowLog()
    log.addHandler(slow)
    try:
        with driven(rig) as engine:
            eventually(lambda: len(slow.times) >= 2)
    finally:
        log.removeHandler(slow)
    for begin, end in slow.times[1:2]:  # the first says that a simulator connects
        assert_ticks_and_frames_went_on(engine.trace, begin, end)


@pytest.mark.rt
@pytest.mark.alone
@pytest.mark.skipif(sys.platform == "win32", reason="a terminal that nobody reads")
def test_a_viewer_that_died_moves_no_tick_and_loses_no_package(rig):
    import fcntl
    import termios

    def unread():
        return struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)))[0]

    terminal, screen = os.openpty()
    keys = [f"source.endpoint={rig.url}", f"output.motion={rig.motion.url}", f"output.gauges={rig.gauges.url}"]
    command = [sys.executable, "-m", "motioncue", "run", *(word for key in keys for word in ("--set", key))]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=screen, stdout=screen, stderr=screen, env=environment) as running:
        try:
            eventually(lambda: unread() > 0)
            eventually(lambda: waits_for_its_terminal(running.pid))
            full, packets = unread(), len(rig.motion.packets)
            process = player(rig.url, 1000.0)
            sent, replies, lost = map(int, process.communicate(timeout=100)[0].split())
            received = rig.motion.packets[packets:]
            # The view has not drawn one character, but simulator and platform are not affected.
            assert unread() == full
            assert waits_for_its_terminal(running.pid)
            assert (sent, replies, lost) == (len(FRAMES), len(PACKAGES), 0)
            assert len(set(received)) >= 20  # none, if the emitter waited for the view
        finally:
            running.kill()
            os.close(terminal)
            os.close(screen)


def waits_for_its_terminal(pid):
    """Say whether a thread of a process is blocked in a write."""
    try:
        calls = [path.read_text().split()[0] for path in Path(f"/proc/{pid}/task").glob("*/syscall")]
    except OSError:  # the kernel does not tell
        return True
    return not calls or {"x86_64": "1", "aarch64": "64"}.get(os.uname().machine, calls[0]) in calls


@pytest.mark.skipif(sys.platform == "win32", reason="a thread's page faults are not told")
def test_ten_thousand_ticks_allocate_nothing_and_touch_no_page_that_was_not_there():
    import resource

    pipeline = Pipeline(load_profile("ccd-dk-classical"), FakeClock(), trace=11_000)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        sink.bind(("127.0.0.1", 0))
        out.setblocking(False)
        address = ("127.0.0.1", sink.getsockname()[1], 0)
        pipeline.emitter.add_output(out, address, STREAMS["motion"].table(), MOTION.encode())
        pipeline.emitter.run(ticks=1000)
        blocks, faults = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        pipeline.emitter.run(ticks=10_000)
        blocks = sys.getallocatedblocks() - blocks
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - faults
    assert pipeline.emitter.counts()["ticks"] == 11_000
    # A page a tick would be thousands; a few belong to the kernel, which moves pages about.
    assert blocks < 20
    assert faults < 100
