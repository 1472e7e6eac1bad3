"""A join: the smooth return of an output to its line, never away from it and never faster than the drive.

The offset of the output from the line follows a critically damped second-order system, o'' + 2 p o' + p^2 o = 0.  Its
pace p is that of the join, and higher if the offset already closes faster than that.  The output moves only towards the
line, except that it comes to rest smoothly if it was moving away.  Along no axis it moves faster than 1.19 times the
largest slope of the drive in the last minute, plus half of the largest slope of a fade of the offset.
"""

from libc.math cimport exp, fabs, isfinite, sqrt

from motioncue.bridge.predictor cimport within


cdef enum:
    AXES = 3


ctypedef struct Join:           # one output, on up to three axes
    double offset[AXES]     # output less its line [unit]
    double velocity[AXES]   # derivative of the offset [unit/s]
    double speed[AXES]      # velocity of the output itself [unit/s]
    double largest          # largest offset since the join began [unit]
    double fastest[AXES]    # largest slope of the drive in the last minute [unit/s]


ctypedef struct JoinTick:       # values shared by all joins in a tick
    double dt               # time since the last tick [s]
    double pace             # [1/s]
    double max_pace         # highest pace, for an offset that closes faster [1/s]
    double fade_rate        # half of the largest slope of a fade, per unit of offset [1/s]
    bint is_step_signal     # the line moves in steps, which must not count as velocity


cdef extern from *:
    """
    #define MC_CATCH_UP 1.19    /* largest slope of a joining output, relative to the drive's */
    #define MC_NEGLIGIBLE 1e-9  /* [unit] offset that ends a join, plus a thousandth of the largest move in a tick */
    """
    const double CATCH_UP "MC_CATCH_UP"
    const double NEGLIGIBLE "MC_NEGLIGIBLE"


cdef inline double size_of(const double* x, int n) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(n):
        total += x[i] * x[i]
    return sqrt(total)


cdef inline double clamp_towards(double move, double whole, double braking) noexcept nogil:
    """Return the value nearest to `move` that goes towards the line, at most the `whole` way, or away at most by
    `coast`."""
    cdef double low = braking if braking < 0.0 else 0.0
    cdef double high = braking if braking > 0.0 else 0.0
    low = whole if whole < low else low
    high = whole if whole > high else high
    return low if move < low else (high if move > high else move)


cdef inline void join_clear(Join* j) noexcept nogil:
    """Put the output on its line; the drive's largest slope is kept."""
    cdef int i
    for i in range(AXES):
        j.offset[i] = j.velocity[i] = 0.0
    j.largest = 0.0


cdef inline void join_grow(Join* j, int n) noexcept nogil:
    """Update the largest offset; an offset that is not a number ends the join."""
    cdef double offset = size_of(j.offset, n)
    if not isfinite(offset + size_of(j.velocity, n)):
        join_clear(j)
    elif offset > j.largest:
        j.largest = offset


cdef inline double join_pace(const Join* j, int n, const JoinTick* tick) noexcept nogil:
    """Return the pace that keeps the offset's present velocity, within the bounds [1/s]."""
    cdef double offset = size_of(j.offset, n)
    cdef double velocity = size_of(j.velocity, n)
    if velocity <= tick.pace * offset:
        return tick.pace
    if velocity < tick.max_pace * offset:
        return velocity / offset
    return tick.max_pace if tick.max_pace > tick.pace else tick.pace


cdef inline bint join_step(Join* j, int n, const double* gap, double step, const JoinTick* tick) noexcept nogil:
    """Move an output of `n` axes by one tick; return whether it is still off its line.

    `gap` is the offset if the output stayed where it is; a `step` of the line itself is allowed.
    """
    cdef double pace = join_pace(j, n, tick)
    cdef double damped = exp(-pace * tick.dt)
    cdef double max_speed[AXES]
    cdef double most[AXES]
    cdef double free[AXES]
    cdef double move[AXES]
    cdef double drop, near
    cdef double share = 1.0
    cdef double braking = tick.dt * exp(-tick.max_pace * tick.dt)
    cdef int i
    for i in range(n):
        max_speed[i] = CATCH_UP * j.fastest[i] + tick.fade_rate * j.largest
        most[i] = tick.dt * max_speed[i] if tick.dt * max_speed[i] > step else step
        free[i] = (j.offset[i] + (j.velocity[i] + pace * j.offset[i]) * tick.dt) * damped
        move[i] = clamp_towards(free[i] - gap[i], -gap[i], braking * j.speed[i])
        if share * fabs(move[i]) > most[i]:
            share = most[i] / fabs(move[i])
    for i in range(n):
        near = gap[i] + share * move[i]
        if share == 1.0 and move[i] == free[i] - gap[i]:
            drop = (j.velocity[i] + pace * j.offset[i]) * tick.dt
            j.velocity[i] = (j.velocity[i] - pace * drop) * damped
        else:
            j.velocity[i] = (near - j.offset[i]) / tick.dt
            if tick.is_step_signal:     # steps of the line are no velocity, only the output's own motion is
                j.velocity[i] = within(share * move[i] / tick.dt, max_speed[i])
        j.offset[i] = near
        j.speed[i] = share * move[i] / tick.dt
    near = size_of(j.offset, n)
    if near > 1e-3 * size_of(most, n) + NEGLIGIBLE and isfinite(near):
        return True
    join_clear(j)
    return False
