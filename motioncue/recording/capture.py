"""Network captures (pcap, pcapng): the UDP datagrams in them, with their times."""

import io
import struct
from typing import Any, Literal, NamedTuple

from motioncue.errors import PacketError

__all__ = ["MOST", "Captured", "Datagram", "Incomplete", "captured", "is_capture"]

PCAPNG = b"\x0a\x0d\x0d\x0a"
MAGIC = (
    *(b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d"),  # pcap: us, ns, either order
    PCAPNG,
)
LITTLE = (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1", b"\x4d\x3c\x2b\x1a")
FRAGMENTS = 64  # datagrams of which only a part has come; the oldest is forgotten first
IP_BYTES = 65535  # of the largest IP packet
MOST = 8_000_000  # datagrams of a capture, or packages of a recording: seven hours of 300 a second
CUT, FRAGMENTS_MISSING = "cut_in_capture", "fragments_missing"


class Datagram(NamedTuple):
    """A UDP datagram that was captured."""

    time: float  # of its last fragment, since the epoch [s]
    port: int  # where it was sent to
    payload: bytes


class Incomplete(NamedTuple):
    """A UDP datagram of which something is missing."""

    reason: str
    port: int | None  # where it was sent to; None if that is missing


class Captured(NamedTuple):
    """What a capture holds."""

    datagrams: list[Datagram]
    incomplete: list[Incomplete]


def is_capture(data: bytes) -> bool:
    """Say whether bytes are those of a capture file.

    Parameters
    ----------
    data : bytes
        The file's first four or more.
    """
    return data[:4] in MAGIC


def captured(data: bytes) -> Captured:
    """Return the UDP datagrams in a capture file, fragments joined; what is not UDP over IP is left out.

    Parameters
    ----------
    data : bytes
        Of a pcap or pcapng file: Ethernet, Linux cooked, loopback or raw IP.

    Raises
    ------
    PacketError
        If it is not a capture, is cut short, comes from another kind of network, or holds more than `MOST` datagrams.
    """
    dpkt = _dpkt()
    try:
        reader = dpkt.pcap.UniversalReader(io.BytesIO(data))
        _refuse_cut(data)
        kind = reader.datalink()
        network = _network(dpkt, kind)
        parts = _Parts()
        out: list[Datagram] = []
        incomplete: list[Incomplete] = []
        for time, frame in reader:
            whole = _udp(dpkt, network, frame, parts)
            if whole is None:
                continue
            port, length = _port(whole), int.from_bytes(whole[4:6], "big")
            if port is None or len(whole) < length:
                incomplete.append(Incomplete(CUT, port))
            elif length >= 8:
                out.append(Datagram(float(time), port, whole[8:length]))
            _refuse_more(len(out) + len(incomplete))
        parts.end()
    except (ValueError, struct.error, dpkt.dpkt.Error, EOFError) as error:
        raise PacketError(
            f"capture: found {len(data)} bytes that are not a whole pcap or pcapng file ({error})"
        ) from error
    return Captured(out, incomplete + parts.missing)


def _refuse_cut(data: bytes) -> None:
    """Refuse a file that ends within a frame or a block: what reads it would give what there is of it."""
    blocks = data[:4] == PCAPNG
    mark = data[8:12] if blocks else data[:4]
    order: Literal["little", "big"] = "little" if mark in LITTLE else "big"
    # A block of pcapng begins with its kind and its whole size; before a frame of pcap are 16 bytes, its size at 8.
    start, at, size, more = (0, 4, 8, 0) if blocks else (24, 8, 16, 16)
    while start < len(data):
        length = int.from_bytes(data[start + at : start + at + 4], order) + more
        if len(data) - start < size or not size <= length <= len(data) - start:
            raise ValueError(f"the last whole frame ends at {start}")
        start += length


def _refuse_more(count: int) -> None:
    if count > MOST:
        raise ValueError(f"more than {MOST} datagrams; no drive has as many")


def _dpkt() -> Any:
    try:
        import dpkt
    except ImportError as error:
        raise PacketError("capture: reading one needs dpkt: pip install motioncue[capture]") from error
    return dpkt


def _network(dpkt: Any, kind: int) -> Any:
    """Return what takes a captured frame apart; None for frames that are IP packets."""
    layers = {
        dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
        dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
        dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
        dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
        dpkt.pcap.DLT_LOOP: dpkt.loopback.Loopback,
        **dict.fromkeys((12, 14, 101, 228, 229)),  # raw IP under its several numbers
    }
    if kind not in layers:
        raise ValueError(f"link type {kind}; allowed are {', '.join(map(str, sorted(layers)))}")
    return layers[kind]


def _port(datagram: bytes) -> int | None:
    """Return where a UDP datagram, header first, was sent to; None if the header is not all there."""
    return int.from_bytes(datagram[2:4], "big") if len(datagram) >= 8 else None


def _udp(dpkt: Any, network: Any, frame: bytes, parts: "_Parts") -> bytes | None:
    """Return the UDP datagram that this frame completes, header first; None if it completes none."""
    try:
        if network is not None:
            packet = network(frame).data
        else:
            packet = (dpkt.ip6.IP6 if frame[:1] and frame[0] >> 4 == 6 else dpkt.ip.IP)(frame)
        if not isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) or packet.p != dpkt.ip.IP_PROTO_UDP:
            return None
        fragment = _fragment(dpkt, packet)
        return bytes(packet.data) if fragment is None else parts.join(fragment)
    except (dpkt.dpkt.Error, IndexError):  # a frame that was cut when it was captured, or is something else
        pass
    return None


class _Fragment(NamedTuple):
    """A part of an IP packet."""

    key: tuple[bytes, bytes, int]  # whose it is: from, to, number
    offset: int  # bytes
    more: bool  # whether others are behind it
    data: bytes


def _fragment(dpkt: Any, packet: Any) -> _Fragment | None:
    """Return what an IP packet is a part of; None if it is whole."""
    if isinstance(packet, dpkt.ip.IP):
        whole = not (packet.mf or packet.offset)
        number, offset, more = packet.id, packet.offset, packet.mf
    else:
        head = packet.extension_hdrs.get(dpkt.ip.IP_PROTO_FRAGMENT)
        whole = head is None
        number, offset, more = (0, 0, 0) if head is None else (head.id, head.frag_off, head.m_flag)
    return None if whole else _Fragment((packet.src, packet.dst, number), 8 * offset, bool(more), bytes(packet.data))


class _Packet:
    """An IP packet of which fragments have come."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}  # by offset
        self.have = 0  # bytes
        self.size: int | None = None  # known when the last fragment has come

    def whole(self) -> bytes | None:
        """Return what the fragments make, once there are as many bytes as it has; None if they overlap instead."""
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
        """Take a fragment; return the packet's payload if it is the last one missing."""
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
            whole = packet.whole()
            if whole is None:
                self._give_up(key)
            else:
                del self._packets[key]
            return whole
        return None

    def end(self) -> None:
        """Give up what is not complete."""
        for key in list(self._packets):
            self._give_up(key)

    def _give_up(self, key: Any) -> None:
        head = self._packets.pop(key).parts.get(0, b"")
        self.missing.append(Incomplete(FRAGMENTS_MISSING, _port(head)))
