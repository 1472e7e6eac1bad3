"""A stream server: the functions that the receiving loop calls, and the object that owns them."""

from libc.stdint cimport uint8_t


cdef extern from "motioncue/transports/server.h" nogil:
    int MC_NOT_ALLOWED
    int MC_NO_DESCRIPTOR
    ctypedef struct mc_server:
        bint (*wait)(void* memory, int timeout_ms, bint deaf) noexcept nogil  # < 0: no limit; true if a client waits
        void (*wake)(void* memory) noexcept nogil                                   # from any thread
        int (*accept)(void* memory) noexcept nogil
        int (*refuse)(void* memory) noexcept nogil
        int (*receive)(void* memory, uint8_t* buffer, int room) noexcept nogil
        int (*send)(void* memory, const uint8_t* buffer, int size) noexcept nogil
        void (*close_client)(void* memory) noexcept nogil
        void* memory                                                                # owned by the object


cdef class Server:
    cdef mc_server calls
