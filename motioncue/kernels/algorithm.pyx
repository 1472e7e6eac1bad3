"""The life that every cueing algorithm has: reset, step, process."""

import numpy as np

from motioncue.motion import CUE_DTYPE

__all__ = ["Algorithm", "Direct"]


cdef dict _structures = {}


cdef int64_t structure_number(tuple structure):
    """Return the number that stands for an algorithm's name and what else fixes the meaning of its state."""
    return _structures.setdefault(structure, len(_structures) + 1)


cdef class Algorithm:
    """Base of the cueing algorithms: motion in, cue out, one tick at a time.

    Attributes
    ----------
    latency_s : float
        How much later than the motion the cue is, beyond the phase of the algorithm's filters [s].

    Notes
    -----
    A subclass fills the function table; loops without the GIL call it there, Python calls the methods here.
    """

    @property
    def latency_s(self):
        """How much later than the motion the cue is, beyond the phase of the algorithm's filters [s]."""
        return 0.0

    def continues(self, Algorithm other not None):
        """Say whether this algorithm can go on with the state of another one.

        Parameters
        ----------
        other : Algorithm
            If its state has the same meaning, a change from it to this algorithm keeps the state; any other change
            starts from rest.
        """
        return continues(&self.calls, &other.calls)

    def reset(self):
        """Forget the past; the next step starts from rest."""
        self.calls.reset(self.calls.state)

    def step(self, const Motion[::1] motion not None, Cue[::1] cue not None):
        """Do one tick.

        Parameters
        ----------
        motion : ndarray of MOTION_DTYPE, shape (1,)
            What the vehicle does.
        cue : ndarray of CUE_DTYPE, shape (1,)
            Filled with what the platform is asked to do; its time is that of the motion.

        Raises
        ------
        ValueError
            If a shape is not (1,).

        Notes
        -----
        Real time: no allocation of its own; releases no lock.
        """
        if motion.shape[0] != 1 or cue.shape[0] != 1:
            raise ValueError(f"step: found shapes ({motion.shape[0]},) and ({cue.shape[0]},), allowed is (1,)")
        cdef uint64_t fpu = mc_flush_denormals()
        self.calls.step(self.calls.state, self.calls.coeffs, &motion[0], &cue[0])
        mc_restore_fpu(fpu)
        cue[0].time = motion[0].time

    def process(self, const Motion[::1] motion not None, out=None):
        """Do as many ticks as there are rows: the same bits as that many calls of `step`.

        Parameters
        ----------
        motion : ndarray of MOTION_DTYPE, shape (n,)
            What the vehicle does at each tick.
        out : ndarray of CUE_DTYPE, shape (n,), optional
            Filled and returned; allocated if not given.

        Returns
        -------
        ndarray of CUE_DTYPE, shape (n,)
            Times are those of the motion.

        Raises
        ------
        ValueError
            If `out` has another length, or shares memory with `motion`.

        Notes
        -----
        State is kept between calls, so any chunking gives the same bits.  Real time: releases the GIL.
        """
        cdef Py_ssize_t i, n = motion.shape[0]
        if out is None:
            out = np.zeros(n, dtype=CUE_DTYPE)
        cdef Cue[::1] cue = out
        cdef uint64_t fpu
        if cue.shape[0] != n:
            raise ValueError(f"out: found {cue.shape[0]} rows, allowed are {n}, as many as motion has")
        if np.may_share_memory(motion, out):
            raise ValueError("out: found memory of motion, allowed is an array of its own")
        with nogil:
            fpu = mc_flush_denormals()
            if self.calls.run != NULL and n > 0:
                self.calls.run(self.calls.state, self.calls.coeffs, &motion[0], &cue[0], n)
            else:
                for i in range(n):
                    self.calls.step(self.calls.state, self.calls.coeffs, &motion[i], &cue[i])
                    cue[i].time = motion[i].time
            mc_restore_fpu(fpu)
        return out


cdef void direct_step(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil:
    cue.surge = motion.surge
    cue.sway = motion.sway
    cue.heave = motion.heave
    cue.roll = motion.roll
    cue.pitch = motion.pitch
    cue.yaw = motion.yaw
    cue.roll_rate = motion.roll_rate
    cue.pitch_rate = motion.pitch_rate
    cue.yaw_rate = motion.yaw_rate
    cue.speed = motion.speed
    cue.engine_speed = motion.engine_speed
    cue.surge_displacement = 0.0
    cue.sway_displacement = 0.0
    cue.heave_displacement = 0.0


cdef void direct_reset(void* state) noexcept nogil:
    pass


cdef class Direct(Algorithm):
    """Body frame straight through: for platforms that do their own washout, as DK does.

    Notes
    -----
    Memoryless, no latency.  It asks for no displacement of its own: those channels are 0.
    """

    def __cinit__(self):
        self.calls.step = direct_step
        self.calls.reset = direct_reset
        self.calls.structure = structure_number(("direct",))
