"""The classical washout as an algorithm: coefficients from settings; the step is in step.h."""

from libc.math cimport INFINITY, M_PI, exp2, fabs
from libc.string cimport memcmp, memcpy, memset

from motioncue.core.interfaces cimport Calls, Lanes, Machine, chosen_machine, run_function, structure_number
from motioncue.core.filters cimport first_order, first_order_as_second, second_order, section_continue
from motioncue.core.rotation cimport turn

from motioncue.core.channels import GRAVITY

__all__ = ["ClassicalWashout"]

cdef extern from * nogil:
    """
    #define MC_OVER_LANES "motioncue/cueing/classical/step.h"
    #include "motioncue/core/lanes.h"
    static void (*const mc_washout_run[])(void *, const void *, const void *, void *, int64_t) =
        MC_OF_MACHINES(mc_washout_run);
    static void (*const mc_washout_tick[])(void *, const void *, const void *, void *, int64_t) =
        MC_OF_MACHINES(mc_washout_tick);
    """
    run_function washout_run "mc_washout_run"[3]
    run_function washout_tick "mc_washout_tick"[3]


cdef double DEGREE = M_PI / 180.0
cdef double SLOWEST = 1e-9      # [rad/s] lowest corner frequency, a turn in 200 years; the square of a lower one may be 0
cdef double CATCH_UP = 1.0      # [rad/s^2] bound on the acceleration of a tilt that lags after a change of settings
cdef double RETURN = 1.0        # [rad/s] natural frequency with which travel returns below a threshold, and corner of an angle
cdef double DOUBLING_S = 0.25   # [s] time in which that bound becomes twice as large after the fade


cdef void reset(void* state) noexcept nogil:
    cdef WashoutState* s = <WashoutState*>state
    cdef int i
    memset(s, 0, sizeof(WashoutState))
    for i in range(3):
        turn(&s.platform[i], 0.0)


cdef double limit_of(value, double unit=1.0):
    """Return a limit times its unit; None is no limit."""
    return INFINITY if value is None else value * unit


cdef Scaling scaling_of(double gain, double limit, shape, double largest, double dead_zone, double other=1.0):
    """Return a scaling; `shape` is None for a linear one, whose `largest` is infinite; `other`: share of negative inputs."""
    cdef Scaling scaling
    scaling.dead_zone, scaling.mean, scaling.half = dead_zone, 0.5 * (1.0 + other), 0.5 * (1.0 - other)
    scaling.gain, scaling.limit, scaling.largest, scaling.per_largest = gain, limit, largest, 1.0 / largest
    scaling.square, scaling.cube = (0.0, 0.0) if shape is None else shape.coefficients()
    return scaling


cdef void fill_texture(Texture* texture, settings, double dt, bint hold):
    """Fill the filters, gains and limits of the texture."""
    cdef double limit, omega = max(SLOWEST, 2.0 * M_PI * settings.cutoff_hz)
    cdef int i
    texture.band.outer = first_order(omega, dt, hold)
    texture.band.inner = second_order(omega, 0.5, dt, hold)
    for i, name in enumerate(("sway", "heave", "roll", "pitch")):
        limit = settings.limit_m if i < 2 else settings.limit_deg * DEGREE
        texture.axes[i] = TextureAxis(getattr(settings, f"{name}_gain"), limit, 1.0 / limit)


cdef void fill_axis(HighPassAxis* filters, axis, double dt, bint hold):
    """Fill the filters of an axis."""
    cdef double omega = max(SLOWEST, 2.0 * M_PI * axis.cutoff_hz)
    filters.outer = first_order(max(SLOWEST, 2.0 * M_PI * axis.break_hz) if axis.order == 3 else 0.0, dt, hold)
    if axis.order == 1:
        filters.inner = first_order_as_second(omega, dt, hold)
    else:
        filters.inner = second_order(omega, axis.damping, dt, hold)


cdef void fill_bound(Bound* bound, const HighPassAxis* axis, double limit, bint hold):
    """Fill the bound of an angle."""
    bound.limit, bound.per_limit = limit, 1.0 / limit
    bound.room = (1.0 if hold else 0.5) * limit / axis.inner.k
    if hold and limit < INFINITY:       # the spring moves the angle too, by this share of it
        bound.room *= max(0.0, 1.0 - axis.inner.c0 * axis.inner.m)


cdef Return return_of(value, double unit, bint turning):
    """Return how an axis returns to neutral below a threshold; None: not beyond what its filter does."""
    if value is None:
        return Return(0.0, 0.0, 0.0)
    return Return(value * unit, RETURN, 0.0) if turning else Return(value * unit, 2.0 * RETURN, RETURN * RETURN)


