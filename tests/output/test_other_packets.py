"""Packets beside those of the motion: a greeting, a sign of life; and a platform that takes time to engage."""

import socket
import struct

import msgspec
import numpy as np
import pytest
from test_serial import Rig, controller, pty  # noqa: F401 the fixture

from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import check, streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.output import packet as custom
from motioncue.output.described import Described
from motioncue.profile.profile import parse_profile
from motioncue.virtual.installation import drive_packages
from motioncue.wire.description import PacketTable

PROFILE = """
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
[cueing]
algorithm = "classical"
preset = "simona"
[output]
rate_hz = 60
motion = "udp://127.0.0.1:9999"
"""
WORDS = {"offline": 0, "rising": 9, "engaging": 1, "running": 2, "holding": 3, "parking": 4, "fault": 5}
MOTION = {
    "size": 5,
    "fields": [{"offset": 1, "type": "f4", "channel": "surge"}],
    "state": {"offset": 0, "type": "u1", **WORDS},
}


def profile_of(*overrides, **packet):
    profile = parse_profile(PROFILE, overrides=[{"output.packet": packet}, *overrides])
    check(profile)
    return profile


class Peer:
    """A controller that receives what an emitter sends while a virtual car drives."""

    def __init__(self, profile):
        self.profile, self.now = profile, 10**9
        self.pipeline = Pipeline(profile, FakeClock(self.now), trace=10_000)
        self.packets = []  # lists, one a tick

    def __enter__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.0)
        how = streams_of(self.profile.output, self.profile.platform)["motion"][1]
        self.pipeline.emitter.add_output(self.sender, (*self.socket.getsockname(), 0), how.table, how.packet, how.seal)
        for other, every_s in how.others:
            self.pipeline.emitter.add_other(other.table, other.packet, other.seal, every_s)
        self.pipeline.intake.begin(self.now)
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.sender.close()

    def tick(self):
        self.pipeline.emitter.run(ticks=1)
        got = []
        while True:
            try:
                got.append(self.socket.recv(600))
            except BlockingIOError:
                break
        self.packets.append(got)

    def drive(self, seconds):
        """Let a car come at once and drive; FakeClock advances by the ticks."""
        packages, period = drive_packages("beamng", "turns", 60.0), round(1e9 / self.profile.rate_hz)
        for package in packages:
            end = self.now + round(package.duration * 1e9)
            while self.now + period <= end:
                self.now += period
                self.tick()
            self.pipeline.intake.feed(package.package, self.now)
            if self.now > (1 + seconds) * 1e9:
                break


def ticks(peer, count):
    for _ in range(count):
        peer.tick()
    return peer.packets


