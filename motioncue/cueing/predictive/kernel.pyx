"""Receding horizon cueing as an algorithm: the tick, and the coefficients that it reads."""

from libc.math cimport INFINITY, exp, fabs, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from motioncue.core.blend cimport smooth
from motioncue.core.interfaces cimport AHEAD, Algorithm, structure_number
from motioncue.core.records cimport Cue, Motion
from motioncue.core.rotation cimport Turn, turn, two_turns
from motioncue.cueing.predictive.motion_predictor cimport (
    NODES, PAST, MotionPredictorCoeffs, observe_motion, predict_motion,
)
from motioncue.cueing.predictive.actuators_ahead cimport Excess, exceed, hold_back, to_neutral
from motioncue.cueing.predictive.guard cimport Guard, guarded, slowed, stops, within
from motioncue.cueing.predictive.preview_doubt cimport conclude, judge, settle_doubt
from motioncue.cueing.predictive.solver cimport ACTIVE, CHANNELS, LOWER, SOFT, Quadratic, Solver, set_row, solved
from motioncue.platforms.kinematics cimport Kinematics

import zlib

import numpy as np

from motioncue.core.channels import GRAVITY
from motioncue.cueing.predictive.horizon import LEAN, TILTS, conflict_step

__all__ = ["MOST_BEATS", "MOST_KNOTS", "MOST_ROWS", "NODE_COUNT", "Predictive"]

MOST_BEATS = PAST - 1
"""Most beats between a moment and what was foreseen of it."""

NODE_COUNT = NODES
"""Times for which the car's motion is foreseen, now included."""

MOST_KNOTS = KNOTS
"""Most blocks of a plan."""

MOST_ROWS = ROWS
"""Most constraints of all groups together."""

cdef enum:
    KNOWN = (5 + NODES) * AXES

cdef double OPENING = 0.1   # [s] in which the limit opens and closes at least
cdef double EASING = 0.06   # [s] in which what is gentle is reached
cdef double GENTLE = 0.4     # share of a channel's acceleration that is gentle
cdef double GENTLE_M_S2 = 1.2    # and no more than this: 0.06 m/s^2 in a tick of 3 ms
cdef double ROUGH_M_S2 = 2.4     # or than this where a rough drive shakes the person as much anyway
cdef double MISLED_M_S2 = 4.0   # or than this on the way out of a plan that a preview has misled, as abrupt as its way in
cdef double CALMING = 2.0   # [s] in which a drive that was rough counts as smooth
cdef double HEEDING = 0.2   # [s] in which what is said of the car's motion comes to count, or changes by its largest
cdef double STARTLING = 0.05    # share of a sense's largest that it may be beyond that before plans are held
cdef double LED = 0.01      # share of it that may turn out wrong at once before they are
cdef double NARROWING = 2.0 # [s] in which narrower bounds take hold
cdef double FREEING = 0.5   # [s] after that in which plans become free to change as fast as they like
cdef double FREED = 3.0     # logarithm of how much faster that is in the end than gently

cdef enum:
    ANEW = 8                # plans in a row that are not found, after which one starts without active constraints
    NEAR = 6                # blocks of a plan in which tilting faster takes a burst
    HARDER = 8              # times 5/4 that a plan brakes harder than gently, at most
cdef double CLOSE = 0.3     # share of what opens a burst that is left when it ends
cdef double FAST = 1.15     # tilt is fast beyond this many times what is slow: 3 deg/s, as the score has it, of 2.6
cdef double ACCOUNT_S = 10.0            # fast tilt beyond its share that makes bursts as rare as they get [s]
cdef double EAGER = 1.5, FRUGAL = 0.3   # logarithms of how far what opens a burst falls, and rises

cdef double BENT = 0.9      # share of a bound that it is shifted by at most: beyond it, bounds contradict one another
PATIENCE_S = 0.2            # for how long the newest plan is followed when later ones fail
LARGEST = (*(3 * (30.0,)), *(3 * (3.0,)))   # motion of the car that is planned for [m/s^2, rad/s]


cdef extern from "motioncue/cueing/pose.h" nogil:
    ctypedef struct PlatformMotion "mc_PlatformMotion":
        double a[3]
        double travel[3]
        double rates[3]
        double yaw
        Turn roll
        Turn pitch

    void cue_of "mc_cue_of"(double gravity, const PlatformMotion* platform, Turn* yaw, double* cue)


cdef void felt_in_car(const PredictiveCoeffs* c, const Motion* motion, double* car) noexcept nogil:
    """Fill in what acts on the occupant of the car: specific force less that of standing level, angular velocity."""
    cdef Turn roll
    cdef Turn pitch
    cdef int i
    turn(&roll, within(motion.roll, 100.0))
    turn(&pitch, within(motion.pitch, 100.0))
    car[0] = motion.surge + c.gravity * pitch.sine
    car[1] = motion.sway - c.gravity * roll.sine * pitch.cosine
    car[2] = motion.heave + c.gravity * (roll.cosine * pitch.cosine - 1.0)
    car[3] = motion.roll_rate
    car[4] = motion.pitch_rate
    car[5] = motion.yaw_rate
    for i in range(AXES):
        car[i] = c.gain[i] * within(car[i], c.largest[i])


