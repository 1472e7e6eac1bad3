"""Many rigs in one call give the results of each alone, to the last bit."""

import sys

import numpy as np
import pytest
from same_bits import assert_same_bits
from test_lanes import DRIVES, RATE_HZ, SETTINGS, bits, drive, machine  # noqa: F401 the fixture

import motioncue
from motioncue import ConfigError, load_profile
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.cueing import design
from motioncue.engine.batch import Batch
from motioncue.safety.limiter import CueLimits


def washouts(n):
    """Return as many washouts, no two alike."""
    settings = list(SETTINGS.values())
    profiles = (
        load_profile("ccd-dk-classical", *settings[i % len(settings)], f"cueing.surge.gain={0.3 + i / n}")
        for i in range(n)
    )
    return [design(profile.cueing, RATE_HZ) for profile in profiles]


def drives(rng, ticks, n):
    """Return a drive for each rig, shape (ticks, n), calm ones beside wild ones."""
    kinds = list(DRIVES.values())
    return np.stack([drive(rng, ticks, **kinds[i % len(kinds)]) for i in range(n)], axis=1)


def alone(rigs, motion):
    return np.stack([rig.process(np.ascontiguousarray(motion[:, i])) for i, rig in enumerate(rigs)], axis=1)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 20])
def test_rigs_together_give_the_bits_of_each_alone(machine, rng, n):  # noqa: F811
    motion = drives(rng, 150, n)
    rigs, cue = Batch(washouts(n)), np.zeros((150, n), CUE_DTYPE)
    for i in range(150):
        rigs.step(motion[i], cue[i])
    right = alone(washouts(n), motion)
    assert_same_bits(cue, right)
    assert np.ptp(cue["pitch"]) > 0
    again = Batch(washouts(n))
    assert_same_bits(np.concatenate([again.process(motion[:1]), again.process(motion[1:])]), right)


def test_a_rig_that_is_reset_starts_again_while_the_others_go_on(machine, rng):  # noqa: F811
    motion = drives(rng, 100, 11)
    rigs, each = Batch(washouts(11)), washouts(11)
    first, right = rigs.process(motion[:50]), alone(each, motion[:50])
    assert_same_bits(first, right)
    rigs.reset([0, 9])
    each[0].reset()
    each[9].reset()
    second = rigs.process(motion[50:])
    assert_same_bits(second, alone(each, motion[50:]))
    assert abs(second["surge_displacement"][0, 0]) < 1e-15
    assert abs(second["surge_displacement"][0, 1]) > 1e-9
    rigs.reset()
    assert_same_bits(rigs.process(motion), alone(washouts(11), motion))


@pytest.mark.parametrize("order", ["wwwwwwwwwwwddd", "dwwwwwwwwwddw", "wdwdwd", "ddd"], ids=str)
def test_rigs_of_any_algorithm_give_the_bits_of_each_alone(machine, rng, order):  # noqa: F811
    def mixed():
        designed = iter(washouts(len(order)))
        return [next(designed) if kind == "w" else design(load_profile("ccd-dk").cueing, RATE_HZ) for kind in order]

    motion = drives(rng, 90, len(order))
    rigs = Batch(mixed())
    each = mixed()
    assert_same_bits(rigs.process(motion[:50]), alone(each, motion[:50]))
    rigs.reset([0, len(order) - 1])
    each[0].reset()
    each[-1].reset()
    assert_same_bits(rigs.process(motion[50:]), alone(each, motion[50:]))


def test_a_spoiled_rig_spoils_no_other(machine, rng):  # noqa: F811
    motion = drives(rng, 60, 8)
    motion["surge"][20, 3] = np.nan
    cue = Batch(washouts(8)).process(motion)
    assert np.isnan(cue["surge"][20:, 3]).all()
    others = [0, 1, 2, 4, 5, 6, 7]
    assert_same_bits(cue[:, others], alone(washouts(8), motion)[:, others])


def test_other_arrays_are_looked_at_and_the_same_ones_are_not_kept_from_changing(rng):
    motion, rigs = drives(rng, 4, 3), Batch(washouts(3))
    inputs, cue, other = motion[0].copy(), np.zeros(3, CUE_DTYPE), np.zeros(3, CUE_DTYPE)
    rigs.step(inputs, cue)
    inputs[:] = motion[1]
    rigs.step(inputs, cue)
    rigs.step(motion[2], other)
    right = alone(washouts(3), motion)
    assert_same_bits(cue, right[1])
    assert_same_bits(other, right[2])


def test_a_step_allocates_nothing(rng):
    motion, rigs, cue = drives(rng, 1, 64)[0], Batch(washouts(64)), np.zeros(64, CUE_DTYPE)
    rigs.step(motion, cue)
    before = sys.getallocatedblocks()
    for _ in range(10_000):
        rigs.step(motion, cue)
    assert sys.getallocatedblocks() - before < 100


