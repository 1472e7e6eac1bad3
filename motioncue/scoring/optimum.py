"""The best motion that a platform could make of a drive known in advance: a convex program.

Needs Clarabel and SciPy, from the extra ``score``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.cueing.senses import RATE_HZ, STAGES, THRESHOLDS, felt_on_platform, perceived
from motioncue.errors import ConfigError
from motioncue.platforms.build import Built
from motioncue.platforms.kinematics import MOST_STRAIGHT
from motioncue.platforms.settings import ActuatorBounds

Array: TypeAlias = npt.NDArray[np.float64]

ROWS = 2  # of what is felt, from knot to knot
STEP_S = ROWS / RATE_HZ  # from knot to knot; acceleration is linear between
REST = 3  # first coefficients of each spline, which are zero: position, speed and acceleration begin at rest
EFFORT = 1e-3  # weight of the change of acceleration from knot to knot, in shares, squared: makes the solution unique
TILTS = (
    (0, 4, GRAVITY),
    (1, 3, -GRAVITY),
)  # sense of force, channel that tilts, force by its angle: surge by pitch, sway by roll
NUDGE = 1e-4  # for derivatives of the kinematics [m, rad, s]
LEAST = 1e-9  # derivative of an actuator's position by a channel below which they have nothing to do with each other
TOLERANCE = 1e-5  # of the program's solution, relative
PARTS = (1.0, 0.5, 0.25, 0.125)  # of the way from one pass's motion to the next
ENOUGH = 0.005  # share of the error at rest by which a pass has to make the error smaller, for another to follow
WAY = (0.25, 0.5, 0.75, 1.0)  # shares of the way from neutral for which a pose is found
NEWTON = 4  # steps for each
MORE = 16  # steps at most, for those not found
FOUND = 1e-6  # accuracy of positions at a pose that was found [m, rad]
BEYOND = 1e-4  # of half a range and of the largest speed: by which an actuator may exceed its bounds between knots
ROUNDS = 8  # of a program, each with rows where the one before exceeded these
BENT_PASSES = 8  # of a platform whose pose is far from linear in its actuators' positions
AIM = 0.998  # of how near to its rod's line a crank may come, at every row: what is between two of them may be nearer
FINE = 4  # moments from row to row at which that is looked at
BENDS = 0.5  # of what a pass is to win, by which what is felt may miss the program
NEAR = 9  # knots over which a motion has the same room
CHANGES = (0.25, 2.0)  # of that room from pass to pass, beyond the latter it is not bounded
NARROW = 0.02  # room that is always left [half ranges]


class _Group(NamedTuple):
    """Channels that belong together, by a common actuator or by tilt felt as force."""

    channels: list[int]
    moved: list[int]
    """Those of them that an actuator moves."""
    leads: list[int]
    """Actuators whose positions are the unknowns; as many as are independent."""
    follows: list[int]
    """The others, such as the fourth post of a frame."""


class _Spline(NamedTuple):
    """Values of cubic splines by row, as matrices from their coefficients without the first three."""

    place: Any
    speed: Any
    acceleration: Any


class _Derived(NamedTuple):
    """Derivatives along a motion, by row."""

    slopes: Array
    """Of the actuators' positions by the pose, (n, actuators, 6)."""
    ways: Array
    """Of the pose by the actuators' positions, (n, 6, actuators)."""
    speeds: Array
    """Of the pose by time, (n, 6)."""
    accelerations: Array
    """The second ones."""
    bends: Array
    """Second ones of the actuators' positions by time if the pose did not accelerate, (n, actuators)."""


class _About(NamedTuple):
    """A motion about which a program is linearized, by row."""

    felt: Array
    """What acts on the occupant beyond what is linear in the actuators' positions, (n, 6)."""
    ways: Array
    slopes: Array
    """As of `_Derived`."""
    lines: Array
    """How near cranks are to one line with their rods, 1 where no wanted pose may be, (n, actuators)."""
    toward: Array
    """Its derivatives by the actuators' positions, (n, actuators, actuators)."""
    places: Array
    """Positions of the actuators, from neutral, (n, actuators)."""
    coefficients: Array
    """Those of its splines, without the first three."""


