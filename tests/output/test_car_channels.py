"""The car's own motion beside the cue: faded, parked and bounded as the cue is, and not washed out."""

import math
import socket
import time

import numpy as np
import pytest
from c_api import c_api
from hypothesis import given, settings
from hypothesis import strategies as st
from limits_rig import packages_of
from same_bits import assert_same_bits
from test_bounds_anything import EVENTS, Simulator
from test_serial import Controller, controller, pty  # noqa: F401 the fixture
from trouble_helpers import broken

import motioncue
from motioncue.core.channels import ACTUATION_DTYPE, BODY, CAR, CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import chain_of, streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.replay import repeat
from motioncue.errors import ConfigError
from motioncue.output.actuation import CarMotion
from motioncue.profile.profile import Record
from motioncue.recording.recording import read
from motioncue.safety.settings import AccelerationBounds, SpeedBounds
from motioncue.transports.endpoint import open_sender

NAMES = [channel.name for channel in BODY]
SENT = np.dtype([(name, "<f8") for name in NAMES])
FIELDS = [{"offset": 8 * place, "type": "f8", "channel": f"car_{name}"} for place, name in enumerate(NAMES)]
BESIDE = {"output": [{"motion": "udp://127.0.0.1:4123", "packet": {"size": 8 * len(NAMES), "fields": FIELDS}}]}
DT = 3_000_030e-9
BELTS = """
[source]
system = "beamng"
endpoint = "udp://127.0.0.1:4444"
[cueing]
algorithm = "direct"
[output]
motion = "serial:///dev/ttyACM0"
packet = { preset = "belts-serial" }
"""


def profile_of(*overrides, name="beamng-dk", packet=None, limits=None):
    """Return a profile whose only output sends every channel of the car, or another packet."""
    output = {**BESIDE["output"][0], "system": "custom", "gauges": None}
    output |= {"packet": packet} if packet else {}
    output |= {"limits": limits} if limits else {}
    return motioncue.load_profile(name, {"output": output}, *overrides)


class Wire:
    """A socket that hears what an emitter sends."""

    def __init__(self, emitter, profile):
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiver.bind(("127.0.0.1", 0))
        self.receiver.settimeout(30)
        self.sender, address = open_sender(f"udp://127.0.0.1:{self.receiver.getsockname()[1]}")
        how = streams_of(profile.outputs[0], profile.platform)["motion"][1]
        emitter.add_output(self.sender, address, how.table, how.packet, how.seal)
        self.emitter, self.packets = emitter, []

    def receive(self):
        while len(self.packets) < self.emitter.counts()["ticks"]:
            self.packets.append(self.receiver.recv(4096))

    def close(self):
        self.sender.close()
        self.receiver.close()

    @property
    def sent(self):
        return np.frombuffer(b"".join(self.packets), SENT)


class Car(Simulator):
    """A pipeline under arbitrary events, whose output sends the car's own motion."""

    def __init__(self, profile):
        super().__init__(profile.source.system, profile, False)
        self.wire = Wire(self.pipeline.emitter, profile)

    def play(self, seconds, drive="turns"):
        """Let a virtual car drive, each package at its time."""
        end = self.now + round(seconds * 1e9)
        for duration, package, *_ in packages_of(self.pipeline.profile.source.system, drive):
            self.run(duration)
            if self.now > end:
                return
            self.send(package)

    def end(self):
        """Stop, wait until all is at rest, and return what was sent and the ticks."""
        self.now = self.clock.now_ns()
        self.pipeline.emitter.stop()
        self.run(4.0)
        self.wire.close()
        return self.wire.sent, self.pipeline.emitter.trace


def driven(profile, seconds=12.0):
    car = Car(profile)
    car.play(seconds)
    return car.end()


def shares(ticks):
    """Return what the equation says: the motion of each tick times the weight of the fade."""
    return {name: ticks["weight"] * np.nan_to_num(ticks["motion"][name]) for name in NAMES}


