/* The classical washout over lanes: many ticks of one rig, or one tick of many rigs. */
#ifndef NAME /* included by itself: for every kind of machine */
#ifndef MOTIONCUE_WASHOUT_LANES_H
#define MOTIONCUE_WASHOUT_LANES_H
#include "motioncue/cueing/classical/step.h"

enum {
    MC_COEFFS_SIZE = sizeof(mc_WashoutCoeffs) / sizeof(double),
    MC_DEMAND_SIZE = sizeof(mc_Demand) / sizeof(double),
    MC_RESPONSE_SIZE = sizeof(mc_PlatformMotion) / sizeof(double)
};

#define MC_OVER_LANES "motioncue/cueing/classical/lanes.h"
#include "motioncue/core/lanes.h"
#undef MC_OVER_LANES

static void (*const mc_washout_run[])(void *, const void *, const void *, void *, int64_t) =
    MC_OF_MACHINES(mc_washout_run);
static void (*const mc_washout_tick[])(void *, const void *, const void *, void *, int64_t) =
    MC_OF_MACHINES(mc_washout_tick);
#endif
#else
#include "motioncue/cueing/pose.h"
#include "motioncue/cueing/tilt.h"
#include "motioncue/cueing/classical/step.h"

enum { NAME(GROUPS) = 32 / LANES };

/* Run `n` ticks of one rig; whatever does not depend on the tick before is computed in lanes. */
static void NAME(washout_run)(void *memory, const void *design, const void *motions, void *cues, int64_t n) {
    const mc_WashoutCoeffs *w = (const mc_WashoutCoeffs *)design;
    mc_WashoutState *s = (mc_WashoutState *)memory;
    const double *motion = (const double *)motions;
    double *cue = (double *)cues;
    NAME(WashoutCoeffs) same;
    NAME(Demand) demands[NAME(GROUPS)];
    NAME(PlatformMotion) responses[NAME(GROUPS)];
    NAME(Turn) yaw;
    real channels[MC_CUE_SIZE];
    for (int k = 0; k < MC_COEFFS_SIZE; k++) ((real *)&same)[k] = ALL(((const double *)w)[k]);
    while (n > 0) {
        if (n < 32 || s->primed == 0.0) {
            memset(cue, 0, MC_CHANNELS * sizeof *cue);
            mc_washout_step(w, s, motion, cue);
            mc_pass(motion, cue);
            n--, motion += MC_MOTION_SIZE, cue += MC_CUE_SIZE;
            continue;
        }
        for (int g = 0; g < NAME(GROUPS); g++) {
            NAME(read)(motion + g * LANES * MC_MOTION_SIZE, channels);
            NAME(washout_in)(&same, channels, &demands[g]);
        }
        for (int i = 0; i < 32; i++) {
            double *in = (double *)&demands[i / LANES] + i % LANES;
            in[0] = mc_sustained(&w->tilt[0], w->held != 0.0, &s->tilt[0], in[0]);
            in[LANES] = mc_sustained(&w->tilt[1], w->held != 0.0, &s->tilt[1], in[LANES]);
        }
        for (int g = 0; g < NAME(GROUPS); g++) NAME(washout_aim)(&same, &demands[g]);
        for (int i = 0; i < 32; i++) {
            const double *from = (const double *)&demands[i / LANES] + i % LANES;
            double *to = (double *)&responses[i / LANES] + i % LANES;
            mc_Demand demand;
            mc_PlatformMotion response;
            mc_fetch(motion + (32 + i) * MC_MOTION_SIZE, cue + i * MC_CUE_SIZE);
            MC_UNROLL
            for (int k = 0; k < MC_DEMAND_SIZE; k++) ((double *)&demand)[k] = from[k * LANES];
            mc_washout_move(w, s, motion + i * MC_MOTION_SIZE, &demand, &response);
            MC_UNROLL
            for (int k = 0; k < MC_RESPONSE_SIZE; k++) to[k * LANES] = ((const double *)&response)[k];
        }
        for (int g = 0; g < NAME(GROUPS); g++) {
            NAME(neutral)(channels);
            NAME(cue_of)(same.gravity, &responses[g], &yaw, channels);
            NAME(write)(motion, channels, cue);
            n -= LANES, motion += LANES * MC_MOTION_SIZE, cue += LANES * MC_CUE_SIZE;
        }
    }
}

INLINE void NAME(classical)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(washout_step)((const NAME(WashoutCoeffs) *)coeffs, (NAME(WashoutState) *)state, motion, cue);
}
static void NAME(washout_tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(WashoutCoeffs));
    NAME(ticks)(NAME(classical), size, sizeof(NAME(WashoutState)), states, coeffs, motions, cues, n);
}
#endif
