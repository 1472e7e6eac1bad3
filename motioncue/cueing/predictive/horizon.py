"""The quadratic program of receding horizon cueing: from models of platform and organs to matrices.

Quantities of a group of channels are rows over two kinds of columns: what is known when a plan is made (`known`: the
platform's position, speed and acceleration, the organs' states, the car's present motion) and what is planned (the
accelerations at the ends of the blocks).  The cost is then a quadratic form and each bound a row of both.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY

__all__ = [
    "CANAL_S",
    "CONFLICT",
    "GAINS",
    "ORGANS_S",
    "Bounds",
    "Cost",
    "Program",
    "blocks",
    "conflict_step",
    "nodes",
    "program",
]

Array: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int32]

OTOLITH_S, CANAL_S = 5.0, 5.73
ORGANS_S = (OTOLITH_S,) * 3 + (CANAL_S,) * 3
"""Time constant of the state x of each sense's organ [s]: T dx/dt = e - x, where e is the error of what acts."""

GAINS = ((0.8, -0.4),) * 3 + ((1.0, -1.0),) * 3
"""Perceived error by e and by x, for each sense: the organs of `motioncue.cueing.senses` below 3 Hz, that is
0.4 (10 s + 1)/(5 s + 1) and 5.73 s/(5.73 s + 1)."""

CONFLICT = (0.3, 1.0 / 3.0, 5.0 / 3.0)
"""Conflict c between sensed and expected vertical by a specific force f: 0.3 s / (s^2 + s/3 + 5/3), for each sense.
The model of `motioncue.scoring.quality` about upright, with tau = 2 s, Ka = 0.1, Kvc = 5, Kac = 0.5:
c' = ((1 - Ka) f + Ka p - Kvc x - c) / (1 + Kac) / tau + (1 - Kw) / (1 + Kwc) p', x' = c, where p is what a tilt has of
gravity."""

LEAN = (1.0 / 9.0, 3.0 / 11.0)
"""What p and p' [s] count beside it, in shares of f: Ka / (1 - Ka) and (1 - Kw) / (1 + Kwc) (1 + Kac) tau / (1 - Ka),
with Kw = 0.1 and Kwc = 10, for tilts that the canals follow."""

TILTS = {0: (4, GRAVITY), 1: (3, -GRAVITY)}  # sense of force: the channel that tilts, and the force by its angle
TILTING = (3, 4)  # channels whose rate is bounded for the sake of the occupant
TILT_MARGIN = 0.95  # share of the tilt rate that is planned for, because its bound is soft
FIRST = 2  # blocks of one step, before lengths double
ROUNDS = 40  # of doubling: 1e12 steps
FADE_S = 2.0  # time in which the car's motion is expected to decay to 37 % after what is foreseen


class Cost(NamedTuple):
    """Weights of a plan; arrays by sense or by channel, shape (6,), but for `place`."""

    senses: Array
    """Weight of each sense's perceived error [per m/s^2, per rad/s]."""
    place: Array
    """Weights of displacement, one row for each actuator, shape (rows, 6) [per m, per rad]."""
    speed: Array
    effort: Array
    smoothness: Array
    """The same of its derivatives; of the third one last."""
    conflict: float = 0.0
    """Weight of the conflict about the vertical [per m/s^2]."""


class Bounds(NamedTuple):
    """Bounds on linear functions of the pose, such as positions of actuators; one row each.

    With an infinite speed, there is no bound on how it moves.
    """

    slopes: Array
    """Derivatives by the pose, shape (rows, 6)."""
    low: Array
    """Least value, from that at neutral."""
    high: Array
    speed: Array
    acceleration: Array
    lag_s: Array
    """Lag of the drives [s]: what is sent leads by it, and keeps these bounds."""


