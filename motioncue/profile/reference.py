"""Every key of a profile: what it allows, in words, and as a setting that a person may change by hand."""

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from textwrap import dedent
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args, get_origin

import msgspec

from motioncue.cueing.settings import ALGORITHMS
from motioncue.platforms.settings import platform_presets
from motioncue.profile.explain import allowed_text, tables_of
from motioncue.profile.tables import steps_of

HEAD = """\
# Every key of a profile

`motioncue profiles keys --markdown` prints this page.  A table that stands in several places is described once; `[]` is
behind a list of tables.  `motioncue profiles show NAME --resolved` prints a profile's values, also those of presets
and defaults."""


class Key(NamedTuple):
    """A key of a table."""

    name: str
    allowed: str
    """What it may be, with the range of a number; the unit is in the name or in the sentence."""
    default: str
    """As a profile would have it; empty: what its table's keys say; "required": the key must be given."""
    sentence: str


class Section(NamedTuple):
    """A table, at one or more places of a profile."""

    places: tuple[str, ...]
    """Dotted paths, with [] behind a list of tables, and the tag of one of several kinds of table."""
    sentence: str
    keys: tuple[Key, ...]
    within: str = ""
    """The tag of the only kind of table that it stands in; empty if it stands in several, or in one without a tag."""

    @property
    def title(self) -> str:
        """The places, as a profile has them, and the kind of table that they are in."""
        named = (f"[{place}" + "]" * (not place.endswith('"')) for place in self.places)  # a tag stands outside
        kind = f" with {self.within}" if self.within else ""
        return ", ".join(named) + kind if self.places != ("",) else "the profile"


def sections(profile: type[msgspec.Struct]) -> list[Section]:
    """Return the tables of a profile, each once, in the order in which they are met."""
    places: dict[type[msgspec.Struct], dict[str, None]] = {}  # in their order
    kinds: dict[type[msgspec.Struct], set[str]] = {}
    for place, within, table in _tables_below("", "", profile):
        places.setdefault(table, {})[place] = None
        kinds.setdefault(table, set()).add(within)
    return [
        Section(tuple(where), _summary(table), _keys(table), "".join(kinds[table]) if len(kinds[table]) == 1 else "")
        for table, where in places.items()
    ]


def markdown(found: list[Section]) -> str:
    """Return sections as a page."""
    lines = [HEAD]
    for section in found:
        lines += ["", f"## `{section.title}`", "", section.sentence, ""]
        lines += ["| key | allowed | default | |", "|---|---|---|---|"]
        lines += [f"| `{key.name}` | {key.allowed} | {key.default} | {key.sentence} |" for key in section.keys]
    return "\n".join(lines) + "\n"


def _tables_below(
    place: str, within: str, table: type[msgspec.Struct]
) -> Iterator[tuple[str, str, type[msgspec.Struct]]]:
    """Yield a table and those in it, with their places and the tag of the table that they are in."""
    config = table.__struct_config__
    tag = f'{config.tag_field} = "{config.tag}"' if config.tag_field else ""
    yield (f"{place}], {tag}[" if tag else place).strip("["), within, table
    within = tag or within
    for field in msgspec.structs.fields(table):
        inner = tables_of(field.type)
        several = "[]" if "tuple" in str(field.type) else ".NAME" if "dict[" in str(field.type) else ""
        for each in inner:
            yield from _tables_below(f"{place}.{field.name}{several}".lstrip("."), within, each)


def _keys(table: type[msgspec.Struct]) -> tuple[Key, ...]:
    said = sentences(table)
    tag = table.__struct_config__
    own = [Key(tag.tag_field, repr(tag.tag), "required", "Which kind of table this is.")] if tag.tag_field else []
    return (
        *own,
        *(
            Key(field.name, allowed_text(field.type), _default(field), said.get(field.name) or _first_line(field.type))
            for field in msgspec.structs.fields(table)
        ),
    )


def _first_line(kind: Any) -> str:
    """Return what the first table says of itself that a key can hold; empty if it holds none."""
    return next((_summary(table) for table in tables_of(kind)), "")


def _summary(table: type) -> str:
    return inspect.cleandoc(table.__doc__ or "").split("\n")[0]


def _default(field: msgspec.structs.FieldInfo) -> str:
    value: Any = field.default
    if value is msgspec.NODEFAULT:
        return "required" if field.default_factory is msgspec.NODEFAULT else "none"
    if isinstance(value, msgspec.Struct):
        return ""
    if value is None or value == ():
        return "none"
    return f"`{json.dumps(value)}`"


@cache
def sentences(table: type) -> dict[str, str]:
    """Return the sentence below each key in the source of a table and of its bases."""
    found: dict[str, str] = {}
    for kind in reversed(table.__mro__):
        if not kind.__module__.startswith("motioncue."):
            continue
        (body,) = ast.parse(dedent(inspect.getsource(kind))).body
        assert isinstance(body, ast.ClassDef)
        key = ""
        for node in body.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                key = node.target.id
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and key:
                found[key] = " ".join(str(node.value.value).split())
                key = ""
    return found


