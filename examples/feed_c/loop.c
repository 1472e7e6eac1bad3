/* A physics loop in C that feeds the engine: loop [PROFILE [SECONDS]]
 *
 * Python reads the profile and starts the engine; the loop does not use it. */
#include <Python.h> /* before any other */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <motioncue/motioncue.h>

#define STEP 10000000LL /* [ns] of a physics step */
#define SECOND 1000000000LL

/* Fill `motion` with what the car does at `t` [s]; here a slalom at 20 m/s, in yours the physics. */
static void drive(motioncue_motion *motion, double t) {
    motion->yaw_rate = 0.2 * sin(0.5 * M_PI * t);
    motion->yaw = 0.4 / M_PI * (1.0 - cos(0.5 * M_PI * t));
    motion->sway = 20.0 * motion->yaw_rate;
    motion->speed = 20.0;
    motion->engine_speed = NAN; /* not known */
    motion->frame_time = t;
}

/* The loop, on an absolute grid; return how many frames the engine took. */
static long run(const motioncue_api *api, motioncue_engine *engine, long steps) {
    static motioncue_motion motion;
    struct timespec t;
    long taken = 0;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t deadline = t.tv_sec * SECOND + t.tv_nsec;
    for (long i = 0; i < steps; i++) {
        deadline += STEP;
        t = (struct timespec){deadline / SECOND, deadline % SECOND};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) {}
        drive(&motion, (double)(i * STEP) * 1e-9);
        taken += api->feed(engine, &motion, sizeof motion);
    }
    return taken;
}

/* Start the Python in which motioncue is installed; build.py says which. */
static int start_python(void) {
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0; /* Ctrl-C stays the program's */
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, PYTHON);
    if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return PyStatus_Exception(status) ? -1 : 0;
}

int main(int argc, char **argv) {
    const char *profile = argc > 1 ? argv[1] : "program-dk";
    const double seconds = argc > 2 ? atof(argv[2]) : 10.0;
    const long steps = (long)(seconds * SECOND / STEP);
    char error[1000];

    if (start_python() < 0) return 1;
    const motioncue_api *api = motioncue_import();
    if (!api) {
        PyErr_Print();
        return 1;
    }
    PyThreadState *python = PyEval_SaveThread(); /* the engine's threads need the GIL to begin and to end */
    motioncue_engine *engine = api->start(profile, error, sizeof error);
    if (!engine) fprintf(stderr, "%s\n", error);
    if (engine) printf("%ld of %ld frames taken\n", run(api, engine, steps), steps);
    api->stop(engine); /* fades to neutral */
    PyEval_RestoreThread(python);
    if (Py_FinalizeEx() < 0) return 1;
    return engine ? 0 : 2;
}
