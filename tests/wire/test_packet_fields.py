"""The numbers of a described packet: sums, ranges, remainders, actuators by number; and text packets."""

import math
import re
import struct
from decimal import Decimal

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import motioncue
from motioncue.core.channels import ACTUATION
from motioncue.core.clock import FakeClock
from motioncue.errors import ConfigError
from motioncue.output import packet as custom
from motioncue.wire.description import Actuated, PacketTable

PLACES = {channel.name: place for place, channel in enumerate(ACTUATION)}
POSTS = {
    "post_1": Actuated("actuator_1", 0.0, -0.1, 0.1),
    "post_2": Actuated("actuator_2", 0.05, 0.0, 0.2),
}


def values_of(**channels):
    values = np.zeros(len(PLACES))
    for name, value in channels.items():
        values[PLACES[name]] = value
    return values


@pytest.fixture
def sent(probe):
    """Return a function that encodes a described packet."""

    def encode(table, actuators=POSTS, **channels):
        how = custom.encoding(msgspec.convert(table, PacketTable), actuators)
        if how.table.text:
            return probe.text_encoded(how.table, values_of(**channels), how.packet)
        packet = bytearray(how.packet)
        probe.encoded(how.table, values_of(**channels), packet)
        return bytes(packet)

    return encode


def field(type="f8", **keys):
    return {"size": int(type[1:]), "fields": [{"offset": 0, "type": type, **keys}]}


# Sums.


def test_a_sum_is_weighted_scaled_and_biased_once(sent):
    table = field(sum={"surge": 0.5, "sway": -2.0, "heave": 1.0}, scale=10.0, bias=3.0)
    assert struct.unpack("<d", sent(table, surge=4.0, sway=0.25, heave=8.0)) == (10 * (2.0 - 0.5 + 8.0) + 3.0,)


def test_a_sum_of_actuators_is_of_their_measures(sent):
    positions = {"actuator_1": 0.05, "actuator_2": 0.15}
    weights = {"post_1": 0.5, "post_2": 0.5}
    assert struct.unpack("<d", sent(field(sum=weights), **positions))[0] == pytest.approx(0.1, rel=1e-15)
    stroke = struct.unpack("<d", sent(field(sum=weights, measure="stroke"), **positions))[0]
    assert stroke == pytest.approx(0.5 * 0.05 + 0.5 * (0.15 - 0.05), rel=1e-15)
    share = struct.unpack("<d", sent(field(sum=weights, measure="share"), **positions))[0]
    assert share == pytest.approx(0.5 * 0.75 + 0.5 * 0.75, rel=1e-15)


def test_in_a_sum_an_absent_channel_has_its_value(sent):
    table = field(sum={"speed": 2.0, "surge": 1.0}, absent=7.0)
    assert struct.unpack("<d", sent(table, speed=math.nan, surge=1.0)) == (15.0,)


def test_sums_stand_beside_other_fields(sent):
    table = {
        "size": 14,
        "fields": [
            {"offset": 10, "type": "f4", "channel": "pitch"},
            {"offset": 0, "type": "i2", "sum": {"surge": 1.0, "sway": 1.0}},
            {"offset": 2, "type": "f8", "channel": "roll", "byte_order": "big"},
        ],
    }
    data = sent(table, pitch=0.5, surge=300.0, sway=-1.0, roll=-2.0)
    assert (data[:2], data[2:10], data[10:]) == (
        struct.pack("<h", 299),
        struct.pack(">d", -2.0),
        struct.pack("<f", 0.5),
    )


# Numbered actuators.


def test_actuators_are_also_known_by_number_and_missing_ones_have_their_value(sent):
    shares = [{"offset": 2 * n, "type": "u2", "channel": f"actuator_{n + 1}", "measure": "share"} for n in range(3)]
    for each in shares:
        each |= {"scale": 1000.0, "absent": 0.5}
    data = sent({"size": 6, "fields": shares}, actuator_1=0.05, actuator_2=0.05, surge=1e300)
    assert struct.unpack("<3H", data) == (750, 250, 500)


