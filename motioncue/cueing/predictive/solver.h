/* What is used of DAQP 0.11.0: its structs as far as they are read or written, and its constants.
 *
 * The functions are found in the installed library at run time; solver.pyx checks its version and a known problem.
 * D. Arnstroem, A. Bemporad, D. Axehill, "A dual active-set solver for embedded quadratic programming using recursive
 * LDL' updates", IEEE Transactions on Automatic Control 67(8), 2022.
 */
#ifndef MOTIONCUE_SOLVER_H
#define MOTIONCUE_SOLVER_H

typedef struct {
    int n, m, ms; /* unknowns, constraints, and how many of these are simple bounds of unknowns */
    double *H, *f, *A, *bupper, *blower;
    int *sense; /* state of each constraint: flags */
    int *break_points;
    int nh;
    int problem_type;
} mc_DaqpProblem;

typedef struct {
    double primal_tol, dual_tol, zero_tol, pivot_tol, progress_tol;
    int cycle_tol, iter_limit;
    double fval_bound, eps_prox, eta_prox, rho_soft, rel_subopt, abs_subopt, sing_tol, refactor_tol, time_limit, w_soft;
    int eq_reduction, presolve;
} mc_DaqpSettings;

typedef struct {
    double *x, *lam;
    double fval, soft_slack;
    int exitflag, iter, nodes;
    double solve_time, setup_time;
} mc_DaqpResult;

typedef struct { /* the beginning of the workspace; the rest is the library's own */
    void *qp;
    int n, m, ms;
    double *M, *dupper, *dlower, *Rinv, *v;
    int *sense; /* states of the constraints, also after a failure */
    double *scaling, *RinvD;
    void *primal[2], *dual[3];
    double fval;
    void *factors[4];
    int reuse_ind;
    int *working_set;
    int n_active, iterations, sing_ind;
    int *prox_mask;
    int n_prox;
    double soft_slack;
    mc_DaqpSettings *settings;
    char rest[4096];
} mc_DaqpWorkspace;

enum {
    MC_DAQP_ACTIVE = 1,
    MC_DAQP_LOWER = 2,
    MC_DAQP_SOFT = 8,
    MC_DAQP_UPDATE = 4 + 8 + 16, /* linear cost, bounds, states of constraints */
    MC_DAQP_NO_REDUCTION = -1
};

typedef int (*mc_daqp_setup)(mc_DaqpProblem *, mc_DaqpWorkspace *, double *);
typedef int (*mc_daqp_update)(int, mc_DaqpWorkspace *, mc_DaqpProblem *);
typedef void (*mc_daqp_solve)(mc_DaqpResult *, mc_DaqpWorkspace *);
typedef void (*mc_daqp_free)(mc_DaqpWorkspace *);
typedef void (*mc_daqp_defaults)(mc_DaqpSettings *);
typedef int (*mc_daqp_weigh)(mc_DaqpWorkspace *, double *, double *, double *, double *);
#endif
