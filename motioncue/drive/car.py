"""A virtual car on scripted drives, so that trying and testing the engine needs no simulator.

The driver is a speed over time, the road is curvature, height and bank over distance, and the body sits on the road
on three second-order suspension modes: heave, pitch and roll.  Speed and road are sums of polynomial steps, whose
integrals and derivatives are polynomials too; the modes are solved by exact exponentials.  So a state can be evaluated
at any time, with its derivatives, and nothing is differentiated numerically.

"""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from motioncue.core.channels import GRAVITY
from motioncue.errors import ConfigError, not_among


class Leg(NamedTuple):
    """One change of speed by the driver; between legs the speed is constant."""

    start: float  # [s]
    end: float  # [s]
    speed: float  # [m/s] at the end
    ramp: float = 0.5  # [s] in which the acceleration builds up, and falls again; at most half the leg


class Shift(NamedTuple):
    """One change of gear."""

    time: float  # [s] in the middle of the shift
    gear: int  # gear after the shift, 1 to 5


class Feature(NamedTuple):
    """One feature of the road, from where the car is at `start` to where it is at `end`."""

    start: float  # [s]
    end: float  # [s]
    size: float  # turn: heading gained [rad], right positive; slope: height gained [m]; bank [rad], right side down
    share: float = 0.25  # fraction of its length in which it builds up, and falls again; at most 0.5


class Script(NamedTuple):
    """One drive: its driver and its road.  Legs follow each other, and the last one ends at standstill."""

    description: str  # one line
    duration: float  # [s], not before the last leg's end
    legs: tuple[Leg, ...] = ()
    shifts: tuple[Shift, ...] = ()
    turns: tuple[Feature, ...] = ()
    slopes: tuple[Feature, ...] = ()
    banks: tuple[Feature, ...] = ()
    humps: tuple[float, ...] = ()  # [s] times at which the reference point is above the top


_TOUR = Script(
    description="a minute of everything: launch, hard braking, corners, humps, a hill, a banked turn, stop",
    duration=62.0,
    legs=(
        Leg(2.0, 5.4, 10.0),  # first gear
        Leg(5.4, 8.7, 19.0),  # second
        Leg(8.7, 11.9, 26.0),  # third
        Leg(14.0, 17.2, 9.0, ramp=0.8),  # brake hard
        Leg(33.5, 36.8, 18.0),
        Leg(53.0, 58.0, 0.0, ramp=1.0),
    ),
    shifts=(
        Shift(5.4, 2),
        Shift(8.7, 3),
        Shift(12.0, 4),
        Shift(15.9, 3),
        Shift(16.9, 2),
        Shift(36.9, 3),
        Shift(55.8, 2),
        Shift(57.0, 1),
    ),
    turns=(
        Feature(18.0, 22.5, 1.5),
        Feature(23.5, 28.0, -1.5),
        Feature(47.0, 52.5, 1.0),
    ),
    slopes=(Feature(37.0, 42.0, 4.2, share=0.5), Feature(42.0, 47.0, -4.2, share=0.5)),
    banks=(Feature(47.0, 52.5, 0.12),),
    humps=(30.0, 32.0),
)

_STILL = Script(description="parked for a minute, engine idling", duration=60.0)

_TURNS = Script(
    description="right and left turns on a flat road, a full loop among them",
    duration=50.0,
    legs=(Leg(2.0, 6.0, 10.0), Leg(42.5, 46.0, 0.0, ramp=0.8)),
    shifts=(Shift(6.2, 2), Shift(45.0, 1)),
    turns=(
        Feature(7.0, 11.0, 1.2),
        Feature(12.0, 19.5, -2.4),
        Feature(20.5, 34.0, 4.6),
        Feature(35.0, 40.5, -1.7),
    ),
)

_BRAKE = Script(
    description="straight and flat: accelerate, cruise, brake hard, stop",
    duration=28.0,
    legs=(
        Leg(2.0, 5.4, 10.0),
        Leg(5.4, 8.7, 19.0),
        Leg(8.7, 11.9, 26.0),
        Leg(11.9, 14.9, 30.0),
        Leg(18.0, 23.0, 0.0, ramp=0.8),
    ),
    shifts=(
        Shift(5.4, 2),
        Shift(8.7, 3),
        Shift(11.9, 4),
        Shift(15.2, 5),
        Shift(19.8, 4),
        Shift(20.7, 3),
        Shift(21.5, 2),
        Shift(22.3, 1),
    ),
)

