"""A preview that says what never comes: no person on the platform feels a blow by it, however long it goes on."""

import numpy as np
import pytest
from predictive_drives import RATE_HZ

import motioncue
from motioncue.core.channels import AHEAD_S, MOTION_DTYPE

MISLED = 0.25
"""What docs/predictive.md promises: largest change of specific force along an axis, tick to tick [m/s^2]."""

SINCE, UNTIL = 1000, 2200  # ticks in which it lies
TOLD = np.arange(SINCE, UNTIL)
LIES = {
    "flips every five ticks": np.where(TOLD // 5 % 2, -30.0, 30.0),
    "flips every fifth of a second": np.where(TOLD // 66 % 2, -30.0, 30.0),
    "3 g that never come": np.full(len(TOLD), 30.0),
    "little, to and fro": np.where(TOLD // 66 % 2, -3.0, 3.0),
    "chance": np.random.default_rng(1).uniform(-30.0, 30.0, (len(TOLD), 1)),
}


def smooth_drive(time):
    """Return a drive that brakes and bends as a car in town does, up to 3 m/s^2, without any step."""
    motion = np.zeros(np.shape(time), MOTION_DTYPE)
    grows = np.clip(time, 0.0, 1.0) ** 2 * (3.0 - 2.0 * np.clip(time, 0.0, 1.0))
    motion["surge"] = 3.0 * grows * np.sin(0.9 * time)
    motion["sway"] = 2.5 * grows * np.sin(1.3 * time + 1.0)
    motion["yaw_rate"] = 0.2 * grows * np.sin(1.3 * time + 1.0)
    return motion


def cued(platform, time, ahead):
    keys = ["cueing.algorithm=predictive", f"platform.preset={platform}", "limits=none"]
    return motioncue.cue(motioncue.load_profile("ccd-dk", *keys), smooth_drive(time), ahead=ahead)


@pytest.mark.parametrize("platform", ["box-small", "box-large", "hexapod-dim", "hexapod-simona"])
@pytest.mark.parametrize("lie", [*LIES])
def test_a_preview_that_keeps_lying_is_no_blow(platform, lie):
    """All of a right preview of a smooth drive is replaced, along two axes, for 3.6 s."""
    time = np.arange(UNTIL + 800) / RATE_HZ
    ahead = smooth_drive(time[:, None] + AHEAD_S)
    for axis in ("surge", "sway"):
        ahead[axis][TOLD] = LIES[lie].reshape(len(TOLD), 1)
    cues = cued(platform, time, ahead)
    felt = np.stack([cues[axis] for axis in ("surge", "sway", "heave")])
    assert np.abs(np.diff(felt[:, SINCE - 1 :])).max() < MISLED


@pytest.mark.parametrize("platform", ["box-small", "box-large", "hexapod-dim", "hexapod-simona"])
def test_one_that_lies_from_the_first_tick_on_is_no_blow(platform):
    """A car stands, and brakes at once with 3 g for as long as it stands, as the program has it."""
    ahead = np.zeros((2000, len(AHEAD_S)), MOTION_DTYPE)
    ahead["surge"] = -30.0
    keys = ["cueing.algorithm=predictive", f"platform.preset={platform}", "limits=none"]
    cues = motioncue.cue(motioncue.load_profile("ccd-dk", *keys), np.zeros(len(ahead), MOTION_DTYPE), ahead=ahead)
    felt = np.stack([cues[axis] for axis in ("surge", "sway", "heave")])
    assert np.abs(np.diff(felt, prepend=0.0)).max() < MISLED


def test_one_that_is_right_again_counts_again():
    """Half a minute after a lie of a second the platform is where one that never lied has it; without, it is not."""
    time = np.arange(0.0, 45.0, 1.0 / RATE_HZ)
    right = smooth_drive(time[:, None] + AHEAD_S)
    lied = right.copy()
    lied["surge"][SINCE : SINCE + 333] = lied["sway"][SINCE : SINCE + 333] = 30.0
    after = time > 36.0
    never, once, none = (cued("box-large", time, ahead)["surge_displacement"][after] for ahead in (right, lied, None))
    assert np.abs(once - never).max() < 0.05 * np.abs(never).max()
    assert np.abs(none - never).max() > 0.2 * np.abs(never).max()
