/* A profile as a functional mock-up unit (FMU) for co-simulation, FMI 2.0 and 3.0: engine/fmu.py compiles it and writes
 * the model description, motioncue.h does the cueing.
 *
 * Ticks stand on the profile's own grid from the start time on: tick n belongs to the time from n periods to n + 1, and
 * is done when a communication step reaches that end.  So a step of k periods does k ticks, a shorter one none until
 * enough time has passed, and every tick reads the inputs as they are held at the step that does it.
 *
 * Python designs the filters when an instance is made: the Python that the process has, or else one that is started
 * here.  doStep, get and set use neither Python nor memory, locks or files; a refusal writes to the importer's log. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <Python.h> /* before any other; for its types: its functions are looked for at run time */

#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "motioncue/motioncue.h"

/* From the exporter: PYTHON, its interpreter; LIBPYTHON, the library of that; TOKEN, of the model description; INPUTS,
 * their names in order; ACTUATORS, how many positions are outputs; TIME, PARKED and FIRST_OUTPUT, value references. */
static const char *const inputs[] = {INPUTS};
enum {
    INPUT_COUNT = sizeof inputs / sizeof *inputs,
    CUE_COUNT = offsetof(motioncue_cue, time) / 8,
    FIRST_ACTUATOR = offsetof(motioncue_actuation, actuators) / 8,
};
_Static_assert((int)INPUT_COUNT == (int)(offsetof(motioncue_motion, time) / 8), "an input for each channel");

#define LARGEST 3e5    /* in the input's unit: nine of them are still what `step` takes, so it never refuses */
#define LONGEST 3600.0 /* [s] of one communication step, so that a wrong unit of time is told and not waited for */
#define CLOSE 1e-6     /* [ticks] that times which round may be short of a tick's end */

typedef enum { OK, WARNING, DISCARD, ERROR } status; /* the same numbers in both versions */
typedef enum { CREATED, STARTING, STEPPING, ENDED } phase;

typedef void log_2(void *environment, const char *name, int status, const char *category, const char *message, ...);
typedef void log_3(void *environment, int status, const char *category, const char *message);
typedef struct {
    log_2 *logger;
    void (*unused[3])(void);
    void *environment;
} callbacks_2;

typedef struct {
    char *name;
    void *environment;
    log_2 *log_2;
    log_3 *log_3;
    const motioncue_api *api;
    motioncue_stepper *stepper;
    motioncue_motion motion; /* the inputs */
    motioncue_cue cue;
    motioncue_actuation sent; /* the outputs */
    int parked;
    unsigned held; /* a bit for each input whose newest value was refused */
    phase phase;
    double start, now; /* [s] */
    int64_t ticks;     /* done since the start */
} instance;

#define EXPORT __attribute__((visibility("default")))

/* --- what is told ------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static status report(const instance *self, status s, const char *format, ...) {
    const char *category = s == WARNING ? "logStatusWarning" : "logStatusError";
    char text[1600], safe[2 * sizeof text], *to = safe;
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (self->log_3) self->log_3(self->environment, s, category, text);
    if (self->log_2) { /* to FMI 2.0 a message is a format */
        for (const char *from = text; *from; *to++ = *from++)
            if (*from == '%') *to++ = '%';
        *to = '\0';
        self->log_2(self->environment, self->name, s, category, safe);
    }
    return s;
}

/* --- Python ------------------------------------------------------------------------------------------------------- */

static void *library = RTLD_DEFAULT;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
#define PY(name) ((__typeof__(name) *)dlsym(library, #name))

