/* Socket calls of the loops, alike on POSIX and Windows, and the stream server that uses them.  Python opens the
   sockets. */
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
static inline int mc_no_descriptor(void) { return WSAGetLastError() == WSAEMFILE || WSAGetLastError() == WSAENOBUFS; }
static inline int mc_nobody_there(void) { return WSAGetLastError() == WSAECONNRESET; }
static inline int mc_left_meanwhile(void) { return WSAGetLastError() == WSAECONNRESET; }
static inline int mc_last_error(void) { return WSAGetLastError(); }
static inline void mc_set_error(int error) { WSASetLastError(error); }
#else
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/sockios.h>
#include <sys/ioctl.h>
#endif
typedef int mc_fd;
typedef struct pollfd mc_pollfd;
#define MC_NO_FD (-1)
static inline int mc_poll(mc_pollfd *fds, int n, int timeout_ms) { return poll(fds, (nfds_t)n, timeout_ms); }
static inline void mc_close(mc_fd fd) { close(fd); }
static inline void mc_set_nonblocking(mc_fd fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK); }
static inline int mc_would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
static inline int mc_no_descriptor(void) {
    return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}
static inline int mc_nobody_there(void) { return errno == ECONNREFUSED || errno == EHOSTUNREACH; }
static inline int mc_left_meanwhile(void) { return errno == ECONNABORTED || errno == EPROTO; }
static inline int mc_last_error(void) { return errno; }
static inline void mc_set_error(int error) { errno = error; }
#endif
#include "motioncue/core/clock.h" /* after winsock2.h, which has to precede windows.h */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
/* The interface between a stream server and the receiving loop: one client at a time, on any transport.  Others can be
   held beside it until they send something.  Only `wait` blocks, and only `wake` may be called from another thread. */
#define MC_NOT_ALLOWED (-1)
#define MC_NO_DESCRIPTOR (-2) /* the system has no descriptor or memory for another connection */
#define MC_FAILED (-3)        /* the system refuses for another reason, and would do so at once again */
#define MC_KNOCKS 1           /* a client waits to be accepted, held or turned away */
#define MC_SPEAKS 2           /* a held client has sent something, and waits to be accepted */
#define MC_QUIET 3            /* the held clients have been given their time and have sent nothing */
typedef struct {
    /* Wait until a byte or a client comes, the client goes, `wake` is called, or the timeout (< 0: none).  Return 0,
       MC_KNOCKS, MC_SPEAKS or MC_QUIET, or MC_FAILED after a rest; while `deaf`, waiting clients are ignored. */
    int (*wait)(void *memory, int timeout_ms, int deaf);
    void (*wake)(void *memory);
    /* Make the waiting client the current one, or turn it away, and return 1; 0 if it has left meanwhile,
       MC_NOT_ALLOWED, MC_NO_DESCRIPTOR or MC_FAILED. */
    int (*accept)(void *memory);
    int (*refuse)(void *memory);
    /* Keep the waiting client beside the current one, and return as `accept`. */
    int (*hold)(void *memory);
    /* Turn all held clients away, and return their number. */
    int (*dismiss)(void *memory);
    /* Return the number of bytes received; 0 if the client has gone; -1 if there are none yet. */
    int (*receive)(void *memory, uint8_t *buffer, int room);
    /* Return the number of bytes taken; 0 if there is no room yet; -1 if the client has gone. */
    int (*send)(void *memory, const uint8_t *buffer, int size);
    /* Close the client; bytes already sent still arrive. */
    void (*close_client)(void *memory);
    void *memory;
} mc_server;

/* Wait for data or the end of the connection; a receive tells which. */
static inline void mc_watch(mc_pollfd *p, mc_fd fd) { p->fd = fd; p->events = POLLIN; p->revents = 0; }
static inline int mc_ready(const mc_pollfd *p) { return p->revents != 0; }
/* Wait as `mc_poll`; where the system refuses that, rest, and return a negative number: whoever waits in a loop keeps no
   processor busy. */
