"""A drive in short windows: the integrals of its channels, and the car's track."""

import itertools
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

WINDOW_S = 0.5
FEWEST = 4  # frames needed in a window
HELD_S = 0.3  # a car that keeps its position for longer is at rest
SLOW_M_S = 1.0
MOVING_M_S = 3.0
FASTEST_REVERSE_M_S = 25.0
LEAST_M_S = 0.5  # smallest informative change in speed or course
CORRELATION = 0.8

FELT = frozenset(("surge", "sway", "heave"))


class Drive(NamedTuple):
    """A source's report, frame by frame."""

    time: Array  # [s], by the clock that the drive is examined with
    motion: npt.NDArray[np.void]  # MOTION_DTYPE
    position: Array  # (n, 3) north, east, down [m]; NaN or constant if not reported
    velocity: Array  # (n, 3) [m/s]
    part: npt.NDArray[np.intp]  # changes after each discontinuity
    velocity_is_independent: bool = True  # independent of the attitude
    felt: frozenset[str] = FELT  # of surge, sway and heave, those that are independent of velocity and attitude
    rates_are_independent: bool = True  # independent of the attitude
    travel: Array | None = None  # (n, 4) of the suspension of each wheel, in their order [m]; None if nothing is said


class Windows(NamedTuple):
    """Parts of the drive without a discontinuity."""

    first: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]
    start: Array  # [s]
    span: Array  # [s]
    earliest: Array  # start of the uninterrupted run of frames that holds the window [s]
    latest: Array  # end of that run [s]


class Track(NamedTuple):
    """The car's track, from its position or integrated from its velocity."""

    time: Array
    place: Array  # (n, 3) north, east, down [m]

    def velocity(self, w: Windows, late_s: float = 0.0) -> Array:
        """Return the mean velocity in each window [m/s]; NaN outside the run of frames."""
        edges = np.stack([w.start, w.start + w.span]) - late_s
        moved = [np.diff(np.interp(edges, self.time, axis), axis=0)[0] for axis in self.place.T]
        inside = (edges[0] >= w.earliest - 1e-9) & (edges[1] <= w.latest + 1e-9)
        return np.asarray(np.where(inside, np.array(moved) / w.span, np.nan).T)


def windows_of(drive: Drive) -> Windows:
    """Return the windows of a drive, except those across a discontinuity or a gap."""
    time, steps = drive.time, np.diff(drive.time)
    broken = (np.diff(drive.part) != 0) | ~((steps >= 0.0) & (steps < WINDOW_S))
    cuts = [0, *(np.flatnonzero(broken) + 1).tolist(), len(time)]
    rows: list[tuple[int, int, float, float]] = []  # first and last frame; start and end of the run
    for begin, end in itertools.pairwise(cuts):
        run, start = time[begin:end], 0
        while (last := max(start + 1, int(np.searchsorted(run, run[start] + WINDOW_S)))) < len(run):
            if last - start >= FEWEST:
                rows.append((begin + start, begin + last, run[0], run[-1]))
            start = last
    first, last_, earliest, latest = np.array(rows).reshape(-1, 4).T
    a, b = first.astype(np.intp), last_.astype(np.intp)
    return Windows(a, b, time[a], time[b] - time[a], earliest, latest)


def moves(drive: Drive, w: Windows) -> bool:
    """Say whether the position is reported and changes."""
    moved = drive.position[w.last] - drive.position[w.first]
    return bool(len(moved)) and bool(np.isfinite(moved).all()) and bool(np.linalg.norm(moved, axis=1).max() > 1.0)


def by_position(drive: Drive) -> Track:
    """Return the track from the position, without frames that repeat the position of a moving car."""
    same = np.concatenate([[False], (np.diff(drive.position, axis=0) == 0.0).all(axis=1)])
    since = np.maximum.accumulate(np.where(same, 0, np.arange(len(same))))  # the first frame with this position
    lasts = np.bincount(since, weights=np.concatenate([[0.0], np.diff(drive.time)]) * same, minlength=len(same))
    new = ~same | (lasts[since] > HELD_S)
    return Track(drive.time[new], drive.position[new])


def by_velocity(drive: Drive) -> Track:
    """Return the track integrated from the velocity."""
    return Track(drive.time, np.stack([summed(drive, axis) for axis in drive.velocity.T], axis=-1))


