"""Stream sockets: ``unix://``, ``tcp://``, and ``pipe://`` where a pipe is a Unix socket."""

import errno
import os
import socket
import stat

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import Endpoint, as_socket, parse_endpoint

__all__ = ["STREAMS", "Listener", "connect"]

STREAMS = ("pipe", "unix", "tcp")


class Listener:
    """A listening socket that leaves nothing behind.

    Parameters
    ----------
    url : str
        ``pipe://``, ``unix://`` or ``tcp://``.

    Raises
    ------
    EndpointError
        If the URL is bad, the port or path is in use or not to be had.
    """

    def __init__(self, url: str) -> None:
        self.endpoint = parse_endpoint(url, STREAMS)
        where = as_socket(self.endpoint)
        self._path = where.path
        try:
            self.socket = self._unix(where.path) if where.scheme == "unix" else self._tcp(where)
        except (OSError, UnicodeError) as error:
            if isinstance(error, EndpointError):
                raise
            raise EndpointError(f"{self.endpoint}: cannot listen: {reason(error)}") from error
        self.socket.listen(8)
        self.socket.setblocking(False)

    def _tcp(self, where: Endpoint) -> socket.socket:
        family, kind, protocol, _, address = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # elsewhere the option would let two programs share the port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it: replies go at once
            listener.bind(address)
        except OSError:
            listener.close()
            raise
        return listener

    def _unix(self, path: str) -> socket.socket:
        if not hasattr(socket, "AF_UNIX"):
            raise EndpointError(f"{self.endpoint}: this system has no Unix sockets; use tcp://HOST:PORT")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _remove_stale(path)
            listener.bind(path)
            os.chmod(path, 0o600)  # the same user's simulator, nobody else's
            self._inode = os.stat(path).st_ino
        except OSError:
            listener.close()
            raise
        return listener

    def close(self) -> None:
        """Stop listening, and remove the Unix socket if it is still ours."""
        self.socket.close()
        try:
            if self._path and os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
        except OSError:
            pass


def _remove_stale(path: str) -> None:
    """Remove the socket that a killed process left, never one that is in use, never anything else."""
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


def connect(url: str, timeout_s: float = 1.0) -> socket.socket:
    """Return a socket connected to the listener at `url`.

    Raises
    ------
    EndpointError
        If the URL is bad, or nobody listens there.
    """
    endpoint = parse_endpoint(url, STREAMS)
    where = as_socket(endpoint)
    try:
        if where.scheme == "tcp":
            client = socket.create_connection((where.host, where.port), timeout_s)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return client
        if not hasattr(socket, "AF_UNIX"):
            raise EndpointError(f"{endpoint}: this system has no Unix sockets; use tcp://HOST:PORT")
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
    """Return an error's text without its number."""
    return getattr(error, "strerror", None) or str(error)
