"""The packages in a file (bytes, MCAP or a network capture), and how an intake is fed with them."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from motioncue import sources
from motioncue.errors import ConfigError, PacketError
from motioncue.frames.intake import Intake
from motioncue.recording.capture import HOLE, MOST, Captured, Datagram, captured, is_capture
from motioncue.recording.drive import KILLED
from motioncue.recording.mcap_reader import MAGIC, McapFile, is_mcap, packages_in, settings_in
from motioncue.recording.schema import PACKAGE
from motioncue.wire.description import SourcePacket

START_NS = 1
"""Time of a recording's first package where no clock runs beside it [ns]; a time of 0 would mean never."""


class Timed(NamedTuple):
    """A package and its arrival time."""

    time_ns: int
    package: bytes  # empty: the simulator leaves


def feed(
    packages: Iterable[Timed], *intakes: Intake, before: Callable[[int], object] = lambda time_ns: None
) -> Iterator[bool]:
    """Feed packages at their times; yield whether each one gave the first intake a frame."""
    connected = False
    for time_ns, package in packages:
        before(time_ns)
        accepted = intakes[0].accepted
        for intake in intakes:
            if package and not connected:
                intake.begin(time_ns)
            if package:
                intake.feed(package, time_ns)
        connected = bool(package)
        yield intakes[0].accepted > accepted


def arriving(
    packages: Iterable[bytes], times_s: Sequence[float] | None, rate_hz: float | None, intake: Intake
) -> Iterator[Timed]:
    """Yield packages with the given times, else at a rate of frames, else all at once."""
    for place, package in enumerate(packages):
        if times_s is not None:
            seconds = times_s[place] - times_s[0]
        elif rate_hz is not None:
            seconds = intake.accepted / rate_hz
        else:
            seconds = 0.0
        yield Timed(START_NS + round(seconds * 1e9), package)


UNREADABLE = "unreadable"
SAID = 3  # lines of the log about damage
PLACES = 6  # most ports that an error names

LONGEST_S = 4e9
"""Longest time between packages of a recording: less than the 2^62 ns by which times may differ."""

SURE = 20  # packages of a system that are no coincidence
LOOKED_AT = 600  # packages of a file whose system is searched for
TYPICAL_NS = 16_000_000  # between two frames of a simulator

LARGEST = 512 << 20  # bytes of a recording: nine hours of frames

LARGEST_PACKAGE = 1 << 20  # [bytes]; every system's packages are smaller


def quoted(path: str | Path) -> str:
    """Return a path in quotes for a message: unprintable characters are escaped, a backslash is kept."""
    return repr(str(path)).replace("\\\\", "\\")


class Raw(NamedTuple):
    """The contents of a file that is not MCAP."""

    data: bytes
    missing: int = 0
    """Bytes behind them that were not read, because no drive has so many."""


def read_bytes(path: str | Path, name: str) -> Raw:
    """Return the contents of a file, at most `LARGEST` bytes, and what it had when it was opened.

    Raise PacketError, beginning with `name`, if it is unreadable or endless.
    """
    try:
        with Path(path).open("rb") as file:
            about = os.fstat(file.fileno())
            if stat.S_ISREG(about.st_mode):
                data = file.read(min(about.st_size, LARGEST))
                return Raw(data, max(about.st_size - LARGEST, 0))
            data = file.read(LARGEST + 1)  # a pipe or a device has no size
    except OSError as error:
        raise PacketError(f"{name}: {error.strerror}") from error
    if len(data) > LARGEST:
        raise PacketError(f"{name}: found more than {LARGEST >> 20} MiB and no end, allowed is up to that")
    return Raw(data)


def contents(path: str | Path, name: str) -> Raw | Path:
    """Return the contents of a file, or the path of an MCAP file, which may be larger; as `read_bytes` otherwise."""
    try:
        if Path(path).is_file():
            with Path(path).open("rb") as file:
                if is_mcap(file.read(len(MAGIC))):
                    return Path(path)
    except OSError as error:
        raise PacketError(f"{name}: {error.strerror}") from error
    return read_bytes(path, name)


class Pick(NamedTuple):
    """Which datagrams of a network capture to read, if more than one simulator was captured."""

    ports: tuple[int, ...] = ()
    """Ports that they were sent to; empty: any."""
    sender: str | None = None
    """Address of the host that sent them; None: any."""

    def takes(self, datagram: Datagram) -> bool:
        """Say whether to read a datagram."""
        here = not self.ports or datagram.port in self.ports
        return here and (self.sender is None or datagram.sender == self.sender)


