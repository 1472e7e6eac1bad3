/* Plays City Car Driving as its document describes it, with plain blocking calls and nothing of motioncue.

   usage: simulator NAME FRAMES [pieces]      `pieces`: every package in writes of a few bytes

   At each frame it tries to open the pipe until it succeeds; then the init package, and the reply to it; then a frame and
   the reply to it, 60 times a second: a car at rest that accelerates forward with 2 m/s^2 for ever.  When the pipe breaks
   it begins again.  Prints a line at each event, and counts at the end; exit status 1 if a reply was not the right one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static HANDLE pipe_handle = INVALID_HANDLE_VALUE;
static int pieces, frames, replies, connections, attempts;

static void say(const char *what, int number) {
    printf("%s %d\n", what, number);
    fflush(stdout);
}

static int write_all(const uint8_t *data, DWORD size) {
    while (size > 0) {
        DWORD part = pieces && size > 7 ? 7 : size, done = 0;
        if (!WriteFile(pipe_handle, data, part, &done, NULL)) return 0;
        data += done;
        size -= done;
    }
    return 1;
}

static int read_all(uint8_t *data, DWORD size) {
    while (size > 0) {
        DWORD done = 0;
        if (!ReadFile(pipe_handle, data, size, &done, NULL)) return 0;
        data += done;
        size -= done;
    }
    return 1;
}

/* 1 if answered, 0 if the pipe broke; a wrong answer ends the program. */
static int exchange(const uint8_t *package, DWORD size, const uint8_t *wanted, DWORD wanted_size) {
    uint8_t reply[16];
    if (!write_all(package, size) || !read_all(reply, wanted_size)) return 0;
    if (memcmp(reply, wanted, wanted_size)) {
        say("wrong reply of type", reply[2]);
        exit(1);
    }
    replies++;
    return 1;
}

static void lost(void) {
    CloseHandle(pipe_handle);
    pipe_handle = INVALID_HANDLE_VALUE;
    say("lost after frame", frames);
}

int main(int argc, char **argv) {
    static const uint8_t init_reply[6] = {6, 0, 0, 0, 0, 1}, frame_reply[4] = {4, 0, 1, 0};
    const double duration = 1.0 / 60.0;
    const float one = 1.0f, acceleration = 2.0f;
    uint8_t init[39] = {39, 0, 1}, frame[107] = {107, 0, 2};
    char path[300];
    int wanted;
    if (argc < 3) return 2;
    snprintf(path, sizeof path, "\\\\.\\pipe\\%s", argv[1]);
    wanted = atoi(argv[2]);
    pieces = argc > 3;
    memcpy(init + 15 + 8, &one, 4);          /* forward (0, 0, 1) */
    memcpy(init + 27 + 4, &one, 4);          /* up (0, 1, 0) */
    memcpy(frame + 3, &duration, 8);
    memcpy(frame + 35 + 12, &one, 4);        /* orientation (0, 0, 0, 1): heads along +Z */
    memcpy(frame + 63 + 8, &acceleration, 4);
    say("simulator", (int)GetCurrentProcessId());
    for (; frames < wanted; Sleep(16)) {
        if (pipe_handle == INVALID_HANDLE_VALUE) {
            attempts++;
            pipe_handle = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
            if (pipe_handle == INVALID_HANDLE_VALUE) continue;
            if (!exchange(init, sizeof init, init_reply, sizeof init_reply)) {
                lost();
                continue;
            }
            say("connected", ++connections);
        }
        if (exchange(frame, sizeof frame, frame_reply, sizeof frame_reply)) frames++;
        else lost();
        if (frames == 30) say("frames", frames);
    }
    printf("frames=%d replies=%d connections=%d attempts=%d\n", frames, replies, connections, attempts);
    return 0;
}