cdef void axis_continue(const HighPassAxis* axis, const HighPassAxis* before, HighPassState* s) noexcept nogil:
    """Let a filter go on, whatever its order was: what it does not have is 0, what it did not have begins at 0."""
    section_continue(&axis.inner, &before.inner, &s.inner)
    if axis.outer.g == 0.0:
        s.outer = 0.0
    if axis.inner.c0 == 0.0 and before.inner.c0 > 0.0:      # nothing would ever pull that back
        s.inner.x = 0.0


cdef const void* coeffs_of(const Calls* own) noexcept nogil:
    """Return the coefficients for the next tick: those of the settings once no tilt is eased."""
    cdef const Eased* eased = <const Eased*>own.eased
    return &eased.coeffs if eased.lags[0] or eased.lags[1] else own.coeffs


cdef const void* continue_from(const Calls* own, const Calls* before) noexcept nogil:
    """Begin with the state of other settings; return the coefficients for the next tick.

    What is high-passed is pulled back no harder than before, angles are within their bounds, and the low-pass of a tilt
    keeps its output and the rate of that; its state is those over the stiffness.
    """
    cdef WashoutState* s = <WashoutState*>own.state
    cdef Eased* eased = <Eased*>own.eased
    cdef const WashoutCoeffs* w = <const WashoutCoeffs*>own.coeffs
    cdef const WashoutCoeffs* old = <const WashoutCoeffs*>before.coeffs
    cdef double ratio
    cdef int i
    memcpy(s, before.state, sizeof(WashoutState))
    eased[0] = (<const Eased*>before.eased)[0]
    if memcmp(w, old, sizeof(WashoutCoeffs)) == 0:
        return coeffs_of(own)
    for i in range(3):
        axis_continue(&w.translation[i], &old.translation[i], &s.translation[i])
        axis_continue(&w.rotation[i], &old.rotation[i], &s.rotation[i])
        s.rotation[i].inner.v = max(-w.bounds[i].limit, min(w.bounds[i].limit, s.rotation[i].inner.v))
    for i in range(4):
        if w.textured == 0.0 or old.textured == 0.0:
            memset(&s.texture[i], 0, sizeof(HighPassState))
        else:
            axis_continue(&w.texture.band, &old.texture.band, &s.texture[i])
    eased.coeffs = w[0]
    for i in range(2):
        ratio = old.tilt[i].low_pass.c0 / w.tilt[i].low_pass.c0
        s.tilt[i].low_pass.x *= ratio
        s.tilt[i].low_pass.v *= ratio
        eased.lags[i] = False
        if w.tilt[i].rate < INFINITY:
            eased.lags[i] = True
            eased.coeffs.tilt[i].acceleration = min(w.tilt[i].acceleration, CATCH_UP / w.ticks_per_second ** 2)
    return coeffs_of(own)


cdef const void* settle(const Calls* own, bint whole) noexcept nogil:
    """Return the coefficients for the next tick: with bounds on the acceleration of a tilt until it has caught up.

    A tilt that lags far behind while its largest rate grows would move at that rate at once, and stop as suddenly.
    What it follows may be rougher than the bound, which therefore grows; at the largest rate it waits.
    """
    cdef const WashoutCoeffs* w = <const WashoutCoeffs*>own.coeffs
    cdef const WashoutState* s = <const WashoutState*>own.state
    cdef Eased* eased = <Eased*>own.eased
    cdef int i
    for i in range(2):
        if eased.lags[i]:
            if fabs(s.tilt[i].rate) < w.tilt[i].rate:
                eased.coeffs.tilt[i].acceleration *= exp2(1.0 / (DOUBLING_S * w.ticks_per_second))
            if whole or fabs(s.tilt[i].target - s.tilt[i].angle) < 1e-12:
                eased.lags[i] = False
            if not eased.lags[i] or eased.coeffs.tilt[i].acceleration > w.tilt[i].acceleration:
                eased.coeffs.tilt[i].acceleration = w.tilt[i].acceleration
    return coeffs_of(own)


