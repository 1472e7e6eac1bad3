/* The templates compiled for several doubles side by side (lanes), once for each kind of machine the compiler supports.
 *
 * Ticks of one recording, or rigs of one room, are done in lanes wherever they do not depend on one another.  Results
 * equal those of scalar.h to the last bit: the same operations, none of them fused (-ffp-contract=off).
 */
#ifndef MOTIONCUE_LANES_H
#define MOTIONCUE_LANES_H
#include "motioncue/kernels/reach.h"
#include "motioncue/kernels/scalar.h"

enum {
    MC_COEFFS_SIZE = sizeof(mc_WashoutCoeffs) / sizeof(double),
    MC_DEMAND_SIZE = sizeof(mc_Demand) / sizeof(double),
    MC_RESPONSE_SIZE = sizeof(mc_Response) / sizeof(double)
};

typedef struct {
    const char *name;
    int lanes;
    void (*run)(void *state, const void *coeffs, const void *motions, void *cues, int64_t n);
    void (*tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n);
    void (*tick_adaptive)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n);
    void (*tick_optimal)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n);
    int64_t (*limit)(
        const int *plan, const void *coeffs, const void *states, void *next_states, double *rows, int stride
    );
    int64_t (*drive)(
        const int *plan, const void *coeffs, const void *states, void *next_states, double *rows, int stride
    );
    void (*pass_on)(const double *cues, double *actuations, int64_t n);
} mc_Machine;

/* Copy what the washout passes through: speed, engine speed, time. */
static inline void mc_pass(const double *motion, double *cue) {
    cue[MC_SPEED] = motion[MC_SPEED];
    cue[MC_ENGINE_SPEED] = motion[MC_ENGINE_SPEED];
    memcpy(cue + MC_CUE_TIME, motion + MC_MOTION_TIME, sizeof *cue);
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

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed to inlined functions only */

#define LANES 2 /* supported by every x86-64 and ARM64 */
#define NAME(x) mc_##x##_any
#include "motioncue/kernels/lanes_of.h"
#undef LANES
#undef NAME

#if defined(__x86_64__) && !defined(__clang__)
#define MC_NAMES_MACHINES
#pragma GCC push_options
#pragma GCC target("avx2")
#define LANES 4
#define NAME(x) mc_##x##_avx2
#include "motioncue/kernels/lanes_of.h"
#undef LANES
#undef NAME
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq")
#define LANES 8
#define NAME(x) mc_##x##_avx512
#include "motioncue/kernels/lanes_of.h"
#undef LANES
#undef NAME
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop

#else /* a compiler without vectors, or one that does not align them: one lane */
#define LANES 1
#define NAME(x) mc_##x##_any
#include "motioncue/kernels/lanes_of.h"
#undef LANES
#undef NAME
#endif
#include "motioncue/kernels/real.h"

/* Fill the kinds of machine that this processor supports, the best first; return how many. */
static inline int mc_machines(mc_Machine *out) {
    int n = 0;
#ifdef MC_NAMES_MACHINES
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        out[n++] = (mc_Machine){
            "avx512", 8, mc_run_avx512, mc_tick_avx512, mc_tick_adaptive_avx512, mc_tick_optimal_avx512, mc_limit_avx512, mc_drive_avx512, mc_pass_on_avx512
        };
    }
    if (__builtin_cpu_supports("avx2")) {
        out[n++] = (mc_Machine){
            "avx2", 4, mc_run_avx2, mc_tick_avx2, mc_tick_adaptive_avx2, mc_tick_optimal_avx2, mc_limit_avx2, mc_drive_avx2, mc_pass_on_avx2
        };
    }
#endif
    out[n++] = (mc_Machine){
        "any", sizeof(mc_WashoutState_any) / sizeof(mc_WashoutState), mc_run_any, mc_tick_any, mc_tick_adaptive_any, mc_tick_optimal_any, mc_limit_any, mc_drive_any, mc_pass_on_any
    };
    return n;
}
#endif
