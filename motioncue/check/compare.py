"""Comparison of a channel with its expected values: agreement, sign, unit, delay, other quantity."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from motioncue.check.windows import CORRELATION, WINDOW_S, Array

__all__ = ["Finding", "Relation", "compare", "delay"]

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
    """Compare a channel with its expected values, in the windows where these are known.

    Parameters
    ----------
    r : Relation
        The channel and its expected values.
    """
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
            return Finding(r.name, "wrong", f"{evidence}: {off / WINDOW_S:+.1f} m/s^2 too much throughout")
    late = delay(r)
    if late <= -r.late_s < 0.0:
        told = f"too early, or {r.against} too late" if r.against else "too early"
        return Finding(r.name, "wrong", f"{evidence}: it comes about {-late:.2f} s {told}", blames=r.against)
    if late >= r.late_s > 0.0:
        return Finding(r.name, "wrong", f"{evidence}: it comes about {late:.2f} s too late")
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
    """Return the channel's delay [s], negative if early, if that explains it better; else 0.

    Parameters
    ----------
    r : Relation
        The channel and its expected values.
    """
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


def relation(**fields: Any) -> Finding:
    """Compare the relation with these fields."""
    return compare(Relation(**fields))
