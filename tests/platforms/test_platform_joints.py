"""Hexapods whose joints are anywhere: kinematics, bounds, and mistakes that can be told."""

import re

import msgspec
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_platforms import KINDS, assert_within, hostile, positions_of, profile_for

import motioncue
from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.profile.profile import overridden, platform_from, resolved_text

INCH = 0.0254
SPEED = {"speed_m_s": 0.4, "acceleration_m_s2": 5.0}

# The default machine of LinuxCNC's genhexkins.h, whose x is right and y forward [inch]; its range is an assumption.
BASE = [(-22.95, 13.25), (22.95, 13.25), (22.95, 13.25), (0, -26.5), (0, -26.5), (-22.95, 13.25)]
PLATFORM = [(-1, 11.5), (1, 11.5), (10.459, -4.884), (9.459, -6.616), (-9.459, -6.616), (-10.459, -4.884)]


def linuxcnc(**keys):
    base, top = ([[y * INCH, x * INCH, 0.0] for x, y in joints] for joints in (BASE, PLATFORM))
    leg = {"min_m": 0.68, "max_m": 0.83, **SPEED}
    table = {"kind": "hexapod", "height_m": 0.508, "platform": {"at_m": top}, "base": {"at_m": base}, "leg": leg}
    return table | keys


ODD_BASE = [
    [1.1, 0.2, 0.0],
    [-0.4, 1.0, 0.1],
    [-0.6, 0.9, 0.0],
    [-0.6, -1.0, 0.2],
    [-0.4, -1.0, 0.0],
    [1.1, -0.3, 0.05],
]
ODD_TOP = [[0.5, 0.5, 0.0], [0.3, 0.6, 0.15], [-0.7, 0.1, 0.0], [-0.7, -0.2, -0.1], [0.3, -0.6, 0.0], [0.6, -0.3, 0.1]]
ODD_LENGTHS = np.linalg.norm(np.subtract(ODD_TOP, ODD_BASE) + np.array([0, 0, 1.1]), axis=1)


def odd(**keys):
    """Return a hexapod of which no two legs are alike, and whose joints are in no plane."""
    legs = [
        {
            "min_m": length - 0.1 - 0.005 * k,
            "max_m": length + 0.1,
            "speed_m_s": 0.3 + 0.1 * k,
            "acceleration_m_s2": 4.0 + k,
        }
        for k, length in enumerate(ODD_LENGTHS.tolist())
    ]
    table = {"kind": "hexapod", "height_m": 1.1, "platform": {"at_m": ODD_TOP}, "base": {"at_m": ODD_BASE}, "leg": legs}
    return table | keys


def profile_with(platform, preset="hexapod-dim"):
    """Return a profile with another platform that has actuators of the same names."""
    return msgspec.structs.replace(profile_for(preset), platform=platform_from(platform))


def lengths(top, base, height, reference, pose):
    """Return the legs' lengths at a pose, in axes whose z points up: | p + R (a - m) - (b - m) |."""
    surge, sway, heave, roll, pitch, yaw = pose
    up = np.array([1.0, 1.0, -1.0])
    turned = Rotation.from_euler("ZYX", [yaw, pitch, roll]).apply((np.array(top) - reference) * up) * up
    return np.linalg.norm(
        np.array([surge, sway, heave]) + turned - (np.array(base) - (0.0, 0.0, height) - reference), axis=1
    )


@pytest.mark.parametrize("reference", [(0.0, 0.0, 0.0), (0.1, -0.05, 0.6)])
@pytest.mark.parametrize("table", [linuxcnc(), odd()], ids=["linuxcnc", "odd"])
def test_legs_are_those_of_the_vector_equation(rng, table, reference):
    platform = motioncue.platform(table | {"reference_m": reference})
    poses = rng.uniform(-1.0, 1.0, (200, 6)) * (0.1, 0.1, 0.1, 0.15, 0.15, 0.15)
    top, base = table["platform"]["at_m"], table["base"]["at_m"]
    expected = [lengths(top, base, table["height_m"], reference, pose) for pose in poses]
    found = platform.inverse(poses)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(platform.forward(found), poses, rtol=0, atol=1e-9)


