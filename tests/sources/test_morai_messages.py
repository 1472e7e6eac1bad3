"""MORAI's messages: sizes, offsets and captured packets, both ways; everything else is refused."""

import contextlib
import itertools
import math
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.errors import PacketError
from motioncue.sources.morai import packets as morai
from motioncue.sources.morai.messages import AS_STATED, EGO_VEHICLE_STATUS, FEWER_OBJECTS, MESSAGES
from motioncue.sources.morai.packets import Options, framed, identify
from motioncue.wire.packet import Field, Packet

DATA = Path(__file__).parents[1] / "data" / "packets" / "morai"
CAPTURED = {path.stem: path.read_bytes() for path in sorted(DATA.glob("*.bin"))}

# Header, data as `struct` writes it, its length, the whole packet's: from the tables of the document and of MORAI's
# Python structures, not from the layouts under test.
TABLE = {
    "ego_vehicle_status_v1": ("#MoraiInfo$", "2bfi21f", 94, 123),
    "ego_vehicle_status_v2": ("#MoraiInfo$", "2bfi21f38s", 132, 161),
    "ego_vehicle_status_v3": ("#MoraiInfo$", "2i2bfi24f38s", 152, 181),
    "ego_vehicle_status_v4": ("#MoraiInfo$", "2i2bfi24f38s12f", 200, 229),
    "ego_vehicle_status_v5": ("#MoraiInfo$", "2i2bfi25f38s15f", 216, 245),
    "object_info_short": ("#MoraiObjInfo$", "2h16f" * 20, 1360, 1392),
    "object_info_short_stamped": ("#MoraiObjInfo$", "2i" + "2h16f" * 20, 1368, 1400),
    "object_info_unstamped": ("#MoraiObjInfo$", "2h16f38s" * 20, 2120, 2152),
    "object_info": ("#MoraiObjInfo$", "2i" + "2h16f38s" * 20, 2128, 2160),
    "traffic_light": ("#TrafficLight$", "12s2h", 16, 48),
    "collision_data_unstamped": ("#CollisionData$", "2h6f" * 5, 140, 173),
    "collision_data": ("#CollisionData$", "2i" + "2h6f" * 5, 148, 181),
    "npc_vehicle_collision": ("#VehicleCollision$", "2h13f" * 20, 1120, 1156),
    "intersection": ("#IntStatus$", "2hf", 8, 37),
    "imu_unstamped": ("#IMUData$", "10d", 80, 107),
    "imu": ("#IMUData$", "2i10d", 88, 115),
    "ego_ctrl_cmd": ("#MoraiCtrlCmd$", "3b5f", 23, 55),
    "ego_ctrl_cmd_rear_steer": ("#MoraiCtrlCmd$", "3b6f", 27, 59),
    "multi_ego_setting": ("#MultiEgoSetting$", "2i" + "h7f2b" * 20, 648, 683),
    "set_traffic_light": ("#TrafficLight$", "12sh", 14, 46),
    "set_intersection": ("#SetIntStatus$", "2hf", 8, 40),
    "scenario_load": ("#ScenarioLoad$", "30s7?", 37, 69),
    "save_sensor_data": ("#SaveSensorData$", "?30s60s", 91, 125),
    "sensor_control": ("#SensorControl$", "h6f", 26, 59),
    "turn_signal_lamp": ("#LampControl$", "2b", 2, 33),
    "ego_ghost": ("#EgoGhostCmd$", "8f", 32, 63),
    "npc_ghost": ("#NpcGhostCmd$", "b25s6f" * 20, 1000, 1031),
}
PACKETS = {packet.name: packet for packet in MESSAGES}


