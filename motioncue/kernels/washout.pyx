"""The classical washout as an algorithm: coefficients from settings; the step is in washout.h."""

from libc.math cimport INFINITY, M_PI, exp, fabs, log
from libc.string cimport memcpy, memset

from motioncue.kernels.algorithm cimport Lanes, structure_number
from motioncue.kernels.fade cimport bend_at, left_at, slope_at, vanishing
from motioncue.kernels.filters cimport SecondOrder, first_order, first_order_as_second, second_order
from motioncue.kernels.lanes cimport Machine, chosen
from motioncue.kernels.rotation cimport turn

from motioncue.motion import GRAVITY

__all__ = ["ClassicalWashout"]

cdef double DEGREE = M_PI / 180.0
cdef double SLOW = 0.5          # [rad/s] corner frequencies far below this move linearly, those above by ratio
cdef double LITTLE = 0.1        # likewise for damping ratios
cdef double SLOWEST = 1e-9      # [rad/s] lowest corner frequency, a turn in 200 years; the square of a lower one may be 0
cdef double RUB = 4.0           # damping over mass that a rising frequency adds, in rates of its logarithm


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


cdef void fill_texture(Texture* texture, settings):
    """Fill the gains and limits of the texture."""
    cdef double limit
    cdef int i
    for i, name in enumerate(("sway", "heave", "roll", "pitch")):
        limit = settings.limit_m if i < 2 else settings.limit_deg * DEGREE
        texture.axes[i] = TextureAxis(getattr(settings, f"{name}_gain"), limit, 1.0 / limit)


cdef Corners corners_of(settings, double dt):
    """Return the corners of all filters; those that there are not are 0."""
    cdef Corners c
    cdef int i
    memset(&c, 0, sizeof(Corners))
    c.dt = dt
    c.hold = settings.filters == "hold"
    for i, axis in enumerate((settings.surge, settings.sway, settings.heave, settings.roll, settings.pitch, settings.yaw)):
        c.order[i] = axis.order
        c.at[3 * i] = max(SLOWEST, 2.0 * M_PI * axis.cutoff_hz)
        c.at[3 * i + 1] = axis.damping if axis.order > 1 else 0.0
        c.at[3 * i + 2] = max(SLOWEST, 2.0 * M_PI * axis.break_hz) if axis.order == 3 else 0.0
    for i, cutoff_hz in enumerate((settings.tilt.surge_cutoff_hz, settings.tilt.sway_cutoff_hz)):
        c.at[<int>TILTS + 2 * i] = max(SLOWEST, 2.0 * M_PI * cutoff_hz)
        c.at[<int>TILTS + 2 * i + 1] = settings.tilt.damping
    c.textured = settings.texture is not None
    if c.textured:
        c.at[<int>TEXTURE] = max(SLOWEST, 2.0 * M_PI * settings.texture.cutoff_hz)
    return c


cdef void fill_sections(WashoutCoeffs* w, const Corners* c, const double* rub) noexcept nogil:
    """Fill the filters from their corners; `rub[i]` is damping over mass that corner i adds to its section [rad/s]."""
    cdef HighPassAxis* axis
    cdef Bound* bound
    cdef const double* at
    cdef int i
    for i in range(<int>AXES):
        axis = &w.translation[i] if i < 3 else &w.rotation[i - 3]
        at = &c.at[3 * i]
        axis.outer = first_order(at[2], c.dt, c.hold)
        if c.order[i] == 1:
            axis.inner = first_order_as_second(at[0], c.dt, c.hold)
        else:
            axis.inner = second_order(at[0], at[1], c.dt, c.hold, rub[3 * i])
        if i >= 3:
            bound = &w.bounds[i - 3]
            bound.room = (1.0 if c.hold else 0.5) * bound.limit / axis.inner.k
            if c.hold and bound.limit < INFINITY:       # the spring moves the angle too, by this share of it
                bound.room *= max(0.0, 1.0 - axis.inner.c0 * axis.inner.m)
    for i in range(2):
        at = &c.at[<int>TILTS + 2 * i]
        w.tilt[i].low_pass = second_order(at[0], at[1], c.dt, c.hold, rub[<int>TILTS + 2 * i])
    if c.textured:
        w.texture.band.outer = first_order(c.at[<int>TEXTURE], c.dt, c.hold)
        w.texture.band.inner = second_order(c.at[<int>TEXTURE], 0.5, c.dt, c.hold, rub[<int>TEXTURE])


