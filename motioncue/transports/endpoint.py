"""Endpoints are URLs.

``pipe://NAME``, ``unix://PATH``, ``tcp://HOST:PORT``, ``udp://HOST:PORT``, ``serial://NAME?baud=BAUD&format=8N1``,
``memory://NAME``.
"""

import ipaddress
import os
import re
import sys
import tempfile
from typing import NamedTuple

from motioncue.errors import EndpointError

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

UNIX_PATH_MAX = 103  # [bytes] the shortest limit of all systems with Unix sockets


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
