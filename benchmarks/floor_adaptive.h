/* The coordinated adaptive washout in plain C, for one rig and nothing else; included by floor.c. */

static inline double section(section_t *f, double u) {
    const double a = (u - f->b * f->sv - f->c0 * f->sx) * f->d;
    f->v = f->sv + f->k * a, f->x = f->sx + f->k * f->v;
    f->sv = f->v + f->k * a;
    f->sx = f->x + f->k * f->v;
    return a;
}
static inline double value(const parameter_t *p) { return p->start + p->span * p->moved; }
static inline void descend(const adaptive_t *w, parameter_t *p, double share, double gradient) {
    const double next = p->moved - within(w->back * p->moved + share * gradient, w->pace);
    p->moved = next > p->high ? p->high : next < p->low ? p->low : next;
}

static inline double adapt_pair(const adaptive_t *w, adaptive_pair_t *c, double f, double turn, double *angle, double *rate) {
    parameter_t *p = c->p;
    const double k = w->k, share = value(&p[0]), corner = value(&p[1]), turning = value(&p[2]);
    const double d = 1.0 / (1.0 + k * corner), pace = corner * d;
    const double smoothed = c->smoothing * (within(f / G, c->tilt_limit) - c->smooth);
    const double aim = c->smooth + k * smoothed - c->tilt, wanted = pace * aim, tilt = within(wanted, c->tilt_rate);
    const double tilt_by = tilt == wanted ? d * d * aim - pace * c->tilt_by : 0.0;
    const double turned = d * (turning * turn) - pace * c->turned;
    const double turned_by[2] = {-(d * d * (k * (turning * turn) + c->turned) + pace * c->turned_by[0]),
                                 d * turn - pace * c->turned_by[1]};
    const double rate_by[3] = {0.0, tilt_by + turned_by[0], turned_by[1]};
    *rate = tilt + turned;
    *angle = c->tilt + c->turned + k * *rate;
    const double angle_by[3] = {0.0, c->tilt_by + c->turned_by[0] + k * rate_by[1], c->turned_by[1] + k * rate_by[2]};
    c->smooth += 2.0 * k * smoothed;
    c->tilt += 2.0 * k * tilt, c->turned += 2.0 * k * turned, c->tilt_by += 2.0 * k * tilt_by;
    c->turned_by[0] += 2.0 * k * turned_by[0], c->turned_by[1] += 2.0 * k * turned_by[1];

    const double left = f - G * *angle;
    const double a = section(&c->travel, share * left);
    const double a_by[3] = {section(&c->by[0], left), section(&c->by[1], -(share * G) * angle_by[1]),
                            section(&c->by[2], -(share * G) * angle_by[2])};
    const double *weight = c->weights;
    const double error[4] = {weight[0] * (left - a), weight[1] * (turn - *rate), weight[2] * c->travel.x,
                             weight[3] * c->travel.v};
    double gradient[3], squares = 0.0;
    for (int i = 0; i < 3; i++) {
        const double span = p[i].span;
        const double by[4] = {-(weight[0] * span * (G * angle_by[i] + a_by[i])), -(weight[1] * span * rate_by[i]),
                              weight[2] * span * c->by[i].x, weight[3] * span * c->by[i].v};
        gradient[i] = error[0] * by[0] + error[1] * by[1] + error[2] * by[2] + error[3] * by[3];
        squares += by[0] * by[0] + by[1] * by[1] + by[2] * by[2] + by[3] * by[3];
    }
    const double part = w->descent / (1.0 + w->descent * squares);
    for (int i = 0; i < 3; i++) descend(w, &p[i], part, gradient[i]);
    return a;
}

static inline double adapt_heave(const adaptive_t *w, adaptive_t *c, double f) {
    const double onset = (f - c->outer) * c->outer_d, *weight = c->heave_weights, span = c->heave_p.span;
    c->outer += 2.0 * c->outer_g * onset;
    const double a = section(&c->heave, value(&c->heave_p) * onset), a_by = section(&c->heave_by, onset);
    const double by[3] = {-weight[0] * span * a_by, weight[1] * span * c->heave_by.x, weight[2] * span * c->heave_by.v};
    const double gradient = weight[0] * (f - a) * by[0] + weight[1] * c->heave.x * by[1] + weight[2] * c->heave.v * by[2];
    descend(w, &c->heave_p, w->descent / (1.0 + w->descent * (by[0] * by[0] + by[1] * by[1] + by[2] * by[2])), gradient);
    return a;
}

