"""One stage of many rigs: side by side where no bound acts (calm.h), one rig after the other elsewhere."""

from libc.stdint cimport int64_t

from motioncue.kernels.records cimport Actuation
from motioncue.kernels.rotation cimport Turn


ctypedef void (*stage_step)(
    void* state, const void* coeffs, const Turn* attitude, bint parked, Actuation* actuation
) noexcept nogil


cdef enum:
    PLAN = 48


ctypedef int64_t (*beside_tick)(
    const int* plan, const void* coeffs, const void* states, void* next_states, double* rows, int stride
) noexcept nogil


ctypedef struct Beside:     # a stage of one rig, and how it is done beside those of other rigs
    stage_step step         # alone; NULL if it does nothing
    void* state
    const void* coeffs
    int lanes               # rigs in a block; 0 if the stage has no such form
    beside_tick tick        # see calm.h
    int plan[PLAN]          # whole numbers that all rigs of a block must have in common
    int coeffs_count        # doubles of the coefficients in lanes
    int state_count
    int64_t* ticks          # counter of the stage's ticks
    void (*lay)(const void* coeffs, double* out) noexcept nogil                     # fill the coefficients for lanes
    bint (*pack)(void* state, const void* coeffs, double* out) noexcept nogil       # fill the state for lanes, unless a
                                                                                    # bound acts; return whether filled
    void (*unpack)(void* state, const void* coeffs, const double* packed) noexcept nogil    # the reverse


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
