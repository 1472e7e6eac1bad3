/* Hold a platform's actuators within bounds on position, speed and acceleration, for any input; also while these change.
 *
 * Limiting one actuator alone would turn a surge into a rotation, and would distort a frame on four posts.  So the
 * wanted positions are approached, and every stop is made, along straight lines in actuator space.
 *
 * A speed v' is allowed if |v'_i - v_i| <= A_i, |v'_i| <= V_i and T(m') |v'_i| <= the distance of actuator i to the end
 * of its travel (stopping.h).  The stop itself continues with b = v (1 - 1/m), whose stopping distance is T(m) v - v, so
 * a state inside the bounds stays inside (induction; own derivation).  Then v' = b + f (w - b), where w is the wanted
 * speed and f = 1 if that is allowed, else about the largest allowed factor; f = 0 always is.
 *
 * The wanted position is the target, if the targets keep the bounds by themselves; otherwise it is approached at a
 * speed from which half of the allowed acceleration is enough to meet it.  If any wanted position is not a number or is
 * beyond MC_FARTHEST, the targets of the tick before are kept, because a pose needs all of its actuators.
 *
 * Bounds that were tightened while the platform moves may not allow a stop.  So those that hold meanwhile are the wider
 * of old and new ones, from which stopping is possible.  Then:
 *
 * - A speed above its new bound is braked by `mc_limit_actuators`.
 * - A new bound on acceleration holds as soon as the stop that it allows ends within the range; until then the actuators
 *   make the stop that the wider bound allows.
 * - The range shrinks to the new one as the positions come in: outside of it, an actuator may move no farther out than
 *   its stop takes it.
 *
 * Bounds on jerk: the same, one derivative higher.  With each state goes a stop from it within all bounds (stopping.h);
 * an acceleration is allowed if there is such a stop from the state that it leads to.  The next acceleration is
 * a' = b + f (w - b), where b continues the stop, w is the wanted one, and f is 1 or about the largest allowed factor;
 * f = 0 always is.  Such bounds take hold, and are given up, as soon as there is a stop by the new rule; until then, the
 * actuators follow the stop that they have.
 */
#ifndef MOTIONCUE_ACTUATOR_LIMITS_H
#define MOTIONCUE_ACTUATOR_LIMITS_H
#include "motioncue/platforms/kinematics.h"
#include "motioncue/platforms/stopping.h"
#include <stdint.h>

#define MC_FARTHEST 1e9 /* [unit] largest distance of a wanted position from 0; beyond it, sums could overflow */

typedef struct {
    double position;     /* as sent at the tick before */
    double speed;        /* [unit per tick] */
    double target;       /* wanted position of the tick before */
    double acceleration; /* [unit per tick^2], kept while jerk is bounded or bounds change; NaN: not known */
} mc_ActuatorMotion;

/* Share of a range that counts as rounding: an actuator that rides on its end must not stop the others by it. */
#define MC_ROUNDING 1e-12

enum { MC_HALVINGS = 20 }; /* bisections for the factor: an accuracy of a millionth */

/* Return an actuator which, moving by `v` now, could not stop before its end; -1 if all can. */
static inline int mc_overruns(const mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, const double *v, int n) {
    const double way = mc_stop_distance(mc_ticks_to_stop(bounds, v, n));
    for (int i = 0; i < n; i++) {
        const double room = v[i] > 0.0 ? bounds[i].high - motion[i].position : motion[i].position - bounds[i].low;
        if (fabs(v[i]) * way > room + MC_ROUNDING * (bounds[i].high - bounds[i].low)) return i;
    }
    return -1;
}

/* Move `n` actuators one tick towards `wanted` and overwrite it with the positions to send; return whether they differ.
   `acted[i]` counts the ticks in which actuator i restricted the common factor. */
