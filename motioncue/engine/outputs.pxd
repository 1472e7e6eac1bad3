"""The outputs of a loop that emits, for the class that inherits from them."""

from libc.stdint cimport int64_t

from motioncue.core.records cimport Actuation, Cue
from motioncue.engine.retune cimport OUTPUTS, CueingState
from motioncue.engine.tick cimport cueing_actuate
from motioncue.output.actuation cimport RISING, reported_state
from motioncue.output.sinks cimport Sinks, encode_all


cdef inline void encode_outputs(
    Sinks* s, const Actuation** actuations, CueingState* c, const Cue* cue,
    bint parked, int state, bint waiting, int64_t index,
) noexcept nogil:
    """Fill every output's actuation from the cue, and the packets of tick `index` from the actuations."""
    cdef int reported[OUTPUTS]
    cdef int i
    for i in range(c.now.outputs):
        actuations[i] = cueing_actuate(c, i, cue, parked)
        reported[i] = RISING if waiting else reported_state(c.now.chains[i], state)
    encode_all(s, actuations, reported, index, cue.time)


cdef class Outputs:
    cdef Sinks _sinks
    cdef const Actuation* _actuations[OUTPUTS]      # the newest tick's
    cdef int _outputs           # number of outputs whose actuations there are
    cdef int64_t _period        # [ns]
    cdef list _owned            # owns the memory behind the pointers
