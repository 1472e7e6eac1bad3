"""The classical washout: its coefficients, its state, and its step, which is in washout.h.

Reid & Nahon, UTIAS reports 296, 307 and 319: translation is high-passed, sustained specific force becomes tilt,
rotation is high-passed.  Axes are x forward, y right, z down; index order surge, sway, heave and roll, pitch, yaw.
"""

from motioncue.kernels.algorithm cimport Algorithm
from motioncue.kernels.filters cimport FirstOrder, Integrals, SecondOrder, SecondOrderState
from motioncue.kernels.records cimport Cue, Motion
from motioncue.kernels.rotation cimport Turn


cdef extern from "motioncue/kernels/scalar.h" nogil:
    ctypedef struct HighPassAxis "mc_HighPassAxis":
        double gain
        double limit            # largest magnitude of the scaled input [m/s^2 or rad/s]
        FirstOrder outer        # third order only; otherwise it passes everything
        SecondOrder inner

    ctypedef struct HighPassState "mc_HighPassState":
        double outer            # state of the outer section [m/s^2 or rad/s]
        SecondOrderState inner
        Integrals integrals     # translation: velocity, displacement; rotation: angle, its integral

    ctypedef struct TiltAxis "mc_TiltAxis":
        SecondOrder low_pass
        double step_limit       # largest change of the angle per tick [rad]

    ctypedef struct TiltState "mc_TiltState":
        SecondOrderState low_pass
        double angle            # [rad]

    # Both structs hold only doubles: in lanes, each double becomes a vector.
    ctypedef struct WashoutCoeffs "mc_WashoutCoeffs":
        HighPassAxis translation[3]
        HighPassAxis rotation[3]
        TiltAxis tilt[2]        # for surge (pitch) and sway (roll)
        double gravity          # [m/s^2]
        double ticks_per_second

    ctypedef struct WashoutState "mc_WashoutState":
        HighPassState translation[3]
        HighPassState rotation[3]
        TiltState tilt[2]
        Turn platform[3]        # roll, pitch, yaw at the tick before
        double primed           # 0 before the first tick, then 1

    void mc_washout_step(const WashoutCoeffs* coeffs, WashoutState* state, const double* motion, double* cue)


cdef inline void washout_step(
    const WashoutCoeffs* coeffs, WashoutState* state, const Motion* motion, Cue* cue
) noexcept nogil:
    """Do one tick; cue.time is left unchanged."""
    mc_washout_step(coeffs, state, <const double*>motion, <double*>cue)
    cue.speed = motion.speed
    cue.engine_speed = motion.engine_speed


cdef class ClassicalWashout(Algorithm):
    cdef WashoutCoeffs coeffs
    cdef WashoutState state
