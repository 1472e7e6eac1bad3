"""When each frame was taken, on the local clock: every frame is placed as it arrives.

A frame can only come late, so the earliest arrivals show how far the local clock is ahead of the simulator's time, and a
later frame was taken when its own time says.  A source whose time is only when frames arrived has no time of its own:
its frames were taken when they arrived, and frames that come sooner than a nominal interval are counted as one
interval apart, because they had been waiting for each other.

`spent` is the time between frames for those who compute slopes: the longer one of what the simulator says and what
passed between arrivals, so a slope is never larger than that of the drive.
"""

from libc.stdint cimport int64_t

from motioncue.kernels.records cimport Placement


ctypedef struct Timeline:
    int frames              # since the restart, up to 2
    int64_t arrived         # when the newest frame came [ns]
    int64_t own             # the simulator's time of it [ns]
    int64_t late            # how much later it came than the earliest ones [ns]
    int64_t least           # smallest `late` of the frames at their own pace in this block [ns]
    int block               # number of those frames
    double told             # simulator's time between frames, older ones counting less [s]
    double came             # time between their arrivals, likewise [s]
    int64_t debt            # time that frames have been missing and may still come in a burst [ns]
    int paced               # frames in a row at the interval
    int odd                 # frames in a row that were much further apart than the interval; negative: much closer
    double nearest          # time between those that is nearest to the interval [s]
    double usual            # mean time between arrivals of about the last 64 frames, gaps counting as four intervals at most [s]
    int settled             # frames since the last that was not where the frame before led, up to SETTLED
    Placement place         # of the newest frame


cdef void timeline_restart(Timeline* t) noexcept nogil
cdef void timeline_frame(Timeline* t, int64_t now, double frame_time) noexcept nogil
