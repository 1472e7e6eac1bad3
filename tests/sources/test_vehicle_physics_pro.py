"""Vehicle Physics Pro's packet: its layout, its refusals, and the motion it gives."""

import json
import math
import struct

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from test_unity_exporter import SAMPLES, check_values

from motioncue.cli import cli
from motioncue.errors import PacketError
from motioncue.sources.vehicle_physics_pro import packets as vpp
from motioncue.wire.packet import Derivation

PACKET = struct.Struct("<4sHH2sBBId4f3f3f3f3f3f16i32i16i")
NAN_INTEGER = -2147483647
CODES = {"old": b"OL", "newer": b"NW"}

# A distinct value in every field, each exact in single precision.
FLOATS = tuple(0.5 + 0.25 * k for k in range(19))
INPUT = tuple(100 + k for k in range(16))
VEHICLE = tuple(1000 + k for k in range(32))
SETTINGS = tuple(-200 - k for k in range(16))

# The ids as the SDKs have them.
INPUT_IDS = (
    *("Steer", "Throttle", "Brake", "Handbrake", "Clutch", "ManualGear", "AutomaticGear", "GearShift", "Retarder"),
    "Key",
)
COMMON_IDS = (
    *("Speed", "EngineRpm", "EngineStalled", "EngineWorking", "EngineStarting", "EngineLimiter", "EngineLoad"),
    *("EngineTorque", "EnginePower", "EngineFuelRate", "ClutchTorque", "ClutchLock", "GearboxGear", "GearboxMode"),
    *("GearboxShifting", "RetarderTorque", "TransmissionRpm", "AbsEngaged", "TcsEngaged", "EscEngaged", "AsrEngaged"),
)
VEHICLE_IDS = {
    "old": (*COMMON_IDS, "AidedSteer"),
    "newer": (*COMMON_IDS, "FuelConsumption", "AidedSteer", "ThrottleSignal", "BrakePressure", "ClutchSignal"),
}
SETTINGS_IDS = (
    *("DifferentialLock", "DrivelineLock", "AutoShiftOverride", "AbsOverride", "EscOverride", "TcsOverride"),
    *("AsrOverride", "SteeringAidsOverride"),
)


def distinct(ids, **changes):
    """Return a hand-packed packet with a distinct value in every field."""
    head = {"magic": b"MCVP", "version": 1, "size": 356, "sdk": CODES[ids], "carried": 15, "rest": 240, **changes}
    return PACKET.pack(*head.values(), 7, 12.25, *FLOATS, *INPUT, *VEHICLE, *SETTINGS)


def packet(sdk="newer", **fields):
    """Return a packet of a car at rest, with these fields changed."""
    rows = vpp.blank(sdk)
    for name, value in fields.items():
        rows[name.replace("__", ".")] = value
    return rows[0].tobytes()


def intake(head_m=(0.0, 0.0, 0.0), derivation=None, **options):
    return vpp.intake(vpp.Options(**options), head_m, derivation or Derivation())


def motion_of(data, **options):
    """Return the motion of one packet."""
    taking = intake(**options)
    taking.feed(data, 0)
    assert taking.rejected == {}
    return taking.newest()[0]


# The layout.


def test_the_packet_has_the_documented_size():
    assert PACKET.size == vpp.SIZE == 356
    assert [state.dtype.itemsize for state in vpp.STATES.values()] == [356, 356]


@pytest.mark.parametrize("sdk", ["old", "newer"])
def test_every_field_by_name_and_the_same_bytes_back(sdk):
    data = distinct(sdk)
    layout = vpp.identify(data)
    vehicle = VEHICLE_IDS[sdk]
    expected = {
        "magic": "MCVP",
        "version": 1,
        "size": 356,
        "sdk": CODES[sdk].decode(),
        "carried": 15,
        "not_carried": 240,
        "counter": 7,
        "time": 12.25,
        "attitude": list(FLOATS[:4]),
        "position": list(FLOATS[4:7]),
        "velocity": list(FLOATS[7:10]),
        "acceleration": list(FLOATS[10:13]),
        "angular_velocity": list(FLOATS[13:16]),
        "angular_acceleration": list(FLOATS[16:19]),
        **{f"Input.{name}": raw for name, raw in zip(INPUT_IDS, INPUT, strict=False)},
        "Input.10-15": list(INPUT[10:]),
        **{f"Vehicle.{name}": raw for name, raw in zip(vehicle, VEHICLE, strict=False)},
        f"Vehicle.{len(vehicle)}-31": list(VEHICLE[len(vehicle) :]),
        **{f"Settings.{name}": raw for name, raw in zip(SETTINGS_IDS, SETTINGS, strict=False)},
        "Settings.8-15": list(SETTINGS[8:]),
    }
    assert layout.name == f"state_{sdk}"
    assert layout.decode(data) == expected
    assert layout.encode(layout.decode(data)) == data


