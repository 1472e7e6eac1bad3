"""Helpers of the trouble tests: a whole pipeline on a clock that takes no time, and cars that make trouble."""

import gc
import math
from functools import cache

import numpy as np
import quaternion as npq

import motioncue
from motioncue.core.channels import GRAVITY
from motioncue.core.clock import FakeClock
from motioncue.drive.car import STATE_DTYPE, drive
from motioncue.engine.pipeline import Pipeline
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.safety.supervisor import TABLE, State
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.sources.city_car_driving.twin import INIT_PACKAGE, encode_states

START = 1_000_000_000
MOVERS = [name for name in motioncue.CUE_DTYPE.names if name not in ("speed", "engine_speed", "time")]
"""The channels that move the platform."""

BOUNDED = (
    "limits.surge={ value_m_s2 = 9.0, rate_m_s3 = 300.0, acceleration_m_s4 = 2e4, jerk_m_s5 = 4e6 }",
    "limits.sway={ value_m_s2 = 6.0, rate_m_s3 = 100.0, acceleration_m_s4 = 3e3, jerk_m_s5 = 3e5 }",
    "limits.heave={ value_m_s2 = 5.0, jerk_m_s5 = 1e7 }",
    "limits.roll={ value_deg = 12.0, rate_deg_s = 30.0, acceleration_deg_s2 = 150.0, jerk_deg_s3 = 4000.0 }",
    "limits.pitch={ value_deg = 15.0, rate_deg_s = 40.0, acceleration_deg_s2 = 400.0, jerk_deg_s3 = 20000.0 }",
    "limits.yaw_rate={ value_deg_s = 40.0, rate_deg_s2 = 900.0 }",
    "limits.surge_displacement={ value_m = 0.2, rate_m_s = 0.6, acceleration_m_s2 = 6.0, jerk_m_s3 = 200.0 }",
    "limits.heave_displacement={ value_m = 0.15, rate_m_s = 0.5, acceleration_m_s2 = 8.0 }",
)
"""Overrides that bound channels of every kind, some tightly, some only in part."""

REAL = np.frombuffer(b"".join(read_packages(sample_recording())[1:]), FRAME.dtype)
"""The frames of the real drive, 60 Hz."""


def knocks(trace):
    """Return the largest change from tick to tick of what acts along each axis [m/s^2]: acceleration, and tilt."""
    cues, dt = trace["cue"], np.median(np.diff(trace["deadline"])) * 1e-9
    tilts = GRAVITY * np.sin(cues["pitch"]), -GRAVITY * np.sin(cues["roll"]), 0.0 * cues["roll"]
    felt = [
        np.diff(cues[f"{axis}_displacement"], 2) / dt**2 + tilt[2:]
        for axis, tilt in zip(("surge", "sway", "heave"), tilts, strict=True)
    ]
    return np.abs(np.diff(felt)).max(axis=1)


def turns(trace):
    """Return the largest change from tick to tick of the acceleration of roll, pitch and yaw [rad/s^2]."""
    dt = np.median(np.diff(trace["deadline"])) * 1e-9
    return np.array([np.abs(np.diff(trace["cue"][name], 3)).max() for name in ("roll", "pitch", "yaw")]) / dt**2


class Bench:
    """A pipeline on a fake clock, and the simulator's side of its session.

    Parameters
    ----------
    *overrides : str
        As `motioncue.load_profile` takes them.
    profile : str
        What they override.
    stalls : sequence of int
        For the clock [ns].
    trace : int
        How many ticks to keep.
    """

    made = 0

    def __init__(self, *overrides, profile="ccd-dk", stalls=(), trace=40_000):
        Bench.made += 1
        if Bench.made % 32 == 0:  # a failure holds its bench in a cycle, and Python does not see how large that is
            gc.collect()
        self.profile = motioncue.load_profile(profile, *overrides)
        self.clock = FakeClock(START, stalls=stalls)
        self.pipeline = Pipeline(self.profile, self.clock, trace)
        self._known = 0
        self.intake, self.emitter = self.pipeline.intake, self.pipeline.emitter
        self.now = START
        self.fed = 0
        self._moves = []

    def connect(self):
        """Begin a session, as a simulator that connects does."""
        self.intake.begin(self.now)
        self.intake.feed(INIT_PACKAGE, self.now)
        return self

    def feed(self, package):
        """Let a package arrive now."""
        self.fed += 1
        self.intake.feed(package if isinstance(package, bytes) else package.tobytes(), self.now)

    def run(self, seconds):
        """Let time pass without packages."""
        return self.run_to(self.now + round(seconds * 1e9))

    def run_to(self, time_ns):
        """Let time pass until then."""
        self.emitter.run(until_ns=time_ns)
        self.now = time_ns
        self._collect()
        return self

    def play(self, frames, times):
        """Let frame i arrive `times[i]` seconds from now."""
        began = self.now
        for time, frame in zip(times, frames, strict=True):
            self.run_to(max(self.now, began + round(float(time) * 1e9)))
            self.feed(frame)
        return self

    def transitions(self):
        """Return the transitions since the last call."""
        self._collect()
        new, self._moves = self._moves, []
        return new

    def _collect(self):
        new, self._known = self.pipeline.transitions(self._known)
        self._moves += new

    def moves(self):
        """Return them as (from, to, reason)."""
        return [(move["from"], move["to"], move["reason"]) for move in self.transitions()]

    @property
    def trace(self):
        """Every tick so far."""
        return self.emitter.trace

    @property
    def state(self):
        """The supervisor's state."""
        return self.emitter.state


