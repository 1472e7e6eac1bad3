"""The clock that a loop is given: the machine's, or one that a test winds by hand."""

from libc.stdint cimport int64_t


cdef extern from "motioncue/kernels/clock.h" nogil:
    ctypedef struct mc_attempts:
        const char** name
        int* granted
        int count
    ctypedef struct mc_timer:
        pass
    int64_t mc_now()
    void mc_timer_open(mc_timer* timer, int64_t spin, mc_attempts* tried)
    void mc_timer_close(mc_timer* timer)
    void mc_sleep_until(void* timer, int64_t deadline)
    void mc_prepare_thread(int core, int lock_memory, mc_attempts* tried)
    void mc_prepare_receiver(mc_attempts* tried)
    bint mc_keep_awake(bint on)


ctypedef int64_t (*now_function)(void* memory) noexcept nogil
ctypedef void (*sleep_function)(void* memory, int64_t deadline) noexcept nogil


ctypedef struct Time:
    now_function now                # [ns]
    sleep_function sleep_until      # returns at or after the deadline [ns]
    void* memory                    # what both are called with; owned by the clock
    int64_t lead                    # how long before a deadline its packets are made, to be sent at the deadline [ns]


cdef class Clock:
    cdef Time calls


ctypedef struct FakeTime:
    int64_t now             # [ns]
    int64_t wake            # how late each sleep returns [ns]
    int64_t* stalls         # how much later each sleep returns [ns]
    Py_ssize_t stall_count
    Py_ssize_t sleeps


cdef class FakeClock(Clock):
    cdef FakeTime fake
