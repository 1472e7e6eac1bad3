"""The supervisor's table: every rule reached through the emitter, every combination defined, no way round a fault."""

import itertools
import math

import numpy as np
import pytest
from trouble_helpers import MOVERS, START

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.core.table import Watch
from motioncue.cueing import design
from motioncue.engine.emitter import Emitter
from motioncue.engine.tick import Settings
from motioncue.frames.convert import BodyStage
from motioncue.frames.intake import Session
from motioncue.safety.limiter import CueLimits
from motioncue.safety.supervisor import TABLE, State
from motioncue.wire.packet import Field, Message, Packet, Take, vector

PERIOD = 3_000_030
HOLD_S, FADE_S, FRAME_S = 0.1, 1.0, 1 / 60

# A simulator whose document states no limits, so that its values may be too large for a finite sum.
LOOSE = Packet(
    "loose",
    3 + 17 * 8,
    [
        Field("size", 0, "<u2"),
        Field("type", 2, "|u1"),
        Field("frame_time", 3, "<f8"),
        Field("position", 11, "3<f8"),
        Field("orientation", 35, "4<f8"),
        Field("velocity", 67, "3<f8"),
        Field("acceleration", 91, "3<f8"),
        Field("angular_velocity", 115, "3<f8"),
    ],
    {"size": 3 + 17 * 8, "type": 2},
)
AXES = Packet("axes", 3, [Field("size", 0, "<u2"), Field("type", 2, "|u1")], {"size": 3, "type": 1})

# Direct: three accelerations, each a number, whose sum overflows at once.
TOO_LARGE = (-1.2e308, 1.2e308, 1.2e308)
# A washout that returns so slowly that displacement grows as a t^2/2: with a = 1.4e308 m/s^2 the sum of the channels
# passes the largest double, 1.8e308, 0.75 s after a step, whatever comes in meanwhile.
LATE_LARGE = (0.0, 0.0, 1.4e308)
SLOW = [
    f"cueing.{axis}.{key}"
    for axis in ("surge", "sway", "heave")
    for key in ("cutoff_hz=0.01", "order=2", "gain=1.0", "limit_m_s2=1.79e308")
]


class Rig:
    """An emitter on a fake clock, fed by a simulator without limits."""

    def __init__(self, *overrides, profile="ccd-dk", fade_s=FADE_S, hold_s=HOLD_S, limits=None, engage_s=0.0):
        settings = motioncue.load_profile(profile, *overrides)
        takes = [
            Take("frame_duration", 0, "frame_time"),
            *vector("orientation", "orientation", (3, 0, 1, 2)),
        ]
        for name in ("position", "velocity", "acceleration", "angular_velocity"):
            takes += vector(name, name)
        messages = Message(AXES, "axes"), Message(LOOSE, "motion", takes)
        self.intake = Session([message.compiled() for message in messages], BodyStage())
        self.intake.watch(
            Watch(
                max_acceleration_m_s2=math.inf,
                max_rate_deg_s=math.inf,
                max_acceleration_step_m_s2=math.inf,
                velocity_error_m_s=math.inf,
            )
        )
        self.clock = FakeClock(START)
        algorithm = design(settings.cueing, 1e9 / PERIOD)
        designed = Settings(algorithm, limits, period_ns=PERIOD, hold_s=hold_s, fade_s=fade_s, engage_s=engage_s)
        self.emitter = Emitter(self.intake, designed, self.clock, trace=20_000)
        self.now = START
        self.place = 0.0
        self.log = []
        self.intake.begin(START)
        self.intake.feed(AXES.encode(), START)

    def feed(self, place=None, acceleration=(0.0, 0.0, 1.0)):
        """Let a frame of a car at 20 m/s arrive now."""
        place = self.place if place is None else place
        fields = {"frame_time": FRAME_S, "orientation": (0.0, 0.05, 0.0, 0.99875), "velocity": (0.0, 0.0, 20.0)}
        self.fed = self.now
        self.intake.feed(
            LOOSE.encode({**fields, "position": (0.0, 0.0, place), "acceleration": acceleration}), self.now
        )
        return self

    def run(self, seconds):
        """Run without frames."""
        self.now += round(seconds * 1e9)
        self.emitter.run(until_ns=self.now)
        self.log += self.emitter.transitions()
        return self

    def ticks(self, n=2):
        """Run a few ticks without frames."""
        return self.run(n * PERIOD * 1e-9)

    def drive(self, seconds, acceleration=(0.0, 0.0, 1.0)):
        """Run with frames at 60 Hz."""
        for _ in range(round(seconds / FRAME_S)):
            self.run(FRAME_S)
            self.place += 20.0 * FRAME_S
            self.feed(acceleration=acceleration)
        return self

    def jump(self):
        """Let two frames with another position arrive, because a single one would be set aside."""
        self.place += 500.0
        return self.feed().feed()

    def repeat(self, seconds):
        """Run with the same frame again and again."""
        for _ in range(round(seconds / FRAME_S)):
            self.run(FRAME_S).feed()
        return self

    def operate(self, what):
        """Perform an operator's action."""
        getattr(self.emitter, what)()
        return self

    @property
    def state(self):
        return self.emitter.state

    @property
    def last(self):
        """The newest change of state."""
        return self.log[-1]