def values_of(data):
    """Return a distinct value for each number and text of a `struct` format; truth values alternate."""
    count = itertools.count(1)
    found = []
    for value in struct.unpack("<" + data, bytes(struct.calcsize("<" + data))):
        k = next(count)
        if isinstance(value, bytes):
            found.append(f"text {k}")
        elif isinstance(value, bool):
            found.append(k % 2 == 0)
        else:
            found.append(k + 0.5 if isinstance(value, float) else k)
    # One byte cannot hold a distinct value for every number, so they begin again.
    codes = [code for n, code in tokens(data) for _ in range(1 if code == "s" else n)]
    return [1 + value % 127 if code == "b" else value for value, code in zip(found, codes, strict=True)]


def tokens(data):
    digits = ""
    for character in data:
        if character.isdigit():
            digits += character
        else:
            yield int(digits or 1), character
            digits = ""


def packed(name, values=None):
    """Return a packet made by `struct` alone."""
    header, data, length, _ = TABLE[name]
    values = values_of(data) if values is None else values
    payload = struct.pack("<" + data, *(value.encode() if isinstance(value, str) else value for value in values))
    return header.encode() + struct.pack("<4i", length, 0, 0, 0) + payload + b"\r\n"


def flat(value):
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flat(item)]
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, list) else [value]


def test_every_message_is_in_the_table():
    assert list(PACKETS) == list(TABLE)
    assert len(MESSAGES) + len(FEWER_OBJECTS) + len(AS_STATED) < 128  # the most that an intake can distinguish


@pytest.mark.parametrize("length", [1420, 1440])
def test_objects_of_the_size_that_the_document_states_are_those_of_its_slots(length):
    """1472 bytes, of which header, lengths, 20 slots of 68 and the tail make 1392: the rest is behind the slots."""
    slots = packed("object_info_short")[30:-2]
    data = b"#MoraiObjInfo$" + struct.pack("<4i", length, 0, 0, 0) + slots + b"\xff" * 80 + b"\r\n"
    assert len(data) == 1472
    expected = identify(packed("object_info_short")).decode(packed("object_info_short"))["objects"]
    assert identify(data).decode(data)["objects"] == expected
    intake = morai.intake(Options())
    intake.begin(0)
    intake.feed(data, 1)
    assert (intake.others, intake.rejected) == (1, {})


def test_a_setting_with_a_short_camera_index_is_read_as_the_documents_row_says():
    values = [2, 1, *[value for n in range(20) for value in (n, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 4, 16)]]
    payload = struct.pack("<ih" + "h7f2b" * 20, *values)
    data = b"#MultiEgoSetting$" + struct.pack("<4i", len(payload), 0, 0, 0) + payload + b"\r\n"
    assert len(data) == 681
    fields = identify(data).decode(data)
    assert (fields["num_of_ego"], fields["camera_index"]) == (2, 1)
    assert flat(fields["egos"]) == values[2:]


@pytest.mark.parametrize("name", TABLE)
def test_size_and_length_are_those_of_the_table(name):
    header, data, length, total = TABLE[name]
    assert struct.calcsize("<" + data) == length
    assert PACKETS[name].size == total == len(header) + 18 + length
    assert PACKETS[name].constants == {"header": header.encode(), "data_length": length, "tail": b"\r\n"}
    assert next(iter(PACKETS[name].constants)) == "header"  # the constant that identifies it


@pytest.mark.parametrize("name", TABLE)
def test_a_value_of_its_own_in_every_field_comes_out_in_order_and_goes_back_byte_for_byte(name):
    header, data, length, _ = TABLE[name]
    packet = packed(name)
    assert identify(packet) is PACKETS[name]
    fields = identify(packet).decode(packet)
    assert flat(fields) == [header, length, 0, 0, 0, *values_of(data), "\r\n"]
    assert identify(packet).encode(fields) == packet


@pytest.mark.parametrize("name", TABLE)
def test_fields_of_one_byte_and_truth_values_are_where_the_table_has_them(name):
    """One-byte numbers repeat in a large packet, and truth values in any, so each is tested alone."""
    _, data, _, _ = TABLE[name]
    zeros = [b"" if code == "s" else 0 for n, code in tokens(data) for _ in range(1 if code == "s" else n)]
    codes = [code for n, code in tokens(data) for _ in range(1 if code == "s" else n)]
    blank = flat(PACKETS[name].decode(packed(name, zeros)))
    for place in [place for place, code in enumerate(codes) if code in "b?"]:
        fields = flat(PACKETS[name].decode(packed(name, [*zeros[:place], 1, *zeros[place + 1 :]])))
        assert [i for i, (a, b) in enumerate(zip(fields, blank, strict=True)) if a != b] == [5 + place]


