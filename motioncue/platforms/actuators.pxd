"""From the cue to the actuators of a platform, within the bounds of every one of them."""

from libc.stdint cimport int64_t

from motioncue.core.blend cimport Blend, Fade
from motioncue.core.interfaces cimport Stage
from motioncue.core.records cimport Cue
from motioncue.platforms.kinematics cimport Geometry


cdef extern from "motioncue/platforms/reach.h" nogil:
    ctypedef struct JerkStop "mc_JerkStop":
        pass
    enum:
        PARTS "MC_PARTS"
        MOST "MC_MOST_ACTUATORS"
    ctypedef struct ActuatorBounds "mc_ActuatorBounds":
        double low              # lowest position
        double high
        double speed            # [unit per tick]
        double acceleration     # [unit per tick^2]
        double jerk             # [unit per tick^3]; inf: not bounded
    ctypedef struct ActuatorMotion "mc_ActuatorMotion":
        double position         # as sent at the tick before
        double speed
        double target           # wanted position of the tick before
        double acceleration     # kept while jerk is bounded, or bounds change; NaN: not known
    bint limit_actuators "mc_limit_actuators"(
        const ActuatorBounds* bounds, ActuatorMotion* motion, int n, bint part, double* wanted, int64_t* acted
    )
    bint within "mc_within"(const Geometry* p, const ActuatorBounds* bounds, const double* pose, double* positions)
    ctypedef struct TableMotion "mc_TableMotion":
        JerkStop stop
    ctypedef struct PoseReduction "mc_PoseReduction":
        double* pose            # wanted pose, as of the newest tick in which it was a number
        bint active             # whether any part of it gives way
        double* at              # pose of the tick before
        double* positions       # and its positions
        int slowed              # the actuator whose speed shortened the newest tick's step; -1: none did
        TableMotion* tables
    void limit_table "mc_limit_table"(
        const ActuatorBounds* bounds, ActuatorMotion* motion, JerkStop* stop, double* wanted, int64_t* acted
    )
    double LAG_S "MC_LAG_S"
    bint reach "mc_reach"(
        const Geometry* p, const ActuatorBounds* bounds, const int* order, double pace, PoseReduction* reduction,
        const double* wanted, double* positions
    )
    void reach_anew "mc_reach_anew"(
        const Geometry* p, const ActuatorBounds* before, const ActuatorBounds* bounds, PoseReduction* reduction, double* positions
    )


cdef extern from "motioncue/platforms/actuator_limits.h" nogil:
    void relax_bounds "mc_relax_bounds"(const ActuatorBounds* goal, ActuatorBounds* bounds, int n)
    int tighten_bounds "mc_tighten_bounds"(
        const ActuatorBounds* goal, ActuatorBounds* bounds, const ActuatorMotion* motion, int n, bint part, bint range
    )
    bint bounds_reached "mc_bounds_reached"(const ActuatorBounds* goal, const ActuatorBounds* bounds, int n)
    const JerkStop AT_REST "mc_at_rest"
    bint limit_jerks "mc_limit_jerks"(
        const ActuatorBounds* bounds, ActuatorMotion* motion, JerkStop* stop, int n, double* wanted, int64_t* acted
    )
    int tighten_jerk_bounds "mc_tighten_jerk_bounds"(
        const ActuatorBounds* goal, ActuatorBounds* bounds, const ActuatorMotion* motion, JerkStop* stop, int n, bint range,
        bint* smooth
    )
    void follow_jerk_stop "mc_follow_jerk_stop"(
        const ActuatorBounds* bounds, ActuatorMotion* motion, JerkStop* stop, int n, double* positions
    )
    void stop_actuators "mc_stop_actuators"(
        const ActuatorBounds* bounds, ActuatorMotion* motion, int n, bint part, double* positions
    )
    ctypedef struct Lead "mc_Lead":
        int order               # of the lag that is compensated; 0: none
        double lag              # [s]
        double outer            # weights of its parts
        double inner
    ctypedef struct LeadState "mc_LeadState":
        pass
    Lead lead_for "mc_lead_for"(double lag, double damping, double dt)
    void lead "mc_lead"(const Lead* c, LeadState* s, const ActuatorBounds* bounds, int n, double* positions)
    void lead_as_before "mc_lead_as_before"(
        const Lead* c, const Lead* before, const LeadState* s, int n, double* positions
    )


ctypedef struct ActuatorParams:         # the coefficients
    Geometry geometry
    int count                   # actuators, tables counted
    ActuatorBounds bounds[12]
    int order[4]                # parts of a pose, in the order in which they give way
    double neutral[12]          # positions at neutral
    double parked[12]           # positions where the platform is parked
    double pace                 # share of the way up or down in a tick
    Lead lead                   # against the lag of the actuators
    double damping              # of that lag
    double dt                   # [s]
    int64_t planned             # whether the cue comes within a narrower range by itself
    bint part                   # where all actuators would not stop together before their ends, each may by itself
    bint smooth[4]              # by group: whether any jerk is bounded
    double yielding             # share of a difference that parts of a pose follow in a tick as they give way


# What stops together is a group: the actuators of the frame and beside it are the first, each table is one by itself.

ctypedef struct Easing:         # the way from other coefficients to those in force
    bint on
    bint smooth[4]          # by group: whether those that hold meanwhile bound jerks
    ActuatorBounds bounds[12]       # those that hold meanwhile
    ActuatorBounds former[12]       # those that were in force when they changed, where they are wider
    double lag              # that was led when they changed [s], its damping, and its weight
    double damping
    double weight
    double position         # 0 to 1; 1 is done
    double pace             # [1/tick]
    Blend joins[12]         # remaining difference that is added to the wanted positions


ctypedef struct ActuatorState:         # the state
    bint begun                  # whether there has been a tick
    bint parked                 # whether the newest tick was to rest
    bint asked                  # the next tick is to ask for `stood`, where the platform stands by itself
    bint stands                 # the newest tick did
    double stood[12]
    Fade raised                 # the way up: 0 parked, 1 at the cue
    LeadState lead
    ActuatorMotion motion[12]
    JerkStop stops[4]           # by group: a stop from there, while jerk is bounded
    PoseReduction reduction                 # parts of the pose that give way
    Easing easing
    int64_t ticks
    int64_t unreached           # ticks whose pose was out of reach
    int64_t acted[12]           # ticks in which each actuator held the others back


cdef inline void pose_of(const Cue* cue, double* pose) noexcept nogil:
    """Fill in the pose that a cue asks for: surge, sway, heave, roll, pitch, yaw."""
    pose[0] = cue.surge_displacement
    pose[1] = cue.sway_displacement
    pose[2] = cue.heave_displacement
    pose[3] = cue.roll
    pose[4] = cue.pitch
    pose[5] = cue.yaw


cdef double fade_ticks_from(const ActuatorParams* d, const double* pose, const double* move) noexcept nogil


cdef class Actuators(Stage):
    cdef ActuatorParams params
    cdef ActuatorState state
    cdef readonly tuple names
