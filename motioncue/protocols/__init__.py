"""The systems that motioncue speaks with: one file a system, one row here.

A source's module has `Options`, `SCHEMES` and `session`; a platform's has `STREAMS` and `MAX_RATE_HZ`; every module has
`framed` and `identify`, which name and decode any of its packets.  A platform of one's own is `custom`.
"""

from types import ModuleType

from motioncue.errors import ConfigError
from motioncue.protocols import beamng, beamng_simulink, city_car_driving, dk, morai, vehicle_physics_pro

__all__ = ["SYSTEMS", "platform", "source", "system"]

SYSTEMS: dict[str, ModuleType] = {
    "beamng": beamng,
    "beamng-simulink": beamng_simulink,
    "city-car-driving": city_car_driving,
    "dk": dk,
    "morai": morai,
    "vehicle-physics-pro": vehicle_physics_pro,
}


def _find(name: str, attribute: str, key: str) -> ModuleType:
    allowed = [known for known, module in SYSTEMS.items() if hasattr(module, attribute)]
    if name not in allowed:
        raise ConfigError(f"{key}: found {name!r}, allowed {'is' if len(allowed) == 1 else 'are'} {', '.join(allowed)}")
    return SYSTEMS[name]


def system(name: str) -> ModuleType:
    """Return a system's module; ConfigError if there is no such system."""
    return _find(name, "identify", "system")


def source(name: str) -> ModuleType:
    """Return the module of a system that sends motion; ConfigError if `name` is not one."""
    return _find(name, "session", "source.system")


def platform(name: str) -> ModuleType:
    """Return the module of a system that takes cues; ConfigError if `name` is not one."""
    return _find(name, "STREAMS", "output.system")
