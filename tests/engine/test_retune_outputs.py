"""Bounds of an output and of a platform's actuators change while it runs: nothing exceeds the old and the new ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from test_limiter_retune import assert_kept, assert_kept_from, bounds_strategy, input_strategy, wider
from test_platforms import DT, PERIOD, PRESETS, WORDS, cues_of, profile_for

import motioncue
from motioncue.core.channels import ACTUATION_DTYPE, MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import settings_of
from motioncue.engine.embed import Stepper
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.platforms.actuators import PARTS_OF_A_POSE
from motioncue.platforms.settings import ActuatorBounds
from motioncue.profile.profile import overridden
from motioncue.virtual.installation import drive_packages

FADE_S = 0.3
QUIET = 3  # ticks from the one that takes settings to the one in which they are in force

# ---- a platform's actuators ------------------------------------------------------------------------------------------

share = st.floats(0.05, 1.0)


@st.composite
def changes(draw):
    """Return any change of the bounds of a platform: shares of those of the preset, and orders."""
    return {
        "down": draw(share),
        "up": draw(share),
        "speed": draw(st.floats(0.02, 2.0)),
        "acceleration": draw(st.floats(0.02, 2.0)),
        "gives_way": draw(st.permutations(["yaw", "heave", "travel", "tilt"])),
        "park": draw(st.sampled_from(["down", "neutral"])),
        "rise_s": draw(st.sampled_from([0.5, 2.0])),
    }


def changed(preset, built, change):
    """Return the profile's keys for a change; the range ends at shares of the way from neutral to the preset's ends."""
    widest = built.bounds[0]
    neutral = built.neutral[0]
    word, turns = WORDS.get(preset, "post"), WORDS.get(preset) == "crank"
    values = {
        "min": neutral - change["down"] * (neutral - widest.low),
        "max": neutral + change["up"] * (widest.high - neutral),
        "speed": change["speed"] * widest.speed,
        "acceleration": change["acceleration"] * widest.acceleration,
    }
    units = ("deg", "deg", "deg_s", "deg_s2") if turns else ("m", "m", "m_s", "m_s2")
    bounds = {
        f"{name}_{unit}": float(np.degrees(value) if turns else value)
        for (name, value), unit in zip(values.items(), units, strict=True)
    }
    return {"platform": {word: bounds, **{key: change[key] for key in ("gives_way", "park", "rise_s")}}}


def poses_of(rng, kind, ticks):
    """Return poses of a kind of input, within and beyond what a platform reaches."""
    time = np.arange(ticks)[:, None]
    size = rng.choice([0.02, 0.1, 0.5])
    if kind == "rest":
        return np.zeros((ticks, 6))
    if kind == "still":
        return np.tile(rng.uniform(-size, size, 6), (ticks, 1))
    if kind == "sines":
        return size * np.sin(time * rng.uniform(0.001, 0.05, 6) + rng.uniform(0, 6, 6))
    if kind == "jumps":
        return np.repeat(rng.uniform(-size, size, (ticks // 40 + 1, 6)), 40, axis=0)[:ticks]
    return rng.uniform(-size, size, (ticks, 6))


def step(probe, stepper, poses, parked=False):
    """Return the actuations of an output for poses, one per tick."""
    out = np.zeros(len(poses), ACTUATION_DTYPE)
    probe.actuated(stepper, cues_of(poses), out, parked)
    return out


def loosest(bounds):
    """Return bounds of which each is the widest of several."""
    low, high, *derivatives = np.array(bounds).transpose(2, 0, 1)
    return ActuatorBounds(low.min(0), high.max(0), *(each.max(0) for each in derivatives))


def assert_in_play(positions, bounds):
    """Assert that positions keep the widest of the bounds, as computed from what is sent."""
    most = loosest(bounds)
    slack = 1e-12 * (most.high - most.low)
    assert np.isfinite(positions).all()
    assert (positions >= most.low - slack).all()
    assert (positions <= most.high + slack).all()
    assert (np.abs(np.diff(positions, axis=0)) <= most.speed * DT * (1 + 1e-9) + slack).all()
    assert (np.abs(np.diff(positions, 2, axis=0)) <= most.acceleration * DT**2 * (1 + 1e-6) + slack + 1e-13).all()


KINDS = st.sampled_from(["rest", "still", "sines", "jumps", "noise"])
SECTIONS = st.lists(st.tuples(changes(), KINDS, st.integers(0, 300), st.booleans()), min_size=1, max_size=4)


def settled(newest, bounds):
    """Return how many ticks it takes to come within the newest bounds from anywhere in the others, and to rest."""
    goal, widest = ActuatorBounds.columns(newest), loosest(bounds)
    way = widest.high - widest.low
    seconds = way / goal.speed + (goal.speed + widest.speed) / goal.acceleration + 4 * np.sqrt(way / goal.acceleration)
    return int(np.ceil((2.5 + 3 * seconds.max()) / DT))


@pytest.mark.search
@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=40, deadline=None)
@given(plan=SECTIONS, kind=KINDS, seed=st.integers(0, 2**32 - 1))
def test_no_change_at_any_tick_exceeds_the_old_and_the_new_bounds(probe, preset, plan, kind, seed):
    """After a rest that is long enough, the newest bounds hold by themselves, for any input."""
    rng = np.random.default_rng(seed)
    profile = profile_for(preset, f"supervisor.fade_s={FADE_S}")
    built = platforms.build(profile.platform)
    actuators = len(built.names)
    stepper = motioncue.bind(profile)
    sent, bounds = [step(probe, stepper, poses_of(rng, kind, 300))], [built.bounds]
    for change, kind, ticks, parked in plan:
        stepper.retune(changed(preset, built, change))
        profile = overridden(profile, changed(preset, built, change))
        bounds.append(platforms.build(profile.platform).bounds)
        sent.append(step(probe, stepper, poses_of(rng, kind, ticks), parked))
    sent.append(step(probe, stepper, np.zeros((settled(bounds[-1], bounds), 6))))
    assert_in_play(np.concatenate(sent)["actuators"][:, :actuators], bounds)
    assert stepper.profile == profile
    np.testing.assert_array_equal(sent[-1]["actuators"][-2:, :actuators], [built.neutral, built.neutral])
    after = np.concatenate([sent[-1][-3:], step(probe, stepper, poses_of(rng, kind, 600))])
    assert_in_play(after["actuators"][:, :actuators], bounds[-1:])


@pytest.mark.parametrize("at", range(20, 200, 12))
def test_a_stop_that_a_new_acceleration_makes_longer_ends_within_the_wider_range(probe, at):
    """On the way to a step, both the acceleration and the range are tightened."""
    profile = profile_for("posts-4")
    built = platforms.build(profile.platform)
    stepper = motioncue.bind(profile)
    poses = np.zeros((3000, 6))
    poses[:, 2] = 0.05
    sent = [step(probe, stepper, poses[:at])]
    change = {"platform.post.acceleration_m_s2": 0.1 * built.bounds[0].acceleration, "platform.post.max_m": 0.0505}
    stepper.retune(change)
    sent.append(step(probe, stepper, poses))
    bounds = [built.bounds, platforms.build(overridden(profile, change).platform).bounds]
    assert_in_play(np.concatenate(sent)["actuators"][:, :4], bounds)
    assert sent[-1]["actuators"][-1, :4] == pytest.approx(0.05, abs=1e-12)


def test_a_range_below_the_present_position_is_approached_along_the_fade(probe):
    """The way in is the quintic of the join: its largest speed is 1.875 ways per fade, and it has no step."""
    fade_s = 1.0
    stepper = motioncue.bind(profile_for("posts-4", f"supervisor.fade_s={fade_s}"))
    poses = np.zeros((2000, 6))
    poses[:, 2] = 0.08
    assert step(probe, stepper, poses)["actuators"][-1, 0] == 0.08
    stepper.retune("platform.post.max_m=0.03")
    sent = step(probe, stepper, poses)["actuators"][:, 0]
    s = np.clip((np.arange(2000) - QUIET + 2) * DT / fade_s, 0, 1)
    expected = 0.08 - 0.05 * s**3 * (10 - 15 * s + 6 * s**2)
    np.testing.assert_allclose(sent, expected, rtol=0, atol=1e-6)
    assert sent[-1] == 0.03


def test_a_lower_speed_takes_hold_along_the_fade_and_not_at_once(probe):
    """The bound falls along the fade's quintic, whose largest slope is 1.875 of the change per fade."""
    profile = profile_for("posts-4", f"supervisor.fade_s={FADE_S}", "platform.post.speed_m_s=0.25")
    stepper = motioncue.bind(profile)
    poses = np.zeros((500, 6))
    grown = np.minimum(np.arange(500) * DT / 0.2, 1.0)  # from rest to 0.24 m/s in 0.2 s
    poses[:, 2] = -0.09 + DT * np.cumsum(0.24 * grown)
    step(probe, stepper, np.tile(poses[:1], (1000, 1)))
    sent = [step(probe, stepper, poses[:80])]
    stepper.retune("platform.post.speed_m_s=0.1")
    sent.append(step(probe, stepper, poses[80:]))
    speeds = np.diff(np.concatenate(sent)["actuators"][:, 0]) / DT
    assert speeds[78] == pytest.approx(0.24, rel=1e-6)
    falling = speeds[78 : 78 + QUIET + round(FADE_S / DT)]
    assert falling[-1] == pytest.approx(0.1, rel=0.02)
    assert -np.diff(falling).min() / DT <= 1.1 * 1.875 * (0.25 - 0.1) / FADE_S