# What is sent.


@pytest.mark.rt
@pytest.mark.parametrize("name", ["beamng-dk", "ccd-dk-washout", "ccd-dk-classical", "morai-dk"])
def test_what_is_sent_is_the_weight_times_what_the_car_does_whatever_the_algorithm_makes_of_it(name):
    sent, ticks = driven(profile_of(name=name))
    expected = shares(ticks)
    least = {"surge": 2.0, "sway": 2.0, "heave": 0.01, "yaw_rate": 0.1, "speed": 5.0}
    for channel, size in least.items():
        assert np.abs(expected[channel]).max() > size, channel
        assert (sent[channel] == expected[channel]).mean() > 0.98, channel  # where no bound acts
    assert not any(sent[-1])


@pytest.mark.rt
def test_a_long_push_stays_where_the_washout_takes_it_back():
    profile = profile_of("cueing={algorithm='classical', preset='small'}", name="program-dk")
    clock = FakeClock(1_000_000_000)
    pipeline = Pipeline(profile, clock, trace=10_000)
    wire = Wire(pipeline.emitter, profile)
    pipeline.intake.begin(clock.now_ns())
    motion = np.zeros(1, MOTION_DTYPE)
    for frame in range(1500):
        motion["frame_time"], motion["surge"] = frame * 0.01, -4.0 * min(1.0, frame / 100)
        pipeline.intake.feed(motion.tobytes(), clock.now_ns())
        pipeline.emitter.run(until_ns=clock.now_ns() + 10_000_000)
        wire.receive()
    ticks = pipeline.emitter.trace
    wire.close()
    assert wire.sent["surge"][-1] == -4.0
    assert abs(ticks["cue"]["surge_displacement"][-1]) < 0.2 * np.abs(ticks["cue"]["surge_displacement"]).max()


@pytest.mark.rt
def test_a_speed_that_the_simulator_does_not_send_is_sent_as_0_and_never_as_nan():
    sent, ticks = driven(profile_of(name="ccd-dk"), 3.0)
    assert np.isnan(ticks["motion"]["engine_speed"]).any()
    assert not sent["engine_speed"].any()
    assert all(np.isfinite(sent[name]).all() for name in NAMES)


@pytest.mark.rt
def test_parked_and_held_as_the_cue_is():
    car = Car(profile_of("supervisor.fade_s=0.5"))
    car.play(4.0)
    car.operate("park")
    car.play(1.0)
    parked = len(car.wire.packets)
    car.play(1.0)
    car.operate("engage")
    car.play(4.0)
    car.silence(2.0)
    silent = len(car.wire.packets)
    sent, ticks = car.end()
    assert not any(sent[name][parked - 1 : parked + 100].any() for name in NAMES)
    assert np.abs(sent["speed"][parked + 600 : parked + 1600]).max() > 1.0
    assert ticks["state"][silent - 1] == 0
    assert not any(sent[-1])


# Bounds, whatever comes.


@pytest.mark.search
@pytest.mark.rt
@settings(deadline=None, max_examples=25)
@given(
    plan=st.lists(EVENTS, max_size=8),
    name=st.sampled_from(["beamng-dk", "ccd-dk-classical", "ccd-dk-washout", "vehicle-physics-pro-dk"]),
    tight=st.booleans(),
    fade_s=st.sampled_from([0.1, 1.0]),
)
def test_every_packet_keeps_the_bounds_of_every_channel_and_ends_at_neutral(plan, name, tight, fade_s):
    limits = {
        "car_surge": {"value_m_s2": 5.0, "rate_m_s3": 200.0, "acceleration_m_s4": 2e4, "jerk_m_s5": 4e6},
        "car_roll": {"value_deg": 4.0, "rate_deg_s": 30.0},
        "car_speed": {"value_m_s": 20.0, "rate_m_s2": 80.0},
    }
    profile = profile_of(f"supervisor.fade_s={fade_s}", name=name, limits=limits if tight else None)
    bounds = profile.outputs[0].limits.car_bounds()
    car = Car(profile)
    car.drive(90)
    for kind, size in plan:
        getattr(car, kind)(size)
    sent, ticks = car.end()
    assert len(sent) == len(ticks)
    assert list(bounds) == NAMES
    assert broken(sent, bounds, DT) == []
    assert not any(sent[-1])


