"""The limiter over arrays, and its cold half."""

from libc.math cimport M_PI, isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from motioncue.kernels.algorithm cimport mc_flush_denormals, mc_restore_fpu
from motioncue.kernels.records cimport Cue
from motioncue.kernels.slot cimport mc_load

import numpy as np

from motioncue.errors import ConfigError
from motioncue.motion import CUE_DTYPE

__all__ = ["CueLimits", "Limiter"]

cdef double ANY_ANGLE = 1e9     # [rad], of an axis that goes round

LIMITED = [name for name in CUE_DTYPE.names if name not in ("speed", "engine_speed", "time")]


cdef double highest(
    const Bounds* b, const LimiterState* s, double sign, bint meet, double goal, double speed
) noexcept nogil:
    """Return the largest push along `sign` that keeps the bounds, or meets the input; the full brake if none does."""
    cdef double low = -b.jerk
    cdef double high = b.jerk
    cdef double j = high
    cdef int i
    for i in range(24):
        if meets(b, s, sign, goal, speed, sign * j) if meet else keeps(b, s, sign, sign * j):
            if i == 0:
                return high
            low = j
        else:
            high = j
        j = 0.5 * (low + high)
    return low


cdef double limiter_push(const Bounds* b, LimiterState* s, double goal, double speed) noexcept nogil:
    """Return the push that follows the input as closely as the bounds let it."""
    cdef double j = (goal - s.x) - s.v - s.a
    cdef double high = highest(b, s, 1.0, False, 0.0, 0.0)
    cdef double low = -highest(b, s, -1.0, False, 0.0, 0.0)
    cdef double meet
    if low > high:              # only rounding leads here: brake away from the nearer bound
        if s.x > 0.0:
            low = high
        else:
            high = low
    speed = b.rate if speed > b.rate else (-b.rate if speed < -b.rate else speed)
    if s.x < goal:
        meet = highest(b, s, 1.0, True, goal, speed)
        high = low if meet < low else (meet if meet < high else high)
    elif s.x > goal:
        meet = -highest(b, s, -1.0, True, goal, speed)
        low = high if meet > high else (meet if meet > low else low)
    j = high if j > high else (low if j < low else j)
    if s.a + j > b.acceleration:
        j = b.acceleration - s.a
    elif s.a + j < -b.acceleration:
        j = -b.acceleration - s.a
    return j


cdef Limit limit_of(double value, double rate, double acceleration, double jerk, double dt):
    """Return the limit with these bounds per second; a bound that is not positive or not finite is not there.

    A missing bound is twice the one before it, per tick: no input can exceed that.
    """
    cdef Limit l
    cdef Bounds* h = &l.hard
    h.value = value
    h.rate = rate * dt if 0.0 < rate * dt < 2.0 * h.value else 2.0 * h.value
    h.acceleration = acceleration * dt * dt if 0.0 < acceleration * dt * dt < 2.0 * h.rate else 2.0 * h.rate
    h.jerk = jerk * dt * dt * dt if 0.0 < jerk * dt * dt * dt < 2.0 * h.acceleration else 2.0 * h.acceleration
    h.stops_at_once = h.acceleration == 2.0 * h.rate and h.jerk == 2.0 * h.acceleration
    l.plan = Bounds(0.999 * h.value, 0.98 * h.rate, 0.95 * h.acceleration, 0.9 * h.jerk, h.stops_at_once)
    if h.stops_at_once:     # nothing to keep room for: what is missing stays out of the way
        l.plan.acceleration = h.acceleration
        l.plan.jerk = h.jerk
        if h.rate == 2.0 * h.value:
            l.plan.rate = h.rate
    l.per_jerk = 0.0 if h.stops_at_once else 0.5 / l.plan.jerk
    l.per_acceleration = 0.0 if h.stops_at_once else 0.5 / l.plan.acceleration
    l.ramp = 0.0 if h.stops_at_once else 0.5 * l.plan.acceleration / l.plan.jerk
    l.state = LimiterState(0.0, 0.0, 0.0, 0.0, False)
    return l


cdef Limit checked(double value, rate, acceleration, jerk, double dt) except *:
    for name, bound in (("value", value), ("rate", rate), ("acceleration", acceleration), ("jerk", jerk), ("dt", dt)):
        if bound is not None and not (isfinite(bound) and bound > 0.0):
            raise ConfigError(f"{name}: found {bound}, allowed are finite numbers above 0")
    return limit_of(value, rate or 0.0, acceleration or 0.0, jerk or 0.0, dt)


