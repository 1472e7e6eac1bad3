"""The weight that takes the platform to neutral and back: 0 is neutral, 1 is the whole cue."""


ctypedef struct Fade:
    double position     # along the fade, 0 to 1
    double velocity     # of the position [1/tick]
    double turn         # change of the velocity in a tick [1/tick^2]
    double pace         # velocity of an undisturbed fade [1/tick]


cdef inline double smooth(double x) noexcept nogil:
    """Return x^3 (10 - 15 x + 6 x^2): 0 to 1, first and second derivative zero at both ends."""
    cdef double y = 1.0 - x if x > 0.5 else x       # from the nearer end: rounding never goes beyond 1
    y = y * y * y * (10.0 + y * (6.0 * y - 15.0))
    return 1.0 - y if x > 0.5 else y


cdef inline double fade_step(Fade* f, bint up) noexcept nogil:
    """Move one tick up or down and return the weight.

    The weight is x^3 (10 - 15 x + 6 x^2) of the position x: its first and second derivative vanish at both ends,
    whatever the velocity there.  From an end the position moves at the pace at once; a fade that turns round half-way
    changes its velocity by a critically damped second-order lag (20 paces), so the weight stays smooth.
    """
    cdef double x = f.position
    cdef double goal = f.pace if up else -f.pace
    cdef double lag = 20.0 * f.pace if f.pace < 0.025 else 0.5      # a fade of few ticks turns more slowly
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
