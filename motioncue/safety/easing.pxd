"""Bounds of a limiter that change while it runs: when the new ones hold alone, and how the output gets there."""

from motioncue.core.blend cimport bend_at, heading, slope_at, vanishing
from motioncue.safety.limiter cimport Bounds, Easing, Limit, LimiterState, Margin, viable_above


cdef inline bint viable(const Limit* l, const LimiterState* s) noexcept nogil:
    """Say whether the state is within the bounds, and can be braked within them on both sides."""
    cdef const Bounds* b = &l.plan
    if not (-b.value <= s.x <= b.value and -b.acceleration <= s.a <= b.acceleration):
        return False
    return viable_above(b, s.x, s.v, s.a) and viable_above(b, -s.x, -s.v, -s.a)


cdef inline bint same_state(const LimiterState* p, const LimiterState* q) noexcept nogil:
    return p.x == q.x and p.v == q.v and p.a == q.a


cdef inline void set_margin(Limit* l) noexcept nogil:
    """Compute what `clearly_viable` uses."""
    cdef const Bounds* p = &l.plan
    if p.stops_at_once:
        l.margin = Margin(p.value, p.rate, p.acceleration, l.hard.jerk, 0.0, 0.0, 0.0)
        return
    l.margin = Margin(
        p.value, p.rate, p.acceleration, l.hard.jerk, 0.5 / p.jerk, 0.5 / p.acceleration, 0.5 * p.acceleration / p.jerk
    )


cdef inline Bounds wider(const Bounds* a, const Bounds* b) noexcept nogil:
    """Return the wider bound of each kind.

    A state that can be braked within `a` or `b` can be braked within the result, unless that one needs more than a tick
    to stop where this one does not.
    """
    return Bounds(
        max(a.value, b.value),
        max(a.rate, b.rate),
        max(a.acceleration, b.acceleration),
        max(a.jerk, b.jerk),
        a.stops_at_once and b.stops_at_once,
    )


cdef inline void widen(Easing* e) noexcept nogil:
    """Let the second limiter have the wider bounds, once its state can be braked within them."""
    cdef Limit wide = e.wide
    wide.hard, wide.plan = e.hard, e.plan
    e.waits = not viable(&wide, &wide.state)
    if not e.waits:
        set_margin(&wide)
        e.wide = wide


cdef inline void keep_within(Limit* l) noexcept nogil:
    """Change the state no more than its bounds require: the value first, then the rate to what can be braked."""
    cdef LimiterState* s = &l.state
    cdef int i
    s.x = max(-l.plan.value, min(l.plan.value, s.x))
    for i in range(8):
        if viable(l, s):
            return
        s.v *= 0.5
        s.a = 0.0
    s.v = 0.0


cdef inline bint ease(Limit* l, Easing* e, const Limit* before, const Easing* was, bint another, double pace) noexcept nogil:
    """Continue with the bounds of `l` from the state of `before`; return whether that takes an easing.

    The second limiter starts at what is sent.  The first one starts there too: now, or at the next input if the value
    was being limited or `another` quantity is limited from now on (a roll instead of its lean, or the reverse).
    """
    cdef bint again = was.on
    cdef double scale = was.pace / pace if again else 0.0
    cdef double slope = 0.0
    cdef double bend = 0.0
    e.wide = was.wide if again else before[0]
    l.state = before.state
    e.fresh = another or l.state.limiting
    if not again and not e.fresh and viable(l, &l.state):
        e.on = False
        return False
    if again and was.position < 1.0:        # the difference keeps its slope and bend
        slope = slope_at(&was.difference, was.position) * scale
        bend = bend_at(&was.difference, was.position) * scale * scale
        slope += l.state.v / pace
    elif not again:
        slope = heading(l.state.v, l.state.v - l.state.a) / pace
    if not e.fresh:
        keep_within(l)
        slope -= l.state.v / pace
    e.hard = wider(&was.hard if again else &before.hard, &l.hard)
    e.plan = wider(&was.plan if again else &before.plan, &l.plan)
    widen(e)
    e.difference = vanishing(e.wide.state.x - l.state.x, slope, bend)
    e.position = 0.0
    e.pace = pace
    e.on = True
    return True
