"""A short drive and a profile for the tests of tuning."""

import numpy as np

import motioncue
from motioncue.core.channels import MOTION_DTYPE

SLOW = "output.rate_hz=60"
UTIAS = "cueing.preset=utias"


def driven(seconds=8.0, braking=-3.0):
    """Return frames at 60 Hz of a car that brakes, turns and rolls a little."""
    motion = np.zeros(int(60 * seconds), MOTION_DTYPE)
    time = np.arange(len(motion)) / 60.0
    motion["time"] = np.round(1e9 * time)
    motion["surge"] = braking * ((time > 1.0) & (time < 4.0))
    motion["sway"] = np.sin(0.8 * time)
    motion["roll"] = 0.02 * np.sin(0.8 * time)
    motion["roll_rate"] = 0.016 * np.cos(0.8 * time)
    motion["yaw_rate"] = 0.1 * np.sin(0.8 * time)
    return motion


def profile(*overrides):
    return motioncue.load_profile("ccd-dk-classical", SLOW, *overrides)
