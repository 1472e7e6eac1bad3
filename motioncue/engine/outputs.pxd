"""The outputs of a loop that emits, for the class that inherits from them."""

from libc.stdint cimport int64_t

from motioncue.core.records cimport Actuation, Cue
from motioncue.engine.retune cimport OUTPUTS, CueingState
from motioncue.output.sinks cimport Sinks


cdef class Outputs:
    cdef Sinks _sinks
    cdef const Actuation* _actuations[OUTPUTS]      # the newest tick's
    cdef int _outputs           # number of outputs whose actuations there are
    cdef int64_t _period        # [ns]
    cdef list _owned            # owns the memory behind the pointers
    cdef void encode(
        self, CueingState* c, const Cue* cue, bint parked, int state, bint waiting, int64_t index
    ) noexcept nogil
