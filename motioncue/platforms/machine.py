"""A platform for use in Python: its kinematics, its ranges, its workspace."""

import itertools
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.table import card
from motioncue.platforms.build import CHANNELS, build, frame_of, ranges
from motioncue.platforms.settings import ActuatorBounds, Platform

__all__ = ["MotionPlatform", "Workspace"]

Array = npt.NDArray[np.float64]
Ends = tuple[float | None, float | None]

HALVINGS = 20
SHELL = 0.02  # of a box's sides: no pose in reach may be so near to its faces
BOXES = 6  # boxes that are tried, each half as large again


class Workspace(NamedTuple):
    """What a platform can do with all channels at once."""

    together: dict[str, Ends]
    """Ranges within which every combination of channels is in reach [m, rad]; None for a channel without actuator."""
    share: float
    """Those ranges as a share of the ranges of each channel alone."""
    volume_m3: float | None
    """Volume that the motion reference point reaches with a level frame; None unless it is driven in all directions."""
    in_reach: float
    """Share of the poses in reach, of those with each channel within its range alone."""
    singular: float
    """How firmly the actuators hold the frame at worst, over the poses in reach (`geometry.Frame.held`); the smaller,
    the more a little play in them moves it."""
    singular_at: tuple[float, ...]
    """The pose at which it is found [m, rad]."""
    speeds: dict[str, float | None]
    """Largest speed along each channel at neutral [m/s, rad/s]; None without actuator."""
    accelerations: dict[str, float | None]
    """Largest acceleration along each channel at neutral [m/s^2, rad/s^2]."""


