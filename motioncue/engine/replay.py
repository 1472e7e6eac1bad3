"""Replay: a recording through the whole engine, on a clock that takes no time."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue.core.channels import CHASSIS_DTYPE, MOTION_DTYPE, TICK_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.core.threads import RecordRing
from motioncue.engine.along import Recalled
from motioncue.engine.assembly import check, intake_of, load_profile, settings_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError, PacketError
from motioncue.frames.intake import Intake
from motioncue.profile.explain import explain
from motioncue.profile.profile import Profile
from motioncue.recording.atomic_file import write_atomically
from motioncue.recording.drive import KILLED, actuators_of
from motioncue.recording.drive import columns as columns_of
from motioncue.recording.mcap_reader import Settings
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.packages import Timed, feed, opening, quoted
from motioncue.recording.recorder import RING_BYTES, Batch, sorted_out
from motioncue.recording.recording import Drive, read_frames
from motioncue.recording.schema import HOLE, Package

__all__ = [
    "Difference",
    "Heard",
    "first_difference",
    "keep",
    "missing_ticks",
    "pieces",
    "profile_of",
    "repeat",
    "replay",
]

START_NS = 1_000_000_000

NO_TICKS = (
    "the recording has no ticks to repeat: it holds what a simulator said, not a run; allowed is what `run --record` "
    "and `demo --record` write.  `motioncue simulate SYSTEM --recording FILE --to ENDPOINT` plays it to a run"
)

ROWS = 10_000  # ticks compared or written at a time, which bounds the memory

Progress = Callable[[int, int], object]
"""Is told what is done and what there is."""


def replay(
    profile: Profile | str | Path, path: str | Path, *, tail_s: float = 2.0, rate_hz: float | None = None
) -> npt.NDArray[np.void]:
    """Return every tick that the engine makes from a recording."""
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    system = sources.system_of(profile.source)
    motion, packages, *_ = read_frames(path, system, rate_hz=rate_hz, **profile.source.options)
    if not len(motion):
        raise PacketError(f"recording {quoted(path)}: found no frame, allowed is at least one")
    end = START_NS + int(motion["time"][-1]) + round(tail_s * 1e9)
    ticks = int((end - START_NS) * profile.rate_hz * 1e-9) + 2
    clock = FakeClock(START_NS)
    pipeline = Pipeline(profile, clock, trace=ticks)
    timed = (Timed(START_NS + time_ns, package) for time_ns, package in packages)
    for _ in feed(timed, pipeline.intake, before=lambda time_ns: pipeline.emitter.run(until_ns=time_ns)):
        pass
    pipeline.emitter.run(until_ns=end)
    trace: npt.NDArray[np.void] = pipeline.emitter.trace
    return trace


class Difference(NamedTuple):
    """Where two runs first differ."""

    tick: int
    """Index of the tick."""
    channel: str
    """The channel, such as ``cue.surge``."""
    recorded: float
    replayed: float


def profile_of(tables: Mapping[str, Any]) -> Profile:
    """Return the profile of a recording."""
    try:
        profile = msgspec.convert(tables, Profile, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"profile of the recording: {explain(error, dict(tables), Profile)}") from error
    check(profile)
    return profile


def missing_ticks(drive: Drive) -> str:
    """Return a text on the ticks that are missing before a recording begins; empty if none is."""
    index = drive.ticks["index"]
    if len(index) and index[0] > 0:
        return f"the recording begins at tick {index[0]} of its run"
    return ""


def repeat(drive: Drive, profile: Profile | None = None, *, progress: Progress = lambda done, total: None) -> Drive:
    """Return what the engine makes of a recording: another recording with the same ticks.

    As `pieces`, which needs less memory.
    """
    ticks, done = np.zeros(len(drive.ticks), TICK_DTYPE), 0
    frames, chassis, events = [np.zeros(0, MOTION_DTYPE)], [np.zeros(0, CHASSIS_DTYPE)], []
    for batch in pieces(drive, profile, progress=progress):
        ticks[done : done + len(batch.ticks)] = batch.ticks
        done += len(batch.ticks)
        frames.append(batch.frames)
        chassis.append(batch.chassis)
        events += batch.events
    in_force = drive.settings
    if profile is not None:
        in_force = [Settings(drive.settings[0].time, 0, msgspec.to_builtins(profile))]
    outside = [row for row in drive.events if row.what in ("disconnected", HOLE) or row.reason in FROM_OUTSIDE]
    return drive._replace(
        motion=np.concatenate(frames),
        chassis=np.concatenate(chassis),
        ticks=ticks,
        events=sorted(events + outside),
        settings=in_force,
        unreadable=(),
    )


def pieces(
    drive: Drive, profile: Profile | None = None, *, progress: Progress = lambda done, total: None
) -> Iterator[Batch]:
    """Yield what the engine makes of a recording, some thousand ticks at a time.

    Each tick reads the frame that it read then: as many packages are fed before it as it says, with their recorded
    arrival times.  Retunes and the operator's requests are repeated at their ticks.  A recording that begins in the
    middle of a run (`missing_ticks`) does not tell the state at its beginning: everything then starts from rest.
    There, and in a recording with holes, each tick reads the packages that had arrived by its deadline.
    """
    if not len(drive.ticks) or not drive.settings:
        raise PacketError(KILLED if KILLED in drive.unreadable else NO_TICKS)
    changes = {row.number: profile_of(row.profile) for row in drive.settings}
    own = changes[drive.settings[0].number]
    chosen = own if profile is None else profile
    _refuse_other_source(chosen, own)
    pipeline = Pipeline(chosen, FakeClock(START_NS))
    heard = Heard(pipeline)
    # Other settings may accept other packages, so the recorded frames say which packages each tick had.
    counting = pipeline.intake if profile is None else intake_of(own)
    late = drive.ticks["index"][0] > 0
    by_time = late or bool(drive.holes)  # then the number of frames does not say which packages a tick had
    source = _happenings(drive, changes, late)
    settings = pipeline.emitter.settings
    ticks = np.stack([drive.ticks[name] for name in ("index", "deadline", "operation")], axis=1)
    feedback = np.ascontiguousarray(drive.ticks["feedback"])
    numbers = drive.ticks["settings"] if profile is None else np.zeros(len(ticks), np.int64)
    upcoming, told, given = next(source, None), 0, 0
    number = drive.settings[0].number

    def feed_next() -> None:
        nonlocal upcoming
        assert upcoming is not None
        upcoming.act(counting, True)
        if counting is not pipeline.intake:
            upcoming.act(pipeline.intake, False)
        upcoming = next(source, None)

    def taken() -> Batch:
        nonlocal given
        batch = heard.take()
        first, given = given, given + len(batch.ticks)
        batch.ticks["settings"] = numbers[first:given]  # they are numbered when posted, even if no tick took them
        return batch

    for first, end, deadline, frames, newest in _spans(drive.ticks, by_time):
        while upcoming is not None and (upcoming.time <= deadline if by_time else counting.published < frames):
            feed_next()
            if heard.half_full:
                yield taken()
        recalled = _recalled(drive, number, newest)
        if newest != number and (recalled is not None or (profile is None and newest in changes)):
            follows = chosen if profile is not None else changes.get(newest, settings.profile)
            settings = settings_of(follows, settings, recalled)
            pipeline.emitter.retune(settings)
        number = newest
        pipeline.emitter.replay_ticks(ticks[first:end], feedback[first:end])
        if heard.half_full:
            yield taken()
        if end >= told + len(ticks) / 200 or end == len(ticks):
            told = end
            progress(end, len(ticks))
    while upcoming is not None:
        feed_next()
        if heard.half_full:
            yield taken()
    yield taken()
    if late and len(drive.packages) and not pipeline.intake.published:
        why = ", ".join(pipeline.intake.rejected) or "no package makes one"
        raise PacketError(
            f"{missing_ticks(drive)}, and without what the simulator said before there is no frame ({why})"
        )


def _recalled(drive: Drive, before: int, number: int) -> Recalled | None:
    """Return what came of earlier sessions with settings behind those of a number, up to another; None if nothing."""
    found = [laps.data for laps in drive.laps if before < laps.number <= number]
    if not found:
        return None
    try:
        return Recalled(found[-1])
    except PacketError as error:
        raise PacketError(f"laps in the recording: {error}") from error


def _refuse_other_source(profile: Profile, own: Profile) -> None:
    """Refuse a profile of another system or rate than the recording's."""
    if profile.source.system != own.source.system:
        raise ConfigError(
            f"source.system: found {profile.source.system!r}, allowed is that of the recording, {own.source.system!r}"
        )
    if profile.rate_hz != own.rate_hz:  # only the recorded ticks are repeated
        raise ConfigError(
            f"output.rate_hz: found {profile.rate_hz:g}, allowed is that of the recording, {own.rate_hz:g} Hz"
        )


