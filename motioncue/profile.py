"""Profiles: what to read, how to cue, what to send.  TOML in, typed settings out, or a clear refusal."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from motioncue.errors import ConfigError, meant, not_among
from motioncue.explain import explain
from motioncue.packets import PacketTable
from motioncue.settings import ALGORITHMS, Cueing
from motioncue.settings.table import Positive, Table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "UNWATCHED",
    "Limits",
    "Output",
    "OutputLimits",
    "Profile",
    "Record",
    "Source",
    "Supervisor",
    "Watch",
    "builtin_profiles",
    "differences",
    "overridden",
    "parse_profile",
    "profile_text",
]

Meters = Annotated[float, msgspec.Meta(ge=-10, le=10)]


class Source(Table, frozen=True, kw_only=True):
    """The simulator."""

    system: str
    endpoint: str | tuple[str, ...]
    """Where it connects or sends to; several for a source that sends to several ports."""
    allow: tuple[str, ...] = ()
    """The hosts that are heard at an endpoint that other machines can reach; no others are."""
    forward: tuple[str, ...] = ()
    """Where every datagram that comes is passed on to, unchanged."""
    acceleration: Literal["native", "from_velocity"] = "native"
    """As the simulator says it, or derived from the velocity."""
    derivative_delay_s: Annotated[float, msgspec.Meta(ge=0.005, le=0.5)] = 0.04
    """Delay of what is derived from velocity or attitude [s]."""
    bridge: Literal["hold", "linear", "predict"] = "predict"
    """What a tick makes of the frames before it: the newest, a line one frame late, or what they lead to by now."""
    head_m: tuple[Meters, Meters, Meters] = (0.0, 0.0, 0.0)
    """The occupant's head from the car's reference point: forward, right, up [m]."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the system's own document leaves open; see `motioncue profiles`."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Every endpoint."""
        return (self.endpoint,) if isinstance(self.endpoint, str) else self.endpoint


class Supervisor(Table, frozen=True, kw_only=True):
    """How the platform is held and faded when the motion ends."""

    hold_s: Annotated[float, msgspec.Meta(ge=0.02, le=10)] = 0.1
    """How long the last motion is held when no frame comes [s]."""
    fade_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 1.0
    """How long the way to neutral takes after that, and the way back [s]."""


class Record(Table, frozen=True, kw_only=True):
    """What is kept of a run."""

    file: str
    """Where: an MCAP file; a number is added to the name of one that exists."""
    force: bool = False
    """Replace a file that exists."""
    last_s: Annotated[float, msgspec.Meta(ge=1, le=3600)] | None = None
    """Keep only so much, in memory [s]; it is written at a fault, when the operator asks, and at the end."""
    roll_s: Annotated[float, msgspec.Meta(ge=1)] | None = None
    """Begin another file after so long [s]."""
    roll_mb: Annotated[float, msgspec.Meta(ge=1)] | None = None
    """Begin another file when one has grown so large [MB]."""


class Watch(Table, frozen=True, kw_only=True):
    """Plausibility thresholds: a frame beyond one is treated as a discontinuity, and the platform parks."""

    max_acceleration_m_s2: Positive = 80.0
    """Largest believable acceleration [m/s^2]."""
    max_rate_deg_s: Positive = 600.0
    """Largest believable angular rate [deg/s]."""
    frozen_s: Positive = 1.0
    """How long a moving car may repeat the same state [s]."""
    jitter_s: Positive = 0.1
    """How unevenly frames may arrive [s]."""
    frame_jump_s: Positive = 2.0
    """Largest change of the simulator's frame time [s]."""
    max_acceleration_step_m_s2: Positive = 15.0
    """Largest change of acceleration between frames that is followed before the velocity shows it [m/s^2]."""
    max_rate_step_deg_s: Positive = 172.0
    """Largest change of angular rate between frames that is followed before the attitude shows it [deg/s]."""
    velocity_error_m_s: Positive = 1.0
    """How far acceleration and the change of velocity may be apart over a second, beside 35 % of them [m/s]."""
    attitude_error_deg: Positive = 5.7
    """How far angular rates and the turning of the attitude may be apart over a second, beside 35 % of them [deg]."""


