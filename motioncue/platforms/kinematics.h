/* Kinematics of motion platforms: from a pose to the positions of its actuators, and how these change as it moves.
 *
 * Axes are x forward, y right, z down.  A pose is the displacement of the motion reference point from neutral, and R,
 * which takes platform axes to base axes.  Each actuator depends on the pose alone, so a platform is any list of
 * actuators: six legs are a hexapod, a sliding table under it adds another.  With q = p + R a - b, from the base joint
 * b to the platform joint a (both measured from the motion reference point at neutral), the position of a
 *
 * leg    is its length |q|;
 * crank  is the angle of a crank of length c that turns in a vertical plane and holds the joint by a rod of length s:
 *        asin(g / hypot(e, f)) - atan2(f, e), e = 2 c (up of q), f = 2 c (q along the plane), g = |q|^2 - s^2 + c^2;
 * post   is the height of the joint above neutral;
 * axis   is one channel of the pose, scaled.
 *
 * Tables, up to two sleds and a turntable, carry the frame: the sleds stand on the ground, the turntable on them, and turns
 * about a vertical line.  The frame's own pose is what is left of the whole pose once the tables have moved, exactly:
 * p' = Rz(-t) (p - s - c) + c and yaw' = yaw - t, with the sleds at s, the turntable at t and its line through c.  How much
 * the tables take is free.  At rest they take all that they reach (mc_table_rest), so that the frame stays over their
 * middle; reach.h splits what moves.
 *
 * The position of one actuator is also for lanes (real.h).
 *
 * Source of the crank: the closed form common for rotary Stewart platforms, derived from |q - crank| = s.
 */
#ifndef NAME /* included by itself: for one double */
#ifndef MOTIONCUE_KINEMATICS_H
#define MOTIONCUE_KINEMATICS_H
#include <math.h>
#include <string.h>

enum { /* kinds of actuators */
    MC_LEG,
    MC_CRANK,
    MC_POST,
    MC_AXIS,
    MC_TABLE,
    MC_MOST_TABLES = 3,    /* surge, sway, yaw */
    MC_MOST_ACTUATORS = 12 /* actuators of one platform at most */
};

#define MC_TEMPLATE "motioncue/platforms/kinematics.h"
#include "motioncue/core/real.h"

typedef struct {
    int channel; /* of the pose that it takes: 0 surge, 1 sway, 5 yaw */
    double low;  /* [m, rad] ends of its travel, of the split at rest */
    double high;
    double room;  /* [m, rad] of the frame: fast motion that is left to it at most, and so far before the table's end it begins
                     to take of the slow; so far beyond, the table has arrived */
    double below; /* [Hz] slower motion is the table's */
    double pace;  /* share of a difference that each of two lags of that split covers in a tick; 0: not known, 1: no split */
} mc_Table;

typedef struct {
    int count;                   /* actuators, without the tables that carry them */
    int kinds[MC_MOST_ACTUATORS]; /* with the tables, which come last */
    mc_Actuator actuators[MC_MOST_ACTUATORS];
    int tables;
    mc_Table table[MC_MOST_TABLES];
    double line[2]; /* [m] forward and right of the motion reference point at neutral: where a turntable's line is */
} mc_Platform;

/* Return the position of a table for a part of its channel: that part, as far as the table goes, without a corner at its
   ends.  `slope` is its derivative, unless it is NULL. */
static inline double mc_table_rest(double low, double high, double most_knee, double part, double *slope) {
    const double sign = part < 0.0 ? -1.0 : 1.0, end = part < 0.0 ? -low : high, knee = fmin(most_knee, end);
    const double over = sign * part - (end - knee);
    if (slope) *slope = over <= 0.0 ? 1.0 : over >= 2.0 * knee ? 0.0 : 1.0 - over / (2.0 * knee);
    if (over <= 0.0) return part;
    return over >= 2.0 * knee ? sign * end : part - sign * over * over / (4.0 * knee);
}

/* Fill `own` with the frame's pose on tables at these positions. */
static inline void mc_on_tables(const mc_Platform *p, const double *pose, const double *tables, double *own) {
    double turn = 0.0;
    for (int i = 0; i < 6; i++) own[i] = pose[i];
    for (int k = 0; k < p->tables; k++) {
        own[p->table[k].channel] -= tables[k];
        if (p->table[k].channel == 5) turn = tables[k];
    }
    if (turn != 0.0) {
        const double x = own[0] - p->line[0], y = own[1] - p->line[1];
        double sine, cosine;
        mc_sin_cos(turn, &sine, &cosine);
        own[0] = p->line[0] + cosine * x + sine * y;
        own[1] = p->line[1] - sine * x + cosine * y;
    }
}

