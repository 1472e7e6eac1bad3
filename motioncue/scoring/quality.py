"""What is right and wrong with a platform's motion, beside what the car does.

Needs SciPy, from the extra ``score``.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from motioncue.scoring.senses import RATE_HZ, SENSES, Array, low_passed, perceived, sampled

__all__ = ["Felt", "Quality", "by_sense", "fast_tilt", "felt_of", "jolts", "opposite", "quality", "rms"]

FAST_TILT = np.radians(3.0)  # [rad/s]; tilt coordination goes unnoticed below (Groen and Bles 2004)
LARGEST_LAG_S = 1.0
ALIKE = 0.3  # correlation from which a delay is told
NOTICED = 1.0  # [thresholds]
DRIVERS = (0.34, 0.66)  # weights of surge and sway in drivers' ratings (Kolff et al. 2024)


class Felt(NamedTuple):
    """What an occupant feels; arrays have one column per sense."""

    all: Array
    """What acts on the occupant, one row per tick, as `motioncue.scoring.senses.felt_in_car` returns it."""
    slow: Array
    """The part of it below 3 Hz."""
    told: Array
    """What the organs report of that, `RATE_HZ` rows a second [thresholds]."""


class Quality(NamedTuple):
    """What is right and wrong with a motion; mappings by sense."""

    error: dict[str, float]
    """Root mean square of the perceived error [thresholds]."""
    correlation: dict[str, float]
    """Of what the organs report in the car and on the platform; NaN if one of them does not move."""
    lag_s: dict[str, float]
    """Delay of the platform at which that correlation is largest [s]; NaN as above, if there is none within 1 s, or if
    it is below 0.3 there."""
    opposite: dict[str, float]
    """Share of time in which the platform is felt, by more than a threshold, against the sign of the car."""
    fast_tilt: float
    """Share of time in which the platform rolls or pitches more than 3 deg/s faster than the car, or against it."""
    jolts: dict[str, float]
    """Root mean square of specific force above 3 Hz [m/s^2], by sense of force."""
    mismatch: float
    """Mean of 0.34 |error of surge| + 0.66 |error of sway| [m/s^2]; drivers rate it so, through a low-pass filter."""
    use: dict[str, tuple[float, float, float]]
    """Travel, speed and acceleration of each actuator, as shares of what it has."""


def felt_of(acting: Array, rate_hz: float) -> Felt:
    """Return what an occupant feels of what acts on them."""
    slow = low_passed(acting, rate_hz)
    return Felt(acting, slow, perceived(sampled(slow, rate_hz)))


def quality(car: Felt, platform: Felt, use: Mapping[str, tuple[float, float, float]]) -> Quality:
    """Return what is right and wrong with a platform's motion."""
    correlation, lag = np.full(6, np.nan), np.full(6, np.nan)
    for sense, (one, other) in enumerate(zip(car.told.T, platform.told.T, strict=True)):
        correlation[sense], lag[sense] = _alike(one, other)
    return Quality(
        by_sense(rms(car.told - platform.told)),
        by_sense(correlation),
        by_sense(lag),
        by_sense(opposite(car, platform)),
        fast_tilt(car, platform),
        jolts(platform),
        float(np.mean(np.abs(car.slow - platform.slow)[:, :2] @ DRIVERS)),
        dict(use),
    )


def opposite(car: Felt, platform: Felt) -> Array:
    """Return the share of time in which each sense feels the platform move against the car."""
    against = (np.abs(platform.told) > NOTICED) & (platform.told * car.told < 0.0)
    return np.asarray(np.mean(against, axis=0))


def fast_tilt(car: Felt, platform: Felt) -> float:
    """Return the share of time in which the platform turns 3 deg/s faster than the car."""
    own, found = car.slow[:, 3:5], platform.slow[:, 3:5]
    false = found - np.clip(found, np.minimum(own, 0.0), np.maximum(own, 0.0))
    return float(np.mean(np.abs(false).max(axis=1) > FAST_TILT))


def jolts(felt: Felt) -> dict[str, float]:
    """Return the root mean square of specific force above 3 Hz [m/s^2], by sense of force."""
    return dict(zip(SENSES[:3], rms((felt.all - felt.slow)[:, :3]).tolist(), strict=True))


def rms(values: Array) -> Array:
    """Return the root mean square of each column."""
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))


def by_sense(values: Array) -> dict[str, float]:
    """Return six values by the names of the senses."""
    return dict(zip(SENSES, values.tolist(), strict=True))


def _alike(car: Array, platform: Array) -> tuple[float, float]:
    """Return the correlation of two signals, and the delay of the second at which it is largest [s]; NaN: not alike."""
    car, platform = car - car.mean(), platform - platform.mean()
    size = np.sqrt(np.sum(car**2) * np.sum(platform**2))
    if not size > 1e-9:
        return float("nan"), float("nan")
    steps = range(-int(LARGEST_LAG_S * RATE_HZ), int(LARGEST_LAG_S * RATE_HZ) + 1)
    n = len(car)
    found = [np.sum(car[max(0, -k) : n - max(0, k)] * platform[max(0, k) : n - max(0, -k)]) for k in steps]
    at = int(np.argmax(found))
    alike = found[at] >= ALIKE * size and 0 < at < len(steps) - 1  # at an end it may be larger still beyond
    return float(np.sum(car * platform) / size), steps[at] / RATE_HZ if alike else float("nan")
