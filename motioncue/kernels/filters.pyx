"""Coefficients of the filter sections, and a high-pass filter for use from Python."""

from libc.math cimport tan

from motioncue.errors import ConfigError

__all__ = ["HighPass"]


cdef FirstOrder first_order(double omega, double dt) noexcept nogil:
    """Return the section s / (s + omega), exact at `omega` [rad/s]; `dt` [s]."""
    cdef FirstOrder c
    c.g = tan(0.5 * omega * dt)
    c.d = 1.0 / (1.0 + c.g)
    return c


cdef SecondOrder second_order(double omega, double zeta, double dt, double rub=0.0) noexcept nogil:
    """Return the section with natural frequency `omega` [rad/s] and damping ratio `zeta`, exact at `omega`.

    `rub` is damping over mass beside that of the ratio [rad/s].
    """
    cdef SecondOrder c
    c.c0 = omega * omega
    c.k = tan(0.5 * omega * dt) / omega if omega > 0.0 else 0.5 * dt
    c.b = 2.0 * zeta * omega + rub + c.c0 * c.k
    c.d = 1.0 / (1.0 + c.b * c.k)
    return c


cdef SecondOrder first_order_as_second(double omega, double dt) noexcept nogil:
    """Return the section s / (s + omega) with both integrals; the second one drifts under a sustained input."""
    cdef SecondOrder c
    c.c0 = 0.0
    c.b = omega
    c.k = tan(0.5 * omega * dt) / omega if omega > 0.0 else 0.5 * dt
    c.d = 1.0 / (1.0 + c.b * c.k)
    return c


cdef class HighPass:
    """High-pass filter of first to third order with its first two integrals.

    Parameters
    ----------
    order : int
        1: s/(s+w), 2: s^2/(s^2+2 z w s+w^2), 3: order 2 times s/(s+w_b).
    omega : float
        Break frequency or natural frequency w [rad/s]; must be > 0.
    zeta : float
        Damping ratio z; must be > 0 for orders 2 and 3.
    omega_b : float
        Break frequency w_b of the third-order section [rad/s]; must be > 0 for order 3.
    dt : float
        Tick [s]; must be > 0, and every frequency below half the tick rate.

    Raises
    ------
    ConfigError
        If a parameter is out of range.

    Notes
    -----
    Bilinear transform, prewarped at `omega` (and `omega_b`).  The first step after `reset` starts from rest at that
    tick: for a step input present from the first sample, the output equals the continuous step response at the tick
    times to second order in `dt`.  Real time: `step` does not allocate and cannot fail.
    """

    cdef FirstOrder _outer
    cdef SecondOrder _inner
    cdef double _s
    cdef SecondOrderState _state
    cdef bint _primed
    cdef Integrals _integrals

    def __init__(self, int order, double omega, double zeta=1.0, double omega_b=0.0, *, double dt):
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
        self._outer = first_order(omega_b if order == 3 else 0.0, dt)
        self._inner = first_order_as_second(omega, dt) if order == 1 else second_order(omega, zeta, dt)
        self.reset()

    def reset(self):
        """Return to rest."""
        self._s = 0.0
        self._state.v = self._state.x = 0.0
        self._primed = False

    def step(self, double u):
        """Do one tick: return the filtered value and its first and second integrals.

        Parameters
        ----------
        u : float
            The input [any unit].

        Returns
        -------
        tuple of 3 floats
            In the unit of `u`, that times s, and that times s^2.
        """
        if not self._primed:
            prime_1(&self._outer, &self._s, u)
            prime_2(&self._inner, &self._state, u)
            self._primed = True
        cdef double y = high_pass_2(
            &self._inner, &self._state, high_pass_1(&self._outer, &self._s, u), &self._integrals
        )
        return y, self._integrals.v, self._integrals.x