/* Find the Python of this process, or start one; return what is wrong, or NULL. */
static const char *find_python(void) {
    static char wrong[300];
    if (!PY(Py_IsInitialized)) {
        void *found = dlopen(LIBPYTHON, RTLD_NOW | RTLD_GLOBAL); /* global: motioncue's modules find Python there */
        if (!found) return dlerror();
        library = found;
    }
    const char *version = PY(Py_GetVersion)();
    const int length = (int)(strrchr(PY_VERSION, '.') - PY_VERSION) + 1; /* "3.11." */
    if (strncmp(version, PY_VERSION, (size_t)length)) {
        snprintf(wrong, sizeof wrong, "found Python %.20s there, allowed is %.*sx", version, length, PY_VERSION);
        return wrong;
    }
    if (PY(Py_IsInitialized)()) return NULL;
    PyConfig config;
    PY(PyConfig_InitPythonConfig)(&config);
    config.install_signal_handlers = 0; /* Ctrl-C stays the importer's */
    PyStatus done = PY(PyConfig_SetBytesString)(&config, &config.program_name, PYTHON);
    if (!PY(PyStatus_Exception)(done)) done = PY(Py_InitializeFromConfig)(&config);
    PY(PyConfig_Clear)(&config);
    if (PY(PyStatus_Exception)(done)) return done.err_msg ? done.err_msg : "Python ended while it began";
    PY(PyEval_SaveThread)(); /* no thread needs it from here on */
    return NULL;
}

/* Return the installed package's table; NULL, and what is wrong, if there is none. */
static const motioncue_api *find_motioncue(char *wrong, size_t size) {
    pthread_mutex_lock(&starting);
    const char *reason = find_python();
    if (reason) snprintf(wrong, size, "no Python for motioncue: %s", reason);
    pthread_mutex_unlock(&starting);
    if (reason) return NULL;
    PyGILState_STATE gil = PY(PyGILState_Ensure)();
    PyObject *package = PY(PyImport_ImportModule)("motioncue"); /* says more than the next line if it is missing */
    const motioncue_api *api = package ? (const motioncue_api *)PY(PyCapsule_Import)("motioncue._capi", 0) : NULL;
    if (!api) {
        PyObject *kind = NULL, *value = NULL, *trace = NULL;
        PY(PyErr_Fetch)(&kind, &value, &trace);
        PyObject *text = value ? PY(PyObject_Str)(value) : NULL;
        const char *said = text ? PY(PyUnicode_AsUTF8)(text) : NULL;
        snprintf(wrong, size, "%s: the Python of this process needs motioncue; it was exported by %s",
                 said ? said : "motioncue cannot be imported", PYTHON);
        PY(PyErr_Clear)();
        PY(Py_DecRef)(kind), PY(Py_DecRef)(value), PY(Py_DecRef)(trace), PY(Py_DecRef)(text); /* or NULL */
    } else if (api->abi != MOTIONCUE_ABI || api->size < sizeof *api) {
        snprintf(wrong, size, "found motioncue's C interface %u of %u bytes, exported for %u of %u bytes: export again",
                 (unsigned)api->abi, (unsigned)api->size, MOTIONCUE_ABI, (unsigned)sizeof *api);
        api = NULL;
    }
    PY(Py_DecRef)(package);
    PY(PyGILState_Release)(gil);
    return api;
}

/* --- an instance's life ------------------------------------------------------------------------------------------- */

EXPORT void fmi2FreeInstance(instance *self);

/* Stand at rest before the first tick: outputs are those of a car that stands. */
static void rest(instance *self) {
    const motioncue_motion still = {0};
    self->api->reset(self->stepper);
    self->api->park(self->stepper, self->parked);
    self->api->step(self->stepper, &still, &self->cue);
    self->api->actuate(self->stepper, &self->cue, &self->sent);
    self->api->reset(self->stepper);
    self->ticks = 0;
}

/* Write the path of a file: URI; return whether it is one and fits. */
static bool path_of(const char *uri, char *path, size_t size) {
    if (!uri || strncmp(uri, "file:", 5)) return false;
    uri += 5;
    if (!strncmp(uri, "//", 2)) uri = strchr(uri + 2, '/'); /* behind the host, which is this one */
    for (; uri && *uri && size > 1; size--) {
        char digits[3] = "";
        const bool escaped = *uri == '%' && isxdigit((unsigned char)uri[1]) && isxdigit((unsigned char)uri[2]);
        *path++ = escaped ? (char)strtol(memcpy(digits, uri + 1, 2), NULL, 16) : *uri;
        uri += escaped ? 3 : 1;
    }
    *path = '\0';
    return uri && !*uri;
}

