/* The classical washout, one tick of it on one screen.
 *
 * Reid & Nahon, UTIAS reports 296, 307 and 319: translation is high-passed, sustained specific force becomes tilt,
 * rotation is high-passed.  Axes are x forward, y right, z down; index order surge, sway, heave and roll, pitch, yaw.
 * A tick is three parts, so that a recording can have the first and the last of many ticks done side by side (lanes.h):
 * only `washout_filter` remembers.  What the fields mean is in washout.pxd.
 */

typedef struct {
    real gain, limit;
    NAME(FirstOrder) outer;
    NAME(SecondOrder) inner;
    real outer_state;
    NAME(SecondOrderState) state;
    NAME(Integrals) integrals;
} NAME(HighPassAxis);

typedef struct {
    NAME(SecondOrder) low_pass;
    NAME(SecondOrderState) state;
    real step_limit, angle;
} NAME(TiltAxis);

typedef struct {
    NAME(HighPassAxis) translation[3], rotation[3];
    NAME(TiltAxis) tilt[2];
    NAME(Turn) platform[3];
    real gravity, ticks_per_second, primed;
} NAME(Washout);

typedef struct { /* what the filters take of a motion */
    real g_sin[2], aim[2], level[3], rates[3];
} NAME(Demand);

typedef struct { /* what they make of it: level accelerations, displacements, Euler rates, the platform's attitude */
    real a[3], travel[3], rates[3], yaw;
    NAME(Turn) roll, pitch;
} NAME(Response);

INLINE real NAME(saturate)(real x, real limit) {
    return NAME(pick)(x > limit, limit, NAME(pick)(x < -limit, -limit, x));
}

INLINE real NAME(scale)(const NAME(HighPassAxis) *axis, real u) {
    return NAME(saturate)(axis->gain * u, axis->limit);
}

INLINE real NAME(high_pass)(NAME(HighPassAxis) *axis, real u) {
    const real inner = NAME(high_pass_1)(&axis->outer, &axis->outer_state, u);
    return NAME(high_pass_2)(&axis->inner, &axis->state, inner, &axis->integrals);
}

/* Return the low-passed sine of the tilt that presents a sustained force. */
INLINE real NAME(sustained)(NAME(TiltAxis) *axis, real g_sin) {
    NAME(Integrals) low;
    NAME(high_pass_2)(&axis->low_pass, &axis->state, g_sin, &low);
    return axis->low_pass.c0 * low.x;
}

/* Move the tilt towards an angle; return by how much. */
INLINE real NAME(tilt)(NAME(TiltAxis) *axis, real target) {
    const real change = NAME(saturate)(target - axis->angle, axis->step_limit);
    axis->angle = axis->angle + change;
    return change;
}

INLINE void NAME(start_2)(const NAME(SecondOrder) *c, NAME(SecondOrderState) *s, flag fresh, real u) {
    NAME(SecondOrderState) rest;
    NAME(prime_2)(c, &rest, u);
    s->v = NAME(pick)(fresh, rest.v, s->v);
    s->x = NAME(pick)(fresh, rest.x, s->x);
}

INLINE void NAME(start)(NAME(HighPassAxis) *axis, flag fresh, real u) {
    real rest;
    NAME(prime_1)(&axis->outer, &rest, u);
    axis->outer_state = NAME(pick)(fresh, rest, axis->outer_state);
    NAME(start_2)(&axis->inner, &axis->state, fresh, u);
}

/* Body rates to Euler rates at an attitude: roll, pitch. */
INLINE void NAME(euler_rates)(const NAME(Turn) *at, const real *rates, real *euler) {
    const real level = NAME(pick)(at[1].cosine > ALL(0.2), at[1].cosine, ALL(0.2));
    const real c = (rates[1] * at[0].sine + rates[2] * at[0].cosine) / level;
    euler[0] = rates[0] + c * at[1].sine;
    euler[1] = rates[1] * at[0].cosine - rates[2] * at[0].sine;
    euler[2] = c;
}

/* Start every filter that has not begun yet from rest at this tick's input, so that engaging rings nothing. */
INLINE void NAME(prime)(NAME(Washout) *w, const NAME(Demand) *in) {
    const flag fresh = w->primed == ALL(0.0);
    real euler[3];
    NAME(euler_rates)(w->platform, in->rates, euler);
    for (int i = 0; i < 3; i++) NAME(start)(&w->translation[i], fresh, in->level[i]);
    for (int i = 0; i < 3; i++) NAME(start)(&w->rotation[i], fresh, euler[i]);
    for (int i = 0; i < 2; i++) NAME(start_2)(&w->tilt[i].low_pass, &w->tilt[i].state, fresh, in->g_sin[i]);
    w->primed = ALL(1.0);
}

