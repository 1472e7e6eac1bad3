"""The recorder: takes what the loops have put into their rings, and writes it in a thread of its own."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from motioncue.errors import ConfigError
from motioncue.kernels.reasons import NAMES
from motioncue.kernels.ring import HEAD_DTYPE, KINDS, RecordRing
from motioncue.kernels.supervisor import State
from motioncue.motion import MOTION_DTYPE, TICK_DTYPE
from motioncue.profile import Record
from motioncue.recording.topics import Event, Package
from motioncue.recording.write import RecordingWriter

__all__ = ["RING_BYTES", "Batch", "Recorder", "sorted_out", "tick_ring_bytes"]

log = logging.getLogger("motioncue")

RING_BYTES = 8 << 20
"""For what a source says: more than ten seconds of the largest packages at 400 Hz."""

TAKE_S = 0.05  # how often the rings are emptied
PATIENCE_S = 10.0  # for a disk that does not answer at the end
FLUSH_S = 1.0  # how much a crash can lose

EVENT_DTYPE = np.dtype(
    [
        ("time", "i8"),
        ("code", "i8"),
        ("detail", "i8"),
        ("before", "i8"),
        ("after", "i8"),
        ("value", "f8"),
        ("limit", "f8"),
    ]
)
"""The payload of a transition and of a happening: ``Event`` of ``kernels/slot.h``."""


_WHAT = {number: name for name, number in KINDS.items()}


def tick_ring_bytes(rate_hz: float) -> int:
    """Return the room that ticks need while a disk stalls for ten seconds [bytes].

    Parameters
    ----------
    rate_hz : float
        Ticks a second [Hz].
    """
    return round(10.0 * rate_hz) * (HEAD_DTYPE.itemsize + TICK_DTYPE.itemsize) + (64 << 10)


class Batch(NamedTuple):
    """Records of some time, by what they are."""

    ticks: Any
    frames: Any
    packages: list[Package]
    events: list[Event]


def sorted_out(data: bytes) -> Batch:
    """Return the records in what a ring gave.

    Parameters
    ----------
    data : bytes
        Whole records, each with its head (`HEAD_DTYPE`), padded to 8 bytes.
    """
    ticks, frames, packages, events = bytearray(), bytearray(), [], []
    place = 0
    while place < len(data):
        kind, size, when = np.frombuffer(data, HEAD_DTYPE, 1, place)[0].tolist()
        payload = data[place + HEAD_DTYPE.itemsize : place + HEAD_DTYPE.itemsize + size]
        place += HEAD_DTYPE.itemsize + -(-size // 8) * 8
        what, endpoint = _WHAT[kind & 0xFF], kind >> 8
        if what == "tick":
            ticks += payload
        elif what == "frame":
            frames += payload
        elif what == "package":
            packages.append(Package(when, endpoint, payload))
        elif what == "retuned":
            events.append(Event(when, what, "", detail=int.from_bytes(payload, "little")))
        elif what in ("connected", "disconnected"):
            events.append(Event(when, what, ""))
        else:
            events.append(_event(payload, what == "transition"))
    return Batch(np.frombuffer(bytes(ticks), TICK_DTYPE), np.frombuffer(bytes(frames), MOTION_DTYPE), packages, events)


def _event(payload: bytes, transition: bool) -> Event:
    when, code, detail, before, after, value, limit = np.frombuffer(payload, EVENT_DTYPE, 1)[0].tolist()
    if transition:
        return Event(when, "transition", NAMES[code], State(before).name, State(after).name, detail, value, limit)
    return Event(when, "intake", NAMES[code], "", "", detail, value, limit)


class Recorder:
    """Records a run: a context manager around a thread that empties rings.

    Parameters
    ----------
    record : Record or str or Path
        What is to be kept, and where; or only where.
    rings : sequence of RecordRing
        What the loops fill.
    settings : mapping
        The profile in force at the beginning, as tables.
    about : mapping of str to str
        Kept in the file.

    Raises
    ------
    ConfigError
        When entered, if the file cannot be made.

    Notes
    -----
    Whatever happens to the disk, the loops do not wait: rings drop what finds no room, and `counts` says how much.
    """

    def __init__(
        self,
        record: Record | str | Path,
        rings: list[RecordRing],
        settings: Mapping[str, Any],
        *,
        about: Mapping[str, str] | None = None,
    ) -> None:
        record = record if isinstance(record, Record) else Record(file=str(record))
        self._path, self._rings, self._settings, self._force = Path(record.file), rings, settings, record.force
        self._last_s, self._roll_s = record.last_s, record.roll_s
        self._roll_bytes = None if record.roll_mb is None else round(1e6 * record.roll_mb)
        self._about = dict(about or {})
        self._epoch = time.time_ns() - time.monotonic_ns()
        self._writer: RecordingWriter | None = None
        self._written: list[Path] = []
        self._totals = {"packages": 0, "ticks": 0, "frames": 0, "events": 0}
        self._lost = 0  # records that were taken from the rings and could not be written
        self._kept: deque[tuple[float, bytes]] = deque()  # with `last_s`: when taken, and what
        self._in_force: list[tuple[int, int, Mapping[str, Any]]] = []
        self._wanted = threading.Event()  # write what is kept
        self._stopping = threading.Event()
        self._failed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="motioncue recorder", daemon=True)

    @property
    def paths(self) -> list[Path]:
        """The files written so far, the newest last."""
        return list(self._written)

    def counts(self) -> dict[str, int]:
        """Return how much has been recorded of each kind, and how many records were lost."""
        return {**self._totals, "lost": self._lost + sum(ring.lost for ring in self._rings)}

    def summary(self) -> str:
        """Return in words what has been recorded, and where."""
        counts = self.counts()
        what = f"{counts['ticks']} ticks, {counts['frames']} frames, {counts['packages']} packages"
        lost = f"; {counts['lost']} records were lost" if counts["lost"] else ""
        return f"{what} in {', '.join(str(path) for path in self._written) or 'no file'}{lost}"

    def retuned(self, when: int, number: int, profile: Mapping[str, Any]) -> None:
        """Note that another profile is in force.

        Parameters
        ----------
        when : int
            Monotonic clock [ns].
        number : int
            How many changes there have been.
        profile : mapping
            Its tables.
        """
        with self._lock:
            self._in_force.append((when, number, profile))

    def keep(self) -> None:
        """Write what is kept in memory, in a file of its own; nothing to do without `last_s`."""
        self._wanted.set()

    def _open(self) -> RecordingWriter:
        force = self._force and not self._written
        writer = RecordingWriter(self._path, force=force, epoch_ns=self._epoch, about=self._about)
        self._written.append(writer.path)
        when, number, profile = self._in_force[-1]
        writer.settings(when, number, profile)
        return writer

    def __enter__(self) -> "Recorder":
        """Make the file and begin."""
        self._in_force = [(time.monotonic_ns(), 0, self._settings)]
        if self._last_s is None:
            self._writer = self._open()
        elif not self._path.parent.is_dir():
            raise ConfigError(f"recording {str(self._path)!r}: there is no folder {str(self._path.parent)!r}")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is left and close the file; a disk that does not answer is not waited for."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            log.error("recording: the disk does not answer; what it has not taken is lost")

    def _run(self) -> None:
        flushed = began = time.monotonic()
        while not self._stopping.wait(TAKE_S):
            self._take()
            now = time.monotonic()
            if self._wanted.is_set():
                self._wanted.clear()
                self._guarded(self._dump)
            if now - flushed >= FLUSH_S:
                flushed = now
                self._guarded(self._flush)
            if self._writer is not None and self._due(now - began):
                began = now
                self._guarded(self._roll)
        self._take()
        self._guarded(self._dump if self._last_s is not None else self._close)

    def _due(self, age: float) -> bool:
        assert self._writer is not None
        too_old = self._roll_s is not None and age >= self._roll_s
        return too_old or (self._roll_bytes is not None and self._writer.size >= self._roll_bytes)

    def _take(self) -> None:
        data = b"".join(ring.take() for ring in self._rings)
        if self._last_s is not None:
            now = time.monotonic()
            self._kept.append((now, data))
            while self._kept[0][0] < now - self._last_s:
                self._kept.popleft()
        elif data:
            self._guarded(lambda: self._write(data))

    def _write(self, data: bytes) -> None:
        batch = sorted_out(data)
        if self._writer is None:  # an earlier write has failed
            self._lost += len(batch.ticks) + len(batch.frames) + len(batch.packages) + len(batch.events)
            return
        with self._lock:
            news, self._in_force = self._in_force[1:], self._in_force[-1:]
        for when, number, profile in news:
            self._writer.settings(when, number, profile)
        self._writer.packages(batch.packages)
        self._writer.frames(batch.frames)
        self._writer.ticks(batch.ticks)
        self._writer.events(batch.events)
        self._totals["packages"] += len(batch.packages)
        self._totals["ticks"] += len(batch.ticks)
        self._totals["frames"] += len(batch.frames)
        self._totals["events"] += len(batch.events)

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _roll(self) -> None:
        self._close()
        self._writer = self._open()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _dump(self) -> None:
        """Write what is kept in memory to a file of its own."""
        if self._last_s is None:
            return
        self._writer = self._open()
        for _, data in self._kept:
            self._write(data)
        self._close()

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do something with the file; if the system refuses, say so once and record no more."""
        try:
            action()
        except (OSError, ConfigError, msgspec.MsgspecError) as error:
            if self._writer is not None:
                self._writer.abandon()
                self._writer = None
            if not self._failed:
                self._failed = True
                log.error("recording: %s; the run goes on and records no more", error)
