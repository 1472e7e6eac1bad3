/* Hold a platform's actuators within bounds on position, speed and acceleration, for any input.
 *
 * Limiting one actuator alone would turn a surge into a rotation, and would distort a frame on four posts.  So the
 * wanted positions are approached, and every stop is made, along straight lines in actuator space.
 *
 * A stop: the speeds v of all actuators shrink in proportion, such that the one that needs longest brakes at its full
 * acceleration.  With m = max |v_i| / A_i that gives the speeds v, v (1 - 1/m), v (1 - 2/m)..., whose sum is T(m) v,
 * T(m) = n - n (n - 1) / (2 m), n = ceil(m).  A speed v' is allowed if |v'_i - v_i| <= A_i, |v'_i| <= V_i and
 * T(m') |v'_i| <= the distance of actuator i to the end of its travel.  The stop itself continues with b = v (1 - 1/m),
 * whose stopping distance is T(m) v - v, so a state inside the bounds stays inside (induction; own derivation).  Then
 * v' = b + f (w - b), where w is the wanted speed and f = 1 if that is allowed, else about the largest allowed factor;
 * f = 0 always is.
 *
 * The wanted position is the target, if the targets keep the bounds by themselves; otherwise it is approached at a
 * speed from which half of the allowed acceleration is enough to meet it.  If any wanted position is not a number or is
 * beyond MC_FARTHEST, the targets of the tick before are kept, because a pose needs all of its actuators.
 */
#ifndef MOTIONCUE_KEEP_H
#define MOTIONCUE_KEEP_H
#include "motioncue/platforms/kinematics.h"
#include <math.h>
#include <stdint.h>

#define MC_FARTHEST 1e9 /* [unit] largest distance of a wanted position from 0; beyond it, sums could overflow */

typedef struct {
    double low, high;    /* bounds on the position, in the actuator's unit */
    double speed;        /* [unit per tick] */
    double acceleration; /* [unit per tick^2] */
} mc_Bounds;

typedef struct {
    double position; /* as sent at the tick before */
    double speed;    /* [unit per tick] */
    double target;   /* wanted position of the tick before */
} mc_Held;

/* Share of a range that counts as rounding: an actuator that rides on its end must not stop the others by it. */
#define MC_ROUNDING 1e-12

enum { MC_HALVINGS = 20 }; /* bisections for the factor: an accuracy of a millionth */

/* Return how many ticks the speeds `v` need to stop: the largest number among the actuators. */
static inline double mc_ticks_to_stop(const mc_Bounds *bounds, const double *v, int n) {
    double most = 0.0;
    for (int i = 0; i < n; i++) {
        const double ticks = fabs(v[i]) / bounds[i].acceleration;
        if (ticks > most) most = ticks; /* fmax would be a call */
    }
    return most;
}

/* Return an actuator which, moving by `v` now, could not stop before its end; -1 if all can. */
static inline int mc_overruns(const mc_Bounds *bounds, const mc_Held *held, const double *v, int n) {
    const double ticks = mc_ticks_to_stop(bounds, v, n), whole = ceil(ticks);
    const double way = whole > 1.0 ? whole - 0.5 * whole * (whole - 1.0) / ticks : 1.0;
    for (int i = 0; i < n; i++) {
        const double room = v[i] > 0.0 ? bounds[i].high - held[i].position : held[i].position - bounds[i].low;
        if (fabs(v[i]) * way > room + MC_ROUNDING * (bounds[i].high - bounds[i].low)) return i;
    }
    return -1;
}

/* Move `n` actuators one tick towards `wanted` and overwrite it with the positions to send; return whether they differ.
   `acted[i]` counts the ticks in which actuator i restricted the common factor. */
static inline int mc_keep(const mc_Bounds *bounds, mc_Held *held, int n, double *wanted, int64_t *acted) {
    double brake[MC_MOST_ACTUATORS], move[MC_MOST_ACTUATORS], speeds[MC_MOST_ACTUATORS];
    double ticks, kept, share, error = 0.0, allowed = 0.0, factor = 1.0;
    int first = -1, usable = 1, over;
    for (int i = 0; i < n; i++) usable &= fabs(wanted[i]) < MC_FARTHEST; /* false for NaN */
    for (int i = 0; i < n && !usable; i++) wanted[i] = held[i].target;
    for (int i = 0; i < n; i++) {
        speeds[i] = held[i].speed;
        move[i] = wanted[i] - held[i].position;
        if (fabs(move[i]) > bounds[i].speed || fabs(move[i] - speeds[i]) > bounds[i].acceleration) first = i;
    }
    if (first < 0) first = mc_overruns(bounds, held, move, n);
    if (first < 0) {
        for (int i = 0; i < n; i++) {
            held[i].speed = move[i];
            held[i].position = held[i].target = wanted[i];
        }
        return !usable;
    }
    for (int i = 0; i < n; i++)
        error = fmax(error, fabs(held[i].target - held[i].position) / (0.5 * bounds[i].acceleration));
    ticks = mc_ticks_to_stop(bounds, speeds, n);
    kept = ticks > 1.0 ? 1.0 - 1.0 / ticks : 0.0;
    /* Share of the distance to the previous target to cover now, in addition to the target's own movement. */
    share = error > 1.0 ? 0.5 * (sqrt(1.0 + 8.0 * error) - 1.0) / error : 1.0;
    for (int i = 0; i < n; i++) {
        const mc_Bounds *b = &bounds[i];
        double change, high, low;
        brake[i] = kept * speeds[i];
        move[i] = wanted[i] - held[i].target + share * (held[i].target - held[i].position);
        held[i].target = wanted[i];
        change = move[i] - brake[i];
        high = fmax(fmin(speeds[i] + b->acceleration, b->speed), brake[i]); /* the brake's only by rounding */
        low = fmin(fmax(speeds[i] - b->acceleration, -b->speed), brake[i]);
        if (move[i] > high && (high - brake[i]) < factor * change) factor = (high - brake[i]) / change, first = i;
        if (move[i] < low && (low - brake[i]) > factor * change) factor = (low - brake[i]) / change, first = i;
    }
    for (int k = 0; k <= MC_HALVINGS; k++) { /* the first try is a factor of 1 */
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
        h->position = fmin(fmax(h->position + h->speed, bounds[i].low), bounds[i].high); /* corrects rounding */
        wanted[i] = h->position;
    }
    if (acted) acted[first]++;
    return 1;
}
#endif
