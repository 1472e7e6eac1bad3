"""Recordings: the bytes that a simulator wrote."""

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import protocols
from motioncue.errors import ConfigError, PacketError
from motioncue.explain import explain
from motioncue.intake.intake import Intake
from motioncue.kernels.bridge import Bridge
from motioncue.motion import MOTION_DTYPE
from motioncue.recording.capture import MOST, Captured, Datagram, captured, is_capture
from motioncue.recording.feed import START_NS, Timed, arriving, feed
from motioncue.recording.messages import packages_in, settings_in
from motioncue.recording.walk import MAGIC, McapFile, is_mcap
from motioncue.settings.telemetry import SourcePacket

__all__ = ["Recording", "at_ticks", "read_motion", "read_packages", "read_recording", "sample_recording"]

log = logging.getLogger("motioncue")


def quoted(path: str | Path) -> str:
    """Return a path in quotes for a message: unprintable characters are escaped, a backslash is kept."""
    return repr(str(path)).replace("\\\\", "\\")


UNREADABLE = "unreadable"
SAID = 3  # lines of the log about damage

LONGEST_S = 4e9
"""Longest time between packages of a recording: less than the 2^62 ns by which times may differ."""

LOOKED_AT = 600  # packages of a file whose system is searched for
TYPICAL_NS = 16_000_000  # between two frames of a simulator

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


def contents(path: str | Path, name: str) -> bytes | Path:
    """Return the contents of a file, or the path of an MCAP file, which may be larger; as `read_bytes` otherwise."""
    try:
        if Path(path).is_file():
            with Path(path).open("rb") as file:
                if is_mcap(file.read(len(MAGIC))):
                    return Path(path)
    except OSError as error:
        raise PacketError(f"{name}: {error.strerror}") from error
    return read_bytes(path, name)


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
    recording = parse_recording(contents(path, name), name, system)
    for line in recording.unreadable[:SAID]:
        log.warning("%s: %s", name, line)
    return recording


def parse_recording(data: bytes | Path, name: str, system: protocols.System, module: Any = None) -> Recording:
    """Return the recording in `data`, as `read_recording` does; errors begin with `name`.

    `module` splits and identifies the packages of a system that is described; by default the system's own does.
    """
    module = protocols.system(system) if module is None else module
    try:
        return _of_system(_opened(data, name), module, system)
    except PacketError as error:
        raise PacketError(f"{name}: {error}") from error


def _opened(data: bytes | Path, name: str) -> McapFile | Captured | bytes:
    """Return the contents of a file before any system is asked for its packages."""
    if isinstance(data, Path):
        return McapFile(data)
    if is_mcap(data):
        return McapFile(name, data)
    return captured(data) if is_capture(data) else data


def _of_system(opened: McapFile | Captured | bytes, module: Any, system: protocols.System) -> Recording:
    """Return a system's packages; raise PacketError if there is none."""
    if isinstance(opened, McapFile):
        return _from_mcap(opened, module, system)
    if isinstance(opened, Captured):
        return _from_capture(opened, module, system)
    packages = list(islice(module.framed(opened), MOST + 1)) if opened else []
    if not packages:
        raise PacketError(f"found no bytes, allowed is at least one package of {system}")
    if len(packages) > MOST:
        raise PacketError(f"found more than {MOST} packages of {system}, allowed is up to that")
    return Recording(packages, None, 0, {})


def _from_mcap(file: McapFile, module: Any, system: protocols.System) -> Recording:
    """Return the system's packages among recorded ones; count others by the reason an engine has to refuse them."""
    recorded = packages_in(file)
    if recorded and hasattr(module, "intake"):
        announced = opening(file.metadata.get("motioncue", {}), module.intake(module.Options()))
        recorded[:0] = [] if announced is None else [recorded[0]._replace(data=announced)]
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
    return Recording([package.data for package in own], from_first(times), 0, rejected, file.damage.texts())