SCRIPTS: Mapping[str, Script] = {"tour": _TOUR, "still": _STILL, "turns": _TURNS, "brake": _BRAKE}
"""The scripts by name."""


STATE_DTYPE = np.dtype(
    [
        ("time", "f8"),  # [s] since the drive began
        ("position", "f8", 3),  # [m], world axes north, east, down
        ("velocity", "f8", 3),  # [m/s], world axes
        ("acceleration", "f8", 3),  # [m/s^2], world axes, gravity excluded
        ("orientation", "f8", 4),  # quaternion w, x, y, z: rotates body axes (forward, right, down) into world axes
        ("angular_velocity", "f8", 3),  # [rad/s], world axes
        ("angular_acceleration", "f8", 3),  # [rad/s^2], world axes
        ("engine_speed", "f8"),  # [rpm]
    ]
)
"""The car's state at one moment, at the reference point of its body."""

DRIVES: Mapping[str, str] = {name: script.description for name, script in SCRIPTS.items()}
"""The drives by name, each with a one-line description."""

MAX_RATE_HZ = 2000.0
"""Largest sampling rate [Hz]."""

GEARS = (444.0, 259.0, 172.0, 129.0, 105.0)
"""Ratio of engine speed to speed in each gear, from the first [rpm per m/s]."""

Array: TypeAlias = NDArray[np.float64]

# The body.  Modes are heave, pitch, roll.
_MODE_FREQUENCY = 2.0 * np.pi * np.array([1.3, 1.5, 1.6])  # undamped natural frequency [rad/s]
_MODE_DAMPING = np.array([0.35, 0.4, 0.4])  # damping ratio
_EIGENVALUES = _MODE_FREQUENCY * (-_MODE_DAMPING + 1j * np.sqrt(1.0 - _MODE_DAMPING**2))  # [1/s]
_PITCH_COMPLIANCE = 0.0050  # [rad per m/s^2] of forward specific force; nose up
_ROLL_COMPLIANCE = 0.0090  # [rad per m/s^2] of lateral specific force; towards the outside of the bend
_FRONT, _REAR = 1.2, 1.5  # [m] from the reference point to the axles
_REST_HEIGHT = 0.5  # [m] height of the reference point above a flat road

_HUMP_HEIGHT, _HUMP_LENGTH = 0.08, 4.0  # [m]

_IDLE_SPEED = 800.0  # [rpm]
_SHIFT_DURATION = 0.4  # [s]

_TIME_PANEL = 0.002  # [s] integration panel, short against the modes and the time an axle takes over a hump
_DISTANCE_PANEL = 0.25  # [m] integration panel, short against every curve
# Gauss-Legendre nodes and weights on [0, 1].
_LEGENDRE = np.polynomial.legendre.leggauss(4)
_NODES, _WEIGHTS = 0.5 * (_LEGENDRE[0] + 1.0), 0.5 * _LEGENDRE[1]

# The step from 0 to 1 on [0, 1] with four continuous derivatives, by order of derivative; negative orders are
# integrals.
_STEP = Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
_STEPS = {1: _STEP.deriv(), 0: _STEP, -1: _STEP.integ(), -2: _STEP.integ(2)}


