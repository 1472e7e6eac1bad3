"""Presets: what fills in what a table leaves out."""

from collections.abc import Mapping
from typing import Any

import msgspec

from motioncue.errors import ConfigError, not_among
from motioncue.packets import packet_presets
from motioncue.settings import ALGORITHMS
from motioncue.settings.nested import merged
from motioncue.settings.platform import platform_presets

__all__ = ["choose_auto", "fill_from_presets", "preset_hint", "presets_of"]


def choose_auto(tables: dict[str, Any]) -> None:
    """Give the preset ``auto`` to a profile with a platform whose cueing says only its algorithm."""
    cueing = tables.get("cueing")
    if "platform" in tables and isinstance(cueing, dict) and [*cueing] == ["algorithm"]:
        kind = ALGORITHMS.get(str(cueing["algorithm"]))
        if kind is not None and kind.auto is not None:
            cueing["preset"] = "auto"


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
    """Return a hint on how to complete an algorithm's or a platform's settings, if they are incomplete."""
    for key in ("cueing", "platform"):
        presets = presets_of(tables, key)
        lacks = "missing required" in str(error) and f"`$.{key}" in str(error)
        if lacks and presets and "preset" not in tables[key]:
            return f"; {key}.preset fills what is left out, allowed are {', '.join(presets)}"
    return ""
