"""One quadratic program whose cost stays the same."""

from libc.math cimport sqrt
from libc.string cimport memset

import numpy as np

cdef extern from "motioncue/cueing/predictive/daqp/include/utils.h" nogil:
    enum:
        UPDATE_LINEAR "DAQP_UPDATE_v"
        UPDATE_BOUNDS "DAQP_UPDATE_d"
        UPDATE_STATES "DAQP_UPDATE_sense"
        NO_REDUCTION "DAQP_EQ_REDUCTION_OFF"
        UNFINISHED "DAQP_EXIT_ITERLIMIT"

    int daqp_update_ldp(int, DAQPWorkspace*, DAQPProblem*)

cdef extern from "motioncue/cueing/predictive/daqp/include/api.h" nogil:
    int setup_daqp(DAQPProblem*, DAQPWorkspace*, double*)
    void daqp_solve(DAQPResult*, DAQPWorkspace*)
    void daqp_default_settings(DAQPSettings*)
    int daqp_set_soft_weights(DAQPWorkspace*, double*, double*, double*, double*)
    void free_daqp_ldp(DAQPWorkspace*)
    void free_daqp_workspace(DAQPWorkspace*)

__all__ = ["WORK", "Solver"]


cdef double MOST_WORK = 480e3   # multiplications for a solution, start and all steps together
WORK = MOST_WORK

cdef enum:
    UNKNOWNS = 97               # most of them, and one more
    FEWEST = 3                  # steps at a time: the solver drops a constraint that depends on others if it stops there
    MOST = 16                   # more than after which it puts a cycle right


cdef double starting(double n, double active) noexcept nogil:
    """Return the multiplications that the first factorization of so many active constraints takes."""
    return active * active * (0.5 * n + active / 6.0)


cdef double adding(const DAQPProblem* p, double active) noexcept nogil:
    """Return the multiplications of a step that adds a constraint: all rows are looked at, one is factorized."""
    return p.n * (p.m - 0.5 * p.n + 2.0 * active) + active * active


cdef double removing(double active) noexcept nogil:
    """Return the multiplications of a step that removes a constraint at most."""
    return 2.0 * active * active


cdef void set_row(Quadratic* q, int row, int kind, const double* slopes) noexcept nogil:
    """Give a row, counted from the first behind the unknowns, other slopes by the channels: `CHANNELS` of them.

    As the solver keeps rows; their first form it would read only where every constraint that acts is hard.
    """
    cdef int n = q.problem.n
    cdef double* out = q.workspace.M + row * n
    cdef const double* p0 = q.parts + kind * CHANNELS * n
    cdef const double* p1 = p0 + n
    cdef const double* p2 = p1 + n
    cdef const double* p3 = p2 + n
    cdef const double* p4 = p3 + n
    cdef const double* p5 = p4 + n
    cdef double s0 = slopes[0], s1 = slopes[1], s2 = slopes[2], s3 = slopes[3], s4 = slopes[4], s5 = slopes[5]
    cdef double made[UNKNOWNS]  # of this call alone, so that several can be worked out at once
    cdef double even = 0.0
    cdef double odd = 0.0
    cdef double length
    cdef int j
    made[n] = 0.0
    for j in range(n):
        made[j] = ((s0 * p0[j] + s1 * p1[j]) + (s2 * p2[j] + s3 * p3[j])) + (s4 * p4[j] + s5 * p5[j])
    for j from 0 <= j < n by 2:
        even += made[j] * made[j]
        odd += made[j + 1] * made[j + 1]
    length = 1.0 / sqrt(even + odd)
    q.workspace.scaling[q.problem.ms + row] = length
    for j in range(n):
        out[j] = length * made[j]


cdef bint solved(Quadratic* q) noexcept nogil:
    """Solve for the present linear cost, bounds and states of constraints; say whether a solution was found in time.

    The result depends on these and on nothing else: not on what was solved before, and not on a clock.
    """
    cdef double left = MOST_WORK
    cdef double active, fit
    cdef int steps, more
    q.steps = 0
    if daqp_update_ldp(UPDATE_LINEAR + UPDATE_BOUNDS + UPDATE_STATES, &q.workspace, &q.problem) < 0:
        return False
    left -= starting(q.problem.n, q.workspace.n_active)
    while True:
        active = q.workspace.n_active
        fit = left / adding(&q.problem, active + MOST)     # if each step adds one
        steps = q.iterations - q.steps
        if steps > MOST:
            steps = MOST
        if fit < steps:
            steps = <int>fit
        if steps < FEWEST and (q.steps or steps < 1):
            return False
        q.settings.iter_limit = steps + 1
        daqp_solve(&q.result, &q.workspace)
        if q.result.exitflag != UNFINISHED:
            q.steps += q.result.iter
            return q.result.exitflag > 0
        q.steps += steps
        more = q.workspace.n_active - <int>active
        active = active if more < 0 else q.workspace.n_active
        left -= 0.5 * ((steps + more) * adding(&q.problem, active) + (steps - more) * removing(active))


