"""``motioncue decode``: packages built by hand, a real recording, captured packets."""

import json
import math
import struct

import pytest
from click.testing import CliRunner

from motioncue.cli import cli
from motioncue.recording.recording import sample_recording
from motioncue.sources import SYSTEMS

FRAME = struct.Struct("<HBd3f3f4f3f3f3f3f2f")
INIT = struct.Struct("<HB9f")
VALUES = tuple(0.5 * k for k in range(1, 26))  # every one is exact in single precision

BRAKING = (
    "424e473168c2a9c4fe6fbc43c021da3d7e032ec2d112a23f482c95bb572799be517b2ec1e98ff3bef00affbc7db1aab93be07f3fc03d92ba3773"
    "fbbc00d0c5bf96a2a13b3dd648bdd35c08bc95a40a424534b1c28a7f6ec1"
)
SLOPE = (
    "424e4731fbdca9c10c9c5ec36e45214161208738c3f8263a7802efb926d286bab0d569ba83c6f0ba265ad4b969054a3fa83c1d3fe081873b0dc6"
    "683f68c248c0ab4d88b84cb16db9ceb9f0b8f15c0dbda96f193de49f21be"
)


def decode(*arguments, data=None):
    """Run the command; return what it printed as JSON, a line each."""
    result = CliRunner().invoke(cli, ["decode", *arguments, "--json"], input=data)
    assert result.exit_code == 0, result.output
    return [json.loads(line, parse_constant=pytest.fail) for line in result.stdout.splitlines()]


def refusal(*arguments, data=None):
    """Run the command; return its one line on stderr."""
    result = CliRunner().invoke(cli, ["decode", *arguments], input=data)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def frame(**changes):
    """Return a frame with a value of its own in every field, packed by hand."""
    values = list(VALUES)
    for place, value in changes.items():
        values[int(place[1:])] = value
    return FRAME.pack(107, 2, *values)


def test_every_field_of_a_frame_by_name():
    (found,) = decode("city-car-driving", "--hex", frame().hex())
    v = list(VALUES)
    assert found == {
        "system": "city-car-driving",
        "message": "frame",
        "fields": {
            "size": 107,
            "type": 2,
            "frame_time": v[0],
            "position": v[1:4],
            "unused": v[4:7],
            "orientation": v[7:11],
            "velocity": v[11:14],
            "acceleration": v[14:17],
            "angular_velocity": v[17:20],
            "angular_acceleration": v[20:23],
            "force_feedback_frequency": v[23],
            "force_feedback_amplitude": v[24],
        },
    }


def test_init_and_replies():
    init = INIT.pack(39, 1, 0.25, -0.5, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0)
    replies = struct.pack("<HBHB", 6, 0, 513, 7) + struct.pack("<HBB", 4, 1, 9)
    found = decode("city-car-driving", "--hex", (init + replies).hex())
    assert [packet["message"] for packet in found] == ["init", "init_reply", "frame_reply"]
    assert found[0]["fields"]["driver_position"] == [0.25, -0.5, 1.0]
    assert found[0]["fields"]["forward"] == [0.0, 0.0, 1.0]
    assert found[1]["fields"] == {"size": 6, "type": 0, "identifier": 513, "protocol_version": 7}
    assert found[2]["fields"] == {"size": 4, "type": 1, "code": 9}


@pytest.mark.parametrize("digits", ["04 00 01 00", "04:00:01:00", "0x04 0x00 0x01 0x00", "0x04000100", "04000100\n"])
def test_hexadecimal_may_be_written_as_people_do(digits):
    (found,) = decode("city-car-driving", "--hex", digits)
    assert found["message"] == "frame_reply"


def test_numbers_that_json_cannot_say_are_null():
    (found,) = decode("city-car-driving", "--hex", frame(v0=math.inf, v2=math.nan, v12=-math.inf).hex())
    assert found["fields"]["frame_time"] is None
    assert found["fields"]["position"] == [VALUES[1], None, VALUES[3]]
    assert found["fields"]["velocity"] == [VALUES[11], None, VALUES[13]]


