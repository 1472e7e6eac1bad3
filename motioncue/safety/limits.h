/* The bounds of a limiter (limiter.pxd), for one double and for lanes (real.h). */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_LIMITS_H
#define MOTIONCUE_LIMITS_H
#include <stdint.h>

enum { MC_LIMITS_PADDED = 16 }; /* channels of a cue that are bounded, filled up to the widest lanes */

typedef struct {
    double x[MC_LIMITS_PADDED], v[MC_LIMITS_PADDED], a[MC_LIMITS_PADDED]; /* as in LimiterState */
} mc_IdleStates;

/* The channels of one rig side by side while no bound acts: their bounds, as in mc_Margin, and their states. */
typedef struct {
    double value[MC_LIMITS_PADDED], rate[MC_LIMITS_PADDED], acceleration[MC_LIMITS_PADDED], jerk[MC_LIMITS_PADDED];
    double per_jerk[MC_LIMITS_PADDED], per_acceleration[MC_LIMITS_PADDED], ramp[MC_LIMITS_PADDED];
    double most[MC_LIMITS_PADDED]; /* largest angle that stays as it is: half a turn where it may turn, a quarter where
                                      it is a lean; infinite for others */
    double turns[MC_LIMITS_PADDED]; /* -0.0, whose sign is set, where it may turn all the way round; 0.0 elsewhere */
    mc_IdleStates states[2]; /* now, and where the next go */
    int now;
    int count;
    int channels[MC_LIMITS_PADDED]; /* their places in a cue */
    int angles[MC_LIMITS_PADDED];   /* of each group of lanes: whether some turn, or lean */
} mc_IdleLimits;

/* Room for them from an address that wide lanes are read from at once: twice as long if they lie across two such places. */
typedef struct {
    char bytes[sizeof(mc_IdleLimits) + 64];
} mc_IdleRoom;
static inline mc_IdleLimits *mc_idle_limits(mc_IdleRoom *room) {
    return (mc_IdleLimits *)(((uintptr_t)room->bytes + 63) & ~(uintptr_t)63);
}

#define MC_TEMPLATE "motioncue/safety/limits.h"
#include "motioncue/core/real.h"
#endif
#else

/* Per tick; holds only doubles: in lanes, each double becomes a vector. */
typedef struct {
    real value, rate, acceleration, jerk;
    real per_jerk;         /* 1 / (2 jerk); 0 if the channel stops at once, as the next two are */
    real per_acceleration; /* 1 / (2 acceleration) */
    real ramp;             /* acceleration / (2 jerk) */
} NAME(Margin);

/* Return whether a state can be braked within the bounds on both sides; quick, and may say no although it can.
 *
 * Let p be the rate once the acceleration has been taken back.  Stopping takes at most p (p/A + A/J)/2: the exact
 * distance if the brake is held at A, an upper bound if not (inequality of arithmetic and geometric means).
 */
INLINE flag NAME(clearly_viable)(const NAME(Margin) *m, real x, real v, real a) {
    const real push = NAME(magnitude)(a), speed = NAME(magnitude)(v);
    const real ticks = m->per_jerk * push;
    const real p = speed + push * (0.5 + ticks);
    const real reach = NAME(magnitude)(x) + speed + p * (2.0 * ticks + m->per_acceleration * p + m->ramp);
    return (push <= m->acceleration) & (p <= m->rate) & (reach <= m->value);
}

#ifdef MC_OVER_LANES /* included by core/lanes.h: for every kind of machine */
/* ---- Over lanes: one tick while no bound acts, of many rigs or of the channels of one ----
 *
 * It tests for every rig whether its input passes unchanged, by a condition that suffices for the scalar code
 * to pass it (limiter.pxd).  It returns a bit for each rig that passed; the others keep the
 * state that they had and are stepped one by one (engine/batch.pyx).  `plan` is what the rigs have in common; `rows` is the
 * first rig's cue, and the others follow every `stride` doubles.
 */
typedef struct {
    real x, v, a; /* as in LimiterState */
} NAME(Point);

