"""Actuation: every output has stages of its own, and the engine, relays and offline functions share them."""

import contextlib
import socket
import struct

import msgspec
import numpy as np
import pytest
from emitter_rig import MOVING, PERIOD, START
from helpers import frame, init
from same_bits import assert_same_bits

import motioncue
from motioncue.core.channels import ACTUATION, ACTUATION_DTYPE, CUE_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import chain_of, streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.output import dk
from motioncue.output import packet as custom
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.profile.profile import parse_profile, profile_text
from motioncue.safety.limiter import CueLimits, OutputLimits
from motioncue.wire.description import PacketTable

PITCH_DEG = 2.0
RATE_DEG_S = 5.0
READ = ("pitch", "roll", "surge", "up_east", "up_north", "up_up")
FIELDS = ", ".join(f'{{ offset = {8 * place}, type = "f8", channel = "{name}" }}' for place, name in enumerate(READ))
TWO = f"""
[source]
system = "city-car-driving"
endpoint = "tcp://127.0.0.1:5100"
[cueing]
algorithm = "direct"
[[output]]
system = "dk"
motion = "udp://127.0.0.1:9"
[[output]]
motion = "udp://127.0.0.1:9"
packet = {{ size = 48, fields = [{FIELDS}] }}
limits = {{ pitch = {{ value_deg = {PITCH_DEG}, rate_deg_s = {RATE_DEG_S} }} }}
"""


@contextlib.contextmanager
def sent(pipeline, profile):
    """Yield a function that runs a tick and returns the packet of every output, in order."""
    with contextlib.ExitStack() as opened:
        platforms = []
        for index, output in enumerate(profile.outputs):
            platform = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            platform.bind(("127.0.0.1", 0))
            platform.settimeout(5.0)
            sender = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            _, encoding = streams_of(output)["motion"]
            address = (*platform.getsockname(), 0)
            pipeline.emitter.add_output(sender, address, encoding.table, encoding.packet, encoding.seal, index)
            platforms.append(platform)

        def tick():
            pipeline.emitter.run(1)
            return [platform.recv(200) for platform in platforms]

        yield tick


def driven(profile, ticks, tail=0):
    """Return what each output was sent in a drive that ends with `tail` ticks of stopping, and the pipeline."""
    pipeline = Pipeline(profile, FakeClock(START), ticks + tail)
    packets = []
    with sent(pipeline, profile) as tick:
        pipeline.intake.begin(START)
        pipeline.intake.feed(init(), START)
        for number in range(ticks + tail):
            if number < ticks:
                tilted = (
                    np.sin(0.05),
                    0.0,
                    0.0,
                    np.cos(0.05),
                )  # x, y, z, w about the car's left axis: 0.1 rad of pitch
                pipeline.intake.feed(frame(**MOVING, orientation=tilted), START + number * PERIOD)
            if number == ticks:
                pipeline.emitter.stop()
            packets.append(tick())
    return packets, pipeline


def channels(packet):
    """Return the channels of the custom packet."""
    return dict(zip(READ, struct.unpack(f"<{len(READ)}d", packet), strict=True))


def up_of(roll, pitch, yaw):
    """Return the body's up axis east, north, up: minus the third column of Rz(yaw) Ry(pitch) Rx(roll)."""
    c, s = np.cos, np.sin
    north = c(roll) * s(pitch) * c(yaw) + s(roll) * s(yaw)
    east = c(roll) * s(pitch) * s(yaw) - s(roll) * c(yaw)
    return -east, -north, c(roll) * c(pitch)


def test_each_output_has_its_own_stages():
    """The second output keeps its bounds and its up axis is that of what it is sent; the first follows the cue."""
    profile = parse_profile(TWO)
    packets, pipeline = driven(profile, 900)
    cues = pipeline.emitter.trace["cue"]
    assert np.abs(cues["pitch"]).max() > np.radians(PITCH_DEG) * 2
    own = [channels(second) for _, second in packets]
    for cue, (first, _) in zip(cues, packets, strict=True):
        values = dk.MOTION.decode(first)
        assert values["pitch"] == np.float32(cue["pitch"])
        up = up_of(cue["roll"], cue["pitch"], cue["yaw"])
        assert (values["up_x"], values["up_y"], values["up_z"]) == pytest.approx(up, abs=1e-6)
    pitch = np.array([row["pitch"] for row in own])
    assert np.abs(pitch).max() == pytest.approx(np.radians(PITCH_DEG), rel=2e-3)
    assert np.abs(pitch).max() <= np.radians(PITCH_DEG)
    assert np.abs(np.diff(pitch)).max() <= np.radians(RATE_DEG_S) * PERIOD * 1e-9 * (1 + 1e-9)
    for cue, row in zip(cues, own, strict=True):
        assert row["surge"] == cue["surge"]
        up = up_of(row["roll"], row["pitch"], cue["yaw"])
        assert (row["up_east"], row["up_north"], row["up_up"]) == pytest.approx(up, abs=1e-12)
    limited = pipeline.stats()["limited"]
    assert limited["output[1].pitch"] > 0.5
    assert limited["pitch"] == 0.0