class Program(NamedTuple):
    """Minimize ``U' hessian U / 2 + (gradient known)' U`` with ``low <= rows U + drift known <= high``."""

    hessian: Array
    gradient: Array
    rows: Array
    drift: Array
    low: Array
    high: Array
    bound: Whole
    """For each row, the number of the bound that it belongs to; -1 if none."""
    block: Whole
    """For each row, the block at whose end it holds."""
    per_place: Array
    """For each row, how much a position exceeding the linear one by 1 moves it; 0 for rows that are no positions."""
    per_speed: Array
    """The same of a speed."""
    per_push: Array
    """The same of an acceleration."""
    turning: Array
    """For each row, the car's own rate at that time by what is known, in shares of the limit of the tilt rate; a row
    of zeros if it is no tilt rate."""
    tilting: Whole
    """For each row, whether it is a tilt rate, in shares of its limit: 0 or 1."""
    scale: Array
    """Acceleration for 1 of each unknown [m/s^2, rad/s^2]."""
    moving: Array
    """For each row, what it is made of where a slope by a channel is 1: shares of that channel's place, speed and
    acceleration, then of its planned accelerations, in shares of `scale`; the same for all channels."""


def blocks(steps: int) -> list[int]:
    """Return the lengths of blocks that together are `steps` long: 1, 1, 2, 4, ..., and the rest."""
    lengths: list[int] = []
    while (left := steps - sum(lengths)) > 0:
        length = 1 if len(lengths) < FIRST else 2 * lengths[-1]
        lengths.append(length if left >= 2.5 * length or not lengths else left)
    return lengths


def nodes(steps: int, step_s: float, times_s: Sequence[float]) -> Array:
    """Return the shares of the nodes in the expected motion after each step, (nodes, steps + 1).

    The motion is expected along straight lines from node to node, and to decay after the last one.
    """
    time = np.arange(steps + 1) * step_s
    shares = np.array([np.interp(time, times_s, row) for row in np.eye(len(times_s))])
    return np.asarray(shares * np.exp(-np.maximum(time - times_s[-1], 0.0) / FADE_S))


class _Rows(NamedTuple):
    """What follows from what is known and planned: for each time, one row for each channel or sense."""

    place: Array
    speed: Array
    acceleration: Array
    organs: Array
    errors: Array
    force: Array
    """Force that the conflict follows, of senses whose conflict counts: specific force on the platform, and lean."""
    conflict: Array
    """Conflict and its integral by turns, of these."""


def _errors(
    channels: Sequence[int], senses: Sequence[int], place: Array, speed: Array, push: Array, car: Array
) -> Array:
    """Return what acts in the car less what acts on the platform, for small angles."""
    errors = car.copy()
    for row, sense in enumerate(senses):
        if sense in channels:
            errors[:, row] -= (push if sense < 3 else speed)[:, channels.index(sense)]
        channel, force = TILTS.get(sense, (-1, 0.0))
        if channel in channels:
            errors[:, row] -= force * place[:, channels.index(channel)]
    return errors


def _conflicting(senses: Sequence[int], cost: Cost) -> list[int]:
    """Return the rows of senses whose conflict counts."""
    return [row for row, sense in enumerate(senses) if sense < 3 and cost.conflict > 0.0]


def conflict_step(step_s: float) -> tuple[Array, Array, Array]:
    """Return what a step makes of conflict and its integral: of themselves, of the force before and of that after.

    The force goes along a straight line.  By the series of the exponential.
    """
    by_force, damping, stiffness = CONFLICT
    model = np.zeros((4, 4))
    model[:2, :3] = [[-damping * step_s, -stiffness * step_s, by_force * step_s], [step_s, 0.0, 0.0]]
    model[2, 3] = 1.0
    term = whole = np.eye(4)
    for k in range(1, 30):
        term = term @ model / k
        whole = whole + term
    return whole[:2, :2], whole[:2, 2] - whole[:2, 3], whole[:2, 3]


