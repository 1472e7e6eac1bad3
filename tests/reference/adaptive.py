"""The coordinated adaptive washout as a slow oracle: derivatives by complex steps, no equation of sensitivity.

Written from the equations in ``docs/adaptive.md``.  Every parameter has a copy of the washout in which it has an
imaginary part of `STEP`, so the imaginary parts of the copy's errors are their derivatives (W. Squire and G. Trapp,
SIAM Review 40(1), 1998).  Filters are the trapezoidal rule on state equations.
"""

from typing import Any

import numpy as np

from reference.classical import CHANNELS, G, matrix, platform_force, rates_matrix

STEP = 1e-30
THRESHOLDS = {"surge": 0.17, "sway": 0.17, "heave": 0.28, "roll": 3.0, "pitch": 3.6, "yaw": 2.6}  # [m/s^2, deg/s]


class Section:
    """x'' = u - 2 z w x' - w^2 x, at rest at the first input; prewarped at w."""

    def __init__(self, omega: float, zeta: float, dt: float) -> None:
        self.a = np.array([[0.0, 1.0], [-(omega**2), -2.0 * zeta * omega]])
        self.k = np.tan(0.5 * omega * dt) / omega
        self.z: Any = None
        self.before: Any = None

    def step(self, u: Any) -> tuple[Any, Any, Any]:
        """Return acceleration, speed and travel."""
        if self.z is None:
            self.z = np.zeros((2, *np.shape(u)), complex)
        else:
            drive = np.zeros_like(self.z)
            drive[1] = self.k * (u + self.before)
            eye = np.eye(2)
            self.z = np.linalg.solve(eye - self.k * self.a, (eye + self.k * self.a) @ self.z + drive)
        self.before = u
        return u + (self.a @ self.z)[1], self.z[1], self.z[0]


class Adapting:
    """Parameters between bounds that descend a cost; `start`, `least`, `most`: shape (n,)."""

    def __init__(self, settings: Any, dt: float, start: Any, least: Any, most: Any) -> None:
        self.start, self.least, self.most = (np.array(each, float) for each in (start, least, most))
        self.mu, self.back = settings.adaptation * dt, dt / settings.return_s
        self.pace = 5.0 * dt  # of its range a second, a parameter at most
        self.now = self.start.copy()
        self.costs: list[tuple[float, float]] = []

    @property
    def copies(self) -> Any:
        """Parameters by row, copies by column."""
        return self.now[:, None] + 1j * STEP * np.eye(len(self.now))

    def descend(self, errors: Any) -> None:
        """Descend half the sum of the squared errors, shape (m, n copies)."""
        span = self.most - self.least
        e, by = errors[:, 0].real, errors.imag / STEP * span
        step = -self.mu / (1.0 + self.mu * np.sum(by**2)) * (by.T @ e)
        self.costs.append((0.5 * float(e @ e), 0.5 * float(np.sum((e + by @ step) ** 2))))
        change = np.clip(span * step - self.back * (self.now - self.start), -self.pace * span, self.pace * span)
        self.now = np.clip(self.now + change, self.least, self.most)


def taken(u: float, gain: float, limit: float) -> float:
    """Return a scaled input within its limit."""
    return float(np.clip(gain * u, -limit, limit))


class Pair:
    """Surge with pitch, or sway with roll to the left."""

    def __init__(self, settings: Any, force: str, turning: str, dt: float) -> None:
        self.f, self.q, self.dt = getattr(settings, force), getattr(settings, turning), dt
        f, q, w = self.f, self.q, 2 * np.pi * getattr(settings, turning).cutoff_hz
        self.adapting = Adapting(
            *(settings, dt, (f.start, w, q.start), (f.least, w / q.cutoff_ratio, q.least)),
            (f.most, w * q.cutoff_ratio, q.most),
        )
        self.section = Section(2 * np.pi * f.cutoff_hz, f.damping, dt)
        self.tilt, self.turned = np.zeros(3, complex), np.zeros(3, complex)
        self.tilt_rate, self.turned_rate = None, None
        self.smooth, self.smooth_rate, self.smooth_w = 0.0, 0.0, 2 * np.pi * settings.tilt.smooth_hz
        limit = settings.tilt.rate_limit_deg_s
        self.rate_limit = 1e9 if limit is None else np.radians(limit)
        weights, speed = settings.weights, f.range_m * 2 * np.pi * f.cutoff_hz
        self.weights = (
            *(weights.force / THRESHOLDS[force], weights.rate / np.radians(THRESHOLDS[turning])),
            *(weights.travel / f.range_m, weights.speed / speed),
        )

    def step(self, f: float, q: float) -> tuple[float, float, float, float]:
        """Return acceleration, travel, angle and rate."""
        share, corner, turning = self.adapting.copies
        k, aim = 0.5 * self.dt, np.clip(f / G, -np.radians(self.q.tilt_deg), np.radians(self.q.tilt_deg))
        w = self.smooth_w
        if self.tilt_rate is not None:
            self.smooth = (self.smooth + k * (self.smooth_rate + w * aim)) / (1 + k * w)
        self.smooth_rate, aim = w * (aim - self.smooth), self.smooth
        if self.tilt_rate is not None:  # the trapezoidal rule, solved for the angle at this tick
            self.turned = (self.turned + k * (self.turned_rate + turning * q)) / (1 + k * corner)
            before = self.tilt + k * self.tilt_rate
            free = (before + k * corner * aim) / (1 + k * corner)
            limited = np.abs((corner * (aim - free)).real) > self.rate_limit
            self.tilt_rate = np.where(limited, self.rate_limit * np.sign((aim - free).real), corner * (aim - free))
            self.tilt = np.where(limited, before + k * self.tilt_rate, free)
        else:
            self.tilt_rate = 0j * corner
        self.turned_rate = turning * q - corner * self.turned
        rate = self.tilt_rate + self.turned_rate
        left = f - G * (self.tilt + self.turned)
        a, v, x = self.section.step(share * left)
        wf, wq, wx, wv = self.weights
        self.adapting.descend(np.array([wf * (left - a), wq * (q - rate), wx * x, wv * v]))
        return a[0].real, x[0].real, (self.tilt + self.turned)[0].real, rate[0].real


