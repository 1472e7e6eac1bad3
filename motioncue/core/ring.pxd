"""Records passed in order from one thread to another without a lock: see ring.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "motioncue/core/ring.h" nogil:
    enum:
        RECORD_TICK
        RECORD_TRANSITION
        RECORD_PACKAGE
        RECORD_FRAME
        RECORD_HAPPENING
        RECORD_CONNECTED
        RECORD_DISCONNECTED
        RECORD_RETUNED
        RECORD_ENDPOINT
    ctypedef struct RingHead:
        int32_t kind        # type of the payload: a RECORD_
        int32_t size        # size of the payload [bytes]
        int64_t time        # [ns]
    ctypedef struct Ring:
        uint8_t* room
        int64_t size        # size of `room` [bytes]
        int64_t lost        # records that did not fit
    bint ring_write(Ring* r, int32_t kind, int64_t time, const void* data, int64_t size)
    int64_t ring_padded(int64_t size)
    int64_t ring_waiting(Ring* r)
    void ring_take(Ring* r, void* out, int64_t size)


cdef class RecordRing:
    cdef Ring ring
