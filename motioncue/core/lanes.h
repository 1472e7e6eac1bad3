/* A template compiled for several doubles side by side (lanes), once for each kind of machine the compiler supports.
 *
 * A module includes this header once, with MC_OVER_LANES naming the template, which has its loops over lanes where
 * MC_OVER_LANES is defined.  MC_OF_MACHINES(f) then lists what f became, in the order of mc_machines; without
 * MC_OVER_LANES, the header gives no more than that order.
 *
 * Ticks of one recording, or rigs of one room, are done in lanes wherever they do not depend on one another.  Results
 * equal those of one double to the last bit: the same operations, none of them fused (-ffp-contract=off).
 */
#ifdef LANES /* included by itself, see below: what MC_OVER_LANES becomes on one kind of machine */
#include "motioncue/core/real.h"

/* Ticks of several rigs side by side, for algorithms whose coefficients and state are nothing but numbers.
 *
 * Loops over channels are unrolled, so that the compiler keeps channels in registers.  In memory, a neutral cue alone, cleared
 * a double at a time, takes a tenth of a tick.
 */

/* Read the input channels of LANES consecutive motions, one motion a lane. */
INLINE void NAME(read)(const double *motion, real *channels) {
    MC_UNROLL
    for (int c = 0; c < MC_MOVING; c++) channels[c] = NAME(gather)(motion + c, MC_MOTION_SIZE);
}

/* Make every channel of the cues neutral: an algorithm may leave some unwritten. */
INLINE void NAME(neutral)(real *channels) {
    MC_UNROLL
    for (int c = 0; c < MC_CUE_SIZE; c++) channels[c] = ALL(0.0);
}

/* Write LANES consecutive cues, with the channels passed through from the motions. */
INLINE void NAME(write)(const double *motion, const real *channels, double *cue) {
    MC_UNROLL
    for (int c = 0; c < MC_MOVING; c++) NAME(scatter)(cue + c, MC_CUE_SIZE, channels[c]);
    MC_UNROLL
    for (int c = MC_CUE_ONLY; c < MC_CHANNELS; c++) NAME(scatter)(cue + c, MC_CUE_SIZE, channels[c]);
    for (int i = 0; i < LANES; i++, motion += MC_MOTION_SIZE, cue += MC_CUE_SIZE) mc_pass(motion, cue);
}

/* Run one tick of `n` rigs; coefficients and states of the given sizes are in blocks of LANES rigs. */
INLINE void NAME(ticks)(
    void (*step)(const void *coeffs, void *state, const real *motion, real *cue), size_t coeffs, size_t state,
    void *memory, const void *designs, const void *motions, void *cues, int64_t n
) {
    const char *w = (const char *)designs;
    char *s = (char *)memory;
    const double *motion = (const double *)motions;
    double *cue = (double *)cues;
    double some[LANES * MC_MOTION_SIZE] = {0.0}, made[LANES * MC_CUE_SIZE];
    real in[MC_MOTION_SIZE], out[MC_CUE_SIZE];
    for (; n > 0; n -= LANES, w += coeffs, s += state, motion += LANES * MC_MOTION_SIZE, cue += LANES * MC_CUE_SIZE) {
        const int whole = n >= LANES;
        for (int i = 2 * LANES; i < 3 * LANES; i++) mc_fetch(motion + i * MC_MOTION_SIZE, cue + i * MC_CUE_SIZE);
        if (!whole) memcpy(some, motion, (size_t)n * MC_MOTION_SIZE * sizeof *motion);
        NAME(read)(whole ? motion : some, in);
        NAME(neutral)(out);
        step(w, s, in, out);
        NAME(write)(whole ? motion : some, out, whole ? cue : made);
        if (!whole) memcpy(cue, made, (size_t)n * MC_CUE_SIZE * sizeof *cue);
    }
}

#include MC_OVER_LANES
#else

#ifndef MOTIONCUE_LANES_H
#define MOTIONCUE_LANES_H
#include "motioncue/core/real.h"

/* Copy what algorithms pass through: speed, engine speed, time. */
static inline void mc_pass(const double *motion, double *cue) {
    cue[MC_SPEED] = motion[MC_SPEED];
    cue[MC_ENGINE_SPEED] = motion[MC_ENGINE_SPEED];
    memcpy(cue + MC_CHANNELS, motion + MC_MOTION_TIME, sizeof *cue);
}

/* Prefetch a motion that will be read and a cue that will be written.  Always inlined: a call of it has no effect that
   the compiler knows of, so it would be removed. */
#ifdef __GNUC__
static inline __attribute__((always_inline)) void mc_fetch(const double *motion, const double *cue) {
    __builtin_prefetch(motion);
    __builtin_prefetch(motion + 8);
    __builtin_prefetch(cue, 1);
    __builtin_prefetch(cue + 8, 1);
}
#else
static inline void mc_fetch(const double *motion, const double *cue) { (void)motion, (void)cue; }
#endif

#if defined(__GNUC__) && !defined(_WIN32) && defined(__x86_64__) && !defined(__clang__)
#define MC_NAMES_MACHINES
#define MC_OF_MACHINES(f) {f##_avx512, f##_avx2, f##_any}
#else
#define MC_OF_MACHINES(f) {f##_any}
#endif

typedef struct {
    const char *name;
    int lanes;
    int index; /* in MC_OF_MACHINES */
} mc_Machine;

/* Fill the kinds of machine that this processor supports, the best first; return how many. */
static inline int mc_machines(mc_Machine *out) {
    int n = 0, index = 0;
#ifdef MC_NAMES_MACHINES
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        out[n++] = (mc_Machine){"avx512", 8, 0};
    }
    if (__builtin_cpu_supports("avx2")) out[n++] = (mc_Machine){"avx2", 4, 1};
    index = 2;
#endif
    out[n++] = (mc_Machine){"any", MC_ANY_LANES, index};
    return n;
}
#endif

#ifdef MC_OVER_LANES
#define MC_REAL
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed to inlined functions only */
#endif

#define LANES MC_ANY_LANES
#define NAME(x) mc_##x##_any
#include "motioncue/core/lanes.h"
#undef LANES
#undef NAME

#ifdef MC_NAMES_MACHINES
#pragma GCC push_options
#pragma GCC target("avx2")
#define LANES 4
#define NAME(x) mc_##x##_avx2
#include "motioncue/core/lanes.h"
#undef LANES
#undef NAME
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq")
#define LANES 8
#define NAME(x) mc_##x##_avx512
#include "motioncue/core/lanes.h"
#undef LANES
#undef NAME
#pragma GCC pop_options
#endif

#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#undef MC_REAL
#undef MC_OVER_LANES
#include "motioncue/core/real.h"
#endif
#endif
