"""Windows named pipes: the stream server, and the simulator's end."""

from libc.stddef cimport wchar_t
from libc.stdint cimport uint8_t

from motioncue.transports.sockets cimport Server, mc_server


cdef extern from "motioncue/transports/pipe.h" nogil:
    ctypedef struct mc_pipe_server:
        unsigned long first
    ctypedef struct mc_pipe_client:
        uint8_t* received "in"
    int mc_pipe_open(mc_pipe_server* s, const wchar_t* name, mc_server* server)
    void mc_pipe_close(mc_pipe_server* s)
    int mc_pipe_connect(mc_pipe_client* c, const wchar_t* name, int timeout_ms)
    int mc_pipe_client_receive(mc_pipe_client* c, int room, int timeout_ms, int* bytes)
    int mc_pipe_client_send(mc_pipe_client* c, const uint8_t* data, int size, int timeout_ms, int* bytes)
    void mc_pipe_client_close(mc_pipe_client* c)


cdef class PipeServer(Server):
    cdef mc_pipe_server* memory
    cdef readonly bint held


cdef class PipeConnection:
    cdef mc_pipe_client* memory
    cdef int timeout_ms
