"""The systems that motioncue speaks with: one file a system, one row here.

A source's module has `Options`, `SCHEMES` and `intake`; a platform's has `STREAMS` and `MAX_RATE_HZ`; every module has
`framed` and `identify`, which name and decode any of its packets.  A platform of one's own is `custom`.  A simulator
that takes commands has them in `COMMANDS`, by name; if they are numbered, `COUNTER` is the field that does.
"""

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from motioncue.errors import ConfigError, PacketError, not_among
from motioncue.protocols import beamng, beamng_simulink, city_car_driving, dk, morai, vehicle_physics_pro
from motioncue.protocols.commands import composed
from motioncue.protocols.layout import Packet

__all__ = ["SYSTEMS", "command", "commands", "compose", "having", "platform", "source", "system"]

SYSTEMS: dict[str, ModuleType] = {
    "beamng": beamng,
    "beamng-simulink": beamng_simulink,
    "city-car-driving": city_car_driving,
    "dk": dk,
    "morai": morai,
    "vehicle-physics-pro": vehicle_physics_pro,
}


def having(attribute: str) -> list[str]:
    """Return the names of the systems whose module has something."""
    return [name for name, module in SYSTEMS.items() if hasattr(module, attribute)]


def _find(name: str, attribute: str, key: str) -> ModuleType:
    allowed = having(attribute)
    if name not in allowed:
        raise ConfigError(f"{key}: {not_among(name, allowed)}")
    return SYSTEMS[name]


def system(name: str) -> ModuleType:
    """Return a system's module; ConfigError if there is no such system."""
    return _find(name, "identify", "system")


def source(name: str, key: str = "source.system") -> ModuleType:
    """Return the module of a system that sends motion; ConfigError that names `key` if there is none."""
    return _find(name, "intake", key)


def platform(name: str) -> ModuleType:
    """Return the module of a system that takes cues; ConfigError if `name` is not one."""
    return _find(name, "STREAMS", "output.system")


def commands(system: str) -> Mapping[str, Packet]:
    """Return the commands that a system takes, by name; ConfigError if it takes none."""
    known: Mapping[str, Packet] = _find(system, "COMMANDS", "system").COMMANDS
    return known


def command(system: str, message: str) -> tuple[Packet, str | None]:
    """Return the layout of a command, and the field that numbers it, if any.

    Raises
    ------
    ConfigError
        If the system takes no commands.
    PacketError
        If it has no such command.
    """
    known = commands(system)
    if message not in known:
        raise PacketError(f"{system}: {not_among(message, known, 'command ')}")
    counter: str | None = getattr(SYSTEMS[system], "COUNTER", None)
    return known[message], counter


def compose(system: str, message: str, values: Mapping[str, Any]) -> bytes:
    """Return a command to a simulator, checked against its document; nothing is sent.

    Parameters
    ----------
    system : str
        The simulator's.
    message : str
        One of the `COMMANDS` of its module.
    values : mapping
        By field: numbers, truth values, texts; lists, or mappings from index to value, of what is repeated; mappings by
        field of slots.

    Raises
    ------
    ConfigError
        If the system takes no commands.
    PacketError
        If it has no such command, or a value is not allowed: names the field, what was found and what is allowed.

    Examples
    --------
    >>> from motioncue.protocols import compose
    >>> len(compose("beamng-simulink", "control", {"id": 7, "brake_pedal": 0.5}))  # the rest stays as it is
    512
    """
    packet, counter = command(system, message)
    data = composed(packet, values)
    if counter is not None:
        number = values.get(counter, math.nan)
        if not number >= 0:
            raise PacketError(f"{message}: {counter}: missing; it numbers the commands and has to grow")
        if number != int(number):
            raise PacketError(f"{message}: {counter}: found {number!r}, allowed are whole numbers")
    return data
