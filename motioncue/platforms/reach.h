/* The positions of a platform's actuators at a pose, or at as much of the pose as they reach.
 *
 * Limiting a single leg at a pose out of its reach would give another kind of motion.  So parts of the pose give way: the
 * part that gives way last is kept as far as the platform reaches, then the next with what is left.  Which share of each
 * part that is can change suddenly while the pose changes little (a yaw that did not fit beside a surge has room again),
 * so the shares in use follow it by two lags of MC_LAG_S each.  While they are late, the pose is shortened towards neutral
 * until it is within reach; that length changes without steps.
 *
 * A pose that jumps is approached along the straight line from the pose before, about as fast as the fastest actuator may
 * move: between positions of two poses there can be positions at which the frame does not fit together.  The frame slows
 * down where its stop, straight on, would bring a crank too close to one line with its rod.
 *
 * An axis moves along one direction only, and stops at its end by itself.
 *
 * On tables (kinematics.h) all this is about the frame's own pose: what the tables leave.  A table is asked for what is
 * slow in its channel, by two lags; what is fast stays with the frame, up to the table's `room` for it, and so does what is
 * beyond the table's ends.  The table goes there within its own bounds, and where it is late, the frame has the rest.  So
 * frame and tables together are the pose that is wanted, at every tick in which the frame reaches its share.
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_REACH_H
#define MOTIONCUE_REACH_H
#include "motioncue/platforms/actuator_limits.h"

/* Bisections: shares that follow slowly need not be exact; a length that varies by rounding would move an actuator that
   rides on its end. */
enum { MC_SHARE_HALVINGS = 16, MC_LENGTH_HALVINGS = 50, MC_LENGTH_STEPS = 8, MC_STEP_TRIES = 3, MC_BRAKE_TRIES = 12 };
enum { MC_YAWING, MC_HEAVING, MC_TRAVEL, MC_TILT, MC_PARTS }; /* yaw; heave; surge and sway; roll and pitch */

#define MC_LAG_S 0.25            /* [s] a yaw of 10 deg then leaves with less than 3 rad/s^2, and is gone in a second */
#define MC_FARTHEST_POSE 1e6     /* [m, rad] a pose beyond it is not followed */
#define MC_BRAKE_SHARE 0.8       /* of a move that would come too close to a straight crank, in the next try */
#define MC_RESTORED 1e-9         /* a share that lacks less than this is whole again */
#define MC_SETTLED 1e-12         /* [m, rad] a lag that lacks less is over: what rests is to rest exactly */
#define MC_TABLE_SHARE 0.95      /* of its bounds, for what a table is asked for: the rest is for a lead and for the way up */

typedef struct {
    double slow[2];          /* slow part of its channel, after one lag and after two */
    mc_ActuatorMotion motion; /* and where it is asked to be */
    mc_JerkStop stop;
} mc_TableMotion;

typedef struct {
    double pose[6];           /* wanted pose, as of the newest tick in which it was a number */
    double target[MC_PARTS];    /* share of each part that is to give way, after the first lag */
    double reduction[MC_PARTS]; /* share of each part that gives way */
    int active;                 /* whether any of them is above 0 */
    double at[6];             /* pose of the tick before, and its positions */
    double positions[MC_MOST_ACTUATORS];
    int slowed;               /* the actuator whose speed shortened the newest tick's step; -1: none did */
    mc_TableMotion tables[MC_MOST_TABLES];
} mc_PoseReduction;

static const int mc_part_first[MC_PARTS] = {5, 2, 0, 3}, mc_part_last[MC_PARTS] = {5, 2, 1, 4};

/* Fill the positions of all actuators but tables; return whether each of them can reach the frame's own pose. */
static inline int mc_within(
    const mc_Platform *p, const mc_ActuatorBounds *bounds, const double *pose, double *positions
) {
    if (!mc_frame_inverse(p, pose, MC_STRAIGHT, positions, NULL)) return 0;
    for (int i = 0; i < p->count; i++) {
        if (p->kinds[i] == MC_AXIS) positions[i] = fmin(fmax(positions[i], bounds[i].low), bounds[i].high);
        if (!(bounds[i].low <= positions[i] && positions[i] <= bounds[i].high)) return 0;
    }
    return 1;
}

static inline void mc_scale_part(double *pose, const double *wanted, int part, double share) {
    for (int i = mc_part_first[part]; i <= mc_part_last[part]; i++) pose[i] = share * wanted[i];
}

