#define _GNU_SOURCE
#include "floor.h"

#include <arpa/inet.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>

#define G 9.80665

static inline double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static inline void cross(const double *a, const double *b, double *out) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}
static inline double within(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }

/* Sine and cosine of roll, pitch, yaw: of locals, or the compiler would not take both from one call. */
static inline void directions(const double *angle, double *s, double *c) {
    for (int i = 0; i < 3; i++) {
        const double x = angle[i];
        const double sine = sin(x), cosine = cos(x);
        s[i] = sine, c[i] = cosine;
    }
}

/* Frame to telemetry; the wire says x, y, z, w. */
static inline void unpack(const uint8_t *frame, telemetry_t *t) {
    float f[22];
    memcpy(&t->frame_duration, frame + 3, 8);
    memcpy(f, frame + 11, sizeof f);
    t->q[0] = f[9];
    for (int i = 0; i < 3; i++) {
        t->q[i + 1] = f[6 + i];
        t->position[i] = f[i];
        t->v[i] = f[10 + i];
        t->a[i] = f[13 + i];
        t->omega[i] = f[16 + i];
        t->alpha[i] = f[19 + i];
    }
}

/* World axes to body axes, at the occupant's head. */
static inline void body(const rig_t *restrict rig, const telemetry_t *restrict t, motion_t *restrict m) {
    double w = t->q[0], x = t->q[1], y = t->q[2], z = t->q[3];
    double n = 1.0 / sqrt(w * w + x * x + y * y + z * z);
    w *= n, x *= n, y *= n, z *= n;
    const double r[3][3] = {{1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)},
                            {2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)},
                            {2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)}};
    double axes[3][3], down[3], a[3], omega[3], alpha[3], arm[3], whirl[3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) axes[i][j] = dot(r[j], rig->car[i]);
    for (int i = 0; i < 3; i++) down[i] = dot(axes[i], rig->world[2]);
    m->angle[0] = atan2(down[1], down[2]);
    m->angle[1] = atan2(-down[0], sqrt(down[1] * down[1] + down[2] * down[2]));
    m->angle[2] = atan2(dot(axes[0], rig->world[1]), dot(axes[0], rig->world[0]));
    for (int i = 0; i < 3; i++) {
        a[i] = dot(axes[i], t->a);
        omega[i] = dot(axes[i], t->omega);
        alpha[i] = dot(axes[i], t->alpha);
    }
    cross(alpha, rig->head, arm);
    cross(omega, rig->head, whirl);
    for (int i = 0; i < 3; i++) a[i] += arm[i];
    cross(omega, whirl, arm);
    m->a[0] = a[0] + arm[0];
    m->a[1] = a[1] + arm[1];
    m->a[2] = -(a[2] + arm[2]);
    for (int i = 0; i < 3; i++) m->rate[i] = omega[i];
    m->speed = sqrt(dot(t->v, t->v));
    m->engine_speed = t->engine_speed;
}

static inline double scale(const filter_t *f, double u) { return within(f->gain * u, f->limit); }
static inline double second_order(filter_t *f, double u) {
    const double a = (u - f->b * f->sv - f->c0 * f->sx) * f->d2;
    const double v = f->sv + f->k * a, x = f->sx + f->k * v;
    f->sv = v + f->k * a;
    f->sx = x + f->k * v;
    f->v = v, f->x = x;
    return a;
}
static inline double high_pass(filter_t *f, double u) {
    const double a = (u - f->s1) * f->d1;
    f->s1 += f->g2 * a;
    return second_order(f, a);
}
static inline double lean(rig_t *rig, int i, double g_sin) {
    filter_t *f = &rig->lean[i];
    second_order(f, g_sin);
    const double change = within(asin(within(f->c0 * f->x, 1.0)) - rig->lean_angle[i], rig->lean_step);
    rig->lean_angle[i] += change;
    return change;
}
static inline void prime(filter_t *f, double u) { f->s1 = -f->g * u, f->sv = -f->k * u, f->sx = 0.0; }

