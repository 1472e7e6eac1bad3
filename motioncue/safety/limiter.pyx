"""The limiter's cold functions, and the limiter over arrays."""

from libc.math cimport INFINITY, M_PI, NAN, fabs, isfinite, remainder
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from motioncue.core.interfaces cimport (
    Machine, Stage, StageCalls, lanes_tick, chosen_machine, mc_flush_denormals, mc_restore_fpu,
)
from motioncue.core.blend cimport blend_bend, blend_from, blend_rate, blend_step, heading
from motioncue.core.records cimport ROLL, YAW, Actuation, Cue
from motioncue.core.rotation cimport Turn
from motioncue.core.threads cimport mc_load

import numpy as np

from motioncue.core.channels import CUE_DTYPE, MOVERS
from motioncue.errors import ConfigError

__all__ = ["CueLimits", "Limiter", "OutputLimits"]


cdef extern from * nogil:
    """
    #define MC_OVER_LANES "motioncue/safety/limits.h"
    #include "motioncue/core/lanes.h"
    typedef char mc_all_limits_have_a_lane[(int)MC_LIMITED <= (int)MC_LIMITS_PADDED ? 1 : -1];
    
    static int64_t (*const mc_limit_rigs[])(const int *, const void *, const void *, void *, double *, int) =
        MC_OF_MACHINES(mc_limit_rigs);
    static int (*const mc_limit_channels[])(mc_IdleLimits *, const double *) = MC_OF_MACHINES(mc_limit_channels);
    """
    lanes_tick limit_rigs "mc_limit_rigs"[3]
    int (*pass_all "mc_limit_channels"[3])(IdleLimits* s, const double* cue) noexcept nogil


cdef double ANY_ANGLE = 1e9     # [rad] bound on the value of an axis that may turn all the way round
cdef double NO_BOUND = 1e250    # larger than any value



cdef double largest_jerk(
    const Bounds* b, const LimiterState* s, double sign, bint meet, double goal, double speed
) noexcept nogil:
    """Return the largest jerk along `sign` that keeps the bounds, or meets the input if `meet`; full brake if none
    does."""
    cdef double low = -b.jerk
    cdef double high = b.jerk
    cdef double j = high
    cdef int i
    for i in range(24):
        if meets_input(b, s, sign, goal, speed, sign * j) if meet else keeps_bounds(b, s, sign, sign * j):
            if i == 0:
                return high
            low = j
        else:
            high = j
        j = 0.5 * (low + high)
    return low


cdef double following_jerk(const Bounds* b, LimiterState* s, double goal, double speed) noexcept nogil:
    """Return the jerk that follows the input as closely as the bounds allow."""
    cdef double j = (goal - s.x) - s.v - s.a
    cdef double high = largest_jerk(b, s, 1.0, False, 0.0, 0.0)
    cdef double low = -largest_jerk(b, s, -1.0, False, 0.0, 0.0)
    cdef double meet
    if low > high:              # can happen only by rounding: brake away from the nearer bound
        if s.x > 0.0:
            low = high
        else:
            high = low
    speed = b.rate if speed > b.rate else (-b.rate if speed < -b.rate else speed)
    if s.x < goal:
        meet = largest_jerk(b, s, 1.0, True, goal, speed)
        high = low if meet < low else (meet if meet < high else high)
    elif s.x > goal:
        meet = -largest_jerk(b, s, -1.0, True, goal, speed)
        low = high if meet > high else (meet if meet > low else low)
    # Between `low` and `high` the acceleration keeps its bound too: each of them does on its side (`viable_above`).
    return high if j > high else (low if j < low else j)


cdef inline bint step_one(LimitSet* s, int i, double* value, bint easing) noexcept nogil:
    """Limit `value` in place; return whether it was changed.  Pass `easing` as a constant: it selects code at compile
    time."""
    cdef bint acted
    if not easing or not s.easings[i].on:
        return limiter_step(&s.limits[i], value)
    acted = limiter_eased(&s.limits[i], &s.easings[i], value)
    s.easing -= not s.easings[i].on
    return acted


