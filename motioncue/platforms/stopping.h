/* What actuators may do, and the stop with constant deceleration that everything here is built on.
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
#endif
#else

/* Return a bound on T(m), and on T(m) - 1: the rest of the stop after its first tick. */
INLINE real NAME(stop_distance_bound)(real ticks) {
    return NAME(pick)(ticks > ALL(0.8), 0.5 * ticks + 0.6, ALL(1.0));
}
INLINE real NAME(stop_rest_bound)(real ticks) { return NAME(pick)(ticks > ALL(0.8), 0.5 * ticks - 0.4, ALL(0.0)); }
#endif
