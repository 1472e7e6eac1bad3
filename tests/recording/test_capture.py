"""Captures built packet by packet from their formats' documents give the datagrams that were put into them."""

import contextlib
import json
import re
import struct

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import motioncue
from motioncue.cli import cli
from motioncue.cli.check import command as check_command
from motioncue.errors import PacketError
from motioncue.recording import capture
from motioncue.recording import packages as packages_of
from motioncue.recording.capture import captured, is_capture
from motioncue.recording.packages import Pick, Raw, parse_recording
from motioncue.recording.recording import read_recording, sample_recording
from motioncue.sources.beamng_simulink import packets as beamng_simulink
from motioncue.sources.beamng_simulink.twin import driven as simulink_drive
from motioncue.virtual.installation import drive_packages, recorded_packages

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


def fragment6(data, offset=0, more=False, number=1):
    head = struct.pack(">BBHI", 17, 0, offset | more, number)
    return (
        struct.pack(">IHBB16s16s", 0x60000000, len(head + data), 44, 64, bytes(15) + b"\1", bytes(15) + b"\1")
        + head
        + data
    )


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
    found = captured(data).datagrams
    assert [datagram.payload for datagram in found] == [payload for _, payload in sent]
    assert [datagram.port for datagram in found] == [4000, 4001, 4002, 4003, 4004]
    times = [datagram.time - found[0].time for datagram in found]
    assert times == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08], abs=1e-6)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("cut", [ip, fragment6])
def test_fragments_are_joined_in_any_order(cut, order):
    whole = udp(bytes(range(256)) * 8)
    parts = [cut(whole[:1480], 0, more=True, number=9), cut(whole[1480:], 1480, number=9)]
    other = ip(udp(b"between"))
    frames = [(1, parts[order[0]]), (2, other), (3, parts[order[1]])]
    assert [datagram.payload for datagram in captured(pcap(frames)).datagrams] == [b"between", whole[8:]]


def test_what_is_not_udp_is_left_out():
    frames = [(1, ip(bytes(20), protocol=6)), (2, b"\x45"), (3, b""), (4, ip(udp(b"own"))), (5, ip(udp(b"cut")[:-1]))]
    assert [datagram.payload for datagram in captured(pcap(frames)).datagrams] == [b"own"]


@pytest.mark.parametrize(("make", "size"), [(pcap, 4), (pcap, 20), (pcap, 23), (pcapng, 4), (pcapng, 11)])
def test_a_capture_cut_within_its_header_is_refused(make, size):
    with pytest.raises(PacketError, match="capture"):
        captured(make([(1, ip(udp(b"x")))])[:size])


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_capture_cut_short_anywhere_gives_its_whole_frames_and_says_what_is_left(make):
    frames = [(n, ip(udp(b"four"))) for n in range(3)]
    first, whole = len(make(frames[:2])), make(frames)
    for size in range(first, len(whole)):
        found = captured(whole[:size])
        assert [datagram.payload for datagram in found.datagrams] == [b"four"] * 2
        left = f"byte {first}: {size - first} bytes were not read: the last whole frame ends there"
        assert found.unreadable == ((left,) if size > first else ())
    assert captured(whole).unreadable == ()


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_frame_of_a_lying_length_ends_what_is_read(make):
    frames = [(n, ip(udp(b"four"))) for n in range(9)]
    content, place = bytearray(make(frames)), len(make(frames[:4])) + (8 if make is pcap else 4)
    content[place : place + 4] = b"\xff\xff\xff\x7f"
    found = captured(bytes(content))
    assert len(found.datagrams) == 4
    assert f"{len(content) - len(make(frames[:4]))} bytes were not read" in found.unreadable[0]


def test_a_capture_with_a_hole_behind_it_is_read_up_to_there(tmp_path, monkeypatch):
    """Zeros are frames without a byte: a sparse file has millions of them."""
    frames = [(n, ip(udp(b"four"))) for n in range(3)]
    udp_of = capture._udp
    for content, count in ((pcap(frames), 3), (pcap([*frames, (0, b""), *frames]), 6), (pcapng(frames), 3)):
        parsed = []
        monkeypatch.setattr(capture, "_udp", lambda *frame, parsed=parsed: parsed.append(frame) or udp_of(*frame))
        found = captured(content + bytes(1 << 20), 10 << 30)
        monkeypatch.undo()
        assert (len(found.datagrams), len(parsed) < 9) == (count, True)
        left = (1 << 20) + (10 << 30)
        assert found.unreadable == (
            f"byte {len(content)}: {left} bytes were not read: the last whole frame ends there",
        )


