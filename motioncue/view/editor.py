"""The settings of the page: shown, changed, asked about, undone, compared and saved."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from motioncue.engine import pipeline as tuning
from motioncue.engine.fitting import gains_for
from motioncue.engine.pipeline import changed
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.settings import PlatformTable
from motioncue.profile.explain import bounds_off
from motioncue.profile.profile import KeptLaps, Output, Profile, Record, Source, differences, expressible, parse_profile
from motioncue.profile.reference import NONE, Control, controls, item_of, sentences, values_of, with_item
from motioncue.profile.tables import changed_text, differing
from motioncue.safety.settings import Limits
from motioncue.view.model import Watched

TABLES = ("cueing", "supervisor", "limits", "watch")
"""Tables of a profile whose settings the page changes, besides the platform's."""

SOURCE = ("source.bridge", "source.head_m")
"""Settings of the source that it changes."""

DESCRIBED = "as the profile describes it"

TEXTS = ("platform.description", "platform.source")
"""Texts for people, which are no settings."""

REST = {"source": Source, "output": Output, "record": Record, "laps": KeptLaps, "platform": PlatformTable}
"""Tables whose other keys are fixed while it runs, with their types."""


def parameters(profile: Profile) -> list[Control]:
    """Return the settings of a profile, also those that are fixed while it runs."""
    found = controls(profile.cueing, "cueing") + controls(profile, "", names=TABLES[1:])
    if profile.platform is not None:
        found += controls(profile.platform, "platform")
    found += [each for each in controls(profile.source, "source") if each.key.partition("[")[0] in SOURCE]
    for index, output in enumerate(profile.outputs):
        place = f"output[{index}]" if isinstance(profile.output, tuple) else "output"
        found += controls(output.limits, f"{place}.limits")
    return found + list(_rest(profile, {control.key for control in found}))


def _rest(profile: Profile, known: set[str]) -> Iterable[Control]:
    """Yield the keys of other tables, which only the profile's text says; a packet as a whole."""
    tables = msgspec.to_builtins(profile)
    for root, kind in REST.items():
        said, whole = sentences(kind), (kind.__doc__ or "").partition("\n")[0]
        for key, value in values_of(tables[root], root):
            before, packet, _ = key.partition(".packet")
            name = before + packet
            absent = value is None and "axes[" in name  # another kind of axis
            if name in known or name in TEXTS or absent or ".limits" in name:
                continue
            known.add(name)
            yield Control(name, "other", said.get(name.partition(".")[2].partition(".")[0], whole))


def fixed_because(profile: Profile, key: str) -> str:
    """Return why a setting is fixed while it runs; empty if it is not."""
    if key == "platform.preset":
        return "a platform's preset is its geometry"
    return tuning.fixed_because(profile, key)


def is_saved(key: str) -> bool:
    """Say whether a saved profile has the page's value of a key."""
    root, _, rest = key.partition(".")
    if root.partition("[")[0] == "output":
        return rest.partition(".")[0] == "limits"
    return root in (*TABLES, "platform") or key.partition("[")[0] in SOURCE


def shown(found: Iterable[Control], profile: Profile) -> dict[str, Any]:
    """Return the values of those settings that a profile has; of a table, whether it is given."""
    tables = msgspec.to_builtins(profile)
    out: dict[str, Any] = {}
    for control in found:
        value = item_of(tables, control.key)
        if control.kind == "table":
            out[control.key] = value not in (None, NONE)
        elif control.kind == "other":
            out[control.key] = value.get("preset") or DESCRIBED if isinstance(value, Mapping) else value
        elif control.optional or value is not None:
            out[control.key] = value
    return out


FACTOR = 2.0
"""A number that becomes more than so many times its value is asked about; also one that shrinks so, but for gains."""

DAMPING = 0.3
"""A filter of second order with less damping overshoots a step by more than 37 %."""


class Doubtful(ConfigError):
    """A change that nobody has been asked about yet."""

    def __init__(self, why: list[str]) -> None:
        super().__init__("; ".join(why))
        self.why = why


def doubts(before: Profile, after: Profile, *, began: Profile | None = None) -> list[str]:
    """Return what of a change is asked about first; empty if nothing is.

    Asked about are another sign, a value of more than twice or less than half (a gain may become smaller), damping
    below 0.3, and bounds that are off afterwards.  Another algorithm is not compared with the one before.
    """
    began = began or before
    other = type(began.cueing) is not type(after.cueing)
    found, now = newly_off(before, after), differences(before, after)
    for key, (old, new) in differences(began, after).items():
        if key not in now or (other and key.startswith("cueing.")) or not (_number(old) and _number(new)):
            continue
        gain = key.endswith("gain") or key.startswith("cueing.gains.")
        why = ""
        if old * new < 0.0:
            why = "the other sign, so the other way"
        elif abs(new) > FACTOR * abs(old) and (old or gain):
            why = "more than twice" if old else "from nothing"
        elif abs(new) < abs(old) / FACTOR and not gain:
            why = "less than half"
        if key.endswith("damping") and new < min(old, DAMPING):
            why = f"{why}, and " * bool(why) + f"below {DAMPING:g}, where it swings for long"
        if why:
            found.append(f"{key}: {old:g} → {new:g}, {why}".replace("-", "−"))
    return found


