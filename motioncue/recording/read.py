"""Recordings: the bytes that a simulator wrote."""

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import resources
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import protocols
from motioncue.errors import PacketError
from motioncue.kernels.bridge import Bridge
from motioncue.motion import MOTION_DTYPE
from motioncue.recording.capture import MOST, Captured, Datagram, captured, is_capture
from motioncue.recording.feed import START_NS, arriving, feed
from motioncue.recording.load import packages_in
from motioncue.recording.walk import McapFile, is_mcap

__all__ = ["Recording", "at_ticks", "read_motion", "read_packages", "read_recording", "sample_recording"]

log = logging.getLogger("motioncue")


def quoted(path: str | Path) -> str:
    """Return a path in quotes for a message: unprintable characters are escaped, a backslash is kept."""
    return repr(str(path)).replace("\\\\", "\\")


UNREADABLE = "unreadable"
SAID = 3  # lines of the log about damage

LONGEST_S = 4e9
"""Longest time between packages of a recording: less than the 2^62 ns by which times may differ."""

LARGEST = 512 << 20  # bytes of a recording: nine hours of frames


def sample_recording() -> Path:
    """Return the path of the recording in the package.

    A real drive as City Car Driving bytes: a 59.9 s motorway drive at 60 Hz, made from the
    example segment of comma.ai's comma2k19 data set (MIT license).
    """
    return Path(str(resources.files("motioncue.data"))) / "city_car_driving_60hz.bin"


def read_bytes(path: str | Path, name: str) -> bytes:
    """Return the contents of a file; raise PacketError, beginning with `name`, if it is unreadable or endless."""
    try:
        with Path(path).open("rb") as file:
            huge = os.fstat(file.fileno()).st_size > LARGEST
            data = b"" if huge else file.read(LARGEST + 1)  # a pipe or a device has no size
    except OSError as error:
        raise PacketError(f"{name}: {error.strerror}") from error
    if huge or len(data) > LARGEST:
        raise PacketError(f"{name}: found more than {LARGEST >> 20} MiB, allowed is up to that")
    return data


class Recording(NamedTuple):
    """The packages that a simulator sent."""

    packages: list[bytes]
    times: list[float] | None  # arrivals since the first [s]; None if the file has no times
    others: int  # datagrams of a capture that were sent elsewhere
    rejected: Mapping[str, int]
    """Datagrams of a capture that went to the same ports but are not packages: their number by the reason that an
    engine would count; ``cut_in_capture`` and ``fragments_missing`` are the capture's own, ``unreadable`` counts damage
    of an MCAP file."""
    unreadable: tuple[str, ...] = ()
    """The damage in words."""


def read_recording(path: str | Path, system: protocols.System) -> Recording:
    """Return a recording: concatenated packages of a simulator, an MCAP file, or a network capture.

    Damage of an MCAP file is logged.

    Parameters
    ----------
    path : str or Path
        The file; pcap and pcapng captures are recognized by their first bytes.
    system : str
        The system that sent the bytes.

    Raises
    ------
    PacketError
        If the file cannot be read, is empty or is cut short; says where.
    ConfigError
        If the system does not exist.
    """
    name = f"recording {quoted(path)}"
    recording = parse_recording(read_bytes(path, name), name, system)
    for line in recording.unreadable[:SAID]:
        log.warning("%s: %s", name, line)
    return recording


def parse_recording(data: bytes, name: str, system: protocols.System) -> Recording:
    """Return the recording in `data`, as `read_recording` does; errors begin with `name`."""
    module = protocols.system(system)
    try:
        if is_mcap(data):
            return _from_mcap(McapFile(name, data), module, system)
        if is_capture(data):
            return _from_capture(captured(data), module, system)
        packages = list(islice(module.framed(data), MOST + 1)) if data else []
        if not packages:
            raise PacketError(f"found no bytes, allowed is at least one package of {system}")
        if len(packages) > MOST:
            raise PacketError(f"found more than {MOST} packages of {system}, allowed is up to that")
    except PacketError as error:
        raise PacketError(f"{name}: {error}") from error
    return Recording(packages, None, 0, {})


def _from_mcap(file: McapFile, module: ModuleType | protocols.Described, system: protocols.System) -> Recording:
    """Return the system's packages among recorded ones; count others by the reason an engine has to refuse them."""
    recorded = packages_in(file)
    own = [package for package in recorded if _why_not(module, package.data) is None]
    if not own:
        topics = sorted({name for name, _, _ in file.topics.values()})[:5]
        whose = f"{len(recorded)} packages of other kinds (of the first, {{}})" if recorded else "no package"
        found = [whose.format(_why_not(module, recorded[0].data) if recorded else ""), *file.damage.texts()[:1]]
        found += [f"topics {', '.join(topics)}"] if topics and not recorded else []
        raise PacketError(f"found {'; '.join(found)}; allowed is at least one package of {system}")
    rejected = _rejected(module, (package.data for package in recorded if _why_not(module, package.data) is not None))
    rejected += Counter({UNREADABLE: file.damage.count})
    times = [1e-9 * package.time for package in own]
    return Recording([package.data for package in own], _from_first(times), 0, rejected, file.damage.texts())


