"""Drives whose every state is known: the virtual car's, a real one, and cars defined by equations."""

from functools import cache

import numpy as np
import rally
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from motioncue.drive.car import STATE_DTYPE, drive
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources.city_car_driving.packets import FRAME

__all__ = ["DRIVES", "RATE_HZ", "by_phone", "states_of", "states_of_poses", "with_turned_roll"]

RATE_HZ = 40.0
FINE = 25  # steps of an equation per frame

# City Car Driving's world (X east, Y up, Z south) and the sample's car (X left, Y up, Z forward).
NED_FROM_WORLD = np.array([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
CAR_FROM_BODY = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])


def states_of_poses(time, position, attitude, every=1):
    """Return the states of a body from a path sampled finely enough for differentiation.

    Parameters
    ----------
    time : ndarray, shape (n,)
        Evenly spaced [s].
    position : ndarray, shape (n, 3)
        North, east, down [m].
    attitude : Rotation of n
        Rotations from forward, right, down to north, east, down.
    every : int
        Which of the rows to return.
    """
    states = np.zeros(len(time), STATE_DTYPE)
    states["time"], states["position"] = time - time[0], position
    states["velocity"] = np.gradient(position, time, axis=0)
    states["acceleration"] = np.gradient(states["velocity"], time, axis=0)
    states["orientation"] = np.roll(attitude.as_quat(), 1, axis=-1)
    step = (attitude[1:] * attitude[:-1].inv()).as_rotvec() / np.diff(time)[:, None]  # between the rows, world axes
    states["angular_velocity"] = np.concatenate([step[:1], (step[1:] + step[:-1]) / 2, step[-1:]])
    states["angular_acceleration"] = np.gradient(states["angular_velocity"], time, axis=0)
    states["engine_speed"] = 2000.0
    return states[::every]


def _made(seconds, speed, yaw_rate, climb=0.0, lean=-0.008, slip=0.0, rough=0.0):
    """Return a car defined by functions of time: `speed` [m/s, negative backwards], `yaw_rate`, `climb` (slope) and
    `slip`.

    The body leans by `lean` [rad per m/s^2] of sway, pitches with the road and by 5 mrad per m/s^2 of surge.
    """
    dt = 1.0 / (RATE_HZ * FINE)
    time = np.arange(0.0, seconds, dt)
    along, course, slope, beta = (
        np.broadcast_to(np.asarray(value(time) if callable(value) else value, float), time.shape)
        for value in (speed, lambda t: np.cumsum(np.broadcast_to(yaw_rate(t), t.shape)) * dt, climb, slip)
    )
    level = along * np.cos(slope)
    velocity = np.stack([level * np.cos(course), level * np.sin(course), -along * np.sin(slope)], axis=-1)
    if rough:
        velocity[:, 2] += rough * np.sin(2 * np.pi * 7.3 * time) * np.clip(np.abs(along), 0.0, 1.0)
    position = np.cumsum(velocity, axis=0) * dt
    sway = along * np.gradient(course, time)
    roll, pitch = lean * sway, slope + 0.005 * np.gradient(along, time)
    attitude = Rotation.from_euler("ZYX", np.stack([course + beta, pitch, roll], axis=-1))
    return states_of_poses(time, position, attitude, FINE)


def _smooth(time, points):
    """Return a function of time that goes smoothly from point to point: (time [s], value)."""
    at, values = np.array(points, float).T
    place = np.clip(np.searchsorted(at, time, side="right") - 1, 0, len(at) - 2)
    share = np.clip((time - at[place]) / (at[place + 1] - at[place]), 0.0, 1.0)
    return values[place] + (values[place + 1] - values[place]) * share**3 * (10 - 15 * share + 6 * share**2)


def _eight(**more):
    """Return a figure of eight over hills, at 36 to 72 km/h, that begins and ends at speed."""
    return _made(
        60.0,
        lambda t: 15.0 + 5.0 * np.sin(0.4 * t),
        lambda t: 0.45 * np.cos(0.3 * t),
        lambda t: 0.06 * np.sin(1.2 * t),
        **more,
    )


def _town():
    """Return right-angled corners at 29 km/h with three stops, one of them on a hill."""
    speeds = [(0, 0), (2, 0), (6, 8), (16, 8), (19, 0), (22, 0), (26, 8), (38, 8), (41, 0), (44, 0), (48, 7), (56, 7)]
    turns = [(7, 0), (8, 0.45), (10.5, 0.45), (11.5, 0), (27, 0), (28, -0.5), (30, -0.5), (31, 0)]
    turns += [(33, 0), (34, 0.4), (37, 0.4), (38, 0), (50, 0), (51, -0.4), (54, -0.4), (55, 0)]
    return _made(
        64.0,
        lambda t: _smooth(t, [*speeds, (60, 0), (64, 0)]),
        lambda t: _smooth(t, [(0, 0), *turns, (64, 0)]),
        lambda t: _smooth(t, [(0, 0), (35, 0), (37, 0.05), (47, 0.05), (49, 0), (64, 0)]),
    )


