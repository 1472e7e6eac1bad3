/* Opens a serial line: raw, without flow control, not waiting. */
#ifndef MOTIONCUE_LINE_OPEN_H
#define MOTIONCUE_LINE_OPEN_H
#include "motioncue/transports/line.h"
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
