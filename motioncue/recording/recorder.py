"""The recorder: empties the loops' rings and writes their records in a thread of its own."""

import contextlib
import logging
import os
import shutil
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from motioncue.core.channels import CHASSIS_DTYPE, MOTION_DTYPE, TICK_DTYPE
from motioncue.core.threads import HEAD_DTYPE, KINDS, NAMES, RecordRing, record_places
from motioncue.errors import ConfigError
from motioncue.profile.profile import Record
from motioncue.recording.drive import actuators_of
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.schema import Event, Hole, Laps, Package, records_at
from motioncue.safety.supervisor import State

LOG = logging.getLogger("motioncue")

RING_BYTES = 8 << 20
"""Size of the ring for a source: more than ten seconds of the largest packages at 400 Hz."""

TAKE_S = 0.05  # interval at which the rings are emptied
PATIENCE_S = 10.0  # longest wait for a disk that does not respond at the end
FLUSH_S = 1.0  # most that a crash can lose
AGAIN_S, LONGEST_S = 1.0, 60.0  # before a file that could not be made or written is tried again, and after many times
ROOM_BYTES = 16 << 20  # a disk that was full has to have before it is tried again
OPENING_BYTES = 4096  # largest first package of a session that is noted in later files
KEPT_BYTES_S = 2 << 20
"""Most that `last_s` keeps in memory for each of its seconds: twice what 1000 ticks and 400 of the largest packages
need [bytes/s]."""

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
"""The payload of a transition and of a happening: ``Event`` of ``core/threads.h``."""


_WHAT = {number: name for name, number in KINDS.items()}
_ENDPOINT_BITS = 8  # shift of an endpoint's number in a kind: RECORD_ENDPOINT of ``core/threads.h``


def package_kind(endpoint: int) -> int:
    """Return the kind of a record that is a package at one of a source's endpoints."""
    return int(KINDS["package"]) | endpoint << _ENDPOINT_BITS


def tick_ring_bytes(rate_hz: float) -> int:
    """Return the size of a ring that holds the ticks while a disk stalls for ten seconds [bytes]."""
    return round(10.0 * rate_hz) * int(HEAD_DTYPE.itemsize + TICK_DTYPE.itemsize) + (64 << 10)


class Batch(NamedTuple):
    """Records of a time span, by kind."""

    ticks: Any
    frames: Any
    packages: list[Package]
    events: list[Event]
    chassis: Any

    def sizes(self) -> dict[str, int]:
        """Return the number of records of each kind; a chassis is part of its frame."""
        return {name: len(rows) for name, rows in self._asdict().items() if name != "chassis"}


class Emptied(NamedTuple):
    """A ring's output at one time, for a recording in memory."""

    since: int
    """When the rings were emptied the time before: no record is older [ns]."""
    data: bytes
    hole: Hole | None = None
    """The records that found no room in the rings meanwhile."""


def sorted_out(data: bytes) -> Batch:
    """Return the records in a ring's output."""
    packages, events = [], []
    records = record_places(data)
    kinds = records["kind"] & 0xFF
    ticks, frames, chassis = (kinds == KINDS[name] for name in ("tick", "frame", "chassis"))
    for kind, size, when, place in records[~(ticks | frames | chassis)].tolist():
        payload = data[place : place + size]
        what, endpoint = _WHAT[kind & 0xFF], kind >> _ENDPOINT_BITS
        if what == "package":
            packages.append(Package(when, endpoint, payload))
        elif what == "retuned":
            events.append(Event(when, what, "", detail=int.from_bytes(payload, "little")))
        elif what in ("connected", "disconnected"):
            events.append(Event(when, what, ""))
        else:
            events.append(_event(payload, what == "transition"))
    return Batch(
        records_at(data, records["place"][ticks], TICK_DTYPE),
        records_at(data, records["place"][frames], MOTION_DTYPE),
        packages,
        events,
        records_at(data, records["place"][chassis], CHASSIS_DTYPE),
    )


def count_in(data: bytes) -> int:
    """Return the number of records in a ring's output."""
    return sum(sorted_out(data).sizes().values())


