/* What motioncue/motioncue.h promises, told as facts: one JSON object on standard output.
 *
 * The main thread holds the GIL while another one steps: a step that wanted it would wait for ever.  Allocations of
 * that thread are counted by standing in for the C library's own (glibc). */
#include <Python.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <motioncue/motioncue.h>

#define TICKS 10000

static __thread int counting;
static long allocations;

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t n) {
    allocations += counting;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
    allocations += counting;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n) {
    allocations += counting;
    return __libc_realloc(p, n);
}
void free(void *p) {
    allocations += counting;
    __libc_free(p);
}

static const motioncue_api *api;
static motioncue_stepper *stepper;
static motioncue_motion motion;
static motioncue_cue cue;
static motioncue_cue hundredth[2];
static motioncue_actuation sent[2];
static long steps, faults;

static long touched(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void hundred(motioncue_cue *last, motioncue_actuation *out) {
    for (int i = 0; i < 100; i++) {
        motion.time = i;
        api->step(stepper, &motion, last);
        api->actuate(stepper, last, out);
    }
}

/* Do the ticks; a round in which the system left this thread's pages alone shows that they touch no new one. */
static void *run(void *unused) {
    counting = 1;
    hundred(&hundredth[0], &sent[0]);
    for (int round = 0; round < 5; round++) {
        steps = 0;
        faults = touched();
        for (int i = 0; i < TICKS; i++) steps += api->step(stepper, &motion, &cue);
        faults = touched() - faults;
        if (faults == 0) break;
    }
    api->reset(stepper);
    counting = 0;
    hundred(&hundredth[1], &sent[1]);
    return unused;
}

/* Create, step once and destroy in a thread that does not hold the GIL. */
static void *live(void *outcome) {
    motioncue_stepper *own = api->create("ccd-dk", 0.0, NULL, 0);
    motioncue_cue out;
    if (own && api->step(own, &motion, &out) && out.surge == motion.surge) *(int *)outcome = 1;
    api->destroy(own);
    return NULL;
}

/* Change settings in a thread that does not hold the GIL, and step through the change; no step allocates. */
static motioncue_cue joined[2];
static motioncue_actuation held;
static long allocations_of_join;
static char refusal[200] = "untouched";
static void *change(void *outcome) {
    motioncue_stepper *own = api->create("ccd-dk-classical", 1000.0, NULL, 0);
    motioncue_motion pull = {.surge = 1.0};
    for (int i = 0; i < 500; i++) {
        api->step(own, &pull, &joined[0]);
        api->actuate(own, &joined[0], &held);
    }
    const int refused = api->retune(own, "output.rate_hz=100", refusal, sizeof refusal);
    const int taken = api->retune(own, "cueing.surge.gain=0.1", NULL, 0) &&
                      api->retune(own, "output.limits.surge.value_m_s2=0.001", NULL, 0);
    allocations = 0;
    counting = 1;
    for (int i = 0; i < 200; i++) {
        api->step(own, &pull, &joined[1]);
        api->actuate(own, &joined[1], &held);
    }
    counting = 0;
    allocations_of_join = allocations;
    api->destroy(own);
    *(int *)outcome = 10 * refused + taken;
    return NULL;
}

/* Feed a running engine; the GIL is held by another thread all the while. */
static motioncue_engine *engine;
static long fed[2], allocations_of_feed;
static void *feed(void *unused) {
    motioncue_motion frame = {.speed = 20.0};
    counting = 1;
    for (int i = 0; i < TICKS; i++) {
        frame.frame_time = 0.001 * i, frame.yaw = 0.0001 * i, frame.yaw_rate = 0.1;
        fed[0] += api->feed(engine, &frame, sizeof frame);
    }
    frame.surge = 0.0 / 0.0;
    fed[1] += api->feed(engine, &frame, sizeof frame) + api->feed(engine, &frame, 103) + api->feed(engine, NULL, 0);
    counting = 0;
    return unused;
}

static void in_a_thread(void *(*function)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, argument);
    pthread_join(thread, NULL);
}

