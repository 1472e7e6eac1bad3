"""Loops that do several ticks, or several rigs, side by side: chosen once for the processor this runs on."""

from libc.stdint cimport int64_t

from motioncue.kernels.algorithm cimport run_function


ctypedef struct Machine:
    const char* name
    int lanes
    run_function run        # ticks of a washout, as Calls.run
    run_function tick       # one tick of rigs, `lanes` of them in a block


cdef Machine chosen()
