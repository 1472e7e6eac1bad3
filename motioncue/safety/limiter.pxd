"""One channel held within bounds on value, rate, acceleration and jerk, for any input.

The signal is treated as a point: per tick, jerk changes acceleration, acceleration changes rate, and rate changes
value, so rate, acceleration and jerk are the first three differences of what is sent.  For any input, the next jerk is
chosen such that the point can still stop short of its bounds (viability: from every state reached, braking within the
bounds ends at rest inside them).  Within that freedom the output follows the input, and returns to it without
overshoot.  An input that keeps the bounds by itself passes bit for bit.

Bounds may change while the limiter runs.  If the output and its motion keep the new ones, they apply at once.
Otherwise two limiters run in series until they do: one with the new bounds, then one with the wider of old and new
bounds.  The difference between the second one's input and the first one's output vanishes along a fade.  Until then
value, rate, acceleration and jerk each keep the wider bound.
"""

from libc.math cimport M_PI, fabs, remainder, rint, sqrt
from libc.stdint cimport int64_t

from motioncue.core.blend cimport Blend
from motioncue.core.records cimport LIMITED, Cue
from motioncue.core.threads cimport mc_count
from motioncue.core.interfaces cimport LaneLayout


ctypedef struct Bounds:         # value, value/tick, value/tick^2, value/tick^3
    double value
    double rate
    double acceleration
    double jerk
    bint stops_at_once       # neither acceleration nor jerk is bounded, so one tick is enough to come to rest


cdef extern from "motioncue/safety/limits.h" nogil:
    ctypedef struct Margin "mc_Margin":     # see limits.h
        double value
        double rate
        double acceleration
        double jerk
        double per_jerk
        double per_acceleration
        double ramp
    bint clearly_viable "mc_clearly_viable"(const Margin* m, double x, double v, double a)


ctypedef struct LimiterState:
    double x
    double v
    double a
    double target           # input at the tick before
    bint limiting           # the output differs from the input


ctypedef struct Limit:
    Bounds hard             # never exceeded
    Bounds plan             # slightly inside `hard`: the margin for discrete time steps
    Margin margin           # the plan with the hard bound on jerk, for the quick test
    LimiterState state


ctypedef struct Easing:         # transition from the old bounds to those of a limit
    bint on
    bint fresh              # the first limiter starts at the next input
    double before           # the input before that one; NaN if that was of another quantity
    Limit wide              # the second limiter, whose state is what is sent
    bint waits              # it has the old bounds, until its state can be braked within `hard` and `plan`
    Bounds hard             # the wider ones of old and new bounds
    Bounds plan
    Blend difference        # the second limiter's input less the first one's output


cdef inline double stop_above(double x, double v, double a, double A, double J) noexcept nogil:
    """Return the highest value reached when braking from here, with acceleration within `A` and jerk within `J`.

    Braking ramps the acceleration down, holds it at -A if there is time, and ramps it back to zero as the rate vanishes
    (time-optimal stop of a double integrator with bounded acceleration and jerk; own derivation).
    """
    cdef double t, p, release
    if a > 0.0:                 # the positive acceleration has to end first
        t = a / J
        x += t * (v + t * (0.5 * a - J * t / 6.0))
        v += 0.5 * a * t
        a = 0.0
    if v <= 0.0:
        return x
    release = 0.5 * a * a / J   # rate lost while the brake is released
    if v <= release:            # already braking hard enough: the peak comes while the brake is released
        t = (-a - sqrt(a * a - 2.0 * J * v)) / J
        return x + t * (v + t * (0.5 * a + J * t / 6.0))
    p = sqrt(J * v + 0.5 * a * a)
    if p == 0.0:                # the rate is so small that its brake underflows
        return x + v
    if p <= A:
        t = (p + a) / J
    else:
        p = A
        t = (p + a) / J         # ramp from a to -p, then hold
    x += t * (v + t * (0.5 * a - J * t / 6.0))
    v += t * (a - 0.5 * J * t)
    release = 0.5 * p * p / J
    if v > release:
        t = (v - release) / p
        x += t * (v - 0.5 * p * t)
        v = release
    t = p / J
    return x + t * (v + t * (-0.5 * p + J * t / 6.0))