@cache
def driven(name, rate_hz):
    """Return the frames of a virtual drive; do not change them."""
    frames = encode_states(drive(name, rate_hz))
    frames["frame_time"] = 1.0 / rate_hz
    return frames


@cache
def real(rate_hz):
    """Return the real drive as a simulator at that rate would have sent it: the newest of its states each time."""
    if rate_hz == 60:
        return REAL
    places = np.minimum((np.arange(0, len(REAL) / 60, 1 / rate_hz) * 60).astype(int), len(REAL) - 1)
    frames = REAL[places].copy()
    frames["frame_time"] = 1.0 / rate_hz
    return frames


def pulse(time, start, end, size, ramp=0.1):
    """Return `size` from `start` to `end`, with smooth ramps [s]."""

    def smooth(x):
        x = np.clip(x, 0.0, 1.0)
        return x**3 * (10 - 15 * x + 6 * x * x)

    return size * smooth((time - start) / ramp) * smooth((end - time) / ramp)


@cache
def _hard_states():
    """Return a drive at the edge of what a car can do, every channel the derivative of the others.

    35 m/s, braking at 8 m/s^2, bends at 10 m/s^2 either way, a bump of 3 g, a spin at 3 rad/s, a rollover at 4 rad/s.

    Returns
    -------
    ndarray of STATE_DTYPE
        Integrated at 4 kHz: the integrals of what is prescribed, acceleration and body rates.
    """
    step = 2.5e-4
    time = np.arange(0.0, 20.0, step)
    along = pulse(time, 1.0, 6.0, 7.0, 0.3) + pulse(time, 7.0, 9.0, -8.0) + pulse(time, 13.0, 15.5, -5.0)
    across = pulse(time, 9.5, 11.0, 10.0) + pulse(time, 11.2, 12.7, -10.0)
    down = np.zeros_like(time)
    for start, size in ((4.0, -30.0), (4.06, 30.0), (6.5, -30.0), (6.56, 30.0)):
        inside = (time >= start) & (time < start + 0.06)
        down += np.where(inside, size * np.sin(np.pi * (time - start) / 0.06), 0.0)
    speed = 35.0 + np.cumsum(along) * step
    yaw_rate = across / np.maximum(speed, 5.0) + pulse(time, 13.0, 15.5, 3.0, 0.2)
    roll_rate = pulse(time, 16.5, 16.5 + 2 * np.pi / 4.0 + 0.2, 4.0, 0.2)
    pitch_rate = pulse(time, 7.0, 7.3, -0.3) + pulse(time, 9.0, 9.3, 0.3)

    rates = np.stack([roll_rate, pitch_rate, yaw_rate], axis=1)
    attitude = np.empty((len(time), 4))
    q = npq.one
    for i, turn in enumerate(npq.from_rotation_vector(rates * step)):
        attitude[i] = npq.as_float_array(q)
        q = q * turn
    heading = np.cumsum(yaw_rate) * step
    c, s = np.cos(heading), np.sin(heading)
    acceleration = np.stack([along * c - across * s, along * s + across * c, down], axis=1)
    velocity = np.array([35.0, 0.0, 0.0]) + np.cumsum(acceleration, axis=0) * step
    to_world = npq.as_rotation_matrix(npq.as_quat_array(attitude))
    world_rates = np.einsum("nij,nj->ni", to_world, rates)
    states = np.zeros(len(time), STATE_DTYPE)
    states["time"] = time
    states["position"] = np.cumsum(velocity, axis=0) * step
    states["velocity"] = velocity
    states["acceleration"] = acceleration
    states["orientation"] = attitude
    states["angular_velocity"] = world_rates
    states["angular_acceleration"] = np.gradient(world_rates, step, axis=0)
    return states


def hard_states(rate_hz):
    """Return the states of the hard drive at that rate."""
    states = _hard_states()
    return states[np.round(np.arange(0.0, 19.9, 1.0 / rate_hz) / states["time"][1]).astype(int)]


@cache
def hard(rate_hz):
    """Return the frames of `hard_states`; do not change them."""
    frames = encode_states(hard_states(rate_hz))
    frames["frame_time"] = 1.0 / rate_hz
    return frames