def best_motion(felt: Array, built: Built, weights: Array, passes: int = 4, bent: bool = False) -> Array:
    """Return the motion whose perceived error is smallest within the bounds of every actuator.

    Unknown are the coefficients of cubic splines with knots at 10 Hz, one spline for each independent actuator, so
    that acceleration is linear between knots, and the states of the organs' lags at `RATE_HZ`, which are means of what
    goes in: all are of one size, however long the drive is.  Minimized is the sum of (weight x error in thresholds)^2
    over senses and rows, subject to position, speed and acceleration of every actuator at each knot, and of position
    and speed where an independent one would exceed them in between: there the program gets a row more, and is solved
    again.  What is felt is linear about the motion of the pass before, for small angles; where that is far from what
    is felt in truth, as on cranks, or where what follows leaves its ends (`bent`), passes are more and go less far,
    each within bounds and reach.  Groups of channels that no actuator and no tilt connects are programs of their own.
    """
    felt = np.pad(felt, ((0, (1 - len(felt)) % ROWS), (0, 0)), "edge")  # the last row is at a knot
    spline = _spline(len(felt))
    motion = np.zeros((spline.place.shape[1] + REST, len(built.names)))
    groups = _groups(built)
    poses = np.zeros_like(felt)
    told = perceived(felt)
    between: _Between = {}
    still = least = np.sqrt(np.sum((weights * told) ** 2))
    room = np.full(len(felt[::ROWS]), np.inf)

    def solved(rounds: int) -> tuple[Array, _About]:
        about = _about(built, groups, spline, motion, poses)
        wanted = np.zeros_like(motion)
        for group in groups:
            if group.moved:
                _solve(wanted, felt, built, weights, spline, group, about, between, room, rounds)
        return wanted, about

    def missed(tried: Array) -> tuple[float, Array, Array]:
        reached = _poses(built, groups, spline.place @ tried[REST:])
        acts = _felt(built, groups, spline, tried, reached)
        error = float(np.sqrt(np.sum((weights * (told - perceived(acts))) ** 2)))
        return (error if np.isfinite(error) else np.inf), reached, acts

    def within(motion: Array, between: _Between = between) -> Array:
        return min(_kept(motion, built, group, between) for group in groups) * motion

    bent |= "crank" in built.kinematics.kinds
    done = 0
    while done < (BENT_PASSES if bent else passes):
        done += 1
        try:
            wanted, about = solved(1)
        except ConfigError:
            if done == 1:
                raise
            if bent:
                break  # the motion found so far keeps all bounds
            # What follows is so far beyond its ends that no next motion can be within.
            return best_motion(felt, built, weights, bent=True)
        before = least
        # Between two motions within the bounds all are, because these are convex: go as far as it is better.
        for part in PARTS:
            tried = motion + part * (wanted - motion)
            if bent:
                kept = within(
                    tried, between if part == 1.0 else {}
                )  # rows of a part of the way would be twice the same
                tried = _reached(built, groups, kept, 1, 2)
            error, reached, acts = missed(tried)
            if part == 1.0:
                full = acts
                bent |= not np.isfinite(error)
            if error < least:
                break
        if bent:
            linear = about.felt + _small(*(np.einsum("kca,ka->kc", about.ways, m @ wanted[REST:]) for m in spline))
            won = before**2 - float(np.sum((weights * (told - perceived(linear))) ** 2))
            moved = np.abs(spline.place[::ROWS] @ (wanted - motion)[REST:])
            room = _room(built, moved, weights * (full - linear) / THRESHOLDS, won)
        if error < least:
            motion, poses, least = tried, reached, error
            if before - least < ENOUGH * still and (part == 1.0 or not bent):
                break
        elif bent:
            room = np.minimum(room, CHANGES[0] * np.nanmax(room[np.isfinite(room)], initial=1.0))
        else:
            break

    if bent:
        return _reached(built, groups, within(motion), FINE, ROUNDS)
    if ((smaller := within(motion)) != motion).any():
        wanted = within(solved(ROUNDS)[0])
        motion = min(
            (smaller + part * (wanted - smaller) for part in (*PARTS, 0.0)), key=lambda tried: missed(tried)[0]
        )
    if (_reached(built, groups, motion, FINE, 1) != motion).any():
        return best_motion(felt, built, weights, bent=True)
    return motion


