"""The stages that every output can have, and the chain that holds an output's stages."""

from libc.math cimport fabs
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from motioncue.core.blend cimport fade_step
from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport CAR, MOVING, Cue, Motion
from motioncue.core.rotation cimport Turn, up_vector
from motioncue.safety.limiter cimport at_neutral, keep_turning, lean_cue, limit_cue, limits_continue, limits_rest

import numpy as np

from motioncue.core.channels import ACTUATION_DTYPE
from motioncue.core.channels import CAR as CAR_CHANNELS

__all__ = ["CarMotion", "OutputChain", "UpVector"]

cdef double LARGEST = 1e6       # in the channel's unit: what is beyond is no motion of a car


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


cdef void car_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    cdef CarState* s = <CarState*>state
    cdef const double* motion = <const double*>s.motion
    cdef double* newest = <double*>&s.newest
    cdef double* car = &actuation.car_surge
    cdef double weight
    cdef int i
    memset(car, 0, CAR * sizeof(double))
    if motion == NULL:
        return
    if not s.begun:
        s.begun = True
        s.fade.position = 0.0 if parked else 1.0
    weight = fade_step(&s.fade, not parked) if s.weight == NULL else s.weight[0]
    for i in range(CAR):
        if fabs(motion[i]) <= LARGEST:      # false for NaN
            car[i] = motion[i]
        elif i < MOVING:                    # a source may lack only speeds; they are 0 then
            car[i] = newest[i]
    lean_cue(s.limits, car)     # before the fade, as for the cue
    if weight != 1.0:
        keep_turning(car, &s.newest)
    memcpy(newest, car, CAR * sizeof(double))
    if weight != 1.0:
        for i in range(CAR):
            car[i] *= weight
    limit_cue(s.limits, car)


cdef void car_reset(void* state) noexcept nogil:
    cdef CarState* s = <CarState*>state
    limits_rest(s.limits)
    memset(&s.newest, 0, sizeof(Cue))
    s.begun = False


cdef bint car_at_rest(const void* state) noexcept nogil:
    return at_neutral((<const CarState*>state).limits)


cdef void car_continue(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil:
    cdef CarState* s = <CarState*>state
    cdef const CarState* before = <const CarState*>before_state
    cdef Cue sent[3]        # read only for channels that had no bounds, and all have
    memset(sent, 0, sizeof(sent))
    s.fade, s.newest, s.begun = before.fade, before.newest, before.begun
    s.fade.pace = pace
    limits_continue(s.limits, before.limits, sent, pace)


cdef class CarMotion(Stage):
    """The car's own motion for one output: ``car_surge`` and so on, faded as the cue is, each channel within bounds.

    Parameters
    ----------
    limits : CueLimits
        Bounds on all channels that a motion and a cue have in common.
    pace : float
        That of the fade while the platform is parked, if nobody says how much of the motion is sent [1/tick].

    Notes
    -----
    A channel that is no number keeps its value; a speed that the source does not have is 0.
    Real time: a step does not allocate, needs no GIL and cannot fail.
    """

    fills = tuple([channel.name for channel in CAR_CHANNELS])

    def __cinit__(self, CueLimits limits not None, double pace):
        if limits.set.count != CAR:
            raise ValueError(f"limits: found {limits.set.count} channels, allowed are all {<int>CAR}")
        self.limits = limits
        memset(&self._state, 0, sizeof(CarState))
        self._state.limits, self._state.fade.pace = &limits.set, pace
        self.calls = StageCalls(car_step, car_reset, car_at_rest, NULL, &self._state, car_continue, NULL, NULL, NULL)

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """From now on read there what the car does, and the weight of the fade."""
        self._state.motion, self._state.weight = motion, weight
        return 0

    def shares(self):
        """Return the share of ticks in which each channel was limited."""
        return {f"car_{name}": share for name, share in self.limits.shares().items()}


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

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """Let the stages that need it read there what the car does, and the weight of the fade."""
        cdef Stage stage
        for stage in self.stages:
            stage.read_motion(motion, weight, feedback)
        return 0

    def process(self, const Cue[::1] cue not None, const Motion[::1] motion=None, const double[::1] weight=None):
        """Return what the output is sent for these cues, one tick a row; states carry over between calls.

        Stages that send the car's own motion read it from `motion`, and the share of it from `weight`; without the first
        they send none, without the other all.
        """
        cdef Py_ssize_t i
        cdef Motion now
        cdef double share = 1.0
        out = np.zeros(cue.shape[0], dtype=ACTUATION_DTYPE)
        if motion is not None and motion.shape[0] != cue.shape[0]:
            raise ValueError(f"motion: found {motion.shape[0]} rows, allowed are {cue.shape[0]}, as many as cues")
        if weight is not None and weight.shape[0] != cue.shape[0]:
            raise ValueError(f"weight: found {weight.shape[0]} rows, allowed are {cue.shape[0]}, as many as cues")
        memset(&now, 0, sizeof(Motion))
        self.read_motion(NULL if motion is None else &now, NULL if weight is None else &share, NULL)
        cdef Actuation[::1] rows = out
        cdef uint64_t fpu
        with nogil:
            fpu = mc_flush_denormals()
            for i in range(cue.shape[0]):
                if motion is not None:
                    now = motion[i]
                if weight is not None:
                    share = weight[i]
                actuate(&self.chain, &cue[i], NULL)
                rows[i] = self.chain.actuation
            mc_restore_fpu(fpu)
        self.read_motion(NULL, NULL, NULL)
        return out