def test_a_share_needs_a_platform(sent):
    with pytest.raises(ConfigError, match=r"measure: found 'share', .* no \[platform\]"):
        sent(field(channel="actuator_1", measure="share"), actuators={})


# Range, rounding, remainder.


@pytest.mark.parametrize(
    ("type", "form", "low", "high"),
    [
        *(("i1", "b", -128, 127), ("u1", "B", 0, 255), ("i2", "h", -32768, 32767), ("u2", "H", 0, 65535)),
        *(("i4", "i", -(2**31), 2**31 - 1), ("u4", "I", 0, 2**32 - 1), ("i8", "q", -(2**63), 2**63 - 1024)),
    ],
)
@pytest.mark.parametrize("order", ["little", "big"])
def test_integers_are_rounded_and_never_wrap_around(sent, type, form, low, high, order):
    table = {**field(type, channel="surge"), "byte_order": order}
    mark = "<" if order == "little" else ">"
    for value in (1.5, 2.5, -0.4, 100.49, -1e9, 1e9, -1e300, 1e300, -math.inf, math.inf):
        (found,) = struct.unpack(f"{mark}{form}", sent(table, surge=value))
        expected = low if value <= low else high if value >= high else round(value)
        assert found == expected


def test_a_float_that_is_too_large_is_the_largest_one(sent):
    largest = float(np.finfo(np.float32).max)
    for value, expected in ((1e300, largest), (-1e300, -largest), (math.inf, largest), (1.5, 1.5)):
        assert struct.unpack("<f", sent(field("f4", channel="surge"), surge=value)) == (expected,)


def test_a_value_is_kept_between_min_and_max(sent):
    table = field("u2", channel="surge", scale=100.0, bias=512.0, min=23.0, max=1000.0)
    found = [struct.unpack("<H", sent(table, surge=value))[0] for value in (-9.0, 0.0, 1.0, 9.0)]
    assert found == [23, 512, 612, 1000]


@given(x=st.floats(-1e6, 1e6), type=st.sampled_from(["f4", "f8", "u2", "i4"]))
def test_a_remainder_is_never_the_whole(probe, x, type):
    how = custom.encoding(msgspec.convert(field(type, channel="yaw", wrap=360.0), PacketTable))
    data = bytearray(how.packet)
    probe.encoded(how.table, values_of(yaw=x), data)
    (found,) = struct.unpack({"f4": "<f", "f8": "<d", "u2": "<H", "i4": "<i"}[type], data)
    assert 0 <= found < 360
    apart = abs(found - x % 360)
    assert min(apart, 360 - apart) <= (0.5 + 1e-9 if type in ("u2", "i4") else 4e-5)


# Text.


@pytest.mark.parametrize(
    ("spec", "value", "expected"),
    [
        ("", 12.4, "12"),
        ("d", -12.5, "-12"),
        (".2f", 3.14159, "3.14"),
        (".2f", -0.004, "0.00"),
        (".1f", 0.96, "1.0"),
        (".3f", 0.0625, "0.062"),
        ("+.1f", 0.0, "+0.0"),
        ("+d", -7.0, "-7"),
        ("07.3f", 5.5, "005.500"),
        ("07.3f", -5.5, "-05.500"),
        ("+07.2f", 5.5, "+005.50"),
        ("6d", 42.0, "    42"),
        ("6.1f", -42.04, " -42.0"),
        ("d", 1e9, "99999"),
        (".1f", -1e9, "-99999.0"),
        (".9f", 0.123456789, "0.123456789"),
    ],
)
def test_numbers_are_written_like_python_writes_them(sent, spec, value, expected):
    colon = ":" if spec else ""
    assert sent({"text": f"{{surge{colon}{spec}}}"}, surge=value) == expected.encode()
    if abs(value) < 1e5 and value != -0.004:
        assert expected == format(value if "." in spec else round(value), spec)


