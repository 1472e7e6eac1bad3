/* The position of an actuator at a pose, for one double and for lanes (real.h); kinematics.h explains the kinds. */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_ACTUATOR_H
#define MOTIONCUE_ACTUATOR_H
enum { /* kinds of actuators, see kinematics.h */
    MC_LEG,
    MC_CRANK,
    MC_POST,
    MC_AXIS,
    MC_MOST_ACTUATORS = 12 /* actuators of one platform at most */
};

#define MC_TEMPLATE "motioncue/platforms/actuator.h"
#include "motioncue/core/scalar.h"
#undef MC_TEMPLATE
#endif
#else

/* Holds only doubles: in lanes, each double becomes a vector. */
typedef struct {
    real platform[3]; /* [m] joint on the platform, from the motion reference point, platform axes */
    real base[3];     /* [m] joint on the base, from the motion reference point at neutral, base axes */
    real plane[2];    /* crank: horizontal direction of its plane, unit vector */
    real crank;       /* [m] length of the crank */
    real rod;         /* [m] length of the rod */
    real share[6];    /* axis: weight of surge, sway, heave [m], roll, pitch, yaw [rad] */
} NAME(Actuator);

/* R of roll, pitch, yaw (z-y-x), row by row. */
INLINE void NAME(rotation)(const real *angles, real *r) {
    real sr, cr, sp, cp, sy, cy;
    NAME(sin_cos)(angles[0], &sr, &cr);
    NAME(sin_cos)(angles[1], &sp, &cp);
    NAME(sin_cos)(angles[2], &sy, &cy);
    r[0] = cp * cy, r[1] = sr * sp * cy - cr * sy, r[2] = cr * sp * cy + sr * sy;
    r[3] = cp * sy, r[4] = sr * sp * sy + cr * cy, r[5] = cr * sp * sy - sr * cy;
    r[6] = -sp, r[7] = sr * cp, r[8] = cr * cp;
}

/* Fill the platform joint's place from the motion reference point (`arm`) and from the base joint (`q`), base axes. */
INLINE void NAME(joint)(const NAME(Actuator) *a, const real *pose, const real *r, real *arm, real *q) {
    const real *p = a->platform;
    MC_UNROLL
    for (int i = 0; i < 3; i++) arm[i] = r[3 * i] * p[0] + r[3 * i + 1] * p[1] + r[3 * i + 2] * p[2];
    q[0] = pose[0] + arm[0] - a->base[0];
    q[1] = pose[1] + arm[1] - a->base[1];
    q[2] = -pose[2] + arm[2] - a->base[2];
}

/* Return the position of an actuator of a kind at a pose (surge, sway, heave up, roll, pitch, yaw) whose rotation is
   `r`; NaN if it cannot reach the pose, or if rod and crank are closer to one line than `straight`, the sine of their
   angle's difference from 90 deg. */
INLINE real NAME(position)(int kind, const NAME(Actuator) *a, const real *pose, const real *r, double straight) {
    real arm[3], q[3];
    if (kind == MC_AXIS) {
        real sum = ALL(0.0);
        for (int i = 0; i < 6; i++) sum = sum + a->share[i] * pose[i];
        return sum;
    }
    NAME(joint)(a, pose, r, arm, q);
    if (kind == MC_POST) return pose[2] - (arm[2] - a->platform[2]);
    const real square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
    if (kind == MC_LEG) return NAME(root)(square);
    const real e = -2.0 * a->crank * q[2];
    const real f = 2.0 * a->crank * (q[0] * a->plane[0] + q[1] * a->plane[1]);
    const real g = square - a->rod * a->rod + a->crank * a->crank;
    const real h = NAME(root)(e * e + f * f);
    const flag reached = NAME(magnitude)(g) <= straight * h;
    if (!NAME(any)(reached)) return ALL(NAN);
    return NAME(pick)(reached, NAME(arc_sine)(g / h) - NAME(angle_of)(f, e), ALL(NAN));
}
#endif
