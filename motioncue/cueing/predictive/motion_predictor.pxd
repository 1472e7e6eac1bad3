"""Recursive least-squares prediction of the specific force and rates of the next seconds, from what is felt now.

Of each sense three features are known: what is felt beyond its quick mean, the quick mean beyond the slow one, and the
slow mean.  What is felt some time later is expected to be a weighted sum of them.  The weights are those with the least
squares of errors over the past, which counts less the longer ago it is, and beside it a prior: features that decay.
The prior counts more the farther a node is ahead, because moments that are nearer to each other than that say much the
same, and weights for it would be those of few chances.
"""

from libc.string cimport memcpy


cdef enum:
    SENSES = 6
    NODES = 8               # times for which the motion is foreseen; the first is now
    FEATURES = 3
    PAST = 256              # beats that are remembered


ctypedef struct MotionPredictorCoeffs:
    int learns
    int beat                    # ticks between two looks at the past
    int lag[NODES]              # by node, in beats
    double quick                # share of the way that a mean goes in a tick
    double slow
    double kept                 # share of a moment that is left after a beat
    double prior[SENSES]        # least weight of the prior, as a sum of squares
    double doubt[NODES]         # its weight beside that, as a share of all squares
    double decayed[SENSES][NODES][FEATURES]     # the prior: what is left of each feature at a node

ctypedef struct MotionPredictorState:
    int tick                    # since the last beat
    int newest                  # place of the newest beat in the past
    int beats                   # how many are remembered
    double mean[SENSES][2]      # quick, slow
    double past[SENSES][PAST][FEATURES]
    double squares[SENSES][NODES][6]        # moments of the features: 00, 01, 02, 11, 12, 22
    double products[SENSES][NODES][FEATURES]
    double learned[SENSES][NODES][FEATURES]     # weights beyond the prior


cdef inline void motion_features(
    const MotionPredictorState* s, int sense, double now, double* features
) noexcept nogil:
    features[0] = now - s.mean[sense][0]
    features[1] = s.mean[sense][0] - s.mean[sense][1]
    features[2] = s.mean[sense][1]


cdef inline void predict_motion(
    const MotionPredictorCoeffs* c, const MotionPredictorState* s, int sense, double now, double largest, double* out
) noexcept nogil:
    """Fill in what is expected of a sense at the nodes; no more than `largest` in magnitude."""
    cdef double features[FEATURES]
    cdef double sum
    cdef int node, k
    motion_features(s, sense, now, features)
    out[0] = now
    for node in range(1, NODES):
        sum = 0.0
        for k in range(FEATURES):
            sum += (c.decayed[sense][node][k] + s.learned[sense][node][k]) * features[k]
        out[node] = largest if sum > largest else (-largest if sum < -largest else sum)


cdef inline void solve_three(const double* m, const double* b, double* out) noexcept nogil:
    """Solve a symmetric positive definite system of three; `m` is 00, 01, 02, 11, 12, 22."""
    cdef double l10 = m[1] / m[0]
    cdef double l20 = m[2] / m[0]
    cdef double d1 = m[3] - l10 * m[1]
    cdef double e12 = m[4] - l10 * m[2]
    cdef double l21 = e12 / d1
    cdef double d2 = m[5] - l20 * m[2] - l21 * e12
    cdef double y1 = b[1] - l10 * b[0]
    out[2] = (b[2] - l20 * b[0] - l21 * y1) / d2
    out[1] = y1 / d1 - l21 * out[2]
    out[0] = b[0] / m[0] - l10 * out[1] - l20 * out[2]


cdef inline void learn(
    const MotionPredictorCoeffs* c, MotionPredictorState* s, int sense, double now
) noexcept nogil:
    """Compare what is felt now with what was known at each node's time before, and find the best weights."""
    cdef double system[6]
    cdef double right[FEATURES]
    cdef double found[FEATURES]
    cdef const double* then
    cdef double* squares
    cdef double* products
    cdef double prior
    cdef int node, k
    for node in range(1, NODES):
        if c.lag[node] > s.beats:
            return
        then = s.past[sense][(s.newest - c.lag[node] + 1) & (PAST - 1)]
        squares, products = s.squares[sense][node], s.products[sense][node]
        squares[0] = c.kept * squares[0] + then[0] * then[0]
        squares[1] = c.kept * squares[1] + then[0] * then[1]
        squares[2] = c.kept * squares[2] + then[0] * then[2]
        squares[3] = c.kept * squares[3] + then[1] * then[1]
        squares[4] = c.kept * squares[4] + then[1] * then[2]
        squares[5] = c.kept * squares[5] + then[2] * then[2]
        prior = c.prior[sense] + c.doubt[node] * (squares[0] + squares[3] + squares[5])
        for k in range(FEATURES):
            products[k] = c.kept * products[k] + then[k] * now
            right[k] = products[k] + prior * c.decayed[sense][node][k]
        memcpy(system, squares, sizeof(system))
        system[0] += prior
        system[3] += prior
        system[5] += prior
        solve_three(system, right, found)
        for k in range(FEATURES):
            s.learned[sense][node][k] = found[k] - c.decayed[sense][node][k]


cdef inline void observe_motion(
    const MotionPredictorCoeffs* c, MotionPredictorState* s, const double* now
) noexcept nogil:
    """Take in what is felt in this tick."""
    cdef bint beat = c.learns and s.tick == 0
    cdef int sense
    s.tick = (s.tick + 1) % c.beat
    for sense in range(SENSES):
        if beat:
            learn(c, s, sense, now[sense])
        s.mean[sense][0] += c.quick * (now[sense] - s.mean[sense][0])
        s.mean[sense][1] += c.slow * (now[sense] - s.mean[sense][1])
        if beat:
            motion_features(s, sense, now[sense], s.past[sense][(s.newest + 1) & (PAST - 1)])
    if beat:
        s.newest = (s.newest + 1) & (PAST - 1)
        s.beats += s.beats < PAST