def test_a_capture_of_another_network_is_refused():
    with pytest.raises(PacketError, match="link type 105"):
        captured(pcap([(1, b"wireless")], 105))


@given(st.binary(max_size=80), st.sampled_from([pcap([]), pcapng([])]))
def test_no_bytes_behind_a_header_do_more_than_be_refused(data, head):
    with contextlib.suppress(PacketError):
        captured(head + data)


def test_a_recording_contains_the_systems_packets_of_a_capture(tmp_path):
    motion = b"BNG1" + bytes(84)
    sent = [(b"nothing", 53), (motion, 4444), (bytes(7), 4444), (motion, 4444)]
    frames = [(n * 10**9, ip(udp(payload, port))) for n, (payload, port) in enumerate(sent)]
    path = tmp_path / "drive.pcap"
    path.write_bytes(pcap(frames))
    recording = read_recording(path, "dk")
    assert recording.packages == [motion, motion]
    assert recording.times == pytest.approx([0.0, 2.0])
    assert (recording.others, recording.rejected) == (1, {"type": 1})
    path.write_bytes(pcap(frames[:1]))
    with pytest.raises(PacketError, match="1 datagrams of other kinds"):
        read_recording(path, "dk")


# Several simulators in one capture.


def from_host(packet, host):
    """Return an IP packet as another host would have sent it."""
    return packet[:12] + bytes(host) + packet[16:]


def two_cars(*places):
    """Return a capture of two cars of the same kind, each at its place: the number of the host, and the port."""
    cars = [[paced.package for paced in simulink_drive(drive, 60.0, 2.0)] for drive in ("turns", "brake")]
    frames = [
        from_host(ip(udp(package, port)), (10, 0, 0, host))
        for packages in zip(*cars, strict=True)
        for (host, port), package in zip(places, packages, strict=True)
    ]
    return pcap([(10**9 + 8_000_000 * number, frame) for number, frame in enumerate(frames)]), cars


@pytest.mark.parametrize(
    ("places", "arguments", "pick"),
    [
        (((1, 4444), (1, 5555)), ("--port", "5555"), {"port": 5555}),
        (((1, 4444), (2, 4444)), ("--from", "10.0.0.2"), {"sender": "10.0.0.2"}),
        (((1, 4444), (2, 5555)), ("--from", "10.0.0.2", "--port", "5555"), {"sender": "10.0.0.2", "port": [5555]}),
    ],
)
@pytest.mark.check
def test_two_simulators_in_a_capture_are_never_mixed(tmp_path, places, arguments, pick):
    path = tmp_path / "two.pcap"
    content, cars = two_cars(*places)
    path.write_bytes(content)
    named = [f"from 10.0.0.{host} to port {port} ({len(cars[0])})" for host, port in places]
    with pytest.raises(PacketError, match="found packages of beamng-simulink") as refused:
        motioncue.read(path)
    assert all(name in str(refused.value) for name in named)
    assert [package.data for package in motioncue.read(path, **pick).packages] == cars[1]
    commands = {
        "check": ["check", str(path), "--json"],
        "decode": ["decode", "beamng-simulink", str(path), "--json"],
        "export": ["export", str(path), "--what", "frames", "--to", str(tmp_path / "two.csv")],
    }
    for name, command in commands.items():
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 2, name
        assert all(name in result.stderr for name in named)
        result = CliRunner().invoke(cli, [*command, *arguments])
        assert result.exit_code in (0, 1), result.output
    decoded = CliRunner().invoke(cli, [*commands["decode"], *arguments]).stdout.splitlines()
    assert len(decoded) == len(cars[1])
    again = recorded_packages("beamng-simulink", str(path), pick=Pick((places[1][1],), f"10.0.0.{places[1][0]}"))
    assert [paced.package for paced in again] == cars[1]


def test_one_simulator_may_send_each_of_its_messages_to_a_port_of_its_own(tmp_path):
    path = tmp_path / "beamng.pcap"
    sent = [paced.package for paced in drive_packages("beamng", "turns", duration_s=1.0)]
    motion = {len(package): port for port, package in zip((4444, 4445), sorted(set(sent), key=len), strict=False)}
    frames = [(8_000_000 * number, ip(udp(package, motion[len(package)]))) for number, package in enumerate(sent)]
    assert len(set(motion.values())) == 2
    path.write_bytes(pcap(frames))
    assert [package.data for package in motioncue.read(path).packages] == sent


