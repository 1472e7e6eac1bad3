"""Actuators within bounds on jerk too: for any input, in any state, while bounds change; stops of the right length."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_platforms import DT, assert_a_frame_fits, assert_within, cues_of, driven, hostile, positions_of, profile_for

import motioncue
from motioncue.core.channels import ACTUATION_DTYPE, CUE_DTYPE, MOTION_DTYPE
from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.profile.profile import overridden

EXCESS = 1e-8  # allowed share of a bound
# Low and high [m], speed, acceleration and jerk [m per tick, tick^2, tick^3].
ACTUATOR = st.tuples(
    st.floats(-2.0, -0.01), st.floats(0.01, 2.0), st.floats(1e-5, 1.0), st.floats(1e-5, 1.0), st.floats(1e-7, 1.0)
)
WANTED = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([math.nan, math.inf, 1e308, -9e8, 0.0, 5e-324]))


def kept(probe, bounds, start, targets):
    """Return the positions of every tick, start first, and which ticks were changed."""
    positions = np.array(targets, np.float64, ndmin=2)
    changed, _ = probe.kept(np.ascontiguousarray(bounds), np.ascontiguousarray(start), positions)
    return np.vstack([start, positions]), np.array(changed, bool)


def assert_kept(bounds, positions):
    """Assert that positions and their first three differences are within bounds, starting from rest."""
    low, high, *derivatives = bounds.T
    assert (positions >= low).all()
    assert (positions <= high).all()
    rest = np.vstack([positions[:1]] * 3 + [positions])
    for order, most in enumerate(derivatives, 1):
        assert (np.abs(np.diff(rest, order, axis=0)) <= most * (1.0 + EXCESS) + 1e-14 * 2**order).all()


def stop_way(speed, acceleration, jerk):
    """Return the shortest way of a stop from a speed without acceleration: half of it, times its time."""
    if speed * jerk >= acceleration**2:
        return 0.5 * speed * (speed / acceleration + acceleration / jerk)
    return speed * math.sqrt(speed / jerk)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_bounds_are_widened_at_once_but_for_the_speed_and_for_no_other_actuators(probe, n):
    """A range and an acceleration in use stay until the state allows less; a speed is kept from the next tick on."""
    before = np.array([[-1.0, 1.0, 2.0, 3.0, 4.0]] * 4)
    goal = np.array([[-2.0, 0.5, 1.0, 5.0, np.inf], [-0.5, 3.0, 4.0, 1.0, 2.0]] * 2)
    bounds = before.copy()
    probe.relaxed(goal, bounds, n)
    expected = before.copy()
    for row, wanted in zip(expected[:n], goal, strict=False):
        row[:] = min(row[0], wanted[0]), max(row[1], wanted[1]), wanted[2], *np.maximum(row[3:], wanted[3:])
    np.testing.assert_array_equal(bounds, expected)


@pytest.mark.check
def test_a_stop_that_is_found_ends_at_rest_within_all_bounds(probe, rng):
    """Tick by tick: evenly to the brake, the brake, evenly back; from any state, whatever was the guess."""
    found = 0
    for _ in range(20_000):
        n = int(rng.integers(1, 3))
        most = np.column_stack([10.0 ** rng.uniform(0.0, 1.8, n), 10.0 ** rng.uniform(0.0, 1.1, n), np.ones(n)])
        v, a = most[:, 0] * rng.uniform(-1.0, 1.0, n), most[:, 1] * rng.uniform(-1.0, 1.0, n)
        ends = 10.0 ** rng.uniform(-1.0, 2.7, (n, 2)) * [-1.0, 1.0]
        bounds, guess = np.hstack([ends, most]), rng.integers([1, 0, 1], 6)
        stop = probe.stop_found(bounds, np.array([np.zeros(n), v, a]), guess)
        if stop is None:
            continue
        found += 1
        ramp, hold, release = (int(each) for each in stop)
        brake = -(v + a * (ramp - 1) / 2) / (hold + (ramp + release) / 2)
        shares = np.arange(1, ramp + 1)[:, None] / ramp
        path = np.vstack([a + shares * (brake - a), np.tile(brake, (hold, 1))])
        path = np.vstack([path, brake * (1 - np.arange(1, release + 1)[:, None] / release)])
        speeds = v + np.cumsum(path, axis=0)
        places = np.cumsum(speeds, axis=0)
        assert np.abs(speeds[-1]).max() < 1e-9
        assert (np.abs(np.diff(np.vstack([a, path]), axis=0)) <= bounds[:, 4] + 1e-7).all()
        assert (np.abs(path) <= bounds[:, 3] + 1e-7).all()
        assert (np.abs(speeds) <= bounds[:, 2] + 1e-6).all()
        assert (places >= bounds[:, 0] - 1e-6).all()
        assert (places <= bounds[:, 1] + 1e-6).all()
    assert found > 2_000


@st.composite
def rigs(draw):
    """Return bounds of some actuators, one row each, and their positions at rest, at an end or between."""
    bounds = np.array(draw(st.lists(ACTUATOR, min_size=1, max_size=6)))
    where = draw(st.lists(st.floats(0.0, 1.0), min_size=len(bounds), max_size=len(bounds)))
    low, high = bounds[:, 0], bounds[:, 1]
    return bounds, np.clip(low + np.array(where) * (high - low), low, high)


@given(rigs(), st.data())
def test_no_sequence_of_targets_breaks_a_bound(probe, rig, data):
    """Steps to both ends of the range and beyond, for a tick or for thirty, and what is no number."""
    bounds, start = rig
    ends = st.sampled_from([*bounds[:, 0], *bounds[:, 1]])
    row = st.lists(WANTED | ends, min_size=len(start), max_size=len(start))
    stretches = data.draw(st.lists(st.tuples(row, st.integers(1, 30)), min_size=1, max_size=12))
    targets = np.vstack([np.tile(values, (ticks, 1)) for values, ticks in stretches])
    assert_kept(bounds, kept(probe, bounds, start, targets)[0])


@pytest.mark.parametrize("kind", ["noise", "ends", "walk", "sine"])
def test_no_long_drive_of_targets_breaks_a_bound(probe, rng, kind):
    jerks = np.geomspace(1e-7, 1e-5, 6)
    bounds = np.column_stack(
        [[-0.3] * 6, [0.2] * 6, np.geomspace(1e-3, 1e-2, 6), np.geomspace(1e-5, 1e-3, 6), jerks[::-1]]
    )
    n = 20_000
    targets = {
        "noise": lambda: rng.uniform(-0.5, 0.5, (n, 6)),
        "ends": lambda: np.repeat(rng.choice([-0.3, 0.2], (n // 200, 6)), 200, axis=0),
        "walk": lambda: np.cumsum(rng.normal(0.0, 2e-3, (n, 6)), axis=0),
        "sine": lambda: 0.4 * np.sin(np.outer(np.arange(n), np.geomspace(1e-3, 3e-2, 6))),
    }[kind]()
    positions, changed = kept(probe, bounds, np.zeros(6), targets)
    assert_kept(bounds, positions)
    assert changed.any()
    assert np.ptp(positions, axis=0).min() > 5e-4  # they do move


@pytest.mark.parametrize(
    ("speed", "acceleration", "jerk"),
    [(0.5, 5.0, 100.0), (0.5, 5.0, 20.0), (0.1, 5.0, 100.0), (0.5, 2.0, 1000.0), (0.3, 5.0, 1e6)],
)
def test_a_motion_towards_an_end_is_followed_as_long_as_a_stop_is_possible_and_no_longer(
    probe, speed, acceleration, jerk
):
    """What is left to the end when the stop begins is the way of the shortest stop, to a tick's way."""
    bounds = np.array([[-2.0, 0.3, 1.01 * speed * DT, acceleration * DT**2, jerk * DT**3]])
    ramp = np.clip(np.arange(6000) * DT / 2.0, 0.0, 1.0)
    way = DT * np.cumsum(speed * ramp**3 * (10.0 - 15.0 * ramp + 6.0 * ramp**2))
    start = 0.3 - speed * 3.0
    targets = np.minimum(start + way - way[0], 0.3)[:, None]
    positions, changed = kept(probe, bounds, np.array([start]), targets)
    assert_kept(bounds, positions)
    left = 0.3 - positions[np.argmax(changed), 0]
    assert left == pytest.approx(stop_way(speed, acceleration, jerk), abs=1.01 * speed * DT)
    assert positions[-1, 0] == 0.3
    assert positions[:, 0].max() == 0.3