cdef inline bint viable_above(const Bounds* b, double x, double v, double a) noexcept nogil:
    """Say whether the state can be braked without exceeding the upper bounds."""
    if b.stops_at_once:
        return x <= b.value and v <= b.rate
    cdef double peak = v + (0.5 * a * (a + b.jerk) / b.jerk if a > 0.0 else 0.0)
    return a <= b.acceleration and peak <= b.rate and stop_above(x + v, v, a, b.acceleration, b.jerk) <= b.value


cdef inline bint keeps_bounds(const Bounds* b, const LimiterState* s, double sign, double j) noexcept nogil:
    """Say whether jerk `j` leads to a state that can be braked without exceeding the upper bounds."""
    cdef double a = sign * (s.a + j)
    cdef double v = sign * s.v + a
    return viable_above(b, sign * s.x + v, v, a)


cdef inline bint meets_input(
    const Bounds* b, const LimiterState* s, double sign, double goal, double speed, double j
) noexcept nogil:
    """Say whether jerk `j` leads to a state that can be braked to the input's speed before it passes the input."""
    cdef double a = sign * (s.a + j)
    cdef double v = sign * s.v + a
    if b.stops_at_once:
        return sign * (s.x - goal) + v <= 0.0
    return stop_above(sign * (s.x - goal) + v, v - sign * speed, a, b.acceleration, b.jerk) <= 0.0


cdef double following_jerk(const Bounds* plan, LimiterState* s, double goal, double speed) noexcept nogil


cdef extern from "motioncue/safety/limits.h" nogil:
    ctypedef struct IdleStates "mc_IdleStates":
        double x[16]
        double v[16]
        double a[16]
    ctypedef struct IdleLimits "mc_IdleLimits":     # see limits.h
        double value[16]
        double rate[16]
        double acceleration[16]
        double jerk[16]
        double per_jerk[16]
        double per_acceleration[16]
        double ramp[16]
        double most[16]
        double turns[16]
        IdleStates states[2]
        int now
        int count
        int channels[16]
        int angles[16]
    ctypedef struct IdleRoom "mc_IdleRoom":
        pass
    IdleLimits* idle_limits "mc_idle_limits"(IdleRoom* room)


cdef enum:
    QUIET = 16              # ticks without any limit acting, after which all channels are tested at once


ctypedef struct LimitSet:
    IdleRoom room
    IdleLimits* together    # in `room`: states and bounds side by side, while `idle`
    bint idle               # the states are there, and not in `limits`
    int quiet               # ticks since any limit acted
    int (*pass_all)(IdleLimits* s, const double* cue) noexcept nogil
    int lanes               # that it tests at once
    Limit limits[LIMITED]
    Easing easings[LIMITED]
    int easing              # number of easings that are on
    int channels[LIMITED]    # index of each channel among the doubles of a cue
    bint turns[LIMITED]      # an angle without a bound on its value: pi and -pi are the same
    bint leans[LIMITED]      # a roll with a bound on its value: sent as a lean, see `lean`
    int64_t acted[LIMITED]   # ticks in which the channel was limited
    int64_t ticks
    int count