STATUS_OFFSETS = {
    "sec": (None, None, 27, 27, 27),
    "nsec": (None, None, 31, 31, 31),
    "ctrl_mode": (27, 27, 35, 35, 35),
    "gear": (28, 28, 36, 36, 36),
    "signed_velocity": (29, 29, 37, 37, 37),
    "map_data_id": (33, 33, 41, 41, 41),
    "accel": (37, 37, 45, 45, 45),
    "brake": (41, 41, 49, 49, 49),
    "size": (45, 45, 53, 53, 53),
    "overhang": (57, 57, 65, 65, 65),
    "position": (69, 69, 77, 77, 77),
    "roll": (81, 81, 89, 89, 89),
    "velocity": (93, 93, 101, 101, 101),
    "angular_velocity": (None, None, 113, 113, 113),
    "acceleration": (105, 105, 125, 125, 125),
    "steer": (117, 117, 137, 137, None),
    "front_steer": (None, None, None, None, 137),
    "rear_steer": (None, None, None, None, 141),
    "link_id": (None, 121, 141, 141, 145),
    "tire_lateral_force": (None, None, None, 179, 183),
    "distance_left_lane_boundary": (None, None, None, None, 231),
    "distance_right_lane_boundary": (None, None, None, None, 235),
    "cross_track_error": (None, None, None, None, 239),
    "tail": (121, 159, 179, 227, 243),
}


@pytest.mark.parametrize("field", STATUS_OFFSETS)
def test_status_offsets_are_those_found_in_captures_and_structures(field):
    found = tuple(p.fields[field].offset if field in p.fields else None for p in EGO_VEHICLE_STATUS)
    assert found == STATUS_OFFSETS[field]


def test_units_are_those_of_the_wire():
    units = {name: field.unit for name, field in EGO_VEHICLE_STATUS[4].fields.items()}
    assert [units[name] for name in ("velocity", "signed_velocity", "angular_velocity", "acceleration", "heading")] == [
        "km/h", "km/h", "deg/s", "m/s^2", "deg"
    ]  # fmt: skip
    assert PACKETS["object_info"].fields["objects"].slot.fields["velocity"].unit == "km/h"


# Captured packets.


@pytest.mark.parametrize("name", CAPTURED)
def test_captured_packets_go_back_byte_for_byte(name):
    packet = identify(CAPTURED[name])
    assert packet.encode(packet.decode(CAPTURED[name])) == CAPTURED[name]


def test_the_captured_status_says_what_the_parked_car_did():
    fields = identify(CAPTURED["ego_vehicle_status"]).decode(CAPTURED["ego_vehicle_status"])
    assert (fields["sec"], fields["nsec"], fields["ctrl_mode"], fields["gear"], fields["map_data_id"]) == (
        1726148127, 864000000, 1, 1, 1
    )  # fmt: skip
    assert fields["signed_velocity"] == pytest.approx(-9.83e-6, abs=5e-9)
    assert fields["size"] == pytest.approx([4.845, 1.835, 1.455])
    assert [fields[n] for n in ("overhang", "wheelbase", "rear_overhang")] == pytest.approx([0.965, 2.795, 1.085])
    assert fields["position"] == pytest.approx([89.5323, 1189.3905, -0.3939], abs=5e-5)
    assert [fields[n] for n in ("roll", "pitch", "heading")] == pytest.approx([-359.8491, 0.44068, 154.8363], abs=5e-5)
    assert math.copysign(1.0, fields["steer"]) == -1.0
    assert fields["link_id"] == "A219BS010391"


