/* How an algorithm moves the platform, and the cue that follows from it.  Axes are x forward, y right, z down. */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_POSE_H
#define MOTIONCUE_POSE_H
#define MC_TEMPLATE "motioncue/cueing/pose.h"
#include "motioncue/core/scalar.h"
#undef MC_TEMPLATE
#endif
#else

typedef struct {
    real a[3];            /* [m/s^2] level accelerations: forward and right in heading at neutral, down */
    real travel[3];       /* [m] displacements, likewise */
    real rates[3];        /* [rad/s] of the Euler angles roll, pitch, yaw */
    real yaw;             /* [rad] */
    NAME(Turn) roll, pitch;
} NAME(PlatformMotion);

/* Convert body rates into the Euler rates of roll and pitch at an attitude. */
INLINE void NAME(euler_rates)(const NAME(Turn) *at, const real *rates, real *euler) {
    const real level = NAME(pick)(at[1].cosine > ALL(0.2), at[1].cosine, ALL(0.2));
    const real c = (rates[1] * at[0].sine + rates[2] * at[0].cosine) / level;
    euler[0] = rates[0] + c * at[1].sine;
    euler[1] = rates[1] * at[0].cosine - rates[2] * at[0].sine;
    euler[2] = c;
}

/* Fill the cue from how the platform moves; `g` is gravity [m/s^2]. */
INLINE void NAME(cue_of)(real g, const NAME(PlatformMotion) *out, NAME(Turn) *yaw, real *cue) {
    const real p = out->rates[0], q = out->rates[1], r = out->rates[2];
    const NAME(Turn) *roll = &out->roll, *pitch = &out->pitch;
    NAME(turn)(yaw, out->yaw);
    cue[MC_ROLL] = roll->angle;
    cue[MC_PITCH] = pitch->angle;
    cue[MC_YAW] = yaw->angle;
    cue[MC_ROLL_RATE] = p - r * pitch->sine;
    cue[MC_PITCH_RATE] = q * roll->cosine + r * roll->sine * pitch->cosine;
    cue[MC_YAW_RATE] = r * roll->cosine * pitch->cosine - q * roll->sine;

    /* Specific force deviation at the platform: (a - g) in platform axes, plus g. */
    const real az = out->a[2] - g;
    const real ax = yaw->cosine * out->a[0] + yaw->sine * out->a[1];
    const real ay = yaw->cosine * out->a[1] - yaw->sine * out->a[0];
    const real down = pitch->sine * ax + pitch->cosine * az;
    cue[MC_SURGE] = pitch->cosine * ax - pitch->sine * az;
    cue[MC_SWAY] = roll->cosine * ay + roll->sine * down;
    cue[MC_HEAVE] = -(roll->cosine * down - roll->sine * ay + g);
    cue[MC_SURGE_DISPLACEMENT] = out->travel[0];
    cue[MC_SWAY_DISPLACEMENT] = out->travel[1];
    cue[MC_HEAVE_DISPLACEMENT] = -out->travel[2];
}
#endif
