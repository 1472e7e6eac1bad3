"""What is right and wrong with a platform's motion, beside what the car does; and how sick a motion makes.

Sickness is that of the inner ear alone: a picture that does not fit the motion makes sick too, and is not in here.
Needs SciPy, from the extra ``score``.

References
----------
ISO 2631-1:1997, clause 9 and annex A: the weighting Wf and the dose of vertical acceleration.  S. Inoue, H. Liu,
T. Wada, *Revisiting Motion Sickness Models Based on SVC Theory Considering Motion Perception*, SAE Technical Paper
2023-01-0176: the subjective vertical conflict in six degrees of freedom, its constants and its incidence (model IN1),
which goes back to W. Bles, J. E. Bos and others, Brain Research Bulletin 47 (1998), and N. Kamiji and others, SICE
Annual Conference 2007.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.cueing.senses import RATE_HZ, SENSES, Array, low_passed, perceived, sampled

FAST_TILT = np.radians(3.0)  # [rad/s]; tilt coordination goes unnoticed below (Groen and Bles 2004)
LARGEST_LAG_S = 1.0
ALIKE = 0.3  # correlation from which a delay is told
NOTICED = 1.0  # [thresholds]
WORST_S = (1.0, 5.0)  # lags behind which the worst moment is told: that of drivers was not published
DRIVERS = (0.34, 0.66)  # weights of surge and sway in drivers' ratings (Kolff et al. 2024)

HIGH_PASS_HZ, LOW_PASS_HZ = 0.08, 0.63  # of Wf: f1, f2 of the band, Butterworth
TRANSITION_HZ, TRANSITION_Q = 0.25, 0.86  # f4, Q4
STEP_HZ, STEP_Q = (0.0625, 0.1), 0.80  # f5, f6, Q5 = Q6

KA, KW, KWC, KVC, KAC = 0.1, 0.1, 10.0, 5.0, 0.5
CANAL_S, ADAPTATION_S = 7.0, 190.0
VERTICAL_S = 2.0
HALF = 0.5  # conflict that makes half of those sick who ever are [m/s^2]
MOST, GROWING_S = 85.0, 720.0  # incidence [%], and the two lags behind which it grows
HOUR_S = 3600.0


class Felt(NamedTuple):
    """What an occupant feels; arrays have one column per sense."""

    all: Array
    """What acts on the occupant, one row per tick, as `motioncue.cueing.senses.felt_in_car` returns it."""
    slow: Array
    """The part of it below 3 Hz."""
    told: Array
    """What the organs report of that, `RATE_HZ` rows a second [thresholds]."""


class Sickness(NamedTuple):
    """How sick a motion makes."""

    dose: float
    """Motion sickness dose value of vertical acceleration, MSDV [m/s^1.5]; grows with the square root of time."""
    conflict: float
    """Root mean square of the difference between the sensed and the expected vertical [m/s^2]."""
    incidence: float
    """Share of people who would be sick after an hour of such motion, by that conflict [%]."""


class Worst(NamedTuple):
    """The worst moment of a motion: the largest low-passed mismatch of surge and sway."""

    mismatch: float
    """[m/s^2], as `Quality.mismatch`, behind a lag."""
    time: float
    """[s] from the beginning of the drive."""
    sense: str
    """Surge or sway, whichever has the larger share in it."""


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
    worst: dict[str, Worst]
    """Where that is largest behind a lag of a second, ``1 s``, and of five, ``5 s``."""
    wrong_way: float
    """Share of time in which some sense feels the platform, by more than a threshold, against the sign of the car."""
    sickness: Sickness
    """How sick it makes."""
    use: dict[str, tuple[float, float, float]]
    """Travel, speed and acceleration of each actuator, as shares of what it has."""


def felt_of(acting: Array, rate_hz: float) -> Felt:
    """Return what an occupant feels of what acts on them."""
    slow = low_passed(acting, rate_hz)
    return Felt(acting, slow, perceived(sampled(slow, rate_hz)))


def quality(
    car: Felt, platform: Felt, rate_hz: float, sickness: Sickness, use: Mapping[str, tuple[float, float, float]]
) -> Quality:
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
        {f"{lag_s:g} s": worst(car, platform, rate_hz, lag_s) for lag_s in WORST_S},
        float(np.mean(_against(car, platform).any(axis=1))),
        sickness,
        dict(use),
    )


def opposite(car: Felt, platform: Felt) -> Array:
    """Return the share of time in which each sense feels the platform move against the car."""
    return np.asarray(np.mean(_against(car, platform), axis=0))


def _against(car: Felt, platform: Felt) -> npt.NDArray[np.bool_]:
    """Return when each sense feels the platform move against the car."""
    return np.asarray((np.abs(platform.told) > NOTICED) & (platform.told * car.told < 0.0))


def worst(car: Felt, platform: Felt, rate_hz: float, lag_s: float) -> Worst:
    """Return the worst moment behind a first-order lag.

    Units: `lag_s` [s].
    """
    from scipy import signal

    left = np.exp(-1.0 / (lag_s * rate_hz))
    parts = signal.lfilter([1.0 - left], [1.0, -left], np.abs(car.slow - platform.slow)[:, :2] * DRIVERS, axis=0)
    row = int(np.argmax(parts.sum(axis=1)))
    return Worst(float(parts[row].sum()), row / rate_hz, SENSES[int(np.argmax(parts[row]))])


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


def sickness(force: Array, rates: Array, up: Array, rate_hz: float) -> Sickness:
    """Return how sick a motion makes.

    Units: `force` [m/s^2], specific force forward, right, up; `rates` [rad/s]; `up` is a unit vector in the same axes.
    """
    found = conflict(force, rates, up, rate_hz)
    vertical = force[:, 2] - GRAVITY * up[:, 2]
    return Sickness(dose(vertical, rate_hz), float(np.sqrt(np.mean(found**2))), incidence(found))


def weighting(s: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
    """Return the frequency weighting Wf.

    Units: `s` [rad/s].
    """
    high, low, transition, first, second = (
        2.0 * np.pi * hz for hz in (HIGH_PASS_HZ, LOW_PASS_HZ, TRANSITION_HZ, *STEP_HZ)
    )

    def section(omega: float, q: float) -> npt.NDArray[np.complex128]:
        return np.asarray((s / omega) ** 2 + s / (q * omega) + 1.0)

    band = (s / high) ** 2 / section(high, np.sqrt(0.5)) / section(low, np.sqrt(0.5))
    step = section(first, STEP_Q) / section(second, STEP_Q) * (first / second) ** 2
    return np.asarray(band * step / section(transition, TRANSITION_Q))


def dose(vertical: Array, rate_hz: float) -> float:
    """Return the motion sickness dose value of vertical acceleration [m/s^1.5].

    Units: `vertical` [m/s^2].
    """
    size = len(vertical) + round(60.0 * rate_hz)  # until the slowest section has rung out
    share: Any = weighting(np.asarray(2j * np.pi * np.fft.rfftfreq(size, 1.0 / rate_hz), np.complex128))
    weighted = np.fft.irfft(np.fft.rfft(vertical, size) * share, size)[: len(vertical)]
    return float(np.sqrt(np.sum(weighted**2) / rate_hz))


def conflict(force: Array, rates: Array, up: Array, rate_hz: float) -> Array:
    """Return the magnitude of sensed less expected vertical, from an upright rest on [m/s^2].

    With w the angular velocity, f the specific force, a its part that is acceleration, and the canals' w' and their
    expectation w" linear in w: the sensed vertical obeys tau v' = f - v - tau w' x v, the expected one likewise with
    f" = (Ka a + Kvc x + Kac (f - v + v")) / (1 + Kac), x the integral of v - v".  By Heun's method.

    Units: `force` [m/s^2], `rates` [rad/s].
    """
    from scipy import signal

    down = np.array([1.0, 1.0, -1.0])  # to axes forward, right, down, in which rates are
    acting, moved = force * down, (force - GRAVITY * up) * down
    lags = np.polymul([CANAL_S, 1.0], [ADAPTATION_S, 1.0])
    canal = signal.bilinear([CANAL_S * ADAPTATION_S, 0.0, 0.0], lags, rate_hz)
    inner = signal.bilinear([CANAL_S, 0.0], [(1.0 + KWC) * CANAL_S, 1.0], rate_hz)
    sensed = signal.lfilter(*canal, rates, axis=0)
    expected = signal.lfilter(*inner, KW * rates + KWC * sensed, axis=0)
    rows = np.hstack([acting, moved, sensed, expected]).tolist()
    state = [*acting[0].tolist(), *acting[0].tolist(), *(acting[0] / KVC).tolist()]
    out = np.zeros(len(rows))
    for k in range(len(rows) - 1):
        first = _change(state, rows[k])
        tried = [x + y / rate_hz for x, y in zip(state, first, strict=True)]
        second = _change(tried, rows[k + 1])
        state = [x + 0.5 * (y + z) / rate_hz for x, y, z in zip(state, first, second, strict=True)]
        out[k + 1] = ((state[0] - state[3]) ** 2 + (state[1] - state[4]) ** 2 + (state[2] - state[5]) ** 2) ** 0.5
    return out


def _change(state: list[float], row: list[float]) -> list[float]:
    """Return the derivative of sensed vertical, expected vertical and the integral of their difference."""
    v, h, x = state[:3], state[3:6], state[6:]
    f, a, sensed, expected = row[:3], row[3:6], row[6:9], row[9:]
    g = [(KA * a[i] + KVC * x[i] + KAC * (f[i] - v[i] + h[i])) / (1.0 + KAC) for i in range(3)]
    turned, kept = _cross(sensed, v), _cross(expected, h)
    return [
        *((f[i] - v[i]) / VERTICAL_S - turned[i] for i in range(3)),
        *((g[i] - h[i]) / VERTICAL_S - kept[i] for i in range(3)),
        *(v[i] - h[i] for i in range(3)),
    ]


def _cross(one: list[float], other: list[float]) -> tuple[float, float, float]:
    return (
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    )


def incidence(conflict: Array) -> float:
    """Return the share of people who are sick after an hour of a conflict like this, behind the model's two lags [%].

    Units: `conflict` [m/s^2].
    """
    share = (conflict / HALF) ** 2
    grown = 1.0 - (1.0 + HOUR_S / GROWING_S) * np.exp(-HOUR_S / GROWING_S)
    return float(MOST * grown * np.mean(share / (1.0 + share)))
