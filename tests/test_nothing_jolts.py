"""Nothing jolts: whatever arrives, in any state, whatever the operator does, every tick's output keeps its bounds."""

import gc
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from trouble_helpers import BOUNDED, MOVERS, START, Bench, driven

from motioncue.kernels.supervisor import TABLE, State
from motioncue.protocols.city_car_driving import FRAME
from motioncue.protocols.dk import MOTION
from motioncue.runtime.engine import TRANSITIONS, Engine
from motioncue.virtual.city_car_driving import Simulator
from motioncue.virtual.city_car_driving import driven as driven_packages

EPS = np.finfo(np.float64).eps
FRAME_NS = 16_666_667
MOVES = {(state, to) for state, _, to, _ in TABLE}
REASONS = {(state, to): {r[3] for r in TABLE if (r[0], r[2]) == (state, to)} for state, to in MOVES}
OF_INPUT = {
    "teleport", "impossible_acceleration", "impossible_rate", "frame_time_jump", "frozen", "paused", "reconnect",
    "input_lost",
}  # fmt: skip


def turn_of(pace):
    """Return the largest second difference of the weight, in pace^2.

    w = x^3 (10 - 15 x + 6 x^2) has slope at most 15/8 and curvature at most 10/sqrt(3).  The position's velocity
    follows +-pace through a critically damped lag L = 20 pace, so its acceleration is at most pace 2 L/e whatever the
    pattern (the integral of |L^2 (1 - L t) exp(-L t)|); explicit steps of the lag overshoot that by up to L.  Beside
    an end, where the velocity jumps, w is 10 x^3: 80 pace more.
    """
    return (15 / 8 * 40 / math.e) * (1 + 20 * pace) + 10 / math.sqrt(3) + 80 * pace


class Checker:
    """What must hold at every tick, over the ticks since the last call."""

    def __init__(self, bench):
        self.bench = bench
        self.done = 0
        profile = bench.profile
        self.pace = min(1.0, round(1e9 / profile.output.rate_hz) * 1e-9 / profile.source.fade_s)
        self.dt = round(1e9 / profile.output.rate_hz) * 1e-9
        self.bounds = profile.limits.bounds()
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
        rejected = sum(bench.session.rejected.values())
        assert bench.session.accepted + rejected == bench.fed + bench.session.rejected.get("axes", 0)

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
        for name, bounds in self.bounds.items():
            path = np.concatenate([np.zeros(3), cue[name]] if fresh else [cue[name]]).astype(np.longdouble)
            for order, bound in enumerate(bounds):
                if bound is not None:
                    worst = np.abs(np.diff(path, order)).max(initial=0.0)
                    assert worst <= bound * self.dt**order * (1 + 4 * EPS) + 2**order * EPS * bounds[0], (name, order)

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


# ---- a simulator that does anything ----------------------------------------------------------------------------------


def package(place=0.0, roll=0.0, pitch=0.0, heading=0.0, **fields):
    """Return a frame of a car at `place` along +Z: heading, pitch, roll applied in that order [rad]."""
    cy, sy = math.cos(heading / 2), math.sin(heading / 2)
    cp, sp = math.cos(-pitch / 2), math.sin(-pitch / 2)
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    # About Y up, then X left, then Z forward: q = qy qx qz.
    w, x, y, z = cy * cp, cy * sp, sy * cp, -sy * sp
    q = (w * 0 + x * cr + y * sr, y * cr - x * sr, w * sr + z * cr, w * cr - z * sr)
    return FRAME.encode({"frame_time": 1 / 60, "orientation": q, "position": (0.0, 0.0, place), **fields})


anything = st.one_of(
    st.floats(width=32),
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e30, -1e-40, 79.0, -79.0, 499.0]),
    st.floats(-100, 100, width=32),
)
NUMBERS = [
    (name, index)
    for name in ("frame_time", "position", "orientation", "velocity", "acceleration", "angular_velocity",
                 "angular_acceleration")
    for index in range(FRAME.dtype[name].shape[0] if FRAME.dtype[name].shape else 1)
]  # fmt: skip