def drive(name: str, rate_hz: float = 60.0, duration_s: float | None = None) -> NDArray[np.void]:
    """Return the states of the virtual car on a scripted drive.

    The car follows the road without slip: its heading is the path's tangent, its yaw rate speed times curvature.  With
    u the excursion that the road imposes on a mode and f the specific force that acts on it, each mode is
    ``x'' + 2 zeta omega (x' - u') + omega^2 (x - u - c f) = 0``.  The body rolls and pitches about the reference
    point; tires, wheel hop, crosswind and the coupling of the modes are not modeled.  A row depends only on its time,
    so different rates agree at common times; integration panels a quarter as long change no state by more than 1e-10.
    Not for use in a tick: it allocates, and the first call for a drive integrates all of it.  Own derivation and
    figures, typical of a family car.

    Examples
    --------
    >>> states = drive("brake", rate_hz=100.0)
    >>> len(states), bool(np.linalg.norm(states["velocity"], axis=1).max() > 29.0)
    (2800, True)
    """
    if not 0.0 < rate_hz <= MAX_RATE_HZ:
        raise ConfigError(f"rate_hz: found {rate_hz}, allowed is above 0 and at most {MAX_RATE_HZ:g}")
    if duration_s is not None and not 0.0 < duration_s < math.inf:
        raise ConfigError(f"duration_s: found {duration_s}, allowed is finite and above 0")
    car = _car(_scripted(name))
    duration = car.duration if duration_s is None else duration_s
    # Rounding may put the product above a whole number, which must not add a row.
    rows = max(1, math.ceil(duration * rate_hz * (1.0 - 1e-12)))
    return car.states(np.arange(rows) / rate_hz)


def states_at(name: str, time: Array) -> NDArray[np.void]:
    """Return the states of the virtual car at any times of a scripted drive.

    Units: `time` [s].
    """
    return _car(_scripted(name)).states(np.asarray(time, dtype=np.float64))


def at_pace(states: NDArray[np.void], pace: Array, change: Array) -> NDArray[np.void]:
    """Return the same places of a drive, passed at another pace.

    The `pace` is 1 where time passes as on the drive and 0 at a stand; `change` is its derivative [1/s].

    With s(t) the time on the drive, the chain rule gives d/dt x(s) = x' s' and its derivative x'' s'^2 + x' s''.
    """
    found, pace, change = states.copy(), pace[:, None], change[:, None]
    for rate, second in (("velocity", "acceleration"), ("angular_velocity", "angular_acceleration")):
        found[second] = states[second] * pace**2 + states[rate] * change
        found[rate] = states[rate] * pace
    wheels = np.maximum(states["engine_speed"] ** 2 - _IDLE_SPEED**2, 0.0)  # squares: see `_Car.states`
    found["engine_speed"] = np.sqrt(_IDLE_SPEED**2 + wheels * pace[:, 0] ** 2)
    return found


def _scripted(name: str) -> str:
    if name not in SCRIPTS:
        raise ConfigError(f"drive: {not_among(name, SCRIPTS)}")
    return name


class _Steps:
    """A sum of smooth steps, with its derivative and its first two integrals."""

    def __init__(self, rows: Iterable[tuple[float, float, float]] = ()) -> None:
        self.rows = tuple(rows)  # start, width, height; height in the unit of the sum

    def __call__(self, x: Array, order: int = 0) -> Array:
        """Return the derivative of this `order` at `x`; -1 and -2 are integrals from minus infinity."""
        total = np.zeros_like(x)
        for start, width, height in self.rows:
            u = (x - start) / width
            y = _STEPS[order](np.clip(u, 0.0, 1.0))
            if order < 0:  # after the step the integrals of 1 continue
                beyond = np.maximum(u - 1.0, 0.0)
                y = y + (beyond if order == -1 else 0.5 * beyond + 0.5 * beyond * beyond)
            total += height / width**order * y
        return total


def _pulse(start: float, end: float, ramp: float, height: float) -> list[tuple[float, float, float]]:
    """Return the two steps of a pulse, up and down again; its area is height * (end - start - ramp)."""
    return [(start, ramp, height), (end - ramp, ramp, -height)]


