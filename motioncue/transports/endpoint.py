"""Endpoints are URLs, and what is opened at one: a stream's server or client, a datagram socket.

``pipe://NAME``, ``unix://PATH``, ``tcp://HOST:PORT``, ``udp://HOST:PORT``, ``serial://NAME?baud=BAUD&format=8N1``,
``memory://NAME``.
"""

import contextlib
import errno
import ipaddress
import os
import re
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from motioncue.errors import EndpointError
from motioncue.transports.handles import Line, PipeConnection, PipeServer, Server, SocketServer, ignore_unreachable

FORMS = {
    "pipe": "pipe://NAME",
    "unix": "unix://PATH",
    "tcp": "tcp://HOST:PORT",
    "udp": "udp://HOST:PORT",
    "serial": "serial://NAME?baud=115200",
    "memory": "memory://NAME",
}

BAUD_MIN, BAUD_MAX = 50, 1_000_000
"""Slowest and fastest serial line [baud]."""

BAUD = 115_200
"""Speed of a line if neither the endpoint nor the packet says it [baud]."""

CLOSE = 0.03  # share by which a line's speed may differ: receivers sample the last bit of ten within half of it

UNIX_PATH_MAX = 103  # [bytes] the shortest limit of all systems with Unix sockets

STREAMS = ("pipe", "unix", "tcp")

WSAEADDRINUSE, WSAEADDRNOTAVAIL = 10048, 10049

SILENCE = {
    **dict.fromkeys(("TCP_KEEPIDLE", "TCP_KEEPALIVE"), 5),  # [s]; macOS uses the second name
    "TCP_KEEPINTVL": 2,  # [s]
    "TCP_KEEPCNT": 5,
    "TCP_USER_TIMEOUT": 15_000,  # [ms] while sent data is not acknowledged
}
"""Options that detect a TCP peer that died silently: first probe after 5 s of silence, closed after 15 s."""

RECEIVE_BYTES = 1 << 20  # or as much as the system grants, so that a short stall loses nothing
IP_RECVERR, IPV6_RECVERR = 11, 25  # Linux option numbers that Python does not name