def _room(built: Built, moved: Array, bends: Array, won: float) -> Array:
    """Return how far the next pass may go from the motion of this one at each knot [half ranges].

    From how far this pass wanted to go, and by how many thresholds what is felt then is not what its program took it
    for.  That grows with the square of the way, so the way is changed by the root of what is allowed over it.
    """
    from scipy.ndimage import maximum_filter1d

    bounds = ActuatorBounds.columns(built.bounds)
    way = maximum_filter1d((2.0 * moved / (bounds.high - bounds.low)).max(axis=1), NEAR)
    size = np.nan_to_num(np.sqrt(np.sum(bends**2, axis=1)), nan=np.inf)
    size = np.maximum(size[::ROWS], np.append(size[1::ROWS], 0.0))  # of each knot and the row behind it
    allowed = BENDS * np.sqrt(max(won, 0.0) / len(bends))
    with np.errstate(divide="ignore"):
        change = np.sqrt(allowed / np.maximum(maximum_filter1d(size, NEAR), 1e-12))
    return np.where(change > CHANGES[1], np.inf, np.maximum(way, NARROW) * np.maximum(change, CHANGES[0]))


def _reached(built: Built, groups: list[_Group], motion: Array, fine: int, rounds: int) -> Array:
    """Return a motion made smaller until no crank is too near to its rod's line, and what follows keeps its ends.

    Looked at are so many moments from row to row, so many times at most.
    """
    follows = [each for group in groups for each in group.follows]
    if "crank" not in built.kinematics.kinds and not follows:
        return motion
    bounds = ActuatorBounds.columns(built.bounds)
    times = np.arange((len(motion) - REST) * ROWS * fine + 1, dtype=np.float64) * (STEP_S / (ROWS * fine))
    neutral = np.append(_lines_of(built, np.zeros((1, 6)))[0], np.zeros(len(follows)))
    high = np.append(np.ones(len(built.names)), (bounds.high - built.neutral)[follows])
    low = np.append(-np.ones(len(built.names)), (bounds.low - built.neutral)[follows])
    slack = BEYOND * 0.5 * (high - low)
    for _ in range(rounds):
        poses = poses_at(motion, built, times)
        places = (built.kinematics.inverse(poses) - built.neutral)[:, follows]
        at = np.hstack([_lines_of(built, poses), places])
        row, column = np.nonzero((at > high + slack) | (at < low - slack))
        if not len(row):
            break
        over, rest = at[row, column], neutral[column]
        ends = np.where(over > rest, high[column], low[column])
        motion = motion * float(np.min((ends - rest) / (over - rest)))
    return motion


def poses_at(motion: Array, built: Built, times_s: Array) -> Array:
    """Return the poses of a motion at any time."""
    from scipy.interpolate import BSpline

    groups, knots = _groups(built), STEP_S * np.arange(len(motion) - 2)
    spline = BSpline(STEP_S * np.arange(-3, len(motion) + 1), motion, 3)
    at_knots = _poses(built, groups, spline(knots))
    poses = np.column_stack([np.interp(times_s, knots, column) for column in at_knots.T])
    for _ in range(NEWTON):
        poses = _nearer(built, groups, spline(times_s), poses)
    return _found(built, groups, spline(times_s), poses)


