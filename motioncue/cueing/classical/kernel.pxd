"""The classical washout: its coefficients, its state, and its step, which is in step.h.

Reid & Nahon, UTIAS reports 296, 307 and 319: translation is high-passed, sustained specific force becomes tilt,
rotation is high-passed.  Axes are x forward, y right, z down; index order surge, sway, heave and roll, pitch, yaw.
"""

from motioncue.core.interfaces cimport Algorithm
from motioncue.core.filters cimport FirstOrder, Integrals, SecondOrder, SecondOrderState
from motioncue.core.records cimport Cue, Motion
from motioncue.core.rotation cimport Turn


cdef extern from "motioncue/cueing/classical/step.h" nogil:
    ctypedef struct Scaling "mc_Scaling":
        double gain
        double limit            # largest magnitude of the scaled input [m/s^2 or rad/s]
        double largest          # input from which on the polynomial is held [m/s^2 or rad/s]
        double per_largest      # 1 / largest; 0 if the scaling is linear
        double square           # with z = |u| / largest: u times 1 + square z + cube z^2
        double cube
        double dead_zone        # input up to which nothing passes [m/s^2 or rad/s]
        double mean             # factor on large inputs: mean + half to the positive side, mean - half to the other
        double half

    ctypedef struct HighPassAxis "mc_HighPassAxis":
        FirstOrder outer        # third order only; otherwise it passes everything
        SecondOrder inner

    ctypedef struct Bound "mc_Bound":       # of an angle
        double limit            # [rad]; infinite: none
        double per_limit        # 1 / limit [1/rad]
        double room             # rate that takes the angle from 0 to the limit in a tick [rad/s]; held input: or nearly so

    ctypedef struct Return "mc_Return":     # to neutral
        double most             # threshold of input and of what brings it back [m/s^2 or rad/s]; 0: none
        double by_speed         # [1/s]; of a rotation, whose rate is brought back, by its angle
        double by_place         # [1/s^2]

    ctypedef struct HighPassState "mc_HighPassState":
        double outer            # state of the outer section [m/s^2 or rad/s]
        SecondOrderState inner
        Integrals integrals     # translation: velocity, displacement; rotation: angle, its integral

    ctypedef struct TiltAxis "mc_TiltAxis":
        SecondOrder low_pass
        double slope            # g times the share of the car's own lean that becomes tilt [m/s^2]
        double rate             # largest change of the angle per tick [rad]
        double acceleration     # largest change of that change per tick [rad]

    ctypedef struct TiltState "mc_TiltState":
        SecondOrderState low_pass
        double angle            # [rad]
        double rate             # change of the angle at the tick before [rad]
        double target           # angle that was wanted at the tick before [rad]

    ctypedef struct TextureAxis "mc_TextureAxis":
        double gain
        double limit            # largest displacement or angle [m or rad]
        double per_limit        # 1 / limit; 0 if there is no texture

    ctypedef struct Texture "mc_Texture":
        HighPassAxis band       # the same for every axis
        TextureAxis axes[4]     # sway, heave, roll, pitch

    # Both structs hold only doubles: in lanes, each double becomes a vector.
    ctypedef struct WashoutCoeffs "mc_WashoutCoeffs":
        Scaling scaling[8]      # of specific force along surge and sway, of accelerations, of body rates
        HighPassAxis translation[3]
        HighPassAxis rotation[3]
        Bound bounds[3]         # of the high-passed roll, pitch, yaw
        Return returns[6]       # of displacements and of angles
        TiltAxis tilt[2]        # for surge (pitch) and sway (roll)
        Texture texture
        double turned_limits[6] # of level accelerations and Euler rates; infinite unless limits act on these
        double linear           # whether the tilt is f/g instead of its arc sine: 1 or 0
        double by_platform      # whether the platform's attitude turns accelerations into level axes: 1 or 0
        double forced           # whether specific force is turned instead of acceleration: 1 or 0
        double otherwise        # whether it is by_platform or forced: 1 or 0
        double upright          # gravity times the gain of heave if forced [m/s^2], else 0
        double curved           # whether it is forced, or any scaling more than a gain and a limit: 1 or 0
        double bounded          # whether any angle has a bound: 1 or 0
        double either           # whether the filters' input is held, or anything brought back below a threshold: 1 or 0
        double textured         # whether there is texture: 1 or 0
        double held             # whether the filters' input is held between ticks: 1 or 0
        double limited_late     # whether limits act on what has been turned: 1 or 0
        double gravity          # [m/s^2]
        double ticks_per_second

    ctypedef struct WashoutState "mc_WashoutState":
        HighPassState translation[3]
        HighPassState rotation[3]
        TiltState tilt[2]
        HighPassState texture[4]
        Turn platform[3]        # roll, pitch, yaw at the tick before
        double primed           # 0 before the first tick, then 1

    void mc_washout_one(void* state, const void* coeffs, const Motion* motion, Cue* cue)     # a tick, as in Calls


cdef inline void washout_step(
    const WashoutCoeffs* coeffs, WashoutState* state, const Motion* motion, Cue* cue
) noexcept nogil:
    """Do one tick; cue.time is left unchanged."""
    mc_washout_one(state, coeffs, motion, cue)


# After a change of settings, until a tilt that lags behind has caught up; see `settle`.
ctypedef struct Eased:
    WashoutCoeffs coeffs
    bint lags[2]            # of each tilt: whether its acceleration is bounded


cdef class ClassicalWashout(Algorithm):
    cdef WashoutCoeffs coeffs
    cdef WashoutState state
    cdef Eased eased
