/* Monotonic time in integer nanoseconds, and sleeping to an absolute deadline on its grid. */
#ifndef MOTIONCUE_CLOCK_H
#define MOTIONCUE_CLOCK_H
#include <stdint.h>
/* What the system was asked for to be on time, and whether it was granted. */
typedef struct {
    const char *name[8];
    int granted[8];
    int count;
} mc_attempts;
static inline void mc_attempt(mc_attempts *tried, const char *name, int granted) {
    if (tried->count == 8) return;
    tried->name[tried->count] = name;
    tried->granted[tried->count++] = granted != 0;
}
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
typedef struct {
    int64_t spin; /* [ns] busy-waiting before a deadline instead of sleeping */
    HANDLE handle;
    int period; /* timeBeginPeriod is in force */
} mc_timer;
/* Return a function of a library that may be missing, or NULL. */
static inline FARPROC mc_symbol(const char *library, const char *name) {
    HMODULE module = LoadLibraryA(library);
    return module ? GetProcAddress(module, name) : NULL;
}
typedef UINT(WINAPI *mc_period_function)(UINT);
static inline void mc_timer_open(mc_timer *timer, int64_t spin, mc_attempts *tried) {
    timer->spin = spin;
    timer->period = 0;
    timer->handle = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    mc_attempt(tried, "high_resolution_timer", timer->handle != NULL);
    if (!timer->handle) { /* before Windows 10 1803: an ordinary timer; system ticks go from 15.6 to 1 ms */
        mc_period_function begin = (mc_period_function)(void *)mc_symbol("winmm.dll", "timeBeginPeriod");
        timer->handle = CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
        timer->period = begin && begin(1) == 0;
        mc_attempt(tried, "timer_period_1ms", timer->period);
    }
}
static inline void mc_timer_close(mc_timer *timer) {
    if (timer->handle) CloseHandle(timer->handle);
    if (timer->period) {
        mc_period_function end = (mc_period_function)(void *)mc_symbol("winmm.dll", "timeEndPeriod");
        if (end) end(1);
    }
    timer->handle = NULL;
    timer->period = 0;
}
static inline void mc_sleep_until(void *memory, int64_t deadline) {
    mc_timer *timer = (mc_timer *)memory;
    int64_t left;
    while ((left = deadline - timer->spin - mc_now()) > 0) {
        LARGE_INTEGER due;
        due.QuadPart = -((left + 99) / 100); /* negative means relative; unit 100 ns */
        if (timer->handle && SetWaitableTimer(timer->handle, &due, 0, NULL, NULL, FALSE))
            WaitForSingleObject(timer->handle, INFINITE);
        else
            Sleep((DWORD)((left + 999999) / 1000000));
    }
    while (mc_now() < deadline) {}
}
typedef struct { ULONG version, control, state; } mc_throttling; /* PROCESS_POWER_THROTTLING_STATE */
typedef BOOL(WINAPI *mc_set_process_function)(HANDLE, int, LPVOID, DWORD);
static inline int mc_throttling_off(ULONG control) {
    mc_set_process_function set = (mc_set_process_function)(void *)mc_symbol("kernel32.dll", "SetProcessInformation");
    mc_throttling off = {1, control, 0};
    return set && set(GetCurrentProcess(), 4 /* ProcessPowerThrottling */, &off, sizeof off);
}
typedef HANDLE(WINAPI *mc_characteristics_function)(LPCWSTR, LPDWORD);
static inline void mc_prepare_thread(int core, int lock_memory, mc_attempts *tried) {
    mc_characteristics_function mmcss =
        (mc_characteristics_function)(void *)mc_symbol("avrt.dll", "AvSetMmThreadCharacteristicsW");
    DWORD task = 0;
    int granted;
    /* Ask not to be slowed down to save power (1), and to keep timers precise while no window shows (4, known to
       Windows 11 only).  Each call resets whatever flag it does not name, so the second call is made only if the first
       one failed. */
    granted = mc_throttling_off(1 | 4);
    mc_attempt(tried, "timer_throttling_off", granted);
    mc_attempt(tried, "power_throttling_off", granted || mc_throttling_off(1));
    granted = mmcss && mmcss(L"Pro Audio", &task) != NULL; /* revoked when the thread ends */
    mc_attempt(tried, "mmcss", granted);
    if (!granted) mc_attempt(tried, "time_critical", SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_TIME_CRITICAL));
    if (core >= 0)
        mc_attempt(tried, "core", core < 64 && SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)1 << core) != 0);
    if (lock_memory) mc_attempt(tried, "lock_memory", 0); /* Windows has no equivalent */
}
/* Keep the machine from going to sleep when nobody touches it; `on` false lifts this. */
static inline void mc_keep_awake(int on, mc_attempts *tried) {
    mc_attempt(tried, "machine_awake", SetThreadExecutionState(ES_CONTINUOUS | (on ? ES_SYSTEM_REQUIRED : 0)) != 0);
}
/* The receiver gets a lower priority than the emitter, so that a flood of packets does not delay a tick. */
static inline void mc_prepare_receiver(mc_attempts *tried) {
    mc_attempt(tried, "highest", SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_HIGHEST));
}
#else
#include <errno.h>
#include <time.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
static inline int64_t mc_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static inline void mc_keep_awake(int on, mc_attempts *tried) { (void)on; (void)tried; } /* not implemented here */
typedef struct { int64_t spin; } mc_timer; /* [ns] busy-waiting before a deadline instead of sleeping */
static inline void mc_timer_open(mc_timer *timer, int64_t spin, mc_attempts *tried) { timer->spin = spin; (void)tried; }
static inline void mc_timer_close(mc_timer *timer) { (void)timer; }
static inline void mc_sleep_until(void *memory, int64_t deadline) {
    const mc_timer *timer = (const mc_timer *)memory;
    const int64_t end = deadline - timer->spin;
    struct timespec t;
#ifdef __linux__
    t.tv_sec = end / 1000000000LL;
    t.tv_nsec = end % 1000000000LL;
    /* Sleeping until a time that has passed would still set a timer and wait for its interrupt. */
    while (mc_now() < end && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR) {}
#else
    int64_t left;
    while ((left = end - mc_now()) > 0) {
        t.tv_sec = left / 1000000000LL;
        t.tv_nsec = left % 1000000000LL;
        nanosleep(&t, 0);
    }
#endif
    while (mc_now() < deadline) {}
}
/* A real-time class keeps a thread on time beside other programs.  Without the right to it, a short time slice helps
   somewhat (Linux 6.12 on).  Child processes inherit neither. */
