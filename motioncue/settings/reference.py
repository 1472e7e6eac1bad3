"""Every key of a profile with what it allows, its default and a sentence, from the tables' own source."""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from motioncue.explain import tables_of, words_of

__all__ = ["Key", "Number", "Section", "markdown", "numbers", "sections"]

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

    @property
    def title(self) -> str:
        """The places, as a profile has them."""
        return ", ".join(f"[{place}]" for place in self.places) if self.places != ("",) else "the profile"


class Number(NamedTuple):
    """A numeric key of a profile, for who changes it by hand."""

    key: str
    """Dotted path."""
    unit: str
    """As its sentence says; empty if it has none."""
    least: float | None
    most: float | None
    above: bool
    """Whether `least` itself is not allowed."""
    choices: tuple[float, ...]
    """The only values allowed; empty: any within the range."""
    whole: bool
    """Whether it is a whole number."""
    optional: bool
    """Whether the key may be left out."""
    default: float | None
    """Its type's default; None if it has none."""
    sentence: str


def numbers(table: msgspec.Struct, place: str) -> list[Number]:
    """Return the numeric keys of a table and of the tables in it, in their order; not those in lists.

    Parameters
    ----------
    table : Struct
        A table of a profile; keys of tables that it does not have are left out.
    place : str
        Its dotted path.
    """
    found: list[Number] = []
    said = _sentences(type(table))
    for field in msgspec.structs.fields(type(table)):
        key, value = f"{place}.{field.name}", getattr(table, field.name)
        if isinstance(value, msgspec.Struct):
            found += numbers(value, key)
        elif (kind := _numeric(field.type)) is not None:
            meta, choices, whole = kind
            default = field.default if isinstance(field.default, float | int) else None
            sentence = said.get(field.name, "")
            unit = re.search(r"\[([^\]]+)\]", sentence)
            found.append(
                Number(
                    key,
                    unit[1] if unit else "",
                    meta.gt if meta.gt is not None else meta.ge,
                    meta.le,
                    meta.gt is not None,
                    choices,
                    whole,
                    NoneType in get_args(field.type),
                    default,
                    sentence,
                )
            )
    return found


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


def sections(profile: type[msgspec.Struct]) -> list[Section]:
    """Return the tables of a profile, each once, in the order in which they are met.

    Parameters
    ----------
    profile : type
        The outermost table.
    """
    places: dict[type[msgspec.Struct], list[str]] = {}
    for place, table in _walk("", profile):
        places.setdefault(table, []).append(place)
    return [Section(tuple(dict.fromkeys(where)), _summary(table), _keys(table)) for table, where in places.items()]


def markdown(found: list[Section]) -> str:
    """Return sections as a page.

    Parameters
    ----------
    found : list of Section
        As `sections` returns them.
    """
    lines = [HEAD]
    for section in found:
        lines += ["", f"## `{section.title}`", "", section.sentence, ""]
        lines += ["| key | allowed | default | |", "|---|---|---|---|"]
        lines += [f"| `{key.name}` | {key.allowed} | {key.default} | {key.sentence} |" for key in section.keys]
    return "\n".join(lines) + "\n"


def _walk(place: str, table: type[msgspec.Struct]) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield a table and those in it, with their places."""
    config = table.__struct_config__
    yield (f'{place}], {config.tag_field} = "{config.tag}"[' if config.tag_field else place).strip("["), table
    for field in msgspec.structs.fields(table):
        inner = tables_of(field.type)
        several = "[]" if "tuple" in str(field.type) else ".NAME" if "dict[" in str(field.type) else ""
        for each in inner:
            yield from _walk(f"{place}.{field.name}{several}".lstrip("."), each)


def _keys(table: type[msgspec.Struct]) -> tuple[Key, ...]:
    said = _sentences(table)
    tag = table.__struct_config__
    own = [Key(tag.tag_field, repr(tag.tag), "required", "Which kind of table this is.")] if tag.tag_field else []
    return (
        *own,
        *(
            Key(field.name, words_of(field.type), _default(field), said.get(field.name) or _first_line(field.type))
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
def _sentences(table: type) -> dict[str, str]:
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