@given(st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=2), st.floats(1e-3, 0.02), st.floats(1e-4, 1e-3), st.data())
def test_at_a_constant_target_they_come_to_rest_there(probe, goals, speed, acceleration, data):
    jerk = acceleration * data.draw(st.floats(0.01, 2.0))
    bounds = np.array([[-0.3, 0.3, speed, acceleration, jerk], [-0.3, 0.3, 2 * speed, acceleration, 3 * jerk]])
    # At full speed; to it and from it; small distances with half of the jerk; all of it with a reserve.
    ticks = 2.0 * (0.6 / speed + 4.0 * math.sqrt(0.6 / acceleration) + 6.0 * (0.6 / jerk) ** (1 / 3))
    ticks += 40.0 * acceleration / jerk + speed / acceleration + 300.0
    positions, changed = kept(probe, bounds, np.zeros(2), np.tile(goals, (int(ticks), 1)))
    assert_kept(bounds, positions)
    np.testing.assert_array_equal(positions[-3:], np.tile(goals, (3, 1)))
    assert not changed[-1]
    beyond = ((positions - goals) * np.sign(goals)).max(axis=0)
    assert (beyond <= 0.03 * np.abs(goals) + 3.0 * (acceleration + jerk)).all()


@pytest.mark.parametrize("ramp", [2, 10, 33, 100])
@pytest.mark.parametrize("way", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("acceleration", [1e-4, 1e-3])
def test_a_far_target_is_reached_nearly_as_soon_as_the_bounds_allow_and_not_passed(probe, ramp, way, acceleration):
    """From rest to rest takes r + sqrt(r^2 + 4 d / A) ticks at least, where A, r ticks of jerk, is reached."""
    jerk = acceleration / ramp
    least = ramp + math.sqrt(ramp**2 + 4.0 * way / acceleration)
    if way < 2.0 * acceleration * ramp**2:
        least = 4.0 * (way / (2.0 * jerk)) ** (1 / 3)
    bounds = np.array([[-10.0, 10.0, 1.0, acceleration, jerk]])
    positions = kept(probe, bounds, np.zeros(1), np.full((round(3 * least) + 300, 1), way))[0][:, 0]
    assert positions.max() <= way
    assert np.argmax(positions > 0.99 * way) <= 1.27 * least + 20.0  # what stops with a reserve takes longer
    pushes = np.diff(positions, 2)
    turns = np.diff(np.sign(pushes[abs(pushes) > 1e-6 * acceleration]))
    assert np.count_nonzero(turns) <= 3  # it goes faster, then slower, and takes up the reserve: it does not swing


def test_targets_that_keep_the_bounds_pass_bit_for_bit(probe):
    bounds = np.array([[-1.0, 1.0, 0.01, 1e-3, 5e-5], [-0.5, 0.5, 0.02, 1e-3, 5e-5]])
    t = np.arange(5000)[:, None]
    # a sin^4: from rest; its first three differences per tick are at most a w 1.3, a w^2 4, a w^3 14.
    targets = np.array([0.3, 0.2]) * np.sin(t * [0.01, 0.012]) ** 4
    positions, changed = kept(probe, bounds, targets[0], targets)
    assert positions[1:].tobytes() == targets.tobytes()
    assert not changed.any()


def test_what_all_actuators_have_in_common_every_stop_keeps(probe, rng):
    """Heights of four posts under one plane stay in one, whatever cuts them: h1 - h2 + h3 - h4 is 0."""
    bounds = np.tile([-0.1, 0.1, 8e-4, 1.5e-5, 4e-7], (4, 1))
    plane = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]])
    targets = np.repeat(rng.uniform(-0.06, 0.06, (40, 3)) @ plane, 150, axis=0)
    h = kept(probe, bounds, np.zeros(4), targets)[0]
    assert_kept(bounds, h)
    assert np.ptp(h) > 0.1
    np.testing.assert_allclose(h @ [1.0, -1.0, 1.0, -1.0], 0.0, rtol=0, atol=1e-12)


