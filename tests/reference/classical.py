"""The classical washout as a slow oracle: rotation matrices and state equations, one tick at a time.

Written from the structure (Reid & Nahon; specific force f = a - g, x forward, y right, z down, angles z-y-x):

* sustained: T f / g, low-passed, is the sine of the tilt; the tilt's rate and acceleration are limited; nose up for
  force ahead, left side down for force to the right
* onset: K a, or K f, turned by the vehicle's or the platform's pitch and roll into level axes, where K f of a level
  vehicle at rest is taken off; high-passed, its second integral is displacement
* rotation: K omega, to Euler rates at the platform's attitude of the tick before, high-passed; its integral is attitude
* texture: acceleration and body rates, high-passed by a Butterworth filter of third order, are added behind all of this
* cue: attitude = rotation + tilt; specific force in platform axes R^T (a - g) + g of the onset acceleration
"""

from typing import Any

import numpy as np

from reference.sections import FORMS, HighPass, Stepper, half_tick, high_pass_1, low_pass_2

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


def bent(value: float, scaling: Any, largest: Any) -> float:
    """Return an input as its polynomial has it, for a gain of 1: slope 1 at 0, `share` and `slope` at the largest.

    The unknowns are the coefficients of first, second and third order.
    """
    if scaling is None:
        return value
    x = largest
    conditions = [[1, 0, 0], [x, x**2, x**3], [1, 2 * x, 3 * x**2]]
    first, second, third = np.linalg.solve(conditions, [1.0, scaling.share * x, scaling.slope])
    size = min(abs(value), x)
    return float(np.copysign(first * size + second * size**2 + third * size**3, value))


def shaped(value: float, dead_zone: float, negative_share: float = 1.0) -> float:
    """Return an input behind its dead zone, and less on its negative side."""
    beyond = max(abs(value) - dead_zone, 0.0)
    value *= beyond**2 / (beyond**2 + dead_zone**2) if beyond > 0.0 else 0.0
    towards = value / np.sqrt(value**2 + 0.3**2)  # -1 ... 1
    return float(value * ((1.0 + towards) / 2 + negative_share * (1.0 - towards) / 2))


class Tilt:
    """The law of the tilt in units of ticks: follow the target, close in on it so fast that braking by `push` suffices.

    With speed w a stop takes w - push, w - 2 push ... down to 0; the closing speed is found from the continuous bound
    (w + push / 2)^2 = 2 push distance, which never takes longer.
    """

    def __init__(self, rate: float, push: float) -> None:
        self.rate, self.push = rate, push
        self.angle = self.speed = self.target = 0.0

    def step(self, target: float) -> float:
        """Return the angle at this tick."""
        own = target - self.target  # the target's speed
        left = self.target - self.angle
        closing = abs(left)
        if closing > self.push / 2:
            closing = np.sqrt(2 * self.push * closing) - self.push / 2
        wanted = np.clip(own + np.sign(left) * closing, -self.rate, self.rate)
        self.speed = np.clip(wanted, self.speed - self.push, self.speed + self.push)
        self.angle, self.target = self.angle + self.speed, target
        return self.angle


class BoundedAngle:
    """A high-pass of Euler rates whose angle keeps a limit: the rate away from 0 is times 1 - (angle / limit)^2.

    Trapezoidal rule: the rate of this tick is found as if it were not limited, and its share is what the angle takes.
    """

    def __init__(self, axis: Any, dt: float) -> None:
        omega = 2 * np.pi * axis.cutoff_hz
        self.outer = Stepper(high_pass_1(2 * np.pi * axis.break_hz), dt) if axis.order == 3 else None
        self.damping = omega if axis.order == 1 else 2 * axis.damping * omega
        self.stiffness = 0.0 if axis.order == 1 else omega**2
        self.k, self.limit = half_tick(omega, dt), np.radians(axis.angle_limit_deg)
        self.rate = self.angle = self.integral = 0.0
        self.fresh = True

    def step(self, u: float) -> Any:
        """Return rate, angle and integral of the angle."""
        u = self.outer.step(u)[0] if self.outer else u
        k = self.k
        if self.fresh:  # at rest until now
            self.rate, self.fresh = np.clip(u, -self.limit / k, self.limit / k), False
            return np.array([self.rate, 0.0, 0.0])
        # rate = u - damping angle - stiffness integral, with angle and integral at this tick by the trapezoidal rule
        angle, integral = self.angle + k * self.rate, self.integral + k * self.angle
        rate = (u - self.damping * angle - self.stiffness * (integral + k * angle)) / (
            1 + self.damping * k + self.stiffness * k**2
        )
        if rate * angle > 0:
            rate *= 1 - min(1.0, abs(angle) / self.limit) ** 2
        rate = np.clip(rate, (-self.limit - angle) / (2 * k), (self.limit - angle) / (2 * k))
        self.integral += k * (2 * self.angle + k * (self.rate + rate))
        self.angle += k * (self.rate + rate)
        self.rate = rate
        return np.array([rate, self.angle, self.integral])


