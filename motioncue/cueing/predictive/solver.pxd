"""Quadratic programs in a tick, by DAQP: daqp/README.md says where its sources are from.

D. Arnstroem, A. Bemporad, D. Axehill, "A dual active-set solver for embedded quadratic programming using recursive
LDL' updates", IEEE Transactions on Automatic Control 67(8), 2022.
"""

cdef extern from "motioncue/cueing/predictive/daqp/include/api.h" nogil:
    enum:   # state of a constraint
        ACTIVE "DAQP_ACTIVE"
        LOWER "DAQP_LOWER"
        SOFT "DAQP_SOFT"

    ctypedef struct DAQPProblem:
        int n           # unknowns
        int m           # constraints
        int ms          # those of them that are bounds of single unknowns
        double* H
        double* f
        double* A
        double* bupper
        double* blower
        int* sense      # state of each constraint

    ctypedef struct DAQPSettings:
        int iter_limit
        double w_soft
        int eq_reduction

    ctypedef struct DAQPResult:
        double* x
        double* lam     # multipliers: above 0 at an upper bound, below at a lower one
        int exitflag    # above 0: solved
        int iter

    ctypedef struct DAQPWorkspace:
        int* sense      # states of the constraints, also after a failure
        double* M       # rows, in units in which the cost is a sphere, of length 1
        double* scaling # by which a row was made that long, after those of the unknowns
        int n_active
        DAQPSettings* settings


cdef enum:
    CHANNELS = 6


ctypedef struct Quadratic:          # a program as the solver takes it
    DAQPProblem problem
    DAQPSettings settings
    DAQPWorkspace workspace
    DAQPResult result
    int iterations      # most steps for a solution
    int steps           # that the last one took
    int most_active     # constraints to start from at most, so that half of the work is left for steps
    const double* parts # what rows are made of by each channel where its slope is 1: kinds x CHANNELS x unknowns


cdef class Solver:
    cdef Quadratic quadratic
    cdef bint ready
    cdef int count              # of unknowns
    cdef double[:, ::1] hessian
    cdef double[:, ::1] matrix
    cdef double[::1] linear
    cdef double[::1] low
    cdef double[::1] high
    cdef int[::1] states
    cdef double[::1] found
    cdef double[::1] duals
    cdef double[::1] weights
    cdef double[:, :, ::1] parts


cdef void set_row(Quadratic* q, int row, int kind, const double* slopes) noexcept nogil
cdef bint solved(Quadratic* q) noexcept nogil