def test_a_pick_that_takes_nothing_or_has_nothing_to_choose_from_is_refused(tmp_path):
    path = tmp_path / "two.pcap"
    path.write_bytes(two_cars((1, 4444), (2, 4444))[0])
    for system in (None, "beamng-simulink"):  # found by content, and named
        with pytest.raises(
            PacketError, match=r"no datagram to port 4445, allowed are those that it has: from 10\.0\.0\.1 to"
        ):
            motioncue.read(path, system=system, port=4445)
    for arguments in (["--from", "nobody"], ["--from", "nobody", "--system", "beamng-simulink"]):
        result = CliRunner().invoke(cli, ["check", str(path), *arguments])
        assert result.exit_code == 2
        assert (
            "found no datagram from nobody, allowed are those that it has: from 10.0.0.1 to port 4444 ("
            in result.stderr
        )
        assert "from 10.0.0.2 to port 4444 (" in result.stderr
    with pytest.raises(PacketError, match=r"found no datagram to port 1 or 2 from 10\.0\.0\.9, allowed"):
        motioncue.read(path, port=(1, 2), sender="10.0.0.9")
    with pytest.raises(PacketError, match="found no network capture"):
        motioncue.read(sample_recording(), port=4444)
    with pytest.raises(PacketError, match="found no network capture"):
        motioncue.read(sample_recording(), system="city-car-driving", sender="10.0.0.1")


# Incomplete captures, and files that are not captures.


def fragments(payload, number, size=8):
    """Return a datagram's fragments of `size` bytes each."""
    whole = udp(payload)
    return [
        ip(whole[start : start + size], start, more=start + size < len(whole), number=number)
        for start in range(0, len(whole), size)
    ]


def capture_of(*packets):
    return pcap([(number, packet) for number, packet in enumerate(packets)])


