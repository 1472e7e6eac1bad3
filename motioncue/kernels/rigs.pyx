"""Many washouts in one call, laid out so that a tick does several of them at once."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memset

from motioncue.kernels.algorithm cimport mc_flush_denormals, mc_restore_fpu
from motioncue.kernels.lanes cimport chosen
from motioncue.kernels.limiter cimport CueLimits, LimiterState, limit_cue
from motioncue.kernels.washout cimport WASHOUT_SIZE, ClassicalWashout, Washout

from operator import index

import numpy as np

from motioncue.motion import CUE_DTYPE

__all__ = ["Washouts"]

cdef enum:
    ALIGNMENT = 64                                      # of the widest lanes [bytes]


cdef class Washouts:
    """Classical washouts that are stepped together, each with its own coefficients and state.

    Parameters
    ----------
    washouts : sequence of ClassicalWashout
        One a rig; their coefficients and states are copied.
    limits : sequence of CueLimits, optional
        One a rig: what its cues keep.  Not copied; nobody else may use them.

    Raises
    ------
    ValueError
        If there is no washout, or not as many limits.
    TypeError
        If they are something else.

    Notes
    -----
    Bit for bit what each washout would do by itself.  Blocks hold 8 rigs with AVX-512, 4 with AVX2, 2 elsewhere; a
    block that is not full costs as much as a full one.
    """

    def __init__(self, washouts, limits=()):
        cdef int64_t i, blocks
        cdef ClassicalWashout washout
        washouts, limits = list(washouts), list(limits)
        if not washouts:
            raise ValueError("washouts: found none, allowed is one or more")
        for name, kind, members in (("washouts", ClassicalWashout, washouts), ("limits", CueLimits, limits)):
            for member in members:
                if not isinstance(member, kind):
                    raise TypeError(f"{name}: found {member!r}, allowed are objects of {kind.__name__}")
        self.alive = limits
        if limits and len(limits) != len(washouts):
            raise ValueError(f"limits: found {len(limits)}, allowed are {len(washouts)}, one a rig")
        self.machine = chosen()
        self.n = len(washouts)
        blocks = (self.n + self.machine.lanes - 1) // self.machine.lanes
        self.memory = np.zeros(blocks * self.machine.lanes * WASHOUT_SIZE + ALIGNMENT // sizeof(double))
        self.blocks = &self.memory[0] + (-<uintptr_t>&self.memory[0] % ALIGNMENT) // sizeof(double)
        for i in range(blocks * self.machine.lanes):
            washout = washouts[min(i, self.n - 1)]      # lanes that are left over do as the last rig
            self.store(i, &washout.washout)
        self.reset_one = washout.calls.reset
        self.limits = NULL
        if any([(<CueLimits>kept).set.count for kept in self.alive]):
            self.owned = np.array([<uintptr_t>&(<CueLimits>kept).set for kept in self.alive], dtype=np.uintp)
            self.limits = <LimitSet**>&self.owned[0]
        self.motion_array = self.cue_array = self       # which nobody can mean

    def __len__(self):
        """Return how many rigs there are."""
        return self.n

    cdef double* place(self, int64_t rig) noexcept nogil:
        """Return where a rig's first double is; the others follow at the distance of a block's lanes."""
        cdef int lanes = self.machine.lanes
        return self.blocks + rig // lanes * lanes * WASHOUT_SIZE + rig % lanes

    cdef void store(self, int64_t rig, const Washout* washout) noexcept nogil:
        cdef int k
        for k in range(WASHOUT_SIZE):
            self.place(rig)[k * self.machine.lanes] = (<const double*>washout)[k]

    def reset(self, rigs=None):
        """Forget the past; the next step starts from rest.

        Parameters
        ----------
        rigs : sequence of int, optional
            Which; all if not given.

        Raises
        ------
        IndexError
            If there is no such rig; then none is reset.
        TypeError
            If one is no whole number, such as those of a mask.
        """
        cdef Washout washout
        cdef int64_t i
        cdef int k
        which = range(self.n) if rigs is None else [index(rig) for rig in rigs]
        for rig in which:
            if not 0 <= rig < self.n:
                raise IndexError(f"rigs: found {rig}, allowed are 0 to {self.n - 1}")
        for i in which:
            for k in range(WASHOUT_SIZE):
                (<double*>&washout)[k] = self.place(i)[k * self.machine.lanes]
            self.reset_one(&washout)
            self.store(i, &washout)
            for k in range(self.limits[i].count if self.limits != NULL else 0):
                memset(&self.limits[i].limits[k].state, 0, sizeof(LimiterState))

    cdef void tick(self, const Motion* motion, Cue* cue) noexcept nogil:
        cdef int64_t i
        self.machine.tick(self.blocks, motion, cue, self.n)
        if self.limits != NULL:
            for i in range(self.n):
                limit_cue(self.limits[i], <double*>&cue[i])

    cdef int bind(self, motion, cue) except -1:
        """Look at arrays that were not given last time; they stay looked at, and alive, until others are given."""
        if motion is None or cue is None:
            raise TypeError("step: found None, allowed are arrays")
        cdef const Motion[::1] motions = motion
        cdef Cue[::1] cues = cue
        if self.n == 0 or motions.shape[0] != self.n or cues.shape[0] != self.n:     # 0: never made
            raise ValueError(f"step: found shapes ({motions.shape[0]},) and ({cues.shape[0]},), allowed is ({self.n},)")
        if np.may_share_memory(motion, cue):
            raise ValueError("step: found motion and cue in the same memory, allowed are arrays of their own")
        self.motion, self.cue = motions, cues
        self.motion_array, self.cue_array = motion, cue
        return 0

    def step(self, motion, cue):
        """Do one tick of every rig.

        Parameters
        ----------
        motion : ndarray of MOTION_DTYPE, shape (n,)
            What each rig's vehicle does.
        cue : ndarray of CUE_DTYPE, shape (n,)
            Filled with what each platform is asked to do; its time is that of the motion.

        Raises
        ------
        ValueError
            If an array has another dtype or shape, or both share memory.
        TypeError
            If there is no array.

        Notes
        -----
        Real time: no allocation, if the arrays are those of the call before; others are looked at first (about 2 µs).
        Releases no lock.
        """
        cdef uint64_t fpu
        if motion is not self.motion_array or cue is not self.cue_array:
            self.bind(motion, cue)
        fpu = mc_flush_denormals()
        self.tick(&self.motion[0], &self.cue[0])
        mc_restore_fpu(fpu)

    def process(self, const Motion[:, ::1] motion not None, out=None):
        """Do as many ticks as there are rows: the same bits as that many calls of `step`.

        Parameters
        ----------
        motion : ndarray of MOTION_DTYPE, shape (ticks, n)
            What the vehicles do at each tick.
        out : ndarray of CUE_DTYPE, shape (ticks, n), optional
            Filled and returned; allocated if not given.

        Returns
        -------
        ndarray of CUE_DTYPE, shape (ticks, n)
            Times are those of the motion.

        Raises
        ------
        ValueError
            If an array has another dtype or shape, or both share memory.

        Notes
        -----
        Real time: releases the GIL.
        """
        cdef Py_ssize_t i, ticks = motion.shape[0]
        cdef uint64_t fpu
        if out is None:
            out = np.zeros((ticks, self.n), dtype=CUE_DTYPE)
        cdef Cue[:, ::1] cue = out
        if self.n == 0 or motion.shape[1] != self.n or cue.shape[0] != ticks or cue.shape[1] != self.n:
            raise ValueError(
                f"process: found shapes ({ticks}, {motion.shape[1]}) and ({cue.shape[0]}, {cue.shape[1]}), "
                f"allowed is (ticks, {self.n})"
            )
        if np.may_share_memory(motion, out):
            raise ValueError("process: found motion and out in the same memory, allowed are arrays of their own")
        with nogil:
            fpu = mc_flush_denormals()
            for i in range(ticks):
                self.tick(&motion[i, 0], &cue[i, 0])
            mc_restore_fpu(fpu)
        return out
