"""Stream servers on a listening socket and on a Windows named pipe, and settings of datagram sockets."""

from cpython.mem cimport PyMem_Free
from libc.stddef cimport wchar_t
from libc.stdint cimport uint32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import ipaddress
import socket
import sys


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


cdef extern from "Python.h":
    wchar_t* PyUnicode_AsWideCharString(object text, Py_ssize_t* size) except NULL

cdef enum:
    ACCESS_DENIED = 5       # the first instance is refused
    WAIT_TIMEOUT = 258

# Errors of a read whose other end is closed: ERROR_BROKEN_PIPE, ERROR_NO_DATA, ERROR_PIPE_NOT_CONNECTED.
GONE = (109, 232, 233)


cdef class Server:
    """A stream server; one loop, without the GIL, calls the functions in `calls`."""

    def wake(self):
        """Make the loop's wait return, from any thread."""
        if self.calls.wake != NULL:
            self.calls.wake(self.calls.memory)

    def close(self):
        """Stop listening and release everything; call it only while no loop runs."""
        raise NotImplementedError


def ignore_unreachable(sock):
    """Keep unreachable ports from failing a datagram socket's later calls; return whether granted."""
    return mc_ignore_unreachable(sock.fileno())


cdef mc_allowed allowed_hosts(object hosts) except *:
    """Return the allowed hosts: packed addresses of 16 bytes, or None for every host."""
    cdef mc_allowed allowed
    memset(&allowed, 0, sizeof(mc_allowed))
    allowed.any = hosts is None
    for host in hosts or ():
        if allowed.n == 32 or len(host) != 16:
            raise ValueError("hosts: allowed are 32 packed addresses of 16 bytes")
        memcpy(allowed.hosts[allowed.n], <const uint8_t*><bytes>host, 16)
        allowed.n += 1
    return allowed


cdef int packed_address(char* out, object address) except -1:
    """Write a numeric address (IP, port, scope) as a packed sockaddr; return its size."""
    host = ipaddress.ip_address(address[0].partition("%")[0])
    if host.version == 4:
        return mc_address_v4(out, <const uint8_t*><bytes>host.packed, address[1])
    return mc_address_v6(out, <const uint8_t*><bytes>host.packed, address[1], <uint32_t>address[2])


cdef class SocketServer(Server):
    """A stream server on a listening socket."""

    def __init__(self, listener, hosts=None):
        woken, waker = socket.socketpair()
        self.listener = listener
        self._ends = (woken, waker)
        self.calls = mc_serve_socket(&self.memory, listener.fileno(), woken.fileno(), waker.fileno())
        self.memory.allowed = allowed_hosts(hosts)

    def close(self):
        """Stop listening and release everything; call it only while no loop runs."""
        for sock in (self.listener, *self._ends):
            sock.close()


# Windows named pipes in byte mode with overlapped I/O; `transports.stream` decides when to use them.


def system_error(int code):
    """Return the OSError for an error of the Windows API."""
    if sys.platform != "win32":
        return OSError("this system has no Windows named pipes")
    import ctypes

    return OSError(0, ctypes.FormatError(code), None, code)


cdef class PipeServer(Server):
    r"""Serves ``\\.\pipe\NAME`` to local programs of the same user.

    Duplex, byte mode, up to 10 instances, overlapped.

    Attributes
    ----------
    held : bool
        Whether a program still holds its end of an earlier server's pipe, which keeps the name in use; the server
        starts to listen as soon as that end is closed.
    """

    cdef mc_pipe_server* memory
    cdef readonly bint held

    def __cinit__(self, str name not None):
        self.memory = <mc_pipe_server*>calloc(1, sizeof(mc_pipe_server))
        if self.memory == NULL:
            raise MemoryError
        cdef wchar_t* path = PyUnicode_AsWideCharString("\\\\.\\pipe\\" + name, NULL)
        cdef int error = mc_pipe_open(self.memory, path, &self.calls)
        PyMem_Free(path)
        if error:
            self.close()
            if error == ACCESS_DENIED:
                raise OSError(0, "the name is in use", None, error)
            raise system_error(error)
        self.held = self.memory.first != 0

    def __dealloc__(self):
        self.close()

    def close(self):
        """Stop listening and release everything; call it only while no loop runs."""
        self.calls.wake = NULL
        if self.memory != NULL:
            mc_pipe_close(self.memory)
            free(self.memory)
            self.memory = NULL


cdef class PipeConnection:
    r"""The simulator's end of ``\\.\pipe\NAME``, with those methods of a socket that a simulator needs.

    One thread may send while another one receives.
    """

    cdef mc_pipe_client* memory
    cdef int timeout_ms

    def __cinit__(self, str name not None, timeout_s=1.0):
        self.memory = <mc_pipe_client*>calloc(1, sizeof(mc_pipe_client))
        if self.memory == NULL:
            raise MemoryError
        self.settimeout(timeout_s)
        cdef wchar_t* path = PyUnicode_AsWideCharString("\\\\.\\pipe\\" + name, NULL)
        cdef int error
        with nogil:
            error = mc_pipe_connect(self.memory, path, self.timeout_ms)
        PyMem_Free(path)
        if error:
            self.close()
            raise system_error(error)

    def __dealloc__(self):
        self.close()

    def settimeout(self, timeout_s):
        """Set the longest duration of each call [s]; None: no limit."""
        self.timeout_ms = -1 if timeout_s is None else int(timeout_s * 1000)

    def sendall(self, data):
        """Send all of `data`; raise OSError if the server has gone, TimeoutError if it does not read."""
        cdef const unsigned char[::1] view = data
        cdef Py_ssize_t start = 0
        cdef int bytes = 0, error
        while start < view.shape[0]:
            self._check_open()
            with nogil:
                error = mc_pipe_client_send(
                    self.memory, &view[start], <int>min(view.shape[0] - start, 4096), self.timeout_ms, &bytes
                )
            if error == WAIT_TIMEOUT:
                raise TimeoutError("the pipe's server does not read")
            if error:
                raise system_error(error)
            start += bytes

    def recv(self, int size):
        """Return 1 to `size` bytes; none if the server has gone; raise TimeoutError if nothing comes."""
        cdef int bytes = 0, error = 0
        while not error and not bytes:          # a write of 0 bytes is not the end of the stream
            self._check_open()
            with nogil:
                error = mc_pipe_client_receive(self.memory, size, self.timeout_ms, &bytes)
        if error in GONE:
            return b""
        if error == WAIT_TIMEOUT:
            raise TimeoutError("nothing came from the pipe's server")
        if error:
            raise system_error(error)
        return self.memory.received[:bytes]

    def close(self):
        """Close this end."""
        if self.memory != NULL:
            mc_pipe_client_close(self.memory)
            free(self.memory)
            self.memory = NULL

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _check_open(self):
        if self.memory == NULL:
            raise OSError("the pipe has been closed")
