"""What a channel does from one frame to the next: expected by linear prediction, and trusted as far as it came true.

The next curve is a linear combination of the last three, of the slope, and of how far the channel is off its average,
by least squares over about the last 64 frames (J. Makhoul, Proc. IEEE 63, 1975: the covariance method, with older
frames counting less).
"""

cdef enum:
    SLOPE = 3               # place of the slope among what is seen, after as many curves, newest first
    OFF = 4                 # place of how far a channel is off its average
    ORDER = 5               # how much that is

cdef extern from *:
    """
    #define MC_KEEP (1.0 - 1.0 / 64.0)  /* of what was learned, from a frame to the next */
    """
    const double KEEP "MC_KEEP"


ctypedef struct Forecast:       # of one channel, from frame to frame
    double x                # of the newest frame
    double slope            # [1/s] from the frame before it to it
    double next             # [1/s] expected from it to the next
    double curve            # [1/s^2] expected in between
    double dt               # [s] that `slope` is over
    double average          # of about the last 64 frames
    double seen[ORDER]      # [1/s^2] that a curve is expected from; slope per frame, and distance per frame squared
    double moments[ORDER][ORDER]    # of such with each other, older ones counting less
    double products[ORDER]  # and with the curve that followed
    double missed           # squares of what came out other than expected
    double moved            # squares of the changes from frame to frame


cdef void learn(Forecast* f, double x, double dt, double interval, bint known) noexcept nogil


cdef inline double trust(double missed, double moved) noexcept nogil:
    """Return the share of what `hold` misses, in squares, that an expectation saves; less than 0 if it misses more."""
    return 1.0 - missed / moved if moved > 0.0 else 1.0


cdef inline double followed(double trusted) noexcept nogil:
    """Return how far: all the way if it halves the squares, not at all if it adds half as much."""
    return 1.0 if trusted > 0.5 else (0.5 + trusted if trusted > -0.5 else 0.0)


cdef inline double within(double x, double bound) noexcept nogil:
    return bound if x > bound else (-bound if x < -bound else x)
