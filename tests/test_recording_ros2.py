"""Recordings of ROS 2, written by another library, read as motion: axes, gravity, times."""

import numpy as np
import pytest
from mcap_ros2.writer import Writer

from motioncue.errors import PacketError
from motioncue.recording.load import read

HEADER = """================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
GEOMETRY = """================================================================================
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
IMU = (
    """std_msgs/Header header
geometry_msgs/Quaternion orientation
float64[9] orientation_covariance
geometry_msgs/Vector3 angular_velocity
float64[9] angular_velocity_covariance
geometry_msgs/Vector3 linear_acceleration
float64[9] linear_acceleration_covariance
"""
    + HEADER
    + GEOMETRY
)
ODOMETRY = (
    """std_msgs/Header header
string child_frame_id
geometry_msgs/PoseWithCovariance pose
geometry_msgs/TwistWithCovariance twist
"""
    + HEADER
    + GEOMETRY
    + """================================================================================
MSG: geometry_msgs/Point
float64 x
float64 y
float64 z
================================================================================
MSG: geometry_msgs/Pose
Point position
Quaternion orientation
================================================================================
MSG: geometry_msgs/PoseWithCovariance
Pose pose
float64[36] covariance
================================================================================
MSG: geometry_msgs/Twist
Vector3 linear
Vector3 angular
================================================================================
MSG: geometry_msgs/TwistWithCovariance
Twist twist
float64[36] covariance
"""
)
G = 9.80665


def vector(values):
    return dict(zip("xyz", map(float, values), strict=True))


def quaternion(roll=0.0, pitch=0.0, heading=0.0):
    """Return x, y, z, w in REP 103 for right side down, nose up and a heading from north to the right [rad]."""
    yaw = np.pi / 2 - heading
    about = [(np.array([0, 0, 1]), yaw), (np.array([0, 1, 0]), -pitch), (np.array([1, 0, 0]), roll)]
    w, v = 1.0, np.zeros(3)
    for axis, angle in about:
        c, s = np.cos(angle / 2), np.sin(angle / 2) * axis
        w, v = w * c - v @ s, w * s + c * v + np.cross(v, s)
    return dict(zip("xyzw", (*map(float, v), float(w)), strict=True))


def stamp(time):
    return {"stamp": {"sec": int(time), "nanosec": round(time % 1 * 1e9)}, "frame_id": "imu_link"}


def imu(time, attitude, force, rates, known=True):
    return {
        "header": stamp(time),
        "orientation": attitude,
        "orientation_covariance": [0.0 if known else -1.0] + [0.0] * 8,
        "angular_velocity": vector(rates),
        "angular_velocity_covariance": [0.0] * 9,
        "linear_acceleration": vector(force),
        "linear_acceleration_covariance": [0.0] * 9,
    }


def odometry(time, attitude, velocity):
    pose = {"position": vector((1, 2, 3)), "orientation": attitude}
    twist = {"linear": vector(velocity), "angular": vector((0, 0, 0))}
    return {
        "header": stamp(time),
        "child_frame_id": "base",
        "pose": {"pose": pose, "covariance": [0.0] * 36},
        "twist": {"twist": twist, "covariance": [0.0] * 36},
    }


@pytest.fixture
def recording(tmp_path):
    def write(imus, odometries=()):
        path = tmp_path / "robot.mcap"
        with path.open("wb") as file, Writer(file) as writer:
            kinds = (
                ("/imu/data", "sensor_msgs/msg/Imu", IMU, imus),
                ("/odom", "nav_msgs/msg/Odometry", ODOMETRY, odometries),
            )
            for topic, name, text, messages in kinds:
                schema = writer.register_msgdef(name, text)
                for message in messages:
                    writer.write_message(topic, schema, message, log_time=1)
        return path

    return write


def test_at_rest_nothing_is_felt_in_any_attitude(recording):
    rng = np.random.default_rng(0)
    attitudes = rng.uniform(-1, 1, (20, 3)) * [2.5, 1.3, 3.0]
    messages = []
    for i, (roll, pitch, heading) in enumerate(attitudes):
        # At rest it reads g along the world's up axis: nose up gives +x, right side down +y.
        force = G * np.array([np.sin(pitch), np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)])
        messages.append(imu(i * 0.1, quaternion(roll, pitch, heading), force, (0, 0, 0)))
    motion = read(recording(messages)).motion
    for name in ("surge", "sway", "heave"):
        assert np.abs(motion[name]).max() < 1e-12
    assert np.stack([motion["roll"], motion["pitch"], motion["yaw"]], 1) == pytest.approx(attitudes)
    assert np.isnan(motion["speed"]).all()


def test_signs_and_times_are_ours(recording):
    messages = [imu(100.25 + 0.01 * i, quaternion(), (2.0, 3.0, G + 4.0), (0.1, 0.2, 0.3)) for i in range(3)]
    motion = read(recording(messages, [odometry(100.255, quaternion(), (3.0, 4.0, 0.0))])).motion
    row = motion[1]
    assert (row["surge"], row["sway"], row["heave"]) == pytest.approx((2.0, -3.0, 4.0))  # left is theirs, right is ours
    assert (row["roll_rate"], row["pitch_rate"], row["yaw_rate"]) == pytest.approx((0.1, -0.2, -0.3))
    assert motion["time"].tolist() == [0, 10_000_000, 20_000_000]
    assert np.isnan(motion["speed"][0])
    assert motion["speed"][1:].tolist() == [5.0, 5.0]


def test_an_imu_without_orientation_takes_the_odometrys(recording):
    messages = [imu(1.0, dict.fromkeys("xyzw", 0.0), (0, 0, G * np.cos(0.1)), (0, 0, 0), known=False)]
    path = recording(messages, [odometry(0.5, quaternion(pitch=0.1), (0, 0, 0))])
    assert read(path).motion["pitch"][0] == pytest.approx(0.1)
    with pytest.raises(PacketError, match="without orientation"):
        read(recording(messages))


def test_orientations_that_are_none_are_left_out_and_counted(recording):
    good = imu(1.0, quaternion(), (0, 0, G), (0, 0, 0))
    drive = read(recording([good, imu(1.1, dict.fromkeys("xyzw", 0.0), (0, 0, G), (0, 0, 0))]))
    assert len(drive.motion) == 1
    assert any("1 orientations" in line for line in drive.unreadable)