class Trouble(RuleBasedStateMachine):
    """A simulator, a network and an operator who all do what they like."""

    overrides: tuple = ()
    profile = "ccd-dk"

    @initialize(
        stalls=st.lists(st.sampled_from([0, 0, 0, 1_000_000, 3_000_030, 40_000_000, 700_000_000]), max_size=200),
        hold_s=st.sampled_from([0.02, 0.1, 0.5]),
        fade_s=st.sampled_from([0.1, 0.3, 1.0]),
    )
    def begin(self, stalls, hold_s, fade_s):
        self.bench = Bench(
            f"source.hold_s={hold_s}", f"source.fade_s={fade_s}", *self.overrides, profile=self.profile, stalls=stalls,
            trace=80_000,
        )  # fmt: skip
        self.check = Checker(self.bench)
        self.place = 0.0
        self.last = []
        self.began = 0
        self.stopped = False

    def send(self, data):
        """Feed one package, kept for repeats."""
        self.last = [*self.last[-4:], data]
        self.bench.feed(data)

    @rule(reconnects=st.booleans())
    def connect(self, reconnects):
        if not self.began or reconnects:
            self.bench.connect()
            self.began += 1

    @rule(n=st.integers(1, 60), a=st.floats(-12, 12), roll=st.floats(-0.3, 0.3), interval=st.sampled_from([7, 16, 33]))
    def drive(self, n, a, roll, interval):
        """Drive on, smoothly."""
        for i in range(n):
            self.bench.run(interval * 1e-3)
            self.place += 15.0 * interval * 1e-3
            share = math.sin(math.pi * i / n)
            self.send(
                package(self.place, roll * share, velocity=(0.0, 0.0, 15.0), acceleration=(0.0, a * share, -a * share))
            )

    @rule(field=st.sampled_from(NUMBERS), value=anything, n=st.integers(1, 3))
    def corrupt(self, field, value, n):
        """Send a good frame with one number replaced."""
        data = bytearray(package(self.place, velocity=(0.0, 0.0, 15.0)))
        offset, dtype = FRAME.where(*field)
        with np.errstate(over="ignore"):
            data[offset : offset + dtype.itemsize] = np.array(value, dtype).tobytes()
        for _ in range(n):
            self.send(bytes(data))

    @rule(jump=st.floats(-1e4, 1e4), roll=st.floats(-3, 3), pitch=st.floats(-1.5, 1.5), heading=st.floats(-3, 3))
    def teleport(self, jump, roll, pitch, heading):
        self.place += jump
        self.send(package(self.place, roll, pitch, heading, velocity=(0.0, 0.0, 15.0)))

    @rule(n=st.integers(1, 40), size=st.floats(0, 79), seed=st.integers(0, 999), flip=st.booleans())
    def burst(self, n, size, seed, flip):
        """Shake the car as hard as may be believed."""
        rng = np.random.default_rng(seed)
        for i in range(n):
            self.bench.run(0.016)
            a = size * ((-1.0) ** i if flip else rng.uniform(-1, 1)) / math.sqrt(3)
            rates = tuple(rng.uniform(-6, 6, 3))
            self.place += 15 * 0.016
            self.send(package(self.place, velocity=(0.0, 0.0, 15.0), acceleration=(a, a, a), angular_velocity=rates))

    @rule(back=st.integers(1, 4), n=st.integers(1, 90))
    def repeat(self, back, n):
        """Send old frames again."""
        for _ in range(n if self.last else 0):
            self.bench.run(0.016)
            self.bench.feed(self.last[-min(back, len(self.last))])

    @rule(order=st.permutations(range(4)))
    def reorder(self, order):
        frames = [package(self.place + 0.25 * i, velocity=(0.0, 0.0, 15.0)) for i in range(4)]
        for i in order:
            self.bench.run(0.004)
            self.send(frames[i])

    @precondition(lambda self: self.began)
    @rule(cut=st.integers(3, 106))
    def cut(self, cut):
        """The simulator dies within a package and comes back."""
        self.bench.session.feed(package(self.place)[:cut], self.bench.now)
        self.bench.connect()

    @rule(seconds=st.sampled_from([0.003, 0.03, 0.06, 0.12, 0.4, 1.3]))
    def silence(self, seconds):
        self.bench.run(seconds)

    @rule(ns=st.sampled_from([1, 3_000_030, 90_000_000, 2_000_000_000]))
    def clock_jumps(self, ns):
        """The machine sleeps."""
        self.bench.clock.advance(ns)

    @rule(what=st.sampled_from(["engage", "engage", "hold", "park"]), ticks=st.integers(0, 20))
    def operate(self, what, ticks):
        self.bench.run(ticks * 0.003)
        getattr(self.bench.emitter, what)()

    @rule()
    def park_and_wait(self):
        """Neutral is reached within 1.2 fades and what the limits need, whatever still comes in."""
        self.bench.emitter.park()
        fade = math.ceil(1.2 / self.check.pace) + 2
        self.bench.emitter.run(ticks=fade)
        assert self.bench.emitter.newest()["weight"][0] == 0.0
        self.bench.emitter.run(ticks=self.settling())
        self.bench.now = max(self.bench.now, self.bench.clock.now_ns())
        assert self.bench.state == "OFFLINE"
        assert not any(self.bench.emitter.newest()["cue"][name][0] for name in MOVERS)
        self.bench.emitter.engage()

    def settling(self):
        """Return in how many ticks every limit has settled: see test_limiter.way_back."""
        longest = 2
        for bounds in self.check.bounds.values():
            filled = []
            for order, bound in enumerate(bounds):
                step = math.inf if bound is None else bound * self.check.dt**order
                filled.append(step if not filled else min(step, 2 * filled[-1]))
            x, v, a, j = filled
            ticks = 2 * x / v + 2 * v / a + 2 * a / j + 6 * (2 * x / j) ** (1 / 3) + 6 * (2 * x / a) ** 0.5 + 12
            longest = max(longest, math.ceil(ticks))
        return longest

    @invariant()
    def every_tick_keeps_everything(self):
        if hasattr(self, "bench"):
            self.bench.now = max(self.bench.now, self.bench.clock.now_ns())
            self.check()

    def teardown(self):
        """Stop ends, from wherever this is, in bounded time."""
        if not hasattr(self, "bench"):
            return
        self.bench.emitter.stop()
        self.bench.emitter.engage()
        before = self.bench.emitter.counts()["ticks"]
        most = math.ceil(1.2 / self.check.pace) + 2 + self.settling()
        self.bench.emitter.run(ticks=most + 100)
        assert self.bench.emitter.counts()["ticks"] - before <= most
        self.check()
        assert not any(self.bench.emitter.newest()["cue"][name][0] for name in MOVERS)


