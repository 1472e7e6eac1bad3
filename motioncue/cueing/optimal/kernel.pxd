"""The linear-quadratic washout: its coefficients, its state, and its step, which is in step.h.

Three pairs of a translation and a rotation: surge with pitch, sway with roll, heave with yaw.  Within a pair, forces and
travel are positive forward, right, up; a lean is positive where gravity makes it a positive force: nose up, left side
down.  Heave and yaw have nothing in common but the form.
"""

from motioncue.core.interfaces cimport Algorithm
from motioncue.core.records cimport Cue, Motion
from motioncue.core.rotation cimport Turn


cdef extern from "motioncue/cueing/optimal/step.h" nogil:
    ctypedef struct PairCoeffs "mc_PairCoeffs":
        double force_gain
        double force_limit      # largest magnitude of the scaled specific force [m/s^2]
        double rate_gain
        double rate_limit       # largest magnitude of the scaled rate [rad/s]
        double gravity          # specific force of a small lean [m/s^2 per rad]; 0 for heave and yaw
        double slack            # largest change of the angle per tick beyond the car's own [rad]
        double braking          # largest change of the angle's change per tick [rad]; infinite unless settings have changed
        double half_tick        # [s]
        double otolith          # of the low-pass sections of the organs: h / (1 + h), h half a tick over the time constant
        double canal
        double roll_off         # likewise, of the low-pass sections of the car's force and rate
        double acceleration[8]  # law: acceleration [m/s^2] from the state in its order, the car's force and rate
        double turning[8]       # law: angular acceleration [rad/s^2]

    # A variable is kept as its value plus half a tick of its derivative, which the trapezoidal rule adds up.
    ctypedef struct PairState "mc_PairState":
        double otolith          # low-passed error of the specific force [m/s^2]
        double canal            # low-passed error of the rate [rad/s]
        double velocity         # [m/s]
        double travel           # [m]
        double rate             # [rad/s]
        double lean             # [rad]
        double car_force        # low-passed [m/s^2]
        double car_rate         # low-passed [rad/s]

    ctypedef struct Following "mc_Following":
        double angle            # of the platform: pitch, less roll, yaw [rad]
        double change           # of the angle at the tick before [rad]
        double target           # angle that was wanted at the tick before [rad]

    # Both structs hold only doubles: in lanes, each double becomes a vector.
    ctypedef struct OptimalCoeffs "mc_OptimalCoeffs":
        PairCoeffs pairs[3]
        double gravity          # [m/s^2]
        double ticks_per_second

    ctypedef struct OptimalState "mc_OptimalState":
        PairState pairs[3]
        Following angles[3]     # pitch, less roll, yaw
        Turn platform[3]        # roll, pitch, yaw at the tick before

    void mc_optimal_one(void* state, const void* coeffs, const Motion* motion, Cue* cue)     # a tick, as in Calls


cdef inline void optimal_step(
    const OptimalCoeffs* coeffs, OptimalState* state, const Motion* motion, Cue* cue
) noexcept nogil:
    """Do one tick; cue.time is left unchanged."""
    mc_optimal_one(state, coeffs, motion, cue)


# After a change of settings, until an angle that lags behind has caught up; see `settle`.
ctypedef struct Eased:
    OptimalCoeffs coeffs
    bint lags[2]            # of pitch and roll: whether its acceleration is bounded


cdef class OptimalWashout(Algorithm):
    cdef OptimalCoeffs coeffs
    cdef Eased eased
    cdef OptimalState state