INLINE void NAME(washout_in)(const NAME(Washout) *w, const real *motion, NAME(Demand) *in) {
    const real g = w->gravity;
    real sr, cr, sp, cp;
    NAME(sin_cos)(motion[MC_ROLL], &sr, &cr);
    NAME(sin_cos)(motion[MC_PITCH], &sp, &cp);

    /* Sustained: specific force f = a - g in body axes, as a fraction of g. */
    in->g_sin[0] = NAME(scale)(&w->translation[0], motion[MC_SURGE] + g * sp) / g;
    in->g_sin[1] = NAME(scale)(&w->translation[1], motion[MC_SWAY] - g * sr * cp) / g;

    /* Onset: acceleration in level axes that turn with the heading (f rotated to inertial, + g). */
    const real x = NAME(scale)(&w->translation[0], motion[MC_SURGE]);
    const real y = NAME(scale)(&w->translation[1], motion[MC_SWAY]);
    const real z = NAME(scale)(&w->translation[2], -motion[MC_HEAVE]);
    const real h = y * sr + z * cr;
    in->level[0] = x * cp + h * sp;
    in->level[1] = y * cr - z * sr;
    in->level[2] = h * cp - x * sp;

    in->rates[0] = NAME(scale)(&w->rotation[0], motion[MC_ROLL_RATE]);
    in->rates[1] = NAME(scale)(&w->rotation[1], motion[MC_PITCH_RATE]);
    in->rates[2] = NAME(scale)(&w->rotation[2], motion[MC_YAW_RATE]);
}

/* Low-pass the sines of the tilts; they remember. */
INLINE void NAME(washout_sustain)(NAME(Washout) *w, NAME(Demand) *in) {
    in->g_sin[0] = NAME(sustained)(&w->tilt[0], in->g_sin[0]);
    in->g_sin[1] = NAME(sustained)(&w->tilt[1], in->g_sin[1]);
}

/* Their angles. */
INLINE void NAME(washout_aim)(NAME(Demand) *in) {
    in->aim[0] = NAME(arc_sine)(NAME(saturate)(in->g_sin[0], ALL(1.0)));
    in->aim[1] = NAME(arc_sine)(NAME(saturate)(in->g_sin[1], ALL(1.0)));
}

/* High-pass, and move the platform; that remembers, and each tick needs the attitude of the tick before. */
INLINE void NAME(washout_move)(NAME(Washout) *w, const NAME(Demand) *in, NAME(Response) *out) {
    real euler[3];
    NAME(euler_rates)(w->platform, in->rates, euler);
    out->a[0] = NAME(high_pass)(&w->translation[0], in->level[0]);
    out->a[1] = NAME(high_pass)(&w->translation[1], in->level[1]);
    out->a[2] = NAME(high_pass)(&w->translation[2], in->level[2]);
    out->travel[0] = w->translation[0].integrals.x;
    out->travel[1] = w->translation[1].integrals.x;
    out->travel[2] = w->translation[2].integrals.x;
    /* Nose up presents forward force; left side down presents force to the right. */
    const real nose = NAME(tilt)(&w->tilt[0], in->aim[0]) * w->ticks_per_second;
    const real side = NAME(tilt)(&w->tilt[1], in->aim[1]) * w->ticks_per_second;
    out->rates[0] = NAME(high_pass)(&w->rotation[0], euler[0]) - side;
    out->rates[1] = NAME(high_pass)(&w->rotation[1], euler[1]) + nose;
    out->rates[2] = NAME(high_pass)(&w->rotation[2], euler[2]);

    NAME(turn)(&w->platform[0], w->rotation[0].integrals.v - w->tilt[1].angle);
    NAME(turn)(&w->platform[1], w->rotation[1].integrals.v + w->tilt[0].angle);
    out->roll = w->platform[0];
    out->pitch = w->platform[1];
    out->yaw = w->rotation[2].integrals.v;
}

INLINE void NAME(washout_out)(const NAME(Washout) *w, const NAME(Response) *out, NAME(Turn) *yaw, real *cue) {
    const real g = w->gravity;
    const real p = out->rates[0], q = out->rates[1], r = out->rates[2];
    const NAME(Turn) *roll = &out->roll, *pitch = &out->pitch;
    NAME(turn)(yaw, out->yaw);
    cue[MC_ROLL] = roll->angle;
    cue[MC_PITCH] = pitch->angle;
    cue[MC_YAW] = yaw->angle;
    cue[MC_ROLL_RATE] = p - r * pitch->sine;
    cue[MC_PITCH_RATE] = q * roll->cosine + r * roll->sine * pitch->cosine;
    cue[MC_YAW_RATE] = r * roll->cosine * pitch->cosine - q * roll->sine;

    /* What the occupant feels beyond rest: (a - g) in platform axes, plus g. */
    const real az = out->a[2] - g;
    const real ax = yaw->cosine * out->a[0] + yaw->sine * out->a[1];
    const real ay = yaw->cosine * out->a[1] - yaw->sine * out->a[0];
    const real down = pitch->sine * ax + pitch->cosine * az;
    cue[MC_SURGE] = pitch->cosine * ax - pitch->sine * az;
    cue[MC_SWAY] = roll->cosine * ay + roll->sine * down;
    cue[MC_HEAVE] = -(roll->cosine * down - roll->sine * ay + g);
    cue[MC_SURGE_DISPLACEMENT] = out->travel[0];
    cue[MC_SWAY_DISPLACEMENT] = out->travel[1];
    cue[MC_HEAVE_DISPLACEMENT] = -out->travel[2];
}

/* One tick; what the washout does not change (speed, engine speed, time) is for the caller to pass on. */
INLINE void NAME(washout_step)(NAME(Washout) *w, const real *motion, real *cue) {
    NAME(Demand) demand;
    NAME(Response) response;
    NAME(washout_in)(w, motion, &demand);
    if (NAME(any)(w->primed == ALL(0.0))) NAME(prime)(w, &demand);
    NAME(washout_sustain)(w, &demand);
    NAME(washout_aim)(&demand);
    NAME(washout_move)(w, &demand, &response);
    NAME(washout_out)(w, &response, &w->platform[2], cue);
}