static inline double adapt_yaw(const adaptive_t *w, adaptive_t *c, double turn, double *angle) {
    const double k = w->k, span = c->yaw_p.span;
    const double turned = c->yaw_d * (value(&c->yaw_p) * turn - c->yaw_corner * c->yaw);
    const double turned_by = c->yaw_d * (turn - c->yaw_corner * c->yaw_by);
    *angle = c->yaw + k * turned;
    const double by[2] = {-(c->yaw_weights[0] * span * turned_by),
                          c->yaw_weights[1] * span * (c->yaw_by + k * turned_by)};
    c->yaw += 2.0 * k * turned, c->yaw_by += 2.0 * k * turned_by;
    const double gradient = c->yaw_weights[0] * (turn - turned) * by[0] + c->yaw_weights[1] * *angle * by[1];
    descend(w, &c->yaw_p, w->descent / (1.0 + w->descent * (by[0] * by[0] + by[1] * by[1])), gradient);
    return turned;
}

static inline void start(section_t *f, double u) { f->sv = -f->k * u, f->sx = 0.0; }
static inline void begin(const adaptive_t *w, adaptive_pair_t *c, double f, double turn) {
    start(&c->travel, value(&c->p[0]) * f), start(&c->by[0], f);
    c->smooth = -w->k * (c->smoothing / (1.0 - w->k * c->smoothing)) * within(f / G, c->tilt_limit);
    c->turned = -w->k * (value(&c->p[2]) * turn), c->turned_by[1] = -w->k * turn;
}

static inline void adaptive(adaptive_t *restrict w, const motion_t *restrict m, cue_t *restrict cue) {
    const double sr = sin(m->angle[0]), cr = cos(m->angle[0]), sp = sin(m->angle[1]), cp = cos(m->angle[1]);
    adaptive_pair_t *one = &w->pairs[0], *two = &w->pairs[1];
    double *s = w->sine, *c = w->cosine, nose, left;
    const double fx = within(one->force_gain * (m->a[0] + G * sp), one->force_limit);
    const double fy = within(two->force_gain * (m->a[1] - G * sr * cp), two->force_limit);
    const double fz = within(w->heave_gain * (G * (1.0 - cr * cp) - m->a[2]), w->heave_limit);
    double p = within(two->rate_gain * m->rate[0], two->rate_limit);
    double q = within(one->rate_gain * m->rate[1], one->rate_limit);
    double r = within(w->yaw_gain * m->rate[2], w->yaw_limit);
    const double turn = (q * s[0] + r * c[0]) / (c[1] > 0.2 ? c[1] : 0.2);
    const double euler[3] = {p + turn * s[1], q * c[0] - r * s[0], turn};
    if (!w->primed) {
        begin(w, one, fx, euler[1]), begin(w, two, fy, -euler[0]);
        start(&w->heave, value(&w->heave_p) * fz), start(&w->heave_by, fz);
        w->outer = -w->outer_g * fz;
        w->yaw = -w->k * value(&w->yaw_p) * euler[2], w->yaw_by = -w->k * euler[2];
        w->primed = 1;
    }
    const double ax = adapt_pair(w, one, fx, euler[1], &nose, &q), ay = adapt_pair(w, two, fy, -euler[0], &left, &p);
    const double az = adapt_heave(w, w, fz) - G;
    r = adapt_yaw(w, w, euler[2], &cue->angle[2]), p = -p;
    cue->angle[0] = -left;
    cue->angle[1] = nose;
    const double level[3] = {ax, ay, az}, turning[3] = {p, q, r};
    feel(level, turning, s, c, cue);
    cue->speed = m->speed;
    cue->engine_speed = m->engine_speed;
    cue->travel[0] = one->travel.x;
    cue->travel[1] = two->travel.x;
    cue->travel[2] = -w->heave.x;
}

void floor_adaptive(adaptive_t *w, const motion_t *in, cue_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        adaptive(w, &in[i], &out[i]);
        out[i].time = in[i].time;
    }
}
void floor_adaptive_repeat(adaptive_t *w, const motion_t *in, cue_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) adaptive(w, in, out);
}
