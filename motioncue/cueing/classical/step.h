/* The classical washout: one tick.
 *
 * Reid & Nahon, UTIAS reports 296, 307 and 319: translation is high-passed, sustained specific force becomes tilt,
 * rotation is high-passed.  Axes are x forward, y right, z down; index order surge, sway, heave and roll, pitch, yaw.
 * A tick has three parts, of which only the middle one changes the state, so that the first and the last part can be
 * computed for many ticks of a recording side by side (lanes.h).  kernel.pxd explains the fields.
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_WASHOUT_H
#define MOTIONCUE_WASHOUT_H
#include "motioncue/cueing/pose.h"
#include "motioncue/cueing/tilt.h"
#define MC_TEMPLATE "motioncue/cueing/classical/step.h"
#include "motioncue/core/scalar.h"
#undef MC_TEMPLATE
#endif
#else

#include "motioncue/cueing/classical/axis.h"
#include "motioncue/cueing/classical/texture.h"

typedef struct {
    NAME(Scaling) scaling[8];
    NAME(HighPassAxis) translation[3], rotation[3];
    NAME(Bound) bounds[3];
    NAME(TiltAxis) tilt[2];
    NAME(Texture) texture;
    real turned_limits[6];
    real linear, by_platform, curved, bounded, textured, held, limited_late, gravity, ticks_per_second;
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

/* Saturate level accelerations and Euler rates where the limits act on these. */
INLINE void NAME(saturate_turned)(const NAME(WashoutCoeffs) *w, real *level, real *euler) {
    MC_UNROLL
    for (int i = 0; i < 3; i++) {
        level[i] = NAME(saturate)(level[i], w->turned_limits[i]);
        euler[i] = NAME(saturate)(euler[i], w->turned_limits[3 + i]);
    }
}

/* Start every filter that has not run yet from rest at this tick's input, so that engaging causes no transient. */
INLINE void NAME(prime)(
    const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *motion, const NAME(Demand) *in
) {
    const flag fresh = s->primed == ALL(0.0), held = w->held != ALL(0.0); /* states of a held input are 0 at rest */
    const real shaken[4] = {motion[MC_SWAY], -motion[MC_HEAVE], motion[MC_ROLL_RATE], motion[MC_PITCH_RATE]};
    real euler[3], level[3] = {in->level[0], in->level[1], in->level[2]};
    NAME(euler_rates)(s->platform, in->rates, euler);
    NAME(saturate_turned)(w, level, euler);
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
    NAME(sin_cos)(motion[MC_ROLL], &sr, &cr);
    NAME(sin_cos)(motion[MC_PITCH], &sp, &cp);

    /* Sustained: specific force f = a - g in body axes.  Onset: acceleration.  Then body rates. */
    real u[8] = {
        motion[MC_SURGE] + w->tilt[0].slope * sp, motion[MC_SWAY] - w->tilt[1].slope * sr * cp,
        motion[MC_SURGE], motion[MC_SWAY], -motion[MC_HEAVE],
        motion[MC_ROLL_RATE], motion[MC_PITCH_RATE], motion[MC_YAW_RATE]
    };
    if (NAME(any)(w->curved != ALL(0.0))) {
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
    const flag by_platform = w->by_platform != ALL(0.0);
    NAME(turn_level)(a, sr, cr, sp, cp, in->level);
    if (NAME(any)(by_platform)) NAME(pick_3)(by_platform, a, in->level);
}

/* Low-pass the sines of the tilts; changes the state. */
INLINE void NAME(washout_sustain)(const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, NAME(Demand) *in) {
    const flag held = w->held != ALL(0.0);
    in->g_sin[0] = NAME(sustained)(&w->tilt[0], held, &s->tilt[0], in->g_sin[0]);
    in->g_sin[1] = NAME(sustained)(&w->tilt[1], held, &s->tilt[1], in->g_sin[1]);
}

/* Convert the sines into angles. */
INLINE void NAME(washout_aim)(const NAME(WashoutCoeffs) *w, NAME(Demand) *in) {
    const flag linear = w->linear != ALL(0.0);
    MC_UNROLL
    for (int i = 0; i < 2; i++) {
        const real sine = NAME(saturate)(in->g_sin[i], ALL(1.0));
        in->aim[i] = NAME(arc_sine)(sine);
        if (NAME(any)(linear)) in->aim[i] = NAME(pick)(linear, sine, in->aim[i]);
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

/* High-pass and move the platform; changes the state, since each tick needs the attitude of the tick before. */
INLINE void NAME(washout_move)(
    const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *motion, const NAME(Demand) *in,
    NAME(PlatformMotion) *out
) {
    const flag by_platform = w->by_platform != ALL(0.0);
    const NAME(Turn) *roll = &s->platform[0], *pitch = &s->platform[1];
    real euler[3], level[3] = {in->level[0], in->level[1], in->level[2]};
    NAME(euler_rates)(s->platform, in->rates, euler);
    if (NAME(any)(by_platform)) {
        real turned[3];
        NAME(turn_level)(level, roll->sine, roll->cosine, pitch->sine, pitch->cosine, turned);
        NAME(pick_3)(by_platform, turned, level);
    }
    if (NAME(any)(w->limited_late != ALL(0.0))) NAME(saturate_turned)(w, level, euler);
    const flag held = w->held != ALL(0.0);
    if (NAME(any)(held)) {
        MC_UNROLL
        for (int i = 0; i < 3; i++) {
            out->a[i] = NAME(high_pass_either)(&w->translation[i], held, NULL, &s->translation[i], level[i]);
        }
    } else {
        MC_UNROLL
        for (int i = 0; i < 3; i++) out->a[i] = NAME(high_pass)(&w->translation[i], &s->translation[i], level[i]);
    }
    MC_UNROLL
    for (int i = 0; i < 3; i++) out->travel[i] = s->translation[i].integrals.x;
    /* Nose up presents forward force; left side down presents force to the right. */
    const real nose = NAME(tilt)(&w->tilt[0], &s->tilt[0], in->aim[0]) * w->ticks_per_second;
    const real side = NAME(tilt)(&w->tilt[1], &s->tilt[1], in->aim[1]) * w->ticks_per_second;
    if (NAME(any)(held)) {
        MC_UNROLL
        for (int i = 0; i < 3; i++) {
            out->rates[i] =
                NAME(high_pass_either)(&w->rotation[i], held, &w->bounds[i], &s->rotation[i], euler[i]);
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
    NAME(turn)(&s->platform[0], lean[0]);
    NAME(turn)(&s->platform[1], lean[1]);
    out->roll = s->platform[0];
    out->pitch = s->platform[1];
    out->yaw = s->rotation[2].integrals.v;
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
#endif
