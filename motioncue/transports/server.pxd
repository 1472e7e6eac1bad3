"""A stream server: the functions that the receiving loop calls, and the object that owns them."""

from libc.stdint cimport uint8_t


cdef extern from "motioncue/transports/server.h" nogil:
    int MC_NOT_ALLOWED
    int MC_NO_DESCRIPTOR
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


cdef class Server:
    cdef mc_server calls
