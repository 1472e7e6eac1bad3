"""Endpoints are URLs: ``pipe://NAME``, ``unix://PATH``, ``tcp://HOST:PORT``, ``udp://HOST:PORT``."""

import ipaddress
import os
import sys
import tempfile
from typing import NamedTuple

from motioncue.errors import EndpointError

__all__ = ["Endpoint", "parse_endpoint"]

FORMS = {
    "pipe": "pipe://NAME",
    "unix": "unix://PATH",
    "tcp": "tcp://HOST:PORT",
    "udp": "udp://HOST:PORT",
}

UNIX_PATH_MAX = 103  # [bytes] the shortest limit of all systems with Unix sockets


class Endpoint(NamedTuple):
    """An address that bytes come from or go to."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        """Return the URL."""
        if self.scheme in ("pipe", "unix"):
            return f"{self.scheme}://{self.path}"
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the endpoint."""
        if self.scheme in ("pipe", "unix") or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_endpoint(url: str, schemes: tuple[str, ...] = tuple(FORMS), name: str = "endpoint") -> Endpoint:
    """Return the endpoint of a URL.

    Parameters
    ----------
    url : str
        The URL; an empty host means loopback.
    schemes : tuple of str
        Schemes that are allowed here.
    name : str
        Name of the setting, used in errors.

    Raises
    ------
    EndpointError
        If the URL is not valid here; names it and what is allowed.
    """
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
    host, colon, port = rest.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise EndpointError(f"{name}: found {url!r}, allowed is {FORMS[scheme]} with a port of 1 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif any(character in host for character in ":/[]@ \0"):
        raise EndpointError(f"{name}: found {url!r}, allowed is {FORMS[scheme]}; IPv6 hosts go in brackets")
    return Endpoint(scheme, host or "127.0.0.1", int(port))


def as_socket(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint to open: on Windows the endpoint itself, elsewhere a Unix socket in place of a pipe.

    For ``pipe://NAME`` it is the Unix socket that .NET uses for a pipe of that name, so .NET clients find it.
    """
    if endpoint.scheme != "pipe" or sys.platform == "win32":
        return endpoint
    return Endpoint("unix", path=os.path.join(tempfile.gettempdir(), f"CoreFxPipe_{endpoint.path}"))
