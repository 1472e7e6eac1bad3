/* When the system took a datagram, which is before any thread was woken for it. */
#ifndef MOTIONCUE_ARRIVAL_H
#define MOTIONCUE_ARRIVAL_H
#include <stdint.h>
#include "motioncue/kernels/clock.h"
#include "motioncue/transports/sockets.h"
#ifdef __linux__
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <time.h>
#endif
/* Of the datagram that was received last [ns, monotonic clock]; 0 if the system does not tell, and always the first time,
   which makes it tell from then on. */
static inline int64_t mc_arrival(mc_fd fd) {
#if defined __linux__ && defined SIOCGSTAMPNS
    struct timespec stamp, t;
    int64_t offset = 0, closest = INT64_MAX;
    if (ioctl(fd, SIOCGSTAMPNS, &stamp) != 0) return 0;
    for (int i = 0; i < 5; i++) { /* how far the stamp's clock is ahead; the best of some readings side by side */
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
