"""A mapping that a simulator writes, opened for reading only."""

from libc.stddef cimport wchar_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

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


BETWEEN = {"": MC_ALIKE, "line": MC_LINE, "circle": MC_CIRCLE}
cdef int[6] VARIABLE = [1, 1, 4, 4, 4, 8]   # sizes of a variable's types: char, bool, int, bits, float, double [bytes]
ENTRY = 144                                     # size of a variable's header [bytes]
MOST_NAMES = 4096


cdef class Memory:
    """A mapping, and the windows of it that make a packet."""

    def __cinit__(self, str where not None, gather):
        cdef mc_memory* m = &self.memory
        memset(m, 0, sizeof(mc_memory))
        m.handle = -1
        if not 0 < len(gather.windows) <= MC_WINDOWS:
            raise ValueError(f"windows: found {len(gather.windows)}, allowed are 1 to {MC_WINDOWS}")
        for window in gather.windows:
            m.windows[m.n].offset, m.windows[m.n].size, m.windows[m.n].index = window.offset, window.size, window.number
            m.windows[m.n].index_size, m.windows[m.n].stride, m.windows[m.n].entry = window.number_size, window.stride, -1
            m.windows[m.n].samples = gather.count(window)
            m.windows[m.n].between = BETWEEN[window.between]
            m.packet += window.size
            m.state += window.size * m.windows[m.n].samples
            m.n += 1
        if m.state > MC_GATHERED:
            raise ValueError(f"windows: found {m.state} bytes, allowed are {MC_GATHERED}")
        m.samples, m.sample_s, m.time = gather.samples, 1.0 / gather.sample_hz, gather.time
        m.counter, m.counter_size, m.end, m.odd = gather.counter, gather.counter_size, gather.end, gather.odd
        m.tail = gather.tail
        self._names = [window.name for window in gather.windows]
        self._optional = [window.optional for window in gather.windows]
        self.where = where
        self._open()
        if any(self._names):
            self._find()

    def _open(self):
        cdef mc_memory* m = &self.memory
        if sys.platform == "win32":
            if mc_memory_opened(m, self.where):
                raise OSError(2, "there is no such mapping", self.where)
            return
        m.handle = os.open(self.where, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        found = os.fstat(m.handle)
        m.size, self._key = found.st_size, (found.st_dev, found.st_ino)

    def _find(self):
        """Find the variables by name, as iRacing's SDK lists them: how many at 24, from where on at 28."""
        cdef mc_memory* m = &self.memory
        cdef uint8_t head[8]
        cdef uint8_t header[MC_NAMED]
        cdef int64_t entry
        cdef int64_t place
        cdef int64_t kind
        found = {}
        if mc_memory_read(m, 24, head, 8):
            for place in range(min(mc_memory_int(head), MOST_NAMES)):
                entry = mc_memory_int(head + 4) + ENTRY * place
                if not mc_memory_read(m, entry, header, MC_NAMED):
                    break
                found.setdefault((<bytes>header[16:MC_NAMED]).partition(b"\0")[0].decode("latin-1"), entry)
        for place, name in enumerate(self._names):
            entry = found.get(name, -1)
            m.windows[place].absent = entry < 0 and self._optional[place]
            if m.windows[place].absent:
                continue
            if entry < 0 or not mc_memory_read(m, entry, header, MC_NAMED):
                raise OSError(2, f"there is no variable {name} in it", self.where)
            kind = mc_memory_int(header)
            size = m.windows[place].size * m.windows[place].samples
            if not 0 <= kind < 6 or size > VARIABLE[kind] * mc_memory_int(header + 8):
                raise OSError(22, f"the variable {name} is smaller than {size} bytes", self.where)
            m.windows[place].entry, m.windows[place].offset = entry, mc_memory_int(header + 4)
            memcpy(m.windows[place].header, header, MC_NAMED)

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
        """Return the state as one packet, its last sample's; None if it was being written or cannot be read."""
        cdef uint8_t state[MC_GATHERED]
        cdef uint8_t packet[MC_GATHERED]
        if mc_memory_take(&self.memory, state) != MC_WHOLE:
            return None
        mc_memory_sample(&self.memory, state, state, self.memory.samples - 1, packet)
        return <bytes>packet[:self.memory.packet]
