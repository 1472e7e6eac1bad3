/* The templates for one double: the step of one rig. */
#ifndef MOTIONCUE_SCALAR_H
#define MOTIONCUE_SCALAR_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "motioncue/kernels/far_angle.h"

/* Places among the doubles of a motion and of a cue: records.pxd. */
enum {
    MC_SURGE,
    MC_SWAY,
    MC_HEAVE,
    MC_ROLL,
    MC_PITCH,
    MC_YAW,
    MC_ROLL_RATE,
    MC_PITCH_RATE,
    MC_YAW_RATE,
    MC_SPEED,
    MC_ENGINE_SPEED,
    MC_MOTION_TIME,
    MC_SURGE_DISPLACEMENT = MC_MOTION_TIME,
    MC_SWAY_DISPLACEMENT,
    MC_HEAVE_DISPLACEMENT,
    MC_CUE_TIME,
    MC_CUE_SIZE,
    MC_MOTION_SIZE = MC_MOTION_TIME + 2
};

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