static inline int mc_limit_actuators(
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, int n, double *wanted, int64_t *acted
) {
    double brake[MC_MOST_ACTUATORS], move[MC_MOST_ACTUATORS], speeds[MC_MOST_ACTUATORS];
    double kept, share, error = 0.0, allowed = 0.0, factor = 1.0;
    int first = -1, usable = 1, over;
    for (int i = 0; i < n; i++) usable &= fabs(wanted[i]) < MC_FARTHEST; /* false for NaN */
    for (int i = 0; i < n && !usable; i++) wanted[i] = motion[i].target;
    for (int i = 0; i < n; i++) {
        speeds[i] = motion[i].speed;
        move[i] = wanted[i] - motion[i].position;
        if (fabs(move[i]) > bounds[i].speed || fabs(move[i] - speeds[i]) > bounds[i].acceleration) first = i;
    }
    if (first < 0) first = mc_overruns(bounds, motion, move, n);
    if (first < 0) {
        for (int i = 0; i < n; i++) {
            motion[i].speed = move[i];
            motion[i].position = motion[i].target = wanted[i];
        }
        return !usable;
    }
    for (int i = 0; i < n; i++)
        error = fmax(error, fabs(motion[i].target - motion[i].position) / (0.5 * bounds[i].acceleration));
    kept = mc_speed_kept(mc_ticks_to_stop(bounds, speeds, n));
    /* Share of the distance to the previous target to cover now, in addition to the target's own movement. */
    share = error > 1.0 ? 0.5 * (sqrt(1.0 + 8.0 * error) - 1.0) / error : 1.0;
    for (int i = 0; i < n; i++) {
        const mc_ActuatorBounds *b = &bounds[i];
        double change, high, low;
        brake[i] = kept * speeds[i];
        move[i] = wanted[i] - motion[i].target + share * (motion[i].target - motion[i].position);
        motion[i].target = wanted[i];
        change = move[i] - brake[i];
        high = fmax(fmin(speeds[i] + b->acceleration, b->speed), brake[i]); /* the brake's only by rounding */
        low = fmin(fmax(speeds[i] - b->acceleration, -b->speed), brake[i]);
        if (move[i] > high && (high - brake[i]) < factor * change) factor = (high - brake[i]) / change, first = i;
        if (move[i] < low && (low - brake[i]) > factor * change) factor = (low - brake[i]) / change, first = i;
    }
    for (int k = 0; k <= MC_HALVINGS; k++) { /* the first try is a factor of 1 */
        const double tried = k ? 0.5 * (allowed + factor) : factor;
        for (int i = 0; i < n; i++) speeds[i] = brake[i] + tried * (move[i] - brake[i]);
        over = mc_overruns(bounds, motion, speeds, n);
        if (over < 0) allowed = tried;
        else factor = tried, first = over;
        if (allowed == factor) break;
    }
    for (int i = 0; i < n; i++) {
        mc_ActuatorMotion *h = &motion[i];
        h->speed = brake[i] + allowed * (move[i] - brake[i]);
        h->position = fmin(fmax(h->position + h->speed, bounds[i].low), bounds[i].high); /* corrects rounding */
        wanted[i] = h->position;
    }
    if (acted) acted[first]++;
    return 1;
}

/* Fill `brake` with the speeds of the next tick of the stop. */
static inline void mc_next_of_stop(
    const mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, int n, double *brake
) {
    double kept;
    for (int i = 0; i < n; i++) brake[i] = motion[i].speed;
    kept = mc_speed_kept(mc_ticks_to_stop(bounds, brake, n));
    for (int i = 0; i < n; i++) brake[i] *= kept;
}

