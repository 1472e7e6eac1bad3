"""Placement of frames on the local clock; see the declarations."""

from libc.stdint cimport int64_t
from libc.math cimport fabs
from libc.string cimport memset

__all__: list[str] = []

cdef enum:
    BLOCK = 4               # successive late frames after which their delay counts as that of the link
    FAR = 8  # successive frames much further apart than the interval, after which the nearest distance is the interval
    NEAR = 32               # the same for frames much closer together: more than a burst contains after a gap
    AHEAD_NS = 100_000_000  # by how much a frame's own time may be ahead of its arrival
    SETTLED = 4             # successive frames at their expected times, after which a gap is forgotten
    SHORTEST_NS = 100_000   # frames closer together count as this far apart
    SEVERAL = 64            # number of frames of a mean
    WINDOW_NS = 250_000_000 # shortest time over which frames are counted
    EVEN_NS = 50_000_000    # time for which frames come evenly before a first window tells the pace: a bunch is shorter

cdef double SLOWEST_S = 0.05    # interval of the slowest source
cdef double FOLLOW_S = 0.5      # time constant with which frames follow the offset of the earliest arrivals
cdef double SAME_S = 1e-6   # the simulator's time is not its own if it agrees with the arrivals to within this
cdef double KEEP = 1.0 - 1.0 / SEVERAL


cdef void timeline_restart(Timeline* t) noexcept nogil:
    """Forget every frame, but keep counting."""
    cdef Placement place = t.place
    memset(t, 0, sizeof(Timeline))
    t.place = place


cdef int64_t source_time(double frame_time, int64_t now) noexcept nogil:
    """Return the simulator's time of a frame [ns]; its arrival, if it reports no valid time."""
    return <int64_t>(frame_time * 1e9) if -1e9 < frame_time < 1e9 else now


cdef void update_interval(Timeline* t, double dt) noexcept nogil:
    """Update the nominal interval from the last interval [s], robust against lost and bunched frames."""
    cdef double interval = t.place.interval
    cdef int odd = 1 if dt > 1.5 * interval else (-1 if dt < 0.5 * interval else 0)
    if odd == 0:
        t.irregular_frames = 0
        t.place.interval += (dt - interval) / 8.0
        return
    if t.irregular_frames * odd <= 0:
        t.irregular_frames = 0
        t.nearest = dt
    t.irregular_frames += odd
    t.nearest = dt if odd * (dt - t.nearest) < 0.0 else t.nearest
    if t.irregular_frames == FAR or t.irregular_frames == -NEAR:
        t.place.interval = t.nearest if t.nearest > 1e-9 * SHORTEST_NS else 1e-9 * SHORTEST_NS
        t.irregular_frames = 0
        t.backlog_ns = 0


cdef double median(const double* x, int n) noexcept nogil:
    """Return the median of three values, the smaller one of two."""
    cdef double low = x[0] if n < 2 or x[0] < x[1] else x[1]
    cdef double high = x[1] if n > 1 and x[0] < x[1] else x[0]
    if n < WINDOWS or x[2] < low:
        return low
    return x[2] if x[2] < high else high


cdef double no_slower(double interval) noexcept nogil:
    """Return the interval [s] that the first few frames tell: what comes later than simulators send is joined."""
    return interval if interval < SLOWEST_S else SLOWEST_S


cdef void update_pace(Timeline* t, int64_t arrival) noexcept nogil:
    """Update the pace of the arrivals in the long run.

    A window goes from the end of a bunch to the end of another one, so all of its frames came in their own time,
    however they were delayed.  A bunch ends where the next frame is at least a mean interval away.  Of three windows
    the median counts, so one in which frames were lost does not.
    """
    cdef int64_t before = t.arrived - arrival - t.window
    cdef bint gap = arrival * t.counted >= before
    cdef double pace
    cdef int i
    if t.windows == 0 and gap:          # the first window is one from the beginning of a bunch to that of another one
        t.usual = no_slower(1e-9 * (before + arrival) / (t.counted + 1))
    if t.counted > 0 and (gap and before >= WINDOW_NS or before >= 4 * WINDOW_NS):
        pace = 1e-9 * before / t.counted if t.windows > 0 else t.usual
        for i in range(WINDOWS - 1, 0, -1):
            t.paces[i] = t.paces[i - 1]
        t.paces[0] = pace
        t.windows += t.windows < WINDOWS
        t.usual = median(t.paces, t.windows)
        t.window = t.arrived - arrival
        t.counted = 0
    t.counted += 1


