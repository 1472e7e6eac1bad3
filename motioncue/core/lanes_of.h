/* What MC_OVER_LANES becomes on one kind of machine: included by lanes.h once for each, with LANES and NAME defined. */
#include "motioncue/core/real.h"
#include "motioncue/core/trigonometry.h"
#include "motioncue/core/filters.h"
#include "motioncue/core/ticks.h"
#include MC_OVER_LANES
