"""Whether the simulator's own time can be right, and by which clock a drive is to be examined.

If a clock runs k times too fast, the integral of velocity is k times the change of position, that of surge k times the
change of speed, and that of the yaw rate k times the turn of the attitude.  A wrong unit affects one of these relations
only.
"""

import numpy as np

from motioncue.check.compare import WINDOWS, Finding
from motioncue.check.windows import SLOW_M_S, WINDOW_S, Array, Drive, Mask, axes, integral, turns, windows_of

__all__ = ["NAME", "judged"]

NAME = "frame time"
SLOWEST_S = 0.4  # no simulator's frame interval is as long
FASTEST_S = 0.0002  # nor as short
FRAMES = 25  # length of a window without a reliable clock
RIGHT = (0.8, 1.25)  # pace of a correct clock
AGREED = 1.2  # largest ratio of two paces that agree
GROWN = 3.0  # growth of reported durations that shows that they are times


def judged(own: Array | None, arrival: Array | None, drive: Drive) -> tuple[Finding, Array | None]:
    """Judge the simulator's clock.

    Parameters
    ----------
    own : ndarray, optional
        The simulator's time of each frame [s], if it reports one.
    arrival : ndarray, optional
        Arrival of each frame [s], if known.
    drive : Drive
        The frames' contents; their time is not used.

    Returns
    -------
    finding : Finding
        About `own`, or about `arrival` if there is no own time.
    time : ndarray or None
        Times by which to examine the drive; None if no clock is right.
    """
    clock = arrival if own is None else own
    if clock is None:
        return Finding(NAME, "unknown", "no time at all"), None
    steps = np.diff(clock)
    typical = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    wrong = _absurd(steps, typical)
    paces = {} if wrong else _paces(drive, clock, typical)
    came = None if own is None or arrival is None else _median_ratio(own, arrival)
    pace = _agreed(paces) or _confirmed(paces, came)
    evidence = f"a frame takes {1e3 * typical:.3g} ms"
    if paces:
        evidence += ", " + ", ".join(f"{name} {value:.2f}" for name, value in paces.items()) + " times the pace"
    if not wrong and pace is not None and not RIGHT[0] < pace < RIGHT[1]:
        wrong = f"it runs {pace:.3g} times as fast as the car moves"
    if came is not None:
        evidence += f", {came:.2f} seconds in each of arrival"
        if not wrong and pace is None and not 0.5 < came < 2.0:
            return Finding(NAME, "unknown", f"{evidence}: slow motion, or another unit", "drive", False), clock
    if not wrong:
        told = any(RIGHT[0] < value < RIGHT[1] for value in paces.values()) or came is not None
        return Finding(NAME, "ok" if told else "unknown", evidence, "" if told else "accelerate and turn", told), clock
    other = arrival if own is not None else None
    if other is None and pace is not None:
        other = clock / pace
    return Finding(NAME, "wrong", f"{evidence}: {wrong}", pace=pace), other


def _absurd(steps: Array, typical: float) -> str:
    """Return why the frames' durations cannot be right by themselves; empty if they can."""
    forward = steps[steps >= 0.0]
    tenth = max(1, len(forward) // 10)
    grows = len(forward) >= 20 and float(np.mean(np.diff(forward) >= 0.0)) > 0.95
    if grows and np.median(forward[-tenth:]) > GROWN * max(float(np.median(forward[:tenth])), 1e-9):
        unit = ", in milliseconds" if np.median(np.diff(forward)) > 1.0 else ""
        return f"it grows from frame to frame: it is the time of the frame, not its duration{unit}"
    if typical > SLOWEST_S:
        plausible = typical * 1e-3 < SLOWEST_S
        return f"a frame cannot take {typical:.3g} s" + (": milliseconds, taken as seconds" if plausible else "")
    if 0.0 < typical < FASTEST_S:
        return f"a frame cannot take {typical * 1e3:.3g} ms"
    return ""


def _median_ratio(own: Array, arrival: Array) -> float:
    """Return the pace of one clock relative to the other, robust against single jumps."""
    a, b = np.diff(own), np.diff(arrival)
    good = (a >= 0.0) & (b >= 0.0) & (a < 1.0)
    return float(a[good].sum() / b[good].sum()) if b[good].sum() > 0.0 else 0.0


def _paces(drive: Drive, clock: Array, typical: float) -> dict[str, float]:
    """Return the clock's pace by each relation that the drive shows clearly."""
    if typical <= 0.0:
        return {}
    scale = WINDOW_S / FRAMES / typical
    drive = drive._replace(time=clock * scale)
    w = windows_of(drive)
    out: dict[str, float] = {}
    if np.isfinite(drive.position).all() and np.isfinite(drive.velocity).all():
        moved = drive.position[w.last] - drive.position[w.first]
        said = np.array([integral(drive, w, axis) for axis in drive.velocity.T]).T.reshape(-1, 3)
        moving = np.linalg.norm(moved, axis=1) > SLOW_M_S * WINDOW_S
        _add(out, "velocity", said[moving].ravel(), moved[moving].ravel(), moving)
    if drive.acceleration_is_independent:
        speed = drive.motion["speed"]
        change = speed[w.last] - speed[w.first]
        fast = (np.minimum(speed[w.last], speed[w.first]) > SLOW_M_S) & (np.abs(change) > 0.3)
        _add(out, "surge", integral(drive, w, drive.motion["surge"])[fast], change[fast], fast)
    if drive.rates_are_independent:
        total = turns(*axes(drive.motion))[:, 2]
        turned = total[w.last] - total[w.first]
        turning = np.abs(turned) > 0.02
        _add(out, "yaw rate", integral(drive, w, drive.motion["yaw_rate"])[turning], turned[turning], turning)
    return {name: value / scale for name, value in out.items()}


def _add(out: dict[str, float], name: str, found: Array, expected: Array, shown: Mask) -> None:
    """Add the slope of a relation if it has enough windows and little scatter."""
    if shown.sum() < WINDOWS:
        return
    size = float(np.sqrt((found @ found) * (expected @ expected)))
    if size > 0.0 and float(found @ expected) / size > 0.9:
        out[name] = float(found @ expected) / float(expected @ expected)


def _agreed(paces: dict[str, float]) -> float | None:
    """Return the pace that at least two relations agree on; of several, the nearest to 1."""
    values = list(paces.values())
    pairs = [(a * b) ** 0.5 for n, a in enumerate(values) for b in values[n + 1 :] if 1 / AGREED < a / b < AGREED]
    return min(pairs, key=lambda pace: abs(np.log(pace)), default=None)


def _confirmed(paces: dict[str, float], came: float | None) -> float | None:
    """Return the pace by the arrivals if a relation shows it too; slow motion shows in none."""
    if came is None or RIGHT[0] < came < RIGHT[1]:
        return None
    return came if any(1 / AGREED < came / pace < AGREED for pace in paces.values()) else None
