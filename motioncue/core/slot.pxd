"""Events passed from one thread to another without a lock, and counters that threads share: see slot.h.

The slots for the newest value are in records.pxd, one for each record that is passed.
"""

from libc.stdint cimport int64_t


cdef extern from "motioncue/core/atomics.h" nogil:
    int64_t mc_load(const int64_t* p)
    void mc_store(int64_t* p, int64_t v)
    int64_t mc_load_acquire(const int64_t* p)
    void mc_store_release(int64_t* p, int64_t v)
    int64_t mc_exchange(int64_t* p, int64_t v)
    void mc_count(int64_t* p, int64_t n)
    void mc_add(int64_t* p, int64_t n)


cdef extern from "motioncue/core/slot.h" nogil:
    enum:
        EVENTS              # capacity of the event queue
    ctypedef struct Event:
        int64_t time        # [ns] monotonic clock
        int64_t code        # a Reason
        int64_t detail
        int64_t before      # for a transition: the State left
        int64_t after       # and the State entered
        double value        # the measured value
        double limit        # and the largest one allowed
    ctypedef struct Events:
        int64_t lost        # events dropped because the queue was full
    void event_write(Events* q, const Event* event)
    bint event_read(Events* q, Event* out)
