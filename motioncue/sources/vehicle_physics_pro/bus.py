"""Vehicle Physics Pro's data bus as data: channels and values by name and by the ids of both SDKs.

Names, units and resolutions: "Data Bus reference", Vehicle Physics Pro's document, which gives no ids and lists values
in another order.  The ids are those of the published SDKs: an older one with three channels, a newer one (2022) with
five.  Values that only the newer one has (race inputs, throttle and clutch signals, brake pressure) are described by
its own source.  Values without a published id are known by name alone.

Every value is a 32-bit fixed-point integer: raw = value x resolution.  Not a number is written as -2147483647; C# may
convert a NaN into -2147483648 as well, so both are read as NaN.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError

Sdk = Literal["old", "newer"]
Access = Literal["read", "write", "read and write"]
SDKS: tuple[Sdk, ...] = ("old", "newer")
"""The two SDKs, whose ids differ."""

NAN = -2147483647
"""Not a number, as the document defines it; -2147483648 is read as NaN too."""

GEAR_MODES = ("M", "P", "R", "N", "D", "D1", "D2", "D3", "D4", "D5")
"""Manual, park, reverse, neutral, drive, and drive limited to a gear (the newer source has L instead of D1)."""

MODES = dict(enumerate(GEAR_MODES))
KEYS = {-1: "off", 0: "acc-on", 1: "start"}
LOCKS = {0: "no override", 1: "locked", 2: "open"}
OVERRIDES = {0: "no override", 1: "enabled", 2: "disabled"}
SHIFTS = {0: "no override", 1: "auto", 2: "manual"}
AIDS = {0: "no override", 2: "disabled"}


class Value(NamedTuple):
    """One value of a channel."""

    name: str
    old: int | None = None  # id in the older SDK; None: not there, or not published
    newer: int | None = None
    resolution: int = 1
    unit: str = ""  # unit of raw / resolution
    words: Mapping[int, str] = MappingProxyType({})  # names of raw integers

    def id(self, sdk: Sdk) -> int | None:
        """Return the id in an SDK; None if it has none there."""
        return self.old if sdk == "old" else self.newer

    @property
    def unnumbered(self) -> bool:
        """Whether no id is published."""
        return self.old is None and self.newer is None

    def wire_unit(self) -> str:
        """Return the unit of the raw integer."""
        return self.unit if self.resolution == 1 else f"1/{self.resolution} {self.unit}".strip()


class Channel(NamedTuple):
    """One channel of the bus."""

    name: str
    old: int | None  # id in the older SDK
    newer: int | None
    access: Access  # what the document lets add-ons do with it
    lengths: tuple[int, int]  # lengths of its array in the older and in the newer SDK
    values: tuple[Value, ...]

    def id(self, sdk: Sdk) -> int | None:
        """Return the id in an SDK; None if it is not there."""
        return self.old if sdk == "old" else self.newer

    def length(self, sdk: Sdk) -> int:
        """Return the length of its array."""
        return self.lengths[SDKS.index(sdk)]

    def by_id(self, sdk: Sdk) -> dict[int, Value]:
        """Return the values that have an id in an SDK."""
        return {number: value for value in self.values if (number := value.id(sdk)) is not None}

    def by_name(self, sdk: Sdk) -> dict[str, Value]:
        """Return the values of an SDK, those without a published id among them."""
        return {value.name: value for value in self.values if value.id(sdk) is not None or value.unnumbered}


def _same(
    number: int, name: str, resolution: int = 1, unit: str = "", words: Mapping[int, str] = MappingProxyType({})
) -> Value:
    return Value(name, number, number, resolution, unit, words)


CHANNELS: dict[str, Channel] = {
    channel.name: channel
    for channel in (
        Channel(
            "Input",
            0,
            0,
            "write",
            (10, 10),
            (
                _same(0, "Steer", 10000),  # -1 full left to 1 full right
                _same(1, "Throttle", 10000),
                _same(2, "Brake", 10000),
                _same(3, "Handbrake", 10000),
                _same(4, "Clutch", 10000),
                _same(5, "ManualGear", unit="gear"),  # -1 reverse, 0 neutral
                _same(6, "AutomaticGear", unit="gear mode", words=MODES),
                _same(7, "GearShift", unit="gears"),  # the vehicle resets it to 0
                _same(8, "Retarder", unit="level"),
                _same(9, "Key", words=KEYS),
            ),
        ),
        Channel(
            "RaceInput",
            None,
            1,
            "write",
            (0, 16),
            tuple(
                Value(name, None, number, 100 if "BrakeBias" in name else 1, "%" if "BrakeBias" in name else "")
                for number, name in enumerate(
                    (
                        *("Drs", "Push2Pass", "Flash", "TcPreset", "TcOverride", "BrakeBias", "AbsPreset", "EngineMap"),
                        *("DiffPreset", "RegenBraking", "TcPresetChange", "AbsPresetChange", "BrakeBiasChange"),
                        *("EngineMapChange", "DiffPresetChange", "RegenBrakingChange"),
                    )
                )
            ),
        ),
        Channel(
            "Vehicle",
            1,
            2,
            "read",
            (22, 26),
            (
                _same(0, "Speed", 1000, "m/s"),
                _same(1, "EngineRpm", 1000, "rpm"),
                _same(2, "EngineStalled"),
                _same(3, "EngineWorking"),
                _same(4, "EngineStarting"),
                _same(5, "EngineLimiter"),
                _same(6, "EngineLoad", 1000),
                _same(7, "EngineTorque", 1000, "N m"),
                _same(8, "EnginePower", 1000, "kW"),
                _same(9, "EngineFuelRate", 1000, "g/s"),
                _same(10, "ClutchTorque", 1000, "N m"),
                _same(11, "ClutchLock", 1000),
                _same(12, "GearboxGear", unit="gear"),  # negative reverse, 0 neutral or park
                _same(13, "GearboxMode", unit="gear mode", words=MODES),
                _same(14, "GearboxShifting"),
                _same(15, "RetarderTorque", 1000, "N m"),
                _same(16, "TransmissionRpm", 1000, "rpm"),
                _same(17, "AbsEngaged"),
                _same(18, "TcsEngaged"),
                _same(19, "EscEngaged"),
                _same(20, "AsrEngaged"),
                Value("FuelConsumption", None, 21, 1000, "l/100km"),
                Value("AidedSteer", 21, 22, 10000),
                Value("ThrottleSignal", None, 23, 10000),
                Value("BrakePressure", None, 24, 1000, "bar"),
                Value("ClutchSignal", None, 25, 10000),
            ),
        ),
        Channel(
            "Settings",
            2,
            3,
            "read and write",
            (10, 10),
            (
                _same(0, "DifferentialLock", words=LOCKS),
                _same(1, "DrivelineLock", words=LOCKS),
                _same(2, "AutoShiftOverride", words=SHIFTS),
                _same(3, "AbsOverride", words=OVERRIDES),
                _same(4, "EscOverride", words=OVERRIDES),
                _same(5, "TcsOverride", words=OVERRIDES),
                _same(6, "AsrOverride", words=OVERRIDES),
                _same(7, "SteeringAidsOverride", words=AIDS),
                Value("FrontDifferentialLock", words=LOCKS),
                Value("RearDifferentialLock", words=LOCKS),
                Value("MinGearOverride", unit="gear"),
                Value("MaxGearOverride", unit="gear"),
            ),
        ),
        Channel("Custom", None, 4, "read and write", (0, 100), ()),
    )
}
"""The channels by name."""


def is_nan(raw: int) -> bool:
    """Say whether a raw integer means NaN."""
    return raw <= NAN


def to_raw(values: npt.ArrayLike, resolution: int) -> npt.NDArray[np.int32]:
    """Return the integers nearest to `values` x `resolution`; NaN becomes `NAN`."""
    scaled = np.round(np.asarray(values, np.float64) * resolution)
    if (np.abs(scaled) > 2147483646).any():
        raise ConfigError(f"found {values!r}, allowed is up to {2147483646 / resolution:.10g} either way, or NaN")
    return np.where(np.isnan(scaled), NAN, scaled).astype(np.int32)


class Bus:
    """A data bus outside the vehicle.

    Channels and values are given by name or id.  A value without a published id is known by name only and is not part
    of `raw_channel`.

    Examples
    --------
    >>> bus = Bus("newer")
    >>> bus.set("Vehicle", "EngineRpm", 1200.0)
    >>> bus.raw(2, 1), bus.get("Vehicle", "EngineRpm")
    (1200000, 1200.0)
    >>> bus.set_raw("Vehicle", "GearboxMode", 5)
    >>> bus.get("Vehicle", "GearboxMode")
    'D1'
    """

    def __init__(self, sdk: Sdk = "newer") -> None:
        if sdk not in SDKS:
            raise ConfigError(f"sdk: found {sdk!r}, allowed are {', '.join(map(repr, SDKS))}")
        self.sdk: Sdk = sdk
        self._channels = {
            name: np.zeros(channel.length(sdk), np.int32)
            for name, channel in CHANNELS.items()
            if channel.id(sdk) is not None
        }
        self._named: dict[tuple[str, str], int] = {}  # raw values without an id

    def __getitem__(self, channel: str | int) -> "Client":
        """Return a channel as an add-on has it: ``bus[channel][value]`` is the raw integer, as in the document."""
        return Client(self, self._channel(channel))

    def raw_channel(self, channel: str | int) -> npt.NDArray[np.int32]:
        """Return the channel's array itself, indexed by id, as in the vehicle."""
        return self._channels[self._channel(channel).name]

    def raw(self, channel: str | int, value: str | int) -> int:
        """Return a value's raw integer."""
        row, number, known = self._find(channel, value)
        if number is None:
            return self._named.get((row.name, known.name), 0)
        return int(self._channels[row.name][number])

    def set_raw(self, channel: str | int, value: str | int, raw: int) -> None:
        """Set a value's raw integer."""
        row, number, known = self._find(channel, value)
        if not -(2**31) <= raw < 2**31:
            raise ConfigError(f"{row.name}.{known.name}: found {raw}, allowed are integers of 32 bits")
        if number is None:
            self._named[row.name, known.name] = raw
        else:
            self._channels[row.name][number] = raw

    def get(self, channel: str | int, value: str | int) -> float | str:
        """Return a value in its unit, or as a word if it has words; NaN if it is not a number."""
        known = self._find(channel, value)[2]
        raw = self.raw(channel, value)
        if is_nan(raw):
            return math.nan
        return known.words.get(raw, raw / known.resolution)

    def set(self, channel: str | int, value: str | int, to: float | str) -> None:
        """Set a value in its unit or by a word; it is rounded to its resolution."""
        row, _, known = self._find(channel, value)
        name = f"{row.name}.{known.name}"
        if isinstance(to, str):
            numbers = {word: number for number, word in known.words.items()}
            if to not in numbers:
                raise ConfigError(f"{name}: found {to!r}, allowed are {', '.join(numbers) or 'numbers'}")
            to = numbers[to]
        try:
            raw = int(to_raw(to, known.resolution))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
        self.set_raw(channel, value, raw)

    def _channel(self, channel: str | int) -> Channel:
        for name in self._channels:
            if channel in (name, CHANNELS[name].id(self.sdk)):
                return CHANNELS[name]
        allowed = ", ".join(f"{name} ({CHANNELS[name].id(self.sdk)})" for name in self._channels)
        raise ConfigError(f"channel of the {self.sdk} SDK: found {channel!r}, allowed are {allowed}")

    def _find(self, channel: str | int, value: str | int) -> tuple[Channel, int | None, Value]:
        """Return the channel, the value's id (None if it has none), and its description."""
        row = self._channel(channel)
        length = row.length(self.sdk)
        if isinstance(value, int) and 0 <= value < length:
            return row, value, row.by_id(self.sdk).get(value, Value(str(value)))
        named = row.by_name(self.sdk)
        if isinstance(value, str) and value in named:
            return row, named[value].id(self.sdk), named[value]
        raise ConfigError(
            f"{row.name} of the {self.sdk} SDK: found value {value!r}, allowed are ids 0 to {length - 1}"
            + (f" and {', '.join(named)}" if named else "")
        )


class Client:
    """A channel as an add-on has it: raw integers, written only where the document allows it."""

    def __init__(self, bus: Bus, channel: Channel) -> None:
        self._bus, self._channel = bus, channel

    def __getitem__(self, value: str | int) -> int:
        """Return a value's raw integer."""
        return self._bus.raw(self._channel.name, value)

    def __setitem__(self, value: str | int, raw: int) -> None:
        """Set a value's raw integer."""
        if self._channel.access == "read":
            raise ConfigError(f"{self._channel.name}: found a value to set, allowed is to read this channel")
        self._bus.set_raw(self._channel.name, value, raw)
