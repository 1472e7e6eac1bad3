"""A platform in software: actuators follow their commands as real ones do, a driver feels the frame.

The drives are those of ``platforms/servo.h``; the frame's pose follows from their positions by forward kinematics.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.engine.assembly import actuate, load_profile
from motioncue.errors import ConfigError
from motioncue.platforms.build import Built, build
from motioncue.platforms.servo import Servos
from motioncue.platforms.settings import Platform
from motioncue.profile.profile import Profile

__all__ = ["Drive", "Felt", "VirtualPlatform", "delay_s", "drive_of", "felt", "sensed"]

Array = npt.NDArray[np.float64]

LONGEST_DELAY_S = 0.5


class Drive(NamedTuple):
    """How a platform's actuators follow their commands."""

    lag_s: float = 0.03
    """Delay of slow motions by the drive's lag [s]; 0.03 s is the time constant of the Asetek ES9's actuators."""
    damping: float | None = None
    """Damping ratio of a second-order lag; first order if None."""
    dead_time_s: float = 0.005
    """Time before a command has any effect [s]."""
    friction: float = 0.0
    """Half width of the band of friction, as a share of an actuator's range."""


def drive_of(platform: Platform) -> Drive:
    """Return the drive that a platform's table describes: with its lag, if it states one.

    Parameters
    ----------
    platform : Platform
        The profile's table.
    """
    if platform.lag_s is None:
        return Drive()
    return Drive(lag_s=platform.lag_s, damping=platform.lag_damping, dead_time_s=0.0)


class Felt(NamedTuple):
    """What a platform made of its commands; one row per tick."""

    time: Array
    """Time of each tick since the first [s], shape (n,)."""
    sent: Array
    """Commanded positions, shape (n, actuators) [m or rad]."""
    actuators: Array
    """Positions of the drives, shape (n, actuators) [m or rad]."""
    pose: Array
    """Surge, sway, heave [m], roll, pitch, yaw [rad] of the motion reference point, shape (n, 6)."""
    specific_force: Array
    """Forward, right, up [m/s^2] at the driver, in the platform's axes, less its value at rest; shape (n, 3)."""
    rates: Array
    """Roll, pitch, yaw rate about the platform's axes [rad/s], shape (n, 3)."""


