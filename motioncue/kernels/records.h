/* The records that flow through motioncue as C structs, the places of their channels, and a slot for each record that
 * one thread hands to another.
 *
 * motioncue/motion.py says what each channel means; a test compares its dtypes with these structs.
 */
#ifndef MOTIONCUE_RECORDS_H
#define MOTIONCUE_RECORDS_H
#include <stddef.h>
#include <stdint.h>

#include "motioncue/kernels/slot.h"
#include "motioncue/motioncue.h"

typedef motioncue_motion Motion;
typedef motioncue_cue Cue;
typedef motioncue_actuation Actuation;

/* Places among the doubles of a motion and of a cue, whose first channels are the same. */
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
    MC_MOVING, /* how many channels of a motion move the platform: those until here */
    MC_SPEED = MC_MOVING,
    MC_ENGINE_SPEED,
    MC_MOTION_TIME, /* also how many doubles a motion begins with */
    MC_FRAME_TIME,
    MC_MOTION_SIZE,
    MC_SURGE_DISPLACEMENT = MC_MOTION_TIME,
    MC_SWAY_DISPLACEMENT,
    MC_HEAVE_DISPLACEMENT,
    MC_CHANNELS, /* how many doubles a cue begins with: all but its time */
    MC_CUE_TIME = MC_CHANNELS,
    MC_CUE_SIZE,
    MC_UP = MC_CUE_SIZE, /* among the doubles of an actuation: the up vector, */
    MC_ACTUATORS = MC_UP + 3, /* and what the actuators are asked for */
    MC_ACTUATION_SIZE = MC_ACTUATORS + MOTIONCUE_ACTUATORS
};

typedef struct { /* of a frame in time */
    int64_t taken;   /* when it was taken, on the local clock [ns] */
    int64_t spent;   /* sum of the times between frames; another one for every frame that says anything new [ns] */
    double interval; /* nominal, from frame to frame [s] */
    int64_t joins;   /* number of frames so far that were not where the frame before led */
    int64_t sure;    /* the last time between frames is not a guess */
} Placement;

typedef struct { /* what the receiver hands to the emitter */
    Motion motion;
    Placement place;     /* of the motion */
    int64_t epoch;       /* another number: the motion does not continue what came before */
    int64_t reason;      /* of the newest epoch, or of being frozen */
    double value, limit; /* what was measured, and what was allowed */
    int64_t frozen;      /* the simulator repeats itself, or its motion cannot be; `motion` is the last good one */
    int64_t count;       /* of publications until this one */
} Publication;

typedef struct {
    int64_t index;
    int64_t deadline; /* [ns] */
    int64_t lateness; /* [ns] */
    int64_t state;    /* a State of the supervisor */
    int64_t frames;   /* publications until the one that the tick read; a replay feeds as many before it */
    int64_t operation; /* what the operator wants: an Operator, plus ENGAGED_NOW if asked for since the tick before */
    int64_t settings; /* number of the newest that were taken: what a replay posts before the tick */
    double weight;    /* of the fade, 0 to 1 */
    Motion motion;
    Cue cue;
    double actuators[MOTIONCUE_ACTUATORS]; /* of the first output that has any */
} Tick;

typedef struct { /* what a simulator says, in SI units but in its own axes */
    double orientation[4];          /* w, x, y, z: car axes to world axes */
    double angles[3];               /* [rad] roll, pitch, yaw, where a source says those instead */
    double position[3];             /* [m] world axes */
    double velocity[3];             /* [m/s] world axes */
    double acceleration[3];         /* [m/s^2] world axes, gravity excluded */
    double angular_velocity[3];     /* [rad/s] world axes */
    double angular_acceleration[3]; /* [rad/s^2] world axes */
    double forward[3], up[3];       /* the car's forward and up axes in its own coordinates */
    double engine_speed;            /* [rpm] */
    double speed;                   /* [m/s] where there is no velocity; NaN if unknown */
    double frame_duration;          /* [s] NaN if unknown */
    double stamp;                   /* [s] the simulator's own time, NaN if it says none */
} Telemetry;

MC_SLOT(Publication, publication)
MC_SLOT(Tick, tick)

/* Every field is where its place says; a record that differs does not compile. */
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
