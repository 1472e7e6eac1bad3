/* The linear-quadratic washout: one tick.
 *
 * Three pairs of a translation and a rotation: surge with pitch, sway with roll, heave with yaw.  In the first two, gravity
 * makes a lean a specific force.  The law of a pair gives the platform's acceleration and angular acceleration from six
 * integrals, the car's specific force and its rate; cueing/optimal/design.py designs it, and kernel.pxd explains the fields.
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_OPTIMAL_H
#define MOTIONCUE_OPTIMAL_H
#include "motioncue/cueing/pose.h"
#define MC_TEMPLATE "motioncue/cueing/optimal/step.h"
#include "motioncue/core/real.h"

/* One tick of one rig, as an algorithm's function table has it; the cue's time is left unchanged. */
static inline void mc_optimal_one(void *state, const void *coeffs, const Motion *motion, Cue *cue) {
    mc_optimal_step((const mc_OptimalCoeffs *)coeffs, (mc_OptimalState *)state, (const double *)motion, (double *)cue);
    cue->speed = motion->speed;
    cue->engine_speed = motion->engine_speed;
}
#endif
#else
#ifdef MC_OVER_LANES /* included by core/lanes.h: for every kind of machine */
#include "motioncue/cueing/pose.h"
#endif

typedef struct {
    real force_gain, force_limit, rate_gain, rate_limit;
    real gravity, slack, braking, half_tick, otolith, canal, roll_off;
    real acceleration[8], turning[8];
} NAME(PairCoeffs);

typedef struct {
    real otolith, canal, velocity, travel, rate, lean;
    real car_force, car_rate;
} NAME(PairState);

typedef struct {
    real angle, change, target;
} NAME(Following);

typedef struct {
    NAME(PairCoeffs) pairs[3];
    real gravity, ticks_per_second;
} NAME(OptimalCoeffs);

typedef struct {
    NAME(PairState) pairs[3];
    NAME(Following) angles[3];
    NAME(Turn) platform[3];
} NAME(OptimalState);

INLINE real NAME(weighed)(const real *law, const NAME(PairState) *s, real force, real rate) {
    return law[0] * s->otolith + law[1] * s->canal + law[2] * s->velocity + law[3] * s->travel + law[4] * s->rate
        + law[5] * s->lean + law[6] * force + law[7] * rate;
}

/* Return the low-passed input by the trapezoidal rule; `kept` is twice that less what was kept before. */
INLINE real NAME(rolled_off)(real share, real *kept, real input) {
    const real slow = *kept + share * (input - *kept);
    *kept = 2.0 * slow - *kept;
    return slow;
}

/* Do the tick of a pair by the trapezoidal rule; return the platform's acceleration and fill its travel and lean. */
INLINE real NAME(pair_step)(
    const NAME(PairCoeffs) *c, NAME(PairState) *s, real car_force, real car_rate, real *travel, real *lean
) {
    const real k = c->half_tick;
    const real force = NAME(rolled_off)(c->roll_off, &s->car_force, car_force);
    const real rate = NAME(rolled_off)(c->roll_off, &s->car_rate, car_rate);
    const real a = NAME(weighed)(c->acceleration, s, force, rate);
    const real turning = NAME(weighed)(c->turning, s, force, rate);
    const real v = s->velocity + k * a, q = s->rate + k * turning;
    const real x = s->travel + k * v, angle = s->lean + k * q;
    s->velocity = v + k * a;
    s->travel = x + k * v;
    s->rate = q + k * turning;
    s->lean = angle + k * q;
    /* Twice the low-passed error less what was kept, which is what the trapezoidal rule keeps of a first-order section. */
    s->otolith = s->otolith + 2.0 * c->otolith * (a + c->gravity * angle - force - s->otolith);
    s->canal = s->canal + 2.0 * c->canal * (q - rate - s->canal);
    *travel = x;
    *lean = angle;
    return a;
}

/* Move an angle towards its target, at most `slack` a tick faster than the car turns or against it; return the change.
   Its acceleration is bounded only after a change of settings. */
