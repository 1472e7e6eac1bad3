/* The classical washout: one tick.
 *
 * Reid & Nahon, UTIAS reports 296, 307 and 319: translation is high-passed, sustained specific force becomes tilt,
 * rotation is high-passed.  Axes are x forward, y right, z down; index order surge, sway, heave and roll, pitch, yaw.
 * A tick has three parts, of which only the middle one changes the state, so that the first and the last part can be
 * computed for many ticks of a recording side by side (lanes.h).  washout.pxd explains the fields.
 */

typedef struct {
    real gain, limit;
    NAME(FirstOrder) outer;
    NAME(SecondOrder) inner;
} NAME(HighPassAxis);

typedef struct {
    real outer;
    NAME(SecondOrderState) inner;
    NAME(Integrals) integrals;
} NAME(HighPassState);

typedef struct {
    NAME(SecondOrder) low_pass;
    real step_limit;
} NAME(TiltAxis);

typedef struct {
    NAME(SecondOrderState) low_pass;
    real angle;
} NAME(TiltState);

typedef struct {
    NAME(HighPassAxis) translation[3], rotation[3];
    NAME(TiltAxis) tilt[2];
    real gravity, ticks_per_second;
} NAME(WashoutCoeffs);

typedef struct {
    NAME(HighPassState) translation[3], rotation[3];
    NAME(TiltState) tilt[2];
    NAME(Turn) platform[3];
    real primed;
} NAME(WashoutState);

typedef struct { /* inputs of the filters, computed from a motion */
    real g_sin[2], aim[2], level[3], rates[3];
} NAME(Demand);

typedef struct { /* outputs of the filters: level accelerations, displacements, Euler rates, the platform's attitude */
    real a[3], travel[3], rates[3], yaw;
    NAME(Turn) roll, pitch;
} NAME(Response);

INLINE real NAME(saturate)(real x, real limit) {
    return NAME(pick)(x > limit, limit, NAME(pick)(x < -limit, -limit, x));
}

INLINE real NAME(scale)(const NAME(HighPassAxis) *axis, real u) {
    return NAME(saturate)(axis->gain * u, axis->limit);
}

INLINE real NAME(high_pass)(const NAME(HighPassAxis) *axis, NAME(HighPassState) *state, real u) {
    const real inner = NAME(high_pass_1)(&axis->outer, &state->outer, u);
    return NAME(high_pass_2)(&axis->inner, &state->inner, inner, &state->integrals);
}

/* Return the low-passed sine of the tilt that presents the sustained specific force. */
INLINE real NAME(sustained)(const NAME(TiltAxis) *axis, NAME(TiltState) *state, real g_sin) {
    NAME(Integrals) low;
    NAME(high_pass_2)(&axis->low_pass, &state->low_pass, g_sin, &low);
    return axis->low_pass.c0 * low.x;
}

/* Move the tilt towards an angle within the rate limit; return the change of the angle. */
INLINE real NAME(tilt)(const NAME(TiltAxis) *axis, NAME(TiltState) *state, real target) {
    const real change = NAME(saturate)(target - state->angle, axis->step_limit);
    state->angle = state->angle + change;
    return change;
}

INLINE void NAME(start_2)(const NAME(SecondOrder) *c, NAME(SecondOrderState) *s, flag fresh, real u) {
    NAME(SecondOrderState) rest;
    NAME(prime_2)(c, &rest, u);
    s->v = NAME(pick)(fresh, rest.v, s->v);
    s->x = NAME(pick)(fresh, rest.x, s->x);
}

INLINE void NAME(start)(const NAME(HighPassAxis) *axis, NAME(HighPassState) *state, flag fresh, real u) {
    real rest;
    NAME(prime_1)(&axis->outer, &rest, u);
    state->outer = NAME(pick)(fresh, rest, state->outer);
    NAME(start_2)(&axis->inner, &state->inner, fresh, u);
}

/* Convert body rates into the Euler rates of roll and pitch at an attitude. */
INLINE void NAME(euler_rates)(const NAME(Turn) *at, const real *rates, real *euler) {
    const real level = NAME(pick)(at[1].cosine > ALL(0.2), at[1].cosine, ALL(0.2));
    const real c = (rates[1] * at[0].sine + rates[2] * at[0].cosine) / level;
    euler[0] = rates[0] + c * at[1].sine;
    euler[1] = rates[1] * at[0].cosine - rates[2] * at[0].sine;
    euler[2] = c;
}

