"""Datagram sockets: ``udp://``."""

import ipaddress
import socket
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import Endpoint, parse_endpoint
from motioncue.transports.sockets import ignore_unreachable
from motioncue.transports.stream import reason

RECEIVE_BYTES = 1 << 20  # or as much as the system grants, so that a short stall loses nothing
IP_RECVERR, IPV6_RECVERR = 11, 25  # Linux option numbers that Python does not name


def packed_hosts(hosts: Iterable[str]) -> list[bytes]:
    """Return the addresses of hosts as 16 bytes each, an IPv4 address mapped into IPv6."""
    packed: list[bytes] = []
    for host in hosts:
        try:
            found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
        except (OSError, UnicodeError) as error:
            raise EndpointError(
                f"source.allow: found {host!r}, allowed are names and addresses of single hosts ({reason(error)})"
            ) from error
        for address in sorted(found):
            ip = ipaddress.ip_address(address.partition("%")[0])
            if ip.is_unspecified:  # no packet comes from the wildcard address
                raise EndpointError(
                    f"source.allow: found {host!r}, which no host has; allowed are names and addresses of single hosts"
                )
            packed.append(packed_host(address))
    if len(packed) > 32:
        raise EndpointError(f"source.allow: found {len(packed)} addresses, allowed are 32")
    return packed


def packed_host(address: str) -> bytes:
    """Return a numeric address as 16 bytes, an IPv4 address mapped into IPv6."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    return ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed


def resolved(endpoint: Endpoint) -> tuple[str, int, int]:
    """Return the numeric address (IP, port, scope) of an endpoint for datagrams."""
    return _numeric(socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0][4])


def _numeric(address: Any) -> tuple[str, int, int]:
    """Return a socket's address as IP, port and scope."""
    return str(address[0]), int(address[1]), int(address[3]) if len(address) > 3 else 0


def open_sender(url: str) -> tuple[socket.socket, tuple[str, int, int]]:
    """Return a non-blocking socket and the numeric address (IP, port, scope) to send to.

    The socket is not connected, so that sending does not fail while the receiver is not running.
    """
    endpoint = parse_endpoint(url, ("udp",))
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0]
        sender = socket.socket(family, kind, protocol)
        if endpoint.sender:
            try:
                sender.bind(("", endpoint.sender))
            except OSError:
                sender.close()
                raise
    except (OSError, UnicodeError) as error:
        raise EndpointError(f"{endpoint}: cannot send there: {reason(error)}") from error
    sender.setblocking(False)
    ignore_unreachable(sender)
    return sender, _numeric(address)


def fail_if_unheard(sender: socket.socket) -> bool:
    """Make a sender's next call fail if nobody listened to a datagram; return whether the system can.

    Only Linux can.  The failing call sends nothing, so it must be repeated, as `motioncue.transports.sockets` does.
    """
    if sys.platform != "linux":
        return False
    ip6 = sender.family == socket.AF_INET6
    sender.setsockopt(socket.IPPROTO_IPV6 if ip6 else socket.IPPROTO_IP, IPV6_RECVERR if ip6 else IP_RECVERR, 1)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)  # no buffer for the detailed errors, which are not read
    return True


def open_receiver(url: str) -> socket.socket:
    """Return a socket bound to `url`."""
    endpoint = parse_endpoint(url, ("udp",))
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0]
        receiver = socket.socket(family, kind, protocol)
        try:
            ignore_unreachable(receiver)
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            receiver.bind(address)
        except OSError:
            receiver.close()
            raise
    except (OSError, UnicodeError) as error:
        raise EndpointError(f"{endpoint}: cannot listen: {reason(error)}") from error
    return receiver


def comes_back(address: tuple[str, int, int], receivers: Sequence[socket.socket]) -> bool:
    """Say whether one of these sockets receives what is sent to a numeric address (IP, port, scope)."""
    host, port, scope = address
    target = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(target, "ipv4_mapped", None) or target
    for receiver in receivers:
        bound, at, *_ = receiver.getsockname()
        listening = ipaddress.ip_address(str(bound).partition("%")[0])
        if at != port:
            continue
        if mapped.is_unspecified or mapped in (listening, getattr(listening, "ipv4_mapped", None)):
            return True
        if listening.is_unspecified and _ours(host, scope):
            return True
    return False


def _ours(host: str, scope: int) -> bool:
    """Say whether an address is this machine's, by trying to bind a socket to it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0, 0, scope) if ":" in host else (host, 0))
        except OSError:
            return False
    return True
