/* A mapping that a simulator writes, read without locks: windows of it joined to one packet, torn states told apart; and
   one that the ticking thread writes.

   On POSIX it is read by pread, not mapped: who shrinks a file under a mapping kills the process that touches it. */
#ifndef MOTIONCUE_MEMORY_H
#define MOTIONCUE_MEMORY_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#include "motioncue/core/threads.h"
enum {
    MC_WINDOWS = 32,
    MC_NAMED = 48, /* bytes of a variable's header that say its type, place, count and name */
    MC_GATHERED = 4096, /* largest state [bytes] */
    MC_TAIL = 16,       /* bytes, of which some change with every state of a car that moves */
    MC_WHOLE = 1,
    MC_TORN = 0,
    MC_GONE = -1 /* the mapping has become smaller, or a number in it leads out of it */
};
typedef struct {
    int64_t offset, size; /* [bytes] */
    int64_t index;        /* offset of the block's number, -1: none */
    int64_t index_size;   /* 1, 2 or 4 [bytes] */
    int64_t stride;       /* from block to block [bytes] */
    int64_t entry;        /* offset of the variable's header, by which `offset` is in the newest buffer; -1: none */
    int64_t samples;      /* numbers of that size, one after the other, of which each is for a packet of its own */
    int absent;           /* the memory has no such variable: every bit of it is set, which is NaN as a float */
    int between;          /* what a packet before the state's last has: MC_ALIKE, MC_LINE or MC_CIRCLE */
    int block;            /* `offset` is that of the first block, and that of the player's counts: MC_OF_PLAYER, MC_BESIDE */
    uint8_t header[MC_NAMED]; /* how that header began when it was looked up */
} mc_window;
enum {
    MC_ALIKE = 0,
    MC_LINE = 1,  /* a float on the straight line from the state before */
    MC_CIRCLE = 2 /* likewise an angle [rad], the shorter way round */
};
enum {
    MC_OF_PLAYER = 1, /* in this mapping */
    MC_BESIDE = 2     /* in the mapping that says which vehicle is the player's */
};
typedef struct {
    int64_t handle;      /* descriptor; Windows: handle of the mapping; -1: none */
    const uint8_t *view; /* Windows only */
    int64_t size;        /* [bytes] */
} mc_page;
/* Blocks of one size, of which each begins with a vehicle's number: an int32, at `id` in the block. */
typedef struct {
    int64_t count;  /* offset of how many there are, an int32 */
    int64_t first;  /* offset of the first block */
    int64_t stride; /* from block to block [bytes] */
    int64_t id;     /* in a block */
    int32_t most;   /* blocks for which there is room */
    int32_t found;  /* where the player's was last; -1: there is none */
} mc_blocks;
typedef struct {
    mc_page page;
    mc_page beside;    /* the mapping that says which vehicle is the player's, if another one does */
    int asks;          /* whether another one does: without it, or while it is too small, nothing is read */
    mc_blocks blocks;  /* of vehicles in `page` */
    mc_blocks players; /* of vehicles in `beside` */
    int64_t mark;      /* in a block of `players`: a byte that is 1 in the player's */
    int64_t begin, close; /* in `beside`: counters (uint32) before and after what is written there */
    mc_window windows[MC_WINDOWS];
    int n;
    int packet;                /* [bytes] */
    int state;                 /* with all samples [bytes] */
    int samples;               /* packets of a state */
    double sample_s;           /* from one to the next [s] */
    int time;                  /* in the packet: time of the last sample, a double [s]; of the others it is made earlier */
    int counter, counter_size; /* in the packet: it changes with every state */
    int end;                   /* in the packet: its copy, written after the state; -1: none */
    int odd;                   /* the counter is odd while a state is written */
    int tail;                  /* in the packet: behind the last bytes that change while the car moves */
    uint8_t again[MC_GATHERED];
} mc_memory;

