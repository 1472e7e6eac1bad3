"""Nothing jolts: for any input, in any state, for any operator action, every tick's output keeps its bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from trouble_helpers import BOUNDED, MOVERS, Bench, Checker, driven

from motioncue.sources.city_car_driving.packets import FRAME

pytestmark = pytest.mark.search

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
    """A simulator, a network and an operator with arbitrary behavior."""

    overrides: tuple = ()
    profile = "ccd-dk"
    checker = Checker

    @initialize(
        stalls=st.lists(st.sampled_from([0, 0, 0, 1_000_000, 3_000_030, 40_000_000, 700_000_000]), max_size=200),
        hold_s=st.sampled_from([0.02, 0.1, 0.5]),
        fade_s=st.sampled_from([0.1, 0.3, 1.0]),
    )
    def begin(self, stalls, hold_s, fade_s):
        self.bench = Bench(
            f"supervisor.hold_s={hold_s}", f"supervisor.fade_s={fade_s}", *self.overrides,
            profile=self.profile, stalls=stalls, trace=80_000,
        )  # fmt: skip
        self.check = self.checker(self.bench)
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
        """Shake the car up to the largest plausible acceleration."""
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
        self.bench.intake.feed(package(self.place)[:cut], self.bench.now)
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
        """Neutral is reached within 1.2 fades plus the limits' time, whatever still comes in."""
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
        """Stop ends within a bounded time, in any state; then the ticks are let go.

        Hypothesis and a machine refer to each other, so its bench of 23 MB would else stay until it is collected.
        """
        if not hasattr(self, "bench"):
            return
        bench, check, settling = self.bench, self.check, self.settling()
        del self.bench, self.check
        bench.emitter.stop()
        bench.emitter.engage()
        before = bench.emitter.counts()["ticks"]
        most = math.ceil(1.2 / check.pace) + 2 + settling
        bench.emitter.run(ticks=most + 100)
        assert bench.emitter.counts()["ticks"] - before <= most
        check()
        assert not any(bench.emitter.newest()["cue"][name][0] for name in MOVERS)


class BoundedTrouble(Trouble):
    overrides = BOUNDED


class WashoutTrouble(Trouble):
    profile = "ccd-dk-classical"


class BoundedWashoutTrouble(Trouble):
    profile = "ccd-dk-classical"
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


def troubled(plan, profile, hold_s, fade_s, bridge="predict"):
    """Return the bench after a drive whose attitude is smooth within an event and jumps at some."""
    overrides = f"supervisor.hold_s={hold_s}", f"supervisor.fade_s={fade_s}", f"source.bridge={bridge}"
    bench = Bench("limits=none", *overrides, profile=profile).connect()  # bounds would hide a step
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
            now["place"] += 15.0 * size  # the car has driven on, and turned over in between
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


@pytest.mark.parametrize("bridge", ["hold", "linear", "predict"])
@settings(deadline=None, max_examples=100)
@given(plan=st.lists(events, max_size=14), hold_s=st.sampled_from([0.05, 0.1]), fade_s=st.sampled_from([0.3, 1.0]))
def test_roll_and_pitch_of_the_body_never_step(bridge, plan, hold_s, fade_s):
    # What is sent is w (m + left d): weight w, motion m, and at most three differences d of up to twice the largest
    # angle being joined, one within another.  w and left move by at most 15/8 of a pace a tick, m by what the car did
    # between two frames it was not joined over: swings at 0.1 rad/s for no longer than a motion is held.
    bench = troubled(plan, "ccd-dk", hold_s, fade_s, bridge)
    pace = 3_000_030e-9 / fade_s
    largest = 1.06
    for name in ("roll", "pitch"):
        steps = np.abs(np.diff(bench.trace["cue"][name]))
        assert steps.max() <= 15 / 8 * pace * (largest + 2 * 2 * largest) + 0.1 * (hold_s + 0.05)
        # Without the car's own motion, because frames are held in between: only fades move anything.
        if bridge != "hold":
            continue
        still = (np.diff(bench.trace["motion"]["time"]) == 0) & (np.diff(bench.trace["index"]) == 1)
        assert steps[still].max() <= 15 / 8 * pace * (largest + 2 * 2 * largest)


@settings(deadline=None, max_examples=100)
@given(plan=st.lists(events, max_size=14), fade_s=st.sampled_from([0.3, 1.0]))
def test_the_pose_of_the_washout_never_steps(plan, fade_s):
    bench = troubled(plan, "ccd-dk-classical", 0.1, fade_s)
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
    bench = Bench("limits=none").connect()
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
    bench = Bench("limits=none").connect()
    frame = package(30.0, 0.14, velocity=(0.0, 0.0, 10.0))
    for i in range(120):
        bench.run(1 / 60)
        bench.feed(package(30.0 - (120 - i) / 6, 0.14, velocity=(0.0, 0.0, 10.0)))
    for _ in range(50):
        bench.run(1 / 60)
        bench.feed(frame)
    for i in range(240):  # a join has the slope of a fade and an exponential tail
        bench.run(1 / 60)
        bench.feed(package(31.0 + i / 6, -0.9, velocity=(0.0, 0.0, 10.0)))
    assert bench.intake.discontinuities == {}
    roll = bench.trace["cue"]["roll"]
    assert roll[-1] == pytest.approx(-0.9, abs=1e-6)
    assert np.abs(np.diff(roll)).max() <= 15 / 8 * 3_000_030e-9 * 1.04 * 1.01


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
@pytest.mark.parametrize(("bridge", "apart"), [("hold", 0.0), ("predict", 1e-6)])  # times are whole nanoseconds
def test_after_a_discontinuity_the_cue_is_that_of_a_fresh_start(profile, bridge, apart):
    # Filters start from rest at the first tick after neutral, without a trace of the motion before.
    frames = driven("tour", 60)
    before, after = frames[900:1100], frames[1500:2100]
    one = Bench("limits=none", f"source.bridge={bridge}", profile=profile).connect()
    one.play(before, np.arange(len(before)) / 60)
    one.run(1 / 60)
    jumped = one.now
    one.play(after, np.arange(len(after)) / 60)
    moves = one.transitions()
    assert ("RUNNING", "PARKING", "teleport") in [(move["from"], move["to"], move["reason"]) for move in moves]
    (began,) = [move["time"] for move in moves if move["from"] == "OFFLINE" and move["time"] > jumped]
    # Another pipeline that waits at neutral until the same tick.
    two = Bench("limits=none", f"source.bridge={bridge}", profile=profile).connect()
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
        np.testing.assert_allclose(mine["cue"][name], fresh["cue"][name], rtol=0, atol=apart)
