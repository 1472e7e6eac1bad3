"""The writer of recordings: an MCAP file that is readable up to its newest second, whatever happens."""

import contextlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mcap.writer import CompressionType, Writer

from motioncue._version import __version__
from motioncue.errors import ConfigError, PacketError
from motioncue.recording.atomic_file import numbered, write_atomically
from motioncue.recording.mcap_reader import McapFile
from motioncue.recording.packages import quoted
from motioncue.recording.ros2 import (
    IMU_TOPIC,
    JOINT_RATE_HZ,
    JOINT_TOPIC,
    ODOMETRY_TOPIC,
    imu_messages,
    joint_messages,
    odometry_messages,
)
from motioncue.recording.schema import (
    CHASSIS,
    EVENT,
    FRAME,
    HEADER,
    LAPS,
    PACKAGE,
    SETTINGS,
    TICK,
    TOPICS,
    Event,
    Laps,
    Package,
    Topic,
    encode_event,
    encode_laps,
    encode_package,
    encode_settings,
)

CHUNK_BYTES = 256 << 10
"""Size at which a chunk is closed, unless it is flushed earlier: the most that a cut file loses."""


def _made(path: Path, force: bool) -> tuple[Path, IO[bytes]]:
    """Open a new file; return its path, with a number added if the name is in use, and the file."""
    if path.is_dir():
        raise ConfigError(f"recording {str(path)!r}: found a folder, allowed is a file")
    number = 0
    while True:
        name = numbered(path, number)
        try:
            if force and name.is_file():
                name.unlink(missing_ok=True)  # not emptied: another recorder may still write to it
            # And made anew: it may have made its own again meanwhile.  A device or a pipe is written as it is.
            return name, name.open("wb" if force and os.path.lexists(name) and not name.is_file() else "xb")
        except FileExistsError:
            number += not force
        except OSError as error:
            raise ConfigError(f"recording {str(name)!r}: cannot be made: {error.strerror}") from error


