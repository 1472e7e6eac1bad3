/* Loops over lanes, for one kind of machine: included by lanes.h once for each, with LANES and NAME defined. */
#include "motioncue/kernels/real.h"
#include "motioncue/kernels/trigonometry.h"
#include "motioncue/kernels/filters.h"
#include "motioncue/kernels/washout.h"
#include "motioncue/kernels/optimal.h"
#include "motioncue/kernels/adaptive.h"
#include "motioncue/kernels/actuator.h"
#include "motioncue/kernels/margin.h"
#include "motioncue/kernels/calm.h"

enum { NAME(GROUPS) = 32 / LANES };

/* Read the washout's input channels of LANES consecutive motions, one motion a lane. */
INLINE void NAME(read)(const double *motion, real *channels) {
    for (int c = MC_SURGE; c <= MC_YAW_RATE; c++) channels[c] = NAME(gather)(motion + c, MC_MOTION_SIZE);
}

/* Write LANES consecutive cues, with the channels passed through from the motions. */
INLINE void NAME(write)(const double *motion, const real *channels, double *cue) {
    for (int c = MC_SURGE; c <= MC_YAW_RATE; c++) NAME(scatter)(cue + c, MC_CUE_SIZE, channels[c]);
    for (int c = MC_SURGE_DISPLACEMENT; c <= MC_HEAVE_DISPLACEMENT; c++) {
        NAME(scatter)(cue + c, MC_CUE_SIZE, channels[c]);
    }
    for (int i = 0; i < LANES; i++, motion += MC_MOTION_SIZE, cue += MC_CUE_SIZE) mc_pass(motion, cue);
}

/* Run `n` ticks of one rig; whatever does not depend on the tick before is computed in lanes. */
static void NAME(run)(void *memory, const void *design, const void *motions, void *cues, int64_t n) {
    const mc_WashoutCoeffs *w = (const mc_WashoutCoeffs *)design;
    mc_WashoutState *s = (mc_WashoutState *)memory;
    const double *motion = (const double *)motions;
    double *cue = (double *)cues;
    NAME(WashoutCoeffs) same;
    NAME(Demand) demands[NAME(GROUPS)];
    NAME(Response) responses[NAME(GROUPS)];
    NAME(Turn) yaw;
    real channels[MC_CUE_SIZE];
    for (int k = 0; k < MC_COEFFS_SIZE; k++) ((real *)&same)[k] = ALL(((const double *)w)[k]);
    while (n > 0) {
        if (n < 32 || s->primed == 0.0) {
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
            mc_Response response;
            mc_fetch(motion + (32 + i) * MC_MOTION_SIZE, cue + i * MC_CUE_SIZE);
            MC_UNROLL
            for (int k = 0; k < MC_DEMAND_SIZE; k++) ((double *)&demand)[k] = from[k * LANES];
            mc_washout_move(w, s, motion + i * MC_MOTION_SIZE, &demand, &response);
            MC_UNROLL
            for (int k = 0; k < MC_RESPONSE_SIZE; k++) to[k * LANES] = ((const double *)&response)[k];
        }
        for (int g = 0; g < NAME(GROUPS); g++) {
            NAME(washout_out)(same.gravity, &responses[g], &yaw, channels);
            NAME(write)(motion, channels, cue);
            n -= LANES, motion += LANES * MC_MOTION_SIZE, cue += LANES * MC_CUE_SIZE;
        }
    }
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
        step(w, s, in, out);
        NAME(write)(whole ? motion : some, out, whole ? cue : made);
        if (!whole) memcpy(cue, made, (size_t)n * MC_CUE_SIZE * sizeof *cue);
    }
}

INLINE void NAME(classical)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(washout_step)((const NAME(WashoutCoeffs) *)coeffs, (NAME(WashoutState) *)state, motion, cue);
}
static void NAME(tick)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(WashoutCoeffs));
    NAME(ticks)(NAME(classical), size, sizeof(NAME(WashoutState)), states, coeffs, motions, cues, n);
}

INLINE void NAME(adaptive)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(adaptive_step)((const NAME(AdaptiveCoeffs) *)coeffs, (NAME(AdaptiveState) *)state, motion, cue);
}
static void NAME(tick_adaptive)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(AdaptiveCoeffs));
    NAME(ticks)(NAME(adaptive), size, sizeof(NAME(AdaptiveState)), states, coeffs, motions, cues, n);
}

INLINE void NAME(optimal)(const void *coeffs, void *state, const real *motion, real *cue) {
    NAME(optimal_step)((const NAME(OptimalCoeffs) *)coeffs, (NAME(OptimalState) *)state, motion, cue);
}
static void NAME(tick_optimal)(void *states, const void *coeffs, const void *motions, void *cues, int64_t n) {
    const size_t size = sizeof(NAME(OptimalCoeffs));
    NAME(ticks)(NAME(optimal), size, sizeof(NAME(OptimalState)), states, coeffs, motions, cues, n);
}
