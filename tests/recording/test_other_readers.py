"""What other programs find in a recording: ROS 2's messages, units and names; and what they make of a mended one."""

import numpy as np
import pytest
from click.testing import CliRunner
from kept_drives import path_of
from mcap.reader import SeekingReader
from mcap_ros2.decoder import DecoderFactory
from same_bits import assert_same_bits

from motioncue.cli import cli
from motioncue.core.channels import GRAVITY, MOTION_DTYPE, TICK_DTYPE
from motioncue.errors import PacketError
from motioncue.recording.mcap_reader import McapFile
from motioncue.recording.mcap_writer import RecordingWriter, mend
from motioncue.recording.recording import read
from motioncue.recording.ros2 import ros2_motion

EPOCH = 10**18
KEPT = path_of("vehicle-physics-pro")
LEGS = (("leg_1", "m"), ("leg_2", "m"), ("a_longer_name", "rad"))


@pytest.fixture
def written(tmp_path):
    """Return a file with five known frames and a second of ticks at 1000 Hz."""
    motion, ticks = np.zeros(5, MOTION_DTYPE), np.zeros(1000, TICK_DTYPE)
    motion["time"] = np.arange(5) * 20_000_000
    motion["speed"] = [np.nan, 1.0, 2.0, 3.0, 4.0]
    motion["roll"][1], motion["pitch"][2], motion["yaw"][3] = 0.1, 0.2, np.pi / 2
    motion["surge"], motion["sway"], motion["heave"] = 1.0, 2.0, 3.0
    motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"] = 0.1, 0.2, 0.3
    ticks["deadline"] = np.arange(1000) * 1_000_000
    ticks["actuators"][:, :3] = [[1.5, 2.5, -0.5]]
    path = tmp_path / "drive.mcap"
    with RecordingWriter(path, epoch_ns=EPOCH, actuators=LEGS) as writer:
        writer.settings(0, 0, {"name": "rig"})
        writer.frames(motion)
        for first in range(0, 1000, 250):
            writer.ticks(ticks[first : first + 250])
    return path, motion


def decoded(path, topic):
    with path.open("rb") as file:
        reader = SeekingReader(file, decoder_factories=[DecoderFactory()])
        return [message for _, _, _, message in reader.iter_decoded_messages(topics=[topic])]


def turned(q, vector):
    """Return a vector of the body in world axes: q v q*, written out (x, y, z, w)."""
    u, w = np.array([q.x, q.y, q.z]), q.w
    return 2 * u.dot(vector) * u + (w * w - u.dot(u)) * np.array(vector) + 2 * w * np.cross(u, vector)


