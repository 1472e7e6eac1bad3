"""Between messages of ROS 2 and motioncue's records; needs no ROS, only objects with the messages' fields.

ROS has the body's axes forward, left, up and the world's east, north, up (REP 103), and an IMU's acceleration includes
gravity: +9.81 m/s^2 along z at rest (REP 145).  motioncue: surge forward, sway right, heave up, gravity excluded; roll
right side down, pitch nose up, yaw nose right from the north.
"""

import math

import numpy as np

import motioncue

GRAVITY = 9.80665  # [m/s^2]
NEWEST_S = 0.5  # how far apart an odometry and an IMU message may be to be of one moment


def seconds(message):
    """Return a message's stamp [s]."""
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9


def up_and_forward(q):
    """Return the world's up axis in the body's axes, and the body's forward axis as east and north."""
    size = math.sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w)
    if not 0.9 < size < 1.1:  # also NaN
        raise ValueError(f"orientation: found a quaternion of length {size:.3g}, allowed is 1")
    x, y, z, w = q.x / size, q.y / size, q.z / size, q.w / size
    up = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    return up, (1 - 2 * (y * y + z * z), 2 * (x * y + w * z))


def motion_of(imu, odometry=None):
    """Return what the car does, ndarray of MOTION_DTYPE and shape (1,), from an Imu and the newest Odometry.

    Odometry gives the speed, and the attitude if the IMU has none (its first covariance is -1).
    """
    if odometry is not None and not abs(seconds(odometry) - seconds(imu)) < NEWEST_S:
        odometry = None
    if imu.orientation_covariance[0] != -1.0:
        attitude = imu.orientation
    elif odometry is not None:
        attitude = odometry.pose.pose.orientation
    else:
        raise ValueError(
            f"orientation: found none in the Imu and no Odometry within {NEWEST_S} s, allowed is one of them"
        )
    up, (east, north) = up_and_forward(attitude)
    motion = np.zeros(1, motioncue.MOTION_DTYPE)
    row, force, rates = motion[0], imu.linear_acceleration, imu.angular_velocity
    row["surge"] = force.x - GRAVITY * up[0]
    row["sway"] = -(force.y - GRAVITY * up[1])
    row["heave"] = force.z - GRAVITY * up[2]
    row["roll"] = math.atan2(up[1], up[2])
    row["pitch"] = math.asin(max(-1.0, min(1.0, up[0])))
    row["yaw"] = math.atan2(east, north)
    row["roll_rate"], row["pitch_rate"], row["yaw_rate"] = rates.x, -rates.y, -rates.z
    row["speed"] = row["engine_speed"] = math.nan  # not known
    if odometry is not None:
        along = odometry.twist.twist.linear
        row["speed"] = math.sqrt(along.x * along.x + along.y * along.y + along.z * along.z)
    row["frame_time"] = seconds(imu)
    return motion


def fill_pose(message, pose):
    """Fill the pose of a PoseStamped from surge, sway, heave [m] and roll, pitch, yaw [rad] from neutral."""
    surge, sway, heave, roll, pitch, yaw = map(float, pose)
    position, q = message.pose.position, message.pose.orientation
    position.x, position.y, position.z = surge, -sway, heave
    (a, b, c), (u, v, w) = ([f(0.5 * angle) for angle in (roll, -pitch, -yaw)] for f in (math.sin, math.cos))
    q.x, q.y = a * v * w - u * b * c, u * b * w + a * v * c
    q.z, q.w = u * v * c - a * b * w, u * v * w + a * b * c


def pose_of_cue(cue):
    """Return the pose that a cue asks for, as `fill_pose` takes it."""
    names = "surge_displacement", "sway_displacement", "heave_displacement", "roll", "pitch", "yaw"
    return [cue[name] for name in names]