class Texture:
    """The band of sway, heave, roll and pitch that goes round the washout."""

    def __init__(self, settings: Any, dt: float, form: Any) -> None:
        omega = 2 * np.pi * settings.cutoff_hz
        names = ("sway", "heave", "roll", "pitch")
        self.bands = [HighPass(3, omega, 0.5, omega, dt, form) for _ in names]
        self.gains = [getattr(settings, f"{name}_gain") for name in names]
        self.limits = [settings.limit_m] * 2 + [np.radians(settings.limit_deg)] * 2

    def step(self, motion: Any) -> Any:
        """Return position, speed and acceleration of sway, heave (down), roll and pitch (its acceleration unused)."""
        inputs = motion["sway"], -motion["heave"], motion["roll_rate"], motion["pitch_rate"]
        rows = []
        for i, (band, gain, limit, u) in enumerate(zip(self.bands, self.gains, self.limits, inputs, strict=True)):
            a, v, x = gain * np.asarray(band.step(u))
            x, v, a = (x, v, a) if i < 2 else (v, a, 0.0)
            end = 1.875 * limit
            soft = np.polynomial.Polynomial([0, 1, 0, -2 / 3 / end**2, 0, 1 / 5 / end**4])
            if abs(x) < end:
                rows.append((soft(x), v * soft.deriv()(x), a * soft.deriv()(x) + v**2 * soft.deriv(2)(x)))
            else:
                rows.append((np.copysign(limit, x), 0.0, 0.0))
        return np.array(rows)


