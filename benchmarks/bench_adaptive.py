"""Cost of the adaptive washout: against plain C, and against the classical one."""

import numpy as np
import pytest
from conftest import RATE_HZ, assert_same

from motioncue import cueing, load_profile
from motioncue.core.channels import CUE_DTYPE
from motioncue.engine.batch import Batch

N = 100_000


@pytest.fixture
def washout():
    """Settings of the adaptive washout, and the washout."""
    settings = load_profile("ccd-dk", "cueing.algorithm=adaptive", "cueing.preset=medium").cueing
    return settings, cueing.design(settings, RATE_HZ)


def test_floor_gives_the_kernels_numbers(rig, modules, washout):
    settings, kernel = washout
    cue = np.zeros_like(rig.cue)
    modules[0].Adaptive(settings, RATE_HZ).washout(rig.motion, rig.cue)
    assert_same(kernel.process(rig.motion, cue), rig.cue, 1e-9)


@pytest.mark.benchmark(group="adaptive")
def test_adaptive_batch_against_c(versus, rig, modules, washout):
    settings, kernel = washout
    floor = modules[0].Adaptive(settings, RATE_HZ)
    versus(
        "adaptive washout, batch, `out=` given",
        "plain C",
        lambda: kernel.process(rig.motion, rig.cue),
        lambda: floor.washout(rig.motion, rig.cue),
        items=rig.n,
        target=1.1,
    )


@pytest.mark.benchmark(group="adaptive")
def test_adaptive_tick_against_classical(versus, rig, loops, washout, smoke):
    n, motion, cue = 100 if smoke else N, rig.motion[-1:].copy(), np.zeros(1, CUE_DTYPE)
    versus(
        "tick of the adaptive washout",
        "tick of the classical washout",
        lambda: loops.washout_repeat(washout[1], motion, cue, n),
        lambda: loops.washout_repeat(rig.algorithm, motion, cue, n),
        items=n,
        target=2.0,
    )


@pytest.mark.benchmark(group="adaptive")
def test_sixty_four_adaptive_rigs_against_one_in_c(versus, rig, modules, washout, smoke):
    settings, _ = washout
    floor, ticks = modules[0].Adaptive(settings, RATE_HZ), 10 if smoke else 1000
    batch = Batch([cueing.design(settings, RATE_HZ) for _ in range(64)])
    motion = np.repeat(rig.motion[:ticks, None], 64, axis=1)
    cues = np.zeros(motion.shape, CUE_DTYPE)
    versus(
        "64 rigs with the adaptive washout in one call, each",
        "plain C: one rig",
        lambda: batch.process(motion, cues),
        lambda: floor.washout(rig.motion[:ticks], rig.cue[:ticks]),
        items=64 * ticks,
        floor_items=ticks,
    )
