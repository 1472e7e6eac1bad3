"""A drive in short windows: what its channels sum up to in them, and what they should."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Drive", "Windows"]

Array = npt.NDArray[np.float64]

WINDOW_S = 0.5
SLOW_M_S = 1.0
MOVING_M_S = 3.0
LEAST_M_S = 0.5  # of a change in speed or course that shows something
CORRELATION = 0.8


class Drive(NamedTuple):
    """What a source said, frame by frame."""

    time: Array  # [s], the simulator's own if it has one
    motion: npt.NDArray[np.void]  # MOTION_DTYPE
    position: Array  # (n, 3) north, east, down [m]; NaN or constant if there is none
    velocity: Array  # (n, 3) [m/s]
    part: npt.NDArray[np.intp]  # another number after each discontinuity
    velocity_is_independent: bool = True  # of the attitude
    acceleration_is_independent: bool = True  # of velocity and attitude


class Windows(NamedTuple):
    """Stretches of the drive without a discontinuity."""

    first: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]
    span: Array  # [s]
    back: npt.NDArray[np.bool_]  # the nose points away from the course, and the accelerations say that so it is


def windows_of(drive: Drive) -> Windows:
    """Return the windows of a drive, those across a discontinuity or a gap left out; none is marked as backwards."""
    time = drive.time
    first: list[int] = []
    last: list[int] = []
    start = 0
    for index in range(1, len(time)):
        if drive.part[index] != drive.part[start] or time[index] < time[start]:
            start = index
        elif time[index] - time[start] >= WINDOW_S:
            if index - start >= 4 and time[index] - time[start] < 2 * WINDOW_S:
                first.append(start)
                last.append(index)
            start = index
    a, b = np.array(first, np.intp), np.array(last, np.intp)
    return Windows(a, b, time[b] - time[a], np.zeros(len(a), bool))


def track_of(drive: Drive, w: Windows) -> Array | None:
    """Return how far the car has gone in each window [m]: by position, or by a velocity that owes attitude nothing."""
    moved = drive.position[w.last] - drive.position[w.first]
    if len(moved) and np.isfinite(moved).all() and np.linalg.norm(moved, axis=1).max() > 1.0:
        return moved
    if drive.velocity_is_independent and np.isfinite(drive.velocity).all():
        return np.array([integral(drive, w, drive.velocity[:, axis]) for axis in range(3)]).T
    return None


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


def following(w: Windows) -> npt.NDArray[np.bool_]:
    """Return which windows but the first begin where the one before ends."""
    return np.asarray(w.first[1:] == w.last[:-1])


def speeds(w: Windows, track: Array) -> Array:
    """Return the mean speed along a track in each window [m/s]."""
    return np.asarray(np.linalg.norm(track, axis=1) / w.span)


def surging(drive: Drive, w: Windows) -> tuple[Array, Array]:
    """Return what surge sums up to in each window, and the change of speed [m/s]."""
    speed = np.linalg.norm(drive.velocity, axis=1)
    change = speed[w.last] - speed[w.first]
    # On a hill or in a slide the nose's share of the change is what counts; near standstill the sign of speed is open.
    change[np.minimum(speed[w.last], speed[w.first]) < SLOW_M_S] = np.nan
    return integral(drive, w, drive.motion["surge"]), change


def swaying(drive: Drive, w: Windows, track: Array) -> tuple[Array, Array]:
    """Return what sway sums up to from the window before to each, and speed times the turn of the course [m/s]."""
    expected = np.full(len(w.span), np.nan)
    speed = speeds(w, track)
    course = np.arctan2(track[:, 1], track[:, 0])
    follows = following(w)
    turn = (course[1:] - course[:-1] + np.pi) % (2 * np.pi) - np.pi
    good = follows & (speed[1:] > MOVING_M_S) & (speed[:-1] > MOVING_M_S) & (np.abs(turn) < 1.5)
    # The course of a window is that of its middle: from one middle to the next lies half of each.
    expected[1:][good] = (turn * (speed[1:] + speed[:-1]) / 2)[good]
    sway = integral(drive, w, drive.motion["sway"])
    found = np.full(len(w.span), np.nan)
    found[1:] = (sway[1:] + sway[:-1]) / 2
    return found, expected


def heaving(drive: Drive, w: Windows, track: Array, attitude: npt.NDArray[np.void]) -> tuple[Array, Array]:
    """Return what heave sums up to from each window to the next, and the change of the velocity upwards [m/s]."""
    follows = following(w)
    _, down = axes(attitude)
    changed = np.diff(track / w.span[:, None], axis=0)
    expected = np.where(follows, -np.einsum("ij,ij->i", down[w.first[1:]], changed), np.nan)
    # The velocity of a track is a window's mean: so is what heave has summed up to.
    return np.diff(mean(drive, w, summed(drive, drive.motion["heave"]))), expected


def reversing(drive: Drive, w: Windows, track: Array | None) -> npt.NDArray[np.bool_]:
    """Return in which windows the car goes backwards: the nose says so, surge or sway too, and neither contradicts.

    A car that gets faster backwards is pushed backwards, and turns to the other side.  Where the nose alone points
    backwards it is the attitude that is turned about.
    """
    if track is None:
        return w.back
    with np.errstate(invalid="ignore", divide="ignore"):
        going = track / np.linalg.norm(track, axis=1, keepdims=True)
    forward, _ = axes(drive.motion)
    cosine = np.einsum("ij,ij->i", forward[(w.first + w.last) // 2], going)
    back = np.asarray((speeds(w, track) > SLOW_M_S) & (cosine < -0.9))
    shown = []
    for found, expected in (surging(drive, w), swaying(drive, w, track)):
        known = back & np.isfinite(found) & np.isfinite(expected)
        x, y = expected[known], found[known]
        if (x @ x) * (y @ y) > 0:
            shown.append((float(x @ y / np.sqrt((x @ x) * (y @ y))), np.abs(x).max()))
    against = [correlation for correlation, largest in shown if largest > LEAST_M_S]
    return back if against and max(against) < -CORRELATION else w.back


def turns(drive: Drive, w: Windows) -> tuple[Array, Array]:
    """Return how far attitude turned between neighbouring frames about body axes [rad], and how long they took [s]."""
    forward, down = axes(drive.motion)
    right = np.cross(down, forward)
    body = np.stack([forward, right, down], axis=1)
    relative = np.einsum("nij,nkj->nik", body[:-1], body[1:])  # the next frame's axes in this one's
    turn = np.stack(
        [
            relative[:, 1, 2] * -1 + relative[:, 2, 1],
            relative[:, 0, 2] - relative[:, 2, 0],
            relative[:, 1, 0] - relative[:, 0, 1],
        ],
        axis=-1,
    )
    return turn / 2, np.diff(drive.time)
