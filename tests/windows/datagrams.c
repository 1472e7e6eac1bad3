/* Sending datagrams against a stand-in for Winsock that reports unreachable ports, as Windows does and Wine does not.

   Prints the first thing that is wrong; exit status 1. */
#include <stdio.h>
#include <winsock2.h>
#include <ws2tcpip.h>

static int sent, failures, error;       /* sendto fails `failures` times with `error` */
static DWORD asked;
static BOOL wanted = TRUE;

static int fake_sendto(SOCKET fd, const char *data, int size, int flags, const struct sockaddr *to, int to_size) {
    (void)fd, (void)data, (void)flags;
    if (to->sa_family != AF_INET || to_size != sizeof(struct sockaddr_in)) return -1;
    if (failures > 0) {
        failures--;
        return SOCKET_ERROR;
    }
    sent++;
    return size;
}
static int fake_error(void) { return error; }
static int fake_ioctl(SOCKET fd, DWORD code, LPVOID in, DWORD in_size, LPVOID out, DWORD out_size, LPDWORD got, void *a, void *b) {
    (void)fd, (void)out, (void)out_size, (void)a, (void)b;
    asked = code;
    if (in_size == sizeof wanted) wanted = *(BOOL *)in;
    *got = 0;
    return 0;
}
#define sendto fake_sendto
#define WSAGetLastError fake_error
#define WSAIoctl fake_ioctl
#include "motioncue/transports/sockets.h"

#define CHECK(condition) if (!(condition)) return printf("line %d: not %s\n", __LINE__, #condition), 1

int main(void) {
    const uint8_t loopback[4] = {127, 0, 0, 1}, packet[3] = {1, 2, 3};
    char address[64];
    int i, size = mc_address_v4(address, loopback, 4445);

    /* Sockets are told not to report unreachable ports: SIO_UDP_CONNRESET, false. */
    CHECK(mc_ignore_unreachable(1) && asked == 0x9800000C && wanted == FALSE);

    /* Where the report comes all the same, it is about an earlier datagram: this one goes out, at once, every time. */
    error = WSAECONNRESET;
    for (i = 1; i <= 1000; i++) {
        failures = 1;
        CHECK(mc_send_to(1, packet, 3, address, size) == MC_UNHEARD && sent == i && failures == 0);
    }

    /* A report without end is an error like any other: counted by the caller, never waited for. */
    failures = 100;
    CHECK(mc_send_to(1, packet, 3, address, size) == -WSAECONNRESET && failures == 98);
    error = WSAENOBUFS;
    failures = 1;
    CHECK(mc_send_to(1, packet, 3, address, size) == -WSAENOBUFS && sent == 1000 && failures == 0);
    CHECK(mc_send_to(1, packet, 3, address, size) == 0 && sent == 1001);
    printf("all as wanted\n");
    return 0;
}
