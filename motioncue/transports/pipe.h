/* Windows named pipes in byte mode with overlapped I/O: the stream server, and the simulator's end.

   A started operation uses its buffer in these structs until it has ended, so before a handle is closed its operations
   are canceled and awaited. */
#ifndef MOTIONCUE_PIPE_H
#define MOTIONCUE_PIPE_H
#include <stdint.h>
#include <string.h>
#include "motioncue/transports/sockets.h"
#define MC_PIPE_INSTANCES 10
#define MC_PIPE_BYTES 4096
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#include <sddl.h>
#ifndef PIPE_REJECT_REMOTE_CLIENTS
#define PIPE_REJECT_REMOTE_CLIENTS 0x00000008
#endif
#define MC_PIPE_RETRY_MS 50 /* between attempts to make an instance that listens */
#define MC_PIPE_HELD (MC_PIPE_INSTANCES - 2) /* most clients held: one instance is the client's, one listens */
#define MC_PIPE_HELD_MS 20  /* wait for the held clients to send something */
#define MC_PIPE_LOOK_MS 2   /* between two looks at them */
typedef struct {
    OVERLAPPED io;
    int pending;
} mc_pipe_io;
typedef struct {
    wchar_t name[300];
    HANDLE woken;
    DWORD first; /* FILE_FLAG_FIRST_PIPE_INSTANCE until the first instance has been made */
    SECURITY_ATTRIBUTES security;
    HANDLE listener, client; /* pipe instances; INVALID_HANDLE_VALUE if there is none */
    mc_pipe_io connect, read, write;
    int knocking; /* a client has connected to `listener` and waits to be accepted */
    int gone;     /* the client has closed its end */
    uint8_t in[MC_PIPE_BYTES], out[MC_PIPE_BYTES];
    int in_have, in_taken;
    HANDLE held[MC_PIPE_HELD]; /* the oldest first; nothing is pending on them */
    int held_count;
    int speaker; /* the place in `held` of the client that has sent something; -1 if there is none */
} mc_pipe_server;
typedef struct {
    HANDLE pipe;
    mc_pipe_io read, write; /* one thread may use each */
    uint8_t in[MC_PIPE_BYTES], out[MC_PIPE_BYTES];
} mc_pipe_client;

/* -- one operation ------------------------------------------------------------------------------------------------- */

/* Record the result of ReadFile, WriteFile or ConnectNamedPipe; return 0, or the error if the operation failed at once.
   */
static DWORD mc_pipe_started(mc_pipe_io *io, BOOL done) {
    DWORD error = done ? ERROR_SUCCESS : GetLastError();
    io->pending = error == ERROR_SUCCESS || error == ERROR_IO_PENDING;
    return io->pending ? ERROR_SUCCESS : error;
}
/* Return 0 and the number of bytes if the operation has ended, ERROR_IO_INCOMPLETE if not, or its error. */
static DWORD mc_pipe_ended(HANDLE pipe, mc_pipe_io *io, DWORD *bytes) {
    DWORD error = GetOverlappedResult(pipe, &io->io, bytes, FALSE) ? ERROR_SUCCESS : GetLastError();
    if (error != ERROR_IO_INCOMPLETE) io->pending = 0;
    return error;
}
/* Cancel an operation and wait for its end; return 0 and the number of bytes if it was completed before. */
static DWORD mc_pipe_cancel(HANDLE pipe, mc_pipe_io *io, DWORD *bytes) {
    DWORD error = ERROR_OPERATION_ABORTED;
    *bytes = 0;
    if (io->pending) {
        CancelIoEx(pipe, &io->io);
        error = GetOverlappedResult(pipe, &io->io, bytes, TRUE) ? ERROR_SUCCESS : GetLastError();
        io->pending = 0;
    }
    return error;
}
static int mc_pipe_io_open(mc_pipe_io *io) {
    memset(io, 0, sizeof *io);
    io->io.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    return io->io.hEvent != NULL;
}
static void mc_pipe_io_close(mc_pipe_io *io) { if (io->io.hEvent) CloseHandle(io->io.hEvent); }

/* -- server -------------------------------------------------------------------------------------------------------- */

