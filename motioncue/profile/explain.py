"""What a profile's author is told in words: what is wrong, what is allowed, which bounds are in force or off."""

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import msgspec

from motioncue.errors import meant
from motioncue.platforms.settings import Travel, Turning
from motioncue.safety.settings import Limits

if TYPE_CHECKING:
    from motioncue.profile.profile import Profile

WORDS = {str: "a text", float: "a number", int: "a whole number", bool: "true or false"}


def explain(error: msgspec.ValidationError, tables: Mapping[str, Any], root: type) -> str:
    """Return a validation error in plain words: the key's path, what was found, what is allowed."""
    message, _, where = str(error).partition(" - at `$.")
    path = _with_names(where.rstrip("`") if where else "", tables, root)
    prefix = f"{path}: " if path else ""
    if "unknown field" in message:
        key = message.split("`")[1]
        kind = _type_at(root, path, tables)
        keys = sorted(_keys(_table(kind, _lookup(tables, path))))
        inside = f"{path}." if path else ""
        text = f"{inside}{key}: unknown key, allowed are {', '.join(keys)}"
        return f"{text}{_only_with(key, kind, inside) or meant(key, keys)}"
    if "missing required field" in message:
        key = message.split("`")[1]
        inside = f"{path}." if path else ""
        return f"{inside}{key}: missing, allowed {_allowed(_type_at(root, inside + key, tables))}"
    found = _lookup(tables, path)
    return f"{prefix}found {shown(found)}, allowed {_allowed(_type_at(root, path, tables))}"


def _with_names(path: str, tables: Mapping[str, Any], root: type) -> str:
    """Return a path in which each [...] is replaced by the name of the first item there that is not valid."""
    while "[...]" in path:
        before, _, after = path.partition("[...]")
        kind = _mapped(_type_at(root, before, tables))
        wrong = (name for name, item in _lookup(tables, before).items() if not _fits(item, kind))
        path = f"{before}.{next(wrong, '?')}{after}"
    return path


def _fits(item: Any, kind: Any) -> bool:
    """Return whether a value can be converted to a type."""
    try:
        msgspec.convert(item, kind)
    except msgspec.ValidationError:
        return False
    return True


def _mapped(kind: Any) -> Any:
    """Return the type of the values of a mapping; None if `kind` is not one."""
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return next((item for part in get_args(kind) if (item := _mapped(part)) is not None), None)


def _only_with(key: str, kind: Any, inside: str) -> str:
    """Return a remark on the alternatives of a table that allow a key; empty if none does."""
    tables = [table for table in tables_of(kind) if table.__struct_config__.tag_field and key in _keys(table)]
    if not tables:
        return ""
    tags = [table.__struct_config__.tag for table in tables]
    return f"; it is one with {inside}{tables[0].__struct_config__.tag_field} = {' or '.join(map(repr, tags))}"


def shown(value: Any) -> str:
    """Return `value` as a profile would contain it, cut if it is long."""
    try:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    except ValueError:  # more digits than Python converts
        return "a number of very many digits"
    except Exception:  # whatever a foreign object, or one nested without end, makes of it
        return f"an object of {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}…"


def _lookup(tables: Any, path: str) -> Any:
    """Return the value at a path; None for a key that is not there."""
    for step in path.replace("[", ".").replace("]", "").split(".") if path else ():
        if isinstance(tables, Mapping):
            tables = tables.get(step)
        elif isinstance(tables, list):
            tables = tables[int(step)] if step.isdigit() and int(step) < len(tables) else tables
    return tables


def _type_at(root: Any, path: str, tables: Any) -> Any:
    """Return the type of the value at `path`; None if it has no declared type."""
    kind, value = root, tables
    for step in path.split(".") if path else ():
        name, bracket, index = step.partition("[")
        if (item := _mapped(kind)) is not None:
            kind, value = item, _lookup(value, step)
            continue
        table = _table(kind, value)
        if table is None:
            return None
        if name == table.__struct_config__.tag_field:
            return Literal[tuple(each.__struct_config__.tag for each in tables_of(kind))]
        kind = next((field.type for field in msgspec.structs.fields(table) if field.encode_name == name), None)
        if bracket and index[:-1].isdigit():
            kind = _item(kind, int(index[:-1]))
        value = _lookup(value, step)
    return kind


