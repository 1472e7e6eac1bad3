"""Extreme changes of settings, at two times of a smooth drive: no person on the platform feels a knock by one."""

from functools import cache

import numpy as np
import pytest
from predictive_drives import RATE_HZ, pose_of, profile

import motioncue
from motioncue import cueing
from motioncue.core.channels import MOTION_DTYPE
from motioncue.platforms import build as platforms
from motioncue.platforms.kinematics import MOST_STRAIGHT
from motioncue.scoring.scene import Scene
from motioncue.virtual.installation import drive_motion

KNOCKS = {
    "box-small": 0.1,
    "box-large": 0.1,
    "hexapod-dim": 0.1,
    "hexapod-simona": 0.2,
    "hexapod-on-sled": 0.2,
    "hexapod-cranks": 0.3,
}
"""What docs/predictive.md promises: the largest change of specific force along an axis, tick to tick [m/s^2]."""

CHANGES = {
    "travel": {"weights.travel": 1000.0},
    "speed": {"weights.speed": 300.0, "weights.travel": 1000.0},
    "heave": {"weights.heave": 100.0, "weights.travel": 0.3},
    "slow tilt": {"tilt.acceleration_limit_deg_s2": 4.5, "weights.heave": 4.4},
    "conflict": {"weights.conflict": 9.0},
}


def smooth_drive(n):
    """Return a drive that brakes and bends as a car in town does, up to 3 m/s^2, without any step."""
    motion = np.zeros(n, MOTION_DTYPE)
    time = np.arange(n) / RATE_HZ
    grows = np.minimum(1.0, time) ** 2 * (3.0 - 2.0 * np.minimum(1.0, time))
    motion["time"] = np.round(1e9 * time)
    motion["surge"] = 3.0 * grows * np.sin(0.9 * time)
    motion["sway"] = 2.5 * grows * np.sin(1.3 * time + 1.0)
    motion["yaw_rate"] = 0.2 * grows * np.sin(1.3 * time + 1.0)
    return motion


def braking(size, hold_s, ramp_s):
    """Return a drive that brakes once, without any step."""
    motion = np.zeros(4000, MOTION_DTYPE)
    time = np.arange(len(motion)) / RATE_HZ
    on, off = (np.clip((time - at) / ramp_s, 0.0, 1.0) for at in (3.0, 3.0 + hold_s))
    motion["time"] = np.round(1e9 * time)
    motion["surge"] = size * (off**2 * (3.0 - 2.0 * off) - on**2 * (3.0 - 2.0 * on))
    return motion


def knocks_of(platform, motion, change, at, back=None):
    """Return the largest change of specific force from tick to tick, from the change of settings on [m/s^2].

    With `back`, they change back that many ticks later.
    """
    keys = ["cueing.algorithm=predictive", f"platform.preset={platform}"]
    begin = motioncue.load_profile("ccd-dk", *keys)
    stepper = motioncue.bind(begin)
    felt = []
    for number, row in enumerate(motion):
        if number == at:
            stepper.retune({f"cueing.{key}": value for key, value in change.items()})
        if back is not None and number == at + back:
            stepper.retune(begin)
        stepper.motion[0] = row
        stepper.step()
        felt.append([stepper.cue[name][0] for name in ("surge", "sway", "heave")])
    return abs(np.diff(felt, axis=0))[at - 1 :].max()


@pytest.mark.check
def test_a_plan_keeps_cranks_from_the_line_with_their_rods():
    kinematics = platforms.build(platforms.platform_named("hexapod-cranks")).kinematics
    algorithm = cueing.design(
        profile(platform="hexapod-cranks").cueing, RATE_HZ, platforms.platform_named("hexapod-cranks")
    )
    straight = abs(kinematics.straightness(pose_of(algorithm.process(smooth_drive(3000))))[0])
    # Stopping alone would let it come to 0.966 / 1.02; the plan is softly bounded at 0.93 of 0.966.
    assert 0.85 < straight.max() < 0.94 * MOST_STRAIGHT


