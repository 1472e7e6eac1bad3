/* The socket calls that the loops make, the same on POSIX and Windows.  Sockets are opened in Python. */
#ifndef MOTIONCUE_SOCKETS_H
#define MOTIONCUE_SOCKETS_H
#include <stdint.h>
#include <string.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
typedef SOCKET mc_fd;
typedef WSAPOLLFD mc_pollfd;
#define MC_NO_FD INVALID_SOCKET
static inline int mc_poll(mc_pollfd *fds, int n, int timeout_ms) { return WSAPoll(fds, (ULONG)n, timeout_ms); }
static inline void mc_close(mc_fd fd) { closesocket(fd); }
static inline void mc_set_nonblocking(mc_fd fd) { u_long on = 1; ioctlsocket(fd, FIONBIO, &on); }
static inline int mc_would_block(void) { return WSAGetLastError() == WSAEWOULDBLOCK; }
#else
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
typedef int mc_fd;
typedef struct pollfd mc_pollfd;
#define MC_NO_FD (-1)
static inline int mc_poll(mc_pollfd *fds, int n, int timeout_ms) { return poll(fds, (nfds_t)n, timeout_ms); }
static inline void mc_close(mc_fd fd) { close(fd); }
static inline void mc_set_nonblocking(mc_fd fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK); }
static inline int mc_would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
/* Readable, or gone: either way a receive tells which. */
static inline void mc_watch(mc_pollfd *p, mc_fd fd) { p->fd = fd; p->events = POLLIN; p->revents = 0; }
static inline int mc_ready(const mc_pollfd *p) { return p->revents != 0; }
static inline mc_fd mc_accept(mc_fd listener) {
    mc_fd fd = accept(listener, NULL, NULL);
    if (fd != MC_NO_FD) mc_set_nonblocking(fd);
    return fd;
}
/* Bytes received; 0 if the peer has gone; -1 if there is nothing now. */
static inline int mc_receive(mc_fd fd, uint8_t *buffer, int room) {
    int n = (int)recv(fd, (char *)buffer, room, 0);
    return n >= 0 ? n : (mc_would_block() ? -1 : 0);
}
/* Bytes sent; 0 if there is no room now; -1 if the peer has gone. */
static inline int mc_send(mc_fd fd, const uint8_t *buffer, int size) {
    int n = (int)send(fd, (const char *)buffer, size, MSG_NOSIGNAL);
    return n >= 0 ? n : (mc_would_block() ? 0 : -1);
}
/* A datagram; 0, or -1 if the system refused it.  `address` is a packed sockaddr. */
static inline int mc_send_to(mc_fd fd, const uint8_t *buffer, int size, const void *address, int address_size) {
    struct sockaddr_storage to;
    memcpy(&to, address, (size_t)address_size);
    return sendto(fd, (const char *)buffer, size, MSG_NOSIGNAL, (const struct sockaddr *)&to, address_size) == size ? 0 : -1;
}
static inline int mc_address_v4(void *out, const uint8_t *ip, int port) {
    struct sockaddr_in a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((uint16_t)port);
    memcpy(&a.sin_addr, ip, 4);
    memcpy(out, &a, sizeof a);
    return (int)sizeof a;
}
static inline int mc_address_v6(void *out, const uint8_t *ip, int port, uint32_t scope) {
    struct sockaddr_in6 a;
    memset(&a, 0, sizeof a);
    a.sin6_family = AF_INET6;
    a.sin6_port = htons((uint16_t)port);
    a.sin6_scope_id = scope;
    memcpy(&a.sin6_addr, ip, 16);
    memcpy(out, &a, sizeof a);
    return (int)sizeof a;
}
#endif
