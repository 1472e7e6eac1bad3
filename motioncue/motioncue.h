/* motioncue in C and C++: a profile's cueing as a table of functions, for a controller with a loop of its own.
 *
 * Found through motioncue.get_include().  Python creates and frees steppers; `step` and `reset` do not use Python: they
 * may be called from any thread, without the GIL, one thread at a time for each stepper, and they neither allocate,
 * lock, make a system call nor fail.  A whole program: examples/embed_c.
 *
 * Signs: surge forward, sway right, heave up; roll right side down, pitch nose up, yaw nose right.
 */
#ifndef MOTIONCUE_H
#define MOTIONCUE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the table and the structs below.  Functions are only ever added at the table's end; any other change
 * increases this number. */
#define MOTIONCUE_ABI 3u

/* The layouts of motioncue.MOTION_DTYPE, CUE_DTYPE and ACTUATION_DTYPE.  All members have 8 bytes without gaps, so the
 * size determines every offset: made from core/channels.py by tests/support/declare.py */
enum { MOTIONCUE_ACTUATORS = 12, MOTIONCUE_AHEAD = 7, MOTIONCUE_CHASSIS = 22 };
#define MOTIONCUE_AHEAD_MARK "mcahead1"

typedef struct motioncue_motion { /* what the vehicle does */
    double surge;        /* [m/s^2] forward; acceleration without gravity */
    double sway;         /* [m/s^2] right; acceleration without gravity */
    double heave;        /* [m/s^2] up; acceleration without gravity */
    double roll;         /* [rad] right side down */
    double pitch;        /* [rad] nose up */
    double yaw;          /* [rad] nose right; from the world's north, in (-pi, pi] */
    double roll_rate;    /* [rad/s] about the body's forward axis, right side going down */
    double pitch_rate;   /* [rad/s] about the body's right axis, nose going up */
    double yaw_rate;     /* [rad/s] about the body's down axis, nose going right */
    double speed;        /* [m/s] magnitude of velocity; NaN if the source has none */
    double engine_speed; /* [rpm] engine turning; NaN if the source has none */
    int64_t time;        /* [ns] when it was received, monotonic clock */
    double frame_time;   /* [s] the simulator's own time since its session began */
} motioncue_motion;
typedef char motioncue_motion_is_104_bytes[sizeof(motioncue_motion) == 104 ? 1 : -1];

typedef struct motioncue_cue { /* what the platform is asked to do */
    double surge;              /* [m/s^2] forward; acceleration without gravity */
    double sway;               /* [m/s^2] right; acceleration without gravity */
    double heave;              /* [m/s^2] up; acceleration without gravity */
    double roll;               /* [rad] right side down */
    double pitch;              /* [rad] nose up */
    double yaw;                /* [rad] nose right; from the world's north, in (-pi, pi] */
    double roll_rate;          /* [rad/s] about the body's forward axis, right side going down */
    double pitch_rate;         /* [rad/s] about the body's right axis, nose going up */
    double yaw_rate;           /* [rad/s] about the body's down axis, nose going right */
    double speed;              /* [m/s] magnitude of velocity; NaN if the source has none */
    double engine_speed;       /* [rpm] engine turning; NaN if the source has none */
    double surge_displacement; /* [m] forward of the neutral pose */
    double sway_displacement;  /* [m] right of the neutral pose */
    double heave_displacement; /* [m] above the neutral pose */
    int64_t time;              /* [ns] deadline of the tick, monotonic clock */
} motioncue_cue;
typedef char motioncue_cue_is_120_bytes[sizeof(motioncue_cue) == 120 ? 1 : -1];

