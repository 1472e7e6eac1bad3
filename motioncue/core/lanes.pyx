"""The choice of the loops over lanes for this processor."""

__all__ = ["choose", "machines"]


cdef extern from "motioncue/core/lanes.h" nogil:
    ctypedef struct mc_Machine:
        const char* name
        int lanes
        int index
    int mc_machines(mc_Machine* out)


cdef mc_Machine known[3]
cdef int count = mc_machines(known)
cdef int choice = 0


cdef Machine chosen():
    """Return the loops that new algorithms and rigs will use."""
    cdef mc_Machine* m = &known[choice]
    return Machine(m.name, m.lanes, m.index)


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
