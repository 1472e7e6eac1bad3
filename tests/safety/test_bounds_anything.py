"""Whatever bytes a simulator sends and whenever, whatever the operator does: every packet keeps the default bounds."""

import math
import socket

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits_rig import PERIOD, START, numbers_of, packages_of, profiles, unwatched
from trouble_helpers import MOVERS, broken

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline
from motioncue.output import dk
from motioncue.platforms import build as platforms
from motioncue.sources import by_profile
from motioncue.transports.endpoint import open_sender

pytestmark = pytest.mark.search

DT = PERIOD * 1e-9
SENT = MOVERS[:9]  # channels in a packet of DK
SINGLE = 2.0**-23

VALUES = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e30, -1e30, 79.0, -79.0, 10.4, -10.4, math.pi, 1e-40, 3e4]),
    st.floats(-100, 100, width=32),
    st.floats(width=32),
)
EVENTS = st.one_of(
    st.tuples(st.just("drive"), st.integers(1, 60)),
    st.tuples(st.just("corrupt"), st.tuples(st.integers(0, 400), VALUES, st.integers(1, 30))),
    st.tuples(st.just("shake"), st.tuples(st.integers(0, 400), st.floats(0, 80), st.integers(2, 40))),
    st.tuples(st.just("bytes"), st.binary(max_size=400)),
    st.tuples(st.just("jump"), st.integers(0, 3000)),
    st.tuples(st.just("repeat"), st.integers(1, 90)),
    st.tuples(st.just("burst"), st.integers(2, 30)),
    st.tuples(st.just("silence"), st.sampled_from([0.004, 0.03, 0.09, 0.2, 0.7, 1.6])),
    st.tuples(st.just("sleep"), st.sampled_from([1, 3_000_030, 90_000_000, 2_000_000_000])),
    st.tuples(st.just("reconnect"), st.none()),
    st.tuples(st.just("operate"), st.sampled_from(["engage", "engage", "hold", "park"])),
)


class Wire:
    """A platform's socket: what the emitter sent, packet by packet."""

    def __init__(self, emitter):
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiver.bind(("127.0.0.1", 0))
        self.receiver.settimeout(30)
        self.sender, address = open_sender(f"udp://127.0.0.1:{self.receiver.getsockname()[1]}")
        stream = dk.STREAMS["motion"]
        emitter.add_output(self.sender, address, stream.table(), stream.packet.encode(stream.defaults))
        self.emitter, self.packets = emitter, []

    def receive(self):
        """Take what has been sent since the last time; a socket has room for a few hundred packets."""
        while len(self.packets) < self.emitter.counts()["ticks"]:
            self.packets.append(self.receiver.recv(4096))

    def close(self):
        for end in (self.sender, self.receiver):
            end.close()


class Simulator:
    """A pipeline under arbitrary events; `wire` is where its platform listens."""

    def __init__(self, system, profile, wire):
        self.system = system
        self.paced = packages_of(system, "tour", 60.0)
        self.packages = [package for _, package, *_ in self.paced]
        self.clock = FakeClock(START)
        self.pipeline = Pipeline(profile, self.clock, trace=40_000)
        self.wire = Wire(self.pipeline.emitter) if wire else None
        self.now, self.place, self.last = START, 1, [self.packages[0]]
        self.reconnect(None)

    def run(self, seconds):
        """Let time pass, at most 100 packets at a time."""
        end = self.now + round(seconds * 1e9)
        while self.now < end:
            self.now = max(min(end, self.now + 100 * PERIOD), self.clock.now_ns())
            self.pipeline.emitter.run(until_ns=self.now)
            if self.wire:
                self.wire.receive()

    def send(self, package):
        self.last = [*self.last[-4:], package]
        self.pipeline.intake.feed(package, self.now)

    def next(self):
        self.place = (self.place + 1) % len(self.packages) or 1
        return self.packages[self.place]

    def drive(self, n):
        for _ in range(n):
            self.run(1 / 60)
            self.send(self.next())

    def numbers(self):
        """Return where the next motion package has its numbers."""
        while not (self.packages[self.place] and self.paced[self.place].motion):
            self.next()
        return numbers_of(self.system, self.packages[self.place])

    def overwritten(self, number, value):
        """Return the next motion package with one of its numbers, in turn, `value`; an integer's nearest to it."""
        numbers = self.numbers()
        offset, dtype = numbers[number % len(numbers)]
        if dtype.kind != "f":
            info = np.iinfo(dtype)
            value = int(min(max(0.0 if math.isnan(value) else value, info.min), info.max))
        with np.errstate(over="ignore"):
            return self.replaced(offset, np.array(value, dtype).tobytes())

    def replaced(self, offset, number):
        """Return the package whose turn it is with these bytes instead of a number, and go on to the next."""
        described = by_profile(self.system)
        plain = bytes if described is None else described.plain  # the same cipher both ways
        data = bytearray(plain(self.packages[self.place]))
        data[offset : offset + len(number)] = number
        self.next()
        return plain(bytes(data))

    def corrupt(self, wrong):
        number, value, n = wrong
        for _ in range(n):
            self.run(1 / 60)
            self.send(self.overwritten(number, value))

    def shake(self, wrong):
        number, size, n = wrong
        for i in range(n):
            self.run(1 / 60)
            self.send(self.overwritten(number, size * (-1.0) ** i))

    def stale(self, wrong):
        """Send a package with one number, the clock for one, that of some packages before."""
        number, ago = wrong
        numbers, described = self.numbers(), by_profile(self.system)
        offset, dtype = numbers[number % len(numbers)]
        before = [at for at in range(self.place) if self.packages[at] and self.paced[at].motion][-ago:]
        old = self.packages[before[0]] if described is None else described.plain(self.packages[before[0]])
        self.run(1 / 60)
        self.send(self.replaced(offset, old[offset : offset + dtype.itemsize]))

    def bytes(self, data):
        self.send(data)

    def jump(self, places):
        self.place = (self.place + places) % len(self.packages)
        self.drive(3)

    def repeat(self, n):
        for i in range(n):
            self.run(1 / 60)
            self.pipeline.intake.feed(self.last[i % len(self.last)], self.now)

    def burst(self, n):
        """The sender stalls, then sends the delayed packages at once."""
        self.run(n / 60)
        for _ in range(n):
            self.run(3e-4)
            self.send(self.next())

    def silence(self, seconds):
        self.run(seconds)

    def sleep(self, ns):
        """The machine sleeps."""
        self.clock.advance(ns)

    def reconnect(self, _):
        self.pipeline.intake.begin(self.now)
        self.send(self.packages[0])

    def operate(self, what):
        getattr(self.pipeline.emitter, what)()


