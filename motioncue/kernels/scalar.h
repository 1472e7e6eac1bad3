/* The templates compiled for one double: the step of one rig. */
#ifndef MOTIONCUE_SCALAR_H
#define MOTIONCUE_SCALAR_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "motioncue/kernels/far_angle.h"
#include "motioncue/kernels/records.h"

#define LANES 1
#define NAME(x) mc_##x
#include "motioncue/kernels/real.h"
#include "motioncue/kernels/trigonometry.h"
#include "motioncue/kernels/filters.h"
#include "motioncue/kernels/washout.h"

#undef LANES
#undef NAME
#include "motioncue/kernels/real.h"
#endif
