"""From the cue to what one output is sent: a chain of stages, each with its own coefficients and state.

All outputs share one cue.  Each output copies it into its own actuation; the stages of its chain then change channels
of the actuation or fill its actuator channels, and the output's packets are encoded from the result.
"""

from motioncue.kernels.beside cimport Beside, stage_step
from motioncue.kernels.records cimport Actuation, Cue
from motioncue.kernels.rotation cimport Turn
from motioncue.kernels.supervisor cimport ENGAGING, OFFLINE, PARKING, RUNNING, STATES


ctypedef void (*stage_reset)(void* state) noexcept nogil
ctypedef bint (*stage_at_rest)(const void* state) noexcept nogil
ctypedef void (*stage_take)(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil

ctypedef void (*stage_hurry)(void* state, double pace) noexcept nogil


ctypedef struct StageCalls:
    stage_step step         # one tick: no allocation, no GIL, cannot fail; `attitude` as in algorithm.pxd, or NULL;
                            # `parked` while the platform is to rest
    stage_reset reset       # return to rest at neutral; NULL if the stage has no state
    stage_at_rest at_rest   # whether the channels it fills rest at neutral; NULL if they do whenever the cue does
    const void* coeffs      # coefficients and state are owned by the subclass
    void* state
    stage_take take         # continue from the state of a stage of the same kind under its own coefficients; what differs
                            # vanishes along a fade of this pace [1/tick]; NULL if the stage has no state
    stage_at_rest rises     # whether it still rises from where the platform is parked; NULL if it never does
    stage_hurry hurry       # sink at least at this pace [1/tick] from now on; NULL if it does not sink


cdef enum:
    STAGES = 4


ctypedef struct Chain:
    StageCalls stages[STAGES]
    int count
    Actuation actuation     # the newest tick's


cdef inline void actuate(Chain* c, const Cue* cue, const Turn* attitude, bint parked=False) noexcept nogil:
    """Do one tick: fill the actuation from the cue; `parked` while the platform is to rest."""
    cdef StageCalls* stage
    cdef int i
    c.actuation.cue = cue[0]
    for i in range(c.count):
        stage = &c.stages[i]
        stage.step(stage.state, stage.coeffs, attitude, parked, &c.actuation)


cdef inline void chain_reset(Chain* c) noexcept nogil:
    """Forget the past: the next tick starts from rest at neutral."""
    cdef int i
    for i in range(c.count):
        if c.stages[i].reset != NULL:
            c.stages[i].reset(c.stages[i].state)


cdef inline bint chain_at_rest(const Chain* c) noexcept nogil:
    """Say whether every stage rests at neutral; the caller checks the cue itself."""
    cdef int i
    for i in range(c.count):
        if c.stages[i].at_rest != NULL and not c.stages[i].at_rest(c.stages[i].state):
            return False
    return True


cdef inline void chain_hurry(Chain* c, double pace) noexcept nogil:
    """Let the platform sink at least at this pace [1/tick] from now on."""
    cdef int i
    for i in range(c.count):
        if c.stages[i].hurry != NULL:
            c.stages[i].hurry(c.stages[i].state, pace)


cdef inline int chain_says(const Chain* c, int state) noexcept nogil:
    """Return the state that packets say: STATES while actuators rise to follow the cue, PARKING while they sink."""
    cdef int i
    if state == OFFLINE and not chain_at_rest(c):
        return PARKING
    for i in range(c.count):
        if (state == RUNNING or state == ENGAGING) and c.stages[i].rises != NULL and c.stages[i].rises(c.stages[i].state):
            return STATES
    return state


cdef inline void chain_take(Chain* c, const Chain* before, double pace) noexcept nogil:
    """Continue from the state of a chain of the same stages, whose coefficients may differ."""
    cdef StageCalls* stage
    cdef const StageCalls* old
    cdef int i
    if c == before:
        return
    c.actuation = before.actuation
    for i in range(c.count):
        stage = &c.stages[i]
        old = &before.stages[i]
        if stage.take != NULL:
            stage.take(stage.state, stage.coeffs, old.state, old.coeffs, pace)


cdef class Stage:
    cdef StageCalls calls
    cdef Beside beside(self)


cdef class OutputChain:
    cdef Chain chain
    cdef readonly tuple stages
