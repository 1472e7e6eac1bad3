"""A recording as arrays: `read`; and the frames in what a simulator sent."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue import sources
from motioncue.bridge.bridge import Bridge
from motioncue.core.channels import CHASSIS as CHASSIS_CHANNELS
from motioncue.core.channels import CHASSIS_DTYPE, MOTION_DTYPE, TICK_DTYPE
from motioncue.errors import ConfigError, PacketError
from motioncue.recording.capture import is_capture
from motioncue.recording.drive import KILLED, hole_text
from motioncue.recording.drive import Drive as Drive
from motioncue.recording.mcap_reader import (
    LATEST_NS,
    MAGIC,
    McapFile,
    Settings,
    events_in,
    is_mcap,
    laps_in,
    packages_in,
    settings_in,
)
from motioncue.recording.packages import (
    ANY,
    NO_CAPTURE,
    SAID,
    START_NS,
    UNREADABLE,
    Pick,
    Raw,
    Recording,
    Timed,
    arriving,
    contents,
    feed,
    from_first,
    parse_recording,
    quoted,
    read_bytes,
    recorded_source,
    system_of,
)
from motioncue.recording.schema import CHASSIS, FRAME, PACKAGE, TICK, TOPICS, Package, Topic
from motioncue.sources import System

log = logging.getLogger("motioncue")


def sample_recording() -> Path:
    """Return the path of the recording in the package.

    A real drive as City Car Driving bytes: a 59.9 s motorway drive at 60 Hz, made from the
    example segment of comma.ai's comma2k19 data set (MIT license).
    """
    return Path(str(resources.files("motioncue"))) / "data" / "city_car_driving_60hz.bin"


def read_recording(path: str | Path, system: sources.System, pick: Pick = ANY) -> Recording:
    """Return a recording: concatenated packages of a simulator, an MCAP file, or a network capture.

    What could not be read is logged.
    """
    name = f"recording {quoted(path)}"
    recording = parse_recording(contents(path, name), name, system, pick=pick)
    for line in recording.unreadable[:SAID]:
        log.warning("%s: %s", name, line)
    return recording


def read_packages(path: str | Path, system: sources.System = "city-car-driving", pick: Pick = ANY) -> list[bytes]:
    """Return the packages of a recording, as `read_recording` does."""
    return read_recording(path, system, pick).packages


def read_motion(
    path: str | Path, system: sources.System = "city-car-driving", *, rate_hz: float | None = None, **options: Any
) -> npt.NDArray[np.void]:
    """Return the motion in a recording, one row per frame."""
    return read_frames(path, system, rate_hz=rate_hz, **options).motion


class Frames(NamedTuple):
    """The frames of a recording, with the packages they came in."""

    motion: npt.NDArray[np.void]
    packages: list[Timed]
    """All packages; one without a frame has the time of the next frame."""
    rejected: Mapping[str, int]
    """Refused packages by reason."""
    chassis: npt.NDArray[np.void] = np.zeros(0, CHASSIS_DTYPE)
    """What each frame says of wheels, suspension and cab; empty if the source says nothing."""


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
    """Return the frames of a recording; errors begin with `name`."""
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
    beside = []  # wheels, suspension and cab of each frame
    for place, is_frame in enumerate(feed(arriving(packages, arrivals, rate_hz, intake), intake)):
        if not is_frame and intake.rejected and not as_received:
            raise PacketError(f"{name}: package {place} refused: {', '.join(intake.rejected)}")
        if not is_frame:
            if intake.others == others:  # an announcement: the simulator's clock begins again
                began = float(times[count - 1]) if count else 0.0
            others = intake.others
            continue
        row = intake.frame()
        if (chassis := intake.chassis()) is not None:
            beside.append(chassis)
        memory[count] = row.view(memory.dtype)[0]
        places[count], times[count] = place, began + row["frame_time"][0]
        count += 1
    motion, places, times = motion[:count], places[:count], times[:count]
    if as_received and arrivals is not None:
        motion["time"] -= START_NS
        came = [round(1e9 * (time - arrivals[0])) for time in arrivals]
        return Frames(motion, list(map(Timed, came, packages)), intake.rejected, _chassis(motion, beside))
    if count > 1 and not times.any():
        raise PacketError(
            f"{name}: neither {system} nor the file says when frames came; give their rate (--rate; in Python rate_hz)"
        )
    if count:
        motion["time"] = np.round((times - times[0]) * 1e9)
    frames = motion["time"] if count else np.zeros(1, np.int64)
    nexts = np.minimum(np.searchsorted(places, np.arange(len(packages))), len(frames) - 1)
    timed = list(map(Timed, frames[nexts].tolist(), packages))
    return Frames(motion, timed, intake.rejected, _chassis(motion, beside))


def _chassis(motion: npt.NDArray[np.void], beside: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.void]:
    """Return wheels, suspension and cab of frames as records, with the times of these."""
    out = np.zeros(len(beside), CHASSIS_DTYPE)
    if beside:
        out["time"] = motion["time"]
        for channel, values in zip(CHASSIS_CHANNELS, np.array(beside).T, strict=True):
            out[channel.name] = values
    return out


def at_ticks(motion: npt.NDArray[np.void], rate_hz: float = 333.33, bridge: str = "hold") -> npt.NDArray[np.void]:
    """Return the motion at each tick when frames arrive at their `time`: the newest frame, or bridged."""
    time = motion["time"]
    if len(motion) == 0 or (np.diff(time) < 0).any() or not 0 < rate_hz < np.inf:
        raise ValueError(f"at_ticks: allowed are frames in order of time and a rate above 0 Hz, found {rate_hz} Hz")
    period = round(1e9 / rate_hz)
    ticks = np.arange(time[0], time[-1] + 1, period)
    bridged: npt.NDArray[np.void] = Bridge(bridge).process(np.ascontiguousarray(motion), ticks)
    return bridged


NAMED = "--system (in Python system)"  # where a system can be named


def read(
    path: str | Path,
    *rolled: str | Path,
    system: str | None = None,
    rate_hz: float | None = None,
    port: int | Sequence[int] = (),
    sender: str | None = None,
    **options: Any,
) -> Drive:
    """Return the contents of a recording as arrays.

    Parameters
    ----------
    path : str or Path
        An MCAP file that ``--record`` has written, a recording of ROS 2 with `sensor_msgs/msg/Imu`, the bytes that a
        simulator wrote, or a network capture (pcap, pcapng).
    *rolled : str or Path
        The other files of the same run, if its recording was rolled over; in any order.  The last one may be empty, as
        a process that is killed leaves it: `unreadable` says so.
    system : str, optional
        The system whose packages these are, for a file that does not tell: bytes, a capture, or an MCAP file of
        packages alone.  Found by content if not given.
    rate_hz : float, optional
        Frames per second [Hz], for a file where neither the packages nor the file have times.
    port : int or sequence of int, optional
        Ports that a simulator sent to, for a capture of several simulators.
    sender : str, optional
        Address of the host that sent, likewise.
    **options
        As ``source.options`` of a profile, for the same files as `system`.

    Returns
    -------
    Drive
        With `motion` (MOTION_DTYPE), `ticks` (TICK_DTYPE), `packages`, `events`, `settings`, `about`, and in
        `unreadable` what is missing from a damaged or unfinished file.

    Raises
    ------
    PacketError
        If a file cannot be opened, is not a recording, contains no readable motion, or is not one of the same run; if
        nothing tells the times of the frames; if a capture has several simulators, or a file with `port` or `sender` is
        no capture.
    ConfigError
        If no system or more than one has such packages, or an option is not allowed.

    Notes
    -----
    Times of an MCAP file are those of the recording machine's monotonic clock.  Other times count from the first frame
    or package: as captured, else by the simulator's own clock, else by `rate_hz`.  Refused packages are left out of
    `motion` and counted in `unreadable`.

    Examples
    --------
    >>> drive = motioncue.read("drive.mcap")                                 # doctest: +SKIP
    >>> pandas.DataFrame(drive.motion)                                       # doctest: +SKIP
    """
    pick = Pick((port,) if isinstance(port, int) else tuple(port), sender)
    if not rolled:
        return _with_holes(_read(path, system, rate_hz, pick, options))
    parts: list[Drive] = []
    for each in (path, *rolled):
        try:
            parts.append(_read(each, system, rate_hz, pick, options))
        except PacketError:
            empty = _empty_part(each)
            if empty is None:
                raise
            parts.append(empty)
    return _with_holes(_joined(parts, [quoted(each) for each in (path, *rolled)]))


def read_pieces(
    path: str | Path,
    *rolled: str | Path,
    progress: Callable[[int, int], object] = lambda done, total: None,
    **options: Any,
) -> Iterator[Drive]:
    """Yield the contents of a recording piece by piece, in memory that does not grow with its length.

    Parameters
    ----------
    path : str or Path
        As for `read`; what is no MCAP file comes in one piece.
    *rolled : str or Path
        The other files of the same run, in any order.
    progress : callable, optional
        Called with pieces done and pieces in all.
    **options
        As for `read`.

    Yields
    ------
    Drive
        About twenty thousand ticks, with all else from the same time.  `settings` begins with those in force, and
        `about` is that of the first file.

    Raises
    ------
    PacketError, ConfigError
        As `read` does.

    Examples
    --------
    >>> sum(len(piece.ticks) for piece in motioncue.read_pieces("drive.mcap"))                # doctest: +SKIP
    """
    paths = [path, *(each for each in rolled if _empty_part(each) is None)]
    opened = [_run_file(each) for each in paths]
    files = [file for file in opened if file is not None]
    if len(files) < len(opened):
        yield read(path, *rolled, **options)
        progress(1, 1)
        return
    if rolled:
        numbered = sorted(zip(files, map(quoted, paths), strict=True), key=lambda pair: _part(pair[0].about))
        files = [file for file, _ in numbered]
        _refuse_other_runs([file.about for file in files], [name for _, name in numbered])
    names = {id(file): f"{quoted(name)}: " if rolled else "" for file, name in zip(opened, paths, strict=True)}
    parts = [(part, names[id(file)]) for file in files for part in file.parts()]
    zero: int | None = None
    known: list[Settings] = []
    for done, (part, name) in enumerate(parts, 1):
        drive = _contents(part, path)
        texts = tuple(text if text == KILLED else name + text for text in drive.unreadable)
        drive = drive._replace(about=files[0].about, unreadable=texts)
        drive = drive._replace(settings=[*known, *(row for row in drive.settings if row not in known)])
        known, zero = drive.settings[-1:], drive.zero if zero is None else zero
        yield _with_holes(drive, zero)
        progress(done, len(parts))


def _run_file(path: str | Path) -> McapFile | None:
    """Return a file with ticks or frames of motioncue, which can be read in pieces; None if it is something else."""
    with suppress(OSError, PacketError):
        with Path(path).open("rb") as opened:
            if not is_mcap(opened.read(len(MAGIC))):
                return None
        file = McapFile(path)
        return file if any(file.count(topic) for topic in (FRAME, TICK)) else None
    return None


def _part(about: Mapping[str, str]) -> int:
    """Return the place of a file among those of its run; -1 if it has none."""
    number = about.get("part", "")
    return int(number) if number.isdecimal() else -1


def _with_holes(drive: Drive, zero: int | None = None) -> Drive:
    """Return a drive that says in words where records are missing."""
    at = drive.zero if zero is None else zero
    return drive._replace(unreadable=(*drive.unreadable, *(hole_text(hole, at) for hole in drive.holes)))


def _empty_part(path: str | Path) -> Drive | None:
    """Return the contents of a file that a recorder began but did not write to; None if it is something else."""
    nothing = Drive(np.zeros(0, MOTION_DTYPE), np.zeros(0, TICK_DTYPE), [], [], [], {}, ())
    with suppress(OSError, PacketError):
        with Path(path).open("rb") as opened:
            head = opened.read(len(MAGIC))
        if head != MAGIC:
            return nothing if MAGIC.startswith(head) else None
        file = McapFile(path)
        if file.empty:
            return nothing._replace(about=file.about)
    return None


def _read(path: str | Path, system: str | None, rate_hz: float | None, pick: Pick, options: Mapping[str, Any]) -> Drive:
    """Return the contents of one file."""
    name = f"recording {quoted(path)}"
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise PacketError(f"{name}: found no file but a folder or a device")
        with open(path, "rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise PacketError(f"{name}: {error.strerror}") from error
    if pick != ANY and not is_capture(head):
        raise PacketError(f"{name}: {NO_CAPTURE}")
    if not is_mcap(head):
        data = read_bytes(path, name)
        of = system or _system(data, name, pick)
        drive = _decoded(parse_recording(data, name, of, pick=pick), of, name, rate_hz, options)
        return drive._replace(about={"format": "capture" if is_capture(head) else "bytes", "system": str(of)})
    drive = _contents(McapFile(path), path)
    alone = drive.packages and not (len(drive.motion) or len(drive.ticks))
    found = system or recorded_source(drive.profile)
    if not alone or found is None:
        return drive
    times = from_first([1e-9 * package.time for package in drive.packages])
    recording = Recording([package.data for package in drive.packages], times, 0, {})
    decoded = _decoded(recording, found, name, rate_hz, options)
    decoded.motion["time"] += drive.packages[0].time
    decoded.chassis["time"] += drive.packages[0].time
    return drive._replace(
        motion=decoded.motion, chassis=decoded.chassis, unreadable=drive.unreadable + decoded.unreadable
    )


def _system(raw: Raw, name: str, pick: Pick) -> System:
    """Return the system whose packages these are; raise an error if the bytes do not tell."""
    if not raw.data:
        raise PacketError(f"{name}: not an MCAP file: it is empty")
    if is_capture(raw.data):
        return system_of(raw, name, NAMED, pick)
    try:
        return system_of(raw, "as bytes of a simulator", NAMED, pick)
    except (ConfigError, PacketError) as error:
        raise PacketError(
            f"{name}: not an MCAP file: it begins with {raw.data[: len(MAGIC)].hex()}; {error}"
        ) from error


def _decoded(
    recording: Recording, system: System, name: str, rate_hz: float | None, options: Mapping[str, Any]
) -> Drive:
    """Return the contents of a recording of packages alone."""
    frames: Frames = frames_of(recording, system, name, rate_hz, options, as_received=True)
    packages = [Package(timed.time_ns, 0, timed.package) for timed in frames.packages]
    refused = [*frames.rejected.items(), *recording.rejected.items()]
    unreadable = [
        f"{count} packages refused: {reason.replace('_', ' ')}"
        for reason, count in refused
        if count and reason != UNREADABLE  # said in words
    ]
    said = (*recording.unreadable, *unreadable)
    return Drive(frames.motion, np.zeros(0, TICK_DTYPE), packages, [], [], {}, said, frames.chassis)


def _contents(file: McapFile, path: str | Path) -> Drive:
    """Return what can be read of an MCAP file, or of a part of one."""
    names = {name for name, _, _ in file.topics.values()}
    if not names & set(TOPICS):
        return _foreign(file, path, names)
    motion, ticks, chassis = (
        _in_time(file, topic, file.rows(topic), key)
        for topic, key in ((FRAME, "time"), (TICK, "deadline"), (CHASSIS, "time"))
    )
    packages = packages_in(file)
    _count_back(file, PACKAGE, np.array([package.time for package in packages], np.int64))
    events, settings = events_in(file), settings_in(file)
    about = file.about
    if "epoch_ns" in about and not file.ended and not (len(motion) or len(ticks) or packages):
        file.damage.add(KILLED)
    if file.damage.count and not (len(motion) or len(ticks) or packages or events or settings):
        raise PacketError(f"recording {str(path)!r}: found nothing that can be read: {file.damage.texts()[0]}")
    texts = file.damage.texts()
    return Drive(motion, ticks, packages, events, settings, about, texts, chassis, tuple(laps_in(file)))


def _joined(drives: list[Drive], names: list[str]) -> Drive:
    """Return the contents of the files of one run as one recording; only the last one may have no tick."""
    order = sorted(range(len(drives)), key=lambda place: _begins(drives[place]))
    for place in order[:-1]:
        if not len(drives[place].ticks):
            raise PacketError(f"{names[place]}: found no tick, allowed are files of one run")
    last = drives[order[-1]]
    said = []
    if not len(last.ticks):
        said = [f"{names[order[-1]]} is empty: the run ended before a tick was written to it"]
        if not last.about:  # not even a beginning
            order.pop()
    _refuse_other_runs([drives[place].about for place in order], [names[place] for place in order])
    parts = [drives[place] for place in order]
    missing = [f"{names[place]}: {text}" for place in order for text in drives[place].unreadable if text != KILLED]
    settings = {row.number: row for drive in reversed(parts) for row in reversed(drive.settings)}
    return Drive(
        np.concatenate([drive.motion for drive in parts]),
        np.concatenate([drive.ticks for drive in parts]),
        [package for drive in parts for package in drive.packages],
        sorted(event for drive in parts for event in drive.events),
        [settings[number] for number in sorted(settings)],
        parts[0].about,
        (*missing, *said),
        np.concatenate([drive.chassis for drive in parts]),
        tuple(row for drive in parts for row in drive.laps),
    )


def _refuse_other_runs(abouts: Sequence[Mapping[str, str]], names: Sequence[str]) -> None:
    """Refuse files, in order, that are not consecutive ones of one run."""
    for about, name in zip(abouts, names, strict=True):
        if about.get("epoch_ns") != abouts[0].get("epoch_ns"):
            raise PacketError(f"{name}: found a file of another run than {names[0]}, allowed are files of one run")
    for (before, name), (after, next_name) in pairwise(zip(abouts, names, strict=True)):
        if _part(before) < 0 or _part(after) != _part(before) + 1:
            raise PacketError(
                f"{next_name}: found part {after.get('part') or 'none'} of a run behind part "
                f"{before.get('part') or 'none'} in {name}, allowed are consecutive files of one recording"
            )


def _begins(drive: Drive) -> float:
    """Return the index of a part's first tick; infinity if it has none."""
    return float(drive.ticks["index"][0]) if len(drive.ticks) else np.inf


