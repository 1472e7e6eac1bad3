"""A drive in short windows: the integrals of its channels, and the car's track."""

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Drive", "Track", "Windows"]

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


class Drive(NamedTuple):
    """A source's report, frame by frame."""

    time: Array  # [s], by the clock that the drive is examined with
    motion: npt.NDArray[np.void]  # MOTION_DTYPE
    position: Array  # (n, 3) north, east, down [m]; NaN or constant if not reported
    velocity: Array  # (n, 3) [m/s]
    part: npt.NDArray[np.intp]  # changes after each discontinuity
    velocity_is_independent: bool = True  # independent of the attitude
    acceleration_is_independent: bool = True  # independent of velocity and attitude
    rates_are_independent: bool = True  # independent of the attitude


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
        """Return the mean velocity in each window [m/s]; NaN outside the run of frames.

        Parameters
        ----------
        w : Windows
            Windows of the drive.
        late_s : float
            How much earlier than each window to look [s].
        """
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

    Parameters
    ----------
    w : Windows
        n windows.
    velocity : ndarray, shape (n, 3)
        Mean velocity in each window.
    slip : ndarray, shape (n,)
        Angle of the nose to the right of the course in each window [rad].

    Returns
    -------
    ahead, right : ndarray, shape (n - 1,)
        NaN at low speed, or if the course turns by more than 86 degrees between windows.
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