class _Car:
    """A compiled script: driver and road as sums of steps, path and modes integrated at their knots."""

    def __init__(self, script: Script) -> None:
        self.duration = script.duration
        self._stop = max((leg.end for leg in script.legs), default=0.0)
        self._throttle, self._ratio = _driver(script)
        self._curvature = _Steps(self._pulses(script.turns, by_area=True))
        self._slope = _Steps(self._pulses(script.slopes, by_area=True))
        self._bank = _Steps(self._pulses(script.banks, by_area=False))
        tops = self._travel(np.array(script.humps))[0]
        half = 0.5 * _HUMP_LENGTH
        self._hump = _Steps(row for top in tops for row in _pulse(top - half, top + half, half, _HUMP_HEIGHT))
        self._path = self._integrate_path()
        self._modes = self._integrate_modes()

    def _pulses(self, features: Iterable[Feature], by_area: bool) -> list[tuple[float, float, float]]:
        """Return the steps over distance of `features`, whose size is the pulse's area or its height."""
        rows = []
        for feature in features:
            start, end = self._travel(np.array([feature.start, feature.end]))[0]
            ramp = feature.share * (end - start)
            rows += _pulse(start, end, ramp, feature.size / (end - start - ramp) if by_area else feature.size)
        return rows

    def _travel(self, time: Array) -> tuple[Array, Array, Array]:
        """Return distance [m], speed [m/s] and acceleration [m/s^2] along the road's plan; parked is exactly 0."""
        moving = time < self._stop
        distance = self._throttle(np.minimum(time, self._stop), -2)
        return distance, np.where(moving, self._throttle(time, -1), 0.0), np.where(moving, self._throttle(time), 0.0)

    def _height(self, distance: Array) -> tuple[Array, Array]:
        """Return the road's height [m] and slope [m/m]."""
        return (
            self._slope(distance, -1) + self._hump(distance),
            self._slope(distance) + self._hump(distance, 1),
        )

    def _forcing(self, time: Array) -> Array:
        """Return omega^2 (u + c f) + 2 zeta omega u' of the three modes, shape (3, n)."""
        s, v, a = self._travel(time)
        front, front_slope = self._height(s + _FRONT)
        rear, rear_slope = self._height(s - _REAR)
        base = _FRONT + _REAR
        heave = (_REAR * front + _FRONT * rear) / base
        heave_rate = v * (_REAR * front_slope + _FRONT * rear_slope) / base
        grade = (front - rear) / base
        pitch = np.arctan(grade)
        pitch_rate = v * (front_slope - rear_slope) / base / (1.0 + grade * grade)
        roll = self._bank(s)
        roll_rate = v * self._bank(s, 1)
        f_forward = a + GRAVITY * np.sin(pitch)
        f_right = v * v * self._curvature(s) * np.cos(roll) - GRAVITY * np.sin(roll)
        lean = np.stack([np.zeros_like(s), _PITCH_COMPLIANCE * f_forward, -_ROLL_COMPLIANCE * f_right])
        omega, zeta = _MODE_FREQUENCY[:, None], _MODE_DAMPING[:, None]
        u, u_rate = np.stack([heave, pitch, roll]), np.stack([heave_rate, pitch_rate, roll_rate])
        return omega * omega * (u + lean) + 2.0 * zeta * omega * u_rate

    # A mode x'' + 2 zeta omega x' + omega^2 x = F has the eigenvalue lam = omega (-zeta + i sqrt(1 - zeta^2)).
    # z = x' - conj(lam) x obeys z' = lam z + F, one complex equation of first order, and holds both x and x'.

    def _integrate_modes(self) -> NDArray[np.complex128]:
        """Return z of the three modes at every time panel's start, shape (3, panels + 1)."""
        starts = _TIME_PANEL * np.arange(round(self.duration / _TIME_PANEL), dtype=np.float64)
        gains = self._panel(starts, np.full_like(starts, _TIME_PANEL))
        factors = np.exp(_EIGENVALUES * _TIME_PANEL)
        return np.array([_recur(complex(factor), gain) for factor, gain in zip(factors, gains, strict=True)])

    def _panel(self, start: Array, width: Array) -> NDArray[np.complex128]:
        """Return the integral of exp(lam (end - t)) F(t) over panels, shape (3, n)."""
        total = np.zeros((3, len(start)), dtype=np.complex128)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            decay = np.exp(_EIGENVALUES[:, None] * (width * (1.0 - node)))
            total += weight * width * decay * self._forcing(start + width * node)
        return total

    def _body(self, time: Array) -> tuple[Array, Array, Array]:
        """Return heave [m], pitch and roll [rad] with first and second derivatives, each of shape (3, n)."""
        lam = _EIGENVALUES[:, None]
        scripted = np.minimum(time, self.duration)
        panel = np.floor(scripted / _TIME_PANEL)
        start = _TIME_PANEL * panel
        width = scripted - start
        z = np.exp(lam * width) * self._modes[:, panel.astype(np.intp)] + self._panel(start, width)
        # After the script the forcing stays constant, and the mode settles.
        rest = self._forcing(np.array([self.duration])) / lam
        z = (z + rest) * np.exp(lam * (time - scripted)) - rest
        x = z.imag / lam.imag
        rate = z.real + lam.real * x
        return x, rate, self._forcing(time) + 2.0 * lam.real * rate - (_MODE_FREQUENCY**2)[:, None] * x

    def _integrate_path(self) -> NDArray[np.complex128]:
        """Return the plan position, north + i east [m], at every distance panel's start."""
        length = self._travel(np.array([self._stop]))[0][0]
        starts = _DISTANCE_PANEL * np.arange(math.ceil(length / _DISTANCE_PANEL), dtype=np.float64)
        return np.concatenate([[0.0], np.cumsum(self._stretch(starts, np.full_like(starts, _DISTANCE_PANEL)))])

    def _stretch(self, start: Array, width: Array) -> NDArray[np.complex128]:
        """Return the plan displacement, north + i east [m], over stretches of road."""
        total = np.zeros(len(start), dtype=np.complex128)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            total += weight * width * np.exp(1j * self._curvature(start + width * node, -1))
        return total

    def _plan(self, distance: Array) -> NDArray[np.complex128]:
        """Return the plan position, north + i east [m]."""
        panel = np.floor(distance / _DISTANCE_PANEL)
        start = _DISTANCE_PANEL * panel
        return self._stretch(start, distance - start) + self._path[panel.astype(np.intp)]

    def states(self, time: Array) -> NDArray[np.void]:
        """Return the states at `time` [s], an array of `STATE_DTYPE`."""
        s, v, a = self._travel(time)
        curvature = self._curvature(s)
        yaw, yaw_rate = self._curvature(s, -1), v * curvature
        yaw_acceleration = a * curvature + v * v * self._curvature(s, 1)
        (heave, pitch, roll), rates, accelerations = self._body(time)
        plan, along = self._plan(s), np.exp(1j * yaw)
        states: NDArray[Any] = np.empty(len(time), dtype=STATE_DTYPE)
        states["time"] = time
        states["position"] = _world(plan, -_REST_HEIGHT - heave)
        states["velocity"] = _world(v * along, -rates[0])
        states["acceleration"] = _world((a + 1j * v * yaw_rate) * along, -accelerations[0])
        states["orientation"] = _quaternion(roll, pitch, yaw)
        angles = np.stack([roll, pitch, yaw])
        angle_rates = np.stack([rates[2], rates[1], yaw_rate])
        angle_accelerations = np.stack([accelerations[2], accelerations[1], yaw_acceleration])
        omega, alpha = _rotation(angles, angle_rates, angle_accelerations)
        states["angular_velocity"] = omega
        states["angular_acceleration"] = alpha
        # Clutch and idle governor as one smooth curve: idle at rest, the wheels' speed well above it.
        states["engine_speed"] = np.hypot(_IDLE_SPEED, v * self._ratio(time))
        return states


