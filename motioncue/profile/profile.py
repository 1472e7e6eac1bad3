"""Profiles: what to read, how to cue, what to send.  They are TOML files that become checked settings."""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from motioncue.core.table import Table, Watch, card
from motioncue.cueing.settings import Cueing
from motioncue.errors import ConfigError, meant, not_among
from motioncue.platforms.build import platform_named
from motioncue.platforms.machine import MotionPlatform
from motioncue.platforms.settings import Axes, CrankHexapod, Hexapod, Platform, Posts, platform_presets
from motioncue.profile.explain import explain, shown
from motioncue.profile.tables import (
    as_tuples,
    choose_preset,
    differing,
    fill_from_presets,
    flat,
    given,
    merged,
    parsed,
    plain,
    preset_hint,
    presets_of,
    put,
    refuse_long_keys,
    refuse_not_finite,
)
from motioncue.safety.settings import Free, OutputLimits, in_si
from motioncue.safety.settings import Limits as Limits
from motioncue.wire.description import CarField, PacketTable, SourcePacket

Meters = Annotated[float, msgspec.Meta(ge=-10, le=10)]


class Source(Table, frozen=True, kw_only=True):
    """The simulator."""

    system: str
    """Name of a system; "custom" if `packet` describes it."""
    endpoint: str | tuple[str, ...] = ()
    """Where the simulator connects or sends to; several for a source that sends to several ports.  A described source
    without one is fed by the program that runs the engine."""
    allow: tuple[str, ...] = ()
    """The only hosts that are heard at an endpoint that other machines can reach."""
    forward: tuple[str, ...] = ()
    """Endpoints to which every received datagram is forwarded unchanged."""
    acceleration: Literal["native", "from_velocity"] = "native"
    """Acceleration as the simulator reports it, or derived from the velocity."""
    derivative_delay_s: Annotated[float, msgspec.Meta(ge=0.005, le=0.5)] = 0.04
    """Delay of quantities derived from velocity or attitude [s]."""
    bridge: Literal["auto", "hold", "linear", "predict"] = "auto"
    """Motion between frames: the newest frame, straight lines one frame late, a prediction, or what suits the
    algorithm: straight lines if it plans, else a prediction."""
    head_m: tuple[Meters, Meters, Meters] = (0.0, 0.0, 0.0)
    """The occupant's head from the car's reference point: forward, right, up [m]."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Readings that the system's document leaves open; see `motioncue profiles`."""
    packet: SourcePacket | None = None
    """The packet of a simulator without built-in support."""
    car: CarField | None = None
    """Where packets say which car it is; a folder of profiles is switched by it."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """All endpoints."""
        return (self.endpoint,) if isinstance(self.endpoint, str) else self.endpoint


class Supervisor(Table, frozen=True, kw_only=True):
    """How the platform is held and faded when motion stops coming."""

    hold_s: Annotated[float, msgspec.Meta(ge=0.02, le=10)] = 0.1
    """How long the last motion is held if no frame comes [s]."""
    fade_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 1.0
    """Duration of the fade to neutral after that, and of the fade back [s]; longer where the actuators of a
    `[platform]` need longer between neutral and where the cue is."""
    engage_s: Annotated[float, msgspec.Meta(ge=0, le=120)] = 0.0
    """How long a platform that begins to engage stays at neutral before the fade [s], for controllers that need it; it
    counts from the start of the rise, so set it to at least `platform.rise_s` if the fade is to begin after that."""
    leave_s: Annotated[float, msgspec.Meta(ge=0.5, le=600)] | None = None
    """Longest time until the platform is at rest when the system ends the run, as at a shutdown [s]: fade and way down
    are as much shorter as that needs; 4 s if not given, or what the bounds need."""


class Record(Table, frozen=True, kw_only=True):
    """What is recorded of a run."""

    file: str
    """The MCAP file; a number is added to its name if it exists."""
    force: bool = False
    """Replace an existing file."""
    last_s: Annotated[float, msgspec.Meta(ge=1, le=3600)] | None = None
    """Keep only the last seconds, in memory [s]; written at a fault, on the operator's request, and at the end."""
    roll_s: Annotated[float, msgspec.Meta(ge=1)] | None = None
    """Begin another file after this time [s]."""
    roll_mb: Annotated[float, msgspec.Meta(ge=1)] | None = None
    """Begin another file at this size [MB]."""
    keep_mb: Annotated[float, msgspec.Meta(ge=10)] | None = None
    """Remove the run's oldest files beyond this size of all [MB]; without the two above, a file has a tenth of it."""


