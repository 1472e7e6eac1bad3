"""Datagram sockets: ``udp://``."""

import socket

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import parse_endpoint
from motioncue.transports.sockets import ignore_unreachable
from motioncue.transports.stream import reason

__all__ = ["open_receiver", "open_sender"]


def open_sender(url: str) -> tuple[socket.socket, tuple[str, int, int]]:
    """Return a non-blocking socket and the numeric address (IP, port, scope) to send to.

    Not connected: a receiver that is not there yet, or no more, must not make sending fail.

    Raises
    ------
    EndpointError
        If the URL is bad or the host is unknown.
    """
    endpoint = parse_endpoint(url, ("udp",))
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0]
        sender = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise EndpointError(f"{endpoint}: cannot send there: {reason(error)}") from error
    sender.setblocking(False)
    ignore_unreachable(sender)
    scope = int(address[3]) if len(address) > 3 else 0
    return sender, (str(address[0]), int(address[1]), scope)


def open_receiver(url: str) -> socket.socket:
    """Return a socket bound to `url`.

    Raises
    ------
    EndpointError
        If the URL is bad, or the port is in use or not to be had.
    """
    endpoint = parse_endpoint(url, ("udp",))
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0]
        receiver = socket.socket(family, kind, protocol)
        try:
            receiver.bind(address)
        except OSError:
            receiver.close()
            raise
    except (OSError, UnicodeError) as error:
        raise EndpointError(f"{endpoint}: cannot listen: {reason(error)}") from error
    return receiver
