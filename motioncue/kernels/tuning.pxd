"""Cueing whose settings change while it runs: left in a mailbox, taken at a tick, joined to what was sent before.

Whoever changes settings designs them elsewhere and leaves them in the mailbox with one atomic exchange; newer ones replace
older ones that no tick has taken.  A tick takes them with another exchange.  For three ticks the algorithm that they
ask for then runs beside the one in force, with its state if that keeps its meaning, from rest if not.  So the difference of
the two cues is known, and how it moves.  From the next tick on the new settings are in force, and that difference is
added to the cue and vanishes along a fade.  What is sent has no step, whatever has changed.
"""

from libc.stdint cimport int64_t, uintptr_t

from motioncue.kernels.algorithm cimport Algorithm, Calls
from motioncue.kernels.fade cimport Vanishing
from motioncue.kernels.limiter cimport CueLimits, LimitSet, limit_cue, limits_rest
from motioncue.kernels.records cimport CHANNELS, Cue, Motion
from motioncue.kernels.slot cimport mc_load


cdef enum:
    OVERLAP = 3             # ticks that both algorithms run: two slopes, which have to agree


ctypedef struct Design:         # settings as the ticks use them
    Calls algorithm
    LimitSet* limits
    double pace             # of a fade and of a join, the part of it that is a tick
    int64_t hold            # how long a motion is held [ns]
    int bridge              # what a tick makes of the frames before it
    int64_t number          # how many settings were posted before these


ctypedef struct CueingState:
    Design now              # in force
    Design next             # taken, and running beside it
    int overlap             # which of the ticks with both this is, from 1; 0 if there are none
    int compared            # how many of them in a row gave two cues
    double apart[OVERLAP][CHANNELS]   # by how much the cue of `now` exceeded that of `next`
    Cue sent[OVERLAP]       # in these ticks, oldest first
    Vanishing joins[CHANNELS] # what is still added to the cue
    double position         # of that, 0 to 1; 1 is done
    double pace             # [1/tick]
    bint busy               # there is an overlap or a join
    int64_t mail            # where newer settings wait (a const Design*); 0 if there are none
    int64_t in_force        # number of `now`, for other threads
    int64_t changes         # how often settings have come into force


cdef void cueing_open(CueingState* c) noexcept nogil
cdef void cueing_compare(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil
cdef void cueing_sent(CueingState* c, const Cue* cue) noexcept nogil


cdef inline void cueing_take(CueingState* c) noexcept nogil:
    """Begin a tick: take the settings in the mailbox, if there are any."""
    if mc_load(&c.mail) != 0 and c.overlap == 0:
        cueing_open(c)


cdef inline void cueing_run(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Fill `cue` with what the algorithm makes of the motion, joined to what it was before a change."""
    c.now.algorithm.step(c.now.algorithm.state, c.now.algorithm.coeffs, motion, cue)
    if c.busy:
        cueing_compare(c, motion, cue)


cdef inline void cueing_rest(CueingState* c) noexcept nogil:
    """Do a tick in which the algorithm does not run: there is nothing to join."""
    if c.busy:
        c.compared = 0
        c.position = 1.0


cdef inline void cueing_limit(CueingState* c, Cue* cue) noexcept nogil:
    """End a tick: limit what is sent."""
    limit_cue(c.now.limits, <double*>cue)
    if c.busy:
        cueing_sent(c, cue)


cdef inline void cueing_begin(CueingState* c) noexcept nogil:
    """Let the algorithm start from rest, with no memory of what was."""
    c.now.algorithm.reset(c.now.algorithm.state)
    if c.overlap:
        c.next.algorithm.reset(c.next.algorithm.state)
        c.overlap = 1
    cueing_rest(c)


cdef class Settings:
    cdef Design design
    cdef readonly Algorithm algorithm
    cdef readonly CueLimits limits
    cdef readonly object profile
    cdef readonly int64_t period_ns


cdef class Cueing:
    cdef CueingState state
    cdef list _kept         # settings that the ticks may still use, oldest first
    cdef int64_t _posted
    cdef int post(self, Settings settings) except -1