SPECS = st.builds(
    lambda plus, zero, width, digits: f"{plus}{zero if width else ''}{width or ''}.{digits}f",
    st.sampled_from(["", "+"]),
    st.sampled_from(["", "0"]),
    st.integers(0, 20),
    st.integers(0, 9),
)


@settings(max_examples=400)
@given(spec=SPECS, x=st.one_of(st.floats(-99_999, 99_999), st.floats(-1e-3, 1e-3), st.integers(-99_999, 99_999)))
def test_any_number_in_any_format_is_the_one_meant(probe, spec, x):
    how = custom.encoding(msgspec.convert({"text": f"a{{surge:{spec}}}b"}, PacketTable))
    data = probe.text_encoded(how.table, values_of(surge=float(x)), how.packet).decode()
    assert len(data) <= how.table.largest
    found = data[1:-1]
    assert abs(Decimal(found.strip()) - Decimal(float(x))) <= Decimal("0.50001") * Decimal(10) ** -int(spec[-2])
    assert found == format(Decimal(found.strip()), spec)  # the same sign, fill and digits


def test_a_text_has_named_values_braces_and_any_byte(sent):
    table = {
        "text": "\u00ff{{X{tilt:+06.1f};{surge}}}\r\n",
        "values": {"tilt": {"sum": {"pitch": 1.0, "roll": 1.0}, "scale": 10.0, "bias": 1.0}},
    }
    assert sent(table, pitch=0.3, roll=-1.0, surge=4.6) == b"\xff{X-006.0;5}\r\n"


def test_the_numbers_of_a_text_are_kept_in_the_actuators_range(sent):
    table = {
        "text": "{post_1:.1f} {half:d} {missing:d}",
        "values": {
            "half": {"channel": "post_2", "measure": "share", "scale": 255.0},
            "missing": {"channel": "actuator_9", "measure": "share", "scale": 255.0, "absent": 0.5},
        },
    }
    assert sent(table, actuator_1=7.0, actuator_2=7.0) == b"0.1 255 128"
    how = custom.encoding(msgspec.convert(table, PacketTable), POSTS)
    assert how.table.largest == len("-0.1 255 -99999")


def test_degrees_without_sign_in_a_text(sent):
    table = {"text": "Y[{yaw:07.3f}]", "values": {"yaw": {"channel": "yaw", "scale": 1.0, "wrap": 360.0}}}
    for value, expected in ((-0.25, "359.750"), (359.9996, "000.000"), (720.5, "000.500"), (-1e-9, "000.000")):
        assert sent(table, yaw=value) == f"Y[{expected}]".encode()


CHECKED = {**field(channel="surge"), "size": 9}


