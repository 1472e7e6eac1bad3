"""Which of the loops over lanes runs on this processor."""

from libc.stdint cimport int64_t

__all__ = ["choose", "machines"]


cdef extern from "motioncue/kernels/lanes.h" nogil:
    ctypedef struct mc_Machine:
        const char* name
        int lanes
        run_function run
        run_function tick
    int mc_machines(mc_Machine* out)


cdef mc_Machine known[3]
cdef int count = mc_machines(known)
cdef int choice = 0


cdef Machine chosen():
    """Return the loops that new algorithms and rigs are to use."""
    cdef mc_Machine* m = &known[choice]
    return Machine(m.name, m.lanes, m.run, m.tick)


def machines():
    """Return the names of the kinds of machine that this one is, the best first.

    Returns
    -------
    list of str
        Of "avx512" (8 lanes), "avx2" (4) and "any" (2, or 1 where the compiler knows no vectors).
    """
    return [known[i].name.decode() for i in range(count)]


def choose(str name):
    """Let what is made from now on use the loops of one kind of machine: all give the same bits.

    Parameters
    ----------
    name : str
        One of `machines`; the first is in use unless another is chosen.

    Raises
    ------
    ValueError
        If this processor is not of that kind.
    """
    global choice
    choice = machines().index(name)