def cues_of(packets):
    """Return the contents of packets, an array with a field for each channel."""
    return np.frombuffer(b"".join(packets), dk.MOTION.dtype)


def keeps_the_bounds(system, profile, plan, wire):
    """Fail unless every tick, and every packet if there is a wire, keeps the profile's bounds."""
    simulator = Simulator(system, profile, wire)
    try:
        simulator.drive(90)
        for kind, size in plan:
            getattr(simulator, kind)(size)
        simulator.now = simulator.clock.now_ns()  # later than the packages, if the machine has slept
        simulator.pipeline.emitter.stop()
        simulator.run(4.0)
    finally:
        if wire:
            simulator.wire.close()
    trace, bounds = simulator.pipeline.emitter.trace, profile.bounds()
    assert list(bounds) == MOVERS
    assert broken(trace["cue"], bounds, DT) == []
    assert not any(trace["cue"][name][-1] for name in MOVERS)
    if profile.platform is not None:
        for leg, (low, high, speed, acceleration, _) in zip(
            trace["actuators"].T, platforms.build(profile.platform).bounds, strict=False
        ):
            assert low <= leg.min()
            assert leg.max() <= high
            assert np.abs(np.diff(leg)).max() <= speed * DT * (1 + 1e-9)
            assert np.abs(np.diff(leg, 2)).max() <= acceleration * DT**2 * (1 + 1e-6)
    if wire:
        sent = cues_of(simulator.wire.packets)
        assert len(sent) == len(trace)
        assert broken(sent, {name: bounds[name] for name in SENT}, DT, rounding=SINGLE) == []
        up = np.stack([sent[name].astype(np.float64) for name in ("up_x", "up_y", "up_z")], axis=1)
        np.testing.assert_allclose(up, up_of(*(sent[name].astype(np.float64) for name in SENT[3:6])), rtol=0, atol=4e-7)


def up_of(roll, pitch, yaw):
    """Return the up axis of attitudes in world axes east, north, up: minus the third column of R(z-y-x)."""
    north = np.cos(roll) * np.sin(pitch) * np.cos(yaw) + np.sin(roll) * np.sin(yaw)
    east = np.cos(roll) * np.sin(pitch) * np.sin(yaw) - np.sin(roll) * np.cos(yaw)
    return np.stack([-east, -north, np.cos(roll) * np.cos(pitch)], axis=1)


WRONG = (math.nan, math.inf, -math.inf, 1e30, -1e30, 5e-324, 1e-40, 0.0, 79.0, 24.0, -3.1)


@pytest.mark.parametrize("load", [motioncue.load_profile, unwatched])
@pytest.mark.parametrize(("system", "name"), profiles())
def test_each_number_of_a_packet_wrong_once_and_for_a_while_keeps_the_default_bounds(system, name, load):
    """At whatever offset: not a number, infinite, huge, large, next to zero, zero; and as it was some frames before."""
    profile = load(name, "supervisor.fade_s=0.2")
    count = len(Simulator(system, profile, False).numbers())
    for value in WRONG:
        plan = []
        for number in range(count):
            plan += [("corrupt", (number, value, 1)), ("drive", 12), ("corrupt", (number, value, 20)), ("drive", 36)]
        keeps_the_bounds(system, profile, plan, wire=False)
    for ago in (1, 2, 7, 18):
        plan = [step for number in range(count) for step in (("stale", (number, ago)), ("drive", 6 + ago))]
        keeps_the_bounds(system, profile, plan, wire=False)


@pytest.mark.parametrize(("system", "name"), profiles())
@settings(deadline=None, max_examples=60)
@given(
    plan=st.lists(EVENTS, max_size=12),
    bridge=st.sampled_from(["hold", "linear", "predict"]),
    load=st.sampled_from([motioncue.load_profile, unwatched]),
    fade_s=st.sampled_from([0.1, 1.0]),
)
def test_every_tick_keeps_the_default_bounds_of_every_built_in_profile(system, name, plan, bridge, load, fade_s):
    profile = load(name, f"source.bridge={bridge}", f"supervisor.fade_s={fade_s}")
    keeps_the_bounds(system, profile, plan, wire=False)


@pytest.mark.rt
@pytest.mark.parametrize(("system", "name"), [pair for pair in profiles() if "hexapod" not in pair[1]])  # DK's packets
@settings(deadline=None, max_examples=15)
@given(plan=st.lists(EVENTS, max_size=6), load=st.sampled_from([motioncue.load_profile, unwatched]))
def test_every_packet_keeps_them_and_its_up_axis_belongs_to_the_attitude_it_holds(system, name, plan, load):
    keeps_the_bounds(system, load(name), plan, wire=True)
