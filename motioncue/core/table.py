"""Base classes of a profile's tables, the table ``[watch]``, and the tables in which notebooks show objects."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

__all__ = ["UNWATCHED", "ChannelWorkspace", "CueingTable", "Positive", "Table", "Watch", "card"]

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
    planned: ClassVar[bool] = False
    """Whether its cue knows what carries the platform: tables take their part of it in each tick, not what of it is
    slow, and it comes within narrower ranges by itself."""
    bridge: ClassVar[str] = "predict"
    """The ``source.bridge`` that suits it."""
    auto: ClassVar[str | None] = None
    """The preset that the preset ``auto`` suits to the profile's platform."""
    gives_room: ClassVar[bool] = False
    """Whether `suited` is told of less room than the platform has, until the poses of the standard drives fit."""
    sizes: ClassVar[tuple[str, ...]] = ("",)
    """What it can begin with; of more than one, what is felt best on the standard drives."""

    @staticmethod
    def suited(room: Mapping[str, ChannelWorkspace], size: str = "") -> Mapping[str, Any] | None:
        """Return the tables of the preset ``auto`` for a platform."""
        return None


class Watch(Table, frozen=True, kw_only=True):
    """Plausibility thresholds: a frame beyond one is treated as a discontinuity, and the platform parks."""

    max_acceleration_m_s2: Positive = 100.0
    """Largest plausible acceleration [m/s^2]; a recorded rally car lands from a jump with 82."""
    max_rate_deg_s: Positive = 600.0
    """Largest plausible angular rate [deg/s]."""
    frozen_s: Positive = 1.0
    """How long a moving car may repeat the same state [s]."""
    jitter_s: Positive = 0.1
    """Largest deviation of frames from even arrivals [s]."""
    frame_jump_s: Positive = 2.0
    """Largest change of the simulator's frame time [s]."""
    max_acceleration_step_m_s2: Positive = 15.0
    """Largest change of acceleration between frames that is followed before the velocity confirms it [m/s^2]."""
    max_rate_step_deg_s: Positive = 172.0
    """Largest change of angular rate between frames that is followed before the attitude confirms it [deg/s]."""
    velocity_error_m_s: Positive = 1.0
    """Allowed contradiction between acceleration and change of velocity over a second, plus 35 % of them [m/s]."""
    attitude_error_deg: Positive = 5.7
    """Allowed contradiction between angular rates and turns of the attitude over a second, plus 35 % of them [deg]."""


UNWATCHED = Watch(**dict.fromkeys(Watch.__struct_fields__, 1e18))
"""Thresholds that no frame exceeds."""


def card(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return HTML of a title and of rows of a name and a text."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
        if text
    )
    return f"<table><caption><b>{escape(title)}</b></caption><tbody>{cells}</tbody></table>"
