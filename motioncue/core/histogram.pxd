"""A histogram of durations with one writer, bins 1.6 % wide, from 1 ns to hours, in fixed memory."""

from libc.stdint cimport int64_t, uint64_t

from motioncue.core.slot cimport mc_count, mc_load, mc_store


cdef enum:
    HISTOGRAM_BINS = 64 * 44


ctypedef struct Histogram:
    int64_t bins[HISTOGRAM_BINS]
    int64_t top         # largest value seen


cdef inline int bin_of(int64_t value) noexcept nogil:
    """Return the bin: 64 bins an octave, exact below 128."""
    cdef int shift = 0
    if value < 0:
        return 0
    while value >= 128:
        value >>= 1
        shift += 1
    shift = shift * 64 + <int>value
    return shift if shift < HISTOGRAM_BINS else HISTOGRAM_BINS - 1


cdef inline void record(Histogram* h, int64_t value) noexcept nogil:
    mc_count(&h.bins[bin_of(value)], 1)
    if value > mc_load(&h.top):
        mc_store(&h.top, value)


cdef int64_t quantile(const Histogram* h, double q) noexcept nogil
