"""Two loops over motioncue's kernels: no GIL, and no Python between one tick and the next."""

from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.filters cimport Integrals, SecondOrder, SecondOrderState, high_pass_2, prime_2, second_order
from motioncue.core.records cimport Cue, Motion
from motioncue.cueing.classical.kernel cimport ClassicalWashout, washout_step


def high_pass(const double[::1] u not None, double[:, ::1] out not None, double omega, double zeta, double dt):
    """Fill the rows of `out` with the high-passed `u` and its first two integrals; `omega` [rad/s], `dt` [s]."""
    cdef SecondOrder coeffs = second_order(omega, zeta, dt)
    cdef SecondOrderState state
    cdef Integrals integrals
    cdef Py_ssize_t i
    if u.shape[0] == 0 or out.shape[0] != u.shape[0] or out.shape[1] != 3:
        raise ValueError("allowed are shapes (n,) and (n, 3)")
    with nogil:
        prime_2(&coeffs, &state, u[0])
        for i in range(u.shape[0]):
            out[i, 0] = high_pass_2(&coeffs, &state, u[i], &integrals)
            out[i, 1] = integrals.v
            out[i, 2] = integrals.x


def washout(ClassicalWashout algorithm not None, const Motion[::1] motion not None, Cue[::1] cue not None):
    """Fill `cue` with the algorithm's cues for `motion`, one row per tick."""
    cdef Py_ssize_t i
    if cue.shape[0] != motion.shape[0]:
        raise ValueError("allowed are two arrays of one length")
    with nogil:
        fpu = mc_flush_denormals()
        for i in range(motion.shape[0]):
            washout_step(&algorithm.coeffs, &algorithm.state, &motion[i], &cue[i])
            cue[i].time = motion[i].time
        mc_restore_fpu(fpu)
