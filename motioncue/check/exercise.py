"""Moves a platform without a simulator: one pose at a time, small, within all bounds; and finds how its drives follow.

Lag, dead time and bounds come from what was sent and where the replies say the drives were.  The moves go the way of a
drive: frames are fed to an engine of the rig's own profile, so that its bounds, supervisor, replies and its way up and
down are those of a drive.  Only the source and the algorithm are replaced.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.core.channels import MOTION_DTYPE
from motioncue.cueing.settings import Cueing
from motioncue.drive.courses import swell, swing
from motioncue.drive.peers import FedSimulator, Paced
from motioncue.engine.assembly import check, load_profile
from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError
from motioncue.output.packet import replies_of
from motioncue.platforms.build import CHANNELS as POSE
from motioncue.platforms.build import build, channels_of, ranges
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Profile
from motioncue.safety.supervisor import State

Array = npt.NDArray[np.float64]
Shape = Callable[[Array], tuple[Array, ...]]
"""A motion, its speed and its acceleration at times from its beginning [s], such as `motioncue.drive.courses.swell`."""

FRAME_S = 0.01
NOISE = 1e-9  # of the heading [rad]: the same frame again and again would be a pause
HOLD_S = 0.5  # this program may come late by so much without an end of the move
CUTOFF_HZ = 0.01  # of the washout: the pose is the motion's own, but for the least that brings it back
SPARE_S = 2.0  # beyond rising and fading in, until the platform rests at neutral
PATIENCE_S = 60.0  # for a platform to become ready
LOOK_S = 0.02
KINDS = {"surge_displacement": "surge", "sway_displacement": "sway", "heave_displacement": "heave"}
"""Channels of a pose by what moves them: accelerations; the others are angles, with their rates."""


def exercised(profile: Profile) -> Profile:
    """Return a rig's profile in which the program moves the platform; refuse one without.

    Other outputs are left out: belts and a display have nothing to do with it.
    """
    if profile.platform is None:
        raise ConfigError(f"{profile.name}: found no [platform], whose actuators could be moved")
    names = {f"actuator_{number}" for number in range(1, 13)} | set(channels_of(profile.platform))
    for output in profile.outputs:
        if output.packet is not None and _sends(output.packet, names):
            break
    else:
        raise ConfigError(f"{profile.name}: found no output whose packet moves actuators of the platform")
    axis = {"gain": 1.0, "cutoff_hz": CUTOFF_HZ}
    tilt = {"surge_cutoff_hz": 1.0, "sway_cutoff_hz": 1.0, "surge_gain": 0.0, "sway_gain": 0.0}
    table = {
        "algorithm": "classical",
        **{name: dict(axis) for name in ("surge", "sway", "heave", "roll", "pitch", "yaw")},
        "tilt": {**tilt, "pitch_share": 0.0, "roll_share": 0.0},
    }
    changed = msgspec.structs.replace(
        profile,
        source=load_profile("program-dk").source,
        cueing=msgspec.convert(table, Cueing),
        output=output,
        platform=msgspec.structs.replace(profile.platform, lag_s=None, lag_damping=None),
        supervisor=msgspec.structs.replace(profile.supervisor, hold_s=max(HOLD_S, profile.supervisor.hold_s)),
        record=None,
    )
    check(changed)
    return changed


def _sends(packet: Any, names: set[str]) -> bool:
    values = [*packet.fields, *packet.values.values()]
    written = {name for value in values for name in (value.channel, *(value.sum or {}))}
    return bool(written & names) or any(f"{{{name}" in (packet.text or "") for name in names)


def bump(time_s: Array, duration_s: float) -> tuple[Array, ...]:
    """Return a motion from 0 to 1 and back, sin(pi t/T)^4, its speed and its acceleration, which is continuous."""
    at, speed, bent = swell(time_s, duration_s)
    return at * at, 2.0 * at * speed, 2.0 * (speed * speed + at * bent)


class Exerciser:
    """A platform that is moved: a context manager, in which it rises to neutral, and at whose end it goes down."""

    def __init__(self, profile: Profile, *, trace_s: float = 0.0) -> None:
        self.profile = exercised(profile)
        assert self.profile.platform is not None
        self.built = build(self.profile.platform)
        self.engine = Engine(self.profile, trace=round(trace_s * self.profile.rate_hz))  # runs while entered
        self._next: tuple[Array, Shape, float] | None = None  # pose, motion, its duration
        self._rests = threading.Event()
        self._player = FedSimulator(self.engine.feed, self._frames())
        self._thread = threading.Thread(target=self._player.run, name="motioncue exercise", daemon=True)

    def __enter__(self) -> "Exerciser":
        """Rise to neutral; raise ConfigError if the platform does not."""
        self.engine.start()
        try:
            self._thread.start()
            supervisor, platform = self.profile.supervisor, self.profile.platform
            assert platform is not None
            self._wait(lambda: self._state() is State.RUNNING, PATIENCE_S, "the platform did not engage")
            rise_s = max(platform.rise_s, supervisor.engage_s) + supervisor.fade_s + SPARE_S
            self._wait_for(rise_s)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Fade to neutral and go down, whatever has happened, then end."""
        try:
            self.engine.stop()
        finally:
            self._player.stop()

    def pose_of(self, actuator: int, way: float) -> Array:
        """Return the pose in which one actuator is `way` above neutral, the others as near to it as the frame allows.

        Units: `way` [m or rad].
        """
        positions = np.array(self.built.neutral)
        positions[actuator] += way
        pose: Array = self.built.kinematics.forward(positions[None], np.zeros(6))[0]
        if not np.isfinite(pose).all():
            raise ConfigError(f"{self.built.names[actuator]}: found no pose in which it moves alone")
        return pose

    def move(self, pose: Array, shape: Shape, duration_s: float) -> npt.NDArray[np.void]:
        """Move along a pose and back, and return the ticks if traced; raise ConfigError if the platform stopped.

        Units: `duration_s` [s].
        """
        begun = len(self.engine.trace)
        self._rests.clear()
        self._next = (np.asarray(pose, float), shape, duration_s)
        self._wait(self._rests.is_set, duration_s + PATIENCE_S, "the move did not end")
        self._wait_for(0.5)
        return self.engine.trace[begun:].copy()

    def _state(self) -> State:
        return State(int(self.engine.newest()["state"][0]))

    def _wait_for(self, seconds: float) -> None:
        """Wait while the platform follows."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._state() not in (State.RUNNING, State.HOLDING, State.ENGAGING):
                raise ConfigError(f"the platform stopped: {self._why()}")
            time.sleep(LOOK_S)

    def _wait(self, condition: Callable[[], bool], patience_s: float, otherwise: str) -> None:
        end = time.monotonic() + patience_s
        while not condition():
            if self._state() is State.FAULT:
                raise ConfigError(f"the platform stopped: {self._why()}")
            if time.monotonic() > end:
                raise ConfigError(f"{otherwise}: {self._why()}")
            time.sleep(LOOK_S)

    def _why(self) -> str:
        """Return the newest reason of a change of state, and that nothing was heard if that is so."""
        stats = self.engine.stats()
        heard = [output["replies"]["received"] for output in stats["outputs"] if "replies" in output]
        if heard and not sum(heard):
            return "it has answered nothing; if yours gives no replies, write reply = [] into the packet"
        moves = stats["transitions"]
        return str(moves[-1]["reason"]).replace("_", " ") if moves else "no reason is known"

    def _frames(self) -> Iterator[Paced]:
        """Yield frames of a car that stands, and of each move that is asked for."""
        row, frame_s, begun = np.zeros(1, MOTION_DTYPE), 0.0, 0.0
        move: tuple[Array, Shape, float] | None = None
        while True:
            if move is None and self._next is not None:
                move, self._next, begun = self._next, None, frame_s
            if move is not None:
                pose, shape, duration_s = move
                at, speed, bent = (float(each[0]) for each in shape(np.array([frame_s - begun])))
                for value, channel in zip(pose, POSE, strict=True):
                    if channel in KINDS:
                        row[KINDS[channel]] = value * bent
                    else:
                        row[channel], row[f"{channel}_rate"] = value * at, value * speed
                if frame_s - begun > duration_s:
                    move = None
                    self._rests.set()
            row["yaw"] += NOISE * (1 - 2 * (round(frame_s / FRAME_S) % 2))
            row["frame_time"] = frame_s
            yield Paced(FRAME_S, row.tobytes())
            frame_s += FRAME_S


SINES = ((0.5, 6.0), (1.0, 4.0), (2.0, 3.0))  # frequency [Hz] and duration [s]
STEPS_S = (1.2, 0.8)  # a step up and back
LONGEST_LAG_S, LONGEST_DEAD_S = 0.5, 0.3
GRID, ZOOMS = 17, 7  # values of each that are compared at a time, and how often more finely
SLOW_GRID, SLOW_ZOOMS = 9, 12  # the same where a bound is a third unknown
HARD_ZOOMS, BOTH_GRID = 9, 7  # and where that of the acceleration is; the grid where both are
EXPLAINED = 0.01  # share of the motion up to which nothing else is looked for
BETTER = 0.7  # of what is unexplained without a bound: less with one, and there is one
UNBOUND = 1e6  # a speed [m/s, rad/s] that no drive reaches
PARTS = 2  # of a tick, by which a drive with a bound of its acceleration is solved
MOST_REPLIES = 1500  # that are compared
UNEXPLAINED = 0.25  # share of the motion from which on it is no such drive
LEAST = 1e-9  # of a motion [m or rad]


class Found(NamedTuple):
    """How the drives follow along one axis."""

    lag_s: float
    """Time constant of a first-order lag [s]."""
    dead_time_s: float
    """Time before a command has any effect, replies and what carries them included [s]."""
    unexplained: float
    """Root mean square of what these do not explain, as a share of that of the motion."""
    speed: float | None
    """Largest speed of that actuator [m/s or rad/s], if it kept it from what was asked; else None."""
    actuator: int
    """The one that went farthest, from 0."""
    acceleration: float | None = None
    """Largest acceleration of that actuator [m/s^2 or rad/s^2], if it kept it from what was asked; else None."""


def identified(sent: Array, heard: Array, index: npt.NDArray[np.int64], dt: float) -> Found:
    """Return the lag, the dead time and, if they are slower than asked, the bounds that explain positions.

    Of `sent` each row is what was sent at a tick, of `heard` what was known before its packet was sent, both of shape
    (n, actuators) [m or rad]; `index` is the number of each tick: of one that was left out the packet before stays in
    force.  ConfigError is raised if nothing moved, or if such drives do not explain how it did.

    A drive of first order goes at x' = (u - x) / T, but no faster than its speed v, towards a command u that is held
    from tick to tick: at v until what is left is v T, then as u - (u - x) exp(-t/T).  Least squares over T, a dead time
    by which x is looked at earlier and, where that explains clearly more, v; on grids that become finer.  Without v
    along the direction in which the actuators went farthest, with it by the one that went farthest.  Only ticks with a
    new reply count.

    Where v does not explain it either, a drive with a bound a of its acceleration is tried, and one with both: it
    changes its speed by no more than a, towards the same speed, or towards sqrt(2 a |u - x|) if that is less, so
    that it can still stop there.  Own derivation.

    Units: `dt` [s].
    """
    whole = np.arange(index[0], index[-1] + 1)
    place = np.searchsorted(index, whole, side="right") - 1
    commands = sent[place]
    gone = commands - commands[0]
    direction = gone[np.argmax(np.abs(gone).max(axis=1))]
    if not np.abs(direction).max() > LEAST:
        raise ConfigError("identify: nothing was moved")
    fresh = np.flatnonzero((np.diff(heard, axis=0) != 0.0).any(axis=1)) + 1
    if len(fresh) < 20:
        raise ConfigError(f"identify: found {len(fresh)} replies that moved, allowed are 20 or more")
    fresh = fresh[:: -(-len(fresh) // MOST_REPLIES)]
    rows = index[fresh] - index[0]
    replied = heard[fresh] - commands[0]
    farthest = int(np.argmax(np.abs(direction)))
    found = _fit(gone @ direction, replied @ direction, rows, dt)
    if found.unexplained > EXPLAINED:
        u = gone[:, farthest]
        speed = float(np.abs(np.diff(u)).max() / dt)
        acceleration = 2.0 * float(np.abs(np.diff(u, 2)).max() / dt**2)
        for bounds in ((speed, None), (None, acceleration), (speed, acceleration)):
            if found.unexplained > EXPLAINED:
                bounded = _fit(u, replied[:, farthest], rows, dt, *bounds)
                found = bounded if bounded.unexplained < BETTER * found.unexplained else found
    found = found._replace(actuator=farthest)
    if not found.unexplained < UNEXPLAINED:
        raise ConfigError(
            f"identify: {found.unexplained:.0%} of the motion is not that of a first-order lag behind a dead time, "
            f"within bounds of speed and acceleration or not, allowed are up to {UNEXPLAINED:.0%}: the largest way may "
            f"be beyond what the drives can do"
        )
    return found


def _fit(
    u: Array,
    y: Array,
    rows: npt.NDArray[np.int64],
    dt: float,
    speed: float | None = None,
    acceleration: float | None = None,
) -> Found:
    """Return what explains `y` at the ticks `rows` by the commands `u`; with bounds up to those that are given."""
    bounds = [bound for bound in (speed, acceleration) if bound is not None]
    count = (GRID, SLOW_GRID, BOTH_GRID)[len(bounds)]
    zooms = HARD_ZOOMS if acceleration is not None else SLOW_ZOOMS if bounds else ZOOMS
    grids: list[Array] = [np.linspace(1e-4, LONGEST_LAG_S, count), np.linspace(0.0, LONGEST_DEAD_S, count)]
    shares = np.linspace(1.0 / count, 1.0, count)
    # Accelerations of steps and of slow sines are far apart.
    powers = np.geomspace(1e-3, 1.0, 2 * count - 1)
    grids.append(np.array([UNBOUND]) if speed is None else speed * shares)
    grids.append(np.array([math.inf]) if acceleration is None else acceleration * powers)
    best: tuple[int, ...] = ()
    for zoom in range(zooms):
        if zoom:
            grids = [
                _nearer(grid, at, grid[0] * least) for grid, at, least in zip(grids, best, (1, 0, 1, 1), strict=True)
            ]
        errors = _errors(u, y, rows, grids, dt)
        best = tuple(int(at) for at in np.unravel_index(np.argmin(errors), errors.shape))
    lag, dead, fastest, hardest = (float(grid[at]) for grid, at in zip(grids, best, strict=True))
    driven = _driven(u, np.array([lag]), np.array([fastest]), np.array([hardest]), dt)
    error = float(np.std(y - _seen(u, *driven, rows, dead, dt)[:, 0])) / max(float(np.std(y)), 1e-300)
    return Found(lag, dead, error, None if speed is None else fastest, 0, None if acceleration is None else hardest)


def _nearer(values: Array, at: int, least: float) -> Array:
    """Return a finer grid around one of its values, to as far as two values of the coarser one."""
    if len(values) == 1:
        return values
    middle = float(values[at])
    below, above = (float(values[min(max(at + way, 0), len(values) - 1)]) for way in (-2, 2))
    step = 2.0 * float(values[1] - values[0])
    if not np.allclose(np.diff(values), values[1] - values[0]):  # a geometric one becomes an even one
        return np.linspace(max(least, below), max(above, 1.01 * middle), len(values) // 2 + 1)
    return np.linspace(max(least, middle - step), middle + step, len(values))


def _errors(u: Array, y: Array, rows: npt.NDArray[np.int64], grids: list[Array], dt: float) -> Array:
    """Return the mean squares of what each leaves, but for a constant; shape as the grids'."""
    lags, deads, *bounds = grids
    lag, speed, acceleration = (side.ravel() for side in np.meshgrid(lags, *bounds, indexing="ij"))
    driven = _driven(u, lag, speed, acceleration, dt)
    errors = [np.var(y[:, None] - _seen(u, *driven, rows, dead, dt), axis=0) for dead in deads]
    shape = (len(lags), *map(len, bounds), len(deads))
    return np.moveaxis(np.stack(errors, axis=1).reshape(shape), -1, 1)


