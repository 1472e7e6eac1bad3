/* What the templates beside this file compute with: one double, or LANES of them side by side.
 *
 * A template is a text of arithmetic on `real`.  It is compiled once for one double (scalar.h) and again for lanes
 * (lanes.h); every lane then goes through the same operations in the same order as the double, so it has the same bits.
 * To be defined before: LANES (1, or more where the compiler knows vectors) and NAME(x), what a compilation calls x.
 * Without LANES the short names are taken away again.
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

#ifdef LANES
#if LANES == 1
#define real double
#define flag int             /* of a comparison: 0 or 1 */
#define word int64_t         /* the bits of a real */
#define ALL(c) (c)           /* a constant in every lane */
#define BIT(w) ((int)(w))    /* a word that is 0 or 1 as a flag */
#define SIGN(f) ((word)((uint64_t)(f) << 63)) /* a flag as the bit of the sign */

static inline word NAME(word)(real x) {
    word bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline real NAME(real)(word bits) {
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
#define LANE(x, i) (x)
#define WORD(x) NAME(word)(x)
#define REAL(w) NAME(real)(w)

static inline int NAME(any)(flag f) { return f; }
static inline real NAME(pick)(flag f, real yes, real no) { return f ? yes : no; }
static inline real NAME(root)(real x) { return sqrt(x); }
static inline real NAME(magnitude)(real x) { return fabs(x); }
static inline real NAME(with_sign)(real x, real sign) { return copysign(x, sign); }
static inline flag NAME(negative)(real x) { return signbit(x) != 0; } /* also -0 */

#else
typedef double NAME(reals) __attribute__((vector_size(8 * LANES)));
typedef int64_t NAME(words) __attribute__((vector_size(8 * LANES)));
#define real NAME(reals)
#define flag NAME(words)     /* of a comparison: 0 or -1 in a lane */
#define word NAME(words)
#define ALL(c) ((real){0} + (c))
#define BIT(w) (-(w))
#define SIGN(f) ((f) << 63)
#define LANE(x, i) (x)[i]
#define WORD(x) ((word)(x))
#define REAL(w) ((real)(w))

static inline int NAME(any)(flag f) {
    int64_t found = 0;
    for (int i = 0; i < LANES; i++) found |= f[i];
    return found != 0;
}
static inline real NAME(pick)(flag f, real yes, real no) { return REAL((f & WORD(yes)) | (~f & WORD(no))); }
static inline real NAME(root)(real x) {
    real y;
    for (int i = 0; i < LANES; i++) y[i] = sqrt(x[i]);
    return y;
}
static inline real NAME(magnitude)(real x) { return REAL(WORD(x) & INT64_MAX); }
static inline real NAME(with_sign)(real x, real sign) { return REAL((WORD(x) & INT64_MAX) | (WORD(sign) & INT64_MIN)); }
static inline flag NAME(negative)(real x) { return WORD(x) < 0; }
#endif

#endif
