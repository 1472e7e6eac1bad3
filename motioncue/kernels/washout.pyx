"""The classical washout as an algorithm: owns its memory, takes its settings; the step is in the pxd."""

from libc.math cimport M_PI
from libc.string cimport memset

from motioncue.kernels.algorithm cimport Calls
from motioncue.kernels.lanes cimport chosen
from motioncue.kernels.filters cimport first_order, first_order_as_second, second_order
from motioncue.kernels.rotation cimport turn

from motioncue.motion import GRAVITY

__all__ = ["ClassicalWashout"]


cdef void step(void* memory, const Motion* motion, Cue* cue) noexcept nogil:
    washout_step(<Washout*>memory, motion, cue)


cdef void reset(void* memory) noexcept nogil:
    cdef Washout* w = <Washout*>memory
    cdef int i
    for i in range(3):
        w.translation[i].outer_state = w.rotation[i].outer_state = 0.0
        w.translation[i].state.v = w.translation[i].state.x = 0.0
        w.rotation[i].state.v = w.rotation[i].state.x = 0.0
    for i in range(2):
        w.tilt[i].state.v = w.tilt[i].state.x = w.tilt[i].angle = 0.0
    for i in range(3):
        turn(&w.platform[i], 0.0)
    w.primed = 0.0


cdef void set_axis(HighPassAxis* axis, dict design, double dt):
    cdef int order = design["order"]
    cdef double omega = 2.0 * M_PI * design["cutoff_hz"]
    axis.gain = design["gain"]
    axis.limit = design["limit"]
    axis.outer = first_order(2.0 * M_PI * design["break_hz"] if order == 3 else 0.0, dt)
    axis.inner = first_order_as_second(omega, dt) if order == 1 else second_order(omega, design["damping"], dt)


cdef class ClassicalWashout(Algorithm):
    """Classical washout after Reid & Nahon (UTIAS 296, 307, 319).

    Parameters
    ----------
    translation : sequence of 3 dicts
        Surge, sway, heave: gain, limit [m/s^2], order (1 to 3), cutoff_hz, damping, break_hz.
    rotation : sequence of 3 dicts
        Roll, pitch, yaw: the same, with limit in rad/s.
    tilt : sequence of 2 dicts
        Of surge and of sway: cutoff_hz, damping, rate_limit [rad/s].
    rate_hz : float
        Ticks a second.

    Notes
    -----
    Per axis, with K the gain: displacement K HP(s)/s^2 of the acceleration, tilt asin(K LP(s) f/g), attitude
    K HP(s)/s of the Euler rates.  HP is s/(s+w), s^2/(s^2+2 z w s+w^2), or that times s/(s+w_b); LP is
    w^2/(s^2+2 z w s+w^2).  Bilinear transform prewarped at each section's own frequency.  Surge, sway and heave of the
    cue are the specific force in platform axes less its value at rest, so for one translational axis alone they are
    K [HP(s) + LP(s)] of the input while the tilt rate is not limited.

    The settings are checked where they are designed (`motioncue.cueing.classical.design`), not here.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filters' own phase.
    """

    def __init__(self, translation, rotation, tilt, double rate_hz):
        cdef double dt = 1.0 / rate_hz
        cdef int i
        memset(&self.washout, 0, sizeof(Washout))
        for i in range(3):
            set_axis(&self.washout.translation[i], translation[i], dt)
            set_axis(&self.washout.rotation[i], rotation[i], dt)
        for i in range(2):
            self.washout.tilt[i].low_pass = second_order(2.0 * M_PI * tilt[i]["cutoff_hz"], tilt[i]["damping"], dt)
            self.washout.tilt[i].step_limit = tilt[i]["rate_limit"] * dt
        self.washout.gravity = GRAVITY
        self.washout.ticks_per_second = rate_hz
        self.calls = Calls(step, reset, &self.washout, chosen().run, &self.washout.platform[0])
        self.reset()
