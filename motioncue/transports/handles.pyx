"""Stream servers on sockets and Windows named pipes, settings of datagram sockets, serial lines."""

from cpython.mem cimport PyMem_Free
from libc.stddef cimport wchar_t
from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import ipaddress
import os
import socket
import sys

from motioncue.core.threads cimport mc_load, mc_load_acquire, mc_store_release


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


# Windows named pipes in byte mode with overlapped I/O; `Listener` decides when to use them.


def system_error(int code):
    """Return the OSError for an error of the Windows API."""
    if sys.platform != "win32":
        return OSError("this system has no Windows named pipes")
    import ctypes

    return OSError(0, ctypes.FormatError(code), None, code)


cdef class PipeServer(Server):
    r"""Serves ``\\.\pipe\NAME`` to local programs of the same user.

    Duplex, byte mode, up to 10 instances, overlapped.  While it is `held`, a program still has its end of an earlier
    server's pipe, which keeps the name in use; the server starts to listen as soon as that end is closed.
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


cdef extern from *:
    """
    #define MC_OPENS_LINES
    #include "motioncue/transports/line.h"
    /* Other threads go on: a device that hangs keeps whoever opens or closes its line for seconds. */
    static void mc_line_closed(mc_line *line, int64_t handle) {
        Py_BEGIN_ALLOW_THREADS
        mc_line_shut(line, handle);
        Py_END_ALLOW_THREADS
    }
    #ifdef _WIN32
    static int64_t mc_line_opened(PyObject *name, int baud, int bits, int parity, int stop, int *actual) {
        wchar_t *wide = PyUnicode_AsWideCharString(name, NULL);
        int64_t handle;
        if (!wide) return 0;
        Py_BEGIN_ALLOW_THREADS
        handle = mc_line_open(wide, baud, bits, parity, stop, actual);
        Py_END_ALLOW_THREADS
        PyMem_Free(wide);
        return handle;
    }
    #else
    static int64_t mc_line_opened(PyObject *name, int baud, int bits, int parity, int stop, int *actual) {
        PyObject *path;
        int64_t handle;
        if (!PyUnicode_FSConverter(name, &path)) return 0;
        Py_BEGIN_ALLOW_THREADS
        handle = mc_line_open(PyBytes_AS_STRING(path), baud, bits, parity, stop, actual);
        Py_END_ALLOW_THREADS
        Py_DECREF(path);
        return handle;
    }
    #endif
    """
    int64_t mc_line_opened(object name, int baud, int bits, int parity, int stop, int* actual) except? 0
    void mc_line_closed(mc_line* line, int64_t handle)


def error_text(int number):
    """Return the text for the number of an error of a socket or a serial line."""
    if number == MC_LINE_BUSY:
        return "it takes no more at the moment"
    if sys.platform == "win32":
        import ctypes

        return ctypes.FormatError(number)
    return os.strerror(number)


cdef class Line:
    """An open serial line; `actual` is the speed that the system says it has set [baud]."""

    def __cinit__(self, str name not None, int baud, str format="8N1"):
        memset(&self.line, 0, sizeof(mc_line))
        self.line.handle = self.line.next = MC_NO_LINE
        self.name, self.baud, self.format = name, baud, format
        self.line.handle = self.open()

    def __dealloc__(self):
        self.close()

    cdef int64_t open(self) except? 0:
        cdef int bits = int(self.format[0]), stop = int(self.format[2]), parity = ord(self.format[1])
        name = rf"\\.\{self.name}" if sys.platform == "win32" else self.name
        cdef int64_t handle = mc_line_opened(name, self.baud, bits, parity, stop, &self.actual)
        if handle < 0:
            raise OSError(-handle, error_text(-handle), self.name)
        return handle

    @property
    def lost(self):
        """Whether the line has been lost, such as unplugged, and has not been taken again."""
        return mc_load_acquire(&self.line.gone) != 0

    def reopen(self):
        """Try to open a lost line again; return whether that has just succeeded.

        It then waits to be taken into use.  Call it from one thread, not from the one that sends.
        """
        if self.ended or not self.lost or mc_load(&self.line.next) != MC_NO_LINE:
            return False
        if not self.shut:               # the ticking thread does not use it any more
            self.shut = True            # before it waits: `close` may be called meanwhile
            mc_line_closed(&self.line, self.line.handle)
        try:
            handle = self.open()
        except OSError:
            return False
        if self.ended:
            mc_line_closed(&self.line, handle)
            return False
        self.shut = False
        mc_store_release(&self.line.next, handle)
        return True

    def send(self, bytes packet not None):
        """Send a packet as a tick does; return 0, or the number of the error."""
        if not 0 < len(packet) <= 512:
            raise ValueError(f"packet: found {len(packet)} bytes, allowed are 1 to 512")
        return -mc_line_send(&self.line, packet, <int>len(packet))

    def fileno(self):
        """Return the descriptor of the open line; on Windows its handle."""
        return self.line.handle

    def take(self):
        """Use the line that `reopen` has opened; return whether it can be sent to."""
        return mc_line_take(&self.line)

    def close(self):
        """Close the line; call it only while no loop runs.  A `reopen` that is under way leaves nothing open."""
        cdef int64_t used = MC_NO_LINE if self.shut or mc_load(&self.line.next) != MC_NO_LINE else self.line.handle
        cdef int64_t waits = self.line.next
        self.ended = self.shut = True
        mc_line_closed(&self.line, used)
        mc_line_closed(&self.line, waits)
        self.line.handle = self.line.next = MC_NO_LINE
        mc_store_release(&self.line.gone, 1)
