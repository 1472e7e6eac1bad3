"""Wheels, suspension and cab beside the cue: from a described packet to a described output, faded and bounded."""

import math

import numpy as np
import pytest
from c_api import c_api
from delivery_rig import DELIVERIES
from same_bits import assert_same_bits
from test_car_channels import Wire
from trouble_helpers import broken

import motioncue
from motioncue import sources
from motioncue.core.channels import (
    ACTUATION_DTYPE,
    CHASSIS,
    CHASSIS_DTYPE,
    CUE_DTYPE,
    MOTION,
    MOTION_DTYPE,
    TEXTURE,
    WHEELS,
)
from motioncue.core.clock import FakeClock
from motioncue.engine import replay
from motioncue.engine.assembly import chain_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.output.actuation import ChassisMotion
from motioncue.profile.profile import Record
from motioncue.recording.drive import export
from motioncue.recording.mcap_reader import McapFile
from motioncue.recording.recording import read

START = 1_000_000_000
FRAME_S = 1 / 60
NAMES = [channel.name for channel in CHASSIS]
SENT = np.dtype([(name, "<f8") for name in (*NAMES, "tactile")])
PACKET = np.dtype([(channel.name, "<f8") for channel in (*MOTION[:11], MOTION[12], *CHASSIS)])
FIELDS = [
    {"offset": 8 * place, "type": "f8", "channel": "time" if name == "frame_time" else name}
    for place, name in enumerate(PACKET.names)
]
OUTPUT = [
    {"offset": 8 * place, "type": "f8", "channel": name if name == "tactile" else f"car_{name}"}
    for place, name in enumerate(SENT.names)
]


TEXT = """
[source]
system = "city-car-driving"
endpoint = "pipe://DynamicCabPipe"
[cueing]
algorithm = "direct"
[output]
motion = "udp://127.0.0.1:4123"
limits = { car_slip = { value = 3.0, rate_per_s = 100.0, acceleration_per_s2 = 1e4 } }
[output.packet]
size = 24
fields = [
    { offset = 0, type = "f8", channel = "car_suspension_rear_left" },
    { offset = 8, type = "f8", channel = "car_cabin_yaw" },
    { offset = 16, type = "f8", channel = "car_slip_front_left" },
]
"""


def profile_of(*overrides, fields=FIELDS, limits=None, output=OUTPUT):
    """Return a profile whose source says everything of the chassis, and whose output sends it all."""
    table = {
        "source": {"system": "custom", "packet": {"size": PACKET.itemsize, "fields": fields}},
        "output": {
            "system": "custom",
            "gauges": None,
            "motion": "udp://127.0.0.1:4123",
            "packet": {"size": SENT.itemsize, "fields": output},
            **({"limits": limits} if limits else {}),
        },
    }
    return motioncue.load_profile("program-dk", table, *overrides)


class Drive:
    """A car that drives straight on at 20 m/s, and what an output is sent of its chassis."""

    def __init__(self, profile):
        self.clock = FakeClock(START)
        self.pipeline = Pipeline(profile, self.clock, trace=20_000)
        self.wire = Wire(self.pipeline.emitter, profile)
        self.now = START
        self.time = 0.0

    def run(self, seconds):
        end = self.now + round(seconds * 1e9)
        while self.now < end:
            self.now = max(min(end, self.now + 300_000_000), self.clock.now_ns())
            self.pipeline.emitter.run(until_ns=self.now)
            self.wire.receive()

    def send(self, time, channels):
        row = np.zeros(1, PACKET)
        row["speed"], row["frame_time"], row["surge"] = 20.0, time, 0.01 * math.sin(time)
        for name, value in channels.items():
            row[name] = value
        self.pipeline.intake.feed(row.tobytes(), self.now)

    def frame(self, **channels):
        """Send a frame and let time pass until the next."""
        self.send(self.time, channels)
        self.time += FRAME_S
        self.run(FRAME_S)

    def deliver(self, taken, arrivals, of_time):
        """Send frames that were taken and come at these times [s], in the order in which they come."""
        for time, arrival in zip(taken, arrivals, strict=True):
            self.run((START - self.now) * 1e-9 + arrival)
            self.send(time, of_time(time))

    def drive(self, seconds, of_time=lambda time: {}):
        """Drive on with these channels as functions of time."""
        for _ in range(round(seconds / FRAME_S)):
            self.frame(**of_time(self.time))

    @property
    def sent(self):
        return np.frombuffer(b"".join(self.wire.packets), SENT)

    @property
    def ticks(self):
        return self.pipeline.emitter.trace

    def close(self):
        self.wire.close()