def test_integers_say_their_resolution():
    units = {name: field.unit for name, field in vpp.STATES["newer"].fields.items()}
    assert units["Vehicle.Speed"] == "1/1000 m/s"
    assert units["Vehicle.EngineRpm"] == "1/1000 rpm"
    assert units["Input.Steer"] == "1/10000"
    assert units["Vehicle.GearboxMode"] == "gear mode"


def test_decode_prints_the_values_of_the_wire():
    result = CliRunner().invoke(cli, ["decode", "vehicle-physics-pro", "--json", "--hex", distinct("old").hex()])
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    assert found["message"] == "state_old"
    assert found["fields"]["Vehicle.AidedSteer"] == 1021
    result = CliRunner().invoke(cli, ["decode", "vehicle-physics-pro", "--hex", distinct("newer").hex()])
    assert any(line.split() == ["Vehicle.Speed", "1000", "1/1000", "m/s"] for line in result.stdout.splitlines())


def test_a_blank_packet_ends_the_arrays_where_the_sdk_does():
    for sdk, length in (("old", 22), ("newer", 26)):
        numbers = PACKET.unpack(packet(sdk))
        assert numbers[8 + 19 :] == (
            *(*[0] * 10, *[NAN_INTEGER] * 6),
            *(*[0] * length, *[NAN_INTEGER] * (32 - length)),
            *(*[0] * 10, *[NAN_INTEGER] * 6),
        )


@pytest.mark.parametrize("sdk", ["old", "newer"])
def test_a_sample_packet_says_what_the_exporter_was_given(sdk):
    check_values(sdk, (SAMPLES / f"exporter_{sdk}.bin").read_bytes())


def test_packets_one_after_the_other_are_split():
    packets = [distinct("old"), distinct("newer"), packet()]
    assert list(vpp.framed(b"".join(packets))) == packets
    assert list(vpp.framed(b"")) == []


@pytest.mark.parametrize("left", [1, 7, 8, 355])
def test_a_recording_cut_short_is_refused_at_its_offset(left):
    with pytest.raises(PacketError, match=f"{left} bytes .*at offset 356"):
        list(vpp.framed(distinct("old") + distinct("old")[:left]))


# What is refused.


def refusals(packets):
    """Return why the receiver refuses each packet; `identify` must refuse it too."""
    taking = intake()
    reasons = []
    for number, data in enumerate(packets, 1):
        with pytest.raises(PacketError, match="allowed"):
            vpp.identify(data)
        before = taking.rejected
        taking.feed(data, 0)
        assert sum(taking.rejected.values()) == number
        reasons += [reason for reason, count in taking.rejected.items() if count > before.get(reason, 0)]
    assert taking.newest() is None
    assert taking.accepted == taking.others == 0
    return reasons


@pytest.mark.parametrize("sdk", ["old", "newer"])
def test_every_prefix_is_refused(sdk):
    data = packet(sdk)
    assert refusals(data[:size] for size in range(len(data))) == ["type"] * 4 + ["size"] * 352


def test_a_longer_packet_is_refused():
    assert refusals([packet() + b"\0", packet() + packet(), packet() + bytes(644)]) == ["size"] * 3


