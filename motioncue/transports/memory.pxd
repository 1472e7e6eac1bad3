"""A mapping that a simulator writes: what the receiving loop reads, and the object that owns it."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from "motioncue/transports/memory.h" nogil:
    enum:
        MC_WINDOWS
        MC_NAMED
        MC_GATHERED
        MC_TAIL
        MC_ALIKE
        MC_LINE
        MC_CIRCLE
        MC_WHOLE
        MC_TORN
        MC_GONE
    ctypedef struct mc_window:
        int64_t offset
        int64_t size
        int64_t index
        int64_t index_size
        int64_t stride
        int64_t entry
        int64_t samples
        bint absent
        int between
        uint8_t header[MC_NAMED]
    ctypedef struct mc_memory:
        int64_t handle
        int64_t size
        mc_window windows[MC_WINDOWS]
        int n
        int packet
        int state
        int samples
        double sample_s
        int time
        int counter
        int counter_size
        int end
        bint odd
        int tail
    bint mc_memory_read(const mc_memory* m, int64_t at, void* out, int64_t size)
    int64_t mc_memory_int(const uint8_t* at)
    bint mc_memory_number(const mc_memory* m, int offset, int size, uint64_t* out)
    int mc_memory_take(mc_memory* m, uint8_t* out)
    const uint8_t* mc_memory_end(const mc_memory* m, const uint8_t* state)
    int mc_memory_first(const mc_memory* m, const uint8_t* state, const uint8_t* before)
    void mc_memory_sample(const mc_memory* m, const uint8_t* state, const uint8_t* before, int sample, uint8_t* out)
    void mc_memory_close(mc_memory* m)


cdef class Memory:
    cdef mc_memory memory
    cdef readonly object where
    cdef object _key, _names, _optional
