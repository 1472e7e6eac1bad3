/* The classical washout: one tick.
 *
 * Reid & Nahon, UTIAS reports 296, 307 and 319: translation is high-passed, sustained specific force becomes tilt,
 * rotation is high-passed.  Axes are x forward, y right, z down; index order surge, sway, heave and roll, pitch, yaw.
 * A tick has three parts, of which only the middle one changes the state, so that the first and the last part can be
 * computed for many ticks of a recording side by side (at the end).  kernel.pxd explains the fields.
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_WASHOUT_H
#define MOTIONCUE_WASHOUT_H
#include "motioncue/cueing/pose.h"
#define MC_SIDES 0.3 /* [m/s^2] input about 0 in which the gain goes from that of one side to that of the other */
#define MC_TEMPLATE "motioncue/cueing/classical/step.h"
#include "motioncue/core/real.h"

enum {
    MC_COEFFS_SIZE = sizeof(mc_WashoutCoeffs) / sizeof(double),
    MC_DEMAND_SIZE = sizeof(mc_Demand) / sizeof(double),
    MC_RESPONSE_SIZE = sizeof(mc_PlatformMotion) / sizeof(double)
};

/* One tick of one rig, as an algorithm's function table has it; the cue's time is left unchanged. */
static inline void mc_washout_one(void *state, const void *coeffs, const Motion *motion, Cue *cue) {
    mc_washout_step((const mc_WashoutCoeffs *)coeffs, (mc_WashoutState *)state, (const double *)motion, (double *)cue);
    cue->speed = motion->speed;
    cue->engine_speed = motion->engine_speed;
}
#endif
#else
#ifdef MC_OVER_LANES /* included by core/lanes.h: for every kind of machine */
#include "motioncue/cueing/pose.h"
#endif

/* An axis: its input scaled, then high-passed, an angle within a bound. */

typedef struct {
    real gain, limit, largest, per_largest, square, cube;
    real dead_zone, mean, half;
} NAME(Scaling);

typedef struct {
    NAME(FirstOrder) outer;
    NAME(SecondOrder) inner;
} NAME(HighPassAxis);

typedef struct {
    real limit, per_limit, room;
} NAME(Bound);

typedef struct {
    real most, by_speed, by_place;
} NAME(Return);

typedef struct {
    real outer;
    NAME(SecondOrderState) inner;
    NAME(Integrals) integrals;
} NAME(HighPassState);

INLINE real NAME(scale)(const NAME(Scaling) *s, real u) {
    return NAME(saturate)(s->gain * u, s->limit);
}

/* Return x / sqrt(x^2 + width^2): its sign where it is large, through 0 without a corner. */
INLINE real NAME(side)(real x, real width) {
    const real q = width / NAME(magnitude)(x); /* infinite at 0, and no square of a large x */
    return NAME(with_sign)(1.0 / NAME(root)(1.0 + q * q), x);
}

/* Return the input whose product with the gain is what the dead zone, the gains of the two sides and the polynomial make of it.
 *
 * With d the dead zone and e = |u| - d, u becomes u e^2 / (e^2 + d^2), and 0 up to d.  Then it is times mean + half side(u).
 */
INLINE real NAME(bend)(const NAME(Scaling) *s, real input) {
    const real beyond = NAME(magnitude)(input) - s->dead_zone;
    const real q = s->dead_zone / NAME(pick)(beyond > ALL(0.0), beyond, ALL(0.0));
    const real left = NAME(pick)(s->dead_zone > ALL(0.0), input / (1.0 + q * q), input);
    const real u = left * (s->mean + s->half * NAME(side)(left, ALL(MC_SIDES)));
    const real held = NAME(saturate)(u, s->largest), z = NAME(magnitude)(held) * s->per_largest;
    return NAME(pick)(s->per_largest > ALL(0.0), held * (1.0 + z * (s->square + z * s->cube)), u);
}

