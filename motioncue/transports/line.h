/* A serial line as the ticking thread writes it, without waiting, on POSIX and Windows.  With MC_OPENS_LINES it is opened
 * as well, by system headers that not every module that writes one can include beside its own. */
#ifndef MOTIONCUE_LINE_H
#define MOTIONCUE_LINE_H
#include <stdint.h>
#include <string.h>
#include "motioncue/core/threads.h"
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#define MC_LINE_BUSY ERROR_IO_INCOMPLETE
#define MC_LINE_GONE ERROR_DEVICE_NOT_CONNECTED
#else
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>
#define MC_LINE_BUSY EAGAIN
#define MC_LINE_GONE ENXIO
#endif
#define MC_LINE_BYTES 512
#define MC_NO_LINE (-1) /* also the value of INVALID_HANDLE_VALUE */
/* Packets that may wait in the system: a device that stops for a while gets no more than these late. */
#define MC_LINE_PACKETS 4
/* Most reads in a row of what is thrown away: more than a system keeps of a line. */
#define MC_LINE_READS 128
typedef struct {
    int64_t handle;
    int64_t gone; /* the number of the error that ended it; the handle is not used any more */
    int64_t next; /* opened again, to be taken; MC_NO_LINE if it is not */
    uint8_t rest[MC_LINE_BYTES];
    int at, end; /* what the line has not taken of the packet that it has begun to take */
#ifdef _WIN32
    OVERLAPPED pending;
    int writing;
    HANDLE came; /* event of a read; made by the first one */
#endif
} mc_line;

static inline int mc_line_lost(mc_line *l, int64_t error) {
    mc_store_release(&l->gone, error ? error : MC_LINE_GONE);
    return -(int)l->gone;
}

#ifdef _WIN32
/* Return 0 if the last write has ended, or the negated number of an error. */
static inline int mc_line_finish(mc_line *l) {
    DWORD written = 0;
    if (!l->writing) return 0;
    if (!GetOverlappedResult((HANDLE)(intptr_t)l->handle, &l->pending, &written, FALSE)) {
        DWORD error = GetLastError();
        return error == ERROR_IO_INCOMPLETE ? -MC_LINE_BUSY : mc_line_lost(l, error);
    }
    l->writing = 0;
    l->at += (int)written;
    return 0;
}

/* Begin to write the rest; return 0 or the negated number of an error. */
static inline int mc_line_write(mc_line *l) {
    if (WriteFile((HANDLE)(intptr_t)l->handle, l->rest + l->at, (DWORD)(l->end - l->at), NULL, &l->pending) ||
        GetLastError() == ERROR_IO_PENDING) {
        l->writing = 1;
        return 0;
    }
    return mc_line_lost(l, GetLastError());
}

