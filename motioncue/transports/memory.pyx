"""A mapping that a simulator writes, opened for reading only."""

from libc.stddef cimport wchar_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

import os
import sys


cdef extern from *:
    """
    #ifdef _WIN32
    static int mc_memory_opened(mc_memory *m, PyObject *name) {
        wchar_t *wide = PyUnicode_AsWideCharString(name, NULL);
        int error;
        if (!wide) return -1;
        error = mc_memory_open(m, wide);
        PyMem_Free(wide);
        return error;
    }
    #else
    static int mc_memory_opened(mc_memory *m, PyObject *path) { return 0; }
    #endif
    """
    int mc_memory_opened(mc_memory* m, object name) except -1


cdef class Memory:
    """A mapping, and the windows of it that make a packet."""

    def __cinit__(self, str where not None, gather):
        cdef mc_memory* m = &self.memory
        memset(m, 0, sizeof(mc_memory))
        m.handle = -1
        if not 0 < len(gather.windows) <= MC_WINDOWS:
            raise ValueError(f"windows: found {len(gather.windows)}, allowed are 1 to {MC_WINDOWS}")
        for window in gather.windows:
            m.windows[m.n] = mc_window(window.offset, window.size, window.number, window.number_size, window.stride)
            m.packet += window.size
            m.n += 1
        if m.packet > MC_GATHERED:
            raise ValueError(f"windows: found {m.packet} bytes, allowed are {MC_GATHERED}")
        m.counter, m.counter_size, m.end, m.odd = gather.counter, gather.counter_size, gather.end, gather.odd
        self.where = where
        self._open()

    def _open(self):
        cdef mc_memory* m = &self.memory
        if sys.platform == "win32":
            if mc_memory_opened(m, self.where):
                raise OSError(2, "there is no such mapping", self.where)
            return
        m.handle = os.open(self.where, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        found = os.fstat(m.handle)
        m.size, self._key = found.st_size, (found.st_dev, found.st_ino)

    def __dealloc__(self):
        mc_memory_close(&self.memory)

    def present(self):
        """Return whether the simulator still has the mapping; on Windows, where ours would keep it, it is opened again."""
        if sys.platform == "win32":
            mc_memory_close(&self.memory)
        try:
            if sys.platform == "win32":
                self._open()
                return True
            found = os.stat(self.where)
        except OSError:
            return False
        return self._key == (found.st_dev, found.st_ino)

    def count(self):
        """Return the counter, as an unsigned number; None if it cannot be read."""
        cdef uint64_t out
        return out if mc_memory_number(&self.memory, self.memory.counter, self.memory.counter_size, &out) else None

    def take(self):
        """Return the state as one packet; None if it was being written or cannot be read."""
        cdef uint8_t packet[MC_GATHERED]
        if mc_memory_take(&self.memory, packet) != MC_WHOLE:
            return None
        return <bytes>packet[:self.memory.packet]
