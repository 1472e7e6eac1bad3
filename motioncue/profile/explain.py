"""Validation errors in the words of a profile's author."""

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from motioncue.errors import meant

__all__ = ["explain", "shown", "tables_of", "words_of"]

WORDS = {str: "a text", float: "a number", int: "a whole number", bool: "true or false"}


def explain(error: msgspec.ValidationError, tables: Mapping[str, Any], root: type) -> str:
    """Return a validation error in plain words: the key's path, what was found, what is allowed.

    Parameters
    ----------
    error : ValidationError
        Raised by the conversion of `tables` to `root`.
    tables : mapping
        The converted tables.
    root : type
        The target, a `msgspec.Struct`.
    """
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
    return f"is {words_of(kind)}"


def _choices(values: Iterable[Any]) -> str:
    return ", ".join(map(repr, values))


def words_of(kind: Any) -> str:
    """Return a text of what a type allows."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        if get_origin(parts[0]) is tuple:
            return _list(parts[0], _size(parts[1]))
        return words_of(parts[0]) + _bounds(parts[1])
    if origin is Literal:
        return f"one of {_choices(parts)}" if parts[1:] else repr(parts[0])
    if origin is tuple:
        return _list(kind, "" if parts[-1] is Ellipsis else f" of {len(parts)}")
    if kind in WORDS:
        return WORDS[kind]
    if parts and origin is not dict:  # alternatives
        return " or ".join(dict.fromkeys(words_of(part) for part in parts if part is not NoneType))
    return "a table"


def _list(kind: Any, size: str) -> str:
    """Return a text of what a list allows."""
    item = get_args(kind)[0]
    quoted = " in quotes" if item is str else ""  # outside of lists, --set needs none
    return f"a list in brackets{size}, each {words_of(item)}{quoted}"


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
