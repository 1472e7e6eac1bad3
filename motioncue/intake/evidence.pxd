"""Does what a source claims agree with what it shows?

A source claims an acceleration and shows a velocity, claims angular rates and shows an attitude.  `Sums` adds both up
over about the last second, older frames counting less: in agreement the two sums are equal, apart from noise, a wrong
scale or tilt, and the difference in time between the two.  The sums are vectors with signs, so frames that come early
or late cancel out.  `Step` judges a single frame: a claim that jumps is followed when the change of what is shown has
jumped too.
"""

from libc.math cimport sqrt
from libc.string cimport memset


ctypedef struct Sums:
    double shown[3]             # change of velocity [m/s], or turning of the attitude [rad]
    double claimed[3]           # integral of the acceleration [m/s], or of the rates [rad]
    double doubt[3]             # the same over time of which nobody knows whether it has passed
    double coarse               # what the integral may have missed between frames
    double peak                 # largest acceleration [m/s^2] or rate [rad/s]


ctypedef struct Step:           # of the acceleration [m/s^2], or of the rates [rad/s]
    double limit                # a larger step from one frame to the next needs evidence
    double followed[3]          # the newest value that was followed
    double newest[3]
    bint held                   # the newest value is not followed
    double waited               # how long that has lasted [s]
    double value                # the largest step that was not followed


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
    """Add `dt` seconds, of which `doubt` more or less may have passed: how what is shown has changed, and the claims."""
    cdef double kept = 1.0 / (1.0 + dt)         # a time constant of one second
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
    """Return how far the sums may be apart: `noise`, in their unit, and what honest sources differ by.

    35 % of the larger sum, for a wrong scale or tilt; 40 ms of the peak, for a filter's delay; the time in doubt; and half
    of what the claim changes between frames, which bounds the error of the trapezoidal rule where it rises or falls.
    """
    cdef double shown = length(s.shown)
    cdef double claimed = length(s.claimed)
    return noise + 0.35 * (shown if shown > claimed else claimed) + 0.04 * s.peak + length(s.doubt) + s.coarse


cdef inline void step_restart(Step* s, const double* now) noexcept nogil:
    """Follow `now`, whatever came before."""
    cdef int i
    for i in range(3):
        s.followed[i] = s.newest[i] = now[i]
    s.held = False
    s.waited = 0.0
    s.value = 0.0


cdef inline bint step_take(Step* s, const double* now, const double* change, double dt, bint evident) noexcept nogil:
    """Decide whether `now` is followed; return whether a claim that was held back has been withdrawn: a spike.

    A larger step than the limit is followed if `change`, of what is shown, has at least a quarter of what the step makes
    in `dt` seconds: a step in the middle between two frames makes half.  Where nothing independent is shown (not
    `evident`), it is followed when the next frame repeats it.  `value` is then the largest step that was held back.
    """
    cdef double step[3]
    cdef double size
    cdef double shown = 0.0
    cdef bint repeated = s.held and distance(now, s.newest) <= s.limit
    cdef bint withdrawn = s.held
    cdef int i
    for i in range(3):
        step[i] = now[i] - s.followed[i]
        s.newest[i] = now[i]
    size = length(step)
    if size > s.limit:
        withdrawn = False
        for i in range(3):
            shown += (change[i] - s.followed[i] * dt) * step[i]
        if not (shown >= 0.25 * size * size * dt if evident else repeated):
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
