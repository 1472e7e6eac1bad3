"""Clocks in integer nanoseconds."""

from libc.stdlib cimport calloc, free
from libc.string cimport memset

__all__ = ["Clock", "FakeClock", "MonotonicClock", "now_ns", "prepare_thread"]


def now_ns():
    """Return the monotonic time [ns]: the clock of every `time` in a record."""
    return mc_now()


cdef dict granted(const mc_attempts* tried):
    return {tried.name[i].decode(): bool(tried.granted[i]) for i in range(tried.count)}


def prepare_thread():
    """Ask the system for precise wake-ups of the calling thread; return what was granted, each by name."""
    cdef mc_attempts tried
    memset(&tried, 0, sizeof(tried))
    mc_prepare_thread(&tried)
    return granted(&tried)


cdef class Clock:
    """A source of time and a way to wait for it."""

    @property
    def granted(self):
        """What the system was asked for to wait precisely, and whether it was granted, each by name."""
        return {}

    def now_ns(self):
        """Return the time [ns]."""
        return self.calls.now(self.calls.memory)


cdef int64_t monotonic_now(void* memory) noexcept nogil:
    return mc_now()


cdef class MonotonicClock(Clock):
    """The machine's monotonic clock; sleeps to absolute deadlines.

    Notes
    -----
    Linux: clock_nanosleep with an absolute time.  Windows: QueryPerformanceCounter and a waitable timer, high
    resolution where the system has it.  One thread at a time may wait.
    """

    cdef mc_timer timer
    cdef mc_attempts tried

    def __cinit__(self):
        mc_timer_open(&self.timer, &self.tried)
        self.calls = Time(monotonic_now, mc_sleep_until, &self.timer)

    def __dealloc__(self):
        mc_timer_close(&self.timer)

    @property
    def granted(self):
        """What the system was asked for to wait precisely, and whether it was granted, each by name."""
        return granted(&self.tried)


cdef int64_t fake_now(void* memory) noexcept nogil:
    return (<FakeTime*>memory).now


cdef void fake_sleep_until(void* memory, int64_t deadline) noexcept nogil:
    cdef FakeTime* time = <FakeTime*>memory
    if time.now < deadline:
        time.now = deadline + time.wake
    if time.sleeps < time.stall_count:
        time.now += time.stalls[time.sleeps]
    time.sleeps += 1


cdef class FakeClock(Clock):
    """A clock that jumps to whatever it is asked to wait for: runs take no time.

    Parameters
    ----------
    time_ns : int
        Where it starts [ns].
    wake_ns : int
        How late each sleep returns [ns].
    stalls : sequence of int
        How much later the first, second, … sleep returns [ns]; none after the last.
    """

    def __cinit__(self, int64_t time_ns=1_000_000_000, int64_t wake_ns=0, stalls=()):
        self.calls = Time(fake_now, fake_sleep_until, &self.fake)
        self.fake.now = time_ns
        self.fake.wake = wake_ns
        self.fake.stall_count = len(stalls)
        self.fake.stalls = <int64_t*>calloc(max(self.fake.stall_count, 1), sizeof(int64_t))
        if self.fake.stalls == NULL:
            raise MemoryError
        for i, stall in enumerate(stalls):
            self.fake.stalls[i] = stall

    def __dealloc__(self):
        free(self.fake.stalls)

    def advance(self, int64_t ns):
        """Let time pass.

        Parameters
        ----------
        ns : int
            How much [ns].
        """
        self.fake.now += ns
