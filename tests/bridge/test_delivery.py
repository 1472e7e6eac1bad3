"""An honest drive never jolts, however its frames are delivered: stalls, then the missed frames in a bunch."""

import numpy as np
import pytest
from delivery_rig import ALL, PERIOD, SOURCES, Drive, Link, deliver, stalls, worst
from rally import Stage

from motioncue.bridge.bridge import KINDS


def swinging(phase):
    """Return a drive whose surge swings by 9 m/s^2, 0.2 m/s^2 a tick, and whose other channels move as well."""
    return Drive(
        [[(9.0, 7.4, phase)], [(3.0, 5.0, 1.0 + phase)], [(2.0, 9.0, 2.0 + 3 * phase)]],
        [[(0.1, 3.0, 0.5 - phase)], [(0.05, 4.0, phase)], [(0.2, 1.0, 2 * phase)]],
    )


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("stall_s", "every_s"), [(0.08, 1.0), (0.2, 1.3), (0.3, 1.7), (0.08, 0.12), (0.3, 0.35), (0.7, 1.0)]
)
@pytest.mark.parametrize("phase", [0.3, 1.9, 4.1])
def test_a_sender_that_stalls_and_then_sends_what_it_missed_makes_no_jolt(bridge, source, stall_s, every_s, phase):
    interval = 1.0 / SOURCES[source].rate_hz
    taken = np.arange(0.0, 12.0, interval)
    arrivals = stalls(taken, 0.002, [(at, stall_s) for at in np.arange(3.0, 9.0, every_s)])
    run = deliver(swinging(phase), source, bridge, taken, arrivals)
    assert run.events == {}
    found = worst(run, source, bridge)
    assert found.step <= 1.0, found
    assert found.beyond <= 1.0, found
    # Afterwards the cue is where the drive is.
    whole = (run.trace["weight"] == 1.0) & (run.trace["deadline"] > run.trace["deadline"][0] + 11_000_000_000)
    whole &= run.trace["deadline"] < run.trace["deadline"][0] + 11_900_000_000
    assert whole.any()
    off = np.abs(run.trace["cue"]["surge"] - run.truth["surge"])[whole].max()
    assert off < 9.0 * 7.4 * (2.1 * interval + 0.002)


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("pause_s", [0.008, 0.012, 0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("asleep", [False, True], ids=["emitter", "machine"])
@pytest.mark.parametrize("phase", [0.3, 1.9, 4.1])
def test_an_emitter_that_gets_no_processor_makes_no_jolt(bridge, source, pause_s, asleep, phase):
    """Frames are received meanwhile, or, if the machine sleeps, all at once when it wakes.

    The Simulink coupling's rates are derived, and begin at zero: faster than the drive, so they are joined faster.
    """
    interval = 1.0 / SOURCES[source].rate_hz
    taken = np.arange(0.0, 12.0, interval)
    pauses = [(at, pause_s) for at in np.arange(3.0, 9.0, 0.731)]
    arrivals = stalls(taken, 0.002, pauses if asleep else [])
    run = deliver(swinging(phase), source, bridge, taken, arrivals, pauses=pauses)
    assert run.events == {}
    missed = np.diff(run.trace["deadline"]) / PERIOD > 1.5
    assert missed.sum() == len(pauses)
    found = worst(run, source, bridge)
    assert found.step <= (2.0 if source == "beamng-simulink" else 1.0), found
    assert found.beyond <= 1.0, found


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("clock", ["goes on", "stands still"])
@pytest.mark.parametrize("simulator", ["sleeps too", "goes on"])
def test_a_machine_that_sleeps_for_minutes_makes_no_jolt(bridge, source, clock, simulator):
    """Whether its clock counts that time depends on the system; the car is where it was, or kilometers away."""
    taken = np.arange(0.0, 9.0, 1.0 / ALL[source].rate_hz)
    slept = np.where(taken < 4.0, 0.0, 300.0)
    arrivals = taken + 0.002 + (slept if clock == "goes on" else 0.0)
    pauses = [(4.0, 300.0)] if clock == "goes on" else []
    went = slept if simulator == "goes on" else 0.0
    run = deliver(swinging(0.3), source, bridge, taken + went, arrivals, "limits=none", pauses=pauses)
    found = worst(run, source, bridge)
    assert found.step <= 1.0, found
    assert run.trace["weight"][-200] == 1.0


STEADY = Link(0.002, 0.02)
TROUBLED = Link(
    0.002, 0.02, jitter=(1.0, 9.0, 0.02), stalls=((2.0, 0.1), (4.0, 0.3), (6.5, 0.7)), lossy=(1.0, 9.0, 0.05)
)


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("since", [10.0, 14.8, 19.0, 36.0, 45.0])
@pytest.mark.parametrize("link", [STEADY, TROUBLED], ids=["steady", "troubled"])
def test_a_real_stage_with_jumps_makes_no_jolt(bridge, source, since, link):
    """Landings of 82 m/s^2 cannot be predicted: `predict` is wrong where they begin, and makes up for it no faster.

    Nothing is limited: bounds would hide a step, and make up for it at their own rate.
    """
    run = deliver(Stage(since), source, bridge, *link.frames(source, 10.0, 1), "limits=none")
    assert run.events == {}
    found = worst(run, source, bridge)
    assert found.step <= 1.0, found
    assert found.beyond <= 1.0, found


@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", ["beamng", "morai"])
def test_datagrams_that_come_twice_or_overtake_one_another_jolt_no_more_than_twice_where_none_is_numbered(
    source, bridge
):
    """One in twenty each; what overtakes is dropped where the car would go back, and is the drive's all the same."""
    taken = np.arange(0.0, 12.0, 1.0 / SOURCES[source].rate_hz)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        order = np.arange(len(taken))
        for i in np.flatnonzero(rng.uniform(size=len(taken) - 1) < 0.05):
            order[[i, i + 1]] = order[[i + 1, i]]
        often = np.where(rng.uniform(size=len(taken)) < 0.05, 2, 1)
        run = deliver(swinging(seed), source, bridge, np.repeat(taken[order], often), np.repeat(taken + 0.002, often))
        assert run.events == {}
        assert not any("reconnect" in move["reason"] for move in run.transitions)
        found = worst(run, source, bridge)
        assert found.step <= 2.0, found
        assert found.turn <= 2.0, found
        assert found.beyond <= 2.5, found
