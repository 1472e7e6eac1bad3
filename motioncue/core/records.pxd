"""The records as C structs, the places of their channels, and their slots: see records.h."""

from libc.stdint cimport int64_t


cdef extern from "motioncue/core/records.h" nogil:
    # made from core/channels.py by tests/support/declare.py
    enum:
        ROLL "MC_ROLL"
        YAW "MC_YAW"
        ROLL_RATE "MC_ROLL_RATE"
        MOVING "MC_MOVING"  # number of a motion's channels that move the platform; they come first
        MOTION_TIME "MC_MOTION_TIME"  # number of doubles a motion begins with, and place of its time
        CUE_ONLY "MC_CUE_ONLY"  # place of the first channel that a cue has and a motion has not
        CHANNELS "MC_CHANNELS"  # number of doubles a cue begins with: all but its time
        LIMITED "MC_LIMITED"  # number of a cue's channels that move the platform
        CAR "MC_CAR"  # number of an actuation's channels of the car's own motion
        CHASSIS "MC_CHASSIS"  # number of channels of wheels, suspension and cab

    ctypedef struct Motion:  # what the vehicle does
        double surge  # [m/s^2] forward; acceleration without gravity
        double sway  # [m/s^2] right; acceleration without gravity
        double heave  # [m/s^2] up; acceleration without gravity
        double roll  # [rad] right side down
        double pitch  # [rad] nose up
        double yaw  # [rad] nose right; from the world's north, in (-pi, pi]
        double roll_rate  # [rad/s] about the body's forward axis, right side going down
        double pitch_rate  # [rad/s] about the body's right axis, nose going up
        double yaw_rate  # [rad/s] about the body's down axis, nose going right
        double speed  # [m/s] magnitude of velocity; NaN if the source has none
        double engine_speed  # [rpm] engine turning; NaN if the source has none
        int64_t time  # [ns] when it was received, monotonic clock
        double frame_time  # [s] the simulator's own time since its session began

    ctypedef struct Cue:  # what the platform is asked to do
        double surge  # [m/s^2] forward; acceleration without gravity
        double sway  # [m/s^2] right; acceleration without gravity
        double heave  # [m/s^2] up; acceleration without gravity
        double roll  # [rad] right side down
        double pitch  # [rad] nose up
        double yaw  # [rad] nose right; from the world's north, in (-pi, pi]
        double roll_rate  # [rad/s] about the body's forward axis, right side going down
        double pitch_rate  # [rad/s] about the body's right axis, nose going up
        double yaw_rate  # [rad/s] about the body's down axis, nose going right
        double speed  # [m/s] magnitude of velocity; NaN if the source has none
        double engine_speed  # [rpm] engine turning; NaN if the source has none
        double surge_displacement  # [m] forward of the neutral pose
        double sway_displacement  # [m] right of the neutral pose
        double heave_displacement  # [m] above the neutral pose
        int64_t time  # [ns] deadline of the tick, monotonic clock

    ctypedef struct Actuation:  # what one output is sent
        Cue cue  # within the output's own limits
        double up_east  # [1] the body's up axis leans east
        double up_north  # [1] the body's up axis leans north
        double up_up  # [1] the body stands on its wheels
        double actuators[12]  # positions of the platform's actuators, in their units; unused ones 0
        double car_surge  # [m/s^2] forward
        double car_sway  # [m/s^2] right
        double car_heave  # [m/s^2] up
        double car_roll  # [rad] right side down
        double car_pitch  # [rad] nose up
        double car_yaw  # [rad] nose right
        double car_roll_rate  # [rad/s] about the body's forward axis, right side going down
        double car_pitch_rate  # [rad/s] about the body's right axis, nose going up
        double car_yaw_rate  # [rad/s] about the body's down axis, nose going right
        double car_speed  # [m/s] magnitude of velocity
        double car_engine_speed  # [rpm] engine turning
        double pose_forward  # [m] along the platform's own axis, ahead of the neutral pose
        double pose_right  # [m] along the platform's own axis, right of the neutral pose
        double pose_up  # [m] along the platform's own axis, above the neutral pose
        double pose_roll  # [rad] right side down
        double pose_pitch  # [rad] nose up
        double pose_yaw  # [rad] nose right
        double car_suspension_front_left  # [m] travel; the wheel comes nearer to the body
        double car_suspension_front_right  # [m] travel; the wheel comes nearer to the body
        double car_suspension_rear_left  # [m] travel; the wheel comes nearer to the body
        double car_suspension_rear_right  # [m] travel; the wheel comes nearer to the body
        double car_suspension_velocity_front_left  # [m/s] of the travel; the wheel comes nearer to the body
        double car_suspension_velocity_front_right  # [m/s] of the travel; the wheel comes nearer to the body
        double car_suspension_velocity_rear_left  # [m/s] of the travel; the wheel comes nearer to the body
        double car_suspension_velocity_rear_right  # [m/s] of the travel; the wheel comes nearer to the body
        double car_slip_front_left  # [1] as the simulator says; 0 rolls without slip
        double car_slip_front_right  # [1] as the simulator says; 0 rolls without slip
        double car_slip_rear_left  # [1] as the simulator says; 0 rolls without slip
        double car_slip_rear_right  # [1] as the simulator says; 0 rolls without slip
        double car_rumble_front_left  # [1] as the simulator says; 0 on a smooth road
        double car_rumble_front_right  # [1] as the simulator says; 0 on a smooth road
        double car_rumble_rear_left  # [1] as the simulator says; 0 on a smooth road
        double car_rumble_rear_right  # [1] as the simulator says; 0 on a smooth road
        double car_cabin_forward  # [m] offset of a cab on springs, ahead
        double car_cabin_right  # [m] offset of a cab on springs, to the right
        double car_cabin_up  # [m] offset of a cab on springs, up
        double car_cabin_roll  # [rad] of a cab on springs, right side down
        double car_cabin_pitch  # [rad] of a cab on springs, nose up
        double car_cabin_yaw  # [rad] of a cab on springs, nose right
        double tactile  # [1] road and engine as one signal from -1 to 1; the wheels come nearer to the body

    ctypedef struct Tick:  # one tick of the emitter
        int64_t index  # index on the time grid; a gap is a skipped tick
        int64_t deadline  # [ns] monotonic clock
        int64_t lateness  # [ns] from the deadline to just before sending
        int64_t state  # state of the supervisor (motioncue.safety.supervisor.State)
        int64_t frames  # frames published when the tick read its motion; a replay feeds as many before it
        int64_t operation  # 0 engage, 1 hold, 2 park, 3 end, 4 leave; +8: engaged since, +16: output lost; more: Platform
        int64_t settings  # number of the newest settings taken, from 0; a replay posts them before the tick
        double weight  # weight of the fade: 0 neutral, 1 the whole cue
        Motion motion  # interpolated from the frames so far; times are the newest frame's
        Cue cue  # as sent by the tick
        double actuators[12]  # [m or rad] sent to the first output with a platform; else 0
        double feedback[12]  # [m or rad] where these are as the platform replies; 0 if it does not

    ctypedef struct Telemetry:  # a simulator's report, in SI units but in its own axes
        double orientation[4]  # [1] quaternion w, x, y, z: rotates the car's axes into the world's
        double angles[3]  # [rad] roll, pitch, yaw (z-y-x), for sources without a quaternion
        double position[3]  # [m] world axes
        double velocity[3]  # [m/s] world axes
        double acceleration[3]  # [m/s^2] world axes, gravity excluded
        double angular_velocity[3]  # [rad/s] world axes
        double angular_acceleration[3]  # [rad/s^2] world axes
        double forward[3]  # [1] the car's forward axis in its own coordinates; in world axes as attitude
        double up[3]  # [1] the car's up axis likewise; or its right axis, as the stages say
        double engine_speed  # [rpm] engine turning
        double speed  # [m/s] for sources without a velocity; NaN if unknown
        double frame_duration  # [s] NaN if unknown
        double stamp  # [s] the simulator's own time; NaN if it gives none
    # end of what is made

    ctypedef struct Placement:
        int64_t time
        int64_t elapsed_ns
        double interval
        int64_t discontinuities
        int64_t source_elapsed_ns
        int64_t unsettled_ns
        int64_t interval_known

    ctypedef struct Publication:
        Motion motion
        double place_north
        double place_east
        Placement place
        int64_t epoch
        int64_t reason
        double value
        double limit
        int64_t frozen
        int64_t count
        int64_t with_chassis
        int64_t foreseen
        double chassis[CHASSIS]
        Motion ahead[7]

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