cdef bint finite(const Motion* m) noexcept nogil:
    """Say whether all that a plan reads of a motion is a number."""
    return isfinite(
        m.surge + m.sway + m.heave + m.roll + m.pitch + m.roll_rate + m.pitch_rate + m.yaw_rate
    )


cdef void look(void* state, const void* coeffs, const Motion* ahead, bint weighed) noexcept nogil:
    """Take in what the car will do, for the next step.

    It changes no faster than a car does: a person feels plans change, if what is said is wrong at one moment and right
    at the next.  One that says what no car does is a reason to hold plans near the one before.
    """
    cdef PredictiveState* s = <PredictiveState*>state
    cdef const PredictiveCoeffs* c = <const PredictiveCoeffs*>coeffs
    cdef double said[AXES]
    cdef double most
    cdef bint counts = False
    cdef int i, j
    if weighed and not c.remembers:
        return
    for i in range(AHEAD):
        counts = counts or s.heeded[i] > 0.0
    if counts and weighed != s.weighed:     # from another source: first what the other one has said stops to count
        return
    s.weighed = weighed
    for i in range(AHEAD):
        s.known[i] = finite(&ahead[i])
        if s.known[i]:
            felt_in_car(c, &ahead[i], said)
            for j in range(AXES):
                if s.heeded[i] > 0.0:
                    most = c.largest[j] * c.dt / HEEDING
                    s.startled |= not weighed and fabs(said[j] - s.ahead[i][j]) > most + STARTLING * c.largest[j]
                    said[j] = s.ahead[i][j] + within(said[j] - s.ahead[i][j], most)
                elif i == 0 and not weighed:
                    most = c.largest[j] * c.dt * c.predictor.beat * c.predictor.lag[1] / HEEDING
                    s.startled |= fabs(said[j] - s.predictor.mean[j][0]) > most + STARTLING * c.largest[j]
                s.ahead[i][j] = said[j]


cdef void heed(PredictiveState* s, double share) noexcept nogil:
    """Let what is known of the car's motion count by that much more, and what is not any more by half as much less."""
    cdef int i
    for i in range(AHEAD):
        s.heeded[i] += share if s.known[i] else -0.5 * share      # what is known now and then is known
        s.heeded[i] = 0.0 if s.heeded[i] < 0.0 else min(s.heeded[i], 1.0)
    if s.program.any:
        settle_doubt(&s.program, share)


cdef void prove(const PredictiveCoeffs* c, PredictiveState* s, const double* car) noexcept nogil:
    """Compare what is felt now with what was foreseen of it, and with what a preview said; keep what both say now.

    The share of what the lap before says beyond that is best is the one with the least squares, beside a prior of none
    at all.  A program's counts until it is found wrong; if that changes plans, they are held near the one before.
    """
    cdef double own[NODES]
    cdef double beyond, right, led
    cdef bint judged
    cdef int place = s.beats & (PAST - 1)
    cdef int sense, node, then
    s.by_lap[place] = s.weighed
    for sense in range(AXES):
        judged = False
        predict_motion(&c.predictor, &s.predictor, sense, car[sense], c.largest[sense], own)
        for node in range(1, NODES):
            then = (place - c.predictor.lag[node]) & (PAST - 1)
            beyond = s.beyond[sense][node][then]
            if beyond != 0.0 and s.beats > c.predictor.lag[node] and not s.by_lap[then]:
                judge(&s.program, sense, node, c.proved, s.expected[sense][node][then], beyond, car[sense])
                judged = True
            elif beyond != 0.0 and s.beats > c.predictor.lag[node]:
                right = beyond * (car[sense] - s.expected[sense][node][then])
                if right > 0.0 and (s.expected[sense][node][then] + beyond) * car[sense] < 0.0:
                    right = 0.0     # nearer than what was foreseen, and still of the opposite sign
                s.agreed[sense][node] = c.proved * s.agreed[sense][node] + right
                s.said[sense][node] = c.proved * s.said[sense][node] + beyond * beyond
                s.trust[sense][node] = s.agreed[sense][node] / (s.said[sense][node] + c.proof[sense])
                s.trust[sense][node] = within(s.trust[sense][node], 1.0)
                if s.trust[sense][node] < 0.0:
                    s.trust[sense][node] = 0.0
            s.expected[sense][node][place] = own[node]
            s.beyond[sense][node][place] = 0.0
            if s.known[node - 1]:
                s.beyond[sense][node][place] = s.ahead[node - 1][sense] - own[node]
        if judged:
            conclude(&s.program, sense, c.proof[sense])
            for node in range(1, NODES):
                led = (s.program.wrong[sense][node] - s.program.doubt[sense][node]) * s.beyond[sense][node][place]
                s.startled |= not s.weighed and fabs(led) > LED * c.largest[sense]
    s.beats += 1


