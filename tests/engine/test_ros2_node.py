"""The node of ROS 2: conversions by REP 103 and REP 145, and the node on stand-ins for ROS's modules."""

import importlib
import math
import sys
import threading
import types
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import own_ports
from scipy.spatial.transform import Rotation

import motioncue
from motioncue.profile.profile import profile_text

EXAMPLE = Path(__file__).parents[2] / "examples" / "ros2_node"
G = 9.80665


@pytest.fixture
def conversion(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield importlib.import_module("conversion")
    for name in ("conversion", "node"):
        sys.modules.pop(name, None)


def vector(x=0.0, y=0.0, z=0.0, **more):
    return SimpleNamespace(x=x, y=y, z=z, **more)


def quaternion(rotation):
    x, y, z, w = rotation.as_quat()
    return vector(x, y, z, w=w)


def header(time=3.25):
    return SimpleNamespace(stamp=SimpleNamespace(sec=int(time), nanosec=round(time % 1.0 * 1e9)), frame_id="base_link")


def turned(yaw=0.0, pitch=0.0, roll=0.0):
    """Return the rotation from body to world by REP 103: from the east to the left, nose down, left side up."""
    return Rotation.from_euler("ZYX", [yaw, pitch, roll], degrees=True)


def imu(rotation=None, acceleration=(0.0, 0.0, 0.0), rates=(0.0, 0.0, 0.0), time=3.25):
    """Return what an IMU measures: `acceleration` in world axes, and gravity as REP 145 has it."""
    known = rotation is not None
    rotation = rotation if known else turned()
    force = rotation.inv().apply(np.add(acceleration, (0.0, 0.0, G)))
    return SimpleNamespace(
        header=header(time),
        orientation=quaternion(rotation),
        orientation_covariance=[0.0 if known else -1.0] + [0.0] * 8,
        linear_acceleration=vector(*force),
        angular_velocity=vector(*rates),
    )


def odometry(rotation=None, speed=(0.0, 0.0, 0.0), time=3.25):
    return SimpleNamespace(
        header=header(time),
        pose=SimpleNamespace(pose=SimpleNamespace(orientation=quaternion(rotation or turned()))),
        twist=SimpleNamespace(twist=SimpleNamespace(linear=vector(*speed))),
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (imu(turned()), {}),  # at rest, to the east: +g along z is no motion
        (imu(turned(yaw=90.0)), {"yaw": 0.0}),  # to the north
        (imu(turned(yaw=180.0)), {"yaw": -90.0}),  # to the west
        (imu(turned(pitch=-10.0)), {"pitch": 10.0}),  # nose up, about the axis to the left
        (imu(turned(roll=10.0)), {"roll": 10.0}),  # right side down, about the axis forward
        (imu(turned(), (2.0, 0.0, 0.0)), {"surge": 2.0}),  # along the east
        (imu(turned(yaw=90.0), (2.0, 0.0, 0.0)), {"sway": 2.0, "yaw": 0.0}),  # the east is at the right of the north
        (imu(turned(), (0.0, 0.0, 3.0)), {"heave": 3.0}),
        (
            imu(turned(pitch=-10.0), (0.0, 0.0, -G)),
            {"pitch": 10.0, "surge": -G * math.sin(math.pi / 18), "heave": -G * math.cos(math.pi / 18)},
        ),  # falls
        (imu(turned(), rates=(0.1, 0.2, 0.3)), {"roll_rate": 0.1, "pitch_rate": -0.2, "yaw_rate": -0.3}),
    ],
)
def test_messages_become_motion_with_its_signs(conversion, message, expected):
    motion = conversion.motion_of(message)[0]
    expected = {"yaw": 90.0, **expected}
    for name in motioncue.MOTION_DTYPE.names[:9]:
        value = np.degrees(motion[name]) if name in ("roll", "pitch", "yaw") else motion[name]
        assert value == pytest.approx(expected.get(name, 0.0), abs=1e-5), name
    assert motion["frame_time"] == 3.25
    assert math.isnan(motion["speed"])


def test_any_attitude_is_that_of_the_packages_own_conversion(conversion):
    rng = np.random.default_rng(3)
    for rotation in Rotation.random(50, random_state=4):
        acceleration, rates = rng.normal(size=3), rng.normal(size=3)
        got = conversion.motion_of(imu(rotation, acceleration, rates), odometry(speed=(6.0, 8.0, 0.0)))[0]
        x, y, z, w = rotation.as_quat()
        axes = {"world_north": (0, 1, 0), "world_up": (0, 0, 1), "car_forward": (1, 0, 0), "car_up": (0, 0, 1)}
        expected = motioncue.body_motion(
            [[w, x, y, z]], [[0, 0, 10.0]], [acceleration], [rotation.apply(rates)], **axes
        )[0]
        for name in motioncue.MOTION_DTYPE.names[:10]:
            away = got[name] - expected[name]
            assert abs(math.remainder(away, 2.0 * math.pi) if name in ("roll", "yaw") else away) < 1e-9, name


def test_an_imu_without_attitude_takes_that_of_an_odometry_of_its_time(conversion):
    message = imu()
    motion = conversion.motion_of(message, odometry(turned(yaw=90.0), (3.0, 4.0, 0.0), time=3.0))[0]
    assert (round(motion["yaw"], 9), motion["speed"]) == (0.0, 5.0)
    for old in (None, odometry(time=2.0)):
        with pytest.raises(ValueError, match=r"orientation: found none in the Imu and no Odometry within 0\.5 s"):
            conversion.motion_of(message, old)


