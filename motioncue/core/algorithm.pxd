"""The interface between a cueing algorithm and the loops that run it: functions, coefficients and a state.

`design` computes the coefficients from the settings; a step only reads them.  The state is what one step passes to the
next.  They are separate structs, so that settings can change while the state is kept.
"""

from libc.stdint cimport int64_t, uint64_t

from motioncue.core.records cimport Cue, Motion
from motioncue.core.rotation cimport Turn


cdef extern from "motioncue/core/fpu.h" nogil:
    uint64_t mc_flush_denormals()
    void mc_restore_fpu(uint64_t before)


cdef struct Calls


cdef enum:
    AHEAD = 7              # rows of a preview

ctypedef void (*step_function)(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil
ctypedef void (*look_function)(void* state, const void* coeffs, const Motion* ahead) noexcept nogil
ctypedef void (*reset_function)(void* state) noexcept nogil
# Begin with the state of an algorithm of the same structure; then move on to coefficients of one's own, or be there at
# once (`whole`).  Both return the coefficients for the next tick.
ctypedef const void* (*take_function)(const Calls* own, const Calls* before) noexcept nogil
ctypedef const void* (*settle_function)(const Calls* own, bint whole) noexcept nogil
ctypedef void (*run_function)(void* state, const void* coeffs, const void* motion, void* cue, int64_t n) noexcept nogil


cdef struct Calls:
    step_function step      # one tick: no allocation, no GIL, cannot fail; leaves cue.time alone
    look_function look      # optional, before a step: what the car will do, AHEAD rows, NaN if not known
    reset_function reset    # forget the past; the next step starts from rest
    run_function run        # optional batch form of `step` for n rows, bit-identical; NULL if not implemented
    const void* coeffs      # coefficients and state are owned by the subclass
    void* state
    int64_t state_bytes
    int64_t structure       # a state may continue under other coefficients with the same number; 0: only under its own
    take_function take      # begins with a state under other settings; NULL: with a copy of it
    settle_function settle  # called at each tick after a `take` that returned other coefficients than `coeffs`
    void* eased             # memory of the algorithm for such coefficients, or NULL
    const Turn* attitude    # newest roll, pitch and yaw with sine and cosine, kept in the state; NULL if it has none


ctypedef struct Lanes:      # optional form of `step` for several rigs side by side, bit-identical
    int lanes               # rigs in a block; 0 if not implemented
    int coeffs_count        # doubles in the coefficients, which hold nothing else
    int state_count         # doubles in the state, which holds nothing else
    run_function tick       # one tick of n rigs; coefficients and states come in blocks of `lanes` rigs


cdef inline bint continues(const Calls* a, const Calls* b) noexcept nogil:
    """Say whether `a` can go on with the state of `b`."""
    return a.structure != 0 and a.structure == b.structure and a.state_bytes == b.state_bytes


cdef int64_t structure_number(tuple structure)


cdef class Algorithm:
    cdef Calls calls
    cdef Lanes lanes
    cdef public bint eases
