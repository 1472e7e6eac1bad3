"""Simulator, engine and platform, connected like real ones: live, or on a clock that takes no time.

Against the standard drives a profile's algorithm and its platform are measured at load: they are drives of the virtual
car, kept in ``data/standard_drives.bin`` so that loading a profile computes no car.  ``python -m
motioncue.virtual.installation`` writes the file again.
"""

import contextlib
import itertools
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import data, sources
from motioncue.core.channels import MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.core.table import UNWATCHED
from motioncue.drive.car import angles_and_rates, body_axes, drive
from motioncue.drive.courses import FIRST, Wave, length_s
from motioncue.drive.peers import DatagramListener, until
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.engine.fitting import CHANNELS_KEPT, DRIVES, KEPT_HZ, KEPT_TYPE
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.reception import check_endpoints
from motioncue.engine.replay import Heard, keep
from motioncue.errors import ConfigError, EndpointError, PacketError, not_among
from motioncue.output.described import Described
from motioncue.platforms.build import channels_of
from motioncue.profile.profile import Profile, Record
from motioncue.recording.mcap_reader import Settings
from motioncue.recording.packages import ANY, Pick, Timed, feed, quoted
from motioncue.recording.recorder import Batch
from motioncue.recording.recording import Drive, read_recording, sample_recording
from motioncue.sources import SIMULATORS, DescribedSource, System, Twin, twin
from motioncue.sources.described.twin import Car
from motioncue.transports.endpoint import UNIX_PATH_MAX
from motioncue.virtual.controller import ControllerListener
from motioncue.virtual.platform_twin import PlatformListener, actuators_not_sent

ATTEMPTS = 20  # attempts to find a pair of free ports
TRACED = 30_000  # ticks from which the delay behind the cue is found

SAMPLE = "sample"
"""Name of the recording in the package, used unless a file of this name exists."""


def twin_of(system: System) -> Twin:
    """Return the simulator made of software that sends what a system sends."""
    if isinstance(system, str) and system in SIMULATORS:
        return twin(system)
    source = system if isinstance(system, DescribedSource) else sources.by_profile(system)
    if source is None:
        raise ConfigError(f"system: {not_among(system, SIMULATORS)}")
    return Car(source)


def drive_packages(
    system: System, name: str, rate_hz: float | None = None, duration_s: float | None = None
) -> list[Any]:
    """Return the packages that a simulator sends on a virtual drive."""
    rate: dict[str, Any] = {} if rate_hz is None else {"rate_hz": rate_hz}
    return list(twin_of(system).driven(name, duration_s=duration_s, **rate))


def recorded_packages(
    system: System, file: str, rate_hz: float | None = None, duration_s: float | None = None, pick: Pick = ANY
) -> list[Any]:
    """Return the packages of a recording."""
    path = sample_recording() if file == SAMPLE and not Path(file).exists() else Path(file)
    recording = read_recording(path, system, pick)
    try:
        return list(until(twin_of(system).recorded(recording.packages, recording.times, rate_hz), duration_s))
    except PacketError as error:
        if quoted(path) in str(error):
            raise
        raise PacketError(f"recording {quoted(path)}: {error}") from error  # a packet of another system