static instance *create(instance like, const char *name, const char *token, const char *resources) {
    char wrong[1200], path[4096];
    instance *self = (instance *)malloc(sizeof *self);
    if (!self) return NULL;
    *self = like;
    self->name = strdup(name ? name : "");
    if (!token || strcmp(token, TOKEN))
        report(self, ERROR, "instantiate: found token %s, allowed is %s", token ? token : "none", TOKEN);
    else if (!resources || snprintf(path, sizeof path, "%s/profile.toml", resources) >= (int)sizeof path)
        report(self, ERROR, "instantiate: found no place of the resources, allowed is their folder");
    else if (!(self->api = find_motioncue(wrong, sizeof wrong)))
        report(self, ERROR, "instantiate: %s", wrong);
    else if (!(self->stepper = self->api->create(path, 0.0, wrong, sizeof wrong)))
        report(self, ERROR, "instantiate: %s", wrong);
    else {
        rest(self);
        return self;
    }
    fmi2FreeInstance(self);
    return NULL;
}

/* Return the place of a real variable, NULL if there is none. */
static const double *variable(const instance *self, uint32_t number) {
    const uint32_t channel = number - FIRST_OUTPUT; /* far beyond all if it is below */
    if (number < INPUT_COUNT) return (const double *)&self->motion + number;
    if (number == TIME) return &self->now;
    if (channel < CUE_COUNT || (channel >= FIRST_ACTUATOR && channel < FIRST_ACTUATOR + ACTUATORS))
        return (const double *)&self->sent + channel;
    return NULL;
}

/* --- FMI 2.0 and 3.0 ---------------------------------------------------------------------------------------------- */

/* The same function of both versions; where FMI 3.0 passes more arguments, none of them is read. */
#define SAME(name, other) EXPORT __typeof__(other) name __attribute__((alias(#other)));

