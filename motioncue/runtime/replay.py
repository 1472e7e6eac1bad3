"""Replay: a recording through the whole engine, on a clock that takes no time."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError, PacketError
from motioncue.explain import explain
from motioncue.intake.intake import Intake
from motioncue.kernels.clock import FakeClock
from motioncue.profile import Profile
from motioncue.recording.export import columns as columns_of
from motioncue.recording.feed import Timed, feed
from motioncue.recording.load import Drive
from motioncue.recording.read import quoted, read_frames
from motioncue.recording.topics import Package
from motioncue.runtime.assembly import check, load_profile, settings_of
from motioncue.runtime.engine import Pipeline

__all__ = ["Difference", "first_difference", "profile_of", "repeat", "replay"]

START_NS = 1_000_000_000


def replay(
    profile: Profile | str | Path, path: str | Path, *, tail_s: float = 2.0, rate_hz: float | None = None
) -> npt.NDArray[np.void]:
    """Return every tick that the engine makes of a recording.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `load_profile` takes.
    path : str or Path
        The bytes that the simulator wrote; frames arrive when its own clock says.
    tail_s : float
        How long to go on after the last frame [s]: hold, then fade.
    rate_hz : float, optional
        Frames a second [Hz], for a recording that says no times.

    Returns
    -------
    ndarray of TICK_DTYPE, shape (n,)
        Motion read and cue sent by every tick, fades included.

    Raises
    ------
    ConfigError, PacketError
        If the profile or the recording is refused.
    """
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    system = profile.source.system
    motion, packages, places = read_frames(path, system, rate_hz=rate_hz, **profile.source.options)
    if not len(motion):
        raise PacketError(f"recording {quoted(path)}: found no frame, allowed is at least one")
    arrivals = START_NS + motion["time"]
    end = int(arrivals[-1]) + round(tail_s * 1e9)
    ticks = int((end - START_NS) * profile.rate_hz * 1e-9) + 2
    clock = FakeClock(START_NS)
    pipeline = Pipeline(profile, clock, trace=ticks)
    # What is not a frame came just before the next one.
    nexts = np.searchsorted(places, np.arange(len(packages)))
    times = arrivals[np.minimum(nexts, len(arrivals) - 1)]
    timed = map(Timed, times.tolist(), packages)
    for _ in feed(timed, pipeline.session, before=lambda time_ns: pipeline.emitter.run(until_ns=time_ns)):
        pass
    pipeline.emitter.run(until_ns=end)
    return pipeline.emitter.trace


class Difference(NamedTuple):
    """Where two runs differ first."""

    tick: int
    """Index of the tick."""
    channel: str
    """Such as ``cue.surge``."""
    recorded: float
    replayed: float


def profile_of(tables: Mapping[str, Any]) -> Profile:
    """Return the profile that a recording was made with.

    Parameters
    ----------
    tables : mapping
        As the recording has them.

    Raises
    ------
    ConfigError
        If this version does not take them.
    """
    try:
        profile = msgspec.convert(tables, Profile, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"profile of the recording: {explain(error, dict(tables), Profile)}") from error
    check(profile)
    return profile


def repeat(drive: Drive, profile: Profile | None = None) -> npt.NDArray[np.void]:
    """Return the ticks that the engine makes of a recording, each with what the recorded tick had.

    Parameters
    ----------
    drive : Drive
        With packages and ticks.
    profile : Profile, optional
        Other settings than those of the recording, in force throughout.

    Returns
    -------
    ndarray of TICK_DTYPE, shape (n,)
        With the recording's own settings, and the same build, bit for bit the recorded ticks but for their lateness.

    Raises
    ------
    ConfigError
        If the profile is refused, or is for another system than the recording.
    PacketError
        If the recording has no ticks or no settings, or does not begin with the run: what a simulator announced and
        the state of the filters are then missing, as in the last seconds of a run or a rolled file.

    Notes
    -----
    Each tick reads what it read then: as many frames are fed before it as it says, at the times at which they came.
    Changes of settings and what the operator did are repeated at their ticks.
    """
    if not len(drive.ticks) or not drive.settings:
        raise PacketError("the recording has no ticks to repeat, allowed is one of a run")
    if drive.ticks["index"][0] != 0:
        raise PacketError(
            f"found a recording that begins at tick {drive.ticks['index'][0]}, allowed is one from tick 0 on"
        )
    changes = {row.number: profile_of(row.profile) for row in drive.settings} if profile is None else {}
    first = drive.settings[0].profile
    chosen = profile_of(first) if profile is None else profile
    if chosen.source.system != first["source"]["system"]:
        raise ConfigError(
            f"source.system: found {chosen.source.system!r}, allowed is that of the recording, "
            f"{first['source']['system']!r}"
        )
    pipeline = Pipeline(chosen, FakeClock(START_NS), trace=len(drive.ticks))
    source = _events(drive, changes)
    settings = pipeline.emitter.settings
    upcoming = next(source, None)
    number = int(drive.ticks["settings"][0])
    columns = ("index", "deadline", "frames", "operation", "settings")
    for index, deadline, frames, operation, newest in zip(
        *(drive.ticks[name].tolist() for name in columns), strict=True
    ):
        while upcoming is not None and pipeline.session.published < frames:
            upcoming(pipeline.session)
            upcoming = next(source, None)
        if newest != number and newest in changes:
            settings = settings_of(changes[newest], settings)
            pipeline.emitter.retune(settings)
        number = newest
        pipeline.emitter.replay_tick(index, deadline, operation)
    ticks = pipeline.emitter.trace
    ticks["settings"] = drive.ticks["settings"]  # numbers count what was posted, also what no tick has taken
    return ticks


def _events(drive: Drive, changes: Mapping[int, Profile]) -> Iterator[Callable[[Intake], Any]]:
    """Yield what happened to the source, in order: each takes the intake that it is to happen to."""
    rows: list[tuple[int, int, Callable[[Intake], Any]]] = []
    for event in drive.events:
        if event.what == "connected":
            rows.append((event.time, 0, _begin(event.time)))
        elif event.what == "retuned" and event.detail in changes:
            rows.append((event.time, 1, _retune(changes[event.detail])))
    rows += [(package.time, 2, _feed(package)) for package in drive.packages]
    return (action for _, _, action in sorted(rows, key=lambda row: row[:2]))


def _begin(time: int) -> Callable[[Intake], Any]:
    return lambda intake: intake.begin(time)


def _retune(profile: Profile) -> Callable[[Intake], Any]:
    return lambda intake: intake.retune(profile.watch, profile.source.head_m, profile.supervisor.fade_s)


def _feed(package: Package) -> Callable[[Intake], Any]:
    return lambda intake: intake.feed(package.data, package.time)


def first_difference(recorded: npt.NDArray[np.void], replayed: npt.NDArray[np.void]) -> Difference | None:
    """Return where two runs differ first, whatever their lateness; None if every bit is the same.

    Parameters
    ----------
    recorded, replayed : ndarray of TICK_DTYPE, shape (n,)
        As many ticks of both.
    """
    numbers = [rows.copy().view("i8").reshape(len(rows), -1) for rows in (recorded, replayed)]
    names = [name for name, _, _ in columns_of(recorded)]
    different = numbers[0] != numbers[1]
    different[:, names.index("lateness")] = False
    rows = np.flatnonzero(different.any(axis=1))
    if not len(rows):
        return None
    row = rows[0]
    place = int(np.flatnonzero(different[row])[0])
    values = [float(values[row]) for side in (recorded, replayed) for name, _, values in [columns_of(side)[place]]]
    return Difference(int(recorded["index"][row]), names[place], *values)