class KeptLaps(Table, frozen=True, kw_only=True):
    """What was felt along the way, kept from one run to the next for an algorithm that plans."""

    folder: str
    """The folder that it is kept in, a file for each name and car; made if it does not exist."""
    name: str = ""
    """Name of the file, such as the track's; with the car's behind it if `source.car` reads one.  The profile's if not
    given."""


class PoseTable(Table, frozen=True, kw_only=True):
    """How the pose that the platform has is known, for an output that sends it: pose_forward and so on."""

    lag_s: Annotated[float, msgspec.Meta(ge=0, le=0.5)] | None = None
    """Delay with which the drives follow slow motions [s]; `platform.lag_s` if not given, and 0 without that."""
    lag_damping: Annotated[float, msgspec.Meta(ge=0.1, le=1)] | None = None
    """Damping ratio of a lag of second order; `platform.lag_damping` if not given, first order without that."""
    dead_time_s: Annotated[float, msgspec.Meta(ge=0, le=0.5)] = 0.0
    """Time after which a command begins to act [s]."""
    feedback: bool = True
    """Whether positions that the platform replies count instead; false if they come seldom or in coarse steps."""


class TactileTable(Table, frozen=True, kw_only=True):
    """What the channel `tactile` is made of, for an output that sends it: shakers at up to 100 Hz.

    Together they are cut off at about 0.36, so that the signal never leaves -1 to 1.
    """

    suspension: Annotated[float, msgspec.Meta(ge=-100, le=100)] = 1.0
    """Factor of the mean suspension velocity [s/m]; with 1, 0.2 m/s make a signal of 0.2."""
    engine: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2
    """Amplitude of the engine's firing, where it is below 100 Hz."""
    order: Annotated[float, msgspec.Meta(ge=0.25, le=16)] = 2.0
    """Firings per turn of the engine: half the number of cylinders, if it has four strokes."""


class Output(Table, frozen=True, kw_only=True):
    """A platform."""

    system: str = "custom"
    """Name of a system; "custom" if `packet` describes it."""
    motion: str
    """Where the motion is sent: udp://HOST:PORT, serial://DEVICE, or memory://NAME, which is written."""
    gauges: str | None = None
    """Where engine speed, speed and the like are sent, for a system that takes them; not sent if not given."""
    rate_hz: Annotated[float, msgspec.Meta(ge=10, le=2000)] = 333.33
    """Packets per second [Hz]."""
    packet: PacketTable | None = None
    """The packet sent to `motion`, for a platform without built-in support; its preset is a controller's name."""
    shared: bool = False
    """Whether other programs may send there at the same time; else a second one is refused."""
    pose: PoseTable = PoseTable()
    tactile: TactileTable = TactileTable()
    limits: OutputLimits = OutputLimits()
    """Bounds for this output in addition to the profile's."""
    spin_us: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0
    """Busy-waiting before each tick instead of sleeping [us]; more than a few helps only with a real-time
    class."""
    keep_awake: bool = False
    """Keep the processors out of deep sleep: threads wake sooner, at a cost in power."""
    core: Annotated[int, msgspec.Meta(ge=0, le=1023)] | None = None
    """Processor for the sending thread, one that other programs do not use."""
    lock_memory: bool = False
    """Keep the process in memory, so that no tick waits for a page."""


