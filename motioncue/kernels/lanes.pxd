"""The washout's loops over several ticks or several rigs side by side, chosen once for this processor."""

from motioncue.kernels.algorithm cimport run_function


ctypedef struct Machine:
    const char* name
    int lanes
    run_function run        # many ticks of one washout, as Calls.run
    run_function tick       # one tick of many washouts, as Lanes.tick


cdef Machine chosen()