cdef class Limiter:
    """One channel held within bounds, starting from rest at 0.

    Parameters
    ----------
    value : float
        Largest magnitude [any unit]; must be > 0.
    rate, acceleration, jerk : float or None
        Largest magnitude of the first three time derivatives [unit/s, /s^2, /s^3]; must be > 0; None is no bound.
    dt : float
        Tick [s]; must be > 0.

    Raises
    ------
    ConfigError
        If a bound is not positive and finite.

    Notes
    -----
    The derivatives are those of the sent sequence: first, second and third difference over dt.  While the input keeps
    the bounds, and could be braked within them, it passes bit for bit.
    Real time: a step does not allocate, needs no GIL and cannot fail.
    """

    cdef Limit _limit

    def __init__(self, double value, rate=None, acceleration=None, jerk=None, *, double dt):
        self._limit = checked(value, rate, acceleration, jerk, dt)

    def process(self, const double[::1] values not None):
        """Limit a sequence; state is kept between calls.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
            Finite.

        Returns
        -------
        limited : ndarray of float64, shape (n,)
        acted : ndarray of bool, shape (n,)
            Where the limiter had to act.
        """
        cdef Py_ssize_t i
        out = np.array(values)
        acted = np.zeros(len(out), dtype=np.uint8)
        cdef double[::1] o = out
        cdef unsigned char[::1] was = acted
        cdef uint64_t fpu
        with nogil:
            fpu = mc_flush_denormals()      # as the emitter does
            for i in range(o.shape[0]):
                was[i] = limiter_step(&self._limit, &o[i])
            mc_restore_fpu(fpu)
        return out, acted.view(np.bool_)


cdef class CueLimits:
    """The bounds of a cue's channels, each held by a limiter of its own that starts from rest at 0.

    Notes
    -----
    Real time: limiting does not allocate, needs no GIL and cannot fail.
    """

    def __cinit__(self):
        memset(&self.set, 0, sizeof(LimitSet))

    def add(self, str channel, double value, rate=None, acceleration=None, jerk=None, *, double dt):
        """Bound a channel.

        Parameters
        ----------
        channel : str
            One that moves the platform.
        value : float
            Largest magnitude, in the channel's unit; must be > 0.  Pi or more for roll or yaw lets it go all the way
            round, pi and -pi being one; the bounds of the derivatives hold across that line too.  With a smaller bound,
            a roll beyond a right angle is sent as the lean whose sine is the same: pi - roll, or -pi - roll.
        rate, acceleration, jerk : float or None
            Largest magnitude of its first three derivatives [per s, s^2, s^3]; must be > 0; None is no bound.
        dt : float
            Tick [s].

        Raises
        ------
        ConfigError
            If there is no such channel, it is bounded already, or a bound is not positive and finite.
        """
        free = [name for name in LIMITED if CUE_DTYPE.names.index(name) not in list(self.set.channels)[: self.set.count]]
        if channel not in free:
            raise ConfigError(f"limits: found channel {channel!r}, allowed are {', '.join(free)}")
        # No angle is beyond half a turn: such a bound leaves the axis free to go round, and only its motion is bounded.
        self.set.turns[self.set.count] = channel in ("roll", "yaw") and value >= M_PI * (1.0 - 1e-9)
        self.set.leans[self.set.count] = channel == "roll" and not self.set.turns[self.set.count]
        if self.set.turns[self.set.count] and isfinite(value):
            value = ANY_ANGLE
        self.set.limits[self.set.count] = checked(value, rate, acceleration, jerk, dt)
        self.set.channels[self.set.count] = CUE_DTYPE.names.index(channel)
        self.set.count += 1

    def process(self, Cue[::1] cue not None):
        """Limit cues in place; state is kept between calls.

        Parameters
        ----------
        cue : ndarray of CUE_DTYPE, shape (n,)
            Finite.
        """
        cdef Py_ssize_t i
        cdef uint64_t fpu
        with nogil:
            fpu = mc_flush_denormals()      # as the emitter does
            for i in range(cue.shape[0]):
                limit_cue(&self.set, <double*>&cue[i])
            mc_restore_fpu(fpu)

    def shares(self):
        """Return the share of ticks in which each bounded channel had to be limited, by channel."""
        cdef int64_t ticks = mc_load(&self.set.ticks)
        return {
            CUE_DTYPE.names[self.set.channels[i]]: <double>mc_load(&self.set.acted[i]) / <double>ticks if ticks else 0.0
            for i in range(self.set.count)
        }
