"""Helpers of the watch's tests: packets of every system from a car's states, and lines that deliver them."""

from functools import cache

import numpy as np
import quaternion as npq
import rally
import rough_drives
from trouble_helpers import REAL, START, hard_states

from motioncue import sources
from motioncue.drive.car import STATE_DTYPE, drive
from motioncue.sources.beamng import twin as beamng
from motioncue.sources.beamng_simulink import twin as beamng_simulink
from motioncue.sources.city_car_driving import twin as city_car_driving
from motioncue.sources.morai import twin as morai
from motioncue.sources.vehicle_physics_pro import twin as vehicle_physics_pro
from motioncue.wire.packet import Derivation

SYSTEMS = ("city-car-driving", "vehicle-physics-pro", "beamng-simulink", "beamng", "morai")
STAMPED = ("vehicle-physics-pro", "beamng-simulink")
"""Systems whose packets carry a time."""


def options_of(system, rate_hz):
    """Return the options that a simulator at that rate needs."""
    return {"simulink_time_s": 1.0 / rate_hz} if system == "beamng-simulink" else {}


def records_of(system, states, rate_hz):
    """Return a system's packets of motion for `states`, an array of their dtype that may be changed."""
    if system == "city-car-driving":
        rows = city_car_driving.encode_states(states)
        rows["frame_time"] = 1.0 / rate_hz
        return rows
    if system == "vehicle-physics-pro":
        return vehicle_physics_pro.encode_states(states)
    if system == "beamng-simulink":
        return beamng_simulink.encode_states(states)
    if system == "beamng":
        return beamng.encode_states(states)[0]
    rows = morai.encode_states(states)
    rows["velocity"] += 1e-6 * np.random.default_rng(1).standard_normal(rows["velocity"].shape)  # it never stands still
    return rows


def new_intake(system, rate_hz, acceleration="native", **options):
    """Return a system's intake with a session begun."""
    module = sources.source(system)
    options = module.Options(**{**options_of(system, rate_hz), **options})
    intake = module.intake(options, derivation=Derivation(acceleration))
    intake.begin(START)
    if system == "city-car-driving":
        intake.feed(city_car_driving.INIT_PACKAGE, START)
    return intake


def fed(intake, rows, times):
    """Feed row i at `times[i]` [s]; return the publication after each, MOTION_DTYPE."""
    out = []
    for row, time in zip(rows, times, strict=True):
        intake.feed(row.tobytes(), START + 1000 + round(float(time) * 1e9))
        newest = intake.newest()
        if newest is not None:
            out.append(newest)
    return np.concatenate(out)


@cache
def real_states():
    """Return the states of the real drive, 60 Hz, as its frames say them."""
    states = np.zeros(len(REAL), STATE_DTYPE)
    states["time"] = np.arange(len(REAL)) / 60.0
    for name in ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration"):
        states[name] = REAL[name].astype(np.float64) @ city_car_driving.WORLD_FROM_NED
    world, car = npq.quaternion(*city_car_driving.WORLD_TURN), npq.quaternion(*city_car_driving.CAR_TURN)
    q = npq.as_quat_array(np.roll(REAL["orientation"].astype(np.float64), 1, axis=1))
    states["orientation"] = npq.as_float_array(world.conj() * q * car.conj())
    return states


def states_of(name, rate_hz):
    """Return a drive's states at that rate; the real one's at another than 60 Hz are the newest each time."""
    if name in rough_drives.DRIVES:
        return rough_drives.states_of(name, rate_hz)
    if name == "hard":
        return hard_states(rate_hz)
    if name == "rally":
        return rally.newest(rate_hz)
    if name != "real":
        return drive(name, rate_hz)
    states = real_states()
    times = np.arange(0.0, len(states) / 60.0, 1.0 / rate_hz)
    out = states[np.minimum((times * 60.0 + 1e-9).astype(int), len(states) - 1)].copy()
    out["time"] = times
    return out


def delivered(count, rate_hz, rng, *, jitter_s=0.0, loss=0.0, bursts=0, gaps=0, stalls=0, pace=1.0):
    """Return the frames that arrive, and when [s]; in order.

    Parameters
    ----------
    jitter_s : float
        Each frame comes up to this late, some bunched behind a late one.
    loss : float
        Share of frames lost one by one.
    bursts, gaps : int
        How often six successive frames are lost, and how often everything for a second.
    stalls : int
        How often the sender pauses for 0.08 to 1 s, and then sends the missed frames 0.3 ms apart.
    pace : float
        Simulator seconds in a second.
    """
    sent = np.arange(count) / rate_hz / pace
    came = sent + rng.uniform(0.0, jitter_s, count) * (rng.random(count) < rng.choice([0.05, 0.5, 1.0]))
    for start in rng.uniform(1.0, sent[-1] - 1.0, stalls):
        missed = (sent > start) & (sent < start + rng.choice([0.08, 0.25, 1.0]))
        if missed.any():
            came[missed] = np.maximum(came[missed], sent[missed][-1] + 3e-4 * np.arange(missed.sum()))
    came = np.maximum.accumulate(came)
    kept = rng.random(count) >= loss
    for start in rng.integers(1, count, bursts):
        kept[start : start + 6] = False
    for start in rng.uniform(1.0, sent[-1] - 1.0, gaps):
        kept &= ~((sent > start) & (sent < start + 1.0))
    kept[0] = True
    return np.flatnonzero(kept), came[kept]


LINES = {
    "a perfect line": {},
    "jitter": {"jitter_s": 0.1},
    "loss": {"jitter_s": 0.02, "loss": 0.05},
    "loss in bursts": {"jitter_s": 0.1, "loss": 0.05, "bursts": 30},
    "gaps": {"jitter_s": 0.1, "loss": 0.05, "gaps": 3},
    "stalls": {"jitter_s": 0.005, "stalls": 8},
    "stalls and loss": {"jitter_s": 0.02, "loss": 0.05, "stalls": 8, "gaps": 2},
    "slow motion": {"jitter_s": 0.1, "loss": 0.05, "gaps": 3, "pace": 0.3},
    "fast motion": {"jitter_s": 0.1, "loss": 0.05, "pace": 1.5},
}
