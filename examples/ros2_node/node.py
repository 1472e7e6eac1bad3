"""The engine as a node of ROS 2: python3 node.py --ros-args -p profile:=rig.toml"""

import rclpy
from conversion import fill_pose, motion_of, pose_of_cue
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Imu

import motioncue


class Cueing(Node):
    """Feeds an engine by ``imu`` and ``odom``; publishes the poses of the cue and of the platform."""

    def __init__(self):
        super().__init__("motioncue")
        profile = self.declare_parameter("profile", "program-dk").value
        rate_hz = self.declare_parameter("publish_hz", 60.0).value
        self.frame = self.declare_parameter("frame_id", "platform_neutral").value
        self.engine = motioncue.Engine(profile)
        table = self.engine.profile.platform
        self.platform = None if table is None else motioncue.platform(self.engine.profile)
        self.odometry = None
        self.poses = {"cue": self.create_publisher(PoseStamped, "~/cue", 10)}
        if self.platform is not None:
            self.poses["platform"] = self.create_publisher(PoseStamped, "~/platform", 10)
        self.create_subscription(Odometry, "odom", self.hear_odometry, qos_profile_sensor_data)
        self.create_subscription(Imu, "imu", self.hear_imu, qos_profile_sensor_data)
        self.create_timer(1.0 / rate_hz, self.publish)

    def hear_odometry(self, message):
        self.odometry = message

    def hear_imu(self, message):
        """Feed a frame; one without attitude is dropped, and when no frames come the engine fades to neutral."""
        try:
            self.engine.feed(motion_of(message, self.odometry))
        except ValueError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=5.0)

    def publish(self):
        """Publish what the newest tick asked for, and where the actuators that it sent hold the platform."""
        tick = self.engine.newest()[0]
        self.send("cue", pose_of_cue(tick["cue"]))
        if self.platform is not None:
            count = len(self.platform.names)
            self.send("platform", self.platform.forward(tick["actuators"][None, :count])[0])

    def send(self, name, pose):
        message = PoseStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = self.frame
        fill_pose(message, pose)
        self.poses[name].publish(message)


def main():
    rclpy.init()
    node = Cueing()
    try:
        with node.engine:  # fades to neutral at its end
            rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
