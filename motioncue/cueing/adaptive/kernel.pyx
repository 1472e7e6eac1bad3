"""The coordinated adaptive washout: coefficients from settings; the step is in step.h."""

from libc.math cimport INFINITY, M_PI
from libc.string cimport memcpy, memset

from motioncue.core.interfaces cimport Calls, Machine, chosen_machine, run_function, structure_number
from motioncue.core.filters cimport first_order, second_order, section_continue
from motioncue.core.rotation cimport turn

from motioncue.core.channels import GRAVITY

__all__ = ["AdaptiveWashout"]


cdef extern from * nogil:
    """
    #define MC_OVER_LANES "motioncue/cueing/adaptive/step.h"
    #include "motioncue/core/lanes.h"
    static void (*const mc_adaptive_tick[])(void *, const void *, const void *, void *, int64_t) =
        MC_OF_MACHINES(mc_adaptive_tick);
    """
    run_function adaptive_tick "mc_adaptive_tick"[3]

cdef double DEGREE = M_PI / 180.0
cdef double QUICKEST_S = 0.2  # a parameter takes no less from one bound to the other: 10 m/s^2 comes at 0.15 m/s^2 a tick


cdef void reset(void* state) noexcept nogil:
    cdef AdaptiveState* s = <AdaptiveState*>state
    cdef int i
    memset(s, 0, sizeof(AdaptiveState))
    for i in range(3):
        turn(&s.platform[i], 0.0)


cdef const void* continue_from(const Calls* own, const Calls* before) noexcept nogil:
    """Begin with the state of other settings; what is high-passed is pulled back no harder than before."""
    cdef AdaptiveState* s = <AdaptiveState*>own.state
    cdef const AdaptiveCoeffs* w = <const AdaptiveCoeffs*>own.coeffs
    cdef const AdaptiveCoeffs* old = <const AdaptiveCoeffs*>before.coeffs
    cdef int i, j
    memcpy(s, before.state, sizeof(AdaptiveState))
    for i in range(2):
        section_continue(&w.pairs[i].washout, &old.pairs[i].washout, &s.pairs[i].travel)
        for j in range(3):
            section_continue(&w.pairs[i].washout, &old.pairs[i].washout, &s.pairs[i].by[j])
    section_continue(&w.heave.washout, &old.heave.washout, &s.heave.travel)
    section_continue(&w.heave.washout, &old.heave.washout, &s.heave.by)
    return w


cdef Parameter parameter(double start, double least, double most):
    """Return a parameter between two bounds; it stays at its start if they are equal."""
    cdef Parameter p
    p.start = start
    p.span = most - least
    p.low = (least - start) / p.span if p.span > 0.0 else 0.0
    p.high = (most - start) / p.span if p.span > 0.0 else 0.0
    return p


cdef double omega(double frequency_hz):
    return 2.0 * M_PI * frequency_hz


cdef AdaptivePair pair(force, rotation, tilt, weights, double threshold, double rate_threshold, double dt):
    """Return the coefficients of a pair; thresholds are those of perception [m/s^2, rad/s]."""
    cdef AdaptivePair c
    c.force = Input(force.gain, force.limit_m_s2)
    c.rate = Input(rotation.gain, rotation.limit_deg_s * DEGREE)
    c.washout = second_order(omega(force.cutoff_hz), force.damping, dt)
    c.parameters[0] = parameter(force.start, force.least, force.most)
    c.parameters[1] = parameter(
        omega(rotation.cutoff_hz),
        omega(rotation.cutoff_hz / rotation.cutoff_ratio),
        omega(rotation.cutoff_hz * rotation.cutoff_ratio),
    )
    c.parameters[2] = parameter(rotation.start, rotation.least, rotation.most)
    c.tilt_limit = rotation.tilt_deg * DEGREE
    c.tilt_rate = INFINITY if tilt.rate_limit_deg_s is None else tilt.rate_limit_deg_s * DEGREE
    c.smooth = omega(tilt.smooth_hz) / (1.0 + 0.5 * dt * omega(tilt.smooth_hz))
    c.force_weight = weights.force / threshold
    c.turn_weight = weights.rate / rate_threshold
    c.travel_weight = weights.travel / force.range_m
    c.speed_weight = weights.speed / (force.range_m * omega(force.cutoff_hz))
    return c


cdef HeaveCoeffs heave(axis, weights, double threshold, double dt):
    cdef HeaveCoeffs c
    c.force = Input(axis.gain, axis.limit_m_s2)
    c.outer = first_order(omega(axis.break_hz), dt)
    c.washout = second_order(omega(axis.cutoff_hz), axis.damping, dt)
    c.parameter = parameter(axis.start, axis.least, axis.most)
    c.force_weight = weights.force / threshold
    c.travel_weight = weights.travel / axis.range_m
    c.speed_weight = weights.speed / (axis.range_m * omega(axis.cutoff_hz))
    return c


cdef YawCoeffs yaw(axis, weights, double rate_threshold, double dt):
    cdef YawCoeffs c
    c.rate = Input(axis.gain, axis.limit_deg_s * DEGREE)
    c.parameter = parameter(axis.start, axis.least, axis.most)
    c.corner = omega(axis.cutoff_hz)
    c.d = 1.0 / (1.0 + 0.5 * dt * c.corner)
    c.turn_weight = weights.rate / rate_threshold
    c.angle_weight = weights.travel / (axis.range_deg * DEGREE)
    return c


