"""The settings that the page shows: those that it changes, and those that are fixed while it runs."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from motioncue.engine import changes as tuning
from motioncue.platforms.settings import PlatformTable
from motioncue.profile.controls import NONE, Control, controls, item_of, values_of
from motioncue.profile.profile import Output, Profile, Record, Source
from motioncue.profile.reference import sentences

__all__ = ["fixed_because", "kept", "parameters", "shown"]

TABLES = ("cueing", "supervisor", "limits", "watch")
"""Tables of a profile whose settings the page changes, besides the platform's."""

SOURCE = ("source.bridge", "source.head_m")
"""Settings of the source that it changes."""

DESCRIBED = "as the profile describes it"

TEXTS = ("platform.description", "platform.source")
"""Texts for people, which are no settings."""

REST = {"source": Source, "output": Output, "record": Record, "platform": PlatformTable}
"""Tables whose other keys are fixed while it runs, with their types."""


def parameters(profile: Profile) -> list[Control]:
    """Return the settings of a profile, also those that are fixed while it runs.

    Parameters
    ----------
    profile : Profile
        Whose tables they are.
    """
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
    """Return why a setting is fixed while it runs; empty if it is not.

    Parameters
    ----------
    profile : Profile
        The running profile.
    key : str
        A key of `parameters`.
    """
    if key == "platform.preset":
        return "a platform's preset is its geometry"
    return tuning.fixed_because(profile, key)


def kept(key: str) -> bool:
    """Say whether a saved profile has the page's value of a key.

    Parameters
    ----------
    key : str
        Dotted path, with ``[0]`` and so on behind lists.
    """
    root, _, rest = key.partition(".")
    if root.partition("[")[0] == "output":
        return rest.partition(".")[0] == "limits"
    return root in (*TABLES, "platform") or key.partition("[")[0] in SOURCE


def shown(found: Iterable[Control], profile: Profile) -> dict[str, Any]:
    """Return the values of those settings that a profile has; of a table, whether it is given.

    Parameters
    ----------
    found : iterable of Control
        The settings.
    profile : Profile
        Whose values they are.
    """
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
