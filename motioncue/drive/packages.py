"""Timed packages of virtual simulators, and a simulator that sends datagrams and never waits."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from motioncue.transports.udp import open_sender

__all__ = ["DatagramSimulator", "Paced", "untold"]

LATE_S = 0.25  # a longer delay is not caught up


class Paced(NamedTuple):
    """A package, and the time from the package before it [s]."""

    duration: float
    package: bytes  # empty: the simulator leaves
    to: int = 0  # index of the endpoint; the last one if there are fewer
    motion: bool = True  # whether it counts as a frame


def untold(package: bytes, to: int) -> None:
    """Do nothing with a package that was sent: the default of a simulator's `on_sent`.

    Parameters
    ----------
    package : bytes
        The package.
    to : int
        Index of its endpoint.
    """


class DatagramSimulator:
    """Sends datagrams without waiting for answers.

    Parameters
    ----------
    urls : str or sequence of str
        Where the engine listens, ``udp://``.
    packages : iterable of Paced
        Packages to send.

    Attributes
    ----------
    on_sent : callable
        Called in the thread that sends, with each package sent and the number of its endpoint; set it before `run`.

    Raises
    ------
    EndpointError
        If a URL is not valid or a host is unknown.
    """

    def __init__(self, urls: str | Sequence[str], packages: Iterable[Paced]) -> None:
        self._packages = packages
        self._senders = [open_sender(url) for url in ((urls,) if isinstance(urls, str) else urls)]
        self.sent = self.lost = 0
        self.replies = self.connections = 0  # this simulator has none
        self._first = self._last = 0.0  # send times of the first and last frame [s]
        self._stop = threading.Event()
        self.on_sent: Callable[[bytes, int], object] = untold

    def run(self) -> None:
        """Send all packages, or until `stop` is called."""
        deadline = time.monotonic()
        try:
            for each in self._packages:
                deadline = max(deadline + each.duration, time.monotonic() - LATE_S)
                if self._stop.wait(max(0.0, deadline - time.monotonic())):
                    break
                if each.package:
                    self._send(each)
        finally:
            for sender, _ in self._senders:
                sender.close()

    def _send(self, each: Paced) -> None:
        to = min(each.to, len(self._senders) - 1)
        sender, (host, port, scope) = self._senders[to]
        try:
            sender.sendto(each.package, (host, port, 0, scope) if ":" in host else (host, port))
        except OSError:
            self.lost += 1
            return
        self.on_sent(each.package, to)
        if each.motion:
            self.sent += 1
            self._last = time.monotonic()
            self._first = self._first or self._last

    def stop(self) -> None:
        """End `run` soon; may be called from any thread."""
        self._stop.set()

    def rate_hz(self) -> float:
        """Return the mean rate of the frames sent [Hz]; 0 if it is not known yet."""
        span = self._last - self._first
        return (self.sent - 1) / span if span > 0.0 else 0.0
