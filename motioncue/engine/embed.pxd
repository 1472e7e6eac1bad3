"""A profile's cueing in a program's own loop: packages in, one step, packets out.

Controllers call it from Python through `Stepper` and `Relay`, from Cython through `cueing_step` on a stepper's
`cueing`, from C through ``motioncue/motioncue.h``.
"""

from libc.stdint cimport int64_t

from motioncue.core.clock cimport Clock, Time
from motioncue.core.records cimport Actuation, Cue, Motion
from motioncue.engine.tick cimport Cueing, CueingState, Settings
from motioncue.engine.tick cimport cueing_step     # for who cimports it from here, beside a stepper
from motioncue.frames.intake cimport Intake, IntakeState


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


cdef class Cued:
    cdef CueingState* cueing
    cdef Cueing _cueing         # owns `cueing`
    cdef object _tune
    cdef public bint parked
    cdef int cue_by(self, Settings settings, tune) except -1


cdef class Stepper(Cued):
    cdef const Motion* _in      # into the bound arrays, as are the next three
    cdef Cue* _out
    cdef Actuation* _filled     # NULL if no actuation is bound
    cdef const Motion* _seen    # NULL if no preview is bound
    cdef readonly object motion
    cdef readonly object cue
    cdef readonly object actuation
    cdef readonly object ahead
    cdef readonly object chassis
    cdef readonly int64_t period_ns
    cdef tuple _alive           # owns the memory behind the pointers
