"""Honest drives over rough ground: landings, a washboard road, a spin; each channel is the derivative of the others."""

from functools import cache

import numpy as np
import quaternion as npq
from trouble_helpers import pulse

from motioncue.drive.car import STATE_DTYPE

STEP = 2.5e-4
"""Step of the integration [s]."""


def _bumps(time, size, starts, length):
    """Return pulses sin^2 of that size, which begin at `starts` and last for `length` [s]."""
    out = np.zeros_like(time)
    for start in starts:
        inside = (time >= start) & (time < start + length)
        out += np.where(inside, size * np.sin(np.pi * (time - start) / length) ** 2, 0.0)
    return out


def landings(time):
    """Return vertical acceleration [m/s^2] of three jumps, flights of 0.49 s and landings of 60 m/s^2; no yaw rate."""
    down = np.zeros_like(time)
    for start in (2.0, 5.0, 8.0):
        down += pulse(time, start, start + 0.49, 9.81, 0.02) - _bumps(time, 60.0, (start + 0.49,), 0.16)
    return down - down.mean(), 0.0 * time


def washboard(time):
    """Return vertical acceleration of corrugations at 11 Hz, +-14 m/s^2, and no yaw rate."""
    return pulse(time, 2.0, 10.0, 1.0, 0.5) * 14.0 * np.sin(2 * np.pi * 11.0 * time), 0.0 * time


def spin(time):
    """Return no vertical acceleration, and a spin at 5 rad/s."""
    return 0.0 * time, pulse(time, 2.0, 6.0, 5.0, 0.4) - pulse(time, 7.0, 9.0, 5.0, 0.4)


DRIVES = {"landings": landings, "washboard": washboard, "spin": spin}


@cache
def _states(name):
    time = np.arange(0.0, 12.0, STEP)
    down, yaw_rate = DRIVES[name](time)
    heading = np.cumsum(yaw_rate) * STEP
    acceleration = np.zeros((len(time), 3))
    acceleration[:, 2] = down
    velocity = np.array([20.0, 0.0, 0.0]) + np.cumsum(acceleration, axis=0) * STEP
    states = np.zeros(len(time), STATE_DTYPE)
    states["time"], states["engine_speed"] = time, 3000.0
    states["position"] = np.cumsum(velocity, axis=0) * STEP
    states["velocity"], states["acceleration"] = velocity, acceleration
    rates = np.stack([0.0 * time, 0.0 * time, yaw_rate], axis=1)
    states["orientation"] = npq.as_float_array(
        npq.from_rotation_vector(np.stack([0 * time, 0 * time, heading], axis=1))
    )
    states["angular_velocity"] = rates
    states["angular_acceleration"] = np.gradient(rates, STEP, axis=0)
    return states


def states_of(name, rate_hz):
    """Return the states of a drive at that rate."""
    states = _states(name)
    return states[np.round(np.arange(0.0, 11.9, 1.0 / rate_hz) / STEP).astype(int)]
