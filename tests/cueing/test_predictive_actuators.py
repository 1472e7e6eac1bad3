"""Legs and cranks in a plan: where they go, not where they are at neutral, says how they move."""

import numpy as np
import pytest
from predictive_drives import RATE_HZ, drive, pose_of, profile

from motioncue import cueing
from motioncue.cueing.predictive import solver
from motioncue.platforms import build as platforms

CARRIED = ["hexapod-on-sled", "hexapod-on-yaw-table"]


@pytest.mark.parametrize("platform", ["hexapod-dim", "hexapod-cranks", "posts-3", *CARRIED])
def test_slopes_are_the_derivatives_by_the_channels(platform, probe, rng):
    kinematics = platforms.build(platforms.platform_named(platform)).kinematics
    found = np.empty((kinematics.count, 6))
    poses = rng.uniform(-1.0, 1.0, (40, 6)) * [0.05, 0.05, 0.03, 0.1, 0.1, 0.1]
    poses = poses[np.isfinite(kinematics.inverse(poses, held=True)).all(axis=1)]  # cranks not in line with their rods
    assert len(poses) > 20
    for pose in poses:
        probe.slopes_at(kinematics, pose, found)
        nudges = 1e-5 * np.eye(6)
        ahead, behind = (kinematics.inverse(pose + sign * nudges) for sign in (1, -1))
        np.testing.assert_allclose(found, (ahead - behind).T / 2e-5, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("channels", [1, 3, 6])
def test_rows_that_are_given_count_as_if_the_program_had_begun_with_them(channels, rng):
    n, m, kinds = 5 * channels, 24, 7
    square = rng.normal(size=(n, n))
    hessian, softness = square @ square.T + np.eye(n), np.full(m, 1e-6)
    units, slopes = rng.normal(size=(kinds, n)), rng.normal(size=(m, channels))
    kind = rng.integers(0, kinds, m)
    rows = units[kind] * np.tile(slopes, 5)
    begun = solver.Solver(hessian, rows, softness, 500)
    given = solver.Solver(hessian, rng.normal(size=(m, n)), softness, 500)
    given.vary(units, channels)
    for i in range(m):
        given.give(i, kind[i], slopes[i])
    for _ in range(5):
        linear, low = 10.0 * rng.normal(size=n), np.concatenate([-np.ones(n), rng.uniform(-0.5, -0.1, m)])
        for each in (begun, given):
            each.pose(linear, low, -low)
            assert each.solve()
        assert (abs(rows @ begun.solution) > 0.99 * -low[n:]).sum() > 1  # some bounds act
        np.testing.assert_allclose(given.solution, begun.solution, atol=1e-9)


@pytest.mark.parametrize("platform", ["hexapod-dim", "hexapod-simona"])
def test_legs_are_planned_within_their_speeds_and_accelerations(platform, rng):
    named = platforms.platform_named(platform)
    built, algorithm = platforms.build(named), cueing.design(profile(platform=platform).cueing, RATE_HZ, named)
    low, high, speed, acceleration, *_ = np.array(built.bounds).T
    places = built.kinematics.inverse(pose_of(algorithm.process(drive(rng, 6_000, 3.0))))
    shares = (
        abs(places - 0.5 * (low + high)) / (0.5 * (high - low)),
        abs(np.diff(places, axis=0)) * RATE_HZ / speed,
        abs(np.diff(places, 2, axis=0)) * RATE_HZ**2 / acceleration,
    )
    for share in shares:
        assert 0.95 < share.max() < 1.0  # 0.98 is planned for, softly
