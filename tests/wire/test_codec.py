"""Packets: the tables against the documents' layouts byte for byte, and the compiled codec against the tables."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.core.channels import ACTUATION_DTYPE, TELEMETRY_DTYPE
from motioncue.core.threads import Reason
from motioncue.errors import PacketError
from motioncue.output import dk
from motioncue.sources.city_car_driving import packets as ccd
from motioncue.wire.codec import Number, Table
from motioncue.wire.packet import Field, Packet, Take, vector

CAPTURED = Path(__file__).parents[1] / "data" / "packets" / "beamng"

# Each packet as its document lists it: struct string, and the name of every field with how many numbers it holds.
LAYOUTS = {
    "ccd init": (ccd.INIT, "<HB9f", {"size": 1, "type": 1, "driver_position": 3, "forward": 3, "up": 3}),
    "ccd init reply": (ccd.INIT_REPLY, "<HBHB", {"size": 1, "type": 1, "identifier": 1, "protocol_version": 1}),
    "ccd frame": (
        ccd.FRAME,
        "<HBd3f3f4f3f3f3f3f2f",
        {
            "size": 1,
            "type": 1,
            "frame_time": 1,
            "position": 3,
            "unused": 3,
            "orientation": 4,
            "velocity": 3,
            "acceleration": 3,
            "angular_velocity": 3,
            "angular_acceleration": 3,
            "force_feedback_frequency": 1,
            "force_feedback_amplitude": 1,
        },
    ),
    "ccd frame reply": (ccd.FRAME_REPLY, "<HBB", {"size": 1, "type": 1, "code": 1}),
    "dk motion": (
        dk.MOTION,
        "<4s21f",
        dict.fromkeys(
            [
                *("magic", "position_x", "position_y", "position_z", "velocity_x", "velocity_y", "velocity_z"),
                *("sway", "surge", "heave", "up_x", "up_y", "up_z", "roll", "pitch", "yaw"),
                *("roll_rate", "pitch_rate", "yaw_rate"),
                *("roll_acceleration", "pitch_acceleration", "yaw_acceleration"),
            ],
            1,
        ),
    ),
    "dk gauges": (
        dk.GAUGES,
        "<I4sHBB7f2I3f16s16si",
        dict.fromkeys(
            [
                *("time", "car", "flags", "gear", "player", "speed", "engine_speed", "turbo", "engine_temperature"),
                *("fuel", "oil_pressure", "oil_temperature", "dash_lights", "show_lights"),
                *("throttle", "brake", "clutch", "display_1", "display_2", "id"),
            ],
            1,
        ),
    ),
}
CONSTANTS = {
    "ccd init": {"size": 39, "type": 1},
    "ccd init reply": {"size": 6, "type": 0},
    "ccd frame": {"size": 107, "type": 2},
    "ccd frame reply": {"size": 4, "type": 1},
    "dk motion": {"magic": b"BNG1"},
    "dk gauges": {"car": b"beam"},
}


def codes(form):
    """Return the code of every number in a struct string: "3fH" is f, f, f, H."""
    out, count = [], ""
    for character in form.lstrip("<"):
        if character.isdigit():
            count += character
            continue
        out += [count + "s"] if character == "s" else [character] * int(count or 1)
        count = ""
    return out


def samples(name):
    """Return the fields of a packet with a distinct value in each, and the same numbers in order."""
    packet, form, fields = LAYOUTS[name]
    left, flat, values = codes(form), [], {}
    for index, (field, count) in enumerate(fields.items(), start=1):
        taken, left = left[:count], left[count:]
        if field in CONSTANTS[name]:
            numbers = [CONSTANTS[name][field]]
        elif taken[0].endswith("s"):
            numbers = [bytes([64 + index]) * int(taken[0][:-1])]
        elif taken[0] in "fd":
            numbers = [(-1) ** k * (index + k / 8 + 1 / 64) for k in range(count)]
        else:
            numbers = [11 * index]
        flat += numbers
        values[field] = numbers if count > 1 else numbers[0]
    assert not left
    return packet, values, struct.pack(form, *flat)


@pytest.mark.parametrize("name", LAYOUTS)
def test_size_is_that_of_the_document(name):
    packet, form, fields = LAYOUTS[name]
    assert packet.size == packet.dtype.itemsize == struct.calcsize(form)
    assert list(packet.fields) == list(fields)
    assert packet.constants == CONSTANTS[name]


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_offset_is_that_of_the_document(name):
    packet, form, fields = LAYOUTS[name]
    left = codes(form)
    before = ""
    for field, count in fields.items():
        assert packet.fields[field].offset == struct.calcsize("<" + before)
        taken, left = "".join(left[:count]), left[count:]
        before += taken
        assert np.dtype(packet.fields[field].format).itemsize == struct.calcsize("<" + taken)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_distinct_value_in_every_field_encodes_to_the_documents_bytes(name):
    packet, values, data = samples(name)
    assert packet.encode(values) == data


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_distinct_value_in_every_field_decodes_from_the_documents_bytes(name):
    packet, values, data = samples(name)
    text = {field: value.decode() for field, value in values.items() if isinstance(value, bytes)}
    assert packet.decode(data) == {**values, **text}


@pytest.mark.parametrize("name", LAYOUTS)
def test_fields_not_given_are_zero_and_constants_are_filled_in(name):
    packet, form, fields = LAYOUTS[name]
    blank = [
        CONSTANTS[name].get(f, b"" if code.endswith("s") else 0)
        for f, code in zip((f for f, count in fields.items() for _ in range(count)), codes(form), strict=True)
    ]
    assert packet.encode() == struct.pack(form, *blank)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("change", [-1, 1])
def test_another_size_is_refused_with_what_was_found_and_allowed(name, change):
    packet, _, data = samples(name)
    data = (data + b"\0")[: len(data) + change]
    with pytest.raises(PacketError, match=f"found {packet.size + change} bytes, allowed are {packet.size}"):
        packet.decode(data)


@pytest.mark.parametrize("name", LAYOUTS)
def test_another_constant_is_refused_by_its_name_and_offset(name):
    packet, _, data = samples(name)
    for field in packet.constants:
        offset = packet.fields[field].offset
        changed = bytearray(data)
        changed[offset] ^= 0x20
        with pytest.raises(PacketError, match=f"{field} .* at offset {offset}"):
            packet.decode(bytes(changed))


def test_encoding_an_unknown_field_is_refused():
    with pytest.raises(PacketError, match="'sing', allowed are magic, "):
        dk.MOTION.encode({"sing": 1.0})


# ---- the table itself ------------------------------------------------------------------------------------------------


def test_overlapping_fields_are_refused_with_both_names():
    with pytest.raises(ValueError, match="'late' at 3 overlaps 'early'"):
        Packet("p", 8, [Field("late", 3, "<f4"), Field("early", 0, "<f4")])


def test_overlap_is_seen_through_a_shorter_field_in_between():
    with pytest.raises(ValueError, match="overlaps"):
        Packet("p", 16, [Field("long", 0, "3<f4"), Field("short", 2, "|u1"), Field("third", 8, "<f4")])


def test_a_field_that_does_not_fit_is_refused_by_name():
    with pytest.raises(ValueError, match="'tail' ends at 9, the packet at 8"):
        Packet("p", 8, [Field("head", 0, "<f4"), Field("tail", 5, "<f4")])


def test_a_field_before_the_packet_is_refused_by_name():
    with pytest.raises(ValueError, match="'head'"):
        Packet("p", 8, [Field("head", -1, "|u1")])


def test_two_fields_of_one_name_are_refused_by_name():
    with pytest.raises(ValueError, match="'twin'"):
        Packet("p", 8, [Field("twin", 0, "<f4"), Field("twin", 4, "<f4")])


def test_a_cut_packet_keeps_the_whole_fields_only():
    short = dk.MOTION.cut(62)
    assert (short.size, list(short.fields)[-1]) == (62, "pitch")
    assert short.constants == {}


def test_where_gives_the_place_of_one_number():
    assert ccd.FRAME.where("orientation", 2) == (35 + 8, np.dtype("<f4"))
    assert ccd.FRAME.where("frame_time") == (3, np.dtype("<f8"))


# ---- naming packets --------------------------------------------------------------------------------------------------

SIMULATOR = ["ccd init", "ccd init reply", "ccd frame", "ccd frame reply"]
DK_FORMS = {88: dk.MOTION, 60: dk.MOTION, 96: dk.GAUGES, 92: dk.GAUGES, 20: dk.GAUGES}


@pytest.mark.parametrize("name", SIMULATOR)
def test_city_car_driving_packages_are_named(name):
    packet, _, data = samples(name)
    assert ccd.identify(data) is packet


@pytest.mark.parametrize("name", SIMULATOR)
def test_city_car_driving_refuses_every_other_length(name):
    _, _, data = samples(name)
    sizes = {LAYOUTS[other][0].size for other in SIMULATOR}
    for length in range(201):
        if length in sizes:
            continue
        padded = (data + bytes(200))[:length]
        for candidate in (padded, length.to_bytes(2, "little") + padded[2:]):  # with and without a size field to match
            with pytest.raises(PacketError, match=f"found {length} bytes"):
                ccd.identify(candidate[:length])


@pytest.mark.parametrize("name", SIMULATOR)
def test_city_car_driving_refuses_every_other_type_and_size_field(name):
    _, _, data = samples(name)
    for position in range(3):
        for value in range(256):
            if value != data[position]:
                with pytest.raises(PacketError, match="city-car-driving: found"):
                    ccd.identify(data[:position] + bytes([value]) + data[position + 1 :])


@pytest.mark.parametrize("name", SIMULATOR)
def test_city_car_driving_names_big_endian_packages_too(name):
    little, _, data = samples(name)
    form = LAYOUTS[name][1]
    swapped = struct.pack(">" + form.removeprefix("<"), *struct.unpack(form, data))
    packet = ccd.identify(swapped)
    assert packet.name == little.name
    assert packet.decode(swapped) == little.decode(data)


@pytest.mark.parametrize("size", DK_FORMS)
@pytest.mark.parametrize("marked", [True, False])
def test_dk_datagrams_are_named_with_and_without_magic(size, marked):
    packet = DK_FORMS[size]
    name = "dk motion" if packet is dk.MOTION else "dk gauges"
    _, values, data = samples(name)
    start, length = (0, 4) if packet is dk.MOTION else (4, 4)
    if not marked:
        data = data[:start] + bytes(length) + data[start + length :]
    found = dk.identify(data[:size])
    assert found.name == packet.name
    decoded = found.decode(data[:size])
    for field, value in decoded.items():
        if field not in packet.constants:
            expected = values[field].decode() if isinstance(values[field], bytes) else values[field]
            assert value == expected


@pytest.mark.parametrize(("name", "least"), [("dk motion", 60), ("dk gauges", 20)])
def test_dk_reads_by_offset_and_refuses_what_is_too_short(name, least):
    packet, _, data = samples(name)
    for length in range(201):
        if length >= least:
            found = dk.identify((data + bytes(200))[:length])
            assert (found.name, found.size) == (packet.name, length)
            continue
        with pytest.raises(PacketError, match=f"found {length} bytes"):
            dk.identify((data + bytes(200))[:length])


def test_dk_names_a_longer_form_of_beamngs_motion():
    data = b"BNG2" + bytes(172)
    assert dk.identify(data).name == "motion"
    assert dk.identify(data).decode(data)["surge"] == 0.0


@pytest.mark.parametrize("size", DK_FORMS)
def test_dk_refuses_every_corrupted_magic(size):
    packet = DK_FORMS[size]
    name = "dk motion" if packet is dk.MOTION else "dk gauges"
    _, _, data = samples(name)
    start = 0 if packet is dk.MOTION else 4
    for position in range(start, start + 4):
        for value in range(256):
            changed = data[:position] + bytes([value]) + data[position + 1 :]
            if value != data[position] and changed[:4] != b"BNG2":
                with pytest.raises(PacketError, match="allowed are motion"):
                    dk.identify(changed[:size])


@given(st.binary(max_size=200))
def test_any_bytes_are_named_or_refused(data):
    for system in (ccd, dk):
        try:
            packet = system.identify(data)
        except PacketError:
            continue
        assert packet.size == len(data)
        packet.decode(data)


# ---- real packets ----------------------------------------------------------------------------------------------------

# What was going on when each was captured; "parked" means that every acceleration is within 2 mm/s^2 of zero.
REAL = {
    "slope52": {"surge": (0, 2e-3), "sway": (0, 2e-3), "heave": (0, 2e-3), "pitch": (math.radians(52), 2e-3)},
    "braking": {"surge": (-10.91, 0.01), "sway": (-0.30, 0.01), "velocity_x": (-43.50, 0.01), "pitch": (0, 0.05)},
}


@pytest.mark.parametrize("name", REAL)
def test_a_captured_packet_decodes_and_encodes_to_the_same_bytes(name):
    data = (CAPTURED / f"{name}.bin").read_bytes()
    assert dk.identify(data) is dk.MOTION
    fields = dk.MOTION.decode(data)
    assert list(fields.values()) == ["BNG1", *struct.unpack("<4s21f", data)[1:]]
    for field, (value, tolerance) in REAL[name].items():
        assert fields[field] == pytest.approx(value, abs=tolerance)
    del fields["magic"]
    assert dk.MOTION.encode(fields) == data


def up_of(roll, pitch, yaw):
    """Return the body's up axis: R = Rz(-yaw) Rx(pitch) Ry(roll), body right, forward, up to east, north, up."""
    cr, sr, cp, sp, cy, sy = (f(a) for a in (roll, pitch, yaw) for f in (math.cos, math.sin))
    rz = np.array([[cy, sy, 0], [-sy, cy, 0], [0, 0, 1]])
    rx = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    ry = np.array([[cr, 0, sr], [0, 1, 0], [-sr, 0, cr]])
    return rz @ rx @ ry @ [0.0, 0.0, 1.0]


