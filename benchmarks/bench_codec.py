"""Cost of a packet: table-driven decoding and encoding against C, struct and NumPy."""

import math
import struct

import msgspec
import numpy as np
import pytest
from conftest import HEAD_M, VECTORS, assert_same, raw
from references import empty_packets

from motioncue import sources
from motioncue.core.channels import TELEMETRY_DTYPE
from motioncue.recording.recording import read_packages, sample_recording
from motioncue.sources import DescribedSource
from motioncue.sources.beamng import packets as beamng
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.virtual.installation import drive_packages
from motioncue.wire.description import SourcePacket

START_NS, PERIOD_NS = 1_000_000_000, 16_666_667
MOVING = ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate", "speed")
BEAMNG_CHANNELS = (
    *(f"{vector}_{axis}" for vector in ("position", "velocity") for axis in "xyz"),
    *("sway", "surge", "heave"),
    *(f"up_{axis}" for axis in "xyz"),
    *(f"{angle}{of}" for of in ("", "_rate", "_acceleration") for angle in ("roll", "pitch", "yaw")),
)

FRAME_FLOATS = struct.Struct("<d3f12x4f3f3f3f3f")
PACKET_FLOATS = struct.Struct("<12f")


def with_struct(frames):
    """Decode one package after the other into tuples of floats."""
    return [FRAME_FLOATS.unpack_from(frame, 3) for frame in frames]


def with_numpy(frames, telemetry):
    """Decode all packages in one NumPy call."""
    packets = frames.view(FRAME.dtype).reshape(-1)
    telemetry["frame_duration"] = packets["frame_time"]
    telemetry["orientation"] = packets["orientation"][:, [3, 0, 1, 2]]
    for name in VECTORS:
        telemetry[name] = packets[name]


def into_packets(cues, packet):
    """Encode one cue after the other with struct; each a tuple of surge ... yaw_rate."""
    for surge, sway, heave, roll, pitch, yaw, *rates in cues:
        sr, cr, sp, sy, cy = math.sin(roll), math.cos(roll), math.sin(pitch), math.sin(yaw), math.cos(yaw)
        up = (sr * cy - cr * sp * sy, -(cr * sp * cy + sr * sy), cr * math.cos(pitch))
        PACKET_FLOATS.pack_into(packet, 28, sway, surge, heave, *up, roll, pitch, yaw, *rates)


def test_all_decoders_and_encoders_agree(rig, loops):
    telemetry = np.zeros_like(rig.telemetry)
    with_numpy(rig.frames, telemetry)
    assert_same(telemetry, rig.telemetry, 0.0)
    duration, *floats = with_struct([rig.frames[0].tobytes()])[0]
    first = rig.telemetry[0]
    assert duration == first["frame_duration"]
    assert floats == [
        *first["position"],
        *np.roll(first["orientation"], -1),
        *np.ravel([first[v] for v in VECTORS[1:]]),
    ]
    expected, found, packet = empty_packets(rig.n), empty_packets(rig.n), bytearray(empty_packets(1).tobytes())
    rig.floor.pack(rig.cue, expected)
    rig.scipy.pack(rig.cue, found)
    assert_same(found, expected, 1e-6)
    into_packets([rig.cue[-1].item()[:9]], packet)
    assert_same(np.frombuffer(packet, found.dtype), expected[-1:], 1e-6)


@pytest.mark.benchmark(group="decode")
def test_decode_against_c(versus, rig, loops):
    versus(
        "decode a 107-byte frame by table, values checked",
        "plain C, hand-written, unchecked",
        lambda: loops.unpack(rig.decoding, rig.frames, rig.telemetry),
        lambda: rig.floor.unpack(rig.frames, rig.telemetry),
        items=rig.n,
    )


@pytest.mark.benchmark(group="decode")
def test_decode_against_struct(versus, rig, loops):
    frames = [frame.tobytes() for frame in rig.frames]
    versus(
        "decode a 107-byte frame by table, values checked",
        "struct, a packet at a time",
        lambda: loops.unpack(rig.decoding, rig.frames, rig.telemetry),
        lambda: with_struct(frames),
        items=rig.n,
        faster=True,
    )


