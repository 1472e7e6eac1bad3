"""Between frames in the engine: the supervisor's decisions about the motion in use hold for every bridge."""

import math

import numpy as np
import pytest
from hypothesis import settings
from same_bits import assert_same_bits
from test_nothing_jolts import Trouble, package
from trouble_helpers import BOUNDED, START, Bench, driven

from motioncue.bridge.bridge import KINDS
from motioncue.core.channels import MOTION_DTYPE
from motioncue.errors import ConfigError
from motioncue.safety.supervisor import State

pytestmark = pytest.mark.search

CHANNELS = [name for name in MOTION_DTYPE.names if name not in ("engine_speed", "time", "frame_time")]
MOVING = (State.ENGAGING, State.RUNNING)


class LinearTrouble(Trouble):
    overrides = ("source.bridge=linear",)


class HeldTrouble(Trouble):
    overrides = (*BOUNDED, "source.bridge=hold")
    profile = "ccd-dk-classical"


for machine in (LinearTrouble, HeldTrouble):
    machine.TestCase.settings = settings(deadline=None, max_examples=40, stateful_step_count=25)
TestLinearTrouble = LinearTrouble.TestCase
TestHeldTrouble = HeldTrouble.TestCase


def swaying(bench, seconds, began=0.0, rate_hz=60.0):
    """Drive on, swaying: every channel of a frame moves, and its roll is the integral of its roll rate."""
    for _ in range(round(seconds * rate_hz)):
        bench.run(1 / rate_hz)
        time = (bench.now - START) * 1e-9 - began
        bench.feed(
            package(
                15.0 * time, 0.1 * math.sin(3.0 * time), velocity=(0.0, 0.0, 15.0),
                acceleration=(0.0, math.sin(2.0 * time), math.cos(5.0 * time)),
                angular_velocity=(0.0, 0.0, 0.3 * math.cos(3.0 * time)),
            )
        )  # fmt: skip
    return bench


def bridged(kind, *overrides):
    return Bench("limits=none", f"source.bridge={kind}", *overrides).connect()  # bounds would hide a step


