/* The Linux part of the clock against a stand-in for the system, which notes every call and refuses what it is told to.
   Prints the first thing that is wrong; exit status 1. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t now, passes, wakes, slept_until; /* passes: with every look at the clock; wakes: so much late [ns] */
static int looks, sleeps, interrupted, refuse_fifo, refuse_all;
static char calls[500];

static void note(const char *text) { strcat(strcat(calls, text), " "); }

static int fake_gettime(clockid_t id, struct timespec *t) {
    if (id != CLOCK_MONOTONIC) note("gettime(?)");
    looks++;
    now += passes;
    t->tv_sec = now / 1000000000LL;
    t->tv_nsec = now % 1000000000LL;
    return 0;
}
static int fake_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left) {
    if (id != CLOCK_MONOTONIC || flags != TIMER_ABSTIME || left) note("nanosleep(?)");
    sleeps++;
    slept_until = t->tv_sec * 1000000000LL + t->tv_nsec;
    if (interrupted) {
        interrupted--;
        return EINTR;
    }
    if (now < slept_until) now = slept_until + wakes;
    return 0;
}
static int fake_setscheduler(pid_t pid, int policy, const struct sched_param *p) {
    char text[20];
    sprintf(text, pid == 0 && policy == (SCHED_FIFO | 0x40000000) ? "fifo(%d)" : "scheduler(?)", p->sched_priority);
    note(text);
    return refuse_fifo || refuse_all ? -1 : 0;
}
static int fake_prctl(int option, unsigned long value, ...) {
    note(option == PR_SET_TIMERSLACK && value == 1 ? "slack" : "prctl(?)");
    return refuse_all ? -1 : 0;
}
static long fake_syscall(long number, ...) {
    va_list all;
    char text[60];
    va_start(all, number);
    if (number == SYS_sched_setattr) {
        note("slice");
    } else if (number == SYS_sched_setaffinity) {
        const int pid = va_arg(all, int), core_bytes = (int)va_arg(all, size_t);
        const unsigned long *cores = va_arg(all, unsigned long *);
        int core = -1, count = 0;
        for (int i = 0; i < 8 * core_bytes; i++)
            if (cores[i / 64] >> i % 64 & 1) core = i, count++;
        sprintf(text, pid == 0 && count == 1 ? "core(%d)" : "core(?)", core);
        note(text);
    } else {
        note("syscall(?)");
    }
    va_end(all);
    return refuse_all ? -1 : 0;
}
static int fake_mlockall(int flags) {
    note(flags == MCL_CURRENT ? "lock" : "lock(?)");
    return refuse_all ? -1 : 0;
}
#define clock_gettime fake_gettime
#define clock_nanosleep fake_nanosleep
#define sched_setscheduler fake_setscheduler
#define prctl fake_prctl
#define syscall fake_syscall
#define mlockall fake_mlockall
#include "motioncue/core/clock.h"

static void expect(int line, int good) {
    if (good) return;
    printf("line %d: now %lld, slept until %lld, %d sleeps, %d looks\n", line, (long long)now, (long long)slept_until,
           sleeps, looks);
    exit(1);
}
#define EXPECT(condition) expect(__LINE__, condition)

enum { RECEIVER = -2 };
static void prepared(int line, int core, int lock_memory, const char *wanted, const char *granted) {
    mc_attempts tried = {0};
    char text[300] = "";
    if (core == RECEIVER)
        mc_prepare_receiver(&tried);
    else
        mc_prepare_thread(core, lock_memory, &tried);
    for (int i = 0; i < tried.count; i++) sprintf(text + strlen(text), "%s=%d ", tried.name[i], tried.granted[i]);
    if (strcmp(calls, wanted) || strcmp(text, granted)) {
        printf("line %d\n  calls   %s\n  wanted  %s\n  granted %s\n  wanted  %s\n", line, calls, wanted, text, granted);
        exit(1);
    }
    calls[0] = 0;
}
#define PREPARED(core, lock, wanted, granted) prepared(__LINE__, core, lock, wanted, granted)

int main(void) {
    mc_attempts tried = {0};
    mc_timer timer;

    /* A wait is one sleep to the absolute deadline, again after every interruption. */
    mc_timer_open(&timer, 0, &tried);
    EXPECT(tried.count == 0);
    now = 5000000000LL;
    wakes = 50000;
    interrupted = 2;
    mc_sleep_until(&timer, 6003000000LL);
    EXPECT(slept_until == 6003000000LL && sleeps == 3 && now == 6003050000LL);

    /* With a spin it is a sleep to so much before it, then looks at the clock until it is there and not one longer. */
    timer.spin = 200000;
    passes = 30;
    looks = sleeps = 0;
    now = 7000000000LL;
    mc_sleep_until(&timer, 7003000000LL);
    EXPECT(slept_until == 7002800000LL && sleeps == 1);
    EXPECT(now >= 7003000000LL && now < 7003000030LL && looks == 1 + (200000 - 50000 + 29) / 30);

    /* Woken too late, it does not spin; nor does it wait for a deadline that is over. */
    wakes = 300000;
    looks = 0;
    mc_sleep_until(&timer, 7010000000LL);
    EXPECT(now == 7010100030LL && looks == 2 && sleeps == 2);
    mc_sleep_until(&timer, 7009000000LL);
    EXPECT(now == 7010100090LL && looks == 4 && sleeps == 2);

    /* The thread: a real-time class, no slack; a core and locked memory only if asked for. */
    PREPARED(-1, 0, "fifo(10) slack ", "fifo=1 timer_slack=1 ");
    PREPARED(0, 0, "fifo(10) slack core(0) ", "fifo=1 timer_slack=1 core=1 ");
    PREPARED(67, 1, "fifo(10) slack core(67) lock ", "fifo=1 timer_slack=1 core=1 lock_memory=1 ");
    /* The receiver comes after it. */
    PREPARED(RECEIVER, 0, "fifo(9) ", "fifo=1 ");
    refuse_fifo = 1;
    PREPARED(-1, 0, "fifo(10) slice slack ", "fifo=0 short_slice=1 timer_slack=1 ");
    refuse_all = 1;
    PREPARED(3, 1, "fifo(10) slice slack core(3) lock ", "fifo=0 short_slice=0 timer_slack=0 core=0 lock_memory=0 ");
    printf("all as wanted\n");
    return 0;
}
