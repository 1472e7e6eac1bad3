/* The coordinated adaptive washout: one tick.
 *
 * After Parrish, Dieudonne, Bowles and Martin, J. Aircraft 12(1), 1975; reconstructed.  A washout whose parameters
 * descend a cost of what is felt wrongly and of what the platform travels, by its derivatives, which are integrated
 * beside the states.  Axes are x forward, y right, z down.  kernel.pxd explains the fields, kernel.pyx the equations.
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_ADAPTIVE_H
#define MOTIONCUE_ADAPTIVE_H
#include "motioncue/cueing/pose.h"
#define MC_TEMPLATE "motioncue/cueing/adaptive/step.h"
#include "motioncue/core/real.h"

/* One tick of one rig, as an algorithm's function table has it; the cue's time is left unchanged. */
static inline void mc_adaptive_one(void *state, const void *coeffs, const Motion *motion, Cue *cue) {
    mc_adaptive_step((const mc_AdaptiveCoeffs *)coeffs, (mc_AdaptiveState *)state, (const double *)motion, (double *)cue);
    cue->speed = motion->speed;
    cue->engine_speed = motion->engine_speed;
}
#endif
#else
#ifdef MC_OVER_LANES /* included by core/lanes.h: for every kind of machine */
#include "motioncue/cueing/pose.h"
#endif

typedef struct {
    real start, span, low, high;
} NAME(Parameter);

typedef struct {
    real gain, limit;
} NAME(Input);

typedef struct {
    NAME(Input) force, rate;
    NAME(SecondOrder) washout;
    NAME(Parameter) parameters[3];
    real tilt_limit, tilt_rate, smooth;
    real force_weight, turn_weight, travel_weight, speed_weight;
} NAME(AdaptivePair);

typedef struct {
    NAME(SecondOrderState) travel, by[3];
    real smooth, tilt, turned, tilt_by, turned_by[2], moved[3];
} NAME(AdaptivePairState);

typedef struct {
    NAME(Input) force;
    NAME(FirstOrder) outer;
    NAME(SecondOrder) washout;
    NAME(Parameter) parameter;
    real force_weight, travel_weight, speed_weight;
} NAME(HeaveCoeffs);

typedef struct {
    real outer;
    NAME(SecondOrderState) travel, by;
    real moved;
} NAME(HeaveState);

typedef struct {
    NAME(Input) rate;
    NAME(Parameter) parameter;
    real corner, d, turn_weight, angle_weight;
} NAME(YawCoeffs);

typedef struct {
    real angle, by, moved;
} NAME(YawState);

typedef struct {
    NAME(AdaptivePair) pairs[2];
    NAME(HeaveCoeffs) heave;
    NAME(YawCoeffs) yaw;
    real gravity, half_tick, descent, back, pace;
} NAME(AdaptiveCoeffs);

typedef struct {
    NAME(AdaptivePairState) pairs[2];
    NAME(HeaveState) heave;
    NAME(YawState) yaw;
    NAME(Turn) platform[3];
    real primed;
} NAME(AdaptiveState);

typedef struct { /* inputs of the washouts: specific force less that at rest (x, y, z), body rates */
    real force[3], rates[3];
} NAME(Given);

typedef struct { /* outputs of a pair beside its acceleration */
    real travel, angle, rate;
} NAME(Leaning);

/* Return a scaled input within its limit, 0 for one that is not a number. */
INLINE real NAME(taken)(const NAME(Input) *in, real u) {
    const real scaled = in->gain * u;
    return NAME(saturate)(NAME(pick)(scaled == scaled, scaled, ALL(0.0)), in->limit);
}

INLINE real NAME(value)(const NAME(Parameter) *p, real moved) { return p->start + p->span * moved; }

/* Return the next deviation of a parameter from its start, by a share of the cost's gradient, within its bounds.
 *
 * What it multiplies may be a car that rolls over, so it goes there no faster than the pace: a step of it is a jolt.
 */
INLINE real NAME(descended)(
    const NAME(AdaptiveCoeffs) *w, const NAME(Parameter) *p, real moved, real share, real gradient
) {
    const real next = moved - NAME(saturate)(w->back * moved + share * gradient, w->pace);
    return NAME(pick)(next > p->high, p->high, NAME(pick)(next < p->low, p->low, next));
}