@pytest.mark.parametrize("parked", [False, True])
def test_another_place_to_park_is_gone_to_as_slowly_as_the_way_up_takes(probe, parked):
    """While it is raised the change moves nothing."""
    rise_s = 2.0
    profile = profile_for("posts-4", f"platform.rise_s={rise_s}")
    stepper = motioncue.bind(profile)
    low = platforms.build(profile.platform).bounds[0].low
    before = low if parked else 0.0
    np.testing.assert_array_equal(step(probe, stepper, np.zeros((50, 6)), parked)["actuators"][:, 0], before)
    stepper.retune("platform.park=neutral")
    sent = step(probe, stepper, np.zeros((1500, 6)), parked)["actuators"][:, 0]
    s = np.clip((np.arange(1500) - QUIET + 2) * DT / rise_s, 0, 1)
    np.testing.assert_allclose(sent, before * (1 - s**3 * (10 - 15 * s + 6 * s**2)), rtol=0, atol=1e-9)


def test_a_join_that_another_change_meets_half_way_goes_on_at_its_speed(probe):
    stepper = motioncue.bind(profile_for("posts-4", "supervisor.fade_s=1"))
    poses = np.zeros((2000, 6))
    poses[:, 2] = 0.08
    sent = [step(probe, stepper, poses)]
    for change in ("platform.post.max_m=0.03", "platform.post.max_m=0.02"):
        stepper.retune(change)
        sent.append(step(probe, stepper, poses[:150]))
    speeds = np.diff(np.concatenate(sent)["actuators"][:, 0]) / DT
    turns = np.diff(speeds) / DT
    assert speeds[2140:2155].max() < -0.05  # on its way when the second change comes
    # The third derivative of a quintic from rest is at most 60 ways per fade cubed; the second one continues with the
    # first one's slope and curvature, each of which adds less than that.
    assert np.abs(np.diff(turns))[1990:].max() < 2 * 60 * 0.06 * DT