/* Make `bounds` the wider ones of themselves and `goal`; of the speed, which is braked, those of `goal`. */
static inline void mc_relax_bounds(const mc_ActuatorBounds *goal, mc_ActuatorBounds *bounds, int n) {
    for (int i = 0; i < n; i++) {
        bounds[i].low = fmin(bounds[i].low, goal[i].low);
        bounds[i].high = fmax(bounds[i].high, goal[i].high);
        bounds[i].speed = goal[i].speed;
        bounds[i].acceleration = fmax(bounds[i].acceleration, goal[i].acceleration);
        bounds[i].jerk = fmax(bounds[i].jerk, goal[i].jerk);
    }
}

/* Narrow `bounds` towards `goal` as far as the state allows, the range only if `range`; return an actuator for which
   all must brake as the present bounds allow, -1 if none. */
static inline int mc_tighten_bounds(
    const mc_ActuatorBounds *goal, mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, int n, int range
) {
    mc_ActuatorBounds tried[MC_MOST_ACTUATORS];
    double brake[MC_MOST_ACTUATORS];
    double way;
    int over;
    memcpy(tried, bounds, (size_t)n * sizeof *bounds);
    for (int i = 0; i < n; i++) tried[i].acceleration = goal[i].acceleration;
    mc_next_of_stop(tried, motion, n, brake);
    over = mc_overruns(tried, motion, brake, n);
    if (over >= 0) return over;
    way = mc_stop_distance(mc_ticks_to_stop(tried, brake, n));
    for (int i = 0; i < n; i++) {
        const double at = motion[i].position, end = at + way * brake[i];
        bounds[i].acceleration = goal[i].acceleration;
        bounds[i].jerk = goal[i].jerk;
        if (!range) continue;
        bounds[i].low = fmax(bounds[i].low, fmin(goal[i].low, fmin(at, end)));
        bounds[i].high = fmin(bounds[i].high, fmax(goal[i].high, fmax(at, end)));
    }
    return -1;
}

/* Return whether `bounds` have come within `goal`. */
static inline int mc_bounds_reached(const mc_ActuatorBounds *goal, const mc_ActuatorBounds *bounds, int n) {
    for (int i = 0; i < n; i++)
        if (bounds[i].low != goal[i].low || bounds[i].high != goal[i].high ||
            bounds[i].acceleration != goal[i].acceleration || bounds[i].jerk != goal[i].jerk)
            return 0;
    return 1;
}

/* Do one tick of the stop that `bounds` allow; fill `positions` with the positions to send. */
static inline void mc_stop_actuators(
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, int n, double *positions
) {
    double brake[MC_MOST_ACTUATORS];
    mc_next_of_stop(bounds, motion, n, brake);
    for (int i = 0; i < n; i++) {
        mc_ActuatorMotion *h = &motion[i];
        h->target = positions[i];
        h->speed = brake[i];
        h->position = fmin(fmax(h->position + h->speed, bounds[i].low), bounds[i].high); /* corrects rounding */
        positions[i] = h->position;
    }
}

/* ---- with bounded jerk ---- */

#ifdef __GNUC__
#define MC_APART __attribute__((cold)) /* not inlined: a tick without such bounds must not pay for it */
#else
#define MC_APART
#endif

/* Shares of a distance, and of a difference of speeds, that are covered in a tick at most; the second is four times the
   first, so that small distances are covered without overshoot. */
#define MC_MOST_OF_DISTANCE 0.15
#define MC_MOST_OF_SPEED 0.6

/* Fill `wanted` with the accelerations that lead to the targets, which move to `goals`: each distance is covered at a
   speed from which half of the allowed acceleration and jerk are enough to meet the target, and that speed is reached
   likewise.  `slope` is how that speed changes with the distance.  The shares are the same for all actuators. */