class Washout:
    """One platform.

    Parameters
    ----------
    settings : motioncue.cueing.classical.settings.Classical
        Its numbers only.
    dt : float
        Tick [s].
    """

    def __init__(self, settings: Any, dt: float) -> None:
        self.dt, self.settings, self.form = dt, settings, FORMS[settings.filters]
        self.translation = [settings.surge, settings.sway, settings.heave]
        self.rotation = [settings.roll, settings.pitch, settings.yaw]
        limits = [axis.limit_m_s2 for axis in self.translation], [axis.limit_deg_s for axis in self.rotation]
        self.forces, rates = (np.array([np.inf if one is None else one for one in each]) for each in limits)
        self.rates = np.radians(rates)
        self.onset = [self._high_pass(axis) for axis in self.translation]
        self.turn = [
            self._high_pass(axis) if axis.angle_limit_deg is None else BoundedAngle(axis, dt) for axis in self.rotation
        ]
        tilt = settings.tilt
        self.low = [
            self.form(low_pass_2(2 * np.pi * hz, tilt.damping), dt)
            for hz in (tilt.surge_cutoff_hz, tilt.sway_cutoff_hz)
        ]
        limit = np.inf if tilt.rate_limit_deg_s is None else tilt.rate_limit_deg_s
        self.tilt_step = np.radians(limit) * dt
        limit = np.inf if tilt.acceleration_limit_deg_s2 is None else tilt.acceleration_limit_deg_s2
        self.tilts = [Tilt(self.tilt_step, np.radians(limit) * dt**2) for _ in range(2)]
        self.tilt = np.zeros(2)
        self.texture = Texture(settings.texture, dt, self.form) if settings.texture else None
        self.attitude = np.zeros(3)

    def _high_pass(self, axis: Any) -> HighPass:
        break_hz = axis.break_hz or 0.0
        omegas = 2 * np.pi * axis.cutoff_hz, 2 * np.pi * break_hz
        return HighPass(axis.order, omegas[0], axis.damping, omegas[1], self.dt, self.form)

    def _sustained(self, force: Any) -> Any:
        """Return the specific force that becomes tilt: its own gain and limit if they are given, else the axis's."""
        out = []
        for name, value in zip(("surge", "sway"), force, strict=True):
            axis, tilt = getattr(self.settings, name), self.settings.tilt
            gain, limit = getattr(tilt, f"{name}_gain"), getattr(tilt, f"{name}_limit_m_s2")
            gain = axis.gain if gain is None else gain
            value = shaped(value, axis.dead_zone_m_s2, axis.negative_share)
            value = bent(value, axis.scaling, axis.scaling and axis.scaling.largest_m_s2)
            limit = axis.limit_m_s2 if limit is None else limit
            out.append(gain * value if limit is None else np.clip(gain * value, -limit, limit))
        return out

    def _scaled(self, values: Any) -> Any:
        """Return translational values times their gains, within their limits."""
        gains = np.array([axis.gain for axis in self.translation])
        up = np.array([1.0, 1.0, -1.0])  # negative heave is downward
        values = up * [
            shaped(value, axis.dead_zone_m_s2, axis.negative_share)
            for value, axis in zip(up * values, self.translation, strict=True)
        ]
        values = [
            bent(value, axis.scaling, axis.scaling and axis.scaling.largest_m_s2)
            for value, axis in zip(values, self.translation, strict=True)
        ]
        return self._limited(gains * values, "before_turn", self.forces)

    def _limited(self, values: Any, where: str, limits: Any) -> Any:
        """Return values within limits, if that is where these act."""
        return np.clip(values, -limits, limits) if self.settings.limited == where else values

    def _scaled_rates(self, values: Any) -> Any:
        gains = np.array([axis.gain for axis in self.rotation])
        values = [shaped(v, np.radians(axis.dead_zone_deg_s)) for v, axis in zip(values, self.rotation, strict=True)]
        values = [
            bent(value, axis.scaling, axis.scaling and np.radians(axis.scaling.largest_deg_s))
            for value, axis in zip(values, self.rotation, strict=True)
        ]
        return self._limited(gains * values, "before_turn", self.rates)

    def step(self, motion: Any) -> dict[str, float]:
        """Return the cue's channels at one tick."""
        a = np.array([motion["surge"], motion["sway"], -motion["heave"]])
        vehicle = matrix(motion["roll"], motion["pitch"], 0.0)

        tilt = self.settings.tilt
        shares = np.array([tilt.pitch_share, tilt.roll_share])
        force = self._sustained(a[:2] - shares * (vehicle.T @ DOWN)[:2])
        before = self.tilt
        low = np.array([low.step(f / G)[0] for low, f in zip(self.low, force, strict=True)])
        target = np.clip(low, -1.0, 1.0)
        target = target if tilt.law == "linear" else np.arcsin(target)
        self.tilt = np.array([tilt.step(angle) for tilt, angle in zip(self.tilts, target, strict=True)])
        tilt_rate = (self.tilt - before) / self.dt

        omega = self._scaled_rates(np.array([motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"]]))
        euler = np.linalg.solve(rates_matrix(*self.attitude[:2]), omega)
        euler = self._limited(euler, "after_turn", self.rates)
        turn = np.array([f.step(u) for f, u in zip(self.turn, euler, strict=True)])

        lean = np.array([-self.tilt[1], self.tilt[0], 0.0])
        lean_rate = np.array([-tilt_rate[1], tilt_rate[0], 0.0])
        shake = self.texture.step(motion) if self.texture else np.zeros((4, 3))
        lean[:2] += shake[2:, 0]
        lean_rate[:2] += shake[2:, 1]
        self.attitude = turn[:, 1] + lean

        turned_by = matrix(*self.attitude[:2], 0.0) if self.settings.turned_by == "platform" else vehicle
        if self.settings.turned == "specific_force":
            pull = vehicle.T @ DOWN
            off = a - np.array([*shares, 1.0]) * pull + DOWN  # from what is felt in a level vehicle at rest
            level = turned_by @ (self._scaled(off) - self.settings.heave.gain * DOWN) + self.settings.heave.gain * DOWN
        else:
            level = turned_by @ self._scaled(a)
        level = self._limited(level, "after_turn", self.forces)
        onset = np.array([f.step(u) for f, u in zip(self.onset, level, strict=True)])
        acceleration, displacement = onset[:, 0], onset[:, 2]
        displacement[1:] += shake[:2, 0]
        acceleration[1:] += shake[:2, 2]
        rates = rates_matrix(*self.attitude[:2]) @ (turn[:, 0] + lean_rate)
        felt = platform_force(acceleration, *self.attitude)
        values = [felt[0], felt[1], -felt[2], *self.attitude, *rates, *displacement[:2], -displacement[2]]
        return dict(zip(CHANNELS, values, strict=True))