cdef class AdaptiveWashout(Algorithm):
    """Coordinated adaptive washout after Parrish et al. (1975); reconstructed.

    Notes
    -----
    Surge with pitch, where f is the scaled specific force and q the scaled Euler rate (sway with roll: f to the right, q
    to the left)::

        r = f - g (theta_t + theta_q)                  what tilt does not present yet
        x'' = p1 r - d x' - e x
        theta_f' = w_s (f / g - theta_f)               within the limit on tilt
        theta_t' = p2 (theta_f - theta_t)              within the limit on tilt rate
        theta_q' = p3 q - p2 theta_q
        J = 1/2 (w_f (r - x''))^2 + 1/2 (w_q (q - theta'))^2 + 1/2 (w_x x)^2 + 1/2 (w_v x')^2
        p_i' = -K s_i^2 dJ/dp_i + (p_i0 - p_i) / T     within its bounds, s_i apart, and 5 s_i a second

    r - x'' is the whole error of specific force, so tilt and travel share it.  Derivatives of x, theta_t and theta_q by
    each parameter are integrated beside them and are exact for constant parameters.  Everything is the bilinear transform, x''
    prewarped at its frequency.  Heave has the first parameter alone, behind a first-order high-pass; yaw has
    psi' = p q - w psi.

    A tick descends the share mu / (1 + mu S) of the gradient, mu = K times the tick, S the sum of the squared
    derivatives of the four weighted errors by the three normalized parameters.  With errors and derivatives frozen, J is
    a quadratic whose largest curvature is at most S, so a step is always shorter than 1 / S, and J
    cannot grow, whatever K, the input or the tick; a bound on p_i or on p_i' makes a part of it shorter still, which
    does not change that.  For mu S << 1 it is plain steepest descent.  At K = 0 the parameters stay where they are and
    the washout is linear up to its limits.

    Stability does not depend on the descent: inputs and parameters are bounded, the section has constant coefficients, and
    an angle is a weighted mean of what it follows and of itself.  An input that is not a number counts as 0.

    The state goes on under any other settings.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filters' own phase.

    References
    ----------
    R. V. Parrish, J. E. Dieudonne, R. L. Bowles and D. J. Martin, Coordinated adaptive washout for motion simulators,
    Journal of Aircraft 12(1), 44-50, 1975: structure.  Equations after secondary sources; normalization, the
    coordination by r, and the bounds are our own.
    """

    def __init__(self, settings, double rate_hz):
        cdef double dt = 1.0 / rate_hz
        cdef Machine machine = chosen_machine()
        thresholds = settings.thresholds
        tilt, weights = settings.tilt, settings.weights
        self.coeffs.pairs[0] = pair(
            settings.surge, settings.pitch, tilt, weights, thresholds["surge"], thresholds["pitch"] * DEGREE, dt
        )
        self.coeffs.pairs[1] = pair(
            settings.sway, settings.roll, tilt, weights, thresholds["sway"], thresholds["roll"] * DEGREE, dt
        )
        self.coeffs.heave = heave(settings.heave, weights, thresholds["heave"], dt)
        self.coeffs.yaw = yaw(settings.yaw, weights, thresholds["yaw"] * DEGREE, dt)
        self.coeffs.gravity = GRAVITY
        self.coeffs.half_tick = 0.5 * dt
        self.coeffs.descent = settings.adaptation * dt
        self.coeffs.back = dt / max(settings.return_s, dt)
        self.coeffs.pace = dt / QUICKEST_S
        self.calls.step = mc_adaptive_one
        self.calls.reset = reset
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(AdaptiveState)
        self.calls.structure = structure_number(("adaptive",))
        self.calls.continue_from = continue_from
        self.calls.attitude = &self.state.platform[0]
        self.lanes.lanes = machine.lanes
        self.lanes.coeffs_count = sizeof(AdaptiveCoeffs) // sizeof(double)
        self.lanes.state_count = sizeof(AdaptiveState) // sizeof(double)
        self.lanes.tick = adaptive_tick[machine.index]
        self.reset()

    @property
    def parameters(self):
        """Present values of the parameters, by name: a dict of str to float.

        Shares of the force (surge, sway, heave) and of the rate (pitch, roll, yaw); corner frequencies [Hz]
        (pitch_cutoff_hz, roll_cutoff_hz).
        """
        cdef int i
        cdef const Parameter* p
        cdef const double* moved
        values = {}
        for i, (force, rotation) in enumerate((("surge", "pitch"), ("sway", "roll"))):
            p, moved = self.coeffs.pairs[i].parameters, self.state.pairs[i].moved
            values[force] = p[0].start + p[0].span * moved[0]
            values[f"{rotation}_cutoff_hz"] = (p[1].start + p[1].span * moved[1]) / (2.0 * M_PI)
            values[rotation] = p[2].start + p[2].span * moved[2]
        values["heave"] = self.coeffs.heave.parameter.start + self.coeffs.heave.parameter.span * self.state.heave.moved
        values["yaw"] = self.coeffs.yaw.parameter.start + self.coeffs.yaw.parameter.span * self.state.yaw.moved
        return values
