/* Actuators kept within position, speed and acceleration, all together, for any input whatsoever.
 *
 * Cutting one actuator off would turn a surge into a rotation, and would rack the frame that four posts carry.  So the wanted
 * positions are approached, and every stop is made, along straight lines in the space of the actuators.
 *
 * A stop: the speeds v of all actuators shrink in proportion, so that the one which needs longest brakes at its full
 * acceleration.  With m = max |v_i| / A_i that takes the speeds v, v (1 - 1/m), v (1 - 2/m)..., whose sum is T(m) v,
 * T(m) = n - n (n - 1) / (2 m), n = ceil(m).  A speed v' is allowed if |v'_i - v_i| <= A_i, |v'_i| <= V_i and T(m') |v'_i| <= the
 * distance of actuator i to the end of its travel.  The stop itself goes on with b = v (1 - 1/m), whose way is T(m) v - v: who
 * is inside stays inside (induction; own derivation).  So v' = b + f (w - b), w being what is wanted, with f = 1 if that is
 * allowed, else about the largest f that is: f = 0 always is.
 *
 * What is wanted: the target, if its positions keep the bounds by themselves; else a speed towards it from which half of the
 * acceleration is enough to meet it.  If any wanted position is not a number or is beyond MC_FARTHEST, the targets of the tick
 * before stay: without one of its actuators a pose means nothing.
 */
#ifndef MOTIONCUE_KEEP_H
#define MOTIONCUE_KEEP_H
#include "motioncue/kernels/platform.h"
#include <math.h>
#include <stdint.h>

#define MC_FARTHEST 1e9 /* [unit] of a wanted position from 0; beyond it, sums of positions could overflow */

typedef struct {
    double low, high;    /* of the position, in its own unit */
    double speed;        /* [unit per tick] */
    double acceleration; /* [unit per tick^2] */
} mc_Bounds;

typedef struct {
    double position; /* as sent */
    double speed;    /* [unit per tick] */
    double target;   /* what was wanted at the tick before */
} mc_Held;

enum { MC_HALVINGS = 20 }; /* of the search for the factor: to a millionth of it */

/* How many ticks of their own length the speeds `v` need to stop: the largest of the actuators. */
static inline double mc_ticks_to_stop(const mc_Bounds *bounds, const double *v, int n) {
    double most = 0.0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(v[i]) / bounds[i].acceleration);
    return most;
}

/* The number of an actuator which, moving by `v` now, could not stop before its end any more; -1 if all can. */
static inline int mc_overruns(const mc_Bounds *bounds, const mc_Held *held, const double *v, int n) {
    const double ticks = mc_ticks_to_stop(bounds, v, n), whole = ceil(ticks);
    const double way = whole > 1.0 ? whole - 0.5 * whole * (whole - 1.0) / ticks : 1.0;
    for (int i = 0; i < n; i++) {
        const double room = v[i] > 0.0 ? bounds[i].high - held[i].position : held[i].position - bounds[i].low;
        if (v[i] != 0.0 && fabs(v[i]) * way > room) return i;
    }
    return -1;
}

/* Move `n` actuators one tick towards `wanted` and fill it with the positions to send; whether it had to be changed.
   `acted[i]` counts the ticks in which actuator i was the one that held the others back. */
static inline int mc_keep(const mc_Bounds *bounds, mc_Held *held, int n, double *wanted, int64_t *acted) {
    double brake[MC_MOST_ACTUATORS], move[MC_MOST_ACTUATORS], speeds[MC_MOST_ACTUATORS];
    double ticks, kept, share, error = 0.0, allowed = 0.0, factor = 1.0;
    int first = -1, usable = 1, over;
    for (int i = 0; i < n; i++) usable &= fabs(wanted[i]) < MC_FARTHEST; /* false for what is not a number */
    for (int i = 0; i < n && !usable; i++) wanted[i] = held[i].target;
    for (int i = 0; i < n; i++) {
        speeds[i] = held[i].speed;
        move[i] = wanted[i] - held[i].position;
        if (fabs(move[i]) > bounds[i].speed || fabs(move[i] - speeds[i]) > bounds[i].acceleration) first = i;
        error = fmax(error, fabs(held[i].target - held[i].position) / (0.5 * bounds[i].acceleration));
    }
    if (first < 0) first = mc_overruns(bounds, held, move, n);
    if (first < 0) {
        for (int i = 0; i < n; i++) {
            held[i].speed = move[i];
            held[i].position = held[i].target = wanted[i];
        }
        return !usable;
    }
    ticks = mc_ticks_to_stop(bounds, speeds, n);
    kept = ticks > 1.0 ? 1.0 - 1.0 / ticks : 0.0;
    /* How much of the distance to the target of the tick before to go now, besides what the target itself goes. */
    share = error > 1.0 ? 0.5 * (sqrt(1.0 + 8.0 * error) - 1.0) / error : 1.0;
    for (int i = 0; i < n; i++) {
        const mc_Bounds *b = &bounds[i];
        double change, high, low;
        brake[i] = kept * speeds[i];
        move[i] = wanted[i] - held[i].target + share * (held[i].target - held[i].position);
        held[i].target = wanted[i];
        change = move[i] - brake[i];
        high = fmax(fmin(speeds[i] + b->acceleration, b->speed), brake[i]); /* only rounding makes these the brake's */
        low = fmin(fmax(speeds[i] - b->acceleration, -b->speed), brake[i]);
        if (move[i] > high && (high - brake[i]) < factor * change) factor = (high - brake[i]) / change, first = i;
        if (move[i] < low && (low - brake[i]) > factor * change) factor = (low - brake[i]) / change, first = i;
    }
    for (int k = 0; k <= MC_HALVINGS; k++) { /* the first try is the factor itself */
        const double tried = k ? 0.5 * (allowed + factor) : factor;
        for (int i = 0; i < n; i++) speeds[i] = brake[i] + tried * (move[i] - brake[i]);
        over = mc_overruns(bounds, held, speeds, n);
        if (over < 0) allowed = tried;
        else factor = tried, first = over;
        if (allowed == factor) break;
    }
    for (int i = 0; i < n; i++) {
        mc_Held *h = &held[i];
        h->speed = brake[i] + allowed * (move[i] - brake[i]);
        h->position = fmin(fmax(h->position + h->speed, bounds[i].low), bounds[i].high); /* rounding */
        wanted[i] = h->position;
    }
    if (acted) acted[first]++;
    return 1;
}
#endif
