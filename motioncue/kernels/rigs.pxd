"""Many rigs in one call; those whose algorithm has a form for lanes stand side by side in blocks."""

from libc.stdint cimport int64_t

from motioncue.kernels.actuation cimport Chain
from motioncue.kernels.algorithm cimport Calls, Lanes
from motioncue.kernels.limiter cimport LimitSet
from motioncue.kernels.records cimport Actuation, Cue, Motion


ctypedef struct Group:          # rigs in a row that are stepped alike
    int64_t first
    int64_t count
    Lanes lanes                 # of none: the rigs are stepped one by one
    double* coeffs              # in blocks of lanes: of each double, that of every rig in the block
    double* states


cdef class Batch:
    cdef int64_t n
    cdef list alive             # what owns the algorithms and the limits
    cdef Calls* calls           # of each rig
    cdef LimitSet** limits      # of each rig; NULL if none has any
    cdef Chain** chains         # of each rig; NULL if there are none
    cdef Group* groups
    cdef int64_t group_count
    cdef list owned             # the arrays that these pointers point into
    cdef object motion_array    # the arrays that `step` was given last, and the views of them
    cdef object cue_array
    cdef object actuation_array
    cdef const Motion[::1] motion
    cdef Cue[::1] cue
    cdef Actuation[::1] actuation
    cdef int lay_out(self, Group* group) except -1
    cdef void* room(self, size_t size) except NULL
    cdef void tick(self, const Motion* motion, Cue* cue) noexcept nogil
    cdef int bind(self, motion, cue, actuation) except -1
