"""Bases of cueing algorithms and of the stages behind them; the loops over lanes for this processor."""

from libc.string cimport memset

import numpy as np

from motioncue.core.channels import CUE_DTYPE

__all__ = ["Algorithm", "Direct", "Stage", "choose_machine", "machines"]


cdef dict _structures = {}


cdef int64_t structure_number(tuple structure):
    """Return a number for an algorithm's name and whatever else fixes the meaning of its state."""
    return _structures.setdefault(structure, len(_structures) + 1)


cdef class Algorithm:
    """Base of the cueing algorithms: motion in, cue out, one tick at a time.

    Attributes
    ----------
    latency_s : float
        How much later than the motion the cue is [s], not counting the phase of the algorithm's filters.
    counts : dict of int
        What it counts while it runs; most count nothing.
    eases : bool
        Whether it eases changed settings itself, so that it goes on alone; false at first: for a fade, it runs beside
        the algorithm that it replaces.

    Notes
    -----
    A subclass fills the function table.  Loops without the GIL call those functions; Python calls the methods here.
    """

    @property
    def latency_s(self):
        """How much later than the motion the cue is [s], not counting the phase of the algorithm's filters."""
        return 0.0

    @property
    def counts(self):
        """What an algorithm counts while it runs, by name; most count nothing."""
        return {}

    def continues(self, Algorithm other not None):
        """Say whether this algorithm can continue from the state of another one."""
        return continues(&self.calls, &other.calls)

    def reset(self):
        """Forget the past; the next step starts from rest."""
        self.calls.reset(self.calls.state)

    def step(self, const Motion[::1] motion not None, Cue[::1] cue not None):
        """Do one tick.

        Real time: does not allocate; keeps the GIL.
        """
        if motion.shape[0] != 1 or cue.shape[0] != 1:
            raise ValueError(f"step: found shapes ({motion.shape[0]},) and ({cue.shape[0]},), allowed is (1,)")
        cdef uint64_t fpu = mc_flush_denormals()
        step_algorithm(&self.calls, self.calls.coeffs, &motion[0], &cue[0])
        mc_restore_fpu(fpu)
        cue[0].time = motion[0].time

    @property
    def sees_ahead(self):
        """Whether it makes use of a preview."""
        return self.calls.look != NULL

    def process(self, const Motion[::1] motion not None, out=None, ahead=None):
        """Do one tick per row, bit-identical to as many calls of `step`.

        State is kept between calls, so any chunking gives the same bits.  Real time: releases the GIL.
        """
        cdef Py_ssize_t i, n = motion.shape[0]
        cdef const Motion[:, ::1] seen
        cdef bint sees = ahead is not None and self.calls.look != NULL
        if ahead is not None:
            seen = ahead
            if seen.shape[0] != n or seen.shape[1] != AHEAD:
                raise ValueError(f"ahead: found shape ({seen.shape[0]}, {seen.shape[1]}), allowed is ({n}, {AHEAD})")
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
            if self.calls.run != NULL and n > 0 and not sees:
                self.calls.run(self.calls.state, self.calls.coeffs, &motion[0], &cue[0], n)
            else:
                for i in range(n):
                    if sees:
                        self.calls.look(self.calls.state, self.calls.coeffs, &seen[i, 0], False)
                    step_algorithm(&self.calls, self.calls.coeffs, &motion[i], &cue[i])
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
    """Pass the body-frame motion through as the cue, for platforms that do their own washout, as DK does.

    Memoryless, no latency.  The displacement channels are 0.
    """

    def __cinit__(self):
        self.calls.step = direct_step
        self.calls.reset = direct_reset
        self.calls.structure = structure_number(("direct",))


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

    cdef LaneLayout lane_layout(self):
        """Return how the stage is done in lanes; as it is here, it is not."""
        cdef LaneLayout it
        memset(&it, 0, sizeof(it))
        it.step, it.state, it.coeffs = self.calls.step, self.calls.state, self.calls.coeffs
        return it

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """From now on read there what the car does, the weight of the fade (NULL: the stage fades when parked), and where
        the actuators are as the platform replies (all 0: it does not).

        A stage that needs the cue alone reads none, so that a tick costs nothing for it.
        """
        return 0

    cdef bint read_chassis(self, const double* chassis) except -1:
        """From now on read there what wheels, suspension and cab do (NaN: unknown); return whether the stage does."""
        return False


cdef extern from "motioncue/core/lanes.h" nogil:
    ctypedef struct mc_Machine:
        const char* name
        int lanes
        int index
    int mc_machines(mc_Machine* out)


cdef mc_Machine supported[3]
cdef int count = mc_machines(supported)
cdef int choice = 0


cdef Machine chosen_machine():
    """Return the loops that new algorithms and rigs will use."""
    cdef mc_Machine* m = &supported[choice]
    return Machine(m.name, m.lanes, m.index)


def machines():
    """Return the kinds of machine whose loops this processor can run, the best first."""
    return [supported[i].name.decode() for i in range(count)]


def choose_machine(str name):
    """Choose the loops for algorithms and rigs that are made from now on; all kinds give the same bits."""
    global choice
    choice = machines().index(name)