def opening(about: Mapping[str, str], intake: Intake) -> bytes | None:
    """Return what the simulator announced before a recording that begins within a session; None if nothing.

    Parameters
    ----------
    about : mapping of str to str
        How the recording was made.
    intake : Intake
        A new intake of its system.
    """
    try:
        data = bytes.fromhex(about.get("opening", ""))
    except ValueError:
        return None
    if data:
        intake.begin(START_NS)
        intake.feed(data, START_NS)
    return data if data and not intake.accepted and not intake.rejected else None


def _from_capture(found: Captured, module: Any, system: protocols.System) -> Recording:
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
    times = from_first([datagram.time for datagram in own])
    return Recording([datagram.payload for datagram in own], times, len(others) - len(refused), rejected)


def from_first(times: list[float]) -> list[float]:
    """Return times counted from the first [s]; raise PacketError if they are too far apart for nanoseconds."""
    furthest = max((abs(time - times[0]) for time in times), default=0.0)
    if not furthest < LONGEST_S:
        raise PacketError(f"found packages that came {furthest:.4g} s apart, allowed are {LONGEST_S:g} s")
    return [time - times[0] for time in times]


def _counted(reasons: Iterable[str]) -> list[str]:
    return [f"{count} {reason.replace('_', ' ')}" for reason, count in Counter(reasons).items()]


def _rejected(module: Any, refused: Iterable[bytes]) -> Counter[str]:
    """Return how many datagrams an engine would have refused, by reason."""
    if not hasattr(module, "intake"):
        return Counter(type=sum(1 for _ in refused))
    intake = module.intake(module.Options())
    for payload in refused:
        intake.feed(payload, START_NS)
    return Counter(intake.rejected)


def _why_not(module: Any, data: bytes) -> str | None:
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
    return read_frames(path, system, rate_hz=rate_hz, **options).motion


class Frames(NamedTuple):
    """The frames of a recording, with the packages they came in."""

    motion: npt.NDArray[np.void]
    packages: list[Timed]
    """All packages; one without a frame has the time of the next frame."""
    rejected: Mapping[str, int]
    """Refused packages by reason."""


def read_frames(
    path: str | Path, system: protocols.System = "city-car-driving", *, rate_hz: float | None = None, **options: Any
) -> Frames:
    """Return the motion as `read_motion` does, and all packages; raise PacketError at the first refused one."""
    return frames_of(read_recording(path, system), system, f"recording {quoted(path)}", rate_hz, options)


