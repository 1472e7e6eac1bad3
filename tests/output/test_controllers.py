"""Ready descriptions of controllers: the bytes are those of their documents, whoever encodes them."""

import math
import re
import struct

import msgspec
import numpy as np
import pytest

import motioncue
from motioncue.core.channels import ACTUATION
from motioncue.core.clock import FakeClock
from motioncue.errors import ConfigError, PacketError
from motioncue.output import packet as custom
from motioncue.output.described import Described
from motioncue.safety.supervisor import State
from motioncue.wire.description import Actuated, PacketTable, packet_presets, packet_text

PLACES = {channel.name: place for place, channel in enumerate(ACTUATION)}
LEGS = {f"leg_{n}": Actuated(f"actuator_{n}", 2.7, 2.0, 3.0) for n in range(1, 7)}


def table_of(name, **keys):
    return msgspec.convert({**packet_presets()[name], "preset": name, **keys}, PacketTable)


@pytest.fixture
def sent(probe):
    """Return a function that encodes a controller's packet, sealed at a time in ns."""

    def encode(name, actuators=LEGS, times=(0,), keys=None, state=State.OFFLINE, **channels):
        how = custom.encoding(table_of(name, **(keys or {})), actuators)
        values = np.zeros(len(PLACES))
        for channel, value in channels.items():
            values[PLACES[channel]] = value
        if how.table.text:
            return probe.text_encoded(how.table, values, how.packet)
        packet = bytearray(how.packet)
        for time in times:
            probe.encoded(how.table, values, packet)
            packet = bytearray(how.seal.sealed(packet, time, state))
        return bytes(packet)

    return encode


def legs(*shares):
    return {f"actuator_{n}": 2.0 + share for n, share in enumerate(shares, 1)}


@pytest.mark.check
def test_thanos(sent):
    data = sent("thanos-amc", **legs(0.5, 0.0, 1.0, 0.5, 0.5, 0.5))
    assert data == bytes.fromhex("ffff 7fff 0086 ff78 7fff 7fff 7fff 7fff 7fff 0a0d".replace(" ", ""))
    assert (0x0086, 0xFF78) == (134, 65400)  # the author's tester goes from 100 to 65400


def test_smc3(sent):
    middle = b"[A\x02\x00][B\x02\x00][C\x02\x00]"  # 512
    assert sent("smc3", **legs(0.5, 0.5, 0.5)) == middle
    data = sent("smc3", actuators=dict(list(LEGS.items())[:2]), **legs(0.0, 1.0))
    assert data == b"[A\x00\x01][B\x03\xff][C\x02\x00]"
    # Its loop() enables the motors by itself, so it is only asked where they are, and never told to enable them.
    table = table_of("smc3")
    assert [other.text for other in table.others] == ["[rdA][rdB][rdC][rdY]"]