INLINE real NAME(follow)(const NAME(PairCoeffs) *c, NAME(Following) *s, real target, real rate) {
    const flag limited = c->braking < ALL(HUGE_VAL);
    const real own = 2.0 * c->half_tick * rate;
    const real most = NAME(pick)(own > ALL(0.0), own, ALL(0.0)) + c->slack;
    const real least = NAME(pick)(own < ALL(0.0), own, ALL(0.0)) - c->slack;
    real way = target - s->angle, change;
    if (NAME(any)(limited)) way = NAME(pick)(limited, way - NAME(left_behind)(c->braking, s->target - s->angle), way);
    change = NAME(pick)(way > most, most, NAME(pick)(way < least, least, way));
    if (NAME(any)(limited)) change = NAME(pick)(limited, NAME(eased)(change, s->change, c->braking), change);
    s->angle = s->angle + change;
    s->change = change;
    s->target = target;
    return change;
}

/* Compute the car's specific force less that of standing level, and its rates as those of the platform's Euler angles. */
INLINE void NAME(optimal_in)(
    const NAME(OptimalCoeffs) *c, const NAME(OptimalState) *s, const real *motion, real *force, real *rate
) {
    const NAME(PairCoeffs) *p = c->pairs;
    const real g = c->gravity;
    real sr, cr, sp, cp, rates[3], euler[3];
    NAME(sin_cos_of_two)(motion[MC_ROLL], motion[MC_PITCH], &sr, &cr, &sp, &cp);
    force[0] = NAME(saturate)(p[0].force_gain * (motion[MC_SURGE] + g * sp), p[0].force_limit);
    force[1] = NAME(saturate)(p[1].force_gain * (motion[MC_SWAY] - g * sr * cp), p[1].force_limit);
    force[2] = NAME(saturate)(p[2].force_gain * (motion[MC_HEAVE] + g * (cr * cp - 1.0)), p[2].force_limit);
    rates[0] = NAME(saturate)(p[1].rate_gain * motion[MC_ROLL_RATE], p[1].rate_limit);
    rates[1] = NAME(saturate)(p[0].rate_gain * motion[MC_PITCH_RATE], p[0].rate_limit);
    rates[2] = NAME(saturate)(p[2].rate_gain * motion[MC_YAW_RATE], p[2].rate_limit);
    NAME(euler_rates)(s->platform, rates, euler);
    /* Leaning left and nose up are felt as forces to the right and forward. */
    rate[0] = euler[1];
    rate[1] = -euler[0];
    rate[2] = euler[2];
}

/* Do one tick; the caller copies the channels that pass through (speed, engine speed, time). */
INLINE void NAME(optimal_step)(const NAME(OptimalCoeffs) *c, NAME(OptimalState) *s, const real *motion, real *cue) {
    NAME(PlatformMotion) out;
    real force[3], rate[3], travel[3], lean[3];
    NAME(optimal_in)(c, s, motion, force, rate);
    for (int i = 0; i < 3; i++) {
        out.a[i] = NAME(pair_step)(&c->pairs[i], &s->pairs[i], force[i], rate[i], &travel[i], &lean[i]);
    }
    out.a[2] = -out.a[2]; /* the axis points down */
    out.travel[0] = travel[0];
    out.travel[1] = travel[1];
    out.travel[2] = -travel[2];
    /* Lean to where gravity's share along the platform is that of a small angle. */
    const real sines[2] = {NAME(saturate)(lean[0], ALL(1.0)), NAME(saturate)(lean[1], ALL(1.0))};
    NAME(two_arc_sines)(sines, lean);
    const real hz = c->ticks_per_second;
    out.rates[1] = NAME(follow)(&c->pairs[0], &s->angles[0], lean[0], rate[0]) * hz;
    out.rates[0] = -NAME(follow)(&c->pairs[1], &s->angles[1], lean[1], rate[1]) * hz;
    out.rates[2] = NAME(follow)(&c->pairs[2], &s->angles[2], lean[2], rate[2]) * hz;
    NAME(two_turns)(s->platform, -s->angles[1].angle, s->angles[0].angle);
    out.roll = s->platform[0];
    out.pitch = s->platform[1];
    out.yaw = s->angles[2].angle;
    NAME(cue_of)(c->gravity, &out, &s->platform[2], cue);
}

#ifdef MC_OVER_LANES
/* ---- Over lanes: one tick of many rigs ---- */

INLINE void NAME(optimal)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(optimal_step)((const NAME(OptimalCoeffs) *)coeffs, (NAME(OptimalState) *)state, motion, cue);
}
static void NAME(optimal_tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(OptimalCoeffs));
    NAME(ticks)(NAME(optimal), size, sizeof(NAME(OptimalState)), states, coeffs, motions, cues, n);
}
#endif
#endif
