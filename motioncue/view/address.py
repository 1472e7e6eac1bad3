"""Who may see the page: its address, and the checks of every request."""

import hmac
import ipaddress
import re
import secrets
import socket
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from motioncue.errors import ConfigError

__all__ = ["Address", "Door", "parse_address"]

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
    """Return the address that ``[HOST:]PORT`` names; loopback without HOST.

    Parameters
    ----------
    text : str
        Such as ``8765``, ``192.168.1.10:8765`` or ``[::]:8765``; port 0 takes a free one.

    Raises
    ------
    ConfigError
        If it is none.
    """
    found = re.fullmatch(r"(?:(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):)?(\d{1,5})", text)
    if found is None or int(found[2]) > 65535:
        raise ConfigError(f"--view: found {text!r}, allowed is [HOST:]PORT, such as 8765 or 192.168.1.10:8765")
    return Address((found[1] or LOOPBACK).strip("[]"), int(found[2]))


class Door:
    """Checks requests to the page.

    Parameters
    ----------
    address : Address
        Where the page is served, with the port in use.

    Notes
    -----
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
        """Return why a request is refused; None if it is not.

        Parameters
        ----------
        target : str
            Path and query.
        host, origin : str or None
            These headers.
        connects : bool
            Whether it opens a connection, rather than loading a file.
        """
        if host is None or not self._known(host):
            return f"Host: found {host}, allowed is the address that the terminal shows"
        if connects and origin != f"http://{host}":
            return f"Origin: found {origin}, allowed is the page's own, http://{host}"
        if self.token is not None:
            given = parse_qs(urlsplit(target).query).get("token", [""])[0]
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return "token: missing or wrong, open the address that the terminal shows"
        return None

    def _known(self, host: str) -> bool:
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
