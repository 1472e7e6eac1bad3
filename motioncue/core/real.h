/* The number type of the templates, one double or LANES of them side by side, with what they compute with: trigonometry
 * and filters; and a template compiled for one double.
 *
 * A template is arithmetic on `real`.  It is compiled once for one double, the step of one rig, and again for lanes
 * (lanes.h); every lane does the same operations in the same order as the double, so it has the same bits.
 *
 * A template includes this header with MC_TEMPLATE naming itself; without it, the header gives what all of them use:
 * arithmetic, trigonometry and filters.  A template that is included by itself, without NAME, is compiled this way once.
 *
 * To compile one otherwise, define before including: LANES (1, or more where the compiler has vectors), NAME(x), the
 * name that x gets in this compilation, and MC_REAL where the functions on a real are needed, once for each NAME.
 * Without LANES, the short names are undefined.
 */
#undef real
#undef flag
#undef word
#undef ALL
#undef BIT
#undef SIGN
#undef LANE
#undef WORD
#undef REAL
#undef INLINE

#ifdef LANES
#ifdef _MSC_VER
#define INLINE static __forceinline
#else
#define INLINE static inline __attribute__((always_inline))
#endif

#if LANES == 1
#define real double
#define flag int             /* result of a comparison: 0 or 1 */
#define word int64_t         /* the bits of a real, as an integer */
#define ALL(c) (c)           /* the constant c in every lane */
#define BIT(w) ((int)(w))    /* the word w, which is 0 or 1, as a flag */
#define SIGN(f) ((word)((uint64_t)(f) << 63)) /* the lowest bit of f moved to the sign bit */

#define LANE(x, i) (x)
#define WORD(x) NAME(word)(x)
#define REAL(w) NAME(real)(w)