cdef class Solver:
    """A quadratic program whose matrices stay, while linear cost and bounds change, and some rows by `set_row`.

    Minimize ``x' hessian x / 2 + linear' x`` with hard bounds on the first unknowns and soft ones on ``rows x``.

    `hessian`, (n, n), is positive definite; `rows`, (m, n), are bounded softly, so that there is always a solution:
    exceeding a bound of row i by s costs s^2 / (2 softness[i]).  `iterations`: most steps of the active-set method.
    All n unknowns have bounds.  A ValueError says that the solver refuses the problem.  Real time: `solved` neither
    allocates nor takes the GIL.
    """

    def __init__(self, hessian, rows, softness, int iterations):
        cdef Quadratic* q = &self.quadratic
        memset(q, 0, sizeof(Quadratic))
        self.count = len(hessian)
        size = self.count + len(rows)
        self.hessian = np.array(hessian, dtype=np.float64, order="C")
        self.matrix = np.array(rows, dtype=np.float64, order="C")
        self.linear, self.found = np.zeros(self.count), np.zeros(self.count)
        self.low, self.high = np.full(size, -1.0), np.ones(size)
        self.duals = np.zeros(size)
        self.states = np.zeros(size, np.int32)
        self.states[self.count:] = SOFT
        daqp_default_settings(&q.settings)
        q.iterations = iterations - 1   # as the solver counts: the step that finds nothing to do is one
        q.settings.eq_reduction = NO_REDUCTION
        q.settings.w_soft = 0.0
        q.workspace.settings = &q.settings
        q.problem.n, q.problem.m, q.problem.ms = self.count, size, self.count
        q.problem.H, q.problem.f, q.problem.A = &self.hessian[0, 0], &self.linear[0], &self.matrix[0, 0]
        q.problem.blower, q.problem.bupper, q.problem.sense = &self.low[0], &self.high[0], &self.states[0]
        q.result.x, q.result.lam = &self.found[0], &self.duals[0]
        if setup_daqp(&q.problem, &q.workspace, NULL) < 0:
            raise ValueError("hessian: found a matrix that the solver refuses, allowed is a positive definite one")
        self.ready = True
        # The setup leaves the rows for later where no bound acts, and would then overwrite what `set_row` has made.
        if daqp_update_ldp(UPDATE_LINEAR + UPDATE_BOUNDS + UPDATE_STATES, &q.workspace, &q.problem) < 0:
            raise ValueError("rows: found bounds that contradict one another")
        while q.most_active < size and starting(self.count, q.most_active + 1) <= 0.5 * MOST_WORK:
            q.most_active += 1
        # The weights of single constraints count in the units of the rows, the one in the settings does not.
        weights = np.ones(size)
        weights[self.count:] = softness
        self.weights = weights
        if not daqp_set_soft_weights(&q.workspace, &self.weights[0], &self.weights[0], NULL, NULL):
            raise ValueError("softness: found a solver without weights of single constraints")

    def __dealloc__(self):
        if self.ready:
            free_daqp_ldp(&self.quadratic.workspace)
            self.quadratic.workspace.settings = NULL      # it is this object's
            free_daqp_workspace(&self.quadratic.workspace)

    def vary(self, units, int channels):
        """Let rows be given other slopes by the channels, whose unknowns stand by turns.

        `units`, (kinds, n): such rows where the slopes by all channels are 1.
        """
        cdef Quadratic* q = &self.quadratic
        assert self.count < UNKNOWNS and channels <= CHANNELS
        apart = np.zeros((len(units), CHANNELS, self.count))
        for channel in range(channels):
            apart[:, channel, channel::channels] = units[:, channel::channels]
        upper = np.linalg.cholesky(np.asarray(self.hessian)).T      # the solver keeps rows times its inverse
        self.parts = np.ascontiguousarray(np.linalg.solve(upper.T, apart.swapaxes(1, 2)).swapaxes(1, 2))
        q.parts = &self.parts[0, 0, 0]

    def pose(self, linear, low, high):
        """Set linear cost, (n,), and bounds, (n + m,), of the unknowns, then of the rows; forget the working set."""
        for own, given in ((self.linear, linear), (self.low, low), (self.high, high)):
            np.asarray(own)[:] = given
        self.states[:self.count] = 0
        self.states[self.count:] = SOFT

    def give(self, int row, int kind, slopes):
        """Give a row, counted from 0, another kind's units by each channel's slope, shape (channels,)."""
        cdef double[::1] by = np.zeros(CHANNELS)
        np.asarray(by)[: len(slopes)] = slopes
        set_row(&self.quadratic, row, kind, &by[0])

    def solve(self):
        """Return whether the solution was found."""
        return solved(&self.quadratic)

    @property
    def solution(self):
        """The solution found last, shape (n,)."""
        return np.asarray(self.found).copy()

    @property
    def iterations(self):
        """Steps that the last solution took."""
        return self.quadratic.steps