cdef inline bint limiter_step(Limit* l, double* value) noexcept nogil:
    """Limit `value` in place; return whether it was changed."""
    cdef LimiterState* s = &l.state
    cdef const Bounds* b = &l.plan
    cdef double goal = value[0]
    cdef double v = goal - s.x
    cdef double a = v - s.v
    cdef double j = a - s.a
    cdef double speed = goal - s.target
    s.target = goal
    if not s.limiting and -l.hard.jerk <= j <= l.hard.jerk and clearly_viable(&l.margin, goal, v, a):
        s.x, s.v, s.a = goal, v, a
        return False
    if (
        -l.hard.jerk <= j <= l.hard.jerk
        and viable_above(b, goal, v, a)
        and viable_above(b, -goal, -v, -a)
        # After limiting, pass the input again only once output and input move alike, so that limiting does not resume
        # at once.
        and (not s.limiting or (-b.jerk <= 2.0 * (v - speed) <= b.jerk and -b.jerk <= a <= b.jerk))
    ):
        s.x, s.v, s.a = goal, v, a
        s.limiting = False
        return False
    s.a += following_jerk(b, s, goal, speed)
    s.v += s.a
    s.x += s.v
    value[0] = s.x
    s.limiting = True
    return True


cdef inline double short_way(double angle) noexcept nogil:
    """Return the angle in -pi to pi; one that is already there keeps its bits."""
    return angle if -M_PI <= angle <= M_PI else remainder(angle, 2.0 * M_PI)


cdef inline double lean(double roll) noexcept nogil:
    """Return the lean within +-pi/2 with the sine of `roll`, so that gravity pulls sideways as it does in the car."""
    if -0.5 * M_PI <= roll <= 0.5 * M_PI:
        return roll
    roll = short_way(roll)
    if -0.5 * M_PI <= roll <= 0.5 * M_PI:
        return roll
    return M_PI - roll if roll > 0.0 else -M_PI - roll


cdef inline void lean_cue(const LimitSet* s, double* channels) noexcept nogil:
    """Replace the roll of a cue by its lean, unless it may turn all the way round or is not bounded."""
    cdef int i
    for i in range(s.count):
        if s.leans[i]:
            channels[s.channels[i]] = lean(channels[s.channels[i]])


cdef inline void keep_turning(double* channels, const Cue* before) noexcept nogil:
    """Let roll and yaw continue where they were: halves of a heading of pi and of -pi differ, so a share of them needs it."""
    cdef Cue* cue = <Cue*>channels
    cue.roll -= 2.0 * M_PI * rint((cue.roll - before.roll) / (2.0 * M_PI))
    cue.yaw -= 2.0 * M_PI * rint((cue.yaw - before.yaw) / (2.0 * M_PI))


cdef bint limiter_eased(Limit* l, Easing* e, double* value) noexcept nogil


cdef void limit_apart(LimitSet* s, double* channels) noexcept nogil


cdef inline void limit_cue(LimitSet* s, double* channels) noexcept nogil:
    """Limit every bounded channel of a cue in place: all at once while none acts, for that is the usual case."""
    if s.idle and s.pass_all(s.together, channels):
        mc_count(&s.ticks, 1)
    elif s.count:
        limit_apart(s, channels)


cdef inline bint at_neutral(const LimitSet* s) noexcept nogil:
    """Say whether every bounded channel is at rest at exactly 0."""
    cdef double x, v
    cdef int i
    if s.easing:
        return False
    for i in range(s.count):
        x = s.together.states[s.together.now].x[i] if s.idle else s.limits[i].state.x
        v = s.together.states[s.together.now].v[i] if s.idle else s.limits[i].state.v
        if s.turns[i]:
            if fabs(remainder(x, 2.0 * M_PI)) > 1e-9 or fabs(v) > 1e-9:
                return False
        elif x != 0.0 or v != 0.0:
            return False
    return True


cdef inline void limits_rest(LimitSet* s) noexcept nogil:
    """Start again from rest at 0."""
    cdef int i
    s.easing = 0
    s.idle = False
    s.quiet = 0
    for i in range(s.count):
        s.limits[i].state = LimiterState(0.0, 0.0, 0.0, 0.0, False)
        s.easings[i].on = False


cdef void limits_continue(LimitSet* s, LimitSet* before, const Cue* sent, double pace) noexcept nogil
cdef Limit limit_of(double value, double rate, double acceleration, double jerk, double dt) noexcept nogil


cdef class CueLimits:
    cdef LimitSet set
    cdef readonly tuple channels
    cdef LaneLayout lane_layout(self)
