"""Evidence on whether a source's channels agree with each other, and with where the car goes.

Everything is compared over short windows, in which noise and the spacing of frames average out: what a channel sums up
to, against what position and velocity say it should be.  A slope of 1 is agreement, -1 a wrong sign.  Where the drive
has not shown enough, the answer is that it cannot be told, with the manoeuvre that would.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.analysis.windows import (
    CORRELATION,
    LEAST_M_S,
    MOVING_M_S,
    WINDOW_S,
    Array,
    Drive,
    Windows,
    axes,
    following,
    heaving,
    integral,
    mean,
    reversing,
    speeds,
    surging,
    swaying,
    track_of,
    turns,
    windows_of,
)
from motioncue.motion import GRAVITY

__all__ = ["Finding", "examine"]

Verdict = Literal["ok", "wrong", "unknown"]

WINDOWS = 6  # that show something, for any verdict
STANDING_M_S = 0.1
SLOPE = (0.65, 1.35)  # taken as agreement
SLOPING = 0.02  # of slope: a road that climbs or falls
LOUD = 5.0  # so many times the least there is no noise to blame


class Finding(NamedTuple):
    """The answer to one question."""

    name: str
    verdict: Verdict
    evidence: str
    manoeuvre: str = ""  # that would settle it


def examine(drive: Drive) -> list[Finding]:
    """Return a finding for each question; one that the drive has not answered is there too.

    Parameters
    ----------
    drive : Drive
        At least two frames.
    """
    windows = windows_of(drive)
    track = track_of(drive, windows)
    windows = windows._replace(back=reversing(drive, windows, track))
    questions: tuple[Callable[[Drive, Windows, Any], Finding], ...] = (
        _place,
        _nose,
        _upright,
        _surge,
        _sway,
        _heave,
        _gravity,
        _pitch,
        _lean,
        _heading,
        _rates,
    )
    return [question(drive, windows, track) for question in questions]


def _compare(
    name: str,
    found: Array,
    expected: Array,
    least: float,
    unit: str,
    manoeuvre: str,
    *,
    follows: npt.NDArray[np.bool_] | None = None,
) -> Finding:
    """Compare what a channel gave with what it should have, in windows where that is at least `least`.

    Where it is said which windows follow the one before, a channel that fits its neighbour better is no agreement.
    """
    shown = np.isfinite(found) & np.isfinite(expected)
    strong = int((np.abs(expected[shown]) > least).sum())
    if strong < WINDOWS:
        largest = np.abs(expected[shown]).max(initial=0.0)
        evidence = f"only {strong} windows of {WINDOW_S} s with more than {least:g} {unit}; the most was {largest:.3g}"
        return Finding(name, "unknown", evidence, manoeuvre)
    x, y = expected[shown], found[shown]
    slope = float(x @ y / (x @ x))
    correlation = float(x @ y / np.sqrt((x @ x) * (y @ y))) if y.any() else 0.0
    evidence = (
        f"slope {slope:+.2f}, correlation {correlation:+.2f} over {strong} windows with more than {least:g} {unit}"
    )
    if SLOPE[0] < slope < SLOPE[1] and correlation > CORRELATION:
        moved = "" if follows is None else _moved(found, expected, follows)
        return Finding(name, "unknown" if moved else "ok", evidence + moved)
    if correlation < -CORRELATION:
        return Finding(name, "wrong", f"{evidence}: the sign is turned")
    if correlation > CORRELATION:
        return Finding(name, "wrong", f"{evidence}: another unit or scale")
    if y @ y < 0.04 * (x @ x):
        return Finding(name, "wrong", f"{evidence}: it hardly moves")
    if abs(correlation) < 0.7 and int((np.abs(x) > LOUD * least).sum()) >= WINDOWS:
        return Finding(name, "wrong", f"{evidence}: it follows something else")
    return Finding(name, "unknown", f"{evidence}: neither agreement nor its opposite", manoeuvre)


def _moved(found: Array, expected: Array, follows: npt.NDArray[np.bool_]) -> str:
    """Say whether what was found fits the window before, or after, clearly better than its own."""
    pairs = ((found[1:], expected[1:]), (found[1:], expected[:-1]), (found[:-1], expected[1:]))
    shown = follows & np.all([np.isfinite(values) for pair in pairs for values in pair], axis=0)
    if shown.sum() < WINDOWS:
        return ""
    here, late, early = (
        float(x[shown] @ y[shown] / np.sqrt((x[shown] @ x[shown]) * (y[shown] @ y[shown]))) for x, y in pairs
    )
    if here > 0.995 or 1.0 - max(late, early) > (1.0 - here) / 2:
        return ""
    return f": but it fits better {WINDOW_S} s {'later' if late > early else 'earlier'}"


def _place(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether the position moves as the velocity says, in world axes."""
    name, manoeuvre = "velocity and position", "drive at more than 3 m/s, and turn by 30 degrees or more"
    moved = drive.position[w.last] - drive.position[w.first]
    if not len(moved) or not np.isfinite(moved).all() or not np.isfinite(drive.velocity).all():
        return Finding(name, "unknown", "the source says no position or no velocity", "")
    said = np.array([integral(drive, w, drive.velocity[:, axis]) for axis in range(3)]).T
    level = _compare(name, said[:, :2].ravel(), moved[:, :2].ravel(), 0.5 * MOVING_M_S, "m", manoeuvre)
    upwards = _compare(name, said[:, 2], moved[:, 2], 0.15, "m upwards", manoeuvre)
    # On a flat road nothing upwards is shown, nor needed.
    return upwards if upwards.verdict == "wrong" else level