NO_CAPTURE = "found no network capture, only there ports and senders can be told apart"

ANY = Pick()
"""Every datagram."""


class Recording(NamedTuple):
    """The packages that a simulator sent."""

    packages: list[bytes]
    times: list[float] | None  # arrivals since the first [s]; None if the file has no times
    others: int  # datagrams of a capture that were sent elsewhere
    rejected: Mapping[str, int]
    """Datagrams of a capture that went to the same ports but are not packages: their number by the reason that an
    engine would count; ``cut_in_capture`` and ``fragments_missing`` are the capture's own, ``unreadable`` counts what
    is in `unreadable`."""
    unreadable: tuple[str, ...] = ()
    """The damage in words."""


class _SeveralSources(PacketError):
    """A capture has packages of several simulators of one system."""

    packages: list[bytes]
    """Those of all of them."""


def parse_recording(
    data: Raw | Path, name: str, system: sources.System, module: Any = None, pick: Pick = ANY
) -> Recording:
    """Return the recording in `data`, as `read_recording` does; errors begin with `name`.

    `module` splits and identifies the packages of a system that is described; by default the system's own does.
    """
    module = sources.system(system) if module is None else module
    try:
        return _of_system(_opened(data, name, pick), module, system, pick)
    except PacketError as error:
        said = str(error)
        if name.startswith(str(system)):  # a described system begins its errors with its own name too
            said = said.removeprefix(f"{system}: ")
        raise PacketError(f"{name}: {said}") from error


def _opened(data: Raw | Path, name: str, pick: Pick) -> McapFile | Captured | Raw:
    """Return the contents of a file before any system is asked for its packages; refuse a pick that takes nothing."""
    if isinstance(data, Raw) and is_capture(data.data):
        found = captured(data.data, data.missing)
        _refuse_pick(found, pick)
        return found
    if pick != ANY:
        raise PacketError(NO_CAPTURE)
    if isinstance(data, Path):
        return McapFile(data)
    if is_mcap(data.data):
        return McapFile(name, data.data)
    if len(data.data) >= HOLE and not np.frombuffer(data.data, np.uint8).any():
        raise PacketError(f"found {len(data.data)} bytes that are all zero, as in a file that was never written")
    return data


def _refuse_pick(found: Captured, pick: Pick) -> None:
    """Refuse a pick that takes no datagram of a capture."""
    parts = any(lacks.port in pick.ports for lacks in found.incomplete)
    if pick == ANY or parts or any(map(pick.takes, found.datagrams)):
        return
    asked = [f"to port {' or '.join(map(str, pick.ports))}"] if pick.ports else []
    asked += [] if pick.sender is None else [f"from {pick.sender}"]
    there = _places(found.datagrams)
    raise PacketError(f"found no datagram {' '.join(asked)}, allowed are those that it has: {there or 'nobody'}")


def _of_system(opened: McapFile | Captured | Raw, module: Any, system: sources.System, pick: Pick) -> Recording:
    """Return a system's packages; raise PacketError if there is none."""
    if isinstance(opened, Captured):
        return _from_capture(opened, module, system, pick)
    if isinstance(opened, McapFile):
        return _from_mcap(opened, module, system)
    return _from_bytes(opened, module, system)


def _from_bytes(raw: Raw, module: Any, system: sources.System) -> Recording:
    """Return a system's packages that follow each other, as far as they can be told apart."""
    if not raw.data:
        raise PacketError(f"found no bytes, allowed is at least one package of {system}")
    packages, wrong = [], ""
    try:
        for package in islice(module.framed(raw.data), MOST + 1):
            packages.append(package)
    except PacketError as error:
        if not packages:
            raise
        wrong = str(error)
    if len(packages) > MOST:
        raise PacketError(f"found more than {MOST} packages of {system}, allowed is up to that")
    end = sum(map(len, packages))
    left = len(raw.data) - end + raw.missing
    if not left:
        return Recording(packages, None, 0, {})
    if raw.missing and len(raw.data) - end <= LARGEST_PACKAGE:
        wrong = f"allowed are {LARGEST >> 20} MiB"
    return Recording(packages, None, 0, {UNREADABLE: 1}, (f"byte {end}: {left} bytes were not read: {wrong}",))


