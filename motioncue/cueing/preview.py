"""What a car will do in the next seconds, of a drive that is known: for algorithms that plan."""

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import AHEAD_S, MOTION_DTYPE
from motioncue.cueing.predictive.horizon import nodes
from motioncue.errors import ConfigError

__all__ = ["preview", "shares_of"]

KEPT = ("surge", "sway", "heave", "roll", "pitch", "roll_rate", "pitch_rate", "yaw_rate")
BEYOND_S = 2.0  # what follows the last row counts too
WEIGHT_S = 3.0  # what is later than this counts for less than 37 %


def preview(motion: npt.NDArray[np.void], rate_hz: float) -> npt.NDArray[np.void]:
    """Return what is ahead at each tick of a drive that is known.

    Parameters
    ----------
    motion : ndarray of MOTION_DTYPE, shape (n,)
        What each tick reads, finite; after its end, the car is expected to go on as in its last row.
    rate_hz : float
        Ticks per second [Hz].

    Returns
    -------
    ndarray of MOTION_DTYPE, shape (n, 7)
        For each tick, rows for `motioncue.AHEAD_S`: accelerations, roll, pitch and body rates, the rest 0.  Their
        straight lines, from the motion of the tick on, are the nearest to what the car does (weighted least squares);
        so a row is no single moment of a drive full of bumps.

    Raises
    ------
    ConfigError
        If `motion` is not an array of its kind, has no row or is not finite, or `rate_hz` is not above 0.

    Examples
    --------
    >>> motion = np.zeros(1000, motioncue.MOTION_DTYPE)
    >>> motion["surge"][500:] = -3.0                       # it will brake
    >>> ahead = motioncue.preview(motion, 333.33)
    >>> cues = motioncue.cue(profile, motion, ahead=ahead)                                # doctest: +SKIP
    """
    motion = np.ascontiguousarray(motion)
    if motion.dtype != MOTION_DTYPE or motion.ndim != 1 or not len(motion):
        raise ConfigError(
            f"motion: found {motion.dtype} of shape {motion.shape}, allowed is MOTION_DTYPE, shape (n,), n from 1"
        )
    if not isinstance(rate_hz, int | float | np.number) or not 0.0 < rate_hz < np.inf:
        raise ConfigError(f"rate_hz: found {rate_hz!r}, allowed is a number above 0")
    for name in KEPT:
        if not np.isfinite(motion[name]).all():
            row = int(np.argmin(np.isfinite(motion[name])))
            raise ConfigError(f"motion: found {motion[name][row]} as {name} of row {row}, allowed are finite numbers")
    taps = round((AHEAD_S[-1] + BEYOND_S) * rate_hz)
    shares, present = shares_of(taps, 1.0 / rate_hz)
    size = len(motion) + 2 * taps
    filters = np.fft.rfft(shares[:, ::-1], size)
    found = np.zeros((len(motion), len(AHEAD_S)), MOTION_DTYPE)
    for name in KEPT:
        values = np.unwrap(motion[name]) if name in ("roll", "pitch") else motion[name]
        future = np.fft.rfft(np.append(values, np.full(taps, values[-1])), size)
        for row in range(len(AHEAD_S)):
            sums = np.fft.irfft(future * filters[row], size)[taps : taps + len(motion)]
            found[name][:, row] = sums - present[row] * values
    return found


def shares_of(taps: int, step_s: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the share of each coming moment in each row of a preview, and what the present has of that."""
    now, *later = nodes(taps, step_s, (0.0, *AHEAD_S))
    lines = np.array(later)
    weighted = lines * np.exp(-np.arange(taps + 1) * step_s / WEIGHT_S)
    shares = np.linalg.solve(weighted @ lines.T, weighted)
    return shares, shares @ now
