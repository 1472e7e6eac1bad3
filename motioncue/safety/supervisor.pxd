"""The supervisor decides when the platform may move: a state machine in one table (in the pyx), stepped once a tick."""

from libc.stdint cimport int64_t

from motioncue.core.blend cimport Fade
from motioncue.core.records cimport Motion, Publication


cpdef enum State:
    """What the platform is allowed to do."""
    OFFLINE         # neutral, waiting
    ENGAGING        # fading in; the filters run from the first tick
    RUNNING         # the whole cue
    HOLDING         # the last motion, held
    PARKING         # fading to neutral from the last motion, held
    FAULT           # at neutral or fading to it from the last good cue; left only when an operator engages
    STATES


cdef enum Condition:
    FAULTED = 1         # the cue is NaN or infinite, or an output is lost
    RESET = 2           # an operator has engaged since the fault
    PARKED = 4          # an operator has requested park
    HELD = 8            # an operator has requested hold
    ENGAGED = 16        # an operator has requested engage, and the run has not been ended
    BROKEN = 32         # the newest motion does not continue the one in use
    LOST = 64           # no new motion for longer than the hold time
    OVERDUE = 128       # no new motion for three quarters of the hold time
    FRESH = 256         # the input is neither LOST nor OVERDUE, and somebody listens
    AT_NEUTRAL = 512
    AT_CUE = 1024
    ENDED = 2048        # the end of the run requires neutral
    READY = 4096        # the platform would follow, or says nothing about it
    NOBODY = 8192       # nobody listens at the platform's endpoint any more


ctypedef struct Rule:
    State state
    int conditions      # flags that must all be set
    State to
    int reason


cdef enum Operator:
    OPERATOR_WANTS_ENGAGE = 0
    OPERATOR_WANTS_HOLD
    OPERATOR_WANTS_PARK
    OPERATOR_WANTS_END
    OPERATOR_WANTS_LEAVE        # the end, at rest within the time that the system leaves
    ENGAGED_NOW = 8             # flag added to one of these in a tick: an operator has engaged since the tick before
    OUTPUT_LOST_NOW = 16        # likewise: an output is lost


cpdef enum Platform:
    """What a tick is told about the platform: flags added to its operation, none if nothing is wrong."""
    UNREADY = 32        # it would not follow, or has said nothing yet
    UNENGAGED = 64      # it does not follow yet
    FAULTY = 128
    STOPPED = 256       # its emergency stop is pressed
    SILENT = 512        # a reply has stayed away for longer than its table allows
    STANDS = 1024       # it does not follow, and says where its actuators are: they are asked to be there
    FOUND = 2048        # nothing has been sent to it yet: what is sent begins there
    UNHEARD = 4096      # nobody has listened for longer than the hold time, or until just now
    PLATFORM = 8160     # all of them


ctypedef struct Supervisor:
    int64_t hold        # hold time [ns]
    int64_t engage      # time at neutral between offline and the fade [ns]
    int64_t ready       # until when it lasts [ns]
    State state
    Fade fade
    bint still              # whether what is sent is at rest, the limiters included
    bint have_input
    Publication input   # the newest publication
    Motion motion       # the motion in use
    int64_t epoch       # epoch of the motion in use
    bint faulted        # set by a tick whose cue was NaN or infinite
    bint unsent         # an output is lost
    int64_t unsent_for  # for how long it has taken nothing [ns]
    bint reset          # set when an operator engages
    int64_t wanted      # the operator's request: an Operator
    int64_t platform    # what it says about itself: flags of Platform


ctypedef struct Step:
    double weight       # weight of the cue, 0 to 1
    bint waiting        # the platform engages at neutral
    bint begin          # the algorithm starts from rest at this tick
    bint moved          # the state has changed
    State before
    int reason          # reason of the transition
    double value        # the measured value
    double limit        # and the largest one allowed


cdef inline bint wants_neutral(const Supervisor* s) noexcept nogil:
    """Say whether the weight is to be 0, or to go there."""
    return s.state != ENGAGING and s.state != RUNNING and s.state != HOLDING


cdef void supervise(Supervisor* s, int64_t deadline, Step* step) noexcept nogil
cdef void fade(Supervisor* s, Step* step) noexcept nogil
