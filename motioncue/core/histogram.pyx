"""Quantiles of a histogram."""

__all__ = ["quantiles"]


cdef int64_t bin_start(int i) noexcept nogil:
    cdef int shift
    if i < 128:
        return i
    shift = (i - 64) // 64
    return (<int64_t>(i - shift * 64)) << shift


cdef int64_t quantile(const Histogram* h, double q) noexcept nogil:
    """Return the largest value in the quantile's bin, at most the largest value seen; 0 if empty."""
    cdef int64_t total = 0
    cdef int64_t seen = 0
    cdef int64_t end
    cdef int i
    for i in range(HISTOGRAM_BINS):
        total += mc_load(&h.bins[i])
    for i in range(HISTOGRAM_BINS):
        seen += mc_load(&h.bins[i])
        if total and seen >= q * total:
            end = bin_start(i + 1) - 1
            return end if end < mc_load(&h.top) else mc_load(&h.top)
    return 0


def quantiles(const int64_t[::1] values not None, list levels not None):
    """Return quantiles as the loops' histograms estimate them.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
        Any unit; negative values count as 0.
    levels : list of float
        From 0 to 1.

    Returns
    -------
    list of int
        One per level, at most 1/64 above the exact value; exact below 128.
    """
    cdef Histogram h
    cdef Py_ssize_t i
    cdef int b
    for b in range(HISTOGRAM_BINS):
        h.bins[b] = 0
    h.top = 0
    for i in range(values.shape[0]):
        record(&h, values[i])
    return [quantile(&h, level) for level in levels]