@pytest.mark.parametrize("name", REAL)
def test_our_up_vector_is_that_of_a_real_packet(probe, name):
    fields = dk.MOTION.decode((CAPTURED / f"{name}.bin").read_bytes())
    ours = probe.up(fields["roll"], fields["pitch"], fields["yaw"])
    assert ours == pytest.approx([fields["up_x"], fields["up_y"], fields["up_z"]], abs=5e-4)


def test_our_up_vector_is_the_third_column_of_the_rotation(probe, rng):
    for roll, pitch, yaw in rng.uniform(-np.pi, np.pi, (500, 3)):
        assert probe.up(roll, pitch, yaw) == pytest.approx(up_of(roll, pitch, yaw), abs=1e-14)


# ---- the compiled codec ----------------------------------------------------------------------------------------------

NUMBERS = {
    "<f4": ("f", -1.5),
    "<f8": ("d", 0.1),
    "|i1": ("b", -7),
    "|u1": ("B", 200),
    "<i2": ("h", -30_000),
    "<u2": ("H", 60_000),
    "<i4": ("i", -2_000_000_000),
    "<u4": ("I", 4_000_000_000),
    "<i8": ("q", -(2**53)),
}


@pytest.mark.parametrize("form", NUMBERS)
def test_every_format_is_decoded_at_any_offset(probe, form):
    code, value = NUMBERS[form]
    for offset in range(9):
        packet = bytes([0xA5]) * offset + struct.pack("<" + code, value) + bytes([0xA5]) * 3
        out = np.zeros(3)
        assert probe.decoded(Table(len(packet), [Number(offset, form, 1, 2.0)]), packet, out) == 0
        assert out.tolist() == [0.0, 2.0 * value, 0.0]


