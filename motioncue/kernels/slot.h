/* The newest value, handed from one thread to another without a lock, and events likewise.

   A slot is a triple buffer: the writer owns one copy, the reader owns one, the third waits in between, and a single
   atomic exchange swaps a side's copy with the waiting one.  No copy is ever written and read at the same time, so a
   torn read cannot happen; each side does a bounded number of steps whatever the other does, so it is wait-free.  The
   exchange releases what the side has written or read and acquires what the other has; nothing else is shared.  It
   serves exactly one writer thread and one reader thread at a time.  tests/linux/slot.c runs this very file under
   ThreadSanitizer. */
#ifndef MOTIONCUE_SLOT_H
#define MOTIONCUE_SLOT_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "motioncue/kernels/atomics.h"
enum {
    SLOT_BYTES = 512,
    SLOT_FRESH = 4, /* set in `waiting` when the writer has been there since the reader */
    EVENTS = 256    /* room in the event queue */
};
typedef struct {
    char copies[3][SLOT_BYTES];
    int64_t waiting; /* index of the waiting copy, plus SLOT_FRESH */
    int64_t back;    /* the writer's */
    int64_t front;   /* the reader's */
} Slot;
typedef struct {
    int64_t time;          /* [ns] monotonic clock */
    int64_t code;          /* a Reason */
    int64_t detail;
    int64_t before, after; /* of a transition: the State left, and the one entered */
    double value, limit;   /* what was measured, and what was allowed */
} Event;
typedef struct {
    Event ring[EVENTS];
    int64_t written, read;
    int64_t lost; /* written while the queue was full */
} Events;
static inline void slot_clear(Slot *s) { s->back = 0, s->waiting = 1, s->front = 2; }
static inline void slot_write(Slot *s, const void *value, size_t size) {
    memcpy(s->copies[s->back], value, size);
    s->back = mc_exchange(&s->waiting, s->back | SLOT_FRESH) & 3;
}
/* Copies the newest value if there is one since the last read; says whether there was. */
static inline int slot_read(Slot *s, void *value, size_t size) {
    if (!(mc_load(&s->waiting) & SLOT_FRESH)) return 0;
    s->front = mc_exchange(&s->waiting, s->front) & 3;
    memcpy(value, s->copies[s->front], size);
    return 1;
}
static inline void event_write(Events *q, const Event *event) {
    int64_t n = mc_load(&q->written);
    if (n - mc_load_acquire(&q->read) >= EVENTS) {
        mc_count(&q->lost, 1);
        return;
    }
    q->ring[n % EVENTS] = *event;
    mc_store_release(&q->written, n + 1);
}
static inline int event_read(Events *q, Event *out) {
    int64_t n = mc_load(&q->read);
    if (n == mc_load_acquire(&q->written)) return 0;
    *out = q->ring[n % EVENTS];
    mc_store_release(&q->read, n + 1);
    return 1;
}
#endif