class RecordingWriter:
    """One recording, written record by record: a context manager.

    Everything up to the last `flush` is readable after a crash or a full disk.  A write that fails raises OSError; then
    leave the file as it is.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        force: bool = False,
        epoch_ns: int = 0,
        about: Mapping[str, str] | None = None,
        actuators: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.counts = dict.fromkeys(TOPICS, 0)
        """Records written so far, by topic."""
        self._epoch, self._actuators = epoch_ns, tuple(actuators)
        self._joints_at = -1  # the deadline of the newest joint state [ns]
        self.path, self._file = _made(Path(path).absolute(), force)
        try:
            self._writer = Writer(self._file, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
            self._begin(about or {})
        except OSError as error:
            self.abandon()
            if not force:  # the file is this writer's own
                self.path.unlink(missing_ok=True)
            raise ConfigError(f"recording {str(self.path)!r}: cannot be written: {error.strerror}") from error

    def _begin(self, about: Mapping[str, str]) -> None:
        self._writer.start(profile="ros2", library=f"motioncue {__version__}")
        self._about = {
            "version": __version__,
            "epoch_ns": str(self._epoch),
            "host": platform.node(),
            "system": platform.platform(),
            "python": platform.python_version(),
        }
        self.about(about)
        self._channels = {topic.name: self._register(topic) for topic in TOPICS.values() if topic is not CHASSIS}
        for topic in (IMU_TOPIC, ODOMETRY_TOPIC, *([JOINT_TOPIC] if self._actuators else [])):
            self._channels[topic.name] = self._register(topic)
        self._writer.flush()

    def _register(self, topic: Topic) -> int:
        text = topic.text
        if topic is TICK and self._actuators:
            named = ", ".join(f"{name} [{unit}]" for name, unit in self._actuators)
            text = text.replace("[m or rad] positions sent", f"{named}; positions sent")
        schema = self._writer.register_schema(topic.schema, "ros2msg", text.encode())
        return self._writer.register_channel(topic.name, "cdr", schema)

    def _add(self, topic: Topic, time: int, payload: bytes) -> None:
        stamp = max(time + self._epoch, 0)
        number = self.counts.setdefault(topic.name, 0) & 0xFFFFFFFF
        self._writer.add_message(self._channels[topic.name], stamp, payload, stamp, number)
        self.counts[topic.name] += 1

    def about(self, about: Mapping[str, str]) -> None:
        """Add facts about the making of the recording."""
        self._about |= about
        self._writer.add_metadata("motioncue", self._about)

    def packages(self, packages: list[Package]) -> None:
        """Write packages."""
        for package in packages:
            self._add(PACKAGE, package.time, encode_package(package))

    def events(self, events: list[Event]) -> None:
        """Write events."""
        for event in events:
            self._add(EVENT, event.time, encode_event(event))

    def frames(self, motion: npt.NDArray[np.void]) -> None:
        """Write the motion of frames."""
        self._rows(FRAME, motion, motion["time"])
        self._standard(IMU_TOPIC, motion["time"], imu_messages(motion, self._stamps(motion["time"])))
        fast = motion[np.isfinite(motion["speed"])]
        self._standard(ODOMETRY_TOPIC, fast["time"], odometry_messages(fast, self._stamps(fast["time"])))

    def chassis(self, chassis: npt.NDArray[np.void]) -> None:
        """Write wheels, suspension and cab of frames; most sources have none, so their files do not know the topic."""
        if len(chassis):
            if CHASSIS.name not in self._channels:
                self._channels[CHASSIS.name] = self._register(CHASSIS)
            self._rows(CHASSIS, chassis, chassis["time"])

    def _stamps(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return times of the wall clock [ns]."""
        return np.maximum(times + self._epoch, 0)

    def _standard(self, topic: Topic, times: npt.NDArray[np.int64], messages: npt.NDArray[np.void]) -> None:
        for time, message in zip(times.tolist(), messages, strict=True):
            self._add(topic, time, message.tobytes())

    def ticks(self, ticks: npt.NDArray[np.void]) -> None:
        """Write ticks."""
        self._rows(TICK, ticks, ticks["deadline"])
        if self._actuators and len(ticks):
            slots = ticks["deadline"] * JOINT_RATE_HZ // 10**9
            first = np.flatnonzero(np.diff(slots, prepend=self._joints_at))
            self._joints_at, chosen = int(slots[-1]), ticks[first]
            names = [name for name, _ in self._actuators]
            times = chosen["deadline"]
            self._standard(JOINT_TOPIC, times, joint_messages(chosen, self._stamps(times), names))

    def _rows(self, topic: Topic, rows: npt.NDArray[np.void], times: npt.NDArray[np.int64]) -> None:
        assert topic.dtype is not None
        size, data = topic.dtype.itemsize, np.ascontiguousarray(rows, topic.dtype).tobytes()
        for number, time in enumerate(times.tolist()):
            self._add(topic, time, HEADER + data[number * size : (number + 1) * size])

    def settings(self, time: int, number: int, profile: Mapping[str, Any]) -> None:
        """Write the profile in force from a time on.

        Units: `time` [ns].
        """
        self._add(SETTINGS, time, encode_settings(time, number, json.dumps(profile)))

    def laps(self, laps: Laps) -> None:
        """Write what the run goes on from."""
        self._add(LAPS, laps.time, encode_laps(laps))

    def flush(self) -> None:
        """Make everything so far readable, whatever happens next."""
        self._writer.flush()
        found = os.fstat(self._file.fileno())
        try:
            there = self.path.stat()
        except OSError as error:
            raise FileNotFoundError(error.errno, "removed while it was written", str(self.path)) from error
        if (there.st_dev, there.st_ino) != (found.st_dev, found.st_ino):
            raise FileNotFoundError(2, "replaced while it was written", str(self.path))

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._file.tell()

    def close(self) -> None:
        """Write the index and close the file."""
        try:
            self._writer.finish()
        finally:
            self._file.close()

    def abandon(self) -> None:
        """Close the file as it is, after a write that failed."""
        with contextlib.suppress(OSError):  # buffered data cannot be written either
            self._file.close()

    def __enter__(self) -> "RecordingWriter":
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
        if isinstance(error, OSError):
            self.abandon()
        else:
            self.close()


class Mended(NamedTuple):
    """What has been mended."""

    path: Path
    messages: int
    ended: bool
    """Whether the file had its end."""
    damage: tuple[str, ...]
    """What could not be read."""


def mend(path: str | Path, to: str | Path, *, force: bool = False) -> Mended:
    """Write what can be read of an MCAP file, of any software, to a file that is whole."""
    file, to = McapFile(path), Path(to)
    if file.empty:
        raise PacketError(f"recording {quoted(path)}: found no message that can be read")
    count = 0

    def write(part: Path) -> None:
        nonlocal count
        with part.open("wb") as out:
            writer = Writer(out, compression=CompressionType.ZSTD)
            writer.start(profile=file.profile, library="motioncue mend")
            schemas = {number: writer.register_schema(*schema) for number, schema in file.schemas.items()}
            channels = {
                number: writer.register_channel(topic, encoding, schemas.get(schema, 0))
                for number, (topic, encoding, schema) in file.topics.items()
            }
            for channel, sequence, logged, published, payload in file.messages():
                if channel in channels:  # else nothing says what it is
                    writer.add_message(channels[channel], logged, payload, published, sequence)
                    count += 1
            for name, values in file.metadata.items():
                writer.add_metadata(name, values)
            writer.finish()

    try:
        written = write_atomically(to, write, force=force)
    except OSError as error:
        raise ConfigError(f"{quoted(to)}: cannot be written: {error.strerror or error}") from error
    return Mended(written, count, file.ended, file.damage.texts())
