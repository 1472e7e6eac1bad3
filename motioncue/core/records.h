/* The records that flow through motioncue as C structs, the places of their channels, and a slot for each record that
 * one thread hands to another.
 */
#ifndef MOTIONCUE_RECORDS_H
#define MOTIONCUE_RECORDS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "motioncue/core/threads.h"
#include "motioncue/motioncue.h"

/* made from core/channels.py by tests/support/declare.py */
typedef motioncue_motion Motion;
typedef motioncue_cue Cue;
typedef motioncue_actuation Actuation;

enum {
    MC_SURGE = 0,
    MC_SWAY = 1,
    MC_HEAVE = 2,
    MC_ROLL = 3,
    MC_PITCH = 4,
    MC_YAW = 5,
    MC_ROLL_RATE = 6,
    MC_PITCH_RATE = 7,
    MC_YAW_RATE = 8,
    MC_SPEED = 9,
    MC_ENGINE_SPEED = 10,
    MC_SURGE_DISPLACEMENT = 11,
    MC_SWAY_DISPLACEMENT = 12,
    MC_HEAVE_DISPLACEMENT = 13,
    MC_MOVING = 9, /* number of a motion's channels that move the platform; they come first */
    MC_MOTION_TIME = 11, /* number of doubles a motion begins with, and place of its time */
    MC_FRAME_TIME = 12,
    MC_MOTION_SIZE = 13, /* number of all its fields, of 8 bytes each */
    MC_CUE_ONLY = 11, /* place of the first channel that a cue has and a motion has not */
    MC_CHANNELS = 14, /* number of doubles a cue begins with: all but its time */
    MC_CUE_SIZE = 15,
    MC_LIMITED = 12, /* number of a cue's channels that move the platform */
    MC_ACTUATORS = 18, /* place of the first actuator's position in an actuation */
    MC_CAR = 11, /* number of an actuation's channels of the car's own motion */
    MC_CHASSIS = 22, /* number of channels of wheels, suspension and cab */
    MC_ACTUATION_SIZE = 70,
};

typedef struct Tick { /* one tick of the emitter */
    int64_t index;        /* index on the time grid; a gap is a skipped tick */
    int64_t deadline;     /* [ns] monotonic clock */
    int64_t lateness;     /* [ns] from the deadline to just before sending */
    int64_t state;        /* state of the supervisor (motioncue.safety.supervisor.State) */
    int64_t frames;       /* frames published when the tick read its motion; a replay feeds as many before it */
    int64_t operation;    /* 0 engage, 1 hold, 2 park, 3 end, 4 leave; +8: engaged since, +16: output lost; more: Platform */
    int64_t settings;     /* number of the newest settings taken, from 0; a replay posts them before the tick */
    double weight;        /* weight of the fade: 0 neutral, 1 the whole cue */
    Motion motion;        /* interpolated from the frames so far; times are the newest frame's */
    Cue cue;              /* as sent by the tick */
    double actuators[12]; /* [m or rad] sent to the first output with a platform; else 0 */
    double feedback[12];  /* [m or rad] where these are as the platform replies; 0 if it does not */
} Tick;
typedef char Tick_is_480_bytes[sizeof(Tick) == 480 ? 1 : -1];

typedef struct Telemetry { /* a simulator's report, in SI units but in its own axes */
    double orientation[4];          /* [1] quaternion w, x, y, z: rotates the car's axes into the world's */
    double angles[3];               /* [rad] roll, pitch, yaw (z-y-x), for sources without a quaternion */
    double position[3];             /* [m] world axes */
    double velocity[3];             /* [m/s] world axes */
    double acceleration[3];         /* [m/s^2] world axes, gravity excluded */
    double angular_velocity[3];     /* [rad/s] world axes */
    double angular_acceleration[3]; /* [rad/s^2] world axes */
    double forward[3];              /* [1] the car's forward axis in its own coordinates; in world axes as attitude */
    double up[3];                   /* [1] the car's up axis likewise; or its right axis, as the stages say */
    double engine_speed;            /* [rpm] engine turning */
    double speed;                   /* [m/s] for sources without a velocity; NaN if unknown */
    double frame_duration;          /* [s] NaN if unknown */
    double stamp;                   /* [s] the simulator's own time; NaN if it gives none */
} Telemetry;
typedef char Telemetry_is_256_bytes[sizeof(Telemetry) == 256 ? 1 : -1];
/* end of what is made */

typedef struct { /* when a frame's motion was, on the local clock */
    int64_t time;              /* when it was taken, on the local clock [ns] */
    int64_t elapsed_ns;        /* sum of the intervals between frames that say anything new; grows with each such frame [ns] */
    double interval;           /* nominal interval between frames [s] */
    int64_t discontinuities;   /* number of frames so far that did not continue the motion of the frame before */
    int64_t source_elapsed_ns; /* sum of the intervals between frames by the simulator, or of as many usual ones [ns] */
    int64_t unsettled_ns;      /* sum of times in which slopes of what is derived are none of the drive's [ns] */
    int64_t interval_known;    /* whether the last interval between frames is known, not guessed */
} Placement;

enum { MC_AHEAD = 7 }; /* rows of a preview */

typedef struct { /* passed from the receiver to the emitter */
    Motion motion;
    double place_north, place_east; /* in the source's world [m]; of a source that sends none, 0 or not a number */
    Placement place;     /* the motion's place in time */
    int64_t epoch;       /* changes when the motion does not continue what came before */
    int64_t reason;      /* reason of the newest epoch, or of being frozen */
    double value, limit; /* the measured value, and the largest one allowed */
    int64_t frozen;      /* the simulator repeats itself or its motion is impossible; `motion` is the last good one */
    int64_t count;       /* number of publications, this one included */
    int64_t with_chassis;       /* the source says something of wheels, suspension and cab; else `chassis` is not copied */
    int64_t foreseen;           /* a program says what the car will do; else `ahead` is not copied */
    double chassis[MC_CHASSIS]; /* of the frame of `motion`; NaN where it says nothing */
    Motion ahead[MC_AHEAD];     /* what the car will do from then */
} Publication;

/* Copy what is said: most sources say neither wheels nor what will be, which are three quarters of the record. */
static inline void mc_publication_copy(Publication *to, const Publication *from) {
    memcpy(to, from, offsetof(Publication, chassis));
    if (from->with_chassis) memcpy(to->chassis, from->chassis, sizeof from->chassis);
    if (from->foreseen) memcpy(to->ahead, from->ahead, sizeof from->ahead);
}

MC_SLOT_BY(Publication, publication, mc_publication_copy)
MC_SLOT(Tick, tick)
#endif
