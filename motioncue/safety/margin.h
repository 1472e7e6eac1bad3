/* The bounds of a limiter (limiter.pxd), for one double and for lanes (real.h). */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_MARGIN_H
#define MOTIONCUE_MARGIN_H
#include <stdint.h>

enum { MC_LIMITS_PADDED = 16 }; /* channels of a cue that are bounded, filled up to the widest lanes */
enum { MC_SCATTERED = 1, MC_ANGLES = 2 }; /* of channels in lanes: not next to each other in a cue; some turn, or lean */

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
    int kinds[MC_LIMITS_PADDED];    /* of each group of lanes: a sum of the kinds above */
} mc_IdleLimits;

/* Room for them from an address that wide lanes are read from at once: twice as long if they lie across two such places. */
typedef struct {
    char bytes[sizeof(mc_IdleLimits) + 64];
} mc_IdleRoom;
static inline mc_IdleLimits *mc_idle_limits(mc_IdleRoom *room) {
    return (mc_IdleLimits *)(((uintptr_t)room->bytes + 63) & ~(uintptr_t)63);
}

#define MC_TEMPLATE "motioncue/safety/margin.h"
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
#endif
