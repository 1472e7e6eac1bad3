/* Road noise and engine vibration: a band of the car's motion above the washout, added to the pose.
 *
 * Included by step.h; kernel.pxd explains the fields.
 */

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
        NAME(any)(held) ? NAME(high_pass_either)(band, held, NULL, state, u) : NAME(high_pass)(band, state, u);
    out->x = axis->gain * (turning ? state->integrals.v : state->integrals.x);
    out->v = axis->gain * (turning ? high : state->integrals.v);
    out->a = turning ? ALL(0.0) : axis->gain * high;
    NAME(soften)(axis, out);
}
