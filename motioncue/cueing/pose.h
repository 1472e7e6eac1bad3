/* How an algorithm moves the platform: its tilt, and the cue that follows.  Axes are x forward, y right, z down. */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_POSE_H
#define MOTIONCUE_POSE_H
#define MC_TEMPLATE "motioncue/cueing/pose.h"
#include "motioncue/core/real.h"
#endif
#else

typedef struct {
    real a[3];            /* [m/s^2] level accelerations: forward and right in heading at neutral, down */
    real travel[3];       /* [m] displacements, likewise */
    real rates[3];        /* [rad/s] of the Euler angles roll, pitch, yaw */
    real yaw;             /* [rad] */
    NAME(Turn) roll, pitch;
} NAME(PlatformMotion);

/* Convert body rates into the Euler rates of roll and pitch at an attitude. */
INLINE void NAME(euler_rates)(const NAME(Turn) *at, const real *rates, real *euler) {
    const real level = NAME(pick)(at[1].cosine > ALL(0.2), at[1].cosine, ALL(0.2));
    const real c = (rates[1] * at[0].sine + rates[2] * at[0].cosine) / level;
    euler[0] = rates[0] + c * at[1].sine;
    euler[1] = rates[1] * at[0].cosine - rates[2] * at[0].sine;
    euler[2] = c;
}

/* Fill the cue from how the platform moves; `g` is gravity [m/s^2]. */
INLINE void NAME(cue_of)(real g, const NAME(PlatformMotion) *out, NAME(Turn) *yaw, real *cue) {
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

/* ---- Tilt coordination: sustained specific force as a tilt whose rate and acceleration are bounded ----
 *
 * Of the classical washout; the linear-quadratic one eases its tilt by the same functions.  classical/kernel.pxd explains
 * the fields.
 */
typedef struct {
    NAME(SecondOrder) low_pass;
    real slope, rate, acceleration;
} NAME(TiltAxis);

typedef struct {
    NAME(SecondOrderState) low_pass;
    real angle, rate, target;
} NAME(TiltState);

/* Return the low-passed sine of the tilt that presents the sustained specific force; `held`: see filters.pxd. */
INLINE real NAME(sustained)(const NAME(TiltAxis) *axis, flag held, NAME(TiltState) *state, real g_sin) {
    NAME(Integrals) low;
    const real a = NAME(high_passed_2)(&axis->low_pass, &state->low_pass, g_sin);
    if (NAME(any)(held)) NAME(integrate_either_2)(&axis->low_pass, held, &state->low_pass, a, &low);
    else NAME(integrate_2)(&axis->low_pass, &state->low_pass, a, &low);
    return axis->low_pass.c0 * low.x;
}

/* Return the distance to the target that a tick leaves, for an angle that brakes in time; `behind` is that at the tick before.
 *
 * With e the distance at the tick before, and A the largest change of the rate, the angle closes in by e if
 * |e| is up to A/2, and by sqrt(2 A |e|) - A/2 beyond (value and slope agree at A/2); it also moves with the target.
 * From e = w^2 / 2A the distance left is (w - A)^2 / 2A, so on this curve the closing speed falls by A a tick, and below
 * A/2 by less: a target of constant speed is reached without overshoot.  An angle at its target follows it exactly.
 */
INLINE real NAME(left_behind)(real acceleration, real behind) {
    const real distance = NAME(magnitude)(behind);
    const real closer = NAME(root)(2.0 * acceleration * distance) - 0.5 * acceleration;
    const real left = NAME(pick)(distance > 0.5 * acceleration, distance - closer, ALL(0.0));
    return NAME(with_sign)(left, behind);
}

/* Return the wanted change of an angle, at most `acceleration` off that at the tick before. */
INLINE real NAME(eased)(real wanted, real before, real acceleration) {
    const real most = before + acceleration, least = before - acceleration;
    return NAME(pick)(wanted > most, most, NAME(pick)(wanted < least, least, wanted));
}

/* Return the change of the angle for a tilt whose acceleration is limited. */
INLINE real NAME(braked)(const NAME(TiltAxis) *axis, const NAME(TiltState) *state, real target) {
    const real left = NAME(left_behind)(axis->acceleration, state->target - state->angle);
    const real wanted = NAME(saturate)((target - state->angle) - left, axis->rate);
    return NAME(eased)(wanted, state->rate, axis->acceleration);
}

/* Move the tilt towards its target within the limits; return the change of the angle. */
INLINE real NAME(tilt)(const NAME(TiltAxis) *axis, NAME(TiltState) *state, real target) {
    const flag limited = axis->acceleration < ALL(HUGE_VAL);
    real change = NAME(saturate)(target - state->angle, axis->rate);
    if (NAME(any)(limited)) change = NAME(pick)(limited, NAME(braked)(axis, state, target), change);
    state->angle = state->angle + change;
    state->rate = change;
    state->target = target;
    return change;
}
#endif
