"""Kinematics of platforms: against another program's numbers, against geometry, and inverse after forward."""

import numpy as np
import pytest

import motioncue
from motioncue.platforms.kinematics import MOST_STRAIGHT, Kinematics

# What a program that shares nothing with this project computed for two hexapods: legs at neutral, and at surge
# 0.1, sway -0.05, 0.08 m up, roll 3, pitch -4, yaw 5 degrees, right front leg first, clockwise from above.
HEXAPODS = {
    "dim": (
        (0.700, 0.250, 1.150, 0.250, 0.9055),
        1.209984,
        (1.194071, 1.265126, 1.376800, 1.254531, 1.370329, 1.197729),
    ),
    "simona": (
        (1.600, 0.200, 1.650, 0.600, 2.390),
        2.706085,
        (2.675953, 2.650606, 2.936824, 2.791204, 2.909017, 2.722076),
    ),
}
POSE = (0.1, -0.05, 0.08, *np.radians([3.0, -4.0, 5.0]))


def joints(radius, distance, centers_deg):
    """Return pairs of joints on a circle: x forward, y right, angles from forward to the right."""
    half = np.arcsin(distance / 2 / radius)
    angles = [np.radians(center) + side * half for center in centers_deg for side in (-1, 1)]
    return [(radius * np.cos(angle), radius * np.sin(angle)) for angle in angles]


def hexapod(platform_radius, platform_distance, base_radius, base_distance, height):
    platform = joints(platform_radius, platform_distance, (60, 180, 300))
    base = joints(base_radius, base_distance, (0, 120, 240))
    # From the right front leg clockwise: the pair at 60 degrees belongs to the base pairs at 0 and 120, and so on.
    order = [1, 2, 3, 4, 5, 0]
    return Kinematics(
        [{"kind": "leg", "platform": (*platform[i], 0.0), "base": (*base[order[i]], height)} for i in range(6)]
    )


def rotation(roll, pitch, yaw):
    """Return the matrix that takes platform axes to base axes, as a product of turns about one axis each."""
    sr, cr, sp, cp, sy, cy = (
        *(f(roll) for f in (np.sin, np.cos)),
        *(f(pitch) for f in (np.sin, np.cos)),
        np.sin(yaw),
        np.cos(yaw),
    )
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def random_poses(n, travel, angle, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, 6)) * [*travel, *(3 * [np.radians(angle)])]


@pytest.mark.parametrize("name", HEXAPODS)
def test_legs_are_those_of_another_program(name):
    geometry, neutral, legs = HEXAPODS[name]
    kinematics = hexapod(*geometry)
    assert kinematics.inverse(np.zeros((1, 6)))[0] == pytest.approx([neutral] * 6, abs=6e-7)
    assert kinematics.inverse([POSE])[0] == pytest.approx(legs, abs=6e-7)


@pytest.mark.parametrize("name", HEXAPODS)
def test_forward_finds_the_pose_of_every_set_of_legs(name):
    kinematics = hexapod(*HEXAPODS[name][0])
    poses = random_poses(2000, (0.6, 0.6, 0.5) if name == "simona" else (0.2, 0.2, 0.2), 20 if name == "simona" else 12)
    found = np.vstack([kinematics.forward(legs[None]) for legs in kinematics.inverse(poses)])
    assert np.abs(found - poses).max() < 1e-9


CRANKS = [
    {
        "kind": "crank",
        "platform": (0.35 * np.cos(angle), 0.35 * np.sin(angle), -0.05),
        "base": (0.45 * np.cos(angle + side * 0.3), 0.45 * np.sin(angle + side * 0.3), 0.35),
        "azimuth": angle + side * np.pi / 2,
        "crank": 0.09,
        "rod": 0.42,
    }
    for angle in np.radians([60, 180, 300])
    for side in (-1, 1)
]


def test_a_crank_holds_its_joint_at_the_length_of_its_rod():
    kinematics = Kinematics(CRANKS)
    poses = random_poses(500, (0.02, 0.02, 0.02), 3)
    angles = kinematics.inverse(poses)
    assert np.isfinite(angles).all()
    for pose, row in zip(poses, angles, strict=True):
        matrix = rotation(*pose[3:])
        for crank, angle in zip(CRANKS, row, strict=True):
            joint = np.array([pose[0], pose[1], -pose[2]]) + matrix @ crank["platform"]
            tip = np.array(crank["base"]) + crank["crank"] * np.array(
                [np.cos(angle) * np.cos(crank["azimuth"]), np.cos(angle) * np.sin(crank["azimuth"]), -np.sin(angle)]
            )
            assert np.linalg.norm(joint - tip) == pytest.approx(crank["rod"], abs=1e-12)
    found = np.vstack([kinematics.forward(row[None]) for row in angles])
    assert np.abs(found - poses).max() < 1e-9


def test_straightness_is_the_cosine_between_a_crank_and_the_way_to_its_joint():
    kinematics = Kinematics(CRANKS)
    poses = random_poses(500, (0.08, 0.08, 0.08), 12)
    poses = poses[np.isfinite(kinematics.inverse(poses)).all(axis=1)]
    found = kinematics.straightness(poses)[0]
    angles, held = kinematics.inverse(poses), kinematics.inverse(poses, held=True)
    assert np.isnan(held).any()
    assert (np.isnan(held) == (abs(found) > MOST_STRAIGHT)).all()
    for pose, row, each in zip(poses, angles, found, strict=True):
        for crank, angle, straight in zip(CRANKS, row, each, strict=True):
            q = np.array([pose[0], pose[1], -pose[2]]) + rotation(*pose[3:]) @ crank["platform"] - crank["base"]
            plane = np.array([np.cos(crank["azimuth"]), np.sin(crank["azimuth"]), 0.0])
            way = [q @ plane, -q[2]]  # in the crank's plane: along it, and up
            assert straight == pytest.approx(np.dot(way, [np.cos(angle), np.sin(angle)]) / np.hypot(*way), abs=1e-12)


