/* The number type of the templates: one double, or LANES of them side by side; and a template compiled for one double.
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

#define LANES 1
#define NAME(x) mc_##x
#define MC_REAL
#include "motioncue/core/real.h"
#undef MC_REAL
#include "motioncue/core/math.h"
#include "motioncue/core/filters.h"
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