class Profile(Table, frozen=True, kw_only=True):
    """All settings of a run.

    Examples
    --------
    >>> profile = motioncue.load_profile("ccd-dk-classical", "cueing.surge.gain=0.4")
    >>> profile.cueing.surge.gain, profile.rate_hz
    (0.4, 333.33)
    """

    source: Source
    cueing: Cueing
    """How motion becomes a cue: an algorithm and its settings."""
    output: Output | Annotated[tuple[Output, ...], msgspec.Meta(min_length=1, max_length=8)]
    watch: Watch = Watch()
    supervisor: Supervisor = Supervisor()
    limits: Limits | Free = Limits()
    """Bounds on what is sent; `"none"` bounds nothing."""
    platform: Platform | None = None
    """The platform; its actuators are channels of an `[output.packet]`."""
    record: Record | None = None
    laps: KeptLaps | None = None
    cars: Annotated[tuple[int | str, ...], msgspec.Meta(max_length=64)] = ()
    """For which cars `motioncue run` with a folder of profiles uses this one: what `source.car` reads."""
    description: str = ""
    """A line that says what the profile is for."""
    name: str = ""
    """Name in the log and in recordings; that of the file if not given."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """All outputs."""
        return self.output if isinstance(self.output, tuple) else (self.output,)

    @property
    def rate_hz(self) -> float:
        """Ticks per second; every output is sent its packets at each tick."""
        return self.outputs[0].rate_hz

    @property
    def platform_name(self) -> str:
        """The platform's preset, or its kind; empty without one."""
        return "" if self.platform is None else str(self.platform.preset or self.platform.__struct_config__.tag)

    @property
    def bridge(self) -> str:
        """How a tick interpolates between frames: ``source.bridge``, or what suits the algorithm."""
        return self.cueing.bridge if self.source.bridge == "auto" else self.source.bridge

    def _repr_html_(self) -> str:
        system, endpoint = self.source.system, self.source.endpoint
        outputs = [f"{output.system} at {output.motion}, {output.rate_hz:g} Hz" for output in self.outputs]
        algorithm = self.cueing.__struct_config__.tag
        preset = getattr(self.cueing, "preset", None)
        rows = [
            ("for", self.description),
            ("source", f"{system} at {endpoint}" if endpoint else system),
            ("cueing", f"{algorithm}, preset {preset}" if preset else str(algorithm)),
            ("platform", self.platform_name),
            *(("output", output) for output in outputs),
        ]
        return card(f"Profile {self.name}", rows)

    def bounds(self) -> dict[str, list[float | None]]:
        """Return value, rate, acceleration and jerk bound of each bounded channel [SI].

        None means unbounded.
        """
        return {} if self.limits == "none" else in_si(self.limits)


Scaled: TypeAlias = Callable[[Profile], Mapping[str, Any]]
"""Returns the tables of ``cueing`` that the preset ``auto`` fills in for a profile."""

LARGEST = 1_000_000  # [characters] of a profile

MOVED = {f"source.{key}": f"supervisor.{key}" for key in Supervisor.__struct_fields__} | {
    f"supervisor.{key}": f"watch.{key}" for key in Watch.__struct_fields__
}
"""Keys of earlier profiles that have moved, and their present names."""

_SOURCES = Path(str(resources.files("motioncue"))) / "sources"  # each simulator's folder holds its profiles


@cache
def _builtin() -> dict[str, Path]:
    """Return the files of the built-in profiles by name."""
    return {path.stem: path for path in sorted(_SOURCES.rglob("*.toml"), key=lambda path: path.stem)}


def builtin_profiles() -> list[str]:
    """Return the names of the built-in profiles, those in the simulators' folders."""
    return list(_builtin())


def profile_text(name: str) -> str:
    """Return the TOML text of a built-in profile or of a file."""
    if name in _builtin():
        return _builtin()[name].read_text(encoding="utf-8")
    try:
        with Path(name).open(encoding="utf-8-sig") as file:  # skips a byte-order mark
            text = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or not a valid file name
        missing = isinstance(error, FileNotFoundError)
        why = getattr(error, "strerror", None) or error
        if isinstance(error, UnicodeDecodeError) and error.object[:5] == b"\x89MCAP":
            raise ConfigError(f"profile: {shown(name)} is a recording; `motioncue replay` takes it") from error
        what = "is neither a built-in profile nor a file" if missing else f"cannot be read as text ({why})"
        known = builtin_profiles()
        raise ConfigError(
            f"profile: {shown(name)} {what}; built-in profiles are {', '.join(known)}{meant(name, known)}"
        ) from error
    if len(text) > LARGEST:
        raise ConfigError(f"profile: {name!r} has more than {LARGEST} characters; no profile has")
    return text


