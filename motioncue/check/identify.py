"""Lag, dead time and bounds of a platform's drives, from what was sent and where its replies say they were."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.check.exercise import Array, Exerciser, bump
from motioncue.drive.courses import swing
from motioncue.errors import ConfigError
from motioncue.output.packet import replies_of
from motioncue.platforms.build import CHANNELS, channels_of, ranges
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Profile

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
            poses[channel] = np.eye(len(CHANNELS))[place] * share * min(ways)
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
