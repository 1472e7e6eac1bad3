"""Closed-form responses of the two parameter sets, from the numbers of their sources, in continuous time."""

from typing import Any, NamedTuple

import numpy as np
from scipy import signal

G = 9.80665  # [m/s^2]


class HighPassAxis(NamedTuple):
    """Gain; natural or break frequency [rad/s]; break frequency of the extra section [rad/s]; order."""

    gain: float
    omega: float
    omega_b: float = 0.0
    order: int = 2

    @property
    def function(self) -> tuple[Any, Any]:
        """Numerator and denominator in s; every damping ratio of both sets is 1."""
        if self.order == 1:
            return self.gain * np.array([1.0, 0.0]), np.array([1.0, self.omega])
        numerator, denominator = self.gain * np.array([1.0, 0.0, 0.0]), np.array([1.0, 2 * self.omega, self.omega**2])
        if self.order == 3:
            return np.polymul(numerator, [1.0, 0.0]), np.polymul(denominator, [1.0, self.omega_b])
        return numerator, denominator


SETS: dict[str, dict[str, HighPassAxis]] = {
    "simona": {
        "surge": HighPassAxis(0.6, 0.8),
        "sway": HighPassAxis(0.6, 1.0),
        "heave": HighPassAxis(0.5, 1.0, 0.2, 3),
        "roll_rate": HighPassAxis(0.6, 1.0),
        "pitch_rate": HighPassAxis(0.6, 0.8),
        "yaw_rate": HighPassAxis(0.6, 1.0),
    },
    "utias": {
        "surge": HighPassAxis(0.5, 2.5, 0.25, 3),
        "sway": HighPassAxis(0.5, 4.0, 0.4, 3),
        "heave": HighPassAxis(0.5, 4.0, 0.4, 3),
        "roll_rate": HighPassAxis(0.5, 1.0, order=1),
        "pitch_rate": HighPassAxis(0.5, 1.0, order=1),
        "yaw_rate": HighPassAxis(0.5, 1.0),
    },
}
TILT = {"simona": {"surge": 2.0, "sway": 2.0}, "utias": {"surge": 5.0, "sway": 8.0}}
"""Natural frequency of the tilt's low-pass [rad/s]."""


def low_pass(preset: str, channel: str) -> tuple[Any, Any] | None:
    """Return the tilt's low-pass with the axis's gain, or None for a channel that has no tilt."""
    omega = TILT[preset].get(channel)
    if omega is None:
        return None
    return SETS[preset][channel].gain * np.array([omega**2]), np.array([1.0, 2 * omega, omega**2])


def gains(preset: str, channel: str, omega: Any) -> Any:
    """Return K [HP + LP] at `omega` [rad/s]: felt over done, for small angles and no rate limit."""
    s = 1j * np.asarray(omega)
    parts = [SETS[preset][channel].function, low_pass(preset, channel)]
    return sum(np.polyval(p[0], s) / np.polyval(p[1], s) for p in parts if p is not None)


def step(function: tuple[Any, Any], time: Any) -> Any:
    """Return the response to a unit step, exact: the step is constant between samples."""
    numerator, denominator = function
    dt = time[1] - time[0]
    a, b, c, d = signal.tf2ss(numerator, denominator)
    ad, bd, *_ = signal.cont2discrete((a, b, c, d), dt, "zoh")
    _, y, _ = signal.dlsim((ad, bd, c, d, dt), np.ones((len(time), 1)))
    return y[:, 0]


def travel(preset: str, channel: str, time: Any) -> Any:
    """Return the displacement after a unit step [m per m/s^2]."""
    numerator, denominator = SETS[preset][channel].function
    # Every second-order or higher numerator ends in s^2, which the two integrations take away.
    return step((numerator[:-2], denominator), time)


def felt(preset: str, channel: str, time: Any) -> Any:
    """Return the specific force after a unit step, for small angles and no rate limit."""
    return step(SETS[preset][channel].function, time) + step(low_pass(preset, channel), time)


def tilt_rate(preset: str, channel: str, time: Any) -> Any:
    """Return the rate of the tilt angle after a unit step, for small angles [rad/s per m/s^2]."""
    numerator, denominator = low_pass(preset, channel)
    return step((np.append(numerator, 0.0), denominator), time) / G
