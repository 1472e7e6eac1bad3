"""The systems that motioncue supports: a simulator is a folder, and one row here; profiles describe others.

A simulator's folder has what `Source` says in packets.py, and what `Twin` says in twin.py.  A platform's module has
`STREAMS`, `MAX_RATE_HZ`, `framed` and `identify`.

The platform and the source `custom` are described by their profile.  Wherever a source's name is taken, a profile that
describes its packet can be named instead, or its `DescribedSource` given.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from motioncue.drive.courses import Lap
from motioncue.errors import ConfigError, PacketError, not_among
from motioncue.output import dk
from motioncue.profile.explain import explain
from motioncue.profile.profile import Source as SourceTable
from motioncue.profile.profile import builtin_profiles, parse_profile, profile_text
from motioncue.sources.beamng import packets as beamng
from motioncue.sources.beamng_simulink import packets as beamng_simulink
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.sources.described.source import DescribedSource as DescribedSource
from motioncue.sources.morai import packets as morai
from motioncue.sources.vehicle_physics_pro import packets as vehicle_physics_pro
from motioncue.wire.commands import composed
from motioncue.wire.description import SourcePacket
from motioncue.wire.packet import NATIVE, Derivation, Packet

System: TypeAlias = str | DescribedSource
"""A system's name, or a source that a profile describes."""


class Source(Protocol):
    """The packets of a simulator: how it is reached, what its bytes are, what they say of the motion.

    Optional: `COMMANDS`, the packets that it takes, by name, with `COUNTER`, the field that numbers them, `Sending` and
    `command`, if conventions are open; `READINGS`, the options that a drive can settle; `is_certain`, where a packet
    may fit without being known by its bytes.
    """

    @property
    def SCHEMES(self) -> tuple[str, ...]:
        """Transports that the simulator uses."""

    @property
    def Options(self) -> Any:
        """Readings that the simulator's document leaves open: a struct whose defaults are the likeliest."""

    def intake(self, options: Any, head_m: Any = ..., derivation: Derivation = ...) -> Any:
        """Return what takes the simulator's packages and gives the motion at `head_m`: `Intake`, or `Session`."""

    def framed(self, data: bytes) -> Iterator[bytes]:
        """Split concatenated packages."""

    def identify(self, data: bytes) -> Packet:
        """Return the layout of one package; raise PacketError with what was found and what is allowed."""


class Twin(Protocol):
    """The simulator made of software, which plays virtual drives and recordings."""

    @property
    def Simulator(self) -> Any:
        """Made of endpoints and packages, sends them when they are due."""

    def driven(self, name: str, rate_hz: float = ..., duration_s: float | None = None, lap: Lap = ...) -> Iterable[Any]:
        """Yield the packages of a virtual drive; a later lap follows on the one before."""

    def recorded(
        self, packages: Any, times: Sequence[float] | None = None, rate_hz: float | None = None
    ) -> Iterable[Any]:
        """Yield recorded packages, at the `times` of their capture [s] or at `rate_hz`."""


SIMULATORS: dict[str, Source] = {
    "beamng": beamng,
    "beamng-simulink": beamng_simulink,
    "city-car-driving": city_car_driving,
    "morai": morai,
    "vehicle-physics-pro": vehicle_physics_pro,
}
"""The packets of each simulator; its twin is in the same folder."""

SYSTEMS: dict[str, Any] = dict(sorted({**SIMULATORS, "dk": dk}.items()))
"""The simulators, and the platform that takes cues."""


def twin(name: str) -> Twin:
    """Return the twin of one of `SIMULATORS`."""
    module: Any = import_module(f"motioncue.sources.{name.replace('-', '_')}.twin")
    return cast(Twin, module)


def having(attribute: str) -> list[str]:
    """Return the names of the systems whose module has an attribute."""
    return [name for name, module in SYSTEMS.items() if hasattr(module, attribute)]


def _find(name: str, attribute: str, key: str) -> Any:
    allowed = having(attribute)
    if name not in allowed:
        raise ConfigError(f"{key}: {not_among(name, allowed)}")
    return SYSTEMS[name]