static inline void mc_prepare_class(int priority, mc_attempts *tried) {
#ifdef __linux__
    struct sched_param real_time = {.sched_priority = priority};
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t slice, deadline, period; }
        fair = {sizeof fair, 0, 1 /* reset on fork */, 0, 0, 100000 /* ns */, 0, 0};
    int fifo = sched_setscheduler(0, SCHED_FIFO | 0x40000000 /* reset on fork */, &real_time) == 0;
    mc_attempt(tried, "fifo", fifo);
    if (!fifo) mc_attempt(tried, "short_slice", syscall(SYS_sched_setattr, 0, &fair, 0) == 0);
#else
    (void)priority;
    (void)tried;
#endif
}
/* The receiver runs just below the emitter, so that a flood of packets does not delay a tick. */
static inline void mc_prepare_receiver(mc_attempts *tried) { mc_prepare_class(9, tried); }
/* Pin the thread to `core` (-1: none) and keep the process's memory from being paged out if `lock_memory`. */
static inline void mc_prepare_thread(int core, int lock_memory, mc_attempts *tried) {
    mc_prepare_class(10, tried);
#ifdef __linux__
    /* The default timer slack of 50 us would make every wake-up up to 50 us late. */
    mc_attempt(tried, "timer_slack", prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0) == 0);
    if (core >= 0) {
        unsigned long cores[16] = {0}; /* one bit per core; a cpu_set_t would need _GNU_SOURCE */
        if (core < 1024) cores[core / (8 * sizeof *cores)] = 1UL << core % (8 * sizeof *cores);
        mc_attempt(tried, "core", syscall(SYS_sched_setaffinity, 0, sizeof cores, cores) == 0);
    }
    /* Locking what is mapped now is enough, since a tick allocates nothing; MCL_FUTURE can make later mappings fail. */
    if (lock_memory) mc_attempt(tried, "lock_memory", mlockall(MCL_CURRENT) == 0);
#else
    if (core >= 0) mc_attempt(tried, "core", 0);
    if (lock_memory) mc_attempt(tried, "lock_memory", 0);
#endif
}
#endif
/* The same for who is given a clock by a function and its argument. */
static inline int64_t mc_now_of(void *memory) {
    (void)memory;
    return mc_now();
}
#endif