STATES = {"offline": 0, "engaging": 1, "running": 2, "holding": 3, "parking": 4, "fault": 256}
AT_0 = {"offset": 0, "type": "f4", "channel": "surge"}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, ["output.packet", "size", "text"]),
        ({"text": "{surge}", "size": 4}, ["size", "text"]),
        ({"text": "nothing"}, ["'nothing'", "missing"]),
        ({"text": "{surge", "values": {}}, ["'{surge'", "{{"]),
        ({"text": "surge}"}, ["'}'"]),
        ({"text": "{surge:x}"}, ["'{surge:x}'"]),
        ({"text": "{surge:.2g}"}, ["'{surge:.2g}'"]),
        ({"text": "{surge:.2}"}, ["'{surge:.2}'"]),
        ({"text": "{surge:f}"}, ["'{surge:f}'"]),
        ({"text": "{surge:.10f}"}, ["'{surge:.10f}'"]),
        ({"text": "{surge!r}"}, ["'{surge!r}'"]),
        ({"text": "{0.__class__}"}, ["'{0.__class__}'"]),
        ({"text": "{surge:30d}"}, ["30 characters", "24"]),
        ({"text": "{surg}"}, ["'surg'", "did you mean 'surge'"]),
        ({"text": "{surge}€"}, ["'€'", "U+00FF"]),
        ({"text": "{surge}", "values": {"sway": {"channel": "sway"}}}, ["{sway}", "missing"]),
        ({"text": "{a}", "values": {"a": {}}}, ["values.a", "channel", "sum"]),
        ({"text": "{a}", "values": {"a": {"channel": "surge", "sum": {"surge": 1.0}}}}, ["channel", "sum"]),
        ({"text": "{a}", "values": {"a": {"channel": "surge", "scale": 0.0}}}, ["scale", "0"]),
        ({"text": "{a}", "values": {"a": {"sum": {"surge": 0.0}}}}, ["sum.surge", "0"]),
        ({"text": "{a}", "values": {"a": {"channel": "surge", "min": 3.0, "max": 3.0}}}, ["3 to 3"]),
        ({"text": "{a:.9f}", "values": {"a": {"channel": "surge", "max": 1e9}}}, ["15 digits"]),
        ({"text": "{a:.1f}", "values": {"a": {"channel": "surge", "wrap": 6.28}}}, ["wrap", "6.28", "0.1"]),
        ({"text": "{surge}", "counter": {"offset": 0}}, ["counter", "binary"]),
        ({"text": "{surge}", "state": {"offset": 0, **STATES}}, ["state", "binary"]),
        (
            {"size": 8, "fields": [AT_0], "state": {"offset": 4, "type": "u1", **STATES}},
            ["state.fault", "256", "0 to 255"],
        ),
        ({"size": 8, "fields": [AT_0], "state": {"offset": 3, **STATES}}, ["overlaps"]),
        ({"text": "{surge:24d}" * 30}, ["720 bytes", "512"]),
        (field("u1", channel="surge", max=256.0), ["max", "256", "255"]),
        (field("u1", channel="surge", min=-1.0), ["min", "-1"]),
        (field("u1", channel="surge", min=9.0, max=3.0), ["9 to 3"]),
        (field("u1", channel="surge", wrap=360.0), ["wrap", "360"]),
        (field("u2", channel="surge", wrap=0.5), ["wrap", "0.5"]),
        (field("u2", channel="surge", wrap=90.0, max=10.0), ["wrap", "max"]),
        (field("u2", sum={"surge": 1.0, "swai": 1.0}), ["sum", "'swai'", "sway"]),
        (field("u2"), ["channel", "sum"]),
        ({"size": 4}, ["fields", "missing"]),
        ({**field(channel="surge"), "values": {"a": {"channel": "surge"}}}, ["values", "text"]),
        (
            {**field(channel="surge"), "size": 9, "checksum": {"offset": 8, "kind": "sum8", "extra": "11" * 9}},
            ["9", "8"],
        ),
        (
            {**field(channel="surge"), "size": 9, "checksum": {"offset": 8, "kind": "sum8", "extra": "1"}},
            ["extra", "'1'"],
        ),
        ({**field(channel="surge"), "clock": {"offset": 6}}, ["'clock'", "overlaps"]),
    ],
)
def test_a_packet_that_cannot_be_is_refused_with_what_is_wrong(table, words):
    with pytest.raises(ConfigError) as caught:
        custom.encoding(msgspec.convert(table, PacketTable), {})
    for word in words:
        assert word in str(caught.value)


PROFILE = """
[source]
system = "beamng"
endpoint = "udp://127.0.0.1:4567"
[cueing]
algorithm = "direct"
[output]
motion = "udp://127.0.0.1:9"
"""


def test_a_relay_gives_text_packets_with_zeros_behind_them(tmp_path):
    path = tmp_path / "text.toml"
    path.write_text(PROFILE + 'packet = { text = "S{speed:8.2f}\\r\\n" }', encoding="utf-8")
    relay = motioncue.relay(path, clock=FakeClock())
    from motioncue.sources.beamng.packets import MOTION

    for n in range(3):
        relay.step(MOTION.encode({"velocity_y": 5.0, "position_y": 0.05 * n}))
    text = relay.packets["motion"].tobytes()
    assert re.fullmatch(rb"S    \d\.\d\d\r\n\0*", text)