/* Return the share of the gradient that a tick descends; `squares` is the sum of the errors' squared derivatives. */
INLINE real NAME(share)(const NAME(AdaptiveCoeffs) *w, real squares) {
    return w->descent / (1.0 + w->descent * squares);
}

/* Do one tick of surge with pitch, or of sway with roll to the left; return the level acceleration.
 *
 * Angles are stepped by the trapezoidal rule: a rate u - w angle is d (u - w s), d = 1 / (1 + k w), the angle s + k rate,
 * and the next s is s + 2 k rate.  The derivative of w d by w is d^2.
 */
INLINE real NAME(pair)(
    const NAME(AdaptiveCoeffs) *w, const NAME(AdaptivePair) *c, NAME(AdaptivePairState) *s, real f, real turn, NAME(Leaning) *out
) {
    const real g = w->gravity, k = w->half_tick;
    const NAME(Parameter) *p = c->parameters;
    const real share = NAME(value)(&p[0], s->moved[0]);
    const real corner = NAME(value)(&p[1], s->moved[1]);
    const real turning = NAME(value)(&p[2], s->moved[2]);

    /* Tilt follows the force, and what the car has turned is washed out, both at the corner frequency. */
    const real d = 1.0 / (1.0 + k * corner), pace = corner * d;
    const real smoothed = c->smooth * (NAME(saturate)(f / g, c->tilt_limit) - s->smooth);
    const real aim = (s->smooth + k * smoothed) - s->tilt;
    const real wanted = pace * aim, tilt = NAME(saturate)(wanted, c->tilt_rate);
    const real tilt_by = NAME(pick)(tilt == wanted, d * d * aim - pace * s->tilt_by, ALL(0.0));
    const real turned = d * (turning * turn) - pace * s->turned;
    const real turned_by[2] = {
        -(d * d * (k * (turning * turn) + s->turned) + pace * s->turned_by[0]), d * turn - pace * s->turned_by[1]
    };
    const real rate = tilt + turned, rate_by[3] = {ALL(0.0), tilt_by + turned_by[0], turned_by[1]};
    const real angle = (s->tilt + s->turned) + k * rate;
    const real angle_by[3] = {ALL(0.0), (s->tilt_by + s->turned_by[0]) + k * rate_by[1], s->turned_by[1] + k * rate_by[2]};
    s->smooth = s->smooth + 2.0 * k * smoothed;
    s->tilt = s->tilt + 2.0 * k * tilt;
    s->turned = s->turned + 2.0 * k * turned;
    s->tilt_by = s->tilt_by + 2.0 * k * tilt_by;
    s->turned_by[0] = s->turned_by[0] + 2.0 * k * turned_by[0];
    s->turned_by[1] = s->turned_by[1] + 2.0 * k * turned_by[1];

    /* What they do not present is washed out into travel. */
    const real left = f - g * angle;
    NAME(Integrals) x, by[3];
    real a_by[3];
    const real a = NAME(high_pass_2)(&c->washout, &s->travel, share * left, &x);
    a_by[0] = NAME(high_pass_2)(&c->washout, &s->by[0], left, &by[0]);
    a_by[1] = NAME(high_pass_2)(&c->washout, &s->by[1], -(share * g) * angle_by[1], &by[1]);
    a_by[2] = NAME(high_pass_2)(&c->washout, &s->by[2], -(share * g) * angle_by[2], &by[2]);

    const real force = c->force_weight * (left - a), rotation = c->turn_weight * (turn - rate);
    const real distance = c->travel_weight * x.x, speed = c->speed_weight * x.v;
    real gradient[3], squares = ALL(0.0);
    for (int i = 0; i < 3; i++) {
        const real force_by = -(c->force_weight * p[i].span * (g * angle_by[i] + a_by[i]));
        const real rotation_by = -(c->turn_weight * p[i].span * rate_by[i]);
        const real distance_by = c->travel_weight * p[i].span * by[i].x;
        const real speed_by = c->speed_weight * p[i].span * by[i].v;
        gradient[i] = (force * force_by + rotation * rotation_by) + (distance * distance_by + speed * speed_by);
        squares = squares + ((force_by * force_by + rotation_by * rotation_by)
                             + (distance_by * distance_by + speed_by * speed_by));
    }
    const real part = NAME(share)(w, squares);
    for (int i = 0; i < 3; i++) s->moved[i] = NAME(descended)(w, &p[i], s->moved[i], part, gradient[i]);
    out->travel = x.x;
    out->angle = angle;
    out->rate = rate;
    return a;
}

