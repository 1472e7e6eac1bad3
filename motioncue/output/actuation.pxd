"""From the cue to what one output is sent: a chain of stages, each with its own coefficients and state.

All outputs share one cue.  Each output copies it into its own actuation; the stages of its chain then change channels
of the actuation or fill its actuator channels, and the output's packets are encoded from the result.
"""

from motioncue.core.blend cimport Fade
from motioncue.core.records cimport CHASSIS, Actuation, Cue, Motion
from motioncue.core.rotation cimport Turn
from motioncue.core.interfaces cimport Stage, StageCalls
from motioncue.safety.limiter cimport CueLimits, Limit, LimitSet
from motioncue.safety.supervisor cimport ENGAGING, OFFLINE, PARKING, RUNNING, STATES


cdef enum:
    STAGES = 6
    RISING = STATES     # what packets call the state while actuators rise, beside the supervisor's states


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


cdef inline void chain_stand(Chain* c, const double* positions, bint found) noexcept nogil:
    """Let the actuators stay where the platform stands for the next tick; `found` there, they begin there."""
    cdef int i
    for i in range(c.count):
        if c.stages[i].stand != NULL:
            c.stages[i].stand(c.stages[i].state, c.stages[i].coeffs, positions, found)


cdef inline int reported_state(const Chain* c, int state) noexcept nogil:
    """Return the state that packets report: RISING while actuators rise to follow the cue, PARKING while they sink."""
    cdef int i
    if state == OFFLINE and not chain_at_rest(c):
        return PARKING
    for i in range(c.count):
        if (state == RUNNING or state == ENGAGING) and c.stages[i].rises != NULL and c.stages[i].rises(c.stages[i].state):
            return RISING
    return state


cdef inline void chain_continue(Chain* c, const Chain* before, double pace) noexcept nogil:
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
        if stage.continue_from != NULL:
            stage.continue_from(stage.state, stage.coeffs, old.state, old.coeffs, pace)


ctypedef struct CarState:
    const Motion* motion    # NULL: there is none
    const double* weight    # share that is sent, 0 to 1; NULL: by `fade`
    Fade fade               # goes to neutral while the platform is parked
    bint begun
    Cue newest              # the newest channels that are numbers, before the fade
    LimitSet* limits        # of channels of the car, in the places that a cue has for those of the same names


cdef class CarMotion(Stage):
    cdef readonly CueLimits limits
    cdef CarState _state


cdef enum:
    SECTIONS = 4            # second-order sections of the tactile signal's low-pass


ctypedef struct Section:
    double b[3]             # numerator
    double a[2]             # denominator, its first coefficient 1 left out
    double z[2]             # state, transposed direct form 2


ctypedef struct Tactile:        # see ChassisMotion
    double dt               # of a tick [s]
    double road             # of the mean suspension velocity [s/m]
    double engine           # share of the engine
    double order            # firings per turn of the engine
    double most             # what the filters may be given, so that they never make more than 1 of it
    double pass_up          # of the high-pass [1/tick]
    double slow             # its state: what is slower than it
    double phase            # of the firing, 0 to 1 of a period
    double travel[4]        # suspension travel at the tick before [m]
    Section sections[SECTIONS]


ctypedef struct ChassisState:
    const double* chassis   # what wheels, suspension and cab do, NaN where unknown; NULL: nobody says
    const Motion* motion    # NULL: there is none
    const double* weight    # share that is sent, 0 to 1; NULL: by `fade`
    Fade fade               # goes to neutral while the platform is parked
    bint begun
    int count               # number of channels that are sent
    int places[CHASSIS]     # which
    double newest[CHASSIS]  # the newest values that are numbers, before the fade
    Fade shown[CHASSIS]     # brings in what is said for the first time in the middle of a run
    Limit limits[CHASSIS]
    Limit wanted[CHASSIS]   # newer bounds, which wait until what is sent can keep them
    bint waits[CHASSIS]
    bint shakes             # the tactile signal is sent
    bint lifts              # the corners of the platform follow the wheels
    double lift_gain        # [m/m]
    Limit lift_limits[4]    # on what each wheel adds [m]
    Limit lift_wanted[4]    # newer ones, which follow from bounds of the posts and wait likewise
    bint lift_waits[4]
    double lift_pass        # of the high-pass [1/tick]
    double lift_slow[4]     # its states: what of each wheel's travel is slower [m]
    double lift_plane[3][4] # heave [m/m], roll and pitch [rad/m] by the height of each corner
    Tactile tactile


cdef class ChassisMotion(Stage):
    cdef ChassisState _state


cdef class OutputChain:
    cdef Chain chain
    cdef readonly tuple stages
    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1
    cdef bint read_chassis(self, const double* chassis) except -1
