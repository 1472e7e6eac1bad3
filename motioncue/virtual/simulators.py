"""The simulators that can be played: one row for each system that sends motion."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from motioncue import protocols
from motioncue.errors import ConfigError, PacketError, not_among
from motioncue.recording.read import quoted, sample_recording
from motioncue.runtime.reception import check_endpoints
from motioncue.virtual import beamng, beamng_simulink, city_car_driving, morai, vehicle_physics_pro

__all__ = ["SAMPLE", "SIMULATORS", "drive_packages", "make_simulator", "recorded_packages"]

SIMULATORS: dict[str, ModuleType] = {
    "beamng": beamng,
    "beamng-simulink": beamng_simulink,
    "city-car-driving": city_car_driving,
    "morai": morai,
    "vehicle-physics-pro": vehicle_physics_pro,
}
"""Every module has `Simulator`, `driven` and `recorded`."""

SAMPLE = "sample"
"""Names the recording that comes with the package, where there is no such file."""


def _module(system: str) -> ModuleType:
    if system not in SIMULATORS:
        raise ConfigError(f"system: {not_among(system, SIMULATORS)}")
    return SIMULATORS[system]


def drive_packages(system: str, name: str, rate_hz: float | None = None, duration_s: float | None = None) -> list[Any]:
    """Return what a simulator sends on a virtual drive.

    Parameters
    ----------
    system : str
        The simulator's.
    name : str
        One of `motioncue.virtual.courses.COURSES`.
    rate_hz : float, optional
        Frames a second [Hz]; what the simulator sends by itself if not given.
    duration_s : float, optional
        How long to drive [s]; the whole drive if not given, parked beyond it.

    Raises
    ------
    ConfigError
        If there is no such system or drive, or the rate is not possible.
    """
    rate = {} if rate_hz is None else {"rate_hz": rate_hz}
    return list(_module(system).driven(name, duration_s=duration_s, **rate))


def recorded_packages(
    system: str, file: str, rate_hz: float | None = None, duration_s: float | None = None
) -> list[Any]:
    """Return what a simulator sent when it was recorded.

    Parameters
    ----------
    system : str
        The simulator's.
    file : str
        The recording; ``"sample"`` is the one that comes with the package, unless there is a file of that name.
    rate_hz : float, optional
        Frames a second [Hz]; the recording's own pace if not given.
    duration_s : float, optional
        How much of it [s]; all if not given.

    Raises
    ------
    ConfigError
        If there is no such system.
    PacketError
        If the file cannot be read or is not a recording of that system.
    """
    path = sample_recording() if file == SAMPLE and not Path(file).exists() else Path(file)
    try:
        return list(_module(system).recorded(path, rate_hz, duration_s))
    except PacketError as error:
        if quoted(path) in str(error):
            raise
        raise PacketError(f"recording {quoted(path)}: {error}") from error  # a packet of another system


def make_simulator(system: str, urls: Sequence[str], packages: Iterable[Any], **settings: Any) -> Any:
    """Return a simulator that will play `packages` to the engine at `urls`, with settings of its own.

    Raises
    ------
    ConfigError
        If there is no such system.
    EndpointError
        If the URL is not one that it can speak to.
    """
    module = _module(system)
    check_endpoints(protocols.source(system), urls)
    return module.Simulator(urls, packages, **settings)
