"""The records of motion.py as C structs and the indices of their channels: see records.h, which explains the fields."""

from libc.stdint cimport int64_t


cdef extern from "motioncue/core/records.h" nogil:
    enum:
        ROLL "MC_ROLL"
        YAW "MC_YAW"
        ROLL_RATE "MC_ROLL_RATE"
        MOVING "MC_MOVING"              # number of a motion's channels that move the platform; they come first
        MOTION_TIME "MC_MOTION_TIME"    # number of doubles a motion begins with
        CHANNELS "MC_CHANNELS"          # number of doubles a cue begins with

    ctypedef struct Motion:
        double surge            # [m/s^2] forward, gravity excluded
        double sway             # [m/s^2] right
        double heave            # [m/s^2] up
        double roll             # [rad] right side down
        double pitch            # [rad] nose up
        double yaw              # [rad] nose right
        double roll_rate        # [rad/s] about the body's forward axis
        double pitch_rate       # [rad/s] about the body's right axis
        double yaw_rate         # [rad/s] about the body's down axis
        double speed            # [m/s], NaN if the source has none
        double engine_speed     # [rpm], NaN if the source has none
        int64_t time            # [ns] received, monotonic clock
        double frame_time       # [s] the simulator's own

    ctypedef struct Cue:
        double surge            # [m/s^2] as Motion; after a washout: specific force deviation, platform frame
        double sway
        double heave
        double roll             # [rad]
        double pitch
        double yaw
        double roll_rate        # [rad/s]
        double pitch_rate
        double yaw_rate
        double speed            # [m/s]
        double engine_speed     # [rpm]
        double surge_displacement   # [m] from the neutral pose
        double sway_displacement
        double heave_displacement
        int64_t time            # [ns] deadline of the tick

    ctypedef struct Placement:
        int64_t taken
        int64_t spent
        double interval
        int64_t joins
        int64_t told
        int64_t sure

    ctypedef struct Publication:
        Motion motion
        Placement place
        int64_t epoch
        int64_t reason
        double value
        double limit
        int64_t frozen
        int64_t count

    ctypedef struct Actuation:
        Cue cue
        double up_east          # the body's up axis in world axes
        double up_north
        double up_up
        double actuators[12]    # positions of the platform's actuators, in their units

    ctypedef struct Tick:
        int64_t index
        int64_t deadline
        int64_t lateness
        int64_t state
        int64_t frames
        int64_t operation
        int64_t settings
        double weight
        Motion motion
        Cue cue
        double actuators[12]

    ctypedef struct Telemetry:
        double orientation[4]
        double angles[3]
        double position[3]
        double velocity[3]
        double acceleration[3]
        double angular_velocity[3]
        double angular_acceleration[3]
        double forward[3]
        double up[3]
        double engine_speed
        double speed
        double frame_duration
        double stamp

    ctypedef struct PublicationSlot:
        pass
    void publication_clear(PublicationSlot* slot)
    void publication_write(PublicationSlot* slot, const Publication* newest)
    bint publication_read(PublicationSlot* slot, Publication* out)

    ctypedef struct TickSlot:
        pass
    void tick_clear(TickSlot* slot)
    void tick_write(TickSlot* slot, const Tick* newest)
    bint tick_read(TickSlot* slot, Tick* out)