def _foreign(file: McapFile, path: str | Path, names: set[str]) -> Drive:
    """Return the motion in a recording made by other software."""
    from motioncue.recording.ros2 import ros2_motion

    try:
        motion = ros2_motion(file)
    except PacketError as error:
        what = f"topics {', '.join(sorted(names)[:5])}" if names else "no message that can be read"
        lost = f" ({file.damage.texts()[0]})" if file.damage.count else ""
        raise PacketError(
            f"recording {str(path)!r}: found {what}{lost}, allowed are topics of motioncue, or of ROS 2: {error}"
        ) from error
    return Drive(motion, np.zeros(0, TICK_DTYPE), [], [], [], {}, file.damage.texts())


def _in_time(file: McapFile, topic: Topic, rows: npt.NDArray[np.void], key: str) -> npt.NDArray[np.void]:
    """Return the rows with times that a clock can show; count the others as damage."""
    possible = (rows[key] >= 0) & (rows[key] < LATEST_NS)
    if wrong := np.count_nonzero(~possible):
        file.damage.add(f"{topic.name}: {wrong} messages have no possible time")
        rows = rows[possible]
    _count_back(file, topic, rows[key])
    return rows


def _count_back(file: McapFile, topic: Topic, times: npt.NDArray[np.int64]) -> None:
    """Count decreasing times as damage."""
    if back := np.count_nonzero(times[1:] < times[:-1]):
        file.damage.add(f"{topic.name}: times go back {back} times")