/* Accessors of types that no variable has. */
#define NONE(name)                                                                                                     \
    EXPORT status name(instance *self, const uint32_t *numbers, size_t n) {                                            \
        return n ? report(self, ERROR, #name ": no variable is of this type, found number %u", *numbers) : OK;         \
    }

/* What the model description says that it cannot do. */
#define CANNOT(name)                                                                                                   \
    EXPORT status name(instance *self) {                                                                               \
        return report(self, ERROR, #name ": found a call, the model description says that it cannot");                 \
    }

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT status fmi2SetDebugLogging(instance *self) { return (void)self, OK; } /* only what is always told */
SAME(fmi3SetDebugLogging, fmi2SetDebugLogging)

EXPORT instance *fmi2Instantiate(const char *name, int kind, const char *token, const char *resources,
                                 const callbacks_2 *callbacks, int visible, int logging) {
    char path[4000];
    (void)visible, (void)logging;
    if (!callbacks || kind != 1) return NULL; /* 1: co-simulation */
    const instance like = {.environment = callbacks->environment, .log_2 = callbacks->logger};
    return create(like, name, token, path_of(resources, path, sizeof path) ? path : NULL);
}
EXPORT instance *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                             bool logging, bool events, bool early, const uint32_t *intermediate,
                                             size_t n, void *environment, log_3 *log, void *update) {
    (void)visible, (void)logging, (void)early, (void)intermediate, (void)n, (void)update;
    const instance like = {.environment = environment, .log_3 = log};
    if (!events) return create(like, name, token, resources);
    report(&like, ERROR, "instantiate: found event mode, allowed is none");
    return NULL;
}
EXPORT void *fmi3InstantiateModelExchange(void) { return NULL; }
EXPORT void *fmi3InstantiateScheduledExecution(void) { return NULL; }
EXPORT void fmi2FreeInstance(instance *self) {
    if (!self) return;
    if (self->stepper && PY(Py_IsInitialized)()) self->api->destroy(self->stepper); /* Python's end has freed it */
    free(self->name);
    free(self);
}
SAME(fmi3FreeInstance, fmi2FreeInstance)

EXPORT status fmi2SetupExperiment(instance *self, int bounded, double tolerance, double start, int ends, double stop) {
    (void)bounded, (void)tolerance, (void)ends, (void)stop;
    if (self->phase != CREATED) return report(self, ERROR, "start time: allowed once, before initialization");
    if (!isfinite(start)) return report(self, ERROR, "start time: found %g, allowed is a finite one", start);
    self->start = self->now = start;
    return OK;
}
EXPORT status fmi2EnterInitializationMode(instance *self) {
    if (self->phase != CREATED) return report(self, ERROR, "enterInitializationMode: allowed once");
    self->phase = STARTING;
    return OK;
}
EXPORT status fmi3EnterInitializationMode(instance *self, bool bounded, double tolerance, double start, bool ends,
                                          double stop) {
    const status s = fmi2SetupExperiment(self, bounded, tolerance, start, ends, stop);
    return s == OK ? fmi2EnterInitializationMode(self) : s;
}
EXPORT status fmi2ExitInitializationMode(instance *self) {
    if (self->phase != STARTING) return report(self, ERROR, "exitInitializationMode: allowed after entering it");
    rest(self);
    self->phase = STEPPING;
    return OK;
}
EXPORT status fmi2Terminate(instance *self) {
    if (self->phase != STEPPING) return report(self, ERROR, "terminate: allowed once, after exitInitializationMode");
    self->phase = ENDED;
    return OK;
}
EXPORT status fmi2Reset(instance *self) {
    self->motion = (motioncue_motion){0};
    self->parked = 0;
    self->held = 0;
    self->start = self->now = 0.0;
    self->phase = CREATED;
    rest(self);
    return OK;
}
SAME(fmi3ExitInitializationMode, fmi2ExitInitializationMode)
SAME(fmi3Terminate, fmi2Terminate)
SAME(fmi3Reset, fmi2Reset)

EXPORT status fmi2DoStep(instance *self, double at, double step, int keeps) {
    (void)keeps; /* states are never set */
    const int64_t period = self->api->period_ns(self->stepper);
    if (self->phase != STEPPING) return report(self, ERROR, "doStep: allowed while initialized and not terminated");
    if (!(fabs(at - self->now) < 0.5e-9 * (double)period))
        return report(self, ERROR, "doStep: found time %.9g s, allowed is %.9g s, the last end", at, self->now);
    if (!(step > 0.0 && step <= LONGEST))
        return report(self, ERROR, "doStep: found a step of %g s, allowed is above 0 up to %g s", step, LONGEST);
    self->now = at + step;
    const double due = floor((self->now - self->start) * 1e9 / (double)period + CLOSE);
    self->api->park(self->stepper, self->parked);
    for (; (double)self->ticks < due; self->ticks++) {
        self->motion.time = self->ticks * period;
        self->api->step(self->stepper, &self->motion, &self->cue);
        self->api->actuate(self->stepper, &self->cue, &self->sent);
    }
    return OK;
}
EXPORT status fmi3DoStep(instance *self, double at, double step, bool keeps, bool *event, bool *ends, bool *early,
                         double *reached) {
    const status s = fmi2DoStep(self, at, step, keeps);
    *event = *ends = *early = false;
    *reached = self->now;
    return s;
}

/* The number of values, which FMI 3.0 adds, is that of the value references as long as no variable is an array. */
EXPORT status fmi2GetReal(instance *self, const uint32_t *numbers, size_t n, double *values) {
    for (size_t i = 0; i < n; i++) {
        const double *found = variable(self, numbers[i]);
        if (!found) return report(self, ERROR, "get: there is no real variable with value reference %u", numbers[i]);
        values[i] = *found;
    }
    return OK;
}
EXPORT status fmi2SetReal(instance *self, const uint32_t *numbers, size_t n, const double *values) {
    status worst = OK;
    if (self->phase == ENDED) return report(self, ERROR, "set: allowed before terminate");
    for (size_t i = 0; i < n; i++)
        if (numbers[i] >= INPUT_COUNT)
            return report(self, ERROR, "set: found value reference %u, allowed are real inputs", numbers[i]);
    for (size_t i = 0; i < n; i++) {
        const unsigned bit = 1u << numbers[i];
        if (fabs(values[i]) <= LARGEST) { /* false for NaN */
            ((double *)&self->motion)[numbers[i]] = values[i];
            self->held &= ~bit;
            continue;
        }
        worst = WARNING;
        if (!(self->held & bit)) /* told once, not at every step of a simulation that has gone wrong */
            report(self, WARNING, "set: motion.%s: found %g, allowed is a number up to %g: the value before is held",
                 inputs[numbers[i]], values[i], LARGEST);
        self->held |= bit;
    }
    return worst;
}
SAME(fmi3GetFloat64, fmi2GetReal)
SAME(fmi3SetFloat64, fmi2SetReal)

/* The only boolean is whether the platform's actuators rest where it is parked; its type differs. */
static status booleans(const instance *self, const uint32_t *numbers, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!ACTUATORS || numbers[i] != PARKED)
            return report(self, ERROR, "there is no boolean variable with value reference %u", numbers[i]);
    return OK;
}
#define BOOLEANS(get, set, type)                                                                                       \
    EXPORT status get(instance *self, const uint32_t *numbers, size_t n, type *values) {                               \
        const status s = booleans(self, numbers, n);                                                                   \
        for (size_t i = 0; s == OK && i < n; i++) values[i] = self->parked;                                            \
        return s;                                                                                                      \
    }                                                                                                                  \
    EXPORT status set(instance *self, const uint32_t *numbers, size_t n, const type *values) {                         \
        const status s = booleans(self, numbers, n);                                                                   \
        if (s == OK && n) self->parked = values[n - 1] != 0;                                                           \
        return s;                                                                                                      \
    }