cdef void set_pace(Timeline* t, int64_t now, double told) noexcept nogil:
    """Set the pace to the simulator's own interval, as long as it is told: arrivals after a stall are no pace."""
    cdef int i
    for i in range(WINDOWS):
        t.paces[i] = t.place.interval
    # Until the interval has come near to what is told, nobody knows the pace: a first bunch had another one.
    if 4.0 * fabs(told - t.place.interval) <= t.place.interval:
        t.windows = WINDOWS
    t.usual = t.place.interval
    t.window = now
    t.counted = 0


cdef void clamp_interval(Timeline* t) noexcept nogil:
    """Clamp the interval: it neither follows the short ones within bunches nor stays at one that has been left."""
    if t.place.interval < 0.75 * t.usual:
        t.place.interval = 0.75 * t.usual
    elif t.windows > 1 and t.place.interval > 1.125 * t.usual:   # so that a pair makes a backlog
        t.place.interval = 1.125 * t.usual


cdef bint is_stamped(Timeline* t, double arrival, double told) noexcept nogil:
    """Say whether the simulator's time is its own and runs like the clock; both intervals are in seconds.

    A stall delays frames without slowing the simulator down, so it counts as four intervals at most.
    """
    cdef double most = told + 4.0 * t.place.interval
    t.told = KEEP * t.told + told
    t.arrival_s = KEEP * t.arrival_s + arrival
    t.paced_s = KEEP * t.paced_s + (arrival if arrival < most else most)
    return told > 0.0 and 0.75 * t.paced_s < t.told < 1.33 * t.arrival_s and not -SAME_S <= told - arrival <= SAME_S


cdef bint was_waiting(Timeline* t, int64_t arrival) noexcept nogil:
    """Say whether a frame was waiting, so that it came early; account for those that are missing."""
    cdef int64_t interval = <int64_t>(1e9 * t.place.interval)
    cdef bint waited = t.backlog_ns > 0 and 16 * arrival < 15 * interval
    if waited:
        t.backlog_ns -= interval - arrival
        t.regular_frames = 0
    elif 4 * arrival > 7 * interval:
        t.backlog_ns += arrival - interval
        t.regular_frames = 0
    else:
        t.regular_frames += 1
    if t.backlog_ns < 0 or t.regular_frames >= SETTLED:     # at their own pace again: what is still missing is lost
        t.backlog_ns = 0
    return waited


cdef int64_t delay_of(Timeline* t, int64_t arrival, int64_t told) noexcept nogil:
    """Return the frame's delay relative to the earliest ones [ns], by the simulator's own time."""
    cdef int64_t late = t.late + arrival - told
    if late <= told // 64:              # as early as the earliest, but for a clock that runs a little slower
        t.block = 0
        return late if late > 0 else 0
    if 4 * arrival > 3 * told:          # a frame of a burst says nothing about the link's delay
        t.min_delay_ns = late if t.block == 0 or late < t.min_delay_ns else t.min_delay_ns
        t.block += 1
        if t.block == BLOCK:
            t.block = 0
            return late - t.min_delay_ns
    return late


cdef void follow_offset(Timeline* t, int64_t moved, int64_t told) noexcept nogil:
    """Go on with a lead when the offset has `moved` and the simulator `told` of so much time [ns].

    At most half an interval, beyond which frames move with the offset.

    Less for a simulator whose time runs at another pace, since its offset moves all the time: none at a sixteenth.
    Less, too, while it has told few times in a row: an offset from one that stands now and then is none to go by.
    """
    cdef double paced = 16.0 * fabs(t.told - t.arrival_s) / t.arrival_s if t.arrival_s > 0.0 else 1.0
    cdef double most = 0.5e9 * t.place.interval * (1.0 - paced if paced < 1.0 else 0.0) * t.telling / SEVERAL
    cdef double lead = (t.lead - moved) * FOLLOW_S / (FOLLOW_S + 1e-9 * told)
    t.lead = <int64_t>(most if lead > most else (-most if lead < -most else lead))