def slopes_of(built: Built, poses: Array) -> Array:
    """Return the derivatives of the actuators' positions by the channels of the pose."""
    return _derivatives(built.kinematics.inverse, poses)


def _derivatives(of: Callable[[Array], Array], poses: Array) -> Array:
    """Return the derivatives of something by the channels of the pose."""
    return np.stack([(of(poses + nudge) - of(poses - nudge)) / (2.0 * NUDGE) for nudge in NUDGE * np.eye(6)], axis=2)


_Between: TypeAlias = dict[tuple[int, int], Array]
"""Times between knots at which position (0) or speed (1) of an actuator has a row [knots]."""


def _solve(
    motion: Array,
    felt: Array,
    built: Built,
    weights: Array,
    spline: _Spline,
    group: _Group,
    about: _About,
    between: _Between,
    room: Array,
    rounds: int,
) -> None:
    """Fill in the motion of a group's actuators, the solution of its program; add rows that it lacks to `between`."""
    import clarabel
    from scipy import sparse

    equality, known, errors = _senses(felt, weights, spline, group, about)
    unknowns = equality.shape[1]
    jerks = spline.acceleration[ROWS::ROWS] - spline.acceleration[:-ROWS:ROWS]
    efforts = sparse.block_diag(
        [EFFORT / built.bounds[lead].acceleration ** 2 * jerks.T @ jerks for lead in group.leads]
    )
    efforts.resize(unknowns, unknowns)
    squares = sum((error.matrix.T @ error.matrix for error in errors), efforts.tocsc())
    linear = sum((error.matrix.T @ error.known for error in errors), np.zeros(unknowns))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    settings.direct_solve_method = "qdldl"  # one thread, so that the number of processors changes no bit
    for _ in range(rounds):
        bounded, most = _bounded(spline, built, group, about, between, room)
        if about.lines.any():
            rows, ends = _lines(spline, built, group, about, room)
            bounded, most = sparse.vstack([bounded, rows]), np.concatenate([most, ends])
        bounded = sparse.hstack([bounded, sparse.csc_matrix((bounded.shape[0], unknowns - bounded.shape[1]))])
        cones: list[Any] = [clarabel.ZeroConeT(equality.shape[0]), clarabel.NonnegativeConeT(bounded.shape[0])]
        solution = clarabel.DefaultSolver(
            sparse.triu(squares, format="csc"),
            linear,
            sparse.vstack([equality, bounded], format="csc"),
            np.concatenate([known, most]),
            cones,
            settings,
        ).solve()
        if str(solution.status) not in ("Solved", "AlmostSolved"):
            raise ConfigError(f"the best motion: the program has no solution ({solution.status})")
        wide = spline.place.shape[1]
        found = np.array(solution.x)[: wide * len(group.leads)].reshape(len(group.leads), wide).T
        motion[REST:, group.leads] = found
        if _kept(motion, built, group, between) == 1.0:
            return


def _kept(motion: Array, built: Built, group: _Group, between: _Between) -> float:
    """Add to `between` where leading actuators exceed their bounds most; return the share of all that keeps them."""
    bounds, share = ActuatorBounds.columns(built.bounds), 1.0
    for lead in group.leads:
        middle = 0.5 * (bounds.high[lead] + bounds.low[lead]) - built.neutral[lead]
        half = 0.5 * (bounds.high[lead] - bounds.low[lead])
        places, speeds = _turns(motion[:, lead])
        for kind, times, offset, most in ((0, places, middle, half), (1, speeds, 0.0, bounds.speed[lead])):
            found = _rows(times, len(motion))[kind] @ motion[REST:, lead]
            new = times[np.abs(found - offset) > (1.0 + BEYOND) * most]
            between[kind, lead] = np.append(between.get((kind, lead), ()), new)
            over = found[np.abs(found - offset) > (1.0 + BEYOND) * most]
            share = min(share, np.min((offset + np.copysign(most, over - offset)) / over, initial=1.0))
    return share