cdef double planned(const PredictiveCoeffs* c, const Group* g, const double* plan, int64_t step) noexcept nogil:
    """Return a channel's acceleration at a step of its plan, counted from 1; straight lines between the knots."""
    cdef int k = 0
    while k < g.knots - 1 and c.ends[k] < step:
        k += 1
    if k == 0 or step >= c.ends[k]:
        return plan[k]
    return plan[k - 1] + (plan[k] - plan[k - 1]) * (step - c.ends[k - 1]) / (c.ends[k] - c.ends[k - 1])


cdef double gentle(const PredictiveState* s, int channel) noexcept nogil:
    """Return an acceleration that a channel, and with it a person, may reach in `EASING` without a knock."""
    cdef double most = GENTLE * max(s.held.scale[channel], s.former.scale[channel])
    cdef int i
    if channel >= 3:
        return most
    most = min(most, min(MISLED_M_S2 if s.misled else ROUGH_M_S2, max(GENTLE_M_S2, EASING * s.rough)))
    if s.misled:
        for i in range(HARDER):     # what is near an end already has to brake before it
            if stops(&s.held.guard[channel], most / EASING, s.place[channel], s.speed[channel], s.acceleration[channel]):
                break
            most *= 1.25
    return most


cdef double narrower(double new, double former, double left) noexcept nogil:
    """Return a bound on the way to a smaller one, with this share of the way left; a larger one holds at once."""
    return new + (former - new) * left if new < former < INFINITY else new


cdef void leave(const PredictiveCoeffs* c, PredictiveState* s, bint misled) noexcept nogil:
    """Keep the plan and the bounds that settings have changed from, or from which a preview has misled it."""
    cdef int number, i, k, step
    cdef const Group* g
    for number in range(c.groups):
        g = &c.group[number]
        for i in range(g.channels):
            for k in range(g.knots):
                step = c.ends[k] + s.age[number] + 1
                s.leaving[g.channel[i]][k] = planned(c, g, s.plan[g.channel[i]], step)
        s.left[number] = 0
    memcpy(s.plan, s.leaving, sizeof(s.plan))
    memset(s.age, 0, sizeof(s.age))
    s.former = s.held
    s.since = 0.0
    s.misled = misled


cdef void bound_row(
    const PredictiveCoeffs* c, const Group* g, int i, PredictiveState* s, double* low, double* high
) noexcept nogil:
    """Fill in the bounds of a row, which become narrower in some time if the settings have changed."""
    cdef int number = g.bound[i]
    cdef double left = 1.0 - smooth(min(1.0, (s.since + c.dt * c.period * c.ends[g.block[i]]) / NARROWING))
    low[0], high[0] = g.low[i], g.high[i]
    if number < 0:
        return
    if g.per_place[i] > 0.0:
        high[0] = narrower(high[0], s.former.high[number] * g.per_place[i], left)
        low[0] = -narrower(-low[0], -s.former.low[number] * g.per_place[i], left)
        if g.block[i] == 0:
            s.held.low[number], s.held.high[number] = low[0] / g.per_place[i], high[0] / g.per_place[i]
    elif g.per_speed[i] > 0.0:
        high[0] = narrower(1.0, s.former.speed[number] * g.per_speed[i], left)
        low[0] = -high[0]
        if g.block[i] == 0:
            s.held.speed[number] = high[0] / g.per_speed[i]
    elif g.per_push[i] > 0.0:
        high[0] = narrower(1.0, s.former.push[number] * g.per_push[i], left)
        low[0] = -high[0]
        if g.block[i] == 0:
            s.held.push[number] = high[0] / g.per_push[i]


cdef void bend(const PredictiveCoeffs* c, int number, const PredictiveState* s, Excess* more) noexcept nogil:
    """Fill in by how much the actuators exceed what is linear in the pose, at the end of each block of the plan before.

    So their motion is exact where a plan repeats the one before it.
    """
    cdef const Group* g = &c.group[number]
    cdef double place[AXES]
    cdef double speed[AXES]
    cdef double push[AXES]
    cdef double next, h
    cdef int i, k
    memcpy(place, s.place, sizeof(place))
    memcpy(speed, s.speed, sizeof(speed))
    memcpy(push, s.acceleration, sizeof(push))
    for k in range(g.knots):
        h = c.dt * c.period * (c.ends[k] - (c.ends[k - 1] if k else 0))
        for i in range(AXES):
            next = planned(c, g, s.plan[i], c.ends[k] + 1 + s.age[number])
            place[i] += h * (speed[i] + h * (2.0 * push[i] + next) / 6.0)
            speed[i] += 0.5 * h * (push[i] + next)
            push[i] = next
        if not exceed(c, place, speed, push, &more[k]):
            if k > 0:
                more[k] = more[k - 1]
            else:
                memset(&more[k], 0, sizeof(Excess))
                memcpy(more[k].slopes, c.slopes, sizeof(c.slopes))


cdef void add_up(const double* columns, const double* known, int size, int rows, double* out) noexcept nogil:
    """Fill in a matrix times what is known: four rows at a time, because their sums go on side by side."""
    cdef const double* column
    cdef double a, b, c, d
    cdef int left = rows % 4
    cdef int i, j
    for i from 0 <= i < rows - left by 4:
        a = b = c = d = 0.0
        column = columns + i
        for j in range(size):
            a += column[0] * known[j]
            b += column[1] * known[j]
            c += column[2] * known[j]
            d += column[3] * known[j]
            column += rows
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(rows - left, rows):
        out[i] = 0.0
        for j in range(size):
            out[i] += columns[j * rows + i] * known[j]