# ---- the bounds of one output ----------------------------------------------------------------------------------------

FREE = (None, None, None, None)
KEYS = ("value_m_s2", "rate_m_s3", "acceleration_m_s4", "jerk_m_s5")


def bounded(bounds):
    """Return the keys that bound the surge of the output; no bounds at all for None."""
    return {"output": {"limits": {"surge": None if bounds is None else dict(zip(KEYS, bounds, strict=True))}}}


def sent_surges(probe, stepper, values):
    """Return the surge that the output is sent for cues with these values."""
    cues, out = np.zeros(len(values), motioncue.CUE_DTYPE), np.zeros(len(values), ACTUATION_DTYPE)
    cues["surge"] = values
    probe.actuated(stepper, cues, out)
    return out["surge"]


@pytest.mark.search
@settings(max_examples=80, deadline=None)
@given(changes=st.lists(st.tuples(st.none() | bounds_strategy, input_strategy, st.booleans()), min_size=2, max_size=5))
def test_bounds_of_an_output_keep_the_wider_ones_until_the_new_ones_hold(probe, changes):
    """Bounds are changed, taken away and given again; at the end they hold by themselves."""
    first = changes[0][0]
    profile = overridden(motioncue.load_profile("ccd-dk", f"supervisor.fade_s={FADE_S}"), bounded(first))
    stepper = motioncue.bind(profile)
    path, widest = [], first or FREE
    for bounds, values, early in changes:
        stepper.retune(bounded(bounds))
        widest = wider(widest, bounds or FREE)
        path += list(sent_surges(probe, stepper, values[:20] if early else values))
    assert np.isfinite(path).all()
    assert_kept(np.array(path), len(path) * [widest])
    newest, values, _ = changes[-1]
    if newest is not None:
        rest = sent_surges(probe, stepper, np.full(20_000, 0.3 * newest[0]))
        assert_kept_from(np.concatenate([rest[-50:], sent_surges(probe, stepper, values)]), newest)


