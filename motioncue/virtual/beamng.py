"""A simulator with BeamNG's MotionSim and OutGauge: plays virtual drives or recordings."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from motioncue.protocols.beamng import GAUGES, MOTION, identify
from motioncue.recording.packages import ANY, Pick
from motioncue.recording.read import read_recording
from motioncue.virtual.courses import course
from motioncue.virtual.packages import DatagramSimulator, Paced
from motioncue.virtual.rotations import body_axes

__all__ = ["RATE_HZ", "Simulator", "angles_and_rates", "driven", "encode_states", "recorded"]

RATE_HZ = 60.0
"""Packets per second that BeamNG sends by default [Hz]."""

Simulator = DatagramSimulator


def angles_and_rates(states: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Return roll, pitch, yaw (z-y-x) with their first and second derivatives.

    Parameters
    ----------
    states : ndarray of STATE_DTYPE, shape (n,)
        States of the car.

    Returns
    -------
    ndarray of float64, shape (3, 3, n)
        By order of derivative [rad, rad/s, rad/s^2], then roll, pitch, yaw; yaw in (-pi, pi].
    """
    w, x, y, z = states["orientation"].T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - x * z), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    p, q, r = body_axes(states, "angular_velocity").T
    pp, qq, rr = body_axes(states, "angular_acceleration").T
    sin, cos, slope = np.sin(roll), np.cos(roll), np.tan(pitch)
    level = q * sin + r * cos  # rate about the world's down axis, times the cosine of pitch
    pitch_rate = q * cos - r * sin
    yaw_rate = level / np.cos(pitch)
    roll_rate = p + level * slope
    pitch_change = qq * cos - rr * sin - roll_rate * level
    level_change = qq * sin + rr * cos + roll_rate * pitch_rate
    yaw_change = (level_change + yaw_rate * pitch_rate * np.sin(pitch)) / np.cos(pitch)
    roll_change = pp + level_change * slope + level * pitch_rate / np.cos(pitch) ** 2
    return np.array([[roll, pitch, yaw], [roll_rate, pitch_rate, yaw_rate], [roll_change, pitch_change, yaw_change]])


def encode_states(states: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return the packets of both streams for `states`, ndarray of STATE_DTYPE: two arrays of their dtypes."""
    motion, gauges = (np.zeros(len(states), packet.dtype) for packet in (MOTION, GAUGES))
    for packet, rows in ((MOTION, motion), (GAUGES, gauges)):
        for name, value in packet.constants.items():
            rows[name] = value
    for name in ("position", "velocity"):
        north, east, down = states[name].T
        motion[f"{name}_x"], motion[f"{name}_y"], motion[f"{name}_z"] = east, north, -down
    motion["surge"], motion["sway"], down = body_axes(states, "acceleration").T
    motion["heave"] = -down
    for suffix, values in zip(("", "_rate", "_acceleration"), angles_and_rates(states), strict=True):
        motion[f"roll{suffix}"], motion[f"pitch{suffix}"], motion[f"yaw{suffix}"] = values
    w, x, y, z = states["orientation"].T
    # The body's up axis, which is minus the third column of its rotation matrix: east, north, up.
    motion["up_x"] = -2.0 * (y * z - w * x)
    motion["up_y"] = -2.0 * (x * z + w * y)
    motion["up_z"] = 1.0 - 2.0 * (x * x + y * y)
    gauges["gear"] = 2
    gauges["speed"] = np.linalg.norm(states["velocity"], axis=1)
    gauges["engine_speed"] = states["engine_speed"]
    return motion, gauges


def driven(name: str, rate_hz: float = RATE_HZ, duration_s: float | None = None) -> Iterator[Paced]:
    """Yield the datagrams of a virtual drive; raise ConfigError for an unknown drive or rate.

    BeamNG sends nothing while it is paused.
    """
    driven = course(name, rate_hz, duration_s)
    wait = 0.0
    for motion, gauges, pause, duration in zip(
        *encode_states(driven.states), driven.waits.tolist(), driven.frame_times.tolist(), strict=True
    ):
        wait += pause
        if duration > 0.0:
            yield from _pair(wait, motion.tobytes(), gauges.tobytes())
            wait = 0.0


def _pair(wait: float, motion: bytes, gauges: bytes) -> tuple[Paced, Paced]:
    return Paced(wait, gauges, to=1, motion=False), Paced(0.0, motion)


def recorded(
    path: str | Path, rate_hz: float | None = None, duration_s: float | None = None, pick: Pick = ANY
) -> Iterator[Paced]:
    """Yield the datagrams of a recording, as captured or at `rate_hz`; raise PacketError for other files.

    Datagrams carry no time: those of a file without capture times are played at BeamNG's default rate.
    """
    recording = read_recording(path, "beamng", pick)
    period = 1.0 / (rate_hz or RATE_HZ)
    sent, before = 0.0, None
    for index, package in enumerate(recording.packages):
        if identify(package).name == GAUGES.name:
            yield Paced(0.0, package, to=1, motion=False)
            continue
        duration = period
        if rate_hz is None and recording.times is not None:
            now = recording.times[index]
            duration, before = (0.0 if before is None else max(now - before, 0.0)), now
        sent += duration
        if duration_s is not None and sent > duration_s * (1.0 + 1e-9):  # tolerate rounding: it must not cost a frame
            return
        yield Paced(duration, package)
