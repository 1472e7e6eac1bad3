"""The coordinated adaptive washout: its coefficients, its state, and its step, which is in step.h.

After Parrish, Dieudonne, Bowles and Martin, J. Aircraft 12(1), 44-50, 1975; reconstructed.  Axes are x forward, y right,
z down.  A pair is surge with pitch, or sway with roll to the left, so that both have the same signs.
"""

from motioncue.core.interfaces cimport Algorithm
from motioncue.core.filters cimport FirstOrder, SecondOrder, SecondOrderState
from motioncue.core.records cimport Cue, Motion
from motioncue.core.rotation cimport Turn


cdef extern from "motioncue/cueing/adaptive/step.h" nogil:
    ctypedef struct Parameter "mc_Parameter":
        double start            # value at rest
        double span             # largest less least value; the state holds (value - start) / span
        double low              # (least - start) / span
        double high             # (most - start) / span

    ctypedef struct Input "mc_Input":
        double gain
        double limit            # largest magnitude of the scaled input [m/s^2 or rad/s]

    ctypedef struct AdaptivePair "mc_AdaptivePair":
        Input force
        Input rate
        SecondOrder washout
        Parameter parameters[3]     # share of the force, corner frequency [rad/s], share of the rate
        double tilt_limit           # largest tilt [rad]
        double tilt_rate            # largest tilt rate [rad/s]
        double smooth               # frequency of the low-pass before the tilt over 1 + that times half a tick [rad/s]
        double force_weight         # of the error of specific force [s^2/m]
        double turn_weight          # of the error of turning [s/rad]
        double travel_weight        # [1/m]
        double speed_weight         # [s/m]

    ctypedef struct AdaptivePairState "mc_AdaptivePairState":
        SecondOrderState travel
        SecondOrderState by[3]      # derivatives of the travel by each parameter
        double smooth               # integrator of the smoothed aim of the tilt [rad]
        double tilt                 # integrator of the tilt [rad]
        double turned               # integrator of the washed-out rotation [rad]
        double tilt_by              # derivative of the tilt by the corner frequency [s]
        double turned_by[2]         # of the rotation, by the corner frequency and by the share of the rate
        double moved[3]             # parameters: (value - start) / span

    ctypedef struct HeaveCoeffs "mc_HeaveCoeffs":
        Input force
        FirstOrder outer
        SecondOrder washout
        Parameter parameter
        double force_weight
        double travel_weight
        double speed_weight

    ctypedef struct HeaveState "mc_HeaveState":
        double outer
        SecondOrderState travel
        SecondOrderState by
        double moved

    ctypedef struct YawCoeffs "mc_YawCoeffs":
        Input rate
        Parameter parameter
        double corner               # [rad/s]
        double d                    # 1 / (1 + corner times half a tick)
        double turn_weight          # [s/rad]
        double angle_weight         # [1/rad]

    ctypedef struct YawState "mc_YawState":
        double angle                # integrator of the angle [rad]
        double by                   # its derivative by the parameter [rad]
        double moved

    # Both structs hold only doubles: in lanes, each double becomes a vector.
    ctypedef struct AdaptiveCoeffs "mc_AdaptiveCoeffs":
        AdaptivePair pairs[2]         # surge with pitch, sway with roll to the left
        HeaveCoeffs heave
        YawCoeffs yaw
        double gravity              # [m/s^2]
        double half_tick            # [s]
        double descent              # adaptation per tick
        double back                 # share of a parameter's deviation that a tick takes back
        double pace                 # share of its range that a parameter crosses in a tick at most

    ctypedef struct AdaptiveState "mc_AdaptiveState":
        AdaptivePairState pairs[2]
        HeaveState heave
        YawState yaw
        Turn platform[3]            # roll, pitch, yaw at the tick before
        double primed               # 0 before the first tick, then 1

    void mc_adaptive_one(void* state, const void* coeffs, const Motion* motion, Cue* cue)     # a tick, as in Calls


cdef inline void adaptive_step(
    const AdaptiveCoeffs* coeffs, AdaptiveState* state, const Motion* motion, Cue* cue
) noexcept nogil:
    """Do one tick; cue.time is left unchanged."""
    mc_adaptive_one(state, coeffs, motion, cue)


cdef class AdaptiveWashout(Algorithm):
    cdef AdaptiveCoeffs coeffs
    cdef AdaptiveState state