def test_derivatives_of_straightness_are_those_by_the_channels():
    kinematics = Kinematics(CRANKS)
    poses, step = random_poses(200, (0.08, 0.08, 0.08), 12), 1e-6
    found, rows = kinematics.straightness(poses)
    assert abs(found).max() > 1.0  # out of reach too
    for channel, nudge in enumerate(step * np.eye(6)):
        slope = (kinematics.straightness(poses + nudge)[0] - kinematics.straightness(poses - nudge)[0]) / (2.0 * step)
        assert np.abs(rows[:, :, channel] - slope).max() < 1e-8
    legs = hexapod(*HEXAPODS["dim"][0]).straightness(poses)
    assert not legs[0].any()
    assert not legs[1].any()


def test_a_pose_out_of_a_cranks_reach_is_no_number():
    assert np.isnan(Kinematics(CRANKS).inverse([(0.0, 0.0, 0.5, 0.0, 0.0, 0.0)])).all()


CORNERS = [(0.4, 0.3), (0.4, -0.3), (-0.4, -0.3), (-0.4, 0.3)]


@pytest.mark.parametrize("n", [3, 4])
def test_posts_hold_the_frame_at_their_corners(n):
    corners = CORNERS if n == 4 else [(0.5, 0.0), (-0.3, 0.35), (-0.3, -0.35)]
    kinematics = Kinematics([{"kind": "post", "platform": (x, y, 0.0)} for x, y in corners])
    poses = random_poses(200, (0.0, 0.0, 0.08), 10)
    poses[:, 5] = 0.0
    heights = kinematics.inverse(poses)
    for pose, row in zip(poses, heights, strict=True):
        for (x, y), height in zip(corners, row, strict=True):
            assert height == pytest.approx(pose[2] - (rotation(*pose[3:]) @ (x, y, 0.0))[2], abs=1e-15)
    if n == 4:  # a plane has no warp
        assert np.abs(heights @ [1, -1, 1, -1]).max() < 1e-15
    found = np.vstack([kinematics.forward(row[None]) for row in heights])
    assert np.abs(found - poses)[:, 2:5].max() < 1e-9  # surge, sway and yaw are not the posts' to say


def test_nose_up_lifts_the_front_posts_and_right_side_down_lowers_the_right_ones():
    front, right = (
        Kinematics([{"kind": "post", "platform": corner} for corner in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))])
        .inverse([(0, 0, 0, 0, 0.1, 0), (0, 0, 0, 0.1, 0, 0)])
        .T
    )
    assert front[0] == pytest.approx(np.sin(0.1))
    assert right[1] == pytest.approx(-np.sin(0.1))


def test_a_table_takes_its_channel():
    kinematics = Kinematics(
        [{"kind": "axis", "share": (0, 0, 0, 0, 0, -2.0)}, {"kind": "axis", "share": (0.5, 0, 0, 0, 0, 0)}]
    )
    assert kinematics.inverse([(0.2, 0, 0, 0, 0, 0.3)])[0] == pytest.approx([-0.6, 0.1])


@pytest.mark.parametrize("kinematics", [hexapod(*HEXAPODS["simona"][0]), Kinematics(CRANKS)], ids=["legs", "cranks"])
def test_the_jacobian_is_the_slope_of_the_positions(kinematics):
    step = 1e-6
    for pose in random_poses(20, (0.02, 0.02, 0.02), 3, seed=3):
        jacobian = kinematics.jacobian([pose])[0]
        matrix = rotation(*pose[3:])
        for k in range(6):
            ends = []
            for sign in (-1, 1):
                moved = np.array([pose[0], pose[1], -pose[2]])
                turned = matrix
                if k < 3:
                    moved[k] += sign * step
                else:
                    vector = np.zeros(3)
                    vector[k - 3] = sign * step
                    turned = rotation(*vector) @ matrix
                angles = (
                    np.arctan2(turned[2, 1], turned[2, 2]),
                    np.arcsin(-turned[2, 0]),
                    np.arctan2(turned[1, 0], turned[0, 0]),
                )
                ends.append(kinematics.inverse([(moved[0], moved[1], -moved[2], *angles)])[0])
            assert jacobian[:, k] == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("actuators", [[], [{"kind": "post"}] * 13])
def test_a_platform_has_one_to_twelve_actuators(actuators):
    with pytest.raises(ValueError, match=f"found {len(actuators)}, allowed are 1 to 12"):
        Kinematics(actuators)


def test_two_posts_turn_a_frame_about_its_joint():
    """0.4 m behind the joint and 0.25 m to each side; x forward, y right, z down, so that a post is higher by -z."""
    seat = motioncue.platform("seat-2")
    poses = np.zeros((50, 6))
    poses[:, 3:5] = np.random.default_rng(4).uniform(-0.1, 0.1, (50, 2))
    joints = np.array([[-0.4, 0.25, 0.0], [-0.4, -0.25, 0.0]])
    expected = [[-(rotation(roll, pitch, 0.0) @ joint)[2] for joint in joints] for roll, pitch in poses[:, 3:5]]
    np.testing.assert_allclose(seat.inverse(poses), expected, atol=1e-12)
    np.testing.assert_allclose(seat.forward(seat.inverse(poses)), poses, atol=1e-9)
    heaving = poses.copy()
    heaving[:, 2] = 0.03
    np.testing.assert_array_equal(seat.inverse(heaving), seat.inverse(poses))
    assert seat.ranges["heave_displacement"] == (None, None)
