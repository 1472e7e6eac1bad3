"""A source's open endpoints and the loop that reads them; and a listener, without cueing or platform."""

import logging
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import ModuleType, TracebackType
from typing import Any

import msgspec
import numpy as np

from motioncue import sources
from motioncue.core.clock import MonotonicClock
from motioncue.core.threads import RecordRing
from motioncue.engine.journal import Journal, SourceLog
from motioncue.engine.receiver import DatagramReceiver, MemoryReceiver, StreamReceiver
from motioncue.errors import ConfigError, EndpointError
from motioncue.frames.intake import Intake, Session
from motioncue.profile.profile import Profile, parse_profile, profile_text
from motioncue.sources.described.source import DescribedSource
from motioncue.transports.endpoint import Listener as StreamListener
from motioncue.transports.endpoint import comes_back, open_receiver, open_sender, packed_hosts, parse_endpoint
from motioncue.transports.mapped import Finder

__all__ = ["Companion", "Listener", "Reception", "beside_driver", "check_endpoints", "readable_games"]

log = logging.getLogger("motioncue")

LOOK_S = 0.1  # from one look at the games to the next


def check_endpoints(
    module: ModuleType | DescribedSource,
    urls: Sequence[str],
    forward: Sequence[str] = (),
    name: str = "source.endpoint",
) -> None:
    """Refuse endpoints at which a source cannot be received."""
    datagrams = module.SCHEMES == ("udp",)
    if not urls:
        raise ConfigError(f"{name}: missing, allowed is an endpoint that the simulator connects or sends to")
    if not 0 < len(urls) <= (8 if datagrams else 1):
        raise ConfigError(
            f"{name}: found {len(urls)} endpoints, allowed {'are one to eight' if datagrams else 'is one'}"
        )
    for url in urls:
        if parse_endpoint(url, module.SCHEMES, name).sender:
            raise EndpointError(f"{name}: found {url!r}, allowed is ?from= where something is sent to")
    if forward and not datagrams:
        raise ConfigError("source.forward: allowed for sources that send datagrams, this one sends none")
    if len(forward) > 8:
        raise ConfigError(f"source.forward: found {len(forward)}, allowed are up to eight")
    for url in forward:
        parse_endpoint(url, ("udp",), "source.forward")


def readable_games(duration_s: float = 1.0) -> list[tuple[str, str]]:
    """Return the games whose shared memory can be read now: each one's profile, and where it is."""
    finders = {}
    for name in sources.described_profiles():
        source = sources.by_profile(name)
        if source is not None and source.gather is not None:
            (url,) = parse_profile(profile_text(name), name=name).source.endpoints
            finders[name] = Finder(parse_endpoint(url).path, source.gather)
    found: dict[tuple[str, str], None] = {}
    end = time.monotonic() + duration_s
    while time.monotonic() < end:
        for name, finder in finders.items():
            found |= dict.fromkeys((name, memory.where) for memory in finder.live())
        time.sleep(LOOK_S)
    return list(found)


class Reception:
    """Receives from a source: opens its endpoints; `run` belongs in a thread."""

    def __init__(
        self, intake: Intake, urls: Sequence[str], *, allow: Sequence[str] = (), forward: Sequence[str] = ()
    ) -> None:
        reachable = not all(parse_endpoint(url).local for url in urls)
        hosts = packed_hosts(allow) if allow or reachable else None
        self.deaf = hosts == []
        """Whether no host is allowed."""
        self.held = False
        """Whether an earlier server's pipe keeps the name in use; this server listens once the pipe's other end is
        closed."""
        self._receiver: DatagramReceiver | MemoryReceiver | StreamReceiver
        self._sockets: list[socket.socket] = []
        self._forwards: list[tuple[str, int, int]] = []
        with ExitStack() as opened:
            if isinstance(intake, Session):
                listener = StreamListener(urls[0], hosts)
                opened.callback(listener.close)
                self.held = getattr(listener.server, "held", False)
                self._receiver = StreamReceiver(intake, listener.server, MonotonicClock())
            elif intake.gather is not None:
                finder = Finder(parse_endpoint(urls[0]).path, intake.gather)
                self._receiver = MemoryReceiver(intake, finder, MonotonicClock())
            else:
                for url in urls:
                    self._sockets.append(open_receiver(url))
                    opened.callback(self._sockets[-1].close)
                    self._sockets[-1].setblocking(False)
                senders = []
                for url in forward:
                    senders.append(open_sender(url))
                    opened.callback(senders[-1][0].close)
                self._forwards = [address for _, address in senders]
                for url, address in zip(forward, self._forwards, strict=True):
                    if comes_back(address, self._sockets):
                        raise EndpointError(
                            f"source.forward: found {url!r}, allowed is where this source does not listen itself: what "
                            f"is passed on would come back"
                        )
                self._receiver = DatagramReceiver(
                    intake,
                    self._sockets,
                    MonotonicClock(),
                    hosts=hosts,
                    forwards=senders,
                    heartbeat=intake.heartbeat,
                )
            self._opened = opened.pop_all()

    def refuse_output(self, name: str, url: str, address: tuple[str, int, int]) -> None:
        """Refuse an output whose packets would be received here, or that also gets the forwarded datagrams."""
        if comes_back(address, self._sockets):
            raise EndpointError(f"{name}: found {url!r}, allowed is where the source does not listen")
        if address in self._forwards:
            raise EndpointError(f"{name}: found {url!r}, allowed is where source.forward does not send to as well")

    def run(self) -> None:
        """Receive until `stop`."""
        self._receiver.run()

    def stop(self) -> None:
        """End `run` at once; may be called from any thread."""
        self._receiver.stop()

    def close(self) -> None:
        """Close the endpoints; call it after `run` has ended."""
        self._opened.close()


