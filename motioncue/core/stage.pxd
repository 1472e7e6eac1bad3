"""The interface of a stage between the cue and what an output is sent: functions, coefficients and a state.

A stage changes channels of the actuation or fills its actuator channels, once a tick.
"""

from libc.stdint cimport int64_t

from motioncue.core.records cimport Actuation
from motioncue.core.rotation cimport Turn


ctypedef void (*stage_step)(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil


cdef enum:
    PLAN = 48


ctypedef int64_t (*beside_tick)(
    const int* plan, const void* coeffs, const void* states, void* next_states, double* rows, int stride
) noexcept nogil


ctypedef struct Beside:     # a stage of one rig, and how it is done beside those of other rigs
    stage_step step         # alone; NULL if it does nothing
    void* state
    const void* coeffs
    int lanes               # rigs in a block; 0 if the stage has no such form
    beside_tick tick        # see limits_lanes.h
    int plan[PLAN]          # whole numbers that all rigs of a block must have in common
    int coeffs_count        # doubles of the coefficients in lanes
    int state_count
    int64_t* ticks          # counter of the stage's ticks
    void (*lay)(const void* coeffs, double* out) noexcept nogil                     # fill the coefficients for lanes
    bint (*pack)(void* state, const void* coeffs, double* out) noexcept nogil       # fill the state for lanes, unless a
                                                                                    # bound acts; return whether filled
    void (*unpack)(void* state, const void* coeffs, const double* packed) noexcept nogil    # the reverse


ctypedef void (*stage_reset)(void* state) noexcept nogil
ctypedef bint (*stage_at_rest)(const void* state) noexcept nogil
ctypedef void (*stage_take)(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil
ctypedef void (*stage_hurry)(void* state, double pace) noexcept nogil


ctypedef struct StageCalls:
    stage_step step         # one tick: no allocation, no GIL, cannot fail; `attitude` as in algorithm.pxd, or NULL;
                            # `parked` while the platform is to rest
    stage_reset reset       # return to rest at neutral; NULL if the stage has no state
    stage_at_rest at_rest   # whether the channels it fills rest at neutral; NULL if they do whenever the cue does
    const void* coeffs      # coefficients and state are owned by the subclass
    void* state
    stage_take take         # continue from the state of a stage of the same kind under its own coefficients; what differs
                            # vanishes along a fade of this pace [1/tick]; NULL if the stage has no state
    stage_at_rest rises     # whether it still rises from where the platform is parked; NULL if it never does
    stage_hurry hurry       # sink at least at this pace [1/tick] from now on; NULL if it does not sink


cdef class Stage:
    cdef StageCalls calls
    cdef Beside beside(self)