class BoundedTrouble(Trouble):
    overrides = BOUNDED


class WashoutTrouble(Trouble):
    profile = "ccd-dk-washout"


class BoundedWashoutTrouble(Trouble):
    profile = "ccd-dk-washout"
    overrides = BOUNDED


HARD = settings(deadline=None, max_examples=60, stateful_step_count=25)
for machine in (Trouble, BoundedTrouble, WashoutTrouble, BoundedWashoutTrouble):
    machine.TestCase.settings = HARD
TestTrouble = Trouble.TestCase
TestBoundedTrouble = BoundedTrouble.TestCase
TestWashoutTrouble = WashoutTrouble.TestCase
TestBoundedWashoutTrouble = BoundedWashoutTrouble.TestCase


# ---- positions never step --------------------------------------------------------------------------------------------

events = st.one_of(
    st.tuples(st.just("drive"), st.integers(2, 60)),
    st.tuples(st.just("jump"), st.integers(0, 999)),
    st.tuples(st.just("silence"), st.sampled_from([0.02, 0.06, 0.11, 0.3, 0.7, 1.4])),
    st.tuples(st.just("repeat"), st.integers(3, 100)),
    st.tuples(st.just("reconnect"), st.integers(0, 999)),
    st.tuples(st.just("operate"), st.sampled_from(["engage", "hold", "park"])),
    st.tuples(st.just("sleep"), st.sampled_from([0.01, 0.3, 3.0])),
)


