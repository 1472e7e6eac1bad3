"""The socket calls of the loops; the sockets themselves are opened in Python."""

from libc.stdint cimport uint8_t, uint32_t


cdef extern from "motioncue/transports/sockets.h" nogil:
    ctypedef long long mc_fd
    ctypedef struct mc_pollfd:
        pass
    mc_fd MC_NO_FD
    int mc_poll(mc_pollfd* fds, int n, int timeout_ms)
    void mc_watch(mc_pollfd* p, mc_fd fd)
    bint mc_ready(const mc_pollfd* p)
    mc_fd mc_accept(mc_fd listener)
    void mc_close(mc_fd fd)
    int mc_receive(mc_fd fd, uint8_t* buffer, int room)
    int mc_send(mc_fd fd, const uint8_t* buffer, int size)
    int mc_send_to(mc_fd fd, const uint8_t* buffer, int size, const void* address, int address_size)
    int mc_address_v4(void* out, const uint8_t* ip, int port)
    int mc_address_v6(void* out, const uint8_t* ip, int port, uint32_t scope)
