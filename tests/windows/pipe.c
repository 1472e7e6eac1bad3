/* The pipe's name against a stand-in for the system, which keeps it while a simulator holds its end of an earlier pipe, as
   Windows does and Wine does not.

   Prints the first thing that is wrong; exit status 1. */
#include <stdio.h>
#include <winsock2.h> /* before windows.h */
#include <windows.h>

static DWORD refuse;                    /* with this error an instance is refused */
static int listening, instances, asked; /* somebody listens under the name; made so far; how often that was asked */
static DWORD flags;                     /* of the newest attempt */

static HANDLE fake_create(const wchar_t *name, DWORD mode, DWORD type, DWORD most, DWORD out, DWORD in, DWORD timeout,
                          SECURITY_ATTRIBUTES *security) {
    (void)type, (void)most, (void)out, (void)in, (void)timeout;
    if (wcscmp(name, L"\\\\.\\pipe\\name") || !security || !security->lpSecurityDescriptor) return INVALID_HANDLE_VALUE;
    flags = mode & FILE_FLAG_FIRST_PIPE_INSTANCE;
    if (refuse) {
        SetLastError(refuse);
        return INVALID_HANDLE_VALUE;
    }
    instances++;
    return CreateEventW(NULL, TRUE, FALSE, NULL); /* a handle that can be closed */
}
static BOOL fake_connect(HANDLE pipe, OVERLAPPED *io) {
    (void)pipe, (void)io;
    SetLastError(ERROR_PIPE_CONNECTED);
    return FALSE;
}
static BOOL fake_wait_named(const wchar_t *name, DWORD ms) {
    (void)name;
    asked++;
    SetLastError(ERROR_SEM_TIMEOUT);
    return listening && ms > 0 && ms <= 1000;
}
#define CreateNamedPipeW fake_create
#define ConnectNamedPipe fake_connect
#define WaitNamedPipeW fake_wait_named
#include "motioncue/transports/pipe.h"

#define CHECK(condition) if (!(condition)) return printf("line %d: not %s\n", __LINE__, #condition), 1

int main(void) {
    static mc_pipe_server s;
    mc_server server;
    const wchar_t *name = L"\\\\.\\pipe\\name";
    int i;

    /* Nobody has the name: the first instance is made, later ones are not the first. */
    CHECK(mc_pipe_open(&s, name, &server) == 0 && instances == 1 && asked == 0);
    CHECK(flags == FILE_FLAG_FIRST_PIPE_INSTANCE && s.first == 0);
    CHECK(server.wait(server.memory, 0, 0) == 1 && server.accept(server.memory) == 1);
    CHECK(instances == 2 && flags == 0);
    mc_pipe_close(&s);

    /* Somebody listens under the name: refused. */
    refuse = ERROR_ACCESS_DENIED;
    listening = 1;
    CHECK(mc_pipe_open(&s, name, &server) == ERROR_ACCESS_DENIED && instances == 2 && asked == 1);
    mc_pipe_close(&s);

    /* The name is there and nobody listens: the server waits, asking for the first instance again and again. */
    listening = 0;
    CHECK(mc_pipe_open(&s, name, &server) == 0 && asked == 2 && s.first != 0);
    for (i = 0; i < 3; i++) CHECK(server.wait(server.memory, -1, 0) == 0 && flags == FILE_FLAG_FIRST_PIPE_INSTANCE);
    server.wake(server.memory);
    CHECK(server.wait(server.memory, -1, 0) == 0 && instances == 2);
    refuse = 0; /* it has been closed */
    CHECK(server.wait(server.memory, -1, 0) == 1 && instances == 3 && flags == FILE_FLAG_FIRST_PIPE_INSTANCE);
    CHECK(s.first == 0 && server.accept(server.memory) == 1 && instances == 4 && flags == 0);
    /* Whoever knocks again takes the client's place, whose end is closed. */
    CHECK(server.wait(server.memory, 0, 0) == 1 && server.accept(server.memory) == 1 && instances == 5);
    mc_pipe_close(&s);

    /* Any other error is one. */
    refuse = ERROR_INVALID_NAME;
    CHECK(mc_pipe_open(&s, name, &server) == ERROR_INVALID_NAME && asked == 2);
    mc_pipe_close(&s);
    printf("all as wanted\n");
    return 0;
}
