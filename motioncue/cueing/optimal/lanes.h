/* The linear-quadratic washout over lanes: one tick of many rigs. */
#ifndef NAME /* included by itself: for every kind of machine */
#ifndef MOTIONCUE_OPTIMAL_LANES_H
#define MOTIONCUE_OPTIMAL_LANES_H
#include "motioncue/cueing/optimal/step.h"

#define MC_OVER_LANES "motioncue/cueing/optimal/lanes.h"
#include "motioncue/core/lanes.h"
#undef MC_OVER_LANES

static void (*const mc_optimal_tick[])(void *, const void *, const void *, void *, int64_t) =
    MC_OF_MACHINES(mc_optimal_tick);
#endif
#else
#include "motioncue/cueing/pose.h"
#include "motioncue/cueing/tilt.h"
#include "motioncue/cueing/optimal/step.h"

INLINE void NAME(optimal)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(optimal_step)((const NAME(OptimalCoeffs) *)coeffs, (NAME(OptimalState) *)state, motion, cue);
}
static void NAME(optimal_tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(OptimalCoeffs));
    NAME(ticks)(NAME(optimal), size, sizeof(NAME(OptimalState)), states, coeffs, motions, cues, n);
}
#endif