typedef struct motioncue_actuation { /* what one output is sent */
    motioncue_cue cue;                          /* within the output's own limits */
    double up_east;                             /* [1] the body's up axis leans east */
    double up_north;                            /* [1] the body's up axis leans north */
    double up_up;                               /* [1] the body stands on its wheels */
    double actuators[12];                       /* positions of the platform's actuators, in their units; unused ones 0 */
    double car_surge;                           /* [m/s^2] forward */
    double car_sway;                            /* [m/s^2] right */
    double car_heave;                           /* [m/s^2] up */
    double car_roll;                            /* [rad] right side down */
    double car_pitch;                           /* [rad] nose up */
    double car_yaw;                             /* [rad] nose right */
    double car_roll_rate;                       /* [rad/s] about the body's forward axis, right side going down */
    double car_pitch_rate;                      /* [rad/s] about the body's right axis, nose going up */
    double car_yaw_rate;                        /* [rad/s] about the body's down axis, nose going right */
    double car_speed;                           /* [m/s] magnitude of velocity */
    double car_engine_speed;                    /* [rpm] engine turning */
    double pose_forward;                        /* [m] along the platform's own axis, ahead of the neutral pose */
    double pose_right;                          /* [m] along the platform's own axis, right of the neutral pose */
    double pose_up;                             /* [m] along the platform's own axis, above the neutral pose */
    double pose_roll;                           /* [rad] right side down */
    double pose_pitch;                          /* [rad] nose up */
    double pose_yaw;                            /* [rad] nose right */
    double car_suspension_front_left;           /* [m] travel; the wheel comes nearer to the body */
    double car_suspension_front_right;          /* [m] travel; the wheel comes nearer to the body */
    double car_suspension_rear_left;            /* [m] travel; the wheel comes nearer to the body */
    double car_suspension_rear_right;           /* [m] travel; the wheel comes nearer to the body */
    double car_suspension_velocity_front_left;  /* [m/s] of the travel; the wheel comes nearer to the body */
    double car_suspension_velocity_front_right; /* [m/s] of the travel; the wheel comes nearer to the body */
    double car_suspension_velocity_rear_left;   /* [m/s] of the travel; the wheel comes nearer to the body */
    double car_suspension_velocity_rear_right;  /* [m/s] of the travel; the wheel comes nearer to the body */
    double car_slip_front_left;                 /* [1] as the simulator says; 0 rolls without slip */
    double car_slip_front_right;                /* [1] as the simulator says; 0 rolls without slip */
    double car_slip_rear_left;                  /* [1] as the simulator says; 0 rolls without slip */
    double car_slip_rear_right;                 /* [1] as the simulator says; 0 rolls without slip */
    double car_rumble_front_left;               /* [1] as the simulator says; 0 on a smooth road */
    double car_rumble_front_right;              /* [1] as the simulator says; 0 on a smooth road */
    double car_rumble_rear_left;                /* [1] as the simulator says; 0 on a smooth road */
    double car_rumble_rear_right;               /* [1] as the simulator says; 0 on a smooth road */
    double car_cabin_forward;                   /* [m] offset of a cab on springs, ahead */
    double car_cabin_right;                     /* [m] offset of a cab on springs, to the right */
    double car_cabin_up;                        /* [m] offset of a cab on springs, up */
    double car_cabin_roll;                      /* [rad] of a cab on springs, right side down */
    double car_cabin_pitch;                     /* [rad] of a cab on springs, nose up */
    double car_cabin_yaw;                       /* [rad] of a cab on springs, nose right */
    double tactile;                             /* [1] road and engine as one signal from -1 to 1; the wheels come nearer to the body */
} motioncue_actuation;
typedef char motioncue_actuation_is_560_bytes[sizeof(motioncue_actuation) == 560 ? 1 : -1];
/* end of what is made */

typedef struct motioncue_stepper motioncue_stepper; /* one rig's algorithm, limits and output, with their state */

typedef struct motioncue_engine motioncue_engine; /* a running engine: its loop sends, supervises, fades and records */

/* NULL in place of any argument is refused: functions that return a pointer or a number return NULL or 0, the others do
 * nothing.  A pointer that is neither NULL nor valid cannot be noticed. */