cdef inline double base_of(int corner) noexcept nogil:
    """Return what is added to a corner before its logarithm is taken."""
    if corner < <int>TILTS:
        return LITTLE if corner % 3 == 1 else SLOW
    return LITTLE if corner < <int>TEXTURE and (corner - <int>TILTS) % 2 == 1 else SLOW


cdef inline double place_of(const Corners* c, int corner) noexcept nogil:
    return log(c.at[corner] + base_of(corner))


cdef void way_open(Way* way) noexcept nogil:
    """Be at the settings' own corners."""
    cdef int i
    for i in range(<int>CORNERS):
        way.place[i] = place_of(&way.own, i)
        way.left[i] = vanishing(0.0, 0.0, 0.0)
    way.position = 1.0
    way.pace = 1.0


cdef const void* way_depart(void* memory, const void* before, double pace) noexcept nogil:
    """Leave from the corners of another way, with the speed and acceleration that they have; return the coefficients.

    Every e-fold takes a whole fade, so that no frequency rises faster than by 15/8 e-folds in one.
    """
    cdef Way* way = <Way*>memory
    cdef const Way* old = <const Way*>before
    cdef double most = 1.0, scale
    cdef bint same = True
    cdef int i
    way_open(way)
    if old == NULL:
        return way.goal
    for i in range(<int>CORNERS):
        same = same and way.own.at[i] == old.own.at[i]
        most = max(most, fabs(old.place[i] - way.place[i]))
    if same and old.position >= 1.0:
        return way.goal
    if same:                    # the same corners again leave the way as it is
        memcpy(way.left, old.left, sizeof(way.left))
        way.position, way.pace = old.position, old.pace
    else:
        way.position, way.pace = 0.0, pace / most
        scale = old.pace / way.pace
        for i in range(<int>CORNERS):
            way.left[i] = vanishing(old.place[i] - way.place[i], 0.0, 0.0)
            if old.position < 1.0:
                way.left[i] = vanishing(
                    old.place[i] - way.place[i],
                    slope_at(&old.left[i], old.position) * scale,
                    bend_at(&old.left[i], old.position) * scale * scale,
                )
    way.coeffs = way.goal[0]
    on_way(way)
    return &way.coeffs


cdef void on_way(Way* way) noexcept nogil:
    """Compute the corners at the way's position, and the coefficients from them.

    A frequency that rises does work on what it swings: with u = ln(frequency) the energy of a free swing changes by the
    factor exp(u) without damping, and by exp(u - 4 u) with a damping over mass of 4 du/dt beside its own.  Then the
    acceleration of a swing does not grow, whatever its damping ratio.
    """
    cdef Corners now = way.own
    cdef double rub[CORNERS]
    cdef double most = 0.9 * M_PI / way.own.dt      # a way that turns back may pass its goal
    cdef double moved
    cdef int i
    for i in range(<int>CORNERS):
        rub[i] = 0.0
        way.place[i] = place_of(&way.own, i)
        moved = left_at(&way.left[i], way.position)
        if moved == 0.0:
            continue
        way.place[i] += moved
        now.at[i] = max(SLOWEST, exp(way.place[i]) - base_of(i))
        if base_of(i) == SLOW:
            now.at[i] = min(now.at[i], max(most, way.own.at[i]))
        rub[i] = RUB * max(0.0, slope_at(&way.left[i], way.position) * way.pace / way.own.dt)
    fill_sections(&way.coeffs, &now, rub)


cdef inline double risen(const SecondOrder* before, const SecondOrder* now) noexcept nogil:
    """Return the share by which a state has to shrink, so that its spring force is no larger than before."""
    return before.c0 / now.c0 if now.c0 > before.c0 else 1.0


cdef void adapt(WashoutState* s, const WashoutCoeffs* before, const WashoutCoeffs* now) noexcept nogil:
    """Adapt the state to coefficients that have moved, so that nothing that leaves the washout jumps.

    A low-pass keeps its output and the rate of that; its state is those over the stiffness.  What a rotation integrates
    twice is nothing that leaves it, so its spring force stays the same where it would grow.
    """
    cdef double ratio
    cdef int i
    for i in range(2):
        ratio = before.tilt[i].low_pass.c0 / now.tilt[i].low_pass.c0
        s.tilt[i].low_pass.x *= ratio
        s.tilt[i].low_pass.v *= ratio
    for i in range(3):
        s.rotation[i].inner.x *= risen(&before.rotation[i].inner, &now.rotation[i].inner)
    for i in range(2, 4):
        s.texture[i].inner.x *= risen(&before.texture.band.inner, &now.texture.band.inner)


