"""The names of the reasons, the memory and the reader's side of a ring, the quantiles of a histogram."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

__all__ = ["HEAD_DTYPE", "KINDS", "NAMES", "PLACE_DTYPE", "Reason", "RecordRing", "quantiles", "record_places"]

NAMES = tuple(
    name.lower() for name, member in sorted(Reason.__members__.items(), key=lambda item: item[1]) if name != "REASONS"
)
"""Names of the codes, in order."""

KINDS = {
    "tick": RECORD_TICK, "transition": RECORD_TRANSITION, "package": RECORD_PACKAGE, "frame": RECORD_FRAME,
    "happening": RECORD_HAPPENING, "connected": RECORD_CONNECTED, "disconnected": RECORD_DISCONNECTED,
    "retuned": RECORD_RETUNED, "chassis": RECORD_CHASSIS,
}
"""Types of records, in the lowest byte of a kind; the other bytes of a package's kind hold its endpoint's number."""

HEAD_DTYPE = np.dtype([("kind", "i4"), ("size", "i4"), ("time", "i8")])
"""The head of every record: kind, size of the payload [bytes], time [ns]; payloads are padded to 8 bytes."""

PLACE_DTYPE = np.dtype([("kind", "i8"), ("size", "i8"), ("time", "i8"), ("place", "i8")])
"""A record in a ring's output: its head, and the offset of its payload [bytes]."""


def record_places(const unsigned char[::1] data not None):
    """Return the heads of the records in a ring's output, and where their payloads begin."""
    cdef int64_t end = data.shape[0], at = 0, n = 0
    cdef int64_t[:, ::1] rows
    cdef RingHead head
    while at + <int64_t>sizeof(RingHead) <= end:
        memcpy(&head, &data[at], sizeof(RingHead))
        at += sizeof(RingHead) + ring_padded(head.size)
        n += 1
    out = np.empty(n, PLACE_DTYPE)
    if n == 0:
        return out
    rows = out.view(np.int64).reshape(n, 4)
    at = 0
    for i in range(n):
        memcpy(&head, &data[at], sizeof(RingHead))
        rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = head.kind, head.size, head.time, at + sizeof(RingHead)
        at += sizeof(RingHead) + ring_padded(head.size)
    return out


cdef class RecordRing:
    """Records from a thread that never waits to another one that takes them when it can.

    Every page of memory is touched when the ring is made, so that no tick waits for one.
    Real time: writing does not allocate, needs no GIL and cannot fail; records that do not fit are counted in `lost`.

    Units: `room` [bytes].
    """

    def __cinit__(self, int64_t room):
        self.ring.size = max(room, 64) & ~<int64_t>7
        self.ring.room = <uint8_t*>malloc(self.ring.size)
        if self.ring.room == NULL:
            raise MemoryError
        memset(self.ring.room, 0, self.ring.size)

    def __dealloc__(self):
        free(self.ring.room)

    def write(self, int kind, int64_t time, const unsigned char[::1] data not None):
        """Write a record from Python; return whether there was room for it.

        Units: `time` [ns].
        """
        cdef int64_t size = data.shape[0]
        return ring_write(&self.ring, kind, time, &data[0] if size else <const unsigned char*>b"", size)

    def take(self):
        """Remove and return the bytes of all waiting records, oldest first."""
        cdef int64_t size = ring_waiting(&self.ring)
        cdef bytes out = PyBytes_FromStringAndSize(NULL, size)
        ring_take(&self.ring, PyBytes_AS_STRING(out), size)
        return out

    def copy(self):
        """Return the bytes of all waiting records, which stay; the writer must have ended."""
        cdef Ring seen = self.ring
        cdef int64_t size = ring_waiting(&seen)
        cdef bytes out = PyBytes_FromStringAndSize(NULL, size)
        ring_take(&seen, PyBytes_AS_STRING(out), size)
        return out

    @property
    def waiting(self):
        """Bytes of the records that wait to be taken."""
        return ring_waiting(&self.ring)

    @property
    def lost(self):
        """Number of records that did not fit."""
        return mc_load(&self.ring.lost)


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
    """Return quantiles as the loops' histograms estimate them."""
    cdef Histogram h
    cdef Py_ssize_t i
    cdef int b
    for b in range(HISTOGRAM_BINS):
        h.bins[b] = 0
    h.top = 0
    for i in range(values.shape[0]):
        record(&h, values[i])
    return [quantile(&h, level) for level in levels]