FROM_OUTSIDE = frozenset(
    (
        *("session_ended", "second_simulator", "taken_over", "no_descriptor", "not_allowed"),
        *("big_endian", "framing", "stalled", "reply_lost", "torn", "seen_late", "receive_failed"),
    )
)
"""Events of sockets, pipes and shared memory, which a replay does not have: it keeps the recorded ones."""

MOST_TICKS = 1000  # most ticks to repeat at once: far less than what fits into a ring


def _spans(ticks: npt.NDArray[np.void], by_time: bool) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield first and end of consecutive ticks that read the same, and deadline, frames and settings of the first.

    With `by_time` a span has one tick, because only the deadline of each says which packages it reads.
    """
    frames, settings = ticks["frames"], ticks["settings"]
    begins = np.arange(len(ticks)) % (1 if by_time else MOST_TICKS) == 0
    begins[1:] |= (frames[1:] != frames[:-1]) | (settings[1:] != settings[:-1])
    firsts = np.flatnonzero(begins)
    ends = np.append(firsts[1:], len(ticks))
    columns = (firsts, ends, ticks["deadline"][firsts], frames[firsts], settings[firsts])
    return zip(*(column.tolist() for column in columns), strict=True)


class Heard:
    """The records of a pipeline, collected as by a recorder, but without a thread."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._rings = RecordRing(RING_BYTES), RecordRing(RING_BYTES)
        pipeline.emitter.record(self._rings[0])
        pipeline.intake.record(self._rings[1])

    @property
    def half_full(self) -> bool:
        """Whether it is time for `take`; ask at least once a megabyte of packages and 1000 ticks."""
        return any(2 * ring.waiting > RING_BYTES for ring in self._rings)

    def take(self) -> Batch:
        """Return the records since the last time."""
        return sorted_out(b"".join(ring.take() for ring in self._rings))


