/* Templates compiled for one double: the step of one rig.
 *
 * A template includes this header with MC_TEMPLATE naming itself; without it, the header gives what all of them use:
 * arithmetic, trigonometry and filters.  A template that is included by itself, without NAME, is compiled this way once.
 */
#ifndef MOTIONCUE_SCALAR_H
#define MOTIONCUE_SCALAR_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "motioncue/core/records.h"

#if defined(__clang__)
#define MC_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define MC_UNROLL _Pragma("GCC unroll 32")
#else
#define MC_UNROLL
#endif

#define LANES 1
#define NAME(x) mc_##x
#define MC_REAL
#include "motioncue/core/real.h"
#undef MC_REAL
#include "motioncue/core/math.h"
#include "motioncue/core/filters.h"
#undef LANES
#undef NAME
#include "motioncue/core/real.h"
#endif

#ifdef MC_TEMPLATE
#define LANES 1
#define NAME(x) mc_##x
#include "motioncue/core/real.h"
#include MC_TEMPLATE
#undef LANES
#undef NAME
#include "motioncue/core/real.h"
#endif