def test_the_captured_light_and_crossing():
    light = identify(CAPTURED["traffic_light"])
    assert light.name == "traffic_light"
    fields = light.decode(CAPTURED["traffic_light"])
    assert (fields["index"], fields["type"], fields["status"]) == ("C119BS010007", 2, 16)
    crossing = identify(CAPTURED["intersection"])
    assert crossing.name == "intersection"
    fields = crossing.decode(CAPTURED["intersection"])
    assert (fields["index"], fields["status"]) == (7, 0)
    assert fields["time"] == pytest.approx(36.248, abs=5e-4)


# Refusals.


def refused(data):
    """Say whether `data` is refused by name."""
    with pytest.raises(PacketError, match=r"morai: found .* allowed (is|are) "):
        identify(data)
    return True


@pytest.mark.parametrize("name", TABLE)
def test_every_prefix_is_refused_and_counted(name):
    packet, header = packed(name), TABLE[name][0]
    intake = morai.intake(Options())
    document = 121 if name == "ego_vehicle_status_v1" else None  # the only prefix that is a packet
    lengths = [size for size in range(len(packet)) if size != document]
    for size in lengths:
        intake.feed(packet[:size], 1)
        assert refused(packet[:size])
    # A prefix as long as another form of the message is that with a wrong length.
    sizes = {total for other, _, _, total in TABLE.values() if other == header}
    if header == "#MoraiObjInfo$":
        sizes |= {32 + stamp + slot * count for stamp in (0, 8) for slot in (68, 106) for count in range(1, 21)}
    sizes |= {packet.size for packet in AS_STATED if packet.constants["header"].decode() == header}
    forms = sum(size in lengths for size in sizes)
    expected = {"type": len(header), "size": len(lengths) - len(header) - forms, "envelope": forms}
    assert intake.rejected == {reason: count for reason, count in expected.items() if count}
    assert (intake.accepted, intake.others, intake.newest()) == (0, 0, None)


@pytest.mark.parametrize("name", TABLE)
def test_every_corruption_of_a_byte_of_header_length_or_tail_is_refused_and_counted(name):
    packet, start = packed(name), len(TABLE[name][0])
    marks = [*range(start + 4), len(packet) - 2, len(packet) - 1]
    intake = morai.intake(Options())
    for place in marks:
        for change in range(1, 256):
            wrong = bytearray(packet)
            wrong[place] ^= change
            intake.feed(wrong, 1)
            if change in (1, 32, 128, 255):
                assert refused(bytes(wrong))
    assert intake.rejected == {"type": 255 * start, "envelope": 255 * 6}
    assert (intake.accepted, intake.others, intake.newest()) == (0, 0, None)


def test_a_longer_packet_is_refused():
    for name in TABLE:
        assert refused(packed(name) + b"\n")


def test_a_refusal_says_what_was_found_and_what_is_allowed():
    light = CAPTURED["traffic_light"]
    with pytest.raises(PacketError, match=r"#TrafficLight\$ of 47 bytes.*48 bytes with 16 or 46 bytes with 14"):
        identify(light[:-1])
    with pytest.raises(PacketError, match="data_length 17"):
        identify(light[:14] + b"\x11" + light[15:])
    with pytest.raises(PacketError, match="ending 0d 0b"):
        identify(light[:-1] + b"\x0b")
    with pytest.raises(PacketError, match=r"found 5 bytes beginning b'\$GPGG', allowed are #CollisionData\$"):
        identify(b"$GPGG")


@given(st.binary(max_size=300) | st.sampled_from([packed(name) for name in TABLE]))
def test_random_bytes_never_do_more_than_be_refused(data):
    for read in (identify, framed):
        with contextlib.suppress(PacketError):
            read(data)
    intake = morai.intake(Options())
    intake.feed(data, 1)
    assert intake.accepted + intake.others + sum(intake.rejected.values()) == 1