class VirtualPlatform:
    """A platform in software.

    Parameters
    ----------
    platform : Platform
        Table of a profile, or a built-in one from `motioncue.platforms.build.platform_named`.
    rate_hz : float
        Commands per second [Hz].
    drive : Drive, optional
        How the actuators follow; `drive_of` the platform if not given.
    head_m : tuple of float
        The driver from the motion reference point: forward, right, up [m].

    Raises
    ------
    ConfigError
        If the platform is refused.
    ValueError
        If a number of `drive` is out of range.

    Notes
    -----
    The end stops are the ends of the actuators' ranges.  Play, elasticity and the weight on the frame are not modelled.

    Examples
    --------
    >>> from motioncue.platforms.build import platform_named
    >>> import numpy as np
    >>> platform = VirtualPlatform(platform_named("posts-4"), 333.33)
    >>> felt = platform.follow(np.full((1000, 4), 0.05))        # begins there: nothing moves
    >>> felt.pose[-1, 2].round(6)
    0.05
    """

    def __init__(
        self,
        platform: Platform,
        rate_hz: float,
        drive: Drive | None = None,
        head_m: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        self.built: Built = build(platform)
        self.drive = drive_of(platform) if drive is None else drive
        self.dt = 1.0 / rate_hz
        self._head_m = head_m
        self._servos = Servos(self.built.bounds, self.dt, *self.drive)

    def reset(self) -> None:
        """Forget the past: the drives begin at the next command."""
        self._servos.reset()

    def positions(self, sent: npt.ArrayLike) -> Array:
        """Return where the drives are at each tick; they continue from the call before.

        Parameters
        ----------
        sent : array_like of float64, shape (n, actuators)
            Commanded positions, one row per tick [m or rad].

        Raises
        ------
        ValueError
            If a position is not finite, or the shape is another one.
        """
        return self._servos.process(sent)

    def follow(self, sent: npt.ArrayLike) -> Felt:
        """Return what the platform makes of commanded positions; the drives continue from the call before.

        Parameters
        ----------
        sent : array_like of float64, shape (n, actuators)
            Commanded positions, one row per tick [m or rad].

        Raises
        ------
        ValueError
            If a position is not finite, or the shape is another one.
        """
        sent = np.ascontiguousarray(sent, dtype=np.float64)
        actuators = self.positions(sent)
        pose = self.built.kinematics.forward(actuators)
        force, rates = sensed(pose, self.dt, self._head_m)
        time = np.arange(len(sent), dtype=np.float64) * self.dt
        return Felt(time, sent, actuators, pose, force, rates)

    def stats(self) -> dict[str, Any]:
        """Return what the drives did so far, by actuator.

        ``travel`` is the share of the range that was used; ``hits`` of end stops and the hardest, ``impact`` [per s];
        ``speed`` and ``acceleration`` are the largest as shares of what the actuator is made for; ``overruns`` counts
        ticks more than a twentieth beyond either.
        """
        found = self._servos.stats()
        low, high, speed, acceleration = np.array(self.built.bounds).T
        columns = {
            "travel": (found["highest"] - found["lowest"]) / (high - low),
            "hits": found["hits"],
            "impact": found["impact"],
            "speed": found["speed"] / speed,
            "acceleration": found["acceleration"] / acceleration,
            "overruns": found["too_fast"] + found["too_hard"],
        }
        return {
            name: {key: values[place].item() for key, values in columns.items()}
            for place, name in enumerate(self.built.names)
        }


def sensed(pose: Array, dt: float, head_m: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> tuple[Array, Array]:
    """Return what a driver on a moving frame feels: specific force less its value at rest, and rates.

    Parameters
    ----------
    pose : ndarray of float64, shape (n, 6)
        Surge, sway, heave [m], roll, pitch, yaw [rad] at each tick.
    dt : float
        Length of a tick [s].
    head_m : tuple of float
        The driver from the motion reference point: forward, right, up [m].

    Returns
    -------
    specific_force : ndarray of float64, shape (n, 3)
        Forward, right, up, in the platform's axes [m/s^2].
    rates : ndarray of float64, shape (n, 3)
        About the platform's axes [rad/s].

    Notes
    -----
    Accelerations are central second differences, which have no delay; the first and the last tick repeat
    their neighbor.
    """
    roll, pitch, yaw = np.unwrap(pose[:, 3:], axis=0).T
    (sr, sp, sy), (cr, cp, cy) = (np.sin((roll, pitch, yaw)), np.cos((roll, pitch, yaw)))
    # Rows of the matrix that takes platform axes to base axes: x forward, y right, z down.
    turned = (
        (cp * cy, sr * sp * cy - cr * sy, cr * sp * cy + sr * sy),
        (cp * sy, sr * sp * sy + cr * cy, cr * sp * sy - sr * cy),
        (-sp, sr * cp, cr * cp),
    )
    place = pose[:, 0], pose[:, 1], -pose[:, 2]
    arm = head_m[0], head_m[1], -head_m[2]
    head = [at + x * arm[0] + y * arm[1] + z * arm[2] for at, (x, y, z) in zip(place, turned, strict=True)]
    felt = [np.zeros(len(pose)) for _ in range(3)]
    if len(pose) > 2:
        for each, at in zip(felt, head, strict=True):
            each[1:-1] = np.diff(at, 2) / dt**2
    felt[2] -= GRAVITY  # an accelerometer reads a - g
    force = [sum(turned[row][column] * felt[row] for row in range(3)) for column in range(3)]
    if len(pose) > 2:
        for along in force:
            along[0], along[-1] = along[1], along[-2]
    slopes = np.gradient(np.stack((roll, pitch, yaw)), dt, axis=1) if len(pose) > 1 else np.zeros((3, len(pose)))
    roll_change, pitch_change, yaw_change = slopes
    rates = (
        roll_change - yaw_change * sp,
        pitch_change * cr + yaw_change * cp * sr,
        yaw_change * cp * cr - pitch_change * sr,
    )
    return np.stack((force[0], force[1], -force[2] - GRAVITY), axis=1), np.stack(rates, axis=1)


def delay_s(before: npt.ArrayLike, after: npt.ArrayLike, dt: float) -> float | None:
    """Return by how much `after` is later than `before` [s]; None if either does not move.

    Parameters
    ----------
    before, after : array_like of float64, shape (n,) or (n, k)
        Positions at the same ticks; columns are weighted by how much they move.
    dt : float
        Length of a tick [s].

    Notes
    -----
    The place of the largest correlation coefficient of both speeds, up to half a second either way, refined by a
    parabola.
    """
    speeds = [np.diff(np.reshape(side, (len(side), -1)), axis=0) for side in map(np.asarray, (before, after))]
    count = len(speeds[0])
    most = min(round(LONGEST_DELAY_S / dt), count // 2)
    if most < 1 or not all(speed.any() for speed in speeds):
        return None
    size = 1 << (2 * count).bit_length()
    first, second = (np.fft.rfft(speed, size, axis=0) for speed in speeds)
    found = np.fft.irfft((np.conj(first) * second).sum(axis=1), size)
    lags = np.arange(-most, most + 1)
    # Both sides overlap less at a long delay, so each value is divided by what is left of either side.
    energies = [np.concatenate(([0.0], np.cumsum((speed * speed).sum(axis=1)))) for speed in speeds]
    left = [np.maximum(-lags, 0), np.maximum(lags, 0)]
    right = [count - np.maximum(lags, 0), count - np.maximum(-lags, 0)]
    weights = [energy[end] - energy[begin] for energy, begin, end in zip(energies, left, right, strict=True)]
    found = found[lags] / np.sqrt(np.maximum(weights[0] * weights[1], 1e-300))
    place = int(np.argmax(found))
    shift = 0.0
    if 0 < place < 2 * most:
        left, middle, right = found[place - 1 : place + 2]
        shift = 0.5 * (left - right) / (left - 2.0 * middle + right)
    return float((place - most + shift) * dt)


def grid_hz(profile: Profile) -> float:
    """Return the rate of the emitter's grid, whose period is a whole number of nanoseconds [Hz]."""
    return 1e9 / round(1e9 / profile.rate_hz)


def felt(
    profile: Profile | str | Path, cues: npt.NDArray[np.void], output: int = 0, drive: Drive | None = None
) -> Felt:
    """Return what a driver on the profile's platform feels of `cues`, computed offline.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile with a platform, or what `motioncue.load_profile` takes.
    cues : ndarray of CUE_DTYPE, shape (n,)
        Cues such as `motioncue.cue` returns, one row per tick.
    output : int
        Index of the output whose packet has the actuators.
    drive : Drive, optional
        How the actuators follow; `drive_of` the platform if not given.

    Raises
    ------
    ConfigError
        If the profile is refused or has no platform.
    """
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    if profile.platform is None:
        raise ConfigError(f"{profile.name}: found no [platform]")
    platform = VirtualPlatform(profile.platform, grid_hz(profile), drive)
    return platform.follow(actuate(profile, cues, output)["actuators"][:, : len(platform.built.names)])
