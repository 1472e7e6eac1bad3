"""A virtual drive through the whole engine on a clock that takes no time; the standard drives.

Against the standard drives a profile's algorithm and its platform are measured at load: they are drives of the virtual
car, kept in ``data/standard_drives.bin`` so that loading a profile computes no car.  ``python -m
motioncue.virtual.simulated_run`` writes the file again.
"""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import data, sources
from motioncue.core.channels import MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.drive.car import angles_and_rates, body_axes, drive
from motioncue.engine.assembly import load_profile
from motioncue.engine.fitting import CHANNELS_KEPT, DRIVES, KEPT_HZ, KEPT_TYPE
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.replay import Heard, keep
from motioncue.frames.settings import UNWATCHED
from motioncue.profile.profile import Profile
from motioncue.recording.mcap_reader import Settings
from motioncue.recording.packages import Timed, feed
from motioncue.recording.recorder import Batch
from motioncue.recording.recording import Drive
from motioncue.virtual.simulators import drive_packages

__all__ = ["Ride", "drive_motion", "ride", "standard_drive"]

START_NS = 1_000_000_000


class Ride(NamedTuple):
    """Result of a drive; `ticks`, `motion` and `time` have one row per tick."""

    time: npt.NDArray[np.float64]  # time since the first frame [s]
    ticks: npt.NDArray[np.void]  # TICK_DTYPE: what the engine read and sent
    motion: npt.NDArray[np.void]  # MOTION_DTYPE: the simulator's newest report, plausible or not
    stats: dict[str, Any]  # as from `motioncue run --json`


def drive_motion(drive: str, rate_hz: float = 60.0) -> npt.NDArray[np.void]:
    """Return the frames of a virtual drive as City Car Driving reports it."""
    source = sources.source("city-car-driving")
    intake = source.intake(source.Options())
    intake.watch(UNWATCHED)
    packages = drive_packages("city-car-driving", drive, rate_hz)
    times = itertools.accumulate((round(each.duration * 1e9) for each in packages), initial=START_NS)
    timed = map(Timed, itertools.islice(times, 1, None), (each.package for each in packages))
    return np.concatenate([intake.frame() for is_frame in feed(timed, intake) if is_frame])


def ride(
    profile: Profile | str | Path,
    drive: str,
    rate_hz: float = 60.0,
    *,
    tail_s: float = 2.0,
    record: str | Path | None = None,
) -> Ride:
    """Return what the engine makes from a virtual drive."""
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    system = sources.system_of(profile.source)
    packages = drive_packages(system, drive, rate_hz)
    source = sources.source(system)
    raw = source.intake(source.Options(**profile.source.options), profile.source.head_m)
    raw.watch(UNWATCHED)
    seconds = sum(package.duration for package in packages) + tail_s
    pipeline = Pipeline(profile, FakeClock(START_NS), trace=int(seconds * profile.rate_hz) + 2)
    heard = None if record is None else Heard(pipeline)
    batches: list[Batch] = []
    said = [np.zeros(1, MOTION_DTYPE)]
    times = list(itertools.accumulate((round(each.duration * 1e9) for each in packages), initial=START_NS))
    timed = map(Timed, times[1:], (each.package for each in packages))
    for is_frame in feed(timed, raw, pipeline.intake, before=lambda time_ns: pipeline.emitter.run(until_ns=time_ns)):
        if is_frame:
            said.append(raw.frame())
        if heard is not None and heard.half_full:
            batches.append(heard.take())
    pipeline.emitter.run(until_ns=times[-1] + round(tail_s * 1e9))
    ticks = pipeline.emitter.trace
    if heard is not None and record is not None:
        batches.append(heard.take())
        frames = np.concatenate([batch.frames for batch in batches])
        came = [package for batch in batches for package in batch.packages]
        events = [event for batch in batches for event in batch.events]
        settings = [Settings(START_NS, 0, msgspec.to_builtins(profile))]
        about = {"drive": drive}
        keep(
            Drive(frames, ticks, came, sorted(events), settings, about, ()),
            record,
            force=True,
            about=about,
        )
    motion = np.concatenate(said)
    newest = np.searchsorted(motion["time"], ticks["deadline"], side="right") - 1
    return Ride((ticks["deadline"] - motion["time"][1]) * 1e-9, ticks, motion[newest], pipeline.stats())


def standard_drive(name: str, rate_hz: float = KEPT_HZ) -> npt.NDArray[np.float64]:
    """Return what a passenger's body does on a standard drive."""
    states = drive(name, rate_hz)
    acceleration, rates = body_axes(states, "acceleration"), body_axes(states, "angular_velocity")
    roll, pitch, _ = angles_and_rates(states)[0]
    columns = (acceleration[:, 0], acceleration[:, 1], -acceleration[:, 2], roll, pitch, *rates.T)
    assert len(columns) == len(CHANNELS_KEPT)
    return np.stack(columns, axis=1)


if __name__ == "__main__":
    rows = np.concatenate([standard_drive(name) for name in DRIVES])
    (Path(data.__file__).parent / "standard_drives.bin").write_bytes(rows.astype(KEPT_TYPE).tobytes())