@pytest.mark.parametrize("q", [vector(w=0.0), vector(math.nan, w=1.0), vector(2.0, w=1.0)])
def test_what_is_no_orientation_is_refused(conversion, q):
    message = imu(turned())
    message.orientation = q
    with pytest.raises(ValueError, match="orientation: found a quaternion of length"):
        conversion.motion_of(message)


@pytest.mark.parametrize(
    ("pose", "position", "rotation"),
    [
        ((0.1, 0.2, 0.3, 0.0, 0.0, 0.0), (0.1, -0.2, 0.3), turned()),  # forward, right, up
        ((0, 0, 0, math.radians(10), 0, 0), (0, 0, 0), turned(roll=10.0)),
        ((0, 0, 0, 0, math.radians(10), 0), (0, 0, 0), turned(pitch=-10.0)),
        ((0, 0, 0, 0, 0, math.radians(10)), (0, 0, 0), turned(yaw=-10.0)),
        ((0, 0, 0, *np.radians([10, 20, 30])), (0, 0, 0), turned(yaw=-30.0, pitch=-20.0, roll=10.0)),
    ],
)
def test_a_pose_becomes_a_message_with_its_signs(conversion, pose, position, rotation):
    message = Pose()
    conversion.fill_pose(message, pose)
    got = message.pose.position, message.pose.orientation
    np.testing.assert_allclose([got[0].x, got[0].y, got[0].z], position, atol=1e-12)
    assert (Rotation.from_quat([got[1].x, got[1].y, got[1].z, got[1].w]) * rotation.inv()).magnitude() < 1e-9


class Pose:
    """Stands in for geometry_msgs/PoseStamped."""

    def __init__(self):
        self.header = header()
        self.pose = SimpleNamespace(position=vector(), orientation=vector(w=1.0))


class Node:
    """Stands in for rclpy's node: keeps what the example creates."""

    def __init__(self, name):
        self.heard, self.timers, self.published, self.warned = {}, [], {}, []

    def declare_parameter(self, name, value):
        return SimpleNamespace(value=self.parameters.get(name, value))

    def create_publisher(self, kind, topic, depth):
        return SimpleNamespace(publish=self.published.setdefault(topic, []).append)

    def create_subscription(self, kind, topic, callback, qos):
        self.heard[topic] = callback

    def create_timer(self, period_s, callback):
        self.timers.append((period_s, callback))

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: header().stamp))

    def get_logger(self):
        return SimpleNamespace(warning=lambda text, throttle_duration_sec: self.warned.append(text))

    def destroy_node(self):
        self.published["destroyed"] = []


@pytest.mark.rt
@pytest.mark.check
def test_the_node_feeds_an_engine_and_publishes_where_the_platform_is(conversion, tmp_path, monkeypatch):
    text = own_ports(profile_text("ccd-hexapod"))
    head, rest = text.split("[source]", 1)[0], text.split("[cueing]", 1)[1]
    fed = profile_text("program-dk").split("[source]", 1)[1].split("[cueing]", 1)[0]
    (tmp_path / "rig.toml").write_text(f"{head}[source]{fed}[cueing]{rest}", encoding="utf-8")
    Node.parameters = {"profile": str(tmp_path / "rig.toml")}

    class Ended(Exception):
        pass

    made = []

    def spin(node):
        made.append(node)
        started = monotonic()
        while True:
            time = monotonic() - started
            node.heard["odom"](odometry(turned(), (10.0, 0.0, 0.0), time=time))
            node.heard["imu"](imu(turned(), (2.0, 0.0, 0.0), time=time))
            node.heard["imu"](imu(time=time + 10.0))  # of another time, without an attitude
            node.timers[0][1]()
            raised = node.published["~/platform"][-1].pose.position.z - node.published["~/cue"][-1].pose.position.z
            if abs(raised) < 1e-6 and time > 1.0:  # it was parked below neutral, and has risen
                raise Ended
            threading.Event().wait(0.01)

    modules = {
        "rclpy": {"init": lambda: None, "spin": spin, "try_shutdown": lambda: None},
        "rclpy.executors": {"ExternalShutdownException": Ended},
        "rclpy.node": {"Node": Node},
        "rclpy.qos": {"qos_profile_sensor_data": 10},
        **{name: {} for name in ("geometry_msgs", "nav_msgs", "sensor_msgs")},
        "geometry_msgs.msg": {"PoseStamped": Pose},
        "nav_msgs.msg": {"Odometry": object},
        "sensor_msgs.msg": {"Imu": object},
    }
    for name, contents in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    importlib.import_module("node").main()
    (node,) = made
    cue, platform = node.published["~/cue"][-1], node.published["~/platform"][-1]
    assert cue.header.frame_id == "platform_neutral"
    assert cue.pose.position.x > 0.009  # who accelerates is moved forward
    assert platform.pose.position.x == pytest.approx(cue.pose.position.x, abs=0.005)
    assert "destroyed" in node.published
    assert node.warned[0].startswith("orientation: found none in the Imu")
    assert node.engine.stats()["frames_received"] > 0