cdef void timeline_frame(Timeline* t, int64_t now, double frame_time, bint clocked) noexcept nogil:
    """Place a frame that arrives `now` [ns] with the simulator's time `frame_time` [s].

    A time that is `clocked` counts what has passed while frames were lost; a sum of the durations of those that came
    does not.
    """
    cdef Placement* p = &t.place
    cdef int64_t own = source_time(frame_time, now)
    cdef int64_t arrival = now - t.arrived
    cdef int64_t told = own - t.own
    cdef int64_t late = t.late
    cdef int64_t interval, jump
    cdef bint stamped, waited
    t.arrived = now
    t.own = own
    if t.frames == 0:
        t.frames = 1
        t.window = t.joined = now
        p.time = now
        p.interval = 0.0
        p.elapsed_ns += SHORTEST_NS
        p.discontinuities += 1
        return
    if arrival < 0:
        arrival = 0
    if not 0 <= told <= arrival + t.late + AHEAD_NS:
        told = arrival + t.late + AHEAD_NS if told > 0 else 0
    stamped = is_stamped(t, 1e-9 * arrival, 1e-9 * told)
    if t.frames == 1:
        p.interval = 1e-9 * (told if stamped else arrival)
        p.interval = p.interval if p.interval > 1e-9 * SHORTEST_NS else 1e-9 * SHORTEST_NS
        t.usual = p.interval = no_slower(p.interval)
    t.frames += t.frames < SEVERAL
    interval = <int64_t>(1e9 * p.interval)
    if stamped:
        p.source_elapsed_ns += told
        t.late = delay_of(t, arrival, told)
        t.telling += t.telling < SEVERAL
        follow_offset(t, arrival - told - (t.late - late), told)
        update_interval(t, 1e-9 * told)
        set_pace(t, now, 1e-9 * told)
    else:                   # no time of its own, or one that runs at another speed
        update_pace(t, arrival)
        waited = was_waiting(t, arrival)
        if not waited or 2 * arrival > interval:    # early frames of a jitter compensate late ones
            update_interval(t, 1e-9 * arrival)
        else:
            p.interval += (t.usual - p.interval) / 8.0
        clamp_interval(t)
        p.source_elapsed_ns += <int64_t>(1e9 * t.usual)
        told = interval if waited or 2 * arrival < interval else arrival
        t.late = t.lead = t.block = t.telling = 0   # lateness counts from here, so what frames had before is no part of it
    jump = arrival - told
    # The frame does not continue the motion if that had ended, if it was in a backlog, or if the link's delay has
    # changed.
    if 2 * (arrival + late) > 3 * interval or 2 * t.late > 3 * interval or not -interval <= 8 * jump <= interval:
        p.discontinuities += 1
        t.settled = 0
        t.joined = now
    elif t.settled < SETTLED:
        t.settled += 1
    p.time = now - t.late + t.lead
    p.interval_known = stamped or (t.settled == SETTLED and (t.windows > 0 or now - t.joined >= EVEN_NS))
    # Late, or after frames that are missing and that the simulator does not count.
    # A time that shows less than has passed, or has told few times in a row, is no clock for this frame.
    clocked = clocked and t.telling >= SETTLED and 4 * told >= 3 * interval
    if arrival > told + interval // 2 and not clocked:
        told = arrival
    # Two frames at once must not make a steep slope; nor an early one, if only arrivals tell the interval.
    if 2 * told < interval or (not stamped and 4 * told < 3 * interval):
        told = interval // 2 if stamped else 3 * interval // 4
    p.elapsed_ns += told if told > SHORTEST_NS else SHORTEST_NS
