"""Quadratic programs in a tick: the C functions of an installed DAQP, called without the GIL."""

cdef extern from "motioncue/cueing/predictive/solver.h" nogil:
    enum:
        ACTIVE "MC_DAQP_ACTIVE"
        LOWER "MC_DAQP_LOWER"
        SOFT "MC_DAQP_SOFT"
        UPDATE "MC_DAQP_UPDATE"
        NO_REDUCTION "MC_DAQP_NO_REDUCTION"

    ctypedef struct Problem "mc_DaqpProblem":
        int n
        int m
        int ms
        double* H
        double* f
        double* A
        double* bupper
        double* blower
        int* sense
        int* break_points
        int nh
        int problem_type

    ctypedef struct SolverSettings "mc_DaqpSettings":
        int iter_limit
        double w_soft
        int eq_reduction

    ctypedef struct Result "mc_DaqpResult":
        double* x
        double* lam
        int exitflag
        int iter

    ctypedef struct Workspace "mc_DaqpWorkspace":
        int* sense
        SolverSettings* settings

    ctypedef int (*setup_call "mc_daqp_setup")(Problem*, Workspace*, double*) noexcept nogil
    ctypedef int (*update_call "mc_daqp_update")(int, Workspace*, Problem*) noexcept nogil
    ctypedef void (*solve_call "mc_daqp_solve")(Result*, Workspace*) noexcept nogil
    ctypedef void (*free_call "mc_daqp_free")(Workspace*) noexcept nogil
    ctypedef void (*defaults_call "mc_daqp_defaults")(SolverSettings*) noexcept nogil
    ctypedef int (*weigh_call "mc_daqp_weigh")(Workspace*, double*, double*, double*, double*) noexcept nogil


ctypedef struct Library:            # the solver's functions
    setup_call setup
    update_call update
    solve_call solve
    free_call free_workspace
    free_call free_problem
    defaults_call defaults
    weigh_call weigh

ctypedef struct Quadratic:          # a program as the solver takes it
    Library daqp
    Problem problem
    SolverSettings settings
    Workspace workspace
    Result result


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


cdef inline bint solved(Quadratic* q) noexcept nogil:
    """Solve for the present linear cost, bounds and states of constraints; say whether a solution was found.

    The result depends on these and on nothing else: not on what was solved before.
    """
    if q.daqp.update(UPDATE, &q.workspace, &q.problem) < 0:
        return False
    q.daqp.solve(&q.result, &q.workspace)
    return q.result.exitflag > 0