typedef struct motioncue_api {
    uint32_t abi;  /* MOTIONCUE_ABI of the installed package */
    uint32_t size; /* size of the installed package's table [bytes] */

    /* Return a stepper for a built-in profile or a TOML file (UTF-8) that is stepped `rate_hz` times a second; 0: the
     * profile's own rate.  If the profile is refused, return NULL and write the reason to `error` (if it is not NULL and
     * size > 0): UTF-8, cut to fit.  Runs Python; may be called from any thread, with or without the GIL. */
    motioncue_stepper *(*create)(const char *profile, double rate_hz, char *error, size_t size);

    /* Return the time from one step to the next [ns], 0 for NULL. */
    int64_t (*period_ns)(const motioncue_stepper *stepper);

    /* Do one tick and return 1.  Return 0 if the motion is refused because an acceleration, an angle or a rate is not
     * finite or beyond a million of its unit; then nothing changes, `cue` included: call `actuate` with it.  Speeds are
     * not checked, `time` may be of any clock and is copied to the cue, and `frame_time` is not read. */
    int (*step)(motioncue_stepper *stepper, const motioncue_motion *motion, motioncue_cue *cue);

    /* Start from rest at the next step; call it only while the platform is at neutral, or parked (see `park`). */
    void (*reset)(motioncue_stepper *stepper);

    /* Free a stepper, or do nothing for NULL.  Runs Python, as `create` does. */
    void (*destroy)(motioncue_stepper *stepper);

    /* Change settings: `change` is KEY=VALUE with a dotted key ("cueing.surge.gain=0.4"), or the name or path of a
     * profile (UTF-8).  Return 1; or, if it is refused, change nothing, write the reason to `error` as `create` does, and
     * return 0.  Runs Python, from any thread, even while another one steps: the next step takes the settings without
     * waiting, and its cue has no step. */
    int (*retune)(motioncue_stepper *stepper, const char *change, char *error, size_t size);

    /* Fill what the profile's first output is sent for the cue of the newest step.  Its stages have states, so call it
     * once after every step or never. */
    void (*actuate)(motioncue_stepper *stepper, const motioncue_cue *cue, motioncue_actuation *actuation);

    /* From the next call of `actuate` on, let the actuators of a [platform] sink to where it is parked and rest there (1),
     * or rise from there to the cue (0; at first), in its rise_s.  If the first call, or the first after `reset`, is
     * parked, they begin there, otherwise at neutral.  `actuate` has to be called at every step. */
    void (*park)(motioncue_stepper *stepper, int parked);

    /* Start an engine for a profile without source.endpoint, such as "program-dk"; `error` as for `create`.  Refused while
     * another program drives the platform at one of its outputs, unless output.shared = true.  Runs Python, and so do the
     * engine's threads while they begin and end: leave the GIL to them.  Signals stay the program's: when the system sends
     * SIGTERM, call `stop`. */
    motioncue_engine *(*start)(const char *profile, char *error, size_t size);

    /* Take one frame: a motioncue_motion for "program-dk", else a packet as the profile describes it.  Return 1; or 0 if
     * it gave no motion, which is counted by reason.  From any thread, at your pace, without the GIL: it neither
     * allocates, locks, waits nor fails, and reads the clock.  A frame that comes while another thread feeds is dropped.
     * Who knows what the car will do, as for `look`, puts the eight bytes of MOTIONCUE_AHEAD_MARK and MOTIONCUE_AHEAD
     * motions behind the packet, from its frame on; `size` counts them. */
    int (*feed)(motioncue_engine *engine, const void *packet, size_t size);

    /* Fade to neutral, end the engine and free it, or do nothing for NULL; no thread may feed it then.  Runs Python, and
     * waits; no signal interrupts it.  Py_FinalizeEx does it for engines that are left; a program that ends without either
     * leaves the platform where it is. */
    void (*stop)(motioncue_engine *engine);

    /* Tell an algorithm that plans what the car will do 0.06, 0.12, 0.25, 0.5, 1, 2 and 4 s from now, for the next step
     * alone: MOTIONCUE_AHEAD motions; one that is not finite is not known.  Other algorithms take no notice. */
    void (*look)(motioncue_stepper *stepper, const motioncue_motion *ahead);

    /* Say what wheels and cab do, for `actuate` from then on: MOTIONCUE_CHASSIS numbers, in the order and the units of
     * motioncue_actuation from car_suspension_front_left to car_cabin_yaw; NaN where it is not known, as all are at first. */
    void (*wheels)(motioncue_stepper *stepper, const double *chassis);
} motioncue_api;

/* Available if Python.h is included first: return the table, or NULL with a Python exception set.  Needs the GIL; the
 * table stays valid until Python ends. */
#ifdef Py_PYTHON_H
static inline const motioncue_api *motioncue_import(void) {
    const motioncue_api *api = (const motioncue_api *)PyCapsule_Import("motioncue._capi", 0);
    if (api && (api->abi != MOTIONCUE_ABI || api->size < sizeof(motioncue_api))) {
        PyErr_Format(PyExc_ImportError, "motioncue: found C interface %u of %u bytes, built for %u of %u bytes",
                     (unsigned)api->abi, (unsigned)api->size, MOTIONCUE_ABI, (unsigned)sizeof(motioncue_api));
        return NULL;
    }
    return api;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
