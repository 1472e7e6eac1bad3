"""The classical washout as an algorithm: coefficients from settings; the step is in washout.h."""

from libc.math cimport INFINITY, M_PI
from libc.string cimport memset

from motioncue.kernels.algorithm cimport Lanes, structure_number
from motioncue.kernels.filters cimport first_order, first_order_as_second, second_order
from motioncue.kernels.lanes cimport Machine, chosen
from motioncue.kernels.rotation cimport turn

from motioncue.motion import GRAVITY

__all__ = ["ClassicalWashout"]

cdef double DEGREE = M_PI / 180.0


cdef void step(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil:
    washout_step(<const WashoutCoeffs*>coeffs, <WashoutState*>state, motion, cue)


cdef void reset(void* state) noexcept nogil:
    cdef WashoutState* s = <WashoutState*>state
    cdef int i
    memset(s, 0, sizeof(WashoutState))
    for i in range(3):
        turn(&s.platform[i], 0.0)


cdef HighPassAxis axis_of(settings, limit, double dt):
    """Return the coefficients of a high-passed axis; `limit` bounds the scaled input, None: unbounded."""
    cdef HighPassAxis axis
    cdef double omega = 2.0 * M_PI * settings.cutoff_hz
    axis.gain = settings.gain
    axis.limit = INFINITY if limit is None else limit
    axis.outer = first_order(2.0 * M_PI * settings.break_hz if settings.order == 3 else 0.0, dt)
    axis.inner = first_order_as_second(omega, dt) if settings.order == 1 else second_order(omega, settings.damping, dt)
    return axis


cdef class ClassicalWashout(Algorithm):
    """Classical washout after Reid & Nahon (UTIAS 296, 307, 319).

    Parameters
    ----------
    settings : Classical
        The ``cueing`` table of a profile, which `motioncue.cueing.classical.design` checks.
    rate_hz : float
        Ticks a second [Hz].

    Notes
    -----
    Per axis, with K the gain: displacement K HP(s)/s^2 of the acceleration, tilt asin(K LP(s) f/g), attitude
    K HP(s)/s of the Euler rates.  HP is s/(s+w), s^2/(s^2+2 z w s+w^2), or that times s/(s+w_b); LP is
    w^2/(s^2+2 z w s+w^2).  Bilinear transform prewarped at each section's own frequency.  Surge, sway and heave of the
    cue are the specific force in platform axes less its value at rest, so for one translational axis alone they are
    K [HP(s) + LP(s)] of the input while the tilt rate is not limited.

    The state keeps its meaning under other settings as long as every axis keeps its order.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filters' own phase.
    """

    def __init__(self, settings, double rate_hz):
        cdef double dt = 1.0 / rate_hz
        cdef Machine machine = chosen()
        cdef int i
        translation = settings.surge, settings.sway, settings.heave
        rotation = settings.roll, settings.pitch, settings.yaw
        tilt = settings.tilt
        for i in range(3):
            self.coeffs.translation[i] = axis_of(translation[i], translation[i].limit_m_s2, dt)
            limit = rotation[i].limit_deg_s
            self.coeffs.rotation[i] = axis_of(rotation[i], None if limit is None else limit * DEGREE, dt)
        for i, cutoff_hz in enumerate((tilt.surge_cutoff_hz, tilt.sway_cutoff_hz)):
            self.coeffs.tilt[i].low_pass = second_order(2.0 * M_PI * cutoff_hz, tilt.damping, dt)
            self.coeffs.tilt[i].step_limit = (
                INFINITY if tilt.rate_limit_deg_s is None else tilt.rate_limit_deg_s * DEGREE * dt
            )
        self.coeffs.gravity = GRAVITY
        self.coeffs.ticks_per_second = rate_hz
        self.calls.step = step
        self.calls.reset = reset
        self.calls.run = machine.run
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(WashoutState)
        self.calls.structure = structure_number(("classical", *(axis.order for axis in translation + rotation)))
        self.calls.attitude = &self.state.platform[0]
        self.lanes = Lanes(
            machine.lanes, sizeof(WashoutCoeffs) // sizeof(double), sizeof(WashoutState) // sizeof(double), machine.tick
        )
        self.reset()