/* What is felt on a platform at the cue's angles: rates and specific force from Euler rates and level accelerations. */
static inline void feel(const double *a, const double *rate, double *s, double *c, cue_t *restrict cue) {
    directions(cue->angle, s, c);
    cue->rate[0] = rate[0] - rate[2] * s[1];
    cue->rate[1] = rate[1] * c[0] + rate[2] * s[0] * c[1];
    cue->rate[2] = rate[2] * c[0] * c[1] - rate[1] * s[0];
    const double along = c[2] * a[0] + s[2] * a[1];
    const double across = c[2] * a[1] - s[2] * a[0];
    const double down = s[1] * along + c[1] * a[2];
    cue->a[0] = c[1] * along - s[1] * a[2];
    cue->a[1] = c[0] * across + s[0] * down;
    cue->a[2] = -(c[0] * down - s[0] * across + G);
}

/* The classical washout. */
static inline void washout(rig_t *restrict rig, const motion_t *restrict m, cue_t *restrict cue) {
    const double sr = sin(m->angle[0]), cr = cos(m->angle[0]), sp = sin(m->angle[1]), cp = cos(m->angle[1]);
    const filter_t *t = rig->translation, *o = rig->rotation;
    double *s = rig->sine, *c = rig->cosine;
    const double g_sin[2] = {scale(&t[0], m->a[0] + G * sp) / G, scale(&t[1], m->a[1] - G * sr * cp) / G};
    const double x = scale(&t[0], m->a[0]), y = scale(&t[1], m->a[1]), z = scale(&t[2], -m->a[2]);
    const double h = y * sr + z * cr;
    const double level[3] = {x * cp + h * sp, y * cr - z * sr, h * cp - x * sp};
    double p = scale(&o[0], m->rate[0]), q = scale(&o[1], m->rate[1]), r = scale(&o[2], m->rate[2]);
    const double turn = (q * s[0] + r * c[0]) / (c[1] > 0.2 ? c[1] : 0.2);
    const double euler[3] = {p + turn * s[1], q * c[0] - r * s[0], turn};
    if (!rig->primed) {
        for (int i = 0; i < 3; i++) prime(&rig->translation[i], level[i]), prime(&rig->rotation[i], euler[i]);
        for (int i = 0; i < 2; i++) prime(&rig->lean[i], g_sin[i]);
        rig->primed = 1;
    }
    double ax = high_pass(&rig->translation[0], level[0]);
    double ay = high_pass(&rig->translation[1], level[1]);
    double az = high_pass(&rig->translation[2], level[2]) - G;
    q = lean(rig, 0, g_sin[0]) * rig->rate_hz + high_pass(&rig->rotation[1], euler[1]);
    p = -lean(rig, 1, g_sin[1]) * rig->rate_hz + high_pass(&rig->rotation[0], euler[0]);
    r = high_pass(&rig->rotation[2], euler[2]);

    cue->angle[0] = o[0].v - rig->lean_angle[1];
    cue->angle[1] = o[1].v + rig->lean_angle[0];
    cue->angle[2] = o[2].v;
    const double level_a[3] = {ax, ay, az}, euler_rate[3] = {p, q, r};
    feel(level_a, euler_rate, s, c, cue);
    cue->speed = m->speed;
    cue->engine_speed = m->engine_speed;
    cue->travel[0] = t[0].x;
    cue->travel[1] = t[1].x;
    cue->travel[2] = -t[2].x;
}

#include "floor_adaptive.h"