#define MC_REST_MS 100
static inline int mc_poll_or_rest(mc_pollfd *fds, int n, int timeout_ms) {
    int some = mc_poll(fds, n, timeout_ms);
    if (some < 0 && !mc_would_block()) {
        const int error = mc_last_error();
        mc_timer plain;
        memset(&plain, 0, sizeof plain);
        mc_sleep_until(&plain, mc_now() + MC_REST_MS * INT64_C(1000000));
        mc_set_error(error);
    }
    return some;
}
static inline mc_fd mc_accept(mc_fd listener) {
    mc_fd fd = accept(listener, NULL, NULL);
    if (fd != MC_NO_FD) mc_set_nonblocking(fd);
    return fd;
}
/* Return the number of bytes received; 0 if the peer has gone; -1 if there are none yet. */
static inline int mc_receive(mc_fd fd, uint8_t *buffer, int room) {
    int n = (int)recv(fd, (char *)buffer, room, 0);
    return n >= 0 ? n : (mc_would_block() ? -1 : 0);
}
/* Return the number of bytes sent; 0 if there is no room yet; -1 if the peer has gone. */
static inline int mc_send(mc_fd fd, const uint8_t *buffer, int size) {
    int n = (int)send(fd, (const char *)buffer, size, MSG_NOSIGNAL);
    return n >= 0 ? n : (mc_would_block() ? 0 : -1);
}
/* Send a datagram to `address`, a packed sockaddr.  Return 0; MC_UNHEARD if it was sent but nobody listened to an
   earlier one; or the negated number of the system's error. */
#define MC_UNHEARD 1
static inline int mc_send_to(mc_fd fd, const uint8_t *buffer, int size, const void *address, int address_size) {
    struct sockaddr_storage to;
    const struct sockaddr *where = (const struct sockaddr *)&to;
    int unheard = 0, sent;
    memcpy(&to, address, (size_t)address_size);
    sent = (int)sendto(fd, (const char *)buffer, size, MSG_NOSIGNAL, where, address_size);
    /* The error concerns an earlier datagram, and this one has not been sent: try again. */
    if (sent < 0 && mc_nobody_there()) {
        unheard = MC_UNHEARD;
        sent = (int)sendto(fd, (const char *)buffer, size, MSG_NOSIGNAL, where, address_size);
    }
    return sent == size ? unheard : -mc_last_error();
}
/* Keep WSAECONNRESET, after a port was unreachable, from failing a datagram socket's calls on Windows.  Return true if
   that was granted or is not needed. */
