/* An axis of the washout: its input scaled, then high-passed, an angle within a bound.
 *
 * Included by step.h; kernel.pxd explains the fields.
 */

typedef struct {
    real gain, limit, largest, per_largest, square, cube;
} NAME(Scaling);

typedef struct {
    NAME(FirstOrder) outer;
    NAME(SecondOrder) inner;
} NAME(HighPassAxis);

typedef struct {
    real limit, per_limit, room;
} NAME(Bound);

typedef struct {
    real outer;
    NAME(SecondOrderState) inner;
    NAME(Integrals) integrals;
} NAME(HighPassState);

INLINE real NAME(scale)(const NAME(Scaling) *s, real u) {
    return NAME(saturate)(s->gain * u, s->limit);
}

/* Return the input whose product with the gain is the polynomial of the input; a linear scaling has none. */
INLINE real NAME(bend)(const NAME(Scaling) *s, real u) {
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
    const NAME(HighPassAxis) *axis, flag held, const NAME(Bound) *b, NAME(HighPassState) *state, real u
) {
    const real inner = NAME(high_pass_1)(&axis->outer, &state->outer, u);
    const real rate = NAME(high_passed_2)(&axis->inner, &state->inner, inner);
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
