/* The time at which the system received a datagram, before it woke any thread for it. */
#ifndef MOTIONCUE_ARRIVAL_H
#define MOTIONCUE_ARRIVAL_H
#include <stdint.h>
#include "motioncue/core/clock.h"
#include "motioncue/transports/sockets.h"
#ifdef __linux__
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <time.h>
#endif
/* Return the arrival of the last received datagram [ns, monotonic clock]; 0 if the system does not tell, and at the
   first call, which enables the stamps. */
static inline int64_t mc_arrival(mc_fd fd) {
#if defined __linux__ && defined SIOCGSTAMPNS
    struct timespec stamp, t;
    int64_t offset = 0, closest = INT64_MAX;
    if (ioctl(fd, SIOCGSTAMPNS, &stamp) != 0) return 0;
    for (int i = 0; i < 5; i++) { /* offset of the stamp's clock; the best of several readings of both clocks */
        const int64_t before = mc_now();
        clock_gettime(CLOCK_REALTIME, &t);
        const int64_t took = mc_now() - before;
        if (took < closest) {
            closest = took;
            offset = t.tv_sec * 1000000000LL + t.tv_nsec - (before + took / 2);
        }
    }
    return stamp.tv_sec * 1000000000LL + stamp.tv_nsec - offset;
#else
    (void)fd;
    return 0;
#endif
}
#endif