def _event(payload: bytes, transition: bool) -> Event:
    when, code, detail, before, after, value, limit = np.frombuffer(payload, EVENT_DTYPE, 1)[0].tolist()
    if transition:
        return Event(when, "transition", NAMES[code], State(before).name, State(after).name, detail, value, limit)
    return Event(when, "intake", NAMES[code], "", "", detail, value, limit)


class _Openings:
    """The first package of the newest session: later ones may mean nothing without what it announces."""

    def __init__(self) -> None:
        self._opening: Package | None = None
        self._since: int | None = None  # when a session began whose first package has not come [ns]

    def add(self, batch: Batch) -> None:
        """Take the records that are not in the next file."""
        self._since = max((event.time for event in batch.events if event.what == "connected"), default=self._since)
        if self._since is not None:
            first = next((package for package in batch.packages if package.time >= self._since), None)
            if first is not None:
                self._opening, self._since = first, None

    def about(self) -> dict[str, str]:
        """Return what a file that begins within a session says of its opening."""
        opening = self._opening
        if opening is None or self._since is not None or len(opening.data) > OPENING_BYTES:
            return {}
        return {"opening": opening.data.hex()}


class Recorder:
    """Records a run: a context manager around a thread that empties rings.

    The loops never wait, whatever happens to the disk: records that do not fit into a ring are dropped and counted.
    After an error the recording goes on in another file as soon as one can be made.  What was lost is counted, and
    written as an event: `Hole`.  If the next of several rolled files cannot be made, it goes on in the one before.
    Rolled files share one epoch: their times are consecutive even if the wall clock is set meanwhile.
    """

    def __init__(
        self,
        record: Record | str | Path,
        rings: list[RecordRing],
        settings: Mapping[str, Any],
        *,
        about: Mapping[str, str] | None = None,
        log: "logging.Logger | logging.LoggerAdapter[logging.Logger]" = LOG,
    ) -> None:
        self._log = log
        record = record if isinstance(record, Record) else Record(file=str(record))
        self._path, self._rings, self._force = Path(record.file).absolute(), rings, record.force
        self._last_s, self._roll_s = record.last_s, record.roll_s
        self._keep_bytes = None if record.keep_mb is None else round(1e6 * record.keep_mb)
        self._roll_bytes = None if record.roll_mb is None else round(1e6 * record.roll_mb)
        if self._keep_bytes is not None and self._roll_s is None and self._roll_bytes is None:
            self._roll_bytes = self._keep_bytes // 10
        self._removed = 0  # files removed to keep within `keep_mb`
        self._about = dict(about or {})
        self._about_noted = True  # whether the file contains all of `about`
        self._epoch = time.time_ns() - time.monotonic_ns()
        self._writer: RecordingWriter | None = None
        self._written: list[Path] = []
        self._totals = Counter(packages=0, ticks=0, frames=0, events=0)  # records flushed
        self._pending = Counter[str]()  # records written since the last flush
        self._lost = 0  # records taken from the rings that could not be written
        self._unfit = 0  # records that did not fit into the rings, up to when they were last emptied
        self._short = False  # whether a ring has been found too small
        self._again_s, self._again_at = AGAIN_S, 0.0  # after an error: the next wait, and when it ends [s]
        self._overdue = False  # whether the next of several files could not be made, and the one before goes on
        self._out: int | None = None  # records lost before the file was; None while records are written
        self._torn: tuple[int, int] | None = None  # after an error: when the hole began [ns], and what was lost before
        self._safe = time.monotonic_ns()  # everything from before is flushed [ns]
        self._recent: deque[Emptied] = deque()  # with `last_s`: the last seconds
        self._kept_bytes = 0
        self._openings = _Openings()
        self._parts = 0  # files begun so far
        self._owed = 0  # with `last_s`: records in memory from before this time should be in a file [ns]
        self._taken = time.monotonic_ns()  # when the rings were last emptied
        self._in_force = [(self._taken, 0, settings)]  # start, number and profile of settings
        self._noted = -1  # number of the newest settings in the file
        self._laps_noted = -1  # number of those with which the newest laps in it came
        self._laps: list[Laps] = []  # what the run goes on from, unless it is in the file
        self._wanted = threading.Event()  # set to write the recording in memory
        self._stopping = threading.Event()
        self._gave_up = False  # whether the run has ended without the last records, because of the disk
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="motioncue recorder", daemon=True)

    @property
    def paths(self) -> list[Path]:
        """The files written so far and kept, the newest last."""
        return list(self._written)

    def counts(self) -> dict[str, Any]:
        """Return how many records of each kind are flushed and how many were lost, and the files."""
        lost = self._lost + self._unrecorded() + self._outstanding()
        files = [str(path) for path in self._written]
        return {**self._totals, "lost": lost, "removed": self._removed, "files": files}

    def _outstanding(self) -> int:
        """Return the number of records that a disk which does not answer has not taken when the run has ended."""
        if not self._gave_up or not self._thread.is_alive():
            return 0
        waiting = sum(count_in(ring.copy()) for ring in self._rings)
        kept = sum(count_in(emptied.data) for emptied in list(self._recent))
        return waiting + (kept if self._last_s is not None else self._pending.total())

    def _unrecorded(self) -> int:
        """Return the number of records that did not fit into the rings."""
        return sum(ring.lost for ring in self._rings)

    def retuned(self, when: int, number: int, profile: Mapping[str, Any]) -> None:
        """Record that another profile is in force.

        Units: `when` [ns].
        """
        with self._lock:
            self._in_force.append((when, number, profile))

    def recalled(self, when: int, number: int, data: bytes) -> None:
        """Record what an earlier session felt, which comes with the settings of a number.

        Units: `when` [ns].
        """
        with self._lock:
            self._laps.append(Laps(when, number, data))

    def add_facts(self, about: Mapping[str, str]) -> None:
        """Add facts about the making of the recording; may be called from any thread."""
        with self._lock:
            self._about, self._about_noted = {**self._about, **about}, False

    def keep(self) -> None:
        """Write the recording in memory to a file of its own; has no effect without `last_s`."""
        if self._last_s is not None:
            self._wanted.set()

    def __enter__(self) -> "Recorder":
        """Make the file and start to record."""
        if self._last_s is not None:
            self._refuse_place()
        else:
            try:
                self._open()
            except OSError as error:
                raise ConfigError(f"recording: {self._error_text(error)}") from error
        self._thread.start()
        return self

    def _refuse_place(self) -> None:
        """Refuse a path to which nothing could be written later."""
        folder = self._path.parent
        if self._path.is_dir():
            raise ConfigError(f"recording {str(self._path)!r}: found a folder, allowed is a file")
        wrong = "" if os.access(folder, os.W_OK) else "cannot be written to" if folder.is_dir() else "does not exist"
        if wrong:
            raise ConfigError(f"recording {str(self._path)!r}: its folder {wrong}")

    def __exit__(self, *_: object) -> None:
        """Write the rest and close the file, without waiting for a disk that does not respond."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        self._gave_up = self._thread.is_alive()
        if self._gave_up:
            self._log.error(
                "recording: the disk does not answer; %d records that it has not taken are lost", self._outstanding()
            )

    def _run(self) -> None:
        flushed = began = time.monotonic()
        while not self._stopping.wait(TAKE_S):
            self._take()
            now = time.monotonic()
            if self._wanted.is_set() or (self._owed and self._may_again(now)):
                self._wanted.clear()
                self._dump()
            if now - flushed >= FLUSH_S:
                flushed = now
                self._guarded(self._flush)
            if self._writer is not None and self._due(now - began) and self._may_again(now):
                if self._guarded(self._roll) and not self._overdue:
                    began = now
            elif self._writer is None and self._last_s is None and self._may_again(now) and self._guarded(self._open):
                began = now
        self._take()
        if self._last_s is not None:
            self._dump()
            self._lost += sum(count_in(emptied.data) for emptied in self._recent if emptied.since < self._owed)
        self._guarded(self._close)

    def _due(self, age: float) -> bool:
        assert self._writer is not None
        too_old = self._roll_s is not None and age >= self._roll_s
        return too_old or (self._roll_bytes is not None and self._writer.size >= self._roll_bytes)

    def _take(self) -> None:
        """Empty the rings into the file, or into memory."""
        since, self._taken = self._taken, time.monotonic_ns()
        data, unfit = b"".join(ring.take() for ring in self._rings), self._unrecorded()
        hole = Hole(since, self._taken, unfit - self._unfit, "memory") if unfit > self._unfit else None
        self._unfit, emptied = unfit, Emptied(since, data, hole)
        if self._last_s is None:
            self._guarded(self._write, emptied)
            self._forget(since)
        else:
            self._add_recent(emptied, self._last_s)
            self._forget(self._recent[0].since if self._recent else self._taken)
        if self._unrecorded() and not self._short:
            self._short = True
            self._log.warning("recording: the disk is too slow; what finds no room in memory is lost, and counted")

    def _add_recent(self, emptied: Emptied, last_s: float) -> None:
        """Add records to those in memory, and drop what is too old; what exceeds the memory is lost."""
        self._recent.append(emptied)
        self._kept_bytes += len(emptied.data)
        while self._recent[0].since < self._taken - 1e9 * last_s or self._kept_bytes > KEPT_BYTES_S * last_s:
            oldest = self._recent.popleft()
            self._kept_bytes -= len(oldest.data)
            self._openings.add(sorted_out(oldest.data))
            if oldest.since >= self._taken - 1e9 * last_s or oldest.since < self._owed:
                self._lost += count_in(oldest.data)
            if not self._recent:
                break

    def _forget(self, since: int) -> None:
        """Drop settings that others had replaced by a time."""
        with self._lock:
            while len(self._in_force) > 1 and self._in_force[1][0] <= since:
                del self._in_force[0]

    def _may_again(self, now: float) -> bool:
        """Say whether an error is long enough ago, and the disk has room."""
        if now < self._again_at:
            return False
        try:
            return self._again_at == 0.0 or shutil.disk_usage(self._path.parent).free >= ROOM_BYTES
        except OSError:  # the folder has gone
            return False

    def _open(self) -> None:
        """Begin a file; if that fails, the one before stays."""
        force = self._force and not self._parts
        about = self._about | self._openings.about()
        if self._last_s is None:
            about["part"] = str(self._parts)  # `read` joins consecutive ones
        before = self._writer, self._noted, self._laps_noted
        self._writer, self._noted, self._laps_noted = self._made(force, about), -1, -1
        try:
            self._note()
            if self._torn is not None:
                since, lost = self._torn
                self._writer.events([Hole(since, self._taken, self._lost - lost, "disk").event()])
            self._writer.flush()
        except Exception:
            self._writer.abandon()
            if not force:
                self._writer.path.unlink(missing_ok=True)
            self._writer, self._noted, self._laps_noted = before
            raise
        self._torn = None
        self._written.append(self._writer.path)
        self._parts += 1

    def _made(self, force: bool, about: Mapping[str, str]) -> RecordingWriter:
        with self._lock:
            actuators = actuators_of(self._in_force[0][2])
        return RecordingWriter(self._path, force=force, epoch_ns=self._epoch, about=about, actuators=actuators or ())

    def _note(self) -> None:
        """Write the settings that have come into force since the last call; into a new file, all that are known."""
        assert self._writer is not None
        with self._lock:
            known, about = list(self._in_force), {} if self._about_noted else self._about
            self._about_noted = True
        if about:
            self._writer.about(about)
        for when, number, profile in known:
            if number > self._noted:
                self._noted = number
                self._writer.settings(when, number, profile)
        for laps in self._known_laps():
            if laps.number > self._laps_noted:
                self._laps_noted = laps.number
                self._writer.laps(laps)

    def _known_laps(self) -> list[Laps]:
        """Return what the run goes on from that belongs into the file and is not there yet."""
        with self._lock:
            if self._last_s is None:
                known, self._laps = self._laps, []
            else:  # of use only in a file that has the run from there on
                since = self._recent[0].since if self._recent else self._taken
                known = self._laps = [laps for laps in self._laps if laps.time >= since]
        return known

    def _write(self, emptied: Emptied) -> None:
        batch = sorted_out(emptied.data)
        if self._writer is None:  # an earlier write has failed
            self._lost += sum(batch.sizes().values())
            return
        self._pending.update(batch.sizes())
        self._note()
        # Ticks come last: a file that is cut has what its last tick has read.
        self._writer.packages(batch.packages)
        self._writer.events([*batch.events, *([] if emptied.hole is None else [emptied.hole.event()])])
        self._writer.frames(batch.frames)
        self._writer.chassis(batch.chassis)
        self._writer.ticks(batch.ticks)
        if self._last_s is None:
            self._openings.add(batch)

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
            self._count()
            if self._out is not None:
                lost = self._lost - self._out
                self._log.warning("recording: goes on in %s; %d records were lost in between", self._writer.path, lost)
                self._out = None
            if not self._overdue:
                self._again_s, self._again_at = AGAIN_S, 0.0

    def _roll(self) -> None:
        """Begin the next file, and then end the one before: without a descriptor or room, that one goes on."""
        self._forget(self._taken)
        before = self._writer
        try:
            self._open()
        except (OSError, ConfigError) as error:
            self._overdue = True
            self._later(error, "goes on in the file before, and begins another as soon as it can")
            return
        assert before is not None
        self._overdue = False
        before.close()
        self._count()
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        """Remove the oldest files of the run while all together are too large; never the one that is written."""
        if self._keep_bytes is None:
            return
        sizes = []
        for path in self._written:
            with contextlib.suppress(OSError):  # somebody else has removed it
                sizes.append((path.stat().st_size, path))
        room = self._keep_bytes - (self._roll_bytes or 0)  # the newest still grows
        while len(sizes) > 1 and sum(size for size, _ in sizes) > room:
            _, oldest = sizes.pop(0)
            try:
                oldest.unlink()
                self._removed += 1
            except OSError as error:
                self._log.warning("recording: %s: cannot be removed: %s", oldest, error.strerror)
        self._written = [path for _, path in sizes]

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._count()
            self._again_s, self._again_at = AGAIN_S, 0.0

    def _count(self) -> None:
        """Count what has been written as recorded, because it is safely in the file."""
        self._totals.update(self._pending)
        self._pending.clear()
        self._safe = self._taken

    def _later(self, error: Exception, goes_on: str) -> None:
        """Log an error, unless the last attempt had one too, and note when to try again."""
        if self._again_at == 0.0:
            self._log.error("recording: %s; %s", self._error_text(error), goes_on)
        self._again_at = time.monotonic() + self._again_s
        self._again_s = min(2.0 * self._again_s, LONGEST_S)

    def _dump(self) -> None:
        """Write the recording in memory to a file of its own, and continue to empty the rings meanwhile.

        Records that could not be written stay in memory and are lost only when they are dropped from there.
        """
        asked, self._owed = self._taken, 0
        written = self._guarded(self._open)
        for emptied in list(self._recent):
            written = written and self._guarded(self._write, emptied)
            if time.monotonic_ns() - self._taken >= 1e9 * TAKE_S:
                self._take()
        if not (written and self._guarded(self._close)):
            self._owed = asked

    def _guarded(self, action: Callable[..., None], *arguments: Any) -> bool:
        """Do something with the file and return whether it worked; an error ends the file but not the run."""
        try:
            action(*arguments)
            return True
        except Exception as error:
            if self._writer is not None:
                self._writer.abandon()
                self._writer = None
            if self._last_s is None:
                self._out = self._lost if self._out is None else self._out
                self._torn = self._torn or (self._safe, self._lost)
                self._lost += sum(self._pending.values())
            self._pending.clear()
            goes_on = "records again as soon as it can" if self._last_s is None else "keeps the last seconds in memory"
            self._later(error, f"the run goes on and {goes_on}")
            return False

    def _error_text(self, error: Exception) -> str:
        """Return the text of an error, with the file concerned."""
        if isinstance(error, OSError) and error.strerror:
            return f"{error.filename or (self._written or [self._path])[-1]}: {error.strerror}"
        return str(error)
