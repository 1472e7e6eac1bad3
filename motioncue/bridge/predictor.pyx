"""Linear prediction of a channel, learned from its frames."""

from libc.math cimport fabs, isfinite, sqrt
from libc.string cimport memset

__all__: list[str] = []

cdef double DOUBT = 1e-3                # ridge, as a share of the moments; it favors a straight line
cdef double ONE_MISS = 0.25  # largest squared error that counts, relative to all changes: a single frame says little
cdef double FARTHEST = 3.0  # largest expected slope, relative to the larger of the last two: no sine needs more


cdef double dot(const double* w, const double* seen) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(ORDER):
        total += w[i] * seen[i]
    return total


cdef void predict_curves(const Predictor* f, double* curves) noexcept nogil:
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


cdef void update_predictor(Predictor* f, double x, double dt, double interval, bint known) noexcept nogil:
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
