/* The filter sections of filters.pxd, where they and their fields are explained. */

typedef struct {
    real g, d;
} NAME(FirstOrder);

typedef struct {
    real c0, b, k, d, m;
} NAME(SecondOrder);

typedef struct {
    real v, x;
} NAME(SecondOrderState);

typedef struct {
    real v, x;
} NAME(Integrals);

INLINE real NAME(saturate)(real x, real limit) {
    return NAME(pick)(x > limit, limit, NAME(pick)(x < -limit, -limit, x));
}

/* Return s / (s + omega) of u. */
INLINE real NAME(high_pass_1)(const NAME(FirstOrder) *c, real *s, real u) {
    const real y = (u - *s) * c->d;
    *s = *s + 2.0 * c->g * y;
    return y;
}

/* Set the state so that the next step with u starts from rest at that tick. */
INLINE void NAME(prime_1)(const NAME(FirstOrder) *c, real *s, real u) { *s = -c->g * u; }

/* Return s^2 / (s^2 + c1 s + c0) of u, before the states are moved by it. */
INLINE real NAME(high_passed_2)(const NAME(SecondOrder) *c, const NAME(SecondOrderState) *s, real u) {
    return (u - (c->b * s->v + c->c0 * s->x)) * c->d;
}

/* Move the states by a tick of a; fill the first and second integrals at this tick. */
INLINE void NAME(integrate_2)(const NAME(SecondOrder) *c, NAME(SecondOrderState) *s, real a, NAME(Integrals) *out) {
    out->v = s->v + c->k * a;
    out->x = s->x + c->k * out->v;
    s->v = out->v + c->k * a;
    s->x = out->x + c->k * out->v;
}

/* As integrate_2 for sections whose input is held between ticks: with h and H the velocity and the displacement that a unit of
   acceleration from rest has made after a tick, both of the states and of the spring and the damper, v' = v + h a - c0 H v and
   x' = x + H a + (h + c1 H) v.  Exact for any tick. */
INLINE void NAME(integrate_held_2)(const NAME(SecondOrder) *c, NAME(SecondOrderState) *s, real a, NAME(Integrals) *out) {
    out->v = s->v;
    out->x = s->x;
    s->x = s->x + c->m * a + (c->k + c->b * c->m) * s->v;
    s->v = s->v + c->k * a - c->c0 * c->m * s->v;
}

/* Move the states in either form, in each lane that of its section. */
INLINE void NAME(integrate_either_2)(
    const NAME(SecondOrder) *c, flag held, NAME(SecondOrderState) *s, real a, NAME(Integrals) *out
) {
    NAME(SecondOrderState) other = *s;
    NAME(Integrals) made;
    NAME(integrate_held_2)(c, &other, a, &made);
    NAME(integrate_2)(c, s, a, out);
    s->v = NAME(pick)(held, other.v, s->v);
    s->x = NAME(pick)(held, other.x, s->x);
    out->v = NAME(pick)(held, made.v, out->v);
    out->x = NAME(pick)(held, made.x, out->x);
}

/* Return s^2 / (s^2 + c1 s + c0) of u; fill its first and second integrals. */
INLINE real NAME(high_pass_2)(const NAME(SecondOrder) *c, NAME(SecondOrderState) *s, real u, NAME(Integrals) *out) {
    const real a = NAME(high_passed_2)(c, s, u);
    NAME(integrate_2)(c, s, a, out);
    return a;
}

/* Set the state so that the next step with u starts from rest at that tick. */
INLINE void NAME(prime_2)(const NAME(SecondOrder) *c, NAME(SecondOrderState) *s, real u) {
    s->v = -c->k * u;
    s->x = ALL(0.0);
}

/* Start a section that has not run yet from rest at this tick's input. */
INLINE void NAME(start_2)(const NAME(SecondOrder) *c, NAME(SecondOrderState) *s, flag fresh, real u) {
    NAME(SecondOrderState) rest;
    NAME(prime_2)(c, &rest, u);
    s->v = NAME(pick)(fresh, rest.v, s->v);
    s->x = NAME(pick)(fresh, rest.x, s->x);
}
