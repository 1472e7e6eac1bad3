"""Serial lines: what the ticking thread writes to, and the object that owns it."""

from libc.stdint cimport int64_t, uint8_t


cdef extern from "motioncue/transports/line.h" nogil:
    int64_t MC_NO_LINE
    int MC_LINE_BUSY
    ctypedef struct mc_line:
        int64_t handle
        int64_t gone
        int64_t next
    int mc_line_send(mc_line* line, const uint8_t* packet, int size)
    int mc_line_read(mc_line* line, uint8_t* data, int room)
    bint mc_line_take(mc_line* line)


cdef class Line:
    cdef mc_line line
    cdef readonly str name
    cdef readonly int baud
    cdef readonly str format
    cdef readonly int actual
    cdef bint shut              # whether the handle in use is closed already

    cdef int64_t open(self) except? 0
