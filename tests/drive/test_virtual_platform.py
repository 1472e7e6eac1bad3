"""The virtual platform: its drives against closed forms, what a driver feels against equations, its packets."""

import time

import numpy as np
import pytest
from test_platforms import DT, POSE, PRESETS, cues_of, profile_for

import motioncue
from motioncue.cli.terminal import drive_rows
from motioncue.core.channels import TICK_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.errors import ConfigError, PacketError
from motioncue.platforms.build import channels_of, platform_named
from motioncue.platforms.servo import Servos
from motioncue.platforms.settings import ActuatorBounds
from motioncue.virtual.installation import Installation
from motioncue.virtual.platform_twin import (
    Decoder,
    Drive,
    PlatformListener,
    VirtualPlatform,
    actuators_not_sent,
    delay_s,
    felt,
    sensed,
)

FREE = [ActuatorBounds(-10.0, 10.0, 1e6, 1e9)]
GRAVITY = 9.80665


def step(n=400, size=1.0):
    """Return commands that are 0 at the first tick and `size` from the second on."""
    sent = np.full((n, 1), size)
    sent[0] = 0.0
    return sent


@pytest.mark.parametrize("dead_time_s", [0.0, 0.005, 10 * DT, 0.0499])
def test_a_first_order_drive_answers_a_step_like_its_equation(dead_time_s):
    made = Servos(FREE, DT, 0.03, dead_time_s=dead_time_s).process(step())[:, 0]
    since = np.maximum((np.arange(400) - 1) * DT - dead_time_s, 0.0)
    np.testing.assert_allclose(made, 1.0 - np.exp(-since / 0.03), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dead_time_s", [0.0, 0.0071])
@pytest.mark.parametrize("damping", [0.3, 1.0, 2.5])
def test_a_second_order_drive_answers_a_step_like_its_equation(damping, dead_time_s):
    """The textbook solution of x'' + 2 z w x' + w^2 x = w^2, w = 2 z / lag, from rest."""
    made = Servos(FREE, DT, 0.05, damping, dead_time_s).process(step())[:, 0]
    t = np.maximum((np.arange(400) - 1) * DT - dead_time_s, 0.0)
    omega = 2.0 * damping / 0.05
    if damping == 1.0:
        expected = 1.0 - np.exp(-omega * t) * (1.0 + omega * t)
    else:
        root = np.emath.sqrt(damping**2 - 1.0)
        slow, fast = omega * (-damping + root), omega * (-damping - root)
        expected = np.real(1.0 + (fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (slow - fast))
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-10)


def test_a_drive_without_lag_is_where_the_command_before_was():
    sent = np.cumsum(np.random.default_rng(1).normal(0, 0.1, (100, 1)), axis=0)
    np.testing.assert_array_equal(Servos(FREE, DT, 0.0).process(sent)[1:], sent[:-1])


def test_pieces_of_any_size_give_the_same_bits():
    sent = np.cumsum(np.random.default_rng(2).normal(0, 0.01, (500, 2)), axis=0)
    make = lambda: Servos(2 * FREE, DT, 0.03, 0.7, 0.02, 0.0001)  # noqa: E731
    pieces = make()
    found = np.vstack([pieces.process(sent[begin : begin + 37]) for begin in range(0, 500, 37)])
    np.testing.assert_array_equal(found, make().process(sent))
    pieces.reset()
    np.testing.assert_array_equal(pieces.process(sent), found)


@pytest.mark.parametrize("damping", [None, 1.5])
def test_friction_keeps_a_drive_its_band_short_of_the_command(damping):
    made = Servos([ActuatorBounds(-1.0, 1.0, 1e6, 1e9)], DT, 0.03, damping, friction=0.01).process(step(3000, 0.5))[
        :, 0
    ]
    assert made[-1] == pytest.approx(0.5 - 0.02, abs=1e-9)
    made = Servos([ActuatorBounds(-1.0, 1.0, 1e6, 1e9)], DT, 0.03, damping, friction=0.01).process(step(300, 0.0199))
    assert not made.any()


def test_friction_takes_from_a_free_swing_what_coulomb_says():
    """Around the command the swing loses twice the band in each half period: from -S to S - 2 f, to -(S - 4 f)."""
    damping, f = 1e-9, 0.01
    made = Servos([ActuatorBounds(-5.0, 5.0, 1e6, 1e9)], 1e-4, 2e-9, damping, friction=f / 10).process(step(70_000))[
        :, 0
    ]
    high = made.argmax()
    assert made[high] - 1.0 == pytest.approx(1.0 - 2 * f, abs=1e-5)
    assert made[high:].min() - 1.0 == pytest.approx(-(1.0 - 4 * f), abs=1e-5)


@pytest.mark.parametrize("damping", [None, 1.0])
def test_an_end_stop_holds_the_drive_and_counts_once(damping):
    drive = Servos([ActuatorBounds(-1.0, 1.0, 1e3, 1e9)], 1e-4, 0.03, damping)
    made = drive.process(np.concatenate((step(3000, 2.0), step(6000, -0.5))))[:, 0]
    found = drive.stats()
    assert made.max() == 1.0
    assert (made[2000:3000] == 1.0).all()
    assert found["hits"][0] == 1
    if damping is None:
        assert found["impact"][0] == pytest.approx(1.0 / 0.03, rel=0.01)
        assert made[-1] == pytest.approx(-0.5, abs=1e-6)


def test_a_drive_that_only_touches_its_stop_has_not_hit_it():
    time_s = np.arange(3000) * DT
    way = np.clip(time_s / 4.0, 0, 1)
    sent = -0.1 * (way**3 * (10 - 15 * way + 6 * way**2))[:, None] - 1e-9
    drive = Servos([ActuatorBounds(-0.1, 0.1, 0.28, 19.6)], DT, 0.03)
    assert drive.process(sent).min() == -0.1
    assert drive.stats()["hits"][0] == 0


def test_ticks_beyond_speed_and_acceleration_are_counted():
    drive = Servos([ActuatorBounds(-10.0, 10.0, 0.5, 5.0)], 0.001, 0.0)
    ramp = np.concatenate((np.zeros(10), 0.0006 * np.arange(1, 101), np.full(10, 0.06)))  # 0.6 m/s at once
    drive.process(ramp[:, None])
    found = drive.stats()
    assert found["too_fast"][0] == 100
    assert found["too_hard"][0] == 2
    assert found["speed"][0] == pytest.approx(0.6)
    assert found["acceleration"][0] == pytest.approx(600.0)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((DT, -0.1), "lag_s"), ((DT, 0.1, 0.0), "damping"), ((DT, 0.1, None, 2.0), "dead_time_s"), ((0.0, 0.1), "dt")],
)
def test_drives_that_cannot_be_are_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=name):
        Servos(FREE, *arguments)
    with pytest.raises(ValueError, match="bounds"):
        Servos([ActuatorBounds(1.0, -1.0, 1.0, 1.0)], DT, 0.1)
    with pytest.raises(ValueError, match="not finite"):
        Servos(FREE, DT, 0.1).process([[np.nan]])


