"""A recording as arrays: `read`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from motioncue.errors import PacketError
from motioncue.motion import TICK_DTYPE
from motioncue.recording.topics import (
    EVENT,
    FRAME,
    PACKAGE,
    SETTINGS,
    TICK,
    TOPICS,
    Event,
    Package,
    Topic,
    decode_event,
    decode_package,
    decode_settings,
)
from motioncue.recording.walk import McapFile

__all__ = ["Drive", "packages_in", "read"]

LATEST_NS = 2**62  # [ns, monotonic clock] a century and a half, so that differences of times fit into 64 bits
MOST = 8_000_000  # most messages of a kind with variable size: seven hours of 300 a second

Decoded = TypeVar("Decoded", Package, Event, "Settings")


class Settings(NamedTuple):
    """The profile in force from a time on."""

    time: int
    number: int
    profile: dict[str, Any]


class Drive(NamedTuple):
    """The contents of a recording."""

    motion: npt.NDArray[np.void]
    """The motion of each frame: MOTION_DTYPE."""
    ticks: npt.NDArray[np.void]
    """The ticks: TICK_DTYPE."""
    packages: list[Package]
    """The simulator's packages, as they arrived."""
    events: list[Event]
    """The events, in order of time."""
    settings: list[Settings]
    """The profile in force at the beginning, then after each change."""
    about: dict[str, str]
    """How the recording was made: versions, host, what the system granted."""
    unreadable: tuple[str, ...]
    """What could not be read, and where; empty for an undamaged file."""

    @property
    def profile(self) -> dict[str, Any] | None:
        """The tables of the profile at the beginning; None if the recording has none."""
        return self.settings[0].profile if self.settings else None


def read(path: str | Path) -> Drive:
    """Return the contents of a recording as arrays.

    Parameters
    ----------
    path : str or Path
        An MCAP file that ``--record`` has written, or a recording of ROS 2 with `sensor_msgs/msg/Imu`.

    Returns
    -------
    Drive
        With `motion` (MOTION_DTYPE), `ticks` (TICK_DTYPE), `packages`, `events`, `settings`, `about`, and in
        `unreadable` what is missing from a damaged or unfinished file.

    Raises
    ------
    PacketError
        If the file cannot be opened, is not an MCAP file, or contains no readable motion.

    Examples
    --------
    >>> drive = motioncue.read("drive.mcap")                                 # doctest: +SKIP
    >>> pandas.DataFrame(drive.motion)                                       # doctest: +SKIP
    """
    file = McapFile(path)
    names = {name for name, _, _ in file.topics.values()}
    if not names & set(TOPICS):
        return _foreign(file, path, names)
    motion, ticks = (
        _in_time(file, topic, file.rows(topic), key) for topic, key in ((FRAME, "time"), (TICK, "deadline"))
    )
    packages = packages_in(file)
    _count_back(file, PACKAGE, np.array([package.time for package in packages], np.int64))
    events = sorted(_decoded(file, EVENT, decode_event))
    settings = _decoded(file, SETTINGS, _settings)
    about = file.metadata.get("motioncue", {})
    if file.damage.count and not (len(motion) or len(ticks) or packages or events or settings):
        raise PacketError(f"recording {str(path)!r}: found nothing that can be read: {file.damage.texts()[0]}")
    return Drive(motion, ticks, packages, events, settings, about, file.damage.texts())


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


def packages_in(file: McapFile) -> list[Package]:
    """Return the packages of a simulator, as they arrived.

    Parameters
    ----------
    file : McapFile
        The file; unreadable packages are added to its damage.
    """
    return _decoded(file, PACKAGE, decode_package)


def _settings(payload: bytes) -> Settings:
    """Return the settings in a payload; raise PacketError if it is not valid."""
    time, number, text = decode_settings(payload)
    try:
        profile = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PacketError(f"{SETTINGS.name}: found a profile that is no JSON: {error}") from error
    if not isinstance(profile, dict):
        raise PacketError(f"{SETTINGS.name}: found a profile of type {type(profile).__name__}, allowed are tables")
    return Settings(time, number, profile)


def _decoded(file: McapFile, topic: Topic, decode: Callable[[bytes], Decoded]) -> list[Decoded]:
    """Return the messages of a topic that can be decoded; count the others as damage."""
    found: list[Decoded] = []
    for payload in file.own_payloads(topic):
        if len(found) == MOST:
            file.damage.add(f"{topic.name}: found more than {MOST} messages, the rest was not read")
            break
        try:
            message = decode(payload)
        except PacketError as error:
            file.damage.add(str(error))
            continue
        if 0 <= message.time < LATEST_NS:
            found.append(message)
        else:
            file.damage.add(f"{topic.name}: a message of the time {message.time} ns")
    return found