/* Limit channels: plan holds their number, then for each its index, whether it turns, whether it leans. */
static int64_t NAME(limit_rigs)(
    const int *plan, const void *coeffs, const void *states, void *next_states, double *rows, int stride
) {
    const NAME(Margin) *margins = (const NAME(Margin) *)coeffs;
    const NAME(Point) *s = (const NAME(Point) *)states;
    NAME(Point) *next = (NAME(Point) *)next_states;
    flag unconstrained = ALL(0.0) == ALL(0.0);
    for (int i = 0; i < plan[0]; i++) {
        const int *channel = plan + 1 + 3 * i;
        const real in = NAME(gather)(rows + channel[0], stride);
        const real way = in - s[i].x;
        next[i].x = in;
        if (channel[1]) {
            unconstrained &= NAME(magnitude)(way) <= ALL(4.0 * MC_QUARTER_PI);
            unconstrained &= NAME(magnitude)(in) <= ALL(4.0 * MC_QUARTER_PI);
            next[i].x = s[i].x + way;
        }
        if (channel[2]) unconstrained &= NAME(magnitude)(in) <= ALL(2.0 * MC_QUARTER_PI);
        next[i].v = next[i].x - s[i].x;
        next[i].a = next[i].v - s[i].v;
        unconstrained &= (NAME(magnitude)(next[i].a - s[i].a) <= margins[i].jerk)
            & NAME(clearly_viable)(&margins[i], next[i].x, next[i].v, next[i].a);
    }
    return NAME(bits)(unconstrained);
}

INLINE real NAME(load)(const double *p) {
    real x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Read the numbers at LANES indices: written out, because a vector read from numbers just stored one by one waits for them. */
INLINE real NAME(chosen)(const double *p, const int *at) {
#if LANES == 8
    return (real){p[at[0]], p[at[1]], p[at[2]], p[at[3]], p[at[4]], p[at[5]], p[at[6]], p[at[7]]};
#elif LANES == 4
    return (real){p[at[0]], p[at[1]], p[at[2]], p[at[3]]};
#elif LANES == 2
    return (real){p[at[0]], p[at[1]]};
#else
    return p[at[0]];
#endif
}

/* Take in the channels of a cue if all of them pass unchanged, and return 1; else change nothing and return 0. */
static int NAME(limit_channels)(mc_IdleLimits *s, const double *cue) {
    const int count = s->count, now = s->now;
    flag unconstrained = ALL(0.0) == ALL(0.0);
    for (int i = 0; i < count; i += LANES) {
        const double *const bound = s->value + i; /* one address for all: the compiler would hold one for each of them */
        const double *const from = s->states[now].x + i;
        double *const to = s->states[!now].x + i;
#define AT(field) NAME(load)(bound + (offsetof(mc_IdleLimits, field) - offsetof(mc_IdleLimits, value)) / sizeof(double))
#define OF(field) (offsetof(mc_IdleStates, field) / sizeof(double))
        const NAME(Margin) m = {
            AT(value), AT(rate), AT(acceleration), AT(jerk), AT(per_jerk), AT(per_acceleration), AT(ramp)};
        const real before = NAME(load)(from);
        real x = NAME(chosen)(cue, s->channels + i);
        if (s->angles[i / LANES]) {
            const real most = AT(most), way = x - before;
            const flag turns = NAME(negative)(AT(turns));
            unconstrained &= (NAME(magnitude)(x) <= most) & (NAME(pick)(turns, NAME(magnitude)(way), ALL(0.0)) <= most);
            x = NAME(pick)(turns, before + way, x);
        }
        const real v = x - before, a = v - NAME(load)(from + OF(v));
        unconstrained &= (NAME(magnitude)(a - NAME(load)(from + OF(a))) <= m.jerk) & NAME(clearly_viable)(&m, x, v, a);
        memcpy(to + OF(x), &x, sizeof x);
        memcpy(to + OF(v), &v, sizeof v);
        memcpy(to + OF(a), &a, sizeof a);
#undef AT
#undef OF
    }
    if (NAME(bits)(unconstrained) != (1 << LANES) - 1) return 0;
    s->now = !now;
    return 1;
}
#endif
#endif