def _toward(x: Array, u: Array | float, lags: Array, speeds: Array, time: float) -> Array:
    """Return where such drives are after `time` [s] of a command."""
    gap = u - x
    ends = speeds * lags  # of the part at full speed, if the command is farther
    size = np.abs(gap)
    left = np.maximum(time - np.maximum(size - ends, 0.0) / speeds, 0.0)
    there = np.where(left > 0.0, np.minimum(size, ends) * np.exp(-left / lags), size - speeds * time)
    return u - np.sign(gap) * there


def _driven(u: Array, lags: Array, speeds: Array, accelerations: Array, dt: float) -> tuple[Array, Array, Array, Array]:
    """Return where such drives are at each tick and one behind the last, of shape (n + 1, drives), and the drives."""
    x = np.zeros((len(u) + 1, len(lags)))
    drives = (lags, speeds, accelerations)
    if not np.isfinite(accelerations).all():
        for k, command in enumerate(u.tolist()):
            x[k + 1] = _toward(x[k], command, lags, speeds, dt)
        return x, *drives
    part, at, moves = dt / PARTS, np.zeros(len(lags)), np.zeros(len(lags))
    change, braking = accelerations * part, 2.0 * accelerations
    share = -np.expm1(-part / lags) / part
    for k, command in enumerate(u.tolist()):
        for _ in range(PARTS):
            gap = command - at
            size = np.abs(gap)
            wanted = np.copysign(np.minimum(np.minimum(share * size, speeds), np.sqrt(braking * size)), gap)
            moves += np.minimum(np.maximum(wanted - moves, -change), change)
            at = at + part * moves
        x[k + 1] = at
    return x, *drives