@pytest.mark.parametrize(("form", "code"), [("<f4", "f"), ("<f8", "d")])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (100.0, Reason.ACCEPTED),
        (-100.0, Reason.ACCEPTED),
        (100.5, Reason.IMPLAUSIBLE),
        (-1e30, Reason.IMPLAUSIBLE),
        (math.nan, Reason.NOT_FINITE),
        (math.inf, Reason.NOT_FINITE),
        (-math.inf, Reason.NOT_FINITE),
    ],
)
def test_a_value_that_no_vehicle_reaches_is_refused_with_its_reason(probe, form, code, value, reason):
    packet = struct.pack("<" + code, value)
    assert probe.decoded(Table(len(packet), [Number(0, form, 0, limit=100.0)]), packet, np.zeros(1)) == reason


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_field_without_a_limit_still_refuses_what_is_not_finite(probe, value):
    packet = Packet("p", 8, [Field("a", 0, "<f8")])
    table = packet.taking([Take("frame_duration", 0, "a")])
    out = np.zeros(TELEMETRY_DTYPE.itemsize // 8)
    assert probe.decoded(table, struct.pack("<d", value), out) == Reason.NOT_FINITE
    assert probe.decoded(table, struct.pack("<d", 1e300), out) == Reason.ACCEPTED


def test_a_frame_is_taken_number_by_number_into_telemetry(probe):
    _, values, data = samples("ccd frame")
    table = ccd.FRAME.taking(
        [
            Take("frame_duration", 0, "frame_time"),
            *vector("orientation", "orientation", (3, 0, 1, 2)),
            *vector("velocity", "velocity"),
            *vector("angular_acceleration", "angular_acceleration"),
            Take("engine_speed", 0, "force_feedback_frequency", 0, 60.0),
        ]
    )
    row = np.full(1, -1.0, "f8").repeat(TELEMETRY_DTYPE.itemsize // 8)
    # Distinct values are beyond what a frame may hold only for the quaternion: its limit is 2.
    data = bytearray(data)
    data[35:51] = struct.pack("<4f", 0.5, -0.25, 0.125, 1.0)
    assert probe.decoded(table, bytes(data), row) == Reason.ACCEPTED
    telemetry = row.view(TELEMETRY_DTYPE)[0]
    assert telemetry["orientation"].tolist() == [1.0, 0.5, -0.25, 0.125]
    assert telemetry["velocity"].tolist() == values["velocity"]
    assert telemetry["angular_acceleration"].tolist() == values["angular_acceleration"]
    assert telemetry["frame_duration"] == values["frame_time"]
    assert telemetry["engine_speed"] == 60.0 * values["force_feedback_frequency"]
    assert telemetry["position"].tolist() == [-1.0] * 3


def test_the_sign_of_a_zero_is_encoded(probe):
    packet = np.zeros(8, np.uint8)
    probe.encoded(Table(8, [Number(0, "<f4", 0), Number(4, "<f4", 1)]), np.array([-0.0, 0.0]), packet)
    assert packet.tobytes() == struct.pack("<2f", -0.0, 0.0)


def test_scales_and_absent_values_are_encoded(probe):
    values = np.array([3.0, math.nan, 7.0])
    table = Table(12, [Number(0, "<f4", 0, 0.5, absent=9.0), Number(8, "<f4", 1, 2.0, absent=9.0)])
    packet = bytearray(b"\xee" * 12)
    probe.encoded(table, values, packet)
    assert bytes(packet) == struct.pack("<f", 6.0) + b"\xee" * 4 + struct.pack("<f", 4.5)


def actuation(**channels):
    """Return an actuation with these channels, everything else zero, as the doubles that an encoder reads."""
    row = np.zeros(1, ACTUATION_DTYPE)
    for name, value in channels.items():
        row[name] = value
    return row.view("f8")


def packet_of(probe, stream, **channels):
    packet = bytearray(stream.packet.encode(stream.defaults))
    probe.encoded(stream.table(), actuation(**channels), packet)
    return bytes(packet)


def test_the_motion_stream_holds_every_channel_at_its_offset(probe):
    channels = {
        "sway": 28, "surge": 32, "heave": 36, "up_east": 40, "up_north": 44, "up_up": 48, "roll": 52, "pitch": 56,
        "yaw": 60, "roll_rate": 64, "pitch_rate": 68, "yaw_rate": 72,
    }  # fmt: skip
    data = packet_of(probe, dk.STREAMS["motion"], **{name: float(offset) for name, offset in channels.items()})
    floats = [float(offset) if offset in channels.values() else 0.0 for offset in range(4, 88, 4)]
    assert data == struct.pack("<4s21f", b"BNG1", *floats)


def test_the_gauges_hold_speed_and_engine_speed_and_the_first_gear(probe):
    data = packet_of(probe, dk.STREAMS["gauges"], speed=31.5, engine_speed=2750.0)
    head = struct.pack("<I4sHBB2f", 0, b"beam", 0, 1, 0, 31.5, 2750.0)
    assert data == head + bytes(96 - len(head))


def test_a_source_without_speed_sends_one_meter_a_second_and_without_engine_speed_zero(probe):
    fields = dk.GAUGES.decode(packet_of(probe, dk.STREAMS["gauges"], speed=math.nan, engine_speed=math.nan))
    assert (fields["speed"], fields["engine_speed"]) == (1.0, 0.0)


def test_gauges_are_never_below_zero(probe):
    fields = dk.GAUGES.decode(packet_of(probe, dk.STREAMS["gauges"], speed=-3e-6, engine_speed=-1.0))
    assert (fields["speed"], fields["engine_speed"]) == (0.0, 0.0)