cdef inline void limit_each(LimitSet* s, double* channels, bint easing) noexcept nogil:
    """Limit every bounded channel of a cue in place; `easing` says whether any channel may be easing."""
    cdef double* channel
    cdef double target
    cdef double wanted
    cdef int i
    for i in range(s.count):
        channel = &channels[s.channels[i]]
        if s.turns[i]:
            target = s.limits[i].state.target
            wanted = target + short_way(channel[0] - target)
            if step_one(s, i, &wanted, easing):
                channel[0] = wanted
                s.quiet = 0
                mc_count(&s.acted[i], 1)
            channel[0] = short_way(channel[0])
        elif s.leans[i]:
            channel[0] = lean(channel[0])
            if step_one(s, i, channel, easing):
                s.quiet = 0
                mc_count(&s.acted[i], 1)
        elif step_one(s, i, channel, easing):
            s.quiet = 0
            mc_count(&s.acted[i], 1)
    mc_count(&s.ticks, 1)


cdef void limit_apart(LimitSet* s, double* channels) noexcept nogil:
    """Limit each channel by itself; after some ticks in which no limit acts, they go on together."""
    limits_part(s)
    if s.easing:
        limit_each(s, channels, True)
        return
    limit_each(s, channels, False)
    s.quiet += 1
    if s.quiet > QUIET:
        limits_join(s)


# ---- all channels at once --------------------------------------------------------------------------------------------