@pytest.mark.parametrize("count", [3, 6])
def test_mbox(sent, count):
    # 475 mm of stroke, 5 mm of lead, 7500 pulses a revolution; 2 packets, 12.3456 ms apart.
    data = sent(
        f"mbox-{count}", keys={"scale": 712_500.0}, times=(10**9, 10**9 + 12_345_600), **legs(0, 1, 0.5, 0, 1, 0.2)
    )
    pulses = [0, 712_500, 356_250, 0, 712_500, 142_500][:count]
    head = struct.pack(">6HII", 0x55AA, 0, 0x1301, count // 6, 0xFFFF, 0xFFFF, 1, 12)
    assert data == head + struct.pack(f">{count}i", *pulses) + struct.pack(">3H", 0, 0, 0)
    assert len(data) == {3: 38, 6: 50}[count]


def test_mbox_wants_its_scale():
    with pytest.raises(ConfigError, match=r"output\.packet\.scale: found 0, .*profiles packets mbox-6"):
        custom.encoding(table_of("mbox-6"), LEGS)


def test_moog(sent):
    pose = {"roll": 0.1, "pitch": -0.2, "heave_displacement": 0.05, "surge_displacement": 0.06, "yaw": 0.3}
    # Park, start, new position: the words of MCIS's header, in the states in which its program sends them.
    words = {State.OFFLINE: 210, State.STATES: 175, State.FAULT: 210}
    for state in State:
        data = sent("moog-6dof2000e", **pose, sway_displacement=-0.07, state=state)
        word = words.get(state, 130)
        assert data == struct.pack(">I6fI", word, 0.1, -0.2, -0.2286 - 0.05, 0.06, 0.3, -0.07, 0)
    ((first, every_s),) = custom.encoding(table_of("moog-6dof2000e")).others
    assert first.packet == struct.pack(">I6fI", 170, 0, 0, -0.2286, 0, 0, 0, 0)
    assert every_s == 0.0
    far = sent("moog-6dof2000e", roll=9.0, pitch=-9.0, heave_displacement=-9.0, surge_displacement=-9.0, yaw=9.0)
    roll, pitch, heave, surge, yaw = struct.unpack(">5f", far[4:24])
    assert (math.degrees(roll), math.degrees(pitch), math.degrees(yaw)) == pytest.approx((21, -22, 22), abs=0.01)
    assert (heave + 0.2286, surge) == pytest.approx((0.178, -0.241), abs=1e-3)


def test_yaw_vr(sent):
    data = sent("yaw-vr", yaw=math.radians(12.345), pitch=math.radians(-0.01), roll=math.pi)
    assert data == b"Y[012.345]P[359.990]R[180.000]V[0,0,0,0]"  # as in a comment of the vendor's kit


def test_mavlink_sends_a_heartbeat_every_second():
    """The fields in the order of their size, as MAVLink's guide says; its extra byte is 50.

    MARSH's dialect: MARSH_TYPE_MOTION_PLATFORM is 105, by which its manager knows what to pass on, and
    MOTION_PLATFORM_STATE, its message 52502, is the report of such a platform.
    """
    ((beat, every_s),) = custom.encoding(table_of("mavlink-motion-platform")).others
    assert every_s == 1.0
    packet = beat.packet
    for count, (state, status) in enumerate(zip(State, (3, 4, 4, 4, 4, 5), strict=False)):
        body = bytes([9, 0, 0, count, 1, 30]) + bytes(3) + struct.pack("<IBBBBB", 0, 105, 8, 0, status, 3)
        packet = beat.seal.sealed(packet, 0, state)
        assert packet == b"\xfd" + body + mavlink_crc(body + bytes([50])).to_bytes(2, "little")


def mavlink_crc(data, crc=0xFFFF):
    """Return MAVLink's checksum, as its guide states the accumulation of a byte."""
    for byte in data:
        tmp = byte ^ (crc & 0xFF)
        tmp = (tmp ^ (tmp << 4)) & 0xFF
        crc = ((crc >> 8) ^ (tmp << 8) ^ (tmp << 3) ^ (tmp >> 4)) & 0xFFFF
    return crc


def test_mavlink(sent):
    pose = {"surge_displacement": 0.1, "sway_displacement": 0.2, "heave_displacement": 0.3, "roll": 0.4, "pitch": 0.5}
    times = [n * 3_000_000 for n in range(258)]
    rates = {"roll_rate": 1.0, "pitch_rate": 2.0, "yaw_rate": 3.0}
    # Settled while parked, frozen while it waits for input (a warning), else engaged; at a fault settled (an error).
    for state, (health, mode) in zip(State, ((0, 3), (0, 6), (0, 6), (1, 5), (0, 6), (2, 3)), strict=False):
        data = sent("mavlink-motion-platform", times=times, yaw=0.6, state=state, **pose, **rates)
        payload = struct.pack(
            "<I6f6f6f2B", 257 * 3, 0.1, 0.2, -0.3, 0.4, 0.5, 0.6, 0, 0, 0, 1, 2, 3, *6 * [0], health, mode
        )
        assert len(payload) == 78
        body = bytes([78, 0, 0, 257 % 256, 1, 30]) + (52502).to_bytes(3, "little") + payload
        assert data == b"\xfd" + body + mavlink_crc(body + bytes([88])).to_bytes(2, "little")


@pytest.mark.parametrize("name", packet_presets())
def test_a_description_names_its_source_and_what_is_open(name):
    table = packet_presets()[name]
    assert len(table["description"]) < 80
    assert len(table["source"]) > 80
    assert re.search(r"^# (Not |One |The header|health|Endpoint)", packet_text(name), re.M)
    assert all(len(line) <= 120 for line in packet_text(name).splitlines())


@pytest.mark.parametrize("name", packet_presets())
def test_a_described_packet_is_decoded_again(sent, name):
    keys = {} if packet_presets()[name].get("scale") != 0.0 else {"scale": 1000.0}
    channels = {"yaw": 0.3, "roll": 0.1, "pitch": 0.2, "surge_displacement": 0.1, "heave_displacement": -0.1}
    data = sent(name, keys=keys, **channels, **legs(0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
    described = Described(table_of(name, **keys))
    layout = described.identify(data)
    fields = layout.decode(data)
    assert layout.name == "motion"
    found = described.channels(fields)
    for channel in set(found) & set(channels):
        assert found[channel] == pytest.approx(channels[channel], abs=1e-4)
    numbered = [value for key, value in fields.items() if key.startswith("actuator")]
    assert numbered == sorted(numbered)[: len(numbered)] or "thanos" in name  # whose last two stay in the middle
    assert list(described.framed(3 * data)) == 3 * [data]
    # A stream is found again after something else, and cut anywhere.
    stream = b"\xfejunk" + data + data[:-1] + data + data
    for cut in range(0, len(stream) + 1, 7):
        pieces, rest = described.split(stream[:cut])
        more, rest = described.split(rest + stream[cut:])
        good = [piece for piece in pieces + more if _is(described, piece)]
        assert len(good) >= 3 - (name == "yaw-vr")
        assert b"".join([*pieces, *more, rest]) == stream
    for place in range(len(data)):
        for wrong in (data[:place], data + data[:1]):
            with pytest.raises(PacketError, match="custom: found"):
                described.identify(wrong)


def _is(described, piece):
    try:
        described.identify(piece)
    except PacketError:
        return False
    return True


def test_a_wrong_constant_or_checksum_is_said():
    described = Described(table_of("mavlink-motion-platform"))
    how = custom.encoding(table_of("mavlink-motion-platform"))
    data = bytearray(how.seal.sealed(how.packet))
    data[20] ^= 1
    with pytest.raises(PacketError, match="custom: found checksum 0x"):
        described.identify(bytes(data))
    data[0] = 0xFE
    with pytest.raises(PacketError, match="found fe 4e 00 00 at offset 0, allowed is fd 4e 00 00"):
        described.identify(bytes(data))


PROFILE = """
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
[cueing]
algorithm = "classical"
preset = "simona"
[platform]
preset = "{platform}"
[output]
rate_hz = {rate}
motion = "{url}"
packet = {{ preset = "{name}"{more} }}
"""


@pytest.mark.parametrize(
    ("name", "platform", "url", "more"),
    [
        ("thanos-amc", "hexapod-dim", "serial:///dev/ttyUSB0", ""),
        ("thanos-amc", "posts-4", "serial://COM3", ""),
        ("smc3", "posts-3", "serial:///dev/ttyUSB0?baud=250000", ""),
        ("mbox-6", "hexapod-simona", "udp://192.168.15.201:7408?from=8410", ", scale = 712500"),
        ("mbox-3", "posts-3", "udp://192.168.15.201:7408", ", scale = 712500"),
        ("moog-6dof2000e", "hexapod-dim", "udp://10.0.0.3:991", ""),
        ("yaw-vr", "hexapod-dim", "udp://10.0.0.3:50010", ""),
        ("mavlink-motion-platform", "hexapod-dim", "udp://10.0.0.3:24400", ""),
        ("mavlink-rexroth", "hexapod-dim", "udp://10.0.0.3:24400", ""),
    ],
)
def test_a_profile_uses_a_description_by_its_name(tmp_path, name, platform, url, more):
    path = tmp_path / "rig.toml"
    rate = 60 if name.startswith("moog") else 333.33
    path.write_text(PROFILE.format(name=name, platform=platform, url=url, more=more, rate=rate), encoding="utf-8")
    profile = motioncue.load_profile(path)
    assert profile.outputs[0].packet.source == packet_presets()[name]["source"]
    relay = motioncue.relay(profile, clock=FakeClock())
    assert relay.step(b"BNG1" + bytes(84))  # a car at rest
    assert relay.packets["motion"].any()


def test_a_controller_has_its_highest_rate_and_its_name_is_checked(tmp_path):
    path = tmp_path / "rig.toml"
    keys = {"platform": "hexapod-dim", "url": "udp://10.0.0.3:991", "more": "", "rate": 333.33}
    path.write_text(PROFILE.format(name="moog-6dof2000e", **keys), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"allowed is up to 60 Hz for moog-6dof2000e"):
        motioncue.load_profile(path)
    path.write_text(PROFILE.format(name="moog-6dof2000", **keys), encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"output\.packet\.preset: found 'moog-6dof2000', .*did you mean 'moog-6dof2000e'"
    ):
        motioncue.load_profile(path)


def test_the_first_of_two_numbers_without_anything_between_them_has_one_length(sent):
    table = {"text": "{surge:.1f}{sway:.1f}"}
    with pytest.raises(ConfigError, match=r"\{sway\} right behind a number whose length varies"):
        custom.encoding(msgspec.convert(table, PacketTable))
    with pytest.raises(ConfigError, match=r"a digit right behind \{surge\}"):
        custom.encoding(msgspec.convert({"text": "{surge}1"}, PacketTable))
    fixed = {"text": "{a:05.1f}{sway:.1f};", "values": {"a": {"channel": "surge", "min": -9.0, "max": 99.0}}}
    custom.encoding(msgspec.convert(fixed, PacketTable))
    assert Described(msgspec.convert(fixed, PacketTable)).identify(b"012.5-3.0;").decode(b"012.5-3.0;") == {
        "a": 12.5,
        "sway": -3.0,
    }


@pytest.mark.parametrize("name", ["thanos-amc", "text", "position"])
def test_a_range_that_a_packet_s_numbers_depend_on_does_not_change_while_it_runs(tmp_path, name):
    path = tmp_path / "rig.toml"
    keys = {"platform": "posts-3", "url": "udp://10.0.0.3:991", "more": "", "rate": 333.33}
    text = PROFILE.format(name="thanos-amc", **keys)
    packets = {
        "thanos-amc": '{ preset = "thanos-amc" }',
        "text": '{ text = "{post_1:.3f};" }',
        "position": '{ size = 4, fields = [{ offset = 0, type = "f4", channel = "post_1" }] }',
    }
    path.write_text(text.replace(packets["thanos-amc"], packets[name]), encoding="utf-8")
    relay = motioncue.relay(path, clock=FakeClock())
    change = {"platform": {"post": {"max_m": 0.05}}}
    if name == "position":
        relay.retune(change)
        return
    with pytest.raises(ConfigError, match=r"platform\.post\.max_m: found 0\.05, allowed is 0\.1 while it runs"):
        relay.retune(change)