/* Allow this user, elevated or not, and the system only. */
static DWORD mc_pipe_security(SECURITY_ATTRIBUTES *security) {
    union { TOKEN_USER user; BYTE room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE]; } token;
    DWORD size = sizeof token, error = ERROR_SUCCESS;
    HANDLE process = NULL;
    LPWSTR sid = NULL;
    wchar_t text[400];
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &process)) return GetLastError();
    if (GetTokenInformation(process, TokenUser, &token, size, &size) && ConvertSidToStringSidW(token.user.User.Sid, &sid)) {
        /* D:P no inheritance; SY system, GA all access; ML NW ME: programs of medium integrity may write. */
        wcscpy(text, L"D:P(A;;GA;;;SY)(A;;GA;;;");
        wcsncat(text, sid, 200);
        wcscat(text, L")S:(ML;;NW;;;ME)");
        if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(text, SDDL_REVISION_1, &security->lpSecurityDescriptor, NULL))
            error = GetLastError();
        LocalFree(sid);
    } else {
        error = GetLastError();
    }
    CloseHandle(process);
    security->nLength = sizeof *security;
    security->bInheritHandle = FALSE;
    return error;
}
static DWORD mc_pipe_instance(mc_pipe_server *s) {
    s->listener = CreateNamedPipeW(s->name, PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | s->first,
                                   PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
                                   MC_PIPE_INSTANCES, MC_PIPE_BYTES, MC_PIPE_BYTES, 0, &s->security);
    if (s->listener == INVALID_HANDLE_VALUE) return GetLastError();
    s->first = 0;
    return ERROR_SUCCESS;
}
/* Make an instance that waits for a client, unless there is one already. */
static void mc_pipe_listen(mc_pipe_server *s) {
    if (s->listener == INVALID_HANDLE_VALUE) mc_pipe_instance(s);
    if (s->listener == INVALID_HANDLE_VALUE || s->knocking || s->connect.pending) return;
    switch (mc_pipe_started(&s->connect, ConnectNamedPipe(s->listener, &s->connect.io))) {
    case ERROR_SUCCESS: break;
    case ERROR_PIPE_CONNECTED:                  /* the client connected before this call */
    case ERROR_NO_DATA: s->knocking = 1; break; /* ... and has left; what it wrote can still be read */
    default: DisconnectNamedPipe(s->listener);  /* the next wait tries again */
    }
}
static int mc_pipe_knocking(mc_pipe_server *s) {
    DWORD bytes, error;
    if (s->connect.pending) {
        error = mc_pipe_ended(s->listener, &s->connect, &bytes);
        if (error == ERROR_SUCCESS) s->knocking = 1;
        else if (error != ERROR_IO_INCOMPLETE) DisconnectNamedPipe(s->listener);
    }
    return s->knocking;
}
static void mc_pipe_read(mc_pipe_server *s) {
    s->gone = mc_pipe_started(&s->read, ReadFile(s->client, s->in, sizeof s->in, NULL, &s->read.io)) != ERROR_SUCCESS;
}
static HANDLE mc_pipe_unhold(mc_pipe_server *s, int i) {
    HANDLE pipe = s->held[i];
    s->held_count--;
    memmove(&s->held[i], &s->held[i + 1], (size_t)(s->held_count - i) * sizeof pipe);
    return pipe;
}
/* Find the oldest held client that has sent something; close those that have gone. */
static int mc_pipe_speaks(mc_pipe_server *s) {
    s->speaker = -1;
    for (int i = s->held_count - 1; i >= 0; i--) {
        DWORD bytes = 0;
        if (!PeekNamedPipe(s->held[i], NULL, 0, NULL, &bytes, NULL)) {
            CloseHandle(mc_pipe_unhold(s, i));
            if (s->speaker > i) s->speaker--;
        } else if (bytes) {
            s->speaker = i;
        }
    }
    return s->speaker >= 0;
}
static int mc_pipe_wait(void *memory, int timeout_ms, int deaf) {
    mc_pipe_server *s = (mc_pipe_server *)memory;
    HANDLE events[3];
    DWORD n = 0, happened, timeout = timeout_ms < 0 ? INFINITE : (DWORD)timeout_ms;
    int looks;
    mc_pipe_listen(s);
    /* Others wait until the held ones have had their time; the caller is never deaf for want of a descriptor, because a
       waiting client has its instance already. */
    deaf = s->held_count == MC_PIPE_HELD;
    events[n++] = s->woken;
    if (s->connect.pending) events[n++] = s->connect.io.hEvent;
    else if (timeout > MC_PIPE_RETRY_MS) timeout = MC_PIPE_RETRY_MS;
    if (s->client != INVALID_HANDLE_VALUE && s->read.pending) events[n++] = s->read.io.hEvent;
    if ((s->knocking && !deaf) || (s->client != INVALID_HANDLE_VALUE && (s->gone || s->in_taken < s->in_have))) timeout = 0;
    if (!s->held_count) {
        WaitForMultipleObjects(n, events, FALSE, timeout);
        return mc_pipe_knocking(s) ? MC_KNOCKS : 0;
    }
    for (looks = 0;; looks++) {
        happened = WaitForMultipleObjects(n, events, FALSE, timeout < MC_PIPE_LOOK_MS ? timeout : MC_PIPE_LOOK_MS);
        if (mc_pipe_speaks(s)) return MC_SPEAKS;
        if (mc_pipe_knocking(s) && !deaf) return MC_KNOCKS;
        if (timeout == 0 || happened != WAIT_TIMEOUT || !s->held_count) return 0;
        if (looks >= MC_PIPE_HELD_MS / MC_PIPE_LOOK_MS) return MC_QUIET;
    }
}
static void mc_pipe_wake(void *memory) { SetEvent(((mc_pipe_server *)memory)->woken); }
/* Closing without disconnecting lets the client still read what has been written. */
static void mc_pipe_close_client(void *memory) {
    mc_pipe_server *s = (mc_pipe_server *)memory;
    DWORD bytes;
    if (s->client == INVALID_HANDLE_VALUE) return;
    mc_pipe_cancel(s->client, &s->read, &bytes);
    mc_pipe_cancel(s->client, &s->write, &bytes);
    CloseHandle(s->client);
    s->client = INVALID_HANDLE_VALUE;
}
/* Return the waiting client's instance, which listens no more. */
static HANDLE mc_pipe_let_in(mc_pipe_server *s) {
    HANDLE pipe = s->listener;
    s->listener = INVALID_HANDLE_VALUE;
    s->knocking = 0;
    return pipe;
}
static int mc_pipe_accept(void *memory) {
    mc_pipe_server *s = (mc_pipe_server *)memory;
    HANDLE pipe;
    if (s->speaker < 0 && !s->knocking) return 0;
    pipe = s->speaker >= 0 ? mc_pipe_unhold(s, s->speaker) : mc_pipe_let_in(s);
    s->speaker = -1;
    mc_pipe_close_client(s);
    s->client = pipe;
    s->in_have = s->in_taken = 0;
    mc_pipe_listen(s); /* at once, or other clients would find the pipe busy */
    mc_pipe_read(s);
    return 1;
}
static int mc_pipe_hold(void *memory) { /* `wait` announces no client while no place is free */
    mc_pipe_server *s = (mc_pipe_server *)memory;
    if (!s->knocking) return 0;
    s->held[s->held_count++] = mc_pipe_let_in(s);
    mc_pipe_listen(s);
    return 1;
}
static int mc_pipe_dismiss(void *memory) {
    mc_pipe_server *s = (mc_pipe_server *)memory;
    int n = s->held_count;
    while (s->held_count) CloseHandle(mc_pipe_unhold(s, 0));
    s->speaker = -1;
    return n;
}
static int mc_pipe_refuse(void *memory) {
    mc_pipe_server *s = (mc_pipe_server *)memory;
    if (!s->knocking) return 0;
    s->knocking = 0;
    DisconnectNamedPipe(s->listener);
    mc_pipe_listen(s);
    return 1;
}
static int mc_pipe_receive(void *memory, uint8_t *buffer, int room) {
    mc_pipe_server *s = (mc_pipe_server *)memory;
    while (s->in_taken == s->in_have) {
        DWORD bytes = 0, error;
        if (s->gone) return 0;
        error = mc_pipe_ended(s->client, &s->read, &bytes);
        if (error == ERROR_IO_INCOMPLETE) return -1;
        if (error != ERROR_SUCCESS) { s->gone = 1; return 0; }
        s->in_taken = 0;
        s->in_have = (int)bytes;          /* 0 bytes were written, which means nothing in a byte stream */
        if (bytes == 0) mc_pipe_read(s);
    }
    if (room > s->in_have - s->in_taken) room = s->in_have - s->in_taken;
    memcpy(buffer, s->in + s->in_taken, (size_t)room);
    s->in_taken += room;
    if (s->in_taken == s->in_have) mc_pipe_read(s);
    return room;
}
static int mc_pipe_send(void *memory, const uint8_t *buffer, int size) {
    mc_pipe_server *s = (mc_pipe_server *)memory;
    DWORD bytes, error;
    if (s->write.pending) {
        error = mc_pipe_ended(s->client, &s->write, &bytes);
        if (error == ERROR_IO_INCOMPLETE) return 0;
        if (error != ERROR_SUCCESS) return -1;
    }
    if (size > (int)sizeof s->out) size = (int)sizeof s->out;
    memcpy(s->out, buffer, (size_t)size);
    error = mc_pipe_started(&s->write, WriteFile(s->client, s->out, (DWORD)size, NULL, &s->write.io));
    return error == ERROR_SUCCESS ? size : -1;
}
static void mc_pipe_close(mc_pipe_server *s) {
    DWORD bytes;
    mc_pipe_close_client(s);
    mc_pipe_dismiss(s);
    if (s->listener != INVALID_HANDLE_VALUE) {
        mc_pipe_cancel(s->listener, &s->connect, &bytes);
        CloseHandle(s->listener);
    }
    mc_pipe_io_close(&s->connect);
    mc_pipe_io_close(&s->read);
    mc_pipe_io_close(&s->write);
    if (s->woken) CloseHandle(s->woken);
    if (s->security.lpSecurityDescriptor) LocalFree(s->security.lpSecurityDescriptor);
}
/* Make the first instance of a pipe with this name; return 0, or the system's error.  `memory` must be closed in any
   case.  The waiting thread starts the operations, because they are canceled when the thread that started them ends.

   A simulator that still holds its end of an earlier server's pipe keeps the name in use, although nobody listens; a
   query that does not connect finds that out.  The server then starts without an instance (`first` stays set), and the
   wait makes it once the name is free.  It is made as the first instance, so that no other process's access rules
   apply. */
