/* What actuators may do: the stop that everything here is built on, bounds for any input, the lead against their lag. */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_ACTUATOR_LIMITS_H
#define MOTIONCUE_ACTUATOR_LIMITS_H
#include <math.h>
#include <stdint.h>
#include "motioncue/platforms/kinematics.h"
#define MC_TEMPLATE "motioncue/platforms/actuator_limits.h"
#include "motioncue/core/real.h"

/* ---- The stop, with constant deceleration ----
 *
 * In a stop, the speeds v of all actuators shrink in proportion, such that the one that needs longest brakes at its full
 * acceleration.  With m = max |v_i| / A_i that gives the speeds v, v (1 - 1/m), v (1 - 2/m)..., whose sum is T(m) v,
 * T(m) = n - n (n - 1) / (2 m), n = ceil(m).  (Own derivation.)  T(m) is at most max(1, 0.5 m + 0.6), which needs no
 * division and no rounding up; it is for lanes too (real.h).
 *
 * Where jerk is bounded too, a stop has three parts of whole ticks, the same for all actuators: each acceleration goes
 * evenly from a_i to h_i in `ramp` ticks, stays for `hold`, and vanishes evenly in `release`.  It ends at rest if
 *
 *   h_i = -(v_i + a_i (ramp - 1) / 2) / (hold + (ramp + release) / 2),
 *
 * which is linear in v and a: what the actuators have in common, such as four posts under one plane, the stop keeps.
 * The shortest stop of one actuator is among these (a trapezoid of acceleration), and the rest of a stop is one of them.
 * Its largest jerk, acceleration and speed and its farthest places have closed forms.  (Own derivation.)
 */
