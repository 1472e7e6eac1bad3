"""Platforms: for any cue, the actuators follow within the bounds of every one of them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import motioncue
from motioncue.core.channels import ACTUATION_DTYPE, CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import check
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.platforms.settings import platform_presets
from motioncue.profile.profile import overridden, parse_profile
from motioncue.virtual.installation import drive_packages

POSE = ("surge_displacement", "sway_displacement", "heave_displacement", "roll", "pitch", "yaw")
PRESETS = sorted(name for name in platform_presets() if not name.startswith("box-"))  # machines with a frame
ON_TABLES = [name for name in PRESETS if "-on-" in name]  # where a pose says no single positions
WORDS = {name: "leg" for name in PRESETS if name.startswith("hexapod-")} | {"hexapod-cranks": "crank"}
PERIOD = 3_000_030
DT = PERIOD * 1e-9
CLEAR_DEG = 11.0  # between a crank and one line with its rod, on the way between any two poses
LIFT = "travel={min_m=-0.1, max_m=0.1, speed_m_s=0.3, acceleration_m_s2=5}"
TURN = "turn={min_deg=-9, max_deg=9, speed_deg_s=9, acceleration_deg_s2=9}"


def profile_for(preset, *overrides, measure="position"):
    """Return a profile whose packet holds every actuator of a platform, in double precision."""
    word = WORDS.get(preset, "post")
    count = {"posts-3": 3, "posts-4": 4, "seat-2": 2}.get(preset, 6)
    names = [f"{word}_{k + 1}" for k in range(count)]
    names += [axis["name"] for axis in platform_presets()[preset].get("axes", ())]
    fields = ", ".join(
        f'{{ offset = {8 * k}, type = "f8", channel = "{name}", measure = "{measure}" }}'
        for k, name in enumerate(names)
    )
    text = f"""
        [source]
        system = "beamng"
        endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
        [cueing]
        algorithm = "classical"
        preset = "simona"
        [platform]
        preset = "{preset}"
        [output]
        motion = "udp://127.0.0.1:9999"
        packet = {{ size = {8 * len(names)}, fields = [{fields}] }}
    """
    profile = parse_profile(text, overrides=overrides)
    check(profile)
    return profile


def cues_of(poses):
    cues = np.zeros(len(poses), CUE_DTYPE)
    for place, name in enumerate(POSE):
        cues[name] = poses[:, place]
    return cues


def positions_of(profile, poses):
    """Return the actuator positions sent for poses, one per tick."""
    built = platforms.build(profile.platform)
    return motioncue.actuate(profile, cues_of(poses))["actuators"][:, : len(built.names)]


def assert_within(positions, built):
    """Assert that no actuator exceeds its range, its speed or its acceleration."""
    for bounds, own in zip(built.bounds, positions.T, strict=True):
        assert bounds.low <= own.min()
        assert own.max() <= bounds.high
        assert np.abs(np.diff(own)).max() <= bounds.speed * DT * (1 + 1e-9)
        assert np.abs(np.diff(own, 2)).max() <= bounds.acceleration * DT**2 * (1 + 1e-6) + 1e-13


def assert_a_frame_fits(profile, positions):
    """Assert that there is a pose with these positions; of cranks, by the lengths of their rods.

    A crank and its rod may be a little closer to one line than the 15 degrees of a wanted pose, while a jump is caught.
    """
    built = platforms.build(profile.platform)
    kinematics, positions = built.frame, np.ascontiguousarray(positions[:, : built.frame.count])
    poses = kinematics.forward(positions)
    if profile.platform.preset != "hexapod-cranks":
        np.testing.assert_allclose(kinematics.inverse(poses), positions, rtol=0, atol=1e-9)
        return
    for crank, angle in zip(platforms.carriers_of(profile.platform)[0], positions.T, strict=True):
        turned = Rotation.from_euler("ZYX", poses[:, [5, 4, 3]]).apply(crank["platform"])
        joint = poses[:, :3] * (1, 1, -1) + turned
        plane = np.array([np.cos(crank["azimuth"]), np.sin(crank["azimuth"]), 0.0])
        tip = crank["base"] + crank["crank"] * (np.cos(angle)[:, None] * plane - np.sin(angle)[:, None] * (0, 0, 1))
        np.testing.assert_allclose(np.linalg.norm(joint - tip, axis=1), crank["rod"], rtol=0, atol=1e-9)
        along = np.abs(((joint - tip) * (tip - crank["base"])).sum(axis=1)) / crank["rod"] / crank["crank"]
        assert np.degrees(np.arccos(along.max())) > CLEAR_DEG


# Along one channel, the others at neutral: numbers of an independent program.
ALONE = {
    "hexapod-dim": {
        "surge_displacement": (-0.2599, 0.2575),
        "sway_displacement": (-0.2322, 0.2322),
        "heave_displacement": (-0.2363, 0.2110),  # its z points down
        "roll": np.radians([-17.629, 17.629]),
        "pitch": np.radians([-17.817, 20.128]),
        "yaw": np.radians([-19.091, 19.091]),
    },
    "hexapod-simona": {
        "surge_displacement": (-1.3402, 1.0537),
        "sway_displacement": (-1.1047, 1.1047),
        "heave_displacement": (-0.7408, 0.6897),
        "roll": np.radians([-28.249, 28.249]),
        "pitch": np.radians([-26.551, 25.919]),
        "yaw": np.radians([-45.155, 45.155]),
    },
}


@pytest.mark.parametrize("channel", POSE)
@pytest.mark.parametrize("preset", ALONE)
def test_a_platform_goes_as_far_as_another_program_says(preset, channel):
    """A slow ramp far beyond the range ends at the end of the range."""
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    for sign, expected in zip((-1, 1), ALONE[preset][channel], strict=True):
        poses = np.zeros((4000, 6))
        poses[:, POSE.index(channel)] = sign * np.minimum(np.arange(4000) / 2500, 1.0) * 2.5 * abs(expected)
        positions = positions_of(profile, poses)
        assert_within(positions, built)
        found = built.kinematics.forward(positions[-1:])[0]
        wanted = np.zeros(6)
        wanted[POSE.index(channel)] = expected
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1.1e-4)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_cue_that_keeps_the_bounds_passes_bit_for_bit(preset):
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    time = np.arange(3000) * DT
    begin = np.clip(time / 2.0, 0, 1)
    begin = begin**3 * (10 + begin * (6 * begin - 15))
    poses = 0.01 * begin[:, None] * np.sin(2 * np.pi * 0.3 * time[:, None] + np.arange(6))
    sent = positions_of(profile, poses)
    if preset in ON_TABLES:
        np.testing.assert_allclose(built.kinematics.forward(sent), poses, rtol=0, atol=1e-12)
    else:
        np.testing.assert_array_equal(sent, built.kinematics.inverse(poses))


KINDS = ["noise", "jumps", "sines", "walk"]


def hostile(rng, kind, size, n):
    """Return poses that no car asks for, on some of the channels."""
    if kind == "noise":
        poses = rng.uniform(-size, size, (n, 6))
    elif kind == "jumps":
        poses = np.repeat(rng.uniform(-size, size, (n // 100, 6)), 100, axis=0)
    elif kind == "sines":
        poses = size * np.sin(np.arange(n)[:, None] * rng.uniform(0.001, 0.3, 6) + rng.uniform(0, 6, 6))
    else:
        poses = np.cumsum(rng.normal(0, size / 20, (n, 6)), axis=0)
    return poses * rng.integers(0, 2, 6)


@pytest.mark.search
@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_cue_takes_an_actuator_beyond_its_bounds(preset, data):
    """Noise, jumps, sines and walks of up to ten meters and radians, on any channel."""
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    kind, size = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from([0.01, 0.1, 0.5, 2.0, 10.0]))
    positions = positions_of(profile, hostile(rng, kind, size, 1500))
    assert np.isfinite(positions).all()
    assert_within(positions, built)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("preset", PRESETS)
def test_ten_million_ticks_keep_every_bound_and_a_pose_that_exists(preset, kind):
    """All of this test together; sizes change every few seconds, so that actuators leave their ends and come back."""
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    rng = np.random.default_rng(3)
    sizes = 10.0 ** rng.uniform(-3.0, 1.0, 140)
    poses = np.concatenate([hostile(rng, kind, size, 3000) for size in sizes])
    positions = positions_of(profile, poses)
    assert np.isfinite(positions).all()
    assert_within(positions, built)
    assert_a_frame_fits(profile, positions[::10])


def test_a_motion_that_is_refused_does_not_stop_the_actuators_at_once():
    """They follow the cue of the tick before, with their own bounds."""
    profile = profile_for("hexapod-dim")
    motion, actuation = np.zeros(1, MOTION_DTYPE), np.zeros(1, ACTUATION_DTYPE)
    stepper = motioncue.bind(profile, motion, actuation=actuation)
    positions = []
    for tick in range(2000):
        motion["surge"] = math.nan if tick == 1500 else 3.0 * math.sin(6.0 * tick * DT)
        assert stepper.step() == (tick != 1500)
        positions.append(actuation["actuators"][0, :6].copy())
    assert_within(np.array(positions), platforms.build(profile.platform))


def test_four_posts_never_rack_the_frame():
    """Post heights stay those of a plane, even when limited: h1 - h2 + h3 - h4 of the corners is zero."""
    profile = profile_for("posts-4")
    rng = np.random.default_rng(5)
    poses = np.zeros((4000, 6))
    poses[:, 2:5] = np.repeat(rng.uniform(-0.4, 0.4, (40, 3)), 100, axis=0)
    h = positions_of(profile, poses)
    assert np.ptp(h) > 0.1
    np.testing.assert_allclose(h[:, 0] - h[:, 1] + h[:, 2] - h[:, 3], 0.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("preset", ["hexapod-dim", "hexapod-cranks"])
def test_parts_of_a_pose_give_way_in_the_order_asked_for(preset):
    """A tilt and a yaw that are too large together: the first in the order gives way, the others are kept."""
    poses = np.zeros((6000, 6))
    reach = np.radians({"hexapod-dim": 12.0, "hexapod-cranks": 8.0}[preset])
    ramp = np.minimum(np.arange(6000) / 4000, 1.0)
    poses[:, 4], poses[:, 5] = reach * ramp, 10 * reach * ramp
    for order, whole, less in (("yaw", 4, 5), ("tilt", 5, 4)):
        if order == "tilt":
            poses[:, 4], poses[:, 5] = 10 * reach * ramp, reach * ramp
        rest = [part for part in ("yaw", "heave", "travel", "tilt") if part != order]
        profile = profile_for(preset, f"platform.gives_way={[order, *rest]}")
        built = platforms.build(profile.platform)
        sent = positions_of(profile, poses)
        pose = built.kinematics.forward(sent[::20])[-1]  # each from the one before
        assert pose[whole] == pytest.approx(poses[-1, whole], abs=1e-5)
        assert 0.0 <= pose[less] < 0.9 * poses[-1, less]
        np.testing.assert_allclose(np.delete(pose, [4, 5]), 0.0, atol=1e-5)


# ---- from the beginning to the end of a run --------------------------------------------------------------------------


def driven(profile, seconds, quiet_s=1.0):
    """Return the actuation of each tick of a run: nothing, then a car that turns and brakes, then the end."""
    pipeline = Pipeline(profile, FakeClock(1_000_000_000), trace=100_000)
    now = 1_000_000_000 + round(quiet_s * 1e9)
    pipeline.emitter.run(until_ns=now)
    pipeline.intake.begin(now)
    for package in drive_packages("beamng", "turns", 60.0):
        now += round(package.duration * 1e9)
        if now > seconds * 1e9:
            break
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(package.package, now)
    pipeline.emitter.stop()
    pipeline.emitter.run(until_ns=now + 60_000_000_000)
    return pipeline


@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_rises_from_where_it_is_parked_and_ends_there(preset):
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    pipeline = driven(profile, 20.0)
    sent = pipeline.emitter.trace["actuators"][:, : len(built.names)]
    low = np.array([bounds.low for bounds in built.bounds])
    low[built.frame.count :] = 0.0  # what carries the frame rests in its middle
    assert_within(sent, built)
    np.testing.assert_array_equal(sent[:300], np.tile(low, (300, 1)))
    np.testing.assert_array_equal(sent[-1], low)
    middle = sent[2000:4000]
    assert np.ptp(middle, axis=0).min() > 1e-4
    states = [move["to"] for move in pipeline.stats()["transitions"]]
    assert states[-1] == "OFFLINE"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_frame_that_is_there_before_the_first_packet_does_not_raise_the_platform_at_once(preset):
    """The drives stand where they are parked when the engine starts, whatever the simulator already sends."""
    profile = profile_for(preset)
    built = platforms.build(profile.platform)
    pipeline = Pipeline(profile, FakeClock(10**9), trace=20_000)
    pipeline.intake.begin(now := 10**9 - 5 * 10**8)
    for package in drive_packages("beamng", "turns", 60.0)[:300]:
        pipeline.intake.feed(package.package, now)
        now += round(package.duration * 1e9)
        if now > 10**9:
            pipeline.emitter.run(until_ns=now)
    sent = pipeline.emitter.trace["actuators"][:, : len(built.names)]
    assert pipeline.emitter.trace["state"][0] == 1  # engages at its first tick
    np.testing.assert_array_equal(sent[0], platforms.parked_of(profile.platform, built))
    assert_within(sent, built)
    assert np.ptp(sent[:, : built.frame.count], axis=0).min() > 1e-4  # a table waits for what is slow


def operated(profile, actions, seconds):
    """Return the pipeline after a drive during which an operator acts: pairs of time [s] and request."""
    pipeline, now, actions = Pipeline(profile, FakeClock(10**9), trace=20_000), 10**9, list(actions)
    pipeline.intake.begin(now)
    for package in drive_packages("beamng", "turns", 60.0):
        now += round(package.duration * 1e9)
        if now > (1 + seconds) * 1e9:
            break
        while actions and now >= (1 + actions[0][0]) * 1e9:
            getattr(pipeline.emitter, actions.pop(0)[1])()
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(package.package, now)
    return pipeline


def test_an_actuator_that_rides_on_its_end_does_not_shake_the_others():
    profile = profile_for("hexapod-simona")
    time = np.arange(8000) * DT
    up = np.clip(time / 6.0, 0, 1)
    up = up**3 * (10 + up * (6 * up - 15))
    poses = np.zeros((8000, 6))
    poses[:, 2] = 0.76 * up
    poses[:, 3] = 0.148 * np.sin(0.2 * np.pi * time) * up
    change = np.diff(positions_of(profile, poses), 2, axis=0)[2200:] / DT**2
    hard = np.abs(change) > 5.0
    assert (hard[1:] & hard[:-1] & (change[1:] * change[:-1] < 0)).any(axis=1).sum() < 40
    assert np.median(np.abs(change).max(axis=1)) < 0.3


def test_an_operator_who_engages_while_it_sinks_turns_it_round_without_a_jolt():
    pipeline = operated(profile_for("posts-4"), [(5, "park"), (9.0, "engage")], 10.5)
    sent = pipeline.emitter.trace["actuators"][:, :4]
    turn = np.abs(np.diff(sent, 2, axis=0) / DT**2)[round(8.0 / DT) : round(10.0 / DT)]
    assert sent[round(8.9 / DT)].max() < -0.02
    assert turn.max() < 1.5


def test_an_operator_who_parks_while_it_rises_turns_it_round():
    profile = profile_for("posts-4", "platform.rise_s=10")
    pipeline = operated(profile, [(1, "park")], 1 + 1.2 + 1.2 * 10)  # to neutral, then down
    sent = pipeline.emitter.trace["actuators"][:, :4]
    assert sent.max() < -0.05
    np.testing.assert_array_equal(sent[-1], -0.1)
    assert pipeline.emitter.state == "OFFLINE"


def test_a_platform_keeps_an_algorithm_that_gives_poses():
    pipeline = Pipeline(profile_for("posts-4"), FakeClock(10**9))
    with pytest.raises(ConfigError, match="whose cue is no pose"):
        pipeline.retune("cueing.algorithm=direct")


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "override", "message"),
    [
        (
            "hexapod-dim",
            "platform.height_m=0.2",
            "leg_1 is at .* m at neutral, beyond its range of 1.0450 m to 1.3750 m",
        ),
        ("hexapod-dim", "platform.leg.min_m=1.4", "leg_1: found 1.4000 m to 1.3750 m"),
        ("hexapod-dim", "platform.leg.speed_m_s=0", "platform.leg.speed_m_s: found 0, allowed is a number above 0"),
        ("hexapod-dim", "platform.base.pair_m=3", "found joints 3.* m apart on a circle of radius 1.15 m"),
        ("posts-4", "platform.post.acceleration_m_s2=1e-6", "post_1 needs 633 s from neutral to an end"),
        ("hexapod-cranks", "platform.crank.acceleration_deg_s2=5e-324", "crank_1 needs inf s from neutral"),
        ("posts-4", "platform.post.speed_m_s=1e-300", "post_1 needs 1e.299 s from neutral to an end"),
        ("hexapod-cranks", "platform.rod_m=0.2", "crank_1 cannot reach neutral"),
        # The rod's sine from square is 0.983 there, 11 degrees from one line; at 0.51 m it is 0.943, 19 degrees.
        ("hexapod-cranks", "platform.height_m=0.515", "crank_1 cannot reach neutral: .* within 15 degrees of one line"),
        ("hexapod-cranks", "platform.base.pair_m=0.5", "a pose within reach that the actuators do not hold"),
        (
            "posts-3",
            "platform.at_m=[[0.5,0.0],[0.0,0.0],[-0.5,0.0]]",
            "a frame that its actuators do not hold at neutral",
        ),
        ("seat-2", "platform.at_m=[[-0.4,0.2],[0.4,-0.2]]", "a frame that its actuators do not hold at neutral"),
        (
            "seat-2",
            "platform.at_m=[[-0.06,0.2],[-0.06,-0.2]]",
            "two posts whose ends turn the frame by more than 45",
        ),
        ("seat-2", "platform.at_m=[[-0.04,0.2],[-0.04,-0.2]]", "they count from the joint about which it turns"),
        ("seat-2", f"platform.axes=[{{name='lift', channel='heave_displacement', {LIFT}}}]", "whose joint holds it"),
        ("posts-4", "platform.kind=hexapode", "platform.kind"),
        ("posts-4", "platform.gives_way=['yaw','yaw','travel','tilt']", "gives_way"),
        ("posts-4", "platform.preset=posts-5", "platform.preset: found 'posts-5', allowed are .*posts-4"),
        ("posts-4", f"platform.axes=[{{name='heave', channel='yaw', {TURN}}}]", "none of a channel of the cue"),
        ("posts-4", f"platform.axes=[{{name='post_1', channel='yaw', {TURN}}}]", "allowed are different ones"),
        ("posts-4", "platform.axes=[{name='table', channel='yaw'}]", "table: allowed is one of travel and turn"),
        ("posts-4", "cueing={algorithm='direct'}", "cueing.algorithm: found 'direct', whose cue is no pose"),
    ],
)
def test_an_invalid_platform_is_refused_with_the_reason(preset, override, message):
    with pytest.raises(ConfigError, match=message):
        profile_for(preset, override)


def test_a_crank_nearly_in_line_with_its_rod_may_begin_there():
    """At 0.515 m it may not, see above."""
    assert profile_for("hexapod-cranks", "platform.height_m=0.51").platform.height_m == 0.51


def test_another_preset_comes_without_the_numbers_of_the_one_before():
    profile = overridden(profile_for("posts-4"), ["platform.preset=posts-3"])
    assert len(profile.platform.at_m) == 3


@pytest.mark.parametrize(("measure", "expected"), [("position", 1.209984), ("stroke", 0.0), ("share", 0.164984 / 0.33)])
def test_an_actuator_is_sent_as_its_packet_asks(measure, expected):
    profile = profile_for("hexapod-dim", measure=measure)
    relay = motioncue.relay(profile, clock=FakeClock(10**9))
    relay.step(b"BNG1" + bytes(84))  # BeamNG's packet of a car at rest
    np.testing.assert_allclose(np.frombuffer(relay.packets["motion"], "<f8"), expected, rtol=0, atol=1e-6)
