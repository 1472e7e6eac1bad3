"""Vehicle Physics Pro's data bus as data: channels and values by name and by the ids of both SDKs.

Names, units and resolutions: "Data Bus reference", Vehicle Physics Pro's document, which gives no ids and lists values
in another order.  The ids are those of the published SDKs: an older one with three channels, a newer one (2022) with
five.  Values that only the newer one has (race inputs, throttle and clutch signals, brake pressure) are described by
its own source.  Values without a published id are known by name alone.

Every value is a 32-bit fixed-point integer: raw = value x resolution.  Not a number is written as -2147483647; C# may
convert a NaN into -2147483648 as well, so both are read as NaN.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.errors import ConfigError

__all__ = ["CHANNELS", "GEAR_MODES", "NAN", "SDKS", "Bus", "Channel", "Sdk", "Value", "is_nan", "to_raw"]

Sdk = Literal["old", "newer"]
SDKS: tuple[Sdk, ...] = ("old", "newer")
"""The two SDKs, whose ids differ."""

NAN = -2147483647
"""Not a number, as the document defines it; -2147483648 is read as NaN too."""

GEAR_MODES = ("M", "P", "R", "N", "D", "D1", "D2", "D3", "D4", "D5")
"""Manual, park, reverse, neutral, drive, and drive limited to a gear (the newer source has L instead of D1)."""


class Value(NamedTuple):
    """One value of a channel."""

    name: str
    old: int | None = None  # id in the older SDK; None: not there, or not published
    newer: int | None = None
    resolution: int = 1
    unit: str = ""  # unit of raw / resolution
    words: tuple[str, ...] = ()  # names of the values 0, 1, 2 ...

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


def _same(number: int, name: str, resolution: int = 1, unit: str = "", words: tuple[str, ...] = ()) -> Value:
    return Value(name, number, number, resolution, unit, words)


CHANNELS: dict[str, Channel] = {
    channel.name: channel
    for channel in (
        Channel(
            "Input",
            0,
            0,
            (10, 10),
            (
                _same(0, "Steer", 10000),  # -1 full left to 1 full right
                _same(1, "Throttle", 10000),
                _same(2, "Brake", 10000),
                _same(3, "Handbrake", 10000),
                _same(4, "Clutch", 10000),
                _same(5, "ManualGear", unit="gear"),  # -1 reverse, 0 neutral
                _same(6, "AutomaticGear", unit="gear mode", words=GEAR_MODES),
                _same(7, "GearShift", unit="gears"),  # the vehicle resets it to 0
                _same(8, "Retarder", unit="level"),
                _same(9, "Key"),  # -1 off, 0 acc-on, 1 start
            ),
        ),
        Channel(
            "RaceInput",
            None,
            1,
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
                _same(13, "GearboxMode", unit="gear mode", words=GEAR_MODES),
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
            (10, 10),
            (
                _same(0, "DifferentialLock"),
                _same(1, "DrivelineLock"),
                _same(2, "AutoShiftOverride"),
                _same(3, "AbsOverride"),
                _same(4, "EscOverride"),
                _same(5, "TcsOverride"),
                _same(6, "AsrOverride"),
                _same(7, "SteeringAidsOverride"),
                Value("FrontDifferentialLock"),
                Value("RearDifferentialLock"),
                Value("MinGearOverride", unit="gear"),
                Value("MaxGearOverride", unit="gear"),
            ),
        ),
        Channel("Custom", None, 4, (0, 100), ()),
    )
}
"""The channels by name."""


def is_nan(raw: int) -> bool:
    """Say whether a raw integer means NaN."""
    return raw <= NAN


def to_raw(values: npt.ArrayLike, resolution: int) -> npt.NDArray[np.int32]:
    """Return the integers nearest to `values` x `resolution`; NaN becomes `NAN`.

    Raises
    ------
    ConfigError
        If an integer would be out of range or mean NaN.
    """
    scaled = np.round(np.asarray(values, np.float64) * resolution)
    if (np.abs(scaled) > 2147483646).any():
        raise ConfigError(f"found {values!r}, allowed is up to {2147483646 / resolution:.10g} either way, or NaN")
    return np.where(np.isnan(scaled), NAN, scaled).astype(np.int32)


class Bus:
    """A data bus outside the vehicle.

    Parameters
    ----------
    sdk : {"old", "newer"}
        SDK whose ids are used.

    Raises
    ------
    ConfigError
        If the SDK does not exist; from the methods, if a channel or value is not on this bus or a value to set does not
        fit.

    Notes
    -----
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
        return known.words[raw] if 0 <= raw < len(known.words) else raw / known.resolution

    def set(self, channel: str | int, value: str | int, to: float | str) -> None:
        """Set a value in its unit or by a word; it is rounded to its resolution."""
        row, _, known = self._find(channel, value)
        name = f"{row.name}.{known.name}"
        if isinstance(to, str):
            if to not in known.words:
                raise ConfigError(f"{name}: found {to!r}, allowed are {', '.join(known.words) or 'numbers'}")
            to = known.words.index(to)
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
