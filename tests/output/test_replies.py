"""Replies of controllers: bytes of their documents, found among others, believed only as far as they can be."""

import itertools
import struct

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.errors import ConfigError
from motioncue.output.packet import encoding, replies_of
from motioncue.safety.supervisor import Platform
from motioncue.wire.description import Actuated, PacketTable, packet_presets

POSTS = {f"post_{n}": Actuated(f"actuator_{n}", 0.0, -0.1, 0.1) for n in range(1, 4)}
S = 10**9
T = S // 20  # from one answer to the next
UNREADY, UNENGAGED, FAULTY = Platform.UNREADY, Platform.UNENGAGED, Platform.FAULTY
STOPPED, SILENT = Platform.STOPPED, Platform.SILENT


def replies(preset=None, reply=None, actuators=POSTS, *, stream):
    keys = packet_presets()[preset] if preset else {"size": 1}
    return replies_of(
        msgspec.convert({**keys, **({"reply": reply} if reply else {})}, PacketTable), actuators, stream=stream
    )


def moog(state, faults=0, inputs=0):
    """Return the response of MCIS's header: faults, inputs, state, roll, pitch, heave, surge, yaw, lateral, a spare."""
    return struct.pack(">3I6fI", faults, inputs, state, 0.1, 0.2, -0.2286, 0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("response", "flags"),
    [
        (moog(0x20), UNREADY | UNENGAGED),  # powering up
        (moog(0x21), UNENGAGED),  # idle
        (moog(0x22), UNENGAGED),  # standby
        (moog(0xA3), 0),  # engaged, whatever the type of the feedback
        (moog(0x27), UNENGAGED),  # parking
        (moog(0x28), UNREADY | UNENGAGED | FAULTY),  # fault 1
        (moog(0x2C), UNREADY | UNENGAGED | FAULTY),  # inhibited
        (moog(0x23, faults=0x0400), FAULTY),  # a latched fault: the motors are too hot
        (moog(0x23, faults=0x8000), STOPPED),
        (moog(0x23, inputs=0x80), STOPPED),
        (moog(0x23)[:-1], UNREADY | UNENGAGED),  # none of its responses
    ],
)
def test_moog(response, flags):
    base = replies("moog-6dof2000e", actuators={}, stream=False)
    assert base.flags(0) == UNREADY | UNENGAGED
    base.hear(response, S)
    assert base.flags(S) == flags
    assert base.said()["received"] == (len(response) == 40)