EPS = np.finfo(np.float64).eps
MOVES = {(state, to) for state, _, to, _ in TABLE}
REASONS = {(state, to): {r[3] for r in TABLE if (r[0], r[2]) == (state, to)} for state, to in MOVES}
OF_INPUT = {
    "teleport", "impossible_acceleration", "impossible_rate", "frame_time_jump", "frozen", "paused", "reconnect",
    "input_lost", "acceleration_contradicted", "rate_contradicted",
}  # fmt: skip


def turn_of(pace):
    """Return the largest second difference of the weight, in pace^2.

    w = x^3 (10 - 15 x + 6 x^2) has curvature at most 10/sqrt(3), and what is promised of a fade that turns is no more
    than half as much again.  Beside an end, where a way begins in the middle of a tick, w is 10 x^3: 80 pace more.
    """
    return 1.5 * 10 / math.sqrt(3) + 80 * pace


def broken(cues, bounds, dt, fresh=True, rounding=EPS):
    """Return (channel, order, tick, ratio) of each difference of a channel beyond its bound: the independent checker.

    Parameters
    ----------
    cues : ndarray with a field for each channel
        What was sent, tick after tick.
    bounds : dict of str to list
        As `Profile.bounds` returns them.
    dt : float
        Tick [s].
    fresh : bool
        They are the first ones: the platform was at rest at neutral before.
    rounding : float
        Twice the relative error of what was sent.

    Notes
    -----
    Differences are taken in extended precision, so only the rounding of what was sent counts: half a unit in the last
    place of the largest value, 2^n times in an n-th difference.  A heading is followed round before they are taken.
    """
    found = []
    for name, each in bounds.items():
        path = np.concatenate([np.zeros(3), cues[name]] if fresh else [cues[name]]).astype(np.longdouble)
        if name == "yaw":
            path = np.unwrap(path)
        largest = max(each[0], float(np.abs(path).max(initial=0.0)))
        for order, bound in enumerate(each):
            if bound is None:
                continue
            size = np.abs(np.diff(path, order)) if order else np.abs(cues[name])
            if not size.max(initial=0.0) <= bound * dt**order * (1 + 4 * EPS) + 2**order * rounding * largest:
                found.append((name, order, int(size.argmax()), float(size.max() / (bound * dt**order))))
    return found


class Checker:
    """What must hold at every tick, checked over the ticks since the last call."""

    def __init__(self, bench):
        self.bench = bench
        self.done = 0
        profile = bench.profile
        self.pace = min(1.0, round(1e9 / profile.output.rate_hz) * 1e-9 / profile.supervisor.fade_s)
        self.dt = round(1e9 / profile.output.rate_hz) * 1e-9
        self.bounds = profile.bounds()
        self.at = "OFFLINE"

    def __call__(self):
        bench, trace = self.bench, self.bench.trace
        moves = bench.transitions()
        if len(trace) > self.done:
            self.ticks(trace[max(0, self.done - 3) :], fresh=self.done == 0)
        self.done = len(trace)
        self.transitions(moves)
        counts = bench.emitter.counts()
        assert counts["ticks"] == len(trace)
        assert counts["not_finite"] == 0
        rejected = sum(bench.intake.rejected.values())
        assert bench.intake.accepted + rejected == bench.fed + bench.intake.rejected.get("axes", 0)

    def ticks(self, trace, fresh):
        cue, weight = trace["cue"], trace["weight"]
        # Packets keep flowing, on the grid.
        index = trace["index"]
        assert (np.diff(index) >= 1).all()
        assert (np.diff(trace["deadline"]) == np.diff(index) * round(1e9 / self.bench.profile.output.rate_hz)).all()
        # Finite, all of it: what the source lacks is the engine's speed alone.
        for name in (*MOVERS, "speed"):
            assert np.isfinite(cue[name]).all()
        # The weight.
        assert weight.min() >= 0.0
        assert weight.max() <= 1.0
        weight = np.concatenate([np.zeros(3), weight]) if fresh else weight
        if 20 * self.pace <= 0.5:
            assert np.abs(np.diff(weight)).max(initial=0.0) <= 15 / 8 * self.pace * (1 + 1e-9)
            assert np.abs(np.diff(weight, 2)).max(initial=0.0) <= turn_of(self.pace) * self.pace**2
        # Neutral is neutral.
        for name in MOVERS:
            assert not cue[name][trace["state"] == State.OFFLINE].any()
        # The limits.
        assert broken(cue, self.bounds, self.dt, fresh) == []

    def transitions(self, moves):
        for move in moves:
            assert move["from"] == self.at
            assert (move["from"], move["to"]) in MOVES
            reasons = REASONS[move["from"], move["to"]]
            assert move["reason"] in reasons or ("(the input's)" in reasons and move["reason"] in OF_INPUT)
            assert math.isfinite(move["value"])
            assert math.isfinite(move["limit"])
            self.at = move["to"]
        if self.done:
            assert self.bench.state == self.at
