"""Tables as TOML gives them, before they are checked: dotted keys, overrides, presets."""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from motioncue.cueing.settings import ALGORITHMS
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.settings import platform_presets
from motioncue.profile.explain import shown, tables_of
from motioncue.wire.description import packet_presets

DOTS = 32  # in a line of a profile
DEPTH = 32  # of tables and lists
VALUES = 100_000  # in one change
KEY = 1000  # [characters]


def flat(tables: Mapping[str, Any], path: str = "", *, lists: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield every value of nested tables with its dotted key; with `lists`, those in lists of tables too."""
    for key, value in tables.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from flat(value, here, lists=lists)
        elif lists and isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from flat(item, f"{here}[{index}]")
        else:
            yield here, value


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys whose values differ, with both values; None for a missing one."""
    pairs = {key: (before.get(key), after.get(key)) for key in dict.fromkeys((*before, *after))}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def given(change: Mapping[str, Any] | Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys and values of a change; raise ConfigError if it is none."""
    if isinstance(change, Mapping):
        yield from flat(plain(change), lists=False)
        return
    if isinstance(change, str | bytes | bytearray | memoryview) or not isinstance(change, Iterable):
        raise ConfigError(
            f"override: found {shown(change)}, allowed are a profile, its name or path, KEY=VALUE or several of these, "
            "and a mapping"
        )
    for number, override in enumerate(islice(change, VALUES + 1)):
        if number == VALUES:
            raise ConfigError(f"override: found more than {VALUES} values, no profile has so many")
        yield parsed(override)


def plain(value: Any, path: str = "", count: list[int] | None = None, depth: int = 0) -> Any:
    """Return tables and lists of a program as dict and list, within what a profile can have; or the value itself.

    Numbers and small arrays of NumPy, which a notebook has, are numbers and lists.
    """
    if isinstance(value, np.generic | np.ndarray) and value.size <= VALUES:
        value = value.tolist()
    where = f"{path or 'override'}: found"
    count = count or [0]
    count[0] += 1
    if count[0] > VALUES:
        raise ConfigError(f"override: found more than {VALUES} values, no profile has so many")
    if depth > DEPTH:
        raise ConfigError(
            f"{where[:80]} tables or lists nested more than {DEPTH} deep, perhaps one that contains itself"
        )
    if isinstance(value, Mapping):
        table = {}
        for key, item in value.items():
            if not isinstance(key, str) or len(key) > KEY or not _is_utf8(key):
                raise ConfigError(f"{where} the key {shown(key)}, allowed are texts of up to {KEY} characters of UTF-8")
            table[key] = plain(item, f"{path}.{key}" if path else key, count, depth + 1)
        return table
    if isinstance(value, list | tuple):
        return [plain(item, f"{path}[{index}]", count, depth + 1) for index, item in enumerate(value)]
    if isinstance(value, str) and not _is_utf8(value):
        raise ConfigError(f"{where} {shown(value)}, allowed is UTF-8 text")
    return value


def _is_utf8(text: str) -> bool:
    """Say whether a text can be encoded, as half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables in which the values of the second replace those of the first, key by key."""
    out = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = merged(out[key], value) if both else value
    return out


def put(tables: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key; changing the algorithm removes the settings of the one before."""
    table, path = tables, key.split(".")
    cueing = tables.get("cueing")
    if path == ["cueing", "algorithm"] and isinstance(cueing, dict) and cueing.get("algorithm") != value:
        tables["cueing"] = {}
    for above, step in zip(["", *path], path[:-1], strict=False):
        if above == "limits" and table.get(step) in (None, "none"):  # a channel that was not bounded
            table[step] = {}
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            raise ConfigError(f"override (--set): found {shown(key)}, but {shown(step)} is not a table")
    table[path[-1]] = value


def as_tuples(value: Any) -> Any:
    """Return lists as tuples, so that a preset's values equal those of a table."""
    return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value


def parsed(override: str) -> tuple[str, Any]:
    """Return the dotted key and the value of ``KEY=VALUE``."""
    if not isinstance(override, str):
        raise ConfigError(f"override (--set): found {shown(override)}, allowed is KEY=VALUE as a text")
    key, equals, text = override.partition("=")
    if not equals or not all(key.strip().split(".")) or "\n" in text:
        raise ConfigError(
            f"override (--set): found {shown(override)}, allowed is KEY=VALUE, such as output.rate_hz=250"
        )
    if not _is_utf8(override):
        raise ConfigError(f"override (--set): found {shown(override)}, allowed is UTF-8 text")
    refuse_long_keys(override, "--set")
    try:
        return key.strip(), tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return key.strip(), text
    except RecursionError as error:
        raise ConfigError(f"{shown(key.strip())}: tables or arrays are nested too deeply") from error


def refuse_long_keys(text: str, name: str) -> None:
    """Refuse keys of very many parts, which take the TOML reader quadratic time."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > DOTS and not line.lstrip(" \t").startswith("#"):
            raise ConfigError(
                f"{name}: line {number}: found {line.count('.')} dots, allowed are up to {DOTS}, no key has more"
            )


def refuse_not_finite(value: Any, path: str) -> None:
    """Raise ConfigError if a number in nested tables is infinite or not a number; name its key."""
    if isinstance(value, dict):
        for key, item in value.items():
            refuse_not_finite(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            refuse_not_finite(item, f"{path}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{path}: found {value}, allowed are finite numbers")


def choose_preset(tables: dict[str, Any], *, placed: bool) -> None:
    """Give a preset to cueing that names none and leaves out a required value: auto if it is `placed` on a platform."""
    cueing = tables.get("cueing")
    if not isinstance(cueing, dict) or cueing.get("preset") is not None:
        return
    kind = ALGORITHMS.get(str(cueing.get("algorithm")))
    if kind is None or not _lacks(kind, cueing):
        return
    preset = kind.default_preset if kind.auto is None or not placed else "auto"
    if preset is not None:
        tables["cueing"] = {**cueing, "preset": preset}


def _lacks(kind: type[msgspec.Struct], given: Mapping[str, Any]) -> bool:
    """Say whether a table leaves out a required value."""
    for field in msgspec.structs.fields(kind):
        if field.name not in given and field.required:
            return True
        inner, value = tables_of(field.type), given.get(field.name)
        if isinstance(value, Mapping) and inner and _lacks(inner[0], value):
            return True
    return False


def fill_from_presets(tables: dict[str, Any]) -> None:
    """Fill in what tables with a preset leave out; raise ConfigError if there is no such preset."""
    for key in ("cueing", "platform"):
        _fill(tables, key, presets_of(tables, key), key)
    outputs = tables.get("output")
    for output in outputs if isinstance(outputs, list) else [outputs]:
        if isinstance(output, dict):
            _fill(output, "packet", packet_presets(), "output.packet")


def _fill(tables: dict[str, Any], key: str, presets: Mapping[str, Mapping[str, Any]], path: str) -> None:
    table = tables.get(key)
    if not isinstance(table, dict) or table.get("preset") is None or not presets:
        return
    preset = table["preset"]
    if not isinstance(preset, str) or preset not in presets:
        raise ConfigError(f"{path}.preset: {not_among(preset, presets)}")
    tables[key] = merged(presets[preset], table)


def presets_of(tables: dict[str, Any], key: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the presets that a table can name: those of its algorithm, or the built-in platforms."""
    if key == "platform":
        return platform_presets()
    cueing = tables.get("cueing")
    name = cueing.get("algorithm") if isinstance(cueing, dict) else None
    if not isinstance(name, str) or name not in ALGORITHMS:
        return {}
    presets, scaled = ALGORITHMS[name].presets, ALGORITHMS[name].auto
    return presets if scaled is None else {**presets, "auto": presets[scaled]}


def preset_hint(error: msgspec.ValidationError, tables: dict[str, Any]) -> str:
    """Return a hint on how to complete the settings of a platform, if they are incomplete."""
    lacks = "missing required" in str(error) and "`$.platform" in str(error)
    if lacks and "preset" not in tables["platform"]:
        return f"; platform.preset fills what is left out, allowed are {', '.join(platform_presets())}"
    return ""


def changed_text(text: str, values: Mapping[str, Any]) -> str:
    """Return TOML with some values changed, and its comments, order and layout kept."""
    import tomlkit

    document = tomlkit.parse(text)
    for key, value in values.items():
        *path, name = steps_of(key)
        table: Any = document
        above: list[tuple[Any, str | int]] = []
        for step in path:
            if isinstance(step, int):
                if not isinstance(table, list):
                    raise TypeError(f"{key}: found no list, allowed is one of tables")
            elif step not in table:
                if value is None:
                    break
                table[step] = tomlkit.table() if table is document else tomlkit.inline_table()
            above.append((table, step))
            table = table[step]
        else:
            if value is not None:
                table[name] = value
                if isinstance(table, tomlkit.items.InlineTable):
                    added: Any = table.value.item(str(name))
                    before = table.as_string().removesuffix("}").removesuffix(f"{name} = {added.as_string()}")
                    if before.endswith(","):  # added to a table of the file that had one key
                        added.trivia.indent = " "
            elif table.pop(name, None) is not None:
                while above and not table and isinstance(above[-1][1], str):
                    table, step = above.pop()
                    table.pop(step)
    return tomlkit.dumps(document)


def steps_of(key: str) -> list[str | int]:
    """Return the steps of a dotted path; those into a list are whole numbers."""
    steps = key.replace("[", ".[").split(".")
    return [int(step[1:-1]) if step.startswith("[") else step for step in steps if step]