# ---- a platform ------------------------------------------------------------------------------------------------------


def jerked(preset, *overrides):
    """Return a profile of a platform whose actuators reach their acceleration within 0.05 s."""
    key = {"hexapod-cranks": "platform.crank.jerk_deg_s3", "posts-4": "platform.post.jerk_m_s3"}.get(
        preset, "platform.leg.jerk_m_s3"
    )
    profile = profile_for(preset, *overrides)
    most = platforms.build(profile.platform).bounds[0].acceleration / 0.05
    return overridden(profile, {key: math.degrees(most) if key.endswith("deg_s3") else most})


def assert_jerks_within(positions, built):
    assert_within(positions, built)
    most = np.array([bounds.jerk for bounds in built.bounds]) * DT**3
    assert (np.abs(np.diff(positions, 3, axis=0)) <= most * (1.0 + 1e-6) + 1e-14).all()


@pytest.mark.parametrize("kind", ["jumps", "noise", "sines"])
@pytest.mark.parametrize("preset", ["hexapod-dim", "hexapod-cranks", "posts-4"])
def test_no_cue_takes_a_platform_beyond_its_jerks(preset, kind):
    profile = jerked(preset)
    built = platforms.build(profile.platform)
    rng = np.random.default_rng(4)
    poses = np.concatenate([hostile(rng, kind, size, 600) for size in (0.01, 0.1, 0.5, 2.0)])
    positions = positions_of(profile, poses)
    assert_jerks_within(positions, built)
    assert_a_frame_fits(profile, positions[::10])


