"""Many washouts, side by side in blocks of as many as the processor has lanes."""

from libc.stdint cimport int64_t, uintptr_t

from motioncue.kernels.algorithm cimport reset_function
from motioncue.kernels.lanes cimport Machine
from motioncue.kernels.limiter cimport LimitSet
from motioncue.kernels.records cimport Cue, Motion
from motioncue.kernels.washout cimport Washout


cdef class Washouts:
    cdef Machine machine
    cdef reset_function reset_one
    cdef int64_t n
    cdef double[::1] memory
    cdef double* blocks         # each: the doubles of a Washout in their order, of each one for every lane
    cdef list alive             # what owns the limits
    cdef uintptr_t[::1] owned
    cdef LimitSet** limits      # of each rig; NULL if none has any
    cdef object motion_array    # what `step` was given last, and what it found there
    cdef object cue_array
    cdef const Motion[::1] motion
    cdef Cue[::1] cue
    cdef double* place(self, int64_t rig) noexcept nogil
    cdef void store(self, int64_t rig, const Washout* washout) noexcept nogil
    cdef void tick(self, const Motion* motion, Cue* cue) noexcept nogil
    cdef int bind(self, motion, cue) except -1