/* Start every filter that has not run yet from rest at this tick's input, so that engaging causes no transient. */
INLINE void NAME(prime)(const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const NAME(Demand) *in) {
    const flag fresh = s->primed == ALL(0.0);
    real euler[3];
    NAME(euler_rates)(s->platform, in->rates, euler);
    for (int i = 0; i < 3; i++) NAME(start)(&w->translation[i], &s->translation[i], fresh, in->level[i]);
    for (int i = 0; i < 3; i++) NAME(start)(&w->rotation[i], &s->rotation[i], fresh, euler[i]);
    for (int i = 0; i < 2; i++) NAME(start_2)(&w->tilt[i].low_pass, &s->tilt[i].low_pass, fresh, in->g_sin[i]);
    s->primed = ALL(1.0);
}

INLINE void NAME(washout_in)(const NAME(WashoutCoeffs) *w, const real *motion, NAME(Demand) *in) {
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

/* Low-pass the sines of the tilts; changes the state. */
INLINE void NAME(washout_sustain)(const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, NAME(Demand) *in) {
    in->g_sin[0] = NAME(sustained)(&w->tilt[0], &s->tilt[0], in->g_sin[0]);
    in->g_sin[1] = NAME(sustained)(&w->tilt[1], &s->tilt[1], in->g_sin[1]);
}

/* Convert the sines into angles. */
INLINE void NAME(washout_aim)(NAME(Demand) *in) {
    in->aim[0] = NAME(arc_sine)(NAME(saturate)(in->g_sin[0], ALL(1.0)));
    in->aim[1] = NAME(arc_sine)(NAME(saturate)(in->g_sin[1], ALL(1.0)));
}

/* High-pass and move the platform; changes the state, since each tick needs the attitude of the tick before. */
INLINE void NAME(washout_move)(
    const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const NAME(Demand) *in, NAME(Response) *out
) {
    real euler[3];
    NAME(euler_rates)(s->platform, in->rates, euler);
    out->a[0] = NAME(high_pass)(&w->translation[0], &s->translation[0], in->level[0]);
    out->a[1] = NAME(high_pass)(&w->translation[1], &s->translation[1], in->level[1]);
    out->a[2] = NAME(high_pass)(&w->translation[2], &s->translation[2], in->level[2]);
    out->travel[0] = s->translation[0].integrals.x;
    out->travel[1] = s->translation[1].integrals.x;
    out->travel[2] = s->translation[2].integrals.x;
    /* Nose up presents forward force; left side down presents force to the right. */
    const real nose = NAME(tilt)(&w->tilt[0], &s->tilt[0], in->aim[0]) * w->ticks_per_second;
    const real side = NAME(tilt)(&w->tilt[1], &s->tilt[1], in->aim[1]) * w->ticks_per_second;
    out->rates[0] = NAME(high_pass)(&w->rotation[0], &s->rotation[0], euler[0]) - side;
    out->rates[1] = NAME(high_pass)(&w->rotation[1], &s->rotation[1], euler[1]) + nose;
    out->rates[2] = NAME(high_pass)(&w->rotation[2], &s->rotation[2], euler[2]);

    NAME(turn)(&s->platform[0], s->rotation[0].integrals.v - s->tilt[1].angle);
    NAME(turn)(&s->platform[1], s->rotation[1].integrals.v + s->tilt[0].angle);
    out->roll = s->platform[0];
    out->pitch = s->platform[1];
    out->yaw = s->rotation[2].integrals.v;
}

INLINE void NAME(washout_out)(const NAME(WashoutCoeffs) *w, const NAME(Response) *out, NAME(Turn) *yaw, real *cue) {
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

    /* Specific force deviation at the platform: (a - g) in platform axes, plus g. */
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

/* Do one tick; the caller copies the channels that the washout passes through (speed, engine speed, time). */
INLINE void NAME(washout_step)(const NAME(WashoutCoeffs) *w, NAME(WashoutState) *s, const real *motion, real *cue) {
    NAME(Demand) demand;
    NAME(Response) response;
    NAME(washout_in)(w, motion, &demand);
    if (NAME(any)(s->primed == ALL(0.0))) NAME(prime)(w, s, &demand);
    NAME(washout_sustain)(w, s, &demand);
    NAME(washout_aim)(&demand);
    NAME(washout_move)(w, s, &demand, &response);
    NAME(washout_out)(w, &response, &s->platform[2], cue);
}
