"""Linear prediction of a channel from frame to frame, trusted as far as it has been right.

The next curve is a linear combination of the last three curves, the slope, and the channel's distance from its average,
by least squares over about the last 64 frames (J. Makhoul, Proc. IEEE 63, 1975: the covariance method, with
exponentially decaying weights).
"""

cdef enum:
    SLOPE = 3               # index of the slope among the regressors, after as many curves, newest first
    OFF = 4                 # index of the distance from the average
    ORDER = 5               # number of regressors

cdef extern from *:
    """
    #define MC_KEEP (1.0 - 1.0 / 64.0)  /* share of the statistics kept from frame to frame */
    """
    const double KEEP "MC_KEEP"


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


cdef void update_predictor(Predictor* f, double x, double dt, double interval, bint known) noexcept nogil


cdef inline double skill_of(double sq_error, double sq_change) noexcept nogil:
    """Return the skill of a prediction: 1 less its squared error over that of hold; negative if it is worse."""
    return 1.0 - sq_error / sq_change if sq_change > 0.0 else 1.0


cdef inline double gain_of(double skill) noexcept nogil:
    """Return the fraction of a prediction to apply: 1 if it at least halves hold's squared error, 0 if it exceeds it by
    half, linear between."""
    return 1.0 if skill > 0.5 else (0.5 + skill if skill > -0.5 else 0.0)


cdef inline double within(double x, double bound) noexcept nogil:
    return bound if x > bound else (-bound if x < -bound else x)
