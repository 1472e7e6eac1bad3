"""Base classes of a profile's tables."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

__all__ = ["CueingTable", "Positive", "Table"]

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table of a profile; unknown keys are refused."""


class CueingTable(Table, frozen=True, kw_only=True, tag_field="algorithm"):
    """A cueing algorithm's settings; its tag is the algorithm's name."""

    poses: ClassVar[bool] = True
    """Whether displacements, roll, pitch and yaw of its cue are a pose for a platform."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Values by `preset` that the profile leaves out; an algorithm with presets has the key `preset`."""
    default_preset: ClassVar[str | None] = None
    """The preset of a profile that names none, leaves out required values and has no platform; with one it is auto."""
    moves: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By channel of the pose, the tables with `gain` and `cutoff_hz` that scale it, its own first; none if it has no
    such tables."""
    auto: ClassVar[str | None] = None
    """The preset that the preset ``auto`` suits to the profile's platform."""