def _from_mcap(file: McapFile, module: Any, system: sources.System) -> Recording:
    """Return the system's packages among recorded ones; count others by the reason an engine has to refuse them."""
    recorded = packages_in(file)
    if recorded and hasattr(module, "intake"):
        announced = opening(file.about, module.intake(module.Options()))
        recorded[:0] = [] if announced is None else [recorded[0]._replace(data=announced)]
    own = [package for package in recorded if why_not(module, package.data) is None]
    if not own:
        topics = sorted({name for name, _, _ in file.topics.values()})[:5]
        whose = f"{len(recorded)} packages of other kinds (of the first, {{}})" if recorded else "no package"
        found = [whose.format(why_not(module, recorded[0].data) if recorded else ""), *file.damage.texts()[:1]]
        found += [f"topics {', '.join(topics)}"] if topics and not recorded else []
        raise PacketError(f"found {'; '.join(found)}; allowed is at least one package of {system}")
    rejected = _rejected(module, (package.data for package in recorded if why_not(module, package.data) is not None))
    rejected += Counter({UNREADABLE: file.damage.count})
    times = [1e-9 * package.time for package in own]
    return Recording([package.data for package in own], from_first(times), 0, rejected, file.damage.texts())


def opening(about: Mapping[str, str], intake: Intake) -> bytes | None:
    """Return what the simulator announced before a recording that begins within a session; None if nothing."""
    try:
        data = bytes.fromhex(about.get("opening", ""))
    except ValueError:
        return None
    if data:
        intake.begin(START_NS)
        intake.feed(data, START_NS)
    return data if data and not intake.accepted and not intake.rejected else None


def _from_capture(found: Captured, module: Any, system: sources.System, pick: Pick) -> Recording:
    """Return the system's packages among captured datagrams, and count other datagrams sent to the same ports."""
    own: list[Datagram] = []
    others: list[Datagram] = []
    for datagram in filter(pick.takes, found.datagrams):
        (own if why_not(module, datagram.payload) is None else others).append(datagram)
    ports = {datagram.port for datagram in own}
    incomplete = [
        lacks.reason
        for lacks in found.incomplete
        if (lacks.port in ports if own else not pick.ports or lacks.port in pick.ports)
    ]
    if not own:
        why = f" (of the first, {why_not(module, others[0].payload)})" if others else ""
        counts = [f"{len(others)} datagrams of other kinds{why}" if others else "", *_counted(incomplete)]
        what = ", ".join(filter(None, [*counts, *found.unreadable])) or "no datagram"
        raise PacketError(f"found {what}, allowed is at least one package of {system}")
    _refuse_several(own, module, system)
    refused = [datagram.payload for datagram in others if datagram.port in ports]
    rejected = Counter(incomplete) + _rejected(module, refused) + Counter({UNREADABLE: len(found.unreadable)})
    times = from_first([datagram.time for datagram in own])
    packages = [datagram.payload for datagram in own]
    return Recording(packages, times, len(found.datagrams) - len(own) - len(refused), rejected, found.unreadable)


def _refuse_several(own: list[Datagram], module: Any, system: sources.System) -> None:
    """Refuse packages of several simulators: the same kind of message from two hosts, or to two ports."""
    sources: dict[str, set[tuple[str, int]]] = {}
    for datagram in own:
        kind = module.identify(datagram.payload).name
        sources.setdefault(kind, set()).add((datagram.sender, datagram.port))
    if all(len(source) == 1 for source in sources.values()):
        return
    error = _SeveralSources(
        f"found packages of {system} {_places(own)}; allowed is one simulator: name the port that it sent to, or the "
        "host that it sent from (--port, --from; in Python port, sender)"
    )
    error.packages = [datagram.payload for datagram in own]
    raise error


def _places(datagrams: Iterable[Datagram]) -> str:
    """Return a text on who sent how many datagrams to which port, the most first."""
    counts = Counter((datagram.sender, datagram.port) for datagram in datagrams).most_common(PLACES + 1)
    texts = [f"from {sender} to port {port} ({count})" for (sender, port), count in counts[:PLACES]]
    return ", ".join(texts) + (" and others" if len(counts) > PLACES else "")


def from_first(times: list[float]) -> list[float]:
    """Return times counted from the first [s]; raise PacketError if they are too far apart for nanoseconds."""
    furthest = max((abs(time - times[0]) for time in times), default=0.0)
    if not furthest < LONGEST_S:
        raise PacketError(f"found packages that came {furthest:.4g} s apart, allowed are {LONGEST_S:g} s")
    return [time - times[0] for time in times]


def _counted(reasons: Iterable[str]) -> list[str]:
    return [f"{count} {reason.replace('_', ' ')}" for reason, count in Counter(reasons).items()]


