"""Comparison of a source's claims with what it shows.

A source claims an acceleration and shows a velocity, claims angular rates and shows an attitude.  `Sums` accumulates
both over about the last second, with decaying weights: the two sums agree, apart from noise, a wrong scale or tilt, and
the delay between the two.  The sums are vectors with signs, so frames that come early or late cancel out.  `Step`
judges a single frame: a claim that jumps is followed only if the change of what is shown has jumped too.
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
    Sums* s, const double* change, const double* before, const double* now, double dt, double doubt
) noexcept nogil:
    """Add a change of what is shown, and the claims' integral over `dt` [s], give or take `doubt` [s]."""
    cdef double kept = 1.0 / (1.0 + dt)         # time constant 1 s
    cdef double size = length(now)
    cdef double mean
    cdef int i
    for i in range(3):
        mean = 0.5 * (before[i] + now[i])       # trapezoidal rule
        s.shown[i] = kept * s.shown[i] + change[i]
        s.claimed[i] = kept * s.claimed[i] + mean * dt
        s.doubt[i] = kept * s.doubt[i] + mean * doubt
    s.coarse = kept * s.coarse + 0.5 * distance(now, before) * dt
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


cdef inline bint step_take(
    Step* s, const double* now, const double* change, double dt, double doubt, bint evident
) noexcept nogil:
    """Decide whether to follow `now`; return whether a claim that was held back has been withdrawn, which is a spike.

    A step beyond the limit is followed if `change`, of what is shown, is at least a quarter of the step's integral over
    `dt` seconds, give or take `doubt`: a step in the middle between two frames gives half.  If nothing independent is
    shown (not `evident`), it is followed when the next frame repeats it.  `value` is then the largest step held back.
    """
    cdef double step[3]
    cdef double size
    cdef double shown = 0.0
    cdef double least = 0.0         # what must be shown in a second
    cdef bint repeated = distance(now, s.newest) <= s.limit
    cdef bint withdrawn = s.held
    cdef int i
    for i in range(3):
        step[i] = now[i] - s.followed[i]
        s.newest[i] = now[i]
    size = length(step)
    if size > s.limit:
        withdrawn = False
        for i in range(3):
            shown += change[i] * step[i]
            least += (s.followed[i] + 0.25 * step[i]) * step[i]
        if not (shown >= least * dt - fabs(least) * doubt if evident else repeated):
            s.held = True
            s.waited += dt
            s.value = s.value if s.value > size else size
            return False
    for i in range(3):
        s.followed[i] = now[i]
    s.held = False
    s.waited = 0.0
    if not withdrawn:
        s.value = 0.0
    return withdrawn
