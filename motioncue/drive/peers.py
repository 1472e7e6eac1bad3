"""Both ends of an engine in software: a simulator that sends datagrams, a platform that receives them."""

import mmap
import os
import select
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.errors import EndpointError, PacketError
from motioncue.transports.endpoint import open_line, open_receiver, open_sender, parse_endpoint
from motioncue.transports.handles import Line
from motioncue.transports.mapped import SHARED
from motioncue.wire.description import Gather, PlayerTable
from motioncue.wire.packet import Packet

BUFFER = 8192  # size of a buffer in memory that lists its variables [bytes]
LATE_S = 0.25  # a longer delay is not caught up
OTHERS = (3, 11, 5)  # numbers of vehicles beside the player's
PLAYER = 7  # the player's
REORDERED = 50  # states after which the vehicles' blocks have another order


class Paced(NamedTuple):
    """A package, and the time from the package before it [s]."""

    duration: float
    package: bytes  # empty: the simulator leaves
    to: int = 0  # index of the endpoint; the last one if there are fewer
    motion: bool = True  # whether it counts as a frame


def until(packages: Iterable[Paced], duration_s: float | None) -> Iterator[Paced]:
    """Yield packages up to a time [s]; all of them without one."""
    sent = 0.0
    for each in packages:
        sent += each.duration
        if duration_s is not None and sent > duration_s * (1.0 + 1e-9):  # tolerate rounding: it must not cost a frame
            return
        yield each


def blank(packet: Packet, count: int) -> npt.NDArray[np.void]:
    """Return packets in which nothing stands but their constants: an array of their dtype."""
    rows = np.zeros(count, packet.dtype)
    for name, value in packet.constants.items():
        rows[name] = value
    return rows


def ignore_sent(package: bytes, to: int) -> None:
    """Do nothing with a package that was sent: the default of a simulator's `on_sent`."""


class Player:
    """Plays packages, each in time, and counts them; a subclass knows how one is sent."""

    def __init__(self, packages: Iterable[Paced]) -> None:
        self._packages = packages
        self.sent = self.lost = self.replies = self.connections = 0
        self._first = self._last = 0.0  # send times of the first and last frame [s]
        self._stop = threading.Event()
        # Called in the thread that sends, with each package and the number of its endpoint; set it before `run`.
        self.on_sent: Callable[[bytes, int], object] = ignore_sent

    def run(self) -> None:
        """Play all packages, or until `stop` is called; a pause is not caught up."""
        deadline = time.monotonic()
        try:
            for each in starmap(Paced, self._packages):
                deadline = max(deadline + each.duration, time.monotonic() - LATE_S)
                if self._stop.wait(max(0.0, deadline - time.monotonic())):
                    break
                if each.package:
                    self._send(each)
                else:
                    self._leave()
        finally:
            self._close()

    def _send(self, each: Paced) -> None:
        raise NotImplementedError

    def _leave(self) -> None:
        pass

    def _close(self) -> None:
        pass

    def _count_sent(self, now: float) -> None:
        self.sent += 1
        self._last = now
        self._first = self._first or now

    def stop(self) -> None:
        """End `run` soon; may be called from any thread."""
        self._stop.set()

    def rate_hz(self) -> float:
        """Return the mean rate of the frames sent [Hz]; 0 if it is not known yet."""
        span = self._last - self._first
        return (self.sent - 1) / span if span > 0.0 else 0.0


class DatagramSimulator(Player):
    """Sends datagrams without waiting for answers."""

    def __init__(self, urls: str | Sequence[str], packages: Iterable[Paced]) -> None:
        super().__init__(packages)
        self._open((urls,) if isinstance(urls, str) else urls)

    def _open(self, urls: Sequence[str]) -> None:
        self._senders = [open_sender(url) for url in urls]

    def _close(self) -> None:
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
        self._count(each, to)

    def _count(self, each: Paced, to: int) -> None:
        self.on_sent(each.package, to)
        if each.motion:
            self._count_sent(time.monotonic())


