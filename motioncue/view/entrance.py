"""The page's port before anybody is let in: few connections at once, for a short time, with few bytes."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

__all__ = ["ACCEPTED", "Entrance"]

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

    Parameters
    ----------
    turned_away : callable
        Called with the host of each connection that is ended.

    Attributes
    ----------
    connections : dict of Connection to str
        Those that have not been let in, oldest first, and their hosts.
    """

    def __init__(self, turned_away: Callable[[str], object]) -> None:
        self.connections: dict[ServerConnection, str] = {}
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
