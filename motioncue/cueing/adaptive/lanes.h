/* The coordinated adaptive washout over lanes: one tick of many rigs. */
#ifndef NAME /* included by itself: for every kind of machine */
#ifndef MOTIONCUE_ADAPTIVE_LANES_H
#define MOTIONCUE_ADAPTIVE_LANES_H
#include "motioncue/cueing/adaptive/step.h"

#define MC_OVER_LANES "motioncue/cueing/adaptive/lanes.h"
#include "motioncue/core/lanes.h"
#undef MC_OVER_LANES

static void (*const mc_adaptive_tick[])(void *, const void *, const void *, void *, int64_t) =
    MC_OF_MACHINES(mc_adaptive_tick);
#endif
#else
#include "motioncue/cueing/pose.h"
#include "motioncue/cueing/adaptive/step.h"

INLINE void NAME(adaptive)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(adaptive_step)((const NAME(AdaptiveCoeffs) *)coeffs, (NAME(AdaptiveState) *)state, motion, cue);
}
static void NAME(adaptive_tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(AdaptiveCoeffs));
    NAME(ticks)(NAME(adaptive), size, sizeof(NAME(AdaptiveState)), states, coeffs, motions, cues, n);
}
#endif
