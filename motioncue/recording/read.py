"""Recordings as motion: the frames in what a simulator sent."""

import logging
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue.bridge.bridge import Bridge
from motioncue.core.channels import MOTION_DTYPE
from motioncue.errors import PacketError
from motioncue.recording.feed import START_NS, Timed, arriving, feed
from motioncue.recording.packages import ANY, SAID, Pick, Recording, contents, parse_recording, quoted

__all__ = ["at_ticks", "read_motion", "read_packages", "read_recording", "sample_recording"]

log = logging.getLogger("motioncue")


def sample_recording() -> Path:
    """Return the path of the recording in the package.

    A real drive as City Car Driving bytes: a 59.9 s motorway drive at 60 Hz, made from the
    example segment of comma.ai's comma2k19 data set (MIT license).
    """
    return Path(str(resources.files("motioncue.data"))) / "city_car_driving_60hz.bin"


def read_recording(path: str | Path, system: sources.System, pick: Pick = ANY) -> Recording:
    """Return a recording: concatenated packages of a simulator, an MCAP file, or a network capture.

    What could not be read is logged.

    Parameters
    ----------
    path : str or Path
        The file; pcap and pcapng captures are recognized by their first bytes.
    system : str
        The system that sent the bytes.
    pick : Pick
        Which datagrams of a capture to read.

    Raises
    ------
    PacketError
        If the file cannot be read, has no package of the system, or has those of several simulators.
    ConfigError
        If the system does not exist.
    """
    name = f"recording {quoted(path)}"
    recording = parse_recording(contents(path, name), name, system, pick=pick)
    for line in recording.unreadable[:SAID]:
        log.warning("%s: %s", name, line)
    return recording


def read_packages(path: str | Path, system: sources.System = "city-car-driving", pick: Pick = ANY) -> list[bytes]:
    """Return the packages of a recording, as `read_recording` does.

    Parameters
    ----------
    path : str or Path
        The bytes that the simulator wrote, or a network capture.
    system : str
        The system that sent the bytes.
    pick : Pick
        Which datagrams of a capture to read.

    Raises
    ------
    PacketError
        If the file cannot be read, has no package of the system, or has those of several simulators.
    ConfigError
        If the system does not exist.
    """
    return read_recording(path, system, pick).packages


def read_motion(
    path: str | Path, system: sources.System = "city-car-driving", *, rate_hz: float | None = None, **options: Any
) -> npt.NDArray[np.void]:
    """Return the motion in a recording, one row per frame.

    Parameters
    ----------
    path : str or Path
        The bytes that the simulator wrote, or a network capture.
    system : str
        The system that sent the bytes.
    rate_hz : float, optional
        Frames per second [Hz], required if neither the packages nor the file have times.
    **options
        As ``source.options`` of a profile.

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (n,)
        `time` counts nanoseconds from the first frame: by the simulator's own clock over all sessions, or, if it has
        none, as captured.

    Raises
    ------
    PacketError
        If the file cannot be read or a package is refused; names the first one and the reason.
    """
    return read_frames(path, system, rate_hz=rate_hz, **options).motion


class Frames(NamedTuple):
    """The frames of a recording, with the packages they came in."""

    motion: npt.NDArray[np.void]
    packages: list[Timed]
    """All packages; one without a frame has the time of the next frame."""
    rejected: Mapping[str, int]
    """Refused packages by reason."""


def read_frames(
    path: str | Path, system: sources.System = "city-car-driving", *, rate_hz: float | None = None, **options: Any
) -> Frames:
    """Return the motion as `read_motion` does, and all packages; raise PacketError at the first refused one."""
    return frames_of(read_recording(path, system), system, f"recording {quoted(path)}", rate_hz, options)


def frames_of(
    recording: Recording,
    system: sources.System,
    name: str,
    rate_hz: float | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    as_received: bool = False,
) -> Frames:
    """Return the frames of a recording; errors begin with `name`.

    Parameters
    ----------
    recording : Recording
        The packages.
    system : str
        The system that sent them.
    name : str
        The file, for messages.
    rate_hz : float, optional
        Frames per second [Hz], required if neither the packages nor the file have times.
    options : mapping, optional
        As ``source.options`` of a profile.
    as_received : bool
        Arrival times come before the simulator's own clock, and refused packages are counted, as in a run.

    Raises
    ------
    PacketError
        If nothing tells the times of the frames, or a package is refused and `as_received` is false.
    """
    source = sources.source(system)
    chosen, derivation = sources.read_as(system, options)
    intake = source.intake(chosen, derivation=derivation)
    packages, arrivals = recording.packages, recording.times
    motion = np.empty(len(packages), MOTION_DTYPE)
    memory = motion.view(f"V{MOTION_DTYPE.itemsize}")  # a frame is copied whole, not field by field
    places = np.empty(len(packages), np.int64)  # of each frame's package
    times = np.empty(len(packages))  # of each frame [s]
    count = 0  # frames so far
    began = 0.0  # start of the session on the recording's clock [s]
    others = 0  # packages that do not affect the clock
    for place, is_frame in enumerate(feed(arriving(packages, arrivals, rate_hz, intake), intake)):
        if not is_frame and intake.rejected and not as_received:
            raise PacketError(f"{name}: package {place} refused: {', '.join(intake.rejected)}")
        if not is_frame:
            if intake.others == others:  # an announcement: the simulator's clock begins again
                began = float(times[count - 1]) if count else 0.0
            others = intake.others
            continue
        row = intake.frame()
        memory[count] = row.view(memory.dtype)[0]
        places[count], times[count] = place, began + row["frame_time"][0]
        count += 1
    motion, places, times = motion[:count], places[:count], times[:count]
    if as_received and arrivals is not None:
        motion["time"] -= START_NS
        came = [round(1e9 * (time - arrivals[0])) for time in arrivals]
        return Frames(motion, list(map(Timed, came, packages)), intake.rejected)
    if count > 1 and not times.any():
        raise PacketError(
            f"{name}: neither {system} nor the file says when frames came; give their rate (--rate; in Python rate_hz)"
        )
    if count:
        motion["time"] = np.round((times - times[0]) * 1e9)
    frames = motion["time"] if count else np.zeros(1, np.int64)
    nexts = np.minimum(np.searchsorted(places, np.arange(len(packages))), len(frames) - 1)
    return Frames(motion, list(map(Timed, frames[nexts].tolist(), packages)), intake.rejected)


def at_ticks(motion: npt.NDArray[np.void], rate_hz: float = 333.33, bridge: str = "hold") -> npt.NDArray[np.void]:
    """Return the motion at each tick when frames arrive at their `time`: the newest frame, or bridged.

    Parameters
    ----------
    motion : ndarray of MOTION_DTYPE, shape (n,)
        Frames in order of time.
    rate_hz : float
        Ticks per second [Hz]; the first tick is at the first frame.
    bridge : {"hold", "linear", "predict"}
        As ``source.bridge`` of a profile.

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (m,)
        Rows keep the time of their frame.

    Raises
    ------
    ConfigError
        If the bridge does not exist.
    ValueError
        If there is no frame, times decrease, or the rate is not positive.
    """
    time = motion["time"]
    if len(motion) == 0 or (np.diff(time) < 0).any() or not 0 < rate_hz < np.inf:
        raise ValueError(f"at_ticks: allowed are frames in order of time and a rate above 0 Hz, found {rate_hz} Hz")
    period = round(1e9 / rate_hz)
    ticks = np.arange(time[0], time[-1] + 1, period)
    return Bridge(bridge).process(np.ascontiguousarray(motion), ticks)
