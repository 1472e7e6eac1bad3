/* A pipe's server with clients that are silent, speak and leave: held beside the first one, turned away after their time.

   Prints the first thing that is wrong, exit status 1, or "all as wanted". */
#include <stdio.h>
#include "motioncue/transports/pipe.h"

#define NAME L"\\\\.\\pipe\\motioncue-test-held"

static mc_pipe_server served;
static mc_server server;

static HANDLE come(void) {
    HANDLE pipe = INVALID_HANDLE_VALUE;
    for (int i = 0; i < 500 && pipe == INVALID_HANDLE_VALUE; i++) {
        pipe = CreateFileW(NAME, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
        if (pipe == INVALID_HANDLE_VALUE) Sleep(2);
    }
    return pipe;
}
static int happens(void) {
    int what = 0;
    for (int i = 0; i < 500 && !what; i++) what = server.wait(server.memory, 20, 0);
    return what;
}
static int ended(HANDLE pipe) {
    char byte;
    DWORD bytes;
    return !ReadFile(pipe, &byte, 1, &bytes, NULL);
}
#define MUST(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); return 1; } } while (0)

int main(void) {
    HANDLE first, crowd[MC_PIPE_HELD], late;
    uint8_t got[10];
    DWORD bytes;
    int i;
    MUST(mc_pipe_open(&served, NAME, &server) == 0);
    server.wait(server.memory, 1, 0);
    first = come();
    MUST(happens() == MC_KNOCKS);
    MUST(server.accept(server.memory) == 1);
    for (i = 0; i < MC_PIPE_HELD; i++) {
        crowd[i] = come();
        MUST(happens() == MC_KNOCKS);
        MUST(server.hold(server.memory) == 1);
    }
    late = come();
    MUST(late != INVALID_HANDLE_VALUE);
    MUST(happens() == MC_QUIET); /* all places are taken: the late one waits until the others have had their time */
    CloseHandle(crowd[1]);
    MUST(WriteFile(crowd[3], "hello", 5, &bytes, NULL));
    MUST(happens() == MC_SPEAKS);
    MUST(server.accept(server.memory) == 1);
    MUST(ended(first));
    for (i = 0; i < 500 && server.receive(server.memory, got, 10) != 5; i++) server.wait(server.memory, 5, 0);
    MUST(i < 500 && memcmp(got, "hello", 5) == 0);
    MUST(server.dismiss(server.memory) == MC_PIPE_HELD - 2); /* but for the one that left and the one that speaks */
    for (i = 0; i < MC_PIPE_HELD; i++) MUST(i == 1 || i == 3 || ended(crowd[i]));
    MUST(happens() == MC_KNOCKS);
    MUST(server.refuse(server.memory) == 1);
    MUST(ended(late));
    mc_pipe_close(&served);
    puts("all as wanted");
    return 0;
}
