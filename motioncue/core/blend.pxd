"""The weight that fades the cue in and out (0 is neutral, 1 the whole cue), and differences that vanish smoothly."""


from libc.math cimport fabs


ctypedef struct Fade:
    double position     # progress of the fade, 0 to 1
    double velocity     # rate of the position [1/tick]
    double turn         # newest change of the velocity [1/tick^2]
    double pace         # velocity of an undisturbed fade [1/tick]


cdef inline double smooth(double x) noexcept nogil:
    """Return x^3 (10 - 15 x + 6 x^2): 0 to 1, first and second derivative zero at both ends."""
    cdef double y = 1.0 - x if x > 0.5 else x       # computed from the nearer end, so that rounding never exceeds 1
    y = y * y * y * (10.0 + y * (6.0 * y - 15.0))
    return 1.0 - y if x > 0.5 else y


cdef inline double fade_step(Fade* f, bint up) noexcept nogil:
    """Move one tick up or down and return the weight.

    The weight is x^3 (10 - 15 x + 6 x^2) of the position x: its first and second derivatives vanish at both ends,
    whatever the velocity there.  From an end, the position moves at the pace at once.  A fade that reverses half-way
    changes its velocity through a critically damped second-order lag (20 paces), so the weight stays smooth.
    """
    cdef double x = f.position
    cdef double goal = f.pace if up else -f.pace
    cdef double lag = 20.0 * f.pace if f.pace < 0.025 else 0.5      # a fade of only a few ticks reverses more slowly
    if (x <= 0.0 and up) or (x >= 1.0 and not up):
        f.velocity = goal
        f.turn = 0.0
    elif f.velocity != goal:
        f.turn += (lag * (goal - f.velocity) - 2.0 * f.turn) * lag
        f.velocity += f.turn
    x += f.velocity
    if x <= 0.0 or x >= 1.0:
        x = 0.0 if x <= 0.0 else 1.0
        f.velocity = f.turn = 0.0
    f.position = x
    return smooth(x)


ctypedef struct Vanishing:      # polynomial of the position (0 to 1) by which a difference goes to zero
    double terms[6]


cdef inline Vanishing vanishing(double value, double slope, double bend) noexcept nogil:
    """Return the quintic with this value, slope and bend (second derivative) at 0, all three of which are zero at 1.

    From rest it is value (1 - `smooth`).  If it is restarted from its own value, slope and bend at every tick, it still
    vanishes: its end moves on, but the poles of that recursion, the roots of s^3 + 9 s^2 + 36 s + 60, are stable.
    """
    cdef Vanishing v
    v.terms[0] = value
    v.terms[1] = slope
    v.terms[2] = 0.5 * bend
    v.terms[3] = -10.0 * value - 6.0 * slope - 1.5 * bend
    v.terms[4] = 15.0 * value + 8.0 * slope + 1.5 * bend
    v.terms[5] = -6.0 * value - 3.0 * slope - 0.5 * bend
    return v


cdef inline double left_at(const Vanishing* v, double s) noexcept nogil:
    """Return the remaining difference at position `s`."""
    return v.terms[0] + s * (
        v.terms[1] + s * (v.terms[2] + s * (v.terms[3] + s * (v.terms[4] + s * v.terms[5])))
    )


cdef inline double slope_at(const Vanishing* v, double s) noexcept nogil:
    """Return the first derivative at position `s`."""
    return v.terms[1] + s * (
        2.0 * v.terms[2] + s * (3.0 * v.terms[3] + s * (4.0 * v.terms[4] + s * 5.0 * v.terms[5]))
    )


cdef inline double bend_at(const Vanishing* v, double s) noexcept nogil:
    """Return the second derivative at position `s`."""
    return 2.0 * v.terms[2] + s * (6.0 * v.terms[3] + s * (12.0 * v.terms[4] + s * 20.0 * v.terms[5]))


ctypedef struct Blend:          # a difference that vanishes while time passes
    Vanishing difference
    double position         # 0 to 1, and on
    double pace             # [1/tick]


cdef inline Blend blend_from(double value, double rate, double bend, double pace) noexcept nogil:
    """Return the blend of a difference with this value, rate [1/tick] and change of the rate [1/tick^2]."""
    cdef Blend b
    b.difference = vanishing(value, rate / pace, bend / (pace * pace))
    b.position, b.pace = 0.0, pace
    return b


cdef inline double blend_step(Blend* b) noexcept nogil:
    """Move one tick and return the difference that is left."""
    b.position += b.pace
    return left_at(&b.difference, b.position) if b.position < 1.0 else 0.0


cdef inline double blend_rate(const Blend* b) noexcept nogil:
    """Return the rate of the difference [1/tick]."""
    return slope_at(&b.difference, b.position) * b.pace if b.position < 1.0 else 0.0


cdef inline double blend_bend(const Blend* b) noexcept nogil:
    """Return the change of that rate [1/tick^2]."""
    return bend_at(&b.difference, b.position) * b.pace * b.pace if b.position < 1.0 else 0.0


cdef inline double heading(double newest, double before) noexcept nogil:
    """Return the slope that two successive differences agree on: the smaller one, or 0 if their signs differ.

    A staircase, which moves only at some ticks, gives 0.
    """
    if newest * before <= 0.0:
        return 0.0
    return newest if fabs(newest) < fabs(before) else before
