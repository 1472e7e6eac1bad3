"""What the vestibular organs report: the otoliths of specific force, the canals of turning.

What filters signals in time (`low_passed`, `organ`, `perceived`) needs SciPy, from the extra ``score``.

References
----------
R. J. Telban and F. M. Cardullo, NASA/CR-2005-213747: the transfer functions of both organs; their constants were
confirmed in a published control problem that cites them.  The thresholds are those widely quoted after L. D. Reid and
M. A. Nahon (UTIAS report 307, 1986); they could not be confirmed there.
"""

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY

Array: TypeAlias = npt.NDArray[np.float64]
Rational: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]

SENSES = ("surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate")
"""What is felt, in order: specific force less that of standing level [m/s^2], angular velocity [rad/s]."""

THRESHOLDS = np.array([0.17, 0.17, 0.28, *np.radians([3.0, 3.6, 2.6])])
"""Least motion that is noticed, by sense [m/s^2, rad/s]."""

OTOLITH: Rational = ((4.0, 0.4), (5.0 * 0.016, 5.0 + 0.016, 1.0))
"""0.4 (10 s + 1) / ((5 s + 1) (0.016 s + 1)) of specific force: numerator and denominator, highest power first."""

CANAL: Rational = ((458.4, 0.0, 0.0), (5.73 * 80.0, 5.73 + 80.0, 1.0))
"""458.4 s^2 / ((5.73 s + 1) (80 s + 1)) of angular velocity."""

STAGES: dict[bool, tuple[tuple[float, float, float], ...]] = {
    True: ((0.0, 1.0, 0.016), (0.8, -0.4, 5.0)),
    False: ((1.0, -1.0, 5.73), (1.0, -1.0, 80.0)),
}
"""The same organs, of force (True) and of turning, as stages one after the other, each a + b / (T s + 1): it passes on
a share a of what it takes in, and a share b of that behind a lag of T seconds."""

BAND_HZ = 3.0
"""Break frequency of the low-pass filter before the organs [Hz]; the Objective Motion Cueing Test ends at 2.5 Hz."""

RATE_HZ = 20.0
"""Rows a second after that filter [Hz]."""


def felt_in_car(motion: npt.NDArray[np.void]) -> Array:
    """Return what acts on the occupant of a car."""
    force = np.column_stack([motion["surge"], motion["sway"], motion["heave"]])
    rates = np.column_stack([motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"]])
    return np.hstack([force + GRAVITY * (up(motion["roll"], motion["pitch"]) - [0.0, 0.0, 1.0]), rates])


def felt_by_pose(poses: Array, rate_hz: float) -> Array:
    """Return what acts on the occupant of a platform, from its poses alone.

    Speeds by central, accelerations by second differences of the poses: exact for what changes slowly beside the tick.

    Units: `poses` [rad].
    """
    inner = rate_hz**2 * np.diff(poses[:, :3], 2, axis=0)
    accelerations = np.concatenate([inner[:1], inner, inner[-1:]])
    return felt_on_platform(poses, np.gradient(poses, 1.0 / rate_hz, axis=0), accelerations)


def felt_on_platform(poses: Array, speeds: Array, accelerations: Array) -> Array:
    """Return what acts on the occupant of a platform, from its poses and their derivatives.

    Units: `speeds` [m/s, rad/s], `accelerations` [m/s^2].
    """
    roll, pitch, yaw = poses[:, 3:].T
    cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    x, y, rising = accelerations.T
    z = -rising
    moved = np.column_stack(
        [
            cp * cy * x + cp * sy * y - sp * z,
            (sr * sp * cy - cr * sy) * x + (sr * sp * sy + cr * cy) * y + sr * cp * z,
            -((cr * sp * cy + sr * sy) * x + (cr * sp * sy - sr * cy) * y + cr * cp * z),
        ]
    )
    rolling, pitching, yawing = speeds[:, 3:].T
    rates = np.column_stack(
        [rolling - sp * yawing, cr * pitching + sr * cp * yawing, -sr * pitching + cr * cp * yawing]
    )
    return np.hstack([moved + GRAVITY * (up(roll, pitch) - [0.0, 0.0, 1.0]), rates])


def low_passed(felt: Array, rate_hz: float) -> Array:
    """Return what is below 3 Hz, without delay: Butterworth of second order, there and back."""
    from scipy import signal

    return np.asarray(signal.sosfiltfilt(_low_pass(rate_hz), felt, axis=0))


@cache
def _low_pass(rate_hz: float) -> Array:
    """Return the filter at `BAND_HZ` as second-order sections."""
    from scipy import signal

    return np.asarray(signal.butter(2, BAND_HZ, fs=rate_hz, output="sos"))


def banded(felt: Array, rate_hz: float) -> Array:
    """Return what is below 3 Hz of signals, `RATE_HZ` rows a second."""
    return sampled(low_passed(felt, rate_hz), rate_hz)


def sampled(slow: Array, rate_hz: float) -> Array:
    """Return signals at `RATE_HZ` rows a second, by straight lines between ticks."""
    at = np.arange(int(np.ceil((len(slow) - 1) / rate_hz * RATE_HZ)) + 1) * (rate_hz / RATE_HZ)
    return np.column_stack([np.interp(at, np.arange(len(slow)), column) for column in slow.T])


@cache
def organ(sense: int) -> tuple[Array, Array]:
    """Return the organ of a sense as a difference equation: numerator and denominator in powers of z^-1.

    From what acts on the occupant to thresholds, by the bilinear transform at `RATE_HZ`.
    """
    from scipy import signal

    numerator, denominator = signal.bilinear(*(OTOLITH if sense < 3 else CANAL), fs=RATE_HZ)
    return np.asarray(numerator / THRESHOLDS[sense]), np.asarray(denominator)


def perceived(felt: Array) -> Array:
    """Return what the organs report, in thresholds."""
    from scipy import signal

    return np.column_stack([signal.lfilter(*organ(sense), column) for sense, column in enumerate(felt.T)])


def up(roll: Array, pitch: Array) -> Array:
    """Return the unit vector up along forward, right, up of a body."""
    return np.column_stack([np.sin(pitch), -np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)])
