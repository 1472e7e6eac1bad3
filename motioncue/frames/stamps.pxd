"""The simulator's time of a frame, told by a stamp that may be coarse.

A stamp in whole milliseconds, or a number of 4 bytes that has counted for a day, is only a multiple of its resolution:
frames that are 16.7 ms apart seem to be now 15.6 and now 23.4 ms apart, and a slope over such an interval is wrong by
half.  What a stamp does say is that the frame was taken between it and the next multiple.  Within that, frames are as
evenly spaced as they can be: each a whole number of mean intervals after the one before.

A clock that has become coarser than that, because it has counted for hours in a number of 4 bytes, says less about when
a frame was taken than its arrival does: then the duration is unknown, as that of a source without stamps.

Whole numbers of a larger unit than 1.9 ms are counts of frames or steps, and exact: no clock is that coarse by design.
"""

from libc.math cimport NAN, ceil, fabs


cdef enum:
    FRAMES = 16             # number of frames of the mean interval

cdef extern from *:
    """
    #define MC_STAMPS_NEGLIGIBLE 1e-3   /* resolution, relative to the interval, that makes no difference */
    #define MC_STAMPS_CLOCK_S 0.0019    /* [s] coarsest resolution of a clock that tells when a frame was taken */
    """
    const double NEGLIGIBLE "MC_STAMPS_NEGLIGIBLE"
    const double CLOCK_S "MC_STAMPS_CLOCK_S"


ctypedef struct Stamps:
    double unit                 # of stamps that are whole numbers [s]; 0 if they are not
    double rounding             # resolution of stamps that are not, relative to their value; 0 if they are exact
    double stamp                # of the newest accepted frame [s]
    double time                 # when that frame was taken [s]: no earlier than its stamp
    double sum                  # decaying sum of the intervals between frames [s]
    double frames               # decaying number of those
    bint vague                  # stamps are too coarse to tell the time between frames


cdef inline void stamps_restart(Stamps* s, double stamp) noexcept nogil:
    """Begin with a frame."""
    s.stamp = s.time = stamp
    s.sum = s.frames = 0.0
    s.vague = False


cdef inline double resolution(const Stamps* s, double stamp, double interval) noexcept nogil:
    """Return the resolution of a stamp [s], with frames an `interval` [s] apart; 0 if it is exact.

    That of a number of 4 bytes is the spacing of such numbers, or up to twice as much.
    """
    cdef double coarse = s.rounding * fabs(stamp)
    if s.unit > 0.0:
        return s.unit if s.unit <= CLOCK_S else 0.0
    return coarse if coarse > NEGLIGIBLE * interval else 0.0


cdef inline double stamps_take(Stamps* s, double stamp, double arrival) noexcept nogil:
    """Take the stamp [s] of a frame, no lower than the one before; return the time between the two frames [s].

    NaN if the stamp is too coarse to tell.  The frame arrived an `arrival` [s] after the one before.
    """
    cdef double interval = s.sum / s.frames if s.frames > 0.0 else 0.0
    cdef double coarse = resolution(s, stamp, interval)
    cdef double time = stamp
    cdef double n = 1.0
    cdef double passed
    s.vague = coarse > CLOCK_S
    if s.vague:
        s.stamp = s.time = stamp
        return NAN
    if coarse > 0.0 and interval > 0.0:
        n = ceil((stamp - coarse - s.time) / interval - 0.1)    # the fewest frames that the stamps allow
        time = s.time + (n if n > 1.0 else 1.0) * interval
        if not stamp - coarse <= time <= stamp + 2.0 * coarse:      # frames are not so far apart any more
            if time > stamp + 2.0 * coarse:
                s.sum = s.frames = 0.0
            time = s.time + arrival
        time = stamp if time < stamp else (stamp + coarse if time > stamp + coarse else time)
        # Of all the times that the stamps allow, the earliest, so that a lost frame is not mistaken for an uneven one.
        time -= (time - stamp) * (interval / coarse if interval < coarse else 1.0) / 64.0
    time = time if time > s.time else s.time
    passed = time - s.time
    if s.frames >= FRAMES:
        s.sum -= s.sum / FRAMES
        s.frames -= 1.0
    s.sum += passed
    s.frames += 1.0
    s.stamp = stamp
    s.time = time
    return passed