/* Do one tick of heave; return the acceleration. */
INLINE real NAME(heave)(
    const NAME(AdaptiveCoeffs) *w, const NAME(HeaveCoeffs) *c, NAME(HeaveState) *s, real f, real *travel
) {
    NAME(Integrals) z, by;
    const real onset = NAME(high_pass_1)(&c->outer, &s->outer, f);
    const real drive = NAME(value)(&c->parameter, s->moved) * onset;
    const real a = NAME(high_pass_2)(&c->washout, &s->travel, drive, &z);
    const real a_by = NAME(high_pass_2)(&c->washout, &s->by, onset, &by);
    const real force_by = -(c->force_weight * c->parameter.span * a_by);
    const real distance_by = c->travel_weight * c->parameter.span * by.x;
    const real speed_by = c->speed_weight * c->parameter.span * by.v;
    const real gradient = c->force_weight * (f - a) * force_by
        + (c->travel_weight * z.x * distance_by + c->speed_weight * z.v * speed_by);
    const real part = NAME(share)(w, force_by * force_by + (distance_by * distance_by + speed_by * speed_by));
    s->moved = NAME(descended)(w, &c->parameter, s->moved, part, gradient);
    *travel = z.x;
    return a;
}

/* Do one tick of yaw: fill angle and rate. */
INLINE void NAME(yaw)(
    const NAME(AdaptiveCoeffs) *w, const NAME(YawCoeffs) *c, NAME(YawState) *s, real turn, real *angle, real *rate
) {
    const real k = w->half_tick, span = c->parameter.span;
    const real turned = c->d * (NAME(value)(&c->parameter, s->moved) * turn - c->corner * s->angle);
    const real turned_by = c->d * (turn - c->corner * s->by);
    *rate = turned;
    *angle = s->angle + k * turned;
    const real rotation_by = -(c->turn_weight * span * turned_by);
    const real angle_by = c->angle_weight * span * (s->by + k * turned_by);
    s->angle = s->angle + 2.0 * k * turned;
    s->by = s->by + 2.0 * k * turned_by;
    const real gradient = c->turn_weight * (turn - turned) * rotation_by + c->angle_weight * *angle * angle_by;
    const real part = NAME(share)(w, rotation_by * rotation_by + angle_by * angle_by);
    s->moved = NAME(descended)(w, &c->parameter, s->moved, part, gradient);
}

INLINE void NAME(adaptive_in)(const NAME(AdaptiveCoeffs) *w, const real *motion, NAME(Given) *in) {
    const real g = w->gravity;
    real sr, cr, sp, cp;
    NAME(sin_cos_of_two)(motion[MC_ROLL], motion[MC_PITCH], &sr, &cr, &sp, &cp);
    in->force[0] = NAME(taken)(&w->pairs[0].force, motion[MC_SURGE] + g * sp);
    in->force[1] = NAME(taken)(&w->pairs[1].force, motion[MC_SWAY] - g * sr * cp);
    in->force[2] = NAME(taken)(&w->heave.force, g * (1.0 - cr * cp) - motion[MC_HEAVE]);
    in->rates[0] = NAME(taken)(&w->pairs[1].rate, motion[MC_ROLL_RATE]);
    in->rates[1] = NAME(taken)(&w->pairs[0].rate, motion[MC_PITCH_RATE]);
    in->rates[2] = NAME(taken)(&w->yaw.rate, motion[MC_YAW_RATE]);
}

