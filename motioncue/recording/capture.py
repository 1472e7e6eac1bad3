"""Network captures (pcap, pcapng): the UDP datagrams in them, with their times."""

import io
import struct
from ipaddress import ip_address
from typing import Any, Literal, NamedTuple

from motioncue.errors import PacketError

PCAPNG = b"\x0a\x0d\x0d\x0a"
MAGIC = (
    *(b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d"),  # pcap: us, ns; either order
    PCAPNG,
)
LITTLE = (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1", b"\x4d\x3c\x2b\x1a")
HOLE = 4096  # [bytes] that are all zero: they were never written
FRAGMENTS = 64  # most incomplete datagrams to keep; the oldest is dropped first
IP_BYTES = 65535  # largest IP packet [bytes]
MOST = 8_000_000  # most datagrams of a capture, or packages of a recording: seven hours of 300 a second
CUT, FRAGMENTS_MISSING = "cut_in_capture", "fragments_missing"


class Datagram(NamedTuple):
    """A captured UDP datagram."""

    time: float  # time of its last fragment, since the epoch [s]
    port: int  # destination port
    payload: bytes
    sender: str = ""  # address of the host that sent it


class Incomplete(NamedTuple):
    """A UDP datagram with missing parts."""

    reason: str
    port: int | None  # destination port; None if unknown


class Captured(NamedTuple):
    """The contents of a capture."""

    datagrams: list[Datagram]
    incomplete: list[Incomplete]
    unreadable: tuple[str, ...] = ()
    """What could not be read, and where."""


def is_capture(data: bytes) -> bool:
    """Say whether bytes are the beginning of a capture file."""
    return data[:4] in MAGIC


def captured(data: bytes, missing: int = 0) -> Captured:
    """Return the UDP datagrams in a capture file, with fragments joined; ignore everything else."""
    import dpkt  # takes a while

    end = _last_whole_end(data)
    left = len(data) - end + missing
    try:
        reader = dpkt.pcap.UniversalReader(io.BytesIO(data[:end] if end else data))
        kind = reader.datalink()
        network = _network(dpkt, kind)
        parts = _Parts()
        out: list[Datagram] = []
        incomplete: list[Incomplete] = []
        for time, frame in reader:
            found = _udp(dpkt, network, frame, parts)
            if found is None:
                continue
            whole, sender = found
            port, length = _port(whole), int.from_bytes(whole[4:6], "big")
            if port is None or len(whole) < length:
                incomplete.append(Incomplete(CUT, port))
            elif length >= 8:
                out.append(Datagram(float(time), port, whole[8:length], sender))
            if len(out) + len(incomplete) > MOST:
                raise ValueError(f"more than {MOST} datagrams; no drive has as many")
        parts.end()
    except (ValueError, struct.error, dpkt.dpkt.Error, EOFError) as error:
        raise PacketError(f"capture: found {len(data)} bytes that are not a pcap or pcapng file ({error})") from error
    unreadable = (f"byte {end}: {left} bytes were not read: the last whole frame ends there",) if left else ()
    return Captured(out, incomplete + parts.missing, unreadable)


def _last_whole_end(data: bytes) -> int:
    """Return where the last whole frame or block ends: the reader would return the next one incomplete; or 0."""
    blocks = data[:4] == PCAPNG
    mark = data[8:12] if blocks else data[:4]
    order: Literal["little", "big"] = "little" if mark in LITTLE else "big"
    # A pcapng block begins with its type and total size; a pcap frame follows 16 bytes, with its size at byte 8.
    start, at, size, more = (0, 4, 8, 0) if blocks else (24, 8, 16, 16)
    while start + size <= len(data):
        length = int.from_bytes(data[start + at : start + at + 4], order) + more
        if not size <= length <= len(data) - start:
            break
        if length == size and not data[start : start + HOLE].strip(b"\0"):  # frames of no bytes, of a sparse file
            break
        start += length
    return start


def _network(dpkt: Any, kind: int) -> Any:
    """Return the class that parses a captured frame; None if frames are IP packets."""
    layers = {
        dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
        dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
        dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
        dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
        dpkt.pcap.DLT_LOOP: dpkt.loopback.Loopback,
        **dict.fromkeys((12, 14, 101, 228, 229)),  # the numbers for raw IP
    }
    if kind not in layers:
        raise ValueError(f"link type {kind}; allowed are {', '.join(map(str, sorted(layers)))}")
    return layers[kind]


def _port(datagram: bytes) -> int | None:
    """Return the destination port of a UDP datagram, header first; None if the header is incomplete."""
    return int.from_bytes(datagram[2:4], "big") if len(datagram) >= 8 else None


def _udp(dpkt: Any, network: Any, frame: bytes, parts: "_Parts") -> tuple[bytes, str] | None:
    """Return the UDP datagram that this frame completes, header first, and who sent it; None if none."""
    try:
        if network is not None:
            packet = network(frame).data
        else:
            packet = (dpkt.ip6.IP6 if frame[:1] and frame[0] >> 4 == 6 else dpkt.ip.IP)(frame)
        if not isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) or packet.p != dpkt.ip.IP_PROTO_UDP:
            return None
        fragment = _fragment(dpkt, packet)
        whole = bytes(packet.data) if fragment is None else parts.join(fragment)
        return None if whole is None else (whole, str(ip_address(packet.src)))
    except (dpkt.dpkt.Error, IndexError):  # a frame cut by the capture, or something else
        pass
    return None


class _Fragment(NamedTuple):
    """A fragment of an IP packet."""

    key: tuple[bytes, bytes, int]  # sender, receiver and number of the packet
    offset: int  # [bytes]
    more: bool  # whether further fragments follow
    data: bytes


def _fragment(dpkt: Any, packet: Any) -> _Fragment | None:
    """Return the fragment that an IP packet holds; None if the packet is whole."""
    if isinstance(packet, dpkt.ip.IP):
        whole = not (packet.mf or packet.offset)
        number, offset, more = packet.id, packet.offset, packet.mf
    else:
        head = packet.extension_hdrs.get(dpkt.ip.IP_PROTO_FRAGMENT)
        whole = head is None
        number, offset, more = (0, 0, 0) if head is None else (head.id, head.frag_off, head.m_flag)
    return None if whole else _Fragment((packet.src, packet.dst, number), 8 * offset, bool(more), bytes(packet.data))


class _Packet:
    """An IP packet of which fragments have been captured."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}  # by offset
        self.have = 0  # bytes
        self.size: int | None = None  # known from the last fragment

    def joined(self) -> bytes | None:
        """Return the joined fragments if as many bytes are there as the packet has; None if they overlap instead."""
        place = 0
        for offset in sorted(self.parts):
            if offset != place:
                return None
            place += len(self.parts[offset])
        return b"".join(self.parts[offset] for offset in sorted(self.parts)) if place == self.size else None


class _Parts:
    """Joins the fragments of IP packets."""

    def __init__(self) -> None:
        self._packets: dict[Any, _Packet] = {}
        self.missing: list[Incomplete] = []

    def join(self, fragment: _Fragment) -> bytes | None:
        """Take a fragment; return the packet's payload if that completes it."""
        key, offset, part = fragment.key, fragment.offset, fragment.data
        packet = self._packets.setdefault(key, _Packet())
        packet.have += len(part) - len(packet.parts.get(offset, b""))
        packet.parts[offset] = part
        if not fragment.more:
            packet.size = offset + len(part)
        if len(self._packets) > FRAGMENTS:
            self._give_up(next(iter(self._packets)))
        if packet.have > IP_BYTES:
            self._give_up(key)
        elif packet.size is not None and packet.have >= packet.size:
            whole = packet.joined()
            if whole is None:
                self._give_up(key)
            else:
                del self._packets[key]
            return whole
        return None

    def end(self) -> None:
        """Give up the incomplete packets."""
        for key in list(self._packets):
            self._give_up(key)

    def _give_up(self, key: Any) -> None:
        head = self._packets.pop(key).parts.get(0, b"")
        self.missing.append(Incomplete(FRAGMENTS_MISSING, _port(head)))