def test_the_recording_that_comes_with_the_package():
    data = sample_recording().read_bytes()
    found = decode("city-car-driving", str(sample_recording()))
    assert [packet["message"] for packet in found] == ["init"] + ["frame"] * ((len(data) - 39) // 107)
    for index in (0, 1, 1000, len(found) - 2):
        values = FRAME.unpack_from(data, 39 + 107 * index)
        fields = found[1 + index]["fields"]
        assert fields["frame_time"] == values[2]
        assert fields["orientation"] == list(values[9:13])
        assert fields["angular_acceleration"] == list(values[22:25])


def test_standard_input():
    data = sample_recording().read_bytes()[: 39 + 107]
    assert [packet["message"] for packet in decode("city-car-driving", "-", data=data)] == ["init", "frame"]


def test_captured_braking_car():
    (found,) = decode("dk", "--hex", BRAKING)
    fields = found["fields"]
    assert found["message"] == "motion"
    assert fields["magic"] == "BNG1"
    assert fields["sway"] == pytest.approx(-0.30, abs=0.005)
    assert fields["surge"] == pytest.approx(-10.91, abs=0.005)
    assert math.hypot(fields["velocity_x"], fields["velocity_y"]) == pytest.approx(43.5, abs=0.1)


def test_captured_car_parked_on_a_slope():
    (found,) = decode("dk", "--hex", SLOPE)
    fields = found["fields"]
    assert [fields[name] for name in ("sway", "surge", "heave")] == pytest.approx([-0.001, -0.001, -0.002], abs=5e-4)
    assert fields["up_z"] == pytest.approx(math.cos(math.radians(52.0)), abs=0.005)


def test_gauges_with_text_as_strings():
    data = struct.pack(
        "<I4sHBB7f2I3f16s16si", 1500, b"beam", 16384, 2, 0, *(0.5 * k for k in range(7)), 1, 2, 0.25, 0.5, 0.75,
        b"one", b"two", -3,
    )  # fmt: skip
    fields = decode("dk", "--hex", data.hex())[0]["fields"]
    assert (fields["time"], fields["car"], fields["flags"], fields["gear"]) == (1500, "beam", 16384, 2)
    assert (fields["speed"], fields["engine_speed"]) == (0.0, 0.5)
    assert (fields["display_1"], fields["display_2"], fields["id"]) == ("one", "two", -3)


def test_people_see_units():
    result = CliRunner().invoke(cli, ["decode", "city-car-driving", "--hex", frame().hex()])
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert result.exit_code == 0
    assert rows["velocity"] == ["6", "6.5", "7", "m/s"]
    assert rows["acceleration"][-1] == "m/s^2"
    assert rows["angular_velocity"][-1] == "rad/s"
    assert rows["frame_time"] == ["0.5", "s"]


@pytest.mark.parametrize(
    ("system", "data", "reason"),
    [
        ("city-car-driving", frame()[:-1], "106 bytes"),
        ("city-car-driving", frame() + b"\x6b", "at offset 107"),
        ("city-car-driving", struct.pack("<HBB", 4, 77, 0), "type 77"),
        ("city-car-driving", b"\x00\x6a" + frame()[2:], "offset 0"),
        ("city-car-driving", b"\x02\x00\x01", "size 2"),
        ("city-car-driving", b"", "no bytes"),
        ("dk", bytes.fromhex(BRAKING)[:59], "59 bytes"),
        ("dk", b"XXXX" + bytes.fromhex(BRAKING)[4:], "58 58 58 58"),
        ("dk", b"", "no bytes"),
    ],
)
def test_wrong_bytes_are_refused_with_the_reason(system, data, reason):
    assert reason in refusal(system, "--hex", data.hex())
    if reason == "at offset 107":  # what comes before can be read
        return
    assert reason in refusal(system, "-", data=data)


def test_a_stream_that_goes_wrong_is_decoded_up_to_there():
    result = CliRunner().invoke(cli, ["decode", "city-car-driving", "-", "--json"], input=2 * frame() + b"\x6b")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert "byte 214: 1 bytes were not read: city-car-driving: found 1 bytes at offset 214" in result.stderr


def test_the_place_of_a_wrong_package_is_named():
    assert "packet 1: " in refusal("city-car-driving", "--hex", (frame() + struct.pack("<HBB", 4, 77, 0)).hex())


def test_wrong_digits_and_files_are_refused(tmp_path):
    assert "'zz'" in refusal("dk", "--hex", "zz")
    assert "'123'" in refusal("dk", "--hex", "123")
    missing = str(tmp_path / "missing.bin")
    assert missing in refusal("dk", missing)
    assert f"allowed are {', '.join(SYSTEMS)}" in refusal("nothing", "--hex", "00")


@pytest.mark.parametrize("arguments", [("dk",), ("dk", "file.bin", "--hex", "00")])
def test_either_a_file_or_digits(arguments):
    result = CliRunner().invoke(cli, ["decode", *arguments])
    assert result.exit_code == 2
    assert "either FILE or --hex" in result.stderr


def test_repeated_slots_are_shown_one_by_one_with_their_units():
    car = struct.pack("<2h16f38s", 3, 1, *(0.5 * k for k in range(16)), b"A219")
    data = b"#MoraiObjInfo$" + struct.pack("<6i", 2128, 0, 0, 0, 10, 20) + car + bytes(19 * 106) + b"\r\n"
    (found,) = decode("morai", "--hex", data.hex())
    objects = found["fields"]["objects"]
    assert len(objects) == 20
    assert (objects[0]["obj_id"], objects[0]["velocity"], objects[0]["link_id"]) == (3, [5.0, 5.5, 6.0], "A219")
    assert objects[19]["obj_id"] == 0
    result = CliRunner().invoke(cli, ["decode", "morai", "--hex", data.hex()])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "  objects[0]" in lines
    assert "    velocity       5  5.5  6 km/h" in lines
    assert [line for line in lines if line.endswith("  empty")] == [f"  objects[{k}]  empty" for k in range(1, 20)]


def test_text_that_is_no_text_can_be_shown():
    data = b"#TrafficLight$" + struct.pack("<4i", 16, 0, 0, 0) + b"\xff\xfe" + bytes(14) + b"\r\n"
    (found,) = decode("morai", "--hex", data.hex())
    assert found["fields"]["index"].encode("utf-8", "surrogateescape") == b"\xff\xfe"
    assert CliRunner().invoke(cli, ["decode", "morai", "--hex", data.hex()]).exit_code == 0