def test_an_output_that_is_given_bounds_comes_within_them_along_the_fade(probe):
    """Before that it has no bounds; its newest cues say where it is and how it moves."""
    stepper = motioncue.bind("ccd-dk")
    ramp = 5.0 + 0.01 * np.arange(100)
    np.testing.assert_array_equal(sent_surges(probe, stepper, ramp), ramp)
    stepper.retune(bounded((2.0, None, None, None)))
    sent = sent_surges(probe, stepper, np.full(1000, 6.0))
    np.testing.assert_allclose(np.diff(sent[:4]), 0.0, atol=0.011)
    assert np.diff(sent)[4:].min() > -1.9 * 4.2 * 3 * DT
    assert np.ptp(np.diff(sent, 2)) < 0.02
    assert sent[-1] == pytest.approx(2.0, rel=2e-3)


# ---- both ------------------------------------------------------------------------------------------------------------

BOTH = (
    {"platform.post.max_m": 0.03},
    {"platform.post.acceleration_m_s2": 1.0, "platform.post.speed_m_s": 0.05},
    {"platform.gives_way": ["heave", "yaw", "tilt", "travel"], "output.limits.heave_displacement.value_m": 0.02},
    {"output.limits.roll.value_deg": 1.0, "platform.rise_s": 1.0},
    {"platform.park": "neutral"},
)


