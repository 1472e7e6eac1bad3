"""Streams, ``pipe://``, ``unix://`` and ``tcp://``: the server's end and the client's."""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Sequence
from typing import Any

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import Endpoint, as_socket, parse_endpoint
from motioncue.transports.sockets import PipeConnection, PipeServer, Server, SocketServer

STREAMS = ("pipe", "unix", "tcp")

WSAEADDRINUSE, WSAEADDRNOTAVAIL = 10048, 10049

SILENCE = {
    **dict.fromkeys(("TCP_KEEPIDLE", "TCP_KEEPALIVE"), 5),  # [s]; macOS uses the second name
    "TCP_KEEPINTVL": 2,  # [s]
    "TCP_KEEPCNT": 5,
    "TCP_USER_TIMEOUT": 15_000,  # [ms] while sent data is not acknowledged
}
"""Options that detect a TCP peer that died silently: first probe after 5 s of silence, closed after 15 s."""


class Listener:
    """A stream server at an endpoint, in `server`, which removes its socket file when closed."""

    def __init__(self, url: str, hosts: Sequence[bytes] | None = None) -> None:
        self.endpoint = parse_endpoint(url, STREAMS)
        self._hosts = hosts
        where = as_socket(self.endpoint)
        self._path = where.path
        self._inode = 0
        self._owner = os.getpid()
        try:
            self.server = self._open(where)
        except (OSError, UnicodeError) as error:
            if isinstance(error, EndpointError):
                raise
            raise EndpointError(f"{self.endpoint}: cannot listen: {reason(error)}") from error

    def _open(self, where: Endpoint) -> Server:
        if where.scheme == "pipe":
            return PipeServer(where.path)
        listener = self._unix(where.path) if where.scheme == "unix" else self._tcp(where)
        listener.listen(1024)  # a crowd of silent connections must not keep a simulator out of the queue
        listener.setblocking(False)
        return SocketServer(listener, self._hosts)

    def _tcp(self, where: Endpoint) -> socket.socket:
        family, kind, protocol, _, address = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # on other systems the option would let two programs share the port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted connections inherit these options.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # send replies at once
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in SILENCE.items():
                with contextlib.suppress(AttributeError, OSError):  # an option that a system lacks keeps its default
                    listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
        return listener

    def _unix(self, path: str) -> socket.socket:
        if not hasattr(socket, "AF_UNIX"):
            raise EndpointError(f"{self.endpoint}: this Python has no Unix sockets; use pipe://NAME or tcp://HOST:PORT")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _remove_stale(path)
            listener.bind(path)
            os.chmod(path, 0o600)  # only the same user's simulator
            self._inode = os.stat(path).st_ino
        except OSError:
            listener.close()
            raise
        return listener

    def close(self) -> None:
        """Stop listening, and remove the Unix socket if this process made it (a forked child did not)."""
        self.server.close()
        try:
            if self._inode and os.getpid() == self._owner and os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
        except OSError:
            pass


def _remove_stale(path: str) -> None:
    """Remove the socket that a killed process left behind, but no socket in use and no other file."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise OSError(errno.EEXIST, "a file of that name exists and is not a socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)  # an owner that hangs keeps its socket
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def connect(url: str, timeout_s: float = 1.0) -> Any:
    """Return a connection to the listener at a URL: a socket, or a pipe with a socket's methods."""
    endpoint = parse_endpoint(url, STREAMS)
    where = as_socket(endpoint)
    try:
        if where.scheme == "pipe":
            return PipeConnection(where.path, timeout_s)
        if where.scheme == "tcp":
            client = socket.create_connection((where.host, where.port), timeout_s)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return client
        if not hasattr(socket, "AF_UNIX"):
            raise EndpointError(f"{endpoint}: this Python has no Unix sockets; use pipe://NAME or tcp://HOST:PORT")
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(timeout_s)
        try:
            client.connect(where.path)
        except OSError:
            client.close()
            raise
        return client
    except (OSError, UnicodeError) as error:
        if isinstance(error, EndpointError):
            raise
        raise EndpointError(f"{endpoint}: cannot connect: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Return an error's text without its number, and what it means for an address to listen on."""
    numbers = getattr(error, "winerror", None), getattr(error, "errno", None)
    if {WSAEADDRINUSE, errno.EADDRINUSE} & {*numbers}:
        return "Address already in use: another program listens there, perhaps another motioncue"
    if {WSAEADDRNOTAVAIL, errno.EADDRNOTAVAIL} & {*numbers}:
        return "it is no address of this machine; 0.0.0.0 stands for all that it has"
    return getattr(error, "strerror", None) or str(error)
