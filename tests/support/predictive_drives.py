"""Profiles and drives for the predictive algorithm, and the poses of its cues."""

import numpy as np
from scipy import signal

import motioncue
from motioncue.core.channels import MOTION_DTYPE
from motioncue.platforms.build import CHANNELS

RATE_HZ = 1e9 / round(1e9 / 333.33)
PERIOD = 3  # ticks from plan to plan at that rate and 100 plans a second


def profile(*overrides, platform=None):
    keys = ["cueing.algorithm=predictive", *overrides]
    return motioncue.load_profile("ccd-dk", *keys, *([{"platform": {"preset": platform}}] if platform else []))


def pose_of(cues):
    return np.stack([cues[channel] for channel in CHANNELS], axis=1)


def drive(rng, n, size=1.0):
    """Return a drive in which everything moves, low-passed so that it is felt."""
    motion = np.zeros(n, MOTION_DTYPE)
    for name in ("surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate"):
        values = signal.sosfilt(signal.butter(2, 1.0, fs=RATE_HZ, output="sos"), rng.normal(size=n))
        motion[name] = size * values / values.std() * (2.0 if "rate" not in name else 0.1)
    return motion
