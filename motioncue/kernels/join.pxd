"""How an output that is apart from its line comes back to it: smoothly, only towards it, no faster than the drive.

The offset of the output from the line follows a critically damped second-order system, o'' + 2 p o' + p^2 o = 0, whose
pace p is that of the join, and rises where the offset closes at a higher velocity than belongs to it.  The output moves
towards the line only, but for coming to rest where it was moving away, and never moves faster than 1.19 times the largest slope that the
drive had in the last seconds, beside the largest slope that a fade of the offset would have.
"""

from libc.math cimport exp, isfinite, sqrt


cdef enum:
    AXES = 3


ctypedef struct Join:           # of one output, on up to three axes
    double offset[AXES]     # of the output from its line [unit]
    double velocity[AXES]   # of that [unit/s]
    double speed[AXES]      # of the output itself [unit/s]
    double largest          # offset since the join began [unit]
    double fastest          # slope of the drive in the last seconds [unit/s]


ctypedef struct JoinTick:       # what the joins of one tick share
    double dt               # since the last tick [s]
    double pace             # [1/s]
    double quickest         # pace where the offset closes faster [1/s]
    double gentle           # largest slope of a fade, of what it takes away [1/s]
    bint stairs             # the line moves in steps: what one of them changes is no velocity


cdef extern from *:
    """
    #define MC_CATCH_UP 1.19    /* largest slope of an output that joins, over that of the drive */
    #define MC_NEGLIGIBLE 1e-9  /* [unit] offset that ends a join, beside a thousandth of what the tick may move */
    """
    const double CATCH_UP "MC_CATCH_UP"
    const double NEGLIGIBLE "MC_NEGLIGIBLE"


cdef inline double size_of(const double* x, int n) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(n):
        total += x[i] * x[i]
    return sqrt(total)


cdef inline double towards(double move, double whole, double coast) noexcept nogil:
    """Return the move next to `move` that goes towards the line, at most the `whole` way, or coasts at most so far."""
    cdef double low = coast if coast < 0.0 else 0.0
    cdef double high = coast if coast > 0.0 else 0.0
    low = whole if whole < low else low
    high = whole if whole > high else high
    return low if move < low else (high if move > high else move)


cdef inline void join_clear(Join* j) noexcept nogil:
    """Put the output on its line; what is known of the drive stays."""
    cdef int i
    for i in range(AXES):
        j.offset[i] = j.velocity[i] = 0.0
    j.largest = 0.0


cdef inline void join_grow(Join* j, int n) noexcept nogil:
    """Take note of a new offset; one that is not a number is none."""
    cdef double offset = size_of(j.offset, n)
    if not isfinite(offset + size_of(j.velocity, n)):
        join_clear(j)
    elif offset > j.largest:
        j.largest = offset


cdef inline double join_pace(const Join* j, int n, const JoinTick* tick) noexcept nogil:
    """Return the pace at which the offset closes as fast as it does already, within the bounds [1/s]."""
    cdef double offset = size_of(j.offset, n)
    cdef double velocity = size_of(j.velocity, n)
    if velocity <= tick.pace * offset:
        return tick.pace
    if velocity < tick.quickest * offset:
        return velocity / offset
    return tick.quickest if tick.quickest > tick.pace else tick.pace


cdef inline bint join_step(Join* j, int n, const double* gap, double step, const JoinTick* tick) noexcept nogil:
    """Move an output of `n` axes for one tick; say whether it is still apart.

    `gap` is what the offset would be if the output stayed where it is; a `step` of the line itself is allowed.
    """
    cdef double pace = join_pace(j, n, tick)
    cdef double damped = exp(-pace * tick.dt)
    cdef double most = tick.dt * (CATCH_UP * j.fastest + tick.gentle * j.largest)
    cdef double free[AXES]
    cdef double move[AXES]
    cdef double moved, drop, near
    cdef double share = 1.0
    cdef double coast = tick.dt * exp(-tick.quickest * tick.dt)
    cdef int i
    most = step if step > most else most
    for i in range(n):
        free[i] = (j.offset[i] + (j.velocity[i] + pace * j.offset[i]) * tick.dt) * damped
        move[i] = towards(free[i] - gap[i], -gap[i], coast * j.speed[i])
    moved = size_of(move, n)
    if moved > most:
        share = most / moved
    for i in range(n):
        near = gap[i] + share * move[i]
        if share == 1.0 and move[i] == free[i] - gap[i]:
            drop = (j.velocity[i] + pace * j.offset[i]) * tick.dt
            j.velocity[i] = (j.velocity[i] - pace * drop) * damped
        else:
            j.velocity[i] = 0.0 if tick.stairs else (near - j.offset[i]) / tick.dt
        j.offset[i] = near
        j.speed[i] = share * move[i] / tick.dt
    moved = size_of(j.offset, n)
    if moved > 1e-3 * most + NEGLIGIBLE and isfinite(moved):
        return True
    join_clear(j)
    return False
