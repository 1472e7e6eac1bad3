"""How what is foreseen of a car is learned; see the pxd."""

from libc.string cimport memcpy

__all__ = []


cdef void solve_three(const double* m, const double* b, double* out) noexcept nogil:
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


cdef void learn(const ForeseeCoeffs* c, ForeseeState* s, int sense, double now) noexcept nogil:
    """Compare what is felt now with what was known at each node's time before, and find the best weights."""
    cdef double system[6]
    cdef double right[FEATURES]
    cdef double found[FEATURES]
    cdef const double* then
    cdef double* squares
    cdef double* products
    cdef double prior = c.prior[sense]
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


cdef void foresee_tick(const ForeseeCoeffs* c, ForeseeState* s, const double* now) noexcept nogil:
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
            foresee_features(s, sense, now[sense], s.past[sense][(s.newest + 1) & (PAST - 1)])
    if beat:
        s.newest = (s.newest + 1) & (PAST - 1)
        s.beats += s.beats < PAST

