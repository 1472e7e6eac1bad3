"""What every cueing algorithm is to the loops that run it: two functions and a memory."""

from libc.stdint cimport uint64_t

from motioncue.kernels.records cimport Cue, Motion


cdef extern from "motioncue/kernels/fpu.h" nogil:
    uint64_t mc_flush_denormals()
    void mc_restore_fpu(uint64_t before)


ctypedef void (*step_function)(void* memory, const Motion* motion, Cue* cue) noexcept nogil
ctypedef void (*reset_function)(void* memory) noexcept nogil


ctypedef struct Calls:
    step_function step      # one tick: no allocation, no GIL, cannot fail; leaves cue.time alone
    reset_function reset    # forget the past; the next step starts from rest
    void* memory            # what both are called with; owned by the subclass


cdef class Algorithm:
    cdef Calls calls
