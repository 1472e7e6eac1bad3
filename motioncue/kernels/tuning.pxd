"""Cueing whose settings change while it runs: passed through a mailbox, taken at a tick, joined smoothly.

Settings are designed in the thread that changes them and put into the mailbox by one atomic exchange; they replace
older ones that no tick has taken yet.  A tick takes them by another exchange.  For three ticks the new algorithm then
runs beside the current one: with a copy of its state if that keeps its meaning, else from rest.  This gives the
difference between the two cues, with its slope and bend.  From the next tick on the new settings are in force, and the
difference is added to the cue and vanishes along a fade.  So the cue has no step, whatever has changed.

A state that goes on under a filter a thousand times as quick would ring, so corner frequencies do not jump: an
algorithm that knows a way leads them from those of before to its own, from the first tick of the overlap on.  Any other
starts from rest where its spring would be far firmer, also by many small changes within one fade.
"""

from libc.stdint cimport int64_t, uintptr_t

from motioncue.kernels.actuation cimport Chain, actuate
from motioncue.kernels.algorithm cimport Algorithm, Calls
from motioncue.kernels.fade cimport Vanishing
from motioncue.kernels.limiter cimport CueLimits, LimitSet, limit_cue, limits_rest
from motioncue.kernels.records cimport CHANNELS, Actuation, Cue, Motion
from motioncue.kernels.slot cimport mc_load


cdef enum:
    OVERLAP = 3             # ticks in which both algorithms run: they give two slopes, which have to agree
    OUTPUTS = 16


ctypedef struct Design:         # settings in the form that ticks use
    Calls algorithm
    const void* coeffs      # those of the next tick: the algorithm's own, or such on the way to them
    LimitSet* limits
    Chain** chains          # one per output: its stages after the limits
    int outputs
    double pace             # change of the position of a fade or a join in one tick
    int64_t hold            # hold time [ns]
    int64_t engage          # time at neutral before the first fade [ns]
    int bridge              # how a tick interpolates between frames: a kind of bridge
    int64_t number          # number of settings posted before these


ctypedef struct CueingState:
    Design now              # in force
    Design next             # taken, and running beside `now`
    int overlap             # index of the tick in the overlap, from 1; 0 outside an overlap
    int compared            # successive overlap ticks in which both algorithms ran
    double apart[OVERLAP][CHANNELS]   # cue of `now` less cue of `next`
    Cue sent[OVERLAP]       # cues sent in these ticks, oldest first
    Vanishing joins[CHANNELS] # remaining difference that is added to the cue
    double position         # position of the join, 0 to 1; 1 is done
    double pace             # [1/tick]
    double firmness[6]      # what the algorithm's state is used to: that from before the joins under way
    bint busy               # an overlap, a join or a way of corner frequencies is under way
    int64_t mail            # the mailbox: address of newer settings (a const Design*); 0 if there are none
    int64_t in_force        # number of `now`, for other threads to read
    int64_t changes         # how often settings have come into force


cdef void cueing_open(CueingState* c) noexcept nogil
cdef void cueing_compare(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil
cdef void cueing_sent(CueingState* c, const Cue* cue) noexcept nogil


cdef inline void advance(Design* d, bint whole) noexcept nogil:
    """Move corner frequencies that are on their way a tick further, or all the rest of it."""
    if d.coeffs != d.algorithm.coeffs:
        d.coeffs = d.algorithm.advance(d.algorithm.way, d.algorithm.state, whole)


cdef inline void cueing_take(CueingState* c) noexcept nogil:
    """Begin a tick: take the settings in the mailbox, if any."""
    if mc_load(&c.mail) != 0 and c.overlap == 0:
        cueing_open(c)


cdef inline void cueing_run(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Fill `cue` with the algorithm's cue for this motion, plus what remains of a join."""
    c.now.algorithm.step(c.now.algorithm.state, c.now.coeffs, motion, cue)
    if c.busy:
        cueing_compare(c, motion, cue)


cdef inline void cueing_rest(CueingState* c) noexcept nogil:
    """Do a tick in which the algorithm does not run, so that there is nothing to join."""
    if c.busy:
        c.compared = 0
        c.position = 1.0
        advance(&c.now, True)
        if c.overlap and c.next.algorithm.state != c.now.algorithm.state:
            advance(&c.next, True)


cdef inline void cueing_limit(CueingState* c, Cue* cue) noexcept nogil:
    """End a tick: limit the cue."""
    limit_cue(c.now.limits, <double*>cue)
    if c.busy:
        cueing_sent(c, cue)


cdef inline const Actuation* cueing_actuate(
    CueingState* c, int output, const Cue* cue, bint parked=False
) noexcept nogil:
    """Do a tick's last step: fill and return the actuation of an output, from which its packets are encoded."""
    actuate(c.now.chains[output], cue, c.now.algorithm.attitude, parked)
    return &c.now.chains[output].actuation


cdef inline void cueing_begin(CueingState* c) noexcept nogil:
    """Start the algorithm from rest, and end any join."""
    c.now.algorithm.reset(c.now.algorithm.state)
    if c.overlap:
        c.next.algorithm.reset(c.next.algorithm.state)
        c.overlap = 1
    cueing_rest(c)


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