def test_a_run_from_parked_to_parked_keeps_the_jerks():
    profile = jerked("hexapod-dim")
    built = platforms.build(profile.platform)
    pipeline = driven(profile, 12.0)
    sent = pipeline.emitter.trace["actuators"][:, :6]
    assert_jerks_within(sent, built)
    np.testing.assert_array_equal(sent[-1], [bounds.low for bounds in built.bounds])
    assert pipeline.emitter.state == "OFFLINE"


CHANGES = st.fixed_dictionaries(
    {
        "platform.post.jerk_m_s3": st.sampled_from([None, 5.0, 40.0, 1000.0]),
        "platform.post.acceleration_m_s2": st.sampled_from([0.5, 3.0, 8.0]),
        "platform.post.speed_m_s": st.sampled_from([0.05, 0.3]),
        "platform.post.max_m": st.sampled_from([0.02, 0.1]),
    }
)


def loosest(tables):
    """Return the widest of several bounds, one row an actuator."""
    low, high, *derivatives = np.array([platforms.build(table).bounds for table in tables]).transpose(2, 0, 1)
    return np.array([low.min(0), high.max(0), *(each.max(0) for each in derivatives)]).T


@settings(max_examples=40, deadline=None)
@given(plan=st.lists(st.tuples(CHANGES, st.integers(0, 250), st.booleans()), min_size=1, max_size=4), data=st.data())
def test_no_change_at_any_tick_exceeds_the_old_and_the_new_bounds(probe, plan, data):
    """Bounds on jerk come, change and go; when the platform has come to rest, the newest hold by themselves."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    profile = jerked("posts-4", "supervisor.fade_s=0.3", "platform.rise_s=0.5")
    stepper, tables, sent = motioncue.bind(profile), [profile.platform], [np.zeros((1, 4))]
    sections = [({}, 200, False), *plan]
    for change, ticks, parked in sections:
        if change:
            profile = overridden(profile, change)
            stepper.retune(profile)
            tables.append(profile.platform)
        sent.append(actuated(probe, stepper, jumps(rng, ticks), parked))
    sent.append(actuated(probe, stepper, np.zeros((6000, 6))))
    assert_kept(per_tick(loosest(tables)), np.concatenate(sent))
    np.testing.assert_array_equal(sent[-1][-2:], np.zeros((2, 4)))
    after = actuated(probe, stepper, jumps(rng, 400))
    assert_kept(per_tick(loosest(tables[-1:])), np.vstack([sent[-1][-1:], after]))


def jumps(rng, ticks):
    return np.repeat(rng.uniform(-0.1, 0.1, (ticks // 40 + 1, 6)), 40, axis=0)[:ticks]


def per_tick(bounds):
    return bounds * np.array([1.0, 1.0, DT, DT**2, DT**3])


def actuated(probe, stepper, poses, parked=False):
    """Return the positions of four posts for poses, one a tick."""
    out = np.zeros(len(poses), ACTUATION_DTYPE)
    probe.actuated(stepper, cues_of(poses), out, parked)
    return out["actuators"][:, :4]


def test_rigs_with_jerk_bounds_do_what_each_does_alone():
    profile = jerked("hexapod-dim")
    motion = np.zeros((900, 9), MOTION_DTYPE)
    swing = np.minimum(np.arange(900) * DT, 1.0)[:, None] * np.sin(np.outer(np.arange(900) * DT, np.arange(1.0, 10.0)))
    motion["surge"] = 0.3 * np.arange(9) * swing
    motion["time"] = np.arange(900)[:, None] * 3_000_030
    rigs = motioncue.Rigs(profile, 9)
    cue, actuation = np.zeros(motion.shape, CUE_DTYPE), np.zeros(motion.shape, ACTUATION_DTYPE)
    for tick in range(900):
        rigs.step(motion[tick], cue[tick], actuation[tick])
    for number in range(9):
        alone = motioncue.actuate(profile, motioncue.cue(profile, np.ascontiguousarray(motion[:, number])))
        assert actuation[:, number]["actuators"].tobytes() == alone["actuators"].tobytes()


@pytest.mark.parametrize("jerk", [0.0, -1.0])
def test_a_jerk_that_is_not_above_0_is_refused(jerk):
    with pytest.raises(ConfigError, match=r"platform\.leg\.jerk_m_s3: found"):
        profile_for("hexapod-dim", f"platform.leg.jerk_m_s3={jerk}")


def test_a_jerk_so_small_that_an_end_takes_a_minute_is_refused():
    with pytest.raises(ConfigError, match=r"needs .* s from neutral to an end, with its speed, acceleration and jerk"):
        profile_for("posts-4", "platform.post.jerk_m_s3=1e-6")
