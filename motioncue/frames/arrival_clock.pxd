"""When a frame was taken, as its arrival and the simulator's stamps tell: three estimates for three questions."""

from libc.math cimport NAN, ceil, fabs
from libc.stdint cimport int64_t

from motioncue.core.records cimport Placement


# Timeline.  The time at which each frame was taken, on the local clock, estimated when the frame arrives.
#
# A frame can only arrive late, so the earliest arrivals show the offset of the local clock from the simulator's
# time, and later frames are placed by the simulator's time plus that offset.  The earliest of a few frames is not
# that of the next few, so the place follows the offset slowly: at once, frames that come often would shake the car.
#
# A source whose times are only those of arrival has no time of its own: its frames count as taken when they arrived,
# except that frames closer together than the nominal interval are placed one interval apart, because they had been
# waiting for each other.  How far apart such frames are is told by the long run alone: by counting them from the end
# of one bunch to that of another one, however long bunches are.
#
# The interval between frames for computing slopes is the simulator's own, if it counts frames that never came; else the
# longer of that and the interval between arrivals, so that a slope is never larger than the drive's.


cdef enum:
    WINDOWS = 3


ctypedef struct Timeline:
    int frames              # frames since the restart, up to SEVERAL
    int64_t arrived         # arrival of the newest frame [ns]
    int64_t own             # simulator's time of the newest frame [ns]
    int64_t late            # its delay relative to the earliest arrivals [ns]
    int64_t lead            # by how much frames are still placed later than these arrivals tell [ns]
    int telling             # frames in a row whose time is the simulator's own, up to `SEVERAL`
    int64_t min_delay_ns    # smallest `late` in this block, among frames that came at their own pace [ns]
    int block               # number of those frames
    double told             # decaying sum of the simulator's intervals between frames [s]
    double arrival_s        # decaying sum of the intervals between arrivals [s]
    double paced_s          # the same, each longer than the simulator's by four nominal ones at most [s]
    int64_t backlog_ns      # time that frames have been missing and may still come in a burst [ns]
    int regular_frames      # successive frames that were one interval apart
    int irregular_frames    # successive frames much further apart than the interval; negative: much closer
    double nearest          # the interval among those that is nearest to the nominal one [s]
    double usual            # pace of the arrivals in the long run: the median of `paces`, as far as there are any [s]
    double paces[WINDOWS]   # mean intervals between arrivals in the newest windows, newest first [s]
    int windows             # number of those
    int64_t window          # arrival of the frame with which the present window began [ns]
    int counted             # frames since
    int settled             # frames since the last one that did not continue the motion, up to SETTLED
    int64_t joined          # arrival of that one [ns]
    Placement place         # placement of the newest frame


cdef void timeline_restart(Timeline* t) noexcept nogil
cdef void timeline_frame(Timeline* t, int64_t now, double frame_time, bint clocked) noexcept nogil


# Arrival.  The longest time that can have passed in the simulator between two frames, judged by when they arrived.
#
# A frame that is delayed on its way arrives late.  So between two frames the simulator's time advances by the gap
# between their arrivals, plus the delay of the first, less the delay of the second: at most by the gap plus the
# first one's delay.  That delay is estimated by an account that grows by each gap, shrinks by the time that each
# frame stands for, never goes below zero, and leaks, because a constant delay is common to all frames and does not
# matter.  Silence shows no constant delay, so a long gap leaks no more than a usual one.  Any frame may have had the
# largest delay of about the last second.
#
# A simulator that reports elapsed time may run up to twice as fast as the clock; gaps are then scaled by that
# factor.


ctypedef struct Arrival:
    double behind               # estimated delay of the newest frame [s]
    double late                 # largest delay of about the last second [s]
    double frames               # frames that arrived in about the last second
    double spent                # sum of the times that they stand for, as far as the account tells [s]
    double seconds              # sum of the gaps between them [s]
    double said                 # sum of the simulator's own times between them [s]
    double min_interval_s       # shortest of those of the last seconds [s]; 0 before the first


cdef inline void arrival_restart(Arrival* a, double tolerance) noexcept nogil:
    """Start an account; the largest delay is the tolerated one, since nothing is known yet."""
    a.late = tolerance
    a.behind = a.frames = a.spent = a.seconds = a.said = a.min_interval_s = 0.0


cdef inline double pace(const Arrival* a) noexcept nogil:
    """Return the speed of the simulator's time relative to the clock: from 1 to 2."""
    if a.said <= a.seconds:
        return 1.0
    return a.said / a.seconds if a.said < 2.0 * a.seconds else 2.0


cdef inline double longest(const Arrival* a, double gap) noexcept nogil:
    """Return the longest time that can have passed in the simulator [s] in a gap between arrivals [s]."""
    return gap * pace(a) + a.late


