"""The time at which each frame was taken, on the local clock, estimated when the frame arrives.

A frame can only arrive late, so the earliest arrivals show the offset of the local clock from the simulator's time, and
later frames are placed by the simulator's time plus that offset.  A source whose times are only those of arrival has no
time of its own: its frames count as taken when they arrived, except that frames closer together than the nominal
interval are placed one interval apart, because they had been waiting for each other.  How far apart such frames are is
told by the long run alone: by counting them from the end of one bunch to that of another one, however long bunches are.

`spent` is the interval between frames for computing slopes: the longer of the simulator's own interval and the interval
between arrivals, so that a slope is never larger than the drive's.
"""

from libc.stdint cimport int64_t

from motioncue.core.records cimport Placement


cdef enum:
    WINDOWS = 3


ctypedef struct Timeline:
    int frames              # frames since the restart, up to SEVERAL
    int64_t arrived         # arrival of the newest frame [ns]
    int64_t own             # simulator's time of the newest frame [ns]
    int64_t late            # its delay relative to the earliest arrivals [ns]
    int64_t least           # smallest `late` in this block, among frames that came at their own pace [ns]
    int block               # number of those frames
    double told             # decaying sum of the simulator's intervals between frames [s]
    double came             # decaying sum of the intervals between arrivals [s]
    double paced_s          # the same, each longer than the simulator's by four nominal ones at most [s]
    int64_t debt            # time that frames have been missing and may still come in a burst [ns]
    int paced               # successive frames that were one interval apart
    int odd                 # successive frames much further apart than the interval; negative: much closer
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
cdef void timeline_frame(Timeline* t, int64_t now, double frame_time) noexcept nogil
