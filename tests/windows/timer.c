/* The Windows part of the clock against a stand-in for the system, which notes every call and refuses what it is told to.

   Wine grants and waits differently from Windows, so that only the calls and their order can be shown here.  Prints the
   first thing that is wrong; exit status 1. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static int64_t counter;                 /* of QueryPerformanceCounter: 10 MHz */
static int64_t passes;                  /* with every look at it */
static int refuse_high_resolution, refuse_timer_throttling, refuse_mmcss, refuse_timers, early;
static char calls[1000];
static LONGLONG due;

static void note(const char *text) { strcat(strcat(calls, text), " "); }

static BOOL fake_frequency(LARGE_INTEGER *f) { f->QuadPart = 10000000; return TRUE; }
static BOOL fake_counter(LARGE_INTEGER *c) { c->QuadPart = counter += passes; return TRUE; }
static HANDLE fake_create(void *a, void *b, DWORD flags, DWORD access) {
    (void)a, (void)b, (void)access;
    note(flags == 2 ? "create(high)" : flags == 0 ? "create(ordinary)" : "create(?)");
    if (refuse_timers || (flags && refuse_high_resolution)) return NULL;
    return (HANDLE)(intptr_t)1234;
}
static BOOL fake_set(HANDLE timer, const LARGE_INTEGER *d, LONG period, void *a, void *b, BOOL resume) {
    (void)a, (void)b;
    if (timer != (HANDLE)(intptr_t)1234 || period || resume) note("set(?)");
    note("set");
    due = d->QuadPart;
    return TRUE;
}
static DWORD fake_wait(HANDLE timer, DWORD ms) {
    (void)timer;
    note(ms == INFINITE ? "wait" : "wait(?)");
    counter += early ? (1 - due) / 2 : -due;  /* relative, in units of 100 ns, which are the counter's too */
    return WAIT_OBJECT_0;
}
static void fake_sleep(DWORD ms) {
    note("sleep");
    counter += (LONGLONG)ms * 10000;
}
static BOOL fake_close(HANDLE timer) { (void)timer; note("close"); return TRUE; }
static BOOL fake_priority(HANDLE thread, int priority) {
    (void)thread;
    note(priority == 15 ? "priority(time-critical)" : priority == 2 ? "priority(highest)" : "priority(?)");
    return TRUE;
}
static UINT WINAPI fake_begin(UINT ms) { note(ms == 1 ? "begin(1)" : "begin(?)"); return 0; }
static UINT WINAPI fake_end(UINT ms) { note(ms == 1 ? "end(1)" : "end(?)"); return 0; }
static HANDLE WINAPI fake_mmcss(LPCWSTR task, LPDWORD index) {
    note(!wcscmp(task, L"Pro Audio") && *index == 0 ? "mmcss" : "mmcss(?)");
    return refuse_mmcss ? NULL : (HANDLE)(intptr_t)1;
}
static DWORD_PTR fake_affinity(HANDLE thread, DWORD_PTR cores) {
    (void)thread;
    note(cores == 8 ? "affinity(3)" : "affinity(?)");
    return refuse_mmcss ? 0 : 15;
}
static BOOL WINAPI fake_information(HANDLE process, int kind, LPVOID data, DWORD size) {
    ULONG *state = (ULONG *)data;             /* version, control mask, state mask */
    char text[40];
    if (process != GetCurrentProcess() || kind != 4 || size != 12 || state[0] != 1) note("information(?)");
    sprintf(text, "throttling(%lu,%lu)", state[1], state[2]);
    note(text);
    return !(refuse_timer_throttling && state[1] & 4);
}
static EXECUTION_STATE fake_execution(EXECUTION_STATE state) {
    note(state == 0x80000001 ? "awake" : state == 0x80000000 ? "asleep" : "execution(?)");
    return refuse_mmcss ? 0 : 0x80000000;     /* what it was before */
}
static HMODULE fake_library(const char *name) { return (HMODULE)name; }
static FARPROC fake_symbol(HMODULE module, const char *name) {
    const char *library = (const char *)module;
    if (!strcmp(library, "winmm.dll") && !strcmp(name, "timeBeginPeriod")) return (FARPROC)(void *)fake_begin;
    if (!strcmp(library, "winmm.dll") && !strcmp(name, "timeEndPeriod")) return (FARPROC)(void *)fake_end;
    if (!strcmp(library, "avrt.dll") && !strcmp(name, "AvSetMmThreadCharacteristicsW")) return (FARPROC)(void *)fake_mmcss;
    if (!strcmp(library, "kernel32.dll") && !strcmp(name, "SetProcessInformation")) return (FARPROC)(void *)fake_information;
    note(name);
    return NULL;
}
#define QueryPerformanceFrequency fake_frequency
#define QueryPerformanceCounter fake_counter
#define CreateWaitableTimerExW fake_create
#define SetWaitableTimer fake_set
#define WaitForSingleObject fake_wait
#define Sleep fake_sleep
#define CloseHandle fake_close
#define SetThreadPriority fake_priority
#define SetThreadAffinityMask fake_affinity
#define SetThreadExecutionState fake_execution
#define LoadLibraryA fake_library
#define GetProcAddress fake_symbol
#include "motioncue/core/clock.h"

