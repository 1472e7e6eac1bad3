"""The stage that moves a platform's actuators."""

from libc.math cimport INFINITY, NAN, cbrt, exp, fabs, sqrt
from libc.math cimport M_PI as PI
from libc.string cimport memcmp, memcpy, memset

from motioncue.core.blend cimport blend_bend, blend_from, blend_rate, blend_step, fade_rests, fade_step, smooth
from motioncue.core.interfaces cimport LaneLayout, Machine, lanes_tick, chosen_machine
from motioncue.core.records cimport Actuation
from motioncue.core.rotation cimport Turn
from motioncue.platforms.kinematics cimport Actuator, Kinematics, inverse

import numpy as np

__all__ = ["PARTS_OF_A_POSE", "Actuators"]


cdef extern from * nogil:
    """
    #define MC_OVER_LANES "motioncue/platforms/reach.h"
    #include "motioncue/core/lanes.h"
    static int64_t (*const mc_drive_rigs[])(const int *, const void *, const void *, void *, double *, int) =
        MC_OF_MACHINES(mc_drive_rigs);
    """
    lanes_tick drive_rigs "mc_drive_rigs"[3]

PARTS_OF_A_POSE = ("yaw", "heave", "travel", "tilt")
"""Parts of a pose that can give way if a platform cannot reach it: yaw; heave; surge and sway; roll and pitch."""


cdef double PLANNED_S = 2.0     # in which a plan comes within narrower bounds [s]
cdef double MOVES_ON_S = 0.3    # for which a cue that begins to fade is taken to move on as it did [s]
cdef double LONGER = 1.2        # times what a fade would need of a cue that stands


cdef inline void rise(const ActuatorParams* d, double up, double* positions) noexcept nogil:
    """Replace the positions by those `up` of the way from where the platform is parked."""
    cdef int i
    if up < 1.0:
        for i in range(d.count):
            positions[i] = d.parked[i] + up * (positions[i] - d.parked[i])


cdef double fade_ticks_from(const ActuatorParams* d, const double* pose, const double* move) noexcept nogil:
    """Return in how many ticks a pose, which moves by `move` in a tick, may fade to neutral, so that every actuator follows.

    Over a way w in n ticks the largest slope of a fade is 1.875 w / n, the largest bend 10 / sqrt(3) w / n^2, the largest
    third derivative 60 w / n^3.  The pose moves on meanwhile: half of its speed, by half of its weight, is added to the
    largest slope.  Actuators are not linear in it.
    """
    cdef double before[6]
    cdef double whole[6]
    cdef double half[6]
    cdef double now[12]
    cdef double last[12]
    cdef double far[12]
    cdef double middle[12]
    cdef double speed = 0.0
    cdef double acceleration = 0.0
    cdef double jerk = 0.0
    cdef double way
    cdef int i
    cdef bint reached
    for i in range(6):
        before[i] = pose[i] - move[i]
        whole[i] = pose[i] + MOVES_ON_S / d.dt * move[i]
        half[i] = 0.5 * whole[i]
    reached = inverse(&d.geometry, before, last, NULL) and inverse(&d.geometry, pose, now, NULL) \
        and inverse(&d.geometry, whole, far, NULL) and inverse(&d.geometry, half, middle, NULL)
    if not reached:             # beyond what cranks reach
        return INFINITY
    for i in range(d.count):
        way = 2.0 * max(fabs(far[i] - middle[i]), fabs(middle[i] - d.neutral[i]))
        speed = max(speed, way / max(d.bounds[i].speed - 0.5 * fabs(now[i] - last[i]), 0.25 * d.bounds[i].speed))
        acceleration = max(acceleration, way / d.bounds[i].acceleration)
        jerk = max(jerk, way / d.bounds[i].jerk)
    return LONGER * max(1.875 * speed, sqrt(10.0 / sqrt(3.0) * acceleration), cbrt(60.0 * jerk))


