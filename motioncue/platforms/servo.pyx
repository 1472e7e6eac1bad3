"""Virtual drives over arrays of commanded positions; see servo.h."""

from libc.math cimport floor
from libc.stdint cimport int64_t
from libc.string cimport memset

import math

import numpy as np

__all__ = ["Servos"]

BEYOND = 1.05       # share of a bound beyond which a tick counts as an overrun: packets round positions
TOUCH = 1e-3        # share of the speed up to which an end stop is touched, not hit
LONGEST_S = 1.0     # of dead time


cdef extern from "motioncue/platforms/servo.h" nogil:
    ctypedef struct Motion "mc_Motion":
        double position
        double speed
        double falls
        double keeps
        double duration
    ctypedef struct Servo "mc_Servo":
        Motion parts[2]
        int64_t late
        bint inertia
        double low
        double high
        double friction
        double most_move
        double most_change
        double touch
    ctypedef struct ServoState "mc_ServoState":
        double x
        double lowest
        double highest
        double fastest
        double hardest
        double impact
        int64_t hits
        int64_t fast
        int64_t hard
    double servo_step "mc_servo_step"(const Servo* d, double older, double newer, ServoState* s)

cdef enum:
    MOST = 12


cdef class Servos:
    """The drives of a platform's actuators, made of software.

    Notes
    -----
    A commanded position is held until the next one.  A drive begins at rest at its first command.

    Units: `dt` [s].
    """

    cdef Servo servos[MOST]
    cdef ServoState states[MOST]
    cdef readonly int count
    cdef readonly double dt
    cdef int64_t ticks
    cdef int64_t room
    cdef double[:, ::1] commands        # the newest ones, as a ring

    def __cinit__(self, bounds, double dt, double lag_s, damping=None, double dead_time_s=0.0, double friction=0.0):
        cdef Servo* d
        if not 0 < len(bounds) <= MOST:
            raise ValueError(f"bounds: found {len(bounds)} actuators, allowed are 1 to {MOST}")
        for name, value, allowed in (
            ("dt", dt, 0.0 < dt <= 1.0),
            ("lag_s", lag_s, 0.0 <= lag_s <= 10.0),
            ("damping", damping, damping is None or 0.0 < damping <= 100.0),
            ("dead_time_s", dead_time_s, 0.0 <= dead_time_s <= LONGEST_S),
            ("friction", friction, 0.0 <= friction <= 1.0),
        ):
            if not allowed:
                raise ValueError(f"{name}: found {value}, allowed is a number in range")
        self.count = len(bounds)
        self.dt = dt
        whole = floor(dead_time_s / dt * (1.0 + 1e-12))
        rest_s = max(0.0, dead_time_s - whole * dt)
        for i, each in enumerate(bounds):
            if not (each.low < each.high and each.speed > 0.0 and each.acceleration > 0.0):
                raise ValueError(f"bounds: found {each}")
            d = &self.servos[i]
            d.parts[0] = _motion(lag_s, damping, rest_s)
            d.parts[1] = _motion(lag_s, damping, dt - rest_s)
            d.late = <int64_t>whole
            d.inertia = damping is not None and lag_s > 0.0
            d.low, d.high = each.low, each.high
            d.friction = friction * (each.high - each.low)
            d.most_move = BEYOND * each.speed * dt
            d.most_change = BEYOND * each.acceleration * dt * dt
            d.touch = TOUCH * each.speed
        self.room = <int64_t>whole + 2
        self.commands = np.zeros((self.room, self.count))
        self.reset()

    def reset(self):
        """Forget the past: the next command is where the drives begin."""
        self.ticks = 0
        memset(self.states, 0, sizeof(self.states))

    def process(self, positions):
        """Return where the drives are at each tick; states carry over between calls."""
        rows = np.ascontiguousarray(positions, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.count:
            raise ValueError(f"positions: found shape {rows.shape}, allowed is (n, {self.count})")
        if not np.isfinite(rows).all():
            raise ValueError("positions: found some that are not finite")
        out = np.empty_like(rows)
        cdef const double[:, ::1] p = rows
        cdef double[:, ::1] o = out
        cdef Py_ssize_t k
        with nogil:
            for k in range(p.shape[0]):
                self._tick(&p[k, 0], &o[k, 0])
        return out

    cdef void _tick(self, const double* command, double* out) noexcept nogil:
        cdef int64_t late = self.servos[0].late
        cdef ServoState* s
        cdef double older, newer
        cdef int i
        for i in range(self.count):
            s = &self.states[i]
            if self.ticks == 0:
                s.x = min(max(command[i], self.servos[i].low), self.servos[i].high)
                s.lowest = s.highest = s.x
            else:
                newer = self.commands[max(self.ticks - 1 - late, 0) % self.room, i]
                older = self.commands[max(self.ticks - 2 - late, 0) % self.room, i]
                servo_step(&self.servos[i], older, newer, s)
            out[i] = s.x
            self.commands[self.ticks % self.room, i] = command[i]
        self.ticks += 1

    def stats(self):
        """Return what each drive did since the beginning: a dict of ndarrays of shape (actuators,).

        ``lowest`` and ``highest`` position reached; largest ``speed`` [per s] and ``acceleration`` [per s^2]; ``hits``
        of end stops and the largest speed of one, ``impact`` [per s]; ``too_fast`` and ``too_hard``: ticks more than a
        twentieth beyond the speed and the acceleration that it is made for.
        """
        cdef int i
        rows = [
            (
                self.states[i].lowest, self.states[i].highest, self.states[i].fastest / self.dt,
                self.states[i].hardest / self.dt**2, self.states[i].hits, self.states[i].impact,
                self.states[i].fast, self.states[i].hard,
            )
            for i in range(self.count)
        ]
        names = ("lowest", "highest", "speed", "acceleration", "hits", "impact", "too_fast", "too_hard")
        return {
            name: np.array(values, dtype=np.int64 if name in ("hits", "too_fast", "too_hard") else np.float64)
            for name, values in zip(names, zip(*rows))
        }


cdef Motion _motion(double lag_s, damping, double h):
    """Return the exact solution over a time `h` [s]: the matrix exponential of the lag's equation."""
    if h <= 0.0:
        return Motion(1.0, 0.0, 0.0, 1.0, 0.0)
    if lag_s == 0.0:
        return Motion(0.0, 0.0, 0.0, 0.0, h)
    if damping is None:
        left = math.exp(-h / lag_s)
        return Motion(left, 0.0, -left / lag_s, 0.0, h)
    omega = 2.0 * damping / lag_s
    # Scaled such that its norm is small, summed as a series, squared as often as it was halved.
    halvings = max(0, math.ceil(math.log2(max(1.0, omega, 2.0 * damping * omega, omega * omega) * h)) + 1)
    rate = np.array([[0.0, 1.0], [-omega * omega, -2.0 * damping * omega]]) * (h / 2.0**halvings)
    term = total = np.eye(2)
    for n in range(1, 20):
        term = term @ rate / n
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return Motion(total[0, 0], total[0, 1], total[1, 0], total[1, 1], h)
