"""The linear-quadratic washout as an algorithm: coefficients from laws; the step is in step.h."""

from libc.math cimport INFINITY, M_PI, exp2, fabs
from libc.string cimport memcmp, memcpy, memset

from motioncue.core.interfaces cimport Calls, Lanes, Machine, chosen_machine, run_function, structure_number
from motioncue.core.rotation cimport turn

from motioncue.core.channels import GRAVITY

__all__ = ["OptimalWashout"]


cdef extern from * nogil:
    """
    #define MC_OVER_LANES "motioncue/cueing/optimal/step.h"
    #include "motioncue/core/lanes.h"
    static void (*const mc_optimal_tick[])(void *, const void *, const void *, void *, int64_t) =
        MC_OF_MACHINES(mc_optimal_tick);
    """
    run_function optimal_tick "mc_optimal_tick"[3]

cdef double DEGREE = M_PI / 180.0
cdef double CATCH_UP = 1.0      # [rad/s^2] bound on the acceleration of an angle that lags after a change of settings
cdef double DOUBLING_S = 0.25   # [s] time in which that bound becomes twice as large after the fade


cdef void reset(void* state) noexcept nogil:
    cdef OptimalState* s = <OptimalState*>state
    cdef int i
    memset(s, 0, sizeof(OptimalState))
    for i in range(3):
        turn(&s.platform[i], 0.0)


cdef const void* coeffs_of(const Calls* own) noexcept nogil:
    """Return the coefficients for the next tick: those of the settings once no angle is eased."""
    cdef const Eased* eased = <const Eased*>own.eased
    return &eased.coeffs if eased.lags[0] or eased.lags[1] else own.coeffs


cdef const void* continue_from(const Calls* own, const Calls* before) noexcept nogil:
    """Begin with the state of other settings; return the coefficients for the next tick."""
    cdef Eased* eased = <Eased*>own.eased
    cdef const OptimalCoeffs* w = <const OptimalCoeffs*>own.coeffs
    cdef int i
    memcpy(own.state, before.state, sizeof(OptimalState))
    eased[0] = (<const Eased*>before.eased)[0]
    if memcmp(w, before.coeffs, sizeof(OptimalCoeffs)) == 0:
        return coeffs_of(own)
    eased.coeffs = w[0]
    for i in range(2):
        eased.lags[i] = False
        if w.pairs[i].slack < INFINITY:
            eased.lags[i] = True
            eased.coeffs.pairs[i].braking = CATCH_UP / w.ticks_per_second ** 2
    return coeffs_of(own)


cdef const void* settle(const Calls* own, bint whole) noexcept nogil:
    """Return the coefficients for the next tick: with bounds on the acceleration of an angle until it has caught up.

    An angle that lags far behind while its largest rate grows would move at that rate at once, and stop as suddenly.
    What it follows may be rougher than the bound, which therefore grows; at the largest rate it waits.
    """
    cdef OptimalState* s = <OptimalState*>own.state
    cdef Eased* eased = <Eased*>own.eased
    cdef Following* f
    cdef PairCoeffs* c
    cdef int i
    for i in range(2):
        if eased.lags[i]:
            f, c = &s.angles[i], &eased.coeffs.pairs[i]
            if fabs(f.change) < c.slack:
                c.braking *= exp2(1.0 / (DOUBLING_S * eased.coeffs.ticks_per_second))
            if whole or fabs(f.target - f.angle) < 1e-12:
                eased.lags[i] = False
                c.braking = INFINITY
    return coeffs_of(own)


cdef class OptimalWashout(Algorithm):
    """Linear-quadratic washout: fixed laws that follow the car's motion and the platform's own.

    Notes
    -----
    A tick computes two accelerations of each pair from its law, then integrates them and the low-passed errors of
    force and rate by the trapezoidal rule, so the whole is the bilinear transform of a filter of six states for each pair.
    The lean found is the sine of the angle, because the platform shows specific force g sin(angle).  Surge, sway
    and heave of the cue are the specific force in platform axes less its value at rest.

    The variables of a state do not depend on the settings, so it goes on under any others.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filter's own phase.
    """

    def __init__(self, settings, const double[:, :, ::1] laws not None, limits, tuple organs_s, double rate_hz):
        cdef Machine machine = chosen_machine()
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
            c.braking = INFINITY
            c.half_tick = half
            c.otolith, c.canal = half / (otolith_s + half), half / (canal_s + half)
            c.roll_off = half / (0.5 / M_PI / settings.roll_off_hz + half)
            for j in range(8):
                c.acceleration[j], c.turning[j] = laws[i, 0, j], laws[i, 1, j]
        self.coeffs.gravity = GRAVITY
        self.coeffs.ticks_per_second = rate_hz
        self.calls.step = mc_optimal_one
        self.calls.reset = reset
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(OptimalState)
        self.calls.structure = structure_number(("optimal",))
        self.calls.continue_from = continue_from
        self.calls.settle = settle
        self.calls.eased = &self.eased
        self.calls.attitude = &self.state.platform[0]
        self.lanes = Lanes(
            machine.lanes,
            sizeof(OptimalCoeffs) // sizeof(double),
            sizeof(OptimalState) // sizeof(double),
            optimal_tick[machine.index],
        )
        self.reset()
