/* A controller in C with a loop of its own, 1000 times a second: controller [PROFILE [TICKS [LOG]]]
 *
 * Python reads the profile and designs the filters; the loop does not use it. */
#include <Python.h> /* before any other */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <motioncue/motioncue.h>

#define RATE_HZ 1000.0
#define SECOND 1000000000LL

typedef struct {
    motioncue_motion motion;
    motioncue_cue cue;
} row; /* one row of the log */

/* Fill `motion` with what the car does at `t` [s]; here a slalom, in yours the telemetry. */
static void read_car(motioncue_motion *motion, double t) {
    motion->surge = sin(0.4 * M_PI * t);
    motion->sway = 3.0 * sin(M_PI * t);
    motion->yaw_rate = 0.15 * sin(M_PI * t);
    motion->speed = 20.0;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* The loop: one row a tick, on an absolute grid. */
static void run(const motioncue_api *api, motioncue_stepper *stepper, row *log, long ticks) {
    const int64_t period = api->period_ns(stepper), start = now();
    int64_t deadline = start, late = 0;
    long steps = 0, before = faults();
    for (long i = 0; i < ticks; i++) {
        deadline += period;
        const struct timespec t = {deadline / SECOND, deadline % SECOND};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) {}
        if (now() - deadline > late) late = now() - deadline;
        read_car(&log[i].motion, (double)(deadline - start) * 1e-9);
        log[i].motion.time = deadline;
        steps += api->step(stepper, &log[i].motion, &log[i].cue); /* yours would drive the actuators by the cue */
    }
    before = faults() - before;
    printf("%ld steps, %ld page faults, at worst %lld us late\n", steps, before, (long long)late / 1000);
}

/* Start the Python in which motioncue is installed; build.py says which. */
static int start_python(void) {
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0; /* Ctrl-C stays the controller's */
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, PYTHON);
    if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return PyStatus_Exception(status) ? -1 : 0;
}

int main(int argc, char **argv) {
    const char *profile = argc > 1 ? argv[1] : "ccd-dk-washout";
    const long ticks = argc > 2 ? atol(argv[2]) : 5000;
    row *log = (row *)calloc(ticks > 0 ? (size_t)ticks : 1, sizeof *log);
    char error[1000];

    if (!log || start_python() < 0) return 1;
    const motioncue_api *api = motioncue_import();
    if (!api) {
        PyErr_Print();
        return 1;
    }
    motioncue_stepper *stepper = api->create(profile, RATE_HZ, error, sizeof error);
    if (!stepper) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    PyThreadState *python = PyEval_SaveThread(); /* no GIL and no Python from here on */

    if (mlockall(MCL_CURRENT | MCL_FUTURE)) perror("mlockall"); /* no page faults; the loop works without it too */
    for (long i = 0; i < ticks; i++) log[i].cue.time = -1;      /* touches the log's pages */
    static row first;
    for (int i = 0; i < 100; i++) { /* and loads the code's pages */
        read_car(&first.motion, 0.0);
        api->step(stepper, &first.motion, &first.cue);
    }
    api->reset(stepper);
    run(api, stepper, log, ticks);

    PyEval_RestoreThread(python);
    api->destroy(stepper);
    if (Py_FinalizeEx() < 0) return 1;
    if (argc > 3) {
        FILE *file = fopen(argv[3], "wb");
        if (!file || fwrite(log, sizeof *log, (size_t)ticks, file) != (size_t)ticks || fclose(file)) {
            perror(argv[3]);
            return 1;
        }
    }
    free(log);
    return 0;
}