UNWATCHED = Watch(**dict.fromkeys(Watch.__struct_fields__, 1e18))
"""Thresholds that no frame exceeds."""


Bound = Positive | None
Free = Literal["none"]


class AccelerationBounds(Table, frozen=True, kw_only=True):
    """Bounds of surge or sway, and of their derivatives as sent; docs/safety.md has the reasons and measurements."""

    value_m_s2: Positive = 25.0
    """2.5 g: a tenth more than the hardest braking and cornering of a recorded rally stage."""
    rate_m_s3: Bound = 2500.0
    """7.5 m/s^2 from packet to packet: the least that lets a rough road pass at 60 frames a second with `hold`."""
    acceleration_m_s4: Bound = 600_000.0
    """A step begins with 5.4 m/s^2 in the first packet and ends as gently; found as the rate was."""
    jerk_m_s5: Bound = None


class HeaveBounds(AccelerationBounds, frozen=True, kw_only=True):
    """Bounds of heave, and of its derivatives as sent."""

    value_m_s2: Positive = 30.0
    """A hard kerb; whatever the waveform, a spine is loaded with half of what STANAG 4569 allows."""


class AngleBounds(Table, frozen=True, kw_only=True):
    """Bounds of roll or pitch, and of their derivatives as sent."""

    value_deg: Positive = 60.0
    """Steeper than roads and than what a washout asks for on a rally stage; far from half a turn, where angles jump."""
    rate_deg_s: Bound = 300.0
    """0.9 degrees from packet to packet: the least that lets attitudes pass at 30 frames a second with `hold`."""
    acceleration_deg_s2: Bound = 100_000.0
    """A turn begins with 0.9 degrees in the first packet; found as the rate was."""
    jerk_deg_s3: Bound = None


class HeadingBounds(AngleBounds, frozen=True, kw_only=True):
    """Bounds of yaw, and of its derivatives as sent."""

    value_deg: Positive = 180.0
    """A heading may go all the way round."""
    rate_deg_s: Bound = 900.0
    """Faster than any spin: only a heading that turns over at once, as when the nose passes the vertical, is slowed."""
    acceleration_deg_s2: Bound = 240_000.0
    """Found as for roll and pitch."""


class RateBounds(Table, frozen=True, kw_only=True):
    """Bounds of an angular rate, and of its derivatives as sent."""

    value_deg_s: Positive = 300.0
    """As fast as roll and pitch may change."""
    rate_deg_s2: Bound = 30_000.0
    """90 deg/s from packet to packet: the least that lets a rally stage pass at 66 frames a second with `hold`."""
    acceleration_deg_s3: Bound = None
    jerk_deg_s4: Bound = None


class DisplacementBounds(Table, frozen=True, kw_only=True):
    """Bounds of a displacement, and of its derivatives as sent."""

    value_m: Positive = 10.0
    """More than the presets ask for; the stroke of the platform is a better one."""
    rate_m_s: Bound = 10.0
    """More than the presets ask for; the speed of the platform is a better one."""
    acceleration_m_s2: Bound = 30.0
    """What the seat itself does if the platform follows exactly: as heave."""
    jerk_m_s3: Bound = None


class Limits(Table, frozen=True, kw_only=True):
    """Bounds that what is sent keeps, whatever comes in.

    What is left out has its default; `"none"` in place of a channel's table frees that channel.
    """

    surge: AccelerationBounds | Free = AccelerationBounds()
    sway: AccelerationBounds | Free = AccelerationBounds()
    heave: HeaveBounds | Free = HeaveBounds()
    roll: AngleBounds | Free = AngleBounds()
    pitch: AngleBounds | Free = AngleBounds()
    yaw: HeadingBounds | Free = HeadingBounds()
    roll_rate: RateBounds | Free = RateBounds()
    pitch_rate: RateBounds | Free = RateBounds()
    yaw_rate: RateBounds | Free = RateBounds()
    surge_displacement: DisplacementBounds | Free = DisplacementBounds()
    sway_displacement: DisplacementBounds | Free = DisplacementBounds()
    heave_displacement: DisplacementBounds | Free = DisplacementBounds()