def _seen(
    u: Array,
    x: Array,
    lags: Array,
    speeds: Array,
    accelerations: Array,
    rows: npt.NDArray[np.int64],
    dead: float,
    dt: float,
) -> Array:
    """Return where such drives are `dead` before each of the ticks `rows`; shape (rows, drives)."""
    earlier = int(dead // dt)
    behind = rows - earlier - 1  # the tick before the moment that is looked at
    known = np.maximum(behind, 0)
    passed = dt - (dead - earlier * dt)
    if np.isfinite(accelerations).all():
        there = x[known] + passed / dt * (x[known + 1] - x[known])
    else:
        there = _toward(x[known], u[known][:, None], lags, speeds, passed)
    return np.where((behind >= 0)[:, None], there, 0.0)


def refuse_unheard(profile: Profile) -> None:
    """Raise ConfigError if a rig's replies do not say where its actuators are."""
    for output in profile.outputs:
        if output.packet is not None and profile.platform is not None:
            replies = replies_of(output.packet, channels_of(profile.platform), stream=False)
            if replies is not None and replies.placed:
                return
    raise ConfigError(
        f"identify: {profile.name} has no replies that say where the actuators are; nothing can be measured"
    )


def axes_of(exerciser: Exerciser, share: float) -> dict[str, Array]:
    """Return a pose for each axis that the platform moves: a share of the way to its nearer end."""
    poses = {}
    for place, (channel, ends) in enumerate(ranges(exerciser.built).items()):
        ways = [abs(end) for end in ends if end is not None and end]
        if len(ways) == 2:
            poses[channel] = np.eye(len(POSE))[place] * share * min(ways)
    return poses


def slowed(platform: Platform, found: Iterable[Found]) -> dict[str, Any]:
    """Return the values of a profile, by key, under which no actuator goes beyond the bounds found for its kind."""
    slowest: dict[str, dict[str, float]] = {}
    names = list(channels_of(platform))
    for each in found:
        name = names[each.actuator]
        word = name.partition("_")[0] if name not in {axis.name for axis in platform.axes} else name
        for kind, bound in (("speed", each.speed), ("acceleration", each.acceleration)):
            if bound is not None:
                own = slowest.setdefault(word, {})
                own[kind] = min(bound, own.get(kind, math.inf))
    changed: dict[str, Any] = {}
    axes = [msgspec.to_builtins(axis) for axis in platform.axes]
    for word, slower in slowest.items():
        carrying = getattr(platform, word, None)
        if carrying is None:
            axis = next(axis for axis in axes if axis["name"] == word)
            kind = "travel" if axis["travel"] else "turn"
            axis[kind] = _slower(axis[kind], slower)
            changed["platform.axes"] = [_stated(axis) for axis in axes]
        else:
            bounds = msgspec.to_builtins(carrying)
            several = isinstance(bounds, list)
            changed[f"platform.{word}"] = [_slower(b, slower) for b in bounds] if several else _slower(bounds, slower)
    return changed


def _stated(table: Any) -> Any:
    """Return a table without what was not given."""
    if not isinstance(table, dict):
        return table
    return {key: _stated(value) for key, value in table.items() if value is not None}


def _slower(bounds: dict[str, Any], slower: dict[str, float]) -> dict[str, Any]:
    """Return an actuator's bounds with others [m or rad, s], rounded down, where they are less than its own."""
    out: dict[str, Any] = _stated(bounds)
    for kind, bound in slower.items():
        key = next(key for key in bounds if key.startswith(kind))
        found = math.degrees(bound) if "_deg_" in key else bound
        step = 10.0 ** (math.floor(math.log10(found)) - 2)
        out[key] = min(bounds[key], round(math.floor(found / step) * step, 12))
    return out


def identify(exerciser: Exerciser, pose: Array) -> Found:
    """Move along one axis in sines and steps, and return how the drives followed."""
    ticks = []
    for hz, duration_s in SINES:
        ticks.append(exerciser.move(pose, partial(swing, duration_s=duration_s, hz=hz), duration_s))
    for duration_s in STEPS_S:
        ticks.append(exerciser.move(pose, partial(bump, duration_s=duration_s), duration_s))
    rows = np.concatenate(ticks)
    count = len(exerciser.built.names)
    dt = 1.0 / exerciser.profile.rate_hz
    return identified(rows["actuators"][:, :count], rows["feedback"][:, :count], rows["index"], dt)