# ---- the frame -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_the_frame_goes_where_the_drives_take_it(preset):
    """Poses, to actuators, to the drives, to the frame: what posts and the like leave free stays at neutral."""
    platform = VirtualPlatform(platform_named(preset), 1 / DT, Drive(0.0, None, 0.0))
    free = {"posts-3": (0, 1, 5), "posts-4": (0, 1, 5), "seat-2": (0, 1, 2, 5)}.get(preset, ())
    time_s = np.arange(2000)[:, None] * DT
    poses = 0.02 * np.sin(2 * np.pi * 0.4 * time_s + np.arange(6))
    poses[:, free] = 0.0
    found = platform.follow(platform.built.kinematics.inverse(poses))
    np.testing.assert_allclose(found.pose[1:], poses[:-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(platform.built.kinematics.inverse(found.pose), found.actuators, rtol=0, atol=1e-9)


def test_a_frame_that_surges_and_leans_is_felt_as_its_equations_say():
    time_s = np.arange(2000) * DT
    pose = np.zeros((2000, 6))
    omega = 2 * np.pi * 0.5
    pose[:, 0] = 0.1 * np.sin(omega * time_s)
    force, rates = sensed(pose, DT)
    np.testing.assert_allclose(force[1:-1, 0], -0.1 * omega**2 * np.sin(omega * time_s[1:-1]), atol=1e-4)
    np.testing.assert_allclose(force[:, 1:], 0.0, atol=1e-9)
    assert not rates.any()
    pose[:] = 0.0
    pose[:, 3], pose[:, 4] = 0.1, 0.2
    force, _ = sensed(pose, DT)
    down = GRAVITY * np.cos(0.2)
    expected = [GRAVITY * np.sin(0.2), -down * np.sin(0.1), down * np.cos(0.1) - GRAVITY]
    np.testing.assert_allclose(force, np.tile(expected, (2000, 1)), atol=1e-9)


def test_a_frame_that_spins_presses_a_driver_outwards():
    """A driver 1 m in front of the axis of a steady yaw of w: w^2 towards the axis, which is backwards."""
    time_s = np.arange(1000) * DT
    pose = np.zeros((1000, 6))
    pose[:, 5] = (1.7 * time_s + np.pi) % (2 * np.pi) - np.pi
    force, rates = sensed(pose, DT, (1.0, 0.0, 0.5))
    np.testing.assert_allclose(force, np.tile([-(1.7**2), 0.0, 0.0], (1000, 1)), atol=1e-4)
    np.testing.assert_allclose(rates, np.tile([0.0, 0.0, 1.7], (1000, 1)), atol=1e-9)


def test_rates_are_about_the_axes_of_the_platform():
    """A leaned frame that turns about the vertical: the rate's parts are those of the vertical in its axes."""
    pose = np.zeros((1000, 6))
    pose[:, 3], pose[:, 4], pose[:, 5] = 0.3, 0.2, np.arange(1000) * DT
    _, rates = sensed(pose, DT)
    expected = [-np.sin(0.2), np.cos(0.2) * np.sin(0.3), np.cos(0.2) * np.cos(0.3)]
    np.testing.assert_allclose(rates, np.tile(expected, (1000, 1)), atol=1e-9)


@pytest.mark.parametrize("ticks", [0, 3, 12])
def test_a_delay_is_found_by_correlation(ticks):
    rng = np.random.default_rng(3)
    signal = np.cumsum(np.convolve(rng.normal(size=3000), np.ones(40) / 40, "same"))
    early, late = signal[20:], signal[20 - ticks : 3000 - ticks]
    assert delay_s(early, late, DT) == pytest.approx(ticks * DT, abs=0.02 * DT)
    assert delay_s(late, early, DT) == pytest.approx(-ticks * DT, abs=0.02 * DT)
    assert delay_s(signal, np.zeros(3000), DT) is None
    assert delay_s([0.0], [1.0], DT) is None


@pytest.mark.parametrize("period_s", [2.0, 0.5])
def test_the_delay_through_a_platform_is_that_of_its_drives(period_s):
    """A sine through a first-order lag T and a dead time: atan(w T) / w, the dead time, and half a tick of hold."""
    profile = profile_for("posts-4")
    time_s = np.arange(6000) * DT
    poses = np.zeros((6000, 6))
    poses[:, 2] = 0.01 * np.sin(2 * np.pi * time_s / period_s) * np.clip(time_s / 3, 0, 1) ** 3
    found = felt(profile, cues_of(poses), drive=Drive(0.03, None, 0.01))
    omega = 2 * np.pi / period_s
    expected = np.arctan(omega * 0.03) / omega + 0.01 + 0.5 * DT
    assert delay_s(found.sent, found.actuators, DT) == pytest.approx(expected, abs=0.1 * DT)


# ---- its packets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["position", "stroke", "share"])
def test_packets_hold_the_positions_that_were_sent(measure):
    profile = profile_for("hexapod-dim", measure=measure)
    relay = motioncue.relay(profile, clock=FakeClock(10**9))
    relay.step(b"BNG1" + bytes(84))  # BeamNG's packet of a car at rest
    decoder = Decoder(profile.outputs[0].packet, channels_of(profile.platform))
    found = decoder.positions(bytes(relay.packets["motion"]))
    np.testing.assert_allclose(found, [[1.209984] * 6], rtol=0, atol=1e-6)
    with pytest.raises(PacketError, match="found 3 bytes, allowed are 48"):
        decoder.positions(b"abc")


def test_a_packet_without_an_actuator_is_refused():
    profile = profile_for("hexapod-dim", "output.packet.fields=[{offset=0, type='f4', channel='leg_1'}]")
    with pytest.raises(ConfigError, match="found no leg_2, leg_3"):
        PlatformListener(profile, [])


@pytest.mark.parametrize(("preset", "packet"), [("hexapod-dim", "thanos-amc"), ("posts-3", "smc3")])
def test_a_controllers_packets_hold_the_positions_too(preset, packet):
    """At neutral, to the step of the controller's numbers."""
    profile = profile_for(preset, f"output.packet={{preset='{packet}'}}")
    relay = motioncue.relay(profile, clock=FakeClock(10**9))
    relay.step(b"BNG1" + bytes(84))
    platform = motioncue.platform(preset)
    assert actuators_not_sent(profile.outputs[0].packet, channels_of(profile.platform)) == []
    found = Decoder(profile.outputs[0].packet, channels_of(profile.platform)).positions(bytes(relay.packets["motion"]))
    size = platform.bounds[0][1] - platform.bounds[0][0]
    np.testing.assert_allclose(found[0], platform.neutral, rtol=0, atol=size / 500)


def test_a_listener_moves_with_its_packets_and_says_what_it_did():
    profile = profile_for("posts-4", "platform.lag_s=0.05")
    listener = PlatformListener(profile, [])
    time_s = np.arange(2000) * DT
    heights = 0.04 * np.sin(2 * np.pi * time_s) * np.clip(time_s, 0, 1) ** 3
    for tick, height in enumerate(heights):
        listener.take(np.full(4, height).tobytes(), tick * 3_000_030)
    listener.take(np.full(4, np.nan).tobytes(), 0)
    listener.take(b"short", 0)
    stats = listener.stats()
    assert stats["packets_received"] == 2000
    assert stats["rejected"] == {"not_finite": 1, "size_or_magic": 1}
    gain = 1 / np.hypot(1, 2 * np.pi * 0.05)
    assert stats["actuators"]["post_1"]["travel"] == pytest.approx(2 * 0.04 * gain / 0.2, rel=0.01)
    assert stats["actuators"]["post_1"]["hits"] == 0
    assert stats["delay_s"] == pytest.approx(np.arctan(2 * np.pi * 0.05) / (2 * np.pi) + 0.5 * DT, abs=0.001)
    made = listener.platform.built.kinematics.inverse([[listener.last("motion")[name] for name in POSE]])
    assert made.max() - made.min() < 1e-9


@pytest.mark.parametrize(("lag_s", "left_s"), [(None, 0.05), ("0.05", 0.05 / 16)])
def test_a_listener_says_how_far_the_drives_are_behind_the_cue(lag_s, left_s):
    """Slow motion; behind compensated drives a sixteenth of the lag is left, and half a tick of hold in either case."""
    profile = profile_for("posts-4", *([] if lag_s is None else [f"platform.lag_s={lag_s}"]))
    ticks = np.zeros(4000, TICK_DTYPE)
    time_s = np.arange(4000) * DT
    ticks["cue"]["heave_displacement"] = 0.04 * np.sin(np.pi * time_s) * np.clip(time_s, 0, 1) ** 3
    ticks["weight"] = 1.0
    sent = motioncue.actuate(profile, ticks["cue"].copy())["actuators"][:, :4]
    listener = PlatformListener(profile, [], Drive(0.05, None, 0.0))
    for tick, row in enumerate(sent):
        listener.take(row.tobytes(), tick)
    assert listener.delay_behind_cue_s(ticks) == pytest.approx(left_s + 0.5 * DT, abs=0.001)
    ticks["weight"][: round(8.0 / DT)] = 0.0  # the rest is as long as it takes to rise
    assert listener.delay_behind_cue_s(ticks) is None


def test_actuators_that_no_field_holds_are_named():
    """A sled beside the posts of a packet: the summary says why no drives move."""
    sled = "{name='sled', channel='sway_displacement', travel={min_m=-1, max_m=1, speed_m_s=1, acceleration_m_s2=4}}"
    profile = profile_for("posts-3", f"platform.axes=[{sled}]")
    missing = actuators_not_sent(profile.outputs[0].packet, channels_of(profile.platform))
    assert missing == ["sled"]
    assert drive_rows({"unmoved": missing}) == [("drives", "none: no field of the packet holds sled by itself")]


def test_overruns_are_named_by_actuator():
    drives = {f"post_{n}": {"hits": 0, "overruns": count, "travel": 0.5} for n, count in ((2, 0), (3, 1))}
    rows = dict(drive_rows({"actuators": drives, "delay_s": None}))
    assert rows["end stops hit"] == "0"
    assert rows["overruns"].startswith("post_3: 1 (")


@pytest.mark.rt
@pytest.mark.check
def test_an_installation_has_the_platform_that_its_profile_describes(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(RIG)
    with Installation(path, "brake", 4.0) as installation:
        time.sleep(4.0)
    stats = installation.stats()["platform"]
    assert stats["packets_received"] > 1000
    assert set(stats["actuators"]) == {"post_1", "post_2", "post_3", "post_4"}
    assert all(drive["hits"] == 0 and drive["overruns"] == 0 for drive in stats["actuators"].values())
    assert stats["actuators"]["post_1"]["travel"] > 0.4  # rises from the lowest position to neutral


RIG = """
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
[cueing]
algorithm = "classical"
preset = "utias"
[platform]
preset = "posts-4"
rise_s = 1
[output]
motion = "udp://127.0.0.1:9999"
packet = { size = 16, fields = [
    { offset = 0, type = "f4", channel = "post_1" },
    { offset = 4, type = "f4", channel = "post_2" },
    { offset = 8, type = "f4", channel = "post_3" },
    { offset = 12, type = "f4", channel = "post_4" },
] }
"""