def sines(time):
    """Each wheel's suspension in a sine of its own amplitude, its own phase."""
    return {
        f"suspension_{wheel}": 0.02 * (place + 1) * math.sin(2.0 * math.pi * time + 0.5 * place)
        for place, wheel in enumerate(WHEELS)
    }


@pytest.fixture
def driven():
    drives = []

    def begin(profile=None):
        drives.append(Drive(profile or profile_of()))
        return drives[-1]

    yield begin
    for each in drives:
        each.close()


def test_each_wheel_s_suspension_is_sent_as_it_is_one_frame_late(driven):
    car = driven()
    car.drive(6.0, sines)
    sent, ticks = car.sent, car.ticks
    late = ticks["weight"] == 1.0
    assert late.sum() > 1000
    # Straight lines from frame to frame, one frame late; the frames' own time began with the first frame, at START.
    time = (ticks["deadline"] - START) * 1e-9 - FRAME_S
    for place, wheel in enumerate(WHEELS):
        expected = 0.02 * (place + 1) * np.sin(2.0 * np.pi * time + 0.5 * place)
        # a chord lies below its sine by up to (omega T)^2 / 8, and lines begin at a tick, which may be one late
        near = 0.02 * (place + 1) * ((2.0 * math.pi * FRAME_S) ** 2 / 8 + 2.0 * math.pi * 0.003)
        np.testing.assert_allclose(sent[f"suspension_{wheel}"][late], expected[late], atol=near)
    assert not sent["slip_front_left"].any()
    assert not sent["cabin_up"].any()


def test_a_wheel_that_moves_steadily_is_followed_steadily(driven):
    """Ticks of 3 ms and frames of 16.7 ms have no common beat; none of them is felt."""
    car = driven()
    car.drive(5.0, lambda time: {"suspension_front_left": 0.05 * max(0.0, time - 3.0)})
    moves = np.diff(car.sent["suspension_front_left"][car.ticks["deadline"] > START + 3_100_000_000])
    np.testing.assert_allclose(moves, 0.05 * 0.00300003, rtol=1e-3)


@pytest.mark.parametrize("rate_hz", [60, 100, 250])
@pytest.mark.parametrize("deliver", DELIVERIES)
def test_a_wheel_that_moves_steadily_is_followed_steadily_however_frames_come(driven, deliver, rate_hz):
    """A tenth faster while it catches up, no dash; it stops only where a frame is later than any of some seconds."""
    car = driven()
    taken = np.arange(8 * rate_hz) / rate_hz
    taken, came = deliver(taken, np.random.default_rng(rate_hz))
    car.deliver(taken, came, lambda time: {"suspension_front_left": 0.03 * max(0.0, time - 3.0)})
    late = car.ticks["deadline"] > START + 4_000_000_000
    assert set(car.ticks["weight"][late]) == {1.0}
    moves = np.diff(car.sent["suspension_front_left"][late]) / (0.03 * 0.00300003)
    assert moves.max() < 1.15
    assert np.mean(moves < 0.5) < 0.01


def test_what_is_sent_is_the_share_of_the_fade(driven):
    car = driven()
    car.drive(4.0, lambda _: {"suspension_rear_right": 0.1, "slip_front_left": -3.0, "cabin_yaw": 0.2})
    sent, weight = car.sent, car.ticks["weight"]
    assert 0.0 < weight[weight > 0.0].min() < 0.01
    np.testing.assert_allclose(sent["suspension_rear_right"], 0.1 * weight, atol=1e-12)
    np.testing.assert_allclose(sent["slip_front_left"], -3.0 * weight, atol=1e-12)
    np.testing.assert_allclose(sent["cabin_yaw"], 0.2 * weight, atol=1e-12)


# Trouble.


def high(channel="suspension_front_left", value=0.1):
    return lambda _: {channel: value}


def steepest(sent, channel="suspension_front_left"):
    return np.abs(np.diff(sent[channel])).max()


FADING = 0.1 * 1.875 * 3_000_030e-9 / 1.0 * 1.001
"""Largest change in a tick of 0.1 in a fade of 1 s, x^3 (10 - 15 x + 6 x^2)."""


