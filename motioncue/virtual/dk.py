"""A DK in software: receives both streams and reports the cue and how evenly packets arrived."""

import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from motioncue.errors import PacketError
from motioncue.protocols import system as find_system
from motioncue.transports.udp import open_receiver

__all__ = ["DatagramListener"]

KEPT = 100_000  # arrival times to keep: five minutes at 333 Hz
LEFT = 1000  # most datagrams of each stream to read after the end


class DatagramListener:
    """Receives the datagrams of a system.

    Parameters
    ----------
    system : str or Any
        The system that sends them, or what has its `identify`.
    urls : iterable of str
        Endpoints to listen at, ``udp://HOST:PORT`` for each stream.

    Raises
    ------
    ConfigError
        If the system does not exist.
    EndpointError
        If an endpoint is not valid or in use.
    """

    def __init__(self, system: str | Any, urls: Iterable[str]) -> None:
        self._protocol = find_system(system) if isinstance(system, str) else system
        self._identify = self._protocol.identify
        self.received: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self._last: dict[str, bytes] = {}
        self._arrivals: dict[str, list[int]] = {}
        self._stop = threading.Event()
        self._sockets: list[socket.socket] = []
        try:
            for url in urls:
                self._sockets.append(open_receiver(url))
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
            self.take(listening.recv(65536), time.monotonic_ns())
        return bool(ready)

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