static void print_error(const char *name, const char *profile, double rate_hz, size_t size) {
    char error[1000] = "untouched";
    const motioncue_stepper *made = api->create(profile, rate_hz, error, size);
    printf("\"%s\": [%d, \"", name, made != NULL);
    for (const char *c = error; *c; c++) printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    printf("\"], ");
}

int main(void) {
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    PyConfig_SetBytesString(&config, &config.program_name, PYTHON);
    Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    api = motioncue_import();
    if (!api) {
        PyErr_Print();
        return 1;
    }
    counting = 1;
    stepper = api->create("bounded.toml", 1000.0, NULL, 0);
    counting = 0;
    const long made = allocations;
    allocations = 0;
    motion.surge = 1.0, motion.pitch = 0.1, motion.yaw_rate = 0.2;
    in_a_thread(run, NULL); /* the GIL is held here all the while */

    printf("{\"abi\": %u, \"table\": %d, ", (unsigned)api->abi, api->size == sizeof *api);
    printf("\"period_ns\": %lld, ", (long long)api->period_ns(stepper));
    printf("\"allocations_of_create\": %ld, ", made);
    printf("\"steps\": %ld, \"allocations\": %ld, \"faults\": %ld, ", steps, allocations, faults);

    motion.surge = 0.0 / 0.0;
    const motioncue_cue before = cue;
    const int taken = api->step(stepper, &motion, &cue);
    printf("\"taken\": %d, \"untouched\": %d, ", taken, memcmp(&before, &cue, sizeof cue) == 0);
    motion.surge = 1.0;

    int lived = 0;
    PyThreadState *python = PyEval_SaveThread();
    in_a_thread(live, &lived);
    int changed = -1;
    in_a_thread(change, &changed);
    char error[200] = "";
    engine = api->start("fed.toml", error, sizeof error);
    if (!engine) fprintf(stderr, "%s\n", error);
    PyEval_RestoreThread(python);
    allocations = 0;
    in_a_thread(feed, NULL);
    allocations_of_feed = allocations;
    python = PyEval_SaveThread();
    api->stop(engine);
    api->stop(NULL);
    const int started = api->start("ccd-dk", error, sizeof error) != NULL;
    PyEval_RestoreThread(python);
    printf("\"fed\": [%ld, %ld, %ld], \"started\": [%d, \"%s\"], ", fed[0], fed[1], allocations_of_feed, started, error);
    printf("\"lived\": %d, \"changed\": %d, \"refusal\": \"%s\", ", lived, changed, refusal);
    printf("\"allocations_of_join\": %ld, \"joined\": [\"", allocations_of_join);
    for (size_t i = 0; i < sizeof joined; i++)
        printf(i == sizeof cue ? "\", \"%02x" : "%02x", ((const unsigned char *)joined)[i]);
    printf("\"], \"held\": \"");
    for (size_t i = 0; i < sizeof held; i++) printf("%02x", ((const unsigned char *)&held)[i]);
    printf("\", ");

    print_error("unknown", "no-such-profile", 0.0, 1000);
    print_error("too fast", "ccd-dk", 1e6, 1000);
    print_error("no profile", NULL, 0.0, 1000);
    print_error("not UTF-8", "\xff", 0.0, 1000);
    print_error("cut", "no-such-\xc3\xa9", 0.0, 20);
    print_error("no room", "no-such-profile", 0.0, 0);

    printf("\"hundredth\": [\"");
    for (size_t i = 0; i < sizeof hundredth; i++)
        printf(i == sizeof cue ? "\", \"%02x" : "%02x", ((const unsigned char *)hundredth)[i]);
    printf("\"], \"sent\": [\"");
    for (size_t i = 0; i < sizeof sent; i++)
        printf(i == sizeof *sent ? "\", \"%02x" : "%02x", ((const unsigned char *)sent)[i]);
    printf("\"]}\n");
    api->destroy(stepper);
    api->destroy(NULL);
    return Py_FinalizeEx() < 0;
}
