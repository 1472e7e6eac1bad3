"""The longest time that can have passed in the simulator between two frames, judged by when they arrived.

A frame that is delayed on its way arrives late.  So between two frames the simulator's time advances by the gap between
their arrivals, plus the delay of the first, less the delay of the second: at most by the gap plus the first one's
delay.  That delay is estimated by an account that grows by each gap, shrinks by the time that each frame stands for,
never goes below zero, and leaks, because a constant delay is common to all frames and does not matter.  Silence shows
no constant delay, so a long gap leaks no more than a usual one.  Any frame may have had the largest delay of about the
last second.

A simulator that reports elapsed time may run up to twice as fast as the clock; gaps are then scaled by that factor.
"""


ctypedef struct Arrival:
    double behind               # estimated delay of the newest frame [s]
    double late                 # largest delay of about the last second [s]
    double frames               # frames that arrived in about the last second
    double spent                # sum of the times that they stand for, as far as the account tells [s]
    double seconds              # sum of the gaps between them [s]
    double said                 # sum of the simulator's own times between them [s]
    double least                # shortest of those of the last seconds [s]; 0 before the first


cdef inline void arrival_restart(Arrival* a, double tolerance) noexcept nogil:
    """Start an account; the largest delay is the tolerated one, since nothing is known yet."""
    a.late = tolerance
    a.behind = a.frames = a.spent = a.seconds = a.said = a.least = 0.0


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
    return a.least > 0.0 and usual_interval(a, gap) * a.said > 1.4 * a.least * a.seconds


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
    a.least *= 1.0 + 0.2 * gap
    if said > 0.0 and not 0.0 < a.least < said:
        a.least = said