def _course(
    begin: tuple[Array, Array, Array, Array],
    push: Array,
    car: Array,
    step_s: float,
    channels: Sequence[int],
    senses: Sequence[int],
    at: list[int],
) -> _Rows:
    """Return the rows at each step, while accelerations and the car's motion go along straight lines from step to step.

    `begin` is place, speed, organs and conflict at the first; `at` are the rows of senses whose conflict counts.
    """
    place, speed, organs, conflict = (each[None] for each in begin)
    speed = np.concatenate([speed, 0.5 * step_s * (push[:-1] + push[1:])]).cumsum(axis=0)
    moved = step_s * speed[:-1] + step_s**2 * (2.0 * push[:-1] + push[1:]) / 6.0
    place = np.concatenate([place, moved]).cumsum(axis=0)
    errors = _errors(channels, senses, place, speed, push, car)
    kept = np.exp(-step_s / np.array([ORGANS_S[sense] for sense in senses]))
    entering = (1.0 - kept)[:, None] * 0.5 * (errors[:-1] + errors[1:])
    organs = _recursion(np.diag(kept), np.concatenate([organs, entering]))
    force = (car - errors)[:, at]
    for row, sense in enumerate(senses[k] for k in at):
        channel, by_angle = TILTS.get(sense, (-1, 0.0))
        if channel in channels:
            k = channels.index(channel)
            force[:, row] += by_angle * (LEAN[0] * place[:, k] + LEAN[1] * speed[:, k])
    if at:
        own, before, after = conflict_step(step_s)
        by_force = force[:-1, :, None] * before[:, None] + force[1:, :, None] * after[:, None]
        entering = by_force.reshape(len(by_force), 2 * len(at), -1)
        model = np.asarray(np.kron(np.eye(len(at)), own), np.float64)  # each sense by itself
        conflict = _recursion(model, np.concatenate([conflict, entering]))
    else:
        conflict = np.repeat(conflict, len(push), axis=0)
    return _Rows(place, speed, push, organs, errors, force, conflict)


def _recursion(model: Array, entering: Array) -> Array:
    """Return x of ``x[k] = model x[k - 1] + entering[k]`` from ``x[0] = entering[0]``: a round doubles the steps."""
    found = entering.copy()
    back = 1
    while back < len(found):
        found[back:] += model @ found[:-back]
        model, back = model @ model, 2 * back
    return found


def _costs(
    now: _Rows, before: Array, step_s: float, channels: Sequence[int], senses: Sequence[int], cost: Cost
) -> Array:
    """Return rows whose squares are the cost of steps; `before` are the accelerations a step earlier."""
    by_error, by_state = (np.array([GAINS[sense][k] for sense in senses])[:, None] for k in (0, 1))
    picked = list(channels)
    rows = [
        cost.senses[list(senses), None] * (by_error * now.errors + by_state * now.organs),
        cost.place[:, picked] @ now.place,
        cost.speed[picked, None] * now.speed,
        cost.effort[picked, None] * now.acceleration,
        cost.smoothness[picked, None] * (now.acceleration - before) / step_s,
        cost.conflict * now.conflict[:, ::2],
    ]
    return np.asarray(np.sqrt(step_s) * np.concatenate(rows, axis=1)).reshape(-1, before.shape[-1])


def _tail(step_s: float, channels: Sequence[int], senses: Sequence[int], cost: Cost) -> Array:
    """Return the cost of all that follows a plan, as a quadratic form of what is known at its end.

    By the discrete algebraic Riccati equation: the platform is then steered without bounds, and the car's motion
    decays.
    """
    moved, felt, at = len(channels), len(senses), _conflicting(senses, cost)
    size = 3 * moved + 2 * felt + 2 * len(at)
    wide = size + moved
    unit = np.eye(wide)
    place, speed, push = (unit[k * moved : (k + 1) * moved] for k in range(3))
    organs, car = unit[3 * moved : 3 * moved + felt], unit[3 * moved + felt : 3 * moved + 2 * felt]
    begin = (place, speed, organs, unit[size - 2 * len(at) : size])
    cars = np.stack([car, np.exp(-step_s / FADE_S) * car])
    pushes = np.stack([push, unit[size:]])
    next_ = _Rows(*(each[1:] for each in _course(begin, pushes, cars, step_s, channels, senses, at)))
    model = np.concatenate([*next_[:4], cars[1:], next_.conflict], axis=1)[0]
    # The change of acceleration is the only cost of what is steered; the rest is counted when it has come about.
    rows = _costs(next_, push[None], step_s, channels, senses, cost)
    form = rows.T @ rows
    return _riccati(model[:, :size], model[:, size:], form[:size, :size], form[size:, size:], form[:size, size:])