INLINE real NAME(high_pass)(const NAME(HighPassAxis) *axis, NAME(HighPassState) *state, real u) {
    const real inner = NAME(high_pass_1)(&axis->outer, &state->outer, u);
    return NAME(high_pass_2)(&axis->inner, &state->inner, inner, &state->integrals);
}

/* Return the rate by which a bounded angle moves: away from 0 by a share of 1 - (angle / limit)^2.
 *
 * At a constant rate r the angle follows limit tanh(r t / limit).  A rate that would pass the limit within the tick, on
 * either side, is cut.
 */
INLINE real NAME(bound)(const NAME(Bound) *b, real angle, real rate) {
    const real z = NAME(saturate)(NAME(with_sign)(ALL(1.0), rate) * angle * b->per_limit, ALL(1.0));
    const real slowed = NAME(pick)(z > ALL(0.0), rate * (1.0 - z * z), rate);
    return NAME(saturate)(slowed, b->room * (1.0 - z));
}

/* Return the rate or acceleration that brings an axis back to 0 while its input `u` is below the threshold, which it keeps too.
 *
 * It acts by (1 - (u / most)^2)^2 of it, so that it comes and goes without a corner.  From far it aims at the speed
 * sqrt(most x), from which half of what it may is enough to brake.
 */
INLINE real NAME(returned)(const NAME(Return) *r, const NAME(SecondOrderState) *s, real u) {
    const real far = NAME(root)(1.0 + 0.25 * NAME(magnitude)(s->x) / r->most);
    const real pull = r->by_speed * s->v + r->by_place * (s->x / far);
    const real z = NAME(saturate)(u / r->most, ALL(1.0)), calm = 1.0 - z * z;
    return NAME(pick)(r->most > ALL(0.0), r->most * calm * calm * NAME(side)(pull, r->most), ALL(0.0));
}

/* As high_pass, with the angle within a bound; what is left of the rate is the output. */
INLINE real NAME(high_pass_bounded)(
    const NAME(HighPassAxis) *axis, const NAME(Bound) *b, NAME(HighPassState) *state, real u
) {
    const real inner = NAME(high_pass_1)(&axis->outer, &state->outer, u);
    const real rate = NAME(high_passed_2)(&axis->inner, &state->inner, inner);
    const real left = NAME(bound)(b, state->inner.v, rate);
    NAME(integrate_2)(&axis->inner, &state->inner, left, &state->integrals);
    return left;
}

/* As high_pass_bounded where some sections have their input held; a bound may be infinite. */
INLINE real NAME(high_pass_either)(
    const NAME(HighPassAxis) *axis, flag held, const NAME(Bound) *b, const NAME(Return) *r, NAME(HighPassState) *state, real u
) {
    const real inner = NAME(high_pass_1)(&axis->outer, &state->outer, u);
    real rate = NAME(high_passed_2)(&axis->inner, &state->inner, inner);
    if (r) rate = rate - NAME(returned)(r, &state->inner, u);
    const real left = b ? NAME(bound)(b, state->inner.v, rate) : rate;
    NAME(integrate_either_2)(&axis->inner, held, &state->inner, left, &state->integrals);
    return left;
}

/* Start a high-pass filter that has not run yet likewise. */
INLINE void NAME(start)(const NAME(HighPassAxis) *axis, NAME(HighPassState) *state, flag fresh, real u) {
    real rest;
    NAME(prime_1)(&axis->outer, &rest, u);
    state->outer = NAME(pick)(fresh, rest, state->outer);
    NAME(start_2)(&axis->inner, &state->inner, fresh, u);
}

/* Road noise and engine vibration: a band of the car's motion above the washout, added to the pose. */

typedef struct {
    real gain, limit, per_limit;
} NAME(TextureAxis);

typedef struct {
    NAME(HighPassAxis) band;
    NAME(TextureAxis) axes[4];
} NAME(Texture);

typedef struct { /* position, its rate and the rate of that: [m] or [rad], and per second */
    real x, v, a;
} NAME(Shake);