def test_offline_gives_the_bits_of_the_engine():
    profile = parse_profile(TWO)
    packets, pipeline = driven(profile, 600)
    offline = motioncue.actuate(profile, pipeline.emitter.trace["cue"], 1)
    for row, (_, second) in zip(offline, packets, strict=True):
        assert second == np.array([row[name] for name in READ]).tobytes()


def test_a_run_ends_only_when_every_output_is_at_neutral():
    """The cue is back after its fade of 1 s; the run waits for the slow output, which takes 0.1 rad at 5 deg/s."""
    profile = parse_profile(TWO.replace(f"value_deg = {PITCH_DEG}", "value_deg = 20"))
    ticks, tail = 1200, 1000
    packets, pipeline = driven(profile, ticks, tail)
    pitch = np.array([channels(second)["pitch"] for _, second in packets])
    assert pitch[ticks - 1] == pytest.approx(pipeline.emitter.trace["cue"]["pitch"][ticks - 1], abs=1e-9)
    trace = pipeline.emitter.trace
    moving = np.flatnonzero(np.abs(pitch) > 0)[-1]
    back = np.flatnonzero(np.abs(trace["cue"]["pitch"]) > 0)[-1]
    assert moving > back + 30
    assert (trace["state"][ticks : moving + 1] != 0).all()
    assert trace["state"][-1] == 0


@pytest.mark.search
def test_a_stage_from_outside_fills_actuators_that_a_packet_reads_by_name(probe):
    factors = [1.0, -2.0, 3.0, 0.5, 0.25, -1.5]
    fields = [{"offset": 8 * leg, "type": "f8", "channel": f"actuator_{leg + 1}"} for leg in range(7)]
    encoding = custom.encoding(msgspec.convert({"size": 56, "fields": fields}, PacketTable))
    cues = np.zeros(3, CUE_DTYPE)
    cues["heave_displacement"] = [0.0, 0.1, -0.2]
    rows = OutputChain([probe.Legs(factors)]).process(cues)
    assert (rows["actuators"][:, :6] == np.outer(cues["heave_displacement"], factors)).all()
    assert not rows["actuators"][:, 6:].any()
    packet = np.frombuffer(encoding.packet, np.uint8).copy()
    probe.encoded(encoding.table, rows[1:2].view(np.float64), packet)
    assert packet.view("<f8").tolist() == [*rows["actuators"][1, :6], 0.0]


def test_a_channel_that_no_stage_of_the_output_fills_is_refused():
    packet = "{ size = 8, fields = [{ offset = 0, type = 'f8', channel = 'actuator_1' }] }"
    with pytest.raises(ConfigError, match=r"output\.packet: channel found 'actuator_1', allowed are surge, "):
        motioncue.load_profile("ccd-dk", f"output={{ motion = 'udp://127.0.0.1:9', packet = {packet} }}")


def test_only_stages_that_a_packet_reads_are_in_the_chain():
    profile = parse_profile(TWO)
    assert [type(stage) for stage in chain_of(profile, profile.outputs[0]).stages] == [OutputLimits, UpVector]
    assert [type(stage) for stage in chain_of(profile, profile.outputs[1]).stages] == [OutputLimits, UpVector]


def test_a_chain_forgets_when_it_is_reset():
    limits = CueLimits()
    limits.add("pitch", 1.0, rate=0.1, dt=0.01)
    chain = OutputChain([OutputLimits(limits)])
    cues = np.zeros(50, CUE_DTYPE)
    cues["pitch"] = 0.5
    first, on = chain.process(cues), chain.process(cues)
    assert 0.0 < first["pitch"][-1] < on["pitch"][0]
    chain.reset()
    assert_same_bits(chain.process(cues), first)


def test_an_argument_that_is_not_a_chain_is_refused():
    with pytest.raises(ValueError, match="found 7, allowed are 6"):
        OutputChain([UpVector() for _ in range(7)])
    with pytest.raises(TypeError, match="found 3, allowed are objects of Stage"):
        OutputChain([3])
    with pytest.raises(ConfigError, match="cues: found float64"):
        motioncue.actuate("ccd-dk", np.zeros(3))
    with pytest.raises(ConfigError, match="output: found 1, allowed are 0 to 0"):
        motioncue.actuate("ccd-dk", np.zeros(3, CUE_DTYPE), 1)


