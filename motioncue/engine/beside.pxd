"""One stage of many rigs: side by side where no bound acts, one rig after the other elsewhere."""

from libc.stdint cimport int64_t

from motioncue.core.interfaces cimport Beside


ctypedef struct Block:      # neighbors that can be side by side, or one that cannot
    int64_t first
    int64_t count
    double* coeffs
    double* states
    double* next_states     # room for those of the next tick
    int64_t* ticks[8]       # the counter of each rig's ticks
    int64_t calm            # a bit for each rig whose state is in `states`


ctypedef struct Row:        # one stage of all rigs
    Beside* rigs
    const unsigned char* parked     # whether each rig is to rest where it is parked; such rigs are stepped alone
    Block* blocks
    int64_t block_count


cdef void* room(list owned, size_t size) except NULL
cdef void store(int lanes, double* block, int count, int64_t lane, const double* values) noexcept nogil
cdef int row_of(Row* row, Beside* rigs, const unsigned char* parked, int64_t n, list owned) except -1
cdef void row_step(Row* row, double* rows, int stride) noexcept nogil
cdef void row_settle(Row* row, int64_t rig) noexcept nogil
cdef bint row_calm(const Row* row, int64_t rig) noexcept nogil
