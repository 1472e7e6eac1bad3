/* What actuators may do, and the stop with constant deceleration that everything here is built on.
 *
 * In a stop, the speeds v of all actuators shrink in proportion, such that the one that needs longest brakes at its full
 * acceleration.  With m = max |v_i| / A_i that gives the speeds v, v (1 - 1/m), v (1 - 2/m)..., whose sum is T(m) v,
 * T(m) = n - n (n - 1) / (2 m), n = ceil(m).  (Own derivation.)  T(m) is at most max(1, 0.5 m + 0.6), which needs no
 * division and no rounding up; it is for lanes too (real.h).
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_STOPPING_H
#define MOTIONCUE_STOPPING_H
#include <math.h>

#define MC_TEMPLATE "motioncue/platforms/stopping.h"
#include "motioncue/core/scalar.h"
#undef MC_TEMPLATE

typedef struct {
    double low, high;    /* bounds on the position, in the actuator's unit */
    double speed;        /* [unit per tick] */
    double acceleration; /* [unit per tick^2] */
} mc_ActuatorBounds;

/* Return how many ticks m the speeds `v` need to stop: the largest number among the actuators. */
static inline double mc_ticks_to_stop(const mc_ActuatorBounds *bounds, const double *v, int n) {
    double most = 0.0;
    for (int i = 0; i < n; i++) {
        const double ticks = fabs(v[i]) / bounds[i].acceleration;
        if (ticks > most) most = ticks; /* fmax would be a call */
    }
    return most;
}

/* Return T(m), the distance of a stop in units of its first tick's. */
static inline double mc_stop_distance(double ticks) {
    const double whole = ceil(ticks);
    return whole > 1.0 ? whole - 0.5 * whole * (whole - 1.0) / ticks : 1.0;
}

/* Return the share of the speeds that the next tick of a stop keeps. */
static inline double mc_speed_kept(double ticks) { return ticks > 1.0 ? 1.0 - 1.0 / ticks : 0.0; }
#endif
#else

/* Return a bound on T(m), and on T(m) - 1: the rest of the stop after its first tick. */
INLINE real NAME(stop_distance_bound)(real ticks) {
    return NAME(pick)(ticks > ALL(0.8), 0.5 * ticks + 0.6, ALL(1.0));
}
INLINE real NAME(stop_rest_bound)(real ticks) { return NAME(pick)(ticks > ALL(0.8), 0.5 * ticks - 0.4, ALL(0.0)); }
#endif
