"""The socket calls of the loops, and the stream server made of them; the sockets themselves are opened in Python."""

from libc.stdint cimport uint8_t, uint32_t

from motioncue.transports.server cimport Server, mc_server


cdef extern from "motioncue/transports/sockets.h" nogil:
    ctypedef long long mc_fd
    ctypedef struct mc_socket_server:
        mc_fd listener
        mc_fd client
        mc_fd woken
        mc_fd waker
    mc_fd MC_NO_FD
    int mc_send_to(mc_fd fd, const uint8_t* buffer, int size, const void* address, int address_size)
    bint mc_ignore_unreachable(mc_fd fd)
    int mc_address_v4(void* out, const uint8_t* ip, int port)
    int mc_address_v6(void* out, const uint8_t* ip, int port, uint32_t scope)
    mc_server mc_serve_socket(mc_socket_server* memory, mc_fd listener, mc_fd woken, mc_fd waker)


cdef class SocketServer(Server):
    cdef mc_socket_server memory
    cdef readonly object listener
    cdef object _ends       # of the connection that wakes
