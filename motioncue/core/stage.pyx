"""The base of the stages between the cue and what an output is sent."""

from libc.string cimport memset

__all__ = ["Stage"]


cdef class Stage:
    """Base of the actuation stages: each changes an actuation once a tick.

    Attributes
    ----------
    fills : tuple of str
        The channels that this stage adds to those of the cue.

    Notes
    -----
    A subclass fills the function table.  A stage belongs to one chain, because it has only one state.
    """

    fills = ()

    def shares(self):
        """Return the share of ticks in which each of its bounds acted, by name; empty if it has none."""
        return {}

    cdef Beside beside(self):
        """Return what `Batch` needs of the stage; as it is here, without a form for rigs side by side."""
        cdef Beside it
        memset(&it, 0, sizeof(it))
        it.step, it.state, it.coeffs = self.calls.step, self.calls.state, self.calls.coeffs
        return it
