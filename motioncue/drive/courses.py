"""The courses by name: the scripted drives, and the drive with trouble.

Trouble is everything that makes platforms jolt, and honest driving in between: pauses, teleports, broken frames, a
freeze, a second session.  The car is that of the drive ``tour``.  A table says what goes wrong, when, and how an engine
with default settings must respond; between the incidents nothing may be reported.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from motioncue.drive.car import DRIVES, SCRIPTS, STATE_DTYPE, at_pace, drive, product, states_at
from motioncue.errors import ConfigError, not_among

DESCRIPTION = "pauses, teleports, broken frames and a second session, with honest hard driving in between"
DURATION_S = 70.0


class Incident(NamedTuple):
    """One incident, and the engine's required response."""

    time: float  # time of the first frame that is missing or wrong, since the drive began [s]
    name: str
    silence: float = 0.0  # duration without frames [s]
    leaves: bool = False  # the simulator leaves in the silence, and then begins another session
    repeats: float = 0.0  # duration of repeats of the last state [s]
    frozen_clock: bool = False  # whether the repeats have a frame time of zero
    goes_on: bool = False  # whether the car drives on during silence or repeats
    to: float | None = None  # time in the tour at which the car continues [s]; None: where it was
    moved: tuple[float, float] = (0.0, 0.0)  # jump of the position north, east [m]
    turned: float = 0.0  # jump of the course to the right [rad]
    slewed: float = 0.0  # jump of the body's heading alone, until the next jump of its place [rad]
    spoiled: Mapping[str, float] = MappingProxyType({})  # in one frame: value [SI] of a field's first component
    event: str | None = None  # name under which the engine counts it
    after: float = 0.0  # delay of the event after `time` [s]
    refused: str | None = None  # reason why the frame is refused
    parks: str | None = None  # reason why the platform parks


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
    # Two humps, then a single wrong frame time.
    Incident(
        37.5,
        "a frame time of 5 s",
        spoiled={"frame_time": 5.0},
        event="spike",
    ),
    Incident(43.0, "a velocity jump", to=18.0, event="impossible_acceleration", parks="impossible_acceleration"),
    Incident(46.0, "a freeze", repeats=1.6, goes_on=True, event="frozen", after=1.0, parks="frozen"),
    Incident(50.0, "an attitude jump", slewed=0.9, event="impossible_rate", parks="impossible_rate"),
    # The event comes when the simulator is back; the platform parks soon after it has left.
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
"""The incidents in order of time."""

PARKS = tuple((incident.time + incident.after, incident.parks) for incident in INCIDENTS if incident.parks)
"""Required parkings: (time [s], reason)."""

EVENTS = tuple(
    (incident.time + (incident.silence or incident.after), incident.event) for incident in INCIDENTS if incident.event
)
"""Required events: (time [s], name)."""

REFUSALS = tuple((incident.time, incident.refused) for incident in INCIDENTS if incident.refused)
"""Required refusals: (time [s], reason)."""


class Course(NamedTuple):
    """A simulator's reports frame by frame; all arrays have one row per frame."""

    states: NDArray[np.void]  # STATE_DTYPE
    waits: NDArray[np.float64]  # time since the frame before [s]
    frame_times: NDArray[np.float64]  # duration of the frame as reported [s]
    sessions: NDArray[np.int64]  # number of the session, from 1
    began_s: float = 0.0  # duration of the laps before [s]