def tables_of(kind: Any) -> list[Any]:
    """Return the tables that a key can hold, whether optional, alternatives or in a list."""
    if hasattr(kind, "__struct_fields__"):
        return [kind]
    return [table for part in get_args(kind) for table in tables_of(part)]


def _table(kind: Any, value: Any) -> Any:
    """Return the table type of a key: the one with the tag of `value`, else the first; None if it has none."""
    tables = tables_of(kind)
    for table in tables:
        config = table.__struct_config__
        if config.tag_field and isinstance(value, Mapping) and value.get(config.tag_field) == config.tag:
            return table
    return tables[0] if tables else None


def _item(kind: Any, index: int) -> Any:
    """Return the type of an item of a list; None if `kind` is not a list."""
    parts = get_args(kind)
    if get_origin(kind) is tuple:
        return parts[0] if parts[-1] is Ellipsis else parts[min(index, len(parts) - 1)]
    return next((item for part in parts if (item := _item(part, index)) is not None), None)


def _keys(table: Any) -> set[str]:
    """Return the keys that a table allows."""
    names = {field.encode_name for field in msgspec.structs.fields(table)}
    tag = table.__struct_config__.tag_field
    return names | ({tag} if tag else set())


def _allowed(kind: Any) -> str:
    """Return a text of what a key of this type allows, with its verb."""
    if get_origin(kind) is Literal:
        return f"are {_choices(get_args(kind))}"
    return f"is {allowed_text(kind)}"


def _choices(values: Iterable[Any]) -> str:
    return ", ".join(map(repr, values))


def allowed_text(kind: Any) -> str:
    """Return a text of what a type allows."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        if get_origin(parts[0]) is tuple:
            return _list(parts[0], _size(parts[1]))
        return allowed_text(parts[0]) + _bounds(parts[1])
    if origin is Literal:
        return f"one of {_choices(parts)}" if parts[1:] else repr(parts[0])
    if origin is tuple:
        return _list(kind, "" if parts[-1] is Ellipsis else f" of {len(parts)}")
    if kind in WORDS:
        return WORDS[kind]
    if parts and origin is not dict:  # alternatives
        return " or ".join(dict.fromkeys(allowed_text(part) for part in parts if part is not NoneType))
    return "a table"


def _list(kind: Any, size: str) -> str:
    """Return a text of what a list allows."""
    item = get_args(kind)[0]
    quoted = " in quotes" if item is str else ""  # outside of lists, --set needs none
    return f"a list in brackets{size}, each {allowed_text(item)}{quoted}"


def _size(meta: msgspec.Meta) -> str:
    """Return a text of how many items a list has; empty if any number is allowed."""
    least, most = meta.min_length, meta.max_length
    if least is not None and most is not None:
        return f" of {least}" if least == most else f" of {least} to {most}"
    return f" of at least {least}" if least is not None else f" of up to {most}" if most is not None else ""


def _bounds(meta: msgspec.Meta) -> str:
    """Return a text of the range of a number; empty for other types."""
    if meta.ge is not None and meta.le is not None:
        return f" from {meta.ge:g} to {meta.le:g}"
    least = f" above {meta.gt:g}" if meta.gt is not None else f" of at least {meta.ge:g}" if meta.ge is not None else ""
    return f"{least}, up to {meta.le:g}" if meta.le is not None else least


TABLES = ("watch", "supervisor")
"""Tables beside the limits that keep a platform from harm; their defaults are their types'."""

FAR = 10.0
"""A bound of this many times its default, or more, bounds nothing that a car or a fault does: it counts as off."""


def bounds_off(profile: "Profile") -> list[str]:
    """Return the bounds of a profile that are off: key, value, and what that means."""
    if profile.limits == "none":
        off = ['limits = "none": nothing bounds what the platform is asked to do']
    else:
        off = []
        for name in Limits.__struct_fields__:
            table, channel = getattr(profile.limits, name), name.replace("_", " ")
            if table == "none":
                off.append(f'limits.{name} = "none": {channel} is not bounded')
                continue
            off += [f"{line}: {channel} may do nearly anything" for line in _far(table, f"limits.{name}")]
    return off + [f"{line}: the watch lets nearly anything pass" for line in _far(profile.watch, "watch")]


