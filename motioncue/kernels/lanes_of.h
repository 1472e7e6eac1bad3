/* What MC_OVER_LANES becomes on one kind of machine: included by lanes.h once for each, with LANES and NAME defined. */
#include "motioncue/kernels/real.h"
#include "motioncue/kernels/trigonometry.h"
#include "motioncue/kernels/filters.h"
#include "motioncue/kernels/ticks.h"
#include MC_OVER_LANES