class OutputLimits(Table, frozen=True, kw_only=True):
    """Bounds of an output's own; a channel that is left out has only the profile's."""

    surge: AccelerationBounds | None = None
    sway: AccelerationBounds | None = None
    heave: HeaveBounds | None = None
    roll: AngleBounds | None = None
    pitch: AngleBounds | None = None
    yaw: HeadingBounds | None = None
    roll_rate: RateBounds | None = None
    pitch_rate: RateBounds | None = None
    yaw_rate: RateBounds | None = None
    surge_displacement: DisplacementBounds | None = None
    sway_displacement: DisplacementBounds | None = None
    heave_displacement: DisplacementBounds | None = None

    def bounds(self) -> dict[str, list[float | None]]:
        """Return value, rate, acceleration and jerk bound of each bounded channel [SI]; None is no bound."""
        return _in_si(self)


def _in_si(limits: Limits | OutputLimits) -> dict[str, list[float | None]]:
    """Return value, rate, acceleration and jerk bound of each bounded channel [SI]; None is no bound."""
    return {
        name: [
            math.radians(value) if value is not None and "_deg" in key else value
            for key, value in msgspec.structs.asdict(table).items()
        ]
        for name, table in msgspec.structs.asdict(limits).items()
        if table not in ("none", None)
    }


class Output(Table, frozen=True, kw_only=True):
    """The platform."""

    system: str = "custom"
    """One of the systems; custom if `packet` describes it."""
    motion: str
    gauges: str | None = None
    rate_hz: Annotated[float, msgspec.Meta(ge=10, le=2000)] = 333.33
    packet: PacketTable | None = None
    """What is sent to `motion`, for a platform that is not among the systems."""
    limits: OutputLimits = OutputLimits()
    """Bounds that this output keeps on top of the profile's."""
    spin_us: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0
    """How long before each tick to watch the clock instead of sleeping [us]; more than a few needs a
    real-time class to help."""
    keep_awake: bool = False
    """Keep the processors out of their deeper sleep: wakes sooner, costs power."""
    core: Annotated[int, msgspec.Meta(ge=0, le=1023)] | None = None
    """The processor that sends, if it is to be one that other programs leave alone."""
    lock_memory: bool = False
    """Keep the process in memory: no tick waits for a page."""