cdef const void* way_advance(void* memory, void* state, bint whole) noexcept nogil:
    """Move a tick further, or the `whole` rest; return the coefficients."""
    cdef Way* way = <Way*>memory
    cdef WashoutCoeffs before = way.coeffs
    way.position += way.pace
    if whole or way.position >= 1.0:
        way_open(way)
        adapt(<WashoutState*>state, &before, way.goal)
        return way.goal
    on_way(way)
    adapt(<WashoutState*>state, &before, &way.coeffs)
    return &way.coeffs


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
    s/(s+w_b); LP is w^2/(s^2+2 z w s+w^2).  Bilinear transform prewarped at each section's own frequency, or with
    ``filters = "hold"`` the solution for an input that is held from one tick to the next.  Surge, sway
    and heave of the cue are the specific force in platform axes less its value at rest, so for one translational axis
    alone they are K HP(s) + T LP(s) of the input while neither rate nor acceleration of the tilt is limited.

    The state keeps its meaning under other settings as long as every axis keeps its order, and with or without texture.
    Corner frequencies and damping ratios then move to the new ones along a fade, by ratio; every e-fold takes one.
    Real time: a step does not allocate, needs no GIL and cannot fail.  Latency: none beyond the filters' own phase.
    """

    def __init__(self, settings, double rate_hz):
        cdef double dt = 1.0 / rate_hz
        cdef Machine machine = chosen()
        cdef double angle, limit
        cdef bint late = settings.limited == "after_turn"
        cdef double[3] largest
        cdef double[CORNERS] none
        cdef int i
        memset(&none, 0, sizeof(none))
        translation = settings.surge, settings.sway, settings.heave
        rotation = settings.roll, settings.pitch, settings.yaw
        tilt = settings.tilt
        for i in range(3):
            axis, shape = translation[i], translation[i].scaling
            largest[i] = limit_of(None if shape is None else shape.largest_m_s2)
            limit = limit_of(axis.limit_m_s2)
            self.coeffs.scaling[2 + i] = scaling_of(axis.gain, INFINITY if late else limit, shape, largest[i])
            self.coeffs.turned_limits[i] = limit if late else INFINITY
            axis, shape = rotation[i], rotation[i].scaling
            angle = limit_of(None if shape is None else shape.largest_deg_s, DEGREE)
            limit = limit_of(axis.limit_deg_s, DEGREE)
            self.coeffs.scaling[5 + i] = scaling_of(axis.gain, INFINITY if late else limit, shape, angle)
            self.coeffs.turned_limits[3 + i] = limit if late else INFINITY
            angle = limit_of(rotation[i].angle_limit_deg, DEGREE)
            self.coeffs.bounds[i] = Bound(angle, 1.0 / angle, 0.0)
            if angle < INFINITY:
                self.coeffs.bounded = 1.0
        for i, name in enumerate(("surge", "sway")):
            gain, most = settings.sustained(name)
            self.coeffs.scaling[i] = scaling_of(gain, limit_of(most), translation[i].scaling, largest[i])
            self.coeffs.tilt[i].slope = (tilt.pitch_share, tilt.roll_share)[i] * GRAVITY
            self.coeffs.tilt[i].rate = limit_of(tilt.rate_limit_deg_s, DEGREE) * dt
            self.coeffs.tilt[i].acceleration = limit_of(tilt.acceleration_limit_deg_s2, DEGREE) * dt * dt
        self.coeffs.linear = tilt.law == "linear"
        self.coeffs.by_platform = settings.turned_by == "platform"
        self.coeffs.limited_late = late
        self.coeffs.held = settings.filters == "hold"
        if any(axis.scaling is not None for axis in translation + rotation):
            self.coeffs.curved = 1.0
        if settings.texture is not None:
            fill_texture(&self.coeffs.texture, settings.texture)
            self.coeffs.textured = 1.0
        self.coeffs.gravity = GRAVITY
        self.coeffs.ticks_per_second = rate_hz
        self.way.own = corners_of(settings, dt)
        fill_sections(&self.coeffs, &self.way.own, none)
        self.way.goal = &self.coeffs
        way_open(&self.way)
        self.calls.step = step
        self.calls.reset = reset
        self.calls.run = machine.run
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(WashoutState)
        orders = (axis.order for axis in translation + rotation)
        self.calls.structure = structure_number(("classical", settings.texture is not None, *orders))
        self.calls.way = &self.way
        self.calls.depart = way_depart
        self.calls.advance = way_advance
        self.calls.attitude = &self.state.platform[0]
        self.lanes = Lanes(
            machine.lanes, sizeof(WashoutCoeffs) // sizeof(double), sizeof(WashoutState) // sizeof(double), machine.tick
        )
        self.reset()