cdef double slope_row(const Group* g, int i, const Excess* at, const double* known) noexcept nogil:
    """Give a row the slopes that its actuator has in the plan before; return what is known of it."""
    cdef double by[CHANNELS]
    cdef const double* motion = &g.motion[3 * g.kind[i]]
    cdef double drift = 0.0
    cdef int j
    memset(by, 0, sizeof(by))
    for j in range(g.channels):
        by[j] = at.slopes[g.bound[i]][g.channel[j]]
        drift += by[j] * (motion[0] * known[3 * j] + motion[1] * known[3 * j + 1] + motion[2] * known[3 * j + 2])
    set_row(g.quadratic, i, g.kind[i], by)
    return drift


cdef double excess_after(const PredictiveCoeffs* c, const PredictiveState* s, double time) noexcept nogil:
    """Return by how much the limit on the tilt rate will be exceeded at most after some time, in shares of it."""
    # Gently at both ends: evenly, and a car that brakes hard knocks who sits on legs by 0.39 m/s^2 a tick, not 0.27.
    cdef double share = s.hurry + (time if s.open else -time) / c.opening
    return (c.hurry - 1.0) * smooth(min(1.0, max(0.0, share)))


cdef void pose_program(const PredictiveCoeffs* c, int number, PredictiveState* s, const double* car) noexcept nogil:
    """Fill in the linear cost, the bounds and the states of the constraints of a group's program."""
    cdef const Group* g = &c.group[number]
    cdef Quadratic* q = g.quadratic
    cdef double known[KNOWN]
    cdef double* foreseen
    cdef Excess more[KNOTS]
    cdef Excess* at
    cdef double shifts[ROWS]
    cdef double shift, own, low, high, hurry, time
    cdef int moved = 3 * g.channels
    cdef int size = moved + (1 + NODES) * g.senses + 2 * g.conflicts
    cdef int i, j, row, sense
    for i in range(g.channels):
        known[3 * i] = s.place[g.channel[i]]
        known[3 * i + 1] = s.speed[g.channel[i]]
        known[3 * i + 2] = s.acceleration[g.channel[i]]
    for i in range(g.senses):
        sense = g.sense[i]
        known[moved + i] = s.organs[sense]
        foreseen = &known[moved + g.senses + i * NODES]
        predict_motion(&c.predictor, &s.predictor, sense, car[sense], c.largest[sense], foreseen)
        for j in range(AHEAD):
            if s.heeded[j] > 0.0:
                own = s.heeded[j] * (s.trust[sense][j + 1] if s.weighed else 1.0 - s.program.doubt[sense][j + 1])
                foreseen[j + 1] += own * (s.ahead[j][sense] - foreseen[j + 1])
    j = size - 2 * g.conflicts
    for i in range(g.senses if g.conflicts else 0):
        if g.sense[i] < 3:
            known[j], known[j + 1] = s.conflict[g.sense[i]][0], s.conflict[g.sense[i]][1]
            j += 2
    add_up(g.gradient, known, size, g.unknowns, q.problem.f)
    add_up(g.drift, known, moved, g.rows, shifts)
    for i in range(g.unknowns):
        q.problem.sense[i] = s.active[g.first + i]
        q.problem.blower[i], q.problem.bupper[i] = -1.0, 1.0
        if i < g.channels:
            s.held.scale[g.channel[i]] = g.scale[i]
    if s.since < NARROWING + FREEING or c.calm:
        bound_change(c, number, s)
    if c.geared:
        bend(c, number, s, more)
    for i in range(g.rows):
        row = g.unknowns + i
        shift = shifts[i]
        if g.kind[i] >= 0:
            at = &more[g.block[i]]
            shift = slope_row(g, i, at, known) + g.per_place[i] * at.place[g.bound[i]]
            own = g.per_speed[i] * at.speed[g.bound[i]] + g.per_push[i] * at.push[g.bound[i]]     # both where drives lag
            shift += within(own, BENT)
        bound_row(c, g, i, s, &low, &high)
        q.problem.blower[row] = low - shift
        q.problem.bupper[row] = high - shift
        if g.tilting[i]:    # turning with the car, or less than it, is no tilt
            own = 0.0
            for j in range(moved, size):
                own += g.turning[i * size + j] * known[j]
            hurry = c.hurry - 1.0
            if g.block[i] < NEAR:   # that it closes is foreseen; that it opens has to last
                time = 0.0 if s.open or g.block[i] == 0 else c.dt * c.period * c.ends[g.block[i] - 1]
                hurry = excess_after(c, s, time)
            q.problem.blower[row] += (own if own < 0.0 else 0.0) - hurry
            q.problem.bupper[row] += (own if own > 0.0 else 0.0) + hurry
        q.problem.sense[row] = SOFT | s.active[g.first + row]


