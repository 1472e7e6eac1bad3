"""Lag, dead time and speed of a platform's drives, from what was sent and where its replies say they were."""

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

__all__ = ["Found", "axes_of", "identified", "identify", "refuse_unheard", "slowed"]

SINES = ((0.5, 6.0), (1.0, 4.0), (2.0, 3.0))  # frequency [Hz] and duration [s]
STEPS_S = (1.2, 0.8)  # a step up and back
LONGEST_LAG_S, LONGEST_DEAD_S = 0.5, 0.3
GRID, ZOOMS = 17, 7  # values of each that are compared at a time, and how often more finely
SLOW_GRID, SLOW_ZOOMS = 9, 12  # the same where a bound of the speed is a third unknown
EXPLAINED = 0.01  # share of the motion up to which nothing else is looked for
BETTER = 0.7  # of what is unexplained without a bound of the speed: less with one, and there is one
UNBOUND = 1e6  # a speed [m/s, rad/s] that no drive reaches
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


def identified(sent: Array, heard: Array, index: npt.NDArray[np.int64], dt: float) -> Found:
    """Return the lag, the dead time and, if they are slower than asked, the speed that explain positions.

    Of `sent` each row is what was sent at a tick, of `heard` what was known before its packet was sent, both of shape
    (n, actuators) [m or rad]; `index` is the number of each tick: of one that was left out the packet before stays in
    force.  ConfigError is raised if nothing moved, or if such drives do not explain how it did.

    Notes
    -----
    A drive of first order goes at x' = (u - x) / T, but no faster than its speed v, towards a command u that is held
    from tick to tick: at v until what is left is v T, then as u - (u - x) exp(-t/T).  Least squares over T, a dead time
    by which x is looked at earlier and, where that explains clearly more, v; on grids that become finer.  Without v
    along the direction in which the actuators went farthest, with it by the one that went farthest.  Only ticks with a
    new reply count.  Own derivation.

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
        bounded = _fit(u, replied[:, farthest], rows, dt, float(np.abs(np.diff(u)).max() / dt))
        if bounded.unexplained < BETTER * found.unexplained:
            found = bounded
    found = found._replace(actuator=farthest)
    if not found.unexplained < UNEXPLAINED:
        raise ConfigError(
            f"identify: {found.unexplained:.0%} of the motion is not that of a first-order lag behind a dead time, "
            f"allowed are up to {UNEXPLAINED:.0%}: the largest way may be beyond what the drives can do"
        )
    return found


def _fit(u: Array, y: Array, rows: npt.NDArray[np.int64], dt: float, fastest: float | None = None) -> Found:
    """Return what explains `y` at the ticks `rows` by the commands `u`; with a bound of the speed up to `fastest`."""
    count, zooms = (GRID, ZOOMS) if fastest is None else (SLOW_GRID, SLOW_ZOOMS)
    grids: list[Array] = [np.linspace(1e-4, LONGEST_LAG_S, count), np.linspace(0.0, LONGEST_DEAD_S, count)]
    grids.append(np.array([UNBOUND]) if fastest is None else fastest * np.linspace(1.0 / count, 1.0, count))
    best: tuple[int, ...] = ()
    for zoom in range(zooms):
        if zoom:
            grids = [_nearer(grid, at, grid[0] * least) for grid, at, least in zip(grids, best, (1, 0, 1), strict=True)]
        errors = _errors(u, y, rows, grids, dt)
        best = tuple(int(at) for at in np.unravel_index(np.argmin(errors), errors.shape))
    lag, dead, speed = (float(grid[at]) for grid, at in zip(grids, best, strict=True))
    model = _seen(u, *_driven(u, np.array([lag]), np.array([speed]), dt), rows, dead, dt)[:, 0]
    error = float(np.std(y - model)) / max(float(np.std(y)), 1e-300)
    return Found(lag, dead, error, None if fastest is None else speed, 0)


def _nearer(values: Array, at: int, least: float) -> Array:
    """Return a finer grid around one of its values."""
    if len(values) == 1:
        return values
    middle, step = float(values[at]), 2.0 * float(values[1] - values[0])
    return np.linspace(max(least, middle - step), middle + step, len(values))


def _errors(u: Array, y: Array, rows: npt.NDArray[np.int64], grids: list[Array], dt: float) -> Array:
    """Return the mean squares of what each leaves, but for a constant; shape (lags, dead times, speeds)."""
    lags, deads, speeds = grids
    each_lag, each_speed = (side.ravel() for side in np.meshgrid(lags, speeds, indexing="ij"))
    driven = _driven(u, each_lag, each_speed, dt)
    errors = [np.var(y[:, None] - _seen(u, *driven, rows, dead, dt), axis=0) for dead in deads]
    return np.stack(errors, axis=1).reshape(len(lags), len(speeds), len(deads)).transpose(0, 2, 1)


def _toward(x: Array, u: Array | float, lags: Array, speeds: Array, time: float) -> Array:
    """Return where such drives are after `time` [s] of a command."""
    gap = u - x
    ends = speeds * lags  # of the part at full speed, if the command is farther
    size = np.abs(gap)
    left = np.maximum(time - np.maximum(size - ends, 0.0) / speeds, 0.0)
    there = np.where(left > 0.0, np.minimum(size, ends) * np.exp(-left / lags), size - speeds * time)
    return u - np.sign(gap) * there


def _driven(u: Array, lags: Array, speeds: Array, dt: float) -> tuple[Array, Array, Array]:
    """Return where such drives are at each tick and one behind the last, of shape (n + 1, drives), and the drives."""
    x = np.zeros((len(u) + 1, len(lags)))
    for k, command in enumerate(u.tolist()):
        x[k + 1] = _toward(x[k], command, lags, speeds, dt)
    return x, lags, speeds


def _seen(u: Array, x: Array, lags: Array, speeds: Array, rows: npt.NDArray[np.int64], dead: float, dt: float) -> Array:
    """Return where such drives are `dead` before each of the ticks `rows`; shape (rows, drives)."""
    earlier = int(dead // dt)
    behind = rows - earlier - 1  # the tick before the moment that is looked at
    known = np.maximum(behind, 0)
    there = _toward(x[known], u[known][:, None], lags, speeds, dt - (dead - earlier * dt))
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
    """Return the values of a profile, by key, under which no actuator is faster than its kind was found to be."""
    slowest: dict[str, float] = {}
    names = list(channels_of(platform))
    for each in found:
        if each.speed is not None:
            name = names[each.actuator]
            word = name.partition("_")[0] if name not in {axis.name for axis in platform.axes} else name
            slowest[word] = min(each.speed, slowest.get(word, math.inf))
    changed: dict[str, Any] = {}
    axes = [msgspec.to_builtins(axis) for axis in platform.axes]
    for word, speed in slowest.items():
        carrying = getattr(platform, word, None)
        if carrying is None:
            axis = next(axis for axis in axes if axis["name"] == word)
            kind = "travel" if axis["travel"] else "turn"
            axis[kind] = _slower(axis[kind], speed)
            changed["platform.axes"] = [_stated(axis) for axis in axes]
        else:
            bounds = msgspec.to_builtins(carrying)
            several = isinstance(bounds, list)
            changed[f"platform.{word}"] = [_slower(b, speed) for b in bounds] if several else _slower(bounds, speed)
    return changed


def _stated(table: Any) -> Any:
    """Return a table without what was not given."""
    if not isinstance(table, dict):
        return table
    return {key: _stated(value) for key, value in table.items() if value is not None}


def _slower(bounds: dict[str, Any], speed: float) -> dict[str, Any]:
    """Return an actuator's bounds with a speed [m/s or rad/s], rounded down, if it is less than theirs."""
    key = "speed_m_s" if "speed_m_s" in bounds else "speed_deg_s"
    found = speed if key == "speed_m_s" else math.degrees(speed)
    step = 10.0 ** (math.floor(math.log10(found)) - 2)
    return {**_stated(bounds), key: min(bounds[key], round(math.floor(found / step) * step, 12))}


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