class Endpoint(NamedTuple):
    """An address that bytes come from or go to."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    baud: int = 0
    """Speed of a serial line [baud]; 0 if the URL does not say it."""
    format: str = "8N1"
    """Data bits, parity (N, E, O) and stop bits of a serial line."""
    sender: int = 0
    """Port that datagrams are sent from; 0: any."""

    def __str__(self) -> str:
        """Return the URL."""
        if self.scheme == "serial":
            options = [f"baud={self.baud}"] if self.baud else []
            options += [f"format={self.format}"] if self.format != "8N1" else []
            return f"serial://{self.path}{'?' if options else ''}{'&'.join(options)}"
        if self.scheme in ("pipe", "unix", "memory"):
            return f"{self.scheme}://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{f'?from={self.sender}' if self.sender else ''}"

    @property
    def bits_of_a_byte(self) -> int:
        """How many bits one byte takes on a serial line: start, data, parity and stop bits."""
        data, parity, stop = tuple(self.format)
        return 1 + int(data) + (parity != "N") + int(stop)

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the endpoint."""
        if self.scheme in ("pipe", "unix", "serial", "memory") or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_endpoint(url: str, schemes: tuple[str, ...] = tuple(FORMS), name: str = "endpoint") -> Endpoint:
    """Return the endpoint of a URL."""
    scheme, separator, rest = str(url).partition("://")
    allowed = ", ".join(FORMS[known] for known in schemes)
    if not separator or scheme not in schemes:
        raise EndpointError(f"{name}: found {url!r}, allowed {'are' if schemes[1:] else 'is'} {allowed}")
    if scheme == "pipe":
        if not rest or any(character in rest for character in '/\\"\0'):
            raise EndpointError(f"{name}: found {url!r}, a pipe's name has no slash, backslash or quote")
        return Endpoint("pipe", path=rest)
    if scheme == "unix":
        if not rest or "\0" in rest or len(os.fsencode(rest)) > UNIX_PATH_MAX:
            raise EndpointError(f"{name}: found {url!r}, allowed is a path of 1 to {UNIX_PATH_MAX} bytes")
        return Endpoint("unix", path=rest)
    if scheme == "memory":
        if not re.fullmatch(r"[A-Za-z0-9_$.-]{1,100}", rest) or not rest.strip("."):
            raise EndpointError(f"{name}: found {url!r}, a mapping's name has letters, digits, _, $, . and -")
        return Endpoint("memory", path=rest)
    if scheme == "serial":
        return _serial(url, rest, name)
    rest, sender = _sender(url, rest, name) if scheme == "udp" else (rest, 0)
    host, colon, port = rest.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise EndpointError(f"{name}: found {url!r}, allowed is {FORMS[scheme]} with a port of 1 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif any(character in host for character in ":/[]@ \0"):
        raise EndpointError(f"{name}: found {url!r}, allowed is {FORMS[scheme]}; IPv6 hosts go in brackets")
    return Endpoint(scheme, host or "127.0.0.1", int(port), sender=sender)


def _serial(url: str, rest: str, name: str) -> Endpoint:
    """Return the endpoint of a serial line; `rest` is the URL without its scheme."""
    path, _, query = rest.partition("?")
    options = dict.fromkeys(("baud", "format"), "")
    for option in query.split("&") if query else ():
        key, _, value = option.partition("=")
        if key not in options or not value:
            raise EndpointError(f"{name}: found {url!r}, allowed is serial://NAME?baud=115200&format=8N1")
        options[key] = value
    baud, form = options["baud"] or "0", options["format"] or "8N1"
    number = int(baud) if re.fullmatch("[0-9]{1,9}", baud) else -1
    if options["baud"] and not BAUD_MIN <= number <= BAUD_MAX:
        raise EndpointError(f"{name}: found {url!r}, allowed are {BAUD_MIN} to {BAUD_MAX} baud")
    if not re.fullmatch("[78][NEO][12]", form):
        raise EndpointError(
            f"{name}: found format {form!r}, allowed are 7 or 8 data bits, parity N, E or O, 1 or 2 stop bits: 8N1"
        )
    if not path or "\0" in path:
        raise EndpointError(f"{name}: found {url!r}, allowed is a name such as /dev/ttyUSB0 or COM3 after serial://")
    return Endpoint("serial", path=path, baud=number, format=form)


def _sender(url: str, rest: str, name: str) -> tuple[str, int]:
    """Split the port that datagrams are sent from off a URL without its scheme."""
    address, mark, query = rest.partition("?")
    if not mark:
        return rest, 0
    port = query.removeprefix("from=")
    if not query.startswith("from=") or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise EndpointError(f"{name}: found {url!r}, allowed is udp://HOST:PORT?from=PORT with ports of 1 to 65535")
    return address, int(port)


def as_socket(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint to open: on Windows the endpoint itself, elsewhere a Unix socket in place of a pipe.

    For ``pipe://NAME`` it is the Unix socket that .NET uses for a pipe of that name, so .NET clients find it.
    """
    if endpoint.scheme != "pipe" or sys.platform == "win32":
        return endpoint
    return Endpoint("unix", path=os.path.join(tempfile.gettempdir(), f"CoreFxPipe_{endpoint.path}"))


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
        listener = _unix_socket(self.endpoint)
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


def _unix_socket(endpoint: Endpoint) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise EndpointError(f"{endpoint}: this Python has no Unix sockets; use pipe://NAME or tcp://HOST:PORT")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


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
        client = _unix_socket(endpoint)
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

    Only Linux can.  The failing call sends nothing, so it must be repeated, as `motioncue.transports.handles` does.
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


def open_line(url: str, baud: int = BAUD) -> Line:
    """Return an open serial line: raw, without flow control, written without waiting."""
    endpoint = parse_endpoint(url, ("serial",))
    baud = endpoint.baud or baud
    try:
        line = Line(endpoint.path, baud, endpoint.format)
    except OSError as error:
        raise EndpointError(f"{endpoint}: cannot send there: {reason(error)}") from error
    if abs(line.actual - baud) > CLOSE * baud:
        line.close()
        raise EndpointError(f"{endpoint}: found {line.actual} baud in place of {baud}, which this line does not have")
    return line