BOOLEANS(fmi2GetBoolean, fmi2SetBoolean, int)
BOOLEANS(fmi3GetBoolean, fmi3SetBoolean, bool)

#define NONE_3(type) NONE(fmi3Get##type) NONE(fmi3Set##type)
NONE_3(Float32) NONE_3(Int8) NONE_3(UInt8) NONE_3(Int16) NONE_3(UInt16) NONE_3(Int32) NONE_3(UInt32) NONE_3(Int64)
NONE_3(UInt64) NONE_3(String) NONE_3(Binary) NONE_3(Clock) NONE_3(IntervalDecimal) NONE_3(IntervalFraction)
NONE_3(ShiftDecimal) NONE_3(ShiftFraction) NONE(fmi3GetOutputDerivatives)
NONE(fmi2GetInteger) NONE(fmi2SetInteger) NONE(fmi2GetString) NONE(fmi2SetString)
NONE(fmi2SetRealInputDerivatives) NONE(fmi2GetRealOutputDerivatives)

CANNOT(fmi2GetFMUstate) CANNOT(fmi2SetFMUstate) CANNOT(fmi2FreeFMUstate) CANNOT(fmi2SerializedFMUstateSize)
CANNOT(fmi2SerializeFMUstate) CANNOT(fmi2DeSerializeFMUstate) CANNOT(fmi2GetDirectionalDerivative)
CANNOT(fmi2CancelStep) CANNOT(fmi2GetStatus) CANNOT(fmi2GetRealStatus) CANNOT(fmi2GetIntegerStatus)
CANNOT(fmi2GetBooleanStatus) CANNOT(fmi2GetStringStatus) CANNOT(fmi3GetNumberOfVariableDependencies)
CANNOT(fmi3GetVariableDependencies) CANNOT(fmi3GetFMUState) CANNOT(fmi3SetFMUState) CANNOT(fmi3FreeFMUState)
CANNOT(fmi3SerializedFMUStateSize) CANNOT(fmi3SerializeFMUState) CANNOT(fmi3DeserializeFMUState)
CANNOT(fmi3GetDirectionalDerivative) CANNOT(fmi3GetAdjointDerivative) CANNOT(fmi3EnterConfigurationMode)
CANNOT(fmi3ExitConfigurationMode) CANNOT(fmi3EnterEventMode) CANNOT(fmi3EvaluateDiscreteStates)
CANNOT(fmi3UpdateDiscreteStates) CANNOT(fmi3EnterStepMode) CANNOT(fmi3EnterContinuousTimeMode)
CANNOT(fmi3CompletedIntegratorStep) CANNOT(fmi3SetTime) CANNOT(fmi3SetContinuousStates) CANNOT(fmi3GetContinuousStates)
CANNOT(fmi3GetContinuousStateDerivatives) CANNOT(fmi3GetEventIndicators) CANNOT(fmi3GetNominalsOfContinuousStates)
CANNOT(fmi3GetNumberOfContinuousStates) CANNOT(fmi3GetNumberOfEventIndicators) CANNOT(fmi3ActivateModelPartition)
