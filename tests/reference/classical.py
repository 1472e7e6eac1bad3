"""The classical washout as a slow oracle: rotation matrices and state equations, one tick at a time.

Written from the structure (Reid & Nahon; specific force f = a - g, x forward, y right, z down, angles z-y-x):

* sustained: K f / g, low-passed, is the sine of the tilt; the tilt's rate is limited; nose up for force ahead, left
  side down for force to the right
* onset: K a, turned by the vehicle's pitch and roll into level axes, high-passed; its second integral is displacement
* rotation: K omega, to Euler rates at the platform's attitude of the tick before, high-passed; its integral is attitude
* cue: attitude = rotation + tilt; specific force in platform axes R^T (a - g) + g of the onset acceleration
"""

from typing import Any

import numpy as np

from reference.sections import HighPass, Stepper, low_pass_2

CHANNELS = (
    *("surge", "sway", "heave"),
    *("roll", "pitch", "yaw"),
    *("roll_rate", "pitch_rate", "yaw_rate"),
    *("surge_displacement", "sway_displacement", "heave_displacement"),
)
"""What a step gives."""

G = 9.80665  # [m/s^2]
DOWN = np.array([0.0, 0.0, G])


def matrix(roll: float, pitch: float, yaw: float) -> Any:
    """Return the rotation of body axes into level axes: about z, then y, then x."""
    cr, sr, cp, sp, cy, sy = (f(a) for a in (roll, pitch, yaw) for f in (np.cos, np.sin))
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    return about_z @ about_y @ about_x


def rates_matrix(roll: float, pitch: float) -> Any:
    """Return the matrix from Euler rates to body rates."""
    cr, sr, cp, sp = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch)
    return np.array([[1.0, 0.0, -sp], [0.0, cr, sr * cp], [0.0, -sr, cr * cp]])


def platform_force(a: Any, roll: float, pitch: float, yaw: float) -> Any:
    """Return the specific force in platform axes less its value at rest, for acceleration `a` in level axes."""
    return matrix(roll, pitch, yaw).T @ (a - DOWN) + DOWN


class Washout:
    """One platform.

    Parameters
    ----------
    settings : motioncue.settings.classical.Classical
        Its numbers only.
    dt : float
        Tick [s].
    """

    def __init__(self, settings: Any, dt: float) -> None:
        self.dt = dt
        self.translation = [settings.surge, settings.sway, settings.heave]
        self.rotation = [settings.roll, settings.pitch, settings.yaw]
        self.onset = [self._high_pass(axis) for axis in self.translation]
        self.turn = [self._high_pass(axis) for axis in self.rotation]
        tilt = settings.tilt
        self.low = [
            Stepper(low_pass_2(2 * np.pi * hz, tilt.damping), dt) for hz in (tilt.surge_cutoff_hz, tilt.sway_cutoff_hz)
        ]
        limit = np.inf if tilt.rate_limit_deg_s is None else tilt.rate_limit_deg_s
        self.tilt_step = np.radians(limit) * dt
        self.tilt = np.zeros(2)
        self.attitude = np.zeros(3)

    def _high_pass(self, axis: Any) -> HighPass:
        break_hz = axis.break_hz or 0.0
        return HighPass(axis.order, 2 * np.pi * axis.cutoff_hz, axis.damping, 2 * np.pi * break_hz, self.dt)

    def _scaled(self, values: Any) -> Any:
        """Return translational values times their gains, within their limits."""
        limits = [np.inf if axis.limit_m_s2 is None else axis.limit_m_s2 for axis in self.translation]
        gains = np.array([axis.gain for axis in self.translation])
        return np.clip(gains * values, -np.array(limits), limits)

    def _scaled_rates(self, values: Any) -> Any:
        limits = [np.inf if axis.limit_deg_s is None else np.radians(axis.limit_deg_s) for axis in self.rotation]
        gains = np.array([axis.gain for axis in self.rotation])
        return np.clip(gains * values, -np.array(limits), limits)

    def step(self, motion: Any) -> dict[str, float]:
        """Return the cue's channels at one tick."""
        a = np.array([motion["surge"], motion["sway"], -motion["heave"]])
        vehicle = matrix(motion["roll"], motion["pitch"], 0.0)

        force = self._scaled(a - vehicle.T @ DOWN)[:2]
        before = self.tilt
        low = np.array([low.step(f / G)[0] for low, f in zip(self.low, force, strict=True)])
        target = np.arcsin(np.clip(low, -1.0, 1.0))
        self.tilt = before + np.clip(target - before, -self.tilt_step, self.tilt_step)
        tilt_rate = (self.tilt - before) / self.dt

        level = vehicle @ self._scaled(a)
        onset = np.array([f.step(u) for f, u in zip(self.onset, level, strict=True)])
        acceleration, displacement = onset[:, 0], onset[:, 2]

        omega = self._scaled_rates(np.array([motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"]]))
        euler = np.linalg.solve(rates_matrix(*self.attitude[:2]), omega)
        turn = np.array([f.step(u) for f, u in zip(self.turn, euler, strict=True)])

        lean = np.array([-self.tilt[1], self.tilt[0], 0.0])
        lean_rate = np.array([-tilt_rate[1], tilt_rate[0], 0.0])
        self.attitude = turn[:, 1] + lean
        rates = rates_matrix(*self.attitude[:2]) @ (turn[:, 0] + lean_rate)
        felt = platform_force(acceleration, *self.attitude)
        values = [felt[0], felt[1], -felt[2], *self.attitude, *rates, *displacement[:2], -displacement[2]]
        return dict(zip(CHANNELS, values, strict=True))