static inline void mc_approach(
    const mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, int n, const double *goals, double *wanted
) {
    double share = MC_MOST_OF_DISTANCE, slope = MC_MOST_OF_DISTANCE, grip = MC_MOST_OF_SPEED;
    for (int i = 0; i < n; i++) {
        const double acceleration = 0.5 * bounds[i].acceleration, jerk = 0.5 * bounds[i].jerk;
        const double ramp = acceleration / jerk;
        const double distance = fabs(motion[i].target - motion[i].position);
        if (distance <= acceleration * ramp * ramp) { /* v sqrt(v / J) = distance: stopped before the acceleration is reached */
            const double own = cbrt(jerk / distance);
            if (own < share) share = own, slope = 2.0 / 3.0 * own;
        } else { /* v (v / A + A / J) / 2 = distance */
            const double root = sqrt(ramp * ramp + 8.0 * distance / acceleration), own = 4.0 / (ramp + root);
            if (own < share) share = own, slope = 2.0 / root;
        }
    }
    for (int i = 0; i < n; i++) {
        const double moves = goals[i] - motion[i].target;
        wanted[i] = moves + share * (motion[i].target - motion[i].position) - motion[i].speed;
        if (grip * grip * fabs(wanted[i]) > bounds[i].jerk) grip = sqrt(bounds[i].jerk / fabs(wanted[i]));
    }
    for (int i = 0; i < n; i++)
        wanted[i] = grip * wanted[i] - slope * (motion[i].speed - (goals[i] - motion[i].target));
}

/* Move to the accelerations `a`, and fill `positions`. */
static inline void mc_move_by(
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, int n, const double *a, double *positions
) {
    for (int i = 0; i < n; i++) {
        mc_ActuatorMotion *h = &motion[i];
        h->acceleration = a[i];
        h->speed += a[i];
        h->position = fmin(fmax(h->position + h->speed, bounds[i].low), bounds[i].high); /* corrects rounding */
        positions[i] = h->position;
    }
}

/* Fill `a` with the accelerations of the next tick of the stop. */
static inline void mc_next_of_jerk_stop(const mc_JerkStop *stop, const mc_ActuatorMotion *motion, int n, double *a) {
    for (int i = 0; i < n; i++) {
        const mc_ActuatorMotion *h = &motion[i];
        a[i] = h->acceleration + (mc_brake_of(stop, h->speed, h->acceleration) - h->acceleration) / stop->ramp;
    }
}

/* As mc_stop_actuators, by the stop that goes with the state. */
static inline MC_APART void mc_follow_jerk_stop(
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, mc_JerkStop *stop, int n, double *positions
) {
    double a[MC_MOST_ACTUATORS];
    mc_next_of_jerk_stop(stop, motion, n, a);
    for (int i = 0; i < n; i++) motion[i].target = positions[i];
    mc_move_by(bounds, motion, n, a, positions);
    *stop = mc_rest_of_stop(*stop);
}