@given(st.sampled_from(sorted(TABLE)), st.data())
@pytest.mark.check
def test_random_bytes_in_a_good_envelope_decode_or_are_refused(name, data):
    header, _, length, _ = TABLE[name]
    payload = data.draw(st.binary(min_size=length, max_size=length))
    packet = header.encode() + struct.pack("<4i", length, 0, 0, 0) + payload + b"\r\n"
    assert identify(packet) is PACKETS[name]
    identify(packet).decode(packet)
    intake = morai.intake(Options())
    intake.feed(packet, 1)
    assert intake.accepted + intake.others + sum(intake.rejected.values()) == 1
    assert set(intake.rejected) <= {"not_finite", "implausible"}


# Files of datagrams.


def test_datagrams_laid_one_after_the_other_are_split_by_their_lengths():
    packets = [packed(name) for name in TABLE]
    assert list(framed(b"".join(packets))) == packets
    assert list(framed(b"")) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no packet", "found 6e 6f .* at offset 0"),
        (packed("intersection") + b"#", "at offset 37"),
        (packed("intersection")[:-1], "found 36 bytes at offset 0, the packet has 37"),
        (b"#IntStatus$" + struct.pack("<i", -1), "at offset 0"),
    ],
)
def test_a_file_of_something_else_is_refused(data, message):
    with pytest.raises(PacketError, match=message):
        list(framed(data))


# Features of every packet with slots or text.

INNER = Packet("inner", 6, [Field("number", 0, "<i2"), Field("text", 2, "S4")])
OUTER = Packet("outer", 21, [Field("one", 0, INNER), Field("many", 6, (INNER, 2)), Field("rest", 18, "|u1")])


def test_slots_are_decoded_and_encoded_one_or_many():
    data = struct.pack("<h4sh4sh4sBxx", 1, b"a", 2, b"bb", 3, "€".encode(), 4)
    fields = OUTER.decode(data)
    assert fields == {
        "one": {"number": 1, "text": "a"},
        "many": [{"number": 2, "text": "bb"}, {"number": 3, "text": "€"}],
        "rest": 4,
    }
    assert OUTER.encode(fields) == data


@given(st.binary(min_size=4, max_size=4))
def test_any_text_goes_back_byte_for_byte(data):
    fields = INNER.decode(bytes(2) + data)
    assert INNER.encode(fields) == bytes(2) + data


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"many": [{}] * 3}, "outer: found 3 many, allowed are up to 2"),
        ({"one": {"text": "abcde"}}, "inner: found text of 5 bytes, allowed are 4"),
        ({"many": [{"speed": 1}]}, "inner: found field 'speed', allowed are number, text"),
    ],
)
def test_what_does_not_fit_into_slots_is_refused(values, message):
    with pytest.raises(PacketError, match=message):
        OUTER.encode(values)


@pytest.mark.parametrize("stamp", [b"", struct.pack("<2i", 5, 6)], ids=["unstamped", "stamped"])
@pytest.mark.parametrize("form", ["<2h16f", "<2h16f38s"])
@pytest.mark.parametrize("count", [1, 5, 19])
def test_object_info_may_have_fewer_slots(count, form, stamp):
    slots = [(n + 1, 1, *(100.0 * n + place for place in range(16)), b"LINK%d" % n) for n in range(count)]
    numbers = 18 if form == "<2h16f" else 19
    data = stamp + b"".join(struct.pack(form, *slot[:numbers]) for slot in slots)
    packet = b"#MoraiObjInfo$" + struct.pack("<4i", len(data), 0, 0, 0) + data + b"\r\n"
    layout = identify(packet)
    fields = layout.decode(packet)
    assert [found["obj_id"] for found in fields["objects"]] == [slot[0] for slot in slots]
    assert [found["heading"] for found in fields["objects"]] == [slot[5] for slot in slots]
    assert layout.encode(fields) == packet
    assert ("sec" in fields) == bool(stamp)
    intake = morai.intake(Options())
    intake.feed(packet, 1)
    assert (intake.others, intake.rejected) == (1, {})
    with pytest.raises(PacketError):
        identify(packet[:-1])
