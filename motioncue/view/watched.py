"""What a person is shown of a running engine, in the terminal and in the browser."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from motioncue import cueing
from motioncue.analysis.senses import felt_in_car
from motioncue.platforms import CHANNELS as POSE
from motioncue.platforms import Built, build
from motioncue.profile import Profile
from motioncue.runtime.tuning import Change
from motioncue.settings.platform import Platform

__all__ = [
    "CHANNELS",
    "Channel",
    "PlatformInForce",
    "Watched",
    "felt_of",
    "path_of",
    "pose_of",
    "positions_of",
    "used_of",
    "values_of",
    "verdict",
]

SKIPPED = 1e-3  # share of ticks left out that matters
LIMITED = 0.01  # share of ticks limited that matters
DEGREES = 57.29577951308232


class Watched(Protocol):
    """What the page shows, operates and tunes: an engine, or a recording that plays."""

    @property
    def profile(self) -> Profile:
        """The profile in force."""
        ...

    @property
    def requested(self) -> Profile:
        """The profile requested last."""
        ...

    def newest(self) -> npt.NDArray[np.void]:
        """Return the newest tick, ndarray of TICK_DTYPE and shape (1,)."""
        ...

    def stats(self) -> dict[str, Any]:
        """Return the statistics so far."""
        ...

    def retune(self, change: Change) -> None:
        """Change settings; raise ConfigError if they are refused."""
        ...

    def engage(self) -> None:
        """Follow the input."""
        ...

    def hold(self) -> None:
        """Hold the present motion."""
        ...

    def park(self) -> None:
        """Fade to neutral and stay there."""
        ...


class Channel(NamedTuple):
    """One channel of a view."""

    name: str  # name in the record
    label: str
    unit: str
    factor: float  # shown value = SI value * factor
    scale: float  # smallest value at the end of a bar or plot, as shown


CHANNELS = (
    Channel("surge", "surge", "m/s²", 1.0, 5.0),
    Channel("sway", "sway", "m/s²", 1.0, 5.0),
    Channel("heave", "heave", "m/s²", 1.0, 5.0),
    Channel("roll", "roll", "°", DEGREES, 5.0),
    Channel("pitch", "pitch", "°", DEGREES, 5.0),
    Channel("yaw_rate", "yaw rate", "°/s", DEGREES, 20.0),
)
"""The channels from top to bottom; yaw is shown as a rate, because a heading has no neutral."""


def path_of(profile: Profile) -> str:
    """Return a line that says how the profile's systems are connected."""
    platforms = " + ".join(output.system for output in profile.outputs)
    return f"{profile.name}: {profile.source.system} → {cueing.name_of(profile.cueing)} → {platforms}"


def values_of(record: Any) -> dict[str, float]:
    """Return the view's channels from a record of shape (1,) or a mapping of fields."""
    if isinstance(record, Mapping):
        return {channel.name: float(record[channel.name]) for channel in CHANNELS if channel.name in record}
    return {channel.name: float(record[channel.name][0]) for channel in CHANNELS}


def felt_of(motion: npt.NDArray[np.void]) -> dict[str, float]:
    """Return what is felt in the car: specific force less that of standing level [m/s^2].

    An acceleration says less: a car that leans, or climbs, is felt too.

    Parameters
    ----------
    motion : ndarray of MOTION_DTYPE, shape (1,)
        What the car does.
    """
    return dict(zip(("surge", "sway", "heave"), felt_in_car(motion)[0].tolist(), strict=False))


def pose_of(tick: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Return the pose that a tick's cue asks for, ndarray of shape (6,) [m, rad]."""
    return np.array([tick["cue"][name][0] for name in POSE])


def positions_of(tick: npt.NDArray[np.void], built: Built) -> npt.NDArray[np.float64]:
    """Return the actuators' positions: as sent, or if no output sends any, for the cue's pose.

    Parameters
    ----------
    tick : ndarray of TICK_DTYPE, shape (1,)
        A tick.
    built : Built
        The platform.

    Returns
    -------
    ndarray of float64, shape (actuators,)
        [m or rad]; NaN where an actuator cannot reach the pose.
    """
    sent: npt.NDArray[np.float64] = tick["actuators"][0, : len(built.names)]
    if sent.any():
        return sent
    asked: npt.NDArray[np.float64] = built.kinematics.inverse(pose_of(tick)[np.newaxis], held=True)[0]
    return asked


def used_of(positions: npt.NDArray[np.float64], built: Built) -> dict[str, float]:
    """Return how far each actuator is from neutral, -1 at its lowest and 1 at its highest position.

    Parameters
    ----------
    positions : ndarray of float64, shape (actuators,)
        As `positions_of` returns them.
    built : Built
        The platform.
    """
    used = {}
    for name, at, neutral, (low, high, *_) in zip(
        built.names, positions.tolist(), built.neutral, built.bounds, strict=True
    ):
        moved = at - neutral
        travel = high - neutral if moved > 0.0 else neutral - low
        used[name] = moved / travel if travel > 0.0 else 0.0
    return used


class PlatformInForce:
    """The platform of the profile in force, built anew only when its table changes."""

    def __init__(self) -> None:
        self._held: tuple[Platform, Built] | None = None

    def __call__(self, profile: Profile) -> Built | None:
        """Return a profile's platform; None without one."""
        table = profile.platform
        if table is None:
            return None
        if self._held is None or self._held[0] is not table:
            self._held = (table, build(table))
        return self._held[1]


def verdict(stats: Mapping[str, Any]) -> str:
    """Return what is most wrong with a run, and what to do next.

    Parameters
    ----------
    stats : mapping
        As `Engine.stats` returns them.
    """
    packets = stats["packets_sent"]
    most = max(stats["limited"], key=stats["limited"].__getitem__, default="")
    if not stats["frames_received"]:
        return "nothing was driven: no frame came from a simulator"
    if not packets or any(output["refused"] for output in stats["outputs"]):
        return "the platform did not get every packet: see the rows below, and the endpoint in the profile"
    if not any(move["to"] == "RUNNING" for move in stats["transitions"]):
        return "the platform was never driven: the run ended, or was held, before it had risen and engaged"
    if any(output["unheard"] for output in stats["outputs"]):
        return "nobody heard some of the packets: is the platform's program running, and at that endpoint?"
    if any(move["to"] == "FAULT" for move in stats["transitions"]):
        return "there was a fault: the events below say why; `motioncue check` examines the simulator's data"
    if stats["skipped"] > SKIPPED * packets:
        return "ticks were left out, the machine was too busy: `motioncue bench` shows what it can do"
    if stats["events"] or any(stats["rejected"].values()):
        return "the drive was not whole: the rows below say what was caught, `motioncue check` examines the data"
    if lost := _returns(stats["transitions"]):
        return f"the input was lost and came back ({lost}): the events below say when the platform was parked"
    if most and stats["limited"][most] > LIMITED:
        return f"the cue met its limits ({most.replace('_', ' ')}): a lower gain or a higher cutoff asks for less"
    if stats["skipped"]:
        left_out = f"{stats['skipped']} of {packets + stats['skipped']} ticks were left out"
        return f"all is well: every frame was followed; {left_out}"
    return "all is well: every frame was followed, and a packet left at every tick"


def _returns(moves: Sequence[Mapping[str, Any]]) -> int:
    """Return how often the platform engaged again after its input was lost."""
    found, lost = 0, False
    for move in moves:
        lost = lost or move.get("reason") == "input_lost"
        if lost and move["to"] == "ENGAGING":
            found, lost = found + 1, False
    return found