def _riccati(a: Array, b: Array, q: Array, r: Array, s: Array) -> Array:
    """Return the least cost X of x' = a x + b u, as x' X x, where a step costs x' q x + u' r u + 2 x' s u.

    By doubling: each round covers twice as many steps.  E. K.-W. Chu, H.-Y. Fan, W.-W. Lin, C.-S. Wang,
    "Structure-preserving algorithms for periodic discrete-time algebraic Riccati equations", International Journal of
    Control 77(8), 2004.
    """
    steered = np.linalg.solve(r, np.concatenate([s.T, b.T], axis=1))
    a, q, g = a - b @ steered[:, : len(a)], q - s @ steered[:, : len(a)], b @ steered[:, len(a) :]
    for _ in range(ROUNDS):
        quotient = np.linalg.solve(np.eye(len(a)) + g @ q, np.concatenate([a, g], axis=1))
        by_a, by_g = quotient[:, : len(a)], quotient[:, len(a) :]
        more = a.T @ q @ by_a
        g = g + a @ by_g @ a.T
        a = a @ by_a
        q = q + 0.5 * (more + more.T)
        if np.abs(more).max() <= 1e-14 * np.abs(q).max():
            return np.asarray(q)
    raise np.linalg.LinAlgError("no steering brings the cost of all that follows to an end")


def program(
    channels: Sequence[int],
    senses: Sequence[int],
    lengths: Sequence[int],
    step_s: float,
    ahead: Array,
    cost: Cost,
    bounds: Bounds,
    tilt: tuple[float, float],
    scale: Array,
) -> Program:
    """Return the program of channels that belong together.

    Units: `scale` [m/s^2, rad/s^2].
    """
    moved, felt = len(channels), len(senses)
    limits = np.array([min(scale[c], tilt[1]) if c in TILTING else scale[c] for c in channels])
    rows_at = _conflicting(senses, cost)
    car_end = 3 * moved + felt + felt * len(ahead)
    known = car_end + 2 * len(rows_at)
    unit = np.eye(known + moved * len(lengths))
    knots = [unit[known + k * moved : known + (k + 1) * moved] * limits[:, None] for k in range(len(lengths))]
    foreseen = unit[3 * moved + felt : car_end].reshape(felt, len(ahead), -1)
    place, speed, push = (unit[k : 3 * moved : 3] for k in range(3))
    at = [0, *accumulate(lengths)]
    shares = [np.interp(np.arange(at[-1] + 1), at, row) for row in np.eye(len(at))]
    pushes = np.tensordot(shares, np.stack([push, *knots]), axes=(0, 0))
    cars = np.tensordot(ahead[:, : at[-1] + 1], foreseen, axes=(0, 1))
    begin = (place, speed, unit[3 * moved : 3 * moved + felt], unit[car_end:known])
    course = _course(begin, pushes, cars, step_s, channels, senses, rows_at)
    form = np.zeros((len(unit), len(unit)))
    for start, stop in pairwise(at):  # not all at once: a long horizon has many rows
        block = _Rows(*(each[start + 1 : stop + 1] for each in course))
        rows = _costs(block, pushes[start:stop], step_s, channels, senses, cost)
        form += rows.T @ rows
    ends = [_Rows(*(each[step] for each in course)) for step in at[1:]]
    jerks = [(pushes[stop] - pushes[start]) / ((stop - start) * step_s) for start, stop in pairwise(at)]
    turns = [cars[step, :, :known] for step in at[1:]]
    now = ends[-1]
    end = np.concatenate([now.place, now.speed, now.acceleration, now.organs, cars[-1], now.conflict])
    form += end.T @ _tail(step_s, channels, senses, cost) @ end
    rows, low, high, bound, at_block, per_place, per_speed, per_push, tilting, ways = _bounded(
        channels, ends, jerks, bounds, tilt[0]
    )
    moving = np.concatenate([ways[:, :3], ways[:, known::moved] / limits[0]], axis=1)
    turning = np.zeros((len(rows), known))
    own = [each[list(senses).index(channel)] for channel in TILTING if channel in channels for each in turns]
    turning[tilting > 0] = np.reshape(own, (-1, known)) / tilt[0]
    return Program(
        form[known:, known:],
        form[known:, :known],
        rows[:, known:],
        rows[:, :known],
        low,
        high,
        bound,
        at_block,
        per_place,
        per_speed,
        per_push,
        turning,
        tilting,
        np.tile(limits, len(lengths)),
        moving,
    )