def troubled(plan, profile, hold_s, fade_s):
    """Return the bench after a drive whose attitude is smooth within an event and jumps at some."""
    bench = Bench(f"source.hold_s={hold_s}", f"source.fade_s={fade_s}", profile=profile).connect()
    now = {"place": 0.0, "time": 0.0, "roll": 0.2, "pitch": -0.1}

    def send():
        # Attitude swings at up to 0.1 rad/s and says so: body rates of small angles.
        swing = 0.05 * math.sin(2.0 * now["time"]), 0.1 * math.cos(2.0 * now["time"])
        bench.feed(
            package(
                now["place"], now["roll"] + swing[0], now["pitch"], velocity=(0.0, 0.0, 15.0),
                acceleration=(0.0, 0.5, 20.0 * swing[0]), angular_velocity=(0.0, 0.0, swing[1]),
            )
        )  # fmt: skip

    def drive(n):
        for _ in range(n):
            bench.run(1 / 60)
            now["place"] += 0.25
            now["time"] += 1 / 60
            send()

    drive(80)
    for kind, size in plan:
        if kind in ("jump", "reconnect"):
            rng = np.random.default_rng(size)
            now.update(
                place=float(rng.uniform(-1e4, 1e4)), roll=float(rng.uniform(-1, 1)), pitch=float(rng.uniform(-1, 1))
            )
            if kind == "reconnect":
                bench.connect()
            send()
        elif kind == "silence":
            bench.run(size)
            now["place"] += 15.0 * size  # the car has driven on, and turned over while nobody looked
            now["time"] += size
            now["roll"] = -now["roll"] if size > hold_s else now["roll"]
        elif kind == "repeat":
            for _ in range(size):
                bench.run(1 / 60)
                send()
            now["time"] += size / 60
            now["roll"] = -now["roll"] if size / 60 > hold_s + 0.03 else now["roll"]
        elif kind == "operate":
            getattr(bench.emitter, size)()
        elif kind == "sleep":
            bench.clock.advance(round(size * 1e9))
            bench.now = bench.clock.now_ns()
        else:
            drive(size)
    bench.emitter.engage()
    drive(20)
    bench.emitter.park()
    return bench.run(2.5 * fade_s)


@settings(deadline=None, max_examples=200)
@given(plan=st.lists(events, max_size=14), hold_s=st.sampled_from([0.05, 0.1]), fade_s=st.sampled_from([0.3, 1.0]))
def test_roll_and_pitch_of_the_body_never_step(plan, hold_s, fade_s):
    # What is sent is w (m + left d): weight w, motion m, and at most three differences d of up to twice the largest
    # angle being joined, one within another.  w and left move by at most 15/8 of a pace a tick, m by what the car did
    # between two frames it was not joined over: swings at 0.1 rad/s for no longer than a motion is held.
    bench = troubled(plan, "ccd-dk", hold_s, fade_s)
    pace = 3_000_030e-9 / fade_s
    largest = 1.06
    for name in ("roll", "pitch"):
        steps = np.abs(np.diff(bench.trace["cue"][name]))
        assert steps.max() <= 15 / 8 * pace * (largest + 2 * 2 * largest) + 0.1 * (hold_s + 0.05)
        # And without the car's own: between frames only fades move anything.
        still = (np.diff(bench.trace["motion"]["time"]) == 0) & (np.diff(bench.trace["index"]) == 1)
        assert steps[still].max() <= 15 / 8 * pace * (largest + 2 * 2 * largest)


@settings(deadline=None, max_examples=100)
@given(plan=st.lists(events, max_size=14), fade_s=st.sampled_from([0.3, 1.0]))
def test_the_pose_of_the_washout_never_steps(plan, fade_s):
    bench = troubled(plan, "ccd-dk-washout", 0.1, fade_s)
    trace = bench.trace
    dt, pace = 3_000_030e-9, 3_000_030e-9 / fade_s
    # The washout's own pose moves at its own rates: angles at the sum of its body rates (attitudes stay below 0.5 rad),
    # displacements at the integral of at most 1 m/s^2 of surge and 0.5 of heave within a second, 2 m/s.
    rates = sum(np.abs(trace["cue"][name]).max() for name in ("roll_rate", "pitch_rate", "yaw_rate"))
    for name in ("roll", "pitch", "surge_displacement", "sway_displacement", "heave_displacement"):
        largest = np.abs(trace["cue"][name]).max()
        own = 1.3 * (rates if name in ("roll", "pitch") else 2.0) * dt
        assert np.abs(np.diff(trace["cue"][name])).max() <= 15 / 8 * pace * 5 * largest + own


def test_a_park_before_the_difference_of_a_gap_has_vanished_ends_without_a_step():
    # The difference is joined over a whole fade, the way to neutral from half-way takes half of one.
    bench = Bench().connect()
    for i in range(120):
        bench.run(1 / 60)
        bench.feed(package(0.25 * i, 0.15, velocity=(0.0, 0.0, 15.0)))
    bench.run(0.55)
    assert bench.state == "PARKING"
    bench.feed(package(0.25 * 120 + 15 * 0.55, -0.15, velocity=(0.0, 0.0, 15.0)))
    bench.run(0.01)
    bench.emitter.park()
    bench.run(1.3)
    assert bench.state == "OFFLINE"
    steps = np.abs(np.diff(bench.trace["cue"]["roll"]))
    assert steps.max() <= 15 / 8 * 3_000_030e-9 * (0.15 + 0.3)


