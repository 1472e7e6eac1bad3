"""A drive full of what makes platforms jolt, with honest driving in between.

Pauses, teleports, broken frames, a freeze, another session.  The car is that of the drive ``tour``.  A table says what
goes wrong, when, and what an engine with default settings is to make of it; the times in between are honest, and
nothing may trip there.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from motioncue.virtual.car import STATE_DTYPE, drive
from motioncue.virtual.rotations import product

__all__ = ["DESCRIPTION", "DURATION_S", "EVENTS", "INCIDENTS", "PARKS", "REFUSALS", "Course", "Incident", "troubled"]

DESCRIPTION = "pauses, teleports, broken frames and a second session, with honest hard driving in between"
DURATION_S = 70.0


class Incident(NamedTuple):
    """One thing that goes wrong, and what an engine is to make of it."""

    time: float  # [s] since the drive began: of the first frame that is missing or wrong
    name: str
    silence: float = 0.0  # no frames for so long [s]
    leaves: bool = False  # the simulator goes away meanwhile, and begins another session after it
    repeats: float = 0.0  # the last state again for so long [s]
    frozen_clock: bool = False  # with frame times of zero
    goes_on: bool = False  # the car drives on meanwhile
    to: float | None = None  # what the car does next is what it does from here on in the tour [s]
    moved: tuple[float, float] = (0.0, 0.0)  # its place jumps north, east [m]
    turned: float = 0.0  # its course jumps right [rad]
    slewed: float = 0.0  # its body alone does [rad], until it is put somewhere again
    spoiled: Mapping[str, float] = MappingProxyType({})  # what one frame says: value [SI] of a field's first component
    event: str | None = None  # how the engine counts it,
    after: float = 0.0  # so long after `time` [s]
    refused: str | None = None  # why the frame is no motion at all
    parks: str | None = None  # why the platform goes to neutral


INCIDENTS = (
    Incident(6.5, "a gap of 0.3 s", silence=0.3, goes_on=True, after=0.1, parks="input_lost"),
    Incident(10.5, "a frame that is not a number", spoiled={"acceleration": np.nan}, refused="not_finite"),
    Incident(12.5, "a pause without frames", silence=2.0, after=0.1, parks="input_lost"),
    # Braking at the limit, then a bend.
    Incident(22.0, "a teleport at speed", moved=(90.0, 80.0), event="teleport", parks="teleport"),
    Incident(
        27.0,
        "an acceleration spike",
        spoiled={"acceleration": 150.0},
        event="spike",
    ),
    Incident(
        30.5,
        "a pause with frames that repeat",
        repeats=2.5,
        frozen_clock=True,
        event="paused",
        after=0.1,
        parks="paused",
    ),
    # Two humps.  Then a frame time that is wrong once.
    Incident(
        37.5,
        "a frame time of 5 s",
        spoiled={"frame_time": 5.0},
        event="spike",
    ),
    Incident(43.0, "a velocity jump", to=18.0, event="impossible_acceleration", parks="impossible_acceleration"),
    Incident(46.0, "a freeze", repeats=1.6, goes_on=True, event="frozen", after=1.0, parks="frozen"),
    Incident(50.0, "an attitude jump", slewed=0.9, event="impossible_rate", parks="impossible_rate"),
    # The event is when the simulator is back; the platform parks when it has been away for a moment.
    Incident(
        53.5,
        "a disconnect, and another session",
        silence=0.8,
        leaves=True,
        to=29.5,
        moved=(300.0, -120.0),
        turned=-1.0,
        event="reconnect",
        after=0.1,
        parks="input_lost",
    ),
    Incident(59.5, "a respawn", to=0.0, moved=(-40.0, 25.0), turned=2.2, event="teleport", parks="teleport"),
)
"""Everything that goes wrong, in order of time."""

PARKS = tuple((incident.time + incident.after, incident.parks) for incident in INCIDENTS if incident.parks)
"""When the platform is to leave for neutral [s], and why: (time, reason)."""

EVENTS = tuple(
    (incident.time + (incident.silence or incident.after), incident.event) for incident in INCIDENTS if incident.event
)
"""What an engine is to count, and when: (time [s], name)."""

REFUSALS = tuple((incident.time, incident.refused) for incident in INCIDENTS if incident.refused)
"""Which frames are no motion: (time [s], reason)."""


class Course(NamedTuple):
    """What a simulator says, frame by frame; all arrays have one row a frame."""

    states: NDArray[np.void]  # of STATE_DTYPE
    waits: NDArray[np.float64]  # since the frame before [s]
    frame_times: NDArray[np.float64]  # what the simulator says it was [s]
    sessions: NDArray[np.int64]  # number of the connection, from 1


class _Place(NamedTuple):
    """Where the tour's world lies in this one."""

    turn: float = 0.0  # right [rad]
    offset: NDArray[np.float64] = np.zeros(3)  # [m] north, east, down
    slew: float = 0.0  # of the body alone, right [rad]

    def put(self, states: NDArray[np.void]) -> NDArray[np.void]:
        """Return states in this world."""
        out = states.copy()
        c, s = np.cos(self.turn), np.sin(self.turn)
        to_world = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        for name in ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration"):
            out[name] = states[name] @ to_world.T
        out["position"] += self.offset
        half = 0.5 * (self.turn + self.slew)
        out["orientation"] = product([np.cos(half), 0.0, 0.0, np.sin(half)], states["orientation"])
        return out

    def after(self, incident: Incident, old: NDArray[np.void], new: NDArray[np.void]) -> "_Place":
        """Return the place in which the tour's state `new` comes where `old` would have come; both of shape (1,)."""
        if incident.to is None and not incident.turned and not any(incident.moved):
            return self._replace(slew=self.slew + incident.slewed)
        turn = self.turn + _heading(old) - _heading(new) + incident.turned
        turned = _Place(turn)
        offset = self.put(old)["position"][0] - turned.put(new)["position"][0]
        return turned._replace(offset=offset + np.array([*incident.moved, 0.0]))