/* Keep a motion within the limit: with w = (x / 1.875 limits)^2, y = x (1 - 2/3 w + 1/5 w^2) up to w = 1, the limit beyond.
 *
 * Slope (1 - w)^2 and curvature -4 x (1 - w) / (1.875 limits)^2 are 0 at w = 1, so the acceleration has no step there.
 * Rates are those of y: v y'(x) and a y'(x) + v^2 y''(x).
 */
INLINE void NAME(soften)(const NAME(TextureAxis) *axis, NAME(Shake) *s) {
    const real per_end = axis->per_limit * (8.0 / 15.0), z = s->x * per_end, w = z * z;
    const flag inside = w < ALL(1.0);
    const real left = NAME(pick)(inside, 1.0 - w, ALL(0.0)), slope = left * left;
    const real bend = NAME(pick)(inside, z * per_end * left * -4.0, ALL(0.0));
    const real within = s->x * (1.0 - w * (2.0 / 3.0 - w * 0.2));
    s->x = NAME(pick)(inside, within, NAME(with_sign)(axis->limit, s->x));
    s->a = s->a * slope + s->v * s->v * bend;
    s->v = s->v * slope;
}

/* Filter a tick of an axis: `u` is an acceleration, or a body rate if `turning`; fill the motion that is added. */
INLINE void NAME(shake)(
    const NAME(HighPassAxis) *band, flag held, const NAME(TextureAxis) *axis, NAME(HighPassState) *state, real u, int turning,
    NAME(Shake) *out
) {
    const real high =
        NAME(any)(held) ? NAME(high_pass_either)(band, held, NULL, NULL, state, u) : NAME(high_pass)(band, state, u);
    out->x = axis->gain * (turning ? state->integrals.v : state->integrals.x);
    out->v = axis->gain * (turning ? high : state->integrals.v);
    out->a = turning ? ALL(0.0) : axis->gain * high;
    NAME(soften)(axis, out);
}

typedef struct {
    NAME(Scaling) scaling[8];
    NAME(HighPassAxis) translation[3], rotation[3];
    NAME(Bound) bounds[3];
    NAME(Return) returns[6];
    NAME(TiltAxis) tilt[2];
    NAME(Texture) texture;
    real turned_limits[6];
    real linear, by_platform, forced, otherwise, upright, curved, bounded, either, textured, held, limited_late;
    real gravity, ticks_per_second;
} NAME(WashoutCoeffs);

typedef struct {
    NAME(HighPassState) translation[3], rotation[3];
    NAME(TiltState) tilt[2];
    NAME(HighPassState) texture[4];
    NAME(Turn) platform[3];
    real primed;
} NAME(WashoutState);

typedef struct { /* inputs of the filters, computed from a motion */
    real g_sin[2], aim[2], level[3], rates[3];
} NAME(Demand);

INLINE void NAME(saturate_3)(real *v, const real *limits) {
    MC_UNROLL
    for (int i = 0; i < 3; i++) v[i] = NAME(saturate)(v[i], limits[i]);
}

