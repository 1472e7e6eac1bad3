"""Checksums at the end of text packets, as hexadecimal digits."""

import binascii
from functools import reduce

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.errors import ConfigError, PacketError
from motioncue.output import packet as custom
from motioncue.output.described import Described
from motioncue.profile.profile import parse_profile
from motioncue.wire.description import PacketTable

PROFILE = """
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
[cueing]
algorithm = "direct"
[output]
motion = "udp://127.0.0.1:9999"
"""
AT_REST = b"BNG1" + bytes(84)


def packet_of(**table):
    """Return the packet that a relay sends for a car at rest."""
    relay = motioncue.relay(parse_profile(PROFILE, overrides=[{"output.packet": table}]), clock=FakeClock(10**9))
    assert relay.step(AT_REST)
    return bytes(relay.packets["motion"]).rstrip(b"\0")


def test_a_sentence_of_nmea_has_the_checksum_of_its_standard():
    """A published example sentence: between $ and *, exclusive or of all bytes, two capital digits."""
    packet = packet_of(
        text="$GPGLL,{latitude:.3f},N,00146.110,E,142451,A*{checksum:02X}\r\n",
        values={"latitude": {"channel": "surge", "bias": 5057.97, "max": 9000}},
        checksum={"kind": "xor8", "first": 1, "end": -1},
    )
    assert packet == b"$GPGLL,5057.970,N,00146.110,E,142451,A*27\r\n"


@pytest.mark.parametrize(
    ("kind", "digits", "of"),
    [
        ("xor8", "02X", lambda data: reduce(int.__xor__, data)),
        ("sum8", "02x", lambda data: sum(data) % 256),
        ("sum8-negated", "02X", lambda data: -sum(data) % 256),
        ("sum16", "04X", lambda data: sum(data)),
        ("crc16-xmodem", "04x", lambda data: binascii.crc_hqx(data, 0)),
        ("crc32", "08X", binascii.crc32),
    ],
)
@given(surge=st.floats(-1e4, 1e4), first=st.integers(0, 2), back=st.integers(0, 1))
@pytest.mark.check
def test_the_digits_are_those_of_other_programs_at_any_length(kind, digits, of, surge, first, back):
    values = {"a": {"channel": "surge", "bias": surge}}
    checksum = {"kind": kind, "first": first, "end": -back} if back else {"kind": kind, "first": first}
    table = {"text": f"#A{{a:.2f}};{{checksum:{digits}}}!", "values": values, "checksum": checksum}
    packet = packet_of(**table)
    body = f"#A{round(surge, 2) + 0.0:.2f};".encode()
    expected = body + format(of(body[first : len(body) - back]), digits).encode() + b"!"
    assert packet == expected
    described = Described(msgspec.convert(table, PacketTable))
    assert described.identify(packet).decode(packet) == {"a": pytest.approx(surge, abs=0.0051)}
    pieces, rest = described.split(b"x" + packet + packet[:-1])
    assert packet in pieces
    assert rest


def test_a_wrong_checksum_is_said():
    table = {"text": "X{surge:.1f}*{checksum:02X}", "checksum": {"kind": "xor8", "end": -1}}
    described = Described(msgspec.convert(table, PacketTable))
    good = packet_of(**table)
    described.identify(good)
    described.identify(good.lower().replace(b"x", b"X"))
    for wrong in (good[:-2] + b"00", good.replace(b"0.0", b"0.1")):
        with pytest.raises(PacketError, match="whose checksum is wrong"):
            described.identify(wrong)


@pytest.mark.parametrize(
    ("text", "checksum", "message"),
    [
        ("X{surge}*{checksum:02X}", None, "output.packet.checksum: missing"),
        (
            "X{surge}*",
            {"kind": "xor8"},
            r"output.packet.text: found no place for the checksum, such as \{checksum:02X\}",
        ),
        ("X{surge}*{checksum:04X}", {"kind": "xor8"}, r"found \{checksum:04X\}, allowed is \{checksum:02X\} for xor8"),
        ("X{surge}*{checksum:02x}", {"kind": "crc32"}, r"allowed is \{checksum:08x\} for crc32"),
        ("X{checksum:02X}{surge}", {"kind": "xor8"}, r"found something in braces behind \{checksum\}"),
        ("X{surge}*{checksum:02X}{checksum:02X}", {"kind": "xor8"}, "behind"),
        ("X{surge}{checksum:02X}", {"kind": "xor8"}, r"a digit right behind \{surge\}"),
        ("X{surge}*{checksum:02X}", {"kind": "xor8", "offset": 3}, "checksum.offset: found 3, allowed in a binary"),
        ("X{surge}*{checksum:02X}", {"kind": "xor8", "byte_order": "big"}, "checksum.byte_order"),
        ("X{surge}*{checksum:02X}", {"kind": "xor8", "end": 3}, "an end of 0 or below"),
        ("X{surge}*{checksum:02X}", {"kind": "xor8", "end": -4}, "one or more of the 3 bytes or more"),
        ("X{surge}*{checksum:02X}", {"kind": "xor8", "first": 3}, "one or more of the 3 bytes or more"),
        ("X{surge}*{checksum:02X}", {"kind": "xor8", "first": 2, "end": -1}, "one or more of the 3 bytes or more"),
        ("X{surge}*{checksum:X}", {"kind": "xor8"}, "name and a format"),
        ("{checksum:02X}", {"kind": "xor8"}, "found bytes|missing"),
    ],
)
def test_a_checksum_that_does_not_fit_its_text_is_refused(text, checksum, message):
    table = msgspec.convert({"text": text} | ({"checksum": checksum} if checksum else {}), PacketTable)
    with pytest.raises(ConfigError, match=message):
        custom.encoding(table)


def test_a_binary_packet_counts_back_too_and_wants_an_offset():
    fields = [{"offset": 0, "type": "f4", "channel": "surge"}]
    table = {"size": 6, "fields": fields, "constants": [{"offset": 4, "bytes": "2a"}]}
    assert packet_of(**table, checksum={"offset": 5, "kind": "sum8-inverted", "end": -1}) == b"\0\0\0\0\x2a\xff"
    with pytest.raises(ConfigError, match=r"checksum\.offset: missing"):
        packet_of(**table, checksum={"kind": "sum8"})
