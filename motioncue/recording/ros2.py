"""Standard messages of ROS 2: what is read of other recordings, and what is written for other tools.

Axes: REP 103 (body x forward, y left, z up; world x east, y north, z up), accelerometer as in REP 145 (+g along z at
rest).  Layouts: the definitions below, as plain little-endian CDR.
"""

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import ACTUATORS, GRAVITY, MOTION_DTYPE
from motioncue.errors import PacketError
from motioncue.recording.mcap_reader import LATEST_NS, McapFile
from motioncue.recording.schema import HEADER, Topic

SIZES = {
    **dict.fromkeys(("bool", "byte", "char", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}
CODES = {"int32": "i", "uint32": "I", "float64": "d"}
"""Types that a value may have that is read."""

MOST = 1000  # fields of a message
CONSTANT = re.compile(r"[\w/]+\s+\w+\s*=")  # takes no place in a message
FIELD = re.compile(r"([\w/]+)(?:\[(\d+)\])?\s+(\w+)")


class _Field(NamedTuple):
    name: str
    kind: str
    length: int


class Layout:
    """The places of chosen values in the messages of a definition."""

    def __init__(self, text: str, wanted: dict[str, str]) -> None:
        own, *others = re.split(r"^=+\s*$", text, flags=re.M)
        nested = {}
        for part in others:
            name, _, body = part.strip().partition("\n")
            nested[name.removeprefix("MSG:").strip()] = body
        fields: list[_Field] = []
        _flatten(own, "", nested, fields, 0)
        kinds = {field.name: (field.kind, field.length) for field in fields}
        for name, kind in wanted.items():
            found = kinds.get(name, ("nothing", 0))
            if found[0] != kind or not found[1]:
                raise ValueError(f"its definition has {found[0]} for {name}, allowed is {kind}")
        self._segments: list[list[_Field]] = [[]]  # between strings
        for field in fields:
            if field.kind == "string":
                self._segments += [[] for _ in range(field.length)]
            else:
                self._segments[-1].append(field)
        self._wanted = {name: (f"<{kinds[name][1]}{CODES[kind]}") for name, kind in wanted.items()}
        self._known: dict[tuple[int, int], tuple[list[tuple[str, int]], int]] = {}

    def values(self, payload: bytes) -> dict[str, tuple[float, ...]]:
        """Return the wanted values of a message by their paths."""
        if payload[:2] != HEADER[:2]:
            raise ValueError(f"header {payload[:4].hex()} is not plain little-endian CDR")
        body, place, found = payload[4:], 0, {}
        try:
            for number, segment in enumerate(self._segments):
                if number:
                    place += -place % 4
                    place += 4 + int(struct.unpack_from("<I", body, place)[0])
                offsets, size = self._offsets(number, segment, place % 8)
                for name, offset in offsets:
                    found[name] = struct.unpack_from(self._wanted[name], body, place + offset)
                place += size
            if place > len(body):
                raise ValueError(f"{len(body)} bytes are too few")
        except struct.error as error:
            raise ValueError(f"{len(body)} bytes are too few") from error
        return found

    def _offsets(self, number: int, segment: list[_Field], phase: int) -> tuple[list[tuple[str, int]], int]:
        """Return the offsets of the wanted values in a segment that begins at `phase` modulo 8, and its size."""
        if (number, phase) not in self._known:
            place, offsets = phase, []
            for field in segment:
                size = SIZES[field.kind]
                place += -place % size
                if field.name in self._wanted:
                    offsets.append((field.name, place - phase))
                place += size * field.length
            self._known[number, phase] = offsets, place - phase
        return self._known[number, phase]


def _flatten(text: str, prefix: str, nested: dict[str, str], out: list[_Field], depth: int) -> None:
    """Add the fields of a definition, nested ones by their paths."""
    for line in text.splitlines():
        bare = line.split("#")[0].strip()
        if not bare or CONSTANT.match(bare):
            continue
        match = FIELD.match(bare)
        if match is None or depth > 8 or len(out) > MOST:
            raise ValueError(f"its definition has {bare!r}, allowed are fields of known size and strings")
        kind, count, name = match[1], int(match[2] or 1), match[3]
        path = f"{prefix}{name}"
        if kind in SIZES or kind == "string":
            if kind == "string" and count > MOST:
                raise ValueError(f"its definition has {count} strings")
            out.append(_Field(path, kind, count))
            continue
        inner = _nested(kind, nested)
        for place in range(min(count, MOST)):
            _flatten(inner, f"{path}[{place}]." if match[2] else f"{path}.", nested, out, depth + 1)


def _nested(kind: str, nested: dict[str, str]) -> str:
    """Return the definition of a nested message, by its full name or, within a package, its last part."""
    short = kind.replace("/msg/", "/")
    for name, text in nested.items():
        full = name.replace("/msg/", "/")
        if full == short or full.endswith(f"/{short}") or (short == "Header" and full == "std_msgs/Header"):
            return text
    if short in ("builtin_interfaces/Time", "Time"):
        return "int32 sec\nuint32 nanosec"
    raise ValueError(f"its definition has no {kind}")


YEAR_NS = 31_557_600 * 10**9
IMU, ODOMETRY, JOINT_STATE = "sensor_msgs/msg/Imu", "nav_msgs/msg/Odometry", "sensor_msgs/msg/JointState"

_NESTED = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
}


def _defined(text: str) -> str:
    """Return a definition with those of the messages in it, as a file holds them."""
    out, known = [text], set[str]()
    for part in out:  # grows
        for line in part.splitlines():
            kind = line.split(" ")[0]
            if kind in _NESTED and kind not in known:
                known.add(kind)
                out.append(f"{'=' * 80}\nMSG: {kind}\n{_NESTED[kind]}")
    return "\n".join(out)


DEFINITIONS = {
    IMU: _defined(
        "std_msgs/Header header\n"
        "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    ),
    ODOMETRY: _defined(
        "std_msgs/Header header\nstring child_frame_id\n"
        "geometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist"
    ),
    JOINT_STATE: _defined(
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort"
    ),
}
"""What is written; and read, in files with definitions in another language (ROS 2 IDL) or without."""

_STAMP_FIELDS = {"header.stamp.sec": "int32", "header.stamp.nanosec": "uint32"}


def _numbers(path: str, names: str) -> dict[str, str]:
    return {f"{path}.{name}": "float64" for name in names}


WANTED = {
    IMU: {
        **_STAMP_FIELDS,
        **_numbers("orientation", "xyzw"),  # body to world
        "orientation_covariance": "float64",  # the first element is -1 if there is no orientation
        **_numbers("angular_velocity", "xyz"),
        **_numbers("linear_acceleration", "xyz"),
    },
    ODOMETRY: {
        **_STAMP_FIELDS,
        **_numbers("pose.pose.orientation", "xyzw"),
        **_numbers("twist.twist.linear", "xyz"),  # [m/s], axes of the body
    },
}
"""The values that are read, each with its type, by its path in a message."""


class _Samples(NamedTuple):
    stamps: npt.NDArray[np.int64]  # [ns] of the message's own header
    recorded: npt.NDArray[np.int64]  # [ns]
    rows: npt.NDArray[np.float64]  # the wanted values behind the stamp

    def only(self, which: npt.NDArray[np.bool_]) -> "_Samples":
        """Return some of the samples."""
        return _Samples(self.stamps[which], self.recorded[which], self.rows[which])

    def at(self, times: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return times [ns] in order, and the rows in this order."""
        order = np.argsort(times, kind="stable")
        return times[order], self.rows[order]


def _samples(file: McapFile, schema: str) -> _Samples:
    """Return the messages of the first topic with a schema; count those that cannot be read as damage."""
    channels = {number: row for number, row in file.topics.items() if file.schemas.get(row[2], ("",))[0] == schema}
    topic = min((name for name, encoding, _ in channels.values() if encoding == "cdr"), default=None)
    stamps, recorded, rows = [], [], []
    for number, (name, encoding, kind) in sorted(channels.items()):
        if name != topic or encoding != "cdr":
            continue
        _, language, definition = file.schemas[kind]
        text = definition.decode("utf-8", "replace") if language == "ros2msg" and definition else DEFINITIONS[schema]
        try:
            layout = Layout(text, WANTED[schema])
        except ValueError as error:
            file.damage.add(f"{topic}: {error}")
            continue
        for time, payload in file.stamped(number):
            try:
                found = layout.values(payload)
            except ValueError as error:
                file.damage.add(f"{topic}: {error}")
                continue
            values = [found[path][0] for path in WANTED[schema]]
            stamps.append(int(values[0]) * 10**9 + int(values[1]))
            recorded.append(min(time, LATEST_NS))
            rows.append(values[2:])
    width = len(WANTED[schema]) - len(_STAMP_FIELDS)
    return _Samples(np.array(stamps, np.int64), np.array(recorded, np.int64), np.array(rows).reshape(-1, width))


def _is_set(stamps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say which stamps are set: 0 is one only where the others count from a start of their own."""
    recent = len(stamps) > 0 and bool(np.median(stamps) < YEAR_NS)
    return np.asarray((stamps != 0) | recent, np.bool_)


def _timed(file: McapFile, *several: _Samples) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Return times [ns] and rows of samples by their stamps, or if some have none, all by the recorder's clock."""
    if all(len(each.stamps) < 2 or np.ptp(each.stamps) > 0 for each in several):
        stamped = [each.only(_is_set(each.stamps)) for each in several]
        if unset := sum(len(each.stamps) for each in several) - sum(len(each.stamps) for each in stamped):
            file.damage.add(f"{unset} messages have no stamp")
        return [each.at(each.stamps) for each in stamped]
    file.damage.add("messages have no stamps: their times are those at which they were recorded")
    return [each.at(each.recorded) for each in several]


def ros2_motion(file: McapFile) -> npt.NDArray[np.void]:
    """Return the motion in a recording of ROS 2: one row per message of the first IMU topic."""
    imu, odometry = _samples(file, IMU), _samples(file, ODOMETRY)
    if not len(imu.stamps):
        why = f" ({file.damage.texts()[-1]})" if file.damage.count else ""
        raise PacketError(f"found no message of {IMU} that can be read{why}, allowed is at least one")
    (times, rows), (speed_times, speeds) = _timed(file, imu, odometry)
    newest = np.searchsorted(speed_times, times, side="right") - 1
    known = newest >= 0
    quaternions = rows[:, :4].copy()
    without = rows[:, 4] == -1.0
    if without.any():
        if not len(speed_times):
            raise PacketError(f"found {IMU} without orientation and no {ODOMETRY}, allowed is an attitude from one")
        quaternions[without] = speeds[np.maximum(newest, 0), :4][without]
    size = np.linalg.norm(quaternions, axis=1)
    good = np.isfinite(size) & (np.abs(size - 1.0) < 0.1)
    if not good.all():
        file.damage.add(f"{IMU}: {np.count_nonzero(~good)} orientations are no unit quaternions")
    x, y, z, w = (quaternions[good] / size[good, None]).T
    rows, times = rows[good], times[good]
    motion = np.zeros(len(rows), MOTION_DTYPE)
    # The world's up axis in body axes, and the body's forward axis in world axes.
    up = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
    free = rows[:, 8:11].T - GRAVITY * up
    motion["surge"], motion["sway"], motion["heave"] = free[0], -free[1], free[2]
    motion["roll"] = np.arctan2(up[1], up[2])
    motion["pitch"] = np.arcsin(np.clip(up[0], -1.0, 1.0))
    east, north = 1 - 2 * (y * y + z * z), 2 * (x * y + w * z)
    motion["yaw"] = np.arctan2(east, north)
    motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"] = rows[:, 5:8].T * [[1], [-1], [-1]]
    speed = np.linalg.norm(speeds[:, 4:7], axis=1)
    motion["speed"] = np.where(known[good], speed[np.maximum(newest, 0)][good], np.nan) if len(speed) else np.nan
    motion["engine_speed"] = np.nan
    times = times - (times[0] if len(times) else 0)
    motion["frame_time"], motion["time"] = times * 1e-9, times
    return motion


IMU_TOPIC = Topic("/motioncue/imu", IMU, DEFINITIONS[IMU].strip())
"""The motion of each frame as an inertial measurement unit at the reference point would measure it."""

ODOMETRY_TOPIC = Topic("/motioncue/odometry", ODOMETRY, DEFINITIONS[ODOMETRY].strip())
"""Attitude and speed of each frame; no position."""

JOINT_TOPIC = Topic("/motioncue/joint_states", JOINT_STATE, DEFINITIONS[JOINT_STATE].strip())
"""Positions sent to the platform's actuators, at most `JOINT_RATE_HZ` times a second."""

UNKNOWN = 1e9  # variance of what no simulator says [m^2]

_STAMP = [("cdr", "V4"), ("sec", "<i4"), ("nanosec", "<u4")]
_BODY = b"base_link\0"
_IMU = np.dtype([*_STAMP, ("size", "<u4"), ("frame", "S10"), ("pad", "V2"), ("values", "<f8", 37)])
_ODOMETRY = np.dtype(
    [
        *(*_STAMP, ("size", "<u4"), ("frame", "S5"), ("pad", "V3")),
        *(("child_size", "<u4"), ("child", "S10"), ("more", "V6"), ("values", "<f8", 85)),
    ]
)


def _stamped(dtype: np.dtype[np.void], times: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    rows = np.zeros(len(times), dtype)
    rows["cdr"] = np.void(HEADER)
    rows["sec"], rows["nanosec"] = np.clip(times // 10**9, 0, 2**31 - 1), times % 10**9
    return rows


def _quaternions(motion: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Return the attitude as x, y, z, w, from the body to the world."""
    turns = (0.5 * motion["roll"], -0.5 * motion["pitch"], 0.5 * (0.5 * np.pi - motion["yaw"]))
    (a, b, c), (u, v, w) = map(np.sin, turns), map(np.cos, turns)
    return np.stack(
        [a * v * w - u * b * c, u * b * w + a * v * c, u * v * c - a * b * w, u * v * w + a * b * c], axis=1
    )


def imu_messages(motion: npt.NDArray[np.void], times: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Return the payload of a `sensor_msgs/msg/Imu` for each frame.

    Units: `times` [ns].
    """
    rows = _stamped(_IMU, times)
    rows["size"], rows["frame"], values = len(_BODY), _BODY, rows["values"]
    values[:, :4] = _quaternions(motion)
    values[:, 13:16] = np.stack([motion["roll_rate"], -motion["pitch_rate"], -motion["yaw_rate"]], axis=1)
    roll, pitch = motion["roll"], motion["pitch"]
    up = np.stack([np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)], axis=1)
    values[:, 25:28] = np.stack([motion["surge"], -motion["sway"], motion["heave"]], axis=1) + GRAVITY * up
    return rows


def odometry_messages(motion: npt.NDArray[np.void], times: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Return the payload of a `nav_msgs/msg/Odometry` for each frame.

    Units: `times` [ns].
    """
    rows = _stamped(_ODOMETRY, times)
    rows["size"], rows["frame"], rows["child_size"], rows["child"] = 5, b"odom\0", len(_BODY), _BODY
    values = rows["values"]
    values[:, 3:7] = _quaternions(motion)
    values[:, [7, 14, 21]] = UNKNOWN  # the position
    values[:, 43] = motion["speed"]
    values[:, 46:49] = np.stack([motion["roll_rate"], -motion["pitch_rate"], -motion["yaw_rate"]], axis=1)
    return rows


JOINT_RATE_HZ = 100


def joint_dtype(names: Sequence[str]) -> np.dtype[np.void]:
    """Return the layout of a `sensor_msgs/msg/JointState` of actuators with these names."""
    size = len(_joint_names(names))
    return np.dtype([*_STAMP, ("names", f"V{size}"), ("position", "<f8", len(names)), ("others", "V8")])


def _joint_names(names: Sequence[str]) -> bytes:
    """Return what is between the stamp and the positions: no frame, the names, and how many positions follow."""
    out = struct.pack("<I4xI", 1, len(names))
    for name in names:
        text = name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4) + struct.pack("<I", len(text)) + text
    out += b"\0" * (-len(out) % 4) + struct.pack("<I", len(names))
    return out + b"\0" * (-len(out) % 8)  # the stamp has 8 bytes


def joint_messages(
    ticks: npt.NDArray[np.void], times: npt.NDArray[np.int64], names: Sequence[str]
) -> npt.NDArray[np.void]:
    """Return the payload of a `sensor_msgs/msg/JointState` for each tick.

    Units: `times` [ns].
    """
    rows = _stamped(joint_dtype(names), times)
    rows["names"] = np.void(_joint_names(names))
    rows["position"] = ticks["actuators"][:, : min(len(names), ACTUATORS)]
    return rows
