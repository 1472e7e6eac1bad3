"""What four posts add of the car's suspension: each corner follows its wheel, as far as a stiff frame can."""

import itertools

import numpy as np
import pytest
from controller_rig import SWING, TOLD, Rig, telling_profile

import motioncue
from motioncue.core.channels import CHASSIS_DTYPE, CUE_DTYPE, MOTION_DTYPE, WHEELS
from motioncue.core.clock import FakeClock
from motioncue.drive.peers import Paced
from motioncue.engine.assembly import load_profile
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.virtual.controller import Firmware

DT = 3_000_030e-9
FIELDS = [{"offset": 4 * number, "type": "f4", "channel": f"actuator_{number + 1}"} for number in range(4)]


def profile_of(corners=None, **platform):
    table = {
        "platform": {"preset": "posts-4", **({"corners": corners} if corners is not None else {}), **platform},
        "output": {
            "system": "custom",
            "gauges": None,
            "motion": "udp://127.0.0.1:4123",
            "packet": {"size": 16, "fields": FIELDS},
        },
    }
    return load_profile("program-dk", "cueing={algorithm='classical', preset='small'}", table)


def heights(profile, weight=None, **travel):
    """Return the post at each wheel's corner [m], for suspension travel by wheel, while the cue is at neutral."""
    ticks = len(next(iter(travel.values())))
    chassis = np.zeros(ticks, CHASSIS_DTYPE)
    for wheel, values in travel.items():
        chassis[f"suspension_{wheel}"] = values
    share = np.ones(ticks) if weight is None else weight
    motion = np.zeros(ticks, MOTION_DTYPE)
    sent = motioncue.actuate(profile, np.zeros(ticks, CUE_DTYPE), motion=motion, weight=share, chassis=chassis)
    places, out = profile.platform.at_m, {}
    middle = np.mean(places, axis=0)
    for number, (forward, right) in enumerate(places):
        wheel = f"{'front' if forward > middle[0] else 'rear'}_{'right' if right > middle[1] else 'left'}"
        out[wheel] = sent["actuators"][:, number]
    return out


TIME = np.arange(3000) * DT
BUMP = 0.004 * np.sin(2.0 * np.pi * 5.0 * TIME)


def high_passed(travel, cutoff_hz=1.0):
    share, slow, out = 1.0 - np.exp(-2.0 * np.pi * cutoff_hz * DT), 0.0, []
    for value in travel:
        slow += share * (value - slow)
        out.append(value - slow)
    return np.array(out)


@pytest.mark.parametrize("wheel", WHEELS)
def test_a_wheel_that_goes_up_lifts_its_corner_most(wheel):
    """The plane nearest to one raised corner of a rectangle: 3/4 there, 1/4 beside it, -1/4 at the opposite one."""
    found = heights(profile_of({"gain": 1.0}), **{wheel: BUMP})
    front, left = "front" in wheel, "left" in wheel
    beside = f"{'front' if front else 'rear'}_{'right' if left else 'left'}"
    along = f"{'rear' if front else 'front'}_{'left' if left else 'right'}"
    opposite = f"{'rear' if front else 'front'}_{'right' if left else 'left'}"
    expected = high_passed(BUMP)
    for corner, share in ((wheel, 0.75), (beside, 0.25), (along, 0.25), (opposite, -0.25)):
        np.testing.assert_allclose(found[corner][100:], share * expected[100:], atol=3e-5)


def test_all_wheels_up_lift_the_seat_and_both_front_wheels_its_nose():
    found = heights(profile_of({"gain": 1.0}), **dict.fromkeys(WHEELS, BUMP))
    for wheel in WHEELS:
        np.testing.assert_allclose(found[wheel][100:], high_passed(BUMP)[100:], atol=3e-5)
    found = heights(profile_of({"gain": 0.5}), front_left=BUMP, front_right=BUMP)
    for wheel in WHEELS:
        expected = 0.5 * high_passed(BUMP) * ("front" in wheel)
        np.testing.assert_allclose(found[wheel][100:], expected[100:], atol=3e-5)


def test_a_lasting_load_is_left_out_and_no_wheel_adds_more_than_its_bound():
    long = np.where(TIME < 0.5, 0.0, 0.003)
    found = heights(profile_of({"gain": 1.0}), front_left=long)
    assert np.abs(found["front_left"][-300:]).max() < 1e-6
    found = heights(profile_of({"most_m": 0.002}), front_left=10.0 * BUMP)
    assert np.abs(found["front_left"]).max() == pytest.approx(0.75 * 0.002, rel=0.01)


def test_how_a_wheel_stands_when_it_is_first_known_lifts_no_corner():
    late = np.where(TIME < 1.0, np.nan, 0.05)
    for travel in (np.full_like(TIME, 0.05), late):
        assert all(not values.any() for values in heights(profile_of({"gain": 1.0}), front_left=travel).values())