Kind: TypeAlias = Literal["number", "choice", "switch", "table", "order", "other"]
"""A number; one of several texts; true or false; a table that may be left out; all of several words in some order; what
only the profile's text says."""

NONE = "none"
"""What stands in the place of some tables: without them, nothing is bounded."""

NEUTRAL: Mapping[str, Any] = {"share": 1.0, "slope": 1.0, "largest_m_s2": 20.0, "largest_deg_s": 60.0}
"""Required values of a table that is switched on and stands in no preset: a scaling that is linear up to the largest
input."""

STARTS: Mapping[str, float] = {
    "break_hz": 0.03, "limit_m_s2": 20.0, "surge_limit_m_s2": 20.0, "sway_limit_m_s2": 20.0, "limit_deg_s": 60.0,
    "angle_limit_deg": 30.0, "rate_limit_deg_s": 3.0, "acceleration_limit_deg_s2": 30.0, "lag_s": 0.01,
    "dead_time_s": 0.01, "lag_damping": 1.0, "leave_s": 4.0,
}  # fmt: skip
"""Values with which numbers begin that were left out, so that little changes: bounds that few drives meet, a short
lag.  The rate of tilt begins at the threshold of perception."""

FOLLOWS: Mapping[str, str] = {
    "tilt.surge_gain": "surge.gain", "tilt.sway_gain": "sway.gain", "tilt.surge_limit_m_s2": "surge.limit_m_s2",
    "tilt.sway_limit_m_s2": "sway.limit_m_s2",
}  # fmt: skip
"""Numbers that have the value of another one of the same table where they are left out, and begin with it."""

WIDE = 10.0
"""Factor between the time in which a derivative's bound is reached and that of the bounds before it."""


class Control(NamedTuple):
    """A setting, for who changes it by hand."""

    key: str
    """Dotted path, with ``[0]`` and so on behind lists."""
    kind: Kind
    sentence: str
    unit: str = ""
    """As its sentence says; empty if it has none."""
    least: float | None = None
    most: float | None = None
    above: bool = False
    """Whether `least` itself is not allowed."""
    choices: tuple[Any, ...] = ()
    """The only values allowed; of a number, empty: any within the range; of a table, what stands there without it."""
    whole: bool = False
    """Whether it is a whole number."""
    optional: bool = False
    """Whether the key may be left out, and has no value then; one with a default has that."""
    default: Any = None
    """Its type's default; None if it has none."""
    begin: Mapping[str, Any] = {}
    """Values of a table that is switched on."""
    start: float | None = None
    """Value with which a number begins that was left out; None for others."""
    follows: str = ""
    """Key whose value a number has that is left out, and begins with; empty if there is none."""


def controls(
    table: msgspec.Struct, place: str, presets: Sequence[Mapping[str, Any]] = (), names: Sequence[str] = ()
) -> list[Control]:
    """Return the settings of a table and of the tables in it, in their order."""
    found: list[Control] = []
    presets = list(getattr(table, "presets", {}).values()) or presets
    said = sentences(type(table))
    config = table.__struct_config__
    if config.tag_field == "algorithm":
        sentence = "How motion becomes a cue.  Another algorithm starts from rest with its own preset, and fades in."
        found.append(Control(f"{place}.algorithm", "choice", sentence, choices=tuple(ALGORITHMS)))
    for field in msgspec.structs.fields(type(table)):
        if names and field.name not in names:
            continue
        key, value = f"{place}.{field.name}" if place else field.name, getattr(table, field.name)
        sentence, optional = said.get(field.name, ""), NoneType in get_args(field.type)
        default = None if field.default is msgspec.NODEFAULT else field.default
        free = (NONE,) if any(NONE in _texts(part) for part in get_args(field.type)) else ()
        if isinstance(value, msgspec.Struct) or ((optional or free) and tables_of(field.type)):
            inner = [preset[field.name] for preset in presets if isinstance(preset.get(field.name), Mapping)]
            kind = tables_of(field.type)[0]
            if (optional or free) and "axes[" not in place:  # these differ by which table they have
                sentence = sentence or (kind.__doc__ or "").partition("\n")[0]
                found.append(Control(key, "table", sentence, choices=free, begin=_begin(kind, inner)))
            found += controls(value, key, inner) if isinstance(value, msgspec.Struct) else []
        elif isinstance(value, tuple) and value and all(isinstance(item, msgspec.Struct) for item in value):
            for index, item in enumerate(value):
                found += controls(item, f"{key}[{index}]")
        elif isinstance(value, tuple):
            found += _list(key, value, field.type, sentence, default)
        elif field.name == "preset":
            found.append(_preset(table, key, value, sentence))
        else:
            optional = optional and default is None  # without the key, one with a default has that
            for control in _one(key, field.type, sentence, default, optional):
                if optional and control.kind == "number":
                    start = _start(control, [each.default or each.start for each in found[-2:]], presets)
                    control = control._replace(start=start, follows=_followed(key))
                found.append(control)
    return found


