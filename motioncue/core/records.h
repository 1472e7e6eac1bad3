/* The records that flow through motioncue as C structs, the places of their channels, and a slot for each record that
 * one thread hands to another.
 *
 * motioncue/core/channels.py says what each channel means; a test compares its dtypes with these structs.
 */
#ifndef MOTIONCUE_RECORDS_H
#define MOTIONCUE_RECORDS_H
#include <stddef.h>
#include <stdint.h>

#include "motioncue/core/threads.h"
#include "motioncue/motioncue.h"

typedef motioncue_motion Motion;
typedef motioncue_cue Cue;
typedef motioncue_actuation Actuation;

/* Indices among the doubles of a motion and of a cue; the first channels of both are the same. */
enum {
    MC_SURGE,
    MC_SWAY,
    MC_HEAVE,
    MC_ROLL,
    MC_PITCH,
    MC_YAW,
    MC_ROLL_RATE,
    MC_PITCH_RATE,
    MC_YAW_RATE,
    MC_MOVING, /* number of a motion's channels that move the platform; they come first */
    MC_SPEED = MC_MOVING,
    MC_ENGINE_SPEED,
    MC_MOTION_TIME, /* also the number of doubles that a motion begins with */
    MC_FRAME_TIME,
    MC_MOTION_SIZE,
    MC_SURGE_DISPLACEMENT = MC_MOTION_TIME,
    MC_SWAY_DISPLACEMENT,
    MC_HEAVE_DISPLACEMENT,
    MC_CHANNELS, /* number of doubles a cue begins with: all but its time */
    MC_CUE_TIME = MC_CHANNELS,
    MC_CUE_SIZE,
    MC_UP = MC_CUE_SIZE, /* index of the up vector in an actuation */
    MC_ACTUATORS = MC_UP + 3, /* index of the first actuator's position */
    MC_ACTUATION_SIZE = MC_ACTUATORS + MOTIONCUE_ACTUATORS
};

typedef struct { /* when a frame's motion was, on the local clock */
    int64_t taken;   /* when it was taken, on the local clock [ns] */
    int64_t spent;   /* sum of the intervals between frames that say anything new; grows with each such frame [ns] */
    double interval; /* nominal interval between frames [s] */
    int64_t joins;   /* number of frames so far that did not continue the motion of the frame before */
    int64_t told;    /* sum of the intervals between frames by the simulator, or of as many usual ones [ns] */
    int64_t sure;    /* whether the last interval between frames is known, not guessed */
} Placement;

typedef struct { /* passed from the receiver to the emitter */
    Motion motion;
    Placement place;     /* the motion's place in time */
    int64_t epoch;       /* changes when the motion does not continue what came before */
    int64_t reason;      /* reason of the newest epoch, or of being frozen */
    double value, limit; /* the measured value, and the largest one allowed */
    int64_t frozen;      /* the simulator repeats itself or its motion is impossible; `motion` is the last good one */
    int64_t count;       /* number of publications, this one included */
} Publication;

typedef struct {
    int64_t index;
    int64_t deadline; /* [ns] */
    int64_t lateness; /* [ns] */
    int64_t state;    /* a State of the supervisor */
    int64_t frames;   /* number of publications when the tick read its motion; a replay feeds as many before it */
    int64_t operation; /* the operator's request: an Operator, plus ENGAGED_NOW if made since the tick before */
    int64_t settings; /* number of the newest settings taken; a replay posts them before the tick */
    double weight;    /* weight of the fade, 0 to 1 */
    Motion motion;
    Cue cue;
    double actuators[MOTIONCUE_ACTUATORS]; /* positions sent to the first output with a platform, else 0 */
} Tick;

typedef struct { /* a simulator's report, in SI units but in its own axes */
    double orientation[4];          /* w, x, y, z: car axes to world axes */
    double angles[3];               /* [rad] roll, pitch, yaw, for sources without a quaternion */
    double position[3];             /* [m] world axes */
    double velocity[3];             /* [m/s] world axes */
    double acceleration[3];         /* [m/s^2] world axes, gravity excluded */
    double angular_velocity[3];     /* [rad/s] world axes */
    double angular_acceleration[3]; /* [rad/s^2] world axes */
    double forward[3], up[3];       /* the car's forward and up axes in its own coordinates; as attitude: in world axes */
    double engine_speed;            /* [rpm] */
    double speed;                   /* [m/s] for sources without a velocity; NaN if unknown */
    double frame_duration;          /* [s] NaN if unknown */
    double stamp;                   /* [s] the simulator's own time; NaN if it gives none */
} Telemetry;

MC_SLOT(Publication, publication)
MC_SLOT(Tick, tick)

/* Each field is at the index that its name says; a struct that differs does not compile. */
#define MC_AT(Record, field, place) \
    typedef char mc_place_of_##Record##_##field[offsetof(Record, field) == 8 * (place) ? 1 : -1];
#define MC_BODY(Record) \
    MC_AT(Record, surge, MC_SURGE) MC_AT(Record, sway, MC_SWAY) MC_AT(Record, heave, MC_HEAVE) \
    MC_AT(Record, roll, MC_ROLL) MC_AT(Record, pitch, MC_PITCH) MC_AT(Record, yaw, MC_YAW) \
    MC_AT(Record, roll_rate, MC_ROLL_RATE) MC_AT(Record, pitch_rate, MC_PITCH_RATE) MC_AT(Record, yaw_rate, MC_YAW_RATE) \
    MC_AT(Record, speed, MC_SPEED) MC_AT(Record, engine_speed, MC_ENGINE_SPEED)
MC_BODY(Motion)
MC_AT(Motion, time, MC_MOTION_TIME)
MC_AT(Motion, frame_time, MC_FRAME_TIME)
MC_BODY(Cue)
MC_AT(Cue, surge_displacement, MC_SURGE_DISPLACEMENT)
MC_AT(Cue, sway_displacement, MC_SWAY_DISPLACEMENT)
MC_AT(Cue, heave_displacement, MC_HEAVE_DISPLACEMENT)
MC_AT(Cue, time, MC_CUE_TIME)
MC_AT(Actuation, up_east, MC_UP)
MC_AT(Actuation, actuators, MC_ACTUATORS)
#undef MC_BODY
#undef MC_AT
typedef char mc_motion_has_no_other_fields[sizeof(Motion) == 8 * MC_MOTION_SIZE ? 1 : -1];
typedef char mc_cue_has_no_other_fields[sizeof(Cue) == 8 * MC_CUE_SIZE ? 1 : -1];
typedef char mc_actuation_has_no_other_fields[sizeof(Actuation) == 8 * MC_ACTUATION_SIZE ? 1 : -1];
#endif