def pause(car):
    for _ in range(120):
        car.time -= FRAME_S
        car.frame(suspension_front_left=0.1)


def stall(car):
    car.run(2.0)


def respawn(car):
    car.time = 0.0
    car.drive(0.1, high(value=-0.1))


def park(car):
    car.pipeline.emitter.park()
    car.drive(2.0, high())
    car.pipeline.emitter.engage()


@pytest.mark.rt
@pytest.mark.parametrize("trouble", [pause, stall, respawn, park])
def test_in_trouble_it_fades_out_and_comes_back_from_nothing_whatever_has_changed_meanwhile(driven, trouble):
    car = driven()
    car.drive(3.0, high())
    before = len(car.wire.packets)
    trouble(car)
    car.drive(4.0, high(value=-0.1))
    sent = car.sent["suspension_front_left"]
    assert sent[before - 1] == pytest.approx(0.1)
    assert sent[-1] == pytest.approx(-0.1)
    assert 0.0 in sent[before:]
    assert steepest(car.sent) <= FADING
    # the sign changes only at neutral
    assert np.flatnonzero(sent[before:] == 0.0)[0] < np.flatnonzero(sent[before:] < 0.0)[0]


def hold(car):
    car.pipeline.emitter.hold()
    car.drive(0.5, high())
    car.pipeline.emitter.engage()


@pytest.mark.rt
@pytest.mark.parametrize("trouble", [0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.4, hold])
def test_after_a_short_stall_the_way_to_a_new_value_takes_a_frame(driven, trouble):
    car = driven(profile_of(limits={"car_suspension": {"rate_m_s": 100.0, "acceleration_m_s2": 1e6}}))
    car.drive(3.0, high())
    trouble(car) if callable(trouble) else car.run(trouble)
    car.drive(1.5, high(value=-0.1))
    assert car.sent["suspension_front_left"][-1] == pytest.approx(-0.1)
    line = 0.2 * 3_000_030e-9 / FRAME_S
    assert steepest(car.sent) <= 1.2 * line + FADING  # frames after a stall are nearer to each other than a frame


@pytest.mark.rt
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e300, 6.0])
def test_what_is_no_travel_of_a_wheel_keeps_the_value_before_and_loses_no_frame(driven, wrong):
    car = driven()
    car.drive(3.0, high())
    before = len(car.wire.packets)
    car.drive(0.5, high(value=wrong))
    np.testing.assert_allclose(car.sent["suspension_front_left"][before:], 0.1, atol=1e-12)
    assert car.pipeline.intake.rejected == {}
    assert np.isfinite(car.sent["tactile"]).all()
    assert car.ticks["weight"][-1] == 1.0


@pytest.mark.rt
def test_of_a_source_that_never_says_it_0_is_sent(driven):
    car = driven()
    car.drive(2.0, lambda _: dict.fromkeys(NAMES, math.nan))
    assert all(not car.sent[name].any() for name in SENT.names)
    without = driven(profile_of(fields=FIELDS[:12]))
    without.drive(2.0)
    assert all(not without.sent[name].any() for name in SENT.names)
    assert without.ticks["weight"][-1] == 1.0


@pytest.mark.rt
def test_spikes_stay_within_the_bounds_of_every_channel(driven):
    rng = np.random.default_rng(7)
    profile = profile_of(limits={"car_rumble": {"value": 2.0, "rate_per_s": 30.0, "acceleration_per_s2": 2000.0}})
    car = driven(profile)
    car.drive(2.0)
    car.drive(5.0, lambda _: {name: rng.choice([-1e3, 1e3, math.nan, 0.0]) * rng.uniform() for name in NAMES})
    bounds = dict(zip(NAMES, profile.outputs[0].limits.chassis_bounds(), strict=True))
    assert bounds["rumble_rear_left"] == [2.0, 30.0, 2000.0, None]
    assert broken(car.sent, bounds, 3_000_030e-9) == []
    assert np.abs(car.sent["slip_front_left"]).max() > 5.0
    car.pipeline.emitter.park()
    car.run(3.0)
    assert not any(car.sent[-1])
    assert broken(car.sent, bounds, 3_000_030e-9) == []


