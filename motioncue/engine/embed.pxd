"""A profile's cueing in a program's own loop: packages in, one step, packets out.

Controllers call it from Python through `Stepper` and `Relay`, from Cython through `cueing_step` on a stepper's
`cueing`, from C through ``motioncue/motioncue.h``.
"""

from libc.stdint cimport int64_t, uint64_t

from motioncue.core.clock cimport Clock, Time
from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport Actuation, Cue, Motion
from motioncue.engine.retune cimport Cueing, CueingState, cueing_begin, cueing_limit, cueing_run, cueing_take
from motioncue.frames.intake cimport Intake, IntakeState
from motioncue.output.actuation cimport chain_reset
from motioncue.safety.limiter cimport limits_rest


ctypedef struct FeederState:
    IntakeState* intake
    Time time               # gives the arrival times
    int64_t ended           # packages are dropped
    int64_t busy            # a thread is feeding
    int64_t turned_away     # packages dropped because another thread was feeding
    bint begun              # the session has begun


cdef bint feeder_take(FeederState* f, const void* package, Py_ssize_t size) noexcept nogil


cdef class Feeder:
    cdef FeederState feeder
    cdef Intake _intake
    cdef Clock _clock


cdef inline bint possible(const Motion* m) noexcept nogil:
    """Say whether no channel is NaN or far beyond any vehicle, so that no algorithm gets infinite."""
    return (
        m.surge * m.surge + m.sway * m.sway + m.heave * m.heave + m.roll * m.roll + m.pitch * m.pitch + m.yaw * m.yaw
        + m.roll_rate * m.roll_rate + m.pitch_rate * m.pitch_rate + m.yaw_rate * m.yaw_rate
    ) <= 1e12       # false for NaN


cdef inline bint cueing_tick(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Do one tick on a thread that flushes denormals; return False, and change nothing, if the motion is refused."""
    if not possible(motion):
        return False
    cueing_take(c)
    cueing_run(c, motion, cue)
    cueing_limit(c, cue)
    cue.time = motion.time
    return True


cdef inline void cueing_look(CueingState* c, const Motion* ahead) noexcept nogil:
    """Tell the algorithm what the car will do, AHEAD rows, for the next tick; one that does not plan takes no notice."""
    if c.now.algorithm.look != NULL:
        c.now.algorithm.look(c.now.algorithm.state, c.now.coeffs, ahead)
    if c.overlap and c.next.algorithm.state != c.now.algorithm.state and c.next.algorithm.look != NULL:
        c.next.algorithm.look(c.next.algorithm.state, c.next.coeffs, ahead)
    if c.position < 1.0 and c.before.algorithm.look != NULL:
        c.before.algorithm.look(c.before.algorithm.state, c.before.coeffs, ahead)


cdef inline bint cueing_step(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Do one tick on any thread; return False, and change nothing, if the motion is refused."""
    cdef uint64_t fpu = mc_flush_denormals()
    cdef bint taken = cueing_tick(c, motion, cue)
    mc_restore_fpu(fpu)
    return taken


cdef inline void cueing_reset(CueingState* c) noexcept nogil:
    """Start from rest, with the limits and all stages at neutral (actuators where they are parked, if they are), at the
    next step."""
    cdef int i
    cueing_begin(c)
    limits_rest(c.now.limits)
    for i in range(c.now.outputs):
        chain_reset(c.now.chains[i])


cdef class Stepper:
    cdef CueingState* cueing
    cdef Cueing _cueing         # owns `cueing`
    cdef object _tune
    cdef const Motion* _in      # into the bound arrays, as are the next three
    cdef Cue* _out
    cdef Actuation* _filled     # NULL if no actuation is bound
    cdef const Motion* _seen    # NULL if no preview is bound
    cdef readonly object motion
    cdef readonly object cue
    cdef readonly object actuation
    cdef readonly object ahead
    cdef readonly int64_t period_ns
    cdef public bint parked
    cdef tuple _alive           # owns the memory behind the pointers
