"""The bytes that the emitting loop sends, at real sockets."""

import math
import socket
import struct

import numpy as np
import pytest
from emitter_rig import DIRECT, FRAME_INTERVAL, MOVING, PERIOD, START, WASHOUT, Rig
from helpers import frame, free_port, init, loopbacks, single

from motioncue.core.clock import FakeClock
from motioncue.cueing import design
from motioncue.engine.emitter import Emitter
from motioncue.engine.tick import Settings
from motioncue.frames.convert import BodyStage
from motioncue.frames.intake import Session
from motioncue.output import dk
from motioncue.sources.city_car_driving.packets import FRAME, INIT
from motioncue.transports.endpoint import open_sender
from motioncue.wire.packet import Message, vector


class Captured:
    """Both streams of a rig at real sockets; `packets` has a pair of decoded packets for each tick."""

    def __init__(self, rig, host="127.0.0.1"):
        self.rig = rig
        self.raw = []
        self.receivers = []
        for name in ("motion", "gauges"):
            receiver = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
            receiver.bind((host, 0))
            receiver.settimeout(30)
            self.receivers.append(receiver)
            port = receiver.getsockname()[1]
            add_output(rig.emitter, f"udp://{f'[{host}]' if ':' in host else host}:{port}", dk.STREAMS[name])

    def ticks(self, count, frames=True):
        """Run tick by tick, with frames at 60 Hz or without, and receive what each sends."""
        for _ in range(count):
            self.rig.now += PERIOD
            if frames and self.rig.next_frame <= self.rig.now:
                self.rig.pipeline.intake.feed(self.rig.package, self.rig.next_frame)
                self.rig.next_frame += FRAME_INTERVAL
            self.rig.emitter.run(ticks=1)
            self.raw.append(tuple(receiver.recv(4096) for receiver in self.receivers))
        for receiver in self.receivers:
            receiver.close()
        return self

    @property
    def packets(self):
        return [(dk.MOTION.decode(motion), dk.GAUGES.decode(gauges)) for motion, gauges in self.raw]


def add_output(emitter, url, stream):
    sender, address = open_sender(url)
    emitter.add_output(sender, address, stream.table(), stream.packet.encode(stream.defaults))
    return sender


# Offsets as DK's and BeamNG's documents state them.
MOTION_OFFSETS = {
    28: "sway", 32: "surge", 36: "heave", 52: "roll", 56: "pitch", 60: "yaw", 64: "roll_rate", 68: "pitch_rate",
    72: "yaw_rate",
}  # fmt: skip


@pytest.mark.rt
def test_the_up_vector_belongs_to_the_attitude_that_is_sent():
    captured = Captured(Rig(orientation=(0.1, 0.2, -0.3, 0.9))).ticks(200)
    for motion, _ in captured.packets:
        roll, pitch, yaw = (float(motion[name]) for name in ("roll", "pitch", "yaw"))
        # The third column of Rz(-yaw) Rx(pitch) Ry(roll), world X east, Y north, Z up.
        expected = (
            math.sin(roll) * math.cos(yaw) - math.cos(roll) * math.sin(pitch) * math.sin(yaw),
            -math.sin(roll) * math.sin(yaw) - math.cos(roll) * math.sin(pitch) * math.cos(yaw),
            math.cos(roll) * math.cos(pitch),
        )
        assert [motion["up_x"], motion["up_y"], motion["up_z"]] == pytest.approx(expected, abs=3e-7)
    assert captured.packets[-1][0]["roll"] != 0


@pytest.mark.rt
@pytest.mark.parametrize("host", loopbacks())
@pytest.mark.parametrize("settings", [DIRECT, WASHOUT])
def test_both_streams_hold_the_cue_in_single_precision_at_the_documented_offsets(settings, host):
    rig = Rig(settings, orientation=(0.1, 0.2, -0.3, 0.9), **MOVING)
    captured = Captured(rig, host).ticks(400)
    cues = rig.trace["cue"]
    assert len(captured.raw) == len(cues) == 400
    assert rig.trace["weight"][-1] == 1.0
    for (motion, gauges), cue in zip(captured.raw, cues, strict=True):
        assert len(motion) == 88
        assert len(gauges) == 96
        assert motion[:4] == b"BNG1"
        assert gauges[4:8] == b"beam"
        for offset, name in MOTION_OFFSETS.items():
            assert motion[offset : offset + 4] == single(cue[name]), name
        assert gauges[12:16] == single(cue["speed"])
        assert math.isnan(cue["engine_speed"])
        assert gauges[16:20] == single(0.0)
        # Fields without a channel are zero.
        assert motion[4:28] == bytes(24)
        assert motion[76:88] == bytes(12)
        assert gauges[:4] == bytes(4)
        assert gauges[20:] == bytes(76)
    # Every channel was tried with a distinct value.
    last = captured.raw[-1][0]
    values = {struct.unpack_from("<f", last, offset)[0] for offset in MOTION_OFFSETS}
    assert len(values - {0.0}) == len(MOTION_OFFSETS)