/* Make the frame's own pose the whole pose: the inverse of mc_on_tables. */
static inline void mc_off_tables(const mc_Platform *p, const double *tables, double *pose) {
    for (int k = 0; k < p->tables; k++)
        if (p->table[k].channel == 5 && tables[k] != 0.0) {
            const double x = pose[0] - p->line[0], y = pose[1] - p->line[1];
            double sine, cosine;
            mc_sin_cos(tables[k], &sine, &cosine);
            pose[0] = p->line[0] + cosine * x - sine * y;
            pose[1] = p->line[1] + sine * x + cosine * y;
        }
    for (int k = 0; k < p->tables; k++) pose[p->table[k].channel] += tables[k];
}

/* Fill in the derivatives by turns about the base axes, from those by displacement of a joint on this arm. */
static inline void mc_turns(const double *arm, double *row) {
    row[3] = arm[1] * row[2] - arm[2] * row[1];
    row[4] = arm[2] * row[0] - arm[0] * row[2];
    row[5] = arm[0] * row[1] - arm[1] * row[0];
}

/* Fill `row` with the derivatives of an actuator's position, which it has at this pose, by displacement (x, y, z down
   [m]) and by turns about the base axes [rad]. */
static inline void mc_row(
    int kind, const mc_Actuator *a, const double *pose, const double *r, double position, double *row
) {
    double arm[3], q[3];
    if (kind == MC_AXIS) { /* valid near neutral, where the angles are turns about the axes */
        for (int i = 0; i < 6; i++) row[i] = a->share[i];
        row[2] = -row[2];
        return;
    }
    mc_joint(a, pose, r, arm, q);
    if (kind == MC_POST) {
        row[0] = row[1] = 0.0;
        row[2] = -1.0;
        mc_turns(arm, row);
        row[2] = -a->share[2];
        return;
    } else if (kind == MC_LEG) {
        for (int i = 0; i < 3; i++) row[i] = q[i] / position;
    } else { /* derivative of e sin(position) + f cos(position) = g */
        double sine, cosine, slope;
        mc_sin_cos(position, &sine, &cosine);
        slope = -2.0 * a->crank * (q[2] * cosine + (q[0] * a->plane[0] + q[1] * a->plane[1]) * sine);
        row[0] = (2.0 * q[0] - 2.0 * a->crank * a->plane[0] * cosine) / slope;
        row[1] = (2.0 * q[1] - 2.0 * a->crank * a->plane[1] * cosine) / slope;
        row[2] = (2.0 * q[2] + 2.0 * a->crank * sine) / slope;
    }
    mc_turns(arm, row);
}

/* Fill the positions of all actuators but tables, at the frame's own pose; return whether each of them can reach it. */
static inline int mc_frame_inverse(
    const mc_Platform *p, const double *pose, double straight, double *positions, double *rows
) {
    double r[9], sum = 0.0;
    mc_rotation(pose + 3, r);
    for (int i = 0; i < p->count; i++) {
        const mc_Actuator *a = &p->actuators[i];
        positions[i] = mc_position(p->kinds[i], a, pose, r, straight);
        if (rows) mc_row(p->kinds[i], a, pose, r, positions[i], rows + 6 * i);
        sum += positions[i];
    }
    return sum == sum;
}

/* Rewrite derivatives of `count` actuators by displacement along and turns about the base axes as derivatives by the
   channels of the pose: heave is up, and a turn of d is a change of roll, pitch, yaw along the axes about which they
   turn, x of a frame yawed and pitched, y of one yawed, z. */
static inline void mc_by_channels(const int *kinds, int count, const double *pose, double *rows) {
    double sp, cp, sy, cy;
    mc_sin_cos(pose[4], &sp, &cp);
    mc_sin_cos(pose[5], &sy, &cy);
    for (int i = 0; i < count; i++) {
        double *row = rows + 6 * i;
        const double along = cy * row[3] + sy * row[4], across = cy * row[4] - sy * row[3];
        row[2] = -row[2];
        if (kinds[i] == MC_AXIS) continue;
        row[3] = cp * along - sp * row[5];
        row[4] = across;
    }
}

