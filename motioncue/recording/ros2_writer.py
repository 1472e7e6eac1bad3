"""Standard messages of ROS 2 for what a recording holds, which other tools know already.

Axes: REP 103 (body x forward, y left, z up; world x east, y north, z up), accelerometer as in REP 145 (+g along z at
rest).  Layouts: the definitions in ``ros2.py``, as plain little-endian CDR.
"""

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import ACTUATORS, GRAVITY
from motioncue.recording.ros2 import DEFINITIONS, IMU, JOINT_STATE, ODOMETRY
from motioncue.recording.schema import HEADER, Topic

__all__ = [
    "IMU_TOPIC",
    "JOINT_TOPIC",
    "ODOMETRY_TOPIC",
    "imu_messages",
    "joint_dtype",
    "joint_messages",
    "odometry_messages",
]

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