def _backing():
    """Return a car that drives off, stops, and reverses through bends for as long."""
    return _made(
        60.0,
        lambda t: _smooth(t, [(0, 0), (1, 0), (5, 8), (24, 8), (28, 0), (31, 0), (35, -5), (54, -5), (57, 0), (60, 0)]),
        lambda t: (
            0.3
            * np.sin(0.5 * t)
            * np.clip(
                np.abs(_smooth(t, [(0, 0), (5, 1), (24, 1), (28, 0), (31, 0), (35, 1), (54, 1), (57, 0), (60, 0)])),
                0,
                1,
            )
        ),
    )


def _real():
    """Return the package's motorway drive."""
    frames = [package for package in read_packages(sample_recording()) if len(package) == FRAME.size]
    rows = np.frombuffer(b"".join(frames), FRAME.dtype)
    states = np.zeros(len(rows), STATE_DTYPE)
    states["time"] = np.cumsum(rows["frame_time"]) - rows["frame_time"][0]
    for name in ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration"):
        states[name] = rows[name] @ NED_FROM_WORLD.T
    body = NED_FROM_WORLD @ Rotation.from_quat(rows["orientation"]).as_matrix() @ CAR_FROM_BODY
    states["orientation"] = np.roll(Rotation.from_matrix(body).as_quat(), 1, axis=-1)
    states["engine_speed"] = 2000.0
    return states[::2]  # 30 Hz


def _virtual(name, start_s=0.0, end_s=None):
    states = drive(name, RATE_HZ)
    states = states[round(start_s * RATE_HZ) : None if end_s is None else round(end_s * RATE_HZ)].copy()
    states["time"] -= states["time"][0]
    return states


DRIVES = {
    "tour": lambda: _virtual("tour"),
    "turns": lambda: _virtual("turns"),
    "brake": lambda: _virtual("brake"),
    "still": lambda: _virtual("still"),
    "tour without a stop": lambda: _virtual("tour", 6.0, 52.0),
    "motorway": _real,
    "rally": lambda: rally.stage()[0],
    "eight": _eight,
    "eight, rough": lambda: _eight(rough=0.05),
    "eight, banked": lambda: _eight(lean=0.02),
    "drift": lambda: _eight(slip=lambda t: -0.5 * np.cos(0.3 * t)),
    "town": _town,
    "backing": _backing,
}
"""The drives by name."""


@cache
def states_of(name):
    """Return the states of a drive at `RATE_HZ`; treat them as read-only."""
    states: np.ndarray = DRIVES[name]()
    return states


def by_phone(states, fixes_hz, late_s, seed=1):
    """Return a drive as a phone says it: yaw is the course between fixes of its place, the rest is from its sensors."""
    rng = np.random.default_rng(seed)
    time, out = states["time"], states.copy()
    true = Rotation.from_quat(np.roll(states["orientation"], -1, axis=-1))
    fixes = np.arange(time[0], time[-1] + 1.0 / fixes_hz, 1.0 / fixes_hz)
    place = CubicSpline(time, states["position"])(fixes - late_s)
    # The error of a fix drifts: 1 cm/s and more from one to the next, metres in the end.
    place += np.cumsum(rng.normal(0.0, 0.02 / fixes_hz, place.shape), axis=0)
    path = CubicSpline(fixes, place)
    out["position"], out["velocity"] = path(time), path(time, 1)
    north, east, _ = out["velocity"].T
    moving = np.hypot(north, east) > 1.0
    last = np.maximum.accumulate(np.where(moving, np.arange(len(time)), 0))  # at rest, the course is the last one
    angles = true.as_euler("ZYX")
    angles[:, 0] = np.arctan2(east, north)[last]
    said = Rotation.from_euler("ZYX", angles)
    out["orientation"] = np.roll(said.as_quat(), 1, axis=-1)
    for name, noise in (("acceleration", 0.2), ("angular_velocity", 0.01), ("angular_acceleration", 0.0)):
        sensed = true.apply(states[name], inverse=True)
        out[name] = said.apply(sensed + rng.normal(0.0, noise, sensed.shape))
    return out


def with_turned_roll(states):
    """Return a drive of which everything is right but the sign of roll."""
    out = states.copy()
    angles = Rotation.from_quat(np.roll(states["orientation"], -1, axis=-1)).as_euler("ZYX")
    said = Rotation.from_euler("ZYX", angles * [1.0, 1.0, -1.0])
    out["orientation"] = np.roll(said.as_quat(), 1, axis=-1)
    return out