cdef void begin(const ActuatorParams* d, ActuatorState* s, bint parked) noexcept nogil:
    """Start at rest: where the platform is parked, or at neutral."""
    cdef int i
    s.begun = True
    s.raised.pace = d.pace
    fade_rests(&s.raised, 0.0 if parked else 1.0)
    s.easing.position = 1.0
    memcpy(s.easing.bounds, d.bounds, sizeof(d.bounds))
    for i in range(4):
        s.stops[i] = AT_REST
    for i in range(3):
        s.reduction.tables[i].stop = AT_REST
    for i in range(d.count):
        s.reduction.positions[i] = d.neutral[i]
        s.motion[i].position = s.motion[i].target = d.parked[i] if parked else d.neutral[i]


cdef double share_left(const Easing* e) noexcept nogil:
    """Return the share of a change that has not taken hold yet."""
    return 1.0 - smooth(e.position) if e.on and e.position < 1.0 else 0.0


cdef void in_force(const ActuatorParams* d, const Easing* e, ActuatorBounds* bounds) noexcept nogil:
    """Fill in the bounds that positions are asked within: narrower ones take hold along the fade.

    A narrower range does so only for a cue that comes within it by itself, so that both go together; for any other cue
    it holds at once, and the difference of the positions vanishes.
    """
    cdef double left = share_left(e)
    cdef int i
    memcpy(bounds, d.bounds, sizeof(d.bounds))
    for i in range(d.count):
        bounds[i].low += left * (e.former[i].low - bounds[i].low)
        bounds[i].high += left * (e.former[i].high - bounds[i].high)
        bounds[i].speed += left * (e.former[i].speed - bounds[i].speed)
        bounds[i].acceleration += left * (e.former[i].acceleration - bounds[i].acceleration)
        if e.former[i].jerk < INFINITY:
            bounds[i].jerk += left * (e.former[i].jerk - bounds[i].jerk)


cdef Lead led(const ActuatorParams* d, const Easing* e, double* weight) noexcept nogil:
    """Return the lead in force, and its weight: another lag takes hold along the fade, and one from or to none by weight."""
    cdef double left = share_left(e)
    cdef double whole = 1.0 if d.lead.order else 0.0
    cdef double lag = d.lead.lag + left * (e.lag - d.lead.lag) if d.lead.order else e.lag
    cdef Lead it = d.lead
    weight[0] = whole + left * (e.weight - whole)
    if left > 0.0 and (lag != d.lead.lag or weight[0] != 1.0):
        it = lead_for(lag, d.damping if d.lead.order else e.damping, d.dt)
        it.outer *= weight[0]
        it.inner *= weight[0]
    return it


