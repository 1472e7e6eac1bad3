/* A simulator for Windows that writes shared memory: `memory.exe NAME SIZE SECONDS [FILE [STALL [NAME2 SIZE2]]]`.

   With a FILE it writes the states in it, see `play`.  Without one it does as Assetto Corsa:

   Every 3 ms a state in the layout of acpmf_physics: a car at 20 m/s that turns left at 0.4 rad/s, with 8 m/s^2 to the
   left, as 20 * 0.4; the state's number first, and every other number of its own in place.  Besides it, memory of the same
   size that never changes, which is what another page of the game looks like. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static void put(char *page, int offset, float value) { memcpy(page + offset, &value, 4); }

/* Write the states of a file, whose head is int32: parts, bytes a state, microseconds a state, place of the counter in a
   state, its size, how a state is marked (0 not at all, 1 odd counter, 2 copy of the counter, 3 see below), place of the
   copy; then offset and size of each part; then states.  While one is half written, a look at it is torn.  Parts with an
   offset from BESIDE on are of the second mapping, NAME2.

   With `stall` they come again and again for that many seconds, and every stall-th stays half written for as long as
   Windows sleeps; those that are marked come as fast.

   Marked by 3, the page is iRacing's: its SDK's head at 0 (version, status, rate; number of variables at 24, where their
   list begins, number of buffers, bytes of one; from 48 on each buffer's count of ticks and offset, in 16 bytes), then the
   list, and four buffers that are written in turn, each before its count. */
static const struct { const char *name; int type, size, count; } LISTED[] = {
    {"SessionTime", 5, 8, 1}, {"VelocityX_ST", 4, 4, 6}, {"VelocityY_ST", 4, 4, 6}, {"VelocityZ_ST", 4, 4, 6},
    {"LongAccel_ST", 4, 4, 6}, {"LatAccel_ST", 4, 4, 6}, {"VertAccel_ST", 4, 4, 6}, {"YawNorth", 4, 4, 1},
    {"Pitch", 4, 4, 1}, {"Roll", 4, 4, 1}, {"RollRate_ST", 4, 4, 6}, {"PitchRate_ST", 4, 4, 6}, {"YawRate_ST", 4, 4, 6},
    {"Speed", 4, 4, 1}, {"RPM", 4, 4, 1}, {"IsOnTrack", 1, 1, 1}, {"IsReplayPlaying", 1, 1, 1}
};
enum { BESIDE = 1 << 30 };
enum { VARIABLES = sizeof LISTED / sizeof LISTED[0], ENTRIES = 400, BUFFERS = 600000, BUFFER = 16384, FIRST = 512 };

static void list_variables(char *page) {
    int head[12] = {2, 1, 60, 0, 0, 0, VARIABLES + 1, ENTRIES, 4, BUFFER, 0, 0}, i, at = FIRST;
    memcpy(page, head, sizeof head);
    for (i = 0; i < 4; i++) memcpy(page + 52 + 16 * i, &(int){BUFFERS + i * BUFFER}, 4);
    memcpy(page + ENTRIES, (int[]){4, 0, 1}, 12); /* another variable, at the buffer's begin */
    strcpy(page + ENTRIES + 16, "Throttle");
    for (i = 0; i < VARIABLES; at += LISTED[i].size * LISTED[i].count, i++) {
        memcpy(page + ENTRIES + 144 * (i + 1), (int[]){LISTED[i].type, at, LISTED[i].count}, 12);
        strcpy(page + ENTRIES + 144 * (i + 1) + 16, LISTED[i].name);
    }
}
static void write_in_turn(char *page, const char *state, int size, int tick, int stalls) {
    char *buffer = page + BUFFERS + tick % 4 * BUFFER + FIRST;
    memcpy(buffer, state, size / 2);
    if (stalls) Sleep(1);
    memcpy(buffer + size / 2, state + size / 2, size - size / 2);
    MemoryBarrier();
    memcpy(page + 48 + 16 * (tick % 4), &tick, 4);
}


static char *place(char *page, char *beside, int offset) {
    return offset >= BESIDE ? beside + offset - BESIDE : page + offset;
}