@pytest.mark.parametrize("platform", [*KNOCKS])
@pytest.mark.parametrize("name", ["travel", *(pytest.param(name, marks=pytest.mark.search) for name in [*CHANGES][1:])])
@pytest.mark.parametrize("at", [1500, pytest.param(900, marks=pytest.mark.search)])
@pytest.mark.check
def test_changed_settings_are_no_knock(platform, name, at):
    assert knocks_of(platform, smooth_drive(at + 1500), CHANGES[name], at) < KNOCKS[platform]


# A plan that is not found is followed as it was: nearly the new one.  Stopped within the cranks' ends at once, by 0.6.
@pytest.mark.parametrize("weight", [2.0, 9.0])
@pytest.mark.check
def test_a_weight_that_changes_and_changes_back_is_no_knock_on_cranks(weight):
    change = {"weights.conflict": weight}
    assert knocks_of("hexapod-cranks", smooth_drive(3000), change, 1500, back=20) < KNOCKS["hexapod-cranks"]


# Plans that were held for two seconds, to become free at once then, or half a second later: by 0.37.
@pytest.mark.parametrize("at", [733, 900])
@pytest.mark.check
def test_plans_become_free_after_a_change_little_by_little(at):
    assert knocks_of("hexapod-cranks", smooth_drive(2400), {"gain": 0.9}, at) < 0.2


STEADY = {"hexapod-simona": 0.3}  # as docs/predictive.md promises, and 0.15 elsewhere [m/s^2]
PLATFORMS = [*KNOCKS, "hexapod-on-yaw-table", "hexapod-cranks", "posts-3"]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.check
def test_without_a_change_a_smooth_drive_is_no_knock(platform):
    assert knocks_of(platform, smooth_drive(8000), {}, 1) < STEADY.get(platform, 0.15)


# A head a metre above what the seat turns about moves by that angle in metres.
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(("motion", "most"), [(smooth_drive(8000), 1.25), (braking(9.0, 4.0, 0.5), 1.5)])
@pytest.mark.check
def test_a_seat_begins_to_turn_and_ends_gently(platform, motion, most):
    given = motioncue.load_profile("ccd-dk", "cueing.algorithm=predictive", f"platform.preset={platform}")
    cue = motioncue.cue(given, motion)
    for name in ("roll", "pitch", "yaw"):
        assert abs(np.diff(cue[name], 3)).max() * RATE_HZ**2 < most


# A burst of fast tilt that begins at once shakes who sits far from neutral, near actuators' ends, by 0.43 m/s^2.
@pytest.mark.parametrize("platform", ["hexapod-dim", "hexapod-simona", "hexapod-cranks"])
@pytest.mark.parametrize(("hold_s", "ramp_s"), [(1.0, 0.5), (4.0, 0.5)])
@pytest.mark.check
def test_braking_as_hard_as_a_car_can_is_no_knock(platform, hold_s, ramp_s):
    assert knocks_of(platform, braking(9.0, hold_s, ramp_s), {}, 1) < 0.3


@cache
def cues_of(platform, drive):
    given = motioncue.load_profile("ccd-dk", "cueing.algorithm=predictive", f"platform.preset={platform}")
    return Scene(given, drive_motion(drive)).cues(given.cueing)


@pytest.mark.check
def test_a_burst_that_ends_is_no_knock():
    cues = cues_of("hexapod-dim", "brake")
    assert max(abs(np.diff(cues[name])).max() for name in ("surge", "sway", "heave")) < 0.3


@pytest.mark.parametrize("platform", ["box-small", "hexapod-dim"])
@pytest.mark.parametrize("drive", ["tour", "brake"])
@pytest.mark.check
def test_a_tilt_that_turns_round_in_a_burst_does_so_once(platform, drive):
    for name in ("roll", "pitch"):
        pushes = np.degrees(np.diff(cues_of(platform, drive)[name], 2)) * RATE_HZ**2  # at most 300 deg/s^2
        for way in (pushes, -pushes):  # forth, back and forth again within 50 ms either way is not what a car does
            forth, back = np.flatnonzero(way > 200.0), np.flatnonzero(way < -200.0)
            span = round(0.05 * RATE_HZ)
            before = np.searchsorted(forth, back) - np.searchsorted(forth, back - span) > 0
            after = np.searchsorted(forth, back + span) - np.searchsorted(forth, back) > 0
            assert not (before & after).any(), back[before & after] / RATE_HZ
