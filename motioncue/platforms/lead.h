/* Lead the wanted positions by the lag of the drives, so that the frame is where it is wanted sooner.
 *
 * A drive that lags as 1 / (T s + 1), or as w^2 / (s^2 + 2 z w s + w^2), is sent the wanted position times
 *
 *   (T s + 1) / (T s / N + 1)      or      (s^2 / w^2 + 2 z s / w + 1) / (s / (w sqrt N) + 1)^2,
 *
 * by the trapezoidal rule.  No frequency is amplified more than N times (for z <= 1, because then
 * |1 - x + 2 i z sqrt x| <= 1 + x), and behind such a drive none is amplified at all: what remains is the denominator, a
 * delay of T / N, or 2 / (w sqrt N), at low frequencies.  (Own derivation.)
 *
 * The leads of all actuators shrink by one factor where one of them would leave its range.
 */
#ifndef MOTIONCUE_LEAD_H
#define MOTIONCUE_LEAD_H
#include "motioncue/platforms/actuator_limits.h"
#include "motioncue/core/scalar.h"

#define MC_MOST_LEAD 16.0 /* N: the largest amplification of any frequency */
#define MC_NO_LEAD 1e-10  /* [unit] a lead up to this is left out, so that a platform at rest is exactly where it should be */

typedef struct {
    int order;  /* of the drives' lag: 1 or 2; 0 leads nothing */
    double lag; /* [s] */
    mc_FirstOrder first;
    mc_SecondOrder second;
    double outer, inner; /* weights of the second-order section's high-pass and of its velocity */
} mc_Lead;

typedef struct {
    int order;        /* of the lead that filled the states, and its stiffness, in which `second` counts displacements */
    double stiffness;
    double newest[MC_MOST_ACTUATORS]; /* lead of the newest tick */
    double first[MC_MOST_ACTUATORS];
    mc_SecondOrderState second[MC_MOST_ACTUATORS];
} mc_LeadState;

/* Return the lead for a lag [s], of second order if `damping` is above 0, at ticks of `dt` [s]; without one if `lag` is
   0. */
static inline mc_Lead mc_lead_for(double lag, double damping, double dt) {
    mc_Lead lead = {0};
    if (!(lag > 0.0)) return lead;
    lead.order = damping > 0.0 ? 2 : 1;
    lead.lag = lag;
    lead.outer = MC_MOST_LEAD - 1.0;
    if (lead.order == 1) {
        lead.first.g = 0.5 * dt * MC_MOST_LEAD / lag;
        lead.first.d = 1.0 / (1.0 + lead.first.g);
    } else {
        const double omega = 2.0 * damping / lag * sqrt(MC_MOST_LEAD);
        lead.inner = (2.0 * damping * sqrt(MC_MOST_LEAD) - 2.0) * omega;
        lead.second.c0 = omega * omega;
        lead.second.k = 0.5 * dt;
        lead.second.b = 2.0 * omega + lead.second.c0 * lead.second.k;
        lead.second.d = 1.0 / (1.0 + lead.second.b * lead.second.k);
    }
    return lead;
}

/* Lead `n` positions; positions that are not all usable (see actuator_limits.h) are left as they are. */
static inline void mc_lead(const mc_Lead *c, mc_LeadState *s, const mc_ActuatorBounds *bounds, int n, double *positions) {
    double leads[MC_MOST_ACTUATORS], factor = 1.0;
    int usable = 1;
    if (!c->order) s->order = 0; /* the next lead begins at rest */
    for (int i = 0; i < n; i++) usable &= fabs(positions[i]) < MC_FARTHEST;
    if (!c->order || !usable) return;
    for (int i = 0; i < n && s->order != c->order; i++) { /* at rest */
        s->first[i] = positions[i];
        s->second[i].v = 0.0;
        s->second[i].x = c->order == 2 ? positions[i] / c->second.c0 : 0.0;
    }
    for (int i = 0; i < n && s->order == c->order && s->stiffness != c->second.c0; i++)
        s->second[i].x *= s->stiffness / c->second.c0;
    s->order = c->order;
    s->stiffness = c->second.c0;
    for (int i = 0; i < n; i++) {
        double room;
        if (c->order == 1) {
            leads[i] = c->outer * mc_high_pass_1(&c->first, &s->first[i], positions[i]);
        } else {
            mc_Integrals integrals;
            leads[i] = c->outer * mc_high_pass_2(&c->second, &s->second[i], positions[i], &integrals);
            leads[i] += c->inner * integrals.v;
        }
        if (fabs(leads[i]) <= MC_NO_LEAD) leads[i] = 0.0;
        room = leads[i] > 0.0 ? bounds[i].high - positions[i] : positions[i] - bounds[i].low;
        if (fabs(leads[i]) > room) factor = fmin(factor, fmax(room, 0.0) / fabs(leads[i]));
    }
    for (int i = 0; i < n; i++) {
        s->newest[i] = factor * leads[i];
        positions[i] += s->newest[i];
    }
}

/* Add to `positions` about the lead that they would have after a change from `before` to `c`, the motion going on. */
static inline void mc_lead_as_before(
    const mc_Lead *c, const mc_Lead *before, const mc_LeadState *s, int n, double *positions
) {
    if (!c->order || !before->order) return;
    for (int i = 0; i < n; i++) positions[i] += s->newest[i] * c->lag / before->lag;
}
#endif
