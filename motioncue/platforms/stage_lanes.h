/* Actuators of many rigs over lanes: one tick while no bound acts.
 *
 * It tests for every rig whether its input passes unchanged, by a condition that suffices for the scalar code
 * to pass it (reach.h and actuator_limits.h).  It returns a bit for each rig that passed; the others keep the
 * state that they had and are stepped one by one (engine/batch.pyx).  `plan` is what the rigs have in common; `rows` is the
 * first rig's actuation, and the others follow every `stride` doubles.
 */
#ifndef NAME /* included by itself: for every kind of machine */
#ifndef MOTIONCUE_STAGE_LANES_H
#define MOTIONCUE_STAGE_LANES_H
#include "motioncue/platforms/reach.h"

#define MC_OVER_LANES "motioncue/platforms/stage_lanes.h"
#include "motioncue/core/lanes.h"
#undef MC_OVER_LANES

static int64_t (*const mc_drive_rigs[])(const int *, const void *, const void *, void *, double *, int) =
    MC_OF_MACHINES(mc_drive_rigs);
#endif
#else
#include "motioncue/platforms/kinematics.h"
#include "motioncue/platforms/stopping.h"

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