def parse_profile(
    text: str,
    *,
    name: str = "profile",
    overrides: Iterable[str | Mapping[str, Any]] = (),
    scaled: Scaled | None = None,
    placed: bool = False,
) -> Profile:
    """Return the profile in a TOML text; `placed` on another platform than it may have."""
    refuse_long_keys(text, name)
    try:
        tables = tomllib.loads(text)
    except ValueError as error:  # also raised for numbers with too many digits
        raise ConfigError(f"{name}: not TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: tables or arrays are nested too deeply") from error
    for override in overrides:
        for key, value in given(override) if isinstance(override, Mapping) else [parsed(override)]:
            put(tables, key, value)
    tables.setdefault("name", Path(name).stem)
    return _profile(tables, name, scaled, placed=placed)


class _WithPlatform(Table, frozen=True, kw_only=True):
    platform: Platform


def platform_from(table: Mapping[str, Any]) -> Platform:
    """Return a platform from the table of a profile; its preset supplies what is left out."""
    tables: dict[str, Any] = {"platform": plain(table, "platform")}
    try:
        fill_from_presets(tables)
        refuse_not_finite(tables, "")
        return msgspec.convert(tables, _WithPlatform).platform
    except msgspec.ValidationError as error:
        raise ConfigError(f"{explain(error, tables, _WithPlatform)}{preset_hint(error, tables)}") from error


def overridden(profile: Profile, overrides: Mapping[str, Any] | Iterable[str], scaled: Scaled | None = None) -> Profile:
    """Return a profile with some values changed; a preset fills the same keys as before."""
    tables = _tables(profile)
    for key, value in given(overrides):
        put(tables, key, value)
    return _profile(tables, profile.name, scaled)


def resolved_text(profile: Profile) -> str:
    """Return TOML with every value of a profile, one dotted key a line, presets and defaults included."""
    lines = {
        key: f"{key} = {_toml(value)}"
        for key, value in flat(msgspec.to_builtins(profile), lists=False)
        if value is not None
    }
    if profile.source.bridge == "auto":
        lines["source.bridge"] += f'    # with this algorithm "{profile.bridge}"'
    return "\n".join(lines.values())


def _toml(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items() if item is not None)} }}"
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):  # a line each
        return "".join(("[", *(f"\n    {_toml(item)}," for item in value), "\n]"))
    return json.dumps(value)