@cache
def _car(name: str) -> _Car:
    return _Car(SCRIPTS[name])


def _driver(script: Script) -> tuple[_Steps, _Steps]:
    """Return acceleration [m/s^2] and gear ratio [rpm per m/s] over time."""
    throttle, ratio = [], [(-1.0, 1.0, GEARS[0])]
    speed, gear = 0.0, 1
    for leg in script.legs:
        height = (leg.speed - speed) / (leg.end - leg.start - leg.ramp)
        throttle += _pulse(leg.start, leg.end, leg.ramp, height)
        speed = leg.speed
    for shift in script.shifts:
        rise = GEARS[shift.gear - 1] - GEARS[gear - 1]
        ratio.append((shift.time - 0.5 * _SHIFT_DURATION, _SHIFT_DURATION, rise))
        gear = shift.gear
    return _Steps(throttle), _Steps(ratio)


def _recur(factor: complex, gains: NDArray[np.complex128]) -> list[complex]:
    """Return z of z[k+1] = factor * z[k] + gains[k], z[0] = 0."""
    return list(accumulate(gains.tolist(), lambda z, gain: factor * z + gain, initial=0j))


def _world(plan: NDArray[np.complex128], down: Array) -> Array:
    """Return vectors in world axes, shape (n, 3), from north + i east and down."""
    return np.stack([plan.real, plan.imag, down], axis=-1)


