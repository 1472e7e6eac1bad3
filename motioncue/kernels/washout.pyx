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


cdef double limit_of(value, double unit=1.0):
    """Return a limit times its unit; None is no limit."""
    return INFINITY if value is None else value * unit


cdef Scaling scaling_of(double gain, double limit, shape, double largest):
    """Return a scaling; `shape` is None for a linear one, whose `largest` is infinite."""
    cdef Scaling scaling
    scaling.gain, scaling.limit, scaling.largest, scaling.per_largest = gain, limit, largest, 1.0 / largest
    scaling.square, scaling.cube = (0.0, 0.0) if shape is None else shape.coefficients()
    return scaling


cdef HighPassAxis axis_of(settings, double dt):
    """Return the high-pass filter of an axis."""
    cdef HighPassAxis axis
    cdef double omega = 2.0 * M_PI * settings.cutoff_hz
    axis.outer = first_order(2.0 * M_PI * settings.break_hz if settings.order == 3 else 0.0, dt)
    axis.inner = first_order_as_second(omega, dt) if settings.order == 1 else second_order(omega, settings.damping, dt)
    return axis


cdef Texture texture_of(settings, double dt):
    """Return the texture: a Butterworth filter of third order, its gains and limits."""
    cdef Texture texture
    cdef double omega = 2.0 * M_PI * settings.cutoff_hz
    cdef double limit
    cdef int i
    texture.band.outer = first_order(omega, dt)
    texture.band.inner = second_order(omega, 0.5, dt)
    for i, name in enumerate(("sway", "heave", "roll", "pitch")):
        limit = settings.limit_m if i < 2 else settings.limit_deg * DEGREE
        texture.axes[i] = TextureAxis(getattr(settings, f"{name}_gain"), limit, 1.0 / limit)
    return texture


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
    Per axis, with K its gain and T the gain of its tilt: displacement K HP(s)/s^2 of the acceleration, tilt
    asin(T LP(s) f/g), attitude K HP(s)/s of the Euler rates.  HP is s/(s+w), s^2/(s^2+2 z w s+w^2), or that times
    s/(s+w_b); LP is w^2/(s^2+2 z w s+w^2).  Bilinear transform prewarped at each section's own frequency.  Surge, sway
    and heave of the cue are the specific force in platform axes less its value at rest, so for one translational axis
    alone they are K HP(s) + T LP(s) of the input while neither rate nor acceleration of the tilt is limited.

    The state keeps its meaning under other settings as long as every axis keeps its order, and with or without texture.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filters' own phase.
    """

    def __init__(self, settings, double rate_hz):
        cdef double dt = 1.0 / rate_hz
        cdef Machine machine = chosen()
        cdef double angle
        cdef double[3] largest
        cdef int i
        translation = settings.surge, settings.sway, settings.heave
        rotation = settings.roll, settings.pitch, settings.yaw
        tilt = settings.tilt
        for i in range(3):
            axis, shape = translation[i], translation[i].scaling
            largest[i] = limit_of(None if shape is None else shape.largest_m_s2)
            self.coeffs.scaling[2 + i] = scaling_of(axis.gain, limit_of(axis.limit_m_s2), shape, largest[i])
            axis, shape = rotation[i], rotation[i].scaling
            angle = limit_of(None if shape is None else shape.largest_deg_s, DEGREE)
            self.coeffs.scaling[5 + i] = scaling_of(axis.gain, limit_of(axis.limit_deg_s, DEGREE), shape, angle)
            self.coeffs.translation[i] = axis_of(translation[i], dt)
            self.coeffs.rotation[i] = axis_of(rotation[i], dt)
            angle = limit_of(rotation[i].angle_limit_deg, DEGREE)
            self.coeffs.bounds[i] = Bound(angle, 1.0 / angle, 0.5 * angle / self.coeffs.rotation[i].inner.k)
            if angle < INFINITY:
                self.coeffs.bounded = 1.0
        for i, name in enumerate(("surge", "sway")):
            gain, limit = settings.sustained(name)
            self.coeffs.scaling[i] = scaling_of(gain, limit_of(limit), translation[i].scaling, largest[i])
            cutoff_hz = getattr(tilt, f"{name}_cutoff_hz")
            self.coeffs.tilt[i].low_pass = second_order(2.0 * M_PI * cutoff_hz, tilt.damping, dt)
            self.coeffs.tilt[i].slope = (tilt.pitch_share, tilt.roll_share)[i] * GRAVITY
            self.coeffs.tilt[i].rate = limit_of(tilt.rate_limit_deg_s, DEGREE) * dt
            self.coeffs.tilt[i].acceleration = limit_of(tilt.acceleration_limit_deg_s2, DEGREE) * dt * dt
        self.coeffs.linear = tilt.law == "linear"
        self.coeffs.by_platform = settings.turned_by == "platform"
        if any(axis.scaling is not None for axis in translation + rotation):
            self.coeffs.curved = 1.0
        if settings.texture is not None:
            self.coeffs.texture = texture_of(settings.texture, dt)
            self.coeffs.textured = 1.0
        self.coeffs.gravity = GRAVITY
        self.coeffs.ticks_per_second = rate_hz
        self.calls.step = step
        self.calls.reset = reset
        self.calls.run = machine.run
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(WashoutState)
        orders = (axis.order for axis in translation + rotation)
        self.calls.structure = structure_number(("classical", settings.texture is not None, *orders))
        self.calls.attitude = &self.state.platform[0]
        self.lanes = Lanes(
            machine.lanes, sizeof(WashoutCoeffs) // sizeof(double), sizeof(WashoutState) // sizeof(double), machine.tick
        )
        self.reset()