@pytest.mark.rt
def test_neutral_in_bytes():
    ((motion, gauges),) = Captured(Rig()).ticks(1, frames=False).raw
    expected = {"up_z": 1.0}
    for name, value in dk.MOTION.decode(motion).items():
        assert value == ("BNG1" if name == "magic" else expected.get(name, 0.0)), name
    assert gauges[12:20] == bytes(8)


@pytest.mark.rt
def test_a_source_without_speed_and_engine_speed_sends_1_m_s_and_0_rpm_at_every_weight():
    fields = (*vector("orientation", "orientation", (3, 0, 1, 2)), *vector("acceleration", "acceleration"))
    axes = Message(INIT, "axes", [*vector("forward", "forward"), *vector("up", "up")])
    messages = [axes.compiled(), Message(FRAME, "motion", fields).compiled()]
    rig = Rig()
    rig.pipeline.intake = Session(messages, BodyStage())
    settings = Settings(design(DIRECT.cueing, 1e9 / PERIOD), period_ns=PERIOD)
    rig.emitter = rig.pipeline.emitter = Emitter(rig.pipeline.intake, settings, FakeClock(START), trace=5000)
    rig.pipeline.intake.begin(START)
    rig.pipeline.intake.feed(init(), START)
    captured = Captured(rig)
    rig.package = frame(acceleration=(0, 0, 2.0), velocity=(0, 0, 30.0))
    captured.ticks(400)
    assert {gauges[12:20] for _, gauges in captured.raw} == {struct.pack("<ff", 1.0, 0.0)}
    assert struct.unpack_from("<f", captured.raw[-1][0], 32)[0] == 2.0
    # Faded out, they stay absent.
    rig.emitter.run(ticks=500)
    assert rig.trace["weight"][-1] == 0
    assert math.isnan(rig.trace["cue"]["speed"][-1])
    assert math.isnan(rig.trace["cue"]["engine_speed"][-1])


@pytest.mark.rt
def test_an_output_without_a_listener_is_not_an_error():
    rig = Rig()
    for name in ("motion", "gauges"):
        add_output(rig.emitter, f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", dk.STREAMS[name])
    rig.emitter.run(ticks=200)
    counts = rig.emitter.counts()
    assert (counts["ticks"], counts["datagrams"], counts["send_errors"]) == (200, 400, 0)


@pytest.mark.rt
def test_what_the_system_refuses_to_send_is_counted_and_the_other_stream_goes_on():
    rig = Rig(trace=300)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(30)
    # A broadcast needs a permission that the socket does not have.
    add_output(rig.emitter, "udp://255.255.255.255:4445", dk.STREAMS["motion"])
    add_output(rig.emitter, f"udp://127.0.0.1:{receiver.getsockname()[1]}", dk.STREAMS["gauges"])
    for _ in range(300):
        rig.emitter.run(ticks=1)
        assert len(receiver.recv(4096)) == 96
    receiver.close()
    counts = rig.emitter.counts()
    assert (counts["ticks"], counts["datagrams"], counts["send_errors"]) == (300, 300, 300)
    assert (np.diff(rig.trace["index"]) == 1).all()


@pytest.mark.rt
def test_a_socket_that_was_closed_is_counted_and_survived():
    rig = Rig(trace=50)
    add_output(rig.emitter, f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", dk.STREAMS["motion"]).close()
    rig.emitter.run(ticks=50)
    counts = rig.emitter.counts()
    assert (counts["ticks"], counts["datagrams"], counts["send_errors"]) == (50, 0, 50)


@pytest.mark.rt
def test_more_outputs_or_other_packets_than_there_is_room_for_are_refused():
    emitter = Rig().emitter
    stream = dk.STREAMS["motion"]
    sender, address = open_sender("udp://127.0.0.1:4445")
    with pytest.raises(ValueError, match="allowed"):
        emitter.add_output(sender, address, stream.table(), bytes(87))
    for _ in range(16):
        emitter.add_output(sender, address, stream.table(), bytes(88))
    with pytest.raises(ValueError, match="16 outputs"):
        emitter.add_output(sender, address, stream.table(), bytes(88))
    sender.close()