@pytest.mark.rt
def test_a_bound_that_changes_while_it_runs_is_approached_along_a_fade():
    car = Car(profile_of())
    car.play(6.0)
    wide = car.pipeline.profile.outputs[0].limits.car_bounds()
    car.pipeline.retune("output.limits.car_speed.value_m_s=3")
    changed = len(car.wire.packets)
    car.silence(0.01)
    car.repeat(240)
    sent, _ = car.end()
    assert broken(sent, wide, DT) == []
    assert sent["speed"][changed - 1] > 6.0
    assert sent["speed"][changed + 5] > 6.0
    assert np.abs(sent["speed"][changed + 700 :]).max() <= 3.0


def test_all_channels_have_bounds_unless_others_are_given():
    limits = profile_of(limits={"car_surge": {"value_m_s2": 5.0}}).outputs[0].limits
    bounds = limits.car_bounds()
    assert limits.bounds() == {}
    assert bounds["surge"] == [5.0, AccelerationBounds().rate_m_s3, AccelerationBounds().acceleration_m_s4, None]
    assert bounds["speed"] == [SpeedBounds().value_m_s, SpeedBounds().rate_m_s2, None, None]
    assert bounds["yaw_rate"][0] == pytest.approx(math.radians(300.0))


# The same everywhere.


@pytest.mark.rt
def test_what_was_sent_is_told_by_the_recording_and_by_its_replay_bit_for_bit(tmp_path):
    profile = profile_of()
    file = tmp_path / "run.mcap"
    car = Car(profile)
    with car.pipeline.record(Record(file=str(file)), {}):
        car.play(6.0)
        car.operate("park")
        car.play(1.0)
        sent, _ = car.end()
    recorded = read(file)
    for drive in (recorded, repeat(recorded)):
        ticks = drive.ticks
        motion, weight = np.ascontiguousarray(ticks["motion"]), np.ascontiguousarray(ticks["weight"])
        again = motioncue.actuate(profile, np.ascontiguousarray(ticks["cue"]), motion=motion, weight=weight)
        for name in NAMES:
            assert_same_bits(again[f"car_{name}"], sent[name][: len(again)])
    assert len(recorded.ticks) == len(sent)


def drive_of(n=900):
    rng = np.random.default_rng(3)
    motion = np.zeros(n, MOTION_DTYPE)
    for name in NAMES:
        motion[name] = np.cumsum(rng.normal(size=n)) * 0.02
    motion["speed"] = np.nan
    return motion


def test_a_stepper_and_rigs_send_what_actuate_says():
    profile, motion = profile_of(), drive_of()
    cues = motioncue.cue(profile, motion)
    expected = motioncue.actuate(profile, cues, motion=motion)
    np.testing.assert_array_equal(expected["car_sway"][5:], motion["sway"][5:])
    assert not expected["car_speed"].any()
    stepper = motioncue.bind(profile, actuation=np.zeros(1, ACTUATION_DTYPE))
    rigs = motioncue.Rigs(profile, 3)
    three, cue, sent = np.zeros(3, MOTION_DTYPE), np.zeros(3, CUE_DTYPE), np.zeros(3, ACTUATION_DTYPE)
    for row, wanted in zip(motion, expected, strict=True):
        stepper.motion[0] = row
        assert stepper.step()
        assert stepper.actuation[0].tobytes() == wanted.tobytes()
        three[:] = row
        rigs.step(three, cue, sent)
        assert all(each.tobytes() == wanted.tobytes() for each in sent)