def differences(old: Profile, new: Profile) -> dict[str, tuple[Any, Any]]:
    """Return the keys in which two profiles differ, with both values; None for a missing one."""
    parts = [name for name in Profile.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    return differing(
        *(dict(flat({name: msgspec.to_builtins(getattr(profile, name)) for name in parts})) for profile in (old, new))
    )


AnyTable = TypeVar("AnyTable", bound=msgspec.Struct)


def expressible(table: AnyTable) -> AnyTable:
    """Return a profile, or a table of one, as a text gives it: no text says none where a number is the default."""
    changes: dict[str, Any] = {}
    for name, default in _defaults(type(table)).items():
        value = getattr(table, name)
        if isinstance(value, msgspec.Struct):
            changes[name] = expressible(value)
        elif value is None and isinstance(default, int | float):
            changes[name] = default
    return msgspec.structs.replace(table, **changes)


def _tables(profile: Profile) -> dict[str, Any]:
    """Return tables that give the profile again, without what its preset fills in."""
    tables: dict[str, Any] = msgspec.to_builtins(profile)
    for key in ("cueing", "platform"):
        table = getattr(profile, key)
        if table is not None:
            filled = presets_of({key: tables[key]}, key).get(getattr(table, "preset", None) or "", {})
            tables[key] = _stripped(table, filled)
    return tables


def _stripped(table: msgspec.Struct, filled: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's values that differ from its preset, or from its defaults for keys without a preset."""
    tag = table.__struct_config__.tag_field
    out: dict[str, Any] = {tag: table.__struct_config__.tag} if tag else {}
    for name, default in _defaults(type(table)).items():
        value = getattr(table, name)
        if isinstance(value, msgspec.Struct):
            out[name] = _stripped(value, filled.get(name, {}))
        elif as_tuples(value) != as_tuples(filled.get(name, default)):
            out[name] = value
    return out


@cache
def _defaults(table: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the defaults of a table's keys."""
    return {field.name: field.default for field in msgspec.structs.fields(table)}


def _profile(tables: dict[str, Any], name: str, scaled: Scaled | None = None, *, placed: bool = False) -> Profile:
    """Return the profile in tables; raise ConfigError if they are not valid."""
    choose_preset(tables, placed=placed or tables.get("platform") is not None)
    cueing = tables.get("cueing")
    try:
        fill_from_presets(tables)
        refuse_not_finite(tables, "")
        profile = msgspec.convert(tables, Profile)
    except msgspec.ValidationError as error:
        message = explain(error, tables, Profile)
        moved = MOVED.get(message.partition(":")[0])
        place = f"; it is {moved} now" if moved else ""
        raise ConfigError(f"{name}: {message}{place}{preset_hint(error, tables)}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: tables or arrays are nested too deeply") from error
    if any(output.system == "custom" and output.packet is None for output in profile.outputs):
        outputs = tables["output"] if isinstance(tables["output"], list) else [tables["output"]]
        if not all("system" in output for output in outputs):
            raise ConfigError(f"{name}: output.system: missing, and there is no [output.packet] either")
        raise ConfigError(f"{name}: output.packet: missing; `motioncue profiles packets` lists some that can be used")
    if (profile.source.system == "custom") != (profile.source.packet is not None):
        allowed = "a name, or 'custom' with [source.packet]"
        raise ConfigError(f"{name}: source.system: found {profile.source.system!r}, allowed is {allowed}")
    if scaled is not None and isinstance(cueing, dict) and getattr(profile.cueing, "preset", None) == "auto":
        return _profile({**tables, "cueing": merged(scaled(profile), cueing)}, name)
    return profile


def platform_table(of: Platform | Profile | Mapping[str, Any] | str | Path) -> Platform:
    """Return the table of a platform, not yet examined."""
    if isinstance(of, Hexapod | CrankHexapod | Posts | Axes):
        return of
    if isinstance(of, Mapping):
        return platform_from(of)
    if not isinstance(of, Profile):
        name = str(of)
        if name in platform_presets():
            return platform_named(name)
        if not name.endswith(".toml"):
            raise ConfigError(f"platform: {not_among(name, platform_presets())}, and profiles in .toml files")
        of = parse_profile(profile_text(name), name=name)
    if of.platform is None:
        raise ConfigError(f"{of.name}: found no [platform]")
    return of.platform


def platform(of: Platform | Profile | Mapping[str, Any] | str | Path) -> MotionPlatform:
    """Return the kinematics of a platform: inverse, forward, Jacobian, ranges, workspace.

    Parameters
    ----------
    of : Platform, Profile, mapping, str or Path
        The name of a built-in platform, a profile or its file with a ``[platform]``, or that table itself.

    Raises
    ------
    ConfigError
        If there is no such platform, or it cannot be; names what was found and what is allowed.

    Examples
    --------
    >>> hexapod = motioncue.platform("hexapod-simona")
    >>> legs = hexapod.inverse([[0.1, 0.0, 0.0, 0.0, 0.0, 0.0]])        # 10 cm forward
    >>> float(hexapod.forward(legs).round(9)[0, 0])
    0.1
    >>> posts = motioncue.platform({"preset": "posts-4", "post": {"max_m": 0.05}})
    >>> posts.ranges["heave_displacement"]
    (-0.1, 0.05)
    """
    return MotionPlatform(platform_table(of))
