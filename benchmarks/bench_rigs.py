"""Cost of a rig in a call for many: against one rig in plain C, and against fewer rigs."""

import numpy as np
import pytest
from conftest import RATE_HZ, assert_same

import motioncue
from motioncue import cueing
from motioncue.core.channels import CUE_DTYPE
from motioncue.engine.batch import Batch

CALLS = 32_000  # steps in a measurement, summed over all rigs
FEWEST = (
    30  # steps even where nothing is timed: in fewer, the interpreter's own first calls are some per cent of a count
)


@pytest.fixture
def rigs(rig):
    """Return a function that makes the rigs and the arrays for their steps."""

    def make(n):
        washouts = Batch([cueing.design(rig.cueing, RATE_HZ) for _ in range(n)])
        return washouts, np.resize(rig.motion, n), np.zeros(n, CUE_DTYPE)

    return make


def steps(made, smoke):
    """Return a function that steps all rigs many times, and the number of rig steps in a call of it."""
    (washouts, motion, cue), step = made, made[0].step
    n = FEWEST if smoke else CALLS // len(washouts)

    def run():
        for _ in range(n):
            step(motion, cue)

    return run, n * len(washouts)


def test_rigs_give_the_numbers_of_the_floor(rig):
    washouts = Batch([cueing.design(rig.cueing, RATE_HZ) for _ in range(9)])
    cues = washouts.process(np.repeat(rig.motion[:, None], 9, axis=1))
    rig.floor.washout(rig.motion, rig.cue)
    for i in range(9):
        assert_same(np.ascontiguousarray(cues[:, i]), rig.cue)


@pytest.mark.parametrize(("n", "target"), [(8, None), (64, 0.3), (512, None)])
@pytest.mark.benchmark(group="rigs")
def test_rigs_against_one_in_c(versus, rig, rigs, smoke, n, target):
    run, items = steps(rigs(n), smoke)
    motion, cue = rig.motion[:1].copy(), np.zeros(1, CUE_DTYPE)
    versus(
        f"{n} rigs, one call of `step` from Python, per rig and tick",
        "plain C, one rig",
        run,
        lambda: rig.floor.washout_repeat(motion, cue, items),
        items=items,
        target=target,
    )


@pytest.mark.benchmark(group="rigs")
def test_many_rigs_against_fewer(versus, rigs, smoke):
    run, items = steps(rigs(512), smoke)
    fewer, fewer_items = steps(rigs(64), smoke)
    versus("512 rigs, per rig and tick", "64 rigs", run, fewer, items=items, floor_items=fewer_items, target=1.15)


@pytest.mark.benchmark(group="rigs")
def test_rigs_over_recordings_against_c(versus, rig):
    n, ticks = 64, rig.n
    washouts = Batch([cueing.design(rig.cueing, RATE_HZ) for _ in range(n)])
    motion = np.stack([np.roll(rig.motion, 50 * i) for i in range(n)], axis=1)
    cue = np.zeros((ticks, n), CUE_DTYPE)
    versus(
        "64 rigs over a drive each, one call of `process`, per rig and tick",
        "plain C, one rig over a drive",
        lambda: washouts.process(motion, cue),
        lambda: rig.floor.washout(rig.motion, rig.cue),
        items=n * ticks,
        floor_items=ticks,
        target=0.3,
    )


@pytest.mark.benchmark(group="rigs")
def test_rigs_with_limits_against_c(versus, rig, smoke):
    made = motioncue.Rigs("ccd-dk-classical", 64), np.resize(rig.motion, 64), np.zeros(64, CUE_DTYPE)
    run, items = steps(made, smoke)
    motion, cue = rig.motion[:1].copy(), np.zeros(1, CUE_DTYPE)
    versus(
        "64 rigs with the limits of the built-in profile, per rig and tick",
        "plain C, one rig, without limits",
        run,
        lambda: rig.floor.washout_repeat(motion, cue, items),
        items=items,
    )
