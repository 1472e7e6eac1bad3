"""Every key of a profile with what it allows, its default and a sentence, from the tables' own source."""

import ast
import inspect
import json
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from typing import Any, NamedTuple

import msgspec

from motioncue.profile.explain import tables_of, words_of

__all__ = ["Key", "Section", "markdown", "sections", "sentences"]

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


def sections(profile: type[msgspec.Struct]) -> list[Section]:
    """Return the tables of a profile, each once, in the order in which they are met."""
    places: dict[type[msgspec.Struct], list[str]] = {}
    for place, table in _walk("", profile):
        places.setdefault(table, []).append(place)
    return [Section(tuple(dict.fromkeys(where)), _summary(table), _keys(table)) for table, where in places.items()]


def markdown(found: list[Section]) -> str:
    """Return sections as a page."""
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
    said = sentences(table)
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