/* Start every filter that has not run yet from rest at this tick's input, so that engaging causes no transient. */
INLINE void NAME(prime)(
    const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *motion, const NAME(Demand) *in
) {
    const flag fresh = s->primed == ALL(0.0), held = w->held != ALL(0.0); /* states of a held input are 0 at rest */
    const real shaken[4] = {motion[MC_SWAY], -motion[MC_HEAVE], motion[MC_ROLL_RATE], motion[MC_PITCH_RATE]};
    real euler[3], level[3] = {in->level[0], in->level[1], in->level[2]};
    level[2] = NAME(pick)(w->by_platform != ALL(0.0), level[2] + w->upright, level[2]); /* at neutral nothing turns it */
    NAME(euler_rates)(s->platform, in->rates, euler);
    NAME(saturate_3)(level, w->turned_limits);
    NAME(saturate_3)(euler, w->turned_limits + 3);
    for (int i = 0; i < 3; i++) {
        NAME(start)(&w->translation[i], &s->translation[i], fresh, NAME(pick)(held, ALL(0.0), level[i]));
    }
    for (int i = 0; i < 3; i++) {
        real *angle = &s->rotation[i].inner.v; /* half a tick before this one */
        NAME(start)(&w->rotation[i], &s->rotation[i], fresh, NAME(pick)(held, ALL(0.0), euler[i]));
        *angle = NAME(pick)(fresh, NAME(saturate)(*angle, w->bounds[i].limit), *angle);
    }
    for (int i = 0; i < 2; i++) {
        const real first = NAME(pick)(held, ALL(0.0), in->g_sin[i]);
        NAME(start_2)(&w->tilt[i].low_pass, &s->tilt[i].low_pass, fresh, first);
    }
    for (int i = 0; i < 4; i++) {
        NAME(start)(&w->texture.band, &s->texture[i], fresh, NAME(pick)(held, ALL(0.0), shaken[i]));
    }
    s->primed = ALL(1.0);
}

/* Turn a vector in body axes into level axes that turn with the heading. */
INLINE void NAME(turn_level)(const real *v, real sr, real cr, real sp, real cp, real *level) {
    const real h = v[1] * sr + v[2] * cr;
    level[0] = v[0] * cp + h * sp;
    level[1] = v[1] * cr - v[2] * sr;
    level[2] = h * cp - v[0] * sp;
}

INLINE void NAME(pick_3)(flag f, const real *yes, real *v) {
    v[0] = NAME(pick)(f, yes[0], v[0]);
    v[1] = NAME(pick)(f, yes[1], v[1]);
    v[2] = NAME(pick)(f, yes[2], v[2]);
}

/* Compute the inputs of the filters; reads no state. */
INLINE void NAME(washout_in)(const NAME(WashoutCoeffs) *w, const real *motion, NAME(Demand) *in) {
    const real g = w->gravity;
    real sr, cr, sp, cp;
    NAME(sin_cos_of_two)(motion[MC_ROLL], motion[MC_PITCH], &sr, &cr, &sp, &cp);

    /* Sustained: specific force f = a - g in body axes.  Onset: acceleration.  Then body rates. */
    real u[8] = {
        motion[MC_SURGE] + w->tilt[0].slope * sp, motion[MC_SWAY] - w->tilt[1].slope * sr * cp,
        motion[MC_SURGE], motion[MC_SWAY], -motion[MC_HEAVE],
        motion[MC_ROLL_RATE], motion[MC_PITCH_RATE], motion[MC_YAW_RATE]
    };
    if (NAME(any)(w->curved != ALL(0.0))) {
        const real felt[3] = {u[0], u[1], u[4] + g * (1.0 - cr * cp)};
        NAME(pick_3)(w->forced != ALL(0.0), felt, u + 2);
        MC_UNROLL
        for (int i = 0; i < 8; i++) u[i] = NAME(bend)(&w->scaling[i], u[i]);
    }
    in->g_sin[0] = NAME(scale)(&w->scaling[0], u[0]) / g;
    in->g_sin[1] = NAME(scale)(&w->scaling[1], u[1]) / g;
    const real a[3] = {
        NAME(scale)(&w->scaling[2], u[2]), NAME(scale)(&w->scaling[3], u[3]), NAME(scale)(&w->scaling[4], u[4])
    };
    in->rates[0] = NAME(scale)(&w->scaling[5], u[5]);
    in->rates[1] = NAME(scale)(&w->scaling[6], u[6]);
    in->rates[2] = NAME(scale)(&w->scaling[7], u[7]);

    /* f rotated to inertial, + g; left in body axes if the platform's attitude is to turn it. */
    NAME(turn_level)(a, sr, cr, sp, cp, in->level);
    if (NAME(any)(w->otherwise != ALL(0.0))) {
        const flag forced = w->forced != ALL(0.0);
        const real f[3] = {a[0], a[1], NAME(pick)(forced, a[2] - w->upright, a[2])};
        real turned[3];
        NAME(turn_level)(f, sr, cr, sp, cp, turned);
        turned[2] = NAME(pick)(forced, turned[2] + w->upright, turned[2]);
        NAME(pick_3)(w->otherwise != ALL(0.0), turned, in->level);
        NAME(pick_3)(w->by_platform != ALL(0.0), f, in->level);
    }
}

