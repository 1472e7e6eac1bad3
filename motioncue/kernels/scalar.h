/* The templates compiled for one double: the step of one rig. */
#ifndef MOTIONCUE_SCALAR_H
#define MOTIONCUE_SCALAR_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "motioncue/kernels/far_angle.h"
#include "motioncue/kernels/records.h"

#if defined(__clang__)
#define MC_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define MC_UNROLL _Pragma("GCC unroll 32")
#else
#define MC_UNROLL
#endif

enum { /* kinds of actuators, see platform.h */
    MC_LEG,
    MC_CRANK,
    MC_POST,
    MC_AXIS,
    MC_MOST_ACTUATORS = 12 /* actuators of one platform at most */
};

#define LANES 1
#define NAME(x) mc_##x
#include "motioncue/kernels/real.h"
#include "motioncue/kernels/trigonometry.h"
#include "motioncue/kernels/filters.h"
#include "motioncue/kernels/washout.h"
#include "motioncue/kernels/optimal.h"
#include "motioncue/kernels/adaptive.h"
#include "motioncue/kernels/actuator.h"
#include "motioncue/kernels/margin.h"

#undef LANES
#undef NAME
#include "motioncue/kernels/real.h"
#endif
