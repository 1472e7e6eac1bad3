"""The one tick: newer settings are polled, the algorithm runs, its cue fades and is limited, an output's stages follow.

The emitter, a bound stepper, a relay and ``motioncue.h`` all call these functions.  `Batch` does the same steps in the
same order for many rigs in lanes; offline, `Algorithm.process`, `CueLimits.process` and `OutputChain.process` do each
step for all ticks, bit for bit the same.

Settings are designed in the thread that changes them and put into the mailbox by one atomic exchange; they replace
older ones that no tick has taken yet.  A tick takes them by another exchange, unless an earlier change is still under way.
From then on the new algorithm runs beside the current one, with its state if that keeps its meaning, else from rest, and
for a fade the cue goes from the one to the other by a smooth weight, whose first and second derivatives vanish at both
ends.  So whatever the new algorithm does first hardly counts, and the cue has neither a step nor a corner, whatever has
changed.  An algorithm that eases its own settings goes on alone instead.
"""

from libc.math cimport fabs, isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from motioncue.core.interfaces cimport AHEAD, Algorithm, Calls, mc_flush_denormals, mc_restore_fpu, step_algorithm
from motioncue.core.records cimport CHANNELS, CUE_ONLY, MOVING, Actuation, Cue, Motion
from motioncue.core.threads cimport mc_load
from motioncue.engine.along cimport Kept, Recalled
from motioncue.frames.intake cimport Tuned, TunedSlot, tuned_write
from motioncue.output.actuation cimport Chain, actuate, chain_reset
from motioncue.platforms.actuators cimport ActuatorParams, Actuators
from motioncue.safety.limiter cimport CueLimits, LimitSet, keep_turning, lean_cue, limit_cue, limits_rest


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
    Tuned tuned             # what the tick that uses these passes on to the receiver; a duration of 0: nothing
    int64_t number          # number of settings posted before these
    Kept* recalled          # what an earlier session felt along the way; NULL: nothing
    const ActuatorParams* platform      # its actuators have to follow a fade, moved from here or by a controller of its
                            # own; NULL: not known
    double fade_ticks       # enough for a fade from any pose of it


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


ctypedef struct EnvelopeState:
    Cue good                # the last finite cue, before the fade
    Cue unfaded             # cue of the last tick, before fade and limits
    Cue before              # and of the tick before that


ctypedef struct Envelope:       # what an engine puts around an algorithm in a tick
    EnvelopeState* state
    bint begin              # the algorithm starts from rest at this tick
    bint neutral            # the fade is at neutral: nothing is cued
    bint frozen             # the algorithm does not run: the last finite cue goes on
    bint broken             # set by the tick: the algorithm's cue was NaN or infinite
    double weight           # share of the cue that is sent, 0 to 1


cdef inline bint possible(const Motion* m) noexcept nogil:
    """Say whether no channel is NaN or far beyond any vehicle, so that no algorithm gets infinite."""
    return (
        m.surge * m.surge + m.sway * m.sway + m.heave * m.heave + m.roll * m.roll + m.pitch * m.pitch + m.yaw * m.yaw
        + m.roll_rate * m.roll_rate + m.pitch_rate * m.pitch_rate + m.yaw_rate * m.yaw_rate
    ) <= 1e12       # false for NaN


cdef inline bint finite(const Cue* c) noexcept nogil:
    """Say whether every channel that moves the platform is finite, and the sum of their magnitudes too."""
    cdef const double* channels = <const double*>c
    cdef double total = 0.0
    cdef int i
    for i in range(MOVING):
        total += fabs(channels[i])
    for i in range(CUE_ONLY, CHANNELS):
        total += fabs(channels[i])
    return isfinite(total)


