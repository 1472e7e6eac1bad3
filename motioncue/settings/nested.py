"""Nested tables as TOML gives them, before they are checked: dotted keys and overrides."""

import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from motioncue.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["as_tuples", "flat", "merged", "parsed", "put", "refuse_long_keys", "refuse_not_finite"]

DOTS = 32  # in a line of a profile


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
            raise ConfigError(f"override (--set): found {key!r}, but {step!r} is not a table")
    table[path[-1]] = value


def as_tuples(value: Any) -> Any:
    """Return lists as tuples, so that a preset's values equal those of a table."""
    return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value


def parsed(override: str) -> tuple[str, Any]:
    """Return the dotted key and the value of ``KEY=VALUE``."""
    key, equals, text = override.partition("=")
    if not equals or not all(key.strip().split(".")) or "\n" in text:
        raise ConfigError(f"override (--set): found {override!r}, allowed is KEY=VALUE, such as output.rate_hz=250")
    try:
        override.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"override (--set): found {override!r}, allowed is UTF-8 text") from error
    refuse_long_keys(override, "--set")
    try:
        return key.strip(), tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return key.strip(), text


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