cdef class ClassicalWashout(Algorithm):
    """Classical washout after Reid & Nahon (UTIAS 296, 307, 319).

    Notes
    -----
    Per axis, with K its gain and T the gain of its tilt: displacement K HP(s)/s^2 of the acceleration, tilt
    asin(T LP(s) f/g), attitude K HP(s)/s of the Euler rates.  HP is s/(s+w), s^2/(s^2+2 z w s+w^2), or that times
    s/(s+w_b); LP is w^2/(s^2+2 z w s+w^2).  Bilinear transform prewarped at each section's own frequency, or with
    ``filters = "hold"`` the solution for an input that is held from one tick to the next.  Surge, sway
    and heave of the cue are the specific force in platform axes less its value at rest, so for one translational axis
    alone they are K HP(s) + T LP(s) of the input while neither rate nor acceleration of the tilt is limited.

    The state goes on under any other settings.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filters' own phase.
    """

    def __init__(self, settings, double rate_hz):
        cdef double dt = 1.0 / rate_hz
        cdef Machine machine = chosen_machine()
        cdef double angle, limit
        cdef bint late = settings.limited == "after_turn"
        cdef bint hold = settings.filters == "hold"
        cdef double[3] largest
        cdef int i
        translation = settings.surge, settings.sway, settings.heave
        rotation = settings.roll, settings.pitch, settings.yaw
        tilt = settings.tilt
        for i in range(3):
            axis, shape = translation[i], translation[i].scaling
            largest[i] = limit_of(None if shape is None else shape.largest_m_s2)
            limit = limit_of(axis.limit_m_s2)
            self.coeffs.scaling[2 + i] = scaling_of(
                axis.gain, INFINITY if late else limit, shape, largest[i], axis.dead_zone_m_s2, axis.negative_share
            )
            if i == 2:                  # its input is downward
                self.coeffs.scaling[4].half = -self.coeffs.scaling[4].half
            self.coeffs.returns[i] = return_of(axis.return_m_s2, 1.0, False)
            self.coeffs.turned_limits[i] = limit if late else INFINITY
            axis, shape = rotation[i], rotation[i].scaling
            angle = limit_of(None if shape is None else shape.largest_deg_s, DEGREE)
            limit = limit_of(axis.limit_deg_s, DEGREE)
            self.coeffs.scaling[5 + i] = scaling_of(
                axis.gain, INFINITY if late else limit, shape, angle, axis.dead_zone_deg_s * DEGREE
            )
            self.coeffs.returns[3 + i] = return_of(axis.return_deg_s, DEGREE, True)
            self.coeffs.turned_limits[3 + i] = limit if late else INFINITY
            angle = limit_of(rotation[i].angle_limit_deg, DEGREE)
            fill_axis(&self.coeffs.translation[i], translation[i], dt, hold)
            fill_axis(&self.coeffs.rotation[i], rotation[i], dt, hold)
            fill_bound(&self.coeffs.bounds[i], &self.coeffs.rotation[i], angle, hold)
            if angle < INFINITY:
                self.coeffs.bounded = 1.0
        for i, (name, cutoff_hz) in enumerate((("surge", tilt.surge_cutoff_hz), ("sway", tilt.sway_cutoff_hz))):
            self.coeffs.tilt[i].low_pass = second_order(max(SLOWEST, 2.0 * M_PI * cutoff_hz), tilt.damping, dt, hold)
            gain, most = settings.sustained(name)
            axis = translation[i]
            self.coeffs.scaling[i] = scaling_of(
                gain, limit_of(most), axis.scaling, largest[i], axis.dead_zone_m_s2, axis.negative_share
            )
            self.coeffs.tilt[i].slope = (tilt.pitch_share, tilt.roll_share)[i] * GRAVITY
            self.coeffs.tilt[i].rate = limit_of(tilt.rate_limit_deg_s, DEGREE) * dt
            self.coeffs.tilt[i].acceleration = limit_of(tilt.acceleration_limit_deg_s2, DEGREE) * dt * dt
        self.coeffs.linear = tilt.law == "linear"
        self.coeffs.by_platform = settings.turned_by == "platform"
        forced = settings.turned == "specific_force"
        if forced:
            self.coeffs.forced, self.coeffs.upright = 1.0, GRAVITY * settings.heave.gain
        self.coeffs.otherwise = forced or self.coeffs.by_platform
        self.coeffs.limited_late = late
        self.coeffs.held = hold
        if forced or any(axis.shaped for axis in translation + rotation):
            self.coeffs.curved = 1.0
        if hold or any(axis.returns for axis in translation + rotation):
            self.coeffs.either = 1.0
        if settings.texture is not None:
            fill_texture(&self.coeffs.texture, settings.texture, dt, hold)
            self.coeffs.textured = 1.0
        self.coeffs.gravity = GRAVITY
        self.coeffs.ticks_per_second = rate_hz
        self.calls.step = mc_washout_one
        self.calls.reset = reset
        self.calls.run = washout_run[machine.index]
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(WashoutState)
        self.calls.structure = structure_number(("classical",))
        self.calls.continue_from = continue_from
        self.calls.settle = settle
        self.calls.eased = &self.eased
        self.calls.attitude = &self.state.platform[0]
        self.lanes = Lanes(
            machine.lanes,
            sizeof(WashoutCoeffs) // sizeof(double),
            sizeof(WashoutState) // sizeof(double),
            washout_tick[machine.index],
        )
        self.reset()
