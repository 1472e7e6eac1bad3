/* The floor: one rig's whole step in plain C, written for one rig and nothing else.
 *
 * It computes the same numbers as the package's kernels (the benchmarks assert that first) and is compiled by the same
 * compiler with the same flags.  It has no tables, no options and no other algorithm: the package's additional cost is
 * the price of those.  Keep it minimal: if it becomes slower, the ratios mean nothing.
 */
#ifndef FLOOR_H
#define FLOOR_H
#include <stdint.h>

enum { FRAME_SIZE = 107, PACKET_SIZE = 88 };

typedef struct { /* the simulator's frame, in SI units and doubles */
    double q[4], angles[3], position[3], v[3], a[3], omega[3], alpha[3], forward[3], up[3];
    double engine_speed, speed, frame_duration, stamp;
} telemetry_t;

typedef struct { /* the car's motion in body axes: surge, sway, heave; roll, pitch, yaw; their rates */
    double a[3], angle[3], rate[3], speed, engine_speed;
    int64_t time;
    double frame_time;
} motion_t;

typedef struct { /* the cue, in the same order */
    double a[3], angle[3], rate[3], speed, engine_speed, travel[3];
    int64_t time;
} cue_t;

typedef struct { /* a high-pass filter of first to third order and its integrals, trapezoidal rule */
    double gain, limit;   /* limit of the scaled input */
    double g, g2, d1;     /* s / (s + w_b): g = tan(w_b dt / 2), twice that, 1 / (1 + g) */
    double c0, b, k, d2;  /* s^2 / (s^2 + c1 s + c0): k = tan(w dt / 2) / w, b = c1 + c0 k, 1 / (1 + b k) */
    double s1, sv, sx;    /* states */
    double v, x;          /* first and second integral of the output */
} filter_t;

typedef struct {
    double world[3][3], car[3][3], head[3]; /* rows north, east, down; rows forward, right, down; [m] */
    filter_t translation[3], rotation[3], lean[2];
    double lean_angle[2], lean_step;        /* [rad]; [rad/tick] */
    double sine[3], cosine[3];              /* sine and cosine of the platform's roll, pitch, yaw */
    double rate_hz;
    int primed;
} rig_t;

typedef struct { /* a pair of the linear-quadratic washout, trapezoidal rule */
    double gain[2], limit[2], gravity, slack; /* of force and rate; [rad/tick] */
    double otolith, canal, roll_off, law[2][8];
    double kept[8];                         /* errors behind otolith and canal; velocity, travel, rate, lean; the car's, low-passed */
} pair_t;

typedef struct {
    pair_t pairs[3];
    double angles[3], sine[3], cosine[3];   /* pitch, less roll, yaw [rad]; of the platform's roll, pitch, yaw */
    double rate_hz;
} optimal_t;

typedef struct { /* a hexapod with legs, and where they are */
    double top[6][3], bottom[6][3];         /* [m], from the motion reference point: platform axes; at neutral, base axes */
    double low, high, speed, acceleration;  /* [m]; [m/tick]; [m/tick^2] */
    double leg[6], move[6];                 /* [m]; [m/tick] */
} hexapod_t;

/* The adaptive washout: a parameter between bounds; a section of second order; surge with pitch or sway with roll. */
typedef struct {
    double start, span, low, high, moved;
} parameter_t;

typedef struct {
    double c0, b, k, d, sv, sx, v, x;
} section_t;

typedef struct {
    double force_gain, force_limit, rate_gain, rate_limit, tilt_limit, tilt_rate, smoothing, weights[4];
    section_t travel, by[3];
    parameter_t p[3];
    double smooth, tilt, turned, tilt_by, turned_by[2];
} adaptive_pair_t;

typedef struct {
    adaptive_pair_t pairs[2];
    double heave_gain, heave_limit, outer_g, outer_d, outer, heave_weights[3];
    section_t heave, heave_by;
    parameter_t heave_p, yaw_p;
    double yaw_gain, yaw_limit, yaw_corner, yaw_d, yaw_weights[2], yaw, yaw_by;
    double k, descent, back, pace, sine[3], cosine[3];
    int primed;
} adaptive_t;

void floor_filter(filter_t *f, int order, double gain, double limit, double omega, double zeta, double omega_b,
                  double dt);
void floor_reset(rig_t *rig);
uint64_t floor_crowded(int64_t n);

void floor_unpack(const uint8_t *frames, telemetry_t *out, int64_t n);
void floor_body(const rig_t *rig, const telemetry_t *in, motion_t *out, int64_t n);
void floor_washout(rig_t *rig, const motion_t *in, cue_t *out, int64_t n);
void floor_washout_repeat(rig_t *rig, const motion_t *in, cue_t *out, int64_t n);
void floor_optimal(optimal_t *o, const motion_t *in, cue_t *out, int64_t n);
void floor_pack(const cue_t *in, uint8_t *packets, int64_t n);
void floor_step(rig_t *rig, const telemetry_t *in, uint8_t *packets, int64_t n);

void floor_legs(const hexapod_t *h, const double *poses, double *legs, int64_t n);
int64_t floor_hexapod(rig_t *rig, hexapod_t *h, const motion_t *in, uint8_t *packets, int64_t n);
int64_t floor_hexapod_repeat(rig_t *rig, hexapod_t *h, const motion_t *in, uint8_t *packet, int64_t n);

void floor_adaptive(adaptive_t *rig, const motion_t *in, cue_t *out, int64_t n);
void floor_adaptive_repeat(adaptive_t *rig, const motion_t *in, cue_t *out, int64_t n);

int64_t floor_tick(rig_t *rig, const motion_t *in, uint8_t *packet, int fd, int port, int64_t n);
#endif
