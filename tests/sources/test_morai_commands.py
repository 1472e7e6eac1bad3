"""MORAI's commands: composed from what the document allows; everything else is refused."""

import math
import struct

import pytest
from test_morai_messages import flat, packed

from motioncue.errors import PacketError
from motioncue.sources.morai.packets import COMMANDS, Sending, command, framed, identify


def test_every_command_is_composed_from_values_that_are_allowed():
    for name, packet in COMMANDS.items():
        data = packed(name)
        fields = packet.decode(data)
        values = {name: value for name, value in fields.items() if name not in packet.constants}
        for place, inner in allowed(packet):
            values[place] = inner
        for field in packet.fields.values():
            if field.when is not None and values[field.when[0]] != field.when[1]:
                values[field.name] = 0.0  # inactive
        composed = command(name, values)
        assert len(composed) == packet.size
        assert packet.decode(composed) == {**fields, **values}


def allowed(packet):
    """Yield the values in `packed` of a command's fields, moved into the range of those that have one."""
    ranged = {name: field for name, field in packet.fields.items() if math.isfinite(field.low + field.high)}
    for name, field in ranged.items():
        yield name, [field.high] * field.dtype.shape[0] if field.dtype.shape else field.high
    for name, field in packet.fields.items():
        if field.slot is not None:
            inner = field.slot.decode(bytes(field.slot.size))
            yield name, [{**inner, **dict(allowed(field.slot))}] * field.dtype.shape[0]


def test_slots_and_text_that_are_not_given_are_zero():
    ego = {"ego_index": 3, "velocity": 36.0, "gear": 4, "ctrl_mode": 1}
    data = command("multi_ego_setting", {"num_of_ego": 1, "egos": [ego]})
    assert data == packed("multi_ego_setting", [1, 0, 3, *[0.0] * 6, 36.0, 4, 1, *[0] * 10 * 19])
    load = command("scenario_load", {"file_name": "a.json", "delete_all": True})
    assert load == packed("scenario_load", ["a.json", True, *[False] * 6])


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("ego_ctrl_cmd", {"cmd_type": 1, "steering": 1.5}, "steering: found 1.5, allowed is a number from -1 to 1"),
        (
            "ego_ctrl_cmd",
            {"cmd_type": 1, "accelerator": -0.1},
            "accelerator: found -0.1, allowed is a number from 0 to 1",
        ),
        ("ego_ctrl_cmd", {"cmd_type": 4}, "cmd_type: found 4, allowed is a whole number from 1 to 3"),
        ("ego_ctrl_cmd", {"gear": 4, "steering": 0.5}, "cmd_type: missing"),
        ("ego_ctrl_cmd", {"cmd_type": 1}, r"gear: missing, allowed is a whole number from 0 to 5 \(0 M, 1 P, 2 R, "),
        ("ego_ctrl_cmd", {"gear": "X", "cmd_type": 1}, "gear: found 'X', allowed is a whole number from 0 to 5"),
        (
            "ego_ctrl_cmd",
            {"gear": "D", "cmd_type": "pedals", "velocity": 30.0},
            r"velocity: found 30\.0 with cmd_type 1, allowed is none but with cmd_type 2",
        ),
        ("ego_ctrl_cmd", {"gear": 4, "cmd_type": 2, "acceleration": 1.0}, "allowed is none but with cmd_type 3"),
        ("turn_signal_lamp", {"turn_signal": 3}, "turn_signal: found 3, allowed is a whole number from 0 to 2"),
        ("multi_ego_setting", {"egos": [{"gear": 5, "ctrl_mode": "auto"}]}, "gear: found 5, allowed .* from 1 to 4"),
    ],
)
def test_what_the_document_does_not_allow_is_refused(name, values, message):
    with pytest.raises(PacketError, match=message):
        command(name, values)


def test_steering_is_positive_to_the_right_whatever_the_simulator_takes():
    fields = COMMANDS["ego_ctrl_cmd_rear_steer"]
    given = {"gear": "D", "cmd_type": "pedals", "steering": 0.25, "rear_steering": -0.5}
    right, left = (fields.decode(command(fields.name, given, Sending(steering=side))) for side in ("right", "left"))
    assert (right["steering"], right["rear_steering"]) == (0.25, -0.5)
    assert (left["steering"], left["rear_steering"]) == (-0.25, 0.5)


def test_the_status_without_a_header_is_known_by_its_time_and_name():
    values = [1726148127, 864000000, b"Ego", *(k + 0.5 for k in range(18))]
    data = struct.pack("<qi24s18f", *values)
    packet = identify(data)
    assert flat(packet.decode(data)) == [*values[:2], "Ego", *values[3:]]
    assert list(framed(data + packed("turn_signal_lamp") + data)) == [data, packed("turn_signal_lamp"), data]
    for broken in (data[:-1], data + b"\0", struct.pack("<qi", -1, 0) + data[12:], data[:12] + b"\1" + data[13:]):
        with pytest.raises(PacketError):
            identify(broken)


@pytest.mark.parametrize(("auto", "mode", "code"), [(16, "auto", 16), (2, "auto", 2), (2, "keyboard", 1), (2, 16, 16)])
def test_automatic_control_has_the_code_that_the_simulator_takes(auto, mode, code):
    data = command("multi_ego_setting", {"egos": [{"gear": 4, "ctrl_mode": mode}, {}]}, Sending(auto=auto))
    egos = COMMANDS["multi_ego_setting"].decode(data)["egos"]
    assert [ego["ctrl_mode"] for ego in egos[:2]] == [code, 0]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("fly", {}, "found command 'fly', allowed are ego_ctrl_cmd"),
        ("ego_ctrl_cmd", {"throttle": 1.0}, "found field 'throttle', allowed are aux, ctrl_mode"),
        ("multi_ego_setting", {"egos": [{}] * 21}, "egos: found 21 values, allowed are up to 20"),
        ("multi_ego_setting", {"egos": [{"speed": 1.0}]}, "found field 'speed', allowed are ego_index"),
        ("scenario_load", {"file_name": "x" * 31}, "file_name: found .*, allowed is a text of up to 30 bytes"),
    ],
)
def test_what_is_no_command_is_refused(name, values, message):
    with pytest.raises(PacketError, match=message):
        command(name, values)


RANGES = {
    ("ego_ctrl_cmd", "ctrl_mode"): (0, 2),
    ("ego_ctrl_cmd", "gear"): (0, 5),
    ("ego_ctrl_cmd", "cmd_type"): (1, 3),
    ("ego_ctrl_cmd", "accelerator"): (0, 1),
    ("ego_ctrl_cmd", "brake"): (0, 1),
    ("ego_ctrl_cmd", "steering"): (-1, 1),
    ("ego_ctrl_cmd_rear_steer", "rear_steering"): (-1, 1),
    ("multi_ego_setting", "num_of_ego"): (0, 20),
    ("turn_signal_lamp", "turn_signal"): (0, 2),
    ("turn_signal_lamp", "emergency_signal"): (0, 1),
}


@pytest.mark.parametrize(("name", "field"), RANGES)
def test_the_ranges_of_the_document_are_those_of_the_fields(name, field):
    low, high = COMMANDS[name].fields[field].low, COMMANDS[name].fields[field].high
    assert (low, high) == RANGES[name, field]