def engaging(**options):
    return Rig(**options).drive(0.5)


def running(*, seconds=1.5, **options):
    return Rig(**options).drive(seconds)


def holding(**options):
    return running(**options).operate("hold").ticks()


def parking(**options):
    return running(**options).operate("park").run(0.3)


def slow(seconds):
    """Return a rig with a slow washout that has had the large step for this time."""
    return Rig(*SLOW, profile="ccd-dk-classical", fade_s=0.3).drive(seconds, LATE_LARGE)


def faulted(**options):
    return running(**options).feed(acceleration=TOO_LARGE).ticks(3)


def unplugged():
    """Return a rig whose output was lost at its newest tick, as a recording says it."""
    rig = Rig().ticks()
    last = rig.emitter.trace[-1]
    rig.emitter.replay_ticks(np.array([[last["index"] + 1, last["deadline"] + PERIOD, 16]]))
    rig.log += rig.emitter.transitions()
    return rig


def unheard(rig, wanted=0):
    """Let nobody listen any more at the rig's newest tick, as a recording says it."""
    last = rig.emitter.trace[-1]
    rig.emitter.replay_ticks(np.array([[last["index"] + 1, last["deadline"] + PERIOD, wanted + 4096]]))
    rig.log += rig.emitter.transitions()
    return rig


