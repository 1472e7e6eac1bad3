/* Roll, pitch and yaw side by side: three angles for little more than the time of one, with the bits of `angle_of`. */
#ifndef NAME /* included by itself: for every kind of machine */
#ifndef MOTIONCUE_ANGLES_LANES_H
#define MOTIONCUE_ANGLES_LANES_H
#define MC_OVER_LANES "motioncue/frames/angles_lanes.h"
#include "motioncue/core/lanes.h"
#undef MC_OVER_LANES

static void (*const mc_three_angles[])(double, double, double, double, double, double, double *) =
    MC_OF_MACHINES(mc_three_angles);
#endif
#else

/* Fill `out` with the angles of three vectors (x, y) from the x axis [rad].  Numbers come in registers, because a vector
   read from numbers just stored one by one waits for them. */
static void NAME(three_angles)(double ya, double xa, double yb, double xb, double yc, double xc, double *out) {
#if LANES == 1
    out[0] = NAME(angle_of)(ya, xa), out[1] = NAME(angle_of)(yb, xb), out[2] = NAME(angle_of)(yc, xc);
#elif LANES == 2
    const real two = NAME(angle_of)((real){ya, yb}, (real){xa, xb}), one = NAME(angle_of)((real){yc, yc}, (real){xc, xc});
    out[0] = two[0], out[1] = two[1], out[2] = one[0];
#else /* the lanes that are left repeat an angle: none is tiny for them alone */
#if LANES == 4
    const real y = {ya, yb, yc, yc}, x = {xa, xb, xc, xc};
#else
    const real y = {ya, yb, yc, yc, yc, yc, yc, yc}, x = {xa, xb, xc, xc, xc, xc, xc, xc};
#endif
    const real angles = NAME(angle_of)(y, x);
    out[0] = angles[0], out[1] = angles[1], out[2] = angles[2];
#endif
}
#endif