static int mc_pipe_open(mc_pipe_server *s, const wchar_t *name, mc_server *server) {
    mc_server calls = {mc_pipe_wait, mc_pipe_wake, mc_pipe_accept, mc_pipe_refuse, mc_pipe_hold, mc_pipe_dismiss,
                       mc_pipe_receive, mc_pipe_send, mc_pipe_close_client, s};
    DWORD error;
    int events;
    memset(s, 0, sizeof *s);
    s->listener = s->client = INVALID_HANDLE_VALUE;
    s->speaker = -1;
    wcsncpy(s->name, name, sizeof s->name / sizeof *s->name - 1);
    s->woken = CreateEventW(NULL, FALSE, FALSE, NULL);
    events = mc_pipe_io_open(&s->connect) & mc_pipe_io_open(&s->read) & mc_pipe_io_open(&s->write);
    if (!s->woken || !events) return (int)GetLastError();
    error = mc_pipe_security(&s->security);
    s->first = FILE_FLAG_FIRST_PIPE_INSTANCE;
    if (error == ERROR_SUCCESS) error = mc_pipe_instance(s);
    if (error == ERROR_ACCESS_DENIED && !WaitNamedPipeW(s->name, MC_PIPE_RETRY_MS)) error = ERROR_SUCCESS;
    *server = calls;
    return (int)error;
}

