"""Recordings of ROS 2, written by another library, read as motion: axes, gravity, times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import Writer as Plain
from mcap_ros2.writer import Writer

from motioncue.errors import PacketError
from motioncue.recording.recording import read
from motioncue.recording.ros2 import DEFINITIONS, WANTED, Layout

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


# From other writers: other names, another order, no stamps, definitions in another language.


def reordered(text, *first):
    """Return a definition with some of its own fields in front, and fields that the standard does not have."""
    own, *nested = text.split("=" * 80)
    lines = own.strip().splitlines()
    ahead = [line for name in first for line in lines if line.split()[1] == name]
    rest = [line for line in lines if line not in ahead]
    return "\n".join(["uint8 QUALITY=3", "bool calibrated # or not", *ahead, "string serial", *rest, ""]) + "".join(
        "=" * 80 + part for part in nested
    )


def odd(message, number):
    """Return a message with the fields that `reordered` adds; its strings have changing lengths."""
    serial = "s" * (number % 11)
    header = {**message["header"], "frame_id": "f" * (number % 7)}
    return {**message, "calibrated": True, "serial": serial, "header": header}


def drive():
    """Return IMU and odometry messages of a turn, and what they say: surge, sway, yaw rate, speed."""
    imus, odometries, said = [], [], []
    for n in range(40):
        surge, sway, rate, speed = 0.1 * n, 2.0 - 0.05 * n, 0.01 * n, 10.0 + 0.1 * n
        at = 1_700_000_000 + 0.01 * n
        imus.append(imu(at, quaternion(heading=0.02 * n), (surge, -sway, G), (0, 0, -rate)))
        odometries.append(odometry(at, quaternion(), (speed, 0, 0)))
        said.append((surge, sway, rate, speed))
    return imus, odometries, np.array(said)


def assert_said(motion, said):
    found = np.stack([motion[name] for name in ("surge", "sway", "yaw_rate", "speed")], 1)
    np.testing.assert_allclose(found, said, atol=1e-9)
    assert np.diff(motion["time"]) == pytest.approx(10_000_000, abs=300)  # a float of the day's seconds


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((), ()),
        (("linear_acceleration", "orientation"), ("twist",)),
        (("angular_velocity",), ("pose", "child_frame_id")),
    ],
)
def test_other_topics_and_another_order_of_fields_are_read_by_the_definition_in_the_file(tmp_path, first, second):
    imus, odometries, said = drive()
    path = tmp_path / "robot.mcap"
    with path.open("wb") as file, Writer(file) as writer:
        own = writer.register_msgdef("sensor_msgs/msg/Imu", reordered(IMU, *first))
        other = writer.register_msgdef("nav_msgs/msg/Odometry", reordered(ODOMETRY, *second))
        for n, (one, two) in enumerate(zip(imus, odometries, strict=True)):
            writer.write_message("/robot_7/estimate/pose", other, odd(two, n), log_time=n)
            writer.write_message("/xsens/mti", own, odd(one, 3 * n), log_time=n)
    result = read(path)
    assert result.unreadable == ()
    assert_said(result.motion, said)


@pytest.mark.parametrize("which", ["all", "odometry", "some"])
def test_messages_without_stamps_have_the_times_of_the_recorder(tmp_path, which):
    imus, odometries, said = drive()
    path = tmp_path / "robot.mcap"
    with path.open("wb") as file, Writer(file) as writer:
        kinds = (("/i", "sensor_msgs/msg/Imu", IMU, imus), ("/o", "nav_msgs/msg/Odometry", ODOMETRY, odometries))
        for topic, name, text, messages in kinds:
            schema = writer.register_msgdef(name, text)
            for n, message in enumerate(messages):
                unset = which == "all" or (which == "odometry" and topic == "/o") or (which == "some" and n == 7)
                message["header"] = stamp(0) if unset else message["header"]
                writer.write_message(topic, schema, message, log_time=5_000_000_000 + 10_000_000 * n)
    result = read(path)
    if which == "some":
        assert result.unreadable == ("2 messages have no stamp",)
        assert len(result.motion) == 39
    else:
        assert result.unreadable == ("messages have no stamps: their times are those at which they were recorded",)
        assert_said(result.motion, said)


def payload(text, name, message):
    """Return the bytes of a message as another library encodes it."""
    from mcap_ros2._dynamic import serialize_dynamic

    return serialize_dynamic(name, text)[name](message)


def test_definitions_in_another_language_are_the_standard_ones(tmp_path):
    imus, _, said = drive()
    path = tmp_path / "robot.mcap"
    with path.open("wb") as file:
        writer = Plain(file)
        writer.start()
        schema = writer.register_schema("sensor_msgs/msg/Imu", "ros2idl", b"module sensor_msgs { };")
        channel = writer.register_channel("/imu", "cdr", schema)
        for n, message in enumerate(imus):
            writer.add_message(channel, n, payload(IMU, "sensor_msgs/msg/Imu", message), n)
        writer.finish()
    motion = read(path).motion
    assert motion["sway"] == pytest.approx(said[:, 1])
    assert np.isnan(motion["speed"]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (IMU.replace("float64[9] orientation_covariance", "float64[] orientation_covariance"), "'float64\\[\\] orient"),
        (IMU.replace("Quaternion orientation", "Quaternion attitude"), "nothing for orientation.x"),
        (IMU.replace("[9] orientation_covariance", "[0] orientation_covariance"), "float64 for orientation_covariance"),
        (IMU.replace("float64 w", "float32 w"), "float32 for orientation.w, allowed is float64"),
        (IMU.replace("MSG: geometry_msgs/Vector3", "MSG: geometry_msgs/Vector4"), "no geometry_msgs/Vector3"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused_by_its_field(tmp_path, text, message):
    path = tmp_path / "robot.mcap"
    with path.open("wb") as file:
        writer = Plain(file)
        writer.start()
        schema = writer.register_schema("sensor_msgs/msg/Imu", "ros2msg", text.encode())
        writer.add_message(writer.register_channel("/imu", "cdr", schema), 1, b"\0\1\0\0" + bytes(400), 1)
        writer.finish()
    with pytest.raises(PacketError, match=f"/imu: its definition has {message}"):
        read(path)


@settings(max_examples=200)
@given(st.text(alphabet="MSG:=/float64 int8string[]<5\n_ax#", max_size=200), st.binary(max_size=400))
def test_no_definition_and_no_payload_does_more_than_be_refused(text, data):
    for definition in (text, "int32 a\n" + text, DEFINITIONS["sensor_msgs/msg/Imu"]):
        try:
            layout = Layout(definition, WANTED["sensor_msgs/msg/Imu"] if definition[:1] != "i" else {"a": "int32"})
            layout.values(b"\0\1\0\0" + data)
        except ValueError:
            continue


def test_a_definition_that_contains_itself_many_times_is_refused():
    text = "a/A x\nint32 y" + "".join(
        f"\n===\nMSG: a/{c}\na/{d}[1000] x" for c, d in zip("ABCDEFGH", "BCDEFGHA", strict=True)
    )
    with pytest.raises(ValueError, match="its definition has"):
        Layout(text, {"y": "int32"})