def newly_off(before: Profile, after: Profile) -> list[str]:
    """Return the bounds that a change puts off."""
    off = bounds_off(before)
    return [line for line in bounds_off(after) if line not in off]


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Value: TypeAlias = float | bool | str | list[str] | None
"""Value of a setting; None for one that is left out."""

ALGORITHM, PRESET = "cueing.algorithm", "cueing.preset"
AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
STEPS = 200  # gestures that can be undone
REASONS = 2000  # values whose reason is kept
REASON = 300  # most characters of one
BY_HAND = "set by hand"
UNSAID = "because a profile cannot say none there"
REMARK = "# changed: "

CANNOT_TAKE = "save: this profile's text cannot take the values; allowed is one that names its tables"

KINDS = {"switch": bool, "table": bool, "choice": str | None, "order": list}
ALLOWED = {"switch": "true or false", "table": "true (given) or false (left out)", "order": "a list of words"}


class Editor:
    """Changes an engine's settings.

    Every change goes through `retune`, and so through its checks.
    """

    def __init__(self, engine: Watched, text: str | None = None, folder: Path | None = None) -> None:
        self._engine = engine
        self._text = text
        self._folder = folder
        self._first = engine.requested
        self._slot = "A"
        self._other = engine.requested
        self._past: dict[str, list[Profile]] = {"A": [], "B": []}
        self._reasons: dict[tuple[str, Any], str] = {}  # of a key's value, for who reads a saved profile
        self._gesture: tuple[Any, ...] | None = None
        self._began: dict[str, tuple[tuple[Any, ...], Profile]] = {}  # newest gesture of each key: two hands alternate
        self._silent: dict[str, Any] = {}  # gains of muted axes as they were
        self._controls: tuple[Profile | None, list[Control]] = (None, [])

    def parameters(self) -> list[Control]:
        """Return the settings of the profile, also those that are fixed while it runs."""
        profile = self._engine.requested
        held, found = self._controls
        if held is not profile:
            found = parameters(profile)
            self._controls = profile, found
        return found

    def fixed(self) -> dict[str, str]:
        """Return why settings are fixed while it runs, by key."""
        profile = self._engine.requested
        return {control.key: why for control in self.parameters() if (why := fixed_because(profile, control.key))}

    def state(self) -> dict[str, Any]:
        """Return the values of all settings, and what can be undone, compared and saved."""
        profile = self._engine.requested
        values, begin = (shown(self.parameters(), each) for each in (profile, self._first))
        return {
            "values": {control.key: values.get(control.key) for control in self.parameters()},
            "begin": begin,
            "bounds": {name: bounds[0] for name, bounds in profile.bounds().items()},
            "off": bounds_off(profile),
            "slot": self._slot,
            "undo": len(self._past[self._slot]),
            "changed": {key: [before, after] for key, (before, after) in _changes(self._first, profile).items()},
            "differs": sorted(_changes(profile, self._other)),
            "muted": self.muted(values),
        }

    def compared(self) -> dict[str, Profile]:
        """Return the settings that are worth comparing, by a name: those in force come last, as ``now``."""
        now, past = self._engine.requested, self._past[self._slot]
        other = "B" if self._slot == "A" else "A"
        found = {f"{other}, as at the beginning" if self._other == self._first else other: self._other}
        if past:
            found["before"] = past[-1]
        kept: dict[str, Profile] = {}
        for name, profile in found.items():
            if profile != now and profile not in kept.values():
                kept[name] = profile
        return {**kept, "now": now}

    def set(self, key: str, value: Value, gesture: tuple[Any, ...], *, sure: bool = False) -> None:
        """Set a parameter."""
        why = f"{key.rpartition('.')[2]} {value}" if key in (ALGORITHM, PRESET) else ""
        self._make({key: value}, gesture, sure=sure, why=why)

    def turn(self, values: Mapping[str, float], gesture: tuple[Any, ...], *, sure: bool = False, why: str = "") -> None:
        """Set several numbers together; refused and asked about as `set` is."""
        kinds = {control.key: control.kind for control in self.parameters()}
        if other := [key for key in values if kinds.get(key, "number") != "number"]:
            raise ConfigError(f"{other[0]}: found a {kinds[other[0]]}, allowed are numbers")
        self._make(values, gesture, sure=sure, why=why)

    def mute(self, axes: Sequence[str]) -> None:
        """Silence axes by gains of 0, and give the others back those that they had; nobody is asked."""
        if other := [axis for axis in axes if axis not in AXES]:
            raise ConfigError(f"mute: {not_among(other[0], AXES)}")
        values = self.state()["values"]
        keys = {key for axis in axes for key in _gains(axis, values)}
        change = {key: gain for key, gain in self._silent.items() if key not in keys and values.get(key) == 0.0}
        silent = {key: self._silent.get(key, values[key]) if values[key] == 0.0 else values[key] for key in keys}
        self._make({**change, **dict.fromkeys(keys, 0.0)}, ("mute", *axes), sure=True)
        self._silent |= silent

    def muted(self, values: Mapping[str, Any]) -> list[str]:
        """Return the axes that are silent, whose gains are 0 because of `mute`."""
        held = {key for key in self._silent if values.get(key) == 0.0}
        return [axis for axis in AXES if (keys := _gains(axis, values)) and held.issuperset(keys)]

    def _make(self, values: Mapping[str, Value], gesture: tuple[Any, ...], *, sure: bool, why: str = "") -> None:
        """Make a change of settings, by their keys."""
        before, keys = self._engine.requested, ", ".join(values)
        allowed = {control.key: control for control in self.parameters()}
        change: Profile | dict[str, Any] = {}
        for key, value in values.items():
            if key not in allowed:
                raise ConfigError(f"parameter: {not_among(key, allowed)}")
            if reason := fixed_because(before, key):
                raise ConfigError(f"{key}: fixed while it runs, {reason}")
            part = _change(before, allowed[key], value)
            change = part if isinstance(part, Profile) or isinstance(change, Profile) else {**change, **part}
        goes_on = (gesture, keys) == self._gesture
        after = change if isinstance(change, Profile) else changed(before, change)
        known, began = self._began.get(keys, (None, before))
        _refuse(doubts(before, after, began=began if known == gesture else before), sure)
        self._engine.retune(change)
        self._note(before, self._engine.requested, why)
        if all(allowed[key].kind == "number" for key in values) and self._controls[0] is before:
            self._controls = self._engine.requested, self._controls[1]  # numbers that move leave them as they are
        if known != gesture:
            self._began[keys] = gesture, before
        if not goes_on:
            self._past[self._slot] = [*self._past[self._slot][1 - STEPS :], before]
            self._gesture = (gesture, keys)

    def _note(self, before: Profile, after: Profile, why: str) -> None:
        """Keep why values are what they are now; without a reason they were set by hand."""
        for key, (_, value) in _changes(before, after).items():
            self._reasons.pop((key, str(value)), None)
            if why:
                self._reasons[key, str(value)] = why
        for oldest in list(self._reasons)[:-REASONS]:
            del self._reasons[oldest]

    def undo(self, *, sure: bool = False) -> None:
        """Return to the settings before the last gesture; nothing happens if there was none."""
        if self._past[self._slot]:
            _refuse(doubts(self._engine.requested, self._past[self._slot][-1]), sure)
            self._engine.retune(self._past[self._slot][-1])
            self._past[self._slot].pop()
        self._gesture = None
        self._began.clear()

    def swap(self, to: str | None = None, *, sure: bool = False, why: str = "") -> None:
        """Go from settings A to B, or back; B begins as a copy of A.  `why` it is preferred adds to each reason."""
        if to != self._slot:
            here = self._engine.requested
            _refuse(doubts(here, self._other), sure)
            self._engine.retune(self._other)
            self._other = here
            self._slot = "B" if self._slot == "A" else "A"
            self._gesture = None
            self._began.clear()
        if why:
            for key, (_, value) in _changes(self._other, self._engine.requested).items():
                earlier = self._reasons.get((key, str(value)), BY_HAND)
                self._reasons[key, str(value)] = f"{earlier}; {why}"[:REASON]

    def save(self, name: str) -> dict[str, Any]:
        """Write the settings as a profile beside the old one's text and comments."""
        if self._text is None:
            raise ConfigError("save: this run began without a profile's text")
        if muted := self.muted(self.state()["values"]):
            raise ConfigError(f"save: {', '.join(muted)} muted, allowed is with all axes heard")
        felt = self._engine.requested
        wanted = expressible(felt)  # an older recording may have no bound where there is one by default now
        filled = differences(felt, wanted)
        changes = differences(parse_profile(self._text, scaled=gains_for), wanted)
        tables = msgspec.to_builtins(wanted)
        values: dict[str, Any] = {}
        for key, (_, after) in changes.items():
            root, bracket, _ = key.partition("[")
            if is_saved(key) and bracket and not key.startswith("output"):  # a list that differs is written whole
                values[root] = _without_absent(item_of(tables, root))
            elif is_saved(key):
                values[key] = after
        try:
            text = self._with_reasons(changed_text(self._text, values), changes, filled)
        except (LookupError, TypeError) as error:
            raise ConfigError(CANNOT_TAKE) from error
        saved = parse_profile(text, scaled=gains_for)
        if any(is_saved(key) for key in differences(saved, wanted)):
            raise ConfigError(CANNOT_TAKE)
        path = (self._folder or Path.cwd()) / name
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError as error:
            raise ConfigError(f"save: {name} exists, allowed is a new name") from error
        except OSError as error:
            raise ConfigError(f"save: {name} cannot be written: {error.strerror or error}") from error
        before, after = self._text.splitlines(), text.splitlines()
        return {"file": str(path), "diff": list(unified_diff(before, after, "before", name, lineterm="", n=1))}

    def _with_reasons(
        self, text: str, changes: Mapping[str, tuple[Any, Any]], filled: Mapping[str, tuple[Any, Any]]
    ) -> str:
        """Return a profile's text that begins with a line for each changed key: from what to what, and why.

        `filled` are keys that no text can give as they are.
        """
        lines = []
        for key, (old, new) in {**changes, **filled}.items():
            if is_saved(key):
                why = UNSAID if key in filled else self._reasons.get((key, str(new)), BY_HAND)
                why = "".join(each if each.isprintable() else "?" for each in why)
                lines.append(f"{REMARK}{key}: {_told(old)} to {_told(new)}, {why}\n")
        keys = tuple(f"{REMARK}{key}:" for key in (*changes, *filled))  # of an earlier change, which this one replaces
        return "".join([*lines, *(line for line in text.splitlines(keepends=True) if not line.startswith(keys))])