class MemorySimulator(DatagramSimulator):
    """Writes each package to shared memory, which goes when the drive ends; or as many at once as a state has samples.

    Where another mapping says which vehicle is the player's, three others stand beside it, and the order of them all
    changes while they drive.
    """

    def __init__(self, urls: str | Sequence[str], packages: Iterable[Paced], gather: Gather) -> None:
        self._gather, self._counter = gather, 0
        self._kept: list[bytes] = []  # the packages since the state before, and that state's
        super().__init__(urls, packages)

    def _open(self, urls: Sequence[str]) -> None:
        endpoint = parse_endpoint(urls[0], ("memory",))
        self._files: list[str] = []
        player = self._gather.player
        try:
            self._map = self._made(str(endpoint.path), self._gather.size)
            self._beside = None if player is None else self._made(player.name, player.size)
        except OSError as error:
            self._unlink()
            raise EndpointError(f"{endpoint}: cannot be written: {error.strerror}") from error
        self._list_variables()

    def _made(self, name: str, size: int) -> mmap.mmap:
        if sys.platform == "win32":
            return mmap.mmap(-1, size, tagname=f"Local\\{name}")
        where = f"{SHARED}/{name}"
        file = os.open(where, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._files.append(where)
        try:
            os.ftruncate(file, size)
            return mmap.mmap(file, size)
        finally:
            os.close(file)

    def _unlink(self) -> None:
        for where in self._files:
            os.unlink(where)

    def _list_variables(self) -> None:
        """Write the list of variables, if the memory has one as iRacing's SDK does."""
        if not self._gather.windows[0].name:
            return
        kinds = {1: 1, 4: 4, 8: 5}  # bool, float, double
        head, place = struct.pack("<10i8x", 2, 1, 60, 0, 0, 0, len(self._gather.windows), 112, 4, BUFFER), 0
        buffers = b"".join(struct.pack("<2i8x", 0, self._gather.size - BUFFER * (4 - n)) for n in range(4))
        for number, part in enumerate(self._gather.windows):
            count = self._gather.count(part)
            listed = struct.pack("<3i?3x32s", kinds.get(part.size, 1), place, count, count > 1, part.name.encode())
            self._map[112 + 144 * number : 112 + 144 * number + len(listed)] = listed
            place += part.size * count
        self._map[: len(head) + len(buffers)] = head + buffers

    def _close(self) -> None:
        self._map.close()
        if self._beside is not None:
            self._beside.close()
        self._unlink()

    def _send(self, each: Paced) -> None:
        gather = self._gather
        package = bytearray(each.package if gather.samples == 1 else self._with_samples(each.package))
        if not package:
            self._count(each, 0)
            return
        signed = gather.end >= 0 or gather.odd  # the counter is the memory's own, and not a number of the state
        if signed:
            self._counter += 1
            self._put(gather.counter, self._counter)
            package[gather.counter : gather.counter + gather.counter_size] = self._bytes()
            if gather.end >= 0:
                package[gather.end : gather.end + gather.counter_size] = self._bytes(self._counter - 1)
        if gather.windows[0].name:
            tick = self._counter + 1
            at = gather.size - BUFFER * (4 - tick % 4)
            self._map[at : at + len(package)] = bytes(package)
            self._map[48 + 16 * (tick % 4) : 52 + 16 * (tick % 4)] = struct.pack("<i", tick)
            self._counter = tick
            self._count(each, 0)
            return
        at, here, there = 0, 0, 0
        if gather.player is not None:
            here, there = self._order(gather.player)
        for part in gather.windows:
            size = part.size * gather.count(part)
            first = part.offset + {"player": here, "beside": there}.get(part.block, 0)
            to = self._beside if part.block == "beside" and self._beside is not None else self._map
            to[first : first + size] = bytes(package[at : at + size])
            at += size
        if gather.player is not None:
            self._number(gather.player)
        if signed:
            self._counter += gather.odd
            self._put(gather.end if gather.end >= 0 else gather.counter, self._counter)
        self._count(each, 0)

    def _order(self, player: PlayerTable) -> tuple[int, int]:
        """Return how far the player's blocks are behind the first ones [bytes], in an order that changes."""
        turn = self._counter // REORDERED
        places = (1 + turn) % (len(OTHERS) + 1), (2 + turn) % (len(OTHERS) + 1)
        return places[0] * player.here.stride, places[1] * player.there.stride

    def _number(self, player: PlayerTable) -> None:
        """Write whose block is whose; the other mapping is whole whenever it is not being written."""
        assert self._beside is not None
        begin = struct.pack("<I", self._counter)
        self._beside[player.begin : player.begin + 4] = begin
        for page, blocks, own in zip(
            (self._map, self._beside), (player.here, player.there), self._order(player), strict=True
        ):
            others = iter(OTHERS)
            page[blocks.count : blocks.count + 4] = struct.pack("<i", 1 + len(OTHERS))
            for place in range(1 + len(OTHERS)):
                at, is_own = blocks.first + place * blocks.stride, place * blocks.stride == own
                page[at + blocks.id : at + blocks.id + 4] = struct.pack("<i", PLAYER if is_own else next(others))
                if page is self._beside:
                    page[at + player.mark] = is_own
        self._beside[player.end : player.end + 4] = begin

    def _with_samples(self, package: bytes) -> bytes:
        """Return the state that a package completes, with the samples until then; nothing if a later one does.

        Packages that come at another rate than the samples are taken as points between which these lie.
        """
        gather, period = self._gather, 1.0 / self._gather.sample_hz
        time = self._time(package)
        if self._kept and not self._time(self._kept[-1]) <= time < self._time(self._kept[0]) + 1.0:
            self._kept.clear()
        begins = not self._kept
        self._kept.append(package)
        if not begins and time - self._time(self._kept[0]) < (gather.samples - 0.5) * period:
            return b""
        times = time - period * np.arange(gather.samples - 1, -1, -1)
        out, at = b"", 0
        for part in gather.windows:
            said = [kept[at : at + part.size] for kept in self._kept]
            if part.sampled:
                known = np.frombuffer(b"".join(said), "<f4" if part.size == 4 else "<f8")
                out += np.interp(times, [self._time(kept) for kept in self._kept], known).astype(known.dtype).tobytes()
            else:
                out += said[-1]
            at += part.size
        del self._kept[:-1]
        return out

    def _time(self, package: bytes) -> float:
        return float(struct.unpack_from("<d", package, self._gather.time)[0])

    def _bytes(self, number: int | None = None) -> bytes:
        return (self._counter if number is None else number).to_bytes(self._gather.counter_size, "little")

    def _put(self, place: int, number: int) -> None:
        """Write a number at a place in the packet."""
        first = 0
        for part in self._gather.windows:
            if first <= place < first + part.size:
                at = part.offset + place - first
                self._map[at : at + self._gather.counter_size] = self._bytes(number)
            first += part.size


class FedSimulator(Player):
    """Plays packages to an engine that is fed by its program."""

    def __init__(self, feed: Callable[[bytes], object], packages: Iterable[Paced]) -> None:
        super().__init__(packages)
        self._feed = feed

    def _send(self, each: Paced) -> None:
        self._feed(each.package)
        self._count_sent(time.monotonic())


KEPT = 100_000  # arrival times to keep: five minutes at 333 Hz
LEFT = 1000  # most datagrams of each stream to read after the end
SENDERS = 8  # addresses of a stream to remember


class DatagramListener:
    """Receives the datagrams of a system."""

    def __init__(self, protocol: Any, urls: Iterable[str]) -> None:
        self._protocol = protocol
        self._identify = protocol.identify
        self.received: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self._last: dict[str, bytes] = {}
        self._arrivals: dict[str, list[int]] = {}
        self._senders: dict[str, dict[str, bool]] = {}  # newest last: whether others came in between
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
                data, address = listening.recvfrom(65536)
                self.take(data, time.monotonic_ns(), f"{address[0]}:{address[1]}")
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

    def take(self, data: bytes, now_ns: int, sender: str = "") -> None:
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
        senders = self._senders.setdefault(name, {})
        if next(reversed(senders), None) != sender:
            senders[sender] = senders.pop(sender, None) is not None
            if len(senders) > SENDERS:
                del senders[next(iter(senders))]
        self.received[name] += 1  # counted last, because other threads read this first

    def stop(self) -> None:
        """End `run` soon; may be called from any thread."""
        self._stop.set()

    def close(self) -> None:
        """Close the sockets."""
        for listening in self._sockets:
            listening.close()

    def in_turn(self, name: str) -> list[str]:
        """Return who sends a stream in turn with others; empty if there is one sender, or one after another."""
        senders = dict(self._senders.get(name, {}))
        return sorted(senders) if any(senders.values()) else []

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
                "in_turn": self.in_turn(name),
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
