"""Helpers of the default bounds' tests: drives of any simulator through the whole engine, in simulated time."""

import math
import sys
from contextlib import contextmanager
from functools import cache

import msgspec
import numpy as np

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.core.table import UNWATCHED
from motioncue.drive.car import STATE_DTYPE
from motioncue.drive.courses import Course
from motioncue.engine.pipeline import Pipeline
from motioncue.sources import SIMULATORS, by_profile, described_profiles
from motioncue.virtual.installation import SAMPLE, drive_packages, recorded_packages, twin_of

START = 1_000_000_000
PERIOD = 3_000_030  # [ns], 333.33 Hz
PROFILES = {
    "city-car-driving": ("ccd-dk", "ccd-dk-classical", "ccd-dk-washout", "ccd-hexapod"),
    "beamng": ("beamng-dk",),
    "beamng-simulink": ("beamng-simulink-dk",),
    "morai": ("morai-dk",),
    "vehicle-physics-pro": ("vehicle-physics-pro-dk",),
}
"""The built-in profiles of each simulator that is no described one."""

WASHOUT = "cueing={ algorithm = 'classical', preset = 'simona' }"


def played(profile, packages, tail_s=2.0):
    """Return a pipeline after packages have arrived at their relative times."""
    seconds = sum(package.duration for package in packages) + tail_s
    pipeline = Pipeline(profile, FakeClock(START), trace=int(seconds * profile.rate_hz) + 2)
    now, connected = START, False
    for duration, package, *_ in packages:
        now += round(duration * 1e9)
        pipeline.emitter.run(until_ns=now)
        if package and not connected:
            pipeline.intake.begin(now)
        pipeline.intake.feed(package, now)
        connected = bool(package)
    pipeline.emitter.run(until_ns=now + round(tail_s * 1e9))
    return pipeline


@cache
def packages_of(system, drive, rate_hz=None):
    """Return a simulator's packages of a virtual drive, or of the recorded one."""
    if drive == SAMPLE:
        return recorded_packages(system, SAMPLE)
    return drive_packages(system, drive, rate_hz)


@contextmanager
def _instead_of_a_course(module, states):
    pause = np.diff(states["time"], prepend=2 * states["time"][0] - states["time"][1])
    before = module.course
    module.course = lambda *_: Course(states, pause, pause.copy(), np.ones(len(states), np.int64))
    try:
        yield
    finally:
        module.course = before


def packages_for(system, states):
    """Return a simulator's packages for `states`, ndarray of STATE_DTYPE."""
    twin = twin_of(system)
    with _instead_of_a_course(sys.modules[twin.driven.__module__], states):
        return list(twin.driven("tour"))


@cache
def numbers_of(system, package):
    """Return where a motion package has its numbers, as pairs of an offset [bytes] and a dtype."""
    if system in SIMULATORS:
        packet = SIMULATORS[system].identify(package)
        dtypes = [(name, field.dtype) for name, field in packet.fields.items()]
        places = [
            (name, i) for name, dtype in dtypes for i in range(math.prod(dtype.shape)) if dtype.base.kind in "fiu"
        ]
        return [packet.where(*place) for place in places if place[0] not in packet.constants]
    table = by_profile(system).table
    order = "<" if table.byte_order == "little" else ">"
    return [(field.offset, np.dtype(order + field.type)) for field in table.fields]


def tumbling(axis, rate, seconds=12.0, rate_hz=60.0, heading=0.5, lean=0.05):
    """Return a car that drives straight and turns about its forward or right axis, at most at `rate`.

    Parameters
    ----------
    axis : {"roll", "pitch"}
        A barrel roll, or end over end.
    rate : float
        [rad/s], reached within half a second.
    heading, lean : float
        Initial angles [rad]; a lean keeps an end-over-end turn from passing exactly through the vertical.

    Returns
    -------
    ndarray of STATE_DTYPE
        Attitudes are turns about one axis of the car, so that they need no integration.
    """
    time = np.arange(0.0, seconds, 1.0 / rate_hz)
    begin = np.clip((time - 1.0) / 0.5, 0.0, 1.0)
    turning = rate * begin**2 * (3 - 2 * begin)
    angle = rate * 0.5 * (begin**3 - begin**4 / 2) + rate * np.maximum(time - 1.5, 0.0)
    place = 1 if axis == "roll" else 2
    turn = np.zeros((len(time), 4))
    turn[:, 0], turn[:, place] = np.cos(angle / 2), np.sin(angle / 2)
    start = _product(_about(3, heading), _about(1, 0.0 if axis == "roll" else lean))
    states = np.zeros(len(time), STATE_DTYPE)
    states["time"] = time
    states["orientation"] = _product(start, turn)
    body = np.zeros((len(time), 3))
    body[:, place - 1] = turning
    states["angular_velocity"] = rotated(states["orientation"], body)
    states["velocity"] = 20.0 * np.array([math.cos(heading), math.sin(heading), 0.0])
    states["position"] = time[:, None] * states["velocity"]
    return states


def _about(place, angle):
    q = np.zeros(4)
    q[0], q[place] = math.cos(angle / 2), math.sin(angle / 2)
    return q


def _product(a, b):
    """Return the product of quaternions w, x, y, z."""
    (w, x, y, z), (t, i, j, k) = np.moveaxis(np.atleast_1d(a), -1, 0), np.moveaxis(np.atleast_1d(b), -1, 0)
    return np.stack(
        [w * t - x * i - y * j - z * k, w * i + x * t + y * k - z * j, w * j - x * k + y * t + z * i,
         w * k + x * j - y * i + z * t], axis=-1,
    )  # fmt: skip


def rotated(q, vectors):
    """Return body vectors in world axes."""
    pure = np.concatenate([np.zeros((len(vectors), 1)), vectors], axis=1)
    return _product(_product(q, pure), q * np.array([1.0, -1.0, -1.0, -1.0]))[:, 1:]


def attitude(states):
    """Return roll, pitch, yaw (z-y-x) of states, by their rotation matrices."""
    forward, right, down = (rotated(states["orientation"], np.tile(axis, (len(states), 1))) for axis in np.eye(3))
    return (
        np.arctan2(right[:, 2], down[:, 2]), np.arcsin(np.clip(-forward[:, 2], -1, 1)),
        np.arctan2(forward[:, 1], forward[:, 0]),
    )  # fmt: skip


def profiles():
    """Return every built-in profile with its simulator, as pairs; one that describes its source is that simulator."""
    named = [(system, name) for system, names in PROFILES.items() for name in names]
    return named + [(name, name) for name in described_profiles()]


def profile_of(system, *overrides):
    """Return the simulator's first built-in profile, changed."""
    return motioncue.load_profile(PROFILES[system][0], *overrides)


def unwatched(name, *overrides):
    """Return a profile whose watch accepts every frame, so that only the bounds protect the platform."""
    return msgspec.structs.replace(motioncue.load_profile(name, *overrides), watch=UNWATCHED)