static inline int mc_page_read(const mc_page *p, int64_t at, void *out, int64_t size) {
    if (at < 0 || size > p->size || at > p->size - size) return 0;
#ifdef _WIN32
    if (!p->view) return 0;
    memcpy(out, (const void *)(p->view + at), (size_t)size);
    MemoryBarrier();
    return 1;
#else
    return pread((int)p->handle, out, (size_t)size, (off_t)at) == size;
#endif
}
static inline int mc_memory_read(const mc_memory *m, int64_t at, void *out, int64_t size) {
    return mc_page_read(&m->page, at, out, size);
}
static inline int64_t mc_memory_int(const uint8_t *at) {
    return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
}
/* Find the newest of the buffers that iRacing's SDK writes in turn, while it is connected and the variable is where it was.

   Its head: status at 4, number of buffers at 32, and from 48 on for each a count of ticks, written last, and its offset. */
static inline int mc_memory_newest(const mc_memory *m, const mc_window *w, int64_t *at) {
    uint8_t head[112], header[MC_NAMED];
    int64_t i, n, newest = -1;
    if (!mc_memory_read(m, 0, head, sizeof head) || !mc_memory_read(m, w->entry, header, sizeof header)) return 0;
    if (!(head[4] & 1) || memcmp(header, w->header, sizeof header)) return 0;
    n = mc_memory_int(head + 32);
    for (i = 0; i < n && i < 4; i++)
        if (newest < mc_memory_int(head + 48 + 16 * i)) {
            newest = mc_memory_int(head + 48 + 16 * i);
            *at = w->offset + mc_memory_int(head + 52 + 16 * i);
        }
    return newest >= 0;
}
/* Look whether a block is a vehicle's: with this number, or with `mark` >= 0 the player's, whose number is returned then. */
static inline int mc_blocks_is(const mc_page *p, const mc_blocks *b, int32_t place, int64_t mark, int32_t *id) {
    uint8_t number[4], player = 0;
    int64_t at = b->first + b->stride * place;
    if (!mc_page_read(p, at + b->id, number, 4) || (mark >= 0 && !mc_page_read(p, at + mark, &player, 1))) return 0;
    if (mark < 0) return (int32_t)mc_memory_int(number) == *id;
    *id = player == 1 ? (int32_t)mc_memory_int(number) : *id;
    return player == 1;
}
/* Find a vehicle's block, at first where it was last: the order of blocks changes as vehicles come, go and overtake. */
static inline void mc_blocks_find(const mc_page *p, mc_blocks *b, int64_t mark, int32_t *id) {
    uint8_t number[4] = {0, 0, 0, 0};
    int64_t count = mc_page_read(p, b->count, number, 4) ? mc_memory_int(number) : 0;
    int32_t place, n = (int32_t)(count < 0 ? 0 : count > b->most ? b->most : count);
    if (b->found >= 0 && b->found < n && mc_blocks_is(p, b, b->found, mark, id)) return;
    b->found = -1;
    for (place = 0; place < n && b->found < 0; place++)
        if (mc_blocks_is(p, b, place, mark, id)) b->found = place;
}
static inline int mc_beside_counter(const mc_memory *m, int64_t at, uint32_t *out) {
    uint8_t number[4];
    if (!mc_page_read(&m->beside, at, number, 4)) return 0;
    *out = (uint32_t)mc_memory_int(number);
    return 1;
}
/* Find where a window begins at the moment. */
static inline int mc_memory_place(const mc_memory *m, const mc_window *w, int64_t *at) {
    uint8_t number[4] = {0, 0, 0, 0};
    if (w->entry >= 0) return mc_memory_newest(m, w, at);
    *at = w->offset;
    if (w->block == MC_OF_PLAYER) *at += m->blocks.stride * m->blocks.found;
    if (w->block == MC_BESIDE) *at += m->players.stride * m->players.found;
    if (w->index < 0) return 1;
    if (!mc_memory_read(m, w->index, number, w->index_size)) return 0;
    *at += w->stride * (int64_t)(number[0] | number[1] << 8 | number[2] << 16 | (uint32_t)number[3] << 24);
    return 1;
}
/* Read a number of up to 8 bytes, by its offset in the packet; it lies within one window. */
static inline int mc_memory_number(const mc_memory *m, int offset, int size, uint64_t *out) {
    int64_t at, first = 0;
    int i;
    *out = 0;
    for (i = 0; i < m->n; first += m->windows[i++].size)
        if (offset < first + m->windows[i].size)
            return mc_memory_place(m, &m->windows[i], &at) && mc_memory_read(m, at + offset - first, out, size);
    return 0;
}
/* Copy the windows; without a player, zeros for what would be read of one. */
static inline int mc_memory_gather(mc_memory *m, uint8_t *out) {
    int64_t at, size;
    int32_t id = 0;
    int i, known = 1;
    if (m->asks) {
        mc_blocks_find(&m->beside, &m->players, m->mark, &id);
        if (m->players.found >= 0) mc_blocks_find(&m->page, &m->blocks, -1, &id);
        known = m->players.found >= 0 && m->blocks.found >= 0;
    }
    for (i = 0; i < m->n; i++, out += size) {
        const mc_window *w = &m->windows[i];
        size = w->size * w->samples;
        if (w->absent || (w->block && !known)) {
            memset(out, w->absent ? 0xff : 0, (size_t)size);
            continue;
        }
        if (!mc_memory_place(m, w, &at) || !mc_page_read(w->block == MC_BESIDE ? &m->beside : &m->page, at, out, size)) return 0;
    }
    return 1;
}
/* Copy the state, with all its samples: MC_WHOLE, MC_TORN if it was being written, or MC_GONE.

   With a copy of the counter it is the copy that is read first, because the simulator writes it last: equal to a counter
   that then stays, nothing was written in between.  Without any such sign the state is read until it is twice the same.
   What says which vehicle is the player's is another page with a counter and its copy, and has to be whole as well. */