def smc3(*positions, disabled=0):
    """Return what its firmware answers to [rdA][rdB][rdC][rdY] at positions of 0 to 1023; the divider is 1."""
    values = [b"[%c" % motor + bytes((at // 4, 128)) + b"]" for motor, at in zip(b"ABC", positions, strict=True)]
    return b"".join(values) + b"[Y" + bytes((16 + disabled, 0)) + b"]"


def test_smc3():
    rig = replies("smc3", stream=True)
    for n in (1, 2):  # what it says has to come twice, because it has no checksum
        rig.hear(smc3(512, 0, 1023), n * T, True)
    assert rig.flags(2 * T) == 0
    # 10 bits over the stroke of 0.2 m, a quarter of them sent: within a step of 4 / 1022 of it.
    assert rig.positions[:3] == pytest.approx([0.0, -0.1, 0.1], abs=0.2 * 4 / 1022)
    assert all(np.isnan(rig.positions[3:]))
    for n in (3, 4):
        assert rig.flags(3 * T) == 0
        rig.hear(smc3(512, 0, 1023, disabled=2), n * T, True)
    assert rig.flags(4 * T) == STOPPED
    assert rig.flags(4 * T + 500_000_000) == STOPPED
    assert rig.flags(4 * T + 500_000_001) == STOPPED | SILENT


def test_a_position_that_has_come_once_is_forgotten_when_another_one_comes():
    """Without a checksum, one that changes by an eighth of the stroke has to come twice in a row."""
    rig = replies("smc3", stream=True)
    rig.hear(smc3(512, 512, 512) + smc3(512, 512, 512), T, True)
    for first in (900, 512, 900):
        rig.hear(smc3(first, 512, 512), T, True)
        assert rig.positions[0] == pytest.approx(0.0, abs=0.2 * 4 / 1022)
    rig.hear(smc3(900, 512, 512), T, True)
    assert rig.positions[0] == pytest.approx(0.2 * (900 - 511) / 1022, abs=0.2 * 4 / 1022)


@given(st.data())
def test_whatever_comes_over_a_line(data):
    """Bytes lost, changed and put in between, in any pieces: one bad reply is not believed, two good ones are."""
    rig = replies("smc3", stream=True)
    for n in (1, 2):
        rig.hear(smc3(400, 500, 600), n * T, True)
    known = rig.positions[:3]
    bad = bytearray(smc3(400, 500, 600))
    at = data.draw(st.integers(0, len(bad) - 1))
    kind = data.draw(st.sampled_from(["lost", "changed", "between"]))
    if kind == "lost":
        del bad[at]
    elif kind == "changed":
        bad[at] = data.draw(st.integers(0, 255))
    else:
        bad[at:at] = data.draw(st.binary(max_size=30).filter(lambda more: b"[" not in more))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(bad)), max_size=4)))
    for start, end in itertools.pairwise([0, *cuts, len(bad)]):
        rig.hear(bytes(bad[start:end]), 3 * T, True)
    assert rig.flags(3 * T) == 0
    # A position may be wrong by no more than an eighth of its range.
    assert rig.positions[:3] == pytest.approx(known, abs=0.125 * 0.2 + 1e-9)
    rig.hear(data.draw(st.binary(max_size=1000)), 4 * T, True)
    assert all(-0.15 <= position <= 0.15 for position in rig.positions[:3])
    rig.hear(b"]" * 600, 5 * T, True)  # longer than any reply that may be incomplete
    for n in (6, 7):
        rig.hear(smc3(0, 0, 0, disabled=7), n * T, True)
    assert rig.flags(7 * T) == STOPPED
    assert rig.positions[:3] == pytest.approx([-0.1] * 3, abs=0.2 * 4 / 1022)


LEGS = {f"leg_{n}": Actuated(f"actuator_{n}", 0.0, 1.0, 1.5) for n in range(1, 7)}


def mbox(first, *pulses):
    """Return what a public program for MBOX takes as the answer to a request for 6 registers from `first` on."""
    return struct.pack(">8H3i", 0x55AA, 0, 0x1102, 0, 0xFFFF, 0x00FF, first, 6, *pulses)


def test_mbox():
    """The whole stroke of 0.5 m is 712500 pulses, as the packet's own scale says; nothing is known before both came."""
    table = msgspec.convert({**packet_presets()["mbox-6"], "scale": 712_500.0}, PacketTable)
    rig = replies_of(table, LEGS, stream=False)
    rig.hear(mbox(0x06, 0, 712_500, 356_250), S)
    assert rig.flags(S) == UNREADY
    rig.hear(mbox(0x21, 71_250, 0, 712_500), S)
    assert rig.flags(S) == 0
    assert rig.positions[:6] == pytest.approx([1.0, 1.5, 1.25, 1.05, 1.0, 1.5])
    rig.hear(mbox(0x06, 0, -712_500, 0), S)  # by more than a quarter beyond the end
    assert rig.said()["refused"] == 1
    assert rig.positions[1] == 1.5
    assert [other.constants[0].bytes for other in table.others] == [
        "55 aa 00 00 11 01 00 00 ff ff 00 ff 00 06 00 06",
        "55 aa 00 00 11 01 00 00 ff ff 00 ff 00 21 00 06",
    ]
    assert rig.flags(S + 500_000_001) == SILENT


def x25(data):
    """Return MAVLink's checksum, as its guide has it in C."""
    crc = 0xFFFF
    for byte in data:
        tmp = byte ^ (crc & 0xFF)
        tmp = (tmp ^ (tmp << 4)) & 0xFF
        crc = ((crc >> 8) ^ (tmp << 8) ^ (tmp << 3) ^ (tmp >> 4)) & 0xFFFF
    return crc.to_bytes(2, "little")