def _start(control: Control, before: Sequence[Any], presets: Sequence[Mapping[str, Any]]) -> float:
    """Return the value with which a number that was left out begins: the largest preset's, or one that changes little.

    It does not depend on other settings in force, so that the page's controls stay while these are moved.
    """
    name = control.key.rpartition(".")[2]
    given = [preset[name] for preset in presets if preset.get(name) is not None]
    if given:
        return float(given[-1])
    if control.sentence.startswith("Largest change"):  # a bound, after those of the value and of its derivatives
        return float(WIDE * before[1] ** 2 / before[0])
    return STARTS.get(name, 1.0)


def _followed(key: str) -> str:
    """Return the key whose value a number has that is left out; empty if there is none."""
    place, _, name = key.partition(".")
    return f"{place}.{FOLLOWS[name]}" if name in FOLLOWS else ""


def _one(key: str, kind: Any, sentence: str, default: Any, optional: bool = False) -> Iterator[Control]:
    """Yield the setting of a type that is no table and no list; none for a text."""
    number = _numeric(kind)
    texts = _texts(kind)
    if kind is bool:
        yield Control(key, "switch", sentence, default=default)
    elif number is not None:
        meta, choices, whole = number
        unit = re.search(r"\[([^\]]+)\]", sentence)
        least = meta.gt if meta.gt is not None else meta.ge
        default = default if isinstance(default, float | int) else None
        yield Control(
            key, "number", sentence, unit[1] if unit else "", least, meta.le, meta.gt is not None, choices, whole,
            optional, default,
        )  # fmt: skip
    elif texts:
        yield Control(key, "choice", sentence, choices=texts, optional=optional, default=default)


def _list(key: str, value: tuple[Any, ...], kind: Any, sentence: str, default: Any) -> Iterator[Control]:
    """Yield the settings in a list: its numbers one by one, words as an order."""
    parts = get_args(get_args(kind)[0] if get_origin(kind) is Annotated else kind)
    words = _texts(parts[0]) if parts else ()
    if words and len(words) == len(value) == len(parts):
        yield Control(key, "order", sentence, choices=words, default=default)
    elif parts and _numeric(parts[0]) is not None:
        for index in range(len(value)):
            yield from _one(f"{key}[{index}]", parts[0], sentence, default[index] if default else None)


def _begin(table: type[msgspec.Struct], presets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values with which a table that was left out begins: those of the last preset, or its defaults."""
    if presets:
        return dict(presets[-1])
    begin = {
        field.name: NEUTRAL.get(field.name, None if field.required else field.default)
        for field in msgspec.structs.fields(table)
    }
    return {name: msgspec.to_builtins(value) for name, value in begin.items() if value is not None}


def _preset(table: msgspec.Struct, key: str, value: str | None, sentence: str) -> Control:
    """Return the setting that names a preset; none is a choice only where none is named."""
    presets = getattr(table, "presets", None)
    names = list(platform_presets() if presets is None else presets)
    if getattr(table, "auto", None) is not None:
        names.append("auto")
    return Control(key, "choice", sentence, choices=tuple(names), optional=value is None)


def _numeric(kind: Any) -> tuple[msgspec.Meta, tuple[float, ...], bool] | None:
    """Return a number's range, its choices if these are listed, and whether it is whole; None for other types."""
    parts = get_args(kind)
    if kind in (float, int):
        return msgspec.Meta(), (), kind is int
    if get_origin(kind) is Annotated and parts[0] in (float, int):
        return parts[1], (), parts[0] is int
    if get_origin(kind) is Literal and all(isinstance(part, int) for part in parts):
        return msgspec.Meta(), parts, True
    if len(parts) == 2 and NoneType in parts:
        return _numeric(parts[0])
    return None


def _texts(kind: Any) -> tuple[str, ...]:
    """Return the texts that a type allows if these are listed."""
    parts = get_args(kind)
    if get_origin(kind) is Literal and all(isinstance(part, str) for part in parts):
        return parts
    return _texts(parts[0]) if len(parts) == 2 and NoneType in parts else ()


def values_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of nested tables by the keys of `controls`; lists of words stay whole."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from values_of(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple) and value and not isinstance(value[0], str):
        for index, item in enumerate(value):
            yield from values_of(item, f"{path}[{index}]")
    else:
        yield path, value


def item_of(tables: Any, key: str) -> Any:
    """Return the value at a key of `controls`; None if there is none."""
    for step in steps_of(key):
        try:
            tables = tables[step]
        except (KeyError, IndexError, TypeError):
            return None
    return tables


def with_item(tables: Mapping[str, Any], key: str, value: Any) -> tuple[str, Any]:
    """Return the key and value with which a setting changes: in a list, those of the list."""
    root, bracket, _ = key.partition("[")
    if not bracket:
        return key, value
    held: Any = {"": item_of(tables, root)}
    whole = held = msgspec.json.decode(msgspec.json.encode(held))  # a copy of all that is in it
    *path, last = ["", *steps_of(key.removeprefix(root))]
    for step in path:
        held = held[step]
    held[last] = value
    return root, whole[""]
