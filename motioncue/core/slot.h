/* The newest value passed from one thread to another without a lock; events likewise, in a queue.

   A slot is a triple buffer: the writer owns one copy, the reader owns one, the third waits in between, and a single
   atomic exchange swaps a side's copy with the waiting one.  No copy is ever written and read at the same time, so a
   torn read cannot happen; each side takes a bounded number of steps whatever the other does, so it is wait-free.  The
   exchange releases what the side has written or read and acquires what the other has; nothing else is shared.  It
   serves exactly one writer thread and one reader thread at a time.  tests/linux/slot.c runs this file under
   ThreadSanitizer. */
#ifndef MOTIONCUE_SLOT_H
#define MOTIONCUE_SLOT_H
#include <stdint.h>
#include "motioncue/core/atomics.h"
enum {
    SLOT_FRESH = 4, /* set in `waiting` if the writer has written since the last read */
    EVENTS = 256    /* capacity of the event queue */
};
/* Define a slot for records of one type: the struct RecordSlot, and record_clear, record_write and record_read, whose
 * argument `record` begins their names.  A read copies the newest record if there is one since the last read, and says
 * whether there was.  In the struct, `waiting` is the index of the waiting copy plus SLOT_FRESH, `back` is the writer's
 * and `front` the reader's. */
#define MC_SLOT(Record, record)                                                      \
    typedef struct {                                                                 \
        Record copies[3];                                                            \
        int64_t waiting, back, front;                                                \
    } Record##Slot;                                                                  \
    static inline void record##_clear(Record##Slot *slot) {                          \
        slot->back = 0, slot->waiting = 1, slot->front = 2;                          \
    }                                                                                \
    static inline void record##_write(Record##Slot *slot, const Record *newest) {    \
        slot->copies[slot->back] = *newest;                                          \
        slot->back = mc_exchange(&slot->waiting, slot->back | SLOT_FRESH) & 3;       \
    }                                                                                \
    static inline int record##_read(Record##Slot *slot, Record *out) {               \
        if (!(mc_load(&slot->waiting) & SLOT_FRESH)) return 0;                       \
        slot->front = mc_exchange(&slot->waiting, slot->front) & 3;                  \
        *out = slot->copies[slot->front];                                            \
        return 1;                                                                    \
    }
typedef struct {
    int64_t time;          /* [ns] monotonic clock */
    int64_t code;          /* a Reason */
    int64_t detail;
    int64_t before, after; /* for a transition: the State left and the State entered */
    double value, limit;   /* the measured value, and the largest one allowed */
} Event;
typedef struct {
    Event ring[EVENTS];
    int64_t written, read;
    int64_t lost; /* events dropped because the queue was full */
} Events;
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