def integral(drive: Drive, w: Windows, values: Array) -> Array:
    """Return the integral of a channel over each window, by trapezoids."""
    total = summed(drive, values)
    return np.asarray(total[w.last] - total[w.first])


def summed(drive: Drive, values: Array) -> Array:
    """Return the integral of a channel up to each frame."""
    steps = np.diff(drive.time) * (values[1:] + values[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def mean(drive: Drive, w: Windows, values: Array) -> Array:
    """Return the mean of a channel over each window."""
    return integral(drive, w, values) / w.span


def axes(motion: npt.NDArray[np.void]) -> tuple[Array, Array]:
    """Return the forward axis and the down axis of the body in north, east, down."""
    sr, cr = np.sin(motion["roll"]), np.cos(motion["roll"])
    sp, cp = np.sin(motion["pitch"]), np.cos(motion["pitch"])
    sy, cy = np.sin(motion["yaw"]), np.cos(motion["yaw"])
    forward = np.stack([cp * cy, cp * sy, -sp], axis=-1)
    down = np.stack([cr * sp * cy + sr * sy, cr * sp * sy - sr * cy, cr * cp], axis=-1)
    return forward, down


def following(w: Windows) -> Mask:
    """Return, for every window but the first, whether it begins where the one before ends."""
    return np.asarray(w.first[1:] == w.last[:-1])


def gained(drive: Drive, w: Windows, values: Array) -> Array:
    """Return what an acceleration adds to the mean velocity from each window to the next [m/s]."""
    return np.asarray(np.diff(mean(drive, w, summed(drive, values))))


def changes(w: Windows, velocity: Array, slip: Array) -> tuple[Array, Array]:
    """Return the change of velocity from each window to the next, along the nose and to its right [m/s].

    Units: `slip` [rad].
    """
    speed = np.linalg.norm(velocity, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        going = velocity / speed[:, None]
        along = going[1:] + going[:-1]
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        gain = np.diff(velocity, axis=0)
        level = np.hypot(along[:, 0], along[:, 1])
        ahead = np.einsum("ij,ij->i", gain, along)
        right = (gain[:, 1] * along[:, 0] - gain[:, 0] * along[:, 1]) / level
        straight = np.einsum("ij,ij->i", going[1:], going[:-1]) > 0.07
        apart = (slip[1:] - slip[:-1] + np.pi) % (2 * np.pi) - np.pi
        nose = slip[:-1] + apart / 2
        good = following(w) & (np.minimum(speed[1:], speed[:-1]) > SLOW_M_S) & straight & (np.abs(apart) < 0.5)
    cosine, sine = np.cos(nose), np.sin(nose)
    return (
        np.where(good, ahead * cosine + right * sine, np.nan),
        np.where(good & (np.minimum(speed[1:], speed[:-1]) > MOVING_M_S), right * cosine - ahead * sine, np.nan),
    )


def climbs(w: Windows, velocity: Array, down: Array) -> Array:
    """Return the change of velocity along the body's up axis from each window to the next [m/s]."""
    gain = np.diff(velocity, axis=0)
    return np.asarray(np.where(following(w), -np.einsum("ij,ij->i", down[w.first[1:]], gain), np.nan))


def turns(forward: Array, down: Array) -> Array:
    """Return the accumulated turn of the attitude about the body's axes at each frame, shape (n, 3) [rad]."""
    right = np.cross(down, forward)
    body = np.stack([forward, right, down], axis=1)
    relative = np.einsum("nij,nkj->nik", body[:-1], body[1:])  # the next frame's axes in this one's
    turn = np.stack(
        [
            relative[:, 2, 1] - relative[:, 1, 2],
            relative[:, 0, 2] - relative[:, 2, 0],
            relative[:, 1, 0] - relative[:, 0, 1],
        ],
        axis=-1,
    )
    return np.concatenate([np.zeros((1, 3)), np.cumsum(turn / 2, axis=0)])


Verdict = Literal["ok", "wrong", "unknown"]

WINDOWS = 6  # informative windows needed for a verdict
SLOPE = (0.65, 1.35)  # range of slopes that counts as agreement
FAR = 3.0  # in multiples of `least`: a deviation that noise does not explain
LATE_S = 0.15  # no source is delayed as much by design
SHIFTS_S = np.round(np.arange(-0.6, 0.601, 0.05), 2)
LOOSE = 0.6  # correlation above which a slope near 1 is no other quantity's
SURE = 4.0  # in standard errors
NOTICED = 0.005  # usual share of squares that is left unexplained without a delay
# Blamed together if nothing tells which it is.
OPEN = ("position or attitude", "acceleration or attitude", "acceleration or velocity")
TURNED_SIGN = "the sign is turned"
THROUGHOUT = "too much throughout"


class Finding(NamedTuple):
    """The answer to one question."""

    name: str
    verdict: Verdict
    evidence: str
    maneuver: str = ""  # the maneuver that would settle the question
    shown: bool = True  # whether the drive has the maneuvers that the question needs
    pace: float | None = None  # how many times too fast a wrong clock runs
    misfit: float = 0.0  # squared deviation, as a share of the expected values' squares; 0 if these are unknown
    blames: str = ""  # the quantity that must be wrong, if not the channel itself
    late: float = 0.0  # delay for which a channel is wrong, negative if it is early [s]
    digest: float = 0.0  # tells the motion that was examined from that of other readings
    times: float = 0.0  # how many times what it should be a channel is that differs by nothing else; 0 if it does not


class Relation(NamedTuple):
    """A channel's values in each window, and the expected ones."""

    name: str
    found: Array
    expected: Callable[[float], Array]  # takes the channel's delay [s]; NaN where unknown
    least: float  # smallest expected value that is informative
    unit: str
    maneuver: str
    units: Mapping[float, str] = {}  # by factor, which reveals a wrong unit
    others: Mapping[str, Array] = {}  # other quantities that the channel may have been filled with
    offset: float = 0.0  # largest allowed constant offset; 0: not checked
    late_s: float = LATE_S  # largest allowed delay [s]; 0: not checked
    far: float = FAR  # allowed deviation whatever the noise, in multiples of `least`
    noticed: float = NOTICED  # share of unexplained squares below which there is no evidence for a delay
    against: str = ""  # the quantity to blame if the channel comes too early


def open_(name: str, evidence: str, maneuver: str = "") -> Finding:
    """Return a finding that the drive cannot answer the question."""
    return Finding(name, "unknown", evidence, maneuver, False)


def compare(r: Relation) -> Finding:
    """Compare a channel with its expected values, in the windows where these are known."""
    x, y = _known(r.expected(0.0), r.found)
    strong = int((np.abs(x) > r.least).sum())
    far = int((np.abs(y - x) > r.far * r.least).sum())
    if strong < WINDOWS:
        most = np.abs(x).max(initial=0.0)
        if far >= WINDOWS and far > len(x) / 10:
            found = f"up to {np.abs(y).max():.3g} {r.unit} in {WINDOW_S} s where there can be no more than {most:.3g}"
            return Finding(r.name, "wrong", f"{found}: it follows something else{_instead(r)}")
        evidence = f"only {strong} windows of {WINDOW_S} s with more than {r.least:g} {r.unit}; the most was {most:.3g}"
        return open_(r.name, evidence, r.maneuver)
    return _judged(r, x, y, strong, far)._replace(misfit=float((y - x) @ (y - x) / (x @ x)))


def _judged(r: Relation, x: Array, y: Array, strong: int, far: int) -> Finding:
    """Judge the values `y`, expected to be `x`, of which `strong` are informative and `far` deviate beyond noise."""
    slope, correlation = _slope(x, y), _correlation(x, y)
    evidence = (
        f"slope {slope:+.2f}, correlation {correlation:+.2f} over {strong} windows with more than {r.least:g} {r.unit}"
    )
    if r.offset:
        off = float(np.median(y - x))
        if abs(off) > r.offset and abs(_correlation(x, y - off)) > abs(correlation):
            return Finding(r.name, "wrong", f"{evidence}: {off / WINDOW_S:+.1f} m/s^2 {THROUGHOUT}")
    late = delay(r)
    if late <= -r.late_s < 0.0:
        told = f"too early, or {r.against} too late" if r.against else "too early"
        return Finding(r.name, "wrong", f"{evidence}: it comes about {-late:.2f} s {told}", blames=r.against, late=late)
    if late >= r.late_s > 0.0:
        return Finding(r.name, "wrong", f"{evidence}: it comes about {late:.2f} s too late", late=late)
    # Noise in the expected values makes the slope smaller than the ratio of sizes.
    if correlation > CORRELATION and any(SLOPE[0] < k < SLOPE[1] for k in (slope, slope / correlation)):
        note = f", about {abs(late):.2f} s {'late' if late > 0 else 'early'}" if late else ""
        return Finding(r.name, "ok", evidence + note)
    if correlation < -CORRELATION:
        return Finding(r.name, "wrong", f"{evidence}: {TURNED_SIGN}{_unit(r, -slope)}")
    if correlation > CORRELATION:
        evidence += f": {slope:.3g} times what it should be{_unit(r, slope)}"
        return Finding(r.name, "wrong", evidence, times=slope)
    if y @ y < 0.04 * (x @ x):
        return Finding(r.name, "wrong", f"{evidence}: it hardly moves")
    instead = _instead(r)
    # What follows on the average, but not in each window, is disturbed: a rally car's nose swings about its course.
    follows = correlation > LOOSE and SLOPE[0] < slope < SLOPE[1]
    no_noise = far >= 2 * WINDOWS or _no_noise(x, y - x, r.least)
    if instead or _refuted(x, y) or (no_noise and not follows):
        return Finding(r.name, "wrong", f"{evidence}: it follows something else{instead}")
    return Finding(r.name, "unknown", f"{evidence}: neither agreement nor its opposite", r.maneuver)


def _known(x: Array, y: Array) -> tuple[Array, Array]:
    known = np.isfinite(x) & np.isfinite(y)
    return x[known], y[known]


def _slope(x: Array, y: Array) -> float:
    return float(x @ y / (x @ x))


def _correlation(x: Array, y: Array) -> float:
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0.0 else 0.0


def _refuted(x: Array, y: Array) -> bool:
    """Say whether noise, in the found or expected values, would rarely reduce a slope of 1 by so much."""
    largest = 0.0
    for a, b in ((x, y), (y, x)):
        slope = _slope(a, b)
        error = float(np.sqrt(((b - slope * a) ** 2).sum() / max(1, len(a) - 1) / (a @ a)))
        if slope + SURE * error > 1.0 or slope > SLOPE[0]:
            return False
        largest = max(largest, slope)
    rest = y - x
    steady = _correlation(rest[1:], rest[:-1]) > 0.2  # correlated from window to window, as noise is not
    return steady or largest < 0.5 * SLOPE[0]


def _no_noise(x: Array, rest: Array, least: float) -> bool:
    """Say whether the deviations are far larger where much is expected than elsewhere, as those of noise are not."""
    quiet, strong = np.abs(x) < 0.5 * least, np.abs(x) > least
    if quiet.sum() < WINDOWS:
        return False
    return float(np.mean(rest[strong] ** 2)) > SURE**2 * float(np.mean(rest[quiet] ** 2))


def _unit(r: Relation, slope: float) -> str:
    named = [name for factor, name in r.units.items() if 0.92 < slope / factor < 1.08]
    return f" ({named[0]})" if named else ""


def _instead(r: Relation) -> str:
    """Return another quantity that the channel follows closely, or an empty text."""
    for name, other in r.others.items():
        x, y = _known(other, r.found)
        if int((np.abs(x) > r.least).sum()) >= WINDOWS and abs(_correlation(x, y)) > 0.9:
            return f", {name}{' with its sign turned' if _correlation(x, y) < 0 else ''}"
    return ""


def delay(r: Relation) -> float:
    """Return the channel's delay [s], negative if early, if that explains it better; else 0."""
    if not r.late_s:
        return 0.0
    x, y = _known(r.expected(0.0), r.found)
    here = 1.0 - _correlation(x, y) ** 2
    if here < r.noticed:
        return 0.0
    rows = np.array([r.expected(float(shift)) for shift in SHIFTS_S])
    known = np.isfinite(rows).all(axis=0) & np.isfinite(r.found)
    if int((np.abs(rows[len(rows) // 2][known]) > r.least).sum()) < WINDOWS:
        return 0.0
    fits = np.array([_correlation(row[known], r.found[known]) for row in rows])
    left = 1.0 - np.sign(fits) * fits**2
    best = int(np.argmin(left))
    middle = len(rows) // 2
    if left[best] > 0.5 * left[middle - 1 : middle + 2].min() or fits[best] < CORRELATION:
        return 0.0
    return float(SHIFTS_S[best])
