"""The stages that every output can have, and the chain that holds an output's stages."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

import numpy as np

from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport Cue
from motioncue.core.rotation cimport up_vector

from motioncue.core.channels import ACTUATION_DTYPE

__all__ = ["OutputChain", "UpVector"]


cdef void up_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    up_vector(attitude, actuation.cue.roll, actuation.cue.pitch, actuation.cue.yaw, &actuation.up_east)


cdef class UpVector(Stage):
    """The attitude as the body's up axis in world axes: ``up_east``, ``up_north``, ``up_up``.

    Notes
    -----
    Memoryless, no latency.
    """

    fills = ("up_east", "up_north", "up_up")

    def __cinit__(self):
        self.calls = StageCalls(up_step, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)


cdef class OutputChain:
    """The stages of one output, applied in the order given.

    Notes
    -----
    Actuation channels that no stage fills are 0.
    Real time: a tick does not allocate, needs no GIL and cannot fail.
    """

    def __cinit__(self, stages=()):
        cdef Stage stage
        memset(&self.chain, 0, sizeof(Chain))
        self.stages = tuple(stages)
        if len(self.stages) > STAGES:
            raise ValueError(f"stages: found {len(self.stages)}, allowed are {STAGES}")
        for each in self.stages:
            if not isinstance(each, Stage):
                raise TypeError(f"stages: found {each!r}, allowed are objects of Stage")
            stage = each
            self.chain.stages[self.chain.count] = stage.calls
            self.chain.count += 1

    @property
    def fills(self):
        """The channels that its stages add to those of the cue."""
        return tuple(name for stage in self.stages for name in stage.fills)

    def reset(self):
        """Forget the past; the next tick starts from rest at neutral."""
        chain_reset(&self.chain)

    def process(self, const Cue[::1] cue not None):
        """Return what the output is sent for these cues, one tick a row; states carry over between calls."""
        cdef Py_ssize_t i
        out = np.zeros(cue.shape[0], dtype=ACTUATION_DTYPE)
        cdef Actuation[::1] rows = out
        cdef uint64_t fpu
        with nogil:
            fpu = mc_flush_denormals()
            for i in range(cue.shape[0]):
                actuate(&self.chain, &cue[i], NULL)
                rows[i] = self.chain.actuation
            mc_restore_fpu(fpu)
        return out
