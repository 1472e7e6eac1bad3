/* The linear-quadratic washout over lanes: one tick of many rigs. */
#ifndef NAME /* included by itself: for every kind of machine */
#ifndef MOTIONCUE_OPTIMAL_LANES_H
#define MOTIONCUE_OPTIMAL_LANES_H
#include "motioncue/kernels/optimal.h"

#define MC_OVER_LANES "motioncue/kernels/optimal_lanes.h"
#include "motioncue/kernels/lanes.h"
#undef MC_OVER_LANES

static void (*const mc_optimal_tick[])(void *, const void *, const void *, void *, int64_t) =
    MC_OF_MACHINES(mc_optimal_tick);
#endif
#else
#include "motioncue/kernels/pose.h"
#include "motioncue/kernels/tilt.h"
#include "motioncue/kernels/optimal.h"

INLINE void NAME(optimal)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(optimal_step)((const NAME(OptimalCoeffs) *)coeffs, (NAME(OptimalState) *)state, motion, cue);
}
static void NAME(optimal_tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(OptimalCoeffs));
    NAME(ticks)(NAME(optimal), size, sizeof(NAME(OptimalState)), states, coeffs, motions, cues, n);
}
#endif
