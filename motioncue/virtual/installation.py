"""A whole installation on one machine: car, engine and platform, connected like real ones."""

import contextlib
import itertools
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from motioncue import sources
from motioncue.drive.courses import length_s
from motioncue.drive.peers import DatagramListener
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.errors import EndpointError
from motioncue.output.described import Described
from motioncue.platforms.build import channels_of
from motioncue.profile.profile import Profile, Record
from motioncue.transports.endpoint import UNIX_PATH_MAX
from motioncue.virtual.platform_twin import PlatformListener, missing_from
from motioncue.virtual.simulators import drive_packages, make_simulator

__all__ = ["Installation"]

ATTEMPTS = 20  # attempts to find a pair of free ports
TRACED = 30_000  # ticks from which the delay behind the cue is found


class Installation:
    """A virtual car, a real endpoint, a real engine, real datagrams and a virtual platform.

    Attributes
    ----------
    duration_s : float or None
        Time to drive [s]; None if it is endless.
    engine : Engine
        Running while the installation is entered.
    platform : DatagramListener
        Receives the engine's packets; a `PlatformListener` moves by them.
    simulator : Simulator
        Plays the car's simulator.

    Examples
    --------
    >>> with Installation("ccd-dk", "tour") as installation:          # doctest: +SKIP
    ...     time.sleep(10)
    ...     print(installation.platform.last("motion")["surge"])
    """

    def __init__(
        self,
        profile: str | Path,
        drive: str = "tour",
        duration_s: float | None = None,
        *,
        overrides: Sequence[str] = (),
        record: Record | str | Path | None = None,
        endless: bool = False,
    ) -> None:
        self._record = record
        self._profile = load_profile(profile, *overrides)
        self._packages = drive_packages(sources.system_of(self._profile.source), drive, duration_s=duration_s)
        self._endless = endless
        self.duration_s = None if endless else length_s(drive) if duration_s is None else duration_s
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Installation":
        """Start the platform, then the engine, then the car."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="motioncue-"))
            module = sources.source(sources.system_of(self._profile.source))
            endpoints = _private_endpoints(module.SCHEMES, max(1, len(self._profile.source.endpoints)), folder)
            # The port on which the simulator expects answers, if it is another one, must be its own.
            answers = {"reply_port"} & {*module.Options.__struct_fields__}
            private = {name: _free_port(socket.SOCK_DGRAM) for name in answers}
            options = {**self._profile.source.options, **private}
            source = msgspec.structs.replace(self._profile.source, endpoint=endpoints, forward=(), options=options)
            self.platform, urls = _listening(self._profile)
            stack.callback(self.platform.close)
            output = msgspec.structs.replace(self._profile.outputs[0], **urls)
            if output.packet is not None:  # nobody is checked in at a controller that exists
                packet = msgspec.structs.replace(output.packet, check_in=None)
                output = msgspec.structs.replace(output, packet=packet)
            self.profile = msgspec.structs.replace(self._profile, source=source, output=output)
            stack.enter_context(_running(self.platform.run, self.platform.stop))
            described = isinstance(self.platform, PlatformListener)
            self.engine = Engine(self.profile, record=self._record, trace=TRACED if described else 0)
            stack.callback(self._drain)
            stack.enter_context(self.engine)
            packages = itertools.cycle(self._packages) if self._endless else self._packages
            self.simulator = make_simulator(sources.system_of(source), endpoints, packages, **private)
            stack.enter_context(_running(self.simulator.run, self.simulator.stop))
            # From here on the order of the end is reversed: the engine goes to neutral while the car still drives.
            stack.callback(self.engine.stop)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Fade to neutral, then end everything."""
        self._open.close()

    def _drain(self) -> None:
        """Wait until the platform has received what the engine sent, but not long, because datagrams may be lost."""
        end = time.monotonic() + 1.0
        while self._missing() > 0 and time.monotonic() < end:
            time.sleep(0.01)

    def _missing(self) -> int:
        came = sum(self.platform.received.values()) + sum(self.platform.rejected.values())
        return int(self.engine.stats()["datagrams_sent"]) - came

    def stats(self) -> dict[str, Any]:
        """Return the engine's statistics, and ``platform`` with what arrived there.

        ``platform.unmoved`` are actuators that no field of the packet holds: then there is no virtual platform.
        ``platform.lost`` counts datagrams that were sent and did not arrive; it is exact after the end.  A platform
        that the profile describes has ``platform.behind_cue_s`` too, None while datagrams are missing.
        """
        platform = self.platform.stats()
        if isinstance(self.platform, PlatformListener):
            whole = self._missing() == 0
            platform["behind_cue_s"] = self.platform.behind(self.engine.trace) if whole else None
        platform["unmoved"] = _unmoved(self._profile)
        return {**self.engine.stats(), "platform": {**platform, "lost": max(0, self._missing())}}


@contextlib.contextmanager
def _running(run: Any, stop: Any) -> Iterator[None]:
    """Run something in a thread of its own until the context ends."""
    thread = threading.Thread(target=run, name=f"motioncue {run.__qualname__}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join()


def _private_endpoints(schemes: tuple[str, ...], count: int, folder: str) -> tuple[str, ...]:
    """Return unused endpoints: ports; for a stream a pipe on Windows, elsewhere a Unix socket or a port."""
    path = os.path.join(folder, "engine")
    if "memory" in schemes:
        return (f"memory://{os.path.basename(folder)}",)
    if "udp" in schemes:
        return tuple(f"udp://127.0.0.1:{_free_port(socket.SOCK_DGRAM)}" for _ in range(count))
    if sys.platform == "win32":
        return (f"pipe://{os.path.basename(folder)}",)
    if len(os.fsencode(path)) <= UNIX_PATH_MAX:
        return (f"unix://{path}",)
    return (f"tcp://127.0.0.1:{_free_port(socket.SOCK_STREAM)}",)


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listening(profile: Profile) -> tuple[DatagramListener, dict[str, str]]:
    """Return a platform that listens at free ports, and the endpoint of each of its streams."""
    output = profile.outputs[0]
    streams = sources.platform(output.system).STREAMS if output.packet is None else Described.STREAMS
    names = [name for name in streams if getattr(output, name) is not None]
    attempts = 0
    while True:
        urls = {name: f"udp://127.0.0.1:{_free_port(socket.SOCK_DGRAM)}" for name in names}
        try:
            return _listener(profile, urls.values()), urls
        except EndpointError:
            attempts += 1
            if attempts == ATTEMPTS:
                raise


def _unmoved(profile: Profile) -> list[str]:
    """Return the actuators of a profile's platform that no packet moves, because none of its fields holds them."""
    packet = profile.outputs[0].packet
    if packet is None or profile.platform is None:
        return []
    return missing_from(packet, channels_of(profile.platform))


def _listener(profile: Profile, urls: Iterable[str]) -> DatagramListener:
    """Return a platform that moves by its packets, if they hold every actuator; else one that only receives them."""
    output = profile.outputs[0]
    if output.packet is None:
        return DatagramListener(sources.system(output.system), urls)
    if profile.platform is not None and not _unmoved(profile):
        return PlatformListener(profile, urls)
    return DatagramListener(Described(output.packet), urls)