@pytest.mark.rt
def test_a_bound_that_becomes_narrower_is_approached_within_the_old_one(driven):
    car = driven()
    car.drive(3.0, high())
    wide = dict(zip(NAMES, car.pipeline.profile.outputs[0].limits.chassis_bounds(), strict=True))
    changed = len(car.wire.packets)
    car.pipeline.retune("output.limits.car_suspension={value_m=0.04, rate_m_s=0.5, acceleration_m_s2=20}")
    car.drive(2.0, high())
    assert broken(car.sent, wide, 3_000_030e-9) == []
    sent = car.sent["suspension_front_left"]
    assert sent[changed] == pytest.approx(0.1)
    assert np.abs(sent[changed + 100 :]).max() <= 0.04
    assert sent[-1] == pytest.approx(0.04, rel=0.01)


# Layouts.


def test_an_output_that_asks_for_none_has_no_stage_for_them():
    plain = motioncue.load_profile("ccd-hexapod")
    assert ChassisMotion not in [type(stage) for stage in chain_of(plain, plain.outputs[0]).stages]
    profile = profile_of(output=[{"offset": 0, "type": "f4", "channel": "car_slip_rear_left", "scale": 50, "max": 100}])
    assert ChassisMotion in [type(stage) for stage in chain_of(profile, profile.outputs[0]).stages]
    assert ChassisMotion.fills == tuple(channel.name for channel in TEXTURE)
    with pytest.raises(ConfigError, match="car_suspension_left"):
        profile_of(output=[{"offset": 0, "type": "f4", "channel": "car_suspension_left"}])


def test_a_stepper_fed_by_a_program_sends_them_too():
    stepper = motioncue.relay(profile_of("supervisor.fade_s=0.5"), clock=FakeClock(START))
    row = np.zeros(1, PACKET)
    row["suspension_rear_left"], row["speed"] = 0.07, 20.0
    for _ in range(100):
        row["frame_time"] += 0.01
        stepper.step(row.tobytes())
    assert stepper.packets["motion"].view(SENT)["suspension_rear_left"][0] == 0.07
    stepper.parked = True
    for _ in range(300):
        stepper.step(b"")
    assert not any(stepper.packets["motion"].view(SENT)[0])


@pytest.mark.parametrize("how", ["python", "c"])
def test_a_program_that_steps_its_own_motion_hands_over_wheels(how, tmp_path):
    profile = profile_of(limits={"car_slip": {"value": 3.0, "rate_per_s": 100.0, "acceleration_per_s2": 1e4}})
    chassis, actuation = np.zeros(1, CHASSIS_DTYPE), np.zeros(1, ACTUATION_DTYPE)
    for name in NAMES:
        chassis[name] = np.nan
    motion, cue = np.zeros(1, MOTION_DTYPE), np.zeros(1, CUE_DTYPE)
    if how == "python":
        step = motioncue.bind(profile, motion, cue, actuation, chassis=chassis).step
    else:
        file = tmp_path / "rig.toml"
        file.write_text(TEXT, encoding="utf-8")
        api = c_api()
        stepper = api.create(str(file).encode(), 0.0, None, 0)
        numbers = chassis.view("<f8")[1:]

        def step():
            api.wheels(stepper, numbers.ctypes.data)
            assert api.step(stepper, motion.ctypes.data, cue.ctypes.data)
            api.actuate(stepper, cue.ctypes.data, actuation.ctypes.data)

    step()
    assert not any(actuation[f"car_{name}"][0] for name in NAMES)
    chassis["suspension_rear_left"], chassis["cabin_yaw"], chassis["slip_front_left"] = 0.07, 0.2, 5.0
    for _ in range(340):  # they have said nothing before, so they come along a fade of 1 s
        step()
    assert actuation["car_suspension_rear_left"][0] == pytest.approx(0.07)
    assert actuation["car_cabin_yaw"][0] == pytest.approx(0.2)
    assert actuation["car_slip_front_left"][0] == pytest.approx(3.0, rel=2e-3)  # within its bounds
    chassis["suspension_rear_left"] = np.nan
    step()
    assert actuation["car_suspension_rear_left"][0] == pytest.approx(0.07)  # what is unknown keeps its value
    if how == "c":
        api.destroy(stepper)


def test_a_chassis_that_is_no_such_array_is_refused():
    with pytest.raises(ConfigError, match="chassis: found float64 of shape"):
        motioncue.bind(profile_of(), chassis=np.zeros(22))


# Recordings.