cdef inline void run_algorithm(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Fill `cue` with the algorithm's cue for this motion, in a fade with a share of that of before."""
    step_algorithm(&c.now.algorithm, c.now.coeffs, motion, cue)
    if c.busy:
        crossfade(c, motion, cue)


cdef inline void rest_algorithm(CueingState* c) noexcept nogil:
    """Do a tick in which the algorithm does not run, so that there is nothing to fade."""
    if c.busy:
        retune_finish(c)


cdef inline void begin_algorithm(CueingState* c) noexcept nogil:
    """Start the algorithm from rest, and end any fade."""
    c.now.algorithm.reset(c.now.algorithm.state)
    if c.overlap:
        c.next.algorithm.reset(c.next.algorithm.state)
        c.overlap = 1
    rest_algorithm(c)


cdef inline void run_in_envelope(CueingState* c, Envelope* e, const Motion* motion, Cue* cue) noexcept nogil:
    """Fill `cue` as `run_algorithm` does, faded by the weight, with the last finite cue where there is no better one."""
    cdef double* channels = <double*>cue
    cdef int i
    if e.begin:             # from rest, without memory of an earlier drive
        begin_algorithm(c)
        memset(e.state, 0, sizeof(EnvelopeState))
    if e.neutral:
        rest_algorithm(c)
        memset(cue, 0, sizeof(Cue))
        cue.speed = 0.0 * motion.speed              # NaN stays NaN
        cue.engine_speed = 0.0 * motion.engine_speed
        return
    if e.frozen:
        rest_algorithm(c)
    else:
        run_algorithm(c, motion, cue)
        if finite(cue):
            e.state.good = cue[0]
        else:
            e.broken = True
    cue[0] = e.state.good
    lean_cue(c.now.limits, channels)    # before the fade: half of pi is no lean, half its lean is 0
    if e.weight != 1.0 and not e.begin:
        keep_turning(channels, &e.state.unfaded)
    e.state.before = e.state.unfaded
    e.state.unfaded = cue[0]
    if e.weight != 1.0:     # a weight of 1 keeps every bit
        for i in range(CHANNELS):
            channels[i] *= e.weight


cdef inline void cueing_tick(CueingState* c, Envelope* e, const Motion* motion, Cue* cue) noexcept nogil:
    """Do the tick behind `retune_poll`: fill `cue` but for its time; without an envelope (NULL) at full weight."""
    if e == NULL:
        run_algorithm(c, motion, cue)
    else:
        run_in_envelope(c, e, motion, cue)
    limit_cue(c.now.limits, <double*>cue)
    if c.busy:
        retune_commit(c, cue)


cdef inline const Actuation* cueing_actuate(
    CueingState* c, int output, const Cue* cue, bint parked=False
) noexcept nogil:
    """Do a tick's last step: fill and return the actuation of an output, from which its packets are encoded."""
    actuate(c.now.chains[output], cue, c.now.algorithm.attitude, parked)
    return &c.now.chains[output].actuation


cdef inline bint cueing_follow(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Do one tick on a thread that flushes denormals; return False, and change nothing, if the motion is refused."""
    if not possible(motion):
        return False
    retune_poll(c)
    cueing_tick(c, NULL, motion, cue)
    cue.time = motion.time
    return True


cdef inline bint cueing_step(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Do one tick on any thread; return False, and change nothing, if the motion is refused."""
    cdef uint64_t fpu = mc_flush_denormals()
    cdef bint taken = cueing_follow(c, motion, cue)
    mc_restore_fpu(fpu)
    return taken


cdef inline void cueing_look(CueingState* c, const Motion* ahead, bint weighed) noexcept nogil:
    """Tell the algorithm what the car will do, AHEAD rows, for the next tick; one that does not plan takes no notice."""
    if c.now.algorithm.look != NULL:
        c.now.algorithm.look(c.now.algorithm.state, c.now.coeffs, ahead, weighed)
    if c.overlap and c.next.algorithm.state != c.now.algorithm.state and c.next.algorithm.look != NULL:
        c.next.algorithm.look(c.next.algorithm.state, c.next.coeffs, ahead, weighed)
    if c.position < 1.0 and c.before.algorithm.look != NULL:
        c.before.algorithm.look(c.before.algorithm.state, c.before.coeffs, ahead, weighed)


cdef inline void cueing_preview(
    CueingState* c, const Motion* now, const Motion* ahead, double shift, const double* times, bint weighed
) noexcept nogil:
    """Tell the algorithm what is said that the car will do from a frame on, `shift` after it [s]."""
    cdef Motion rows[AHEAD]
    cdef const double* before
    cdef const double* after
    cdef double share, time
    cdef int i, k, node
    for i in range(AHEAD):
        time = times[i] + shift
        node = 0
        while node < AHEAD - 1 and times[node] < time:
            node += 1
        before, share = <const double*>now, 0.0
        if node > 0:
            before, share = <const double*>&ahead[node - 1], times[node - 1]
        after = <const double*>&ahead[node]
        share = (time - share) / (times[node] - share)
        share = 0.0 if share < 0.0 else (1.0 if share > 1.0 else share)
        for k in range(MOVING):
            (<double*>&rows[i])[k] = before[k] + share * (after[k] - before[k])
    cueing_look(c, rows, weighed)


cdef inline void cueing_reset(CueingState* c) noexcept nogil:
    """Start from rest, with the limits and all stages at neutral (actuators where they are parked, if they are), at the
    next step."""
    cdef int i
    begin_algorithm(c)
    limits_rest(c.now.limits)
    for i in range(c.now.outputs):
        chain_reset(c.now.chains[i])


cdef inline void pass_to_receiver(const CueingState* c, TunedSlot* slot) noexcept nogil:
    """Pass what the receiver uses of the settings in force to it; call it at the tick in which they came into force."""
    if c.now.tuned.move_s > 0.0:
        tuned_write(slot, &c.now.tuned)


cdef class Settings:
    cdef Design design
    cdef readonly Algorithm algorithm
    cdef readonly CueLimits limits
    cdef readonly tuple chains
    cdef Chain* _chains[OUTPUTS]
    cdef readonly object profile
    cdef readonly Recalled recalled
    cdef Actuators _platform
    cdef readonly int64_t period_ns
    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1
    cdef bint read_chassis(self, const double* chassis) except -1


cdef class Cueing:
    cdef CueingState state
    cdef const Motion* _motion      # what the car does, for outputs that send it; NULL if nobody says
    cdef const double* _weight      # the share of it that is sent; NULL: all, unless the platform is parked
    cdef const double* _feedback    # where the actuators are as the platform replies; NULL or all 0: it does not
    cdef list _kept         # settings that the ticks may still use, oldest first
    cdef int64_t _posted
    cdef const double* _chassis     # what wheels, suspension and cab do; NULL if nobody says
    cdef int post(self, Settings settings) except -1
    cdef bint read_chassis(self, const double* chassis) except -1
    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1
