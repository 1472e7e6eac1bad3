/* Ticks of several rigs side by side, for algorithms whose coefficients and state are nothing but numbers; see lanes.h. */

/* Read the input channels of LANES consecutive motions, one motion a lane. */
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