class Profile(Table, frozen=True, kw_only=True):
    """Everything a run needs."""

    source: Source
    cueing: Cueing
    output: Output | Annotated[tuple[Output, ...], msgspec.Meta(min_length=1, max_length=8)]
    watch: Watch = Watch()
    supervisor: Supervisor = Supervisor()
    limits: Limits | Free = Limits()
    """Bounds of what is sent; `"none"` bounds nothing."""
    record: Record | None = None
    description: str = ""
    name: str = ""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Every platform."""
        return self.output if isinstance(self.output, tuple) else (self.output,)

    @property
    def rate_hz(self) -> float:
        """Ticks a second; every platform is sent to at each."""
        return self.outputs[0].rate_hz

    def bounds(self) -> dict[str, list[float | None]]:
        """Return value, rate, acceleration and jerk bound of each bounded channel [SI].

        None is no bound.
        """
        return {} if self.limits == "none" else _in_si(self.limits)

    @property
    def free(self) -> list[str]:
        """Channels that move the platform and are not bounded."""
        bounds = self.bounds()
        return [name for name in Limits.__struct_fields__ if name not in bounds]


LARGEST = 1_000_000  # characters of a profile
DOTS = 32  # in a line of one

MOVED = {f"source.{key}": f"supervisor.{key}" for key in Supervisor.__struct_fields__} | {
    f"supervisor.{key}": f"watch.{key}" for key in Watch.__struct_fields__
}
"""Keys that had another place in earlier profiles, and their place now."""

_PACKAGE = resources.files("motioncue.profiles")


def builtin_profiles() -> list[str]:
    """Return the names of the built-in profiles."""
    return sorted(Path(entry.name).stem for entry in _PACKAGE.iterdir() if entry.name.endswith(".toml"))


def profile_text(name: str) -> str:
    """Return the TOML text of a built-in profile or of a file.

    Raises
    ------
    ConfigError
        If `name` is neither.
    """
    if name in builtin_profiles():
        return (_PACKAGE / f"{name}.toml").read_text(encoding="utf-8")
    try:
        with Path(name).open(encoding="utf-8-sig") as file:  # some editors on Windows begin with a mark
            text = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file can have
        missing = isinstance(error, FileNotFoundError)
        why = getattr(error, "strerror", None) or error
        what = "is neither a built-in profile nor a file" if missing else f"cannot be read as text ({why})"
        known = builtin_profiles()
        raise ConfigError(
            f"profile: {name!r} {what}; built-in profiles are {', '.join(known)}{meant(name, known)}"
        ) from error
    if len(text) > LARGEST:
        raise ConfigError(f"profile: {name!r} has more than {LARGEST} characters; no profile has")
    return text


def parse_profile(text: str, *, name: str = "profile", overrides: Iterable[str] = ()) -> Profile:
    """Return the profile that `text` describes.

    Parameters
    ----------
    text : str
        TOML.
    name : str
        Named in errors, and kept.
    overrides : iterable of str
        ``KEY=VALUE`` with a dotted key; VALUE is TOML, or text if it is not.

    Raises
    ------
    ConfigError
        If a key is unknown, missing or has a value that is not allowed: names its path, what was found, what is
        allowed.  Whether systems and endpoints exist is checked when the profile is put to use.
    """
    _refuse_long_keys(text, name)
    try:
        tables = tomllib.loads(text)
    except ValueError as error:  # a number of too many digits is one too
        raise ConfigError(f"{name}: not TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: tables or arrays are nested too deeply") from error
    for override in overrides:
        _put(tables, *_parsed(override))
    tables.setdefault("name", Path(name).stem)
    return _profile(tables, name)


def overridden(profile: Profile, overrides: Mapping[str, Any] | Iterable[str]) -> Profile:
    """Return a profile with some of its values changed; a preset fills what it has filled before.

    Parameters
    ----------
    profile : Profile
        What is changed.
    overrides : mapping, or iterable of str
        Values by dotted key, also in tables within tables; or ``KEY=VALUE`` as `parse_profile` takes it.

    Raises
    ------
    ConfigError
        As `parse_profile` does.
    """
    tables = _tables(profile)
    given = _flat(overrides, lists=False) if isinstance(overrides, Mapping) else map(_parsed, overrides)
    for key, value in given:
        _put(tables, key, value)
    return _profile(tables, profile.name)


def differences(old: Profile, new: Profile) -> dict[str, tuple[Any, Any]]:
    """Return the keys in which two profiles differ, each with both values; None for a missing one.

    Parameters
    ----------
    old, new : Profile
        Any two.
    """
    before, after = (dict(_flat(msgspec.to_builtins(profile))) for profile in (old, new))
    return {
        key: (before.get(key), after.get(key))
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    }


def _flat(tables: Mapping[str, Any], path: str = "", *, lists: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield every value of tables within tables with its dotted key; `lists` of tables are taken apart too, or not."""
    for key, value in tables.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, here, lists=lists)
        elif lists and isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from _flat(item, f"{here}[{index}]")
        else:
            yield here, value


def _tables(profile: Profile) -> dict[str, Any]:
    """Return the tables that a profile can be made of again, without what its preset fills in."""
    tables: dict[str, Any] = msgspec.to_builtins(profile)
    filled = profile.cueing.presets.get(getattr(profile.cueing, "preset", None) or "", {})
    tables["cueing"] = _stripped(profile.cueing, filled)
    return tables


