"""Who may see the page: its address, checks of requests, and how many may wait at the port."""

import asyncio
import hmac
import ipaddress
import os
import re
import secrets
import socket
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from motioncue.errors import ConfigError

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

LOOPBACK = "127.0.0.1"
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Address(NamedTuple):
    """Where the page is served."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Return the address that ``[HOST:]PORT`` names; loopback without HOST."""
    found = re.fullmatch(r"(?:(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):)?(\d{1,5})", text)
    if found is None or int(found[2]) > 65535:
        raise ConfigError(f"--view: found {text!r}, allowed is [HOST:]PORT, such as 8765 or 192.168.1.10:8765")
    return Address((found[1] or LOOPBACK).strip("[]"), int(found[2]))


class AccessCheck:
    """Checks requests to the page.

    On loopback, the header Host must name this machine, because a page of another site can point its own name at it
    (DNS rebinding).  At any other host, the address has a token, which the page and its connection must show.  In both
    cases the connection's Origin must be the page's own, because a browser lets every site open one.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.token = None if address.loopback else secrets.token_urlsafe(18)

    @property
    def url(self) -> str:
        """The page's address, with the token."""
        host, port = self.address
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")

    def refuses(self, target: str, host: str | None, origin: str | None, *, connects: bool) -> str | None:
        """Return why a request is refused; None if it is not."""
        if host is None or not self._is_own_name(host):
            return f"Host: found {host}, allowed is the address that the terminal shows"
        if connects and origin != f"http://{host}":
            return f"Origin: found {origin}, allowed is the page's own, http://{host}"
        if self.token is not None:
            given = parse_qs(urlsplit(target).query).get("token", [""])[0]
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return "token: missing or wrong, open the address that the terminal shows"
        return None

    def _is_own_name(self, host: str) -> bool:
        """Say whether the header Host names this server."""
        name, _, port = host.rpartition(":")
        if port != str(self.address.port):
            return False
        if self.address.loopback:
            return name.lower() in LOCAL_NAMES
        if name.lower() in (self.address.host.lower(), socket.gethostname().lower(), *LOCAL_NAMES):
            return True
        try:  # a number was not looked up, so no name can have been pointed here
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


ACCEPTED = 8
"""Most connections accepted in one turn of the loop, which must not take the descriptors that are kept back."""

MOST = 32  # connections that have not been let in; a browser opens six for the page's files
KEPT = 24  # descriptors that these never take: for pages, the simulator, the recorder
REQUEST_S = 3.0  # for a whole request, also over a slow link; a browser sends it at once
REQUEST_BYTES = 16 << 10  # of a request; a browser's has less than 2 kB
BURST_BYTES, BYTES_S = 256 << 10, 64 << 10  # of a page: a hundred times what it sends while a slider is moved
UNREAD_BYTES = 1 << 20  # answers that a connection may leave unread; pongs are written without asking


def _ceiling() -> int:
    """Return the descriptor from which on too few are left; the lowest free one is always taken next."""
    if sys.platform == "win32":  # there are enough
        return sys.maxsize
    most = os.sysconf("SC_OPEN_MAX")  # the soft limit, -1 if there is none
    return sys.maxsize if most < 0 else most - KEPT


class Entrance:
    """Ends connections that are too many, too slow or too loud, so that others get in.

    Where there are too many, the oldest connection of the host that has most of them makes room for the newest: a
    browser asks as soon as it is connected, so whoever says nothing waits in vain and in nobody's way.
    """

    def __init__(self, turned_away: Callable[[str], object]) -> None:
        self.connections: dict[ServerConnection, str] = {}  # not let in yet, oldest first, and their hosts
        self._turned_away = turned_away
        self._ceiling = _ceiling()

    def connection_class(self) -> "type[ServerConnection]":
        """Return the class of the connections that come in here."""
        from websockets.asyncio.server import ServerConnection

        entrance = self

        class Connection(ServerConnection):
            """A connection that this entrance knows."""

            received, since = 0, 0.0

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                self.since = self.loop.time()
                self.late = self.loop.call_later(REQUEST_S, entrance.end, self)
                entrance.add(self)

            def data_received(self, data: bytes) -> None:
                self.received += len(data)
                if entrance.endures(self):
                    super().data_received(data)
                    if self.request is not None:  # what it is answered may take longer
                        self.late.cancel()
                else:
                    entrance.end(self)

            def connection_lost(self, exc: Exception | None) -> None:
                self.late.cancel()
                entrance.let_in(self)
                super().connection_lost(exc)

        return Connection

    def add(self, connection: "ServerConnection") -> None:
        """Take a new connection; end one if there are too many."""
        address = connection.transport.get_extra_info("peername")
        self.connections[connection] = address[0] if address else ""
        descriptor = connection.transport.get_extra_info("socket").fileno()
        if len(self.connections) > MOST or descriptor >= self._ceiling:
            self.make_room()

    def let_in(self, connection: "ServerConnection") -> None:
        """Forget a connection that has been let in, or has gone."""
        self.connections.pop(connection, None)

    def make_room(self) -> None:
        """End the oldest connection of the host that has most."""
        crowd = Counter(self.connections.values())
        if crowd:
            most = max(crowd, key=crowd.__getitem__)
            self.end(next(each for each, host in self.connections.items() if host == most))

    def end(self, connection: "ServerConnection") -> None:
        """End a connection without its consent."""
        host = self.connections.pop(connection, None)
        connection.transport.abort()
        self._turned_away(host or "a page")

    def endures(self, connection: Any) -> bool:
        """Say whether a connection has sent no more than it may, and has read what it was answered."""
        if connection in self.connections:
            return bool(connection.received <= REQUEST_BYTES)
        passed = connection.loop.time() - connection.since
        unread = connection.transport.get_write_buffer_size()
        return bool(connection.received <= BURST_BYTES + BYTES_S * passed and unread <= UNREAD_BYTES)
