"""The simulators that can be played, on virtual drives or from recordings."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from motioncue import sources
from motioncue.drive.peers import until
from motioncue.engine.reception import check_endpoints
from motioncue.errors import ConfigError, PacketError, not_among
from motioncue.recording.packages import ANY, Pick, quoted
from motioncue.recording.recording import read_recording, sample_recording
from motioncue.sources import SIMULATORS, DescribedSource, System, twin
from motioncue.sources.described.twin import Car
from motioncue.sources.interface import Twin

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