def rexroth(status, error=0, *, cut=True, effect=0.0, number=52503, extra=96):
    """Return REXROTH_MOTION_PLATFORM as MAVLink 2 sends it: all but one zero at the payload's end are left out."""
    payload = struct.pack("<3I18fB", 123_456, 7, status, *[0.01 * n for n in range(1, 13)], *[effect] * 6, error)
    payload = (payload.rstrip(b"\0") or b"\0") if cut else payload
    body = bytes((len(payload), 0, 0, 42, 1, 30)) + number.to_bytes(3, "little") + payload
    return b"\xfd" + body + x25(body + bytes((extra,)))


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        (rexroth(0x0001), UNREADY | UNENGAGED),  # off
        (rexroth(0x0002), UNENGAGED),  # settled
        (rexroth(0x0004), UNENGAGED),  # neutral
        (rexroth(0x05000028), 0),  # engaged, whatever the bits of status and mode
        (rexroth(0x0008, cut=False), 0),  # with all its zeros
        (rexroth(0x0008, effect=0.5), 0),  # only the error code is left out
        (rexroth(0x0009), UNENGAGED),  # frozen
        (rexroth(0x0008, 59), 0),  # a warning
        (rexroth(0x0008, 95), 0),
        (rexroth(0x0001, 98), UNREADY | UNENGAGED | FAULTY),  # no data from the host in time
        (rexroth(0x0001, 160), UNREADY | UNENGAGED | FAULTY | STOPPED),  # the circuit of the emergency stop
        (rexroth(0x0001, 223), UNREADY | UNENGAGED | FAULTY),  # a drive
        (rexroth(0x0001, 255), UNREADY | UNENGAGED | FAULTY | STOPPED),
        (rexroth(0x0008, extra=97), UNREADY | UNENGAGED),  # by other definitions
        (rexroth(0x0008, number=52502), UNREADY | UNENGAGED),  # another message
        (rexroth(0x0008)[:-1], UNREADY | UNENGAGED),
        (rexroth(0x0008) + b"\0", UNREADY | UNENGAGED),
        (b"\xfd\xff" + rexroth(0x0008)[2:], UNREADY | UNENGAGED),  # a payload longer than it can be
    ],
)
def test_rexroth_by_mavlink(message, flags):
    rig = replies("mavlink-rexroth", actuators={}, stream=False)
    rig.hear(message, S)
    assert rig.flags(S) == flags
    assert rig.text() == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": {"offset": 12, "first": 10}}, "length: found 12 and 10"),
        ({"length": {"offset": 1, "first": 1}}, "length: allowed with a checksum"),
        ({"checksum": None}, "length: allowed with a checksum"),
        ({"constants": [{"offset": 40, "bytes": "00"}]}, "found a constant at 40"),
    ],
)
def test_a_length_that_cannot_be_is_refused(change, message):
    reply = {**packet_presets()["mavlink-rexroth"]["reply"][0], **change}
    with pytest.raises(ConfigError, match=message):
        replies(reply=[reply], actuators={}, stream=False)


STATUS = {
    "text": "S{ready},{hot},{where}*{checksum:02x}\r\n",
    "values": {
        "ready": {"channel": "ready", "among": [2, 3]},
        "hot": {"channel": "temperature", "scale": 10},
        "where": {"channel": "post_2", "measure": "stroke", "scale": 1000, "bias": 5},
    },
    "checksum": {"kind": "xor8", "first": 1, "end": -1},
    "lost_s": 1,
}
"""Positions in mm from neutral plus 5, tenths of degrees, and an exclusive or as in NMEA 0183."""

ONE = {"post_2": Actuated("actuator_1", 0.0, -0.1, 0.1)}  # a platform of one actuator


def status(state, hot, where):
    inner = f"S{state},{hot},{where}"
    check = 0
    for byte in inner[1:].encode():
        check ^= byte
    return f"{inner}*{check:02X}\r\n".encode()


