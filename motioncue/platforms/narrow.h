/* Bring a platform's actuators within bounds that were tightened while it moves.
 *
 * `keep.h` needs a state from which every actuator can stop within its bounds.  Bounds that were changed may not allow
 * that, so the bounds that hold meanwhile are the wider of old and new ones, from which stopping is possible.  Then:
 *
 * - A speed above its new bound is braked by `mc_keep`.
 * - A new bound on acceleration holds as soon as the stop that it allows ends within the range; until then the actuators
 *   make the stop that the wider bound allows.
 * - The range shrinks to the new one as the positions come in: outside of it, an actuator may move no farther out than
 *   its stop takes it.
 */
#ifndef MOTIONCUE_NARROW_H
#define MOTIONCUE_NARROW_H
#include "motioncue/platforms/keep.h"
#include <string.h>

/* Fill `brake` with the speeds of the next tick of the stop. */
static inline void mc_stopping(const mc_Bounds *bounds, const mc_Held *held, int n, double *brake) {
    double ticks;
    for (int i = 0; i < n; i++) brake[i] = held[i].speed;
    ticks = mc_ticks_to_stop(bounds, brake, n);
    for (int i = 0; i < n; i++) brake[i] *= ticks > 1.0 ? 1.0 - 1.0 / ticks : 0.0;
}

/* Make `bounds` the wider ones of themselves and `goal`; of the speed, which is braked, those of `goal`. */
static inline void mc_widen(const mc_Bounds *goal, mc_Bounds *bounds, int n) {
    for (int i = 0; i < n; i++) {
        bounds[i].low = fmin(bounds[i].low, goal[i].low);
        bounds[i].high = fmax(bounds[i].high, goal[i].high);
        bounds[i].speed = goal[i].speed;
        bounds[i].acceleration = fmax(bounds[i].acceleration, goal[i].acceleration);
    }
}

/* Narrow `bounds` towards `goal` as far as the state allows, the range only if `range`; return an actuator for which
   all must brake as the present bounds allow, -1 if none. */
static inline int mc_narrow(const mc_Bounds *goal, mc_Bounds *bounds, const mc_Held *held, int n, int range) {
    mc_Bounds tried[MC_MOST_ACTUATORS];
    double brake[MC_MOST_ACTUATORS];
    double ticks, whole, way;
    int over;
    memcpy(tried, bounds, (size_t)n * sizeof *bounds);
    for (int i = 0; i < n; i++) tried[i].acceleration = goal[i].acceleration;
    mc_stopping(tried, held, n, brake);
    over = mc_overruns(tried, held, brake, n);
    if (over >= 0) return over;
    ticks = mc_ticks_to_stop(tried, brake, n);
    whole = ceil(ticks);
    way = whole > 1.0 ? whole - 0.5 * whole * (whole - 1.0) / ticks : 1.0;
    for (int i = 0; i < n; i++) {
        const double at = held[i].position, end = at + way * brake[i];
        bounds[i].acceleration = goal[i].acceleration;
        if (!range) continue;
        bounds[i].low = fmax(bounds[i].low, fmin(goal[i].low, fmin(at, end)));
        bounds[i].high = fmin(bounds[i].high, fmax(goal[i].high, fmax(at, end)));
    }
    return -1;
}

static inline int mc_narrowed(const mc_Bounds *goal, const mc_Bounds *bounds, int n) {
    for (int i = 0; i < n; i++)
        if (bounds[i].low != goal[i].low || bounds[i].high != goal[i].high ||
            bounds[i].acceleration != goal[i].acceleration)
            return 0;
    return 1;
}

/* Do one tick of the stop that `bounds` allow; fill `positions` with the positions to send. */
static inline void mc_stop(const mc_Bounds *bounds, mc_Held *held, int n, double *positions) {
    double brake[MC_MOST_ACTUATORS];
    mc_stopping(bounds, held, n, brake);
    for (int i = 0; i < n; i++) {
        mc_Held *h = &held[i];
        h->target = positions[i];
        h->speed = brake[i];
        h->position = fmin(fmax(h->position + h->speed, bounds[i].low), bounds[i].high); /* corrects rounding */
        positions[i] = h->position;
    }
}
#endif