@pytest.mark.parametrize("kind", KINDS)
def test_an_overdue_or_parked_motion_stays_what_the_last_tick_showed(kind):
    bench = swaying(bridged(kind), 2.0).run(1.5)
    trace = bench.trace
    still = ~np.isin(trace["state"], MOVING)
    still[0] = False
    assert {State.HOLDING, State.PARKING, State.OFFLINE} <= set(trace["state"])
    before = np.flatnonzero(still) - 1
    assert_same_bits(trace[still]["motion"], trace[before]["motion"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_hold_by_the_operator_keeps_the_motion_and_the_way_back_does_not_step(kind):
    bench = swaying(bridged(kind), 2.0)
    bench.emitter.hold()
    swaying(bench, 0.5)
    held = bench.trace["state"] == State.HOLDING
    assert held.sum() > 150
    for name in CHANNELS:
        assert np.ptp(bench.trace["motion"][name][held]) == 0.0
    bench.emitter.engage()
    swaying(bench, 1.5)
    roll = bench.trace["cue"]["roll"][500:]
    # The car sways at 0.3 rad/s, and what it had moved on (up to 0.2 rad) is joined over a fade of a second.
    frame = 1 / 60 if kind == "hold" else 2.0 * 3_000_030e-9
    assert np.abs(np.diff(roll)).max() <= 0.3 * frame + 15 / 8 * 3_000_030e-9 * 0.2


@pytest.mark.parametrize("kind", ["linear", "predict"])
@pytest.mark.parametrize("late_s", [0.001, 0.012])
def test_after_a_pause_of_the_operator_the_motion_goes_on_from_where_it_was(kind, late_s):
    """The gap is shorter than the hold time, so nothing is joined: the bridge itself bridges it, however old the
    frame."""
    bench = swaying(bridged(kind, "supervisor.hold_s=3.0"), 2.0)
    bench.emitter.hold()
    swaying(bench, 0.8).run(late_s)
    bench.emitter.engage()
    swaying(bench, 1.0)
    trace = bench.trace
    back = int(np.flatnonzero((trace["state"][:-1] == State.HOLDING) & (trace["state"][1:] == State.RUNNING))[-1]) + 1
    roll = trace["motion"]["roll"]
    newest = 0.1 * math.sin(3.0 * (trace["motion"]["time"][back] - START) * 1e-9)
    assert abs(newest - roll[back - 1]) > 0.05
    # The output sets out from rest towards a car that sways at up to 0.3 rad/s and 5 m/s^3.
    assert roll[back] == pytest.approx(roll[back - 1], abs=0.1 * 0.3 * 3_000_030e-9)
    surge = trace["motion"]["surge"]
    assert surge[back] == pytest.approx(surge[back - 1], abs=0.1 * 5.0 * 3_000_030e-9)
    # The offset between them fades within half a frame at the fastest; the car's own 0.3 rad/s is added.
    steps = np.abs(np.diff(roll[back - 1 :]))
    assert steps.max() <= 1.2 * abs(newest - roll[back - 1]) * 3_000_030e-9 * 120 + 2.0 * 0.3 * 3_000_030e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trouble", ["teleport", "reconnect"])
def test_another_drive_begins_at_its_own_frame_with_no_trace_of_the_last(kind, trouble):
    bench = swaying(bridged(kind), 2.0)
    if trouble == "reconnect":
        bench.connect()
    began = (bench.now - START) * 1e-9 - (500.0 if trouble == "teleport" else 0.0)
    swaying(bench, 3.0, began)
    trace, moves = bench.trace, bench.transitions()
    assert trouble in [move["reason"] for move in moves]
    first = int(np.flatnonzero((trace["state"][:-1] == State.OFFLINE) & (trace["state"][1:] == State.ENGAGING))[-1]) + 1
    # Its first tick shows the frame as it is, the values that were sent, at an angle and a rate of their own.
    time = (trace["motion"]["time"][first] - START) * 1e-9 - began
    row = trace["motion"][first]
    assert row["roll"] == pytest.approx(0.1 * math.sin(3.0 * time), abs=1e-6)
    assert row["surge"] == pytest.approx(math.cos(5.0 * time), abs=1e-6)
    # Until the second frame nothing is known of where it leads.
    same = trace["motion"]["time"] == row["time"]
    same[:first] = False
    for name in CHANNELS:
        assert np.ptp(trace["motion"][name][same]) == 0.0


def test_between_frames_the_tour_is_where_the_car_is():
    """In the engine, on a clock that takes no time, with frames that arrive when they are taken."""
    frames = driven("tour", 60)
    fine = driven("tour", 1000)
    off = {}
    for kind in KINDS:
        bench = bridged(kind)
        bench.play(frames, np.arange(len(frames)) / 60)
        trace = bench.trace[(bench.trace["weight"] == 1.0) & (bench.trace["deadline"] < START + 55_000_000_000)]
        place = np.round((trace["deadline"] - START) * 1e-6).astype(int)
        speed = np.linalg.norm(fine["velocity"].astype(np.float64), axis=1)[place]
        off[kind] = np.sqrt(np.mean((trace["cue"]["speed"] - speed) ** 2))
    assert off["predict"] < 0.2 * off["hold"]
    assert off["hold"] < off["linear"] < 2.0 * off["hold"]


def test_a_bridge_that_there_is_not_is_refused_by_its_path():
    with pytest.raises(
        ConfigError, match=r"source\.bridge: found 'cubic', allowed are 'auto', 'hold', 'linear', 'predict'"
    ):
        bridged("cubic")


def test_statistics_tell_how_old_the_motion_was():
    for kind, frames_late in (("hold", 0.5), ("linear", 1.0), ("predict", 0.0)):
        bench = bridged(kind)
        assert bench.pipeline.stats()["latency_s"] == 0.0
        swaying(bench, 5.0)
        assert bench.pipeline.stats()["latency_s"] == pytest.approx(frames_late / 60, abs=2e-4)
