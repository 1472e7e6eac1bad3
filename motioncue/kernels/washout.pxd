"""The classical washout: its memory, and its step, which is in washout.h.

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
        double limit            # of the scaled input [m/s^2 or rad/s]
        FirstOrder outer        # third order only; passes everything otherwise
        SecondOrder inner
        double outer_state
        SecondOrderState state
        Integrals integrals     # translation: velocity, displacement; rotation: angle, its integral

    ctypedef struct TiltAxis "mc_TiltAxis":
        SecondOrder low_pass
        SecondOrderState state
        double step_limit       # largest change of the angle in a tick [rad]
        double angle            # [rad]

    ctypedef struct Washout "mc_Washout":     # doubles all: lanes are laid out as these
        HighPassAxis translation[3]
        HighPassAxis rotation[3]
        TiltAxis tilt[2]        # of surge (pitch) and of sway (roll)
        Turn platform[3]        # roll, pitch, yaw of the tick before
        double gravity          # [m/s^2]
        double ticks_per_second
        double primed           # 0 before the first tick, then 1

    enum:
        WASHOUT_SIZE "MC_WASHOUT_SIZE"      # how many doubles a Washout is

    void mc_washout_step(Washout* w, const double* motion, double* cue)


cdef inline void washout_step(Washout* w, const Motion* motion, Cue* cue) noexcept nogil:
    """Do one tick; leaves cue.time alone."""
    mc_washout_step(w, <const double*>motion, <double*>cue)
    cue.speed = motion.speed
    cue.engine_speed = motion.engine_speed


cdef class ClassicalWashout(Algorithm):
    cdef Washout washout
