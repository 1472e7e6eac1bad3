"""The newest value, handed from one thread to another without a lock, and events likewise.

A slot is a triple buffer: the writer owns one copy, the reader owns one, the third waits in between, and a single
atomic exchange swaps a side's copy with the waiting one.  No copy is ever written and read at the same time, so a
torn read cannot happen; each side does a bounded number of steps whatever the other does, so it is wait-free.  It
serves exactly one writer thread and one reader thread at a time.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy


cdef extern from "motioncue/kernels/atomics.h" nogil:
    int64_t mc_load(const int64_t* p)
    void mc_store(int64_t* p, int64_t v)
    int64_t mc_load_acquire(const int64_t* p)
    void mc_store_release(int64_t* p, int64_t v)
    int64_t mc_exchange(int64_t* p, int64_t v)
    void mc_count(int64_t* p, int64_t n)


cdef enum:
    SLOT_BYTES = 512
    FRESH = 4               # set in `waiting` when the writer has been there since the reader
    EVENTS = 256            # room in the event queue


ctypedef struct Slot:
    char copies[3][SLOT_BYTES]
    int64_t waiting         # index of the waiting copy, plus FRESH
    int64_t back            # the writer's
    int64_t front           # the reader's


ctypedef struct Event:
    int64_t time            # [ns] monotonic clock
    int64_t code            # a Reason
    int64_t detail
    int64_t before          # of a transition: the State left,
    int64_t after           # and the one entered
    double value            # what was measured,
    double limit            # and what was allowed


ctypedef struct Events:
    Event ring[EVENTS]
    int64_t written
    int64_t read
    int64_t lost            # written while the queue was full


cdef inline void slot_clear(Slot* s) noexcept nogil:
    s.back, s.waiting, s.front = 0, 1, 2


cdef inline void slot_write(Slot* s, const void* value, size_t size) noexcept nogil:
    memcpy(s.copies[s.back], value, size)
    s.back = mc_exchange(&s.waiting, s.back | FRESH) & 3


cdef inline bint slot_read(Slot* s, void* value, size_t size) noexcept nogil:
    """Copy the newest value if there is one since the last read; say whether there was."""
    if not mc_load(&s.waiting) & FRESH:
        return False
    s.front = mc_exchange(&s.waiting, s.front) & 3
    memcpy(value, s.copies[s.front], size)
    return True


cdef inline void event_write(Events* q, const Event* event) noexcept nogil:
    cdef int64_t n = mc_load(&q.written)
    if n - mc_load_acquire(&q.read) >= EVENTS:
        mc_count(&q.lost, 1)
        return
    q.ring[n % EVENTS] = event[0]
    mc_store_release(&q.written, n + 1)


cdef inline bint event_read(Events* q, Event* out) noexcept nogil:
    cdef int64_t n = mc_load(&q.read)
    if n == mc_load_acquire(&q.written):
        return False
    out[0] = q.ring[n % EVENTS]
    mc_store_release(&q.read, n + 1)
    return True