class MotionPlatform:
    """The kinematics of a platform.

    Parameters
    ----------
    table : Platform
        The platform's table, such as a profile's ``platform``.

    Attributes
    ----------
    table : Platform
        The same table.
    names : tuple of str
        Names of the actuators, in the order of all arrays.
    bounds : tuple of ActuatorBounds
        For each: ``low``, ``high`` [m or rad], ``speed`` [per s], ``acceleration`` [per s^2].
    neutral : tuple of float
        Positions at neutral [m or rad].

    Raises
    ------
    ConfigError
        If the platform cannot be: neutral is out of reach, joints are mirrored.

    Notes
    -----
    A pose is surge, sway, heave displacement [m; forward, right, up] of the motion reference point from neutral, and
    roll, pitch, yaw [rad].  A position is the length of a leg, the angle of a crank above the horizontal, the height of
    a post above neutral [m or rad].
    """

    def __init__(self, table: Platform) -> None:
        self.table = table
        self._built = build(table)
        self.names = self._built.names
        self.bounds = self._built.bounds
        self.neutral = self._built.neutral

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy is made, in this process or another."""
        return MotionPlatform, (self.table,)

    def __repr__(self) -> str:
        """Return three lines: the platform, its actuators, and how far it goes."""
        lines = "\n  ".join(f"{name}: {text}" for name, text in self._rows())
        return f"MotionPlatform {self._title()}\n  {lines}"

    def _repr_html_(self) -> str:
        return card(f"Platform {self._title()}", self._rows())

    def _title(self) -> str:
        return str(getattr(self.table, "preset", None) or self.table.__struct_config__.tag)

    def _rows(self) -> list[tuple[str, str]]:
        reach = []
        for channel, ends in self.ranges.items():
            unit, scale = ("m", 1.0) if channel.endswith("displacement") else ("deg", np.degrees(1.0))
            if ends != (None, None):
                low, high = ("no end" if end is None else f"{end * scale:+.3g}" for end in ends)
                reach.append(f"{channel.removesuffix('_displacement')} {low} to {high} {unit}")
        return [("actuators", ", ".join(self.names)), ("alone", ", ".join(reach))]

    def inverse(self, poses: npt.ArrayLike) -> Array:
        """Return the positions of the actuators at each pose.

        Parameters
        ----------
        poses : array_like of float64, shape (n, 6)
            Surge, sway, heave [m], roll, pitch, yaw [rad].

        Returns
        -------
        ndarray of float64, shape (n, actuators)
            NaN where an actuator cannot reach the pose, whatever its range, or where a crank would be within 15 degrees
            of one line with its rod.
        """
        actuators: npt.NDArray[np.float64] = self._built.kinematics.inverse(poses)
        return actuators

    def forward(self, positions: npt.ArrayLike, start: npt.ArrayLike | None = None) -> Array:
        """Return the pose at which the actuators have these positions.

        Parameters
        ----------
        positions : array_like of float64, shape (n, actuators)
            As `inverse` gives them.
        start : array_like of float64, shape (6,), optional
            First guess; neutral if not given.  Each next row starts from the pose found for the row before.

        Returns
        -------
        ndarray of float64, shape (n, 6)
            Surge, sway, heave [m], roll, pitch, yaw [rad]; channels that no actuator holds are as in `start`.  NaN if
            there is no such pose.
        """
        guess = None if start is None else np.asarray(start, np.float64)
        poses: npt.NDArray[np.float64] = self._built.kinematics.forward(positions, guess)
        return poses

    def jacobian(self, poses: npt.ArrayLike) -> Array:
        """Return the derivatives of the actuators' positions by the frame's motion.

        Parameters
        ----------
        poses : array_like of float64, shape (n, 6)
            Surge, sway, heave [m], roll, pitch, yaw [rad].

        Returns
        -------
        ndarray of float64, shape (n, actuators, 6)
            Per displacement along x forward, y right, z down [m] and per turn about these axes of the base [rad].
        """
        slopes: npt.NDArray[np.float64] = self._built.kinematics.jacobian(poses)
        return slopes

    def reaches(self, poses: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return whether the engine would go to each pose, shape (n,): every actuator within its range.

        Nor may a crank and its rod be within 15 deg of one line.

        Parameters
        ----------
        poses : array_like of float64, shape (n, 6)
            Surge, sway, heave [m], roll, pitch, yaw [rad].
        """
        bounds = ActuatorBounds.columns(self.bounds)
        positions = self._built.kinematics.inverse(poses, held=True)
        reached: npt.NDArray[np.bool_] = ((bounds.low <= positions) & (positions <= bounds.high)).all(axis=1)
        return reached

    @cached_property
    def ranges(self) -> dict[str, Ends]:
        """How far it goes along each channel with the others at neutral [m, rad]; None: no end."""
        return ranges(self._built)

    @property
    def shares(self) -> dict[str, dict[str, Ends]]:
        """How far a sled or turntable goes, and the frame that it carries, by channel and part [m, rad]."""
        count, tables = self._built.frame.count, self._built.tables
        frame = ranges(self._built._replace(kinematics=self._built.frame, bounds=self.bounds[:count], tables={}))
        return {
            channel: {self.names[place]: self.bounds[place][:2], "frame": frame[channel]}
            for channel, place in tables.items()
        }

    def workspace(self, samples: int = 20_000, seed: int = 0) -> Workspace:
        """Return what the platform can do with all channels at once.

        Parameters
        ----------
        samples : int
            Number of random poses for each question that is answered by sampling; five times as many for the volume.
        seed : int
            Of the random numbers; the same seed gives the same answer.

        Notes
        -----
        Sampled: ``volume_m3`` (uniform in a box that is enlarged until no pose in reach is near its faces; its standard
        error is about a hundredth), ``in_reach`` and ``singular`` (uniform in the box of the ranges alone).
        ``together`` is found by bisection over all corners of the box and as many random poses in it.
        """
        rng = np.random.default_rng(seed)
        rows = self.jacobian(np.zeros((1, 6)))[0]
        alone = np.vstack([self._built.frame.jacobian(np.zeros((1, 6)))[0], rows[self._built.frame.count :]])
        driven = [
            place
            for place, channel in enumerate(CHANNELS)
            if np.abs(rows[:, place]).max() > 1e-9 and None not in self.ranges[channel]
        ]
        low, high = (np.array([(self.ranges[channel][side] or 0.0) for channel in CHANNELS]) for side in (0, 1))
        poses = np.zeros((samples, 6))
        poses[:, driven] = rng.uniform(low[driven], high[driven], (samples, len(driven)))
        reached = self.reaches(poses)
        corners = np.zeros((2 ** len(driven), 6))
        corners[:, driven] = list(itertools.product(*zip(low[driven], high[driven], strict=True)))
        share = _largest(lambda part: bool(self.reaches(part * np.concatenate((corners, poses))).all()))
        singular, at = self._least_singular(np.concatenate((np.zeros((1, 6)), poses[reached])))
        bounds = ActuatorBounds.columns(self.bounds)
        parts = slice(self._built.frame.count), slice(self._built.frame.count, None)
        fastest, hardest = (
            {
                # Of a frame and what carries it, that of the faster one: neither needs the other.
                channel: max(
                    float((most[part][moved[part] > 1e-9] / moved[part][moved[part] > 1e-9]).min())
                    for part in parts
                    if moved[part].max(initial=0.0) > 1e-9
                )
                if moved.max() > 1e-9
                else None
                for channel, moved in zip(CHANNELS, np.abs(alone).T, strict=True)
            }
            for most in (bounds.speed, bounds.acceleration)
        )
        return Workspace(
            {
                channel: (share * float(low[place]), share * float(high[place])) if place in driven else (None, None)
                for place, channel in enumerate(CHANNELS)
            },
            share,
            self._volume(low[:3], high[:3], 5 * samples, rng) if {0, 1, 2} <= {*driven} else None,
            float(reached.mean()),
            singular,
            at,
            fastest,
            hardest,
        )

    def _volume(self, low: Array, high: Array, samples: int, rng: np.random.Generator) -> float:
        """Return the volume reached with a level frame [m^3]."""
        for _ in range(BOXES):
            poses = np.zeros((samples, 6))
            part = rng.uniform(0.0, 1.0, (samples, 3))
            poses[:, :3] = low + part * (high - low)
            reached = self.reaches(poses)
            if not (reached & (np.abs(part - 0.5) > 0.5 - SHELL).any(axis=1)).any():
                break
            low, high = 1.5 * low, 1.5 * high
        margin = SHELL * (high - low)
        low, high = poses[reached, :3].min(axis=0) - margin, poses[reached, :3].max(axis=0) + margin
        poses[:, :3] = rng.uniform(low, high, (samples, 3))
        return float(self.reaches(poses).mean() * np.prod(high - low))

    def _least_singular(self, poses: Array) -> tuple[float, tuple[float, ...]]:
        """Return the least ratio of singular values of the frame's actuators, and the pose where it is found."""
        frame = frame_of(self.table, self._built)
        if not frame.actuators:
            return 1.0, tuple(poses[0].tolist())
        held = frame.held(self._built.kinematics.of_frame(poses))
        place = int(np.argmin(held))
        return float(held[place]), tuple(poses[place].tolist())


def _largest(fits: Any) -> float:
    """Return the largest share, 0 to 1, that fits; smaller ones do."""
    low, high = 0.0, 1.0
    if fits(1.0):
        return 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
