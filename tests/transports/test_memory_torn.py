"""Shared memory that a C program writes as fast as it can: what is read is one state, never parts of two."""

import os
import shutil
import subprocess
import sys
import uuid

import pytest

from motioncue.transports.memory import Memory
from motioncue.wire.description import Gather, Window

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


@pytest.mark.parametrize("form", FORMS)
def test_no_state_is_torn(form, tmp_path):
    gather, enough = FORMS[form]
    program, path = tmp_path / "memory", f"/dev/shm/motioncue-test-{uuid.uuid4().hex[:8]}"
    subprocess.run([COMPILER, "-O2", "-Wall", "-o", program, SOURCE], check=True)
    with open(path, "wb") as file:
        file.write(bytes(SIZE))
    writer = subprocess.Popen([program, path, form])
    try:
        reading, torn, states = Memory(path, gather), 0, set()
        while len(states) < enough:
            packet = reading.take()
            if packet is None:
                torn += 1
                assert writer.poll() is None
                continue
            state = packet[-800:]
            assert state == state[:4] * 200
            states.add(state[:4])
    finally:
        writer.kill()
        writer.wait()
        os.unlink(path)
    assert torn > 0  # or nothing was tried