/* One pair of the linear-quadratic washout; returns its acceleration. */
static inline double pair(pair_t *restrict p, double k, double car_force, double car_rate, double *x, double *lean) {
    const double force = p->kept[6] + p->roll_off * (car_force - p->kept[6]);
    const double rate = p->kept[7] + p->roll_off * (car_rate - p->kept[7]);
    double a = p->law[0][6] * force + p->law[0][7] * rate, r = p->law[1][6] * force + p->law[1][7] * rate;
    for (int i = 0; i < 6; i++) a += p->law[0][i] * p->kept[i], r += p->law[1][i] * p->kept[i];
    const double v = p->kept[2] + k * a, q = p->kept[4] + k * r;
    *x = p->kept[3] + k * v, *lean = p->kept[5] + k * q;
    p->kept[0] += 2.0 * p->otolith * (a + p->gravity * *lean - force - p->kept[0]);
    p->kept[1] += 2.0 * p->canal * (q - rate - p->kept[1]);
    p->kept[2] = v + k * a, p->kept[3] = *x + k * v, p->kept[4] = q + k * r, p->kept[5] = *lean + k * q;
    p->kept[6] = 2.0 * force - p->kept[6], p->kept[7] = 2.0 * rate - p->kept[7];
    return a;
}
static inline double follow(double *angle, double target, double own, double slack) {
    const double way = target - *angle, most = fmax(own, 0.0) + slack, least = fmin(own, 0.0) - slack;
    const double change = way > most ? most : way < least ? least : way;
    *angle += change;
    return change;
}

/* The linear-quadratic washout. */
static inline void optimal(optimal_t *restrict o, const motion_t *restrict m, cue_t *restrict cue) {
    const double sr = sin(m->angle[0]), cr = cos(m->angle[0]), sp = sin(m->angle[1]), cp = cos(m->angle[1]);
    const double felt[3] = {m->a[0] + G * sp, m->a[1] - G * sr * cp, m->a[2] + G * (cr * cp - 1.0)};
    const double turned[3] = {m->rate[1], m->rate[0], m->rate[2]};
    double *s = o->sine, *c = o->cosine, force[3], body[3], a[3], x[3], lean[3], change[3];
    for (int i = 0; i < 3; i++) {
        force[i] = within(o->pairs[i].gain[0] * felt[i], o->pairs[i].limit[0]);
        body[i] = within(o->pairs[i].gain[1] * turned[i], o->pairs[i].limit[1]);
    }
    const double turn = (body[0] * s[0] + body[2] * c[0]) / (c[1] > 0.2 ? c[1] : 0.2);
    const double rate[3] = {body[0] * c[0] - body[2] * s[0], -(body[1] + turn * s[1]), turn};
    for (int i = 0; i < 3; i++) a[i] = pair(&o->pairs[i], 0.5 / o->rate_hz, force[i], rate[i], &x[i], &lean[i]);
    for (int i = 0; i < 2; i++) lean[i] = asin(within(lean[i], 1.0));
    for (int i = 0; i < 3; i++) change[i] = follow(&o->angles[i], lean[i], rate[i] / o->rate_hz, o->pairs[i].slack);
    cue->angle[0] = -o->angles[1], cue->angle[1] = o->angles[0], cue->angle[2] = o->angles[2];
    const double level[3] = {a[0], a[1], -a[2] - G};
    const double euler[3] = {-change[1] * o->rate_hz, change[0] * o->rate_hz, change[2] * o->rate_hz};
    feel(level, euler, s, c, cue);
    cue->speed = m->speed;
    cue->engine_speed = m->engine_speed;
    for (int i = 0; i < 3; i++) cue->travel[i] = x[i];
}

/* Cue to the 88-byte packet, of which the constant bytes are there already; s, c: of roll, pitch, yaw. */
static inline void pack(const cue_t *cue, const double *s, const double *c, uint8_t *packet) {
    const float f[12] = {(float)cue->a[1],
                         (float)cue->a[0],
                         (float)cue->a[2],
                         (float)(s[0] * c[2] - c[0] * s[1] * s[2]),
                         (float)-(c[0] * s[1] * c[2] + s[0] * s[2]),
                         (float)(c[0] * c[1]),
                         (float)cue->angle[0],
                         (float)cue->angle[1],
                         (float)cue->angle[2],
                         (float)cue->rate[0],
                         (float)cue->rate[1],
                         (float)cue->rate[2]};
    memcpy(packet + 28, f, sizeof f);
}