def test_a_car_that_moved_on_behind_repeated_frames_is_joined_like_a_gap():
    bench = Bench().connect()
    frame = package(30.0, 0.14, velocity=(0.0, 0.0, 10.0))
    for i in range(120):
        bench.run(1 / 60)
        bench.feed(package(30.0 - (120 - i) / 6, 0.14, velocity=(0.0, 0.0, 10.0)))
    for _ in range(50):
        bench.run(1 / 60)
        bench.feed(frame)
    for i in range(90):
        bench.run(1 / 60)
        bench.feed(package(31.0 + i / 6, -0.9, velocity=(0.0, 0.0, 10.0)))
    assert bench.session.discontinuities == {}
    roll = bench.trace["cue"]["roll"]
    assert roll[-1] == pytest.approx(-0.9, abs=1e-6)
    assert np.abs(np.diff(roll)).max() <= 15 / 8 * 3_000_030e-9 * 1.04 * 1.01


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-washout"])
def test_after_a_discontinuity_the_cue_is_that_of_a_fresh_start(profile):
    # Filters begin from rest at the first tick after neutral: what came before leaves no trace.
    frames = driven("tour", 60)
    before, after = frames[900:1100], frames[1500:2100]
    one = Bench(profile=profile).connect()
    one.play(before, np.arange(len(before)) / 60)
    one.run(1 / 60)
    jumped = one.now
    one.play(after, np.arange(len(after)) / 60)
    moves = one.transitions()
    assert ("RUNNING", "PARKING", "teleport") in [(move["from"], move["to"], move["reason"]) for move in moves]
    (began,) = [move["time"] for move in moves if move["from"] == "OFFLINE" and move["time"] > jumped]
    # Another one, that waits at neutral until the same tick.
    two = Bench(profile=profile).connect()
    two.emitter.park()
    for frame, after_s in zip(after, np.arange(len(after)) / 60, strict=True):
        arrives = jumped + round(after_s * 1e9)
        if two.now < began <= arrives:
            two.run_to(began)
            two.emitter.engage()
        two.run_to(arrives)
        two.feed(frame)
    mine, fresh = one.trace[one.trace["deadline"] >= began], two.trace[two.trace["deadline"] >= began]
    for name in MOVERS:
        np.testing.assert_array_equal(mine["cue"][name], fresh["cue"][name])


# ---- an hour ---------------------------------------------------------------------------------------------------------

FAULTS = 10_000
HOUR_S = 3600


