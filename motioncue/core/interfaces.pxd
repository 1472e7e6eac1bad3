"""The interfaces of an algorithm and of a stage with the loops that run them: functions, coefficients and a state.

`design` computes the coefficients from the settings; a step only reads them.  The state is what one step passes to the
next.  They are separate structs, so that settings can change while the state is kept.

A stage stands between the cue and what an output is sent: it changes channels of the actuation or fills its actuator
channels, once a tick.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from motioncue.core.records cimport CHANNELS, Actuation, Cue, Motion
from motioncue.core.rotation cimport Turn


cdef extern from "motioncue/core/threads.h" nogil:
    uint64_t mc_flush_denormals()
    void mc_restore_fpu(uint64_t before)


cdef struct Calls


cdef enum:
    AHEAD = 7              # rows of a preview

ctypedef void (*step_function)(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil
ctypedef void (*look_function)(void* state, const void* coeffs, const Motion* ahead, bint weighed) noexcept nogil
ctypedef void (*reset_function)(void* state) noexcept nogil
# Begin with the state of an algorithm of the same structure; then move on to coefficients of one's own, or be there at
# once (`whole`).  Both return the coefficients for the next tick.
ctypedef const void* (*continue_function)(const Calls* own, const Calls* before) noexcept nogil
ctypedef const void* (*settle_function)(const Calls* own, bint whole) noexcept nogil
ctypedef void (*run_function)(void* state, const void* coeffs, const void* motion, void* cue, int64_t n) noexcept nogil


cdef struct Calls:
    step_function step      # one tick: no allocation, no GIL, cannot fail; leaves cue.time alone
    look_function look      # optional, before a step: what the car will do, AHEAD rows, NaN if not known; if `weighed`,
                            # it counts as much as it has just proved right
    reset_function reset    # forget the past; the next step starts from rest
    run_function run        # optional batch form of `step` for n rows, bit-identical; NULL if not implemented
    const void* coeffs      # coefficients and state are owned by the subclass
    void* state
    int64_t state_bytes
    int64_t structure       # a state may continue under other coefficients with the same number; 0: only under its own
    continue_function continue_from     # begins with a state under other settings; NULL: with a copy of it
    settle_function settle  # called at each tick after a `continue_from` that returned other coefficients than `coeffs`
    void* eased             # memory of the algorithm for such coefficients, or NULL
    const Turn* attitude    # newest roll, pitch and yaw with sine and cosine, kept in the state; NULL if it has none


ctypedef struct Lanes:      # optional form of `step` for several rigs side by side, bit-identical
    int lanes               # rigs in a block; 0 if not implemented
    int coeffs_count        # doubles in the coefficients, which hold nothing else
    int state_count         # doubles in the state, which holds nothing else
    run_function tick       # one tick of n rigs; coefficients and states come in blocks of `lanes` rigs


cdef inline void step_algorithm(const Calls* a, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil:
    """Fill a cue, but for its time; a channel that the algorithm leaves unwritten is neutral, not what stood there."""
    memset(cue, 0, CHANNELS * sizeof(double))
    a.step(a.state, coeffs, motion, cue)


cdef inline bint continues(const Calls* a, const Calls* b) noexcept nogil:
    """Say whether `a` can go on with the state of `b`."""
    return a.structure != 0 and a.structure == b.structure and a.state_bytes == b.state_bytes


cdef int64_t structure_number(tuple structure)


cdef class Algorithm:
    cdef Calls calls
    cdef Lanes lanes
    cdef public bint eases


ctypedef struct Machine:    # the loops over lanes for this processor
    const char* name
    int lanes
    int index               # of its loops, in each table that a file of loops makes with MC_OF_MACHINES


cdef Machine chosen_machine()


ctypedef void (*stage_step)(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil


cdef enum:
    PLAN = 48


ctypedef int64_t (*lanes_tick)(
    const int* plan, const void* coeffs, const void* states, void* next_states, double* rows, int stride
) noexcept nogil


ctypedef struct LaneLayout:     # a stage of one rig, and how it is done in lanes with those of other rigs
    stage_step step         # alone; NULL if it does nothing
    void* state
    const void* coeffs
    int lanes               # rigs in a block; 0 if the stage has no such form
    lanes_tick tick         # see safety/limits.h
    int plan[PLAN]          # whole numbers that all rigs of a block must have in common
    int coeffs_count        # doubles of the coefficients in lanes
    int state_count
    int64_t* ticks          # counter of the stage's ticks
    void (*fill_coeffs)(const void* coeffs, double* out) noexcept nogil     # those for lanes
    bint (*to_lanes)(void* state, const void* coeffs, double* out) noexcept nogil       # fill the state for lanes, unless
                                                                            # a bound acts; return whether filled
    void (*from_lanes)(void* state, const void* coeffs, const double* lanes) noexcept nogil     # the reverse


ctypedef void (*stage_reset)(void* state) noexcept nogil
ctypedef bint (*stage_at_rest)(const void* state) noexcept nogil
ctypedef void (*stage_continue)(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil
ctypedef void (*stage_hurry)(void* state, double pace) noexcept nogil
ctypedef void (*stage_stand)(void* state, const void* coeffs, const double* positions, bint found) noexcept nogil


ctypedef struct StageCalls:
    stage_step step         # one tick: no allocation, no GIL, cannot fail; `attitude` as in Calls, or NULL;
                            # `parked` while the platform is to rest
    stage_reset reset       # return to rest at neutral; NULL if the stage has no state
    stage_at_rest at_rest   # whether the channels it fills rest at neutral; NULL if they do whenever the cue does
    const void* coeffs      # coefficients and state are owned by the subclass
    void* state
    stage_continue continue_from    # from the state of a stage of the same kind under its own coefficients; what differs
                            # vanishes along a fade of this pace [1/tick]; NULL if the stage has no state
    stage_at_rest rises     # whether it still rises from where the platform is parked; NULL if it never does
    stage_hurry hurry       # sink at least at this pace [1/tick] from now on; NULL if it does not sink
    stage_stand stand       # in the next tick, ask for these positions of the actuators instead, where the platform stands
                            # by itself; if it is `found` there, begin there; NULL if it moves none


cdef class Stage:
    cdef StageCalls calls
    cdef LaneLayout lane_layout(self)
    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1
    cdef bint read_chassis(self, const double* chassis) except -1