void floor_filter(filter_t *f, int order, double gain, double limit, double omega, double zeta, double omega_b,
                  double dt) {
    memset(f, 0, sizeof *f);
    f->gain = gain;
    f->limit = limit;
    f->g = order == 3 ? tan(0.5 * omega_b * dt) : 0.0;
    f->g2 = 2.0 * f->g;
    f->d1 = 1.0 / (1.0 + f->g);
    f->c0 = order == 1 ? 0.0 : omega * omega;
    f->k = tan(0.5 * omega * dt) / omega;
    const double c1 = order == 1 ? omega : 2.0 * zeta * omega;
    f->b = c1 + f->c0 * f->k;
    f->d2 = 1.0 / (1.0 + c1 * f->k + f->c0 * f->k * f->k);
}

void floor_reset(rig_t *rig) {
    filter_t *all[8] = {rig->translation, rig->translation + 1, rig->translation + 2, rig->rotation,
                        rig->rotation + 1, rig->rotation + 2, rig->lean, rig->lean + 1};
    for (int i = 0; i < 8; i++) prime(all[i], 0.0);
    rig->lean_angle[0] = rig->lean_angle[1] = 0.0;
    for (int i = 0; i < 3; i++) rig->sine[i] = 0.0, rig->cosine[i] = 1.0;
    rig->primed = 0;
}

/* Work that keeps every unit of a processor busy, so that it is as fast as the share of it that one has. */
uint64_t floor_crowded(int64_t n) {
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    for (int64_t i = 0; i < n; i++) {
        a = (a ^ 9) + i, b = (b ^ 9) + i, c = (c ^ 9) + i, d = (d ^ 9) + i;
        e = (e ^ 9) + i, f = (f ^ 9) + i, g = (g ^ 9) + i, h = (h ^ 9) + i;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

void floor_unpack(const uint8_t *frames, telemetry_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) unpack(frames + i * FRAME_SIZE, &out[i]);
}
void floor_body(const rig_t *rig, const telemetry_t *in, motion_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) body(rig, &in[i], &out[i]);
}
void floor_washout(rig_t *rig, const motion_t *in, cue_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        washout(rig, &in[i], &out[i]);
        out[i].time = in[i].time;
    }
}
void floor_washout_repeat(rig_t *rig, const motion_t *in, cue_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) washout(rig, in, out);
}
void floor_optimal(optimal_t *o, const motion_t *in, cue_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        optimal(o, &in[i], &out[i]);
        out[i].time = in[i].time;
    }
}
void floor_pack(const cue_t *in, uint8_t *packets, int64_t n) {
    double s[3], c[3];
    for (int64_t i = 0; i < n; i++) {
        directions(in[i].angle, s, c);
        pack(&in[i], s, c, packets + i * PACKET_SIZE);
    }
}
void floor_step(rig_t *rig, const telemetry_t *in, uint8_t *packets, int64_t n) {
    motion_t motion;
    cue_t cue;
    for (int64_t i = 0; i < n; i++) {
        body(rig, &in[i], &motion);
        washout(rig, &motion, &cue);
        pack(&cue, rig->sine, rig->cosine, packets + i * PACKET_SIZE);
    }
}