/* Fill `target` with the share of each part of `wanted` that is out of reach beside the parts that give way later. */
static inline void mc_find_reduction(
    const mc_Platform *p, const mc_ActuatorBounds *bounds, const int *order, const double *wanted, double *target
) {
    double pose[6] = {0.0}, positions[MC_MOST_ACTUATORS];
    for (int n = MC_PARTS - 1; n >= 0; n--) {
        double most = 1.0, least = 0.0, share = 1.0;
        for (int k = 0; k <= MC_SHARE_HALVINGS && least < most; k++) {
            mc_scale_part(pose, wanted, order[n], share);
            if (mc_within(p, bounds, pose, positions)) least = share;
            else most = share;
            share = 0.5 * (least + most);
        }
        mc_scale_part(pose, wanted, order[n], least);
        target[order[n]] = 1.0 - least;
    }
}

/* Shorten `pose` to the longest part of the way from neutral to it that is within reach; fill its positions. */
static inline void mc_shorten(const mc_Platform *p, const mc_ActuatorBounds *bounds, double *pose, double *positions) {
    double tried[6], least = 0.0, most = 0.0;
    if (mc_within(p, bounds, pose, positions)) return;
    for (int k = 1; k <= MC_LENGTH_STEPS + MC_LENGTH_HALVINGS; k++) {
        const double share = k <= MC_LENGTH_STEPS ? (double) k / MC_LENGTH_STEPS : 0.5 * (least + most);
        for (int i = 0; i < 6; i++) tried[i] = share * pose[i];
        if (mc_within(p, bounds, tried, positions)) least = share;
        else {
            most = share;
            if (k < MC_LENGTH_STEPS) k = MC_LENGTH_STEPS; /* the first end of the way */
        }
    }
    for (int i = 0; i < 6; i++) pose[i] *= least;
    mc_within(p, bounds, pose, positions);
}

/* Return a crank that would come too close to one line with its rod if the frame, having gone from `at` to `pose` in this
   tick, stopped along the same way as the slowest actuator may; -1 if none would. */
static inline int mc_too_straight(
    const mc_Platform *p, const mc_ActuatorBounds *bounds, const mc_PoseReduction *state, const double *pose,
    const double *positions
) {
    double rest, speeds[MC_MOST_ACTUATORS], stop[6], there[MC_MOST_ACTUATORS];
    if (p->kinds[0] != MC_CRANK) return -1;
    for (int i = 0; i < p->count; i++) speeds[i] = positions[i] - state->positions[i];
    rest = mc_rest_distance(bounds, speeds, p->count);
    for (int i = 0; i < 6; i++) stop[i] = pose[i] + rest * (pose[i] - state->at[i]);
    if (mc_frame_inverse(p, stop, MC_STRAIGHT, there, NULL)) return -1;
    for (int i = 0; i < p->count; i++)
        if (there[i] != there[i]) return i;
    return -1;
}

/* Go from the pose of the tick before towards `pose`, as far as the speeds of the actuators allow in a tick, and as slowly
   as a crank close to one line with its rod requires; update both, and the positions there. */
static inline void mc_step(
    const mc_Platform *p, const mc_ActuatorBounds *bounds, mc_PoseReduction *state, double *pose, double *positions
) {
    double share = 1.0, way[6];
    int straight;
    state->slowed = -1;
    for (int i = 0; i < 6; i++) way[i] = pose[i] - state->at[i];
    for (int k = 0; k < MC_STEP_TRIES; k++) {
        double most = 1.0; /* ticks that the slowest actuator needs for its move */
        for (int i = 0; i < p->count; i++) {
            const double move = fabs(positions[i] - state->positions[i]);
            if (move > bounds[i].speed && move / bounds[i].speed > most) {
                most = move / bounds[i].speed;
                state->slowed = i;
            }
        }
        if (most == 1.0) break;
        share /= most;
        for (int i = 0; i < 6; i++) pose[i] = state->at[i] + share * way[i];
        mc_shorten(p, bounds, pose, positions);
    }
    for (int k = 0; k < MC_BRAKE_TRIES && (straight = mc_too_straight(p, bounds, state, pose, positions)) >= 0; k++) {
        state->slowed = straight;
        share *= k < MC_BRAKE_TRIES - 1 ? MC_BRAKE_SHARE : 0.0;
        for (int i = 0; i < 6; i++) pose[i] = state->at[i] + share * way[i];
        mc_shorten(p, bounds, pose, positions);
    }
    memcpy(state->at, pose, sizeof state->at);
    memcpy(state->positions, positions, p->count * sizeof *positions);
}

