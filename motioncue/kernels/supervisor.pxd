"""When the platform may move: a state machine that is one table (in the pyx), stepped once a tick."""

from libc.stdint cimport int64_t

from motioncue.kernels.fade cimport Fade
from motioncue.kernels.records cimport Motion, Publication


cpdef enum State:
    """What the platform is allowed to do."""
    OFFLINE         # neutral, waiting
    ENGAGING        # fading in; the filters run from the first tick
    RUNNING         # the whole cue
    HOLDING         # the last motion, held
    PARKING         # fading to neutral from the last motion
    FAULT           # fading to neutral from the last good cue; stays until an operator engages
    STATES


cdef enum Condition:
    FAULTED = 1         # the cue is not a number
    RESET = 2           # an operator has engaged since the fault
    PARKED = 4          # an operator wants neutral
    HELD = 8            # an operator wants no change
    ENGAGED = 16        # an operator wants motion, and the run goes on
    BROKEN = 32         # the newest motion does not continue the one in use
    LOST = 64           # no new motion for longer than it is held
    OVERDUE = 128       # no new motion for three quarters of that time
    FRESH = 256         # none of the two
    AT_NEUTRAL = 512
    AT_CUE = 1024
    ENDED = 2048        # the end of the run wants neutral


ctypedef struct Rule:
    State state
    int conditions      # all of them
    State to
    int reason


cdef enum Operator:
    OPERATOR_WANTS_ENGAGE = 0
    OPERATOR_WANTS_HOLD
    OPERATOR_WANTS_PARK
    OPERATOR_WANTS_END
    ENGAGED_NOW = 8             # added to one of these in a tick: an operator has engaged since the tick before


ctypedef struct Supervisor:
    int64_t hold        # how long a motion is held [ns]
    State state
    Fade fade
    bint still              # nothing that is sent is on its way any more: the limits have let go
    bint have_input
    Publication input   # the newest
    Motion motion       # the one in use
    int64_t epoch       # of the one in use
    bint faulted        # set by the tick whose cue was not a number
    bint reset          # set by an operator who engages
    int64_t wanted      # an Operator


ctypedef struct Step:
    double weight       # of the cue, 0 to 1
    bint begin          # the algorithm starts from rest at this tick
    bint moved          # the state has changed
    State before
    int reason          # why
    double value        # what was measured,
    double limit        # and what was allowed


cdef void supervise(Supervisor* s, int64_t deadline, Step* step) noexcept nogil