cdef void bound_change(const PredictiveCoeffs* c, int number, PredictiveState* s) noexcept nogil:
    """Set bounds on how far accelerations may be from those of the plan that is left: see `leave`.

    They widen steadily, then stay gentle until a platform that is far from where it is wanted now has had time to get
    there, and then open.  The plan knows it: it does not go where it could not brake as gently.  A preview that has
    misled it may go on to, so there how fast they change widens too, lest it were free at once in the end.
    Turning takes `EASING` to its full acceleration; else a rotation that is wanted no more would end at once.
    """
    cdef const Group* g = &c.group[number]
    cdef Quadratic* q = g.quadratic
    cdef double free = 1.0 if c.calm or s.since < NARROWING else exp(FREED * (s.since - NARROWING) / FREEING)
    cdef double time, share, most, own, now, high, width, far
    cdef int i, channel, k
    for i in range(g.unknowns):
        k, channel = i // g.channels, g.channel[i % g.channels]
        time = c.dt * c.period * c.ends[k]
        share = smooth(min(1.0, (s.since + time) / NARROWING))
        high = narrower(1.0, s.former.scale[channel] / g.scale[i], 1.0 - share)
        if i < g.channels:
            s.held.scale[channel] = high * g.scale[i]
        most = gentle(s, channel) / g.scale[i]
        width = most + 2.0 * share
        far = free * time / EASING * (most * (1.0 + s.misled * share) if channel < 3 else 1.0)
        now = within(s.acceleration[channel] / g.scale[i], high)
        own = within(planned(c, g, s.leaving[channel], s.left[number] + c.ends[k]) / g.scale[i], high)
        own = now + within(own - now, far + 0.9 * width)    # so that there is a choice
        q.problem.blower[i] = max(-high, max(own - width, now - far))
        q.problem.bupper[i] = min(high, min(own + width, now + far))


cdef void trim(const Group* g, PredictiveState* s) noexcept nogil:
    """Forget active constraints, those of the last blocks first, until the solver can start from the rest in time."""
    cdef int block = g.knots
    cdef int active = 0
    cdef int i, of_row
    for i in range(g.unknowns + g.rows):
        active += (s.active[g.first + i] & ACTIVE) != 0
    while active > g.quadratic.most_active and block > 0:
        block -= 1
        for i in range(g.unknowns + g.rows):
            of_row = i // g.channels if i < g.unknowns else g.block[i - g.unknowns]
            if of_row == block and s.active[g.first + i] & ACTIVE:
                s.active[g.first + i] = 0
                active -= 1


