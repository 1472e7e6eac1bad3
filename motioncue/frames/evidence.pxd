"""Comparison of a source's claims with what it shows.

A source claims an acceleration and shows a velocity, claims angular rates and shows an attitude.  `Sums` accumulates
both over about the last second, with decaying weights: the two sums agree, apart from noise, a wrong scale or tilt, and
the delay between the two.  The sums are vectors with signs, so frames that come early or late cancel out.  `Step`
judges a single frame: a claim that jumps is followed only if the change of what is shown supports it, and is a spike
only if the next change does not support it either.  A fast vibration can hide from one of the two, between the frames.
"""

from libc.math cimport fabs, sqrt
from libc.string cimport memset


ctypedef struct Sums:
    double shown[3]             # change of velocity [m/s], or turning of the attitude [rad]
    double claimed[3]           # integral of the acceleration [m/s], or of the rates [rad]
    double doubt[3]             # the claims' integral over time that may or may not have passed
    double coarse               # bound on the integral's error between frames
    double peak                 # largest acceleration [m/s^2] or rate [rad/s]


ctypedef struct Step:           # for the acceleration [m/s^2] or the rates [rad/s]
    double limit                # largest step between frames that needs no evidence
    double followed[3]          # the newest followed value
    double newest[3]
    bint held                   # the newest value is not followed
    bint unclear                # frames were lost right before it
    double waited               # for how long it has not been followed [s]
    double value                # the largest step held back


cdef inline double length3(double x, double y, double z) noexcept nogil:
    return sqrt(x * x + y * y + z * z)


cdef inline double length(const double* a) noexcept nogil:
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


cdef inline double distance(const double* a, const double* b) noexcept nogil:
    return length3(a[0] - b[0], a[1] - b[1], a[2] - b[2])


cdef inline void sums_restart(Sums* s) noexcept nogil:
    memset(s, 0, sizeof(Sums))


cdef inline void sums_add(
    Sums* s, const double* change, const double* before, const double* now, double dt, double doubt, double hidden
) noexcept nogil:
    """Add a change of what is shown, and the claims' integral over `dt` [s], give or take `doubt` [s].

    If frames were lost in between, nobody knows what these claimed: neither is added if claims of up to `hidden` more
    explain the change.  It is 0 if none was lost.
    """
    cdef double kept = 1.0 / (1.0 + dt)         # time constant 1 s
    cdef double size = length(now)
    cdef double[3] integral
    cdef bint tells
    cdef int i
    for i in range(3):
        integral[i] = 0.5 * (before[i] + now[i]) * dt       # trapezoidal rule
    tells = distance(change, integral) >= hidden * dt
    for i in range(3):
        s.shown[i] = kept * s.shown[i] + tells * change[i]
        s.claimed[i] = kept * s.claimed[i] + tells * integral[i]
        s.doubt[i] = kept * s.doubt[i] + 0.5 * (before[i] + now[i]) * doubt
    s.coarse = kept * s.coarse + tells * 0.5 * distance(now, before) * dt
    s.peak *= kept
    if s.peak < size:
        s.peak = size


cdef inline double sums_limit(const Sums* s, double noise) noexcept nogil:
    """Return the allowed difference of the sums: `noise`, in their unit, plus what honest sources may differ by.

    That is 35 % of the larger sum, for a wrong scale or tilt; 40 ms of the peak, for a filter's delay; the integral in
    doubt; and half of the claim's changes between frames, which bounds the error of the trapezoidal rule for a
    monotonic claim.
    """
    cdef double shown = length(s.shown)
    cdef double claimed = length(s.claimed)
    return noise + 0.35 * (shown if shown > claimed else claimed) + 0.04 * s.peak + length(s.doubt) + s.coarse


cdef inline void step_restart(Step* s, const double* now) noexcept nogil:
    """Follow `now` unconditionally."""
    cdef int i
    for i in range(3):
        s.followed[i] = s.newest[i] = now[i]
    s.held = False
    s.waited = 0.0
    s.value = 0.0


cdef inline bint shows(
    const double* change, const double* before, const double* now, double dt, double doubt
) noexcept nogil:
    """Say whether `change`, of what is shown in `dt` [s], give or take `doubt`, supports a step of the claim.

    It is at least a quarter of the step's integral: a step in the middle between two frames gives half.
    """
    cdef double shown = 0.0
    cdef double least = 0.0         # what must be shown in a second
    cdef double step
    cdef int i
    for i in range(3):
        step = now[i] - before[i]
        shown += change[i] * step
        least += (before[i] + 0.25 * step) * step
    return shown >= least * dt - fabs(least) * doubt


cdef inline bint step_take(
    Step* s, const double* now, const double* change, double dt, double doubt, bint whole, bint evident
) noexcept nogil:
    """Decide whether to follow `now`; return whether a claim that was held back has proved to be a spike.

    A step beyond the limit is followed if `change` supports it.  If nothing independent is shown (not `evident`), it is
    followed when the next frame repeats it.  A claim that is withdrawn is a spike if the change after it contradicts it
    too, and no frame is lost on either side (`whole`).  `value` is then the largest step held back.
    """
    cdef double size = distance(now, s.followed)
    cdef bint repeated = distance(now, s.newest) <= s.limit
    cdef bint withdrawn = s.held and size <= s.limit
    cdef bint clear = whole and not s.unclear
    cdef bint spike = withdrawn and clear and evident and not shows(change, now, s.newest, dt, doubt)
    cdef int i
    for i in range(3):
        s.newest[i] = now[i]
    if size > s.limit and not (shows(change, s.followed, now, dt, doubt) if evident else repeated):
        s.held = True
        s.unclear = not whole
        s.waited += dt
        s.value = s.value if s.value > size else size
        return False
    for i in range(3):
        s.followed[i] = now[i]
    s.held = False
    s.waited = 0.0
    if not spike:
        s.value = 0.0
    return spike