def _told(value: Any) -> str:
    """Return a value as a remark has it."""
    return "none" if value is None else f"{value:g}" if _number(value) else str(value)


def _gains(axis: str, values: Mapping[str, Any]) -> list[str]:
    """Return the keys of an axis' gains that have a value."""
    names = (f"cueing.{axis}.gain", f"cueing.tilt.{axis}_gain", f"cueing.texture.{axis}_gain", f"cueing.gains.{axis}")
    return [name for name in names if values.get(name) is not None]


def _refuse(why: list[str], sure: bool) -> None:
    """Refuse a change that a person has to be asked about, unless this was done."""
    if why and not sure:
        raise Doubtful(why)


def _change(profile: Profile, control: Control, value: Value) -> Profile | dict[str, Any]:
    """Return the change of a profile that sets one setting; refuse a value of another kind."""
    key, kind = control.key, control.kind
    if kind == "number":
        if isinstance(value, bool | str | list) or (value is None and not control.optional):
            raise ConfigError(f"{key}: found {value!r}, allowed is a number")
        whole = control.whole and value is not None and value.is_integer()
        return dict(
            [with_item(msgspec.to_builtins(profile), key, int(value) if whole and value is not None else value)]
        )
    if not isinstance(value, KINDS[kind]):
        allowed = ALLOWED.get(kind, ", ".join(map(str, control.choices)))
        raise ConfigError(f"{key}: found {value!r}, allowed is {allowed}")
    if kind == "table":
        # One that is given already stays as it is.
        tables = msgspec.to_builtins(profile)
        without = control.choices[0] if control.choices else None
        given = item_of(tables, key) not in (None, NONE)
        if given == value:
            return {}
        if value and key == "limits":  # no override of a bound may bring back all the others
            return msgspec.structs.replace(profile, limits=Limits())
        return dict([with_item(tables, key, dict(control.begin) if value else without)])
    if key == PRESET and value is not None:
        # A preset supplies what is left out: the values in force would all stand beside it, so they go.
        tables = msgspec.to_builtins(profile)
        tables["cueing"] = {"algorithm": tables["cueing"]["algorithm"], "preset": value}
        return parse_profile("", name=profile.name, overrides=[tables], scaled=gains_for)
    return dict([with_item(msgspec.to_builtins(profile), key, value)])


def _without_absent(value: Any) -> Any:
    """Return nested tables without the keys that are left out, which TOML cannot say."""
    if isinstance(value, Mapping):
        return {key: _without_absent(item) for key, item in value.items() if item is not None}
    return [_without_absent(item) for item in value] if isinstance(value, list | tuple) else value


def _changes(old: Profile, new: Profile) -> dict[str, tuple[Any, Any]]:
    """Return the keys in which two profiles differ, with both values, those of lists one by one."""
    return differing(*(dict(values_of(msgspec.to_builtins(profile))) for profile in (old, new)))