static inline int mc_ignore_unreachable(mc_fd fd) {
#ifdef _WIN32
    BOOL report = FALSE;
    DWORD got = 0;
    return WSAIoctl(fd, _WSAIOW(IOC_VENDOR, 12) /* SIO_UDP_CONNRESET */, &report, sizeof report, NULL, 0, &got, NULL, NULL) == 0;
#else
    (void)fd;
    return 1;
#endif
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
/* Hosts that are allowed to send, as packed IPv6 addresses (IPv4 addresses mapped); every host if `any`. */
#define MC_HOSTS 32
typedef struct {
    uint8_t hosts[MC_HOSTS][16];
    int n, any;
} mc_allowed;
static inline void mc_host_of(const struct sockaddr_storage *from, uint8_t *host) {
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    memset(host, 0, 16);
    if (from->ss_family == AF_INET) {
        memcpy(host, mapped, 12);
        memcpy(host + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
    } else if (from->ss_family == AF_INET6)
        memcpy(host, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
}
static inline int mc_is_allowed(const mc_allowed *a, const uint8_t *host) {
    for (int i = 0; i < a->n; i++)
        if (memcmp(a->hosts[i], host, 16) == 0) return 1;
    return a->any;
}
/* Receive a datagram, its sender and the sender's host; return its size (`room` if it does not fit), -1 if none waits,
   or MC_FAILED. */
static inline int mc_receive_from(mc_fd fd, uint8_t *buffer, int room, struct sockaddr_storage *from, uint8_t *host) {
    for (int attempt = 0; attempt < 8; attempt++) {
        socklen_t size = sizeof *from;
        int n = (int)recvfrom(fd, (char *)buffer, room, 0, (struct sockaddr *)from, &size);
        if (n >= 0) {
            mc_host_of(from, host);
            return n;
        }
#ifdef _WIN32
        int error = WSAGetLastError();
        if (error == WSAEMSGSIZE) {
            mc_host_of(from, host);
            return room;
        }
        if (error == WSAECONNRESET || error == WSAENETRESET) continue; /* concerns a datagram sent earlier */
#else
        if (errno == EINTR || errno == ECONNREFUSED) continue;
#endif
        return mc_would_block() ? -1 : MC_FAILED;
    }
    return -1;
}
static inline int mc_port_of(const struct sockaddr_storage *from) {
    if (from->ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)from)->sin6_port);
    return ntohs(((const struct sockaddr_in *)from)->sin_port);
}
/* The one port of a host whose datagrams of a kind are taken.  Two simulators on a host are two ports that both come
   again; a program that opens a socket for each datagram comes from a port that was never used before, and is one sender. */
#define MC_PORTS 16                        /* of the last ports, each is known again */
#define MC_FRESH 3                         /* datagrams in a row from ports not among them, the first of which never came again */
#define MC_GIVES_WAY_NS INT64_C(250000000) /* silence after which another port of the same host takes over */
#define MC_REFUSED 0
#define MC_SEATED 1
#define MC_TAKES_OVER 2
typedef struct {
    int64_t heard; /* arrival of the newest datagram that was taken [ns]; 0 before the first */
    int port;      /* 0: any that has not come before */
    int again;     /* whether it has spoken more than once */
    int fresh;     /* datagrams in a row from ports that had not come before */
    int ports[MC_PORTS], next;
} mc_seat;
/* Judge a datagram from a port: whether it is taken, and whether its sender takes over from a silent one. */
static inline int mc_seat_judge(mc_seat *s, int port, int64_t now) {
    int i, known = 0, verdict = MC_SEATED;
    for (i = 0; i < MC_PORTS; i++) known |= s->ports[i] == port;
    if (!known) s->ports[s->next++ % MC_PORTS] = port;
    s->fresh = known ? 0 : s->fresh + 1;
    if (s->heard == 0 || port == s->port) {
        s->again = port == s->port;
        s->port = port;
    } else if (!known && (s->port == 0 || (s->fresh >= MC_FRESH && !s->again))) {
        s->port = 0;
    } else if (now - s->heard >= MC_GIVES_WAY_NS) {
        verdict = MC_TAKES_OVER;
        s->again = 0;
        s->port = port;
    } else
        return MC_REFUSED;
    s->heard = now;
    return verdict;
}
/* The same for the port that has the seat. */
static inline void mc_seat_keep(mc_seat *s, int64_t now) {
    s->heard = now;
    s->again = 1;
    s->fresh = 0;
}
/* Send a reply to the sender of a datagram, at `port`, or at the sender's own port if that is 0. */
static inline int mc_send_back(mc_fd fd, const uint8_t *buffer, int size, struct sockaddr_storage *from, int port) {
    int n = from->ss_family == AF_INET6 ? (int)sizeof(struct sockaddr_in6) : (int)sizeof(struct sockaddr_in);
    if (port && from->ss_family == AF_INET6) ((struct sockaddr_in6 *)from)->sin6_port = htons((uint16_t)port);
    if (port && from->ss_family == AF_INET) ((struct sockaddr_in *)from)->sin_port = htons((uint16_t)port);
    return mc_send_to(fd, buffer, size, from, n);
}
/* Wait until a datagram socket has data or the last of `fds`, the waker, is written to; `deaf` says which are left out.
   Return MC_FAILED, after a rest, if the system refuses that. */
static inline int mc_wait_any(const mc_fd *fds, int n, uint64_t deaf, int timeout_ms, uint64_t *ready) {
    mc_pollfd watched[16];
    int which[16];
    int i, some, all = 0;
    for (i = 0; i < n; i++)
        if (!(deaf >> i & 1)) {
            which[all] = i;
            mc_watch(&watched[all++], fds[i]);
        }
    some = mc_poll_or_rest(watched, all, timeout_ms);
    *ready = 0;
    for (i = 0; i < all && some > 0; i++)
        if (mc_ready(&watched[i])) *ready |= (uint64_t)1 << which[i];
    return some < 0 && !mc_would_block() ? MC_FAILED : some;
}
/* The stream server on a listening socket. */
#define MC_HELD 16    /* most clients held; the next ones queue until these have had their time */
#define MC_HELD_MS 20 /* wait for the held clients to send something */
typedef struct {
    mc_allowed allowed;
    mc_fd listener, client;
    mc_fd woken, waker; /* the two ends of a connection that wakes the wait */
    mc_fd held[MC_HELD]; /* the oldest first */
    int held_count;
    int speaker; /* the place in `held` of the client that has sent something; -1 if there is none */
} mc_socket_server;
static mc_fd mc_socket_unhold(mc_socket_server *s, int i) {
    mc_fd fd = s->held[i];
    s->held_count--;
    memmove(&s->held[i], &s->held[i + 1], (size_t)(s->held_count - i) * sizeof fd);
    return fd;
}
static int mc_socket_wait(void *memory, int timeout_ms, int deaf) {
    mc_socket_server *s = (mc_socket_server *)memory;
    mc_pollfd watched[3 + MC_HELD];
    int i, n = 0, first, some;
    if (s->held_count == MC_HELD) deaf = 1;
    if (s->held_count && (timeout_ms < 0 || timeout_ms > MC_HELD_MS)) timeout_ms = MC_HELD_MS;
    mc_watch(&watched[n++], s->woken);
    if (s->client != MC_NO_FD) mc_watch(&watched[n++], s->client);
    first = n;
    for (i = 0; i < s->held_count; i++) mc_watch(&watched[n++], s->held[i]);
    if (!deaf) mc_watch(&watched[n++], s->listener);
    some = mc_poll_or_rest(watched, n, timeout_ms);
    if (some < 0) {
        s->speaker = -1;
        return mc_would_block() ? 0 : MC_FAILED;
    }
    if (mc_ready(&watched[0])) {
        char used;
        recv(s->woken, &used, 1, 0);
    }
    s->speaker = -1;
    for (i = s->held_count - 1; i >= 0; i--) /* downwards: the oldest that speaks, and places do not move before use */
        if (mc_ready(&watched[first + i])) {
            char seen;
            int got = (int)recv(s->held[i], &seen, 1, MSG_PEEK);
            if (got > 0) s->speaker = i;
            else if (got == 0 || !mc_would_block()) { /* it has gone */
                mc_close(mc_socket_unhold(s, i));
                if (s->speaker > i) s->speaker--;
            }
        }
    if (s->speaker >= 0) return MC_SPEAKS;
    if (some == 0 && s->held_count) return MC_QUIET;
    return !deaf && mc_ready(&watched[n - 1]) ? MC_KNOCKS : 0;
}
static void mc_socket_wake(void *memory) {
    mc_socket_server *s = (mc_socket_server *)memory;
    send(s->waker, ".", 1, MSG_NOSIGNAL);
}
static inline int mc_socket_allows(const mc_socket_server *s, mc_fd fd) {
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    uint8_t host[16];
    if (s->allowed.any || getpeername(fd, (struct sockaddr *)&from, &size) != 0) return 1;
    mc_host_of(&from, host);
    return mc_is_allowed(&s->allowed, host);
}
/* Return what `accept` returns where no client could be taken: those that have left meanwhile are gone from the queue. */
static inline int mc_not_taken(void) {
    if (mc_no_descriptor()) return MC_NO_DESCRIPTOR;
    return mc_would_block() || mc_left_meanwhile() ? 0 : MC_FAILED;
}
/* Accept the waiting client if its host is allowed, and return 1, or what `accept` returns. */
static inline int mc_socket_take(mc_socket_server *s, mc_fd *fd) {
    *fd = mc_accept(s->listener);
    if (*fd == MC_NO_FD) return mc_not_taken();
    if (mc_socket_allows(s, *fd)) return 1;
    mc_close(*fd);
    return MC_NOT_ALLOWED;
}
static int mc_socket_accept(void *memory) {
    mc_socket_server *s = (mc_socket_server *)memory;
    mc_fd fd;
    int done = 1;
    if (s->speaker >= 0) {
        fd = mc_socket_unhold(s, s->speaker);
        s->speaker = -1;
    } else {
        done = mc_socket_take(s, &fd);
    }
    if (done != 1) return done;
    if (s->client != MC_NO_FD) mc_close(s->client);
    s->client = fd;
    return 1;
}
static int mc_socket_hold(void *memory) { /* `wait` announces no client while no place is free */
    mc_socket_server *s = (mc_socket_server *)memory;
    mc_fd fd;
    int done = mc_socket_take(s, &fd);
    if (done == 1) s->held[s->held_count++] = fd;
    return done;
}
static int mc_socket_dismiss(void *memory) {
    mc_socket_server *s = (mc_socket_server *)memory;
    int n = s->held_count;
    while (s->held_count) mc_close(mc_socket_unhold(s, 0));
    s->speaker = -1;
    return n;
}
static int mc_socket_refuse(void *memory) {
    mc_fd fd = mc_accept(((mc_socket_server *)memory)->listener);
    if (fd == MC_NO_FD) return mc_not_taken();
    mc_close(fd);
    return 1;
}
static int mc_socket_receive(void *memory, uint8_t *buffer, int room) {
    return mc_receive(((mc_socket_server *)memory)->client, buffer, room);
}
static int mc_socket_send(void *memory, const uint8_t *buffer, int size) {
    return mc_send(((mc_socket_server *)memory)->client, buffer, size);
}
static void mc_socket_close_client(void *memory) {
    mc_socket_server *s = (mc_socket_server *)memory;
    mc_close(s->client);
    s->client = MC_NO_FD;
}
static inline mc_server mc_serve_socket(mc_socket_server *s, mc_fd listener, mc_fd woken, mc_fd waker) {
    mc_server server = {mc_socket_wait, mc_socket_wake, mc_socket_accept, mc_socket_refuse, mc_socket_hold,
                        mc_socket_dismiss, mc_socket_receive, mc_socket_send, mc_socket_close_client, s};
    s->listener = listener;
    s->client = MC_NO_FD;
    s->woken = woken;
    s->waker = waker;
    s->held_count = 0;
    s->speaker = -1;
    return server;
}

/* Return the time at which the system received the last datagram, before it woke any thread for it [ns, monotonic
   clock]; 0 if the system does not tell, and at the first call, which enables the stamps. */
static inline int64_t mc_arrival(mc_fd fd) {
#if defined __linux__ && defined SIOCGSTAMPNS
    struct timespec stamp, t;
    int64_t offset = 0, closest = INT64_MAX;
    if (ioctl(fd, SIOCGSTAMPNS, &stamp) != 0) return 0;
    for (int i = 0; i < 5; i++) { /* offset of the stamp's clock; the best of several readings of both clocks */
        const int64_t before = mc_now();
        clock_gettime(CLOCK_REALTIME, &t);
        const int64_t took = mc_now() - before;
        if (took < closest) {
            closest = took;
            offset = t.tv_sec * 1000000000LL + t.tv_nsec - (before + took / 2);
        }
    }
    return stamp.tv_sec * 1000000000LL + stamp.tv_nsec - offset;
#else
    (void)fd;
    return 0;
#endif
}
#endif
