"""A mapping that a simulator writes, opened for reading only."""

from libc.stddef cimport wchar_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

import os
import sys


cdef extern from *:
    """
    #ifdef _WIN32
    static int mc_page_opened(mc_page *p, PyObject *name) {
        wchar_t *wide = PyUnicode_AsWideCharString(name, NULL);
        int error;
        if (!wide) return -1;
        error = mc_page_open(p, wide);
        PyMem_Free(wide);
        return error;
    }
    static int mc_mapped_anew(void *memory, size_t size, int file) { return 1; }
    #else
    #include <sys/mman.h>
    static int mc_page_opened(mc_page *p, PyObject *path) { return 0; }
    /* The mapping that is there goes in the same moment: no thread that writes meets a hole. */
    static int mc_mapped_anew(void *memory, size_t size, int file) {
        return mmap(memory, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    }
    #endif
    """
    int mc_page_opened(mc_page* p, object name) except -1
    bint mc_mapped_anew(void* memory, size_t size, int file)


BLOCK = {"": 0, "player": MC_OF_PLAYER, "beside": MC_BESIDE}
BETWEEN = {"": MC_ALIKE, "line": MC_LINE, "circle": MC_CIRCLE}
cdef int[6] VARIABLE = [1, 1, 4, 4, 4, 8]   # sizes of a variable's types: char, bool, int, bits, float, double [bytes]
ENTRY = 144                                     # size of a variable's header [bytes]
MOST_NAMES = 4096


cdef _open(mc_page* p, str where):
    """Open a mapping; return what tells a file from one that replaces it."""
    if sys.platform == "win32":
        if mc_page_opened(p, where):
            raise OSError(2, "there is no such mapping", where)
        return None
    p.handle = os.open(where, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    found = os.fstat(p.handle)
    p.size = found.st_size
    return found.st_dev, found.st_ino


def map_anew(uint8_t[::1] memory not None, int file):
    """Map another file in place of a mapping, which threads may write meanwhile; return whether that was possible."""
    return mc_mapped_anew(&memory[0], memory.shape[0], file)


cdef void _lay(mc_blocks* b, blocks):
    b.count, b.first, b.stride, b.id, b.most, b.found = blocks.count, blocks.first, blocks.stride, blocks.id, blocks.most, -1


cdef class Memory:
    """A mapping, and the windows of it that make a packet; some may be of another, which says whose vehicle is which."""

    def __cinit__(self, str where not None, gather, str beside not None=""):
        cdef mc_memory* m = &self.memory
        memset(m, 0, sizeof(mc_memory))
        m.page.handle = m.beside.handle = -1
        if not 0 < len(gather.windows) <= MC_WINDOWS:
            raise ValueError(f"windows: found {len(gather.windows)}, allowed are 1 to {MC_WINDOWS}")
        if (gather.player is None) != (not beside):
            raise ValueError(f"beside: found {beside!r}, allowed is a mapping if one says which vehicle is the player's")
        for window in gather.windows:
            m.windows[m.n].offset, m.windows[m.n].size, m.windows[m.n].index = window.offset, window.size, window.number
            m.windows[m.n].index_size, m.windows[m.n].stride, m.windows[m.n].entry = window.number_size, window.stride, -1
            m.windows[m.n].samples = gather.count(window)
            m.windows[m.n].between = BETWEEN[window.between]
            m.windows[m.n].block = BLOCK[window.block]
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
        self.where, self.beside = where, beside
        self._key = _open(&m.page, where)
        if gather.player is not None:
            _lay(&m.blocks, gather.player.here)
            _lay(&m.players, gather.player.there)
            m.mark, m.begin, m.close = gather.player.mark, gather.player.begin, gather.player.end
            self._key_beside = _open(&m.beside, beside)
            m.asks = True
        if any(self._names):
            self._find()

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
            listed = entry >= 0 and mc_memory_read(m, entry, header, MC_NAMED)
            kind = mc_memory_int(header) if listed else -1
            size = m.windows[place].size * m.windows[place].samples
            fits = 0 <= kind < 6 and size <= VARIABLE[kind] * mc_memory_int(header + 8)
            # One that is smaller than the samples that are asked for says as little as none.
            m.windows[place].absent = self._optional[place] and not fits
            if m.windows[place].absent:
                continue
            if not listed:
                raise OSError(2, f"there is no variable {name} in it", self.where)
            if not fits:
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
                _open(&self.memory.page, self.where)
                if self.beside:
                    _open(&self.memory.beside, self.beside)
                return True
            found = [os.stat(where) for where in (self.where, self.beside) if where]
        except OSError:
            return False
        keys = [self._key, self._key_beside][:len(found)]
        return keys == [(each.st_dev, each.st_ino) for each in found]

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
