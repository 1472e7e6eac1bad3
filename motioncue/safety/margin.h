/* The bounds of a limiter (limiter.pxd), for one double and for lanes (real.h). */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_MARGIN_H
#define MOTIONCUE_MARGIN_H
#define MC_TEMPLATE "motioncue/safety/margin.h"
#include "motioncue/core/scalar.h"
#undef MC_TEMPLATE
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