/* Start every filter that has not run yet from rest at this tick's input, so that engaging causes no transient. */
INLINE void NAME(adaptive_prime)(
    const NAME(AdaptiveCoeffs) *w, NAME(AdaptiveState) *s, const real *force, const real *turn
) {
    const flag fresh = s->primed == ALL(0.0);
    const real k = w->half_tick;
    const NAME(HeaveCoeffs) *heave = &w->heave;
    for (int i = 0; i < 2; i++) {
        const NAME(AdaptivePair) *c = &w->pairs[i];
        NAME(AdaptivePairState) *pair = &s->pairs[i];
        const real aim = NAME(saturate)(force[i] / w->gravity, c->tilt_limit);
        const real turned = NAME(value)(&c->parameters[2], pair->moved[2]) * turn[i];
        const real share = NAME(value)(&c->parameters[0], pair->moved[0]);
        NAME(start_2)(&c->washout, &pair->travel, fresh, share * force[i]);
        NAME(start_2)(&c->washout, &pair->by[0], fresh, force[i]);
        pair->smooth = NAME(pick)(fresh, -k * (c->smooth / (1.0 - k * c->smooth)) * aim, pair->smooth);
        pair->turned = NAME(pick)(fresh, -k * turned, pair->turned);
        pair->turned_by[1] = NAME(pick)(fresh, -k * turn[i], pair->turned_by[1]);
    }
    real rest;
    NAME(prime_1)(&heave->outer, &rest, force[2]);
    s->heave.outer = NAME(pick)(fresh, rest, s->heave.outer);
    NAME(start_2)(&heave->washout, &s->heave.travel, fresh, NAME(value)(&heave->parameter, s->heave.moved) * force[2]);
    NAME(start_2)(&heave->washout, &s->heave.by, fresh, force[2]);
    s->yaw.angle = NAME(pick)(fresh, -k * (NAME(value)(&w->yaw.parameter, s->yaw.moved) * turn[2]), s->yaw.angle);
    s->yaw.by = NAME(pick)(fresh, -k * turn[2], s->yaw.by);
    s->primed = ALL(1.0);
}

/* Do one tick; the caller copies the channels that the washout passes through (speed, engine speed, time). */
INLINE void NAME(adaptive_step)(
    const NAME(AdaptiveCoeffs) *w, NAME(AdaptiveState) *s, const real *motion, real *cue
) {
    NAME(Given) in;
    NAME(PlatformMotion) out;
    NAME(Leaning) nose, left;
    real euler[3];
    NAME(adaptive_in)(w, motion, &in);
    NAME(euler_rates)(s->platform, in.rates, euler);
    /* Nose up presents forward force; left side down presents force to the right. */
    const real turn[3] = {euler[1], -euler[0], euler[2]};
    if (NAME(any)(s->primed == ALL(0.0))) NAME(adaptive_prime)(w, s, in.force, turn);
    out.a[0] = NAME(pair)(w, &w->pairs[0], &s->pairs[0], in.force[0], turn[0], &nose);
    out.a[1] = NAME(pair)(w, &w->pairs[1], &s->pairs[1], in.force[1], turn[1], &left);
    out.a[2] = NAME(heave)(w, &w->heave, &s->heave, in.force[2], &out.travel[2]);
    NAME(yaw)(w, &w->yaw, &s->yaw, turn[2], &out.yaw, &out.rates[2]);
    out.travel[0] = nose.travel;
    out.travel[1] = left.travel;
    out.rates[0] = -left.rate;
    out.rates[1] = nose.rate;
    NAME(two_turns)(s->platform, -left.angle, nose.angle);
    out.roll = s->platform[0];
    out.pitch = s->platform[1];
    NAME(cue_of)(w->gravity, &out, &s->platform[2], cue);
}

#ifdef MC_OVER_LANES
/* ---- Over lanes: one tick of many rigs ---- */

INLINE void NAME(adaptive)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(adaptive_step)((const NAME(AdaptiveCoeffs) *)coeffs, (NAME(AdaptiveState) *)state, motion, cue);
}
static void NAME(adaptive_tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(AdaptiveCoeffs));
    NAME(ticks)(NAME(adaptive), size, sizeof(NAME(AdaptiveState)), states, coeffs, motions, cues, n);
}
#endif
#endif
