"""The memory of a ring, and its reader's side in Python."""

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
"""What a record is, in the lowest byte of its kind; the rest of a package's kind says which endpoint it came to."""

HEAD_DTYPE = np.dtype([("kind", "i4"), ("size", "i4"), ("time", "i8")])
"""What stands before every payload: its kind, its size [bytes], its time [ns]; payloads are padded to 8 bytes."""


cdef class RecordRing:
    """Records from one thread, which never waits, to another, which takes them when it can.

    Parameters
    ----------
    room : int
        For records, each with 16 bytes more [bytes]; at least 64.

    Raises
    ------
    MemoryError
        If there is no room for it.

    Notes
    -----
    Every page of the room is touched when the ring is made: no tick waits for one.
    Real time: writing does not allocate, needs no GIL and cannot fail; what finds no room is counted in `lost`.
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
            What the payload is.
        time : int
            When it happened [ns].
        data : bytes-like
            The payload.
        """
        cdef int64_t size = data.shape[0]
        return ring_write(&self.ring, kind, time, &data[0] if size else <const unsigned char*>b"", size)

    def take(self):
        """Return the bytes of all records that wait, oldest first, and forget them."""
        cdef int64_t size = ring_waiting(&self.ring)
        cdef bytes out = PyBytes_FromStringAndSize(NULL, size)
        ring_take(&self.ring, PyBytes_AS_STRING(out), size)
        return out

    @property
    def lost(self):
        """How many records found no room."""
        return mc_load(&self.ring.lost)
