"""Loops over several ticks or several rigs side by side, chosen once for this processor."""


ctypedef struct Machine:
    const char* name
    int lanes
    int index               # of its loops, in each table that a file of loops makes with MC_OF_MACHINES


cdef Machine chosen()
