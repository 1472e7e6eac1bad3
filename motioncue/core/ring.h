/* Records passed in order from one thread to another without a lock.

   A slot keeps only the newest value; a ring keeps all records until its reader takes them.  It serves exactly one
   writer thread and one reader thread.  The writer never waits: a record that does not fit is dropped and counted in
   `lost`, whatever the reader does, so both sides take a bounded number of steps.  `written` and `read` count bytes
   since the beginning and only grow; each is stored by one side, with release, and loaded by the other, with acquire.
   tests/linux/ring.c runs this file under ThreadSanitizer. */
#ifndef MOTIONCUE_RING_H
#define MOTIONCUE_RING_H
#include <stdint.h>
#include <string.h>
#include "motioncue/core/atomics.h"
enum { /* type of a payload, in the lowest byte of its kind */
    RECORD_TICK = 1,         /* Tick */
    RECORD_TRANSITION = 2,   /* Event */
    RECORD_PACKAGE = 3,      /* the bytes of a package; the other bytes of the kind hold its endpoint's number */
    RECORD_FRAME = 4,        /* Motion */
    RECORD_HAPPENING = 5,    /* an Event of the intake */
    RECORD_CONNECTED = 6,    /* no payload: from here on the source is another one, or the same one anew */
    RECORD_DISCONNECTED = 7, /* no payload */
    RECORD_RETUNED = 9,      /* int64_t: number of the settings that the source's side uses from here on */
    RECORD_ENDPOINT = 8      /* shift of the endpoint's number in the kind [bits] */
};
typedef struct {
    int32_t kind;
    int32_t size; /* size of the payload [bytes] */
    int64_t time; /* [ns] */
} RingHead;       /* before every payload, which is padded to a multiple of 8 bytes */
typedef struct {
    uint8_t *room;
    int64_t size; /* size of `room` [bytes], a multiple of 8 */
    int64_t written, read;
    int64_t lost; /* records that did not fit */
} Ring;
static inline int64_t ring_padded(int64_t size) { return (size + 7) & ~(int64_t)7; }
/* Copy data to the position `at` (bytes since the beginning), wrapping around at the end. */
static inline void ring_put(Ring *r, int64_t at, const void *data, int64_t size) {
    const int64_t place = at % r->size, first = size < r->size - place ? size : r->size - place;
    memcpy(r->room + place, data, (size_t)first);
    memcpy(r->room, (const uint8_t *)data + first, (size_t)(size - first));
}
/* Write a record; if it does not fit, count it as lost and return 0. */
static inline int ring_write(Ring *r, int32_t kind, int64_t time, const void *data, int64_t size) {
    const int64_t at = mc_load(&r->written), all = (int64_t)sizeof(RingHead) + ring_padded(size);
    const RingHead head = {kind, (int32_t)size, time};
    if (size < 0 || size > INT32_MAX || all > r->size - (at - mc_load_acquire(&r->read))) {
        mc_count(&r->lost, 1);
        return 0;
    }
    ring_put(r, at, &head, sizeof head);
    ring_put(r, at + (int64_t)sizeof head, data, size);
    mc_store_release(&r->written, at + all);
    return 1;
}
/* Return how many bytes wait to be read; they are whole records. */
static inline int64_t ring_waiting(Ring *r) { return mc_load_acquire(&r->written) - mc_load(&r->read); }
/* Take the oldest `size` bytes; at least so many must be waiting. */
static inline void ring_take(Ring *r, void *out, int64_t size) {
    const int64_t at = mc_load(&r->read), place = at % r->size, first = size < r->size - place ? size : r->size - place;
    memcpy(out, r->room + place, (size_t)first);
    memcpy((uint8_t *)out + first, r->room, (size_t)(size - first));
    mc_store_release(&r->read, at + size);
}
#endif
