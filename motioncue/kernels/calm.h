/* One tick of LANES rigs side by side while no bound acts; included by lanes_of.h for each kind of machine.
 *
 * Each function tests for every rig whether its input passes unchanged, by a condition that is sufficient for the scalar
 * code to pass it (limiter.pxd; reach.h and keep.h).  It fills the new states of those rigs only and returns a bit for
 * each of them; the others are stepped one by one.  Their scalar states are packed into lanes and back by `Beside`
 * (beside.pxd), which also says what `plan` holds.  `rows` are the first rig's cue or actuation, one rig every `stride`
 * doubles.
 */

typedef struct {
    real x, v, a; /* as in LimiterState */
} NAME(Point);

typedef struct {
    real position, speed; /* as in mc_Held */
} NAME(Moved);

typedef struct {
    NAME(Actuator) actuator;
    real low, high, speed, acceleration; /* as in mc_Bounds */
    real per_acceleration;               /* 1 / acceleration */
} NAME(Drive);

/* Replace `count` reals by the `next` ones in the lanes that are `calm`; return a bit for each of these. */
INLINE int64_t NAME(commit)(flag calm, real *states, const real *next, int count) {
    for (int k = 0; k < count; k++) states[k] = NAME(pick)(calm, next[k], states[k]);
    return NAME(bits)(calm);
}

/* Copy the cues of `n` rigs into their actuations; the other channels become 0. */
static void NAME(pass_on)(const double *cue, double *actuation, int64_t n) {
    for (; n > 0; n--, cue += MC_CUE_SIZE, actuation += MC_ACTUATION_SIZE) {
        memcpy(actuation, cue, MC_CUE_SIZE * sizeof *cue);
        memset(actuation + MC_CUE_SIZE, 0, (MC_ACTUATION_SIZE - MC_CUE_SIZE) * sizeof *cue);
    }
}

/* Limit channels: plan holds their number, then for each its index, whether it turns, whether it leans. */
static int64_t NAME(limit)(const int *plan, const void *coeffs, void *states, double *rows, int stride) {
    const NAME(Margin) *margins = (const NAME(Margin) *)coeffs;
    NAME(Point) *s = (NAME(Point) *)states, next[MC_CHANNELS];
    flag calm = ALL(0.0) == ALL(0.0);
    for (int i = 0; i < plan[0]; i++) {
        const int *channel = plan + 1 + 3 * i;
        const real in = NAME(gather)(rows + channel[0], stride);
        const real way = in - s[i].x;
        next[i].x = in;
        if (channel[1]) {
            calm &= (NAME(magnitude)(way) <= ALL(4.0 * MC_QUARTER_PI)) & (NAME(magnitude)(in) <= ALL(4.0 * MC_QUARTER_PI));
            next[i].x = s[i].x + way;
        }
        if (channel[2]) calm &= NAME(magnitude)(in) <= ALL(2.0 * MC_QUARTER_PI);
        next[i].v = next[i].x - s[i].x;
        next[i].a = next[i].v - s[i].v;
        calm &= NAME(magnitude)(next[i].a - s[i].a) <= margins[i].jerk;
        calm &= NAME(clearly_viable)(&margins[i], next[i].x, next[i].v, next[i].a);
    }
    return NAME(commit)(calm, (real *)s, (const real *)next, 3 * plan[0]);
}

/* Move actuators: plan holds their number and their kinds; the states are a pose, then each actuator's.  The ticks that a
   stop takes as a multiple of the speed (keep.h) are at most max(1, 0.5 m + 0.59). */
static int64_t NAME(drive)(const int *plan, const void *coeffs, void *states, double *rows, int stride) {
    const NAME(Drive) *drives = (const NAME(Drive) *)coeffs;
    const NAME(Moved) *s = (const NAME(Moved) *)((const real *)states + 6);
    real next[6 + 2 * MC_MOST_ACTUATORS], r[9], most = ALL(0.0);
    NAME(Moved) *moved = (NAME(Moved) *)(next + 6);
    flag calm = ALL(0.0) == ALL(0.0);
    for (int i = 0; i < 6; i++) {
        next[i] = NAME(gather)(rows + (i < 3 ? MC_SURGE_DISPLACEMENT + i : MC_ROLL + i - 3), stride);
        calm &= NAME(magnitude)(next[i]) <= ALL(MC_FARTHEST_POSE);
    }
    NAME(rotation)(next + 3, r);
    for (int i = 0; i < plan[0]; i++) {
        const NAME(Drive) *d = &drives[i];
        const real position = NAME(position)(plan[1 + i], &d->actuator, next, r, MC_STRAIGHT);
        const real move = position - s[i].position, speed = NAME(magnitude)(move), ticks = speed * d->per_acceleration;
        calm &= (d->low <= position) & (position <= d->high) & (speed <= d->speed);
        calm &= NAME(magnitude)(move - s[i].speed) <= d->acceleration;
        most = NAME(pick)(ticks > most, ticks, most);
        moved[i].position = position;
        moved[i].speed = move;
        NAME(scatter)(rows + MC_ACTUATORS + i, stride, position);
    }
    const real way = NAME(pick)(most > ALL(0.8), 0.5 * most + 0.6, ALL(1.0));
    for (int i = 0; i < plan[0]; i++) {
        const real up = drives[i].high - s[i].position, down = s[i].position - drives[i].low;
        calm &= NAME(magnitude)(moved[i].speed) * way <= NAME(pick)(moved[i].speed > ALL(0.0), up, down);
    }
    return NAME(commit)(calm, (real *)states, next, 6 + 2 * plan[0]);
}