typedef struct {
    double low, high;    /* bounds on the position, in the actuator's unit */
    double speed;        /* [unit per tick] */
    double acceleration; /* [unit per tick^2] */
    double jerk;         /* [unit per tick^3]; INFINITY: not bounded */
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

/* Return about the distance of a stop after its first tick, in units of that tick's: from above while jerk is not
   bounded, else with the brake's ramp added, of which half counts. */
static inline double mc_rest_distance(const mc_ActuatorBounds *bounds, const double *v, int n) {
    double ramp = 0.0;
    for (int i = 0; i < n; i++) ramp = fmax(ramp, bounds[i].acceleration / bounds[i].jerk);
    return mc_stop_rest_bound(mc_ticks_to_stop(bounds, v, n)) + 0.5 * ramp;
}

/* ---- with bounded jerk ---- */

#define MC_STOP_ROUNDING 1e-9 /* share of a bound that counts as rounding in a stop */

enum { MC_RAMP_ROUNDS = 6 }; /* a ramp's length depends on the deceleration, and that on the ramp: it settles in a few */

typedef struct {
    double ramp, hold, release; /* [ticks], whole numbers; ramp and release are at least 1 */
} mc_JerkStop;

typedef struct {
    double low, high; /* farthest places */
    double speed;     /* largest */
} mc_StopPath;

static const mc_JerkStop mc_at_rest = {1.0, 0.0, 1.0};

/* Return the acceleration h at which an actuator with speed `v` and acceleration `a` brakes. */
static inline double mc_brake_of(const mc_JerkStop *stop, double v, double a) {
    return -(v + 0.5 * a * (stop->ramp - 1.0)) / (stop->hold + 0.5 * (stop->ramp + stop->release));
}

/* Return what is left of a stop after one tick. */
static inline mc_JerkStop mc_rest_of_stop(mc_JerkStop stop) {
    if (stop.ramp > 1.0) stop.ramp -= 1.0;
    else if (stop.hold >= 1.0) stop.hold -= 1.0;
    else if (stop.release > 1.0) stop.release -= 1.0;
    return stop;
}

/* Return where one actuator gets to in a stop, from `x`. */
static inline mc_StopPath mc_stop_path(const mc_JerkStop *stop, double x, double v, double a) {
    const double h = mc_brake_of(stop, v, a), n = stop->ramp, r = stop->release, j = (h - a) / n;
    const double after = v + n * (a + 0.5 * j * (n + 1.0)); /* the ramp; from there on, the speed shrinks to 0 */
    const double ramped = x + n * (v + (n + 1.0) * (0.5 * a + j * (n + 2.0) / 6.0));
    const double end = ramped + stop->hold * (after + 0.5 * h * (stop->hold + 1.0)) - h * (r - 1.0) * (r - 2.0) / 6.0;
    const double turn = j != 0.0 ? -a / j - 0.5 : 0.0; /* tick of the largest speed */
    mc_StopPath path;
    path.low = fmin(x, fmin(ramped, end));
    path.high = fmax(x, fmax(ramped, end));
    path.speed = fmax(fabs(v), fabs(after));
    if (turn > 0.0 && turn < n) path.speed = fmax(path.speed, fabs(v + turn * (a + 0.5 * j * (turn + 1.0))));
    if ((turn > 0.0 && turn < n) || v * after < 0.0) { /* the speed changes its sign within the ramp */
        const double b = a + 0.5 * j, root = sqrt(fmax(0.0, b * b - 2.0 * j * v));
        for (int sign = -1; sign <= 1; sign += 2) {
            const double k = floor(j != 0.0 ? (sign * root - b) / j : -v / a);
            if (k > 0.0 && k < n) {
                const double there = x + k * (v + (k + 1.0) * (0.5 * a + j * (k + 2.0) / 6.0));
                path.low = fmin(path.low, there);
                path.high = fmax(path.high, there);
            }
        }
    }
    return path;
}

/* Return an actuator that would exceed its bounds in a stop from this state; -1 if none would. */
static inline int mc_stop_exceeds(
    const mc_ActuatorBounds *bounds, const mc_JerkStop *stop, const double *x, const double *v, const double *a, int n
) {
    const double slack = 1.0 + MC_STOP_ROUNDING;
    for (int i = 0; i < n; i++) {
        const mc_ActuatorBounds *b = &bounds[i];
        const double h = mc_brake_of(stop, v[i], a[i]), most = slack * b->acceleration, jerk = slack * b->jerk;
        const double room = 1e-14 * (b->high - b->low);
        mc_StopPath path;
        if (!(fabs(a[i]) <= most && fabs(h) <= most)) return i; /* false for NaN */
        if (!(fabs(h - a[i]) <= jerk * stop->ramp && fabs(h) <= jerk * stop->release)) return i;
        path = mc_stop_path(stop, x[i], v[i], a[i]);
        if (!(path.speed <= slack * b->speed && path.low >= b->low - room && path.high <= b->high + room)) return i;
    }
    return -1;
}

/* Find a stop within the bounds from this state, `stop` being a guess: first the guess itself, then short ones for a ramp
   that is sought from its ramp on, or from that which ends the present acceleration.  Return an actuator that would
   exceed its bounds, or -1 and the stop in `stop`. */
static inline int mc_find_stop(
    const mc_ActuatorBounds *bounds, const double *x, const double *v, const double *a, int n, mc_JerkStop *stop
) {
    double ramps[2] = {stop->ramp, 1.0};
    int over = mc_stop_exceeds(bounds, stop, x, v, a, n);
    if (over < 0) return over;
    for (int i = 0; i < n; i++) ramps[1] = fmax(ramps[1], ceil(fabs(a[i]) / bounds[i].jerk));
    for (int begun = 0; begun < 2; begun++) {
        mc_JerkStop tried = {ramps[begun], 0.0, 1.0};
        double length = 1.0, ticks = 0.0, jerks = 0.0;
        for (int k = 0; k < MC_RAMP_ROUNDS; k++) {
            double needed = 1.0;
            ticks = jerks = 0.0;
            for (int i = 0; i < n; i++) {
                const double change = fabs(v[i] + 0.5 * a[i] * (tried.ramp - 1.0));
                ticks = fmax(ticks, change / bounds[i].acceleration);
                jerks = fmax(jerks, change / bounds[i].jerk);
            }
            length = fmax(1.0, 0.25 * tried.ramp + sqrt(0.0625 * tried.ramp * tried.ramp + 0.5 * jerks));
            length = fmax(length, ticks); /* of the hold and half of ramp and release */
            for (int i = 0; i < n; i++) {
                const double h = -(v[i] + 0.5 * a[i] * (tried.ramp - 1.0)) / length;
                needed = fmax(needed, ceil(fabs(h - a[i]) / bounds[i].jerk - MC_STOP_ROUNDING));
            }
            if (needed == tried.ramp) break;
            if (k < MC_RAMP_ROUNDS - 1) tried.ramp = needed;
        }
        tried.release = fmax(1.0, ceil(jerks / length - MC_STOP_ROUNDING));
        tried.hold = fmax(0.0, ceil(length - 0.5 * (tried.ramp + tried.release) - MC_STOP_ROUNDING));
        over = mc_stop_exceeds(bounds, &tried, x, v, a, n);
        if (over < 0) {
            *stop = tried;
            return over;
        }
    }
    return over;
}

/* ---- Bounds: hold a platform's actuators within them ----
 *
 * Hold a platform's actuators within bounds on position, speed and acceleration, for any input; also while these change.
 *
 * Limiting one actuator alone would turn a surge into a rotation, and would distort a frame on four posts.  So the
 * wanted positions are approached, and every stop is made, along straight lines in actuator space.
 *
 * A speed v' is allowed if |v'_i - v_i| <= A_i, |v'_i| <= V_i and T(m') |v'_i| <= the distance of actuator i to the end
 * of its travel (below).  The stop itself continues with b = v (1 - 1/m), whose stopping distance is T(m) v - v, so
 * a state inside the bounds stays inside (induction; own derivation).  Then v' = b + f (w - b), where w is the wanted
 * speed and f = 1 if that is allowed, else about the largest allowed factor; f = 0 always is.
 *
 * Where each actuator may be anywhere whatever the others do (as many legs or axes as the pose has ways to go), they may
 * part: a speed is also allowed if each of them by itself, at its full acceleration, stops before its end, and where all
 * together would not, that is the stop.  A plan needs it: it takes a leg to its end while another moves, and all
 * together would need as long as the other one.
 *
 * The wanted position is the target, if the targets keep the bounds by themselves; otherwise it is approached at a
 * speed from which half of the allowed acceleration is enough to meet it.  If any wanted position is not a number or is
 * beyond MC_FARTHEST_POSITION, the targets of the tick before are kept, because a pose needs all of its actuators.
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
 * Bounds on jerk: the same, one derivative higher.  With each state goes a stop from it within all bounds (below);
 * an acceleration is allowed if there is such a stop from the state that it leads to.  The next acceleration is
 * a' = b + f (w - b), where b continues the stop, w is the wanted one, and f is 1 or about the largest allowed factor;
 * f = 0 always is.  Such bounds take hold, and are given up, as soon as there is a stop by the new rule; until then, the
 * actuators follow the stop that they have.
 */
#define MC_FARTHEST_POSITION 1e9 /* [unit] largest distance of a wanted position from 0; beyond it, sums could overflow */

typedef struct {
    double position;     /* as sent at the tick before */
    double speed;        /* [unit per tick] */
    double target;       /* wanted position of the tick before */
    double acceleration; /* [unit per tick^2], kept while jerk is bounded or bounds change; NaN: not known */
} mc_ActuatorMotion;

/* Share of a range that counts as rounding: an actuator that rides on its end must not stop the others by it. */
#define MC_ROUNDING 1e-12

enum { MC_HALVINGS = 20 }; /* bisections for the factor: an accuracy of a millionth */

/* Return whether an actuator that moves by `v` now, and whose stop takes `way` times that, ends before its end. */
static inline int mc_stops_within(const mc_ActuatorBounds *b, const mc_ActuatorMotion *motion, double v, double way) {
    const double room = v > 0.0 ? b->high - motion->position : motion->position - b->low;
    return !(fabs(v) * way > room + MC_ROUNDING * (b->high - b->low));
}

/* Return an actuator which, moving by `v` now, could not stop before its end; -1 if all can: all together, or else each by
   itself if they may `part`.  Fill in how far each gets, in units of its `v`. */
static inline int mc_overruns(
    const mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, const double *v, int n, int part, double *ways
) {
    const double way = mc_stop_distance(mc_ticks_to_stop(bounds, v, n));
    int over = -1;
    for (int i = 0; i < n; i++) {
        ways[i] = way;
        if (!mc_stops_within(&bounds[i], &motion[i], v[i], way)) over = i;
    }
    if (over < 0 || !part) return over;
    for (int i = 0; i < n; i++) {
        ways[i] = mc_stop_distance(fabs(v[i]) / bounds[i].acceleration);
        if (!mc_stops_within(&bounds[i], &motion[i], v[i], ways[i])) return i;
    }
    return -1;
}

/* Fill `brake` with the speeds of the next tick of the stop: of all together if that stays within the ends, else of each by
   itself if they may `part`. */
static inline void mc_next_of_stop(
    const mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, int n, int part, double *brake
) {
    double ways[MC_MOST_ACTUATORS], kept;
    for (int i = 0; i < n; i++) brake[i] = motion[i].speed;
    kept = mc_speed_kept(mc_ticks_to_stop(bounds, brake, n));
    for (int i = 0; i < n; i++) brake[i] *= kept;
    if (!part || mc_overruns(bounds, motion, brake, n, 0, ways) < 0) return;
    for (int i = 0; i < n; i++) brake[i] = mc_speed_kept(fabs(motion[i].speed) / bounds[i].acceleration) * motion[i].speed;
}

/* Move `n` actuators one tick towards `wanted` and overwrite it with the positions to send; return whether they differ.
   `acted[i]` counts the ticks in which actuator i restricted the common factor. */
static inline int mc_limit_actuators(
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, int n, int part, double *wanted, int64_t *acted
) {
    double move[MC_MOST_ACTUATORS] = {0.0}, speeds[MC_MOST_ACTUATORS], ways[MC_MOST_ACTUATORS];
    double share, error = 0.0, allowed = 0.0, factor = 1.0;
    const double rounded = 1.0 + MC_STOP_ROUNDING; /* what a plan does that rides on a bound must not stop the others */
    int first = -1, usable = 1, over;
    for (int i = 0; i < n; i++) usable &= fabs(wanted[i]) < MC_FARTHEST_POSITION; /* false for NaN */
    for (int i = 0; i < n && !usable; i++) wanted[i] = motion[i].target;
    for (int i = 0; i < n; i++) {
        speeds[i] = motion[i].speed;
        move[i] = wanted[i] - motion[i].position;
        if (fabs(move[i]) > rounded * bounds[i].speed || fabs(move[i] - speeds[i]) > rounded * bounds[i].acceleration)
            first = i;
    }
    if (first < 0) first = mc_overruns(bounds, motion, move, n, part, ways);
    if (first < 0) {
        for (int i = 0; i < n; i++) {
            motion[i].speed = move[i];
            motion[i].position = motion[i].target = wanted[i];
        }
        return !usable;
    }
    double brake[MC_MOST_ACTUATORS] = {0.0};
    for (int i = 0; i < n; i++)
        error = fmax(error, fabs(motion[i].target - motion[i].position) / (0.5 * bounds[i].acceleration));
    mc_next_of_stop(bounds, motion, n, part, brake);
    /* Share of the distance to the previous target to cover now, in addition to the target's own movement. */
    share = error > 1.0 ? 0.5 * (sqrt(1.0 + 8.0 * error) - 1.0) / error : 1.0;
    for (int i = 0; i < n; i++) {
        const mc_ActuatorBounds *b = &bounds[i];
        double change, high, low;
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
        over = mc_overruns(bounds, motion, speeds, n, part, ways);
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
    const mc_ActuatorBounds *goal, mc_ActuatorBounds *bounds, const mc_ActuatorMotion *motion, int n, int part, int range
) {
    mc_ActuatorBounds tried[MC_MOST_ACTUATORS];
    double brake[MC_MOST_ACTUATORS] = {0.0}, ways[MC_MOST_ACTUATORS];
    int over;
    memcpy(tried, bounds, (size_t)n * sizeof *bounds);
    for (int i = 0; i < n; i++) tried[i].acceleration = goal[i].acceleration;
    mc_next_of_stop(tried, motion, n, part, brake);
    over = mc_overruns(tried, motion, brake, n, part, ways);
    if (over >= 0) return over;
    for (int i = 0; i < n; i++) {
        const double at = motion[i].position, end = at + ways[i] * brake[i];
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
    const mc_ActuatorBounds *bounds, mc_ActuatorMotion *motion, int n, int part, double *positions
) {
    double brake[MC_MOST_ACTUATORS] = {0.0};
    mc_next_of_stop(bounds, motion, n, part, brake);
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
    for (int i = 0; i < n; i++) usable &= fabs(wanted[i]) < MC_FARTHEST_POSITION; /* false for NaN */
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

/* ---- The lead ----
 *
 * Lead the wanted positions by the lag of the drives, so that the frame is where it is wanted sooner.
 *
 * A drive that lags as 1 / (T s + 1), or as w^2 / (s^2 + 2 z w s + w^2), is sent the wanted position times
 *
 *   (T s + 1) / (T s / N + 1)      or      (s^2 / w^2 + 2 z s / w + 1) / (s / (w sqrt N) + 1)^2,
 *
 * by the trapezoidal rule.  No frequency is amplified more than N times (for z <= 1, because then
 * |1 - x + 2 i z sqrt x| <= 1 + x), and behind such a drive none is amplified at all: what remains is the denominator, a
 * delay of T / N, or 2 / (w sqrt N), at low frequencies.  (Own derivation.)
 *
 * The leads of all actuators shrink by one factor where one of them would leave its range.
 */
#define MC_MOST_LEAD 16.0 /* N: the largest amplification of any frequency */
#define MC_NO_LEAD 1e-10  /* [unit] a lead up to this is left out, so that a platform at rest is exactly where it should be */

typedef struct {
    int order;  /* of the drives' lag: 1 or 2; 0 leads nothing */
    double lag; /* [s] */
    mc_FirstOrder first;
    mc_SecondOrder second;
    double outer, inner; /* weights of the second-order section's high-pass and of its velocity */
} mc_Lead;

typedef struct {
    int order;        /* of the lead that filled the states, and its stiffness, in which `second` counts displacements */
    double stiffness;
    double newest[MC_MOST_ACTUATORS]; /* lead of the newest tick */
    double first[MC_MOST_ACTUATORS];
    mc_SecondOrderState second[MC_MOST_ACTUATORS];
} mc_LeadState;

/* Return the lead for a lag [s], of second order if `damping` is above 0, at ticks of `dt` [s]; without one if `lag` is
   0. */
static inline mc_Lead mc_lead_for(double lag, double damping, double dt) {
    mc_Lead lead = {0};
    if (!(lag > 0.0)) return lead;
    lead.order = damping > 0.0 ? 2 : 1;
    lead.lag = lag;
    lead.outer = MC_MOST_LEAD - 1.0;
    if (lead.order == 1) {
        lead.first.g = 0.5 * dt * MC_MOST_LEAD / lag;
        lead.first.d = 1.0 / (1.0 + lead.first.g);
    } else {
        const double omega = 2.0 * damping / lag * sqrt(MC_MOST_LEAD);
        lead.inner = (2.0 * damping * sqrt(MC_MOST_LEAD) - 2.0) * omega;
        lead.second.c0 = omega * omega;
        lead.second.k = 0.5 * dt;
        lead.second.b = 2.0 * omega + lead.second.c0 * lead.second.k;
        lead.second.d = 1.0 / (1.0 + lead.second.b * lead.second.k);
    }
    return lead;
}

/* Lead `n` positions; positions that are not all usable (see actuator_limits.h) are left as they are. */
static inline void mc_lead(const mc_Lead *c, mc_LeadState *s, const mc_ActuatorBounds *bounds, int n, double *positions) {
    double leads[MC_MOST_ACTUATORS], factor = 1.0;
    int usable = 1;
    if (!c->order) s->order = 0; /* the next lead begins at rest */
    for (int i = 0; i < n; i++) usable &= fabs(positions[i]) < MC_FARTHEST_POSITION;
    if (!c->order || !usable) return;
    for (int i = 0; i < n && s->order != c->order; i++) { /* at rest */
        s->first[i] = positions[i];
        s->second[i].v = 0.0;
        s->second[i].x = c->order == 2 ? positions[i] / c->second.c0 : 0.0;
    }
    for (int i = 0; i < n && s->order == c->order && s->stiffness != c->second.c0; i++)
        s->second[i].x *= s->stiffness / c->second.c0;
    s->order = c->order;
    s->stiffness = c->second.c0;
    for (int i = 0; i < n; i++) {
        double room;
        if (c->order == 1) {
            leads[i] = c->outer * mc_high_pass_1(&c->first, &s->first[i], positions[i]);
        } else {
            mc_Integrals integrals;
            leads[i] = c->outer * mc_high_pass_2(&c->second, &s->second[i], positions[i], &integrals);
            leads[i] += c->inner * integrals.v;
        }
        if (fabs(leads[i]) <= MC_NO_LEAD) leads[i] = 0.0;
        room = leads[i] > 0.0 ? bounds[i].high - positions[i] : positions[i] - bounds[i].low;
        if (fabs(leads[i]) > room) factor = fmin(factor, fmax(room, 0.0) / fabs(leads[i]));
    }
    for (int i = 0; i < n; i++) {
        s->newest[i] = factor * leads[i];
        positions[i] += s->newest[i];
    }
}

/* Add to `positions` about the lead that they would have after a change from `before` to `c`, the motion going on. */
static inline void mc_lead_as_before(
    const mc_Lead *c, const mc_Lead *before, const mc_LeadState *s, int n, double *positions
) {
    if (!c->order || !before->order) return;
    for (int i = 0; i < n; i++) positions[i] += s->newest[i] * c->lag / before->lag;
}
#endif
#else

/* Return a bound on T(m), and on T(m) - 1: the rest of the stop after its first tick. */
INLINE real NAME(stop_distance_bound)(real ticks) {
    return NAME(pick)(ticks > ALL(0.8), 0.5 * ticks + 0.6, ALL(1.0));
}
INLINE real NAME(stop_rest_bound)(real ticks) { return NAME(pick)(ticks > ALL(0.8), 0.5 * ticks - 0.4, ALL(0.0)); }
#endif