class Companion:
    """Receives what another rig's simulator sends: `run` belongs in a thread."""

    def __init__(self, driver: Intake, own: Intake) -> None:
        self._driver, self._own, self._stopped = driver, own, threading.Event()

    def run(self) -> None:
        """Take every package that the other one gets until `stop`; that one's thread does it."""
        self._driver.add_beside(self._own)
        self._stopped.wait()
        self._driver.remove_beside(self._own)

    def stop(self) -> None:
        """End `run` at once; may be called from any thread."""
        self._stopped.set()


def beside_driver(profile: Profile, driver: Profile) -> Profile:
    """Return a profile that takes the driver's source, with its own head and its own way between frames."""
    own = profile.source
    source = msgspec.structs.replace(driver.source, head_m=own.head_m, bridge=own.bridge)
    return msgspec.structs.replace(profile, source=source)


class Listener:
    """Serves a simulator and shows what it reports: a context manager."""

    def __init__(
        self,
        system: sources.System,
        *urls: str,
        allow: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        module = sources.source(system)
        check_endpoints(module, urls)
        self.system, self.urls, self._allow = system, urls, allow
        read, derivation = sources.read_as(system, options)
        self._intake = module.intake(read, derivation=derivation)
        self._journal = Journal()
        self._said = SourceLog(self._journal, system, self._intake)
        self._motion: Any = None
        self._first = self._last = (0, 0)  # frames so far, arrival of the newest one [ns]

    def __enter__(self) -> "Listener":
        """Start to listen."""
        self._receiver = Reception(self._intake, self.urls, allow=self._allow)
        self._thread = threading.Thread(target=self._receiver.run, name="motioncue driver", daemon=True)
        self._thread.start()
        log.info("waiting for %s at %s", self.system, ", ".join(self.urls))
        if self._receiver.deaf:
            log.warning(
                "no host is allowed: nothing that comes from other machines will be heard; name it with --allow"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop listening and close everything."""
        self._receiver.stop()
        self._thread.join()
        self._receiver.close()
        self.poll()
        self._journal.tell(end=True)

    def record(self, ring: RecordRing) -> None:
        """Put packages, frames and events into a ring as they come; call it before entering."""
        self._intake.record(ring)

    def poll(self) -> Any:
        """Log what has happened, and return the newest motion: ndarray of MOTION_DTYPE, shape (1,), or None.

        Call it a few times a second, from one thread.
        """
        self._said.look()
        self._journal.tell()
        motion = self._intake.newest()
        if motion is not None:
            self._motion = motion
            self._last = (self._intake.accepted, int(motion["time"][0]))
            if self._first[0] == 0:
                self._first = self._last
        return self._motion

    def rate_hz(self) -> float:
        """Return the mean rate of frames between the first and the newest poll that found a frame [Hz]."""
        span = self._last[1] - self._first[1]
        return (self._last[0] - self._first[0]) * 1e9 / span if span > 0 else 0.0

    def stats(self) -> dict[str, Any]:
        """Return the statistics so far; the keys are those of ``motioncue listen --json``."""
        motion = self.poll()
        names = () if motion is None else motion.dtype.names
        return {
            "frames_received": self._intake.accepted,
            "rate_hz": self.rate_hz(),
            "rejected": self._intake.rejected,
            "sessions": self._intake.sessions,
            "others_received": self._intake.others,
            "repeats": self._intake.repeats,
            "replies_sent": self._intake.replies,
            "motion": {name: np.asarray(motion[name]).item() for name in names} or None,
            **({"chassis": said} if (said := self._intake.chassis_said()) else {}),
        }
