"""A custom platform: the packet is sent as the profile describes it, or refused when it is loaded."""

import binascii
import math
import socket
import struct
import typing
import zlib

import numpy as np
import pytest
from helpers import frame, init
from hypothesis import given
from hypothesis import strategies as st

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.wire.checksum import CHECKSUMS, CheckedBytes, Seal, SealedNumber
from motioncue.wire.description import Kind

PROFILE = """
[source]
system = "city-car-driving"
endpoint = "tcp://127.0.0.1:5100"
[cueing]
algorithm = "direct"
[output]
motion = "udp://127.0.0.1:9"
[output.packet]
size = 40
byte_order = "{order}"
fields = [
    {{ offset = 3, type = "f4", channel = "surge" }},
    {{ offset = 8, type = "i2", channel = "sway", scale = 1000.0, bias = 5.0 }},
    {{ offset = 10, type = "u2", channel = "heave", scale = 1000.0, bias = 32768.0 }},
    {{ offset = 12, type = "f8", channel = "speed", scale = 3.6 }},
    {{ offset = 20, type = "i1", channel = "surge", scale = 1000.0 }},
    {{ offset = 21, type = "u1", channel = "engine_speed", absent = 7.0 }},
    {{ offset = 22, type = "i4", channel = "sway", scale = -1e12 }},
    {{ offset = 26, type = "i8", channel = "heave", scale = 10.0 }},
]
constants = [{{ offset = 0, bytes = "4d 43 01" }}]
counter = {{ offset = 34, type = "u2" }}
checksum = {{ offset = 36, kind = "crc32" }}
"""


def loaded(tmp_path, *overrides, order="little"):
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE.format(order=order))
    return motioncue.load_profile(path, *overrides)