static int play(char *page, char *beside, const char *name, int seconds, int stall) {
    int head[7], parts[64], i, half, at, middle, step = 0;
    long begin;
    unsigned count = 0;
    char state[4096];
    LARGE_INTEGER frequency, start, now;
    FILE *file = fopen(name, "rb");
    if (!file || fread(head, 4, 7, file) != 7 || head[0] > 32 || head[1] > 4096) return 1;
    if (fread(parts, 4, 2 * head[0], file) != (size_t)(2 * head[0])) return 1;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&start);
    begin = ftell(file);
    middle = head[1] / 2;
    if (head[5] == 3) list_variables(page);
    for (;;) {
        if (fread(state, 1, head[1], file) != (size_t)head[1]) {
            QueryPerformanceCounter(&now);
            if (!stall || now.QuadPart - start.QuadPart > seconds * frequency.QuadPart) break;
            fseek(file, begin, SEEK_SET);
            continue;
        }
        if (head[5] == 3) write_in_turn(page, state, head[1], step + 1, stall && step % stall == 0);
        for (half = 0; half < 3 && head[5] != 3; half++) { /* the counter alone, all else, the end */
            unsigned number = head[5] == 1 ? 2 * count + (half < 2) : count + 1, copy = half < 2 ? count : count + 1;
            if (head[5]) memcpy(state + head[3], &number, 4);
            if (head[5] == 2) memcpy(state + head[6], &copy, 4);
            if (half == 2 && head[5] == 1) number = 2 * count + 2, memcpy(state + head[3], &number, 4);
            for (i = at = 0; i < head[0]; at += parts[2 * i++ + 1]) {
                int own = head[3] >= at && head[3] < at + parts[2 * i + 1], first = head[3] - at;
                if (half == 1 && stall && step % stall == 0 && at <= middle && middle < at + parts[2 * i + 1]) {
                    memcpy(place(page, beside, parts[2 * i]), state + at, middle - at);
                    Sleep(1);
                }
                if (half == 1) memcpy(place(page, beside, parts[2 * i]), state + at, parts[2 * i + 1]);
                if (half != 1 && head[5] && own) memcpy(page + parts[2 * i] + first, state + head[3], 4);
                if (half == 2 && head[5] == 2) memcpy(page + parts[0] + head[6], state + head[6], 4);
            }
        }
        count++;
        step++;
        if (stall) Sleep(head[5] == 1 || head[5] == 2 ? 1 : (head[2] + 999) / 1000);
        else do {
            QueryPerformanceCounter(&now);
            if ((now.QuadPart - start.QuadPart) * 1000000 < (long long)step * head[2] * frequency.QuadPart) Sleep(1);
        } while ((now.QuadPart - start.QuadPart) * 1000000 < (long long)step * head[2] * frequency.QuadPart);
    }
    fclose(file);
    printf("%d\n", step);
    return 0;
}

int main(int argc, char **argv) {
    int size = argc > 2 ? atoi(argv[2]) : 800, seconds = argc > 3 ? atoi(argv[3]) : 5, step = 0;
    HANDLE mapping, other, second = NULL;
    char *page, *still, *beside = NULL, state[580];
    LARGE_INTEGER frequency, start, now;
    if (argc < 2) return 2;
    mapping = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, size, argv[1]);
    other = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, size, "motioncue-test-other");
    if (argc > 7) second = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, atoi(argv[7]), argv[6]);
    if (!mapping || !other || (argc > 7 && !second)) return 1;
    if (second) beside = (char *)MapViewOfFile(second, FILE_MAP_ALL_ACCESS, 0, 0, 0);
    page = (char *)MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, 0);
    still = (char *)MapViewOfFile(other, FILE_MAP_ALL_ACCESS, 0, 0, 0);
    if (!page || !still || (second && !beside)) return 1;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&start);
    memset(state, 0, sizeof state);
    put(state, 44, 8.0f / 9.80665f); /* acceleration to the left [g] */
    put(state, 300, 0.4f);           /* turning left [rad/s] */
    put(state, 576, 20.0f);          /* forward [m/s] */
    put(state, 28, 72.0f);           /* [km/h] */
    memcpy(still, state, sizeof state);
    printf("writing\n");
    fflush(stdout);
    if (argc > 4) return play(page, beside, argv[4], seconds, argc > 5 ? atoi(argv[5]) : 0);
    do {
        float yaw;
        step += 1;
        yaw = -0.4f * 0.003f * (float)step;
        while (yaw < -3.14159f) yaw += 6.2831853f;
        put(state, 208, yaw);
        memcpy(state, &step, 4);
        memcpy(page, state, sizeof state);
        do {
            QueryPerformanceCounter(&now);
            if ((now.QuadPart - start.QuadPart) * 1000 < step * 3LL * frequency.QuadPart) Sleep(1);
        } while ((now.QuadPart - start.QuadPart) * 1000 < step * 3LL * frequency.QuadPart);
    } while ((now.QuadPart - start.QuadPart) < seconds * frequency.QuadPart);
    printf("%d\n", step);
    return 0;
}
