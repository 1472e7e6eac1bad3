/* Tilt coordination: sustained specific force as a tilt whose rate and acceleration are bounded.
 *
 * Of the classical washout; the linear-quadratic one eases its tilt by the same functions.  classical/kernel.pxd explains the fields.
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_TILT_H
#define MOTIONCUE_TILT_H
#define MC_TEMPLATE "motioncue/cueing/tilt.h"
#include "motioncue/core/scalar.h"
#undef MC_TEMPLATE
#endif
#else

typedef struct {
    NAME(SecondOrder) low_pass;
    real slope, rate, acceleration;
} NAME(TiltAxis);

typedef struct {
    NAME(SecondOrderState) low_pass;
    real angle, rate, target;
} NAME(TiltState);

/* Return the low-passed sine of the tilt that presents the sustained specific force; `held`: see filters.h. */
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
