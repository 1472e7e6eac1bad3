"""Sleds and turntables under a hexapod: together they make the pose, each within its own bounds."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_platforms import (
    DT,
    KINDS,
    POSE,
    assert_a_frame_fits,
    assert_within,
    driven,
    hostile,
    positions_of,
    profile_for,
)

import motioncue
from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.profile.profile import platform

SLED, TABLE = "hexapod-on-sled", "hexapod-on-yaw-table"
HEXAPOD = {"preset": "hexapod-dim"}


def sled(channel="surge_displacement", **others):
    travel = {"min_m": -1.0, "max_m": 1.0, "speed_m_s": 1.5, "acceleration_m_s2": 5.0}
    name = channel.split("_")[0] + "_sled"
    return {"name": name, "channel": channel, "carries_below_hz": 0.5, "travel": travel, **others}


def turntable(**others):
    turn = {"min_deg": -60.0, "max_deg": 60.0, "speed_deg_s": 60.0, "acceleration_deg_s2": 150.0}
    return {"name": "table", "channel": "yaw", "carries_below_hz": 0.5, "turn": turn, **others}


ALL = {**HEXAPOD, "axes": [sled(), sled("sway_displacement"), turntable()], "reference_m": [0.1, -0.05, 0.3]}


def smooth(x):
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10 + x * (6 * x - 15))


def sent_for(preset, channel, values, *overrides):
    """Return a platform, what is sent for values of one channel, the poses asked and those made."""
    profile = profile_for(preset, *overrides)
    built = platforms.build(profile.platform)
    poses = np.zeros((len(values), 6))
    poses[:, POSE.index(channel)] = values
    sent = positions_of(profile, poses)
    assert_within(sent, built)
    return built, sent, poses, built.kinematics.forward(sent)


def test_the_pose_is_that_of_a_hexapod_carried_along_and_turned_about_its_joints_center(rng):
    """Composed of rotation matrices; joints in the hexapod's own axes, which the tables carry."""
    whole = platform(ALL)
    own = platform({**HEXAPOD, "reference_m": ALL["reference_m"]})
    frames = rng.uniform(-1.0, 1.0, (200, 6)) * [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    tables = rng.uniform(-1.0, 1.0, (200, 3))
    poses = whole.forward(np.hstack([own.inverse(frames), tables]))
    center = np.array([-0.1, 0.05, 0.0])  # of the joints, from the motion reference point
    turned = Rotation.from_rotvec(tables[:, 2:] * [0, 0, 1])
    down = frames[:, :3] * [1, 1, -1]
    places = turned.apply(down - center) + center + np.pad(tables[:, :2], ((0, 0), (0, 1)))
    np.testing.assert_allclose(poses[:, :3] * [1, 1, -1], places, rtol=0, atol=1e-9)
    attitudes = turned * Rotation.from_euler("ZYX", frames[:, [5, 4, 3]])
    np.testing.assert_allclose(poses[:, [5, 4, 3]], attitudes.as_euler("ZYX"), rtol=0, atol=1e-9)


def test_the_jacobian_is_the_derivative_of_the_positions(rng):
    """By small moves and small turns about the base axes, at the tables' ends too, where the legs take over."""
    whole = platform(ALL)
    poses = rng.uniform(-1.0, 1.0, (300, 6)) * [1.2, 1.2, 0.1, 0.2, 0.2, 1.2]
    rows, step = whole.jacobian(poses), 1e-6

    def moved(way):
        turns = Rotation.from_rotvec(way[3:]) * Rotation.from_euler("ZYX", poses[:, [5, 4, 3]])
        return whole.inverse(np.hstack([poses[:, :3] + way[:3] * [1, 1, -1], turns.as_euler("ZYX")[:, ::-1]]))

    for column, way in enumerate(step * np.eye(6)):
        slopes = (moved(way) - moved(-way)) / (2.0 * step)
        np.testing.assert_allclose(rows[:, :, column], slopes, rtol=0, atol=2e-5)  # a knee's corner of curvature


@pytest.mark.parametrize(
    ("preset", "channel", "alone", "table"),
    [(SLED, "surge_displacement", (-0.2599, 0.2575), 1.0), (TABLE, "yaw", np.radians([-19.091, 19.091]), np.pi / 3)],
)
def test_reach_is_that_of_the_table_and_that_of_the_legs(preset, channel, alone, table):
    """The legs' by another program; that the pose is made there is shown by a slow ramp beyond it."""
    both = np.add(alone, (-table, table))
    built = platforms.build(profile_for(preset).platform)
    np.testing.assert_allclose(platforms.ranges(built)[channel], both, rtol=0, atol=4e-4)
    for end in both:
        built, sent, asked, made = sent_for(preset, channel, 1.1 * end * smooth(np.arange(5000) * DT / 9.0))
        np.testing.assert_allclose(made[-1], asked[-1] / 1.1, rtol=0, atol=4e-4)
        assert sent[-1, -1] == np.sign(end) * table


@pytest.mark.parametrize(("preset", "channel"), [(SLED, "surge_displacement"), (TABLE, "yaw")])
@pytest.mark.parametrize(("hertz", "size"), [(0.1, 1.2), (0.3, 0.5), (0.5, 0.3)])
def test_table_and_legs_make_the_pose_that_the_legs_alone_cannot(preset, channel, hertz, size):
    time = np.arange(9000) * DT
    values = size * np.sin(2 * np.pi * hertz * time) * smooth(time / 6.0)
    _, sent, asked, made = sent_for(preset, channel, values)
    np.testing.assert_allclose(made, asked, rtol=0, atol=1e-12)
    assert np.ptp(sent[:, -1]) > 0.6 * np.ptp(values)


def test_what_is_slow_is_the_sleds_and_what_is_fast_the_legs():
    """The split at f of its corner g: the legs keep (jf/g)^2 / (1 + jf/g)^2 of a motion, here 1/101 and 100/101."""
    time = np.arange(16000) * DT
    for hertz, size in ((0.05, 0.4), (5.0, 0.004)):
        values = size * np.sin(2 * np.pi * hertz * time) * smooth(time / 10.0)
        _, sent, asked, made = sent_for(SLED, "surge_displacement", values)
        np.testing.assert_allclose(made, asked, rtol=0, atol=1e-12)
        kept = (values - sent[:, -1])[-round(20.0 / DT) :]
        expected = size * (hertz / 0.5) ** 2 / (1.0 + (hertz / 0.5) ** 2)
        # Of a fast motion, the legs have no room for all at once: the share grows less than twice their room.
        assert np.ptp(kept) / 2.0 == pytest.approx(expected, rel=0.03)


def test_the_legs_take_what_a_slow_sled_cannot_follow():
    travel = "{min_m=-1, max_m=1, speed_m_s=0.03, acceleration_m_s2=0.1}"
    slow = f"platform.axes=[{{name='sled', channel='surge_displacement', carries_below_hz=0.5, travel={travel}}}]"
    time = np.arange(4000) * DT
    values = 0.15 * smooth(time / 1.0)
    _, sent, asked, made = sent_for(SLED, "surge_displacement", values, slow)
    np.testing.assert_allclose(made, asked, rtol=0, atol=1e-9)
    assert sent[round(1.0 / DT), -1] < 0.03
    assert sent[-1, -1] == pytest.approx(0.15, abs=1e-6)


@pytest.mark.check
@pytest.mark.parametrize("jerk", [None, 60.0])
@pytest.mark.parametrize("kind", KINDS)
def test_three_tables_and_the_legs_keep_their_bounds_for_any_cue(kind, jerk, rng):
    bounds = "" if jerk is None else f", jerk_m_s3={jerk}"
    turn = "" if jerk is None else ", jerk_deg_s3=3000"
    rows = [
        f"{{name='{name}_sled', channel='{name}_displacement', carries_below_hz=0.5, "
        f"travel={{min_m=-0.8, max_m=0.5, speed_m_s=1, acceleration_m_s2=4{bounds}}}}}"
        for name in ("surge", "sway")
    ]
    rows += [
        "{name='turning', channel='yaw', carries_below_hz=0.3, "
        f"turn={{min_deg=-40, max_deg=50, speed_deg_s=50, acceleration_deg_s2=100{turn}}}}}"
    ]
    legs = () if jerk is None else (f"platform.leg.jerk_m_s3={jerk}",)
    profile = profile_for("hexapod-dim", f"platform.axes=[{', '.join(rows)}]", *legs)
    built = platforms.build(profile.platform)
    sizes = 10.0 ** rng.uniform(-2.0, 1.0, 8)
    poses = np.concatenate([hostile(rng, kind, size, 3000) for size in sizes])
    poses[5000:5100] = np.nan
    sent = positions_of(profile, poses)
    assert np.isfinite(sent).all()
    assert_within(sent, built)
    assert_a_frame_fits(profile, sent[::10])
    if jerk is not None:
        most = np.array([each.jerk for each in built.bounds])
        assert (np.abs(np.diff(sent, 3, axis=0)).max(axis=0) <= most * DT**3 * (1 + 1e-6) + 1e-13).all()


@pytest.mark.parametrize("preset", [SLED, TABLE])
def test_a_drive_begins_and_ends_where_the_platform_is_parked(preset):
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    sent = driven(profile, 20.0).emitter.trace["actuators"][:, : len(built.names)]
    assert_within(sent, built)
    np.testing.assert_array_equal(sent[[0, -1]], 2 * [[*(6 * [1.045]), 0.0]])


REFUSED = {
    "under posts": ({"preset": "posts-4", "axes": [sled()]}, "under a hexapod alone"),
    "heave": ({**HEXAPOD, "axes": [sled("heave_displacement")]}, "allowed are surge_displacement, sway_displ"),
    "twice": ({**HEXAPOD, "axes": [sled(), {**sled(), "name": "other"}]}, "each of them once"),
    "scaled": ({**HEXAPOD, "axes": [sled(scale=2.0)]}, "scale = 1"),
    "a travel for yaw": ({**HEXAPOD, "axes": [sled("yaw")]}, "turn for yaw"),
    "beside": ({**HEXAPOD, "axes": [turntable(), {**sled(), "carries_below_hz": None}]}, "beside what carries"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_carry_is_refused(case):
    table, message = REFUSED[case]
    with pytest.raises(ConfigError, match=message):
        platform(table)


def test_a_sled_beside_the_frame_moves_as_before():
    """Without `carries_below_hz` both follow the whole channel, and the legs' reach is the platform's."""
    row = sled()
    del row["carries_below_hz"]
    beside = platform({**HEXAPOD, "axes": [row]})
    assert beside.ranges["surge_displacement"] == platform(HEXAPOD).ranges["surge_displacement"]
    np.testing.assert_array_equal(beside.inverse([[0.1, 0, 0, 0, 0, 0]])[0, -1], 0.1)


def test_how_far_a_table_carries_does_not_change_while_it_runs():
    """The legs go the other way as it is sent back, and each within bounds of its own."""
    row = "{name='sled', channel='surge_displacement', carries_below_hz=0.5, travel={%s, acceleration_m_s2=5}}"
    stepper = motioncue.bind(profile_for(SLED))
    stepper.retune(["platform.axes=[" + row % "min_m=-1.0, max_m=1.0, speed_m_s=1.2" + "]"])
    with pytest.raises(ConfigError, match=r"axes\[0\]\.travel\.max_m: found 0\.5, allowed is 1\.0 while it runs"):
        stepper.retune(["platform.axes=[" + row % "min_m=-1.0, max_m=0.5, speed_m_s=1.2" + "]"])