def make_simulator(system: System, urls: Sequence[str], packages: Iterable[Any], **settings: Any) -> Any:
    """Return a simulator that plays `packages` to the engine at `urls`; `settings` are its own."""
    module = twin_of(system)
    check_endpoints(sources.source(system), urls)
    return module.Simulator(urls, packages, **settings)


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
        system = sources.system_of(self._profile.source)
        length = length_s(drive)
        self._course = Course(system, drive, duration_s, endless=endless)
        self.duration_s = None if endless else length if duration_s is None else duration_s
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
            if isinstance(self.platform, ControllerListener):
                port = _free_port(socket.SOCK_DGRAM)
                self.platform.answers_to, urls["motion"] = ("127.0.0.1", port), f"{urls['motion']}?from={port}"
            output = msgspec.structs.replace(self._profile.outputs[0], **urls)
            if output.packet is not None:  # no controller is checked in; one without actuators here does not answer
                reply = output.packet.reply if isinstance(self.platform, ControllerListener) else ()
                packet = msgspec.structs.replace(output.packet, check_in=None, reply=reply)
                output = msgspec.structs.replace(output, packet=packet)
            self.profile = msgspec.structs.replace(self._profile, source=source, output=output)
            stack.enter_context(_running(self.platform.run, self.platform.stop))
            described = isinstance(self.platform, PlatformListener)
            self.engine = Engine(self.profile, record=self._record, trace=TRACED if described else 0)
            stack.callback(self._drain)
            stack.enter_context(self.engine)
            self.simulator = make_simulator(sources.system_of(source), endpoints, self._course.packages(), **private)
            stack.enter_context(_running(self.simulator.run, self.simulator.stop))
            # From here on the order of the end is reversed: the engine goes to neutral while the car still drives.
            stack.callback(self.engine.stop)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Fade to neutral, then end everything."""
        self._open.close()

    def detour(self, axis: str, still_s: float) -> "Detour":
        """Return what plays a wave by the same simulator, whose car stands for it and then drives on.

        ConfigError is raised if the drive has no place for it now.
        """
        return self._course.wave(axis, still_s)

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
            platform["behind_cue_s"] = self.platform.delay_behind_cue_s(self.engine.trace) if whole else None
        platform["unmoved"] = _unmoved(self._profile)
        return {**self.engine.stats(), "platform": {**platform, "lost": max(0, self._missing())}}


class Course:
    """The packages of a drive, once or lap after lap; waves may come in between, for which the car stands."""

    def __init__(self, system: sources.System, drive: str, duration_s: float | None, *, endless: bool = False) -> None:
        self._name, self._endless = drive, endless
        self._driven = partial(twin_of(system).driven, drive, duration_s=duration_s)
        self._first = list(self._driven())
        self._length_s = length_s(drive) if duration_s is None else duration_s
        self.detour: Detour | None = None  # the wave that comes next or is under way

    def wave(self, axis: str, still_s: float) -> "Detour":
        """Return a wave that can come next; raise ConfigError if none can."""
        if self._name == "trouble":
            raise ConfigError("wave: found the drive 'trouble', allowed is any other one")
        if self.detour is not None:
            raise ConfigError("wave: found one under way, allowed is one at a time")
        return Detour(self, axis, still_s)

    def packages(self) -> Iterator[Any]:
        """Yield them, in the thread that sends them."""
        lap, coming = FIRST, iter(self._first)
        while True:
            sent, time_s = 0, 0.0
            begun: Detour | None = None
            while (package := next(coming, None)) is not None:
                yield package
                sent, time_s = sent + 1, time_s + package.duration
                if self.detour is not begun:
                    assert self.detour is not None
                    begun = self.detour
                    lap = lap._replace(waves=(*lap.waves, Wave(begun.axis, time_s, begun.still_s)))
                    # The lap with the wave is the same up to here.
                    coming = itertools.islice(self._driven(lap=lap), sent, None)
                if begun is not None:
                    begun.sent += 1
                    if time_s > lap.waves[-1].end_s:
                        self._over(begun)
                        begun = None
            if begun is not None:
                self._over(begun)
            if not self._endless:
                return
            lap = lap.following(self._length_s)
            coming = iter(self._driven(lap=lap))

    def _over(self, detour: "Detour") -> None:
        """Let the next wave come."""
        self.detour = None
        detour.stop()


class Detour:
    """Plays a wave by a simulator that is on a drive, as a simulator of its own would."""

    def __init__(self, course: Course, axis: str, still_s: float) -> None:
        self._course, self._ended = course, threading.Event()
        self.axis, self.still_s = axis, still_s  # what moves the car, and how long it stands before [s]
        self.sent = 0  # packages that the simulator has taken since its car began to slow down

    def run(self) -> None:
        """Play it, until the car is back at its pace or `stop` is called."""
        self._course.detour = self
        self._ended.wait()

    def stop(self) -> None:
        """End `run` soon, which ends no wave under way; may be called from any thread."""
        self._ended.set()


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
    return actuators_not_sent(packet, channels_of(profile.platform))


def _listener(profile: Profile, urls: Iterable[str]) -> DatagramListener:
    """Return a platform that moves by its packets, if they hold every actuator; else one that only receives them."""
    output = profile.outputs[0]
    if output.packet is None:
        return DatagramListener(sources.system(output.system), urls)
    if profile.platform is not None and not _unmoved(profile):
        return (ControllerListener if output.packet.reply else PlatformListener)(profile, urls)
    return DatagramListener(Described(output.packet), urls)


START_NS = 1_000_000_000


class Ride(NamedTuple):
    """Result of a drive; `ticks`, `motion` and `time` have one row per tick."""

    time: npt.NDArray[np.float64]  # time since the first frame [s]
    ticks: npt.NDArray[np.void]  # TICK_DTYPE: what the engine read and sent
    motion: npt.NDArray[np.void]  # MOTION_DTYPE: the simulator's newest report, plausible or not
    stats: dict[str, Any]  # as from `motioncue run --json`


def drive_motion(drive: str, rate_hz: float = 60.0) -> npt.NDArray[np.void]:
    """Return the frames of a virtual drive as City Car Driving reports it."""
    source = sources.source("city-car-driving")
    intake = source.intake(source.Options())
    intake.watch(UNWATCHED)
    packages = drive_packages("city-car-driving", drive, rate_hz)
    times = itertools.accumulate((round(each.duration * 1e9) for each in packages), initial=START_NS)
    timed = map(Timed, itertools.islice(times, 1, None), (each.package for each in packages))
    return np.concatenate([intake.frame() for is_frame in feed(timed, intake) if is_frame])


def ride(
    profile: Profile | str | Path,
    drive: str,
    rate_hz: float = 60.0,
    *,
    tail_s: float = 2.0,
    record: str | Path | None = None,
) -> Ride:
    """Return what the engine makes from a virtual drive."""
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    system = sources.system_of(profile.source)
    packages = drive_packages(system, drive, rate_hz)
    source = sources.source(system)
    raw = source.intake(source.Options(**profile.source.options), profile.source.head_m)
    raw.watch(UNWATCHED)
    seconds = sum(package.duration for package in packages) + tail_s
    pipeline = Pipeline(profile, FakeClock(START_NS), trace=int(seconds * profile.rate_hz) + 2)
    heard = None if record is None else Heard(pipeline)
    batches: list[Batch] = []
    said = [np.zeros(1, MOTION_DTYPE)]
    times = list(itertools.accumulate((round(each.duration * 1e9) for each in packages), initial=START_NS))
    timed = map(Timed, times[1:], (each.package for each in packages))
    for is_frame in feed(timed, raw, pipeline.intake, before=lambda time_ns: pipeline.emitter.run(until_ns=time_ns)):
        if is_frame:
            said.append(raw.frame())
        if heard is not None and heard.half_full:
            batches.append(heard.take())
    pipeline.emitter.run(until_ns=times[-1] + round(tail_s * 1e9))
    ticks = pipeline.emitter.trace
    if heard is not None and record is not None:
        batches.append(heard.take())
        frames = np.concatenate([batch.frames for batch in batches])
        came = [package for batch in batches for package in batch.packages]
        events = [event for batch in batches for event in batch.events]
        settings = [Settings(START_NS, 0, msgspec.to_builtins(profile))]
        about = {"drive": drive}
        keep(
            Drive(frames, ticks, came, sorted(events), settings, about, ()),
            record,
            force=True,
            about=about,
        )
    motion = np.concatenate(said)
    newest = np.searchsorted(motion["time"], ticks["deadline"], side="right") - 1
    return Ride((ticks["deadline"] - motion["time"][1]) * 1e-9, ticks, motion[newest], pipeline.stats())


def standard_drive(name: str, rate_hz: float = KEPT_HZ) -> npt.NDArray[np.float64]:
    """Return what a passenger's body does on a standard drive."""
    states = drive(name, rate_hz)
    acceleration, rates = body_axes(states, "acceleration"), body_axes(states, "angular_velocity")
    roll, pitch, _ = angles_and_rates(states)[0]
    columns = (acceleration[:, 0], acceleration[:, 1], -acceleration[:, 2], roll, pitch, *rates.T)
    assert len(columns) == len(CHANNELS_KEPT)
    return np.stack(columns, axis=1)


if __name__ == "__main__":
    rows = np.concatenate([standard_drive(name) for name in DRIVES])
    (Path(data.__file__).parent / "standard_drives.bin").write_bytes(rows.astype(KEPT_TYPE).tobytes())