/* Send a packet, or nothing of it.  Return 0, or the negated number of an error. */
static inline int mc_line_send(mc_line *l, const uint8_t *packet, int size) {
    int done;
    if (mc_load(&l->gone)) return -(int)l->gone;
    if ((done = mc_line_finish(l)) != 0) return done;
    if (l->at < l->end) { /* the line has taken a part of it only */
        if ((done = mc_line_write(l)) != 0 || (done = mc_line_finish(l)) != 0) return done;
        if (l->at < l->end) return -MC_LINE_BUSY;
    }
    memcpy(l->rest, packet, (size_t)size);
    l->at = 0;
    l->end = size;
    return mc_line_write(l);
}
#else
/* Write the rest; return 0 if the line has taken all of it, or the negated number of an error. */
static inline int mc_line_write(mc_line *l) {
    while (l->at < l->end) {
        ssize_t n = write((int)l->handle, l->rest + l->at, (size_t)(l->end - l->at));
        if (n > 0)
            l->at += (int)n;
        else if (n == 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            return -MC_LINE_BUSY;
        else
            return mc_line_lost(l, errno);
    }
    return 0;
}

/* Send a packet, or nothing of it; what the line does not take at once is sent before the next one.  Return 0, or the
   negated number of an error. */
static inline int mc_line_send(mc_line *l, const uint8_t *packet, int size) {
    int waiting = 0, done;
    if (mc_load(&l->gone)) return -(int)l->gone;
    if ((done = mc_line_write(l)) != 0) return done;
#ifdef TIOCOUTQ
    if (ioctl((int)l->handle, TIOCOUTQ, &waiting) == 0 && waiting > MC_LINE_PACKETS * size) return -MC_LINE_BUSY;
#endif
    memcpy(l->rest, packet, (size_t)size);
    l->at = 0;
    l->end = size;
    done = mc_line_write(l);
    if (done == -MC_LINE_BUSY && l->at > 0) return 0; /* it has begun, and will be completed */
    if (done != 0) l->at = l->end;
    return done;
}
#endif

/* Read what has come, without waiting; return how many bytes, 0 also if the line is gone. */
static inline int mc_line_read(mc_line *l, uint8_t *data, int room) {
    if (mc_load(&l->gone)) return 0;
#ifdef _WIN32
    OVERLAPPED o;
    DWORD n = 0;
    memset(&o, 0, sizeof o);
    if (!l->came && !(l->came = CreateEventW(NULL, TRUE, FALSE, NULL))) return 0;
    o.hEvent = l->came; /* a read and a write are under way at the same handle */
    if (!ReadFile((HANDLE)(intptr_t)l->handle, data, (DWORD)room, NULL, &o) && GetLastError() != ERROR_IO_PENDING) return 0;
    return GetOverlappedResult((HANDLE)(intptr_t)l->handle, &o, &n, TRUE) ? (int)n : 0; /* at once: see the timeouts */
#else
    ssize_t n = read((int)l->handle, data, (size_t)room);
    return n > 0 ? (int)n : 0;
#endif
}

/* Throw away what has come: it was said while nobody listened, and is not about now. */
static inline void mc_line_drain(mc_line *l) {
    uint8_t data[MC_LINE_BYTES];
    int i;
    for (i = 0; i < MC_LINE_READS && mc_line_read(l, data, sizeof data) > 0; i++) continue;
}

/* Use the line that was opened again, if it was lost, and what comes from now on; return whether it can be sent to. */
static inline int mc_line_take(mc_line *l) {
    int64_t next;
    if (!mc_load(&l->gone)) return 1; /* what came while it took nothing has been thrown away at each tick */
    next = mc_exchange(&l->next, MC_NO_LINE);
    if (next == MC_NO_LINE) return 0;
    l->handle = next;
    l->at = l->end = 0;
#ifdef _WIN32
    l->writing = 0;
#endif
    mc_store_release(&l->gone, 0);
    mc_line_drain(l);
    return 1;
}
#endif

#ifdef MC_OPENS_LINES /* raw, without flow control, not waiting */
#undef MC_OPENS_LINES
#ifdef _WIN32
/* Open a line by its Windows name; return its handle, or the negated number of an error. */
static int64_t mc_line_open(const wchar_t *name, int baud, int bits, int parity, int stop, int *actual) {
    DCB d;
    COMMTIMEOUTS none;
    DWORD error;
    HANDLE h = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, FILE_FLAG_OVERLAPPED, NULL);
    if (h == INVALID_HANDLE_VALUE) return -(int64_t)GetLastError();
    memset(&d, 0, sizeof d);
    memset(&none, 0, sizeof none);
    none.ReadIntervalTimeout = MAXDWORD;
    d.DCBlength = sizeof d;
    if (GetCommState(h, &d)) {
        d.BaudRate = (DWORD)baud;
        d.ByteSize = (BYTE)bits;
        d.Parity = parity == 'N' ? NOPARITY : parity == 'E' ? EVENPARITY : ODDPARITY;
        d.StopBits = stop == 1 ? ONESTOPBIT : TWOSTOPBITS;
        d.fBinary = TRUE;
        d.fParity = parity != 'N';
        d.fOutxCtsFlow = d.fOutxDsrFlow = d.fDsrSensitivity = d.fOutX = d.fInX = d.fNull = d.fAbortOnError = FALSE;
        d.fDtrControl = DTR_CONTROL_ENABLE;
        d.fRtsControl = RTS_CONTROL_ENABLE;
        if (SetCommState(h, &d) && SetCommTimeouts(h, &none) && GetCommState(h, &d)) {
            *actual = (int)d.BaudRate;
            PurgeComm(h, PURGE_RXCLEAR); /* what was said before the line was opened is not about now */
            return (int64_t)(intptr_t)h;
        }
    }
    error = GetLastError();
    CloseHandle(h);
    return -(int64_t)(error ? error : ERROR_GEN_FAILURE);
}
static void mc_line_shut(mc_line *l, int64_t handle) {
    HANDLE h = (HANDLE)(intptr_t)handle;
    DWORD written;
    if (handle == MC_NO_LINE) return;
    if (l->came && handle == l->handle) CloseHandle(l->came), l->came = NULL;
    if (l->writing && handle == l->handle && CancelIoEx(h, &l->pending)) GetOverlappedResult(h, &l->pending, &written, TRUE);
    CloseHandle(h);
}
#else
#include <fcntl.h>
#include <sys/file.h>
#ifdef __linux__
#include <asm/termbits.h> /* has any speed; <termios.h> declares the same names without it */
/* Make an open line raw, with any speed; return whether that was possible. */
static int mc_line_raw(int fd, int baud, int bits, int parity, int stop, int *actual) {
    struct termios2 t;
    if (ioctl(fd, TCGETS2, &t) != 0) return 0;
    t.c_iflag = IGNBRK;
    t.c_oflag = 0;
    t.c_lflag = 0;
    t.c_cflag = BOTHER | (BOTHER << IBSHIFT) | CLOCAL | CREAD | HUPCL | (bits == 7 ? CS7 : CS8);
    if (parity != 'N') t.c_cflag |= parity == 'O' ? PARENB | PARODD : PARENB;
    if (stop == 2) t.c_cflag |= CSTOPB;
    t.c_ispeed = t.c_ospeed = (speed_t)baud;
    if (ioctl(fd, TCSETS2, &t) != 0 || ioctl(fd, TCGETS2, &t) != 0) return 0;
    ioctl(fd, TCFLSH, TCIFLUSH); /* what was said before the line was opened is not about now */
    *actual = (int)t.c_ospeed;
    return 1;
}
#else
#include <termios.h>
static int mc_line_raw(int fd, int baud, int bits, int parity, int stop, int *actual) {
    struct termios t;
    if (tcgetattr(fd, &t) != 0) return 0;
    t.c_iflag = IGNBRK;
    t.c_oflag = 0;
    t.c_lflag = 0;
    t.c_cflag = CLOCAL | CREAD | HUPCL | (bits == 7 ? CS7 : CS8);
    if (parity != 'N') t.c_cflag |= parity == 'O' ? PARENB | PARODD : PARENB;
    if (stop == 2) t.c_cflag |= CSTOPB;
    if (cfsetispeed(&t, (speed_t)baud) != 0 || cfsetospeed(&t, (speed_t)baud) != 0) return 0;
    if (tcsetattr(fd, TCSANOW, &t) != 0) return 0;
    tcflush(fd, TCIFLUSH); /* see above */
    *actual = baud;
    return 1;
}
#endif
/* Open a line by its path; return its handle, or the negated number of an error. */
static int64_t mc_line_open(const char *path, int baud, int bits, int parity, int stop, int *actual) {
    int error, fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -(int64_t)errno;
    errno = 0;
    /* A second program would mix its bytes with these; the lock also stops one of the superuser. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        error = errno == EWOULDBLOCK ? EBUSY : errno;
    } else if (mc_line_raw(fd, baud, bits, parity, stop, actual)) {
        ioctl(fd, TIOCEXCL);
        return fd;
    } else
        error = errno;
    close(fd);
    return -(int64_t)(error ? error : ENOTTY);
}
static void mc_line_shut(mc_line *l, int64_t handle) {
    (void)l;
    if (handle == MC_NO_LINE) return;
    ioctl((int)handle, TIOCNXCL);
    close((int)handle);
}
#endif
#endif
