"""Linear prediction of a channel from frame to frame, trusted as far as it has been right.

The next curve is a linear combination of the last three curves, the slope, and the channel's distance from its average,
by least squares over about the last 64 frames (J. Makhoul, Proc. IEEE 63, 1975: the covariance method, with
exponentially decaying weights).
"""

from libc.math cimport fabs, isfinite, sqrt
from libc.string cimport memset


cdef enum:
    SLOPE = 3               # index of the slope among the regressors, after as many curves, newest first
    OFF = 4                 # index of the distance from the average
    ORDER = 5               # number of regressors

cdef extern from *:
    """
    #define MC_KEEP (1.0 - 1.0 / 64.0)  /* share of the statistics kept from frame to frame */
    #define MC_DOUBT 1e-3  /* ridge, as a share of the moments; it favors a straight line */
    #define MC_ONE_MISS 0.25  /* largest squared error that counts, relative to all changes: a single frame says little */
    #define MC_FARTHEST 3.0  /* largest expected slope, relative to the larger of the last two: no sine needs more */
    """
    const double KEEP "MC_KEEP"
    const double DOUBT "MC_DOUBT"
    const double ONE_MISS "MC_ONE_MISS"
    const double FARTHEST "MC_FARTHEST"


ctypedef struct Predictor:      # for one channel, updated at each frame
    double x                # value of the newest frame
    double slope            # slope from the frame before to the newest one [1/s]
    double next             # expected slope from the newest frame to the next [1/s]
    double curve            # expected curvature until then [1/s^2]
    double dt               # interval of `slope` [s]
    double average          # average of about the last 64 frames
    double seen[ORDER]      # regressors [1/s^2]: curves; slope per frame; distance per frame squared
    double moments[ORDER][ORDER]    # decaying sums of their products
    double products[ORDER]  # decaying sums of their products with the curve that followed
    double sq_error         # decaying sum of the prediction's squared errors
    double carry            # part of the newest of those that counts for its own frame only
    double sq_change        # decaying sum of squared changes between frames: the errors of `hold`


cdef inline double skill_of(double sq_error, double sq_change) noexcept nogil:
    """Return the skill of a prediction: 1 less its squared error over that of hold; negative if it is worse."""
    return 1.0 - sq_error / sq_change if sq_change > 0.0 else 1.0


cdef inline double gain_of(double skill) noexcept nogil:
    """Return the fraction of a prediction to apply: 1 if it at least halves hold's squared error, 0 if it exceeds it by
    half, linear between."""
    return 1.0 if skill > 0.5 else (0.5 + skill if skill > -0.5 else 0.0)


cdef inline double within(double x, double bound) noexcept nogil:
    return bound if x > bound else (-bound if x < -bound else x)


cdef inline double dot(const double* w, const double* seen) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(ORDER):
        total += w[i] * seen[i]
    return total


cdef inline void predict_curves(const Predictor* f, double* curves) noexcept nogil:
    """Fill `curves` with the next two expected ones.

    The next curve is a linear combination of the regressors, by least squares over the past frames.  The normal
    equations are solved by Cholesky decomposition; a small ridge makes them regular and prefers zero.  The ridge is
    scaled by the channel's motion, not by its distance from the average.
    """
    cdef double l[ORDER][ORDER]
    cdef double w[ORDER]
    cdef double then[ORDER]
    cdef double ridge = 1e-30
    cdef double total
    cdef int i, j, k
    for i in range(OFF):
        ridge += DOUBT * f.moments[i][i]
    for i in range(ORDER):
        for j in range(i + 1):
            total = f.moments[i][j] + (ridge if i == j else 0.0)
            for k in range(j):
                total -= l[i][k] * l[j][k]
            l[i][j] = sqrt(total) if i == j else total / l[j][j]
        w[i] = f.products[i]
        for k in range(i):
            w[i] -= l[i][k] * w[k]
        w[i] /= l[i][i]
    for i in range(ORDER - 1, -1, -1):
        for k in range(i + 1, ORDER):
            w[i] -= l[k][i] * w[k]
        w[i] /= l[i][i]
    curves[0] = dot(w, f.seen)
    for i in range(1, SLOPE):
        then[i] = f.seen[i - 1]
    then[0] = curves[0]
    then[SLOPE] = f.seen[SLOPE] + curves[0]
    then[OFF] = f.seen[OFF] + then[SLOPE]
    curves[1] = dot(w, then)


cdef inline void update_predictor(Predictor* f, double x, double dt, double interval, bint known) noexcept nogil:
    """Take a frame, `dt` [s] after the last: update the statistics of the prediction, and predict again.

    The first frame, and the first after a gap, give only the channel's value, because the motion before is not `known`.
    `interval` is the nominal time between frames [s].
    """
    cdef double slope = (x - f.x) / dt
    cdef double missed = x - f.x - f.next * dt
    cdef double curve, moved, most
    cdef double curves[2]
    cdef int i, j
    curves[0] = curves[1] = 0.0
    if known:
        curve = (slope - f.slope) / (0.5 * (dt + f.dt))     # slopes are those at the middle between two frames
        moved = (x - f.x) * (x - f.x)
        f.sq_change = KEEP * f.sq_change + moved
        most = moved if moved > ONE_MISS * f.sq_change else ONE_MISS * f.sq_change
        missed *= missed
        f.sq_error = KEEP * (f.sq_error - f.carry) + missed
        f.carry = missed - most if missed > most else 0.0
        for i in range(ORDER):
            for j in range(i + 1):
                f.moments[i][j] = KEEP * f.moments[i][j] + f.seen[i] * f.seen[j]
            f.products[i] = KEEP * f.products[i] + f.seen[i] * curve
        for i in range(SLOPE - 1, 0, -1):
            f.seen[i] = f.seen[i - 1]
        f.seen[0] = curve
        f.seen[SLOPE] = slope / interval
        f.average = KEEP * f.average + (1.0 - KEEP) * x
        f.seen[OFF] = (x - f.average) / (interval * interval)
        predict_curves(f, curves)
    else:
        memset(f.seen, 0, sizeof(f.seen))
        f.average = x if f.sq_change == 0.0 else f.average
    if not isfinite(slope + curves[0] + curves[1] + f.sq_error + f.sq_change):    # absent, or too large to be squared
        memset(f, 0, sizeof(Predictor))
        f.average = x
        slope = curves[0] = curves[1] = 0.0
    most = FARTHEST * (fabs(slope) if fabs(slope) > fabs(f.slope) else fabs(f.slope))
    f.x = x
    f.dt = dt
    f.slope = slope
    f.next = within(slope + 0.5 * curves[0] * (dt + interval), most)
    f.curve = within(0.5 * (curves[0] + curves[1]) * interval, most) / interval