def _turns(motion: Array) -> tuple[Array, Array]:
    """Return when position and speed of an actuator are largest or least between knots [knots]."""
    speed, acceleration = (motion[2:] - motion[:-2]) / (2.0 * STEP_S), np.diff(motion, 2) / STEP_S**2
    first, linear = speed[:-1], STEP_S * acceleration[:-1]  # speed is first + linear u + square u^2 behind a knot
    square = 0.5 * STEP_S * np.diff(acceleration)
    with np.errstate(divide="ignore", invalid="ignore"):
        stable = -0.5 * (linear + np.copysign(np.sqrt(linear**2 - 4.0 * square * first), linear))
        roots, turn = np.concatenate([stable / square, first / stable]), -0.5 * linear / square
    knots = np.arange(len(first))
    times = np.tile(knots, 2) + roots, knots + turn
    return times[0][(roots > 0.0) & (roots < 1.0)], times[1][(turn > 0.0) & (turn < 1.0)]


class _Signal(NamedTuple):
    """A signal by row: ``matrix @ unknowns + known``."""

    matrix: Any
    known: Array


def _senses(
    felt: Array, weights: Array, spline: _Spline, group: _Group, about: _About
) -> tuple[Any, Array, list[_Signal]]:
    """Return the equalities that the organs' lags obey, their right sides, and the error of each sense.

    Unknown are the coefficients of the actuators, then the states of the lags.
    """
    from scipy import sparse

    n, wide = len(felt), spline.place.shape[1] * len(group.leads)
    unknowns = wide + n * sum(len(STAGES[sense < 3]) for sense in group.channels)
    mean = _delayed(np.array([0.5, 0.5]), n)
    rows, right, errors = [], [], []
    state = wide
    for sense in group.channels:
        terms = [(sense, 1.0, spline.acceleration if sense < 3 else spline.speed)]
        terms += [(channel, gravity, spline.place) for felt_by, channel, gravity in TILTS if felt_by == sense]
        parts = [
            sum(sparse.diags(gain * about.ways[:, channel, lead]) @ matrix for channel, gain, matrix in terms)
            for lead in group.leads
        ]
        matrix = -sparse.hstack(parts, format="csc")
        matrix.resize(n, unknowns)
        signal = _Signal(matrix, felt[:, sense] - about.felt[:, sense])
        for direct, lagged, lag_s in STAGES[sense < 3]:
            lag = sparse.eye(n, unknowns, state, format="csc")
            # The bilinear transform of T dx/dt + x = u: the mean of two rows on either side.
            change = _delayed(np.array([0.5 + lag_s * RATE_HZ, 0.5 - lag_s * RATE_HZ]), n)
            rows.append(change @ lag - mean @ signal.matrix)
            right.append(mean @ signal.known)
            signal = _Signal(direct * signal.matrix + lagged * lag, direct * signal.known)
            state += n
        share = weights[sense] / THRESHOLDS[sense]
        errors.append(_Signal(share * signal.matrix, share * signal.known))
    return sparse.vstack(rows, format="csc"), np.concatenate(right), errors