/* Low-pass the sines of the tilts; changes the state. */
INLINE void NAME(washout_sustain)(const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, NAME(Demand) *in) {
    const flag held = w->held != ALL(0.0);
    in->g_sin[0] = NAME(sustained)(&w->tilt[0], held, &s->tilt[0], in->g_sin[0]);
    in->g_sin[1] = NAME(sustained)(&w->tilt[1], held, &s->tilt[1], in->g_sin[1]);
}

/* Convert the sines, held to 1, into angles. */
INLINE void NAME(washout_aim)(const NAME(WashoutCoeffs) *w, NAME(Demand) *in) {
    const flag linear = w->linear != ALL(0.0);
    MC_UNROLL
    for (int i = 0; i < 2; i++) in->g_sin[i] = NAME(saturate)(in->g_sin[i], ALL(1.0));
    NAME(two_arc_sines)(in->g_sin, in->aim);
    if (NAME(any)(linear)) {
        MC_UNROLL
        for (int i = 0; i < 2; i++) in->aim[i] = NAME(pick)(linear, in->g_sin[i], in->aim[i]);
    }
}

/* Add road noise and engine vibration to the outputs, and to the roll and pitch in `lean`. */
INLINE void NAME(roughen)(
    const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *motion, NAME(PlatformMotion) *out, real *lean
) {
    const flag on = w->textured != ALL(0.0), held = w->held != ALL(0.0);
    const real inputs[4] = {motion[MC_SWAY], -motion[MC_HEAVE], motion[MC_ROLL_RATE], motion[MC_PITCH_RATE]};
    NAME(Shake) shakes[4];
    MC_UNROLL
    for (int i = 0; i < 4; i++) {
        NAME(shake)(&w->texture.band, held, &w->texture.axes[i], &s->texture[i], inputs[i], i > 1, &shakes[i]);
    }
    MC_UNROLL
    for (int i = 0; i < 2; i++) {
        out->a[1 + i] = NAME(pick)(on, out->a[1 + i] + shakes[i].a, out->a[1 + i]);
        out->travel[1 + i] = NAME(pick)(on, out->travel[1 + i] + shakes[i].x, out->travel[1 + i]);
        out->rates[i] = NAME(pick)(on, out->rates[i] + shakes[2 + i].v, out->rates[i]);
        lean[i] = NAME(pick)(on, lean[i] + shakes[2 + i].x, lean[i]);
    }
}

/* High-pass level accelerations; fill accelerations and displacements. */
INLINE void NAME(slide)(const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *level, real *a, real *travel) {
    if (NAME(any)(w->either != ALL(0.0))) {
        const flag held = w->held != ALL(0.0);
        MC_UNROLL
        for (int i = 0; i < 3; i++) {
            const NAME(Return) *back = &w->returns[i];
            a[i] = NAME(high_pass_either)(&w->translation[i], held, NULL, back, &s->translation[i], level[i]);
        }
    } else {
        MC_UNROLL
        for (int i = 0; i < 3; i++) a[i] = NAME(high_pass)(&w->translation[i], &s->translation[i], level[i]);
    }
    MC_UNROLL
    for (int i = 0; i < 3; i++) travel[i] = s->translation[i].integrals.x;
}