class _Place(NamedTuple):
    """Position of the tour's world in this one."""

    turn: float = 0.0  # turn to the right [rad]
    offset: NDArray[np.float64] = np.zeros(3)  # [m] north, east, down
    slew: float = 0.0  # turn of the body alone to the right [rad]

    def put(self, states: NDArray[np.void]) -> NDArray[np.void]:
        """Return states moved into this world."""
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
        """Return the place in which the tour's state `new` continues `old`; both have shape (1,)."""
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

    Frame k comes k / rate_hz after the first one, or not at all; an incident affects frames from the first one that is
    not before its time.
    """
    tour = drive("tour", rate_hz, DURATION_S if duration_s is None else duration_s)
    end = len(tour)
    rows: list[NDArray[np.void]] = []
    numbers: list[NDArray[np.int64]] = []  # numbers of the frames
    frame_times: list[NDArray[np.float64]] = []
    sessions: list[NDArray[np.int64]] = []
    place, session = _Place(), 1
    number = source = 0  # number of the next frame, and of its state in the tour

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
        if count > 0:  # the tour is never ahead of the drive, so there are enough states
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
    inside = kept < end  # an incident may extend beyond the end
    waits = np.diff(kept, prepend=-1) / rate_hz
    return Course(
        np.concatenate(rows)[inside].astype(STATE_DTYPE),
        waits[inside],
        np.concatenate(frame_times)[inside],
        np.concatenate(sessions)[inside],
    )


def _frames(seconds: float, rate_hz: float) -> int:
    """Return the number of frames in a time, a partial last one included."""
    return int(np.ceil(seconds * rate_hz * (1.0 - 1e-12)))


def _spoil(incident: Incident, states: NDArray[np.void], frame_times: NDArray[np.float64]) -> None:
    for field, value in incident.spoiled.items():
        if field == "frame_time":
            frame_times[-1] = value
        else:
            states[field][-1, 0] = value


WAVE_HZ = 0.4
WAVE_S = 10.0
STILL_S = 3.0  # after a wave
WAVE_LENGTH_S = 20.0
WAVE_M_S2 = 1.0  # largest acceleration of a wave along an axis
WAVE_RAD = math.radians(4.0)  # largest angle of one about an axis
AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")


def swell(time: NDArray[np.float64], duration_s: float) -> tuple[NDArray[np.float64], ...]:
    """Return a motion from 0 to 1 and back, sin(pi t/T)^2, its speed and its acceleration; at rest before and behind.

    Units: `time` [s].
    """
    time, slow = np.clip(time, 0.0, duration_s), 2.0 * np.pi / duration_s
    return (
        0.5 * (1.0 - np.cos(slow * time)),
        0.5 * slow * np.sin(slow * time),
        0.5 * slow**2 * np.cos(slow * time) * ((time > 0.0) & (time < duration_s)),
    )


def swing(time: NDArray[np.float64], duration_s: float, hz: float) -> tuple[NDArray[np.float64], ...]:
    """Return a sine that grows and shrinks, its speed and its acceleration: `swell` times sin(2 pi f t).

    Units: `time` [s], `hz` [Hz].
    """
    time, fast = np.clip(time, 0.0, duration_s), 2.0 * np.pi * hz
    envelope, rise, bend = swell(time, duration_s)
    sine, cosine = np.sin(fast * time), np.cos(fast * time)
    return (
        envelope * sine,
        rise * sine + envelope * fast * cosine,
        bend * sine + 2.0 * rise * fast * cosine - envelope * fast**2 * sine,
    )


def wave(axis: str, rate_hz: float = 60.0, duration_s: float | None = None) -> NDArray[np.void]:
    """Return the states of a parked car that something moves along, or turns about, one axis; ends at rest.

    The motion is x(t) = X sin(pi t/T)^2 sin(2 pi f t) over T = 10 s with f = 0.4 Hz, and ends 3 s before the course
    does: four periods that grow and shrink, with a continuous acceleration.  Own derivation.
    """
    duration = WAVE_LENGTH_S if duration_s is None else duration_s
    states = drive("still", rate_hz, duration)
    _wave(states, axis, states["time"] - (duration - WAVE_S - STILL_S))
    return states


def _wave(states: NDArray[np.void], axis: str, time: NDArray[np.float64]) -> None:
    """Move a car that stands by a wave that begins at 0 of `time` [s], along or about an axis of its own body."""
    moved, speed, bent = swing(np.clip(time, 0.0, WAVE_S), WAVE_S, WAVE_HZ)
    place, fast = AXES.index(axis) % 3, 2.0 * np.pi * WAVE_HZ
    still = states["orientation"].copy()
    along = product(product(still, np.eye(4)[1 + place]), still * [1.0, -1.0, -1.0, -1.0])[:, 1:]  # in world axes
    if axis in AXES[:3]:
        size = (1.0 if axis != "heave" else -1.0) * WAVE_M_S2 / fast**2  # body axes: forward, right, down
        for name, values in (("position", moved), ("velocity", speed), ("acceleration", bent)):
            states[name] += size * values[:, None] * along
    else:
        turn = np.zeros((len(states), 4))
        turn[:, 0], turn[:, 1 + place] = np.cos(0.5 * WAVE_RAD * moved), np.sin(0.5 * WAVE_RAD * moved)
        states["orientation"] = product(still, turn)
        states["angular_velocity"] += WAVE_RAD * speed[:, None] * along
        states["angular_acceleration"] += WAVE_RAD * bent[:, None] * along


STOP_S = 8.0  # in which a car on a drive comes to a stand, and in which it is back at its pace: 30 m/s by 5.9 m/s^2


class Wave(NamedTuple):
    """A wave in the middle of a drive: the car comes to a stand on its way, is moved, and drives on."""

    axis: str
    at_s: float
    """Time in the lap at which the car begins to slow down [s]."""
    still_s: float
    """Time at a stand before the wave [s]."""

    @property
    def stands_s(self) -> float:
        """Time at a stand [s]."""
        return self.still_s + WAVE_S + STILL_S

    @property
    def end_s(self) -> float:
        """Time in the lap at which the car is back at its pace [s]."""
        return self.at_s + 2.0 * STOP_S + self.stands_s


class Lap(NamedTuple):
    """One of several times a course."""

    number: int = 0
    waited_s: float = 0.0
    """Duration of the waves in the laps before, with what they delay [s]."""
    waves: tuple[Wave, ...] = ()
    """Those in this lap, in order of time."""

    def waits_s(self, length_s: float) -> float:
        """Return by how much the waves make a lap of this length longer [s]."""
        if not self.waves:
            return 0.0
        return max(sum(STOP_S + each.stands_s for each in self.waves), self.waves[-1].end_s - length_s)

    def following(self, length_s: float) -> "Lap":
        """Return the lap behind this one."""
        return Lap(self.number + 1, self.waited_s + self.waits_s(length_s))


FIRST = Lap()
WAVE = "wave-"
COURSES: Mapping[str, str] = {
    **DRIVES,
    "trouble": DESCRIPTION,
    **{f"{WAVE}{axis}": f"a parked car, moved by a test wave on {axis} alone" for axis in AXES},
}
"""The courses by name, each with a one-line description."""


def _check(name: str) -> None:
    if name not in COURSES:
        raise ConfigError(f"drive: {not_among(name, COURSES)}")


def length_s(name: str) -> float:
    """Return the duration of a course [s]; raise ConfigError if it does not exist."""
    _check(name)
    if name.startswith(WAVE):
        return WAVE_LENGTH_S
    return DURATION_S if name == "trouble" else SCRIPTS[name].duration


def course(name: str, rate_hz: float = 60.0, duration_s: float | None = None, lap: Lap = FIRST) -> Course:
    """Return what a simulator reports on a course.

    A later lap begins where and when the one before ended, so that the car drives on; that of ``trouble`` begins anew
    and has no waves.
    """
    _check(name)
    if name == "trouble":
        return troubled(rate_hz, duration_s)
    waves = name.startswith(WAVE)
    states = (wave if waves else drive)(name.removeprefix(WAVE), rate_hz, duration_s)
    lap_s, end = len(states) / rate_hz, states[-1:]
    if lap.waves:
        states = _with_waves(name, states, lap, rate_hz, lap_s)
    period = np.full(len(states), 1.0 / rate_hz if math.isfinite(rate_hz) else 0.0)
    began_s = 0.0
    if lap.number:
        states = _after_laps(states, end if waves else states_at(name, np.array([lap_s])), lap.number)
        began_s = lap.number * lap_s + lap.waited_s
        states["time"] += began_s
    return Course(states, period, period, np.ones(len(states), np.int64), began_s)


def _with_waves(name: str, states: NDArray[np.void], lap: Lap, rate_hz: float, lap_s: float) -> NDArray[np.void]:
    """Return a lap with its waves, longer by them; the car comes to a stand and drives on by the law of `swell`."""
    time = np.arange(round((lap_s + lap.waits_s(lap_s)) * rate_hz)) / rate_hz
    way, pace, change = time.copy(), np.ones(len(time)), np.zeros(len(time))
    for each in lap.waves:
        for start_s, sign in ((each.at_s, -1.0), (each.end_s - STOP_S, 1.0)):
            since = np.clip(time - start_s, 0.0, STOP_S)
            share, slope, _ = swell(since, 2.0 * STOP_S)
            slow = np.pi / STOP_S
            way += sign * (0.5 * (since - np.sin(slow * since) / slow) + np.maximum(time - start_s - STOP_S, 0.0))
            pace += sign * share
            change += sign * slope
    if name.startswith(WAVE):
        found = states_at("still", way)
        _wave(found, name.removeprefix(WAVE), way - (lap_s - WAVE_S - STILL_S))
    else:
        found = states_at(name, way)
    found = at_pace(found, pace, change)
    for each in lap.waves:
        _wave(found, each.axis, time - each.at_s - STOP_S - each.still_s)
    found["time"] = time
    return found


def _after_laps(states: NDArray[np.void], end: NDArray[np.void], laps: int) -> NDArray[np.void]:
    """Return a lap's states moved to where so many laps end, each of which ends at `end` of its own world."""
    north, east, down = (end["position"] - states["position"][:1])[0]
    plan = (north + 1j * east) * np.exp(1j * _heading(end) * np.arange(laps)).sum()
    return _Place(laps * _heading(end), np.array([plan.real, plan.imag, laps * down])).put(states)
