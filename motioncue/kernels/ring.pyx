"""The memory of a ring, and the reader's side in Python."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from motioncue.kernels.slot cimport mc_load

__all__ = ["HEAD_DTYPE", "KINDS", "RecordRing"]

KINDS = {
    "tick": RECORD_TICK, "transition": RECORD_TRANSITION, "package": RECORD_PACKAGE, "frame": RECORD_FRAME,
    "happening": RECORD_HAPPENING, "connected": RECORD_CONNECTED, "disconnected": RECORD_DISCONNECTED,
    "retuned": RECORD_RETUNED,
}
"""Types of records, in the lowest byte of a kind; the other bytes of a package's kind hold its endpoint's number."""

HEAD_DTYPE = np.dtype([("kind", "i4"), ("size", "i4"), ("time", "i8")])
"""The head of every record: kind, size of the payload [bytes], time [ns]; payloads are padded to 8 bytes."""


cdef class RecordRing:
    """Records from a thread that never waits to another one that takes them when it can.

    Parameters
    ----------
    room : int
        Memory for records, each of which takes 16 bytes beside its payload [bytes]; at least 64.

    Raises
    ------
    MemoryError
        If there is not enough memory.

    Notes
    -----
    Every page of memory is touched when the ring is made, so that no tick waits for one.
    Real time: writing does not allocate, needs no GIL and cannot fail; records that do not fit are counted in `lost`.
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

        Parameters
        ----------
        kind : int
            Type of the payload.
        time : int
            When it happened [ns].
        data : bytes-like
            The payload.
        """
        cdef int64_t size = data.shape[0]
        return ring_write(&self.ring, kind, time, &data[0] if size else <const unsigned char*>b"", size)

    def take(self):
        """Remove and return the bytes of all waiting records, oldest first."""
        cdef int64_t size = ring_waiting(&self.ring)
        cdef bytes out = PyBytes_FromStringAndSize(NULL, size)
        ring_take(&self.ring, PyBytes_AS_STRING(out), size)
        return out

    @property
    def lost(self):
        """Number of records that did not fit."""
        return mc_load(&self.ring.lost)