/* Let parts of `pose`, the wanted one, give way or return; fill the positions.  `whole` says whether it is within reach. */
static inline void mc_degrade_pose(
    const mc_Platform *p, const mc_ActuatorBounds *bounds, const int *order, double pace, mc_PoseReduction *state,
    int whole, double *pose,
    double *positions
) {
    double target[MC_PARTS] = {0.0}, wanted[6], most = 0.0;
    memcpy(wanted, pose, sizeof wanted);
    if (!whole) mc_find_reduction(p, bounds, order, pose, target);
    for (int k = 0; k < MC_PARTS; k++) {
        state->target[k] += pace * (target[k] - state->target[k]);
        state->reduction[k] += pace * (state->target[k] - state->reduction[k]);
        if (whole && state->reduction[k] < MC_RESTORED && state->target[k] < MC_RESTORED)
            state->reduction[k] = state->target[k] = 0.0;
        most = fmax(most, state->reduction[k]);
    }
    state->active = most > 0.0;
    for (int k = 0; k < MC_PARTS; k++) mc_scale_part(pose, wanted, k, 1.0 - state->reduction[k]);
    mc_shorten(p, bounds, pose, positions);
}

/* Move a table one tick towards `wanted`, within its bounds by itself, and overwrite it: legs need not stop with it. */
static MC_APART void mc_limit_table(
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, mc_JerkStop *stop, double *wanted, int64_t *acted
) {
    if (bounds->jerk < INFINITY) {
        mc_limit_jerks(bounds, motion, stop, 1, wanted, acted);
        return;
    }
    motion->acceleration = -motion->speed;
    mc_limit_actuators(bounds, motion, 1, 0, wanted, acted);
    motion->acceleration += motion->speed;
}

/* Fill the positions of the tables, after the others, for the whole pose; return the frame's own pose in `pose`. */
static MC_APART void mc_move_tables(
    const mc_Platform *p, const mc_ActuatorBounds *bounds, mc_PoseReduction *state, double *pose, double *positions
) {
    double *tables = positions + p->count;
    for (int k = 0; k < p->tables; k++) {
        const mc_Table *t = &p->table[k];
        mc_TableMotion *s = &state->tables[k];
        mc_ActuatorBounds own = bounds[p->count + k];
        const double part = state->pose[t->channel];
        double fast;
        s->slow[0] += t->pace * (part - s->slow[0]);
        s->slow[1] += t->pace * (s->slow[0] - s->slow[1]);
        if (fabs(part - s->slow[0]) + fabs(part - s->slow[1]) < MC_SETTLED) s->slow[0] = s->slow[1] = part;
        fast = mc_table_rest(-t->room, t->room, t->room, part - (2.0 * s->slow[0] - s->slow[1]), NULL);
        tables[k] = mc_table_rest(own.low, own.high, t->room, part - fast, NULL);
        own.speed *= MC_TABLE_SHARE;
        own.acceleration *= MC_TABLE_SHARE;
        own.jerk *= MC_TABLE_SHARE;
        mc_limit_table(&own, &s->motion, &s->stop, &tables[k], NULL);
    }
    mc_on_tables(p, state->pose, tables, pose);
}

/* Fill `positions` with those of `wanted`, or of as much of it as is within all bounds; return whether that is all of it.
   `pace` is the share of a difference that one lag covers in a tick. */
static inline int mc_reach(
    const mc_Platform *p, const mc_ActuatorBounds *bounds, const int *order, double pace, mc_PoseReduction *state,
    const double *wanted, double *positions
) {
    double pose[6];
    int whole;
    for (int i = 0; i < 6; i++)
        if (fabs(wanted[i]) <= MC_FARTHEST_POSE) state->pose[i] = wanted[i]; /* false for NaN */
    if (p->tables) {
        mc_move_tables(p, bounds, state, pose, positions);
        whole = mc_within(p, bounds, pose, positions);
    } else {
        whole = mc_within(p, bounds, state->pose, positions);
        memcpy(pose, state->pose, sizeof pose); /* not sooner: it would wait for the numbers stored above */
    }
    if (!whole || state->active) {
        mc_degrade_pose(p, bounds, order, pace, state, whole, pose, positions);
        whole &= !state->active;
    }
    mc_step(p, bounds, state, pose, positions);
    return whole;
}

/* Fill `positions` with those of the newest tick if these bounds had held instead of those `before`, and continue from
   there.  A pose that is still being approached stays the one reached so far.  The ends of tables are not among what may
   change while they run. */
static inline void mc_reach_anew(
    const mc_Platform *p, const mc_ActuatorBounds *before, const mc_ActuatorBounds *bounds, mc_PoseReduction *state,
    double *positions
) {
    double wanted[6], pose[6], was[6];
    for (int k = 0; k < p->tables; k++) positions[p->count + k] = state->tables[k].motion.position;
    mc_on_tables(p, state->pose, positions + p->count, wanted);
    memcpy(pose, wanted, sizeof pose);
    for (int k = 0; k < MC_PARTS; k++) mc_scale_part(pose, wanted, k, 1.0 - state->reduction[k]);
    memcpy(was, pose, sizeof was);
    mc_shorten(p, before, was, positions);
    if (memcmp(was, state->at, sizeof was)) memcpy(pose, state->at, sizeof pose);
    mc_shorten(p, bounds, pose, positions);
    memcpy(state->at, pose, sizeof state->at);
    memcpy(state->positions, positions, p->count * sizeof *positions);
}
#endif
#else /* included by core/lanes.h: for every kind of machine */
#include "motioncue/platforms/kinematics.h"
#include "motioncue/platforms/actuator_limits.h"