#ifdef MC_REAL
INLINE word NAME(word)(real x) {
    word bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
INLINE real NAME(real)(word bits) {
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
INLINE real NAME(gather)(const double *p, int stride) { return (void)stride, *p; }
INLINE void NAME(scatter)(double *p, int stride, real x) { (void)stride, *p = x; }
INLINE int64_t NAME(bits)(flag f) { return f; } /* a bit for each lane */
INLINE int NAME(any)(flag f) { return f; }
INLINE real NAME(pick)(flag f, real yes, real no) { return f ? yes : no; }
INLINE real NAME(root)(real x) { return sqrt(x); }
INLINE real NAME(magnitude)(real x) { return fabs(x); }
INLINE real NAME(with_sign)(real x, real sign) { return copysign(x, sign); }
INLINE flag NAME(negative)(real x) { return signbit(x) != 0; } /* also -0 */
#endif

#else
#ifdef MC_REAL
typedef double NAME(reals) __attribute__((vector_size(8 * LANES), may_alias));
typedef int64_t NAME(words) __attribute__((vector_size(8 * LANES), may_alias));
#endif
#define real NAME(reals)
#define flag NAME(words)     /* result of a comparison: 0 or -1 in each lane */
#define word NAME(words)
#define ALL(c) ((real){0} + (c))
#define BIT(w) (-(w))
#define SIGN(f) ((f) << 63)
#define LANE(x, i) (x)[i]
#define WORD(x) ((word)(x))
#define REAL(w) ((real)(w))

#ifdef MC_REAL
/* Read lanes from, and write them to, numbers that are `stride` apart. */
INLINE real NAME(gather)(const double *p, int stride) {
#if LANES == 8
    return (real){p[0], p[stride], p[2 * stride], p[3 * stride], p[4 * stride], p[5 * stride], p[6 * stride], p[7 * stride]};
#elif LANES == 4
    return (real){p[0], p[stride], p[2 * stride], p[3 * stride]};
#else
    return (real){p[0], p[stride]};
#endif
}
INLINE void NAME(scatter)(double *p, int stride, real x) { /* written out, because the compiler leaves a loop a loop */
    p[0] = x[0], p[stride] = x[1];
#if LANES >= 4
    p[2 * stride] = x[2], p[3 * stride] = x[3];
#endif
#if LANES == 8
    p[4 * stride] = x[4], p[5 * stride] = x[5], p[6 * stride] = x[6], p[7 * stride] = x[7];
#endif
}

INLINE int64_t NAME(bits)(flag f) {
#if LANES == 8 /* eight and four lanes are compiled by gcc for x86-64 only, see lanes.h */
    return (uint8_t)__builtin_ia32_cvtq2mask512((__attribute__((vector_size(64))) long long)f);
#elif LANES == 4
    return __builtin_ia32_movmskpd256((__attribute__((vector_size(32))) double)f);
#else
    return (f[0] & 1) | (f[1] & 2);
#endif
}
INLINE int NAME(any)(flag f) { return NAME(bits)(f) != 0; }
INLINE real NAME(pick)(flag f, real yes, real no) { return REAL((f & WORD(yes)) | (~f & WORD(no))); }
INLINE real NAME(root)(real x) {
    real y = x;
    for (int i = 0; i < LANES; i++) y[i] = sqrt(x[i]);
    return y;
}
INLINE real NAME(magnitude)(real x) { return REAL(WORD(x) & INT64_MAX); }
INLINE real NAME(with_sign)(real x, real sign) { return REAL((WORD(x) & INT64_MAX) | (WORD(sign) & INT64_MIN)); }
INLINE flag NAME(negative)(real x) { return WORD(x) < 0; }
#endif
#endif

#ifdef MC_REAL
/* ---- Sine, cosine, arc sine and the angle of a vector, with the same bits for one double and for lanes ----
 *
 * Arguments are reduced after Cody and Waite, with the remainder as an unevaluated sum of two.  Polynomials are minimax
 * (Remez, weighted for an even relative error of the function, below 2^-55), in the forms of the classical libraries:
 * the largest terms are added last, with their rounding errors.  No operation is fused, so every IEEE machine gives the
 * same bits.  Errors measured against 200-bit arithmetic (tests/core/test_trigonometry.py) are below 0.9 units in the last
 * place.
 *
 * Branches skip only operations that would change nothing, such as reducing a small argument.
 */

/* Fill x less the nearest multiple of half pi as r + tail; the lowest bits of the returned word are the multiple. */
INLINE word NAME(reduce)(real x, real *r, real *tail) {
    const real shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52; /* times 2 / pi; the sum has no fraction bits */
    const real k = shifted - 0x1.8p52;
    const real first = x - k * MC_HALF_PI_1; /* exact, as are the next two products */
    const real second = k * MC_HALF_PI_2;
    const real high = first - second;
    const real back = high - first;
    const real low = ((first - (high - back)) - (second + back)) - k * MC_HALF_PI_3;
    const real sum = high + low;
    const real over = sum - high;
    const real rest = ((high - (sum - over)) + (low - over)) - k * MC_HALF_PI_4;
    *r = sum + rest;
    *tail = rest - (*r - sum);
    return WORD(shifted);
}

/* Fill sine and cosine of x [rad]. */
INLINE void NAME(sin_cos)(real x, real *sine, real *cosine) {
    const flag distant = NAME(magnitude)(x) > ALL(MC_QUARTER_PI);
    real r = x, tail = ALL(0.0);
    word turns = WORD(tail);
    if (NAME(any)(distant)) {
        turns = NAME(reduce)(x, &r, &tail);
        r = NAME(pick)(distant, r, x);
        tail = NAME(pick)(distant, tail, ALL(0.0));
        const flag farther = NAME(magnitude)(x) > ALL(1e6);
        if (NAME(any)(farther)) {
            for (int i = 0; i < LANES; i++) {
                if (LANE(farther, i)) {
                    double rest, rest_tail;
                    LANE(turns, i) = mc_reduce_far(LANE(x, i), &rest, &rest_tail);
                    LANE(r, i) = rest;
                    LANE(tail, i) = rest_tail;
                }
            }
        }
    }
    const real z = r * r, zz = z * z;
    const real ps = (0x1.1111111110763p-7 + z * -0x1.a01a019d9c008p-13)
        + zz * ((0x1.71de369e4ae50p-19 + z * -0x1.ae5f3248d7625p-26) + zz * 0x1.5dc8567170f38p-33);
    const real pc = (0x1.555555555554bp-5 + z * -0x1.6c16c16c14f72p-10)
        + zz * ((0x1.a01a019c81627p-16 + z * -0x1.27e4f7e8b96e6p-22)
                + zz * (0x1.1ee9d65c8abcdp-29 + z * -0x1.8fa3ed3e72f7fp-37));
    const real cube = z * r, half = 0.5 * z, top = 1.0 - half;
    const real s = r - (cube * (0x1.5555555555555p-3 - z * ps) + (half * tail - tail)); /* keeps the sign of -0 */
    const real c = top + ((((1.0 - top) - half) - r * tail) + zz * pc);
    *sine = s;
    *cosine = c;
    if (NAME(any)(distant)) {
        const flag odd = BIT(turns & 1);
        *sine = REAL(WORD(NAME(pick)(odd, c, s)) ^ SIGN(turns >> 1));
        *cosine = REAL(WORD(NAME(pick)(odd, s, c)) ^ SIGN((turns + 1) >> 1));
    }
}

/* An angle [rad] with its sine and cosine. */
typedef struct {
    real angle, sine, cosine;
} NAME(Turn);

INLINE void NAME(turn)(NAME(Turn) *t, real angle) {
    t->angle = angle;
    NAME(sin_cos)(angle, &t->sine, &t->cosine);
}

/* Of two angles or sines.  One rig has them side by side where it can, in little more than the time of one if both are up to
   a quarter of pi, or a half, or both beyond. */
INLINE void NAME(sin_cos_of_two)(real x, real y, real *sin_x, real *cos_x, real *sin_y, real *cos_y) {
#if LANES == 1 && MC_ANY_LANES == 2
    mc_reals_pair sine, cosine;
    mc_sin_cos_pair((mc_reals_pair){x, y}, &sine, &cosine);
    *sin_x = sine[0], *cos_x = cosine[0];
    *sin_y = sine[1], *cos_y = cosine[1];
#else
    NAME(sin_cos)(x, sin_x, cos_x);
    NAME(sin_cos)(y, sin_y, cos_y);
#endif
}
INLINE void NAME(two_turns)(NAME(Turn) *t, real first, real second) {
    t[0].angle = first;
    t[1].angle = second;
    NAME(sin_cos_of_two)(first, second, &t[0].sine, &t[0].cosine, &t[1].sine, &t[1].cosine);
}

/* asin(x) = x + x z P(z), z = x^2 up to 1/4; above 1/2 by the half-angle formula, corrected for the rounding of its
   root. */
INLINE real NAME(arc_sine)(real x) {
    const real a = NAME(magnitude)(x);
    const flag outer = a > ALL(0.5);
    const int any_outer = NAME(any)(outer);
    real z = a * a;
    if (any_outer) z = NAME(pick)(outer, 0.5 * (1.0 - a), z);
    const real z2 = z * z, z4 = z2 * z2;
    const real p0 = (0x1.5555555555578p-3 + z * 0x1.333333332df7fp-4) + z2 * (0x1.6db6db7226065p-5 + z * 0x1.f1c71a8dc4e5dp-6);
    const real p4 = (0x1.6e8bdfa64a781p-6 + z * 0x1.1c49e2bd5b6d6p-6) + z2 * (0x1.ca20cded956f7p-7 + z * 0x1.757b7acb9cdfep-7);
    const real p8 = (0x1.6173f100da9dep-7 + z * 0x1.e2bea4f7242b0p-9) + z2 * (0x1.6492acf860deap-6 + z * -0x1.595486736d57fp-6);
    const real p = z * (p0 + z4 * (p4 + z4 * (p8 + z4 * 0x1.0bb066718d79fp-5)));
    real y = a + a * p;
    if (any_outer) {
        const real s = NAME(root)(z);
        const real head = REAL(WORD(s) & -0x100000000);                /* its square is exact */
        const real rest = (z - head * head) / (s + head + 1e-300); /* the root is head + rest; 1e-300 avoids 0 / 0 */
        const real low = 2.0 * s * p - (MC_QUARTER_PI_REST * 2.0 - 2.0 * rest);
        y = NAME(pick)(outer, MC_QUARTER_PI - (low - (MC_QUARTER_PI - 2.0 * head)), y);
    }
    return NAME(with_sign)(y, x);
}

INLINE void NAME(two_arc_sines)(const real *x, real *out) {
#if LANES == 1 && MC_ANY_LANES == 2
    const mc_reals_pair both = mc_arc_sine_pair((mc_reals_pair){x[0], x[1]});
    out[0] = both[0], out[1] = both[1];
#else
    out[0] = NAME(arc_sine)(x[0]);
    out[1] = NAME(arc_sine)(x[1]);
#endif
}

/* Return the angle of the vector (x, y) from the x axis [rad], as atan2(y, x).
 *
 * With t the smaller component over the larger, atan(t) = t + t z P(z), z = t^2.  Beyond t = 1/2, t is their difference
 * over their sum, and the angle is measured from a quarter of pi.  The quotient's rounding error is found by an exact
 * product (Dekker) and added.
 */
INLINE real NAME(angle_of)(real y, real x) {
    const real ax = NAME(magnitude)(x), ay = NAME(magnitude)(y);
    const flag steep = ay > ax;
    real larger = NAME(pick)(steep, ay, ax), smaller = NAME(pick)(steep, ax, ay);
    real unit = ALL(1.0);
    if (NAME(any)((smaller < ALL(0x1p-900)) | (larger > ALL(0x1p900)))) { /* too small or large for what follows */
        const real up = NAME(pick)(larger < ALL(0x1p-400), ALL(0x1p600), ALL(1.0));
        const real scale = NAME(pick)(larger > ALL(0x1p900), ALL(0x1p-200), up);
        smaller = smaller * scale;
        larger = larger * scale;
        const flag infinite = larger > ALL(0x1.fffffffffffffp1023);
        smaller = NAME(pick)(infinite, NAME(pick)(smaller == larger, ALL(1.0), 0.0 * smaller), smaller);
        larger = NAME(pick)(infinite | (larger == ALL(0.0)), ALL(1.0), larger);
        const flag tiny = smaller < ALL(0x1p-900); /* the angle equals the quotient */
        smaller = NAME(pick)(tiny, smaller * 0x1p200, smaller);
        unit = NAME(pick)(tiny, ALL(0x1p-200), unit);
    }
    const flag middle = smaller > 0.5 * larger;
    const real both = larger + smaller;
    const real n = NAME(pick)(middle, smaller - larger, smaller); /* exact */
    const real d = NAME(pick)(middle, both, larger);
    const real d_rest = NAME(pick)(middle, smaller - (both - larger), ALL(0.0));
    const real t = n / d;
    const real head = REAL(WORD(t) & -0x8000000);                     /* 26 bits, so that the products are exact */
    const real d_head = REAL(WORD(d) & -0x8000000);
    const real left_over = (n - head * d_head) - head * (d - d_head); /* exact */
    const real rest = (left_over - head * d_rest) / d;                /* the quotient is head + rest */
    const real z = t * t, z2 = z * z, z4 = z2 * z2;
    const real p0 = (-0x1.5555555555518p-2 + z * 0x1.99999999914cdp-3) + z2 * (-0x1.249249216fb02p-3 + z * 0x1.c71c70967d822p-4);
    const real p4 = (-0x1.745cf54d67fafp-4 + z * 0x1.3b11453773643p-4) + z2 * (-0x1.10f366d99daefp-4 + z * 0x1.dfed0d21e5512p-5);
    const real p8 = (-0x1.a3a77f49e48a9p-5 + z * 0x1.571e0f49e1251p-5) + z2 * (-0x1.c1fb2f7214264p-6 + z * 0x1.4c29324de55e8p-7);
    const real more = t * (z * (p0 + z4 * (p4 + z4 * p8))) + rest;

    /* The multiple of a quarter of pi that the angle is measured from, and its sign. */
    const flag left = NAME(negative)(x);
    const real base = NAME(pick)(middle, ALL(MC_QUARTER_PI), NAME(pick)(steep, ALL(2.0 * MC_QUARTER_PI), ALL(0.0)));
    const real base_rest = base * (MC_QUARTER_PI_REST / MC_QUARTER_PI);
    const real distant = 4.0 * MC_QUARTER_PI - base;
    const real distant_rest = ((4.0 * MC_QUARTER_PI - distant) - base) + (4.0 * MC_QUARTER_PI_REST - base_rest);
    const real from = NAME(pick)(left, distant, base), from_rest = NAME(pick)(left, distant_rest, base_rest);
    const real side = NAME(pick)(steep, -unit, unit);
    const real way = NAME(pick)(left, -side, side);
    const real first = way * head;
    const real angle = from + first;
    return NAME(with_sign)(angle + (((from - angle) + first) + (from_rest + way * more)), y);
}

/* ---- The filter sections of filters.pxd, where they and their fields are explained ---- */

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
#endif

#elif !defined(MOTIONCUE_REAL_H)
#define MOTIONCUE_REAL_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "motioncue/core/records.h"

#if defined(__clang__)
#define MC_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define MC_UNROLL _Pragma("GCC unroll 32")
#else
#define MC_UNROLL
#endif

/* Reduction of angles beyond a million radians to less than a quarter of pi, after Payne and Hanek, in integer
   arithmetic. */

/* Bits of 2 / pi, behind 64 zeros. */
static const uint64_t mc_two_by_pi[20] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

/* Return the multiple of half pi nearest to x, modulo 4, and fill the remainder as a sum: r + tail [rad].
 *
 * With x = m 2^e, only 192 bits of 2 / pi matter: higher ones make the product with m a multiple of 4, lower ones are
 * too small.  The double nearest to a multiple of half pi has 61 leading zeros, so more than 70 bits of the remainder
 * are right.
 */
static inline int64_t mc_reduce_far(double x, double *r, double *tail) {
    uint64_t bits, top, middle, carry = 0;
    uint32_t window[6], product[6] = {0, 0, 0, 0, 0, 0};
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) { /* infinite */
        *r = *tail = x - x;
        return 0;
    }
    const int first = exponent - 1075 + 62; /* bit of the table where the window begins */
    const uint32_t m[2] = {(uint32_t)bits, (uint32_t)(bits >> 32 & 0xfffff) | 0x100000};
    for (int i = 0; i < 3; i++) {
        const uint64_t *w = &mc_two_by_pi[first / 64 + i];
        const uint64_t part = first % 64 ? w[0] << first % 64 | w[1] >> (64 - first % 64) : w[0];
        window[5 - 2 * i] = (uint32_t)(part >> 32);
        window[4 - 2 * i] = (uint32_t)part;
    }
    for (int j = 0; j < 2; j++, carry = 0) {
        for (int i = 0; i + j < 6; i++) {
            carry += (uint64_t)m[j] * window[i] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
    }

    /* Two bits count quarter turns; the next one rounds their fraction to nearest, so the remainder may be negative. */
    int64_t quarters = product[5] >> 30;
    const uint64_t flip = product[5] >> 29 & 1 ? ~(uint64_t)0 : 0; /* all ones if negative: as good as minus */
    top = ((uint64_t)product[5] << 34 | (uint64_t)product[4] << 2 | product[3] >> 30) ^ flip;
    middle = ((uint64_t)product[3] << 34 | (uint64_t)product[2] << 2 | product[1] >> 30) ^ flip;
    quarters += (int64_t)(flip & 1);
    double unit = 0x1p-53;
    for (; !(top >> 63); top = top << 1 | middle >> 63, middle <<= 1) unit *= 0.5;
    const double high = (double)(int64_t)(top >> 11) * unit;
    const double low = (double)(int64_t)((top << 53 | middle >> 11) >> 1) * (unit * 0x1p-63);

    /* Multiply by half pi; the rounding error of the product comes from an exact product (Dekker). */
    const double a = 0x1.921fb5p+0, b = 0x1.110b46p-26, c = 0x1.1a62633145c07p-54; /* half pi: 25, 24 bits, the rest */
    double head = high * 0x1p27 + high;
    head -= head - high;
    const double base = high * (a + b);
    const double rest = (((head * a - base) + head * b) + (high - head) * a) + (high - head) * b + high * c + low * a;
    const double sum = base + rest;
    const int minus = (flip != 0) != (x < 0.0);
    *r = minus ? -sum : sum;
    *tail = minus ? -(rest - (sum - base)) : rest - (sum - base);
    return x < 0.0 ? -quarters : quarters;
}

#define MC_QUARTER_PI 0x1.921fb54442d18p-1
#define MC_QUARTER_PI_REST 0x1.1a62633145c07p-55

/* Half pi as parts of 33 bits, whose products with whole numbers below 2^20 are exact, and the rest. */
#define MC_HALF_PI_1 0x1.921fb544p+0
#define MC_HALF_PI_2 0x1.0b4611a6p-34
#define MC_HALF_PI_3 0x1.3198a2e0p-69
#define MC_HALF_PI_4 0x1.b839a252049c1p-104

#if defined(__GNUC__) && !defined(_WIN32)
#define MC_ANY_LANES 2 /* supported by every x86-64 and ARM64 */
#else
#define MC_ANY_LANES 1 /* a compiler without vectors, or one that does not align them */
#endif

#define MC_REAL
#if MC_ANY_LANES == 2 /* for what one rig does twice, before what uses it */
#define LANES 2
#define NAME(x) mc_##x##_pair
#include "motioncue/core/real.h"
#undef LANES
#undef NAME
#endif
#define LANES 1
#define NAME(x) mc_##x
#include "motioncue/core/real.h"
#undef MC_REAL
#undef LANES
#undef NAME
#include "motioncue/core/real.h" /* compiles MC_TEMPLATE, if it is defined */

#elif defined(MC_TEMPLATE)
#define LANES 1
#define NAME(x) mc_##x
#include "motioncue/core/real.h"
#include MC_TEMPLATE
#undef MC_TEMPLATE
#undef LANES
#undef NAME
#include "motioncue/core/real.h"
#endif
