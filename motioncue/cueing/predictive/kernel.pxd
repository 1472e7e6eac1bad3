"""Receding horizon cueing: its coefficients, its state, and its tick.

Channels of the pose and senses are indexed alike: surge, sway, heave, roll, pitch, yaw; surge forward, sway right,
heave up.
"""

from libc.stdint cimport int64_t

from motioncue.core.interfaces cimport AHEAD, Algorithm
from motioncue.core.rotation cimport Turn
from motioncue.cueing.predictive.motion_predictor cimport NODES, PAST, MotionPredictorCoeffs, MotionPredictorState
from motioncue.cueing.predictive.guard cimport Guard
from motioncue.cueing.predictive.preview_doubt cimport PreviewDoubt
from motioncue.cueing.predictive.solver cimport Quadratic
from motioncue.platforms.kinematics cimport Geometry


cdef enum:
    AXES = 6
    KNOTS = 16              # blocks of a plan at most
    ROWS = 1024             # constraints of all groups together at most
    BOUNDS = 18             # actuators, and channels bounded beside them, at most


ctypedef struct Group:              # channels that are planned together
    int channels                # how many; then which
    int channel[AXES]
    int senses
    int sense[AXES]
    int conflicts               # force senses whose conflict is weighed: all of the group's or none
    int knots
    int unknowns
    int rows                    # constraints beside the bounds of the unknowns
    int first                   # place of the first constraint in the state's list
    int phase                   # tick of the period in which it is planned
    const double* gradient      # known x unknowns
    const double* drift         # known x rows
    const double* low
    const double* high
    const int* bound            # by row: the actuator that it bounds; -1 if none
    const int* block            # by row: the block at whose end it holds
    const double* per_place     # by row: share of what is allowed, for 1 by which its position is not linear
    const double* per_speed     # the same for its speed
    const double* per_push      # and for its acceleration
    const double* turning       # rows x known: the car's own rate in shares of the limit, for rows that are tilt rates
    const int* tilting          # by row: whether it is a tilt rate in shares of its limit
    const int* kind             # by row: which it is of those whose slopes follow the plan; -1 if they stay
    const double* motion        # kinds x 3: shares in it of a channel's place, speed and acceleration, by a slope of 1
    const double* scale         # acceleration for 1 of each unknown [m/s^2, rad/s^2]
    Quadratic* quadratic

ctypedef struct PredictiveCoeffs:
    int64_t number              # of the settings, by their content; not 0
    int groups
    Group group[AXES]
    int period                  # ticks from plan to plan
    int ends[KNOTS]             # last step of each block, counted from 1
    int patience                # plans that may fail one after the other, before the safe stop
    double dt                   # [s]
    double gravity
    double gain[AXES]
    double conflict[2][3]       # what a tick makes of conflict and its integral: of both and of the force
    double lean[2][2]           # what pitch, or roll, and its rate add to surge's, or sway's [m/s^2, m/s]
    double kept[AXES]           # share of an organ's state that is left after a tick
    double tilt_rate            # limit of the tilt rate [rad/s]
    double hurry                # the limit while there is time left for tilting faster, in shares of it
    double burst                # how far it has to go before tilting is faster [rad]
    int calm                    # whether accelerations along the axes never change abruptly
    double opening              # in which the limit opens and closes [s]
    double share                # of the time in which tilt may be fast without making bursts rarer
    int remembers               # whether the lap before counts
    double proof[AXES]          # sum of squares of what it said beyond that has to prove right before half of it counts
    double proved               # share of a proof that is left after a beat
    double largest[AXES]        # largest motion of the car that is planned for [m/s^2, rad/s]
    Guard guard[AXES]
    MotionPredictorCoeffs predictor
    Geometry geometry
    int geared                  # actuators whose positions are not linear in the pose; 0 if all are
    int angles                  # of cranks and their rods, which are bounded behind the actuators; 0 if none
    double slopes[12][AXES]     # derivatives of their positions at neutral, times `gear`, and of the angles' sines
    double steepness[12]        # sum of the squares of these
    double neutral[12]
    double ends_low[12]         # of their positions [m, rad]
    double ends_high[12]
    double gear[12]             # cosine of the angle at neutral, for positions of cranks; 1 for others

ctypedef struct Counts:
    int64_t plans
    int64_t failed
    int64_t stopped             # in a safe stop
    int64_t most_steps          # of the solver

ctypedef struct Held:               # bounds as they are in force while narrower ones take hold
    double low[BOUNDS]
    double high[BOUNDS]
    double speed[BOUNDS]
    double push[BOUNDS]
    double scale[AXES]          # of each channel's acceleration
    Guard guard[AXES]

ctypedef struct PredictiveState:
    int64_t number              # of the settings that it was planned with last; 0 after a reset
    double since                # how long ago the settings have changed, or a preview has misled the plan [s]
    int64_t misled              # whether it was a preview
    int64_t startled            # whether one says what no car does, or has been found wrong, in this tick
    double rough                # how fast plans have changed accelerations along the axes of late [m/s^3]
    Held held                   # now
    Held former                 # when they changed
    double leaving[AXES][KNOTS] # the plan at that time, as `plan`
    int64_t left[AXES]          # by group: plans since then
    int64_t tick                # within the period
    double place[AXES]          # pose [m, rad], its derivatives
    double speed[AXES]
    double acceleration[AXES]
    double change[AXES]         # of the acceleration, in a tick
    double organs[AXES]
    double conflict[3][2]       # between sensed and expected vertical by each force [m/s^2], and its integral
    double ahead[AHEAD][AXES]   # the car's motion as a preview has it
    int64_t known[AHEAD]        # whether it has; for the next step alone
    double heeded[AHEAD]        # how much of it counts, 0 to 1: what comes or goes does so in some time
    int64_t weighed             # whether that counts as much as it has proved right
    int64_t beats               # in which they were compared
    signed char by_lap[PAST]    # by beat: whether the lap before said it, not a program
    PreviewDoubt program        # how much of a program's does not count
    float expected[AXES][NODES][PAST]   # by beat: what was foreseen of each node without it, and what it said beyond
    float beyond[AXES][NODES][PAST]
    double agreed[AXES][NODES]  # sum of what it said beyond times what came beyond, and of the former's square
    double said[AXES][NODES]
    double trust[AXES][NODES]   # how much of it counts, 0 to 1
    double waiting[2]           # how far roll and pitch go beyond what is slow in the next half second [rad]
    double hurry                # how far the limit is open, 0 to 1
    double spent                # fast tilt of late, less what its share allows; -1 to 1
    int64_t open                # whether it tilts faster now
    double plan[AXES][KNOTS]    # accelerations at the ends of the blocks
    int64_t age[AXES]           # by group: plans that have failed since the newest one
    signed char active[ROWS]    # states of the constraints at the newest solution
    MotionPredictorState predictor
    Counts counts
    Turn platform[3]


cdef class Predictive(Algorithm):
    cdef PredictiveCoeffs coeffs
    cdef PredictiveState state
    cdef list kept
