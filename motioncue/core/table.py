"""Base classes of a profile's tables."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

__all__ = ["ChannelWorkspace", "CueingTable", "Positive", "Table"]

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table of a profile; unknown keys are refused."""

    ordered: ClassVar[tuple[str, ...]] = ()
    """Keys of numbers of which none may be above the next one."""
    unsearched: ClassVar[tuple[str, ...]] = ()
    """Keys of numbers that a search leaves as they are unless they are named, because they cost processor time."""


class ChannelWorkspace(NamedTuple):
    """What a platform has along one channel of the pose alone."""

    travel: float
    """From neutral to the nearer end [m, rad]; 0: no actuator moves it, infinite: no end was found."""
    speed: float
    """At neutral [m/s, rad/s]; infinite: no actuator moves it."""


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
    eases: ClassVar[bool] = False
    """Whether the algorithm eases settings that change while it runs, and goes on alone; else old and new run side by
    side for a fade."""
    for_platform: ClassVar[bool] = False
    """Whether its `design` takes the platform, in the form that kernels take."""
    bridge: ClassVar[str] = "predict"
    """The ``source.bridge`` that suits it."""
    auto: ClassVar[str | None] = None
    """The preset that the preset ``auto`` suits to the profile's platform."""
    gives_room: ClassVar[bool] = False
    """Whether `suited` is told of less room than the platform has, until the poses of the standard drives fit."""

    @staticmethod
    def suited(room: Mapping[str, ChannelWorkspace]) -> Mapping[str, Any] | None:
        """Return the tables of the preset ``auto`` for a platform."""
        return None