@pytest.mark.benchmark(group="decode")
def test_decode_against_numpy(versus, rig, loops):
    versus(
        "decode a 107-byte frame by table, values checked",
        "NumPy, all packets at once",
        lambda: loops.unpack(rig.decoding, rig.frames, rig.telemetry),
        lambda: with_numpy(rig.frames, rig.telemetry),
        items=rig.n,
        faster=True,
    )


@pytest.mark.benchmark(group="encode")
def test_encode_against_c(versus, rig, loops):
    versus(
        "encode an 88-byte packet by table",
        "plain C, hand-written",
        lambda: loops.pack(rig.chain, rig.encoding, rig.cue, raw(rig.packets)),
        lambda: rig.floor.pack(rig.cue, rig.packets),
        items=rig.n,
    )


@pytest.mark.benchmark(group="encode")
def test_encode_against_struct(versus, rig, loops):
    cues, packet = [cue[:9] for cue in rig.cue.tolist()], bytearray(88)
    versus(
        "encode an 88-byte packet by table",
        "struct, a packet at a time",
        lambda: loops.pack(rig.chain, rig.encoding, rig.cue, raw(rig.packets)),
        lambda: into_packets(cues, packet),
        items=rig.n,
        faster=True,
    )


@pytest.mark.benchmark(group="encode")
def test_encode_against_numpy(versus, rig, loops):
    versus(
        "encode an 88-byte packet by table",
        "NumPy, all packets at once",
        lambda: loops.pack(rig.chain, rig.encoding, rig.cue, raw(rig.packets)),
        lambda: rig.scipy.pack(rig.cue, rig.packets),
        items=rig.n,
        faster=True,
    )


@pytest.mark.benchmark(group="decode")
def test_a_described_source_against_a_built_in_one(versus, loops, smoke):
    """BeamNG's motion packet, described and built in: the same takes, so the same cost."""
    fields = [
        {"offset": offset, "type": "f4", "channel": channel}
        for offset, channel in zip(range(4, 88, 4), BEAMNG_CHANNELS, strict=True)
        if not channel.startswith("up_")  # the attitude is read from the angles
    ]
    table = {"size": 88, "world": ["east", "north", "up"], "rates": "angles", "fields": fields}
    table["constants"] = [{"offset": 0, "bytes": "42 4e 47 31"}]
    described = DescribedSource(msgspec.convert(table, SourcePacket))
    datagrams = (each.package for each in drive_packages("beamng", "tour", duration_s=2.0 if smoke else 60.0))
    packages = np.array([np.frombuffer(each, np.uint8) for each in datagrams if len(each) == 88])
    ours, theirs = described.intake(), beamng.intake(beamng.Options())
    times = iter(range(START_NS, 1 << 62, len(packages) * PERIOD_NS))

    def run(intake):
        intake.begin(0)
        loops.take(intake, packages, next(times), PERIOD_NS)
        return intake.frame()

    assert_same(run(ours)[list(MOVING)], run(theirs)[list(MOVING)], 0.0)
    assert ours.accepted == theirs.accepted == len(packages)
    versus(
        "an 88-byte packet of a described source: match, decode, body frame, watch, publish",
        "the same packet of a built-in one",
        lambda: run(ours),
        lambda: run(theirs),
        items=len(packages),
        target=1.05,
    )


@pytest.mark.benchmark(group="session")
def test_package_fed_from_python_against_c(versus, rig):
    module = sources.source("city-car-driving")
    intake = module.intake(module.Options(), HEAD_M)
    intake.begin(0)
    init, *packages = read_packages(sample_recording())[: rig.n + 1]
    intake.feed(init, 0)
    telemetry = np.zeros(len(packages), TELEMETRY_DTYPE)

    def feed():
        for package in packages:
            intake.feed(package, 0)

    def floor():
        rig.floor.unpack(rig.frames, telemetry)
        rig.floor.body(telemetry, rig.motion)

    versus(
        "`Session.feed` called from Python: frame, decode, body frame, publish, reply",
        "plain C: unpack, body frame",
        feed,
        floor,
        items=len(packages),
    )
    assert intake.accepted >= len(packages)
    assert not intake.rejected
