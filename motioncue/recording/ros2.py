"""Recordings of ROS 2, as made by robots and research vehicles, read as motion without ROS.

Layouts: the message definitions of ROS 2's common_interfaces (sensor_msgs/msg/Imu, nav_msgs/msg/Odometry), as plain
little-endian CDR.  Axes: REP 103: the body is x forward, y left, z up, the world x east, y north, z up.  An
accelerometer at rest reads +g along z (REP 145).
"""

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.errors import PacketError
from motioncue.motion import GRAVITY, MOTION_DTYPE
from motioncue.recording.walk import McapFile

__all__ = ["ros2_motion"]

IMU, ODOMETRY = "sensor_msgs/msg/Imu", "nav_msgs/msg/Odometry"

_IMU = np.dtype(
    [
        ("orientation", "<f8", 4),  # x, y, z, w: body to world
        ("orientation_covariance", "<f8", 9),  # the first element is -1 if there is no orientation
        ("angular_velocity", "<f8", 3),
        ("angular_velocity_covariance", "<f8", 9),
        ("linear_acceleration", "<f8", 3),
        ("linear_acceleration_covariance", "<f8", 9),
    ]
)
_ODOMETRY = np.dtype(
    [
        ("position", "<f8", 3),
        ("orientation", "<f8", 4),  # x, y, z, w
        ("pose_covariance", "<f8", 36),
        ("linear", "<f8", 3),  # [m/s], axes of the body
        ("angular", "<f8", 3),
        ("twist_covariance", "<f8", 36),
    ]
)


class _Samples(NamedTuple):
    times: npt.NDArray[np.float64]  # [s]
    rows: npt.NDArray[np.void]


def _sample(payload: bytes, dtype: np.dtype[np.void], strings: int) -> tuple[float, npt.NDArray[np.void]]:
    """Return stamp [s] and fixed part of a message after `strings` strings; raise ValueError if it is too short."""
    if payload[:2] != b"\x00\x01":
        raise ValueError(f"header {payload[:4].hex()} is not plain little-endian CDR")
    body = payload[4:]
    seconds, nanoseconds = struct.unpack_from("<iI", body)
    place = 8
    for _ in range(strings):
        place += -place % 4
        place += 4 + struct.unpack_from("<I", body, place)[0]
    place += -place % 8
    if place + dtype.itemsize > len(body):
        raise ValueError(f"{len(body)} bytes are too few")
    return seconds + nanoseconds * 1e-9, np.frombuffer(body, dtype, 1, place)


def _samples(file: McapFile, schema: str, dtype: np.dtype[np.void], strings: int) -> _Samples:
    topics = [name for name, encoding, n in file.topics.values() if _is(file, n, schema) and encoding == "cdr"]
    if not topics:
        return _Samples(np.zeros(0), np.zeros(0, dtype))
    times, rows = [], []
    for payload in file.payloads(sorted(topics)[0]):
        try:
            time, row = _sample(payload, dtype, strings)
        except (ValueError, struct.error) as error:
            file.damage.add(f"{topics[0]}: {error}")
            continue
        times.append(time)
        rows.append(row)
    order = np.argsort(times, kind="stable")
    return _Samples(np.array(times)[order], np.concatenate(rows)[order] if rows else np.zeros(0, dtype))


def _is(file: McapFile, number: int, schema: str) -> bool:
    return number in file.schemas and file.schemas[number][0] == schema


def ros2_motion(file: McapFile) -> npt.NDArray[np.void]:
    """Return the motion in a recording of ROS 2: one row per message of the first IMU topic.

    Parameters
    ----------
    file : McapFile
        Contains a topic of `sensor_msgs/msg/Imu`, and for the speed one of `nav_msgs/msg/Odometry`.

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (n,)
        `time` [ns] counts from the first message by the messages' own stamps.  The attitude is the IMU's, or the
        odometry's if the IMU reports none.  Accelerations exclude gravity.  The speed is the newest of the odometry;
        NaN before the first.

    Raises
    ------
    PacketError
        If there is no IMU message or no attitude.
    """
    imu, odometry = _samples(file, IMU, _IMU, 1), _samples(file, ODOMETRY, _ODOMETRY, 2)
    if not len(imu.times):
        raise PacketError(f"found no message of {IMU} that can be read, allowed is at least one")
    newest = np.searchsorted(odometry.times, imu.times, side="right") - 1
    known = newest >= 0
    quaternions = imu.rows["orientation"].copy()
    without = imu.rows["orientation_covariance"][:, 0] == -1.0
    if without.any():
        if not len(odometry.times):
            raise PacketError(f"found {IMU} without orientation and no {ODOMETRY}, allowed is an attitude from one")
        quaternions[without] = odometry.rows["orientation"][np.maximum(newest, 0)][without]
    size = np.linalg.norm(quaternions, axis=1)
    good = np.isfinite(size) & (np.abs(size - 1.0) < 0.1)
    if not good.all():
        file.damage.add(f"{IMU}: {np.count_nonzero(~good)} orientations are no unit quaternions")
    x, y, z, w = (quaternions[good] / size[good, None]).T
    rows = imu.rows[good]
    motion = np.zeros(len(rows), MOTION_DTYPE)
    # The world's up axis in body axes, and the body's forward axis in world axes.
    up = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
    free = rows["linear_acceleration"].T - GRAVITY * up
    motion["surge"], motion["sway"], motion["heave"] = free[0], -free[1], free[2]
    motion["roll"] = np.arctan2(up[1], up[2])
    motion["pitch"] = np.arcsin(np.clip(up[0], -1.0, 1.0))
    east, north = 1 - 2 * (y * y + z * z), 2 * (x * y + w * z)
    motion["yaw"] = np.arctan2(east, north)
    motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"] = rows["angular_velocity"].T * [[1], [-1], [-1]]
    speed = np.linalg.norm(odometry.rows["linear"], axis=1)
    motion["speed"] = np.where(known[good], speed[np.maximum(newest, 0)][good], np.nan) if len(speed) else np.nan
    motion["engine_speed"] = np.nan
    times = imu.times[good] - (imu.times[good][0] if good.any() else 0.0)
    motion["frame_time"], motion["time"] = times, np.round(times * 1e9)
    return motion
