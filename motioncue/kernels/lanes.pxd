"""Loops over several ticks or several rigs side by side, chosen once for this processor."""

from libc.stdint cimport int64_t

from motioncue.kernels.algorithm cimport run_function
from motioncue.kernels.beside cimport beside_tick


ctypedef void (*pass_function)(const double* cues, double* actuations, int64_t n) noexcept nogil


ctypedef struct Machine:
    const char* name
    int lanes
    run_function run        # many ticks of one washout, as Calls.run
    run_function tick       # one tick of many classical washouts, as Lanes.tick
    run_function tick_adaptive
    run_function tick_optimal
    beside_tick limit       # one tick of a block's limits and of its actuators, see calm.h
    beside_tick drive
    pass_function pass_on   # copy the cues of n rigs into their actuations


cdef Machine chosen()
