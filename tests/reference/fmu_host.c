/* A program without Python that runs an FMU by FMI 2.0 or 3.0, as the standard has it: host VERSION LIBRARY RESOURCES TOKEN
 *
 * It prints the outputs named by their value references in hexadecimal after 200 steps of 10 ms, brake held, and how
 * often memory was allocated meanwhile.  Messages of the FMU go to standard error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int counting;
static long allocations;

void *__libc_malloc(size_t);
void *malloc(size_t n) {
    allocations += counting;
    return __libc_malloc(n);
}

static void log_2(void *environment, const char *name, int status, const char *category, const char *message, ...) {
    va_list values;
    (void)environment;
    fprintf(stderr, "%s %d %s ", name, status, category);
    va_start(values, message);
    vfprintf(stderr, message, values);
    va_end(values);
    fputc('\n', stderr);
}
static void log_3(void *environment, int status, const char *category, const char *message) {
    (void)environment;
    fprintf(stderr, "host %d %s %s\n", status, category, message);
}
typedef struct {
    void (*logger)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks;

#define GET(name, ...) ((int (*)(__VA_ARGS__))dlsym(library, name))

int main(int argc, char **argv) {
    const uint32_t brake = 0, outputs[] = {100, 104, 111, 118};
    const double value = -3.0, dt = 0.01;
    const callbacks calls = {log_2, calloc, free, NULL, NULL};
    double values[4], reached;
    bool no;
    void *fmu;
    int wrong = 0;
    if (argc != 5) return 2;
    const bool newer = *argv[1] == '3';
    void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (!library || dlsym(RTLD_DEFAULT, "Py_IsInitialized")) {
        fprintf(stderr, "%s\n", library ? "there is a Python already" : dlerror());
        return 3;
    }
    if (newer)
        fmu = ((void *(*)(const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *, size_t,
                          void *, void *, void *))dlsym(library, "fmi3InstantiateCoSimulation"))(
            "host", argv[4], argv[3], false, true, false, false, NULL, 0, NULL, (void *)log_3, NULL);
    else
        fmu = ((void *(*)(const char *, int, const char *, const char *, const callbacks *, int, int))dlsym(
            library, "fmi2Instantiate"))("host", 1, argv[4], argv[3], &calls, 0, 1);
    if (!fmu) return 4;
    if (newer)
        wrong |= GET("fmi3EnterInitializationMode", void *, bool, double, double, bool, double)(fmu, 0, 0.0, 5.0, 0, 0.0);
    else {
        wrong |= GET("fmi2SetupExperiment", void *, int, double, double, int, double)(fmu, 0, 0.0, 5.0, 0, 0.0);
        wrong |= GET("fmi2EnterInitializationMode", void *)(fmu);
    }
    wrong |= GET(newer ? "fmi3ExitInitializationMode" : "fmi2ExitInitializationMode", void *)(fmu);
    counting = 1;
    for (int i = 0; i < 200; i++) {
        const double now = 5.0 + i * dt; /* a start time that is not 0 */
        if (newer) {
            wrong |= GET("fmi3SetFloat64", void *, const uint32_t *, size_t, const double *, size_t)(fmu, &brake, 1, &value, 1);
            wrong |= GET("fmi3DoStep", void *, double, double, bool, bool *, bool *, bool *, double *)(
                fmu, now, dt, true, &no, &no, &no, &reached);
        } else {
            wrong |= GET("fmi2SetReal", void *, const uint32_t *, size_t, const double *)(fmu, &brake, 1, &value);
            wrong |= GET("fmi2DoStep", void *, double, double, int)(fmu, now, dt, 1);
        }
    }
    counting = 0;
    if (newer)
        wrong |= GET("fmi3GetFloat64", void *, const uint32_t *, size_t, double *, size_t)(fmu, outputs, 4, values, 4);
    else
        wrong |= GET("fmi2GetReal", void *, const uint32_t *, size_t, double *)(fmu, outputs, 4, values);
    for (int i = 0; i < 4; i++) printf("%a\n", values[i]);
    printf("%d %ld\n", wrong, allocations);
    wrong |= GET(newer ? "fmi3Terminate" : "fmi2Terminate", void *)(fmu);
    GET(newer ? "fmi3FreeInstance" : "fmi2FreeInstance", void *)(fmu);
    return wrong;
}
