"""What every cueing algorithm is to the loops that run it: functions, coefficients and a state.

The coefficients are what `design` made of the settings; a step only reads them.  The state is what a step leaves for
the next one.  They are separate, so that settings can change while the state goes on.
"""

from libc.stdint cimport int64_t, uint64_t

from motioncue.kernels.records cimport Cue, Motion
from motioncue.kernels.rotation cimport Turn


cdef extern from "motioncue/kernels/fpu.h" nogil:
    uint64_t mc_flush_denormals()
    void mc_restore_fpu(uint64_t before)


ctypedef void (*step_function)(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil
ctypedef void (*reset_function)(void* state) noexcept nogil
ctypedef void (*run_function)(void* state, const void* coeffs, const void* motion, void* cue, int64_t n) noexcept nogil


ctypedef struct Calls:
    step_function step      # one tick: no allocation, no GIL, cannot fail; leaves cue.time alone
    reset_function reset    # forget the past; the next step starts from rest
    run_function run        # optional batch form of `step` for n rows, bit-identical; NULL if not implemented
    const void* coeffs      # both are owned by the subclass
    void* state
    int64_t state_bytes
    int64_t structure       # a state can go on under any coefficients of the same number; 0 under its own only
    const Turn* attitude    # roll, pitch, yaw of the newest cue with sine and cosine, in the state; NULL if not there


ctypedef struct Lanes:      # an optional form of `step` for several rigs side by side, bit-identical
    int lanes               # 0 if there is none
    int coeffs_count        # doubles in the coefficients, and
    int state_count         # in the state: both hold nothing else
    run_function tick       # one tick of n rigs, their coefficients and states in blocks of `lanes` rigs


cdef inline bint continues(const Calls* a, const Calls* b) noexcept nogil:
    """Say whether `a` can go on with the state of `b`."""
    return a.structure != 0 and a.structure == b.structure and a.state_bytes == b.state_bytes


cdef int64_t structure_number(tuple structure)


cdef class Algorithm:
    cdef Calls calls
    cdef Lanes lanes