/* Sine of the largest angle between crank and rod, from square: within 15 deg of one line, a crank hardly holds its rod. */
#define MC_STRAIGHT 0.966

/* Fill how near to one line each crank and its rod are at the frame's own pose: the sine of their angle's difference from
   90 deg, g / h, beyond 1 out of reach; and its derivatives by the channels of the pose.  0 for other actuators. */
static inline void mc_straightness(const mc_Platform *p, const double *pose, double *found, double *rows) {
    double r[9], arm[3], q[3];
    mc_rotation(pose + 3, r);
    for (int i = 0; i < p->count; i++) {
        const mc_Actuator *a = &p->actuators[i];
        double along, square, h, *row = rows + 6 * i;
        found[i] = 0.0;
        memset(row, 0, 6 * sizeof *row);
        if (p->kinds[i] != MC_CRANK) continue;
        mc_joint(a, pose, r, arm, q);
        along = q[0] * a->plane[0] + q[1] * a->plane[1];
        square = q[2] * q[2] + along * along;
        h = 2.0 * a->crank * sqrt(square);
        found[i] = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] - a->rod * a->rod + a->crank * a->crank) / h;
        row[0] = 2.0 * q[0] / h - found[i] * along * a->plane[0] / square;
        row[1] = 2.0 * q[1] / h - found[i] * along * a->plane[1] / square;
        row[2] = 2.0 * q[2] / h - found[i] * q[2] / square;
        mc_turns(arm, row);
    }
    mc_by_channels(p->kinds, p->count, pose, rows);
}

/* Fill the positions of all actuators, tables at rest last, and derivatives by the whole pose's motion unless `rows` is
   NULL. */
static inline int mc_table_inverse(
    const mc_Platform *p, const double *pose, double straight, double *positions, double *rows
) {
    double own[6], slopes[6] = {0.0}, yawed[6] = {0.0}, sp, cp, sy, cy, st = 0.0, ct = 1.0;
    double *tables = positions + p->count;
    int reached;
    for (int k = 0; k < p->tables; k++) {
        const mc_Table *t = &p->table[k];
        tables[k] = mc_table_rest(t->low, t->high, t->room, pose[t->channel], &slopes[t->channel]);
        if (t->channel == 5) mc_sin_cos(tables[k], &st, &ct);
    }
    mc_on_tables(p, pose, tables, own);
    reached = mc_frame_inverse(p, own, straight, positions, rows);
    if (!rows) return reached;
    mc_sin_cos(pose[4], &sp, &cp);
    mc_sin_cos(pose[5], &sy, &cy);
    yawed[3] = cy * sp / cp, yawed[4] = sy * sp / cp, yawed[5] = 1.0; /* yaw's change by turns about the base axes */
    for (int i = 0; i < p->count; i++) {
        double *row = rows + 6 * i, r[6];
        const double x = own[0] - p->line[0], y = own[1] - p->line[1];
        double turned;
        if (p->kinds[i] == MC_AXIS) continue;
        memcpy(r, row, sizeof r);
        turned = slopes[5] * (r[0] * y - r[1] * x - r[5]); /* by the table's turn beneath a frame that stays */
        row[0] = (1.0 - slopes[0]) * (ct * r[0] - st * r[1]);
        row[1] = (1.0 - slopes[1]) * (st * r[0] + ct * r[1]);
        row[3] = ct * r[3] - st * r[4];
        row[4] = st * r[3] + ct * r[4];
        for (int j = 3; j < 6; j++) row[j] += turned * yawed[j];
    }
    for (int k = 0; k < p->tables; k++) {
        double *row = rows + 6 * (p->count + k);
        const int channel = p->table[k].channel;
        for (int j = 0; j < 6; j++) row[j] = channel == 5 ? slopes[5] * yawed[j] : channel == j ? slopes[j] : 0.0;
    }
    return reached;
}

static inline int mc_inverse(const mc_Platform *p, const double *pose, double *positions, double *rows) {
    if (p->tables) return mc_table_inverse(p, pose, 1.0, positions, rows);
    return mc_frame_inverse(p, pose, 1.0, positions, rows);
}

/* As mc_inverse, with derivatives by the channels of the pose: surge, sway, heave up, roll, pitch, yaw. */
static inline int mc_slopes(const mc_Platform *p, const double *pose, double *positions, double *rows) {
    const int reached = mc_inverse(p, pose, positions, rows);
    mc_by_channels(p->kinds, p->count + p->tables, pose, rows);
    return reached;
}

