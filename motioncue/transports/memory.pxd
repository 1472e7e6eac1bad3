"""A mapping that a simulator writes: what the receiving loop reads, and the object that owns it."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "motioncue/transports/memory.h" nogil:
    enum:
        MC_WINDOWS
        MC_NAMED
        MC_GATHERED
        MC_TAIL
        MC_ALIKE
        MC_LINE
        MC_CIRCLE
        MC_OF_PLAYER
        MC_BESIDE
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
        int block
        uint8_t header[MC_NAMED]
    ctypedef struct mc_page:
        int64_t handle
        int64_t size
    ctypedef struct mc_blocks:
        int64_t count
        int64_t first
        int64_t stride
        int64_t id
        int32_t most
        int32_t found
    ctypedef struct mc_memory:
        mc_page page
        mc_page beside
        bint asks
        mc_blocks blocks
        mc_blocks players
        int64_t mark
        int64_t begin
        int64_t close
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
    cdef readonly object where          # the mapping, and the one that says which vehicle is the player's, or an empty text
    cdef readonly object beside
    cdef object _key, _key_beside, _names, _optional