# How to reach each rule by its state and conditions, and its reason.
ROUTES = {
    ("OFFLINE", "faulted"): (unplugged, "output_lost"),
    ("OFFLINE", "engaged fresh ready"): (lambda: Rig().feed().ticks(), "input"),
    ("ENGAGING", "faulted"): (lambda: engaging().feed(acceleration=TOO_LARGE).ticks(3), "not_finite_cue"),
    ("ENGAGING", "ended"): (lambda: engaging().operate("stop").ticks(), "end_of_run"),
    ("ENGAGING", "parked"): (lambda: engaging().operate("park").ticks(), "operator_park"),
    ("ENGAGING", "nobody"): (lambda: unheard(engaging()), "output_unheard"),
    ("ENGAGING", "broken"): (lambda: engaging().jump().ticks(), "teleport"),
    # From fresh to lost without being overdue: the whole machine slept, or the simulator repeats itself.
    ("ENGAGING", "lost"): (lambda: engaging(fade_s=3.0).repeat(1.1), "frozen"),
    ("ENGAGING", "held"): (lambda: engaging().operate("hold").ticks(), "operator_hold"),
    ("ENGAGING", "overdue"): (lambda: engaging().run(0.085), "input_overdue"),
    ("ENGAGING", "at_cue"): (running, "cue_reached"),
    ("RUNNING", "faulted"): (faulted, "not_finite_cue"),
    ("RUNNING", "ended"): (lambda: running().operate("stop").ticks(), "end_of_run"),
    ("RUNNING", "parked"): (lambda: running().operate("park").ticks(), "operator_park"),
    ("RUNNING", "nobody"): (lambda: unheard(running()), "output_unheard"),
    ("RUNNING", "broken"): (lambda: running().jump().ticks(), "teleport"),
    ("RUNNING", "lost"): (lambda: asleep(running()), "input_lost"),
    ("RUNNING", "held"): (lambda: running().operate("hold").ticks(), "operator_hold"),
    ("RUNNING", "overdue"): (lambda: running().run(0.085), "input_overdue"),
    ("HOLDING", "faulted"): (lambda: slow(0.6).operate("hold").run(0.3), "not_finite_cue"),
    ("HOLDING", "ended"): (lambda: holding().operate("stop").ticks(), "end_of_run"),
    ("HOLDING", "parked"): (lambda: holding().operate("park").ticks(), "operator_park"),
    ("HOLDING", "nobody"): (lambda: unheard(holding(), wanted=1), "output_unheard"),
    ("HOLDING", "broken"): (lambda: holding().jump().ticks(), "teleport"),
    ("HOLDING", "engaged lost"): (lambda: running().run(0.12), "input_lost"),
    ("HOLDING", "engaged fresh at_cue"): (lambda: running().run(0.06).drive(0.02).ticks(), "input_back"),
    ("HOLDING", "engaged fresh"): (lambda: engaging().run(0.06).drive(0.02).ticks(), "input_back"),
    ("PARKING", "faulted"): (lambda: slow(0.6).operate("park").run(0.25), "not_finite_cue"),
    ("PARKING", "at_neutral"): (lambda: parking().run(1.0), "neutral_reached"),
    ("PARKING", "engaged fresh"): (lambda: parking().operate("engage").drive(0.02).ticks(), "input_back"),
    ("FAULT", "reset at_neutral ready"): (lambda: faulted().operate("engage").run(1.1), "operator_engage"),
}


def asleep(rig):
    """Let the machine sleep for half a second."""
    rig.clock.advance(500_000_000)
    rig.now += 500_000_000
    return rig.ticks(3)


def key(rule):
    state, conditions, _, _ = rule
    return state, " ".join(sorted(conditions, key=ORDER.index))


ORDER = (
    "faulted",
    "reset",
    "ended",
    "parked",
    "held",
    "engaged",
    *("broken", "lost", "overdue", "fresh", "at_neutral", "at_cue", "ready", "nobody"),
)


@pytest.mark.parametrize("rule", TABLE, ids=lambda rule: f"{rule[0]}-{'-'.join(rule[1])}")
def test_every_rule_is_reached_and_gives_its_reason(rule):
    state, _, to, reason = rule
    route, expected = ROUTES[key(rule)]
    rig = route()
    assert (rig.last["from"], rig.last["to"]) == (state, to)
    assert rig.last["reason"] == expected
    if not reason.startswith("("):
        assert reason == expected
    assert rig.state == to
    # The tick that reports it is the one in which it happened, and the output stayed finite.
    trace = rig.emitter.trace
    (place,) = np.flatnonzero(trace["deadline"] == rig.last["time"])
    assert State(int(trace["state"][place])).name == to
    assert State(int(trace["state"][place - 1])).name == state or place == 0
    assert all(np.isfinite(trace["cue"][name]).all() for name in MOVERS)


def test_every_route_belongs_to_a_rule():
    assert sorted(map(key, TABLE)) == sorted(ROUTES)


@pytest.mark.parametrize("begin", [engaging, running])
def test_a_machine_that_slept_finds_its_input_lost(begin):
    rig = asleep(begin())
    assert (rig.last["to"], rig.last["reason"]) == ("PARKING", "input_lost")
    assert rig.last["value"] > rig.last["limit"] == HOLD_S


# ---- through the emitter ---------------------------------------------------------------------------------------------


def test_there_is_at_most_one_transition_a_tick():
    rig = running().jump().drive(1.5).operate("hold").run(0.2).operate("engage").drive(2.0)
    times = [move["time"] for move in rig.log]
    assert len(times) > 5
    assert len(set(times)) == len(times)
    for one, two in itertools.pairwise(rig.log):
        assert one["to"] == two["from"]


