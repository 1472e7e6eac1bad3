"""The recorded rally stage as states of a car; `data/rally/README.md` says what it is."""

from functools import cache
from pathlib import Path

import numpy as np
import quaternion as npq

from motioncue.core.channels import GRAVITY
from motioncue.drive.car import STATE_DTYPE

STAGE = Path(__file__).parents[1] / "data" / "rally" / "stage.bin"
RATE_HZ = 60.0
"""Physics steps per second [Hz]."""


@cache
def stage():
    """Return the states of the stage, one per packet, and when these came [s]; do not change them."""
    rows = np.fromfile(STAGE, "<f4").reshape(-1, 16).astype(np.float64)
    time = rows[:, 0] / RATE_HZ
    # x, z and minus y are right-handed, so they may be called north, east and down.
    position, velocity, right, forward = (
        rows[:, first : first + 3][:, [0, 2, 1]] * (1.0, 1.0, -1.0) for first in (2, 5, 8, 11)
    )
    down = np.cross(forward, right)
    left_g, forward_g = rows[:, 14:15], rows[:, 15:16]
    attitude = npq.from_rotation_matrix(np.stack([forward, right, down], axis=2))
    states = np.zeros(len(rows), STATE_DTYPE)
    states["time"], states["position"], states["velocity"], states["engine_speed"] = time, position, velocity, 4000.0
    attitude = npq.unflip_rotors(attitude)
    states["orientation"] = npq.as_float_array(attitude)
    change = _slopes(velocity, time)
    downwards = np.einsum("ni,ni->n", change, down)[:, None] * down
    states["acceleration"] = GRAVITY * (forward_g * forward - left_g * right) + downwards
    turns = npq.as_rotation_vector(attitude[1:] * attitude[:-1].conj())  # in world axes
    states["angular_velocity"][1:] = turns / np.diff(time)[:, None]
    states["angular_velocity"][0] = states["angular_velocity"][1]
    states["angular_acceleration"] = _slopes(states["angular_velocity"], time)
    return states, rows[:, 1] - rows[0, 1]


def _slopes(values, time):
    """Return the change since the row before, per second; for the first row that of the second."""
    slopes = np.diff(values, axis=0) / np.diff(time)[:, None]
    return np.concatenate([slopes[:1], slopes])


def newest(rate_hz):
    """Return the states that a program sends which reads the game at that rate: the newest of the game's each time."""
    states, _ = stage()
    times = np.arange(0.0, states["time"][-1], 1.0 / rate_hz)
    out = states[np.searchsorted(states["time"], times + 1e-9, side="right") - 1]
    out["time"] = times
    return out


class Stage:
    """The stage between `since` and the end, at any time: lines between its states.

    Parameters
    ----------
    since : float
        Where to begin [s].
    """

    def __init__(self, since=0.0):
        self.since = since

    def states(self, time):
        """Return the states at these times [s], ndarray of STATE_DTYPE."""
        known, _ = stage()
        wanted = np.clip(np.asarray(time) + self.since, 0.0, known["time"][-1])
        out = np.zeros(len(wanted), STATE_DTYPE)
        for name in STATE_DTYPE.names:
            columns = known[name].reshape(len(known), -1)
            lines = [np.interp(wanted, known["time"], column) for column in columns.T]
            out[name] = np.stack(lines, axis=1).reshape(out[name].shape)
        out["orientation"] /= np.linalg.norm(out["orientation"], axis=1)[:, None]
        out["time"] = time
        return out
