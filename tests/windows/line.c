/* A serial line's writes against a stand-in for the system, which takes its time, takes a part, or has lost the device.

   Prints the first thing that is wrong; exit status 1. */
#include <stdio.h>
#include <windows.h>

static char wire[4096];      /* what the line has carried */
static int carried, given;   /* bytes on the wire; bytes of the write that is under way */
static DWORD takes = 4096;   /* most bytes of a write */
static DWORD refuse, broken; /* error of the next write; of the write that is under way */
static int slow;             /* a write does not end */

static BOOL fake_write(HANDLE line, const void *data, DWORD size, DWORD *written, OVERLAPPED *io) {
    (void)line, (void)written, (void)io;
    if (refuse) return SetLastError(refuse), FALSE;
    given = (int)(size < takes ? size : takes);
    memcpy(wire + carried, data, (size_t)given);
    carried += given;
    SetLastError(ERROR_IO_PENDING);
    return FALSE;
}
static BOOL fake_result(HANDLE line, OVERLAPPED *io, DWORD *written, BOOL wait) {
    (void)line, (void)io, (void)wait;
    if (slow || broken) return SetLastError(slow ? ERROR_IO_INCOMPLETE : broken), FALSE;
    *written = (DWORD)given;
    return TRUE;
}
#define WriteFile fake_write
#define GetOverlappedResult fake_result
#define MC_OPENS_LINES
#include "motioncue/transports/line.h"

#define CHECK(condition) if (!(condition)) return printf("line %d: not %s\n", __LINE__, #condition), 1
#define SEND(text) mc_line_send(&l, (const uint8_t *)text, (int)strlen(text))

int main(void) {
    static mc_line l;
    int actual;
    l.handle = 1;
    l.next = MC_NO_LINE;

    /* Each packet goes out; one that meets a write under way is dropped whole. */
    CHECK(SEND("one") == 0 && SEND("two") == 0 && !strcmp(wire, "onetwo"));
    slow = 1;
    CHECK(SEND("three") == -MC_LINE_BUSY && SEND("four") == -MC_LINE_BUSY && !l.gone);
    slow = 0;
    CHECK(SEND("five") == 0 && !strcmp(wire, "onetwofive"));

    /* The rest of a packet goes out before the next one. */
    takes = 2;
    CHECK(SEND("abcdef") == 0);
    CHECK(SEND("x") == -MC_LINE_BUSY && SEND("y") == 0 && !strcmp(wire, "onetwofiveabcdefy"));
    takes = 4096;

    /* Unplugged while a write is under way, and at once: nothing goes out until it is opened again and taken. */
    broken = ERROR_OPERATION_ABORTED;
    CHECK(SEND("lost") == -ERROR_OPERATION_ABORTED && l.gone == ERROR_OPERATION_ABORTED);
    broken = 0;
    CHECK(SEND("lost") == -ERROR_OPERATION_ABORTED && !mc_line_take(&l));
    l.next = 2;
    CHECK(SEND("lost") < 0 && mc_line_take(&l) && l.handle == 2 && l.next == MC_NO_LINE);
    CHECK(SEND("back") == 0 && !strcmp(wire, "onetwofiveabcdefyback"));
    refuse = ERROR_GEN_FAILURE;
    CHECK(SEND("gone") == -ERROR_GEN_FAILURE && l.gone == ERROR_GEN_FAILURE);

    /* What is no line is not opened. */
    CHECK(mc_line_open(L"\\\\.\\COM255", 115200, 8, 'N', 1, &actual) == -ERROR_FILE_NOT_FOUND);
    printf("all as wanted\n");
    return 0;
}
