"""Bounds on place, speed and acceleration of a channel that are kept for ever, whatever acceleration is wanted."""

from libc.math cimport INFINITY, fabs, sqrt

from motioncue.safety.limiter cimport stop_above


cdef enum:
    HALVINGS = 40


ctypedef struct Guard:              # bounds of a channel that are kept whatever the plan; infinite if none
    double low                  # [m, rad]
    double high
    double speed
    double acceleration


cdef inline double within(double value, double largest) noexcept nogil:
    """Return a value no larger than `largest` in magnitude; 0 for one that is not a number."""
    return value if fabs(value) <= largest else (largest if value > 0.0 else (-largest if value < 0.0 else 0.0))


cdef inline double reached(const Guard* g, double h, double place, double speed, double now, double target) noexcept nogil:
    """Return the highest place on the way to rest, braking fully after a step of `h` seconds towards `target`."""
    cdef double first = place + h * speed + h * h * (2.0 * now + target) / 6.0
    cdef double slower = speed + 0.5 * h * (now + target)
    cdef double second = first + h * slower + h * h * (2.0 * target - g.acceleration) / 6.0
    slower += 0.5 * h * (target - g.acceleration)
    if slower > 0.0:
        second += slower * slower / (2.0 * g.acceleration)
    return first if first > second else second


cdef inline double below(const Guard* g, double high, double h, double place, double speed, double now,
                  double target) noexcept nogil:
    """Return the acceleration nearest to `target` from which the channel still stops below `high`.

    Full braking always does if it did at the step before: the bound is kept for ever.
    """
    cdef double fastest = (g.speed - speed) / h - 0.5 * now     # from which acceleration can vanish in time
    cdef double low = -g.acceleration
    cdef double middle
    cdef int i
    target = fastest if target > fastest else target
    target = low if target < low else target
    if reached(g, h, place, speed, now, target) <= high:
        return target
    for i in range(HALVINGS):
        middle = 0.5 * (low + target)
        if reached(g, h, place, speed, now, middle) <= high:
            low = middle
        else:
            target = middle
    return low


cdef inline double fastest(double limit, double jerk, double h, double speed, double now) noexcept nogil:
    """Return the highest acceleration after a step of `h` seconds from which it can vanish with `jerk` within a speed.

    It is a root of speed + h (now + a) / 2 + a^2 / (2 jerk) = limit; below 0, that of a change with `jerk`, at once.
    """
    cdef double room = limit - speed - 0.5 * h * now
    cdef double half = 0.5 * h * jerk
    return sqrt(half * half + 2.0 * jerk * room) - half if room > 0.0 else now - jerk * h


cdef inline double slowed(const Guard* g, double jerk, double h, double speed, double now, double target) noexcept nogil:
    """Return the acceleration nearest to `target` that a channel need not give up abruptly at its largest speed."""
    cdef double high, low
    if g.speed == INFINITY:
        return target
    high = fastest(g.speed, jerk, h, speed, now)
    low = -fastest(g.speed, jerk, h, -speed, -now)
    high = now - jerk * h if high < now - jerk * h else high
    low = now + jerk * h if low > now + jerk * h else low
    return low if target < low else (high if target > high else target)


cdef inline bint stops(const Guard* g, double jerk, double place, double speed, double now) noexcept nogil:
    """Say whether a channel stops within its places by a change of acceleration of `jerk`."""
    return g.acceleration == INFINITY or (
        stop_above(place, speed, now, g.acceleration, jerk) <= g.high
        and stop_above(-place, -speed, -now, g.acceleration, jerk) <= -g.low
    )


cdef inline double guarded(const Guard* g, double h, double place, double speed, double now, double target) noexcept nogil:
    """Return the acceleration nearest to `target` with which place and speed keep their bounds from now on."""
    if g.acceleration == INFINITY:
        return target
    target = below(g, g.high, h, place, speed, now, target)
    return -below(g, -g.low, h, -place, -speed, -now, -target)