def test_c_gets_the_channels_too(tmp_path):
    (tmp_path / "rig.toml").write_text(BELTS)
    profile, motion = motioncue.load_profile(tmp_path / "rig.toml"), drive_of(300)
    expected = motioncue.actuate(profile, motioncue.cue(profile, motion), motion=motion)
    api, cue, sent = c_api(), np.zeros(1, CUE_DTYPE), np.zeros(1, ACTUATION_DTYPE)
    stepper = api.create(str(tmp_path / "rig.toml").encode(), 0.0, None, 0)
    for row, wanted in zip(motion, expected, strict=True):
        assert api.step(stepper, row.reshape(1).ctypes.data, cue.ctypes.data)
        api.actuate(stepper, cue.ctypes.data, sent.ctypes.data)
        assert sent.tobytes() == wanted.tobytes()
    api.destroy(stepper)
    assert sent["car_sway"][0] == motion["sway"][-1]


def test_a_stepper_that_is_parked_lets_go_along_a_fade_and_takes_hold_again():
    stepper = motioncue.bind(profile_of("supervisor.fade_s=0.5"), actuation=np.zeros(1, ACTUATION_DTYPE))
    stepper.motion["surge"] = 6.0
    found = []
    for parked in (False, True, False):
        stepper.parked = parked
        for _ in range(300):
            stepper.step()
            found.append(stepper.actuation["car_surge"][0])
    assert found[299] == 6.0
    assert found[599] == 0.0
    assert found[899] == 6.0
    # 6 m/s^2 in half a second by x^3 (10 - 15 x + 6 x^2), whose steepest slope is 1.875 in the middle
    steps = np.abs(np.diff(found[100:]))
    assert steps.max() == pytest.approx(6.0 * 1.875 * DT / 0.5, rel=0.01)


def test_motion_that_is_not_finite_is_not_sent_on():
    stepper = motioncue.bind(profile_of(), actuation=np.zeros(1, ACTUATION_DTYPE))
    stepper.motion["surge"], stepper.motion["speed"] = 1.0, 30.0
    for _ in range(200):
        stepper.step()
    for wrong in (math.nan, math.inf, 1e300):
        stepper.motion["surge"] = stepper.motion["speed"] = wrong
        assert not stepper.step()
        assert stepper.actuation["car_surge"][0] == 1.0
        assert 0.0 < stepper.actuation["car_speed"][0] <= 30.0  # on the way to 0


def test_offline_the_motion_has_to_be_given_and_of_its_kind():
    profile = profile_of()
    cues = np.zeros(3, CUE_DTYPE)
    with pytest.raises(ConfigError, match="motion: found None, allowed is what the car does: output 0 sends it"):
        motioncue.actuate(profile, cues)
    with pytest.raises(ConfigError, match=r"weight: found .*allowed is float64, shape \(3,\)"):
        motioncue.actuate(profile, cues, motion=np.zeros(3, MOTION_DTYPE), weight=np.zeros(2))
    with pytest.raises(ConfigError, match=r"motion: found .*shape \(2,\), allowed is .*shape \(3,\)"):
        motioncue.actuate(profile, cues, motion=np.zeros(2, MOTION_DTYPE))


def test_an_output_that_asks_for_none_has_no_stage_for_them():
    plain = motioncue.load_profile("ccd-hexapod")
    kinds = [type(stage) for stage in chain_of(plain, plain.outputs[0]).stages]
    assert CarMotion not in kinds
    profile = profile_of()
    assert CarMotion in [type(stage) for stage in chain_of(profile, profile.outputs[0]).stages]
    assert CarMotion.fills == tuple(channel.name for channel in CAR)


# Belts and wind.


def pulls(data):
    """Read messages as the belt tensioner's sketch does: a |, then whole numbers, whatever is between them."""
    found = []
    for message in data.decode().split("|")[1:]:
        if message.endswith("\n"):
            found.append([int(number) for number in message.strip().split(",")])
    return np.array(found)


