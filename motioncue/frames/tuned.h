/* Settings of an intake that may change while it runs, and the slot that passes them to the receiver. */
#ifndef MOTIONCUE_TUNED_H
#define MOTIONCUE_TUNED_H
#include "motioncue/core/threads.h"

typedef struct {
    double acceleration; /* thresholds of the watch, explained in watch.pxd */
    double rate;
    double frozen_s;
    double slack_s;
    double frame_jump_s;
    double acceleration_step;
    double rate_step;
    double velocity_error;
    double attitude_error;
    double head[3]; /* forward, right, down of the motion reference point [m] */
    double move_s;  /* how long the head takes to move there [s] */
    int64_t number;      /* number of the settings, for recordings */
} Tuned;

MC_SLOT(Tuned, tuned)
#endif
