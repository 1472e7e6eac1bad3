"""What a car will do in the next seconds, from what it did: linear in what is felt now, learned while it goes on.

Of each sense three features are known: what is felt beyond its quick mean, the quick mean beyond the slow one, and the
slow mean.  What is felt some time later is expected to be a weighted sum of them.  The weights are those with the least
squares of errors over the past, which counts less the longer ago it is, and beside it a prior: features that decay.
"""

cdef enum:
    SENSES = 6
    NODES = 8               # times for which the motion is foreseen; the first is now
    FEATURES = 3
    PAST = 256              # beats that are remembered


ctypedef struct ForeseeCoeffs:
    int learns
    int beat                    # ticks between two looks at the past
    int lag[NODES]              # by node, in beats
    double quick                # share of the way that a mean goes in a tick
    double slow
    double kept                 # share of a moment that is left after a beat
    double prior[SENSES]        # weight of the prior, as a sum of squares
    double decayed[SENSES][NODES][FEATURES]     # the prior: what is left of each feature at a node

ctypedef struct ForeseeState:
    int tick                    # since the last beat
    int newest                  # place of the newest beat in the past
    int beats                   # how many are remembered
    double mean[SENSES][2]      # quick, slow
    double past[SENSES][PAST][FEATURES]
    double squares[SENSES][NODES][6]        # moments of the features: 00, 01, 02, 11, 12, 22
    double products[SENSES][NODES][FEATURES]
    double learned[SENSES][NODES][FEATURES]     # weights beyond the prior


cdef inline void foresee_features(const ForeseeState* s, int sense, double now, double* features) noexcept nogil:
    features[0] = now - s.mean[sense][0]
    features[1] = s.mean[sense][0] - s.mean[sense][1]
    features[2] = s.mean[sense][1]


cdef inline void foresee(
    const ForeseeCoeffs* c, const ForeseeState* s, int sense, double now, double largest, double* out
) noexcept nogil:
    """Fill in what is expected of a sense at the nodes; no more than `largest` in magnitude."""
    cdef double features[FEATURES]
    cdef double sum
    cdef int node, k
    foresee_features(s, sense, now, features)
    out[0] = now
    for node in range(1, NODES):
        sum = 0.0
        for k in range(FEATURES):
            sum += (c.decayed[sense][node][k] + s.learned[sense][node][k]) * features[k]
        out[node] = largest if sum > largest else (-largest if sum < -largest else sum)


cdef void foresee_tick(const ForeseeCoeffs* c, ForeseeState* s, const double* now) noexcept nogil