def _heading(state: NDArray[np.void]) -> float:
    w, x, y, z = state["orientation"][0]
    return float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def troubled(rate_hz: float = 60.0, duration_s: float | None = None) -> Course:
    """Return the drive.

    Parameters
    ----------
    rate_hz : float, optional
        Frames a second [Hz]; above 0, at most `motioncue.virtual.car.MAX_RATE_HZ`.
    duration_s : float, optional
        How much of it [s]; `DURATION_S` if not given, beyond it the tour goes on and ends parked.

    Raises
    ------
    ConfigError
        If the rate or the duration is out of its range.

    Notes
    -----
    Frame k comes k / rate_hz after the first one, or not at all; what an incident says begins with the first frame that
    is not before its time.
    """
    tour = drive("tour", rate_hz, DURATION_S if duration_s is None else duration_s)
    end = len(tour)
    rows: list[NDArray[np.void]] = []
    numbers: list[NDArray[np.int64]] = []  # of the frames
    frame_times: list[NDArray[np.float64]] = []
    sessions: list[NDArray[np.int64]] = []
    place, session = _Place(), 1
    number = source = 0  # of the next frame, and of its state in the tour

    def add(states: NDArray[np.void], frame_time: float) -> None:
        nonlocal number
        rows.append(states)
        numbers.append(np.arange(number, number + len(states)))
        frame_times.append(np.full(len(states), frame_time))
        sessions.append(np.full(len(states), session))
        number += len(states)

    def go(until: int) -> None:
        nonlocal source
        count = min(until, end) - number
        if count > 0:  # the tour's place is never ahead of the drive's: there are as many states
            add(place.put(tour[source : source + count]), 1.0 / rate_hz)
            source += count

    for incident in INCIDENTS:
        start = _frames(incident.time, rate_hz)
        if start >= end:
            break
        go(start)
        silent, repeated = _frames(incident.silence, rate_hz), _frames(incident.repeats, rate_hz)
        last = rows[-1][-1:]
        number += silent
        session += incident.leaves
        add(np.repeat(last, repeated), 0.0 if incident.frozen_clock else 1.0 / rate_hz)
        old = source
        source += (silent + repeated) * incident.goes_on
        if incident.to is not None:
            source = _frames(incident.to, rate_hz)
        place = place.after(incident, tour[old : old + 1], tour[source : source + 1])
        if incident.spoiled:
            go(number + 1)
            _spoil(incident, rows[-1], frame_times[-1])
    go(end)
    kept = np.concatenate(numbers)
    inside = kept < end  # an incident may last beyond the end
    waits = np.diff(kept, prepend=-1) / rate_hz
    return Course(
        np.concatenate(rows)[inside].astype(STATE_DTYPE),
        waits[inside],
        np.concatenate(frame_times)[inside],
        np.concatenate(sessions)[inside],
    )


def _frames(seconds: float, rate_hz: float) -> int:
    """Return how many frames there are in a time, the last one perhaps cut short."""
    return int(np.ceil(seconds * rate_hz * (1.0 - 1e-12)))


def _spoil(incident: Incident, states: NDArray[np.void], frame_times: NDArray[np.float64]) -> None:
    for field, value in incident.spoiled.items():
        if field == "frame_time":
            frame_times[-1] = value
        else:
            states[field][-1, 0] = value