def test_an_imu_has_the_axes_of_ros_and_gravity(written):
    path, _ = written
    level, rolled, nose_up, east, _ = decoded(path, "/motioncue/imu")
    assert (level.header.frame_id, level.header.stamp.sec) == ("base_link", 10**9)
    assert decoded(path, "/motioncue/imu")[3].header.stamp.nanosec == 60_000_000
    # Level and to the north: forward is the world's y, left is its -x.
    np.testing.assert_allclose(turned(level.orientation, [1, 0, 0]), [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(turned(level.orientation, [0, 1, 0]), [-1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(turned(east.orientation, [1, 0, 0]), [1, 0, 0], atol=1e-12)
    assert turned(rolled.orientation, [0, 1, 0])[2] == pytest.approx(np.sin(0.1))  # right side down: left goes up
    assert turned(nose_up.orientation, [1, 0, 0])[2] == pytest.approx(np.sin(0.2))
    found = level.linear_acceleration
    assert (found.x, found.y, found.z) == pytest.approx((1.0, -2.0, 3.0 + GRAVITY))
    assert nose_up.linear_acceleration.x == pytest.approx(1.0 + GRAVITY * np.sin(0.2))
    assert rolled.linear_acceleration.y == pytest.approx(-2.0 + GRAVITY * np.sin(0.1))
    turning = level.angular_velocity
    assert (turning.x, turning.y, turning.z) == pytest.approx((0.1, -0.2, -0.3))


def test_odometry_has_the_speed_where_there_is_one_and_no_position(written):
    path, _ = written
    found = decoded(path, "/motioncue/odometry")
    assert [each.twist.twist.linear.x for each in found] == [1.0, 2.0, 3.0, 4.0]
    assert {(each.header.frame_id, each.child_frame_id) for each in found} == {("odom", "base_link")}
    assert np.reshape(found[0].pose.covariance, (6, 6)).diagonal().tolist() == [1e9, 1e9, 1e9, 0, 0, 0]
    np.testing.assert_allclose(turned(found[2].pose.pose.orientation, [1, 0, 0]), [1, 0, 0], atol=1e-12)


def test_joint_states_have_the_actuators_by_name_at_most_100_times_a_second(written):
    path, _ = written
    found = decoded(path, "/motioncue/joint_states")
    assert len(found) == 100
    assert list(found[0].name) == ["leg_1", "leg_2", "a_longer_name"]
    assert {tuple(each.position) for each in found} == {(1.5, 2.5, -0.5)}
    assert [each.header.stamp.nanosec for each in found[:3]] == [0, 10_000_000, 20_000_000]
    assert (list(found[0].velocity), list(found[0].effort)) == ([], [])


def test_what_is_written_for_ros_is_read_as_a_ros_recording_is(written):
    path, motion = written
    found = ros2_motion(McapFile(path))
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate"):
        np.testing.assert_allclose(found[name], motion[name], atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(found["speed"], motion["speed"])


def test_definitions_carry_units_states_and_actuators(written):
    path, _ = written
    with path.open("rb") as file:
        reader = SeekingReader(file)
        assert reader.get_header().profile == "ros2"
        texts = {schema.name: schema.data.decode() for schema in reader.get_summary().schemas.values()}
    tick = texts["motioncue/msg/Tick"].splitlines()
    assert "int64 RUNNING=2" in tick
    assert "float64 sway  # [m/s^2] right; acceleration without gravity" in tick
    assert any(line.startswith("float64[12] actuators  # leg_1 [m], leg_2 [m], a_longer_name [rad];") for line in tick)


@pytest.mark.check
@pytest.mark.parametrize("mended", [False, True])
def test_rosbags_reads_every_topic(written, tmp_path, mended):
    pytest.importorskip("rosbags")
    from rosbags.highlevel import AnyReader

    path, motion = written
    path = mend(path, tmp_path / "mended.mcap").path if mended else path
    with AnyReader([path]) as reader:
        found = {}
        for connection, _, data in reader.messages():
            found.setdefault(connection.topic, []).append(reader.deserialize(data, connection.msgtype))
    assert [each.surge for each in found["/motioncue/frame"]] == motion["surge"].tolist()
    assert found["/motioncue/imu"][0].linear_acceleration.y == pytest.approx(-2.0)
    assert found["/motioncue/joint_states"][0].name == ["leg_1", "leg_2", "a_longer_name"]
    assert found["/motioncue/tick"][0].actuators[:3].tolist() == [1.5, 2.5, -0.5]


# Files without their end.


@pytest.mark.parametrize("share", [0.8, 0.9, 1.0])
def test_a_mended_file_has_every_message_and_an_index(tmp_path, share):
    data = KEPT.read_bytes()
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(data[: round(share * len(data))])
    done = CliRunner().invoke(cli, ["mend", str(cut)])
    assert done.exit_code == 0, done.output
    assert ("it had no end" in done.output) == (share < 1.0)
    before, after = read(cut), read(tmp_path / "cut-mended.mcap")
    for name in ("motion", "ticks"):
        assert_same_bits(getattr(after, name), getattr(before, name))
    assert after[2:6] == before[2:6]
    assert after.unreadable == ()
    with (tmp_path / "cut-mended.mcap").open("rb") as file:
        counts = SeekingReader(file).get_summary().statistics.channel_message_counts
    assert sum(counts.values()) == len(list(McapFile(cut).messages())) > 0
    assert cut.read_bytes() == data[: round(share * len(data))]


def test_a_file_without_a_message_cannot_be_mended(tmp_path):
    (tmp_path / "empty.mcap").write_bytes(KEPT.read_bytes()[:40])
    with pytest.raises(PacketError, match="no message that can be read"):
        mend(tmp_path / "empty.mcap", tmp_path / "out.mcap")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.mcap"]