cdef void actuators_step(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil:
    cdef const ActuatorParams* d = <const ActuatorParams*>coeffs
    cdef ActuatorState* s = <ActuatorState*>state
    cdef double* positions = actuation.actuators
    cdef double pose[6]
    cdef int i, k
    if not s.begun:
        begin(d, s, parked)
    s.parked = parked
    s.stands, s.asked = s.asked, False
    s.ticks += 1
    pose_of(&actuation.cue, pose)
    if s.stands:
        begin_standing(d, s)
    if s.easing.on:
        step_easing(d, s, pose, positions)
        return
    if not reach(&d.geometry, d.bounds, d.order, d.yielding, &s.reduction, pose, positions):
        s.unreached += 1
    rise(d, fade_step(&s.raised, not parked), positions)
    lead(&d.lead, &s.lead, d.bounds, d.count, positions)
    for i in range(d.geometry.tables):
        k = d.geometry.count + i
        limit_table(&d.bounds[k], &s.motion[k], &s.stops[1 + i], &positions[k], &s.acted[k])
    if d.smooth[0]:
        step_smoothly(d, s, positions)
    elif not limit_actuators(d.bounds, s.motion, d.geometry.count, d.part, positions, s.acted) and s.reduction.slowed >= 0:
        s.acted[s.reduction.slowed] += 1


cdef void begin_standing(const ActuatorParams* d, ActuatorState* s) noexcept nogil:
    """Prepare the way from where the platform stands: it begins anew at every tick in which it still stands there."""
    cdef Easing* e = &s.easing
    if not e.on:
        e.on = True
        memcpy(e.smooth, d.smooth, sizeof(d.smooth))
        e.lag, e.weight = d.lead.lag, 1.0 if d.lead.order else 0.0
        memcpy(e.former, d.bounds, sizeof(d.bounds))
        memcpy(e.bounds, d.bounds, sizeof(d.bounds))
    e.position, e.pace = 0.0, d.pace


cdef void step_smoothly(const ActuatorParams* d, ActuatorState* s, double* positions) noexcept nogil:
    """Do the end of a tick where jerk is bounded."""
    if not limit_jerks(d.bounds, s.motion, &s.stops[0], d.geometry.count, positions, s.acted) and s.reduction.slowed >= 0:
        s.acted[s.reduction.slowed] += 1


cdef void step_easing(const ActuatorParams* d, ActuatorState* s, const double* pose, double* positions) noexcept nogil:
    """Do a tick while other bounds, or another lag, take hold."""
    cdef Easing* e = &s.easing
    cdef ActuatorBounds bounds[12]
    cdef Lead leading
    cdef double weight
    cdef bint rough
    cdef int n = d.count
    cdef int i, over
    if e.position < 1.0 and not s.stands:
        e.position += e.pace
    in_force(d, e, bounds)
    leading = led(d, e, &weight)
    if not reach(&d.geometry, bounds, d.order, d.yielding, &s.reduction, pose, positions):
        s.unreached += 1
    rise(d, fade_step(&s.raised, not s.parked), positions)
    lead(&leading, &s.lead, bounds, n, positions)
    for i in range(n):
        if s.stands:
            e.joins[i] = blend_from(s.stood[i] - positions[i], 0.0, 0.0, d.pace)
            positions[i] = s.stood[i]
        else:
            positions[i] += blend_step(&e.joins[i])
        e.bounds[i].speed = bounds[i].speed
    over = ease(d, s, bounds, 0, 0, d.geometry.count, positions)
    if over < 0:
        over = s.reduction.slowed
    if over >= 0:
        s.acted[over] += 1
    rough = e.smooth[0] != d.smooth[0]
    for i in range(d.geometry.tables):
        over = ease(d, s, bounds, 1 + i, d.geometry.count + i, 1, positions)
        if over >= 0:
            s.acted[over] += 1
        rough = rough or e.smooth[1 + i] != d.smooth[1 + i]
    e.on = e.position < 1.0 or rough or not bounds_reached(d.bounds, e.bounds, n)
    if not e.on and not d.smooth[0]:
        for i in range(d.geometry.count):
            s.motion[i].acceleration = 0.0


cdef int ease(
    const ActuatorParams* d, ActuatorState* s, const ActuatorBounds* goal, int group, int first, int n, double* sent
) noexcept nogil:
    """Move the `n` actuators of a group from the `first` on while other bounds take hold; return one that stops them."""
    cdef Easing* e = &s.easing
    cdef ActuatorBounds* bounds = &e.bounds[first]
    cdef ActuatorMotion* motion = &s.motion[first]
    cdef double* positions = &sent[first]
    cdef bint limited = False
    cdef bint part = d.part and group == 0
    cdef int i, over
    if d.smooth[group]:
        over = tighten_jerk_bounds(&goal[first], bounds, motion, &s.stops[group], n, e.position >= 1.0, &e.smooth[group])
    else:
        over = tighten_bounds(&goal[first], bounds, motion, n, part, e.position >= 1.0)
        if over < 0:
            e.smooth[group] = False
    if e.smooth[group]:
        if over >= 0:
            follow_jerk_stop(bounds, motion, &s.stops[group], n, positions)
        else:
            limited = limit_jerks(bounds, motion, &s.stops[group], n, positions, &s.acted[first])
    else:
        for i in range(n):
            motion[i].acceleration = -motion[i].speed
        if over >= 0:
            stop_actuators(bounds, motion, n, part, positions)
        else:
            limited = limit_actuators(bounds, motion, n, part, positions, &s.acted[first])
        for i in range(n):
            motion[i].acceleration += motion[i].speed
    if limited and group == 0:
        s.reduction.slowed = -1
    return first + over if over >= 0 else -1


cdef void actuators_continue(
    void* state, const void* coeffs, const void* before_state, const void* before_coeffs, double pace
) noexcept nogil:
    """Continue the motion; the difference to the positions that are wanted from now on vanishes along a fade."""
    cdef const ActuatorParams* d = <const ActuatorParams*>coeffs
    cdef const ActuatorParams* before = <const ActuatorParams*>before_coeffs
    cdef ActuatorState* s = <ActuatorState*>state
    cdef Easing* e = &s.easing
    cdef ActuatorBounds asked[12]
    cdef Lead leading, led_before
    cdef double positions[12]
    cdef double value, weight
    cdef bint joined, glides
    cdef int i
    s[0] = (<const ActuatorState*>before_state)[0]
    if not s.begun or memcmp(d, before_coeffs, sizeof(ActuatorParams)) == 0:
        return
    in_force(before, e, asked)
    led_before = led(before, e, &weight)
    s.raised.pace = d.pace
    if s.raised.position < 1.0:
        pace = d.pace           # where it is parked may have changed, and the way up has its own duration
    if d.planned:
        pace = min(pace, d.dt / PLANNED_S)
    joined = e.position < 1.0
    memcpy(e.former, d.bounds, sizeof(e.former))
    for i in range(d.count):
        if d.planned:
            e.former[i].low = min(d.bounds[i].low, asked[i].low)
            e.former[i].high = max(d.bounds[i].high, asked[i].high)
        e.former[i].speed = max(d.bounds[i].speed, asked[i].speed)
        e.former[i].acceleration = max(d.bounds[i].acceleration, asked[i].acceleration)
        e.former[i].jerk = max(d.bounds[i].jerk, asked[i].jerk)
        if not e.on and not before.smooth[0] and i < d.geometry.count:
            s.motion[i].acceleration = NAN
    if not e.on:
        memcpy(e.smooth, before.smooth, sizeof(before.smooth))
    e.weight = weight
    e.lag = led_before.lag if weight > 0.0 else d.lead.lag
    if before.lead.order:
        e.damping = before.damping
    glides = e.lag != d.lead.lag or weight != (1.0 if d.lead.order else 0.0) or memcmp(e.former, d.bounds, sizeof(e.former)) != 0
    e.on, e.position = True, 0.0
    leading = led(d, e, &weight)
    reach_anew(&d.geometry, asked, e.former, &s.reduction, positions)
    rise(d, s.raised.weight, positions)
    lead_as_before(&leading, &led_before, &s.lead, d.count, positions)
    relax_bounds(d.bounds, e.bounds, d.count)
    for i in range(d.count):
        value = s.motion[i].target - positions[i]
        # What remains of the join before keeps its slope and bend.
        e.joins[i] = blend_from(value, blend_rate(&e.joins[i]), blend_bend(&e.joins[i]), pace)
        joined = joined or value != 0.0
    e.position = 0.0 if joined or glides else 1.0
    e.pace = pace


cdef void actuators_reset(void* state) noexcept nogil:
    memset(state, 0, sizeof(ActuatorState))


cdef bint actuators_at_rest(const void* state) noexcept nogil:
    """Say whether the platform rests: where it is parked if it is to be parked, else at the cue."""
    cdef const ActuatorState* s = <const ActuatorState*>state
    cdef int i
    if not s.begun or s.stands:
        return True
    if s.raised.position != (0.0 if s.parked else 1.0) or s.easing.on:
        return False
    for i in range(<int>MOST):
        if s.motion[i].speed != 0.0 or s.motion[i].position != s.motion[i].target or s.motion[i].acceleration != 0.0:
            return False
    return True


cdef bint actuators_rise(const void* state) noexcept nogil:
    cdef const ActuatorState* s = <const ActuatorState*>state
    return s.begun and not s.parked and s.raised.position < 1.0


cdef void actuators_stand(void* state, const void* coeffs, const double* positions, bint found) noexcept nogil:
    cdef const ActuatorParams* d = <const ActuatorParams*>coeffs
    cdef ActuatorState* s = <ActuatorState*>state
    cdef int i
    s.asked = True
    for i in range(d.count):
        s.stood[i] = min(max(positions[i], d.bounds[i].low), d.bounds[i].high)
    if not found:
        return
    if not s.begun:
        begin(d, s, True)
    for i in range(4):
        s.stops[i] = AT_REST
    for i in range(d.count):
        s.motion[i].position = s.motion[i].target = s.stood[i]
        s.motion[i].speed = s.motion[i].acceleration = 0.0


cdef void actuators_hurry(void* state, double pace) noexcept nogil:
    cdef ActuatorState* s = <ActuatorState*>state
    s.raised.pace = max(s.raised.pace, pace)


# ---- rigs side by side -----------------------------------------------------------------------------------------------


cdef void fill_lane_coeffs(const void* coeffs, double* out) noexcept nogil:
    cdef const ActuatorParams* d = <const ActuatorParams*>coeffs
    cdef const ActuatorBounds* bounds
    cdef int i
    for i in range(d.geometry.count):
        bounds = &d.bounds[i]
        memcpy(out, &d.geometry.actuators[i], sizeof(Actuator))
        out = <double*>(<Actuator*>out + 1)
        out[0], out[1], out[2], out[3] = bounds.low, bounds.high, bounds.speed, bounds.acceleration
        out[4] = 1.0 / bounds.acceleration
        out += 5


cdef bint to_lanes(void* state, const void* coeffs, double* out) noexcept nogil:
    cdef const ActuatorParams* d = <const ActuatorParams*>coeffs
    cdef ActuatorState* s = <ActuatorState*>state
    cdef int i
    if not s.begun or s.raised.position != 1.0 or s.easing.on or s.reduction.active or d.lead.order or d.smooth[0] \
            or d.geometry.tables:
        return False
    if memcmp(s.reduction.at, s.reduction.pose, 6 * sizeof(double)) != 0:
        return False
    for i in range(d.geometry.count):
        if not s.motion[i].position == s.motion[i].target == s.reduction.positions[i]:
            return False
        out[6 + 2 * i], out[7 + 2 * i] = s.motion[i].position, s.motion[i].speed
    memcpy(out, s.reduction.pose, 6 * sizeof(double))
    return True


cdef void from_lanes(void* state, const void* coeffs, const double* lanes) noexcept nogil:
    cdef ActuatorState* s = <ActuatorState*>state
    cdef int i
    memcpy(s.reduction.pose, lanes, 6 * sizeof(double))
    memcpy(s.reduction.at, lanes, 6 * sizeof(double))
    for i in range((<const ActuatorParams*>coeffs).geometry.count):
        s.motion[i].position = s.motion[i].target = s.reduction.positions[i] = lanes[6 + 2 * i]
        s.motion[i].speed = lanes[7 + 2 * i]


cdef class Actuators(Stage):
    """Converts the pose that the cue requests into the position of each actuator.

    Every actuator keeps its bounds for any input; an input that keeps them passes bit for bit, unless a lag is
    compensated.  Of a pose out of reach, the platform shows as much as it can: parts of it give way within about a
    second, and come back as slowly.  Until they have, the whole pose is smaller.  No latency of its own.
    Real time: a tick does not allocate, needs no GIL and cannot fail.

    Units: `dt` [s].
    """

    def __cinit__(self, Kinematics kinematics not None, names, bounds, parked, double rise_s, gives_way, double dt,
                  double lag_s=0.0, double lag_damping=0.0, bint planned=False):
        cdef ActuatorParams* d = &self.params
        cdef double pose[6]
        cdef int i, k
        self.names = tuple(names)
        memset(d, 0, sizeof(ActuatorParams))
        memset(&self.state, 0, sizeof(ActuatorState))
        d.geometry = kinematics.geometry
        d.count = kinematics.count
        if not len(self.names) == len(bounds) == len(parked) == d.count:
            raise ValueError(f"actuators: found {len(self.names)} names, {len(bounds)} bounds, {len(parked)} parked "
                             f"positions, allowed are {d.count} of each")
        for i, each in enumerate(bounds):
            if not (each.low < each.high and each.speed > 0.0 and each.acceleration > 0.0 and each.jerk > 0.0
                    and each.low <= parked[i] <= each.high):
                raise ValueError(f"{self.names[i]}: found {each}, parked at {parked[i]}")
            d.bounds[i] = ActuatorBounds(
                each.low, each.high, each.speed * dt, each.acceleration * dt * dt, each.jerk * dt * dt * dt
            )
            k = max(0, i - d.geometry.count + 1)
            d.smooth[k] = d.smooth[k] or each.jerk < INFINITY
            d.parked[i] = parked[i]
        if sorted(gives_way) != sorted(PARTS_OF_A_POSE):
            raise ValueError(
                f"gives_way: found {', '.join(gives_way)}, allowed are {', '.join(PARTS_OF_A_POSE)} in any order"
            )
        for i, part in enumerate(gives_way):
            d.order[i] = PARTS_OF_A_POSE.index(part)
        memset(pose, 0, sizeof(pose))
        if not within(&d.geometry, d.bounds, pose, d.neutral):
            raise ValueError("neutral is out of reach")
        if not (rise_s > 0.0 and dt > 0.0):
            raise ValueError(f"rise_s, dt: found {rise_s}, {dt}, allowed are numbers above 0")
        d.pace = dt / rise_s
        if not (lag_s >= 0.0 and 0.0 <= lag_damping <= 1.0):
            raise ValueError(f"lag_s, lag_damping: found {lag_s}, {lag_damping}, allowed are 0 or more, and 0 to 1")
        d.lead = lead_for(lag_s, lag_damping, dt)
        d.damping, d.dt, d.planned = lag_damping, dt, planned
        slopes = kinematics.jacobian(np.zeros((1, 6)))[0][: d.geometry.count]
        # A crank comes near the line with its rod on other ways than straight ones.
        d.part = "crank" not in kinematics.kinds and np.linalg.matrix_rank(slopes) == d.geometry.count
        d.yielding = 1.0 - exp(-dt / LAG_S)
        for i in range(d.geometry.tables):      # a plan says itself what the tables do
            d.geometry.table[i].pace = 1.0 if planned else 1.0 - exp(-2.0 * PI * d.geometry.table[i].below * dt)
        self.calls.step = actuators_step
        self.calls.reset = actuators_reset
        self.calls.at_rest = actuators_at_rest
        self.calls.coeffs = d
        self.calls.state = &self.state
        self.calls.continue_from = actuators_continue
        self.calls.rises = actuators_rise
        self.calls.hurry = actuators_hurry
        self.calls.stand = actuators_stand

    @property
    def fills(self):
        """The channels of its actuators."""
        return tuple(f"actuator_{number}" for number in range(1, len(self.names) + 1))

    cdef LaneLayout lane_layout(self):
        """Return how the stage is done in lanes."""
        cdef Machine machine = chosen_machine()
        cdef LaneLayout it
        cdef int i, n = self.params.geometry.count
        memset(&it, 0, sizeof(it))
        it.step, it.state, it.coeffs = self.calls.step, self.calls.state, self.calls.coeffs
        it.lanes = machine.lanes
        it.tick = drive_rigs[machine.index]
        it.plan[0] = n
        for i in range(n):
            it.plan[1 + i] = self.params.geometry.kinds[i]
        it.coeffs_count = n * <int>(sizeof(Actuator) // sizeof(double) + 5)
        it.state_count = 6 + 2 * n
        it.ticks = &self.state.ticks
        it.fill_coeffs, it.to_lanes, it.from_lanes = fill_lane_coeffs, to_lanes, from_lanes
        return it

    def shares(self):
        """Return the share of ticks in which each actuator held the others back, by name.

        ``reach`` is the share in which the pose was out of reach.
        """
        cdef double ticks = self.state.ticks if self.state.ticks else 1.0
        found = {name: self.state.acted[i] / ticks for i, name in enumerate(self.names)}
        found["reach"] = self.state.unreached / ticks
        return found
