/* A simulator for Windows that writes shared memory as Assetto Corsa does: `memory.exe NAME SIZE SECONDS`.

   Every 3 ms a state in the layout of acpmf_physics: a car at 20 m/s that turns left at 0.4 rad/s, with 8 m/s^2 to the
   left, as 20 * 0.4; the state's number first, and every other number of its own in place.  Besides it, memory of the same
   size that never changes, which is what another page of the game looks like. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static void put(char *page, int offset, float value) { memcpy(page + offset, &value, 4); }

int main(int argc, char **argv) {
    int size = argc > 2 ? atoi(argv[2]) : 800, seconds = argc > 3 ? atoi(argv[3]) : 5, step = 0;
    HANDLE mapping, other;
    char *page, *still, state[580];
    LARGE_INTEGER frequency, start, now;
    if (argc < 2) return 2;
    mapping = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, size, argv[1]);
    other = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, size, "motioncue-test-other");
    if (!mapping || !other) return 1;
    page = (char *)MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, 0);
    still = (char *)MapViewOfFile(other, FILE_MAP_ALL_ACCESS, 0, 0, 0);
    if (!page || !still) return 1;
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
