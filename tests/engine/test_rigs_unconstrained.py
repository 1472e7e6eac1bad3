"""Limits and actuators of rigs side by side give the bits of each rig alone, whether bounds act on some or on none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from test_lanes import bits, machine  # noqa: F401 the fixture
from test_platforms import ON_TABLES, PRESETS, assert_within, profile_for

import motioncue
from motioncue import cueing
from motioncue.core import interfaces
from motioncue.core.channels import ACTUATION_DTYPE, CUE_DTYPE, MOTION_DTYPE
from motioncue.engine.assembly import algorithm_of, chain_of, limits_of
from motioncue.engine.batch import Batch
from motioncue.platforms import build as platforms

pytestmark = pytest.mark.search

RATE_HZ = 1e9 / 3_000_030
MOVING = ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate")
SLED = (
    'platform.axes=[{name="sled", channel="surge_displacement", '
    "travel={min_m=-0.1, max_m=0.1, speed_m_s=0.5, acceleration_m_s2=4.0}}]"
)


def motion_of(rng, ticks, size):
    """Return a motion that begins at rest and swings on all channels, up to about `size` [m/s^2, rad, rad/s]."""
    time = np.arange(ticks)[:, None] / RATE_HZ
    swing = np.sin(2 * np.pi * rng.uniform(0.1, 2.0, 9) * time + rng.uniform(0, 6, 9)) * np.minimum(time, 1.0) ** 3
    motion = np.zeros(ticks, MOTION_DTYPE)
    for name, values in zip(MOVING, swing.T, strict=True):
        motion[name] = size * values
    motion["time"] = np.arange(ticks) * 3_000_030
    return motion


def alone(profile, motion):
    cue = motioncue.cue(profile, motion)
    return cue, motioncue.actuate(profile, cue)


def together(rigs, motion):
    """Return cues, actuations and which rigs were unconstrained, for motions of shape (ticks, n)."""
    cue, actuation = np.zeros(motion.shape, CUE_DTYPE), np.full(motion.shape, 7, ACTUATION_DTYPE)
    unconstrained = np.zeros(motion.shape, bool)
    for i in range(len(motion)):
        unconstrained[i] = rigs.unconstrained
        rigs.step(motion[i], cue[i], actuation[i])
    return cue, actuation, unconstrained


def same_actuation(found, right):
    """Say whether actuations have the same bits; those of NaNs are not defined."""
    found, right = (np.ascontiguousarray(each).view(np.float64) for each in (found, right))
    return np.where(np.isnan(found), np.nan, found).tobytes() == np.where(np.isnan(right), np.nan, right).tobytes()


def assert_same(profiles, motion, found):
    for i, profile in enumerate(profiles):
        cue, actuation = alone(profile, np.ascontiguousarray(motion[:, i]))
        assert_same_bits(np.ascontiguousarray(found[0][:, i]), cue)
        assert same_actuation(found[1][:, i], actuation)


@pytest.mark.parametrize("preset", PRESETS)
def test_rigs_on_some_of_which_bounds_act_give_the_bits_of_each_alone(machine, preset):  # noqa: F811
    """Every third rig goes beyond its platform's reach, every third is hardly moved."""
    rng = np.random.default_rng(4)
    sizes = [0.01, 8.0, 0.1] * 6
    motion = np.stack([motion_of(rng, 700, size) for size in sizes], axis=1)
    profile = profile_for(preset)
    found = together(motioncue.Rigs(profile, 18), motion)
    assert_same([profile] * 18, motion, found)
    if len(interfaces.machines()) > 1:  # a compiler with vectors
        block = {"avx512": 8, "avx2": 4, "any": 2}[machine]
        unconstrained = found[2][350:, : 18 // block * block]
        if preset in ON_TABLES:  # each rig by itself
            assert not unconstrained.any()
            return
        assert unconstrained[:, 0::3].all()
        assert not unconstrained[:, 1::3].all(axis=0).any()


@pytest.mark.search
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_rigs_with_any_bounds_give_the_bits_of_each_alone(data):
    """Platforms of every kind, limits on the way, motions from hardly any to tumbling, single values that are none."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    overrides = data.draw(
        st.lists(
            st.sampled_from(
                [
                    "limits.pitch.value_deg=3",
                    "output.limits.heave_displacement.rate_m_s=0.05",
                    "limits.roll.value_deg=180",
                    "limits.surge_displacement.jerk_m_s3=2",
                    SLED,
                ]
            ),
            unique=True,
        )
    )
    presets = data.draw(st.lists(st.sampled_from(PRESETS), min_size=1, max_size=3))
    profiles = [
        profile_for(preset, *(each for each in overrides if each != SLED or preset not in ON_TABLES))
        for preset in presets
        for _ in range(data.draw(st.integers(1, 9)))
    ]
    sizes = data.draw(st.lists(st.sampled_from([0.0, 0.1, 1.0, 10.0]), min_size=len(profiles), max_size=len(profiles)))
    motion = np.stack([motion_of(rng, 250, size) for size in sizes], axis=1)
    jumps = data.draw(st.integers(0, 249))
    motion["surge"][jumps : jumps + 9, rng.integers(len(profiles))] = 30.0
    spoiled = data.draw(st.booleans())
    if spoiled:
        motion["yaw"][200, rng.integers(len(profiles))] = data.draw(st.sampled_from([np.nan, np.inf, 1e300]))
    assert_same(profiles, motion, together(motioncue.Rigs(profiles), motion))


@pytest.mark.parametrize(
    ("angle", "override"), [("yaw", "limits.yaw.value_deg=180"), ("roll", "limits.roll.value_deg=150")]
)
def test_an_angle_beyond_a_right_angle_gives_the_bits_of_a_rig_alone(machine, angle, override):  # noqa: F811
    """Direct cueing passes angles on: a heading turns all the way round, a roll is sent as a lean; then both jump."""
    motion = np.stack([motion_of(np.random.default_rng(i), 900, 0.2) for i in range(9)], axis=1)
    time, rates = np.arange(900)[:, None], np.linspace(-0.05, 0.05, 9)
    motion["yaw"] = np.remainder(time * rates + np.pi, 2 * np.pi) - np.pi
    motion["roll"] = 2.5 * np.sin(0.5 * time * rates)
    motion[angle][700:] += 0.3
    profile = motioncue.load_profile("ccd-dk", override)
    cue = np.zeros(motion.shape, CUE_DTYPE)
    rigs = motioncue.Rigs(profile, 9)
    for i in range(900):
        rigs.step(motion[i], cue[i])
    for i in range(9):
        assert_same_bits(np.ascontiguousarray(cue[:, i]), motioncue.cue(profile, np.ascontiguousarray(motion[:, i])))


@pytest.mark.grid
@pytest.mark.parametrize("acceleration", [0.2, 0.5, 2.0])
def test_legs_that_brake_before_their_ends_give_the_bits_of_each_alone(machine, acceleration):  # noqa: F811
    """Legs of little acceleration need most of their travel to stop: they brake although nothing else acts."""
    rng = np.random.default_rng(8)
    motion = np.stack([motion_of(rng, 1500, size) for size in np.geomspace(0.05, 2.0, 16)], axis=1)
    profile = profile_for("hexapod-dim", f"platform.leg.acceleration_m_s2={acceleration}", "platform.leg.max_m=1.25")
    assert_same([profile] * 16, motion, together(motioncue.Rigs(profile, 16), motion))


def test_rigs_that_are_reset_begin_again_while_the_others_go_on(machine):  # noqa: F811
    rng = np.random.default_rng(9)
    motion = np.stack([motion_of(rng, 400, size) for size in [0.1, 9.0] * 8], axis=1)
    profile = profile_for("hexapod-dim")
    rigs = motioncue.Rigs(profile, 16)
    together(rigs, motion)
    rigs.reset([2, 3])
    found = together(rigs, motion)
    for i in (2, 3):
        assert same_actuation(found[1][:, i], alone(profile, np.ascontiguousarray(motion[:, i]))[1])
    twice = np.concatenate([motion[:, 4], motion[:, 4]])
    assert same_actuation(found[1][:, 4], alone(profile, twice)[1][400:])


def test_shares_count_the_ticks_side_by_side_too(machine):  # noqa: F811
    rng = np.random.default_rng(2)
    motion = np.stack([motion_of(rng, 500, size) for size in [0.1, 9.0] * 8], axis=1)
    profile = profile_for("hexapod-dim")
    chains = [chain_of(profile, profile.output) for _ in range(16)]
    bounds = [limits_of(profile) for _ in range(16)]
    batch = Batch([algorithm_of(profile) for _ in range(16)], bounds, chains)
    together(batch, motion)
    for i in range(16):
        limits, chain = limits_of(profile), chain_of(profile, profile.output)
        cue = cueing.design(profile.cueing, RATE_HZ).process(np.ascontiguousarray(motion[:, i]))
        limits.process(cue)
        chain.process(cue)
        assert bounds[i].shares() == limits.shares()
        assert [stage.shares() for stage in chains[i].stages] == [stage.shares() for stage in chain.stages]
    assert any(any(stage.shares().values()) for stage in chains[1].stages)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("preset", ["hexapod-dim", "hexapod-cranks", "posts-4"])
def test_a_motion_that_is_no_number_is_not_followed_and_disturbs_no_other_rig(preset, bad):
    """The pose stays where it was, but for sway; then the rig is parked, reset and used again.

    A number that no vehicle has, but that is one, is followed as far as the platform reaches.
    """
    rng, n, wrong = np.random.default_rng(8), 10, 3
    profile = profile_for(preset, "platform.rise_s=1", "cueing.surge.gain=0.05", "cueing.sway.gain=0.05")
    built = platforms.build(profile.platform)
    motion = np.stack([motion_of(rng, 4000, 0.05) for _ in range(n)], axis=1)
    right = [alone(profile, np.ascontiguousarray(motion[:, i]))[1] for i in range(n)]
    motion["surge"][1000:1010, wrong] = bad
    rigs, cue, actuation = motioncue.Rigs(profile, n), np.zeros(n, CUE_DTYPE), np.zeros(motion.shape, ACTUATION_DTYPE)
    for tick in range(4000):
        rigs.parked[wrong] = 1500 <= tick < 2000
        if tick == 1999:
            rigs.reset([wrong])
        rigs.step(motion[tick], cue, actuation[tick])
    for i in range(n):
        if i != wrong:
            assert same_actuation(actuation[:, i], right[i])
    sent = actuation["actuators"][:, wrong, : len(built.names)]
    assert np.isfinite(sent).all()
    assert_within(sent, built)
    if not np.isfinite(bad):
        poses = built.kinematics.forward(sent[1100:1500])
        kept = [0, 2, 3, 4, 5] if preset != "posts-4" else [2, 3, 4]
        np.testing.assert_allclose(poses[:, kept], np.tile(poses[0, kept], (400, 1)), rtol=0, atol=1e-9)
        assert np.abs(poses[0, kept]).max() > 1e-4
    low = [bounds[0] for bounds in built.bounds]
    np.testing.assert_allclose(sent[1990], low, rtol=0, atol=1e-9)  # parked
    assert np.ptp(sent[2500:], axis=0).min() > 1e-4  # moves again
    assert np.isfinite(cue["surge"]).all()
