"""Network captures (pcap, pcapng): the UDP datagrams in them, with their times."""

import io
import struct
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from motioncue.errors import PacketError

__all__ = ["Datagram", "datagrams", "is_capture"]

PCAPNG = b"\x0a\x0d\x0d\x0a"
MAGIC = (
    *(b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d"),  # pcap: us, ns, either order
    PCAPNG,
)
LITTLE = (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1", b"\x4d\x3c\x2b\x1a")
FRAGMENTS = 64  # datagrams of which only a part has come; the oldest is forgotten first


class Datagram(NamedTuple):
    """A UDP datagram that was captured."""

    time: float  # of its last fragment, since the epoch [s]
    port: int  # where it was sent to
    payload: bytes


def is_capture(data: bytes) -> bool:
    """Say whether bytes are those of a capture file.

    Parameters
    ----------
    data : bytes
        The file's first four or more.
    """
    return data[:4] in MAGIC


def datagrams(data: bytes) -> list[Datagram]:
    """Return the UDP datagrams in a capture file, fragments joined; what is not UDP over IP is left out.

    Parameters
    ----------
    data : bytes
        Of a pcap or pcapng file: Ethernet, Linux cooked, loopback or raw IP.

    Raises
    ------
    PacketError
        If it is not a capture, is cut short, or comes from another kind of network.
    """
    dpkt = _dpkt()
    try:
        reader = dpkt.pcap.UniversalReader(io.BytesIO(data))
        _refuse_cut(data)
        kind = reader.datalink()
        network = _network(dpkt, kind)
        parts = _Parts()
        out = []
        for time, frame in reader:
            for port, payload in _udp(dpkt, network, frame, parts):
                out.append(Datagram(float(time), port, payload))
    except (ValueError, struct.error, dpkt.dpkt.Error, EOFError) as error:
        raise PacketError(
            f"capture: found {len(data)} bytes that are not a whole pcap or pcapng file ({error})"
        ) from error
    return out


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


def _udp(dpkt: Any, network: Any, frame: bytes, parts: "_Parts") -> Iterator[tuple[int, bytes]]:
    """Yield port and payload of a datagram that this frame completes."""
    try:
        if network is not None:
            packet = network(frame).data
        else:
            packet = (dpkt.ip6.IP6 if frame[:1] and frame[0] >> 4 == 6 else dpkt.ip.IP)(frame)
        if isinstance(packet, dpkt.ip.IP) and packet.p == dpkt.ip.IP_PROTO_UDP:
            whole = parts.join(packet) if packet.mf or packet.offset else bytes(packet.data)
        elif isinstance(packet, dpkt.ip6.IP6) and isinstance(packet.data, dpkt.udp.UDP):
            whole = bytes(packet.data)
        else:
            return
    except (dpkt.dpkt.Error, IndexError):  # a frame that was cut when it was captured, or is something else
        return
    if whole is None or len(whole) < 8:
        return
    port, length = struct.unpack(">HH", whole[2:6])
    if length >= 8 and len(whole) >= length:
        yield port, whole[8:length]


class _Parts:
    """Joins the fragments of IPv4 packets."""

    def __init__(self) -> None:
        self._packets: dict[Any, dict[int, tuple[bytes, bool]]] = {}

    def join(self, packet: Any) -> bytes | None:
        """Take a fragment; return the packet's payload if it is the last one missing."""
        key = packet.src, packet.dst, packet.id, packet.p
        parts = self._packets.setdefault(key, {})
        parts[8 * packet.offset] = bytes(packet.data), bool(packet.mf)
        if len(self._packets) > FRAGMENTS:
            del self._packets[next(iter(self._packets))]
        whole = b""
        for offset, (part, more) in sorted(parts.items()):
            if offset != len(whole):
                return None
            whole += part
            if not more:
                self._packets.pop(key, None)
                return whole
        return None