def _stripped(table: msgspec.Struct, filled: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table says beyond what a preset fills in, and beyond its defaults where the preset is silent."""
    tag = table.__struct_config__.tag_field
    out: dict[str, Any] = {tag: table.__struct_config__.tag} if tag else {}
    for name, default in _defaults(type(table)).items():
        value = getattr(table, name)
        if isinstance(value, msgspec.Struct):
            out[name] = _stripped(value, filled.get(name, {}))
        elif value != filled.get(name, default):
            out[name] = value
    return out


@cache
def _defaults(table: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the default of each of a table's keys."""
    return {field.name: field.default for field in msgspec.structs.fields(table)}


def _profile(tables: dict[str, Any], name: str) -> Profile:
    """Return the profile that tables make; ConfigError if they make none."""
    try:
        _fill_from_preset(tables)
        _refuse_not_finite(tables, "")
        profile = msgspec.convert(tables, Profile)
    except msgspec.ValidationError as error:
        message = explain(error, tables, Profile)
        moved = MOVED.get(message.partition(":")[0])
        place = f"; it is {moved} now" if moved else ""
        raise ConfigError(f"{name}: {message}{place}{_preset_hint(error, tables)}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: tables or arrays are nested too deeply") from error
    if any(output.system == "custom" and output.packet is None for output in profile.outputs):
        raise ConfigError(f"{name}: output.system: missing, and there is no [output.packet] either")
    return profile


def _refuse_long_keys(text: str, name: str) -> None:
    """Refuse keys of very many parts, on which the TOML reader spends the square of their number."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > DOTS and not line.lstrip(" \t").startswith("#"):
            raise ConfigError(
                f"{name}: line {number}: found {line.count('.')} dots, allowed are up to {DOTS}, no key has more"
            )


def _parsed(override: str) -> tuple[str, Any]:
    """Return the dotted key and the value of ``KEY=VALUE``."""
    key, equals, text = override.partition("=")
    if not equals or not all(key.strip().split(".")) or "\n" in text:
        raise ConfigError(f"--set: found {override!r}, allowed is KEY=VALUE, such as output.rate_hz=250")
    try:
        override.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"--set: found {override!r}, allowed is UTF-8 text") from error
    _refuse_long_keys(override, "--set")
    try:
        return key.strip(), tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return key.strip(), text


def _put(tables: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key; another algorithm comes without the settings of the one before."""
    table, path = tables, key.split(".")
    cueing = tables.get("cueing")
    if path == ["cueing", "algorithm"] and isinstance(cueing, dict) and cueing.get("algorithm") != value:
        tables["cueing"] = {}
    for above, step in zip(["", *path], path[:-1], strict=False):
        if above == "limits" and table.get(step) in (None, "none"):  # a channel that was not bounded
            table[step] = {}
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set: found {key!r}, but {step!r} is not a table")
    table[path[-1]] = value


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = _merged(out[key], value) if both else value
    return out


def _fill_from_preset(tables: dict[str, Any]) -> None:
    cueing = tables.get("cueing")
    presets = _presets(tables)
    if not isinstance(cueing, dict) or "preset" not in cueing or not presets:
        return
    preset = cueing["preset"]
    if not isinstance(preset, str) or preset not in presets:
        raise ConfigError(f"cueing.preset: {not_among(preset, presets)}")
    tables["cueing"] = _merged(presets[preset], cueing)


def _presets(tables: dict[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the presets of the algorithm that a profile names; none if it names none."""
    cueing = tables.get("cueing")
    name = cueing.get("algorithm") if isinstance(cueing, dict) else None
    return ALGORITHMS[name].presets if isinstance(name, str) and name in ALGORITHMS else {}


def _preset_hint(error: msgspec.ValidationError, tables: dict[str, Any]) -> str:
    """Return how the settings of an algorithm are completed, if that is what is wrong."""
    presets = _presets(tables)
    lacks = "missing required" in str(error) and "`$.cueing" in str(error)
    if not lacks or not presets or "preset" in tables["cueing"]:
        return ""
    return f"; cueing.preset fills what is left out, allowed are {', '.join(presets)}"


def _refuse_not_finite(value: Any, path: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_not_finite(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_not_finite(item, f"{path}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{path}: found {value}, allowed are finite numbers")