Action = Callable[[Intake, bool], Any]
"""Something that happens to an intake; True is passed if the intake has the recorded settings."""


class Happening(NamedTuple):
    """Something that happens to an intake at a time [ns]."""

    time: int
    order: int
    """Order among what happens at the same time."""
    act: Action


def _happenings(drive: Drive, changes: Mapping[int, Profile], late: bool) -> Iterator[Happening]:
    """Yield the events of the source, in order; a session of which the beginning is missing begins with a package."""
    rows: list[Happening] = []
    if late and drive.packages:
        first = drive.packages[0]
        rows.append(Happening(first.time, 0, _begin(first.time)))
        announced = opening(drive.about, intake_of(changes[drive.settings[0].number]))
        if announced is not None:
            rows.append(Happening(first.time, 1, _feed(first._replace(data=announced))))
    for event in drive.events:
        if event.what == "connected":
            rows.append(Happening(event.time, 0, _begin(event.time)))
        elif event.what == "retuned" and event.detail in changes:
            rows.append(Happening(event.time, 1, _retune(changes[event.detail], event.detail)))
    packages = iter(sorted(drive.packages, key=lambda package: package.time))
    package = next(packages, None)
    for row in sorted(rows, key=lambda row: row[:2]):
        while package is not None and package.time < row.time:
            yield Happening(package.time, 2, _feed(package))
            package = next(packages, None)
        yield row
    while package is not None:
        yield Happening(package.time, 2, _feed(package))
        package = next(packages, None)


