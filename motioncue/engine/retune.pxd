"""Cueing whose settings change while it runs: passed through a mailbox, taken at a tick, joined smoothly.

Settings are designed in the thread that changes them and put into the mailbox by one atomic exchange; they replace
older ones that no tick has taken yet.  A tick takes them by another exchange, unless an earlier change is still under way.
From then on the new algorithm runs beside the current one, with its state if that keeps its meaning, else from rest, and
for a fade the cue goes from the one to the other by a smooth weight, whose first and second derivatives vanish at both
ends.  So whatever the new algorithm does first hardly counts, and the cue has neither a step nor a corner, whatever has
changed.  An algorithm that eases its own settings goes on alone instead.
"""

from libc.stdint cimport int64_t

from motioncue.core.interfaces cimport Algorithm, Calls
from motioncue.core.records cimport Cue, Motion
from motioncue.core.threads cimport mc_load
from motioncue.output.actuation cimport Chain
from motioncue.safety.limiter cimport CueLimits, LimitSet


cdef enum:
    OVERLAP = 3             # ticks from taking settings to using them: from the cues sent meanwhile, new limits begin
    OUTPUTS = 16


ctypedef struct Design:         # settings in the form that ticks use
    Calls algorithm
    const void* coeffs      # those of the next tick: the algorithm's own, or eased ones
    bint eases              # the algorithm eases a change of its settings itself, and goes on alone
    LimitSet* limits
    Chain** chains          # one per output: its stages after the limits
    int outputs
    double pace             # change of the position of a fade or a join in one tick
    double leave_pace       # that of a fade when the system ends the run [1/tick]
    double sink_pace        # and of the way down [1/tick]
    int64_t hold            # hold time [ns]
    int64_t engage          # time at neutral before the first fade [ns]
    int bridge              # how a tick interpolates between frames: a kind of bridge
    int64_t number          # number of settings posted before these


ctypedef struct CueingState:
    Design now              # in force
    Design next             # taken, and running beside `now`
    int overlap             # index of the tick in the overlap, from 1; 0 outside an overlap
    bint same               # in the overlap, both algorithms have given the same cues
    Cue sent[OVERLAP]       # cues sent in these ticks, oldest first
    Design before           # in a fade: settings whose algorithm still runs beside that of `now`
    double position         # position of the fade, 0 to 1; 1 is done
    double pace             # [1/tick]
    double apart[2]         # roll and yaw of `before` less those of `now`, beyond half a turn if they got there [rad]
    bint busy               # an overlap, a fade, or coefficients that are not yet the algorithm's own
    int64_t mail            # the mailbox: address of newer settings (a const Design*); 0 if there are none
    int64_t in_force        # number of `now`, for other threads to read
    int64_t oldest          # number of the oldest settings that the ticks use, likewise
    int64_t changes         # how often settings have come into force


cdef void retune_begin(CueingState* c) noexcept nogil
cdef void crossfade(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil
cdef void retune_commit(CueingState* c, const Cue* cue) noexcept nogil
cdef void retune_finish(CueingState* c) noexcept nogil


cdef inline void retune_poll(CueingState* c) noexcept nogil:
    """Begin a tick: take the settings in the mailbox, if any, unless a change is under way."""
    if mc_load(&c.mail) != 0 and c.overlap == 0 and c.position >= 1.0:
        retune_begin(c)


cdef class Settings:
    cdef Design design
    cdef readonly Algorithm algorithm
    cdef readonly CueLimits limits
    cdef readonly tuple chains
    cdef Chain* _chains[OUTPUTS]
    cdef readonly object profile
    cdef readonly int64_t period_ns


cdef class Cueing:
    cdef CueingState state
    cdef list _kept         # settings that the ticks may still use, oldest first
    cdef int64_t _posted
    cdef int post(self, Settings settings) except -1