def _from_capture(found: Captured, module: ModuleType | protocols.Described, system: protocols.System) -> Recording:
    """Return the system's packages among captured datagrams, and count other datagrams sent to the same ports."""
    own: list[Datagram] = []
    others: list[Datagram] = []
    for datagram in found.datagrams:
        (own if _why_not(module, datagram.payload) is None else others).append(datagram)
    ports = {datagram.port for datagram in own}
    incomplete = [lacks.reason for lacks in found.incomplete if not own or lacks.port in ports]
    if not own:
        why = f" (of the first, {_why_not(module, others[0].payload)})" if others else ""
        counts = [f"{len(others)} datagrams of other kinds{why}" if others else "", *_counted(incomplete)]
        what = ", ".join(filter(None, counts)) or "no datagram"
        raise PacketError(f"found {what}, allowed is at least one package of {system}")
    refused = [datagram.payload for datagram in others if datagram.port in ports]
    rejected = Counter(incomplete) + _rejected(module, refused)
    times = _from_first([datagram.time for datagram in own])
    return Recording([datagram.payload for datagram in own], times, len(others) - len(refused), rejected)


def _from_first(times: list[float]) -> list[float]:
    """Return times counted from the first [s]; raise PacketError if they are too far apart for nanoseconds."""
    furthest = max((abs(time - times[0]) for time in times), default=0.0)
    if not furthest < LONGEST_S:
        raise PacketError(f"found packages that came {furthest:.4g} s apart, allowed are {LONGEST_S:g} s")
    return [time - times[0] for time in times]


def _counted(reasons: Iterable[str]) -> list[str]:
    return [f"{count} {reason.replace('_', ' ')}" for reason, count in Counter(reasons).items()]


def _rejected(module: ModuleType | protocols.Described, refused: Iterable[bytes]) -> Counter[str]:
    """Return how many datagrams an engine would have refused, by reason."""
    if not hasattr(module, "intake"):
        return Counter(type=sum(1 for _ in refused))
    intake = module.intake(module.Options())
    for payload in refused:
        intake.feed(payload, START_NS)
    return Counter(intake.rejected)


def _why_not(module: ModuleType | protocols.Described, data: bytes) -> str | None:
    """Return why a datagram is not one of the system's packages; None if it is."""
    try:
        module.identify(data)
    except PacketError as error:
        return str(error)
    return None


def read_packages(path: str | Path, system: protocols.System = "city-car-driving") -> list[bytes]:
    """Return the packages of a recording, as `read_recording` does.

    Parameters
    ----------
    path : str or Path
        The bytes that the simulator wrote, or a network capture.
    system : str
        The system that sent the bytes.

    Raises
    ------
    PacketError
        If the file cannot be read, is empty or is cut short; says where.
    ConfigError
        If the system does not exist.
    """
    return read_recording(path, system).packages


def read_motion(
    path: str | Path, system: protocols.System = "city-car-driving", *, rate_hz: float | None = None, **options: Any
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
    return read_frames(path, system, rate_hz=rate_hz, **options)[0]


def read_frames(
    path: str | Path, system: protocols.System = "city-car-driving", *, rate_hz: float | None = None, **options: Any
) -> tuple[npt.NDArray[np.void], list[bytes], npt.NDArray[np.intp]]:
    """Return the motion as `read_motion` does, all packages, and the index of each frame's package."""
    source = protocols.source(system)
    intake = source.intake(msgspec.convert(options, source.Options))
    packages, arrivals, *_ = read_recording(path, system)
    rows: list[npt.NDArray[np.void]] = []
    places: list[int] = []
    times: list[float] = []  # time of each frame [s]
    began = 0.0  # start of the session on the recording's clock [s]
    others = 0  # packages that do not affect the clock
    for place, is_frame in enumerate(feed(arriving(packages, arrivals, rate_hz, intake), intake)):
        if not is_frame and intake.rejected:
            raise PacketError(f"recording {quoted(path)}: package {place} refused: {', '.join(intake.rejected)}")
        if not is_frame:
            if intake.others == others:  # an announcement: the simulator's clock begins again
                began = times[-1] if times else 0.0
            others = intake.others
            continue
        row = intake.frame()
        rows.append(row)
        places.append(place)
        times.append(began + float(row["frame_time"][0]))
    if len(times) > 1 and not any(times):
        raise PacketError(
            f"recording {quoted(path)}: neither {system} nor the file says when frames came; give their rate"
        )
    motion = np.concatenate(rows) if rows else np.zeros(0, MOTION_DTYPE)
    if times:
        motion["time"] = np.round((np.array(times) - times[0]) * 1e9)
    return motion, packages, np.array(places, dtype=np.intp)


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
