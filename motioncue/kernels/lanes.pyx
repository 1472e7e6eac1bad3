"""The choice of the loops over lanes for this processor."""

from libc.stdint cimport int64_t

__all__ = ["choose", "machines"]


cdef extern from "motioncue/kernels/lanes.h" nogil:
    ctypedef struct mc_Machine:
        const char* name
        int lanes
        run_function run
        run_function tick
        run_function tick_adaptive
        run_function tick_optimal
        beside_tick limit
        beside_tick drive
        pass_function pass_on
    int mc_machines(mc_Machine* out)


cdef mc_Machine known[3]
cdef int count = mc_machines(known)
cdef int choice = 0


cdef Machine chosen():
    """Return the loops that new algorithms and rigs will use."""
    cdef mc_Machine* m = &known[choice]
    return Machine(m.name, m.lanes, m.run, m.tick, m.tick_adaptive, m.tick_optimal, m.limit, m.drive, m.pass_on)


def machines():
    """Return the kinds of machine whose loops this processor can run, the best first.

    Returns
    -------
    list of str
        From "avx512" (8 lanes), "avx2" (4) and "any" (2, or 1 if the compiler has no vectors).
    """
    return [known[i].name.decode() for i in range(count)]


def choose(str name):
    """Choose the loops for algorithms and rigs that are made from now on; all kinds give the same bits.

    Parameters
    ----------
    name : str
        One of `machines`; the first one is the default.

    Raises
    ------
    ValueError
        If this processor cannot run that kind.
    """
    global choice
    choice = machines().index(name)
