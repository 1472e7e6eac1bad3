/* What threads share without a lock: atomic operations, the newest value, events in a queue, records in order,
   durations; and how a thread flushes denormals to zero.  Processors and compilers have these operations each in their own way. */
#ifndef MOTIONCUE_THREADS_H
#define MOTIONCUE_THREADS_H
#include <stdint.h>
#include <string.h>
#if defined(_MSC_VER) && !defined(__clang__)
#ifndef _M_X64
#error "this compiler's volatile accesses are ordered on x86-64 only"
#endif
#include <intrin.h>
static __inline int64_t mc_load(const int64_t *p) { return *(const volatile int64_t *)p; }
static __inline void mc_store(int64_t *p, int64_t v) { *(volatile int64_t *)p = v; }
static __inline int64_t mc_load_acquire(const int64_t *p) { int64_t v = *(const volatile int64_t *)p; _ReadWriteBarrier(); return v; }
static __inline void mc_fence(void) { _ReadWriteBarrier(); }
static __inline void mc_store_release(int64_t *p, int64_t v) { _ReadWriteBarrier(); *(volatile int64_t *)p = v; }
static __inline int64_t mc_exchange(int64_t *p, int64_t v) { return _InterlockedExchange64((volatile int64_t *)p, v); }
static __inline void mc_add(int64_t *p, int64_t n) { _InterlockedExchangeAdd64((volatile int64_t *)p, n); }
#else
static inline int64_t mc_load(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static inline void mc_store(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
static inline int64_t mc_load_acquire(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void mc_fence(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); } /* what was read before it, was */
static inline void mc_store_release(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline int64_t mc_exchange(int64_t *p, int64_t v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
static inline void mc_add(int64_t *p, int64_t n) { __atomic_fetch_add(p, n, __ATOMIC_RELAXED); }
#endif
/* Add to a counter that only this thread writes; mc_add is for a counter that several write. */
static inline void mc_count(int64_t *p, int64_t n) { mc_store(p, mc_load(p) + n); }

/* Denormals are flushed on the calling thread, since filters that decay into them would slow down. */
#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
static inline uint64_t mc_flush_denormals(void) {
    uint64_t before = _mm_getcsr();
    _mm_setcsr((unsigned)before | 0x8040u); /* flush to zero, denormals are zero */
    return before;
}
static inline void mc_restore_fpu(uint64_t before) { _mm_setcsr((unsigned)before); }
#elif defined(__aarch64__)
static inline uint64_t mc_flush_denormals(void) {
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" ::"r"(before | (1ull << 24)));
    return before;
}
static inline void mc_restore_fpu(uint64_t before) { __asm__ volatile("msr fpcr, %0" ::"r"(before)); }
#else
static inline uint64_t mc_flush_denormals(void) { return 0; }
static inline void mc_restore_fpu(uint64_t before) { (void)before; }
#endif

/* The newest value passed from one thread to another without a lock; events likewise, in a queue.

   A slot is a triple buffer: the writer owns one copy, the reader owns one, the third waits in between, and a single
   atomic exchange swaps a side's copy with the waiting one.  No copy is ever written and read at the same time, so a
   torn read cannot happen; each side takes a bounded number of steps whatever the other does, so it is wait-free.  The
   exchange releases what the side has written or read and acquires what the other has; nothing else is shared.  It
   serves exactly one writer thread and one reader thread at a time.  tests/linux/slot.c runs this part under
   ThreadSanitizer. */
enum {
    SLOT_FRESH = 4, /* set in `waiting` if the writer has written since the last read */
    EVENTS = 256    /* capacity of the event queue */
};
/* Define a slot for records of one type: the struct RecordSlot, and record_clear, record_write and record_read, whose
 * argument `record` begins their names.  A read copies the newest record if there is one since the last read, and says
 * whether there was.  In the struct, `waiting` is the index of the waiting copy plus SLOT_FRESH, `back` is the writer's
 * and `front` the reader's. */
#define MC_ASSIGN(to, from) (*(to) = *(from))
#define MC_SLOT(Record, record) MC_SLOT_BY(Record, record, MC_ASSIGN)
/* The same with a copy of one's own, for a record of which not all is always used. */
#define MC_SLOT_BY(Record, record, copy)                                             \
    typedef struct {                                                                 \
        Record copies[3];                                                            \
        int64_t waiting, back, front;                                                \
    } Record##Slot;                                                                  \
    static inline void record##_clear(Record##Slot *slot) {                          \
        slot->back = 0, slot->waiting = 1, slot->front = 2;                          \
    }                                                                                \
    static inline void record##_write(Record##Slot *slot, const Record *newest) {    \
        copy(&slot->copies[slot->back], newest);                                     \
        slot->back = mc_exchange(&slot->waiting, slot->back | SLOT_FRESH) & 3;       \
    }                                                                                \
    static inline int record##_read(Record##Slot *slot, Record *out) {               \
        if (!(mc_load(&slot->waiting) & SLOT_FRESH)) return 0;                       \
        slot->front = mc_exchange(&slot->waiting, slot->front) & 3;                  \
        copy(out, &slot->copies[slot->front]);                                       \
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

/* Records passed in order from one thread to another without a lock.

   A slot keeps only the newest value; a ring keeps all records until its reader takes them.  It serves exactly one
   writer thread and one reader thread.  The writer never waits: a record that does not fit is dropped and counted in
   `lost`, whatever the reader does, so both sides take a bounded number of steps.  `written` and `read` count bytes
   since the beginning and only grow; each is stored by one side, with release, and loaded by the other, with acquire.
   tests/linux/ring.c runs this part under ThreadSanitizer. */
enum { /* type of a payload, in the lowest byte of its kind */
    RECORD_TICK = 1,         /* Tick */
    RECORD_TRANSITION = 2,   /* Event */
    RECORD_PACKAGE = 3,      /* the bytes of a package; the other bytes of the kind hold its endpoint's number */
    RECORD_FRAME = 4,        /* Motion */
    RECORD_HAPPENING = 5,    /* an Event of the intake */
    RECORD_CONNECTED = 6,    /* no payload: from here on the source is another one, or the same one anew */
    RECORD_DISCONNECTED = 7, /* no payload */
    RECORD_RETUNED = 9,      /* int64_t: number of the settings that the source's side uses from here on */
    RECORD_CHASSIS = 10,     /* int64_t: time [ns], then the chassis of the frame that has just been written */
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

/* Durations: one writer, bins 1.6 % wide, from 1 ns to hours. */
enum { HISTOGRAM_BINS = 64 * 44 };
typedef struct {
    int64_t bins[HISTOGRAM_BINS];
    int64_t top; /* largest value seen */
} Histogram;
/* Return the bin: 64 bins an octave, exact below 128. */
static inline int histogram_bin(int64_t value) {
    int shift = 0;
    if (value < 0) return 0;
    for (; value >= 128; value >>= 1) shift++;
    shift = shift * 64 + (int)value;
    return shift < HISTOGRAM_BINS ? shift : HISTOGRAM_BINS - 1;
}
static inline void histogram_record(Histogram *h, int64_t value) {
    mc_count(&h->bins[histogram_bin(value)], 1);
    if (value > mc_load(&h->top)) mc_store(&h->top, value);
}
#endif
