"""Serial lines that are written without waiting: the object that opens, reopens and closes one."""

from libc.stddef cimport wchar_t
from libc.stdint cimport int64_t
from libc.string cimport memset

import os
import sys

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import parse_endpoint
from motioncue.transports.stream import reason

from motioncue.core.threads cimport mc_load, mc_load_acquire, mc_store_release

BAUD = 115_200
"""Speed of a line if neither the endpoint nor the packet says it [baud]."""

CLOSE = 0.03  # share by which a line's speed may differ: receivers sample the last bit of ten within half of it


cdef extern from *:
    """
    #define MC_OPENS_LINES
    #include "motioncue/transports/line.h"
    #ifdef _WIN32
    static int64_t mc_line_opened(PyObject *name, int baud, int bits, int parity, int stop, int *actual) {
        wchar_t *wide = PyUnicode_AsWideCharString(name, NULL);
        int64_t handle;
        if (!wide) return 0;
        handle = mc_line_open(wide, baud, bits, parity, stop, actual);
        PyMem_Free(wide);
        return handle;
    }
    #else
    static int64_t mc_line_opened(PyObject *name, int baud, int bits, int parity, int stop, int *actual) {
        PyObject *path;
        int64_t handle;
        if (!PyUnicode_FSConverter(name, &path)) return 0;
        handle = mc_line_open(PyBytes_AS_STRING(path), baud, bits, parity, stop, actual);
        Py_DECREF(path);
        return handle;
    }
    #endif
    """
    int64_t mc_line_opened(object name, int baud, int bits, int parity, int stop, int* actual) except? 0
    void mc_line_shut(mc_line* line, int64_t handle)

def error_text(int number):
    """Return the text for the number of an error of a socket or a serial line."""
    if number == MC_LINE_BUSY:
        return "it takes no more at the moment"
    if sys.platform == "win32":
        import ctypes

        return ctypes.FormatError(number)
    return os.strerror(number)


cdef class Line:
    """An open serial line.

    Attributes
    ----------
    actual : int
        The speed that the system says it has set [baud].
    """

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
        if not self.lost or mc_load(&self.line.next) != MC_NO_LINE:
            return False
        if not self.shut:               # the ticking thread does not use it any more
            mc_line_shut(&self.line, self.line.handle)
            self.shut = True
        try:
            handle = self.open()
        except OSError:
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
        """Close the line; call it only while no loop runs."""
        if not self.shut and mc_load(&self.line.next) == MC_NO_LINE:
            mc_line_shut(&self.line, self.line.handle)
        mc_line_shut(&self.line, self.line.next)
        self.line.handle = self.line.next = MC_NO_LINE
        self.shut = True
        mc_store_release(&self.line.gone, 1)


def open_line(url, baud=BAUD):
    """Return an open serial line: raw, without flow control, written without waiting."""
    endpoint = parse_endpoint(url, ("serial",))
    baud = endpoint.baud or baud
    try:
        line = Line(endpoint.path, baud, endpoint.format)
    except OSError as error:
        raise EndpointError(f"{endpoint}: cannot send there: {reason(error)}") from error
    if abs(line.actual - baud) > CLOSE * baud:
        line.close()
        raise EndpointError(f"{endpoint}: found {line.actual} baud in place of {baud}, which this line does not have")
    return line
