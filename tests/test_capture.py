"""Captures made packet by packet, as their formats' documents say, give the datagrams that were put into them."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.errors import PacketError
from motioncue.recording.capture import datagrams, is_capture
from motioncue.recording.read import read_recording

ETHERNET, RAW, COOKED, NULL = 1, 101, 113, 0


def udp(payload, port=4444):
    return struct.pack(">HHHH", 55555, port, 8 + len(payload), 0) + payload


def ip(data, offset=0, more=False, number=1, protocol=17):
    flags = (0x2000 if more else 0) | offset // 8
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(data), number, flags, 64, protocol, 0, b"\x7f\0\0\1", b"\x7f\0\0\1"
    )
    return head + data


def ip6(data):
    return struct.pack(">IHBB16s16s", 0x60000000, len(data), 17, 64, bytes(15) + b"\1", bytes(15) + b"\1") + data


def link(kind, packet):
    version = packet[0] >> 4
    number = 0x0800 if version == 4 else 0x86DD
    return {
        ETHERNET: bytes(12) + struct.pack(">H", number),
        COOKED: struct.pack(">HHH8sH", 0, 772, 6, bytes(8), number),
        NULL: struct.pack("<I", 2 if version == 4 else 24),
        RAW: b"",
    }[kind] + packet


def pcap(frames, kind=RAW, order="<", nano=False):
    """Return a capture of (time [ns], frame)."""
    out = struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, kind)
    for time, frame in frames:
        part = time % 10**9 // (1 if nano else 1000)
        out += struct.pack(f"{order}IIII", time // 10**9, part, len(frame), len(frame)) + frame
    return out


def pcapng(frames, kind=RAW):
    def block(number, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", number, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", kind, 0, 65535))
    for time, frame in frames:
        us = time // 1000
        out += block(6, struct.pack("<IIIII", 0, us >> 32, us & 0xFFFFFFFF, len(frame), len(frame)) + frame)
    return out


@pytest.mark.parametrize("kind", [ETHERNET, RAW, COOKED, NULL])
@pytest.mark.parametrize("layer", [ip, ip6])
@pytest.mark.parametrize("make", [pcap, pcapng, lambda f, k: pcap(f, k, ">"), lambda f, k: pcap(f, k, nano=True)])
def test_every_kind_of_capture_gives_its_datagrams(kind, layer, make):
    sent = [(1_700_000_000_000_000_000 + n * 20_000_000, bytes([n]) * (n + 1)) for n in range(5)]
    frames = [(time, link(kind, layer(udp(payload, 4000 + n)))) for n, (time, payload) in enumerate(sent)]
    data = make(frames, kind)
    assert is_capture(data)
    found = datagrams(data)
    assert [datagram.payload for datagram in found] == [payload for _, payload in sent]
    assert [datagram.port for datagram in found] == [4000, 4001, 4002, 4003, 4004]
    times = [datagram.time - found[0].time for datagram in found]
    assert times == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08], abs=1e-6)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_fragments_are_joined_in_any_order(order):
    whole = udp(bytes(range(256)) * 8)
    parts = [ip(whole[:1480], 0, more=True, number=9), ip(whole[1480:], 1480, number=9)]
    other = ip(udp(b"between"))
    frames = [(1, parts[order[0]]), (2, other), (3, parts[order[1]])]
    assert [datagram.payload for datagram in datagrams(pcap(frames))] == [b"between", whole[8:]]


def test_what_is_not_udp_is_left_out():
    frames = [(1, ip(bytes(20), protocol=6)), (2, b"\x45"), (3, b""), (4, ip(udp(b"own"))), (5, ip(udp(b"cut")[:-1]))]
    assert [datagram.payload for datagram in datagrams(pcap(frames))] == [b"own"]


@pytest.mark.parametrize("size", [4, 20, 23])
def test_a_capture_cut_short_is_refused(size):
    with pytest.raises(PacketError, match="capture"):
        datagrams(pcap([(1, ip(udp(b"x")))])[:size])


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_capture_cut_short_anywhere_in_its_last_frame_is_refused(make):
    frames = [(n, ip(udp(b"four"))) for n in range(3)]
    first, whole = len(make(frames[:2])), make(frames)
    assert len(datagrams(whole[:first])) == 2
    for size in range(first + 1, len(whole)):
        with pytest.raises(PacketError, match="capture"):
            datagrams(whole[:size])


def test_a_capture_of_another_network_is_refused():
    with pytest.raises(PacketError, match="link type 105"):
        datagrams(pcap([(1, b"wireless")], 105))


@given(st.binary(max_size=80), st.sampled_from([pcap([]), pcapng([])]))
def test_no_bytes_behind_a_header_do_more_than_be_refused(data, head):
    with contextlib.suppress(PacketError):
        datagrams(head + data)


def test_a_recording_is_what_of_a_capture_belongs_to_the_system(tmp_path):
    motion = b"BNG1" + bytes(84)
    frames = [(n * 10**9, ip(udp(payload))) for n, payload in enumerate((b"nothing", motion, bytes(7), motion))]
    path = tmp_path / "drive.pcap"
    path.write_bytes(pcap(frames))
    recording = read_recording(path, "dk")
    assert recording.packages == [motion, motion]
    assert recording.times == pytest.approx([0.0, 2.0])
    assert recording.others == 2
    path.write_bytes(pcap(frames[:1]))
    with pytest.raises(PacketError, match="1 datagrams of other kinds"):
        read_recording(path, "dk")
