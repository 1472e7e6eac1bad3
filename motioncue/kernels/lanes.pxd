"""Loops over several ticks or several rigs side by side, chosen once for this processor."""

from motioncue.kernels.algorithm cimport run_function
from motioncue.kernels.beside cimport beside_tick


ctypedef struct Machine:
    const char* name
    int lanes
    run_function run        # many ticks of one washout, as Calls.run
    run_function tick       # one tick of many washouts, as Lanes.tick
    beside_tick limit       # one tick of a block's limits and of its actuators, see calm.h
    beside_tick drive


cdef Machine chosen()