def test_it_is_off_unless_asked_for_and_without_suspension_nothing_moves():
    assert all(not values.any() for values in heights(profile_of(), front_left=BUMP).values())
    assert all(not values.any() for values in heights(profile_of({"gain": 1.0}), front_left=0.0 * BUMP).values())


def test_it_fades_with_the_cue_and_is_at_rest_as_soon():
    weight = np.clip((4.0 - TIME) / 2.0, 0.0, 1.0)
    found = heights(profile_of({"gain": 1.0}), weight, front_left=BUMP)
    inside = slice(700, 1300)
    np.testing.assert_allclose(found["front_left"][inside], (0.75 * weight * high_passed(BUMP))[inside], atol=5e-5)
    assert all(not values[1400:].any() for values in found.values())


def test_spikes_keep_the_bounds_of_every_post():
    rng = np.random.default_rng(2)
    spikes = {wheel: rng.choice([-1.0, 0.0, 1.0, np.nan, np.inf], 3000) for wheel in WHEELS}
    profile = profile_of({"gain": 10.0, "most_m": 0.1})
    bounds = profile.platform.post
    for values in heights(profile, **spikes).values():
        assert np.isfinite(values).all()
        assert (values >= bounds.min_m).all()
        assert (values <= bounds.max_m).all()
        assert np.abs(np.diff(values)).max() <= bounds.speed_m_s * DT * (1.0 + 1e-9)
        assert np.abs(np.diff(values, 2)).max() <= bounds.acceleration_m_s2 * DT * DT * (1.0 + 1e-6)


def test_posts_that_are_not_at_four_corners_are_refused():
    with pytest.raises(ConfigError, match=r"platform\.corners: found 3 posts, allowed are four"):
        profile_of({"gain": 1.0}, preset="posts-3")


def test_it_is_fixed_while_it_runs():
    pipeline = Pipeline(profile_of({"gain": 1.0}), FakeClock(10**9))
    with pytest.raises(ConfigError, match=r"platform\.corners"):
        pipeline.retune("platform.corners.gain=2")


def kerbs():
    """Yield frames of a car that drives straight on, whose front left wheel meets kerbs."""
    row = np.zeros(1, TOLD)
    for number in itertools.count():
        row["frame_time"], row["speed"], row["surge"] = number / 60.0, 20.0, 1e-6 * (number % 2)
        row["suspension_front_left"] = SWING * (number // 6 % 2)
        yield Paced(1.0 / 60.0, row.tobytes())


@pytest.mark.rt
def test_other_bounds_of_the_posts_are_those_of_the_corners_from_then_on():
    """A wheel's corner goes 3/4 of what the wheel asks, which is half of the posts' speed at most."""
    profile = telling_profile()
    speed = profile.platform.post.speed_m_s

    def fastest():
        begun = len(rig.emitter.trace)
        rig.ticks(600)
        posts = rig.emitter.trace["actuators"][begun:, :4]
        assert (np.abs(np.diff(posts, axis=0)) <= speed * DT * (1.0 + 1e-9)).all()
        return np.abs(np.diff(posts[200:], axis=0)).max() / DT

    with Rig(profile, Firmware(homing_s=0.2)) as rig:
        rig.packages = kerbs()
        rig.until("RUNNING").ticks(300)
        usual = fastest()
        assert usual == pytest.approx(0.375 * speed, rel=0.1)
        rig.pipeline.retune(f"platform.post.speed_m_s={0.4 * speed}")
        assert fastest() == pytest.approx(0.375 * 0.4 * speed, rel=0.1)
        rig.pipeline.retune(f"platform.post.speed_m_s={speed}")
        assert fastest() == pytest.approx(usual, rel=0.01)


def rough_road():
    """Yield frames of a car that drives straight on, whose front left wheel goes up and down by 3 mm at 2 Hz."""
    row = np.zeros(1, TOLD)
    for number in itertools.count():
        row["frame_time"], row["speed"], row["surge"] = number / 60.0, 20.0, 1e-6 * (number % 2)
        row["suspension_front_left"] = 0.003 * np.sin(4.0 * np.pi * number / 60.0)
        yield Paced(1.0 / 60.0, row.tobytes())


@pytest.mark.rt
def test_a_change_of_settings_on_a_rough_road_drops_no_corner():
    """Corners stand where wheels and bounds have them, at whatever moment settings change that do not act there."""
    profile = telling_profile()
    posts = []
    for change in (False, True):
        with Rig(profile, Firmware(homing_s=0.2)) as rig:
            rig.packages = rough_road()
            rig.until("RUNNING")
            for _ in range(5):
                rig.ticks(71)
                if change:
                    rig.pipeline.retune(f"platform.post.speed_m_s={profile.platform.post.speed_m_s * 1.01}")
                    rig.pipeline.retune(f"platform.post.speed_m_s={profile.platform.post.speed_m_s}")
            posts.append(rig.emitter.trace["actuators"][:, :4].copy())
    assert np.ptp(posts[0][-355:], axis=0).max() > 0.003
    np.testing.assert_allclose(posts[1], posts[0], rtol=0, atol=1e-6)
