"""Motion from the program that runs the engine: the program calls, so no socket is read."""

from libc.stdint cimport int64_t

from motioncue.core.clock cimport Clock, Time
from motioncue.frames.intake cimport Intake
from motioncue.frames.state cimport IntakeState


ctypedef struct FeederState:
    IntakeState* intake
    Time time               # gives the arrival times
    int64_t ended           # packages are dropped
    int64_t busy            # a thread is feeding
    int64_t turned_away     # packages dropped because another thread was feeding
    bint begun              # the session has begun


cdef bint feeder_take(FeederState* f, const void* package, Py_ssize_t size) noexcept nogil


cdef class Feeder:
    cdef FeederState feeder
    cdef Intake _intake
    cdef Clock _clock