/* ---- Over lanes: one tick of many rigs, while no bound acts ----
 *
 * It tests for every rig whether its input passes unchanged, by a condition that suffices for the scalar code
 * to pass it (the above and actuator_limits.h).  It returns a bit for each rig that passed; the others keep the
 * state that they had and are stepped one by one (engine/batch.pyx).  `plan` is what the rigs have in common; `rows` is the
 * first rig's actuation, and the others follow every `stride` doubles.
 */
typedef struct {
    real position, speed; /* as in mc_ActuatorMotion */
} NAME(Moved);

typedef struct {
    NAME(Actuator) actuator;
    real low, high, speed, acceleration; /* as in mc_ActuatorBounds */
    real per_acceleration;               /* 1 / acceleration */
} NAME(Drive);

/* Return whether no crank would come too close to one line with its rod if each frame stopped from here on: the test of
   `mc_too_straight`, by the same operations. */
static flag NAME(stops_held)(
    const int *plan, const NAME(Drive) *drives, const NAME(Moved) *s, const NAME(Moved) *moved, const real *at,
    const real *pose
) {
    flag held = ALL(0.0) == ALL(0.0);
    real most = ALL(0.0), stop[6], r[9];
    for (int i = 0; i < plan[0]; i++) {
        const real ticks = NAME(magnitude)(moved[i].position - s[i].position) / drives[i].acceleration;
        most = NAME(pick)(ticks > most, ticks, most);
    }
    most = NAME(stop_rest_bound)(most);
    for (int i = 0; i < 6; i++) stop[i] = pose[i] + most * (pose[i] - at[i]);
    NAME(rotation)(stop + 3, r);
    for (int i = 0; i < plan[0]; i++) {
        const real there = NAME(position)(plan[1 + i], &drives[i].actuator, stop, r, MC_STRAIGHT);
        held &= there == there;
    }
    return held;
}

/* Move actuators: plan holds their number and their kinds; the states are a pose, then each actuator's.  A stop must end
   within the range by a bound on its distance. */
static int64_t NAME(drive_rigs)(
    const int *plan, const void *coeffs, const void *states, void *next_states, double *rows, int stride
) {
    const NAME(Drive) *drives = (const NAME(Drive) *)coeffs;
    const NAME(Moved) *s = (const NAME(Moved) *)((const real *)states + 6);
    NAME(Moved) *moved = (NAME(Moved) *)((real *)next_states + 6);
    real *pose = (real *)next_states, r[9], most = ALL(0.0);
    flag unconstrained = ALL(0.0) == ALL(0.0);
    for (int i = 0; i < 6; i++) {
        pose[i] = NAME(gather)(rows + (i < 3 ? MC_SURGE_DISPLACEMENT + i : MC_ROLL + i - 3), stride);
        unconstrained &= NAME(magnitude)(pose[i]) <= ALL(MC_FARTHEST_POSE);
    }
    NAME(rotation)(pose + 3, r);
    for (int i = 0; i < plan[0]; i++) {
        const NAME(Drive) *d = &drives[i];
        const real position = NAME(position)(plan[1 + i], &d->actuator, pose, r, MC_STRAIGHT);
        const real move = position - s[i].position, speed = NAME(magnitude)(move), ticks = speed * d->per_acceleration;
        unconstrained &= (d->low <= position) & (position <= d->high) & (speed <= d->speed);
        unconstrained &= NAME(magnitude)(move - s[i].speed) <= d->acceleration;
        most = NAME(pick)(ticks > most, ticks, most);
        moved[i].position = position;
        moved[i].speed = move;
        NAME(scatter)(rows + MC_ACTUATORS + i, stride, position);
    }
    if (plan[1] == MC_CRANK) unconstrained &= NAME(stops_held)(plan, drives, s, moved, (const real *)states, pose);
    const real way = NAME(stop_distance_bound)(most);
    for (int i = 0; i < plan[0]; i++) {
        const real up = drives[i].high - s[i].position, down = s[i].position - drives[i].low;
        unconstrained &= NAME(magnitude)(moved[i].speed) * way <= NAME(pick)(moved[i].speed > ALL(0.0), up, down);
    }
    return NAME(bits)(unconstrained);
}
#endif