def frames_of(
    recording: Recording,
    system: protocols.System,
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
    source = protocols.source(system)
    intake = source.intake(_options(source, system, options or {}))
    packages, arrivals = recording.packages, recording.times
    rows: list[npt.NDArray[np.void]] = []
    places: list[int] = []
    times: list[float] = []  # time of each frame [s]
    began = 0.0  # start of the session on the recording's clock [s]
    others = 0  # packages that do not affect the clock
    for place, is_frame in enumerate(feed(arriving(packages, arrivals, rate_hz, intake), intake)):
        if not is_frame and intake.rejected and not as_received:
            raise PacketError(f"{name}: package {place} refused: {', '.join(intake.rejected)}")
        if not is_frame:
            if intake.others == others:  # an announcement: the simulator's clock begins again
                began = times[-1] if times else 0.0
            others = intake.others
            continue
        row = intake.frame()
        rows.append(row)
        places.append(place)
        times.append(began + float(row["frame_time"][0]))
    motion = np.concatenate(rows) if rows else np.zeros(0, MOTION_DTYPE)
    if as_received and arrivals is not None:
        motion["time"] -= START_NS
        came = [round(1e9 * (time - arrivals[0])) for time in arrivals]
        return Frames(motion, list(map(Timed, came, packages)), intake.rejected)
    if len(times) > 1 and not any(times):
        raise PacketError(f"{name}: neither {system} nor the file says when frames came; give their rate")
    if times:
        motion["time"] = np.round((np.array(times) - times[0]) * 1e9)
    frames = motion["time"] if rows else np.zeros(1, np.int64)
    nexts = np.minimum(np.searchsorted(places, np.arange(len(packages))), len(frames) - 1)
    return Frames(motion, list(map(Timed, frames[nexts].tolist(), packages)), intake.rejected)


def _options(
    source: ModuleType | protocols.DescribedSource, system: protocols.System, options: Mapping[str, Any]
) -> Any:
    """Return a source's options; raise ConfigError if one is not allowed."""
    try:
        return msgspec.convert(options, source.Options)
    except msgspec.ValidationError as error:
        raise ConfigError(f"options of {system}: {explain(error, dict(options), source.Options)}") from error


def system_of(data: bytes | Path, name: str, key: str) -> protocols.System:
    """Return the only system whose packets fill a file, or most of a capture; or the source that a recording describes.

    Parameters
    ----------
    data : bytes or Path
        What `contents` returned.
    name : str
        The file, for messages.
    key : str
        Where a system can be named instead, for messages.

    Raises
    ------
    ConfigError
        If there is no such system, or more than one.
    PacketError
        If it is a network capture that is broken.
    """
    sizes: dict[str, int] = {}
    try:
        opened = _opened(data, name)
    except PacketError as error:
        raise PacketError(f"{name}: {error}") from error
    settings = settings_in(opened)[:1] if isinstance(opened, McapFile) else []
    own = recorded_source(settings[0].profile) if settings else None
    if isinstance(own, protocols.DescribedSource):
        return own
    for system in protocols.having("intake"):
        packages = _filling(opened, system)
        if packages:
            sizes[system] = sum(map(len, packages))
    for system in () if sizes else protocols.described_profiles():
        packages = _filling(opened, system)
        if plausible(packages, system):
            sizes[system] = sum(map(len, packages))
    return only_system(sizes, name, key)


def _filling(opened: McapFile | Captured | bytes, system: str) -> list[bytes]:
    """Return the system's packages if they fill a file of bytes, or are in a capture; none otherwise."""
    module = protocols.system(system)
    try:
        packages = _of_system(opened, module, system).packages
    except PacketError:
        return []
    return packages if all(_why_not(module, package) is None for package in packages) else []


def plausible(packages: Sequence[bytes], system: str) -> bool:
    """Say whether packages can be a described system's: read so, most of at least twenty frames continue a drive.

    The size alone tells little, because most such packets have no mark.

    Parameters
    ----------
    packages : sequence of bytes
        They have the system's sizes and marks.
    system : str
        A profile that describes its source.
    """
    source = protocols.source(system)
    intake = source.intake(source.Options())
    intake.begin(START_NS)
    followed = taken = 0
    for package in packages[:LOOKED_AT]:
        before = intake.published
        intake.feed(package, START_NS + taken * TYPICAL_NS)
        taken += intake.published > before
        followed += intake.published > before and not intake.frozen
    return taken >= 20 and 2 * followed > min(len(packages), LOOKED_AT)


def recorded_source(profile: Mapping[str, Any] | None) -> protocols.System | None:
    """Return the source of a recorded profile, by name or as it describes it; None if there is none.

    Parameters
    ----------
    profile : mapping or None
        The profile's tables.
    """
    source = (profile or {}).get("source")
    if not isinstance(source, Mapping):
        return None
    if source.get("packet") is not None:
        try:
            return protocols.DescribedSource(msgspec.convert(source["packet"], SourcePacket, strict=False))
        except (msgspec.ValidationError, ConfigError):  # from a version with other keys
            return None
    name = source.get("system")
    return name if isinstance(name, str) else None


def only_system(sizes: Mapping[str, int], name: str, key: str) -> str:
    """Return the system with the most bytes; raise ConfigError, as `system_of` does, unless there is one."""
    best = [system for system, size in sizes.items() if size == max(sizes.values())]
    if len(best) != 1:
        found = f"packets that {' and '.join(best)} send" if best else "no packets of a system that is known"
        allowed = ", ".join(protocols.having("intake"))
        raise ConfigError(f"{name}: found {found}; name one with {key}: {allowed}, or a profile that describes it")
    return best[0]


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