@pytest.mark.parametrize("sdk", ["old", "newer"])
@pytest.mark.parametrize("offset", range(12))
def test_every_wrong_byte_of_the_header_is_refused(sdk, offset):
    data = packet(sdk)
    for byte in set(range(256)) - {data[offset]}:
        changed = data[:offset] + bytes([byte]) + data[offset + 1 :]
        far = "size" if changed[:4] == b"MCVX" else "type"  # the packet with the rest of the bus
        assert refusals([changed]) == [far if offset < 4 else "envelope"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"magic": b"MCVQ"}, "found 356 bytes beginning 4d 43 56 51"),
        ({"version": 2}, "found version 2, allowed is 1: the exporter is newer"),
        ({"version": 0}, "found version 0, allowed is 1"),
        ({"size": 360}, "found 356 bytes with size field 360"),
        ({"sdk": b"XX"}, "found SDK b'XX'"),
        ({"carried": 0, "rest": 255}, "found 0x00 carried"),
        ({"carried": 16, "rest": 239}, "found 0x10 carried"),
        ({"carried": 15, "rest": 15}, "found 0x0f carried and 0x0f not"),
    ],
)
def test_a_refusal_says_what_was_found(changes, message):
    data = distinct("old", **changes)
    assert len(refusals([data])) == 1
    with pytest.raises(PacketError) as refused:
        vpp.identify(data)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("truncated", "size"),
        ("excess", "size"),
        ("bad_magic", "type"),
        ("next_version", "envelope"),
        ("two_contents", "envelope"),
        ("nonfinite", "not_finite"),
        ("implausible", "implausible"),
    ],
)
def test_a_broken_sample_is_refused(case, reason):
    data = (SAMPLES / f"{case}.bin").read_bytes()
    if reason in ("not_finite", "implausible"):
        assert vpp.identify(data).encode(vpp.identify(data).decode(data)) == data
        taking = intake()
        taking.feed(data, 0)
        assert taking.rejected == {reason: 1}
    else:
        assert refusals([data]) == [reason]


@pytest.mark.parametrize("field", ["attitude", "position", "velocity", "acceleration", "angular_velocity"])
@pytest.mark.parametrize(
    ("value", "reason"), [(math.nan, "not_finite"), (math.inf, "not_finite"), (1e9, "implausible")]
)
def test_nan_and_too_large_values_are_refused(field, value, reason):
    taking = intake()
    for index in range(3):
        rows = vpp.blank("newer")
        rows[field][0, index] = value
        taking.feed(rows[0].tobytes(), 0)
        assert taking.rejected == {reason: index + 1}


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=720), st.binary(max_size=352).map(lambda tail: packet()[:4] + tail)))
def test_random_bytes_never_raise(data):
    taking = intake()
    taking.feed(data, 0)
    assert taking.accepted + taking.others + sum(taking.rejected.values()) == 1
    try:
        layout = vpp.identify(data)
    except PacketError:
        assert taking.accepted + taking.others == 0
    else:
        assert layout.encode(layout.decode(data)) == data


@settings(max_examples=300)
@given(st.binary(min_size=344, max_size=344), st.integers(1, 15), st.sampled_from([b"OL", b"NW"]))
def test_random_contents_give_a_finite_motion_or_none(body, carried, code):
    head = struct.pack("<4sHH2sBB", b"MCVP", 1, 356, code, carried, 255 - carried)
    taking = intake()
    taking.feed(head + body, 0)
    motion = taking.newest()
    assert taking.accepted + taking.others + sum(taking.rejected.values()) == 1
    if motion is not None:
        assert all(
            math.isfinite(motion[name][0]) for name in ("surge", "sway", "heave", "roll", "pitch", "yaw", "speed")
        )


# Signs: Unity's axes are left-handed, x right, y up, z forward.


def turned(axis, degrees):
    """Return the quaternion x, y, z, w that Unity's AngleAxis gives."""
    half = math.radians(degrees) / 2
    return (*(math.sin(half) * (axis == k) for k in range(3)), math.cos(half))


@pytest.mark.parametrize(
    ("axis", "channel", "sign"),
    [(0, "pitch", -1), (1, "yaw", 1), (2, "roll", -1)],  # lowers the nose, turns right, lifts the right side
)
def test_a_turn_about_an_axis_of_unity(axis, channel, sign):
    motion = motion_of(packet(attitude=turned(axis, 20)))
    expected = {"roll": 0.0, "pitch": 0.0, "yaw": 0.0, channel: sign * math.radians(20)}
    for name, angle in expected.items():
        assert motion[name] == pytest.approx(angle, abs=1e-6)
    rate = [0.0, 0.0, 0.0]
    rate[axis] = 0.5
    motion = motion_of(packet(angular_velocity=rate))
    expected = {"roll_rate": 0.0, "pitch_rate": 0.0, "yaw_rate": 0.0, f"{channel}_rate": sign * 0.5}
    assert {name: motion[name] for name in expected} == expected