def test_a_circle_of_pairs_is_the_same_as_its_joints_one_by_one():
    """The pairs of SIMONA's size, by their angles from forward: leg 1 goes from 0 + half a pair to 60 - half a pair."""
    simona = motioncue.platform("hexapod-simona")
    rings = {"base": (1.65, 0.6, (0, 120, 120, 240, 240, 360)), "platform": (1.6, 0.2, (60, 60, 180, 180, 300, 300))}
    places = {}
    for key, (radius, pair, centers) in rings.items():
        half = np.arcsin(pair / 2 / radius) * np.tile((1, -1) if key == "base" else (-1, 1), 3)
        angles = np.radians(centers) + half
        places[key] = {
            "at_m": np.stack([radius * np.cos(angles), radius * np.sin(angles), 0 * angles], axis=1).tolist()
        }
    leg = {"min_m": 2.081, "max_m": 3.331, **SPEED}
    same = motioncue.platform({"kind": "hexapod", "height_m": 2.39, "leg": leg, **places})
    poses = [[0.1, -0.05, 0.08, 0.05, -0.07, 0.09]]
    np.testing.assert_allclose(same.inverse(poses), simona.inverse(poses), rtol=0, atol=1e-12)


def test_a_platform_that_hangs_is_one_that_stands_upside_down():
    """Turned over about the forward axis, right becomes left and up becomes down."""
    standing, hanging = odd(), odd(height_m=-1.1)
    for key in ("platform", "base"):
        hanging[key] = {"at_m": [[x, -y, -z] for x, y, z in hanging[key]["at_m"]]}
    poses = np.array([[0.05, -0.04, 0.03, 0.06, -0.05, 0.04]])
    turned = poses * (1, -1, -1, 1, -1, -1)
    found = motioncue.platform(hanging).inverse(turned)
    np.testing.assert_allclose(found, motioncue.platform(standing).inverse(poses), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_every_leg_keeps_bounds_of_its_own(rng, kind):
    profile = profile_with(odd())
    built = platforms.build(profile.platform)
    assert len({bounds[2] for bounds in built.bounds}) == 6
    for size in (0.05, 0.5, 5.0):
        sent = positions_of(profile, hostile(rng, kind, size, 3000))
        assert np.isfinite(sent).all()
        assert_within(sent, built)
        poses = built.kinematics.forward(sent)
        np.testing.assert_allclose(built.kinematics.inverse(poses), sent, rtol=0, atol=1e-9)


def test_posts_may_have_bounds_of_their_own(rng):
    bounds = [
        {"min_m": -0.05 - 0.01 * k, "max_m": 0.06, "speed_m_s": 0.2 + 0.1 * k, "acceleration_m_s2": 3.0}
        for k in range(4)
    ]
    posts = {"kind": "posts", "at_m": [[0.7, 0.3], [-0.5, 0.35], [-0.6, -0.35], [0.65, -0.25]], "post": bounds}
    profile = profile_with(posts, "posts-4")
    built = platforms.build(profile.platform)
    sent = positions_of(profile, hostile(rng, "jumps", 0.2, 6000))
    assert_within(sent, built)
    assert (sent.min(axis=0) < [0.9 * bound["min_m"] for bound in bounds]).any()


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_list_of_bounds_has_one_for_each(count):
    posts = {"preset": "posts-4", "post": count * [{"min_m": -0.1, "max_m": 0.1, **SPEED}]}
    with pytest.raises(
        ConfigError, match=f"platform.post: found a list of {count}, allowed is one table, or a list of 4"
    ):
        motioncue.platform(posts)


@pytest.mark.parametrize("number", range(6))
def test_one_crank_the_other_way_round_is_refused(number):
    azimuths = [90, 30, 210, 150, 330, 270]
    assert motioncue.platform({"preset": "hexapod-cranks", "azimuths_deg": azimuths})
    right = azimuths[number]
    azimuths[number] = (right + 180) % 360
    message = (
        rf"azimuths_deg\[{number}\]: found {azimuths[number]}, .*crank_{number + 1} points the other.* {right} would"
    )
    with pytest.raises(ConfigError, match=message):
        motioncue.platform({"preset": "hexapod-cranks", "azimuths_deg": azimuths})


@pytest.mark.parametrize("table", [linuxcnc(), odd()], ids=["linuxcnc", "odd"])
@pytest.mark.parametrize("key", ["platform", "base"])
@pytest.mark.parametrize("axis", [0, 1])
def test_mirrored_joints_are_refused(table, key, axis):
    places = np.array(table[key]["at_m"])
    places[:, axis] *= -1
    with pytest.raises(ConfigError, match="joints of the platform that are mirrored against those of the base"):
        motioncue.platform(table | {key: {"at_m": places.tolist()}})


def legs_of(**keys):
    return {"leg": {"min_m": 0.68, "max_m": 0.83, **SPEED} | keys}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"base": {"at_m": [*odd()["base"]["at_m"], [0, 0, 0]]}}, "platform.base.at_m: found .* list in brackets"),
        ({"base": {"at_m": 6 * [[0.5, 0.0]]}}, r"platform.base.at_m\[0\]: found \[0.5, 0.0\], .* of 3"),
        ({"base": {"at_m": 6 * [[np.nan, 0.0, 0.0]]}}, r"platform.base.at_m\[0\]\[0\]: found nan, .* finite"),
        ({"base": {"at_m": 6 * [[380.0, 0.0, 0.0]]}}, r"platform.base.at_m\[0\]\[0\]: found 380.0, .* -100 to 100"),
        ({"base": {"at_m": 6 * [[0.5, 0.0, 0.0]]}}, "leg_. is at .* at neutral, beyond its range"),
        ({"base": {"radius_m": 1.0}}, "platform.base.pair_m: missing, allowed are radius_m and pair_m, or at_m"),
        ({"base": {}}, "platform.base.radius_m: missing"),
        ({"base": odd()["base"] | {"radius_m": 1.0}}, "platform.base: found at_m beside radius_m or pair_m"),
        ({"height_m": 0.0}, "at neutral, beyond its range"),
        ({"base": {"radius_m": 1e308, "pair_m": 0.2}}, "platform.base.radius_m: found 1e.308, .* above 0, up to 100"),
        ({"height_m": np.inf}, "platform.height_m: found inf, allowed are finite numbers"),
        ({"reference_m": [0, 0, 1e308]}, r"platform.reference_m\[2\]: found 1e\+308"),
        (legs_of(max_m=np.nan), "platform.leg.max_m: found nan, allowed are finite numbers"),
        (legs_of(max_m=1e308), "platform.leg.max_m: found 1e.308"),
        (legs_of(min_m=0.83), "leg_1: found 0.8300 m to 0.8300 m, allowed is a range"),
        (legs_of(min_m=0.9, max_m=0.7), "leg_1: found 0.9000 m to 0.7000 m, allowed is a range"),
        (legs_of(speed_m_s=-0.1), "platform.leg.speed_m_s: found -0.1, allowed is a number above 0"),
        (legs_of(acceleration_m_s2=0.0), "platform.leg.acceleration_m_s2: found 0.0"),
        (legs_of(speed_m_s=5e-324), "leg_1 needs inf s from neutral to an end"),
        ({"leg": 5 * [legs_of()["leg"]]}, "platform.leg"),
        ({"leg": 3}, "platform.leg: found 3, allowed is a table"),
        ({"leg": [*5 * [legs_of()["leg"]], {"min_m": 0.7}]}, r"platform.leg\[5\].*: missing"),
    ],
)
def test_a_malformed_table_is_refused_with_what_is_wrong(keys, message):
    with pytest.raises(ConfigError, match=message) as caught:
        motioncue.platform(linuxcnc(**keys))
    assert len(re.sub(r"found .*, allowed", "", str(caught.value))) < 400


def test_two_legs_that_coincide_do_not_hold_a_frame():
    table = linuxcnc()
    for key in ("platform", "base"):
        places = [list(place) for place in table[key]["at_m"]]
        places[1] = places[0]
        table[key] = {"at_m": places}
    with pytest.raises(ConfigError, match="a frame that its actuators do not hold at neutral"):
        motioncue.platform(table)


def test_a_description_with_lists_is_written_and_changed_like_any_other(tmp_path):
    profile = profile_with(odd())
    changed = overridden(
        profile, ["platform.rise_s=2", "platform.leg=" + str(legs_of()["leg"]).replace(":", " =").replace("'", "")]
    )
    assert changed.platform.rise_s == 2.0
    assert changed.platform.leg.max_m == 0.83
    assert changed.platform.base == profile.platform.base
    path = tmp_path / "rig.toml"
    path.write_text(resolved_text(profile), encoding="utf-8")
    assert motioncue.load_profile(path).platform == profile.platform