def inverted(profile: "Profile") -> list[str]:
    """Return the gains by which a sense goes the other way, each with its value."""
    tables = msgspec.to_builtins(profile.cueing)
    return [f"{key} = {value:g}" for key, value in _gains(tables, "cueing") if value < 0.0]


def _gains(tables: Mapping[str, Any], path: str) -> Iterator[tuple[str, float]]:
    """Yield the gains that are set in nested tables, by their keys."""
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from _gains(value, f"{path}.{name}")
        elif name.endswith("gain") and value is not None:
            yield f"{path}.{name}", value


def bounds_in_force(profile: "Profile") -> list[str]:
    """Return the bounds of a profile in few lines: limits, watch, supervisor and platform."""
    lines, same = [], []
    for name, default in (("limits", Limits()), *((name, type(getattr(profile, name))()) for name in TABLES)):
        table = getattr(profile, name)
        if table == default:
            same.append(name)
        elif table == "none":
            lines.append('limits: "none", nothing is bounded')
        else:
            usual = any(getattr(table, key) == getattr(default, key) for key in table.__struct_fields__)
            rest = "; the rest as by default" if usual else ""
            lines.append(f"{name}: {', '.join(_differing(table, default))}{rest}")
    for index, output in enumerate(profile.outputs):
        own = list(_differing(output.limits, type(output.limits)()))
        lines += [f"output[{index}].limits: {', '.join(own)}"] if own else []
    if profile.platform is not None:
        lines.append(f"platform: {', '.join(_actuators(profile.platform))}")
    beside = "" if profile.platform is not None else "; no [platform] bounds actuators"
    if same:
        lines.insert(0, f"{' and '.join([', '.join(same[:-1]), same[-1]] if same[1:] else same)} as by default{beside}")
    return [f"bounds in force: {line}" for line in lines]


def _differing(table: Any, default: Any, place: str = "") -> Iterator[str]:
    """Yield key and value of what differs from the defaults."""
    for name in table.__struct_fields__:
        value, usual = getattr(table, name), getattr(default, name, None)
        if value == usual:
            continue
        if isinstance(value, msgspec.Struct):
            other = usual if isinstance(usual, msgspec.Struct) else None
            yield from _differing(value, other, f"{place}{name}.")
        else:
            yield f"{place}{name} {format(value, 'g') if isinstance(value, float | int) else value or 'none'}"


def _actuators(platform: Any) -> Iterator[str]:
    """Yield the range, speed and acceleration of a platform's actuators, those of a kind once if they are alike."""
    kinds = [(name, getattr(platform, name, None)) for name in ("leg", "crank", "post")]
    kinds += [(axis.name, axis.travel or axis.turn) for axis in platform.axes]
    for name, bounds in kinds:
        several = bounds if isinstance(bounds, tuple) else (bounds,)
        for number, each in enumerate(dict.fromkeys(several), 1):
            called = f"{name}_{number}" if len(set(several)) > 1 else name
            if isinstance(each, Travel):
                speed, most = f"{each.speed_m_s:g} m/s", f"{each.acceleration_m_s2:g} m/s²"
                yield f"{called} {each.min_m:+g} to {each.max_m:+g} m, {speed}, {most}"
            elif isinstance(each, Turning):
                speed, most = f"{each.speed_deg_s:g} °/s", f"{each.acceleration_deg_s2:g} °/s²"
                yield f"{called} {each.min_deg:+g} to {each.max_deg:+g}°, {speed}, {most}"


def _far(table: msgspec.Struct, place: str) -> Iterator[str]:
    """Yield key and value of the numbers in a table that are missing, or far above their defaults."""
    for field in msgspec.structs.fields(table):
        value: Any = getattr(table, field.name)
        if field.default is not None and (value is None or value >= FAR * field.default):
            yield f"{place}.{field.name} = {'none' if value is None else format(value, 'g')}"