def _begin(time: int) -> Action:
    return lambda intake, _: intake.begin(time)


def _retune(profile: Profile, number: int) -> Action:
    def retune(intake: Intake, own: bool) -> None:
        if own:
            intake.retune(profile.watch, profile.source.head_m, profile.supervisor.fade_s, number)

    return retune


def _feed(package: Package) -> Action:
    return lambda intake, _: intake.feed(package.data, package.time)


def keep(
    answer: Drive,
    path: str | Path,
    *,
    force: bool = False,
    about: Mapping[str, str] | None = None,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Write a recording in memory, such as the result of `repeat`, to a file; return its path."""
    epoch = answer.about.get("epoch_ns", "0")
    epoch_ns = int(epoch) if epoch.isdecimal() else 0

    actuators = actuators_of(answer.profile) or ()

    def write(part: Path) -> None:
        with RecordingWriter(part, force=True, epoch_ns=epoch_ns, about=about, actuators=actuators) as writer:
            for settings in answer.settings:
                writer.settings(*settings)
            for laps in answer.laps:
                writer.laps(laps)
            for done, piece in _in_slices(answer):
                writer.packages(piece.packages)
                writer.events(piece.events)
                writer.frames(piece.motion)
                writer.chassis(piece.chassis)
                writer.ticks(piece.ticks)
                progress(done, len(answer.ticks))

    path = Path(path).absolute()
    if path.is_dir():
        raise ConfigError(f"recording {quoted(path)}: found a folder, allowed is a file")
    if not path.parent.is_dir():
        raise ConfigError(f"recording {quoted(path)}: its folder does not exist")
    try:
        return write_atomically(path, write, force=force)
    except OSError as error:
        raise ConfigError(f"recording {quoted(path)}: cannot be written: {error.strerror or error}") from error


def _in_slices(drive: Drive) -> Iterator[tuple[int, Drive]]:
    """Yield how many ticks came before, and the next ones with all else from the same time, as a run writes them."""
    times: dict[str, list[int]] = {
        "packages": [package.time for package in drive.packages],
        "events": [event.time for event in drive.events],
        "motion": drive.motion["time"].tolist(),
        "chassis": drive.chassis["time"].tolist(),
    }
    places = dict.fromkeys(times, 0)
    for first in range(0, max(1, len(drive.ticks)), ROWS):
        rest = drive.ticks[first + ROWS :]
        part: dict[str, Any] = {"ticks": drive.ticks[first : first + ROWS]}
        for name, stamps in times.items():
            begin, places[name] = places[name], len(stamps)
            if len(rest):
                places[name] = max(begin, bisect_left(stamps, int(rest["deadline"][0])))
            part[name] = getattr(drive, name)[begin : places[name]]
        yield first, drive._replace(**part)


def first_difference(recorded: npt.NDArray[np.void], replayed: npt.NDArray[np.void]) -> Difference | None:
    """Return where two runs first differ, lateness aside; None if every bit is the same."""
    names = [name for name, _, _ in columns_of(recorded)]
    for start in range(0, len(recorded), ROWS):
        sides = [rows[start : start + ROWS] for rows in (recorded, replayed)]
        numbers = [np.ascontiguousarray(rows).view("i8").reshape(len(rows), -1) for rows in sides]
        different = numbers[0] != numbers[1]
        different[:, names.index("lateness")] = False
        wrong = np.flatnonzero(different.any(axis=1))
        if len(wrong):
            row, place = wrong[0], int(np.flatnonzero(different[wrong[0]])[0])
            values = [float(columns_of(rows)[place][2][row]) for rows in sides]
            return Difference(int(sides[0]["index"][row]), names[place], *values)
    return None
