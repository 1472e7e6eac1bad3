"""What tests of the recorder share: a loop that ticks, a disk that fills, and what was logged."""

import errno
import io
import os

import numpy as np
from helpers import eventually

from motioncue.core.channels import TICK_DTYPE
from motioncue.core.threads import KINDS, RecordRing
from motioncue.recording.recorder import tick_ring_bytes
from motioncue.recording.recording import read

SETTINGS = {"source": {"system": "beamng"}}


class Loop:
    """A loop that ticks: fills a ring as an emitter does."""

    def __init__(self, rate_hz=1000.0):
        self.ring = RecordRing(tick_ring_bytes(rate_hz))
        self.made = 0

    def tick(self, count=1):
        rng = np.random.default_rng(self.made)
        for _ in range(count):
            row = np.zeros(1, TICK_DTYPE)
            row["index"], row["deadline"] = self.made, 1_000_000 * self.made
            for name in ("surge", "sway", "heave"):
                row["cue"][name] = rng.normal()  # keeps files from being packed into next to nothing
            self.made += self.ring.write(KINDS["tick"], int(row["deadline"][0]), row.tobytes())
        return self

    def until(self, condition):
        """Tick until a condition holds."""
        eventually(lambda: self.tick(20) and condition())


def indices(path):
    return read(path).ticks["index"].tolist()


def errors(caplog):
    return [line.getMessage() for line in caplog.records if line.levelname == "ERROR"]


class Disk(io.FileIO):
    """A file on a disk with limited room: the write that exceeds it writes only what fits."""

    room = 200_000

    def write(self, data):
        left = Disk.room - self.tell()
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(bytes(data)[:left])