/* As mc_inverse; but a pose that brings a crank that close to its rod is out of reach: no wanted pose may. */
static inline int mc_inverse_held(const mc_Platform *p, const double *pose, double *positions, double *rows) {
    if (p->tables) return mc_table_inverse(p, pose, MC_STRAIGHT, positions, rows);
    return mc_frame_inverse(p, pose, MC_STRAIGHT, positions, rows);
}

/* Find the frame's own pose of given positions from a first guess in `pose`: Gauss-Newton with the smallest step where the
   actuators leave a direction free; angles are steps of roll, pitch, yaw, so that posts leave yaw as it is.  Returns
   the number of steps, or -1 if it has not converged within `steps`. */
static inline int mc_frame_forward(const mc_Platform *p, const double *positions, double *pose, int steps) {
    double rows[6 * MC_MOST_ACTUATORS], at[MC_MOST_ACTUATORS], normal[6][6], step[6];
    for (int n = 0; n < steps; n++) {
        double trace = 0.0, size = 0.0;
        if (!mc_frame_inverse(p, pose, 1.0, at, rows)) return -1;
        mc_by_channels(p->kinds, p->count, pose, rows);
        memset(normal, 0, sizeof normal);
        memset(step, 0, sizeof step);
        for (int k = 0; k < p->count; k++) {
            const double *row = rows + 6 * k;
            for (int i = 0; i < 6; i++) {
                step[i] += row[i] * (positions[k] - at[k]);
                for (int j = 0; j <= i; j++) normal[i][j] += row[i] * row[j];
            }
        }
        for (int i = 0; i < 6; i++) trace += normal[i][i];
        for (int i = 0; i < 6; i++) { /* Cholesky; the ridge keeps free directions unchanged */
            normal[i][i] += 1e-12 * trace;
            for (int j = 0; j <= i; j++) {
                double sum = normal[i][j];
                for (int k = 0; k < j; k++) sum -= normal[i][k] * normal[j][k];
                normal[i][j] = i == j ? sqrt(sum) : sum / normal[j][j];
            }
            for (int k = 0; k < i; k++) step[i] -= normal[i][k] * step[k];
            step[i] /= normal[i][i];
        }
        for (int i = 5; i >= 0; i--) {
            for (int k = i + 1; k < 6; k++) step[i] -= normal[k][i] * step[k];
            step[i] /= normal[i][i];
        }
        for (int i = 0; i < 6; i++) {
            pose[i] += step[i];
            size += fabs(step[i]);
        }
        if (size < 1e-10) return n + 1;
        if (!(size < 10.0)) return -1;
    }
    return -1;
}

/* As mc_frame_forward, of the whole pose. */
static inline int mc_forward(const mc_Platform *p, const double *positions, double *pose, int steps) {
    double own[6];
    int taken;
    if (!p->tables) return mc_frame_forward(p, positions, pose, steps);
    mc_on_tables(p, pose, positions + p->count, own);
    taken = mc_frame_forward(p, positions, own, steps);
    if (taken < 0) { /* tables that are elsewhere than the guess says: from the frame's own neutral */
        memset(own, 0, sizeof own);
        taken = mc_frame_forward(p, positions, own, steps);
    }
    mc_off_tables(p, positions + p->count, own);
    memcpy(pose, own, sizeof own);
    return taken;
}
#endif
#else

/* Holds only doubles: in lanes, each double becomes a vector. */
typedef struct {
    real platform[3]; /* [m] joint on the platform, from the motion reference point, platform axes */
    real base[3];     /* [m] joint on the base, from the motion reference point at neutral, base axes */
    real plane[2];    /* crank: horizontal direction of its plane, unit vector */
    real crank;       /* [m] length of the crank */
    real rod;         /* [m] length of the rod */
    real share[6];    /* axis: weight of surge, sway, heave [m], roll, pitch, yaw [rad]; post: of heave, 0 where a joint holds it */
} NAME(Actuator);

/* R of roll, pitch, yaw (z-y-x), row by row. */
INLINE void NAME(rotation)(const real *angles, real *r) {
    real sr, cr, sp, cp, sy, cy;
    NAME(sin_cos_of_two)(angles[0], angles[1], &sr, &cr, &sp, &cp);
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
    if (kind == MC_POST) return a->share[2] * pose[2] - (arm[2] - a->platform[2]);
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
