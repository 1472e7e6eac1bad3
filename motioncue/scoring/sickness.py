"""How sick a motion makes: the motion sickness dose value, and the conflict about the vertical.

Both judge what acts on the inner ear alone: a picture that does not fit it makes sick too, and is not in here.

References
----------
ISO 2631-1:1997, clause 9 and annex A: the weighting Wf and the dose of vertical acceleration.  S. Inoue, H. Liu,
T. Wada, *Revisiting Motion Sickness Models Based on SVC Theory Considering Motion Perception*, SAE Technical Paper
2023-01-0176: the subjective vertical conflict in six degrees of freedom, its constants and its incidence (model IN1),
which goes back to W. Bles, J. E. Bos and others, Brain Research Bulletin 47 (1998), and N. Kamiji and others, SICE
Annual Conference 2007.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import GRAVITY
from motioncue.scoring.senses import Array

HIGH_PASS_HZ, LOW_PASS_HZ = 0.08, 0.63  # of Wf: f1, f2 of the band, Butterworth
TRANSITION_HZ, TRANSITION_Q = 0.25, 0.86  # f4, Q4
STEP_HZ, STEP_Q = (0.0625, 0.1), 0.80  # f5, f6, Q5 = Q6

KA, KW, KWC, KVC, KAC = 0.1, 0.1, 10.0, 5.0, 0.5
CANAL_S, ADAPTATION_S = 7.0, 190.0
VERTICAL_S = 2.0
HALF = 0.5  # conflict that makes half of those sick who ever are [m/s^2]
MOST, GROWING_S = 85.0, 720.0  # incidence [%], and the two lags behind which it grows
HOUR_S = 3600.0


class Sickness(NamedTuple):
    """How sick a motion makes."""

    dose: float
    """Motion sickness dose value of vertical acceleration, MSDV [m/s^1.5]; grows with the square root of time."""
    conflict: float
    """Root mean square of the difference between the sensed and the expected vertical [m/s^2]."""
    incidence: float
    """Share of people who would be sick after an hour of such motion, by that conflict [%]."""


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