class Heave:
    """Heave, down."""

    def __init__(self, settings: Any, dt: float) -> None:
        h = self.h = settings.heave
        self.adapting = Adapting(settings, dt, [h.start], [h.least], [h.most])
        self.section = Section(2 * np.pi * h.cutoff_hz, h.damping, dt)
        self.w = 2 * np.pi * h.break_hz
        self.k = np.tan(0.5 * self.w * dt) / self.w
        self.low, self.before = 0.0, None
        weights = settings.weights
        self.weights = (
            *(weights.force / THRESHOLDS["heave"], weights.travel / h.range_m),
            weights.speed / (h.range_m * 2 * np.pi * h.cutoff_hz),
        )

    def step(self, f: float) -> tuple[float, float]:
        """Return acceleration and travel."""
        if self.before is not None:
            self.low = ((1 - self.k * self.w) * self.low + self.k * (f + self.before)) / (1 + self.k * self.w)
        self.before = f
        a, v, z = self.section.step(self.adapting.copies[0] * (f - self.w * self.low))
        wf, wz, wv = self.weights
        self.adapting.descend(np.array([wf * (f - a), wz * z, wv * v]))
        return a[0].real, z[0].real


class Yaw:
    """Yaw."""

    def __init__(self, settings: Any, dt: float) -> None:
        y = settings.yaw
        self.adapting = Adapting(settings, dt, [y.start], [y.least], [y.most])
        self.dt, self.angle, self.rate = dt, np.zeros(1, complex), None
        self.corner = 2 * np.pi * y.cutoff_hz
        self.wq = settings.weights.rate / np.radians(THRESHOLDS["yaw"])
        self.wa = settings.weights.travel / np.radians(y.range_deg)

    def step(self, r: float) -> tuple[float, float]:
        """Return angle and rate."""
        k, p = 0.5 * self.dt, self.adapting.copies[0]
        if self.rate is not None:
            self.angle = (self.angle + k * (self.rate + p * r)) / (1 + k * self.corner)
        self.rate = p * r - self.corner * self.angle
        self.adapting.descend(np.array([self.wq * (r - self.rate), self.wa * self.angle]))
        return self.angle[0].real, self.rate[0].real


class Adaptive:
    """One platform.

    Parameters
    ----------
    settings : motioncue.cueing.adaptive.settings.Adaptive
        Its numbers only.
    dt : float
        Tick [s].
    """

    def __init__(self, settings: Any, dt: float) -> None:
        self.settings = settings
        self.pairs = Pair(settings, "surge", "pitch", dt), Pair(settings, "sway", "roll", dt)
        self.heave, self.yaw = Heave(settings, dt), Yaw(settings, dt)
        self.attitude = np.zeros(3)

    def step(self, motion: Any) -> dict[str, float]:
        """Return the cue's channels at one tick."""
        s = self.settings
        a = np.array([motion["surge"], motion["sway"], -motion["heave"]])
        down = np.array([0.0, 0.0, G])
        felt = a - matrix(motion["roll"], motion["pitch"], 0.0).T @ down + down
        f = [taken(u, axis.gain, axis.limit_m_s2) for u, axis in zip(felt, (s.surge, s.sway, s.heave), strict=True)]
        body = [
            taken(motion[f"{name}_rate"], getattr(s, name).gain, np.radians(getattr(s, name).limit_deg_s))
            for name in ("roll", "pitch", "yaw")
        ]
        euler = np.linalg.solve(rates_matrix(*self.attitude[:2]), body)
        ax, x, pitch, pitch_rate = self.pairs[0].step(f[0], euler[1])
        ay, y, left, left_rate = self.pairs[1].step(f[1], -euler[0])
        az, z = self.heave.step(f[2])
        yaw, yaw_rate = self.yaw.step(euler[2])
        self.attitude = np.array([-left, pitch, yaw])
        rates = rates_matrix(*self.attitude[:2]) @ [-left_rate, pitch_rate, yaw_rate]
        cue = platform_force(np.array([ax, ay, az]), *self.attitude)
        values = [cue[0], cue[1], -cue[2], *self.attitude, *rates, x, y, -z]
        return dict(zip(CHANNELS, values, strict=True))

    @property
    def parameters(self) -> dict[str, float]:
        """Present values of the parameters."""
        long, side = (pair.adapting.now for pair in self.pairs)
        return {
            **{"surge": long[0], "pitch_cutoff_hz": long[1] / (2 * np.pi), "pitch": long[2]},
            **{"sway": side[0], "roll_cutoff_hz": side[1] / (2 * np.pi), "roll": side[2]},
            **{"heave": self.heave.adapting.now[0], "yaw": self.yaw.adapting.now[0]},
        }
