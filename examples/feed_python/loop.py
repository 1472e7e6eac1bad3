"""A physics loop that feeds the engine: python loop.py [PROFILE] [SECONDS]."""

import math
import sys
import time

import numpy as np

import motioncue

DT = 0.01  # [s] of a physics step


class Car:
    """A car on a level road, steered through a slalom; yours is the physics that you have."""

    def __init__(self):
        self.time, self.speed, self.yaw = 0.0, 0.0, 0.0

    def step(self, dt):
        """Take a step [s]."""
        self.time += dt
        self.surge = 3.0 * math.exp(-self.time / 5.0)  # [m/s^2], forward
        self.speed += self.surge * dt
        self.yaw_rate = 0.2 * math.sin(0.5 * math.pi * self.time)  # [rad/s], to the right
        self.yaw += self.yaw_rate * dt

    def write(self, motion):
        """Fill a row of MOTION_DTYPE: body axes, SI units, gravity excluded."""
        motion["surge"] = self.surge
        motion["sway"] = self.speed * self.yaw_rate  # towards the inside of the bend
        motion["yaw"], motion["yaw_rate"] = self.yaw, self.yaw_rate
        motion["speed"] = self.speed
        motion["engine_speed"] = math.nan  # not known
        motion["frame_time"] = self.time  # the simulation's own; NaN if it has none


def run(profile="program-dk", seconds=10.0, record=None, clock=time.monotonic, sleep=time.sleep):
    """Run the loop; return the engine's statistics."""
    car, motion = Car(), np.zeros(1, motioncue.MOTION_DTYPE)
    with motioncue.Engine(profile, record=record) as engine:
        start = clock()
        for index in range(round(seconds / DT)):
            sleep(max(0.0, start + index * DT - clock()))
            car.step(DT)
            car.write(motion[0])
            engine.feed(motion)
        return engine.stats()


if __name__ == "__main__":
    profile, seconds = [*sys.argv[1:], *["program-dk", "10"][len(sys.argv) - 1 :]]
    stats = run(profile, float(seconds))
    print(f"{stats['frames_received']} frames fed, {stats['packets_sent']} packets sent, refused: {stats['rejected']}")
