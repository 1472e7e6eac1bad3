"""Any described packet is refused, or encodes any values within its bytes and is decoded again."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from motioncue.core.channels import ACTUATION
from motioncue.errors import ConfigError
from motioncue.output import packet as custom
from motioncue.output.described import Described
from motioncue.wire.checksum import CHECKSUMS
from motioncue.wire.description import Actuated, PacketTable

pytestmark = pytest.mark.search

POSTS = {f"post_{n}": Actuated(f"actuator_{n}", 0.0, -0.1, 0.1) for n in range(1, 4)}
NAMES = ["surge", "yaw", "speed", "post_1", "post_3", "actuator_2", "actuator_7", "nobody", "time", "up_up"]
OFFSETS = st.integers(0, 40) | st.sampled_from([500, 508, 511])
FACTORS = st.sampled_from([0.0, 1.0, -1.0, 1e12, -1e12, 1e-12, 65535.0, 0.5]) | st.floats(-1e12, 1e12)
ORDERS = st.sampled_from(["little", "big"])
UNSIGNED = st.sampled_from(["u1", "u2", "u4"])
BYTES = st.sampled_from(["00", "ff ff", "4d 43 01", "zz", ""])


def some(**keys):
    """Return a strategy of tables, each key there or not."""
    return st.fixed_dictionaries({}, optional=keys)


NUMBER = {
    "measure": st.sampled_from(["position", "stroke", "share"]),
    "scale": FACTORS,
    "bias": FACTORS,
    "absent": FACTORS,
    "min": FACTORS,
    "max": FACTORS,
    "wrap": st.sampled_from([360.0, 1.0, 0.1, 65536.0, 1e12]),
}
WHAT = st.fixed_dictionaries({"channel": st.sampled_from(NAMES)}) | st.fixed_dictionaries(
    {"sum": st.dictionaries(st.sampled_from(NAMES), FACTORS, min_size=1, max_size=4)}
)
VALUES = st.builds(lambda what, more: {**what, **more}, WHAT, some(**NUMBER) | st.just({}))
FIELDS = st.builds(
    lambda value, place: {**value, **place},
    VALUES,
    st.fixed_dictionaries(
        {"offset": OFFSETS, "type": st.sampled_from(["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8"])},
        optional={"byte_order": ORDERS},
    ),
)
STATES = ("offline", "engaging", "running", "holding", "parking", "fault")
BINARY = st.fixed_dictionaries(
    {"size": st.integers(1, 48) | st.just(512), "fields": st.lists(FIELDS, min_size=1, max_size=4)},
    optional={
        "byte_order": ORDERS,
        "scale": FACTORS,
        "constants": st.lists(st.fixed_dictionaries({"offset": OFFSETS, "bytes": BYTES}), max_size=2),
        "counter": st.fixed_dictionaries({"offset": OFFSETS, "type": UNSIGNED}, optional={"byte_order": ORDERS}),
        "state": st.fixed_dictionaries(
            {"offset": OFFSETS, **dict.fromkeys(STATES, st.integers(0, 255))}, optional={"type": UNSIGNED}
        ),
        "clock": st.fixed_dictionaries({"offset": OFFSETS}, optional={"unit_s": st.sampled_from([1e-6, 0.001, 1.0])}),
        "checksum": st.fixed_dictionaries(
            {"offset": OFFSETS, "kind": st.sampled_from(list(CHECKSUMS))},
            optional={"first": OFFSETS, "end": st.integers(-64, 512), "extra": BYTES},
        ),
    },
)
PIECES = st.sampled_from(
    [
        "X",
        "{{",
        "}}",
        "\r\n",
        "{",
        "}",
        "é",
        "€",
        " ",
        "-",
        "7",
        "{surge}",
        "{yaw:+09.3f}",
        "{checksum:02X}",
        "{checksum:04x}",
    ]
) | st.builds(
    lambda name, spec: f"{{{name}{spec}}}",
    st.sampled_from(["a", "b", "post_1", "speed", "nobody"]),
    st.sampled_from(["", ":d", ":.2f", ":+07.1f", ":24.9f", ":012d", ":99d", ":x"]),
)
IN_TEXT = st.fixed_dictionaries(
    {"kind": st.sampled_from(["xor8", "sum16", "crc16-modbus"])},
    optional={"first": st.integers(0, 3), "end": st.integers(-3, 1), "extra": BYTES, "offset": st.just(1)},
)
TEXTS = st.fixed_dictionaries(
    {"text": st.lists(PIECES, min_size=1, max_size=12).map("".join)},
    optional={
        "scale": FACTORS,
        "values": st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2),
        "checksum": IN_TEXT,
    },
)
OTHERS = st.lists(st.builds(lambda table: {**table, "every_s": 1.0}, BINARY | TEXTS), max_size=2)
CHANNELS = st.floats(-1e300, 1e300) | st.sampled_from([math.inf, -math.inf, math.nan, 0.0, -0.0, 0.1, -3.0])
WHOLE = settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def encoded(probe, how, values):
    if how.table.text:
        data = probe.text_encoded(how.table, values, how.packet)
        return data if how.seal is None else how.seal.sealed(data)
    packet = bytearray(how.packet)
    probe.encoded(how.table, values, packet)
    return how.seal.sealed(packet, 10**12)


@WHOLE
@given(table=BINARY | TEXTS, seed=st.lists(CHANNELS, min_size=6, max_size=6))
def test_any_packet_is_refused_or_stays_within_its_bytes(probe, table, seed):
    described = msgspec.convert(table, PacketTable)
    try:
        how = custom.encoding(described, POSTS)
    except ConfigError:
        return
    assert how.table.largest <= 512
    values = np.resize(np.array(seed), len(ACTUATION))
    data = encoded(probe, how, values)
    assert len(data) == how.table.size or (how.table.text and len(data) <= how.table.largest)
    # The other end understands it, and no number is infinite or NaN.
    decoder = Described(described)
    fields = decoder.identify(data).decode(data)
    assert all(math.isfinite(value) for value in fields.values())
    decoder.channels(fields)
    assert b"".join(decoder.framed(data + data)) == data + data


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(table=BINARY | TEXTS, others=OTHERS, junk=st.binary(max_size=100))
def test_any_other_packets_are_refused_by_their_place_or_found_beside_it(probe, table, others, junk):
    described = msgspec.convert({**table, "others": others}, PacketTable)
    try:
        custom.encoding(msgspec.convert(table, PacketTable), POSTS)
    except ConfigError:
        return
    try:
        how = custom.encoding(described, POSTS)
    except ConfigError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert refused.startswith("output.packet.others[")
        return
    values = np.zeros(len(ACTUATION))
    packets = [encoded(probe, each, values) for each in (how, *(other for other, _ in how.others))]
    decoder = Described(described)
    for packet in packets:
        assert decoder.identify(packet).name in ("motion", "other_1", "other_2")
    pieces, rest = decoder.split(junk + b"".join(packets))
    assert b"".join(pieces) + rest == junk + b"".join(packets)


@settings(max_examples=200)
@given(table=TEXTS, junk=st.binary(max_size=300) | st.just(b"1" * 300) | st.just(b" " * 300) | st.just(b"-1.1" * 80))
def test_whatever_comes_is_split_without_loss(table, junk):
    try:
        decoder = Described(msgspec.convert(table, PacketTable))
        custom.encoding(msgspec.convert(table, PacketTable), POSTS)
    except ConfigError:
        return
    pieces, rest = decoder.split(junk)
    assert b"".join(pieces) + rest == junk
