/* Hold a platform's actuators within bounds on position, speed and acceleration, for any input.
 *
 * Cutting one actuator off would turn a surge into a rotation.  So all of them go the same share of the way from braking at full
 * to what is wanted, as large as every one of them allows.  That is a straight line to the target where the bounds are in proportion
 * to the ways; elsewhere the path bends while one of them accelerates or brakes.
 *
 * Why the bounds hold: an actuator at l with speed v per tick may take any next speed v' in an interval that contains
 * full braking, b = v shrunk by A.  The interval is |v' - v| <= A, |v'| <= V, and S(v') <= the distance to the end of
 * its travel, where S(v) = v + (v - A) + (v - 2A) + ... is the stopping distance under full braking.  Full braking
 * leaves S(b) = S(v) - v, so a state inside the interval stays inside (induction; own derivation).  Then v' = b + f (w
 * - b), where w is the wanted speed and f the largest factor in [0, 1] for which every actuator is in its interval; f
 * has a closed form, since each actuator bounds it independently.
 *
 * What is wanted: the target, if its positions keep the bounds by themselves; else a speed towards it from which half of the
 * acceleration is enough to meet it.  A step of the target is overshot by less than three times the acceleration bound [unit per
 * tick^2], which is what rounding the braking time to whole ticks costs.
 *
 * If any wanted position is not a number, as where an actuator cannot reach a pose, or is beyond MC_FARTHEST, the targets of the tick
 * before stay: without one of its actuators a pose means nothing.
 */
#ifndef MOTIONCUE_KEEP_H
#define MOTIONCUE_KEEP_H
#include "motioncue/kernels/platform.h"
#include <math.h>
#include <stdint.h>

#define MC_FARTHEST 1e9 /* [unit] of a wanted position from 0; beyond it, sums of positions could overflow */

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

/* Return the largest speed that full braking brings to a stop within the distance `way`. */
static inline double mc_stops_within(double way, double acceleration) {
    double n;
    if (!(way > 0.0)) return 0.0;
    n = floor(0.5 * (sqrt(1.0 + 8.0 * way / acceleration) - 1.0));
    return (way + 0.5 * acceleration * n * (n + 1.0)) / (n + 1.0);
}

/* Move `n` actuators one tick towards `wanted` and overwrite it with the positions to send; return whether they differ.
   `acted[i]` counts the ticks in which actuator i restricted the common factor. */
static inline int mc_keep(const mc_Bounds *bounds, mc_Held *held, int n, double *wanted, int64_t *acted) {
    double low[MC_MOST_ACTUATORS], high[MC_MOST_ACTUATORS], brake[MC_MOST_ACTUATORS];
    double factor = 1.0, error = 0.0, share;
    int inside = 1, first = -1, usable = 1;
    for (int i = 0; i < n; i++) usable &= fabs(wanted[i]) < MC_FARTHEST; /* false for what is not a number */
    for (int i = 0; i < n && !usable; i++) wanted[i] = held[i].target;
    for (int i = 0; i < n; i++) {
        const mc_Bounds *b = &bounds[i];
        const mc_Held *h = &held[i];
        const double up = mc_stops_within(b->high - h->position, b->acceleration);
        const double down = mc_stops_within(h->position - b->low, b->acceleration);
        const double v = h->speed, w = wanted[i] - h->position;
        brake[i] = v > b->acceleration ? v - b->acceleration : (v < -b->acceleration ? v + b->acceleration : 0.0);
        high[i] = fmin(fmin(v + b->acceleration, b->speed), up);
        low[i] = fmax(fmax(v - b->acceleration, -b->speed), -down);
        if (high[i] < brake[i]) high[i] = brake[i]; /* can happen only by rounding */
        if (low[i] > brake[i]) low[i] = brake[i];
        inside &= low[i] <= w && w <= high[i];
        error = fmax(error, fabs(h->target - h->position) / (0.5 * b->acceleration));
    }
    if (inside) {
        for (int i = 0; i < n; i++) {
            held[i].speed = wanted[i] - held[i].position;
            held[i].position = held[i].target = wanted[i];
        }
        return !usable;
    }
    /* Share of the distance to the previous target to cover now, in addition to the target's own movement. */
    share = error > 1.0 ? 0.5 * (sqrt(1.0 + 8.0 * error) - 1.0) / error : 1.0;
    for (int i = 0; i < n; i++) {
        mc_Held *h = &held[i];
        const double w = wanted[i] - h->target + share * (h->target - h->position), change = w - brake[i];
        double most = 1.0;
        h->target = wanted[i];
        wanted[i] = w;
        if (w > high[i]) most = (high[i] - brake[i]) / change;
        if (w < low[i]) most = (low[i] - brake[i]) / change;
        if (most < factor) factor = most, first = i;
    }
    for (int i = 0; i < n; i++) {
        mc_Held *h = &held[i];
        const double v = brake[i] + factor * (wanted[i] - brake[i]);
        h->speed = v > high[i] ? high[i] : (v < low[i] ? low[i] : v); /* corrects rounding */
        h->position += h->speed;
        if (h->position > bounds[i].high) h->position = bounds[i].high;
        if (h->position < bounds[i].low) h->position = bounds[i].low;
        wanted[i] = h->position;
    }
    if (first >= 0 && acted) acted[first]++;
    return 1;
}
#endif