@pytest.mark.search
@settings(max_examples=40, deadline=None)
@given(
    plan=st.lists(st.tuples(st.sampled_from(BOTH), st.integers(0, 200), KINDS, st.booleans()), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_same_settings_designed_anew_keep_the_bits(probe, plan, seed):
    """Two outputs are changed alike; one of them takes the same settings again and again besides."""
    rng = np.random.default_rng(seed)
    profile = profile_for("posts-4", f"supervisor.fade_s={FADE_S}")
    one, two = (Stepper(settings_of(profile), tune=lambda change, post: post(change)) for _ in range(2))
    for change, ticks, kind, parked in plan:
        profile = overridden(profile, change)
        for stepper in (one, two):
            stepper.retune(settings_of(profile))
        poses = poses_of(rng, kind, 8 + ticks)
        sent = step(probe, one, poses, parked)
        again = [step(probe, two, poses[:4], parked)]
        two.retune(settings_of(profile))
        again.append(step(probe, two, poses[4:], parked))
        assert_same_bits(np.concatenate(again), sent)


def test_a_reset_forgets_a_change_under_way(probe):
    profile = overridden(profile_for("posts-4"), BOTH[0])
    fresh, stepper = motioncue.bind(profile), motioncue.bind(profile_for("posts-4"))
    poses = np.tile([0.0, 0.0, 0.08, 0.0, 0.0, 0.0], (300, 1))
    step(probe, stepper, poses)
    stepper.retune(BOTH[0])
    step(probe, stepper, poses[:20])
    stepper.reset()
    assert_same_bits(step(probe, stepper, poses), step(probe, fresh, poses))


def test_stages_of_another_kind_are_refused(probe):
    stepper = Stepper(settings_of(profile_for("posts-4")), tune=lambda change, post: post(change))
    with pytest.raises(ValueError, match="chains: found other stages, allowed are those of the ticks"):
        stepper.retune(settings_of(profile_for("posts-3")))


# ---- doors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["hexapod-simona", "posts-4"])
@pytest.mark.check
def test_a_run_with_changes_in_every_state_keeps_the_bounds_and_ends_parked(preset):
    """Parked, rising, driving, holding, sinking: a change every 0.7 s, an operator who parks and engages."""
    profile = profile_for(preset, "platform.rise_s=1", f"supervisor.fade_s={FADE_S}")
    built = platforms.build(profile.platform)
    rng = np.random.default_rng(11)
    pipeline, now, bounds = Pipeline(profile, FakeClock(10**9), trace=30_000), 10**9, [built.bounds]
    pipeline.emitter.run(until_ns=now)
    pipeline.intake.begin(now)
    acts = iter(["park", "engage", "hold", "engage"] * 10)
    due = now
    for package in drive_packages("beamng", "turns", 60.0):
        now += round(package.duration * 1e9)
        if now > 25e9:
            break
        if now > due:
            due += 700_000_000
            change = {"down": 0.3, "up": 0.3, "speed": 0.5, "acceleration": 0.5, "rise_s": 1.0}
            change = {key: value * rng.uniform(0.5, 2.0) for key, value in change.items()}
            change |= {
                "gives_way": rng.permutation(PARTS_OF_A_POSE).tolist(),
                "park": str(rng.choice(["down", "neutral"])),
            }
            profile = overridden(profile, changed(preset, built, change))
            pipeline.retune(profile)
            bounds.append(platforms.build(profile.platform).bounds)
            if rng.random() < 0.4:
                getattr(pipeline.emitter, next(acts))()
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(package.package, now)
    pipeline.emitter.stop()
    pipeline.emitter.run(until_ns=now + 120_000_000_000)
    sent = pipeline.emitter.trace["actuators"][:, : len(built.names)]
    assert_in_play(sent, bounds)
    assert pipeline.emitter.state == "OFFLINE"
    assert pipeline.stats()["retunes"] == len(bounds) - 1
    place = [each.low for each in bounds[-1]] if profile.platform.park == "down" else built.neutral
    np.testing.assert_array_equal(sent[-1], place)


@pytest.mark.parametrize("ticks", range(2, 8))
@pytest.mark.parametrize(("change", "place"), [("park=neutral", 0.0), ("post.min_m=-0.09999999", -0.09999999)])
def test_a_run_that_stops_as_settings_change_ends_where_the_new_ones_park_it(change, place, ticks):
    """It may not count as parked before it has gone there, even where the way begins too slowly to move a double."""
    profile = profile_for("posts-4", "platform.rise_s=60", "supervisor.leave_s=200")
    pipeline = Pipeline(profile, FakeClock(10**9), trace=100_000)
    pipeline.emitter.run(until_ns=1_300_000_000)
    pipeline.retune(f"platform.{change}")
    pipeline.emitter.run(until_ns=1_300_000_000 + ticks * PERIOD)
    pipeline.emitter.stop()
    pipeline.emitter.run(until_ns=250_000_000_000)
    sent = pipeline.emitter.trace["actuators"][:, :4]
    assert sent[0, 0] == -0.1
    assert pipeline.emitter.state == "OFFLINE"
    np.testing.assert_array_equal(sent[-1], np.full(4, place))


def test_a_relay_and_a_stepper_take_changes_of_an_output():
    """After the change has settled, the relay sends what one with the new profile sends."""
    profile = profile_for("posts-4")
    change = {"output.limits.heave_displacement.value_m": 0.004, "platform.post.max_m": 0.003}
    stepper = motioncue.bind(profile, actuation=np.zeros(1, ACTUATION_DTYPE))
    relay = motioncue.relay(profile, clock=FakeClock(10**9))
    for each in (stepper, relay):
        each.retune(change)
        assert each.profile == profile
    for _ in range(4):
        stepper.step()
    assert stepper.profile == overridden(profile, change)
    fresh = motioncue.relay(overridden(profile, change), clock=FakeClock(10**9))
    highest = []
    for package in drive_packages("beamng", "turns", 10.0):
        for each in (relay, fresh):
            each.step(package.package)
        highest.append(fresh.packets["motion"].view("f8").max())
    assert relay.profile == overridden(profile, change)
    assert max(highest) == 0.003
    np.testing.assert_allclose(
        relay.packets["motion"].view("f8"), fresh.packets["motion"].view("f8"), rtol=0, atol=1e-9
    )


REFUSED = (
    ("platform.at_m=[[1, 0], [0, 1], [-1, 0]]", r"platform\.at_m: found"),
    ("platform.preset=posts-3", r"platform\.at_m: found"),
    ("output.limits.pitch.value_deg=-1", r"output\.limits\.pitch\.value_deg: found"),
    ("platform.post.max_m=-0.05", r"platform: post_1 is at 0\.0000 m at neutral, beyond its range"),
    ({"platform": {"gives_way": ["yaw", "yaw", "tilt", "travel"]}}, r"platform\.gives_way: found yaw, yaw"),
)


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_an_output_cannot_be_given_is_refused_and_changes_nothing(change, message):
    profile = profile_for("posts-4")
    stepper = motioncue.bind(profile)
    with pytest.raises(ConfigError, match=message):
        stepper.retune(change)
    for _ in range(4):
        stepper.step()
    assert stepper.profile == profile


def test_a_range_of_which_a_packet_sends_shares_is_fixed():
    """Another range would give other bytes for the same position."""
    stepper = motioncue.bind(profile_for("posts-4", measure="share"))
    stepper.retune("platform.post.speed_m_s=0.1")
    with pytest.raises(ConfigError, match=r"platform\.post\.max_m: found 0\.05, allowed is 0\.1 while it runs"):
        stepper.retune("platform.post.max_m=0.05")


def test_an_axis_stays_of_its_kind():
    axis = {"name": "sled", "channel": "sway_displacement"}
    travel = {"min_m": -0.3, "max_m": 0.3, "speed_m_s": 0.5, "acceleration_m_s2": 2.0}
    turn = {"min_deg": -9.0, "max_deg": 9.0, "speed_deg_s": 9.0, "acceleration_deg_s2": 9.0}
    profile = overridden(profile_for("posts-4"), {"platform.axes": [{**axis, "travel": travel}]})
    stepper = motioncue.bind(profile)
    stepper.retune({"platform.axes": [{**axis, "travel": {**travel, "max_m": 0.2}}]})
    with pytest.raises(ConfigError, match=r"platform\.axes\[0\]\.travel"):
        stepper.retune({"platform.axes": [{**axis, "turn": turn}]})
    with pytest.raises(ConfigError, match=r"platform\.axes\[0\]\.channel: found 'roll'"):
        stepper.retune({"platform.axes": [{**axis, "channel": "roll", "travel": travel}]})


def leg_jerks(changes, *overrides, size=1.0):
    """Return the largest changes of a leg's acceleration from tick to tick [m/s^2], before and after changes."""
    rate_hz = 1.0 / DT
    time = np.arange(3000) * DT
    motion = np.zeros(len(time), MOTION_DTYPE)
    grown = size * np.minimum(1.0, time / 3.0)
    motion["surge"] = grown * (0.9 * np.sin(0.8 * time) + 0.3 * np.sin(4.4 * time))
    motion["sway"] = grown * (0.9 * np.sin(0.7 * time + 1.0) + 0.3 * np.sin(3.9 * time))
    motion["heave"] = grown * 0.5 * np.sin(5.0 * time)
    stepper = motioncue.bind(profile_for("hexapod-dim", *overrides), actuation=np.zeros(1, ACTUATION_DTYPE))
    legs = []
    for number, row in enumerate(motion):
        if number in changes:
            stepper.retune(changes[number])
        stepper.motion[0] = row
        assert stepper.step()
        legs.append(stepper.actuation["actuators"][0, :6].copy())
    jerks = abs(np.diff(legs, 3, axis=0)).max(axis=1) * rate_hz**2
    first = min(changes) - 4
    return jerks[900:first].max(), jerks[first:].max()


LAGS = {
    "from none": {2000: "platform.lag_s=0.05"},
    "shorter": {2000: "platform.lag_s=0.01"},
    "to none": {2000: {"platform": {"lag_s": None}}},
    "dragged": {2000 + 20 * k: f"platform.lag_s={0.002 * (k + 1):g}" for k in range(20)},
    "back and forth": {2000: "platform.lag_s=0.05", 2100: {"platform": {"lag_s": None}}, 2150: "platform.lag_s=0.02"},
}


@pytest.mark.check
@pytest.mark.parametrize("name", [*LAGS])
def test_another_lag_takes_hold_without_a_jolt(name):
    begin = ["platform.lag_s=0.05"] if name in ("shorter", "to none") else []
    before, after = leg_jerks(LAGS[name], "cueing.preset=small", *begin)
    # The cue is no rougher after the change than before; to lead by 50 ms what moves by sines of 5 rad/s adds 3 %.
    # A change that meets another half way begins anew from there: at most 50 ms x 1.875/s of a leg's speed of 0.03 m/s.
    assert after <= 2.0 * before + (0.02 if name != "back and forth" else 0.05 * 1.875 * 0.03 / DT)


@pytest.mark.parametrize("half_m", [0.14, 0.1])
def test_a_plan_and_its_actuators_come_within_a_narrower_range_together(half_m):
    change = {"platform": {"leg": {"min_m": 1.21 - half_m, "max_m": 1.21 + half_m}}}
    before, after = leg_jerks({2000: change}, {"cueing": {"algorithm": "predictive", "preset": None}}, size=2.0)
    assert after <= 2.0 * before  # of what the plan does anyway; where both fought over the range, 12 m/s^2
