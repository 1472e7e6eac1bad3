/* One writer and one reader as fast as they can on the slot and on the event queue, to be built with -fsanitize=thread.

   Built with WEAK, the exchange orders nothing and the queue publishes nothing: the sanitizer has to find that. */
#ifdef WEAK
#undef __ATOMIC_ACQ_REL
#undef __ATOMIC_RELEASE
#define __ATOMIC_ACQ_REL __ATOMIC_RELAXED
#define __ATOMIC_RELEASE __ATOMIC_RELAXED
#endif
#include "motioncue/core/threads.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 64 };
typedef struct { int64_t words[WORDS]; } Words;
MC_SLOT(Words, words)
static int64_t count;
static WordsSlot slot;
static Events events;

static void *write_all(void *none) {
    Words value;
    for (int64_t n = 1; n <= count; n++) {
        for (int i = 0; i < WORDS; i++) value.words[i] = n;
        words_write(&slot, &value);
        const Event event = {.time = n, .code = n, .value = (double)n};
        event_write(&events, &event);
    }
    return none;
}
static void fail(const char *what, int64_t n) {
    printf("%s at %lld\n", what, (long long)n);
    exit(1);
}
int main(int argc, char **argv) {
    Words value;
    int64_t last = 0, seen = 0, taken = 0, reads = 0;
    Event event;
    pthread_t writer;
    count = argc > 1 ? atoll(argv[1]) : 1000;
    words_clear(&slot);
    pthread_create(&writer, NULL, write_all, NULL);
    while (last < count) {
        if (words_read(&slot, &value)) {
            for (int i = 1; i < WORDS; i++)
                if (value.words[i] != value.words[0]) fail("torn", value.words[0]);
            if (value.words[0] <= last) fail("not newer", value.words[0]);
            last = value.words[0];
            reads++;
        }
        while (event_read(&events, &event)) {
            if (event.time != event.code || event.value != (double)event.time || event.time <= seen) fail("event", event.time);
            seen = event.time;
            taken++;
        }
    }
    pthread_join(writer, NULL);
    while (event_read(&events, &event)) taken++;
    if (taken + events.lost != count) fail("events lost", taken);
    printf("%lld written, %lld read, %lld events\n", (long long)count, (long long)reads, (long long)taken);
    return 0;
}
