"""What the tests of delivery share: honest drives, ways to deliver their frames, and a pipeline in simulated time."""

from typing import NamedTuple

import numpy as np
import quaternion as npq
from helpers import truth

import motioncue
from motioncue.kernels.clock import FakeClock
from motioncue.runtime.engine import Pipeline
from motioncue.virtual import beamng, vehicle_physics_pro
from motioncue.virtual.car import STATE_DTYPE

START = 1_000_000_000
PERIOD = 3_000_030  # of a tick [ns]
LINEAR = ("surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate", "speed")
ANGLES = ("roll", "pitch", "yaw")


class Source(NamedTuple):
    """A simulator whose packets carry the drive."""

    profile: str
    rate_hz: float
    packets: object  # states to a list of bytes, one a frame


def _beamng_packets(states):
    motion, _ = beamng.encode_states(states)
    return [row.tobytes() for row in motion]


def _unity_packets(states):
    return [row.tobytes() for row in vehicle_physics_pro.encode_states(states)]


SOURCES = {
    "vehicle-physics-pro": Source("vehicle-physics-pro-dk", 50.0, _unity_packets),  # stamps each frame
    "beamng": Source("beamng-dk", 100.0, _beamng_packets),  # says nothing of time
}


class Drive:
    """A car whose acceleration and attitude are sums of sines, every other channel their integral or derivative.

    Parameters
    ----------
    accelerations : sequence of 3 lists of (amplitude, omega, phase)
        North, east, down [m/s^2, rad/s, rad].
    angles : sequence of 3 lists of (amplitude, omega, phase)
        Roll, pitch, yaw [rad, rad/s, rad].
    speed : float
        Mean speed north [m/s].
    turning : float
        Mean yaw rate [rad/s].
    """

    def __init__(self, accelerations, angles, speed=20.0, turning=0.0):
        self.accelerations, self.angles, self.speed, self.turning = accelerations, angles, speed, turning

    def states(self, time):
        """Return the states at these times [s], ndarray of STATE_DTYPE."""
        states = np.zeros(len(time), STATE_DTYPE)
        states["time"] = time
        for axis, waves in enumerate(self.accelerations):
            for amplitude, omega, phase in waves:
                wave = omega * time + phase
                states["acceleration"][:, axis] += amplitude * np.sin(wave)
                states["velocity"][:, axis] -= amplitude / omega * np.cos(wave)
                states["position"][:, axis] -= amplitude / omega**2 * np.sin(wave)
        states["velocity"][:, 0] += self.speed
        states["position"][:, 0] += self.speed * time
        angle, rate = np.zeros((2, 3, len(time)))
        for axis, waves in enumerate(self.angles):
            for amplitude, omega, phase in waves:
                angle[axis] += amplitude * np.sin(omega * time + phase)
                rate[axis] += amplitude * omega * np.cos(omega * time + phase)
        angle[2] += self.turning * time
        rate[2] += self.turning
        (roll, pitch, _), (p, q, r) = angle, rate
        about = [npq.from_rotation_vector(np.outer(angle[axis], np.eye(3)[axis])) for axis in range(3)]
        attitude = about[2] * about[1] * about[0]
        states["orientation"] = npq.as_float_array(attitude)
        body = np.stack(
            [
                p - r * np.sin(pitch),
                q * np.cos(roll) + r * np.sin(roll) * np.cos(pitch),
                r * np.cos(roll) * np.cos(pitch) - q * np.sin(roll),
            ],
            axis=1,
        )
        states["angular_velocity"] = np.einsum("nij,nj->ni", npq.as_rotation_matrix(attitude), body)
        return states


class Run(NamedTuple):
    """What came out, and what the drive itself was at those times."""

    trace: np.ndarray
    truth: dict
    events: dict
    transitions: list


def deliver(drive, source, bridge, taken, arrivals, *overrides, after_s=0.5, operate=()):
    """Run a pipeline on a fake clock, with frames taken at `taken` and arriving at `arrivals` [s], in that order.

    Parameters
    ----------
    operate : sequence of (time [s], name)
        What the operator does.

    Returns
    -------
    Run
    """
    source = SOURCES[source]
    profile = motioncue.load_profile(source.profile, f"source.bridge={bridge}", *overrides)
    length = max(float(np.max(arrivals)), *(time for time, _ in operate), 0.0) if operate else float(np.max(arrivals))
    end = START + round(1e9 * (length + after_s))
    pipeline = Pipeline(profile, FakeClock(START), (end - START) // PERIOD + 2)
    pipeline.intake.begin(START)
    packets = source.packets(drive.states(np.asarray(taken)))
    queue = [(START + round(1e9 * float(at)), 0, packet) for at, packet in zip(arrivals, packets, strict=True)]
    queue += [(START + round(1e9 * at), 1, name) for at, name in operate]
    for at, kind, what in sorted(queue, key=lambda row: row[:2]):
        pipeline.emitter.run(until_ns=at)
        if kind:
            getattr(pipeline.emitter, what)()
        else:
            pipeline.intake.feed(what, at)
    pipeline.emitter.run(until_ns=end)
    trace = pipeline.emitter.trace
    real = truth(drive.states((trace["deadline"] - START) * 1e-9))
    return Run(trace, real, pipeline.intake.discontinuities, pipeline.transitions()[0])


def stalls(taken, delay_s, at, apart_s=0.0003):
    """Return when frames arrive whose sender stalls: from each time `at` on for so long [s], then the missed ones.

    Parameters
    ----------
    taken : ndarray of shape (n,)
        In order [s].
    delay_s : float
        What every frame takes [s].
    at : sequence of (time, duration)
        Of the stalls [s].
    apart_s : float
        Between the frames that had been missed [s].
    """
    arrivals = taken + delay_s
    for begin, duration in at:
        arrivals = np.where((arrivals >= begin) & (arrivals < begin + duration), begin + duration, arrivals)
    for i in range(1, len(arrivals)):
        arrivals[i] = max(arrivals[i], arrivals[i - 1] + (apart_s if arrivals[i] - taken[i] > delay_s else 0.0))
    return arrivals
