"""What the loops read and write, and the objects that own it: stream servers, sockets, serial lines."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "motioncue/transports/sockets.h" nogil:
    int MC_NOT_ALLOWED
    int MC_NO_DESCRIPTOR
    int MC_FAILED
    int MC_REST_MS
    int MC_KNOCKS
    int MC_SPEAKS
    int MC_QUIET
    ctypedef struct mc_server:
        int (*wait)(void* memory, int timeout_ms, bint deaf) noexcept nogil         # < 0: no limit
        void (*wake)(void* memory) noexcept nogil                                   # from any thread
        int (*accept)(void* memory) noexcept nogil
        int (*refuse)(void* memory) noexcept nogil
        int (*hold)(void* memory) noexcept nogil                                    # NULL: cannot
        int (*dismiss)(void* memory) noexcept nogil                                 # NULL: cannot
        int (*receive)(void* memory, uint8_t* buffer, int room) noexcept nogil
        int (*send)(void* memory, const uint8_t* buffer, int size) noexcept nogil
        void (*close_client)(void* memory) noexcept nogil
        void* memory                                                                # owned by the object
    ctypedef long long mc_fd
    cdef struct sockaddr_storage:
        pass
    ctypedef struct mc_allowed:
        uint8_t hosts[32][16]
        int n
        int any
    ctypedef struct mc_socket_server:
        mc_allowed allowed
        mc_fd listener
        mc_fd client
        mc_fd woken
        mc_fd waker
    mc_fd MC_NO_FD
    int MC_UNHEARD
    int mc_send_to(mc_fd fd, const uint8_t* buffer, int size, const void* address, int address_size)
    enum:
        MC_REFUSED
        MC_SEATED
        MC_TAKES_OVER
    ctypedef struct mc_seat:
        int64_t heard
        int port
    int mc_port_of(const sockaddr_storage* sender)
    int mc_seat_judge(mc_seat* s, int port, int64_t now)
    void mc_seat_keep(mc_seat* s, int64_t now)
    bint mc_is_allowed(const mc_allowed* allowed, const uint8_t* host)
    int mc_receive_from(mc_fd fd, uint8_t* buffer, int room, sockaddr_storage* sender, uint8_t* host)
    int mc_send_back(mc_fd fd, const uint8_t* buffer, int size, sockaddr_storage* sender, int port)
    int mc_wait_any(const mc_fd* fds, int n, uint64_t deaf, int timeout_ms, uint64_t* ready)
    int mc_last_error()
    bint mc_ignore_unreachable(mc_fd fd)
    int mc_receive(mc_fd fd, uint8_t* buffer, int room)
    int64_t mc_arrival(mc_fd fd)
    int mc_address_v4(void* out, const uint8_t* ip, int port)
    int mc_address_v6(void* out, const uint8_t* ip, int port, uint32_t scope)
    mc_server mc_serve_socket(mc_socket_server* memory, mc_fd listener, mc_fd woken, mc_fd waker)


cdef enum:
    ADDRESS_BYTES = 64


cdef mc_allowed allowed_hosts(object hosts) except *
cdef int packed_address(char* out, object address) except -1


cdef class Server:
    cdef mc_server calls


cdef class SocketServer(Server):
    cdef mc_socket_server memory
    cdef readonly object listener
    cdef object _ends       # both ends of the connection that wakes the wait


cdef extern from "motioncue/transports/line.h" nogil:
    int64_t MC_NO_LINE
    int MC_LINE_BUSY
    ctypedef struct mc_line:
        int64_t handle
        int64_t gone
        int64_t next
    int mc_line_send(mc_line* line, const uint8_t* packet, int size)
    int mc_line_read(mc_line* line, uint8_t* data, int room)
    bint mc_line_take(mc_line* line)
    void mc_line_drain(mc_line* line)


cdef class Line:
    cdef mc_line line
    cdef readonly str name
    cdef readonly int baud
    cdef readonly str format
    cdef readonly int actual
    cdef bint shut              # whether the handle in use is closed already
    cdef bint ended             # whether the line is to stay closed

    cdef int64_t open(self) except? 0