cdef inline double usual_interval(const Arrival* a, double gap) noexcept nogil:
    """Return the mean time between the frames of about the last second [s]; the present gap if there are none."""
    cdef double usual = a.spent / a.frames if a.frames > 0.0 else gap
    return usual if usual > 1e-3 else 1e-3      # from zero it could not grow


cdef inline bint no_frame_lost(const Arrival* a, double gap, double said) noexcept nogil:
    """Say whether a frame surely follows the one before: less than 1.2 usual intervals after it, 1.5 by arrivals.

    By the simulator's own time [s], which may run at another pace than the clock; by the gap between arrivals if NaN.
    """
    cdef double usual = usual_interval(a, gap)
    if said != said:
        return gap < 1.5 * usual
    return said * a.seconds < 1.2 * usual * a.said or not a.said > 0.0


cdef inline bint many_lost(const Arrival* a, double gap) noexcept nogil:
    """Say whether so many frames have been lost of late that no usual interval can be told.

    Then the mean of the simulator's own times is more than 1.4 times the shortest of them.
    """
    # Of frames T apart the mean is T / (1 - share lost).  From 2 / 1.2 = 1.67 T on, the frame after a lost one would pass
    # as the next (`no_frame_lost`); where a fifth is lost it is 1.25 T, and the others still tell.  Between, it is free.
    # The shortest grows by a fifth a second, so that a slower rate is no loss for longer than some seconds.
    return a.min_interval_s > 0.0 and usual_interval(a, gap) * a.said > 1.4 * a.min_interval_s * a.seconds


cdef inline double likely(const Arrival* a, double gap, double said) noexcept nogil:
    """Return the time that has passed [s]: what the simulator reports, up to the longest possible; its average if NaN.

    A frame that overtakes another comes earlier than any before it, by a usual interval beyond what the gap allows.
    """
    cdef double usual = usual_interval(a, gap)
    cdef double most = longest(a, gap)
    if said != said:
        return usual if usual < most else most
    return said if said < most + usual else most + usual


cdef inline void arrive(Arrival* a, double gap, double said) noexcept nogil:
    """Account for a frame `gap` [s] after the one before that reports that `said` [s] have passed, or NaN.

    The frame stands for the gap and what the account has lost: for a usual interval after a stall and within the bunch
    that follows.  After lost frames it stands for more, of which four usual intervals count.
    """
    cdef double usual = usual_interval(a, gap)
    cdef double kept = a.behind * 0.3 / (0.3 + (gap if gap < usual else usual))     # time constant 0.3 s
    cdef double passed = likely(a, gap, said)
    cdef double spent = gap + a.behind
    a.behind = kept + gap * pace(a) - passed
    if a.behind < 0.0:
        a.behind = 0.0
    spent -= a.behind
    a.late /= 1.0 + gap
    if a.late < a.behind:
        a.late = a.behind
    a.frames = a.frames / (1.0 + gap) + 1.0
    a.spent = a.spent / (1.0 + gap) + (spent if spent < 4.0 * usual else 4.0 * usual)
    a.seconds = a.seconds / (1.0 + gap) + (gap if gap < 1.0 else 1.0)
    a.said = a.said / (1.0 + gap) + (passed if said == said else 0.0)
    a.min_interval_s *= 1.0 + 0.2 * gap
    if said > 0.0 and not 0.0 < a.min_interval_s < said:
        a.min_interval_s = said


# Stamps.  The simulator's time of a frame, told by a stamp that may be coarse.
#
# A stamp in whole milliseconds, or a number of 4 bytes that has counted for a day, is only a multiple of its
# resolution: frames that are 16.7 ms apart seem to be now 15.6 and now 23.4 ms apart, and a slope over such an
# interval is wrong by half.  What a stamp does say is that the frame was taken between it and the next multiple. 
# Within that, frames are as evenly spaced as they can be: each a whole number of mean intervals after the one
# before.
#
# A clock that has become coarser than that, because it has counted for hours in a number of 4 bytes, says less about
# when a frame was taken than its arrival does: then the duration is unknown, as that of a source without stamps.
#
# Whole numbers of a larger unit than 1.9 ms are counts of frames or steps, and exact: no clock is that coarse by
# design.


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
        # Of all the times that the stamps allow, the earliest: where the rate changes, errors are up to half as large.  How
        # soon is free from 1/256 to 1/16; at a quarter, even frames are no longer so.
        time -= (time - stamp) * (interval / coarse if interval < coarse else 1.0) / 64.0
    time = time if time > s.time else s.time    # where the frame before was placed later than this one's stamp
    passed = time - s.time
    if s.frames >= FRAMES:
        s.sum -= s.sum / FRAMES
        s.frames -= 1.0
    s.sum += passed
    s.frames += 1.0
    s.stamp = stamp
    s.time = time
    return passed