@pytest.mark.parametrize(("axis", "channel"), [(0, "sway"), (1, "heave"), (2, "surge")])
def test_an_acceleration_along_an_axis_of_unity_however_the_car_stands(axis, channel):
    acceleration = [0.0, 0.0, 0.0]
    acceleration[axis] = 3.0
    motion = motion_of(packet(acceleration=acceleration, attitude=(0.5, -0.5, 0.5, 0.5)))
    expected = {"surge": 0.0, "sway": 0.0, "heave": 0.0, channel: 3.0}
    assert {name: motion[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_gravity_can_be_in_the_acceleration():
    motion = motion_of(packet(acceleration=(0, 9.80665, 0)), gravity="included")
    assert motion["heave"] == pytest.approx(0.0, abs=1e-6)


def test_an_angular_acceleration_reaches_the_head():
    ahead = intake(head_m=(1.0, 0.0, 0.0))
    ahead.feed(packet(angular_acceleration=(-2.0, 3.0, 0.0)), 0)  # nose up, nose right
    motion = ahead.newest()[0]
    assert (motion["surge"], motion["sway"], motion["heave"]) == pytest.approx((0.0, 3.0, 2.0))


# The bus.


@pytest.mark.parametrize("sdk", ["old", "newer"])
def test_the_engine_speed_comes_from_the_bus_in_either_sdk_and_the_speed_from_the_velocity(sdk):
    motion = motion_of(packet(sdk, velocity=(3, 0, 4), Vehicle__Speed=-14500, Vehicle__EngineRpm=1200000))
    assert (motion["speed"], motion["engine_speed"]) == (5.0, 1200.0)


@pytest.mark.parametrize("raw", [-2147483647, -2147483648, 50_000_001])
def test_an_engine_speed_that_is_not_a_number_is_none(raw):
    motion = motion_of(packet(Vehicle__EngineRpm=raw))
    assert math.isnan(motion["engine_speed"])
    assert motion["speed"] == 0.0


def test_motion_and_bus_may_come_in_packets_of_their_own():
    taking = intake()
    bus, motion = {"carried": 4, "not_carried": 251}, {"carried": 1, "not_carried": 254}
    taking.feed(packet(Vehicle__EngineRpm=3000000, acceleration=(0, 0, 9), **bus), 0)
    assert taking.newest() is None
    assert taking.others == 1
    taking.feed(packet(time=1.0, acceleration=(0, 0, 1), Vehicle__EngineRpm=7000, **motion), 0)
    (row,) = taking.newest()
    assert (row["surge"], row["engine_speed"]) == (1.0, 3000.0)
    assert taking.rejected == {}


def test_a_channel_that_is_not_carried_is_not_a_number():
    bus = vpp.bus_of(packet(Vehicle__Speed=20000, Input__Brake=5000, carried=3, not_carried=252))
    assert bus.get("Input", "Brake") == 0.5
    assert math.isnan(bus.get("Vehicle", "Speed"))


@pytest.mark.parametrize("carried", range(1, 16))
def test_every_choice_of_contents_is_known(carried):
    taking = intake()
    data = packet(carried=carried, not_carried=255 - carried)
    taking.feed(data, 0)
    assert (taking.accepted, taking.others) == ((1, 0) if carried & 1 else (0, 1))
    assert vpp.identify(data).name == "state_newer"


# Time.


def test_frames_last_as_long_as_the_simulation_says_and_begin_again_with_its_time():
    taking = intake()
    times = []
    came = (0.0, 0.25, 0.75, 1.25, 1.75, 2.25)
    for now, time in zip(came, (100.0, 100.25, 100.75, 3.0, 3.5, 4.0), strict=True):
        taking.feed(packet(time=time), round(now * 1e9))
        newest = taking.newest()
        times.append(None if newest is None else float(newest["frame_time"][0]))
    assert times == [0.0, 0.25, 0.75, None, 0.0, 0.5]  # one old frame is late, two begin a session
    assert taking.rejected == {"late": 1}
    assert taking.discontinuities == {"reconnect": 1}


def test_a_refused_frame_takes_no_time_twice():
    taking = intake()
    taking.feed(packet(time=1.0), 0)
    taking.feed(packet(time=1.25, attitude=(0, 0, 0, 0)), 0)
    taking.feed(packet(time=1.5), 0)
    assert taking.rejected == {"quaternion": 1}
    assert taking.newest()["frame_time"][0] == 0.5
