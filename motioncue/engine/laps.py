"""Laps kept from one run to the next: files by track and car, read and written in a thread of their own."""

import os
import re
import stat
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from motioncue.engine.along import LARGEST, Along, Recalled
from motioncue.engine.journal import LOG, Log
from motioncue.errors import PacketError
from motioncue.profile.profile import KeptLaps
from motioncue.recording.atomic_file import write_atomically

__all__ = ["LapKeeper", "laps_file", "read_laps", "write_laps"]

LOOK_S = 0.1  # interval at which the simulator's car is looked at
STOOD_S = 1.0  # that the simulator names another car, before its file is read: a menu runs through many
EVERY_S = 300.0  # between two writes of a run: the most driving that a crash can lose
PATIENCE_S = 3.0  # longest wait for a disk that does not respond at the end
NAME_CHARACTERS = 48


def laps_file(laps: KeptLaps, profile: str, car: int | str | None) -> Path:
    """Return the file that has the laps of a track and a car; names become what every system allows in one."""
    name = laps.name or profile or "laps"
    if car is not None:
        name = f"{name}-{car}"
    allowed = re.sub(r"[^\w-]+", "_", name)[:NAME_CHARACTERS]
    if allowed != name:  # another name may become the same
        allowed = f"{allowed}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"
    return Path(laps.folder).absolute() / f"{allowed}.laps"


def read_laps(path: Path) -> bytes:
    """Return what is in a file, unchecked; nothing if there is none.

    PacketError if it is no plain file, or larger than any that was written; OSError if it cannot be read.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return b""
    if not stat.S_ISREG(found.st_mode):  # to open a pipe would wait
        raise PacketError("found no plain file")
    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise PacketError(f"found more than {LARGEST} bytes")
    if not data:
        raise PacketError("found an empty file")
    return data


def write_laps(path: Path, data: bytes) -> None:
    """Write a file that replaces the one before when it is whole and on the disk; raise OSError if that fails."""

    def write(part: Path) -> None:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, write, force=True)


class LapKeeper:
    """Keeps what was felt along the way in files: a context manager around a thread.

    `recall` takes the bytes of a file, and returns what tells when the ticks go on from there; PacketError if they are
    not what was written.  `car` returns which car it is, None as long as the simulator has not said; it is none if no
    packet says it.  What is felt is written every five minutes, and at the end.

    No tick ever waits: rows are copied beside it, and what was read comes with settings that a tick takes as a whole.
    A disk that does not answer is not waited for longer than `PATIENCE_S`.  What fails is counted and said once.
    """

    def __init__(
        self,
        laps: KeptLaps,
        profile: str,
        along: Along,
        recall: Callable[[bytes], Recalled],
        car: Callable[[], int | str | None] | None = None,
        log: Log = LOG,
    ) -> None:
        self._log = log
        self._laps, self._profile, self._along, self._recall, self._car = laps, profile, along, recall, car
        self._path: Path | None = None  # of what is felt now; None before it is known
        self._named: tuple[int | str | None, float] = (None, 0.0)  # the newest car, and since when [s]
        self._next = Path()  # of what the ticks have not taken yet
        self._recalled: Recalled | None = None  # that
        self._rows = 0  # how many rows there were when they were read or written
        self._due = 0.0  # when to write again [s]
        self._counts = {"rows": 0, "written": 0, "errors": 0}
        self._failed = ""  # what was said to have failed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motioncue laps", daemon=True)

    def counts(self) -> dict[str, Any]:
        """Return the file in use, how many rows the run began with, how often it was written, and what failed."""
        return {"file": None if self._path is None else str(self._path), **self._counts}

    def __enter__(self) -> "LapKeeper":
        """Begin to read and write."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what was felt, without waiting for a disk that does not respond."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            self._counts["errors"] += 1
            self._log.error("laps: the disk does not answer; what was driven since they were written is not kept")

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            self.look(time.monotonic())
        self.end()

    def end(self) -> None:
        """Write what was felt until the end."""
        self._take_over(time.monotonic())
        if self._path is None and self._recalled is None and len(self._along):
            self._failure("the simulator has not said which car it is; nothing is kept")
        self.write()

    def look(self, now: float) -> None:
        """Do what is due at a time [s]: read the file of another car, or write the one in use."""
        self._take_over(now)
        if self._recalled is not None:
            return
        car = None if self._car is None else self._car()
        if car != self._named[0]:
            self._named = car, now
        passes = self._path is not None and now - self._named[1] < STOOD_S
        unknown = self._car is not None and car is None
        path = self._path if unknown or passes else laps_file(self._laps, self._profile, car)
        if path != self._path and path is not None:
            self._read(path, now)
        elif now >= self._due:
            self._due = now + EVERY_S
            self.write()

    def _take_over(self, now: float) -> None:
        """Once the ticks go on from what was read, write what they felt before, which belongs to the file before."""
        if self._recalled is None or not self._recalled.taken:
            return
        before, self._recalled = self._recalled, None
        if self._path is not None and len(before) != self._rows:
            self._written(self._path, before.data())
        self._begin(self._next, self._counts["rows"], now)

    def _begin(self, path: Path, rows: int, now: float) -> None:
        self._path, self._rows, self._due = path, rows, now + EVERY_S

    def _read(self, path: Path, now: float) -> None:
        """Have the ticks go on from what is in a file."""
        data = b""
        try:
            data = read_laps(path)
            recalled = self._recall(data) if data or self._path is not None else None
        except (OSError, PacketError) as error:
            self._failure(f"{path}: {getattr(error, 'strerror', None) or error}; the run goes on without them")
            recalled = self._recall(b"") if self._path is not None else None
        self._counts["rows"] = 0 if recalled is None else len(recalled)
        if recalled is None:  # nothing to go on from: what was driven so far belongs to it
            self._begin(path, 0, now)
            return
        self._log.info("laps: %d rows of %s", len(recalled), path)
        self._next, self._recalled = path, recalled

    def write(self) -> None:
        """Write what was felt along the way, unless nothing has come since."""
        if self._path is None or len(self._along) == self._rows:
            return
        rows = len(self._along)
        if self._written(self._path, self._along.data()):
            self._rows = rows

    def _written(self, path: Path, data: bytes) -> bool:
        try:
            write_laps(path, data)
        except OSError as error:
            self._failure(f"{path}: cannot be written: {error.strerror or error}; the run goes on")
            return False
        self._counts["written"] += 1
        self._failed = ""
        return True

    def _failure(self, text: str) -> None:
        self._counts["errors"] += 1
        if text != self._failed:
            self._log.warning("laps: %s", text)
        self._failed = text
