/* Shared memory as the ticking thread writes it, without waiting. */
#ifndef MOTIONCUE_WRITTEN_H
#define MOTIONCUE_WRITTEN_H
#include <stdint.h>
#include <string.h>
#include "motioncue/core/threads.h"
#ifndef _WIN32
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
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