def resident():
    """Return the memory this process occupies [bytes]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Hour:
    """An hour of driving with ten thousand faults."""

    def __init__(self, bench, seed):
        self.bench = bench.connect()
        self.rng = np.random.default_rng(seed)
        self.frames = [frame.tobytes() for frame in driven("turns", 60)]
        self.place = 0
        self.sessions = 1
        self.lost = 0
        self.slept = 0
        self.injected = 0

    def frame(self):
        """Let the next frame arrive, a frame later."""
        bench = self.bench
        bench.run_to(max(bench.now + FRAME_NS, bench.clock.now_ns()))
        bench.feed(self.frames[self.place % len(self.frames)])
        self.place += 1

    def fault(self):
        """Inject one."""
        rng, bench = self.rng, self.bench
        self.injected += 1
        kind = rng.integers(10)
        if kind == 0:  # lost frames
            self.place += int(rng.integers(1, 60))
        elif kind == 1:  # silence
            bench.run(float(rng.uniform(0, 0.4)))
        elif kind == 2:  # another place
            self.place += int(rng.integers(0, 3000))
        elif kind == 3:  # a frame that is no frame
            data = bytearray(self.frames[self.place % len(self.frames)])
            offset = int(rng.integers(3, 99))
            data[offset : offset + 4] = rng.bytes(4)
            bench.feed(bytes(data))
        elif kind == 4:  # not a number
            data = bytearray(self.frames[self.place % len(self.frames)])
            offset, dtype = FRAME.where("acceleration", int(rng.integers(3)))
            data[offset : offset + 4] = np.array(rng.choice([np.nan, np.inf, -np.inf]), dtype).tobytes()
            bench.feed(bytes(data))
        elif kind == 5:  # old frames
            for _ in range(int(rng.integers(1, 20))):
                bench.feed(self.frames[(self.place - 1 - int(rng.integers(5))) % len(self.frames)])
        elif kind == 6:  # the simulator restarts
            bench.connect()
            self.sessions += 1
        elif kind == 7:  # the machine sleeps
            slept = int(rng.integers(1, 300_000_000))
            bench.clock.advance(slept)
            self.slept += slept
        elif kind == 8:
            getattr(bench.emitter, str(rng.choice(["engage", "hold", "park"])))()
        else:  # cannot be
            data = bytearray(self.frames[self.place % len(self.frames)])
            offset, dtype = FRAME.where("acceleration", 0)
            data[offset : offset + 4] = np.array(rng.uniform(81, 1900), dtype).tobytes()
            bench.feed(bytes(data))

    def go(self, seconds, each=None):
        """Drive for so long, with the share of faults that belongs to it."""
        end = self.bench.now + round(seconds * 1e9)
        due = self.injected
        share = FAULTS / HOUR_S
        began = self.bench.now
        while self.bench.now < end:
            self.frame()
            while self.injected < due + (min(self.bench.now, end) - began) * 1e-9 * share:
                self.fault()
                if self.injected % 7 == 0:
                    self.bench.emitter.engage()
            if each:
                each()

    def adds_up(self):
        """Show that nothing was lost."""
        bench = self.bench
        counts = bench.emitter.counts()
        assert bench.session.accepted + sum(bench.session.rejected.values()) == bench.fed
        assert bench.session.sessions == self.sessions
        assert bench.session.replies == bench.fed + self.sessions
        # The grid: every place is a tick or a counted skip.
        assert bench.emitter.newest()["index"][0] < counts["ticks"] + counts["skipped"]
        grid = (bench.clock.now_ns() - START) // 3_000_030
        assert abs(counts["ticks"] + counts["skipped"] - grid) <= 2
        assert counts["send_errors"] == counts["not_finite"] == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_hour_with_ten_thousand_faults_loses_nothing_and_keeps_memory_flat():
    hour = Hour(Bench(*BOUNDED, profile="ccd-dk-washout", trace=0), 1)

    def forget():
        hour.bench.session.events()
        hour.bench.transitions()

    hour.go(300, forget)
    gc.collect()
    tracemalloc.start()
    traced, occupied = tracemalloc.get_traced_memory()[0], resident()
    hour.go(HOUR_S - 300, forget)
    gc.collect()
    grown, more = tracemalloc.get_traced_memory()[0] - traced, resident() - occupied
    tracemalloc.stop()
    assert hour.injected >= FAULTS
    hour.adds_up()
    assert hour.bench.session.events_lost == 0
    kept, count = hour.bench.pipeline.transitions()
    assert len(kept) == min(count, TRANSITIONS)
    assert grown < len(kept) * 2000 + 100_000  # the transitions that are kept, and nothing else
    assert more < 32 << 20
    # The table's own reasons have all been seen but a fault's.
    assert set(hour.bench.session.discontinuities) >= {"teleport", "impossible_acceleration", "reconnect"}


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-washout"])
def test_every_tick_of_minutes_of_faults_keeps_its_bounds(profile):
    bench = Bench(*BOUNDED, profile=profile, trace=150_000)
    hour, check = Hour(bench, 2), Checker(bench)
    for _ in range(8):
        hour.go(50)
        check()
        bench.session.events()
    hour.adds_up()
    trace = bench.trace
    assert trace["index"][-1] + 1 == len(trace) + (np.diff(trace["index"], prepend=-1) - 1).sum()
    assert set(trace["state"]) == {State.OFFLINE, State.ENGAGING, State.RUNNING, State.HOLDING, State.PARKING}


# ---- others die ------------------------------------------------------------------------------------------------------

SIMULATOR = """
import sys
from motioncue.virtual.city_car_driving import Simulator, driven
Simulator(sys.argv[1], driven("turns", 60)).run()
"""

VIEWER = """
import sys
from motioncue.virtual.dk import DatagramListener
listener = DatagramListener("dk", sys.argv[1:])
print("listening", flush=True)
listener.run()
"""


def until(condition, timeout_s=30.0):
    """Wait for a fact, generously."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def free_udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def settings_for(folder, port):
    from motioncue import load_profile

    return load_profile(
        "ccd-dk", f"source.endpoint=unix://{folder}/s", "source.fade_s=0.5", f"output.motion=udp://127.0.0.1:{port}",
        f"output.gauges=udp://127.0.0.1:{free_udp_port()}",
    )  # fmt: skip


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
def test_every_transition_is_logged_once_however_often_statistics_are_asked_for(tmp_path, caplog):
    caplog.set_level("DEBUG", "motioncue")
    with Engine(settings_for(tmp_path, free_udp_port())) as engine:
        simulator = Simulator(f"unix://{tmp_path}/s", driven_packages("turns", 60, 2.0))
        thread = threading.Thread(target=simulator.run, daemon=True)
        thread.start()
        while thread.is_alive():
            engine.stats()
        until(lambda: engine.stats()["state"] == "OFFLINE")
    moves = engine.stats()["transitions"]
    assert len(moves) >= 4
    said = [record.getMessage().split(" (")[0] for record in caplog.records if " to " in record.getMessage()]
    assert said == [f"{move['from'].lower()} to {move['to'].lower()}: {move['reason']}" for move in moves]


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and signals")
def test_killing_the_simulator_leads_into_the_fade_and_the_stream_goes_on(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform:
        platform.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        platform.bind(("127.0.0.1", 0))
        platform.settimeout(0.2)
        packets, ended = [], threading.Event()

        def receive():
            while not ended.is_set():
                try:
                    packets.append(platform.recv(4096))
                except TimeoutError:
                    continue

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        with Engine(settings_for(tmp_path, platform.getsockname()[1])) as engine:
            simulator = subprocess.Popen([sys.executable, "-c", SIMULATOR, f"unix://{tmp_path}/s"])
            try:
                until(lambda: engine.stats()["state"] == "RUNNING")
            finally:
                os.kill(simulator.pid, signal.SIGKILL)
                simulator.wait()
            until(lambda: engine.stats()["state"] == "OFFLINE")
            so_far = len(packets)
            until(lambda: len(packets) > so_far + 100)
            stats = engine.stats()
        ended.set()
        thread.join()
    ways = [(move["from"], move["to"]) for move in stats["transitions"]]
    assert ways[-2:] == [("HOLDING", "PARKING"), ("PARKING", "OFFLINE")] or ways[-2:] == [
        ("RUNNING", "PARKING"), ("PARKING", "OFFLINE"),
    ]  # fmt: skip
    decoded = np.frombuffer(b"".join(packets), MOTION.dtype)
    for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
        assert np.isfinite(decoded[name]).all()
        assert not decoded[name][-50:].any()
    assert stats["send_errors"] == 0


@pytest.mark.rt
@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and signals")
def test_killing_the_viewer_changes_nothing_for_the_engine(tmp_path):
    port = free_udp_port()
    viewer = subprocess.Popen(
        [sys.executable, "-c", VIEWER, f"udp://127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True
    )
    assert viewer.stdout is not None
    assert viewer.stdout.readline().strip() == "listening"
    with Engine(settings_for(tmp_path, port)) as engine:
        simulator = subprocess.Popen([sys.executable, "-c", SIMULATOR, f"unix://{tmp_path}/s"])
        try:
            until(lambda: engine.stats()["state"] == "RUNNING")
            os.kill(viewer.pid, signal.SIGKILL)
            viewer.wait()
            viewer.stdout.close()
            frames, packets = engine.stats()["frames_received"], engine.stats()["packets_sent"]
            # The port is closed now: the system may refuse datagrams, the engine counts and goes on.
            until(lambda: engine.stats()["packets_sent"] > packets + 300)
            until(lambda: engine.stats()["frames_received"] > frames + 30)
            # Another platform at the same port is served again.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform:
                platform.bind(("127.0.0.1", port))
                platform.settimeout(30)
                assert len(platform.recv(4096)) == MOTION.size
            os.kill(simulator.pid, signal.SIGKILL)
            simulator.wait()
            until(lambda: engine.stats()["state"] == "OFFLINE")
        finally:
            simulator.kill()
            simulator.wait()
    stats = engine.stats()
    assert stats["datagrams_sent"] + stats["send_errors"] == 2 * stats["packets_sent"]  # motion and gauges
    assert all(move["to"] != "FAULT" for move in stats["transitions"])
