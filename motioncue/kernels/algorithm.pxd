"""What every cueing algorithm is to the loops that run it: two functions and a memory."""

from libc.stdint cimport int64_t, uint64_t

from motioncue.kernels.records cimport Cue, Motion
from motioncue.kernels.rotation cimport Turn


cdef extern from "motioncue/kernels/fpu.h" nogil:
    uint64_t mc_flush_denormals()
    void mc_restore_fpu(uint64_t before)


ctypedef void (*step_function)(void* memory, const Motion* motion, Cue* cue) noexcept nogil
ctypedef void (*reset_function)(void* memory) noexcept nogil
ctypedef void (*run_function)(void* memory, const void* motion, void* cue, int64_t n) noexcept nogil


ctypedef struct Calls:
    step_function step      # one tick: no allocation, no GIL, cannot fail; leaves cue.time alone
    reset_function reset    # forget the past; the next step starts from rest
    void* memory            # what they are called with; owned by the subclass
    run_function run        # `n` steps, each with its time: the same bits, sooner; NULL if there is no such thing
    const Turn* attitude    # roll, pitch, yaw of the newest cue with their sines, for who needs them too; NULL if unknown


cdef class Algorithm:
    cdef Calls calls