static void expect(int line, const char *wanted, const mc_attempts *tried, const char *granted) {
    char text[300] = "";
    int i;
    for (i = 0; tried && i < tried->count; i++)
        sprintf(text + strlen(text), "%s=%d ", tried->name[i], tried->granted[i]);
    if (strcmp(calls, wanted) || (tried && strcmp(text, granted))) {
        printf("line %d\n  calls   %s\n  wanted  %s\n  granted %s\n  wanted  %s\n", line, calls, wanted, text, granted);
        exit(1);
    }
    calls[0] = 0;
}
#define EXPECT(wanted) expect(__LINE__, wanted, NULL, "")
#define EXPECT_GRANTED(wanted, granted) expect(__LINE__, wanted, &tried, granted); memset(&tried, 0, sizeof tried)

int main(void) {
    mc_attempts tried = {0};
    mc_timer timer;

    /* A high-resolution timer is asked for first, and is all that is needed. */
    mc_timer_open(&timer, 0, &tried);
    EXPECT_GRANTED("create(high) ", "high_resolution_timer=1 ");

    /* Time is the counter's, whatever its size: no overflow after a year at 10 MHz. */
    counter = 315360000000003LL;
    if (mc_now() != 31536000000000300LL) return printf("mc_now\n"), 1;

    /* A wait is relative to now, in 100 ns, rounded up; one that ends early is waited for again, one that is over not. */
    counter = 1000;
    mc_sleep_until(&timer, 100000 + 2999950);
    EXPECT("set wait ");
    if (due != -30000 || counter != 31000) return printf("due %lld, counter %lld\n", due, counter), 1;
    early = 1;
    counter = 0;
    mc_sleep_until(&timer, 400);
    EXPECT("set wait set wait set wait ");
    if (counter != 4) return printf("counter %lld\n", counter), 1;
    early = 0;
    mc_sleep_until(&timer, 400);
    EXPECT("");

    /* On an absolute grid every wait makes up for the lateness of the one before. */
    counter = 0;
    for (int64_t deadline = 3000000; deadline <= 9000000; deadline += 3000000) {
        mc_sleep_until(&timer, deadline);
        if (due != (deadline == 3000000 ? -30000 : -25000)) return printf("due %lld\n", due), 1;
        counter += 5000;                                  /* the tick, or whatever made it late */
    }
    EXPECT("set wait set wait set wait ");
    /* With a spin: a wait until so much before the deadline, then looks at the counter until it is there. */
    timer.spin = 200000;
    passes = 1;
    counter = 0;
    mc_sleep_until(&timer, 3000000);
    EXPECT("set wait ");
    if (due != -27999 || counter != 30000) return printf("due %lld, counter %lld\n", due, (long long)counter), 1;
    passes = 0;
    mc_timer_close(&timer);
    EXPECT("close ");

    /* Without one: an ordinary timer and ticks of 1 ms, given back at the end. */
    refuse_high_resolution = 1;
    mc_timer_open(&timer, 0, &tried);
    EXPECT_GRANTED("create(high) create(ordinary) begin(1) ", "high_resolution_timer=0 timer_period_1ms=1 ");
    mc_sleep_until(&timer, mc_now() + 1000000);
    EXPECT("set wait ");
    mc_timer_close(&timer);
    EXPECT("close end(1) ");

    /* Without any timer: sleeps, in whole milliseconds, that end at or after the deadline. */
    refuse_timers = 1;
    mc_timer_open(&timer, 0, &tried);
    EXPECT_GRANTED("create(high) create(ordinary) begin(1) ", "high_resolution_timer=0 timer_period_1ms=1 ");
    counter = 0;
    mc_sleep_until(&timer, 1000001);
    EXPECT("sleep ");
    if (counter != 20000) return printf("counter %lld\n", counter), 1;
    mc_timer_close(&timer);
    EXPECT("end(1) ");

    /* The thread: full speed, precise timers in the background too, MMCSS. */
    mc_prepare_thread(-1, 0, &tried);
    EXPECT_GRANTED("throttling(5,0) mmcss ", "timer_throttling_off=1 power_throttling_off=1 mmcss=1 ");
    refuse_timer_throttling = refuse_mmcss = 1;           /* Windows 10, and no MMCSS service */
    mc_prepare_thread(-1, 0, &tried);
    EXPECT_GRANTED("throttling(5,0) throttling(1,0) mmcss priority(time-critical) ",
                   "timer_throttling_off=0 power_throttling_off=1 mmcss=0 time_critical=1 ");
    /* A core and locked memory only if asked for; the latter is not to be had. */
    mc_prepare_thread(3, 1, &tried);
    EXPECT_GRANTED("throttling(5,0) throttling(1,0) mmcss priority(time-critical) affinity(3) ",
                   "timer_throttling_off=0 power_throttling_off=1 mmcss=0 time_critical=1 core=0 lock_memory=0 ");
    /* The receiver comes after it. */
    mc_prepare_receiver(&tried);
    EXPECT_GRANTED("priority(highest) ", "highest=1 ");
    /* The machine stays awake until it is told that it need not. */
    mc_keep_awake(1, &tried);
    EXPECT_GRANTED("awake ", "machine_awake=0 ");
    refuse_mmcss = 0;
    mc_keep_awake(1, &tried);
    EXPECT_GRANTED("awake ", "machine_awake=1 ");
    mc_keep_awake(0, &tried);
    EXPECT_GRANTED("asleep ", "machine_awake=1 ");
    printf("all as wanted\n");
    return 0;
}
