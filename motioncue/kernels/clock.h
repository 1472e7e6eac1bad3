/* Monotonic time in integer nanoseconds, and sleeping to an absolute deadline on its grid. */
#ifndef MOTIONCUE_CLOCK_H
#define MOTIONCUE_CLOCK_H
#include <stdint.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002
#endif
static inline int64_t mc_now(void) {
    static LARGE_INTEGER frequency;
    LARGE_INTEGER count;
    if (!frequency.QuadPart) QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    return (count.QuadPart / frequency.QuadPart) * 1000000000LL +
           (count.QuadPart % frequency.QuadPart) * 1000000000LL / frequency.QuadPart;
}
static inline void *mc_timer_open(void) {
    HANDLE timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    return timer ? timer : CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
}
static inline void mc_timer_close(void *timer) { if (timer) CloseHandle((HANDLE)timer); }
static inline void mc_sleep_until(void *timer, int64_t deadline) {
    int64_t left;
    while ((left = deadline - mc_now()) > 0) {
        LARGE_INTEGER due;
        due.QuadPart = -((left + 99) / 100); /* relative, in 100 ns */
        if (timer && SetWaitableTimer((HANDLE)timer, &due, 0, NULL, NULL, FALSE))
            WaitForSingleObject((HANDLE)timer, INFINITE);
        else
            Sleep((DWORD)((left + 999999) / 1000000));
    }
}
static inline void mc_prepare_thread(void) {}
#else
#include <errno.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
static inline int64_t mc_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static inline void *mc_timer_open(void) { return 0; }
static inline void mc_timer_close(void *timer) { (void)timer; }
static inline void mc_sleep_until(void *timer, int64_t deadline) {
    struct timespec t;
    (void)timer;
#ifdef __linux__
    t.tv_sec = deadline / 1000000000LL;
    t.tv_nsec = deadline % 1000000000LL;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR) {}
#else
    int64_t left;
    while ((left = deadline - mc_now()) > 0) {
        t.tv_sec = left / 1000000000LL;
        t.tv_nsec = left % 1000000000LL;
        nanosleep(&t, 0);
    }
#endif
}
/* The default timer slack of 50 us is 50 us of lateness. */
static inline void mc_prepare_thread(void) {
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
#endif
}
#endif
#endif