cdef bint take_plan(const Group* g, PredictiveState* s) noexcept nogil:
    """Keep the solution as the plan, and the working set to start from next time; refuse one that is not finite."""
    cdef Quadratic* q = g.quadratic
    cdef int i
    for i in range(g.unknowns):
        if not isfinite(q.result.x[i]):
            return False
    for i in range(g.unknowns):
        s.plan[g.channel[i % g.channels]][i // g.channels] = g.scale[i] * q.result.x[i]
    for i in range(g.unknowns + g.rows):
        s.active[g.first + i] = 0
        if q.result.lam[i] > 0.0:
            s.active[g.first + i] = ACTIVE
        elif q.result.lam[i] < 0.0:
            s.active[g.first + i] = ACTIVE | LOWER
    return True


cdef void steer(const PredictiveCoeffs* c, int number, PredictiveState* s, double* target) noexcept nogil:
    """Set the way to the accelerations that a group has when it is planned next, within what must be kept."""
    cdef const Group* g = &c.group[number]
    cdef double h = c.dt * c.period
    cdef double left = 1.0 - smooth(min(1.0, s.since / NARROWING))
    cdef Guard new
    cdef Guard former
    cdef Guard* held
    cdef double last
    cdef int i, channel
    s.left[number] += 1
    for i in range(g.channels):
        if g.channel[i] < 3:
            s.rough = max(s.rough, fabs(target[i] - s.acceleration[g.channel[i]]) / h)
    if c.geared and s.age[number] > 0:
        hold_back(c, g, h, s, target, True)
    for i in range(g.channels):     # what is not planned from where it is now
        channel = g.channel[i]
        if s.age[number] == 0 or not (s.since < NARROWING or (c.calm and s.age[number] <= c.patience)):
            break
        last = gentle(s, channel) * h / EASING
        target[i] = s.acceleration[channel] + within(target[i] - s.acceleration[channel], last)
    if c.geared:                    # the ends are kept by the actuators too, but cranks have to stay in reach here
        hold_back(c, g, h, s, target, False)
    for i in range(g.channels):
        channel = g.channel[i]
        new, former, held = c.guard[channel], s.former.guard[channel], &s.held.guard[channel]
        held.low = -narrower(-new.low, -former.low, left)
        held.high = narrower(new.high, former.high, left)
        held.speed = narrower(new.speed, former.speed, left)
        held.acceleration = narrower(new.acceleration, former.acceleration, left)
        if channel < 3 and s.since < NARROWING:
            last = gentle(s, channel) / EASING
            target[i] = slowed(held, last, h, s.speed[channel], s.acceleration[channel], target[i])
        last = guarded(held, h, s.place[channel], s.speed[channel], s.acceleration[channel], target[i])
        s.change[channel] = (last - s.acceleration[channel]) / c.period


cdef double waiting(const PredictiveCoeffs* c, const Group* g, const PredictiveState* s, int channel) noexcept nogil:
    """Return how far a plan tilts until the end of the first block that may be fast, beyond what is slow [rad]."""
    cdef double speed = s.speed[channel], push = s.acceleration[channel]
    cdef double way = 0.0
    cdef double time = 0.0
    cdef double h, next
    cdef int k
    for k in range(NEAR + 1 if NEAR < g.knots else g.knots):
        h = c.dt * c.period * c.ends[k] - time
        next = s.plan[channel][k]
        way += h * (speed + h * (2.0 * push + next) / 6.0)
        speed += 0.5 * h * (push + next)
        push = next
        time += h
    way = fabs(way) - c.tilt_rate * time
    return way if way > 0.0 else 0.0


cdef void plan_group(const PredictiveCoeffs* c, int number, PredictiveState* s, const double* car) noexcept nogil:
    """Plan a group, and steer it to the accelerations that it has when it is planned next.

    If there is no solution within the solver's work, the newest plan is followed; after some such failures, the
    safe stop: the platform goes back to neutral.
    """
    cdef const Group* g = &c.group[number]
    cdef double target[AXES]
    cdef int i, channel
    trim(g, s)
    pose_program(c, number, s, car)
    s.counts.plans += 1
    if solved(g.quadratic) and take_plan(g, s):
        s.age[number] = 0
    else:
        s.age[number] += 1
        s.counts.failed += 1
        for i in range(g.unknowns + g.rows):    # the next program goes on from where this one was left, or anew
            s.active[g.first + i] = g.quadratic.workspace.sense[i] & (ACTIVE | LOWER) if s.age[number] % ANEW else 0
    if g.quadratic.steps > s.counts.most_steps:
        s.counts.most_steps = g.quadratic.steps
    if s.age[number] > c.patience:
        s.counts.stopped += 1
    for i in range(g.channels):
        channel = g.channel[i]
        if s.age[number] <= c.patience:
            target[i] = planned(c, g, s.plan[channel], s.age[number] + 1)
        else:
            target[i] = to_neutral(g, s, i)
        if (channel == 3 or channel == 4) and not 0 < s.age[number] <= c.patience:  # what an old plan waits for stays
            s.waiting[channel - 3] = waiting(c, g, s, channel) if s.age[number] == 0 else 0.0
    steer(c, number, s, target)


cdef void move(const PredictiveCoeffs* c, PredictiveState* s) noexcept nogil:
    """Integrate a tick, in which accelerations change along straight lines: exact."""
    cdef double dt = c.dt
    cdef int i
    for i in range(AXES):
        s.place[i] += dt * (s.speed[i] + dt * (0.5 * s.acceleration[i] + s.change[i] / 6.0))
        s.speed[i] += dt * (s.acceleration[i] + 0.5 * s.change[i])
        s.acceleration[i] += s.change[i]


cdef bint tilts_fast(const PredictiveCoeffs* c, const PredictiveState* s, const double* car) noexcept nogil:
    """Say whether the platform rolls or pitches fast beyond what the car does, or against it."""
    cdef double rate
    cdef int i
    for i in range(3, 5):
        rate = fabs(s.speed[i])
        if s.speed[i] * car[i] > 0.0:
            rate -= fabs(car[i])    # turning with the car is no tilt
        if rate > FAST * c.tilt_rate:
            return True
    return False


cdef void hurry(const PredictiveCoeffs* c, PredictiveState* s, const double* car) noexcept nogil:
    """Open and close the limit on the tilt rate: in bursts, of what waits for them.

    The farther it is open, the less keeps it so.  The less tilt has been fast of late, the sooner bursts come; what was
    too much is paid back by rarer ones.
    """
    cdef double most = s.waiting[0] if s.waiting[0] > s.waiting[1] else s.waiting[1]
    s.spent = within(s.spent + c.dt / ACCOUNT_S * (tilts_fast(c, s, car) - c.share), 1.0)
    s.open = most > (1.0 - (1.0 - CLOSE) * s.hurry) * c.burst * exp((FRUGAL if s.spent > 0.0 else EAGER) * s.spent)
    s.hurry = min(1.0, max(0.0, s.hurry + (c.dt if s.open else -c.dt) / c.opening))


cdef void fill_cue(const PredictiveCoeffs* c, PredictiveState* s, Cue* cue) noexcept nogil:
    """Fill the cue with the platform's pose and what acts on its occupant."""
    cdef PlatformMotion out
    cdef int i
    for i in range(3):
        out.a[i] = s.acceleration[i]
        out.travel[i] = s.place[i]
        out.rates[i] = s.speed[3 + i]
    out.a[2] = -out.a[2]
    out.travel[2] = -out.travel[2]
    two_turns(s.platform, s.place[3], s.place[4])
    out.roll = s.platform[0]
    out.pitch = s.platform[1]
    out.yaw = s.place[5]
    cue_of(c.gravity, &out, &s.platform[2], <double*>cue)


cdef void step(void* state, const void* coeffs, const Motion* motion, Cue* cue) noexcept nogil:
    cdef PredictiveState* s = <PredictiveState*>state
    cdef const PredictiveCoeffs* c = <const PredictiveCoeffs*>coeffs
    cdef double car[AXES]
    cdef double* felt = <double*>cue
    cdef bint beats
    cdef double before, integral, acting
    cdef int i, j
    heed(s, c.dt / HEEDING)
    if s.number != c.number:
        if s.number:
            leave(c, s, False)
        else:
            s.since = NARROWING + FREEING
        s.number = c.number
    felt_in_car(c, motion, car)
    beats = s.predictor.tick == 0
    observe_motion(&c.predictor, &s.predictor, car)
    if beats:
        prove(c, s, car)
    if s.startled and s.since >= HEEDING:
        leave(c, s, True)
    s.startled = False
    for i in range(c.groups):
        if c.group[i].phase == s.tick:
            plan_group(c, i, s, car)
    s.tick = (s.tick + 1) % c.period
    s.since += c.dt
    s.rough *= 1.0 - c.dt / CALMING if s.since >= NARROWING else 1.0
    move(c, s)
    fill_cue(c, s, cue)
    hurry(c, s, car)
    for i in range(AXES):       # specific force and rates of the cue are its first channels, without the attitude
        s.organs[i] += (1.0 - c.kept[i]) * (car[i] - felt[i if i < 3 else 3 + i] - s.organs[i])
    for i in range(3):
        before, integral, acting = s.conflict[i][0], s.conflict[i][1], felt[i]
        if i < 2:
            acting += c.lean[i][0] * s.place[4 - i] + c.lean[i][1] * s.speed[4 - i]
        for j in range(2):
            s.conflict[i][j] = c.conflict[j][0] * before + c.conflict[j][1] * integral + c.conflict[j][2] * acting
    memset(s.known, 0, sizeof(s.known))
    cue.speed = motion.speed
    cue.engine_speed = motion.engine_speed


cdef void reset(void* state) noexcept nogil:
    cdef PredictiveState* s = <PredictiveState*>state
    cdef Counts counts = s.counts       # of all drives
    cdef int i
    memset(s, 0, sizeof(PredictiveState))
    s.counts = counts
    for i in range(3):
        turn(&s.platform[i], 0.0)


cdef const double* hold(list kept, values) except NULL:
    """Return the address of a copy of some numbers, which lives as long as `kept`."""
    cdef double[::1] flat = np.array(values, dtype=np.float64, order="C").ravel()
    kept.append(flat)
    return &flat[0]


cdef const int* hold_whole(list kept, values) except NULL:
    """Return the address of a copy of some whole numbers, which lives as long as `kept`."""
    cdef int[::1] flat = np.array(values, dtype=np.int32)
    kept.append(flat)
    return &flat[0]


cdef int take_geometry(PredictiveCoeffs* c, Kinematics kinematics, neutral, gear, slopes, ends) except -1:
    """Copy the geometry of the actuators, and its linear form at neutral."""
    cdef int i, j
    c.geometry = kinematics.geometry
    c.geared = kinematics.count
    c.angles = len(neutral) - c.geared
    for i in range(c.geared):
        c.ends_low[i], c.ends_high[i] = ends.low[i], ends.high[i]
    for i in range(c.geared + c.angles):
        c.neutral[i], c.gear[i] = neutral[i], gear[i]
        for j in range(AXES):
            c.slopes[i][j] = slopes[i, j]
            c.steepness[i] += slopes[i, j] ** 2
    return 0


cdef int fill_outlook(PredictiveCoeffs* c, outlook) except -1:
    """Fill in how the car's motion is foreseen."""
    cdef MotionPredictorCoeffs* f = &c.predictor
    cdef int sense, node, k
    f.learns, f.beat = outlook["learns"], outlook["beat"]
    c.remembers, c.proved = outlook["remembers"], outlook["proved"]
    f.quick, f.slow, f.kept = outlook["quick"], outlook["slow"], outlook["kept"]
    for node in range(NODES):
        f.lag[node], f.doubt[node] = outlook["lags"][node], outlook["doubt"][node]
    for sense in range(AXES):
        f.prior[sense], c.proof[sense] = outlook["prior"][sense], outlook["proof"][sense]
        for node in range(NODES):
            for k in range(3):
                f.decayed[sense][node][k] = outlook["decayed"][sense, node, k]
    return 0


cdef int fill_group(Group* g, list kept, channels, senses, program, int first, Solver solver, int geared) except -1:
    """Fill in a group, whose constraints begin at `first`; return where those of the next one begin."""
    cdef int i
    g.channels, g.senses = len(channels), len(senses)
    for i in range(g.channels):
        g.channel[i] = channels[i]
    for i in range(g.senses):
        g.sense[i] = senses[i]
    g.unknowns, g.rows, g.first = len(program.hessian), len(program.rows), first
    g.knots = g.unknowns // g.channels
    g.conflicts = (program.gradient.shape[1] - 3 * g.channels - (1 + NODES) * g.senses) // 2
    g.gradient, g.drift = hold(kept, program.gradient.T), hold(kept, program.drift.T)
    g.low, g.high = hold(kept, program.low), hold(kept, program.high)
    g.per_place, g.per_speed = hold(kept, program.per_place), hold(kept, program.per_speed)
    g.per_push = hold(kept, program.per_push)
    g.scale, g.turning = hold(kept, program.scale), hold(kept, program.turning)
    g.bound, g.block = hold_whole(kept, program.bound), hold_whole(kept, program.block)
    g.tilting = hold_whole(kept, program.tilting)
    kinds, of_row = np.unique(np.round(program.moving, 12), axis=0, return_inverse=True)
    varies = (program.bound >= 0) & (program.bound < geared)
    g.kind, g.motion = hold_whole(kept, np.where(varies, of_row.ravel(), -1)), hold(kept, kinds[:, :3])
    if geared:
        solver.vary(np.repeat(kinds[:, 3:], g.channels, axis=1) * program.scale, g.channels)
    g.quadratic = &solver.quadratic
    kept.append(solver)
    return first + g.unknowns + g.rows


cdef int64_t number_of(groups, tuple others) except -1:
    """Return a number of what plans follow from: above 0, and the same for the same."""
    parts = b"".join([np.asarray(each).tobytes() for *_, program in groups for each in program])
    return 1 + zlib.crc32(repr(others).encode(), zlib.crc32(parts))


cdef class Predictive(Algorithm):
    """Receding horizon cueing.

    Notes
    -----
    The groups are planned in different ticks of the period, so that no tick has more than its share.  The result of a
    program depends on the present state and motion alone: its working set is part of the state.
    Real time: a step does not allocate, needs no GIL and cannot fail; a plan takes a bounded number of multiplications.

    Units: `tilt` [rad/s, rad/s, rad, share of the time, rad/s^2].
    """

    def __init__(
        self, groups, lengths, double rate_hz, int period, gains, organs_s, guard, geared, int iterations,
        outlook,
        tilt,
        softness,
        bint calm,
    ):
        cdef PredictiveCoeffs* c = &self.coeffs
        cdef int i
        cdef int first = 0
        cdef Solver solver
        memset(c, 0, sizeof(PredictiveCoeffs))
        self.kept = []
        c.groups, c.period, c.gravity, c.dt = len(groups), period, GRAVITY, 1.0 / rate_hz
        c.patience = max(1, round(PATIENCE_S * rate_hz / period))
        for i, end in enumerate(np.cumsum(lengths)):
            c.ends[i] = end
        for i in range(AXES):
            c.kept[i] = np.exp(-c.dt / organs_s[i])
            c.largest[i] = LARGEST[i]
            c.gain[i] = gains[i]
            c.guard[i] = Guard(guard[i][0], guard[i][1], guard[i][2], guard[i][3])
        own, before, after = conflict_step(c.dt)
        for i in range(2):
            c.conflict[i][0], c.conflict[i][1], c.conflict[i][2] = own[i, 0], own[i, 1], before[i] + after[i]
            c.lean[i][0], c.lean[i][1] = TILTS[i][1] * LEAN[0], TILTS[i][1] * LEAN[1]
        c.tilt_rate, c.hurry, c.burst, c.share = tilt[0], tilt[1] / tilt[0], tilt[2], tilt[3]
        c.calm = calm
        # Half way it opens a quarter faster than tilt can begin: slower, and bursts on legs wait for one another longer.
        c.opening = max(OPENING, 1.5 * (tilt[1] - tilt[0]) / tilt[4])
        fill_outlook(c, outlook)
        if geared is not None:
            take_geometry(c, geared[0], geared[1], geared[2], geared[3], geared[4])
        for i, (channels, senses, program) in enumerate(groups):
            angle = (program.bound >= c.geared) & (program.bound < c.geared + c.angles)    # well before it has to hold
            soft = np.where((program.per_place > 0.0) & ~angle, softness[0], softness[1])
            solver = Solver(program.hessian, program.rows, soft, iterations)
            first = fill_group(&c.group[i], self.kept, channels, senses, program, first, solver, c.geared + c.angles)
            c.group[i].phase = i * period // len(groups)
        c.number = number_of(groups, (np.asarray(guard).tolist(), list(gains), outlook["learns"], outlook["remembers"], tilt, calm))
        if first > ROWS:
            raise ValueError(f"programs: found {first} constraints, allowed are {ROWS}")
        self.calls.step = step
        self.calls.look = look
        self.calls.reset = reset
        self.calls.coeffs = &self.coeffs
        self.calls.state = &self.state
        self.calls.state_bytes = sizeof(PredictiveState)
        self.calls.structure = structure_number(
            ("predictive", period, *lengths, *[(*channels, *senses, len(each.rows)) for channels, senses, each in groups])
        )
        self.calls.attitude = &self.state.platform[0]
        self.reset()

    @property
    def counts(self):
        """Plans so far, how many of them failed or were made in a safe stop; the most steps of the solver."""
        return self.state.counts