def _bounded(
    spline: _Spline, built: Built, group: _Group, about: _About, between: _Between, room: Array
) -> tuple[Any, Array]:
    """Return the bounds of actuators as rows of ``matrix @ coefficients <= most``, in shares of each range."""
    from scipy import sparse

    n = len(about.felt[::ROWS])
    bounds = ActuatorBounds.columns(built.bounds)
    nothing = sparse.csc_matrix((n, spline.place.shape[1]))
    matrices, most = [], []
    for actuator in (*group.leads, *group.follows):
        if actuator in group.leads:
            shares = {actuator: np.ones(n)}
        else:
            by_lead = np.einsum("kc,kcl->kl", about.slopes[::ROWS, actuator], about.ways[::ROWS])
            shares = {lead: by_lead[:, lead] for lead in group.leads}
        middle = 0.5 * (bounds.high[actuator] + bounds.low[actuator]) - built.neutral[actuator]
        for kind, offset, size in (
            (0, middle, 0.5 * (bounds.high[actuator] - bounds.low[actuator])),
            (1, 0.0, bounds.speed[actuator]),
            (2, 0.0, bounds.acceleration[actuator]),
        ):
            row = sparse.hstack(
                [
                    sparse.diags(shares[lead] / size) @ spline[kind][::ROWS] if lead in shares else nothing
                    for lead in group.leads
                ]
            )
            above, below = np.full(n, 1.0 + offset / size), np.full(n, 1.0 - offset / size)
            if actuator in group.follows:
                at = row @ about.coefficients[:, group.leads].T.ravel()
                if kind == 0:  # where it is, beyond what is linear in the others' positions
                    rest = about.places[::ROWS, actuator] / size - at
                    above, below = above - rest, below + rest
                if np.isfinite(room).any():  # the motion before has to be a solution
                    above, below = np.maximum(above, at), np.maximum(below, -at)
            elif kind == 0:
                at = about.places[::ROWS, actuator] / size
                above, below = np.minimum(above, at + room), np.minimum(below, room - at)
            times = between.get((kind, actuator), np.zeros(0))
            if len(times):
                own = _rows(times, spline.place.shape[1] + REST)[kind] / size
                none = sparse.csc_matrix(own.shape)
                row = sparse.vstack([row, sparse.hstack([own if lead == actuator else none for lead in group.leads])])
            matrices += [row, -row]
            for ends, end in ((above, 1.0 + offset / size), (below, 1.0 - offset / size)):
                most.append(np.append(ends, np.full(len(times), end)))
    return sparse.vstack(matrices), np.concatenate(most)


def _lines_of(built: Built, poses: Array) -> Array:
    """Return how near each crank is to one line with its rod, in shares of how near it may be."""
    kinematics = built.kinematics
    return np.asarray(kinematics.straightness(kinematics.of_frame(poses))[0] / MOST_STRAIGHT)


def _lines(spline: _Spline, built: Built, group: _Group, about: _About, room: Array) -> tuple[Any, Array]:
    """Return as such rows how near cranks may come to one line with their rods, where a pass may bring them there."""
    from scipy import sparse

    leads = group.leads
    bounds = ActuatorBounds.columns(built.bounds)
    half = 0.5 * (bounds.high - bounds.low)[leads]
    ways = np.minimum(np.repeat(room, ROWS)[: len(about.lines)], 2.0)
    matrices = [sparse.csc_matrix((0, spline.place.shape[1] * len(leads)))]
    most = [np.zeros(0)]
    for crank in leads:
        toward = about.toward[:, crank][:, leads]
        for side in (1.0, -1.0):
            near = side * about.lines[:, crank]
            rows = np.flatnonzero(near + ways * (np.abs(toward) @ half) > AIM)
            parts = [sparse.diags(side * toward[rows, k]) @ spline.place[rows] for k in range(len(leads))]
            matrices.append(sparse.hstack(parts))
            left = np.maximum(AIM - near[rows], 0.0)  # the motion before is always a solution
            most.append(left + side * np.sum(toward[rows] * about.places[rows][:, leads], axis=1))
    return sparse.vstack(matrices), np.concatenate(most)


def _felt(built: Built, groups: list[_Group], spline: _Spline, motion: Array, poses: Array) -> Array:
    """Return what acts on the occupant at the knots of a motion; not a number where its pose was not found."""
    about = _derived(built, groups, spline, motion, poses)
    felt = felt_on_platform(poses, about.speeds, about.accelerations[:, :3])
    felt[_missing(built, groups, spline.place @ motion[REST:], poses) > FOUND] = np.nan
    return felt


