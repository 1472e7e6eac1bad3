"""A pose beyond a platform's reach: parts of it give way smoothly, and only those that have to."""

import numpy as np
import pytest
from test_platforms import DT, ON_TABLES, POSE, PRESETS, assert_within, cues_of, positions_of, profile_for

from motioncue.engine.assembly import chain_of
from motioncue.platforms import build as platforms

HEXAPODS = ["hexapod-dim", "hexapod-simona"]


def ramp(ticks, seconds):
    """Return a smooth way from 0 to 1 (fifth order), then 1."""
    share = np.clip(np.arange(ticks) * DT / seconds, 0.0, 1.0)
    return share**3 * (10.0 + share * (6.0 * share - 15.0))


def at_end_of_surge(preset, ticks):
    """Return poses that turn and rise, then go slowly 2 % beyond the end of surge and back, and the platform."""
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    end = platforms.ranges(built)["surge_displacement"][1]
    poses = np.zeros((ticks, 6))
    there = ramp(ticks, 10.0)
    poses[:, 0] = 1.02 * end * (there - np.concatenate([np.zeros(ticks // 2), there[: ticks - ticks // 2]]))
    poses[:, 5] = np.radians(8.0) * ramp(ticks, 3.0)
    return profile, built, poses


@pytest.mark.parametrize("preset", HEXAPODS)
def test_parts_leave_and_return_slowly(preset):
    """A yaw leaves by two lags of 0.25 s: with less than its angle / (0.25 s)^2, at the radius of the joints.

    Only where the first leg meets its end does the frame brake harder, from the speed of the surge: a twentieth of a
    second is enough for that, and not for a jump of the yaw.
    """
    profile, built, poses = at_end_of_surge(preset, 8000)
    sent = positions_of(profile, poses)
    assert_within(sent, built)
    angles = built.kinematics.forward(sent[::10])[:, 5]
    assert angles[:700].min() >= -1e-9
    assert angles[400:420].max() < np.radians(0.1)  # gone at the end of surge
    assert angles[-1] == pytest.approx(np.radians(8.0), abs=1e-6)  # and back
    leaving = np.radians(8.0) / 0.25**2 * built.size
    hard = (np.abs(np.diff(sent, 2, axis=0) / DT**2) > 1.5 * leaving).any(axis=1)
    assert np.ptp(np.flatnonzero(hard)) * DT < 0.05


@pytest.mark.parametrize("preset", HEXAPODS)
def test_what_was_within_reach_again_passes_bit_for_bit(preset):
    profile, built, poses = at_end_of_surge(preset, 12_000)
    sent = positions_of(profile, poses)
    np.testing.assert_array_equal(sent[-1], built.kinematics.inverse(poses[-1:])[0])


def test_an_axis_at_its_end_takes_nothing_from_the_others():
    """Surge moves a sled alone here: the posts go on as if it had room."""
    sled = (
        '{name="sled", channel="surge_displacement", '
        "travel={min_m=-0.1, max_m=0.1, speed_m_s=0.5, acceleration_m_s2=4.0}}"
    )
    profile = profile_for("posts-3", f"platform.axes=[{sled}]")
    alone = profile_for("posts-3")
    poses = np.zeros((6000, 6))
    poses[:, 0] = 0.25 * ramp(6000, 10.0)
    poses[:, 2] = 0.03 * np.sin(2.0 * np.arange(6000) * DT) * ramp(6000, 3.0)
    sent = positions_of(profile, poses)
    assert sent[-1, 3] == 0.1
    # The posts stop with the sled for the hundredth of a second in which it brakes at its end.
    np.testing.assert_allclose(sent[:, :3], positions_of(alone, poses), rtol=0, atol=5e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e300])
@pytest.mark.parametrize("channel", range(6))
def test_a_channel_that_is_no_number_stays_where_it_was(channel, bad):
    profile = profile_for("hexapod-dim")
    built = platforms.build(profile.platform)
    poses = np.zeros((2000, 6))
    for place, (name, (low, high)) in enumerate(platforms.ranges(built).items()):
        assert POSE[place] == name
        poses[:, place] = 0.1 * min(-low, high) * ramp(2000, 2.0)
    poses[:, (channel + 1) % 6] *= 0.5
    before = positions_of(profile, poses)
    poses[1000:, channel] = bad
    held = poses.copy()
    held[1000:, channel] = poses[999, channel]
    sent = positions_of(profile, poses)
    np.testing.assert_array_equal(sent[:1000], before[:1000])
    np.testing.assert_array_equal(sent, positions_of(profile, held))


@pytest.mark.parametrize("preset", sorted({*PRESETS} - {*ON_TABLES}))
def test_every_tick_in_which_the_actuators_are_not_at_the_pose_is_counted_for_one_of_them(preset):
    """Jumps within reach: the way to each, the overshoot and the way back."""
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    ends = [0.15 * min(abs(low or 0.1), abs(high or 0.1)) for low, high in platforms.ranges(built).values()]
    poses = np.repeat(np.random.default_rng(1).uniform(-1.0, 1.0, (20, 6)) * ends, 250, axis=0)
    chain = chain_of(profile, profile.outputs[0])
    sent = chain.process(cues_of(poses))["actuators"][:, : len(built.names)]
    shares = next(stage.shares() for stage in chain.stages if built.names[0] in stage.shares())
    elsewhere = (sent != built.kinematics.inverse(poses)).any(axis=1).mean()
    assert elsewhere > 0.1
    assert shares.pop("reach") == 0.0
    assert sum(shares.values()) == pytest.approx(elsewhere, abs=1e-12)