cdef void limits_join(LimitSet* s) noexcept nogil:
    """Lay states and bounds side by side, if every output is its input; else try again after as many ticks."""
    cdef IdleLimits* all = s.together
    cdef const Limit* l
    cdef int i
    s.quiet = 0
    if s.easing or s.pass_all == NULL:
        return
    for i in range(s.count):
        if s.limits[i].state.limiting or s.limits[i].state.target != s.limits[i].state.x:
            return
    for i in range(16):         # what fills up the last lanes passes, and is never read
        l = &s.limits[i if i < s.count else 0]
        all.value[i] = l.margin.value if i < s.count else INFINITY
        all.rate[i] = l.margin.rate if i < s.count else INFINITY
        all.acceleration[i] = l.margin.acceleration if i < s.count else INFINITY
        all.jerk[i] = l.margin.jerk if i < s.count else INFINITY
        all.per_jerk[i] = l.margin.per_jerk if i < s.count else 0.0
        all.per_acceleration[i] = l.margin.per_acceleration if i < s.count else 0.0
        all.ramp[i] = l.margin.ramp if i < s.count else 0.0
        all.most[i] = INFINITY
        all.turns[i] = 0.0
        if i < s.count and s.turns[i]:
            all.most[i], all.turns[i] = M_PI, -0.0
        elif i < s.count and s.leans[i] and l.margin.value > 0.5 * M_PI:
            all.most[i] = 0.5 * M_PI
        all.states[0].x[i], all.states[0].v[i], all.states[0].a[i] = l.state.x, l.state.v, l.state.a
        all.channels[i] = s.channels[i if i < s.count else 0]
    memset(all.angles, 0, sizeof(all.angles))
    for i in range(16):
        if all.most[i] < INFINITY:
            all.angles[i // s.lanes] = True
    all.now, all.count = 0, s.count
    s.idle = s.count > 0


cdef void limits_part(LimitSet* s) noexcept nogil:
    """Take the states back to each channel."""
    cdef const IdleLimits* all = s.together
    cdef const IdleStates* at
    cdef int i
    if not s.idle:
        return
    for i in range(s.count):
        at = &all.states[all.now]
        s.limits[i].state = LimiterState(at.x[i], at.v[i], at.a[i], at.x[i], False)
    s.idle = False
    s.quiet = 0


# ---- bounds that change ----------------------------------------------------------------------------------------------


cdef inline bint viable(const Limit* l, const LimiterState* s) noexcept nogil:
    """Say whether the state is within the bounds, and can be braked within them on both sides."""
    cdef const Bounds* b = &l.plan
    if not (-b.value <= s.x <= b.value and -b.acceleration <= s.a <= b.acceleration):
        return False
    return viable_above(b, s.x, s.v, s.a) and viable_above(b, -s.x, -s.v, -s.a)


cdef inline bint same_state(const LimiterState* p, const LimiterState* q) noexcept nogil:
    return p.x == q.x and p.v == q.v and p.a == q.a


cdef inline void set_margin(Limit* l) noexcept nogil:
    """Compute what `clearly_viable` uses."""
    cdef const Bounds* p = &l.plan
    if p.stops_at_once:
        l.margin = Margin(p.value, p.rate, p.acceleration, l.hard.jerk, 0.0, 0.0, 0.0)
        return
    l.margin = Margin(
        p.value, p.rate, p.acceleration, l.hard.jerk, 0.5 / p.jerk, 0.5 / p.acceleration, 0.5 * p.acceleration / p.jerk
    )


cdef inline Bounds wider(const Bounds* a, const Bounds* b) noexcept nogil:
    """Return the wider bound of each kind.

    A state that can be braked within `a` or `b` can be braked within the result, unless that one needs more than a tick
    to stop where this one does not.
    """
    return Bounds(
        max(a.value, b.value),
        max(a.rate, b.rate),
        max(a.acceleration, b.acceleration),
        max(a.jerk, b.jerk),
        a.stops_at_once and b.stops_at_once,
    )


cdef inline void widen_bounds(Easing* e) noexcept nogil:
    """Let the second limiter have the wider bounds, once its state can be braked within them."""
    cdef Limit wide = e.wide
    wide.hard, wide.plan = e.hard, e.plan
    e.waits = not viable(&wide, &wide.state)
    if not e.waits:
        set_margin(&wide)
        e.wide = wide


cdef inline void bring_within(Limit* l) noexcept nogil:
    """Bring the state within its bounds, at rest if it was beyond the value or cannot be braked within them."""
    cdef LimiterState* s = &l.state
    if not viable(l, s):
        s.x = max(-l.plan.value, min(l.plan.value, s.x))
        s.v = s.a = 0.0


cdef inline void begin_at_input(Limit* l, double wanted, double before) noexcept nogil:
    """Begin where the input was `before` this tick and as fast as it is; at rest where the bounds allow neither."""
    l.state = LimiterState(before, wanted - before, 0.0, before, False)
    if not viable(l, &l.state):     # nor where it is not known
        l.state = LimiterState(max(-l.plan.value, min(l.plan.value, wanted)), 0.0, 0.0, wanted, False)


cdef inline bint begin_easing(
    Limit* l, Easing* e, const Limit* before, const Easing* was, bint another, double pace
) noexcept nogil:
    """Continue with the bounds of `l` from the state of `before`; return whether that takes an easing.

    The second limiter starts at what is sent.  The first one starts there too: now, or at the next input if the value
    was being limited or `another` quantity is limited from now on (a roll instead of its lean, or the reverse).
    """
    cdef double rate = 0.0
    cdef double bend = 0.0
    cdef bint again = was.on
    e.wide = was.wide if again else before[0]
    e.wide.state.target = e.wide.state.x    # its input begins at what is sent: that of before would say it jumps there
    l.state = before.state
    e.fresh = another or l.state.limiting
    # Below a right angle a roll is its own lean.
    e.before = NAN if another and not fabs(l.state.target) < 0.5 * M_PI else l.state.target
    if not again and not e.fresh and viable(l, &l.state):
        e.on = False
        return False
    if again and was.difference.position < 1.0:     # the difference keeps its rate, and how that changes
        rate = blend_rate(&was.difference) + l.state.v
        bend = blend_bend(&was.difference)
    elif not again:
        rate = heading(l.state.v, l.state.v - l.state.a)
    if not e.fresh:
        bring_within(l)
        rate -= l.state.v
    e.hard = wider(&was.hard if again else &before.hard, &l.hard)
    e.plan = wider(&was.plan if again else &before.plan, &l.plan)
    widen_bounds(e)
    e.difference = blend_from(e.wide.state.x - l.state.x, rate, bend, pace)
    e.on = True
    return True


cdef bint limiter_eased(Limit* l, Easing* e, double* value) noexcept nogil:
    """Limit `value` in place with both limiters; return whether it was changed.

    The easing ends when both limiters have the same state, or, a fade later, when what is sent can be braked within the
    new bounds alone: where a limiter meets its bound it may never come to rest to the last bit.
    """
    cdef double wanted = value[0]
    cdef double apart, rate, most
    if e.fresh:
        e.fresh = False
        begin_at_input(l, wanted, e.before)
        apart = e.wide.state.x - l.state.x
        # The slope of an input that jumps or is noisy says nothing of the next seconds: the way to the input is then no
        # faster than what is sent moves, or than a fade of that length is on average.
        rate = blend_rate(&e.difference)
        most = max(fabs(rate), fabs(apart) * e.difference.pace)
        rate = max(-most, min(most, rate - l.state.v))
        e.difference = blend_from(apart, rate, blend_bend(&e.difference), e.difference.pace)
    limiter_step(l, value)
    value[0] += blend_step(&e.difference)
    if e.waits:
        widen_bounds(e)
    limiter_step(&e.wide, value)
    e.on = e.difference.position < 1.0 or not same_state(&l.state, &e.wide.state)
    if e.on and e.difference.position > 2.0 and viable(l, &e.wide.state):
        e.wide.state.target, e.wide.state.limiting = wanted, True
        l.state = e.wide.state
        e.on = False
    return value[0] != wanted


cdef bint same_bounds(const Limit* a, const Limit* b) noexcept nogil:
    return (
        a.hard.value == b.hard.value
        and a.hard.rate == b.hard.rate
        and a.hard.acceleration == b.hard.acceleration
        and a.hard.jerk == b.hard.jerk
    )


cdef LimiterState state_of(const Cue* sent, int channel) noexcept nogil:
    """Return the state of an unbounded channel from its last three cues `sent`, oldest first."""
    cdef double x = (<const double*>&sent[2])[channel]
    cdef double v = x - (<const double*>&sent[1])[channel]
    cdef double u = (<const double*>&sent[1])[channel] - (<const double*>&sent[0])[channel]
    if ROLL <= channel <= YAW:
        v = remainder(v, 2.0 * M_PI)
        u = remainder(u, 2.0 * M_PI)
    return LimiterState(x, v, v - u, x, False)


cdef void turn_back(LimiterState* s, Easing* e) noexcept nogil:
    """Remove whole turns from an angle that may no longer turn all the way round."""
    cdef double sent = e.wide.state.x if e.on else s.x
    cdef double turns = sent - remainder(sent, 2.0 * M_PI)
    s.x -= turns
    s.target = remainder(s.target, 2.0 * M_PI)
    e.wide.state.x -= turns
    e.wide.state.target -= turns


cdef void limits_continue(LimitSet* s, LimitSet* before, const Cue* sent, double pace) noexcept nogil:
    """Continue from the state of other limits; `sent` are the last three cues, oldest first.

    A channel whose bounds stay the same is not affected.  A channel that loses its bounds gets bounds larger than any
    value, so that it too returns to its input along a fade.
    """
    cdef Limit none = limit_of(NO_BOUND, 0.0, 0.0, 0.0, 1.0)
    cdef Limit old
    cdef Easing easing
    cdef Easing still
    cdef int i, j
    still.on = False
    if s == before:
        return
    limits_part(before)
    s.idle = False
    s.quiet = 0
    s.easing = 0
    s.ticks = before.ticks
    for j in range(before.count):
        for i in range(s.count):
            if s.channels[i] == before.channels[j]:
                break
        else:
            if before.easings[j].on or before.limits[j].state.limiting or before.leans[j]:
                s.channels[s.count] = before.channels[j]
                s.turns[s.count] = before.turns[j]
                s.leans[s.count] = False
                s.limits[s.count] = none
                s.count += 1
    for i in range(s.count):
        s.acted[i] = 0
        for j in range(before.count):
            if before.channels[j] == s.channels[i]:
                break
        else:
            none.state = state_of(sent, s.channels[i])
            s.easing += begin_easing(&s.limits[i], &s.easings[i], &none, &still, s.leans[i], pace)
            continue
        s.acted[i] = before.acted[j]
        if same_bounds(&s.limits[i], &before.limits[j]) and s.leans[i] == before.leans[j]:
            s.limits[i] = before.limits[j]
            s.easings[i] = before.easings[j]
            s.easing += s.easings[i].on
            continue
        old, easing = before.limits[j], before.easings[j]
        if before.turns[j] and not s.turns[i]:
            turn_back(&old.state, &easing)
        s.easing += begin_easing(&s.limits[i], &s.easings[i], &old, &easing, s.leans[i] != before.leans[j], pace)


# ---- rigs side by side -----------------------------------------------------------------------------------------------


cdef void step_limits(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    limit_cue(<LimitSet*>state, <double*>&actuation.cue)


cdef void fill_lane_coeffs(const void* coeffs, double* out) noexcept nogil:
    cdef const LimitSet* s = <const LimitSet*>coeffs
    cdef int i
    for i in range(s.count):
        (<Margin*>out)[i] = s.limits[i].margin


cdef bint to_lanes(void* state, const void* coeffs, double* out) noexcept nogil:
    cdef LimitSet* s = <LimitSet*>state
    cdef const LimiterState* at
    cdef int i
    limits_part(s)
    if s.easing:
        return False
    for i in range(s.count):
        at = &s.limits[i].state
        if at.limiting or at.target != at.x:
            return False
        out[3 * i], out[3 * i + 1], out[3 * i + 2] = at.x, at.v, at.a
    return True


cdef void from_lanes(void* state, const void* coeffs, const double* lanes) noexcept nogil:
    cdef LimitSet* s = <LimitSet*>state
    cdef int i
    s.idle = False
    for i in range(s.count):
        s.limits[i].state = LimiterState(lanes[3 * i], lanes[3 * i + 1], lanes[3 * i + 2], lanes[3 * i], False)


# ---- what Python makes -----------------------------------------------------------------------------------------------


cdef Limit limit_of(double value, double rate, double acceleration, double jerk, double dt) noexcept nogil:
    """Return the limit with these bounds per second; a bound that is not positive and finite is missing.

    A missing bound is set to twice the one before it, per tick, which no input can exceed.
    """
    cdef Limit l
    cdef Bounds* h = &l.hard
    h.value = value
    h.rate = rate * dt if 0.0 < rate * dt < 2.0 * h.value else 2.0 * h.value
    h.acceleration = acceleration * dt * dt if 0.0 < acceleration * dt * dt < 2.0 * h.rate else 2.0 * h.rate
    h.jerk = jerk * dt * dt * dt if 0.0 < jerk * dt * dt * dt < 2.0 * h.acceleration else 2.0 * h.acceleration
    h.stops_at_once = h.acceleration == 2.0 * h.rate and h.jerk == 2.0 * h.acceleration
    l.plan = Bounds(0.999 * h.value, 0.98 * h.rate, 0.95 * h.acceleration, 0.9 * h.jerk, h.stops_at_once)
    if h.stops_at_once:     # no margin is needed, and a missing bound must not act
        l.plan.acceleration = h.acceleration
        l.plan.jerk = h.jerk
        if h.rate == 2.0 * h.value:
            l.plan.rate = h.rate
    set_margin(&l)
    l.state = LimiterState(0.0, 0.0, 0.0, 0.0, False)
    return l


cdef Limit checked(double value, rate, acceleration, jerk, double dt) except *:
    for name, bound in (("value", value), ("rate", rate), ("acceleration", acceleration), ("jerk", jerk), ("dt", dt)):
        if bound is not None and not (isfinite(bound) and bound > 0.0):
            raise ConfigError(f"{name}: found {bound}, allowed are finite numbers above 0")
    return limit_of(value, rate or 0.0, acceleration or 0.0, jerk or 0.0, dt)


cdef class Limiter:
    """One channel held within bounds, starting from rest at 0.

    Notes
    -----
    The derivatives are the first, second and third differences of the sent sequence over dt.  While the input keeps the
    bounds and could be braked within them, it passes bit for bit.
    Real time: a step does not allocate, needs no GIL and cannot fail.

    Units: `dt` [s].
    """

    cdef Limit _limit
    cdef Easing _easing

    def __init__(self, double value, rate=None, acceleration=None, jerk=None, *, double dt):
        self._limit = checked(value, rate, acceleration, jerk, dt)
        self._easing.on = False

    def process(self, const double[::1] values not None):
        """Limit a sequence; state carries over between calls."""
        cdef Py_ssize_t i
        out = np.array(values)
        acted = np.zeros(len(out), dtype=np.uint8)
        cdef double[::1] o = out
        cdef unsigned char[::1] was = acted
        cdef uint64_t fpu
        with nogil:
            fpu = mc_flush_denormals()      # as in the emitter
            for i in range(o.shape[0]):
                if self._easing.on:
                    was[i] = limiter_eased(&self._limit, &self._easing, &o[i])
                else:
                    was[i] = limiter_step(&self._limit, &o[i])
            mc_restore_fpu(fpu)
        return out, acted.view(np.bool_)

    def retune(self, double value, rate=None, acceleration=None, jerk=None, *, double dt, double fade_s):
        """Change the bounds; the value moves within them smoothly from where it is.

        Until it is there, value, rate, acceleration and jerk each keep the wider of the old and the new bound.
        """
        cdef Limit limit = checked(value, rate, acceleration, jerk, dt)
        cdef Limit before = self._limit
        cdef Easing easing = self._easing
        if not same_bounds(&limit, &before):
            self._limit = limit
            begin_easing(&self._limit, &self._easing, &before, &easing, False, min(1.0, dt / fade_s))

    @property
    def easing(self):
        """Whether the value is still moving into bounds that have changed."""
        return self._easing.on


cdef class CueLimits:
    """The bounds of a cue's channels: one limiter for each bounded channel, starting from rest at 0.

    Parameters
    ----------
    channels : sequence of str
        Those that may be bounded; by default those that move the platform.

    Notes
    -----
    Real time: limiting does not allocate, needs no GIL and cannot fail.
    """

    def __cinit__(self, channels=MOVERS):
        cdef Machine machine
        memset(&self.set, 0, sizeof(LimitSet))
        self.channels = tuple(channels)
        self.set.together = idle_limits(&self.set.room)
        # Lanes of eight take longer for twelve channels than three times four.
        machine = chosen_machine()
        self.set.pass_all = pass_all[machine.index + (machine.lanes == 8)]
        self.set.lanes = min(machine.lanes, 4)

    def add(self, str channel, double value, rate=None, acceleration=None, jerk=None, *, double dt):
        """Bound a channel.

        Units: `dt` [s].
        """
        free = [name for name in self.channels if CUE_DTYPE.names.index(name) not in list(self.set.channels)[: self.set.count]]
        if channel not in free:
            raise ConfigError(f"limits: found channel {channel!r}, allowed are {', '.join(free)}")
        # A bound of pi or more leaves the angle free to turn all the way round; only its derivatives are bounded.
        self.set.turns[self.set.count] = channel in ("roll", "yaw") and value >= M_PI * (1.0 - 1e-9)
        self.set.leans[self.set.count] = channel == "roll" and not self.set.turns[self.set.count]
        if self.set.turns[self.set.count] and isfinite(value):
            value = ANY_ANGLE
        self.set.limits[self.set.count] = checked(value, rate, acceleration, jerk, dt)
        self.set.channels[self.set.count] = CUE_DTYPE.names.index(channel)
        self.set.count += 1

    def process(self, Cue[::1] cue not None):
        """Limit cues in place; state carries over between calls."""
        cdef Py_ssize_t i
        cdef uint64_t fpu
        with nogil:
            fpu = mc_flush_denormals()      # as in the emitter
            for i in range(cue.shape[0]):
                limit_cue(&self.set, <double*>&cue[i])
            mc_restore_fpu(fpu)

    cdef LaneLayout lane_layout(self):
        """Return how the limits are done in lanes."""
        cdef Machine machine = chosen_machine()
        cdef LaneLayout it
        cdef int i
        memset(&it, 0, sizeof(it))
        if self.set.count == 0:
            return it
        it.step = step_limits
        it.state = it.coeffs = &self.set
        it.lanes = machine.lanes
        it.tick = limit_rigs[machine.index]
        it.plan[0] = self.set.count
        for i in range(self.set.count):
            it.plan[1 + 3 * i] = self.set.channels[i]
            it.plan[2 + 3 * i] = self.set.turns[i]
            it.plan[3 + 3 * i] = self.set.leans[i]
        it.coeffs_count = self.set.count * <int>(sizeof(Margin) // sizeof(double))
        it.state_count = 3 * self.set.count
        it.ticks = &self.set.ticks
        it.fill_coeffs, it.to_lanes, it.from_lanes = fill_lane_coeffs, to_lanes, from_lanes
        return it

    def shares(self):
        """Return the share of ticks in which each bounded channel was limited, by channel."""
        cdef int64_t ticks = mc_load(&self.set.ticks)
        return {
            CUE_DTYPE.names[self.set.channels[i]]: <double>mc_load(&self.set.acted[i]) / <double>ticks if ticks else 0.0
            for i in range(self.set.count)
        }


ctypedef struct Limited:        # state of the bounds of one output
    LimitSet* set
    Cue sent[3]             # its last three cues, in turn
    int oldest              # which of them is to be replaced


cdef void limits_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    cdef Limited* s = <Limited*>state
    limit_cue(s.set, <double*>&actuation.cue)
    s.sent[s.oldest] = actuation.cue
    s.oldest = s.oldest + 1 if s.oldest < 2 else 0


cdef void limits_reset(void* state) noexcept nogil:
    cdef Limited* s = <Limited*>state
    limits_rest(s.set)
    memset(s.sent, 0, sizeof(s.sent))


cdef bint limits_at_rest(const void* state) noexcept nogil:
    return at_neutral((<const Limited*>state).set)


cdef void stage_limits_continue(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil:
    cdef Limited* s = <Limited*>state
    cdef Limited* before = <Limited*>before_state
    cdef int i
    for i in range(3):
        s.sent[i] = before.sent[(before.oldest + i) % 3]
    s.oldest = 0
    limits_continue(s.set, before.set, s.sent, pace)


cdef class OutputLimits(Stage):
    """Bounds on the cue's channels for one output."""

    cdef readonly CueLimits limits
    cdef Limited _limited

    def __cinit__(self, CueLimits limits not None):
        self.limits = limits
        self._limited.set = &limits.set
        self.calls = StageCalls(
            limits_step, limits_reset, limits_at_rest, NULL, &self._limited, stage_limits_continue, NULL, NULL, NULL
        )

    def shares(self):
        """Return the share of ticks in which each channel was limited."""
        return self.limits.shares()

    cdef LaneLayout lane_layout(self):
        """Return the limits alone: what was sent before matters only to settings that change."""
        return self.limits.lane_layout()
