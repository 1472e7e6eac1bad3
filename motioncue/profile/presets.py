"""Presets: what fills in what a table leaves out."""

from collections.abc import Mapping
from typing import Any

import msgspec

from motioncue.cueing.settings import ALGORITHMS
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.settings import platform_presets
from motioncue.profile.explain import tables_of
from motioncue.profile.nested import merged
from motioncue.wire.description import packet_presets

__all__ = ["choose_preset", "fill_from_presets", "preset_hint", "presets_of"]


def choose_preset(tables: dict[str, Any]) -> None:
    """Give a preset to cueing that names none and leaves out a required value."""
    cueing = tables.get("cueing")
    if not isinstance(cueing, dict) or cueing.get("preset") is not None:
        return
    kind = ALGORITHMS.get(str(cueing.get("algorithm")))
    if kind is None or not _lacks(kind, cueing):
        return
    preset = kind.default_preset if kind.auto is None or tables.get("platform") is None else "auto"
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