def _nose(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether the nose points where the car goes, whatever the heading."""
    name, manoeuvre = "attitude and course", "drive forward at more than 3 m/s and turn by 30 degrees or more"
    if track is None:
        return Finding(name, "unknown", "neither position nor a velocity in world axes", "")
    forward, _ = axes(drive.motion)
    middle = (w.first + w.last) // 2
    moving = (speeds(w, track) > MOVING_M_S) & ~w.back
    reverse = f", {int(w.back.sum())} in reverse" if w.back.any() else ""
    if moving.sum() < WINDOWS:
        evidence = f"{int(moving.sum())} windows forward above {MOVING_M_S:g} m/s{reverse}"
        if w.back.sum() >= WINDOWS:
            evidence += ": the car reversed, or its front is taken for its back"
        return Finding(name, "unknown", evidence, manoeuvre)
    going = track[moving] / np.linalg.norm(track[moving], axis=1, keepdims=True)
    cosine = np.einsum("ij,ij->i", forward[middle][moving], going)
    course = np.unwrap(np.arctan2(going[:, 1], going[:, 0]))
    turned = float(np.degrees(np.ptp(course)))
    low, high = np.quantile(cosine, [0.1, 0.9])
    evidence = f"cosine between nose and course {low:+.3f} to {high:+.3f}, course turned by {turned:.0f} degrees"
    evidence += reverse
    if low < 0.9 and turned >= 30.0:
        backwards = " (or the car was reversing)" if high < -0.9 else ""
        return Finding(name, "wrong", f"{evidence}: the nose does not follow the course{backwards}")
    if low < 0.9 or turned < 30.0:
        return Finding(name, "unknown", evidence, manoeuvre)
    return Finding(name, "ok", evidence)


def _upright(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether the car is the right way up most of the time."""
    _, down = axes(drive.motion)
    share = float(np.mean(down[:, 2] > 0.8))
    evidence = f"upright within 37 degrees for {share:.0%} of the frames"
    if share < 0.5:
        return Finding("up", "wrong", evidence)
    return Finding("up", "ok" if share > 0.9 else "unknown", evidence, "" if share > 0.9 else "drive on the wheels")


def _surge(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether surge sums up to the change of speed."""
    surge, change = surging(drive, w)
    change[w.back] = np.nan
    manoeuvre = "accelerate and brake in a straight line"
    return _compare("surge and speed", surge, change, LEAST_M_S, "m/s", manoeuvre, follows=following(w))


def _sway(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether sway sums up to speed times the turn of the course."""
    name, manoeuvre = "sway and turning", "drive at more than 5 m/s through curves to both sides"
    if track is None:
        return Finding(name, "unknown", "neither position nor a velocity in world axes", "")
    found, expected = swaying(drive, w, track)
    expected[w.back | np.roll(w.back, 1)] = np.nan
    return _compare(name, found, expected, LEAST_M_S, "m/s", manoeuvre, follows=following(w))


def _heave(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether heave sums up to the change of the velocity along the body's up axis."""
    name, manoeuvre = "heave and climb", "drive over crests and through dips, fast enough to feel them"
    if track is None:
        return Finding(name, "unknown", "neither position nor a velocity in world axes", "")
    found, expected = heaving(drive, w, track, drive.motion)
    return _compare(name, found, expected, 0.2, "m/s", manoeuvre)


def _standing(drive: Drive) -> npt.NDArray[np.bool_]:
    """Return which frames belong to at least a second at rest."""
    speed = np.linalg.norm(drive.velocity, axis=1)
    still = speed < STANDING_M_S
    out = np.zeros(len(still), bool)
    edges = np.diff(np.concatenate([[0], still, [0]]))
    for start, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        if drive.time[end - 1] - drive.time[start] >= 1.0:
            out[start:end] = True
    return out


def _gravity(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether the acceleration is zero at rest."""
    name, still = "gravity at rest", _standing(drive)
    if not still.any():
        return Finding(name, "unknown", "the car never stood still for a second", "stand still for two seconds")
    rest = np.array([np.median(drive.motion[channel][still]) for channel in ("surge", "sway", "heave")])
    size = float(np.linalg.norm(rest))
    evidence = f"surge, sway, heave at rest {rest[0]:+.2f}, {rest[1]:+.2f}, {rest[2]:+.2f} m/s^2"
    if size < 0.5:
        return Finding(name, "ok", evidence)
    if abs(size - GRAVITY) < 1.0:
        return Finding(name, "wrong", f"{evidence}: gravity is in it, or was taken out of what had none")
    return Finding(name, "wrong" if size > 2.0 else "unknown", evidence, "stand still on a flat road")


def _pitch(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether the nose is up where the road climbs."""
    name, manoeuvre = "pitch and climb", "drive up a hill and down again at more than 3 m/s"
    if track is None:
        return Finding(name, "unknown", "neither position nor a velocity in world axes", "")
    length = np.linalg.norm(track, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        climb = np.where((length / w.span > MOVING_M_S) & ~w.back, -track[:, 2] / length, np.nan)
    pitch = mean(drive, w, np.sin(drive.motion["pitch"]))
    finding = _compare(name, pitch, climb, SLOPING, "of slope", manoeuvre)
    fewest = min(int((climb > SLOPING).sum()), int((climb < -SLOPING).sum()))
    if finding.verdict == "wrong" and fewest < WINDOWS:  # a body that is not level on its wheels would look like that
        return Finding(name, "unknown", f"{finding.evidence}, or an offset: too little of it up or down", manoeuvre)
    return finding


def _lean(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether the body leans outwards in turns, as one on springs does, or else as heave says."""
    name, manoeuvre = "roll and leaning", "drive fast through flat curves to both sides"
    sway = mean(drive, w, drive.motion["sway"])
    roll = mean(drive, w, drive.motion["roll"])
    strong = np.abs(sway) > 2.0
    if strong.sum() < WINDOWS or not ((sway[strong] > 0).any() and (sway[strong] < 0).any()):
        return Finding(name, "unknown", f"{int(strong.sum())} windows with more than 2 m/s^2 of sway", manoeuvre)
    x, y = sway[strong], roll[strong] - np.median(roll)
    slope = float(x @ y / (x @ x))
    correlation = float(x @ y / np.sqrt((x @ x) * (y @ y))) if y.any() else 0.0
    evidence = f"{np.degrees(slope):+.2f} degrees of roll per m/s^2 of sway, correlation {correlation:+.2f}"
    if abs(np.degrees(slope)) < 0.05 or abs(correlation) < CORRELATION:
        return Finding(name, "unknown", evidence, manoeuvre)
    felt = _roll_that_is_felt(drive, w, track)
    if slope > 0:
        evidence += ": it leans into the turn, which a car does only in banked curves"
    if felt:
        says = "heave agrees" if felt > 0 else "heave says that it leans to the other side"
        return Finding(name, "ok" if felt > 0 else "wrong", f"{evidence}; {says}")
    return Finding(name, "unknown", evidence, manoeuvre) if slope > 0 else Finding(name, "ok", evidence)


def _roll_that_is_felt(drive: Drive, w: Windows, track: Array | None) -> int:
    """Return 1 if heave shows that roll has the right sign, -1 if the other one, 0 if it does not tell.

    In a car that leans a turn of the course is in part felt upwards or downwards.
    """
    if track is None or not drive.acceleration_is_independent:
        return 0
    mirrored = drive.motion.copy()
    mirrored["roll"] *= -1.0
    found, expected = heaving(drive, w, track, drive.motion)
    other = heaving(drive, w, track, mirrored)[1]
    speed = speeds(w, track)
    moving = np.isfinite(expected) & (np.minimum(speed[1:], speed[:-1]) > MOVING_M_S)
    if moving.sum() < WINDOWS:
        return 0
    apart, here, there = (
        float(np.sqrt(np.mean(values[moving] ** 2))) for values in (other - expected, found - expected, found - other)
    )
    if apart < 0.02 or max(here, there) < 2 * min(here, there):
        return 0
    return 1 if here < there else -1


def _rates(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether the rates sum up to the turns of the attitude, about each axis."""
    name = "rates and attitude"
    turn, _ = turns(drive, w)
    total = np.concatenate([np.zeros((1, 3)), np.cumsum(turn, axis=0)])
    manoeuvre = "turn, drive over bumps and brake hard, also while heading in other directions"
    findings = []
    for axis, channel in enumerate(("roll_rate", "pitch_rate", "yaw_rate")):
        expected = total[w.last, axis] - total[w.first, axis]
        found = integral(drive, w, drive.motion[channel])
        findings.append(_compare(channel, found, expected, 0.02, "rad", manoeuvre))
    evidence = "; ".join(f"{finding.name.replace('_', ' ')}: {finding.evidence}" for finding in findings)
    verdicts = {finding.verdict for finding in findings}
    if "wrong" in verdicts:
        return Finding(name, "wrong", evidence)
    return Finding(
        name, "unknown" if "unknown" in verdicts else "ok", evidence, manoeuvre if "unknown" in verdicts else ""
    )


def _heading(drive: Drive, w: Windows, track: Array | None) -> Finding:
    """Say whether yaw turns the way the course does."""
    name, manoeuvre = "yaw and course", "drive forward at more than 3 m/s and turn by 30 degrees or more"
    if track is None:
        return Finding(name, "unknown", "neither position nor a velocity in world axes", "")
    course = np.arctan2(track[:, 1], track[:, 0])
    middle = (w.first + w.last) // 2
    yaw = drive.motion["yaw"][middle]
    moving = speeds(w, track) > MOVING_M_S
    good = following(w) & moving[1:] & moving[:-1]
    wrapped = [
        np.where(good, (angle[1:] - angle[:-1] + np.pi) % (2 * np.pi) - np.pi, np.nan) for angle in (yaw, course)
    ]
    return _compare(name, wrapped[0], wrapped[1], 0.03, "rad", manoeuvre)
