"""How much of a program's preview is not believed: what it said, compared with what then came.

What is said of a moment close by is compared with what would have been foreseen without it: it counts in full for as
long as half of what it says beyond that, or more, is right.  Farther ahead a preview may say what lines through a drive
would be, whose moments differ from the drive's: there it is doubted only if it says far more than ever comes.
"""

from motioncue.cueing.predictive.motion_predictor cimport NODES, SENSES


cdef enum:
    CLOSE_BY = 2            # nodes that say what a moment is: 0.06 and 0.12 s ahead
    FAR_MORE = 4            # times the square of what came that is no more than came, beyond that
    SURE = 64               # times the squares that all of it is doubted with: 20 s later a right one counts again
    LENIENT = 32            # times the squares that a doubt takes, beyond that: one beat of 3 g


ctypedef struct PreviewDoubt:
    double right[SENSES][NODES]     # sums over the past of what came as it was said, and of squares of what was said
    double said[SENSES][NODES]
    double wrong[SENSES][NODES]     # how much of it should not count, 0 to 1
    double doubt[SENSES][NODES]     # how much does not: it follows, in some time
    int any                         # whether any of these two is not 0


cdef inline void judge(
    PreviewDoubt* d, int sense, int node, double kept, double own, double beyond, double came
) noexcept nogil:
    """Take in what came of what was foreseen some time ago, `own`, and of what was said `beyond` that."""
    cdef double right = beyond * (came - own)
    if node > CLOSE_BY:
        right, beyond = FAR_MORE * came * came, own + beyond
    d.right[sense][node] = kept * d.right[sense][node] + right
    d.said[sense][node] = kept * d.said[sense][node] + beyond * beyond


cdef inline void conclude(PreviewDoubt* d, int sense, double proof) noexcept nogil:
    """Say how much of a sense should not count; who is wrong about what is close is not believed of what is far."""
    cdef double worst = 0.0
    cdef double prior, share, most
    cdef int node
    for node in range(1, NODES):
        prior = proof if node <= CLOSE_BY else LENIENT * proof
        most = SURE * (prior + max(0.0, d.right[sense][node]))
        d.said[sense][node] = min(d.said[sense][node], most)
        share = 2.0 * (prior + d.right[sense][node]) / (prior + d.said[sense][node])
        worst = max(worst, min(1.0, 1.0 - share))
        d.wrong[sense][node] = worst
        d.any |= worst > 0.0


cdef inline void settle_doubt(PreviewDoubt* d, double most) noexcept nogil:
    """Let what counts follow what should, by no more than a share."""
    cdef double way
    cdef int sense, node
    d.any = False
    for sense in range(SENSES):
        for node in range(1, NODES):
            way = d.wrong[sense][node] - d.doubt[sense][node]
            d.doubt[sense][node] += min(most, max(-most, way))
            d.any |= d.doubt[sense][node] > 0.0 or d.wrong[sense][node] > 0.0