def _derived(built: Built, groups: list[_Group], spline: _Spline, motion: Array, poses: Array) -> _Derived:
    """Return the derivatives along a motion of the actuators, whose poses at the knots are known.

    They are not numbers where a pose has a neighbor that the actuators cannot reach.
    """
    _, speed, acceleration = (matrix @ motion[REST:] for matrix in spline)
    slopes = slopes_of(built, poses)
    ways = _ways(groups, np.nan_to_num(slopes))
    ways[~np.isfinite(slopes).all(axis=(1, 2))] = np.nan  # at the very end of what can be reached
    speeds = np.einsum("kca,ka->kc", ways, speed)
    at, before, after = (built.kinematics.inverse(poses + time * speeds) for time in (0.0, -NUDGE, NUDGE))
    bends = (before - 2.0 * at + after) / NUDGE**2
    return _Derived(slopes, ways, speeds, np.einsum("kca,ka->kc", ways, acceleration - bends), bends)


def _about(built: Built, groups: list[_Group], spline: _Spline, motion: Array, poses: Array) -> _About:
    """Return a motion of the actuators, whose poses at the knots are known, as the next program needs it."""
    slopes, ways, speeds, accelerations, bends = _derived(built, groups, spline, motion, poses)
    beyond = felt_on_platform(poses, speeds, accelerations[:, :3]) - _small(poses, speeds, accelerations)
    rest = _small(
        poses - np.einsum("kca,ka->kc", ways, spline.place @ motion[REST:]),
        np.zeros_like(poses),
        -np.einsum("kca,ka->kc", ways, bends),
    )
    lines, toward = np.zeros(bends.shape), np.zeros((*bends.shape, bends.shape[1]))
    if "crank" in built.kinematics.kinds:
        lines = _lines_of(built, poses)
        toward = _derivatives(lambda at: _lines_of(built, at), poses) @ ways
    return _About(
        beyond + rest, ways, slopes, lines, toward, built.kinematics.inverse(poses) - built.neutral, motion[REST:]
    )


def _poses(built: Built, groups: list[_Group], places: Array) -> Array:
    """Return the poses at which the actuators are this far from neutral.

    By Newton's method along a straight way from neutral, so that the pose is that of the branch on which neutral is;
    where that way leaves what can be reached, from the pose of the row before.
    """
    poses = np.zeros((len(places), 6))
    for share in WAY:
        for _ in range(NEWTON):
            poses = _nearer(built, groups, share * places, poses)
    poses = _found(built, groups, places, poses)
    lost = _missing(built, groups, places, poses) > FOUND
    for row in np.flatnonzero(lost):
        if row and not lost[row - 1]:
            at = places[row : row + 1]
            poses[row] = _found(built, groups, at, poses[row - 1 : row])[0]
            lost[row] = _missing(built, groups, at, poses[row : row + 1])[0] > FOUND
    return poses


def _found(built: Built, groups: list[_Group], places: Array, poses: Array) -> Array:
    """Return poses with those nearer that are not yet at these positions."""
    poses = poses.copy()
    for _ in range(MORE):
        rows = _missing(built, groups, places, poses) > FOUND
        if not rows.any():
            break
        poses[rows] = _nearer(built, groups, places[rows], poses[rows])
    return poses


def _missing(built: Built, groups: list[_Group], places: Array, poses: Array) -> Array:
    """Return how far the independent actuators are from these positions at poses [m or rad]."""
    leads = sorted(lead for group in groups for lead in group.leads)
    missing: Array = np.abs(places + built.neutral - built.kinematics.inverse(poses))[:, leads].max(axis=1)
    return np.nan_to_num(missing, nan=np.inf)