def _quaternion(roll: Array, pitch: Array, yaw: Array) -> Array:
    """Return the quaternion w, x, y, z of z-y-x angles [rad], shape (n, 4); continuous, so w may be negative."""
    cr, cp, cy = np.cos(0.5 * roll), np.cos(0.5 * pitch), np.cos(0.5 * yaw)
    sr, sp, sy = np.sin(0.5 * roll), np.sin(0.5 * pitch), np.sin(0.5 * yaw)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=-1,
    )


def _rotation(angles: Array, rates: Array, accelerations: Array) -> tuple[Array, Array]:
    """Return angular velocity [rad/s] and acceleration [rad/s^2] in world axes, shape (n, 3) each.

    Units: `angles` [rad], `rates` [rad], `accelerations` [rad].
    """
    _, pitch, yaw = angles
    zero = np.zeros_like(yaw)
    # The three rotation axes: the world's down axis, the level axis to the right, the body's forward axis.
    down = np.stack([zero, zero, zero + 1.0], axis=-1)
    right = np.stack([-np.sin(yaw), np.cos(yaw), zero], axis=-1)
    forward = np.stack([np.cos(pitch) * np.cos(yaw), np.cos(pitch) * np.sin(yaw), -np.sin(pitch)], axis=-1)
    roll_rate, pitch_rate, yaw_rate = rates[:, :, None]
    roll_acceleration, pitch_acceleration, yaw_acceleration = accelerations[:, :, None]
    # The rotations before each axis move it.
    carried = yaw_rate * down + pitch_rate * right
    omega = carried + roll_rate * forward
    alpha = yaw_acceleration * down + pitch_acceleration * right + roll_acceleration * forward
    alpha += pitch_rate * yaw_rate * np.cross(down, right) + roll_rate * np.cross(carried, forward)
    return omega, alpha


def product(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the quaternion product of `a` and `b`: first the rotation `b`, then `a`."""
    (aw, ax, ay, az), (bw, bx, by, bz) = (np.moveaxis(np.asarray(q, np.float64), -1, 0) for q in (a, b))
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def body_axes(states: NDArray[np.void], name: str) -> Array:
    """Return a vector of `states`, ndarray of STATE_DTYPE, along the car's forward, right, down axes."""
    w, back, vector = states["orientation"][:, :1], -states["orientation"][:, 1:], states[name]
    half = np.cross(back, vector)
    turned: Array = vector + 2.0 * (w * half + np.cross(back, half))
    return turned


def angles_and_rates(states: NDArray[np.void]) -> NDArray[np.float64]:
    """Return roll, pitch, yaw (z-y-x) with their first and second derivatives."""
    w, x, y, z = states["orientation"].T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - x * z), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    p, q, r = body_axes(states, "angular_velocity").T
    pp, qq, rr = body_axes(states, "angular_acceleration").T
    sin, cos, slope = np.sin(roll), np.cos(roll), np.tan(pitch)
    level = q * sin + r * cos  # rate about the world's down axis, times the cosine of pitch
    pitch_rate = q * cos - r * sin
    yaw_rate = level / np.cos(pitch)
    roll_rate = p + level * slope
    pitch_change = qq * cos - rr * sin - roll_rate * level
    level_change = qq * sin + rr * cos + roll_rate * pitch_rate
    yaw_change = (level_change + yaw_rate * pitch_rate * np.sin(pitch)) / np.cos(pitch)
    roll_change = pp + level_change * slope + level * pitch_rate / np.cos(pitch) ** 2
    return np.array([[roll, pitch, yaw], [roll_rate, pitch_rate, yaw_rate], [roll_change, pitch_change, yaw_change]])
