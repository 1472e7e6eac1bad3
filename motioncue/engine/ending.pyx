"""The end of an engine, waited for without Python, so that no signal interrupts it."""

import atexit
import os
import signal
from _signal import getsignal   # that of `signal` is bytecode

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock, PyThread_type_lock, WAIT_LOCK,
)

__all__ = ["Ending", "end_all"]

LEAVINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals by which a system ends a program."""

cdef extern from "Python.h" nogil:
    # With `interrupted` 0, a signal does not end the wait; returns 1 if the lock has been acquired.
    int PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int interrupted)

cdef enum:
    RESTED = 0
    LEFT_TO_CLOSE
    CLOSED
    STEPS

cdef double CLOSING_S = 15.0    # for a disk, a log or a controller that does not answer, once the platform is at rest
cdef double LISTEN_S = 0.02     # between two looks at what the system has sent meanwhile
cdef double HALT_S = 2.0        # for the emitting thread to notice that it shall not wait for rest any longer


cdef class Ending:
    """Takes an engine to its end from any thread, at an interrupt and at the interpreter's exit too.

    Notes
    -----
    Python runs handlers of signals in its main thread, between two bytecodes.  `end` has none: a KeyboardInterrupt is
    raised behind it, when the platform is at rest and everything is closed.  In a process forked meanwhile, `end` does
    nothing: the threads, and so the platform, are the parent's.
    """

    cdef object _emitter        # its methods are no bytecode
    cdef object _pid
    cdef PyThread_type_lock _latches[STEPS]     # each is held until the step has happened
    cdef bint _happened[STEPS]
    cdef public double patience_s

    def __cinit__(self):
        cdef int i
        for i in range(STEPS):
            self._latches[i] = PyThread_allocate_lock()
            if self._latches[i] == NULL:
                raise MemoryError
            PyThread_acquire_lock(self._latches[i], WAIT_LOCK)

    def __dealloc__(self):
        cdef int i
        for i in range(STEPS):
            if self._latches[i] != NULL:
                if not self._happened[i]:
                    PyThread_release_lock(self._latches[i])
                PyThread_free_lock(self._latches[i])

    def __init__(self, emitter, *, double patience_s):
        self._emitter, self._pid, self.patience_s = emitter, os.getpid(), patience_s

    cdef void happens(self, int what) noexcept:
        if not self._happened[what]:
            self._happened[what] = True
            PyThread_release_lock(self._latches[what])

    cdef bint waited(self, int what, double patience_s) noexcept:
        """Wait until it has happened; return whether it has.  Negative: without end."""
        cdef long long longest = -1 if patience_s < 0.0 else <long long>(min(patience_s, 1e6) * 1e6)
        cdef bint done
        with nogil:
            done = PyThread_acquire_lock_timed(self._latches[what], longest, 0) == 1
            if done:
                PyThread_release_lock(self._latches[what])      # for whoever waits besides
        return done

    def begin(self, *, signals=True):
        """From now on the interpreter's exit ends the engine; with `signals` what the system sends to end it does, too."""
        _begun.append(self)
        if signals:
            hand_signals(signal.SIG_DFL, leave_all)     # a program's own handler stays

    def end(self, leave=False):
        """Fade to neutral, then wait until the engine is closed; both waits are bounded."""
        if os.getpid() != self._pid:
            return
        self._emitter.stop(leave)
        self.happens(LEFT_TO_CLOSE)
        self.finish()
        if not _begun:
            give_signals_back()

    cdef bint waited_for_rest(self) except -1:
        """Wait for the platform's rest; a signal by which the system ends the program makes the way to it shorter.

        Its handler has to wait, so it is told by the descriptor that Python writes signals to.
        """
        cdef tuple ends = listen_to_signals()
        cdef double left = self.patience_s
        cdef bint done = ends is None and self.waited(RESTED, left)
        while ends is not None and left > 0.0 and not done:
            done = self.waited(RESTED, LISTEN_S)
            left -= LISTEN_S
            if told_to_leave(ends, False):
                hurry_all()
        if ends is not None:
            told_to_leave(ends, True)
        return done

    cdef int finish(self) except -1:
        """Wait for the platform's rest, then for the engine to be closed."""
        if not self.waited_for_rest():
            self._emitter.halt()
            if not self.waited(RESTED, HALT_S):
                return 0
        self.waited(CLOSED, CLOSING_S)
        return 0

    @property
    def over(self):
        """Whether the emitting thread sends no more."""
        return bool(self._happened[RESTED])

    def rested(self):
        """The emitting thread says that it sends no more."""
        self.happens(RESTED)

    def wait_for_close(self):
        """Wait until the engine is to be closed."""
        self.waited(LEFT_TO_CLOSE, -1.0)

    def closed(self):
        """The emitting thread says that everything is closed."""
        self.happens(LEFT_TO_CLOSE)
        self.happens(CLOSED)
        if self in _begun:
            _begun.remove(self)


cdef list _begun = []           # engines that the interpreter's exit has to end


def end_all():
    """End every engine of this process that has been begun: they fade side by side."""
    cdef Ending each
    cdef list mine = [each for each in _begun if each._pid == os.getpid()]
    for each in mine:
        each._emitter.stop()
        each.happens(LEFT_TO_CLOSE)
    for each in mine:
        each.finish()
    try:
        PyErr_CheckSignals()
    except SystemExit:      # by a handler that had to wait: the program ends already
        pass


def hand_signals(of, to):
    """Replace one handler of the system's signals by another, where this thread may: Python's main thread only."""
    for number in LEAVINGS:
        if signal.getsignal(number) is of:
            try:
                signal.signal(number, to)
            except ValueError:      # `threading` and the interpreter may take different threads for the main one
                return


def give_signals_back():
    """Let the system's signals end this program at once, as before the first engine."""
    hand_signals(leave_all, signal.SIG_DFL)


def leave_all(int number, frame):
    """Be at rest within each engine's `leave_s`; end the program meanwhile, with the status of the signal."""
    hurry_all()
    raise SystemExit(128 + number)


cdef int hurry_all() except -1:
    """Have every engine of this process at rest within its `leave_s`."""
    cdef Ending each
    for each in list(_begun):
        if each._pid == os.getpid():
            each._emitter.stop(True)
    return 0


cdef tuple listen_to_signals():
    """Return a pipe that gets the number of each signal from now on, and the descriptor that did; None if none can."""
    if not hasattr(signal, "SIGHUP"):       # the system ends no program by signals
        return None
    try:
        reader, writer = os.pipe()
    except OSError:                         # no descriptor is left
        return None
    try:
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        return reader, writer, signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except ValueError:                      # in another thread, beside which handlers run
        os.close(reader)
        os.close(writer)
        return None


cdef bint told_to_leave(tuple ends, bint over) except -1:
    """Say whether a signal by which the system ends the program has come; pass all on, and close if it is `over`."""
    reader, writer, before = ends
    if over:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
    numbers = b""
    try:
        numbers = os.read(reader, 4096)
        if before >= 0:
            os.write(before, numbers)
    except OSError:                         # nothing has come, or there is no room
        pass
    if over:
        os.close(reader)
        os.close(writer)
    for number in numbers:
        if number in LEAVINGS and getsignal(number) is leave_all:
            return True
    return False


atexit.register(end_all)    # itself no bytecode, so that a pending interrupt cannot come before it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=give_signals_back)   # a child's engines are its parent's
