/* motioncue in C and C++: a profile's cueing as a table of functions, for a controller with a loop of its own.
 *
 * Found through motioncue.get_include().  Python makes and unmakes steppers; `step` and `reset` never touch it: they
 * may be called from any thread, without the GIL, one thread at a time for each stepper, and they neither allocate,
 * lock, make a system call nor fail.  The whole program: examples/embed_c.
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

/* Of the table and the structs below.  Functions are only ever added at the table's end; whatever else changes, changes
 * this number. */
#define MOTIONCUE_ABI 1u

/* What the vehicle does; the layout of motioncue.MOTION_DTYPE. */
typedef struct motioncue_motion {
    double surge, sway, heave;               /* [m/s^2] body frame, gravity excluded */
    double roll, pitch, yaw;                 /* [rad] */
    double roll_rate, pitch_rate, yaw_rate;  /* [rad/s] */
    double speed;                            /* [m/s], NaN if there is none */
    double engine_speed;                     /* [rpm], NaN if there is none */
    int64_t time;                            /* [ns] on any clock: the cue is given the same */
    double frame_time;                       /* [s] the simulator's own; not read by a step */
} motioncue_motion;

/* What the platform is asked to do; the layout of motioncue.CUE_DTYPE. */
typedef struct motioncue_cue {
    double surge, sway, heave;               /* [m/s^2] */
    double roll, pitch, yaw;                 /* [rad] */
    double roll_rate, pitch_rate, yaw_rate;  /* [rad/s] */
    double speed;                            /* [m/s] */
    double engine_speed;                     /* [rpm] */
    double surge_displacement, sway_displacement, heave_displacement; /* [m] from the neutral pose */
    int64_t time;                            /* [ns] */
} motioncue_cue;

enum { MOTIONCUE_ACTUATORS = 12 };

/* What one output of the profile is sent; the layout of motioncue.ACTUATION_DTYPE. */
typedef struct motioncue_actuation {
    motioncue_cue cue;                       /* within the output's own limits */
    double up_east, up_north, up_up;         /* the body's up axis in world axes, where the packet has it, else 0 */
    double actuators[MOTIONCUE_ACTUATORS];   /* of the platform, in its units; 0 where it has no more */
} motioncue_actuation;

/* Made of 8-byte numbers without gaps, so that the size fixes every offset. */
typedef char motioncue_motion_is_104_bytes[sizeof(motioncue_motion) == 104 ? 1 : -1];
typedef char motioncue_cue_is_120_bytes[sizeof(motioncue_cue) == 120 ? 1 : -1];
typedef char motioncue_actuation_is_240_bytes[sizeof(motioncue_actuation) == 240 ? 1 : -1];

typedef struct motioncue_stepper motioncue_stepper; /* one rig's algorithm, limits and output, with their state */

typedef struct motioncue_api {
    uint32_t abi;  /* MOTIONCUE_ABI of the installed package */
    uint32_t size; /* of the installed package's table [bytes] */

    /* Return a stepper for a built-in profile or a TOML file (UTF-8), to be stepped `rate_hz` times a second; 0 for the
     * profile's own rate.  NULL if it is refused: then `error` (if size > 0) holds the reason, UTF-8, cut to fit.
     * Runs Python: from any thread, which need not hold the GIL but may. */
    motioncue_stepper *(*create)(const char *profile, double rate_hz, char *error, size_t size);

    /* Return the time from one step to the next [ns]. */
    int64_t (*period_ns)(const motioncue_stepper *stepper);

    /* Do one tick: 1, or 0 if the motion is refused because an acceleration, an angle or a rate is not finite or beyond a
     * million of its unit; then nothing has changed, and `cue` is left alone.  Speeds go through unlooked at. */
    int (*step)(motioncue_stepper *stepper, const motioncue_motion *motion, motioncue_cue *cue);

    /* Forget the past: the next step starts from rest at neutral, so only call it while the platform is there. */
    void (*reset)(motioncue_stepper *stepper);

    /* Free a stepper, or do nothing for NULL.  Runs Python, as `create` does. */
    void (*destroy)(motioncue_stepper *stepper);

    /* Change settings: `change` is KEY=VALUE with a dotted key ("cueing.surge.gain=0.4"), or the name or path of a profile
     * (UTF-8).  1, or 0 if it is refused: then nothing changes, and `error` (if size > 0) holds the reason as `create` says it.
     * Runs Python, from any thread, also while another one steps: the next step takes the settings without waiting, and
     * what it asks for has no step. */
    int (*retune)(motioncue_stepper *stepper, const char *change, char *error, size_t size);

    /* Fill what the profile's first output is sent for the cue of the newest step.  Its stages have memory: call it once
     * after each step or never. */
    void (*actuate)(motioncue_stepper *stepper, const motioncue_cue *cue, motioncue_actuation *actuation);
} motioncue_api;

/* Include Python.h first for this: return the table, or NULL with a Python exception set.  Needs the GIL; the table
 * stays valid until Python ends. */
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
