"""Commands: bad ones are refused before they are encoded, and fields that are not given are absent."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.errors import ConfigError, MotioncueError, PacketError
from motioncue.sources import SYSTEMS, command, compose
from motioncue.wire.commands import assigned, composed
from motioncue.wire.packet import Field, Packet

WHEEL = Packet(
    "wheel", 5, [Field("torque", 0, "<f4", "N m", low=-100.0, high=100.0), Field("mode", 4, "|u1", low=1, high=3)]
)
ORDER = Packet(
    "order",
    70,
    [
        Field("magic", 0, "S4"),
        Field("count", 4, "<i2", low=0),
        Field("name", 6, "S8"),
        Field("on", 14, "?"),
        Field("pedal", 15, "<f4", "", 1.0, low=0.0),
        Field("place", 19, "3<f8", "m"),
        Field("wheels", 43, (WHEEL, 4)),
        Field("spare", 63, WHEEL),
    ],
    {"magic": b"ORDR"},
)
FORM = "<4sh8s?f3d" + "fB" * 4 + "fBxx"


def order(*, count=0, name=b"", on=False, pedal=0.0, place=(0, 0, 0), wheels=(0, 0) * 4, spare=(0, 0)):
    """Return the bytes of an order as its document would have them."""
    return struct.pack(FORM, b"ORDR", count, name, on, pedal, *place, *wheels, *spare)


def test_what_is_given_is_sent_and_the_rest_is_zero():
    assert composed(ORDER, {}) == order()
    values = {"count": 3, "name": "left", "on": True, "pedal": 0.5, "place": [1.0, 2, -3.5]}
    assert composed(ORDER, values) == order(count=3, name=b"left", on=True, pedal=0.5, place=(1, 2, -3.5))


def test_slots_are_given_as_a_list_or_by_their_place():
    expected = order(wheels=(0, 0, 0, 0, -5.0, 2, 0, 0))
    slot = {"torque": -5.0, "mode": 2}
    for wheels in ([{}, {}, slot], {2: slot}, [{}, {}, slot, {}]):
        assert composed(ORDER, {"wheels": wheels}) == expected
    assert composed(ORDER, {"spare": {"mode": 1}}) == order(spare=(0, 1))
    assert composed(ORDER, {"place": {1: 4.0}}) == order(place=(0, 4, 0))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"speed": 1}, r"order: found field 'speed', allowed are count, name, on, pedal, place, wheels, spare"),
        ({"magic": "ORDR"}, r"order: found field 'magic', allowed are count, "),
        ({"count": -1}, r"order: count: found -1, allowed is a whole number from 0 to 32767"),
        ({"count": 40000}, r"order: count: found 40000, "),
        ({"count": 1.5}, r"order: count: found 1\.5, allowed is a whole number"),
        ({"count": True}, r"order: count: found True, "),
        ({"count": "1"}, r"order: count: found '1', "),
        ({"count": None}, r"order: count: found None, "),
        ({"name": "a long name"}, r"order: name: found 'a long name', allowed is a text of up to 8 bytes"),
        ({"name": "a\0b"}, r"order: name: "),
        ({"name": "straße—"}, r"order: name: "),
        ({"name": 5}, r"order: name: found 5, "),
        ({"on": 2}, r"order: on: found 2, allowed is true or false"),
        ({"on": "yes"}, r"order: on: found 'yes', "),
        ({"pedal": 1.01}, r"order: pedal: found 1\.01, allowed is a number from 0 to 1"),
        ({"pedal": -0.01}, r"order: pedal: "),
        ({"pedal": math.nan}, r"order: pedal: found nan, "),
        ({"place": [1, 2]}, r"order: place: found 2 values, allowed are 3"),
        ({"place": [1, 2, 3, 4]}, r"order: place: found 4 values, allowed are 3"),
        ({"place": 5}, r"order: place: found 5, allowed is a list of 3"),
        ({"place": [1, 2, math.inf]}, r"order: place\[2\]: found inf, "),
        ({"place": {3: 1}}, r"order: place: found index 3, allowed are 0 to 2"),
        ({"place": {"x": 1}}, r"order: place: found index 'x', "),
        ({"wheels": [{}] * 5}, r"order: wheels: found 5 values, allowed are up to 4"),
        ({"wheels": {4: {}}}, r"order: wheels: found index 4, allowed are 0 to 3"),
        ({"wheels": [{"torque": 101, "mode": 1}]}, r"order: wheels\[0\]\.torque: found 101, .* from -100 to 100 N m"),
        ({"wheels": [{"torque": 1}]}, r"order: wheels\[0\]\.mode: missing, allowed is a whole number from 1 to 3"),
        ({"wheels": [{"spin": 1}]}, r"order: wheels\[0\]\.found field 'spin', allowed are torque, mode"),
        ({"wheels": [5]}, r"order: wheels\[0\]: found 5, allowed is a table of torque, mode"),
        ({"spare": [{}]}, r"order: spare: found \[\{\}\], allowed is a table"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_its_path(values, message):
    with pytest.raises(PacketError, match="^" + message):
        composed(ORDER, values)


def test_numbers_of_numpy_are_numbers():
    assert composed(ORDER, {"count": np.int64(3), "pedal": np.float32(0.5)}) == order(count=3, pedal=0.5)
    assert composed(ORDER, {"count": 3.0}) == order(count=3)


@pytest.mark.search
@given(st.dictionaries(st.sampled_from(list(ORDER.fields)), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["torque", "mode", 0, 1]), inner),
)))  # fmt: skip
def test_any_values_are_composed_or_refused(values):
    try:
        data = composed(ORDER, values)
    except PacketError:
        return
    assert len(data) == 70
    assert 0.0 <= ORDER.decode(data)["pedal"] <= 1.0
    assert all(abs(wheel["torque"]) <= 100 for wheel in ORDER.decode(data)["wheels"])


# As on the command line.


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ([], {}),
        (["count=3", "name=left", "on=true", "pedal=0.5"], {"count": 3, "name": "left", "on": True, "pedal": 0.5}),
        (["name=3", " count = 4"], {"name": "3", "count": 4}),
        (["name=a=b"], {"name": "a=b"}),
        (["place=[1, 2, 3]"], {"place": [1, 2, 3]}),
        (["place[0]=1", "place[2]=3"], {"place": {0: 1, 2: 3}}),
        (["wheels[2].torque=5", "wheels[2].mode=1"], {"wheels": {2: {"torque": 5, "mode": 1}}}),
        (['wheels[1]={"mode": 2}'], {"wheels": {1: {"mode": 2}}}),
        (['wheels=[{"mode": 2}]'], {"wheels": [{"mode": 2}]}),
        (["spare.mode=2"], {"spare": {"mode": 2}}),
    ],
)
def test_assignments_are_values(texts, values):
    assert assigned(ORDER, texts) == values


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["count"], "found 'count', allowed is FIELD=VALUE"),
        (["speed=1"], "found field 'speed', allowed are count, "),
        (["magic=ORDR"], "found field 'magic', "),
        (["count=many"], "count: found 'many', allowed is a whole number"),
        (["count=1", "count=2"], "count: given twice"),
        (["place=[1, 2, 3]", "place[0]=4"], "place\\[0\\]: given twice"),
        (["wheels[0].mode=1", "wheels=[]"], "wheels: given twice"),
        (["count[0]=1"], "count is not repeated"),
        (["count.x=1"], "allowed are paths"),
        (["wheels[0]..mode=1"], "allowed are paths"),
        (["place=" + "[" * 100_000], "place: found "),
        (["wheels[x].mode=1"], "allowed are paths"),
        (["=1"], "allowed are paths"),
        (["wheels[0].spin=1"], "found field 'spin', allowed are torque, mode"),
    ],
)
def test_an_assignment_that_leads_nowhere_is_refused(texts, message):
    with pytest.raises(PacketError, match=message):
        assigned(ORDER, texts)


@given(
    st.lists(
        st.text(max_size=20) | st.builds("{}={}".format, st.sampled_from(["count", "wheels[1]", "place[0]"]), st.text())
    )
)
def test_any_assignments_are_read_or_refused(texts):
    try:
        composed(ORDER, assigned(ORDER, texts))
    except PacketError:
        return


# The systems' commands.

COMMANDS = [(name, message) for name, module in SYSTEMS.items() for message in getattr(module, "COMMANDS", {})]


def fields(packet, path=""):
    """Yield every field of a command that is a number, the first of each that is repeated, with its path."""
    for name, field in packet.fields.items():
        if name in packet.constants:
            continue
        where = f"{path}{name}" + ("[0]" if field.dtype.shape else "")
        if field.slot is not None:
            yield from fields(field.slot, where + ".")
        elif field.dtype.base.kind in "fiu":
            yield where, field


def needed(packet, path=""):
    """Return the fields that must be given because they cannot be zero."""
    return {
        where: field.low for where, field in fields(packet, path) if field.needed or not field.low <= 0 <= field.high
    }


@pytest.mark.parametrize(("system", "message"), COMMANDS)
def test_every_field_takes_its_documents_range_and_nothing_beyond(system, message):
    packet, counter = command(system, message)
    base = needed(packet) | ({counter: 7} if counter else {})
    tried = 0
    for where, field in fields(packet):
        for edge, beyond in ((field.low, -1), (field.high, 1)):
            if not math.isfinite(edge):
                continue
            within = assigned(packet, [f"{path}={value}" for path, value in {**base, where: edge}.items()])
            assert len(compose(system, message, within)) == packet.size
            outside = edge + beyond * max(1, abs(edge) * 1e-6)
            broken = assigned(packet, [f"{path}={value}" for path, value in {**base, where: outside}.items()])
            with pytest.raises(PacketError, match="allowed is a"):
                compose(system, message, broken)
            tried += 1
    assert tried > 0 or not any(math.isfinite(field.low + field.high) for _, field in fields(packet))


@pytest.mark.parametrize(("system", "message"), COMMANDS)
def test_a_command_is_a_packet_of_its_system(system, message):
    packet, counter = command(system, message)
    texts = [f"{path}={value}" for path, value in needed(packet).items() if "[" not in path]
    data = compose(system, message, assigned(packet, texts) | ({counter: 7} if counter else {}))
    assert SYSTEMS[system].identify(data).name == packet.name


def test_a_simulink_control_needs_its_number_and_touches_nothing_else():
    for values in ({}, {"brake_pedal": 0.5}, {"id": math.nan}):
        with pytest.raises(PacketError, match="control: id: missing; it numbers the commands"):
            compose("beamng-simulink", "control", values)
    data = struct.unpack(
        "<64d", compose("beamng-simulink", "control", {"id": 9, "steering": -1, "brake_pedal": math.nan})
    )
    assert (data[0], data[3]) == (9.0, -1.0)
    assert all(value != value for place, value in enumerate(data) if place not in (0, 3))


@pytest.mark.parametrize(
    ("system", "message", "values", "text"),
    [
        (
            "morai",
            "set_traffic_light",
            {"status": 2},
            "status: found 2, allowed is any of -1 default, 0 off, 1 red, 4 yellow, ",
        ),
        ("morai", "set_traffic_light", {"status": 40}, "status: found 40, "),
        (
            "morai",
            "multi_ego_setting",
            {"egos": [{"gear": 1, "ctrl_mode": 3}]},
            "found 3, allowed is any of 1 keyboard, 16 auto",
        ),
        ("morai", "turn_signal_lamp", {"aux": [0, 1, 0]}, r"aux\[1\]: found 1, "),
        ("beamng-simulink", "control", {"id": 1, "drive_mode": 0.5}, r"drive_mode: found 0\.5, allowed is any of 0, 1"),
        ("beamng-simulink", "control", {"id": 1.5}, r"id: found 1\.5, allowed are whole numbers"),
    ],
)
def test_a_value_that_the_document_does_not_name_is_refused(system, message, values, text):
    with pytest.raises(PacketError, match=text):
        compose(system, message, values)


def test_values_may_be_given_by_their_names():
    fields = command("morai", "ego_ctrl_cmd")[0]
    named = compose(
        "morai", "ego_ctrl_cmd", {"ctrl_mode": "auto", "gear": "R", "cmd_type": "velocity", "velocity": 5.0}
    )
    assert named == compose("morai", "ego_ctrl_cmd", {"ctrl_mode": 2, "gear": 2, "cmd_type": 2, "velocity": 5.0})
    assert list(fields.decode(named).values())[3:7] == [2, 2, 2, 5.0]
    light = compose("morai", "set_traffic_light", {"index": "C119BS010007", "status": "yellow+green_left"})
    assert light[-4:-2] == struct.pack("<h", 36)


def test_every_light_of_the_document_can_be_set():
    for status in (-1, 0, 1, 4, 16, 32, 5, 20, 36, 48):
        data = compose("morai", "set_traffic_light", {"status": status})
        assert data[-4:-2] == struct.pack("<h", status)


@pytest.mark.parametrize(
    ("system", "message", "error", "text"),
    [
        ("beamng", "motion", ConfigError, "found 'beamng', allowed are beamng-simulink"),
        ("dk", "motion", ConfigError, "found 'dk', allowed are"),
        ("beamng-simulink", "state", PacketError, "found command 'state', allowed is control"),
    ],
)
def test_a_system_without_commands_gets_none(system, message, error, text):
    assert issubclass(error, MotioncueError)
    with pytest.raises(error, match=text):
        compose(system, message, {})