def _rejected(module: Any, refused: Iterable[bytes]) -> Counter[str]:
    """Return how many datagrams an engine would have refused, by reason."""
    if not hasattr(module, "intake"):
        return Counter(type=sum(1 for _ in refused))
    intake = module.intake(module.Options())
    for payload in refused:
        intake.feed(payload, START_NS)
    return Counter(intake.rejected)


def why_not(module: Any, data: bytes) -> str | None:
    """Return why a datagram is not one of the system's packages; None if it is."""
    try:
        module.identify(data)
    except PacketError as error:
        return str(error)
    return None


def system_of(data: Raw | Path, name: str, key: str, pick: Pick = ANY) -> sources.System:
    """Return the only system whose packets fill a file or begin it; or the source that it describes."""
    try:
        opened = _opened(data, name, pick)
    except PacketError as error:
        raise PacketError(f"{name}: {error}") from error
    settings = settings_in(opened)[:1] if isinstance(opened, McapFile) else []
    own = recorded_source(settings[0].profile) if settings else None
    if isinstance(own, sources.DescribedSource):
        return own
    if isinstance(opened, McapFile) and settings and not opened.ended and not opened.count(PACKAGE):
        raise PacketError(f"{name}: {KILLED}")
    return system_by(lambda system: _filling(opened, system, pick), name, key)


def system_by(packages_of: Callable[[str], Sequence[bytes]], name: str, key: str) -> str:
    """Return the only system by the packages that each has; raise ConfigError unless there is one.

    Described ones are asked only if no other has any: their packages mostly have no mark.
    """
    for systems, holds in ((sources.having("intake"), any_certain), (sources.described_profiles(), _plausible)):
        known = {system: packages_of(system) for system in systems}
        sizes = {system: sum(map(len, own)) for system, own in known.items() if holds(own, system)}
        if sizes:
            break
    best = [system for system, size in sizes.items() if size == max(sizes.values())]
    if len(best) != 1:
        found = f"packets that {' and '.join(best)} send" if best else "no packets of a system that is known"
        allowed = ", ".join(sources.having("intake"))
        raise ConfigError(f"{name}: found {found}; name one with {key}: {allowed}, or a profile that describes it")
    return best[0]


def _filling(opened: McapFile | Captured | Raw, system: str, pick: Pick) -> list[bytes]:
    """Return the system's packages in a capture, or those that a file of bytes begins with; none if they are few."""
    module = sources.system(system)
    try:
        packages = _of_system(opened, module, system, pick).packages
    except _SeveralSources as error:
        return error.packages
    except PacketError:
        return []
    own = list(takewhile(lambda package: why_not(module, package) is None, packages))
    few = isinstance(opened, Raw) and len(own) < SURE and 2 * sum(map(len, own)) < len(opened.data)
    return [] if few else own


def any_certain(packages: Sequence[bytes], system: str) -> bool:
    """Say whether any of the system's packages is known as such by its bytes alone."""
    return any(map(getattr(sources.system(system), "is_certain", bool), packages))


def _plausible(packages: Sequence[bytes], system: str) -> bool:
    """Say whether packages can be a described system's: read so, most of twenty frames or more continue a drive.

    The size alone tells little, because most such packets have no mark.
    """
    source = sources.source(system)
    intake = source.intake(source.Options())
    intake.begin(START_NS)
    followed = taken = 0
    last = b""
    for package in packages[:LOOKED_AT]:
        before = intake.published
        intake.feed(package, START_NS + taken * TYPICAL_NS)
        taken += intake.published > before
        moved = intake.published > before and not intake.frozen and package != last
        # Numbers that are not used, too, have to be as the packet's description says.
        followed += moved and source.is_plausible(source.plain(package))
        last = package
    breaks = sum(intake.discontinuities.values())
    frames = min(len(packages), LOOKED_AT) - intake.others  # some have a part of their own in a packet beside
    return taken >= SURE and 2 * followed > frames and 2 * breaks < taken


def recorded_source(profile: Mapping[str, Any] | None) -> sources.System | None:
    """Return the source of a recorded profile, by name or as it describes it; None if there is none."""
    source = (profile or {}).get("source")
    if not isinstance(source, Mapping):
        return None
    if source.get("packet") is not None:
        try:
            return sources.DescribedSource(msgspec.convert(source["packet"], SourcePacket, strict=False))
        except (msgspec.ValidationError, ConfigError):  # from a version with other keys
            return None
    name = source.get("system")
    return name if isinstance(name, str) else None