@pytest.mark.parametrize(
    ("motion", "cue"),
    [
        (np.zeros(2, MOTION_DTYPE), np.zeros(3, CUE_DTYPE)),
        (np.zeros(3, MOTION_DTYPE), np.zeros(4, CUE_DTYPE)),
        (np.zeros(3, CUE_DTYPE), np.zeros(3, CUE_DTYPE)),
        (np.zeros(6, MOTION_DTYPE)[::2], np.zeros(3, CUE_DTYPE)),
        (np.zeros((3, 1), MOTION_DTYPE), np.zeros(3, CUE_DTYPE)),
    ],
)
def test_arrays_that_do_not_fit_are_refused_and_change_nothing(rng, motion, cue):
    rigs, good, right = Batch(washouts(3)), drives(rng, 2, 3), np.zeros(3, CUE_DTYPE)
    rigs.step(good[0], right)
    with pytest.raises(ValueError, match=r"shape|dtype|contiguous|dimensions"):
        rigs.step(motion, cue)
    rigs.step(good[1], right)
    assert_same_bits(right, alone(washouts(3), good)[1])


def test_an_argument_that_is_not_an_array_is_refused():
    with pytest.raises(TypeError):
        Batch(washouts(1)).step(None, None)
    with pytest.raises(TypeError):
        Batch(washouts(1)).process(None)


def test_batches_that_do_not_fit_are_refused():
    rigs = Batch(washouts(3))
    with pytest.raises(ValueError, match=r"allowed is \(ticks, 3\)"):
        rigs.process(np.zeros((5, 2), MOTION_DTYPE))
    with pytest.raises(ValueError, match=r"allowed is \(ticks, 3\)"):
        rigs.process(np.zeros((5, 3), MOTION_DTYPE), np.zeros((4, 3), CUE_DTYPE))
    assert rigs.process(np.zeros((0, 3), MOTION_DTYPE)).shape == (0, 3)


def test_rigs_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="none"):
        Batch([])
    with pytest.raises(ValueError, match="one a rig"):
        Batch(washouts(2), [CueLimits()])
    with pytest.raises(TypeError, match="found None, allowed are objects of Algorithm"):
        Batch([None])
    with pytest.raises(TypeError, match="allowed are objects of CueLimits"):
        Batch(washouts(1), [None])
    with pytest.raises(ValueError, match="one twice"):
        Batch(washouts(1) * 2)
    with pytest.raises(IndexError, match="found 2, allowed are 0 to 1"):
        Batch(washouts(2)).reset([2])
    with pytest.raises(IndexError, match="found -1"):
        Batch(washouts(2)).reset([-1])


@pytest.mark.parametrize("which", [np.array([True, False, True]), [1.0], [0, np.float64(1)], [0, 3], [None]])
def test_rigs_to_reset_that_are_no_rigs_are_refused_and_none_is_reset(rng, which):
    rigs, motion, cue = Batch(washouts(3)), drives(rng, 3, 3), np.zeros(3, CUE_DTYPE)
    for row in motion[:2]:
        rigs.step(row, cue)
    with pytest.raises((TypeError, IndexError)):
        rigs.reset(which)
    rigs.step(motion[2], cue)
    assert_same_bits(cue, alone(washouts(3), motion)[2])


def test_rigs_that_were_never_made_have_no_tick():
    rigs = Batch.__new__(Batch)
    with pytest.raises(ValueError, match="shape"):
        rigs.step(np.zeros(0, MOTION_DTYPE), np.zeros(0, CUE_DTYPE))
    with pytest.raises(ValueError, match="shape"):
        rigs.process(np.zeros((1, 0), MOTION_DTYPE))


def test_arrays_in_the_same_memory_are_refused(rng):
    rigs, memory = Batch(washouts(3)), np.zeros(3 * 3 * 120, "u1")
    motion, cue = memory[: 3 * 3 * 104].view(MOTION_DTYPE).reshape(3, 3), memory.view(CUE_DTYPE).reshape(3, 3)
    with pytest.raises(ValueError, match="same memory"):
        rigs.process(motion, cue)
    with pytest.raises(ValueError, match="same memory"):
        rigs.step(motion[0], cue[0])
    with pytest.raises(ValueError, match="out: found memory of motion"):
        washouts(1)[0].process(motion[0], cue[0])


# ---- from profiles ---------------------------------------------------------------------------------------------------


def test_rigs_of_profiles_do_what_cue_does_limits_included(rng):
    profiles = [
        "ccd-dk-classical",
        load_profile("ccd-dk-classical", "cueing.preset=utias", "output.rate_hz=100"),
        load_profile("ccd-dk-classical", "limits.pitch.value_deg=1"),
        load_profile("ccd-dk", "limits.pitch.value_deg=1"),
    ]
    motion = drives(rng, 300, 4)
    motion[:, :] = motion[:, 1:2]
    rigs = motioncue.Rigs(profiles)
    assert len(rigs) == 4
    right = np.stack(
        [motioncue.cue(profile, np.ascontiguousarray(motion[:, i])) for i, profile in enumerate(profiles)], axis=1
    )
    for _ in range(2):  # again after a reset: the limits begin at rest too
        assert_same_bits(rigs.process(motion), right)
        rigs.reset()
    free = load_profile("ccd-dk-classical")
    assert bits(design(free.cueing, RATE_HZ).process(np.ascontiguousarray(motion[:, 2]))) != bits(right[:, 2])


def test_one_profile_serves_as_many_rigs_as_asked_for():
    assert len(motioncue.Rigs("ccd-dk-classical", 5)) == 5
    assert len(motioncue.Rigs(load_profile("ccd-dk-classical"))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["ccd-dk-classical"], 2), "n: found 2"),
        (([],), "found none"),
        (("ccd-dk-classical", 0), "found none"),
    ],
)
def test_profiles_that_cannot_be_rigs_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        motioncue.Rigs(*arguments)