@pytest.mark.parametrize("operators", [["park"], ["hold"], ["park", "hold"], []])
def test_nothing_but_engage_ends_a_fault(operators):
    rig = faulted()
    assert rig.state == "FAULT"
    for operator in operators:
        rig.operate(operator)
        rig.drive(1.0)
    rig.drive(5.0)
    rig.intake.begin(rig.now)  # nor a new session
    rig.intake.feed(AXES.encode(), rig.now)
    rig.drive(2.0)
    assert rig.state == "FAULT"
    assert not any(rig.emitter.trace["cue"][name][-300:].any() for name in MOVERS)
    rig.operate("engage").drive(2.0)
    assert rig.state == "RUNNING"
    assert rig.emitter.counts()["not_finite"] == 1


def test_engaging_before_the_fault_is_seen_does_not_end_it():
    rig = running().feed(acceleration=TOO_LARGE).ticks(1)
    assert rig.emitter.counts()["not_finite"] == 1
    assert rig.state == "RUNNING"
    rig.operate("engage").drive(3.0)
    assert rig.state == "FAULT"


def test_a_fault_fades_from_the_last_good_cue():
    rig = running()
    before = rig.emitter.newest()["cue"][0]
    rig.feed(acceleration=TOO_LARGE).run(1.2)
    trace = rig.emitter.trace
    fading = trace[trace["state"] == State.FAULT]
    assert fading["cue"]["surge"] == pytest.approx(fading["weight"] * before["surge"], abs=1e-15)
    assert fading["cue"]["pitch"] == pytest.approx(fading["weight"] * before["pitch"], abs=1e-15)
    assert fading["weight"][-1] == 0.0


def test_whoever_engages_and_parks_during_a_fault_stays_parked():
    rig = faulted().operate("engage").operate("park").drive(3.0)
    assert rig.state == "OFFLINE"
    assert rig.operate("engage").drive(1.5).state == "RUNNING"


@pytest.mark.parametrize("begin", [Rig, engaging, running, holding, parking, faulted])
@pytest.mark.parametrize("operators", [[], ["engage"], ["hold"], ["engage", "hold", "engage"]])
def test_stop_ends_at_neutral_from_anywhere_whatever_the_operator_does_then(begin, operators):
    rig = begin()
    rig.operate("stop")
    for operator in operators:
        rig.ticks(10)
        rig.operate(operator).feed()
    before = rig.emitter.counts()["ticks"]
    rig.emitter.run(ticks=10_000)
    ticks = rig.emitter.counts()["ticks"] - before
    assert ticks * PERIOD * 1e-9 <= 1.2 * FADE_S + PERIOD * 1e-9
    assert not any(rig.emitter.newest()["cue"][name][0] for name in MOVERS)


@pytest.mark.parametrize("begin", [running, faulted])
def test_a_stop_ends_only_when_the_bounds_have_let_go_too(begin):
    # 1 m/s^2 at 0.25 m/s^3 takes four seconds, of which the fade is one.
    limits = CueLimits()
    limits.add("surge", 2.0, rate=0.25, dt=PERIOD * 1e-9)
    rig = begin(limits=limits, seconds=6.0)
    rig.operate("stop")
    before = rig.emitter.counts()["ticks"]
    rig.emitter.run(ticks=10_000)
    assert 3.0 <= (rig.emitter.counts()["ticks"] - before) * PERIOD * 1e-9 <= 4.5
    surge = rig.emitter.trace["cue"]["surge"]
    assert surge.max() == pytest.approx(1.0, abs=0.01)
    assert surge[-1] == 0.0
    assert np.abs(np.diff(surge)).max() <= 0.25 * PERIOD * 1e-9 * (1 + 1e-9)
    assert (rig.emitter.state, rig.emitter.newest()["weight"][0]) == ("FAULT" if begin is faulted else "OFFLINE", 0.0)