@pytest.mark.check
def test_many_fragments_are_put_together_once(monkeypatch):
    """Not once for each: eight thousand fragments of eight bytes make the largest datagram that there can be."""
    joined = []
    join = capture._Packet.joined
    monkeypatch.setattr(capture._Packet, "joined", lambda packet: joined.append(len(packet.parts)) or join(packet))
    payloads = [bytes([number]) * 65000 for number in range(3)]
    parts = [part for number, payload in enumerate(payloads) for part in fragments(payload, number)]
    found = captured(capture_of(*parts))
    assert [datagram.payload for datagram in found.datagrams] == payloads
    assert joined == [65008 // 8] * 3
    # Fragments without an end are never joined, and are not kept forever.
    endless = [ip(bytes(8), 8 * (number % 8000), more=True, number=number // 8000) for number in range(16000)]
    assert captured(capture_of(*endless)).datagrams == []
    assert len(joined) == 3


def test_fragments_that_overlap_or_are_missing_are_counted():
    first, second, third = fragments(bytes(14), 1)  # 22 bytes with the header: the last one has 6
    overlapping = ip(bytes(16), 8, number=1)
    for parts, count in (
        ([first], 1), ([second, third], 1), ([first, third], 1), ([first, second, third], 0),
        ([first, first, third, second], 0), ([first, second, overlapping], 0), ([second, overlapping, first], 0),
        ([third, ip(bytes(16), 0, more=True, number=1), ip(bytes(8), 8, more=True, number=1)], 1),
    ):  # fmt: skip
        found = captured(capture_of(*parts))
        assert (len(found.datagrams) == 0) == (count > 0)
        assert [lacks.reason for lacks in found.incomplete] == ["fragments_missing"] * count
    assert captured(capture_of(first)).incomplete[0].port == 4444
    assert captured(capture_of(second)).incomplete[0].port is None


@pytest.mark.parametrize(
    ("packet", "reason", "port"),
    [
        (ip(udp(bytes(20)))[:-4], "cut_in_capture", 4444),
        (ip6(udp(bytes(20)))[:-4], "cut_in_capture", 4444),
        (ip(udp(bytes(20)))[:24], "cut_in_capture", None),
        (ip6(udp(bytes(20)))[:44], "cut_in_capture", None),
        (ip(udp(bytes(40))[:24], 0, more=True), "fragments_missing", 4444),
        (fragment6(udp(bytes(40))[:24], 0, more=True), "fragments_missing", 4444),
        (fragment6(udp(bytes(40))[24:], 24), "fragments_missing", None),
    ],
)
def test_a_datagram_of_either_version_of_ip_that_is_not_whole_is_counted(packet, reason, port):
    found = captured(capture_of(packet, ip(udp(b"own"))))
    assert [datagram.payload for datagram in found.datagrams] == [b"own"]
    assert found.incomplete == [capture.Incomplete(reason, port)]


def test_a_capture_whose_times_cannot_be_is_refused():
    """A pcapng file counts up to 2^64 microseconds."""
    frames = [(1, state()), (2**64 * 1000 - 1000, state())]
    with pytest.raises(PacketError, match=r"it: found packages that came 1\.845e\+13 s apart, allowed are 4e\+09 s"):
        parse_recording(Raw(pcapng(frames)), "it", "beamng-simulink")


def state(size=888, port=4444):
    """Return a message of BeamNG's Simulink coupling, or a part of it."""
    return ip(udp(struct.pack("<111d", *[0.0] * 111)[:size].ljust(size, b"\0"), port))


def test_refused_packets_of_a_capture_are_counted_as_by_an_engine():
    whole, short, cut = state(), state(600), state()[:-100]
    elsewhere = ip(udp(b"something", 53))
    lone = fragments(bytes(888), 7, 400)[0]
    packets = [whole] * 185 + [short] * 21 + [cut] * 2 + [elsewhere] * 4 + [lone, fragments(bytes(30), 8, 8)[1]]
    found = parse_recording(Raw(capture_of(*packets)), "it", "beamng-simulink")
    assert len(found.packages) == 185
    live = beamng_simulink.intake(beamng_simulink.Options())
    for _ in range(21):
        live.feed(bytes(600), 1)
    assert found.rejected == {**live.rejected, "cut_in_capture": 2, "fragments_missing": 1}
    assert found.others == 4


def test_a_check_of_a_capture_counts_what_was_refused(tmp_path):
    driven = [ip(udp(package.package)) for package in simulink_drive("tour", 60.0, 3.0)]
    path = tmp_path / "drive.pcap"
    times = [10**9 + 16_666_667 * number for number in range(len(driven))]
    path.write_bytes(
        pcap([(time, state(600) if number % 9 == 4 else driven[number]) for number, time in enumerate(times)])
    )
    result = CliRunner().invoke(check_command, [str(path), "--json"])
    timing = json.loads(result.output.splitlines()[-1])["timing"]
    truncated = len(range(4, len(driven), 9))
    assert truncated > 10
    assert timing["rejected"] == {"type": truncated}
    assert timing["frames"] == len(driven) - truncated
    assert re.search(rf"rejected +{truncated} type\n", result.output)


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        ([fragments(bytes(888), 7, 400)[0]], "1 fragments missing"),
        ([state()[:-100]] * 2, "2 cut in capture"),
        (
            [state(600)] * 3,
            r"3 datagrams of other kinds \(of the first, beamng-simulink: found 600 bytes",
        ),
        ([], "no datagram"),
    ],
)
def test_a_capture_without_a_package_says_what_there_is_instead(packets, found):
    with pytest.raises(PacketError, match=f"it: found {found}.* allowed is at least one package of beamng-simulink"):
        parse_recording(Raw(capture_of(*packets)), "it", "beamng-simulink")


# Very large files.

SMALLEST = {
    "city-car-driving": b"\3\0\1",
    "vehicle-physics-pro": b"MCVP\1\0\x08\0",
    "morai": b"#a$" + bytes(4 + 12 + 2),
    "beamng": b"BNG1" + bytes(84),
    "beamng-simulink": struct.pack("<d", 7.0) + bytes(504),
}


@pytest.mark.parametrize("system", SMALLEST)
def test_more_packages_than_any_drive_has_are_refused_before_they_are_all_there(system, monkeypatch):
    monkeypatch.setattr(packages_of, "MOST", 1000)
    assert len(parse_recording(Raw(SMALLEST[system] * 1000), "it", system).packages) == 1000
    with pytest.raises(PacketError, match=f"it: found more than 1000 packages of {system}, allowed is up to that"):
        parse_recording(Raw(SMALLEST[system] * 100_000), "it", system)


def test_more_datagrams_than_any_drive_has_are_refused(monkeypatch):
    monkeypatch.setattr(capture, "MOST", 10)
    assert len(captured(capture_of(*[state()] * 10)).datagrams) == 10
    with pytest.raises(PacketError, match="more than 10 datagrams"):
        captured(capture_of(*[state()] * 11))