def test_text():
    rig = replies(reply=[STATUS], actuators=ONE, stream=True)
    data = b"Drive 3: AL.14\r\n" + status(2, 415, "-20.5") + status(1, 0, 0)[:-4]
    for n in range(len(data)):
        rig.hear(data[n : n + 1], S, True)
    assert rig.flags(S) == 0
    assert rig.said() == {"received": 1, "refused": 0, "skipped": 16, "ready": True, "temperature": 41.5}
    assert rig.positions[0] == pytest.approx(-0.0255)
    assert rig.text() == "Drive 3: AL.14"
    assert rig.text() == ""
    rig.hear(status(1, 0, 0)[-4:], 2 * S, True)  # has a checksum: believed at once
    assert rig.flags(2 * S) == UNREADY
    wrong = status(3, 0, 0).replace(b"S3", b"S2")
    rig.hear(wrong, 2 * S, True)
    assert rig.flags(2 * S) == UNREADY
    assert rig.said()["received"] == 2


@pytest.mark.parametrize("where", ["nan", "1e9", "--3", "", "1.2.3", "99999", "200"])
def test_numbers_that_cannot_be(where):
    """200 mm are beyond the range of 0.2 m by more than a quarter; the ready state beside it is not believed either."""
    rig = replies(reply=[STATUS], actuators=ONE, stream=True)
    rig.hear(status(2, 0, where), S, True)
    assert rig.flags(S) == UNREADY
    rig.hear(status(2, 0, 130), S, True)
    assert rig.flags(S) == 0
    assert rig.positions[0] == pytest.approx(0.125)


def test_not_finite():
    rig = replies(
        reply=[{"size": 4, "fields": [{"offset": 0, "type": "f4", "channel": "post_2"}]}], actuators=ONE, stream=False
    )
    for number in (np.nan, np.inf, -np.inf):
        rig.hear(struct.pack("<f", number), S)
        assert rig.flags(S) == UNREADY
    assert rig.said() == {"received": 0, "refused": 3, "skipped": 0}
    rig.hear(struct.pack("<f", 0.05), S)
    assert rig.flags(S) == 0


MARK = {"offset": 0, "bytes": "5b"}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({}, r"reply\[0\]: allowed is one of size .* and text"),
        (
            {"size": 2, "constants": [MARK], "fields": [{"offset": 1, "type": "u1", "channel": "redy"}]},
            r"reply\[0\]\.fields\[0\]\.channel.*ready",
        ),
        ({"size": 1, "fields": [{"offset": 0, "type": "u1", "channel": "ready"}]}, "neither constants nor a checksum"),
        ({"text": "{ready}"}, "something behind each number"),
        ({"text": "P{post_1} \n"}, "found no post_2, post_3"),
        (
            {"text": "P{temperature} \n", "values": {"temperature": {"channel": "temperature", "mask": 1}}},
            "mask or among",
        ),
        ({"text": "P{post_1} \n", "values": {"post_1": {"channel": "post_1", "scale": 0}}}, "scale: found 0"),
    ],
)
def test_refused(reply, message):
    with pytest.raises(ConfigError, match=message):
        replies(reply=[reply], stream=True)


def test_life_bit():
    """The lowest bit of a constant byte changes with every packet, or every 100 ms; the checksum covers it."""
    keys = {
        "size": 4,
        "constants": [{"offset": 1, "bytes": "a0"}],
        "fields": [{"offset": 0, "type": "u1", "channel": "surge"}],
    }
    checksum = {"offset": 3, "kind": "sum8"}
    for every_s, times, bits in ((0, (0, 1, 2), (0, 1, 0)), (0.1, (5, S // 10 + 4, S // 10 + 5), (0, 0, 1))):
        table = {**keys, "checksum": checksum, "life": {"offset": 1, "bit": 0, "every_s": every_s}}
        how = encoding(msgspec.convert(table, PacketTable))
        packets = [how.seal.sealed(how.packet, time) for time in times]
        assert packets == [bytes((0, 0xA0 + bit, 0, 0xA0 + bit)) for bit in bits]
    with pytest.raises(ConfigError, match=r"life\.offset: found that of fields\[0\]"):
        encoding(msgspec.convert({**keys, "life": {"offset": 0}}, PacketTable))