def test_braking_pulls_at_both_belts_a_corner_at_the_outer_one_and_never_beyond_the_limit():
    profile = profile_of(name="program-dk", packet={"preset": "belts-serial"})
    how = streams_of(profile.outputs[0])["motion"][1]
    assert how.reads == {"car_surge", "car_sway"}

    def pull(surge, sway):
        left = 50 + max(0.0, -30 * surge + 20 * sway)
        return round(min(left, 500)), round(min(50 + max(0.0, -30 * surge - 20 * sway), 500))

    assert pull(0, 0) == (50, 50)
    assert pull(-9.80665, 0) == (344, 344)
    assert pull(0, 5) == (150, 50)  # turning right: the left belt
    assert pull(5, 0) == (50, 50)  # speeding up: slack
    assert pull(-16, 0) == (500, 500)
    stepper = motioncue.relay(profile, clock=FakeClock(10**9))
    motion = np.zeros(1, MOTION_DTYPE)
    for surge, sway in [(0, 0), (-9.80665, 0), (0, 5), (5, 0), (-3, -4), (-10, 0), (-16, 0)]:
        motion["surge"], motion["sway"] = surge, sway
        for _ in range(60):
            motion["frame_time"] += 0.01
            motion["time"] += 10_000_000
            stepper.step(motion.tobytes())
        text = stepper.packets["motion"].tobytes().rstrip(b"\0")
        assert tuple(pulls(text + b"|")[0]) == (*pull(surge, sway), 50)


@pytest.mark.rt
def test_fans_follow_the_speed_and_stand_when_parked():
    packet = {"preset": "wind-serial"}
    car = Car(profile_of(name="beamng-dk", packet=packet))
    car.play(8.0)
    car.now = car.clock.now_ns()
    car.pipeline.emitter.stop()
    car.run(4.0)
    car.wire.close()
    ticks, powers = car.pipeline.emitter.trace, []
    for data in car.wire.packets:
        left, _, right = data.decode().strip().removeprefix("W").partition(",")
        assert data.decode() == f"W{left},{right}\n"
        assert left == right
        powers.append(int(left))
    speed = shares(ticks)["speed"]
    assert speed.max() > 5.0
    np.testing.assert_allclose(powers, np.minimum(255, 3.64 * speed), atol=1.5)
    assert powers[0] == powers[-1] == 0


@pty
@pytest.mark.rt
def test_over_a_line_belts_are_slack_before_and_after_a_drive_and_pull_while_it_brakes(controller):  # noqa: F811
    profile = motioncue.load_profile(
        "program-dk",
        {
            "output": {
                "system": "custom",
                "gauges": None,
                "motion": f"serial://{controller.path}",
                "packet": {"preset": "belts-serial"},
            }
        },
        "supervisor.fade_s=0.2",
        "supervisor.hold_s=5",
    )
    motion = np.zeros(1, MOTION_DTYPE)
    with motioncue.Engine(profile, trace=5000) as engine:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            motion["frame_time"] += 0.01
            motion["surge"] = max(-6.0, motion["surge"][0] - 0.1)
            engine.feed(motion)
            time.sleep(0.01)
            if engine.newest()["weight"][0] == 1.0 and motion["surge"][0] == -6.0:
                found = pulls(controller.read())
                if len(found) and found[-1][0] == 230:  # 50 + 30 * 6
                    break
        else:
            pytest.fail("the belts did not pull")
    found = pulls(controller.read() + b"|")
    assert found[0].tolist() == [50, 50, 50]
    assert found[-1].tolist() == [50, 50, 50]
    assert found.max() <= 500
    # a fade of 180 in 0.2 s, or the largest rate of a surge: 2500 m/s^3
    assert np.abs(np.diff(found[:, :2], axis=0)).max() <= 30 * 2500 * DT + 1
