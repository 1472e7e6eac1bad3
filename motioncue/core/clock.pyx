"""Clocks in integer nanoseconds."""

from libc.stdlib cimport calloc, free
from libc.string cimport memset

import os
from contextlib import contextmanager

__all__ = [
    "Clock",
    "FakeClock",
    "MonotonicClock",
    "machine_awake",
    "now_ns",
    "prepare_receiver",
    "prepare_thread",
    "processors_awake",
]

cdef int64_t LEAD = 5_000               # [ns] duration of a tick with cold caches; too short to sleep for
WAKE_LATENCY = "/dev/cpu_dma_latency"   # while open, no processor may take longer to wake than the time written to it


def now_ns():
    """Return the monotonic time [ns]; every `time` in a record is of this clock."""
    return mc_now()


cdef dict granted(const mc_attempts* tried):
    return {tried.name[i].decode(): bool(tried.granted[i]) for i in range(tried.count)}


def prepare_thread(core=None, lock_memory=False):
    """Ask the system for precise wake-ups of the calling thread; return what was granted, by name."""
    cdef mc_attempts tried
    memset(&tried, 0, sizeof(tried))
    mc_prepare_thread(-1 if core is None else core, lock_memory, &tried)
    return granted(&tried)


def prepare_receiver():
    """Ask the system to wake the calling thread soon, but below the priority of the emitter."""
    cdef mc_attempts tried
    memset(&tried, 0, sizeof(tried))
    mc_prepare_receiver(&tried)
    return granted(&tried)


@contextmanager
def processors_awake():
    """Keep the processors out of deep sleep while a block runs; yield whether that was granted.

    Linux only.  Threads wake sooner, at a cost in power.  Only root may write the file, unless a udev rule allows
    others.
    """
    held = None
    try:
        held = os.open(WAKE_LATENCY, os.O_WRONLY)
        os.write(held, bytes(4))        # 0 us
        allowed = True
    except OSError:
        allowed = False
    try:
        yield allowed
    finally:
        if held is not None:
            os.close(held)


@contextmanager
def machine_awake():
    """Keep the machine from going to sleep while a block runs; yield what was granted, by name.

    Windows only; elsewhere nothing is requested.  The block must begin and end in the same thread.
    """
    cdef mc_attempts tried
    memset(&tried, 0, sizeof(tried))
    mc_keep_awake(True, &tried)
    try:
        yield granted(&tried)
    finally:
        mc_keep_awake(False, &tried)


cdef class Clock:
    """A source of time and a way to wait for it."""

    @property
    def granted(self):
        """Whether each request for precise waiting was granted by the system, by name."""
        return {}

    def now_ns(self):
        """Return the time [ns]."""
        return self.calls.now(self.calls.memory)


cdef class MonotonicClock(Clock):
    """The machine's monotonic clock; sleeps to absolute deadlines.

    Linux: clock_nanosleep with an absolute time.  Windows: QueryPerformanceCounter and a waitable timer, high
    resolution where the system has it.  One thread at a time may wait.
    """

    cdef mc_timer timer
    cdef mc_attempts tried

    def __cinit__(self, int64_t spin_ns=0):
        mc_timer_open(&self.timer, max(spin_ns, LEAD), &self.tried)
        self.calls = Time(mc_now_of, mc_sleep_until, &self.timer, LEAD)

    def __dealloc__(self):
        mc_timer_close(&self.timer)

    @property
    def granted(self):
        """Whether each request for precise waiting was granted by the system, by name."""
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
    if time.meanwhile != NULL:
        with gil:
            (<object>time.meanwhile)(time.now)


cdef class FakeClock(Clock):
    """A clock that jumps to the deadline it is asked to wait for, so that tests take no time.

    `meanwhile` is called with the time after each wait, to do what others have done until then.

    Units: `stalls` [ns].
    """

    def __cinit__(self, int64_t time_ns=1_000_000_000, int64_t wake_ns=0, stalls=(), int64_t lead_ns=0, meanwhile=None):
        self.calls = Time(fake_now, fake_sleep_until, &self.fake, lead_ns)
        self.fake.now = time_ns
        self.fake.wake = wake_ns
        self._meanwhile = meanwhile
        self.fake.meanwhile = NULL if meanwhile is None else <void*>meanwhile
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

        Units: `ns` [ns].
        """
        self.fake.now += ns