@pytest.mark.rt
def test_it_is_recorded_to_the_bit_and_its_replay_sends_the_same_packets(driven, tmp_path, monkeypatch):
    rng = np.random.default_rng(11)
    car, said = driven(), []

    def rough(time):
        said.append({name: rng.normal(0.0, 0.02) for name in NAMES} | {"rumble_rear_left": math.nan})
        return said[-1]

    with car.pipeline.record(Record(file=str(tmp_path / "run.mcap")), {}):
        car.drive(3.0, rough)
        park_for_half_a_second(car, rough)
        car.drive(2.0, rough)
        car.pipeline.emitter.stop()
        car.run(0.5)
    recorded = read(tmp_path / "run.mcap")
    assert recorded.chassis.dtype == CHASSIS_DTYPE
    np.testing.assert_array_equal(recorded.chassis["time"], recorded.motion["time"])
    for name in NAMES:
        expected = np.array([row[name] for row in said])
        assert_same_bits(recorded.chassis[name], expected)

    wires = []

    def with_output(profile, clock):
        pipeline = Pipeline(profile, clock)
        wires.append(Wire(pipeline.emitter, profile))
        return pipeline

    monkeypatch.setattr(replay, "Pipeline", with_output)
    again = replay.repeat(recorded, progress=lambda done, total: wires[0].receive())
    wires[0].receive()
    wires[0].close()
    assert_same_bits(again.chassis, recorded.chassis)
    assert wires[0].packets == car.wire.packets
    assert len(wires[0].packets) > 1500


def park_for_half_a_second(car, rough):
    car.pipeline.emitter.park()
    car.drive(0.5, rough)
    car.pipeline.emitter.engage()


@pytest.mark.rt
def test_a_recording_of_it_is_a_table_with_units(driven, tmp_path):
    car = driven()
    with car.pipeline.record(Record(file=str(tmp_path / "run.mcap")), {}):
        car.drive(1.0, sines)
    recorded = read(tmp_path / "run.mcap")
    assert recorded.units("chassis")["suspension_velocity_rear_left"] == "m/s"
    export(recorded, tmp_path / "chassis.csv", "chassis")
    lines = (tmp_path / "chassis.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 61
    assert lines[0].startswith("t [s],time [ns],suspension_front_left [m],")
    part = recorded.between(0.2, 0.4)
    assert len(part.chassis) == len(part.motion) == 12
    assert "motioncue/msg/Chassis" in [name for name, *_ in McapFile(tmp_path / "run.mcap").schemas.values()]


def test_a_package_is_shown_with_its_channels():
    row = np.zeros(1, PACKET)
    row["slip_rear_right"] = 1.5
    source = sources.source(sources.system_of(profile_of().source))
    assert source.identify(row.tobytes()).decode(row.tobytes())["slip_rear_right"] == 1.5


@pytest.mark.rt
@pytest.mark.parametrize("late", [WHEELS, WHEELS[:1]])
def test_wheels_that_speak_first_in_the_middle_of_a_run_are_no_bump(driven, late):
    """A wheel that stands has no bump, however far it is in, and what is sent of it is brought in as all is: slowly."""
    posts = [{"offset": 8 * k, "type": "f8", "channel": f"post_{k + 1}"} for k in range(4)]
    posts += [{**field, "offset": field["offset"] + 32} for field in OUTPUT]
    packet = {"size": SENT.itemsize + 32, "fields": posts}
    platform = {"preset": "posts-4", "corners": {"gain": 1.0}}
    table = {"platform": platform, "cueing": {"algorithm": "classical"}, "output": {"packet": packet}}
    car = driven(profile_of(table, "supervisor.fade_s=1"))
    car.run(0.1)  # engines are started before simulators
    still = dict.fromkeys([f"suspension_{wheel}" for wheel in WHEELS], 0.1)
    car.drive(4.0, lambda _: still | dict.fromkeys([f"suspension_{wheel}" for wheel in late], math.nan))
    before = len(car.ticks)
    car.drive(2.0, lambda _: still)
    assert set(car.ticks["weight"][before:]) == {1.0}
    assert np.ptp(car.ticks["actuators"][before:, :4], axis=0).max() < 1e-3  # of the drive's own 0.01 m/s^2
    rows = np.frombuffer(b"".join(car.wire.packets), np.dtype([("posts", "<f8", 4), *SENT.descr]))
    came = rows[f"suspension_{late[0]}"]
    assert came[-1] == pytest.approx(0.1)
    assert np.abs(np.diff(came)).max() < 0.1 * 1.875 * 0.00300003 * 1.01  # of the fade: 15/8 of its mean slope