/* High-pass what the platform's attitude turns into level axes, beside what the outputs have of texture. */
INLINE void NAME(slide_turned)(
    const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const NAME(Demand) *in, NAME(PlatformMotion) *out
) {
    const flag by_platform = w->by_platform != ALL(0.0);
    const NAME(Turn) *roll = &s->platform[0], *pitch = &s->platform[1];
    real level[3] = {in->level[0], in->level[1], in->level[2]}, turned[3], a[3], travel[3];
    NAME(turn_level)(level, roll->sine, roll->cosine, pitch->sine, pitch->cosine, turned);
    turned[2] = turned[2] + w->upright;
    NAME(pick_3)(by_platform, turned, level);
    if (NAME(any)(w->limited_late != ALL(0.0))) NAME(saturate_3)(level, w->turned_limits);
    NAME(slide)(w, s, level, a, travel);
    MC_UNROLL
    for (int i = 0; i < 3; i++) {
        out->a[i] = a[i] + out->a[i];
        out->travel[i] = travel[i] + out->travel[i];
    }
}

/* High-pass and move the platform; changes the state, since each tick needs the attitude of the tick before. */
INLINE void NAME(washout_move)(
    const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *motion, const NAME(Demand) *in,
    NAME(PlatformMotion) *out
) {
    const flag by_platform = w->by_platform != ALL(0.0);
    real euler[3], level[3] = {in->level[0], in->level[1], in->level[2]};
    NAME(euler_rates)(s->platform, in->rates, euler);
    if (NAME(any)(w->limited_late != ALL(0.0))) {
        NAME(saturate_3)(level, w->turned_limits);
        NAME(saturate_3)(euler, w->turned_limits + 3);
    }
    if (NAME(any)(by_platform)) {
        MC_UNROLL
        for (int i = 0; i < 3; i++) out->a[i] = out->travel[i] = -ALL(0.0); /* what is added to it keeps its bits */
    } else {
        NAME(slide)(w, s, level, out->a, out->travel);
    }
    /* Nose up presents forward force; left side down presents force to the right. */
    const real nose = NAME(tilt)(&w->tilt[0], &s->tilt[0], in->aim[0]) * w->ticks_per_second;
    const real side = NAME(tilt)(&w->tilt[1], &s->tilt[1], in->aim[1]) * w->ticks_per_second;
    if (NAME(any)(w->either != ALL(0.0))) {
        const flag held = w->held != ALL(0.0);
        MC_UNROLL
        for (int i = 0; i < 3; i++) {
            const NAME(Return) *back = &w->returns[3 + i];
            out->rates[i] =
                NAME(high_pass_either)(&w->rotation[i], held, &w->bounds[i], back, &s->rotation[i], euler[i]);
        }
    } else if (NAME(any)(w->bounded != ALL(0.0))) {
        MC_UNROLL
        for (int i = 0; i < 3; i++) {
            out->rates[i] = NAME(high_pass_bounded)(&w->rotation[i], &w->bounds[i], &s->rotation[i], euler[i]);
        }
    } else {
        MC_UNROLL
        for (int i = 0; i < 3; i++) out->rates[i] = NAME(high_pass)(&w->rotation[i], &s->rotation[i], euler[i]);
    }
    out->rates[0] = out->rates[0] - side;
    out->rates[1] = out->rates[1] + nose;

    real lean[2] = {s->rotation[0].integrals.v - s->tilt[1].angle, s->rotation[1].integrals.v + s->tilt[0].angle};
    if (NAME(any)(w->textured != ALL(0.0))) NAME(roughen)(w, s, motion, out, lean);
    NAME(two_turns)(s->platform, lean[0], lean[1]);
    out->roll = s->platform[0];
    out->pitch = s->platform[1];
    out->yaw = s->rotation[2].integrals.v;
    if (NAME(any)(by_platform)) NAME(slide_turned)(w, s, in, out);
}

