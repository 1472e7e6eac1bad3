"""The simulators that can be played: one row per system that sends motion."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from motioncue import sources
from motioncue.engine.reception import check_endpoints
from motioncue.errors import ConfigError, PacketError, not_among
from motioncue.recording.packages import ANY, Pick, quoted
from motioncue.recording.recording import read_recording, sample_recording
from motioncue.sources import DescribedSource, System
from motioncue.sources.beamng import twin as beamng
from motioncue.sources.beamng_simulink import twin as beamng_simulink
from motioncue.sources.city_car_driving import twin as city_car_driving
from motioncue.sources.described import twin as described
from motioncue.sources.morai import twin as morai
from motioncue.sources.vehicle_physics_pro import twin as vehicle_physics_pro

__all__ = ["SAMPLE", "SIMULATORS", "drive_packages", "make_simulator", "recorded_packages"]

SIMULATORS: dict[str, ModuleType] = {
    "beamng": beamng,
    "beamng-simulink": beamng_simulink,
    "city-car-driving": city_car_driving,
    "morai": morai,
    "vehicle-physics-pro": vehicle_physics_pro,
}
"""The modules; each has `Simulator`, `driven` and `recorded`."""

SAMPLE = "sample"
"""Name of the recording in the package, used unless a file of this name exists."""


def _module(system: System) -> ModuleType | described.Car:
    if isinstance(system, str) and system in SIMULATORS:
        return SIMULATORS[system]
    source = system if isinstance(system, DescribedSource) else sources.by_profile(system)
    if source is None:
        raise ConfigError(f"system: {not_among(system, SIMULATORS)}")
    return described.Car(source)


def drive_packages(
    system: System, name: str, rate_hz: float | None = None, duration_s: float | None = None
) -> list[Any]:
    """Return the packages that a simulator sends on a virtual drive."""
    rate = {} if rate_hz is None else {"rate_hz": rate_hz}
    return list(_module(system).driven(name, duration_s=duration_s, **rate))


def recorded_packages(
    system: System, file: str, rate_hz: float | None = None, duration_s: float | None = None, pick: Pick = ANY
) -> list[Any]:
    """Return the packages of a recording."""
    path = sample_recording() if file == SAMPLE and not Path(file).exists() else Path(file)
    recording = read_recording(path, system, pick)
    try:
        return list(_module(system).recorded(recording.packages, recording.times, rate_hz, duration_s))
    except PacketError as error:
        if quoted(path) in str(error):
            raise
        raise PacketError(f"recording {quoted(path)}: {error}") from error  # a packet of another system


def make_simulator(system: System, urls: Sequence[str], packages: Iterable[Any], **settings: Any) -> Any:
    """Return a simulator that plays `packages` to the engine at `urls`; `settings` are its own."""
    module = _module(system)
    check_endpoints(sources.source(system), urls)
    return module.Simulator(urls, packages, **settings)
