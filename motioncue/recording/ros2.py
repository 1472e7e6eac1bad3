"""Recordings of ROS 2, as made by robots and research vehicles, read as motion without ROS.

Layouts: the message definitions of ROS 2's common_interfaces (sensor_msgs/msg/Imu, nav_msgs/msg/Odometry), as plain
little-endian CDR.  Axes: REP 103: the body is x forward, y left, z up, the world x east, y north, z up.  An
accelerometer at rest reads +g along z (REP 145).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY, MOTION_DTYPE
from motioncue.errors import PacketError
from motioncue.recording.cdr import Layout
from motioncue.recording.messages import LATEST_NS
from motioncue.recording.walk import McapFile

__all__ = ["ros2_motion"]

YEAR_NS = 31_557_600 * 10**9
IMU, ODOMETRY = "sensor_msgs/msg/Imu", "nav_msgs/msg/Odometry"

_NESTED = """
===
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
===
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
===
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
===
MSG: geometry_msgs/Pose
Vector3 position
Quaternion orientation
===
MSG: geometry_msgs/PoseWithCovariance
Pose pose
float64[36] covariance
===
MSG: geometry_msgs/Twist
Vector3 linear
Vector3 angular
===
MSG: geometry_msgs/TwistWithCovariance
Twist twist
float64[36] covariance
"""
DEFINITIONS = {
    IMU: f"""
std_msgs/Header header
geometry_msgs/Quaternion orientation
float64[9] orientation_covariance
geometry_msgs/Vector3 angular_velocity
float64[9] angular_velocity_covariance
geometry_msgs/Vector3 linear_acceleration
float64[9] linear_acceleration_covariance
{_NESTED}""",
    ODOMETRY: f"""
std_msgs/Header header
string child_frame_id
geometry_msgs/PoseWithCovariance pose
geometry_msgs/TwistWithCovariance twist
{_NESTED}""",
}
"""For files with definitions in another language (ROS 2 IDL) or without."""

_STAMP = {"header.stamp.sec": "int32", "header.stamp.nanosec": "uint32"}


def _numbers(path: str, names: str) -> dict[str, str]:
    return {f"{path}.{name}": "float64" for name in names}


WANTED = {
    IMU: {
        **_STAMP,
        **_numbers("orientation", "xyzw"),  # body to world
        "orientation_covariance": "float64",  # the first element is -1 if there is no orientation
        **_numbers("angular_velocity", "xyz"),
        **_numbers("linear_acceleration", "xyz"),
    },
    ODOMETRY: {
        **_STAMP,
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
    width = len(WANTED[schema]) - len(_STAMP)
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
    """Return the motion in a recording of ROS 2: one row per message of the first IMU topic.

    Parameters
    ----------
    file : McapFile
        Contains a topic of `sensor_msgs/msg/Imu`, and for the speed one of `nav_msgs/msg/Odometry`.

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (n,)
        `time` [ns] counts from the first message by the messages' own stamps, or as recorded if there are none.  The
        attitude is the IMU's, or the odometry's if the IMU reports none.  Accelerations exclude gravity.  The speed is
        the newest of the odometry; NaN before the first.

    Raises
    ------
    PacketError
        If there is no IMU message or no attitude.
    """
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
