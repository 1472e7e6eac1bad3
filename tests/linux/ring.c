/* One writer and one reader as fast as they can on a small ring, to be built with -fsanitize=thread.

   Built with WEAK, nothing is published in order: the sanitizer has to find that. */
#ifdef WEAK
#undef __ATOMIC_RELEASE
#define __ATOMIC_RELEASE __ATOMIC_RELAXED
#endif
#include "motioncue/core/threads.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t count;
static uint8_t room[1024];
static Ring ring = {.room = room, .size = sizeof room};

static void *write_all(void *none) {
    int64_t value[8];
    for (int64_t n = 1; n <= count; n++) {
        for (int i = 0; i < 8; i++) value[i] = n;
        ring_write(&ring, (int32_t)(n % 9), n, value, n % 9 * 8);
    }
    return none;
}
static void fail(const char *what, int64_t n) {
    printf("%s at %lld\n", what, (long long)n);
    exit(1);
}
int main(int argc, char **argv) {
    int64_t last = 0, taken = 0;
    pthread_t writer;
    count = argc > 1 ? atoll(argv[1]) : 1000;
    pthread_create(&writer, NULL, write_all, NULL);
    while (taken + mc_load(&ring.lost) < count) {
        uint8_t out[sizeof room];
        const int64_t size = ring_waiting(&ring);
        ring_take(&ring, out, size);
        for (int64_t at = 0; at < size;) {
            RingHead head;
            memcpy(&head, out + at, sizeof head);
            if (head.time <= last || head.kind != head.time % 9 || head.size != head.kind * 8) fail("head", head.time);
            for (int i = 0; i < head.size / 8; i++) {
                int64_t word;
                memcpy(&word, out + at + (int64_t)sizeof head + 8 * i, 8);
                if (word != head.time) fail("torn", head.time);
            }
            last = head.time;
            at += (int64_t)sizeof head + ring_padded(head.size);
            taken++;
        }
    }
    pthread_join(writer, NULL);
    printf("%lld written, %lld taken\n", (long long)count, (long long)taken);
    return 0;
}