@pytest.mark.rt
@pytest.mark.parametrize(("order", "mark"), [("little", "<"), ("big", ">")])
def test_the_packet_is_the_one_described(tmp_path, order, mark):
    profile = loaded(tmp_path, order=order)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform:
        platform.bind(("127.0.0.1", 0))
        platform.settimeout(5.0)
        pipeline = Pipeline(profile, FakeClock(0))
        _, encoding = streams_of(profile.output)["motion"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            pipeline.emitter.add_output(
                sender, (*platform.getsockname(), 0), encoding.table, encoding.packet, encoding.seal
            )
            pipeline.intake.begin(0)
            pipeline.intake.feed(init(), 0)
            packets = []
            now, period = 0, round(1e9 / profile.rate_hz)
            for _ in range(600):  # long enough to fade in, one frame a tick
                now += period
                # Car axes: X left, Y up, Z forward; level and unturned, so the world's are the car's.
                moving = frame(position=(0, 0, now * 25e-9), velocity=(0, 0, 25), acceleration=(-2, 3, 1))
                pipeline.intake.feed(moving, now)
                pipeline.emitter.run(until_ns=now + 1)
                packets.append(platform.recv(100))
    last = packets[-1]
    assert len(last) == 40
    assert last[:3] == b"\x4d\x43\x01"
    assert struct.unpack_from(f"{mark}f", last, 3) == (1.0,)
    assert struct.unpack_from(f"{mark}h", last, 8) == (2005,)
    assert struct.unpack_from(f"{mark}H", last, 10) == (35768,)
    assert struct.unpack_from(f"{mark}d", last, 12)[0] == pytest.approx(90.0, rel=1e-14)
    assert struct.unpack_from("b", last, 20) == (127,)  # 1000 does not fit
    assert struct.unpack_from("B", last, 21) == (7,)  # City Car Driving reports no engine speed
    assert struct.unpack_from(f"{mark}i", last, 22) == (-(2**31),)
    assert struct.unpack_from(f"{mark}q", last, 26) == (30,)
    assert last[7] == 0
    counts = [struct.unpack_from(f"{mark}H", packet, 34)[0] for packet in packets]
    assert counts == list(range(len(packets)))
    assert all(struct.unpack_from(f"{mark}I", packet, 36)[0] == zlib.crc32(packet[:36]) for packet in packets)


WORDS = "output.packet.state={offset=7,type='u1',offline=10,engaging=11,running=12,holding=13,parking=14,fault=15}"
POSTS = (
    "output.packet.fields=[{offset=8,type='f4',channel='post_1'}]",
    "platform.preset=posts-3",
    "cueing.algorithm=classical",
    "cueing.preset=utias",
)


def words_of_a_drive(profile, ticks, lost=700):
    """Return the word of each packet, and the trace, of a run in which a car comes at tick 100 and is lost later."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform, socket.socket(type=socket.SOCK_DGRAM) as sender:
        platform.bind(("127.0.0.1", 0))
        platform.settimeout(5.0)
        pipeline, now, found = Pipeline(profile, FakeClock(0), trace=ticks), 0, []
        how = streams_of(profile.output, profile.platform)["motion"][1]
        pipeline.emitter.add_output(sender, (*platform.getsockname(), 0), how.table, how.packet, how.seal)
        pipeline.intake.begin(0)
        pipeline.intake.feed(init(), 0)
        for tick in range(ticks):
            now += round(1e9 / profile.rate_hz)
            if 100 <= tick < lost:
                moving = frame(position=(0, 0, now * 25e-9), velocity=(0, 0, 25), acceleration=(-2, 3, 1))
                pipeline.intake.feed(moving, now)
            pipeline.emitter.run(until_ns=now + 1)
            found.append(platform.recv(100)[7])
    return found, pipeline.emitter.trace


@pytest.mark.rt
def test_a_packet_says_what_the_platform_is_doing(tmp_path):
    """A car comes, is lost, and the run ends: the word of each packet is that of the state of its tick."""
    found, trace = words_of_a_drive(loaded(tmp_path, WORDS), 1500)
    assert found == [10 + state for state in trace["state"][: len(found)]]
    assert {10, 11, 12, 13, 14} <= set(found)


@pytest.mark.rt
def test_a_platform_that_still_sinks_is_not_said_to_be_offline(tmp_path):
    """A controller may take its power away when it is told so."""
    profile = loaded(tmp_path, WORDS, *POSTS)
    found, trace = words_of_a_drive(profile, 3500)
    posts = trace["actuators"][:, :3]
    up = np.abs(posts - posts[0]).max(axis=1) > 1e-9
    said = np.array(found)
    sinking = up & (trace["state"] == 0)
    assert sinking.sum() > 500
    assert (said[sinking] == 14).all()
    assert (said[:100] == 10).all()
    assert said[-1] == 10
    assert not up[-1]


@pytest.mark.rt
def test_a_platform_that_still_rises_is_said_to_be_engaging(tmp_path):
    """The fade takes one second, the platform one and a half: a controller is told that it runs when it is up."""
    profile = loaded(tmp_path, WORDS, *POSTS, "platform.rise_s=1.5")
    found, trace = words_of_a_drive(profile, 1500)
    states, said = trace["state"][: len(found)], np.array(found)
    begin = int(np.argmax(states == 1))
    rising = round(profile.platform.rise_s * profile.rate_hz) - 1  # the first tick of engaging rises too
    up = np.arange(len(found)) >= begin + rising
    assert ((states == 2) & ~up).sum() > 100
    assert (said[(states == 2) & ~up] == 11).all()
    assert (said[(states == 2) & up] == 12)[1:].all()
    assert (said == 12).any()


@pytest.mark.rt
@pytest.mark.parametrize(("engage_s", "order"), [(0.0, [10, 16, 12]), (1.5, [10, 16, 11, 12])])
def test_rising_wins_over_engaging_unless_engaging_waits_for_the_rise(tmp_path, engage_s, order):
    """The fade takes one second and the rise one and a half; a fade that waits for the rise is said after it."""
    words = WORDS.replace("}", ",rising=16}")
    times = (f"supervisor.engage_s={engage_s}", "supervisor.fade_s=1", "platform.rise_s=1.5")
    found, _ = words_of_a_drive(loaded(tmp_path, words, *POSTS, *times), 1200, lost=1200)
    said = np.array(found)
    assert said[np.concatenate([[True], np.diff(said) != 0])].tolist() == order
    assert (said == 16).sum() == pytest.approx(1.5 * 333.33, abs=3)


@pytest.mark.parametrize(
    ("override", "path", "words"),
    [
        ("output.packet.size=39", "output.packet", ["'checksum'", "40", "39"]),
        ("output.packet.size=513", "output.packet.size", ["513", "512"]),
        ("output.packet.counter={offset=33}", "output.packet", ["overlaps"]),
        ("output.packet.constants=[{offset=1,bytes='00 00 00'}]", "output.packet", ["overlaps"]),
        ("output.packet.constants=[{offset=0,bytes='4g'}]", "output.packet.constants[0].bytes", ["'4g'"]),
        ("output.packet.constants=[{offset=0,bytes=''}]", "output.packet.constants[0].bytes", ["one or more"]),
        ("output.packet.fields=[{offset=0,type='f4',channel='surg'}]", "output.packet.fields[0]", ["'surg'", "surge"]),
        ("output.packet.fields=[{offset=0,type='f3',channel='surge'}]", "output.packet.fields[0].type", ["'f3'"]),
        ("output.packet.fields=[{offset=0,type='f4',channel='surge',scale=0.0}]", "output.packet.fields[0]", ["0"]),
        ("output.packet.fields=[{offset=0,type='f4',channel='time'}]", "output.packet.fields[0].channel", ["'time'"]),
        ("output.packet.fields=[{offset=38,type='f4',channel='surge'}]", "output.packet", ["overlaps"]),
        ("output.packet.fields=[{offset=-1,type='f4',channel='surge'}]", "output.packet.fields[0].offset", ["-1"]),
        ("output.packet.checksum={offset=36,kind='crc32',first=0,end=37}", "output.packet.checksum", ["37"]),
        ("output.packet.checksum={offset=36,kind='crc32',first=9,end=9}", "output.packet.checksum", ["9"]),
        ("output.packet.checksum={offset=36,kind='md5'}", "output.packet.checksum.kind", ["'md5'"]),
        ("output.packet.fild=1", "output.packet.fild", ["fields"]),
        ("output.system=dk", "output.system", ["'dk'", "custom"]),
        ("output.gauges=udp://127.0.0.1:9", "output.gauges", ["packet"]),
    ],
)
def test_a_packet_that_cannot_be_is_refused_when_it_is_loaded(tmp_path, override, path, words):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, override)
    message = str(caught.value)
    assert path in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("kind", ["sum8", "xor8", "sum16", "crc16-xmodem", "crc16-ccitt-false", "crc32"])
@given(data=st.binary(min_size=1, max_size=60), big=st.booleans())
@pytest.mark.check
def test_checksums_are_those_of_other_programs(kind, data, big):
    size, value = {
        "sum8": (1, sum(data) % 256),
        "xor8": (1, int(np.bitwise_xor.reduce(np.frombuffer(data, np.uint8)))),
        "sum16": (2, sum(data) % 65536),
        "crc16-xmodem": (2, binascii.crc_hqx(data, 0)),
        "crc16-ccitt-false": (2, binascii.crc_hqx(data, 0xFFFF)),
        "crc32": (4, zlib.crc32(data)),
    }[kind]
    sealed = Seal(None, CheckedBytes(kind, len(data), 0, len(data), big)).sealed(data + bytes(size))
    assert sealed == data + value.to_bytes(size, "big" if big else "little")


CHECK_VALUES = {  # of "123456789": the CRC catalogue; the sums and the exclusive or by hand
    "sum8": 0xDD,
    "sum8-inverted": 0x22,
    "sum8-negated": 0x23,
    "sum16": 0x01DD,
    "xor8": 0x31,
    "crc8-smbus": 0xF4,
    "crc8-maxim": 0xA1,
    "crc8-sae-j1850": 0x4B,
    "crc16-arc": 0xBB3D,
    "crc16-ccitt-false": 0x29B1,
    "crc16-dnp": 0xEA82,
    "crc16-genibus": 0xD64E,
    "crc16-kermit": 0x2189,
    "crc16-maxim": 0x44C2,
    "crc16-mcrf4xx": 0x6F91,
    "crc16-modbus": 0x4B37,
    "crc16-spi-fujitsu": 0xE5CC,
    "crc16-umts": 0xFEE8,
    "crc16-usb": 0xB4C8,
    "crc16-x25": 0x906E,
    "crc16-xmodem": 0x31C3,
    "crc32": 0xCBF43926,
    "crc32-bzip2": 0xFC891918,
    "crc32-mpeg-2": 0x0376E6E7,
    "crc32c": 0xE3069283,
}


@pytest.mark.parametrize("extra", [0, 4])
@pytest.mark.parametrize("kind", CHECKSUMS)
def test_checksums_have_the_check_values_of_the_catalogue(kind, extra):
    # The last bytes may be ones that are covered and not sent.
    data, unsent = b"123456789"[: 9 - extra], b"123456789"[9 - extra :]
    size = CHECKSUMS[kind].bits // 8
    sealed = Seal(None, CheckedBytes(kind, len(data), 0, len(data), True, unsent)).sealed(data + bytes(size))
    assert sealed == data + CHECK_VALUES[kind].to_bytes(size, "big")


def test_a_profile_may_name_every_checksum():
    assert set(typing.get_args(Kind)) == set(CHECKSUMS) == set(CHECK_VALUES)


def test_a_counter_begins_again_when_it_is_full():
    seal = Seal(SealedNumber(0, 1))
    counts = [seal.sealed(b"\xff")[0] for _ in range(600)]
    assert counts == [n % 256 for n in range(600)]


def test_a_clock_tells_the_time_since_the_first_packet():
    seal = Seal(clock=SealedNumber(1, 2, True, 1_000_000))
    began = 7_123_456_789
    times = [0, 999_999, 1_000_000, 3_000_030, 65_535_999_999, 65_536_000_000]
    found = [seal.sealed(bytes(3), began + time) for time in times]
    assert found == [b"\0" + (time // 1_000_000 % 65536).to_bytes(2, "big") for time in times]


def test_several_outputs_have_one_rate(tmp_path):
    outputs = "[{system='dk',motion='udp://127.0.0.1:1'},{system='dk',motion='udp://127.0.0.1:2',rate_hz=250}]"
    with pytest.raises(ConfigError, match=r"output\.rate_hz: found 250.0 beside 333\.33"):
        motioncue.load_profile("ccd-dk", f"output={outputs}")
    profile = motioncue.load_profile("ccd-dk", f"output={outputs.replace(',rate_hz=250', '')}")
    assert [output.motion for output in profile.outputs] == ["udp://127.0.0.1:1", "udp://127.0.0.1:2"]
    with pytest.raises(ConfigError, match="output"):
        motioncue.load_profile("ccd-dk", "output=[]")
    assert math.isclose(profile.rate_hz, 333.33)
