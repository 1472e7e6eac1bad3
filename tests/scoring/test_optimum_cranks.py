"""The best motion on cranks, whose rods do not reach every angle, and on tables that carry a hexapod."""

import numpy as np
import pytest

pytest.importorskip("clarabel")
pytest.importorskip("scipy")
pytest.importorskip("platformdirs")

from scipy.spatial.transform import Rotation

import motioncue
from motioncue.cueing.senses import RATE_HZ
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.assembly import load_profile_on
from motioncue.platforms.build import build, carriers_of
from motioncue.profile.profile import platform_table
from motioncue.recording.recording import sample_recording
from motioncue.scoring import optimum, score
from motioncue.scoring.scene import Scene, poses_of

SIZES = ("small", "medium", "large")


def swaying(seconds, size):
    """Return what is felt of surge that goes back and forth."""
    time = np.arange(int(seconds * RATE_HZ) + 1) / RATE_HZ
    felt = np.zeros((len(time), 6))
    felt[:, 0] = size * np.sin(2.0 * time)
    return felt


def pushing(seconds, size):
    """Return what is felt of surge that goes on."""
    felt = swaying(seconds, 0.0)
    felt[:, 0] = size * np.clip(np.arange(len(felt)) / RATE_HZ - 1.0, 0.0, 1.0)
    return felt


def from_line(platform, poses):
    """Return angles [deg] of each crank from the line of shaft and rod's end in its plane, and of the crank.

    From vectors alone: where the first is 0, crank and rod are in one line, and the rod hardly holds.
    """
    turned = Rotation.from_euler("ZYX", poses[:, [5, 4, 3]]).as_matrix()
    angles = build(platform).kinematics.inverse(poses)
    found = []
    for angle, part in zip(angles.T, carriers_of(platform)[0], strict=True):
        joint = turned @ np.array(part["platform"]) + poses[:, :3] * [1.0, 1.0, -1.0] - np.array(part["base"])
        along = np.outer(np.cos(angle), [np.cos(part["azimuth"]), np.sin(part["azimuth"]), 0.0])
        crank = part["crank"] * (along - np.outer(np.sin(angle), [0.0, 0.0, 1.0]))
        rod = joint - crank
        np.testing.assert_allclose(np.linalg.norm(rod, axis=1), part["rod"], rtol=1e-9)
        side = [-np.sin(part["azimuth"]), np.cos(part["azimuth"]), 0.0]
        across = joint - np.outer(joint @ side, side)  # in the plane in which the crank turns
        cosine = np.sum(crank * across, axis=1) / (part["crank"] * np.linalg.norm(across, axis=1))
        found.append(np.degrees(np.arccos(np.abs(cosine))))
    return np.array(found).T, angles


@pytest.mark.search
def test_on_cranks_no_algorithm_is_better_than_the_best_motion(tmp_path, monkeypatch):
    monkeypatch.setattr(score, "cache_folder", lambda: tmp_path)
    drive = motioncue.read(sample_recording()).motion
    drive = drive[drive["time"] < drive["time"][0] + 15e9]
    errors, best = {}, None
    for name, kind in ALGORITHMS.items():
        presets = [each for each in kind.presets if each not in SIZES] + ["auto"] * (kind.auto is not None)
        for preset in (presets or [None]) if kind.poses else []:
            chosen = [f"cueing.algorithm={name}", *([f"cueing.preset={preset}"] if preset else [])]
            scene = Scene(load_profile_on("ccd-dk-classical", "hexapod-cranks", *chosen), drive)
            cues = scene.cues(scene.profile.cueing)
            asked = poses_of(cues)
            for way, poses in (
                ("fits", scene.made(asked * scene.fitted(asked).factors)),
                ("stopped", scene.stopped(cues)),
            ):
                errors[name, preset, way] = score.total_error(score.FORCES_FIRST, scene.errors(scene.felt(poses)))
            if best is None:
                felt = scene.felt(score.best_poses(scene, score.FORCES_FIRST))
                best = score.total_error(score.FORCES_FIRST, scene.errors(felt))
    assert len(errors) >= 10
    assert best < min(errors.values()), errors


@pytest.mark.check
def test_cranks_keep_their_bounds_and_the_line_of_their_rods_between_the_knots_too():
    """Every 2 ms: ends, speed, acceleration, and 15 degrees from one line with the rod, which are the first to act."""
    platform = platform_table("hexapod-cranks")
    built = build(platform)
    felt = pushing(6.0, 5.0) + np.roll(pushing(6.0, 4.0), 1, axis=1)  # surge and sway
    motion = optimum.best_motion(felt, built, np.ones(6))
    time = np.arange(3000) / 500.0
    apart, angles = from_line(platform, optimum.poses_at(motion, built, time))
    low, high, speed, acceleration, *_ = np.array(built.bounds).T
    assert (angles > low - 1e-4).all()
    assert (angles < high + 1e-4).all()
    assert (np.abs(np.diff(angles, axis=0)) < 1.001 * speed / 500.0).all()
    assert (np.abs(np.diff(angles, 2, axis=0)) < 1.02 * acceleration / 500.0**2).all()
    assert apart.min() > np.degrees(np.arccos(0.966)) - 0.05  # as docs/platforms.md: within 15 degrees is out of reach
    assert apart.min() < 16.0  # it does act


@pytest.mark.check
def test_a_leg_that_follows_from_the_others_on_a_sled_keeps_its_ends():
    built = build(platform_table("hexapod-on-sled"))
    motion = optimum.best_motion(swaying(6.0, 5.0), built, np.ones(6))
    places = built.kinematics.inverse(optimum.poses_at(motion, built, np.arange(3000) / 500.0))
    low, high, *_ = np.array(built.bounds).T
    assert (places > low - 1e-3 * (high - low)).all()
    assert (places < high + 1e-3 * (high - low)).all()