def test_channels_are_the_doubles_of_an_actuation_in_order():
    numbers = np.arange(len(ACTUATION), dtype=np.float64)
    row = numbers.view(ACTUATION_DTYPE)
    named = {name: row[name][0] for name in ACTUATION_DTYPE.names if name not in ("actuators", "time")}
    named |= {f"actuator_{number}": value for number, value in enumerate(row["actuators"][0], start=1)}
    assert named == {channel.name: place for place, channel in enumerate(ACTUATION) if channel.name != "time"}


# --- Loops of one's own: the same stages ----------------------------------------------------------------------------

BOUNDED = ("ccd-dk-classical", "output.limits.roll.value_deg=1", "output.limits.roll.rate_deg_s=2")


def swaying(n):
    motion = np.zeros(n, motioncue.MOTION_DTYPE)
    motion["sway"], motion["yaw"], motion["time"] = 2.0, np.linspace(0, 3, n), np.arange(n)
    return motion


def expected(motion):
    profile = motioncue.load_profile(*BOUNDED)
    return profile, motioncue.actuate(profile, motioncue.cue(profile, motion))


def test_bind_fills_the_actuation_and_forgets_it_when_reset():
    motion = swaying(500)
    profile, rows = expected(motion)
    assert np.abs(rows["roll"]).max() <= np.radians(1) < np.abs(motioncue.cue(profile, motion)["roll"]).max()
    stepper = motioncue.bind(profile, actuation=np.zeros(1, ACTUATION_DTYPE))
    for _ in range(2):
        for tick, row in zip(motion, rows, strict=True):
            stepper.motion[0] = tick
            assert stepper.step()
            assert_same_bits(stepper.actuation, row)
        stepper.reset()
    assert motioncue.bind(profile).actuation is None


def test_bind_refuses_an_array_that_is_not_an_actuation():
    with pytest.raises(ConfigError, match="actuation: found"):
        motioncue.bind("ccd-dk", actuation=np.zeros(1, CUE_DTYPE))
    memory = np.zeros(1, ACTUATION_DTYPE)
    with pytest.raises(ConfigError, match="actuation: found memory of cue"):
        motioncue.bind("ccd-dk", cue=memory.view(np.float64)[:15].view(CUE_DTYPE), actuation=memory)


def test_rigs_fill_actuations():
    motion = swaying(300)
    profile, rows = expected(motion)
    direct = motioncue.load_profile("ccd-dk")
    rigs = motioncue.Rigs([profile, direct, profile])
    others = motioncue.actuate(direct, motioncue.cue(direct, motion))
    cue, actuation = np.zeros(3, CUE_DTYPE), np.zeros(3, ACTUATION_DTYPE)
    for _ in range(2):
        for tick, row, other in zip(motion, rows, others, strict=True):
            rigs.step(np.repeat(tick[None], 3), cue, actuation)
            assert actuation[0].tobytes() == actuation[2].tobytes() == row.tobytes()
            assert_same_bits(actuation[1], other)
        rigs.reset()
    with pytest.raises(ValueError, match="shape"):
        rigs.step(np.zeros(3, motioncue.MOTION_DTYPE), cue, np.zeros(2, ACTUATION_DTYPE))
    memory = np.zeros(3, ACTUATION_DTYPE)
    with pytest.raises(ValueError, match="memory"):
        rigs.step(np.zeros(3, motioncue.MOTION_DTYPE), memory.view(np.float64)[:45].view(CUE_DTYPE), memory)


def test_relay_fills_its_packets_from_the_stages_of_the_first_output():
    text = profile_text("ccd-dk").partition("[output]")[0]
    table = TWO.partition("[[output]]")[2].partition("[[output]]")[2]
    profile = parse_profile(f"{text}[output]\n{table}")
    relay = motioncue.relay(profile, clock=FakeClock(START))
    relay.step(init())
    tilted = frame(**MOVING, orientation=(np.sin(0.05), 0.0, 0.0, np.cos(0.05)))
    for _ in range(2):
        pitch = []
        for _ in range(400):
            assert relay.step(tilted)
            pitch.append(channels(relay.packets["motion"].tobytes())["pitch"])
        assert abs(pitch[0]) <= np.radians(RATE_DEG_S) * PERIOD * 1e-9 * (1 + 1e-9)
        assert np.abs(pitch).max() <= np.radians(PITCH_DEG)
        assert abs(pitch[-1]) == pytest.approx(np.radians(PITCH_DEG), rel=2e-3)
        relay.reset()