@pytest.mark.rt
def test_a_greeting_comes_once_and_first_a_sign_of_life_every_second():
    others = [
        {"text": "[ena]"},
        {
            "size": 2,
            "every_s": 1.0,
            "counter": {"offset": 1, "type": "u1"},
            "constants": [{"offset": 0, "bytes": "aa"}],
        },
    ]
    with Peer(profile_of(**MOTION, others=others)) as peer:
        found = ticks(peer, 200)
    motion = bytes([0]) + bytes(4)
    assert found[0] == [b"[ena]", motion, b"\xaa\x00"]
    for tick, packets in enumerate(found[1:], 1):
        beat = [bytes([0xAA, tick // 60])] if tick % 60 == 0 else []
        assert packets == [motion, *beat]
    assert peer.pipeline.emitter.outputs()[0]["sent"] == 200 + 1 + 4
    assert peer.pipeline.emitter.counts()["packets"] == 200


@pytest.mark.rt
def test_other_packets_have_state_text_checksum_and_channels_of_their_own():
    others = [
        {"text": "S{surge:.1f}*{checksum:02X}", "checksum": {"kind": "xor8"}, "every_s": 0.5},
        {"size": 1, "state": {"offset": 0, "type": "u1", **WORDS}, "every_s": 0.1},
    ]
    with Peer(profile_of(**MOTION, others=others)) as peer:
        peer.drive(3.0)
    found = peer.packets
    texts = [packet for packets in found for packet in packets if packet[:1] == b"S"]
    states = [(packets[0][0], packet[0]) for packets in found for packet in packets if len(packet) == 1]
    assert len(texts) == pytest.approx(6, abs=1)
    assert all(a == b for a, b in states)
    assert {b for _, b in states} >= {0, 1, 2}


@pytest.mark.rt
def test_a_platform_that_takes_time_to_engage_stays_at_neutral_until_then():
    """Half a second of rising at neutral, one second of fade, then the whole cue: never a step."""
    with Peer(profile_of({"supervisor.engage_s": 0.5}, **MOTION)) as peer:
        peer.drive(6.0)
        trace = peer.pipeline.emitter.trace[: len(peer.packets)]
    words = np.array([packets[0][0] for packets in peer.packets])
    surge = np.array([struct.unpack_from("<f", packets[0], 1)[0] for packets in peer.packets])
    order = words[np.concatenate([[True], np.diff(words) != 0])].tolist()
    assert order[:4] == [0, 9, 1, 2]
    assert (surge[words == 9] == 0.0).all()
    assert (words == 9).sum() == pytest.approx(30, abs=1)
    assert (words == 1).sum() == pytest.approx(60, abs=2)
    assert np.ptp(surge[words == 2]) > 0.1
    assert set(trace["state"][words == 9]) == {1}
    with Peer(profile_of(**MOTION)) as peer:
        peer.drive(3.0)
    assert 9 not in {packets[0][0] for packets in peer.packets}


@pytest.mark.rt
def test_mcis_side_of_moogs_protocol_engages_moves_and_parks():
    """A machine that obeys as the header says: motion is followed only once it has engaged, and it takes a second."""
    profile = profile_of({"supervisor.engage_s": 2.0}, preset="moog-6dof2000e")
    with Peer(profile) as peer:
        peer.drive(8.0)
        peer.pipeline.emitter.park()
        ticks(peer, 200)
    machine, since, poses, log = "power-up", 0, [], []
    for packets in peer.packets:
        for packet in packets:
            word, roll, pitch, heave, surge, yaw, lateral, spare = struct.unpack(">I6fI", packet)
            pose = np.array([surge, lateral, heave + 0.2286, roll, pitch, yaw])
            since += 1
            if machine == "power-up" and word == 170:
                machine = "idle"
            elif machine == "idle" and word == 175:
                machine, since = "engaging", 0
            elif machine == "engaging" and since == 60:
                machine = "engaged"
            elif machine == "engaged" and word == 210:
                machine = "idle"
            if machine in ("idle", "engaging"):
                assert np.abs(pose).max() < 1e-6
            if machine == "engaged":
                poses.append(pose)
            log.append(machine)
            assert spare == 0
    assert [each for k, each in enumerate(log) if k == 0 or log[k - 1] != each] == [
        "idle",
        "engaging",
        "engaged",
        "idle",
    ]
    moves = np.abs(np.diff(poses, axis=0)).max(axis=0)
    assert np.ptp(poses, axis=0).max() > 0.05
    assert (moves < 0.03).all()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({}, r"output.packet.others\[0\]: allowed is one of size"),
        ({"size": 2, "text": "a"}, r"output.packet.others\[0\]: allowed is one of size"),
        ({"text": "{surg}"}, r"output.packet.others\[0\].text.channel: found 'surg'"),
        ({"size": 2, "constants": [{"offset": 1, "bytes": "00 00"}]}, r"output.packet.others\[0\]"),
        ({"text": "a", "every_s": 0.0}, r"output.packet.others\[0\].every_s: found 0.0"),
        ({"text": "a", "every_s": float("nan")}, r"output.packet.others\[0\].every_s: found nan"),
        ({"text": "a", "others": []}, r"output.packet.others\[0\].others: unknown key"),
    ],
)
def test_a_malformed_packet_is_refused_by_its_place(other, message):
    with pytest.raises(ConfigError, match=message):
        profile_of(**MOTION, others=[other])


def test_a_line_must_carry_the_others_too():
    packet = {"size": 10, "fields": MOTION["fields"], "others": [{"size": 100, "every_s": 0.1}]}
    serial = {"output.motion": "serial:///dev/ttyUSB0?baud=9600"}
    with pytest.raises(ConfigError, match=r"10 bytes x 10 bits x 60 Hz \+ 10000 for the others = 16000 bits/s"):
        profile_of(serial, **packet)


def test_other_packets_are_told_from_those_of_the_motion():
    end = {"size": 6, "constants": [{"offset": 5, "bytes": "fe"}]}
    table = msgspec.convert({**MOTION, **end, "others": [{"text": "[ena]"}, {"size": 2}]}, PacketTable)
    described, motion = Described(table), bytes(5) + b"\xfe"
    names = [described.identify(data).name for data in (motion, b"[ena]", bytes(2))]
    assert names == ["motion", "other_1", "other_2"]
    assert len(custom.encoding(table).others) == 2
    assert list(described.framed(b"[ena]" + motion + bytes(2) + motion)) == [b"[ena]", motion, bytes(2), motion]


@pty
def test_a_greeting_comes_first_again_when_a_line_is_taken_into_use_again(tmp_path, controller):  # noqa: F811
    """And signs of life that do not come keep no fault away, nor make one."""
    rig = Rig(tmp_path, controller)
    for text, every_s in (("[ena]", 0.0), ("alive", 0.5)):
        other = {"text": text} if not every_s else {"text": text, "every_s": every_s}
        how = custom.encoding(msgspec.convert({**MOTION, "others": [other]}, PacketTable)).others[0][0]
        rig.emitter.add_other(how.table, how.packet, how.seal, every_s)
    rig.drive(500, controller)
    assert rig.emitter.state == "RUNNING"
    assert controller.data.startswith(b"[ena]\xff\xff")
    assert controller.data.count(b"[ena]") == 1
    assert controller.data.count(b"alive") == 3  # of ticks 0, 167 and 334
    controller.unplug()
    rig.drive(400)
    assert rig.emitter.state == "FAULT"
    controller.data = b""
    controller.plug()
    assert rig.line.reopen()
    rig.drive(50, controller)
    assert controller.data == b""
    rig.emitter.engage()
    rig.drive(600, controller)
    assert rig.emitter.state == "RUNNING"
    assert controller.data.startswith(b"[ena]\xff\xff")
    assert controller.data.count(b"[ena]") == 1
    assert rig.emitter.outputs()[0]["sent"] == 1100 + 2 + 3 + controller.data.count(b"alive")
