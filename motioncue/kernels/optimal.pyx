"""The linear-quadratic washout as an algorithm: coefficients from laws; the step is in optimal.h."""

from libc.math cimport INFINITY, M_PI, fabs
from libc.string cimport memset

from motioncue.kernels.algorithm cimport Lanes, structure_number
from motioncue.kernels.lanes cimport Machine, chosen
from motioncue.kernels.rotation cimport turn

from motioncue.motion import GRAVITY

__all__ = ["OptimalWashout"]

cdef double DEGREE = M_PI / 180.0


cdef void step(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil:
    optimal_step(<const OptimalCoeffs*>coeffs, <OptimalState*>state, motion, cue)


cdef void reset(void* state) noexcept nogil:
    cdef OptimalState* s = <OptimalState*>state
    cdef int i
    memset(s, 0, sizeof(OptimalState))
    for i in range(3):
        turn(&s.platform[i], 0.0)


cdef class OptimalWashout(Algorithm):
    """Linear-quadratic washout: fixed laws that follow the car's motion and the platform's own.

    Parameters
    ----------
    settings : Optimal
        The ``cueing`` table of a profile.
    laws : ndarray of float64, shape (3, 2, 8)
        By pair, acceleration and angular acceleration from the state as it is kept, in the order of `PairState`, the
        car's specific force and its rate.
    limits : sequence of (float, float)
        By pair, the largest scaled specific force [m/s^2] and rate [rad/s].
    organs_s : tuple of float
        Time constants of the low-pass sections of otolith and canal [s].
    rate_hz : float
        Ticks a second [Hz].

    Notes
    -----
    A tick computes two accelerations of each pair from its law, then integrates them and the low-passed errors of
    force and rate by the trapezoidal rule, so the whole is the bilinear transform of a filter of six states for each pair.
    The lean found is the sine of the angle, because the platform shows specific force g sin(angle).  Surge, sway
    and heave of the cue are the specific force in platform axes less its value at rest.

    The variables of a state do not depend on the settings, so it goes on under any others that are not far firmer.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filter's own phase.
    """

    def __init__(self, settings, const double[:, :, ::1] laws not None, limits, tuple organs_s, double rate_hz):
        cdef Machine machine = chosen()
        cdef double half = 0.5 / rate_hz
        cdef PairCoeffs* c
        cdef int i, j
        cdef double otolith_s = organs_s[0], canal_s = organs_s[1]
        limit = settings.tilt.rate_limit_deg_s
        for i, (translation, rotation) in enumerate(settings.pairs):
            c = &self.coeffs.pairs[i]
            c.force_gain, c.rate_gain = translation.gain, rotation.gain
            c.force_limit, c.rate_limit = limits[i]
            c.gravity = GRAVITY if i < 2 else 0.0
            c.slack = INFINITY if limit is None or i == 2 else limit * DEGREE / rate_hz
            c.half_tick = half
            c.otolith, c.canal = half / (otolith_s + half), half / (canal_s + half)
            for j in range(8):
                c.acceleration[j], c.turning[j] = laws[i, 0, j], laws[i, 1, j]
        self.coeffs.gravity = GRAVITY
        self.coeffs.ticks_per_second = rate_hz
        self.calls.step = step
        self.calls.reset = reset
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(OptimalState)
        self.calls.structure = structure_number(("optimal",))
        for i in range(3):
            c = &self.coeffs.pairs[i]
            self.calls.firmness[2 * i] = max(fabs(c.acceleration[3]), c.acceleration[2] ** 2)
            self.calls.firmness[2 * i + 1] = max(fabs(c.turning[5]), c.turning[4] ** 2)
        self.calls.attitude = &self.state.platform[0]
        self.lanes = Lanes(
            machine.lanes,
            sizeof(OptimalCoeffs) // sizeof(double),
            sizeof(OptimalState) // sizeof(double),
            machine.tick_optimal,
        )
        self.reset()