/* As mc_limit_actuators, within bounds on jerk; `stop` goes with the state. */
static inline MC_APART int mc_limit_jerks(
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, mc_JerkStop *stop, int n, double *wanted, int64_t *acted
) {
    double x[MC_MOST_ACTUATORS] = {0.0}, v[MC_MOST_ACTUATORS] = {0.0}, a[MC_MOST_ACTUATORS] = {0.0};
    double brake[MC_MOST_ACTUATORS], move[MC_MOST_ACTUATORS], allowed = 0.0, factor = 1.0;
    const mc_JerkStop rest = mc_rest_of_stop(*stop);
    mc_JerkStop found = rest;
    int first = -1, usable = 1;
    for (int i = 0; i < n; i++) usable &= fabs(wanted[i]) < MC_FARTHEST; /* false for NaN */
    for (int i = 0; i < n && !usable; i++) wanted[i] = motion[i].target;
    for (int i = 0; i < n; i++) {
        const mc_ActuatorMotion *h = &motion[i];
        const double behind = h->target - h->position, faster = h->speed - (wanted[i] - h->target);
        v[i] = wanted[i] - h->position;
        a[i] = v[i] - h->speed;
        if (fabs(v[i]) > bounds[i].speed || fabs(a[i]) > bounds[i].acceleration ||
            fabs(a[i] - h->acceleration) > bounds[i].jerk)
            first = i;
        /* What is caught up at once must not need more jerk in the next ticks. */
        if (behind != 0.0 && fabs(2.0 * behind - faster) + fabs(behind) > 0.5 * bounds[i].jerk) first = i;
    }
    if (first < 0) first = mc_find_stop(bounds, wanted, v, a, n, &found);
    if (first < 0) {
        for (int i = 0; i < n; i++) {
            motion[i].acceleration = a[i];
            motion[i].speed = v[i];
            motion[i].position = motion[i].target = wanted[i];
        }
        *stop = found;
        return !usable;
    }
    mc_next_of_jerk_stop(stop, motion, n, brake);
    mc_approach(bounds, motion, n, wanted, move);
    for (int i = 0; i < n; i++) {
        const mc_ActuatorBounds *b = &bounds[i];
        const double at = motion[i].acceleration, change = move[i] - brake[i];
        const double high = fmax(fmin(at + b->jerk, b->acceleration), brake[i]); /* the brake's only by rounding */
        const double low = fmin(fmax(at - b->jerk, -b->acceleration), brake[i]);
        motion[i].target = wanted[i];
        if (move[i] > high && (high - brake[i]) < factor * change) factor = (high - brake[i]) / change, first = i;
        if (move[i] < low && (low - brake[i]) > factor * change) factor = (low - brake[i]) / change, first = i;
    }
    found = rest;
    for (int k = 0; k <= MC_HALVINGS; k++) { /* the first try is a factor of 1 */
        const double tried = k ? 0.5 * (allowed + factor) : factor;
        mc_JerkStop guess = rest;
        int over;
        for (int i = 0; i < n; i++) {
            a[i] = brake[i] + tried * (move[i] - brake[i]);
            v[i] = motion[i].speed + a[i];
            x[i] = motion[i].position + v[i];
        }
        over = mc_find_stop(bounds, x, v, a, n, &guess);
        if (over < 0) allowed = tried, found = guess;
        else factor = tried, first = over;
        if (allowed == factor) break;
    }
    for (int i = 0; i < n; i++) a[i] = brake[i] + allowed * (move[i] - brake[i]);
    mc_move_by(bounds, motion, n, a, wanted);
    *stop = found;
    if (acted) acted[first]++;
    return 1;
}

/* As mc_tighten_bounds, if the goal bounds jerk; `smooth` says whether `stop` goes with the state, as it then does. */
static inline MC_APART int mc_tighten_jerk_bounds(
    const mc_ActuatorBounds *goal, mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, mc_JerkStop *stop, int n,
    int range, int *smooth
) {
    double x[MC_MOST_ACTUATORS] = {0.0}, v[MC_MOST_ACTUATORS] = {0.0}, a[MC_MOST_ACTUATORS] = {0.0};
    mc_ActuatorBounds tried[MC_MOST_ACTUATORS] = {{0.0}};
    mc_JerkStop found = *smooth ? *stop : mc_at_rest;
    int over;
    for (int i = 0; i < n; i++) {
        x[i] = motion[i].position, v[i] = motion[i].speed, a[i] = motion[i].acceleration;
        if (a[i] != a[i]) return -1; /* known after this tick */
        tried[i] = goal[i];
        tried[i].low = bounds[i].low;
        tried[i].high = bounds[i].high;
    }
    over = mc_find_stop(tried, x, v, a, n, &found);
    if (over >= 0) return over;
    *stop = found;
    *smooth = 1;
    for (int i = 0; i < n; i++) {
        const mc_StopPath path = mc_stop_path(stop, x[i], v[i], a[i]);
        if (range) {
            tried[i].low = fmax(bounds[i].low, fmin(goal[i].low, path.low));
            tried[i].high = fmin(bounds[i].high, fmax(goal[i].high, path.high));
        }
        bounds[i] = tried[i];
    }
    return -1;
}
#endif
