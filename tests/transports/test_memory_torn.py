"""Shared memory that a C program writes as fast as it can: what is read is one state, never parts of two."""

import os
import shutil
import struct
import subprocess
import sys
import threading
import time
import uuid

import pytest

from motioncue.core.clock import MonotonicClock
from motioncue.core.threads import RecordRing
from motioncue.engine.receiver import MemoryReceiver
from motioncue.recording.recorder import sorted_out
from motioncue.sources.described.source import DescribedSource
from motioncue.transports.memory import Memory
from motioncue.wire.description import Gather, SharedMemory, SourceField, SourcePacket, SourceWindow, Window

COMPILER = shutil.which("gcc") or shutil.which("cc")
SOURCE = os.path.join(os.path.dirname(__file__), "..", "linux", "memory.c")
SIZE = 4096

# How it is told that a state is whole, and how many different ones are read.
FORMS = {
    "end": (Gather(SIZE, (Window(0, 808),), 0, 4, end=4), 1000),
    "odd": (Gather(SIZE, (Window(0, 808),), 0, 4, odd=True), 1000),
    "plain": (Gather(SIZE, (Window(8, 800),), 0, 4), 10_000),
}

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="files in /dev/shm"),
    pytest.mark.skipif(COMPILER is None, reason="takes a C compiler, which is not installed"),
    pytest.mark.slow,
]


@pytest.fixture
def written(tmp_path):
    """Return a function that starts the program, and returns where it writes."""
    program, path = tmp_path / "memory", f"/dev/shm/motioncue-test-{uuid.uuid4().hex[:8]}"
    subprocess.run([COMPILER, "-O2", "-Wall", "-o", program, SOURCE], check=True)
    with open(path, "wb") as file:
        file.write(bytes(SIZE))
    writers = []

    def start(form):
        writers.append(subprocess.Popen([program, path, form]))
        return path

    yield start
    for each in writers:
        assert each.poll() is None
        each.kill()
        each.wait()
    os.unlink(path)


@pytest.mark.parametrize("form", FORMS)
def test_no_state_is_torn(form, written):
    gather, enough = FORMS[form]
    reading, torn, states = Memory(written(form), gather), 0, set()
    while len(states) < enough:
        packet = reading.take()
        if packet is None:
            torn += 1
            continue
        state = packet[-800:]
        assert state == state[:4] * 200
        states.add(state[:4])
    assert torn > 0  # or nothing was tried


ANGLES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
UNMARKED = DescribedSource(
    SourcePacket(
        size=800,
        fields=(
            SourceField(offset=0, type="u4", channel="time", unit="ms"),
            *(SourceField(offset=776 + 4 * n, type="f4", channel=name) for n, name in enumerate(ANGLES)),
        ),
        memory=SharedMemory(size=SIZE, gather=(SourceWindow(offset=8, size=800),), counter=0),
    )
)


@pytest.mark.rt
def test_no_state_without_marks_is_taken_half_written_however_long_its_writer_is_interrupted(written):
    """A third of the states are half written for 1 ms, so that at many looks one is."""
    memory, ring, intake = Memory(written("slow"), UNMARKED.gather), RecordRing(8 << 20), UNMARKED.intake()
    intake.record(ring)
    receiver = MemoryReceiver(intake, lambda: memory, MonotonicClock())
    thread = threading.Thread(target=receiver.run)
    thread.start()
    half = 0
    until = time.monotonic() + 6.0
    while time.monotonic() < until:
        state = memory.take()
        half += state is not None and state != state[:4] * 200
        time.sleep(1e-3)
    receiver.stop()
    thread.join()
    taken = [each.data for each in sorted_out(ring.take()).packages]
    assert half > 20  # looks that a rule without memory would have believed
    assert len(taken) > 300
    assert [state for state in taken if state != state[:4] * 200] == []
    numbers = [struct.unpack_from("<I", state)[0] for state in taken]
    assert sorted(set(numbers)) == numbers
