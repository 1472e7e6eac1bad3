/* The positions of a platform's actuators at a pose, or at as much of the pose as they reach.
 *
 * Limiting a single actuator at a pose out of its reach would give another kind of motion.  So parts of the pose give
 * way, in an order: the first as far as necessary, the next only if the first is gone.  The rest keeps its sign and its
 * kind.  Neutral is always reached.
 */
#ifndef MOTIONCUE_REACH_H
#define MOTIONCUE_REACH_H
#include "motioncue/kernels/platform.h"
#include "motioncue/kernels/keep.h"

enum { MC_SHARE_HALVINGS = 52 }; /* to the last bit: a share that varies moves an actuator that rides on its end */
enum { MC_YAWING, MC_HEAVING, MC_TRAVEL, MC_TILT, MC_PARTS }; /* yaw; heave; surge and sway; roll and pitch */

static inline int mc_within(const mc_Platform *p, const mc_Bounds *bounds, const double *pose, double *positions) {
    if (!mc_inverse(p, pose, positions, NULL)) return 0;
    for (int i = 0; i < p->count; i++)
        if (!(bounds[i].low <= positions[i] && positions[i] <= bounds[i].high)) return 0;
    return 1;
}

static inline void mc_scale_part(double *pose, const double *wanted, int part, double share) {
    static const int first[MC_PARTS] = {5, 2, 0, 3}, last[MC_PARTS] = {5, 2, 1, 4};
    for (int i = first[part]; i <= last[part]; i++) pose[i] = share > 0.0 ? share * wanted[i] : 0.0;
}

/* Fill `positions` with those of `wanted`, or of as much of it as is within all bounds; return whether that is all of
   it. */
static inline int mc_reach(
    const mc_Platform *p, const mc_Bounds *bounds, const int *order, const double *wanted, double *positions
) {
    double pose[6];
    double most = 1.0, least = 0.0;
    int part = 0;
    if (mc_within(p, bounds, wanted, positions)) return 1;
    memcpy(pose, wanted, sizeof pose);
    for (; part < MC_PARTS; part++) { /* find the part that need not give way completely */
        mc_scale_part(pose, wanted, order[part], 0.0);
        if (mc_within(p, bounds, pose, positions)) break;
    }
    if (part == MC_PARTS) return 0; /* neutral is out of reach, which is refused before anything runs */
    for (int k = 0; k < MC_SHARE_HALVINGS; k++) {
        const double share = 0.5 * (least + most);
        mc_scale_part(pose, wanted, order[part], share);
        if (mc_within(p, bounds, pose, positions)) least = share;
        else most = share;
    }
    mc_scale_part(pose, wanted, order[part], least);
    mc_inverse(p, pose, positions, NULL);
    return 0;
}
#endif