static inline int mc_memory_take(mc_memory *m, uint8_t *out) {
    uint64_t end = 0, before, after;
    uint32_t close = 0, begun = 0, begun_after = 0;
    if (m->end >= 0 && !mc_memory_number(m, m->end, m->counter_size, &end)) return MC_GONE;
    if (!mc_memory_number(m, m->counter, m->counter_size, &before)) return MC_GONE;
    if ((m->end >= 0 && end != before) || (m->odd && before & 1)) return MC_TORN;
    if (m->asks) {
        if (!mc_beside_counter(m, m->close, &close) || !mc_beside_counter(m, m->begin, &begun)) return MC_GONE;
        if (close != begun) return MC_TORN;
    }
    if (!mc_memory_gather(m, out)) return MC_GONE;
    if (m->end < 0 && !m->odd) {
        if (!mc_memory_gather(m, m->again)) return MC_GONE;
        if (memcmp(out, m->again, (size_t)m->state)) return MC_TORN;
    }
    if (m->asks) {
        if (!mc_beside_counter(m, m->begin, &begun_after)) return MC_GONE;
        if (begun_after != begun) return MC_TORN;
    }
    if (!mc_memory_number(m, m->counter, m->counter_size, &after)) return MC_GONE;
    return before == after ? MC_WHOLE : MC_TORN;
}
/* Return how a state ends: some of these bytes change with every state of a car that moves, and last of all. */
static inline const uint8_t *mc_memory_end(const mc_memory *m, const uint8_t *state) { return state + m->tail - MC_TAIL; }
static inline double mc_memory_time(const mc_memory *m, const uint8_t *state) {
    int64_t first = 0, at = 0;
    double time = 0.0;
    int i;
    for (i = 0; i < m->n; at += m->windows[i].size * m->windows[i].samples, first += m->windows[i++].size)
        if (m->time >= first && m->time < first + m->windows[i].size) memcpy(&time, state + at + m->time - first, sizeof time);
    return time;
}
/* Return the number of the first sample since the state before; of a state that does not follow one, the last. */
static inline int mc_memory_first(const mc_memory *m, const uint8_t *state, const uint8_t *before) {
    double passed = (mc_memory_time(m, state) - mc_memory_time(m, before)) / m->sample_s;
    if (!(passed > 0.5) || passed > 4 * m->samples) return m->samples - 1;
    return passed < m->samples - 0.5 ? m->samples - (int)(passed + 0.5) : 0;
}
/* Make the packet of a sample; `before` is the state before, needed but for the last. */
static inline void mc_memory_sample(
    const mc_memory *m, const uint8_t *state, const uint8_t *before, int sample, uint8_t *out
) {
    const double turn = 6.283185307179586;
    double age = (m->samples - 1 - sample) * m->sample_s, time = 0.0, part = 0.0, step;
    const uint8_t *begin = out;
    float now, then;
    int64_t size;
    int i;
    if (age > 0.0) {
        time = mc_memory_time(m, state);
        part = age / (time - mc_memory_time(m, before));
    }
    for (i = 0; i < m->n; i++, out += size) {
        const mc_window *w = &m->windows[i];
        size = w->size;
        memcpy(out, state + (w->samples > 1 ? sample * size : 0), (size_t)size);
        if (w->between != MC_ALIKE && age > 0.0) {
            memcpy(&now, state, sizeof now);
            memcpy(&then, before, sizeof then);
            step = (double)then - now;
            if (w->between == MC_CIRCLE) step -= turn * round(step / turn);
            now = (float)(now + part * step);
            memcpy(out, &now, sizeof now);
        }
        state += size * w->samples;
        before += size * w->samples;
    }
    if (age > 0.0) {
        time -= age;
        memcpy((uint8_t *)begin + m->time, &time, sizeof time);
    }
}
static inline void mc_page_close(mc_page *p) {
#ifdef _WIN32
    if (p->view) UnmapViewOfFile((LPCVOID)p->view);
    if (p->handle > 0) CloseHandle((HANDLE)(intptr_t)p->handle);
    p->view = NULL;
#else
    if (p->handle >= 0) close((int)p->handle);
#endif
    p->handle = -1;
}
static inline void mc_memory_close(mc_memory *m) {
    mc_page_close(&m->page);
    mc_page_close(&m->beside);
}
#ifdef _WIN32
/* Open a mapping that exists, for reading; return the number of the error or 0. */
static inline int mc_page_open(mc_page *p, const wchar_t *name) {
    MEMORY_BASIC_INFORMATION found;
    HANDLE handle = OpenFileMappingW(FILE_MAP_READ, FALSE, name);
    int error;
    if (!handle) return (int)GetLastError();
    p->handle = (int64_t)(intptr_t)handle;
    p->view = (const uint8_t *)MapViewOfFile(handle, FILE_MAP_READ, 0, 0, 0);
    if (p->view && VirtualQuery((LPCVOID)p->view, &found, sizeof found)) {
        p->size = (int64_t)found.RegionSize;
        return 0;
    }
    error = (int)GetLastError();
    mc_page_close(p);
    return error;
}
#endif

/* Write a packet, eight bytes at once: who reads it meanwhile sees no number half written.  `file` is the descriptor of
   its file; on Windows there is none.  Return 0, 1 (MC_UNHEARD) if nobody finds the file by its name any more, or the
   negated number of an error.  Not inlined, so that a tick that writes none costs as much as before. */
#if defined(__GNUC__)
__attribute__((noinline, cold))
#endif
static int mc_write_numbers(uint8_t *memory, int64_t file, const uint8_t *packet, int size) {
    int at = 0, unheard = 0;
#ifndef _WIN32
    struct stat found;
    if (fstat((int)file, &found) != 0) return -errno;
    unheard = found.st_nlink == 0;
    if (found.st_size < size) { /* shrunk by another program: to touch the mapping would end this process */
        ssize_t done = pwrite((int)file, packet, (size_t)size, 0);
        return done == size ? unheard : done < 0 ? -errno : -ENOSPC;
    }
#else
    (void)file;
#endif
    for (; at + 8 <= size; at += 8) {
        int64_t number;
        memcpy(&number, packet + at, 8);
        mc_store((int64_t *)(memory + at), number);
    }
    memcpy(memory + at, packet + at, (size_t)(size - at));
    return unheard;
}
#endif