def by_profile(name: str) -> DescribedSource | None:
    """Return the source that a profile describes; None if `name` is no profile, or of a built-in source."""
    if name.endswith(".toml"):
        return _described(profile_text(name), name)
    return _described(profile_text(name), name) if name in builtin_profiles() else None


@cache
def described_profiles() -> list[str]:
    """Return the built-in profiles that describe their source."""
    return [name for name in builtin_profiles() if by_profile(name) is not None]


@cache
def _described(text: str, name: str) -> DescribedSource | None:
    source = parse_profile(text, name=name).source
    if source.packet is None:
        return None
    derivation = Derivation(source.acceleration, source.derivative_delay_s)
    return DescribedSource(source.packet, name, source.options, derivation)


def system_of(source: SourceTable) -> System:
    """Return what a profile's source is: a system's name, or the source that it describes."""
    return source.system if source.packet is None else _of_packet(source.packet)


@lru_cache(maxsize=16)
def _of_packet(packet: SourcePacket) -> DescribedSource:
    return DescribedSource(packet)


def system(name: System) -> Any:
    """Return a system's module; raise ConfigError if there is no such system."""
    return _described_by(name) or _find(_named(name), "identify", "system")


def source(name: System, key: str = "source.system") -> Any:
    """Return the module of a system that sends motion; raise ConfigError, with `key`, if there is none."""
    return _described_by(name) or _find(_named(name), "intake", key)


def read_as(name: System, options: Mapping[str, Any] | None = None) -> tuple[Any, Derivation]:
    """Return the options and the derivation with which a source is read, those of its profile."""
    module = source(name)
    own = module if isinstance(module, DescribedSource) else None
    said = {**(own.options if own else {}), **(options or {})}
    try:
        chosen = msgspec.convert(said, module.Options)
    except msgspec.ValidationError as error:
        raise ConfigError(f"options of {name}: {explain(error, said, module.Options)}") from error
    return chosen, own.derivation if own else NATIVE


def _named(name: System) -> str:
    """Return the system that a profile names, or the name as it is."""
    name = str(name)
    if name.endswith(".toml") or name in builtin_profiles():
        return parse_profile(profile_text(name), name=name).source.system
    return name


def _described_by(name: System) -> DescribedSource | None:
    return name if isinstance(name, DescribedSource) else by_profile(name)


def platform(name: str) -> Any:
    """Return the module of a system that takes cues.

    Parameters
    ----------
    name : str
        The system's name.

    Raises
    ------
    ConfigError
        If there is no such system.
    """
    return _find(name, "STREAMS", "output.system")


def commands(system: str) -> Mapping[str, Packet]:
    """Return the commands that a system takes, by name; raise ConfigError if it takes none."""
    known: Mapping[str, Packet] = _find(system, "COMMANDS", "system").COMMANDS
    return known


def command(system: str, message: str) -> tuple[Packet, str | None]:
    """Return the layout of a command, and its counter field or None."""
    known = commands(system)
    if message not in known:
        raise PacketError(f"{system}: {not_among(message, known, 'command ')}")
    counter: str | None = getattr(SYSTEMS[system], "COUNTER", None)
    return known[message], counter


def compose(system: str, message: str, values: Mapping[str, Any], sending: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a command, checked against the simulator's document; send nothing.

    Examples
    --------
    >>> from motioncue.sources import compose
    >>> len(compose("beamng-simulink", "control", {"id": 7, "brake_pedal": 0.5}))  # other fields keep their values
    512
    """
    packet, counter = command(system, message)
    module = SYSTEMS[system]
    conventions = getattr(module, "Sending", None)
    if sending and conventions is None:
        raise ConfigError(f"sending: found {', '.join(sending)}, allowed are none for {system}")
    if conventions is None:
        data = composed(packet, values)
    else:
        try:
            chosen = msgspec.convert(dict(sending or {}), conventions, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"sending.{explain(error, dict(sending or {}), conventions)}") from error
        data = module.command(message, values, chosen)
    if counter is not None:
        number = values.get(counter, math.nan)
        if not number >= 0:
            raise PacketError(f"{message}: {counter}: missing; it numbers the commands and has to grow")
        if number != int(number):
            raise PacketError(f"{message}: {counter}: found {number!r}, allowed are whole numbers")
    return data