def _nearer(built: Built, groups: list[_Group], places: Array, poses: Array) -> Array:
    """Return the poses after one step of Newton's method, as much of it as the actuators can reach."""
    missing = places + built.neutral - built.kinematics.inverse(poses)
    slopes = np.nan_to_num(slopes_of(built, poses))  # at the very end of what can be reached
    step = np.einsum("kca,ka->kc", _ways(groups, slopes), missing)
    nearer = poses
    for part in PARTS[::-1]:
        tried = poses + part * step
        nearer = np.where(np.isfinite(built.kinematics.inverse(tried)).all(axis=1, keepdims=True), tried, nearer)
    return nearer


def _ways(groups: list[_Group], slopes: Array) -> Array:
    """Return the derivatives of the pose by the actuators' positions, (n, 6, actuators); 0 for those that follow."""
    ways = np.zeros((len(slopes), 6, slopes.shape[1]))
    for group in groups:
        if group.leads:
            part = np.linalg.pinv(slopes[:, group.leads][:, :, group.moved])
            ways[:, np.array(group.moved)[:, None], np.array(group.leads)[None, :]] = part
    return ways


def _small(poses: Array, speeds: Array, accelerations: Array) -> Array:
    """Return what acts on the occupant for small angles: linear in the motion."""
    felt = np.hstack([accelerations[:, :3], speeds[:, 3:]])
    for sense, channel, gravity in TILTS:
        felt[:, sense] += gravity * poses[:, channel]
    return felt


def _spline(n: int) -> _Spline:
    return _rows(np.arange(n) / ROWS, n // ROWS + 3)


def _rows(times: Array, wide: int) -> _Spline:
    """Return the values of splines of so many coefficients at any time [knots]."""
    from scipy import sparse

    at = np.minimum(times.astype(np.int64), wide - 4)
    u = times - at
    rows = np.tile(np.arange(len(times)), 4)

    def matrix(*weights: Array) -> Any:
        places = np.concatenate([at + k for k in range(4)])
        return sparse.csc_matrix((np.concatenate(weights), (rows, places)), shape=(len(times), wide))[:, REST:]

    return _Spline(
        matrix((1 - u) ** 3 / 6, (3 * u**3 - 6 * u**2 + 4) / 6, (1 + 3 * u + 3 * u**2 - 3 * u**3) / 6, u**3 / 6),
        matrix(*(w / (2 * STEP_S) for w in (-((1 - u) ** 2), 3 * u**2 - 4 * u, 1 + 2 * u - 3 * u**2, u**2))),
        matrix(*(w / STEP_S**2 for w in (1 - u, 3 * u - 2, 1 - 3 * u, u))),
    )


def _delayed(weights: Array, n: int) -> Any:
    """Return a polynomial in z^-1 as a matrix for signals that begin at rest."""
    from scipy import sparse

    return sparse.diags([np.full(n, weight) for weight in weights], [-k for k in range(len(weights))], shape=(n, n))


def _groups(built: Built) -> list[_Group]:
    """Return the groups of channels of a platform."""
    slopes = slopes_of(built, np.zeros((1, 6)))[0]
    driven: npt.NDArray[np.bool_] = np.abs(slopes) > LEAST
    sets: list[set[int]] = [{channel} for channel in range(6)]
    links: list[set[int]] = [{sense, channel} for sense, channel, _ in TILTS]
    for together in links + [set(np.flatnonzero(row).tolist()) for row in driven]:
        joined = [group for group in sets if group & together]
        sets = [group for group in sets if group not in joined] + [set().union(*joined)]
    groups = []
    for channels in map(sorted, sets):
        actuators = [row for row in range(len(driven)) if driven[row, channels].any()]
        leads: list[int] = []
        for actuator in actuators:  # it leads if it is independent of those before it
            if np.linalg.matrix_rank(slopes[[*leads, actuator]], tol=1e-6) > len(leads):
                leads.append(actuator)
        moved = [channel for channel in channels if driven[:, channel].any()]
        groups.append(_Group(channels, moved, leads, [each for each in actuators if each not in leads]))
    return groups
