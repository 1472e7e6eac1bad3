"""The interface between a cueing algorithm and the loops that run it: functions, coefficients and a state.

`design` computes the coefficients from the settings; a step only reads them.  The state is what one step passes to the
next.  They are separate structs, so that settings can change while the state is kept.
"""

from libc.stdint cimport int64_t, uint64_t

from motioncue.kernels.records cimport Cue, Motion
from motioncue.kernels.rotation cimport Turn


cdef extern from "motioncue/kernels/fpu.h" nogil:
    uint64_t mc_flush_denormals()
    void mc_restore_fpu(uint64_t before)


cdef enum:
    AHEAD = 7              # rows of a preview


ctypedef void (*step_function)(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil
ctypedef void (*look_function)(void* state, const void* coeffs, const Motion* ahead) noexcept nogil
ctypedef void (*reset_function)(void* state) noexcept nogil
# Corner frequencies on their way to those of new settings; `way` is memory of the algorithm.  Both return the
# coefficients for the next tick: those of the settings at the end of the way.
ctypedef const void* (*depart_function)(void* way, const void* before, double pace) noexcept nogil
ctypedef const void* (*advance_function)(void* way, void* state, bint whole) noexcept nogil
ctypedef void (*run_function)(void* state, const void* coeffs, const void* motion, void* cue, int64_t n) noexcept nogil


ctypedef struct Calls:
    step_function step      # one tick: no allocation, no GIL, cannot fail; leaves cue.time alone
    look_function look      # optional, before a step: what the car will do, AHEAD rows, NaN if not known
    reset_function reset    # forget the past; the next step starts from rest
    run_function run        # optional batch form of `step` for n rows, bit-identical; NULL if not implemented
    const void* coeffs      # coefficients and state are owned by the subclass
    void* state
    int64_t state_bytes
    int64_t structure       # a state may continue under other coefficients with the same number; 0: only under its own
    double firmness[6]      # acceleration per displacement from neutral, by degree of freedom [1/s^2]; 0: there is a way
    void* way               # optional: lets corner frequencies move instead of jump, if the state goes on; else NULL
    depart_function depart  # leave from where `before`, another way, is now; NULL: be at the settings' own at once
    advance_function advance    # move a tick further, or the `whole` rest, and adapt the state to that
    const Turn* attitude    # newest roll, pitch and yaw with sine and cosine, kept in the state; NULL if it has none


ctypedef struct Lanes:      # optional form of `step` for several rigs side by side, bit-identical
    int lanes               # rigs in a block; 0 if not implemented
    int coeffs_count        # doubles in the coefficients, which hold nothing else
    int state_count         # doubles in the state, which holds nothing else
    run_function tick       # one tick of n rigs; coefficients and states come in blocks of `lanes` rigs


cdef enum:
    FIRMER = 4              # most by which firmness rises while a state goes on: a frequency twice as high


cdef inline bint far_firmer(const double* firmness, const double* before) noexcept nogil:
    """Say whether a state that is used to the firmness of before would ring."""
    cdef int i
    for i in range(6):
        if firmness[i] > FIRMER * before[i]:
            return True
    return False


cdef inline bint continues(const Calls* a, const Calls* b) noexcept nogil:
    """Say whether `a` can go on with the state of `b`."""
    if a.structure == 0 or a.structure != b.structure or a.state_bytes != b.state_bytes:
        return False
    return not far_firmer(a.firmness, b.firmness)


cdef int64_t structure_number(tuple structure)


cdef class Algorithm:
    cdef Calls calls
    cdef Lanes lanes