/* -- the simulator's end ------------------------------------------------------------------------------------------- */

/* Connect; return 0, or the system's error.  While all instances are busy, wait up to `timeout_ms` (< 0: without
   limit). */
static int mc_pipe_connect(mc_pipe_client *c, const wchar_t *name, int timeout_ms) {
    ULONGLONG end = timeout_ms < 0 ? ~0ull : GetTickCount64() + (ULONGLONG)timeout_ms;
    c->pipe = INVALID_HANDLE_VALUE;
    if (!(mc_pipe_io_open(&c->read) & mc_pipe_io_open(&c->write))) return (int)GetLastError();
    for (;;) {
        ULONGLONG now;
        DWORD error;
        c->pipe = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING,
                              FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, NULL);
        if (c->pipe != INVALID_HANDLE_VALUE) return 0;
        error = GetLastError();
        now = GetTickCount64();
        if (error != ERROR_PIPE_BUSY || now >= end) return (int)error;
        WaitNamedPipeW(name, timeout_ms < 0 ? NMPWAIT_WAIT_FOREVER : (DWORD)(end - now)); /* others wait too */
    }
}
/* Wait for an operation; return 0 and the number of bytes, WAIT_TIMEOUT, or the system's error. */
static int mc_pipe_finish(mc_pipe_client *c, mc_pipe_io *io, BOOL done, int timeout_ms, int *bytes) {
    DWORD got = 0, error = mc_pipe_started(io, done);
    if (error == ERROR_SUCCESS) {
        if (WaitForSingleObject(io->io.hEvent, timeout_ms < 0 ? INFINITE : (DWORD)timeout_ms) == WAIT_TIMEOUT) {
            error = mc_pipe_cancel(c->pipe, io, &got);
            if (error == ERROR_OPERATION_ABORTED) error = WAIT_TIMEOUT;
        } else {
            error = mc_pipe_ended(c->pipe, io, &got);
        }
    }
    *bytes = (int)got;
    return (int)error;
}
static int mc_pipe_client_receive(mc_pipe_client *c, int room, int timeout_ms, int *bytes) {
    DWORD size = room < MC_PIPE_BYTES ? (DWORD)room : MC_PIPE_BYTES;
    BOOL done = ReadFile(c->pipe, c->in, size, NULL, &c->read.io);
    return mc_pipe_finish(c, &c->read, done, timeout_ms, bytes);
}
static int mc_pipe_client_send(mc_pipe_client *c, const uint8_t *data, int size, int timeout_ms, int *bytes) {
    BOOL done;
    if (size > MC_PIPE_BYTES) size = MC_PIPE_BYTES;
    memcpy(c->out, data, (size_t)size);
    done = WriteFile(c->pipe, c->out, (DWORD)size, NULL, &c->write.io);
    return mc_pipe_finish(c, &c->write, done, timeout_ms, bytes);
}
static void mc_pipe_client_close(mc_pipe_client *c) {
    if (c->pipe != INVALID_HANDLE_VALUE) CloseHandle(c->pipe);
    mc_pipe_io_close(&c->read);
    mc_pipe_io_close(&c->write);
}
#else /* other systems have no named pipes */
#include <wchar.h>
typedef struct { int first; } mc_pipe_server;
typedef struct { uint8_t in[1]; } mc_pipe_client;
static int mc_pipe_open(mc_pipe_server *s, const wchar_t *name, mc_server *server) { (void)s; (void)name; (void)server; return -1; }
static void mc_pipe_close(mc_pipe_server *s) { (void)s; }
static int mc_pipe_connect(mc_pipe_client *c, const wchar_t *name, int timeout_ms) { (void)c; (void)name; (void)timeout_ms; return -1; }
static int mc_pipe_client_receive(mc_pipe_client *c, int room, int timeout_ms, int *bytes) { (void)c; (void)room; (void)timeout_ms; *bytes = 0; return -1; }
static int mc_pipe_client_send(mc_pipe_client *c, const uint8_t *data, int size, int timeout_ms, int *bytes) { (void)c; (void)data; (void)size; (void)timeout_ms; *bytes = 0; return -1; }
static void mc_pipe_client_close(mc_pipe_client *c) { (void)c; }
#endif
#endif
