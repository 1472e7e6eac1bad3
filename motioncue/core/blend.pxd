"""The weight that fades the cue in and out (0 is neutral, 1 the whole cue), and differences that vanish smoothly."""


from libc.math cimport fabs, sqrt


cdef inline double smooth(double x) noexcept nogil:
    """Return x^3 (10 - 15 x + 6 x^2): 0 to 1, first and second derivative zero at both ends."""
    cdef double y = 1.0 - x if x > 0.5 else x       # computed from the nearer end, so that rounding never exceeds 1
    y = y * y * y * (10.0 + y * (6.0 * y - 15.0))
    return 1.0 - y if x > 0.5 else y


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


ctypedef struct Fade:
    double weight       # 0 to 1
    double goal         # of the way that it is on, or was on last: 0 or 1
    double position     # on that way, and at rest at its goal: from 0 to 1 or back
    double step         # by which it moves [1/tick]
    bint turned         # the way began in the middle of another
    Vanishing left      # what the weight lacks of the goal
    double paced        # the pace for which that was designed
    double pace         # of a fade from end to end [1/tick]
    double least        # ticks that a fade takes at least from where the cue is now


cdef inline void fade_rests(Fade* f, double weight) noexcept nogil:
    """Let the weight rest at an end, 0 or 1."""
    f.weight = f.goal = f.position = weight


cdef inline double passed(const Fade* f) noexcept nogil:
    """Return the share of its way that is behind it."""
    return f.position if f.goal == 1.0 else 1.0 - f.position


cdef inline bint stays_within(const Vanishing* left, double goal) noexcept nogil:
    """Say whether a weight that lacks this of its goal is below 0 or above 1 at none of 31 points of its way."""
    cdef int i
    for i in range(1, 32):
        if not 0.0 <= goal - left_at(left, i / 32.0) <= 1.0:
            return False
    return True


cdef inline void fade_turn(Fade* f, double goal) noexcept nogil:
    """Begin the way to an end: from the other one, or from the weight, rate and bend that it has in the middle of one."""
    cdef double rate = slope_at(&f.left, passed(f)) * f.step
    cdef double bend = bend_at(&f.left, passed(f)) * f.step * f.step
    cdef double apart = fabs(goal - f.weight)
    if apart == 0.0:        # near its end a weight rounds to the end
        fade_rests(f, goal)
        return
    f.turned = f.position != f.goal
    f.goal, f.position, f.paced = goal, 1.0 - goal, f.pace
    f.step = f.pace / max(1.0, f.pace * f.least)
    if f.turned:            # less time for little: what has hardly begun ends soon
        f.step /= 1.19 * sqrt(sqrt(sqrt(min(1.0, 2.2 * apart))))
    f.left = vanishing(goal - f.weight, rate / f.step, bend / (f.step * f.step))
    # And less where it would go beyond an end, after several turns one upon another.
    while f.turned and f.step < 1.0 and not stays_within(&f.left, goal):
        f.step /= 0.85      # by more than that it would be more haste than is needed, which bends
        f.left = vanishing(goal - f.weight, rate / f.step, bend / (f.step * f.step))


cdef inline double fade_step(Fade* f, bint up) noexcept nogil:
    """Move one tick up or down and return the weight.

    From end to end the weight is x^3 (10 - 15 x + 6 x^2) of the position x: its first and second derivatives vanish at
    both ends.  A fade that turns half-way, or is to take another time, goes on along a quintic with the weight, rate and
    bend of that moment, and arrives within 1.2 fades.  So the weight never bends by more than half as much again as in
    a fade that does not turn: on a metre of travel a sharp bend would be a blow.
    """
    cdef double goal = 1.0 if up else 0.0
    if goal != f.goal or (f.position != goal and f.pace != f.paced):
        fade_turn(f, goal)
    if f.position == goal:
        return f.weight
    f.position += f.step if up else -f.step
    if f.position >= 1.0 if up else f.position <= 0.0:
        fade_rests(f, goal)
    elif f.turned:
        f.weight = goal - left_at(&f.left, passed(f))
        f.weight = min(1.0, max(0.0, f.weight))     # between the points that were looked at: by up to 1e-4 beyond
    else:
        f.weight = smooth(f.position)
    return f.weight


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
