"""The clock that a loop is given: the machine's monotonic clock, or a fake one that a test sets."""

from libc.stdint cimport int64_t


cdef extern from "motioncue/core/clock.h" nogil:
    ctypedef struct mc_attempts:
        const char** name
        int* granted
        int count
    ctypedef struct mc_timer:
        pass
    int64_t mc_now()
    int64_t mc_now_of(void* memory)
    void mc_timer_open(mc_timer* timer, int64_t spin, mc_attempts* tried)
    void mc_timer_close(mc_timer* timer)
    void mc_sleep_until(void* timer, int64_t deadline)
    void mc_prepare_thread(int core, int lock_memory, mc_attempts* tried)
    void mc_prepare_receiver(mc_attempts* tried)
    void mc_keep_awake(bint on, mc_attempts* tried)


ctypedef int64_t (*now_function)(void* memory) noexcept nogil
ctypedef void (*sleep_function)(void* memory, int64_t deadline) noexcept nogil


ctypedef struct Time:
    now_function now                # [ns]
    sleep_function sleep_until      # returns at or after the deadline [ns]
    void* memory                    # argument of both functions; owned by the clock
    int64_t lead                    # how long before a deadline a tick starts, so that packets are ready at it [ns]


cdef class Clock:
    cdef Time calls


ctypedef struct FakeTime:
    int64_t now             # [ns]
    int64_t wake            # how late each sleep returns [ns]
    int64_t* stalls         # extra lateness of the first, second, ... sleep [ns]
    Py_ssize_t stall_count
    Py_ssize_t sleeps
    void* meanwhile         # a function of Python, or NULL; owned by the clock


cdef class FakeClock(Clock):
    cdef FakeTime fake
    cdef object _meanwhile