def test_neutral_is_reached_when_the_bounds_have_let_go_too():
    """1 m/s^2 at 0.25 m/s^3 takes four seconds, of which the fade is one."""
    limits = CueLimits()
    limits.add("surge", 2.0, rate=0.25, dt=PERIOD * 1e-9)
    rig = running(limits=limits, seconds=6.0).operate("park").run(6.0)
    assert (rig.state, rig.last["reason"]) == ("OFFLINE", "neutral_reached")
    trace = rig.emitter.trace
    (at,) = np.flatnonzero(trace["deadline"] == rig.last["time"])
    assert trace["cue"]["surge"][at - 1000] > 0.1
    assert (trace["cue"]["surge"][at:] == 0.0).all()


@pytest.mark.parametrize("begin", [engaging, running, holding])
def test_a_park_reaches_neutral_within_the_fade(begin):
    # A reversal takes a few lags of a twentieth of a fade, so the way is never longer than 1.2 fades.
    rig = begin().operate("park").drive(1.25)
    parked = next(move["time"] for move in rig.log if move["reason"] == "operator_park")
    trace = rig.emitter.trace
    neutral = trace["deadline"][(trace["deadline"] > parked) & (trace["weight"] == 0.0)][0]
    assert (neutral - parked) * 1e-9 <= 1.2 * FADE_S
    assert rig.state == "OFFLINE"


def test_a_hold_keeps_the_motion_of_its_moment_and_survives_the_input():
    rig = running().operate("hold").ticks()
    held = rig.emitter.newest()["cue"][0]
    rig.drive(0.5, acceleration=(0.0, 0.0, -5.0)).run(2.0)
    assert rig.state == "HOLDING"
    trace = rig.emitter.trace
    late = trace["cue"][trace["state"] == State.HOLDING]
    assert (late["surge"] == held["surge"]).all()
    assert (late["pitch"] == held["pitch"]).all()


def test_a_simulator_that_pauses_takes_nothing_from_an_operator_who_holds():
    rig = running().operate("hold").ticks()
    held = rig.emitter.newest()["cue"][0]
    rig.repeat(2.0)  # the same state of a moving car for longer than `frozen_s`
    assert (rig.state, rig.intake.frozen) == ("HOLDING", True)
    late = rig.emitter.trace["cue"][rig.emitter.trace["state"] == State.HOLDING]
    assert (late["surge"] == held["surge"]).all()
    rig.operate("engage").ticks()  # now it is as if no frame came
    assert rig.state == "PARKING"
    assert rig.last["reason"] == "frozen"


@pytest.mark.parametrize("hold_s", [HOLD_S, 0.4])
def test_input_is_overdue_after_three_quarters_of_the_hold_and_lost_after_all_of_it(hold_s):
    rig = running(hold_s=hold_s)
    assert rig.run(0.73 * hold_s).state == "RUNNING"
    assert rig.run(0.02 * hold_s).ticks().state == "HOLDING"
    assert rig.run(0.97 * hold_s - (rig.now - rig.fed) * 1e-9).state == "HOLDING"
    assert rig.run(0.03 * hold_s).ticks().state == "PARKING"


def test_held_before_it_has_engaged_it_stays_at_neutral():
    rig = Rig(engage_s=0.5).drive(0.2).operate("hold").drive(0.2)
    assert (rig.state, rig.emitter.trace["weight"].max()) == ("HOLDING", 0.0)
    assert rig.drive(0.3).emitter.newest()["weight"][0] > 0.0  # after that, what is held fades in


def test_coming_back_from_a_hold_makes_no_step():
    rig = running().operate("hold").drive(0.5, acceleration=(0.0, 0.0, -5.0))
    rig.operate("engage").drive(0.5, acceleration=(0.0, 0.0, -5.0))
    assert rig.state == "RUNNING"
    surge = rig.emitter.trace["cue"]["surge"][-330:]
    # From 1 to -5 along the fade: 15/8 of the difference a fade at the steepest.
    assert np.abs(np.diff(surge)).max() <= 15 / 8 * 6.0 * PERIOD * 1e-9 / FADE_S * 1.01
    assert surge.min() < -1.0


def test_wishes_before_the_first_frame_count():
    assert Rig().operate("hold").drive(1.0).state == "OFFLINE"
    assert Rig().operate("park").drive(1.0).state == "OFFLINE"
    assert Rig().operate("park").drive(0.2).operate("engage").drive(1.5).state == "RUNNING"
