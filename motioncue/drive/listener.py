"""A DK in software: receives both streams and reports the cue and how evenly packets arrived."""

import os
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from motioncue.errors import EndpointError, PacketError
from motioncue.transports.endpoint import parse_endpoint
from motioncue.transports.line import Line
from motioncue.transports.serial import open_line
from motioncue.transports.udp import open_receiver

__all__ = ["DatagramListener"]

KEPT = 100_000  # arrival times to keep: five minutes at 333 Hz
LEFT = 1000  # most datagrams of each stream to read after the end


class DatagramListener:
    """Receives the datagrams of a system.

    Parameters
    ----------
    protocol : module or Described
        The protocol of the system that sends them, or the described packet.
    urls : iterable of str
        Endpoints to listen at, ``udp://HOST:PORT`` for each stream; for a described packet also a serial line.

    Raises
    ------
    EndpointError
        If an endpoint is not valid or in use.
    """

    def __init__(self, protocol: Any, urls: Iterable[str]) -> None:
        self._protocol = protocol
        self._identify = protocol.identify
        self.received: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self._last: dict[str, bytes] = {}
        self._arrivals: dict[str, list[int]] = {}
        self._stop = threading.Event()
        self._sockets: list[socket.socket | Line] = []
        self._rest = b""  # of what came over a line
        try:
            for url in urls:
                self._sockets.append(_opened(url))
        except Exception:
            self.close()
            raise

    def run(self, duration_s: float | None = None) -> None:
        """Receive for `duration_s`, or until `stop` is called; datagrams that have arrived by then are taken."""
        end = None if duration_s is None else time.monotonic() + duration_s
        while not self._stop.is_set() and (end is None or time.monotonic() < end):
            self._receive(0.05)
        for _ in range(LEFT):
            if not self._receive(0.0):
                break

    def _receive(self, timeout_s: float) -> bool:
        """Take one datagram of each stream that has one; return whether there was any."""
        ready = select.select(self._sockets, [], [], timeout_s)[0]
        for listening in ready:
            if isinstance(listening, Line):
                self._read(listening)
            else:
                self.take(listening.recv(65536), time.monotonic_ns())
        return bool(ready)

    def _read(self, line: Line) -> None:
        """Take what has come over a serial line."""
        try:
            data = os.read(line.fileno(), 65536)
        except OSError:  # it is unplugged
            data = b""
        if not data:
            time.sleep(0.05)
        pieces, self._rest = self._protocol.split(self._rest + data)
        for piece in pieces:
            self.take(piece, time.monotonic_ns())

    def take(self, data: bytes, now_ns: int) -> None:
        """Take one datagram that arrived at `now_ns`."""
        try:
            name = self._identify(data).name
        except PacketError:
            self.rejected["size_or_magic"] += 1
            return
        arrivals = self._arrivals.setdefault(name, [])
        arrivals.append(now_ns)
        if len(arrivals) > KEPT:
            del arrivals[: KEPT // 2]
        self._last[name] = data
        self.received[name] += 1  # counted last, because other threads read this first

    def stop(self) -> None:
        """End `run` soon; may be called from any thread."""
        self._stop.set()

    def close(self) -> None:
        """Close the sockets."""
        for listening in self._sockets:
            listening.close()

    def last(self, name: str) -> dict[str, Any]:
        """Return the fields of the newest packet with that name; empty if there was none."""
        data = self._last.get(name)
        fields: dict[str, Any] = self._identify(data).decode(data) if data is not None else {}
        return fields

    def channels(self, name: str) -> dict[str, Any]:
        """Return the cue's channels [SI] in the newest packet with that name; empty if there was none."""
        fields = self.last(name)
        read = getattr(self._protocol, "channels", None)
        return fields if read is None else dict(read(fields))

    def rate_hz(self, name: str) -> float:
        """Return the mean rate of a stream [Hz]; 0 if it is not known yet."""
        arrivals = self._arrivals.get(name, [])
        span = arrivals[-1] - arrivals[0] if len(arrivals) > 1 else 0
        return (len(arrivals) - 1) * 1e9 / span if span else 0.0

    def stats(self) -> dict[str, Any]:
        """Return what was received, rate and regularity of arrivals, and the newest packet of each stream."""
        streams = {}
        for name, count in list(self.received.items()):
            intervals = np.diff(np.array(self._arrivals[name])) / 1e3
            streams[name] = {
                "packets_received": count,
                "rate_hz": self.rate_hz(name),
                "interval_us": {
                    key: float(np.quantile(intervals, q)) if len(intervals) else None
                    for key, q in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
                },
                "last": self.last(name),
            }
        return {
            "packets_received": sum(self.received.values()),
            "rejected": dict(self.rejected),
            "streams": streams,
        }


def _opened(url: str) -> socket.socket | Line:
    """Return the open endpoint of a URL."""
    if parse_endpoint(url).scheme != "serial":
        return open_receiver(url)
    if sys.platform == "win32":
        raise EndpointError(f"{url}: cannot listen: only other systems than Windows read serial lines")
    return open_line(url)