def _bounded(
    channels: Sequence[int], ends: list[_Rows], jerks: list[Array], bounds: Bounds, tilt_rate: float
) -> tuple[Array, Array, Array, Whole, Whole, Array, Array, Array, Whole, Array]:
    """Return the rows of a program's bounds, in shares of what is allowed.

    Where drives lag, they are those of q + lag q', which is sent.  Its acceleration is bounded in blocks of single
    steps, because later ones are planned again.
    """
    found: list[tuple[Array, float, float, int, int, float, float, float, int, Array]] = []
    for number, slopes in enumerate(bounds.slopes[:, list(channels)]):
        low, high, speed = float(bounds.low[number]), float(bounds.high[number]), float(bounds.speed[number])
        acceleration, half, lag = float(bounds.acceleration[number]), 0.5 * (high - low), float(bounds.lag_s[number])
        single = np.count_nonzero(slopes) == 1
        for k, at in enumerate(ends):
            place = (at.place + lag * at.speed) / half
            found.append((slopes @ place, low / half, high / half, number, k, 1.0 / half, lag / half, 0.0, 0, place[0]))
            if not np.isfinite(speed):
                continue
            rate = (at.speed + lag * at.acceleration) / speed
            found.append((slopes @ rate, -1.0, 1.0, number, k, 0.0, 1.0 / speed, lag / speed, 0, rate[0]))
            leads = lag > 0.0 and k < FIRST
            if leads or not single:  # otherwise it is the bound of an unknown
                push = (at.acceleration + (lag * jerks[k] if leads else 0.0)) / acceleration
                found.append((slopes @ push, -1.0, 1.0, number, k, 0.0, 0.0, 1.0 / acceleration, 0, push[0]))
        if not np.isfinite(speed):
            continue
        # v^2 <= 2 a (end - q) in the end, on the safe side because v is at most `speed`
        far = lag + 0.5 * speed / acceleration
        stop = (ends[-1].place + far * ends[-1].speed) / half
        last = len(ends) - 1
        found.append((slopes @ stop, low / half, high / half, number, last, 1.0 / half, far / half, 0.0, 0, stop[0]))
    none = np.zeros_like(ends[0].place[0])
    for channel in TILTING:
        if channel in channels:
            row = channels.index(channel)
            found += [
                (at.speed[row] / tilt_rate, -TILT_MARGIN, TILT_MARGIN, -1, k, 0.0, 0.0, 0.0, 1, none)
                for k, at in enumerate(ends)
            ]
    rows, low_, high_, bound, block, per_place, per_speed, per_push, tilting, ways = (
        list(column) for column in zip(*found, strict=True)
    )
    return (
        np.array(rows),
        np.array(low_),
        np.array(high_),
        np.array(bound, np.int32),
        np.array(block, np.int32),
        np.array(per_place),
        np.array(per_speed),
        np.array(per_push),
        np.array(tilting, np.int32),
        np.array(ways),
    )
