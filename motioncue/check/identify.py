"""Lag and dead time of a platform's drives, from what was sent and where its replies say that the actuators were."""

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.check.exercise import Array, Exerciser, bump
from motioncue.drive.courses import swing
from motioncue.errors import ConfigError
from motioncue.output.packet import replies_of
from motioncue.platforms.build import CHANNELS, channels_of, ranges
from motioncue.profile.profile import Profile

__all__ = ["Found", "axes_of", "identified", "identify", "refuse_unheard"]

SINES = ((0.5, 6.0), (1.0, 4.0), (2.0, 3.0))  # frequency [Hz] and duration [s]
STEPS_S = (1.2, 0.8)  # a step up and back
LONGEST_LAG_S, LONGEST_DEAD_S = 0.5, 0.3
GRID = 17  # values of each that are compared at a time
ZOOMS = 7
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
    reached: float
    """Largest speed of the positions replied, as a share of what such drives would have reached."""


def identified(sent: Array, heard: Array, index: npt.NDArray[np.int64], dt: float) -> Found:
    """Return the lag and the dead time that explain positions.

    Of `sent` each row is what was sent at a tick, of `heard` what was known before its packet was sent, both of shape
    (n, actuators) [m or rad]; `index` is the number of each tick: of one that was left out the packet before stays in
    force.  ConfigError is raised if nothing moved, or if such drives do not explain how it did.

    Notes
    -----
    A drive of first order, x' = (u - x) / T, whose command u is held from tick to tick, is at
    x_(k+1) = a x_k + (1 - a) u_k with a = exp(-dt/T), and a time s behind a tick at u_k + (x_k - u_k) exp(-s/T).  Least
    squares over T and a dead time by which x is looked at earlier, on grids that become finer, along the direction in
    which the actuators went farthest.  Only ticks with a new reply count.  Own derivation.

    Units: `dt` [s].
    """
    whole = np.arange(index[0], index[-1] + 1)
    place = np.searchsorted(index, whole, side="right") - 1
    commands = sent[place]
    gone = commands - commands[0]
    direction = gone[np.argmax(np.abs(gone).max(axis=1))]
    if not np.abs(direction).max() > LEAST:
        raise ConfigError("identify: nothing was moved")
    u = gone @ direction
    fresh = np.flatnonzero((np.diff(heard, axis=0) != 0.0).any(axis=1)) + 1
    if len(fresh) < 20:
        raise ConfigError(f"identify: found {len(fresh)} replies that moved, allowed are 20 or more")
    fresh = fresh[:: -(-len(fresh) // MOST_REPLIES)]
    rows = index[fresh] - index[0]
    y = (heard[fresh] - commands[0]) @ direction
    lags = np.linspace(1e-4, LONGEST_LAG_S, GRID)
    deads = np.linspace(0.0, LONGEST_DEAD_S, GRID)
    best = (LONGEST_LAG_S, 0.0)
    for _ in range(ZOOMS):
        errors = _errors(u, y, rows, lags, deads, dt)
        i, j = divmod(int(np.argmin(errors)), len(deads))
        best = float(lags[i]), float(deads[j])
        lags, deads = _nearer(lags, i, 1e-4), _nearer(deads, j, 0.0)
    lag = np.array([best[0]])
    model = _seen(u, _driven(u, lag, dt), rows, lag, best[1], dt)[:, 0]
    shift = np.mean(y - model)
    error = float(np.std(y - model) / max(np.std(y), 1e-300))
    if not error < UNEXPLAINED:
        raise ConfigError(
            f"identify: {error:.0%} of the motion is not that of a first-order lag behind a dead time, allowed are up "
            f"to {UNEXPLAINED:.0%}: the largest way may be beyond what the drives can do"
        )
    return Found(best[0], best[1], error, _reached(y - shift, model, rows))


def _reached(y: Array, model: Array, rows: npt.NDArray[np.int64]) -> float:
    """Return the largest speed of the positions, as a share of the model's, over the same times."""
    steps = np.maximum(np.diff(rows), 1)
    return float(np.abs(np.diff(y) / steps).max() / max(np.abs(np.diff(model) / steps).max(), 1e-300))


def _nearer(values: Array, at: int, least: float) -> Array:
    """Return a finer grid around one of its values."""
    step = 2.0 * (values[1] - values[0])
    return np.linspace(max(least, values[at] - step), values[at] + step, GRID)


def _errors(u: Array, y: Array, rows: npt.NDArray[np.int64], lags: Array, deads: Array, dt: float) -> Array:
    """Return the mean squares of what each pair leaves, but for a constant; shape (lags, dead times)."""
    x = _driven(u, lags, dt)
    return np.stack([np.var(y[:, None] - _seen(u, x, rows, lags, dead, dt), axis=0) for dead in deads], axis=1)


def _driven(u: Array, lags: Array, dt: float) -> Array:
    """Return where drives with these lags are at each tick and one behind the last; shape (n + 1, lags)."""
    keeps = np.exp(-dt / lags)
    x = np.zeros((len(u) + 1, len(lags)))
    for k, command in enumerate(u.tolist()):
        x[k + 1] = command + keeps * (x[k] - command)
    return x


def _seen(u: Array, x: Array, rows: npt.NDArray[np.int64], lags: Array, dead: float, dt: float) -> Array:
    """Return where such drives are `dead` before each of the ticks `rows`; shape (rows, lags)."""
    earlier = int(dead // dt)
    behind = rows - earlier - 1  # the tick before the moment that is looked at
    past = np.exp(-(dt - (dead - earlier * dt)) / lags)
    known = np.maximum(behind, 0)
    there = u[known][:, None] + (x[known] - u[known][:, None]) * past
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