/* Do one tick; the caller copies the channels that the washout passes through (speed, engine speed, time). */
INLINE void NAME(washout_step)(const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *motion, real *cue) {
    NAME(Demand) demand;
    NAME(PlatformMotion) response;
    NAME(washout_in)(w, motion, &demand);
    if (NAME(any)(s->primed == ALL(0.0))) NAME(prime)(w, s, motion, &demand);
    NAME(washout_sustain)(w, s, &demand);
    NAME(washout_aim)(w, &demand);
    NAME(washout_move)(w, s, motion, &demand, &response);
    NAME(cue_of)(w->gravity, &response, &s->platform[2], cue);
}

#ifdef MC_OVER_LANES
/* ---- Over lanes: many ticks of one rig, or one tick of many rigs ---- */

enum { NAME(GROUPS) = 32 / LANES };

/* Run `n` ticks of one rig; whatever does not depend on the tick before is computed in lanes. */
static void NAME(washout_run)(void *memory, const void *design, const void *motions, void *cues, int64_t n) {
    const mc_WashoutCoeffs *w = (const mc_WashoutCoeffs *)design;
    mc_WashoutState *s = (mc_WashoutState *)memory;
    const double *motion = (const double *)motions;
    double *cue = (double *)cues;
    NAME(WashoutCoeffs) same;
    NAME(Demand) demands[NAME(GROUPS)];
    NAME(PlatformMotion) responses[NAME(GROUPS)];
    NAME(Turn) yaw;
    real channels[MC_CUE_SIZE];
    for (int k = 0; k < MC_COEFFS_SIZE; k++) ((real *)&same)[k] = ALL(((const double *)w)[k]);
    while (n > 0) {
        if (n < 32 || s->primed == 0.0) {
            memset(cue, 0, MC_CHANNELS * sizeof *cue);
            mc_washout_step(w, s, motion, cue);
            mc_pass(motion, cue);
            n--, motion += MC_MOTION_SIZE, cue += MC_CUE_SIZE;
            continue;
        }
        for (int g = 0; g < NAME(GROUPS); g++) {
            NAME(read)(motion + g * LANES * MC_MOTION_SIZE, channels);
            NAME(washout_in)(&same, channels, &demands[g]);
        }
        for (int i = 0; i < 32; i++) {
            double *in = (double *)&demands[i / LANES] + i % LANES;
            in[0] = mc_sustained(&w->tilt[0], w->held != 0.0, &s->tilt[0], in[0]);
            in[LANES] = mc_sustained(&w->tilt[1], w->held != 0.0, &s->tilt[1], in[LANES]);
        }
        for (int g = 0; g < NAME(GROUPS); g++) NAME(washout_aim)(&same, &demands[g]);
        for (int i = 0; i < 32; i++) {
            const double *from = (const double *)&demands[i / LANES] + i % LANES;
            double *to = (double *)&responses[i / LANES] + i % LANES;
            mc_Demand demand;
            mc_PlatformMotion response;
            mc_fetch(motion + (32 + i) * MC_MOTION_SIZE, cue + i * MC_CUE_SIZE);
            MC_UNROLL
            for (int k = 0; k < MC_DEMAND_SIZE; k++) ((double *)&demand)[k] = from[k * LANES];
            mc_washout_move(w, s, motion + i * MC_MOTION_SIZE, &demand, &response);
            MC_UNROLL
            for (int k = 0; k < MC_RESPONSE_SIZE; k++) to[k * LANES] = ((const double *)&response)[k];
        }
        for (int g = 0; g < NAME(GROUPS); g++) {
            NAME(neutral)(channels);
            NAME(cue_of)(same.gravity, &responses[g], &yaw, channels);
            NAME(write)(motion, channels, cue);
            n -= LANES, motion += LANES * MC_MOTION_SIZE, cue += LANES * MC_CUE_SIZE;
        }
    }
}

INLINE void NAME(classical)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(washout_step)((const NAME(WashoutCoeffs) *)coeffs, (NAME(WashoutState) *)state, motion, cue);
}
static void NAME(washout_tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(WashoutCoeffs));
    NAME(ticks)(NAME(classical), size, sizeof(NAME(WashoutState)), states, coeffs, motions, cues, n);
}
#endif
#endif
