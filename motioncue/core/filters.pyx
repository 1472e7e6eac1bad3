"""Coefficients of the filter sections, and a high-pass filter for use from Python."""

from libc.math cimport expm1, fabs, tan

from motioncue.errors import ConfigError

__all__ = ["HighPass", "held_response"]


cdef FirstOrder first_order(double omega, double dt, bint hold=False) noexcept nogil:
    """Return the section s / (s + omega), exact at `omega` [rad/s], or with its input on `hold`; `dt` [s]."""
    cdef FirstOrder c
    if hold:
        c.g = -0.5 * expm1(-omega * dt)
        c.d = 1.0
        return c
    c.g = tan(0.5 * omega * dt)
    c.d = 1.0 / (1.0 + c.g)
    return c


cdef SecondOrder held_section(double c1, double c0, double dt) noexcept nogil:
    """Return the section s^2 / (s^2 + c1 s + c0) whose input is held between ticks, exact at every tick.

    A power series, summed over a fraction of the tick in which neither damping nor stiffness does much, then doubled: two
    such steps are one of twice the time.  No differences of large numbers occur, however slow the section is.
    """
    cdef SecondOrder c
    cdef double t = dt
    cdef double term, next, a, h = 0.0, m = 0.0
    cdef int halvings = 0
    cdef int i
    while (fabs(c1) + c0 * t) * t > 0.25 and halvings < 60:
        t *= 0.5
        halvings += 1
    term, next = 0.0, 0.5 * t * t       # of m, in powers of t
    h, m = t, next
    for i in range(2, 16):
        term, next = next, -(c1 * t * next + c0 * t * t * term / i) / (i + 1)
        h += (i + 1) * next / t
        m += next
    for i in range(halvings):
        a = 1.0 - c1 * h - c0 * m
        h, m = h + h * a - c0 * m * h, m + m * a + (h + c1 * m) * h
    c.c0, c.b, c.k, c.d, c.m = c0, c1, h, 1.0, m
    return c


def held_response(double damping, double stiffness, double dt):
    """Return velocity and displacement a tick after a unit of acceleration has begun to act.

    The solution of x'' = 1 - c1 x' - c0 x from rest, at dt.

    Units: `damping` [1/s], `stiffness` [1/s^2], `dt` [s].
    """
    cdef SecondOrder c = held_section(damping, stiffness, dt)
    return c.k, c.m


cdef SecondOrder second_order(double omega, double zeta, double dt, bint hold=False) noexcept nogil:
    """Return the section with natural frequency `omega` [rad/s] and damping ratio `zeta`, exact at `omega`.

    With its input on `hold` it is exact at every tick.
    """
    cdef SecondOrder c
    if hold:
        return held_section(2.0 * zeta * omega, omega * omega, dt)
    c.m = 0.0
    c.c0 = omega * omega
    c.k = tan(0.5 * omega * dt) / omega if omega > 0.0 else 0.5 * dt
    c.b = 2.0 * zeta * omega + c.c0 * c.k
    c.d = 1.0 / (1.0 + c.b * c.k)
    return c


cdef SecondOrder first_order_as_second(double omega, double dt, bint hold=False) noexcept nogil:
    """Return the section s / (s + omega) with both integrals; the second one drifts under a sustained input."""
    cdef SecondOrder c
    if hold:
        return held_section(omega, 0.0, dt)
    c.m = 0.0
    c.c0 = 0.0
    c.b = omega
    c.k = tan(0.5 * omega * dt) / omega if omega > 0.0 else 0.5 * dt
    c.d = 1.0 / (1.0 + c.b * c.k)
    return c


cdef class HighPass:
    """High-pass filter of first to third order with its first two integrals.

    Bilinear transform, prewarped at `omega` (and `omega_b`).  The first step after `reset` starts from rest at that
    tick: for a step input present from the first sample, the output equals the continuous step response at the tick
    times to second order in `dt`.  With `hold` sections of order 1 and 2 have exactly the continuous step response at the
    ticks.  Real time: `step` does not allocate and cannot fail.

    Units: `omega` [rad/s], `omega_b` [rad/s], `dt` [s].
    """

    cdef FirstOrder _outer
    cdef SecondOrder _inner
    cdef double _s
    cdef SecondOrderState _state
    cdef bint _primed
    cdef bint _hold
    cdef Integrals _integrals

    def __init__(self, int order, double omega, double zeta=1.0, double omega_b=0.0, *, double dt, bint hold=False):
        if order not in (1, 2, 3):
            raise ConfigError(f"order: found {order}, allowed are 1, 2 and 3")
        if not 0.0 < dt < 1.0:
            raise ConfigError(f"dt: found {dt} s, allowed is above 0 and below 1")
        cdef double top = 3.141592653589793 / dt
        if not 0.0 < omega < top:
            raise ConfigError(f"omega: found {omega} rad/s, allowed is above 0 and below {top:.6g} (half the tick rate)")
        if order > 1 and not 0.0 < zeta <= 100.0:
            raise ConfigError(f"zeta: found {zeta}, allowed is above 0, up to 100")
        if order == 3 and not 0.0 < omega_b < top:
            raise ConfigError(f"omega_b: found {omega_b} rad/s, allowed is above 0 and below {top:.6g}")
        self._hold = hold
        self._outer = first_order(omega_b if order == 3 else 0.0, dt, hold)
        self._inner = first_order_as_second(omega, dt, hold) if order == 1 else second_order(omega, zeta, dt, hold)
        self.reset()

    def reset(self):
        """Return to rest."""
        self._s = 0.0
        self._state.v = self._state.x = 0.0
        self._primed = False

    def step(self, double u):
        """Do one tick: return the filtered value and its first and second integrals."""
        cdef double y
        if self._hold:
            y = high_pass_1(&self._outer, &self._s, u)
            y = high_passed_2(&self._inner, &self._state, y)
            integrate_held_2(&self._inner, &self._state, y, &self._integrals)
            return y, self._integrals.v, self._integrals.x
        if not self._primed:
            prime_1(&self._outer, &self._s, u)
            prime_2(&self._inner, &self._state, u)
            self._primed = True
        y = high_pass_2(&self._inner, &self._state, high_pass_1(&self._outer, &self._s, u), &self._integrals)
        return y, self._integrals.v, self._integrals.x