/* The legs of a hexapod at a pose: surge, sway, heave [m, up], roll, pitch, yaw [rad]. */
static inline void legs_at(const hexapod_t *h, const double *pose, double *legs) {
    const double sr = sin(pose[3]), cr = cos(pose[3]), sp = sin(pose[4]), cp = cos(pose[4]);
    const double sy = sin(pose[5]), cy = cos(pose[5]);
    const double xx = cp * cy, xy = sr * sp * cy - cr * sy, xz = cr * sp * cy + sr * sy;
    const double yx = cp * sy, yy = sr * sp * sy + cr * cy, yz = cr * sp * sy - sr * cy;
    const double zx = -sp, zy = sr * cp, zz = cr * cp;
    for (int i = 0; i < 6; i++) {
        const double *a = h->top[i], *b = h->bottom[i];
        const double x = pose[0] + xx * a[0] + xy * a[1] + xz * a[2] - b[0];
        const double y = pose[1] + yx * a[0] + yy * a[1] + yz * a[2] - b[1];
        const double z = -pose[2] + zx * a[0] + zy * a[1] + zz * a[2] - b[2];
        legs[i] = sqrt(x * x + y * y + z * z);
    }
}
void floor_legs(const hexapod_t *h, const double *poses, double *legs, int64_t n) {
    for (int64_t i = 0; i < n; i++) legs_at(h, poses + 6 * i, legs + 6 * i);
}

/* Move the legs to a cue's pose; return 0 if a bound would be broken: range, speed, acceleration, room to stop. */
static inline int move_legs(hexapod_t *h, const cue_t *cue) {
    const double pose[6] = {cue->travel[0], cue->travel[1], cue->travel[2],
                            cue->angle[0], cue->angle[1], cue->angle[2]};
    double legs[6], ticks = 0.0, whole, way;
    legs_at(h, pose, legs);
    for (int i = 0; i < 6; i++) {
        const double move = legs[i] - h->leg[i];
        if (!(h->low <= legs[i] && legs[i] <= h->high && fabs(move) <= h->speed)) return 0;
        if (!(fabs(move - h->move[i]) <= h->acceleration)) return 0;
        ticks = fmax(ticks, fabs(move) / h->acceleration);
    }
    whole = ceil(ticks);
    way = whole > 1.0 ? whole - 0.5 * whole * (whole - 1.0) / ticks : 1.0;
    for (int i = 0; i < 6; i++) {
        const double move = legs[i] - h->leg[i];
        if (fabs(move) * way > (move > 0.0 ? h->high - h->leg[i] : h->leg[i] - h->low)) return 0;
    }
    for (int i = 0; i < 6; i++) {
        h->move[i] = legs[i] - h->leg[i];
        h->leg[i] = legs[i];
    }
    return 1;
}
static inline int hexapod_tick(rig_t *rig, hexapod_t *h, const motion_t *in, uint8_t *packet) {
    cue_t cue;
    float legs[6];
    washout(rig, in, &cue);
    const int moved = move_legs(h, &cue);
    for (int i = 0; i < 6; i++) legs[i] = (float)h->leg[i];
    memcpy(packet, legs, sizeof legs);
    return moved;
}
/* Return how many ticks broke a bound: the floor knows nothing better than to stay then. */
int64_t floor_hexapod(rig_t *rig, hexapod_t *h, const motion_t *in, uint8_t *packets, int64_t n) {
    int64_t broken = 0;
    for (int64_t i = 0; i < n; i++) broken += !hexapod_tick(rig, h, &in[i], packets + 24 * i);
    return broken;
}
int64_t floor_hexapod_repeat(rig_t *rig, hexapod_t *h, const motion_t *in, uint8_t *packet, int64_t n) {
    int64_t broken = 0;
    for (int64_t i = 0; i < n; i++) broken += !hexapod_tick(rig, h, in, packet);
    return broken;
}

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
}

/* The work of a tick, n times without waiting: washout, pack and, if fd is one, send; returns what was sent. */
int64_t floor_tick(rig_t *rig, const motion_t *in, uint8_t *packet, int fd, int port, int64_t n) {
    const struct sockaddr_in to = loopback(port);
    int64_t sent = 0;
    cue_t cue;
    for (int64_t i = 0; i < n; i++) {
        washout(rig, in, &cue);
        pack(&cue, rig->sine, rig->cosine, packet);
        if (fd >= 0) sent += sendto(fd, packet, PACKET_SIZE, 0, (const struct sockaddr *)&to, sizeof to) == PACKET_SIZE;
    }
    return sent;
}
