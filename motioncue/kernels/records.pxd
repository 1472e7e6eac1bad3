"""The records of motion.py as C structs; a test holds the two to the same layout."""

from libc.stdint cimport int64_t


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


ctypedef struct Placement:      # of a frame in time
    int64_t taken           # when it was taken, on the local clock [ns]
    int64_t spent           # sum of the times between frames; another one for every frame that says anything new [ns]
    double interval         # nominal, from frame to frame [s]
    int64_t joins           # number of frames so far that were not where the frame before led
    bint sure               # the last time between frames is not a guess


ctypedef struct Publication:    # what the receiver hands to the emitter
    Motion motion
    Placement place         # of the motion
    int64_t epoch           # another number: the motion does not continue what came before
    int64_t reason          # of the newest epoch, or of being frozen
    double value            # what was measured,
    double limit            # and what was allowed
    bint frozen             # the simulator repeats itself, or its motion cannot be; `motion` is the last good one


ctypedef struct Actuation:
    Cue cue
    double up_east          # the body's up axis in world axes
    double up_north
    double up_up


ctypedef struct Tick:
    int64_t index
    int64_t deadline        # [ns]
    int64_t lateness        # [ns]
    int64_t state           # a State of the supervisor
    double weight           # of the fade, 0 to 1
    Motion motion
    Cue cue


ctypedef struct Telemetry:
    double orientation[4]   # w, x, y, z: car axes to world axes
    double angles[3]        # [rad] roll, pitch, yaw, where a source says those instead
    double position[3]      # [m] world axes
    double velocity[3]      # [m/s] world axes
    double acceleration[3]  # [m/s^2] world axes, gravity excluded
    double angular_velocity[3]      # [rad/s] world axes
    double angular_acceleration[3]  # [rad/s^2] world axes
    double forward[3]       # the car's forward axis in its own coordinates
    double up[3]            # the car's up axis in its own coordinates
    double engine_speed     # [rpm]
    double speed            # [m/s] where there is no velocity; NaN if unknown
    double frame_duration   # [s] NaN if unknown
    double stamp            # [s] the simulator's own time, NaN if it says none
