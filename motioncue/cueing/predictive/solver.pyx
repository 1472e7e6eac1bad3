"""Where the solver's functions are found, and one quadratic program with constant matrices."""

from libc.stdint cimport uintptr_t
from libc.string cimport memset

import ctypes
from importlib import metadata

import numpy as np

__all__ = ["VERSION", "Solver", "missing"]

VERSION = "0.11.0"
"""The version of DAQP whose structs solver.h declares."""

NAMES = ("setup_daqp", "daqp_update_ldp", "daqp_solve", "free_daqp_workspace", "free_daqp_ldp", "daqp_default_settings",
         "daqp_set_soft_weights")

cdef tuple _found = ()
cdef object _reason = "not looked for"


cdef Library library_of(tuple addresses):
    """Return the functions at these addresses."""
    cdef Library library
    library.setup = <setup_call><uintptr_t>addresses[0]
    library.update = <update_call><uintptr_t>addresses[1]
    library.solve = <solve_call><uintptr_t>addresses[2]
    library.free_workspace = <free_call><uintptr_t>addresses[3]
    library.free_problem = <free_call><uintptr_t>addresses[4]
    library.defaults = <defaults_call><uintptr_t>addresses[5]
    library.weigh = <weigh_call><uintptr_t>addresses[6]
    return library


def missing():
    """Return why the solver cannot be called from a tick; an empty text if it can.

    It needs DAQP in the one version whose structs are known here, with exported C functions, which its packages for
    Linux have and those for Windows have not, and the right solution of a problem with a known one.
    """
    global _found, _reason
    if _reason != "not looked for":
        return _reason
    try:
        import daqp

        version = metadata.version("daqp")
    except ImportError:
        _reason = "DAQP is missing: pip install \"motioncue[predictive]\""
        return _reason
    if version != VERSION:
        _reason = f"found DAQP {version}, allowed is {VERSION}: pip install \"motioncue[predictive]\""
        return _reason
    try:
        library = ctypes.CDLL(daqp.__file__)
        _found = tuple([ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in NAMES])
    except (AttributeError, OSError):
        _reason = "the installed DAQP does not export its C functions, as on Windows; its packages for Linux do"
        return _reason
    _reason = ""
    _reason = _mistaken()
    return _reason


def _mistaken():
    """Return what is wrong with the solution of a known problem; an empty text if nothing is.

    Minimize (x - 2)^2 / 2 + (y - 2)^2 / 2 with x <= 1 and, softly, x + y <= 5 / 2: (1, 3 / 2).
    """
    solver = Solver(np.eye(2), np.ones((1, 2)), np.full(1, 1e-6), 50)
    solver.pose(np.array([-2.0, -2.0]), np.array([-1.0, -1.0, -9.0]), np.array([1.0, 9.0, 2.5]))
    if solver.solve() and np.allclose(solver.solution, [1.0, 1.5], atol=1e-4):
        return ""
    return f"the installed DAQP {VERSION} does not solve a known problem"


cdef class Solver:
    """A quadratic program whose matrices stay, while linear cost and bounds change.

    Minimize ``x' hessian x / 2 + linear' x`` with hard bounds on the first unknowns and soft ones on ``rows x``.

    Parameters
    ----------
    hessian : ndarray of float64, shape (n, n)
        Positive definite.
    rows : ndarray of float64, shape (m, n)
        Bounded softly, so that there is always a solution.
    softness : ndarray of float64, shape (m,)
        Exceeding a bound of a row by s costs s^2 / (2 softness).
    iterations : int
        Most steps of the active-set method.

    Raises
    ------
    ValueError
        If the solver refuses the problem.

    Notes
    -----
    All n unknowns have bounds.  Real time: `solved` neither allocates nor takes the GIL.
    """

    def __init__(self, hessian, rows, softness, int iterations):
        if missing():
            raise ValueError(missing())
        cdef Quadratic* q = &self.quadratic
        memset(q, 0, sizeof(Quadratic))
        q.daqp = library_of(_found)
        self.count = len(hessian)
        size = self.count + len(rows)
        self.hessian = np.array(hessian, dtype=np.float64, order="C")
        self.matrix = np.array(rows, dtype=np.float64, order="C")
        self.linear, self.found = np.zeros(self.count), np.zeros(self.count)
        self.low, self.high = np.full(size, -1.0), np.ones(size)
        self.duals = np.zeros(size)
        self.states = np.zeros(size, np.int32)
        self.states[self.count:] = SOFT
        q.daqp.defaults(&q.settings)
        q.settings.iter_limit = iterations
        q.settings.eq_reduction = NO_REDUCTION
        q.settings.w_soft = 0.0
        q.workspace.settings = &q.settings
        q.problem.n, q.problem.m, q.problem.ms = self.count, size, self.count
        q.problem.H, q.problem.f, q.problem.A = &self.hessian[0, 0], &self.linear[0], &self.matrix[0, 0]
        q.problem.blower, q.problem.bupper, q.problem.sense = &self.low[0], &self.high[0], &self.states[0]
        q.result.x, q.result.lam = &self.found[0], &self.duals[0]
        if q.daqp.setup(&q.problem, &q.workspace, NULL) < 0:
            raise ValueError("hessian: found a matrix that the solver refuses, allowed is a positive definite one")
        self.ready = True
        # The weights of single constraints count in the units of the rows, the one in the settings does not.
        weights = np.ones(size)
        weights[self.count:] = softness
        self.weights = weights
        if not q.daqp.weigh(&q.workspace, &self.weights[0], &self.weights[0], NULL, NULL):
            raise ValueError("softness: found a solver without weights of single constraints")

    def __dealloc__(self):
        if self.ready:
            self.quadratic.daqp.free_problem(&self.quadratic.workspace)
            self.quadratic.workspace.settings = NULL      # it is this object's
            self.quadratic.daqp.free_workspace(&self.quadratic.workspace)

    def pose(self, linear, low, high):
        """Set the linear cost and the bounds, and forget the working set.

        Parameters
        ----------
        linear : ndarray of float64, shape (n,)
            Linear cost.
        low, high : ndarray of float64, shape (n + m,)
            Bounds of the unknowns, then of the rows.
        """
        for own, given in ((self.linear, linear), (self.low, low), (self.high, high)):
            np.asarray(own)[:] = given
        self.states[:self.count] = 0
        self.states[self.count:] = SOFT

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
        return self.quadratic.result.iter
