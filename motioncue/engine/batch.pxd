"""Many rigs in one call: side by side where they are alike and no bound acts, one after the other elsewhere."""

from libc.stdint cimport int64_t

from motioncue.core.interfaces cimport Beside, Calls, Lanes
from motioncue.core.records cimport Actuation, Cue, Motion
from motioncue.output.actuation cimport STAGES, Chain
from motioncue.safety.limiter cimport LimitSet


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


cdef void* aligned_zeros(list owned, size_t size) except NULL
cdef void scatter(int lanes, double* block, int count, int64_t lane, const double* values) noexcept nogil
cdef int row_of(Row* row, Beside* rigs, const unsigned char* parked, int64_t n, list owned) except -1
cdef void row_step(Row* row, double* rows, int stride) noexcept nogil
cdef void load_row_lane(Row* row, int64_t rig) noexcept nogil
cdef bint row_calm(const Row* row, int64_t rig) noexcept nogil


ctypedef struct Group:          # consecutive rigs that are stepped alike
    int64_t first
    int64_t count
    Lanes lanes                 # 0 lanes: the rigs are stepped one by one
    double* coeffs              # in blocks: each double of the coefficients, for every rig of the block
    double* states              # in blocks likewise


cdef class Batch:
    cdef int64_t n
    cdef readonly object parked
    cdef list alive             # owns the algorithms and the limits
    cdef Calls* calls           # one per rig
    cdef LimitSet** limits      # one per rig; NULL if no rig has limits
    cdef Chain** chains         # one per rig; NULL if no rig has a chain
    cdef Row limiting           # the limits of all rigs
    cdef Row stages[STAGES]     # the stages of their chains, in order
    cdef Group* groups
    cdef int64_t group_count
    cdef list owned             # owns the memory behind these pointers
    cdef object motion_array    # the arrays given to the last `step`; the views of them are below
    cdef object cue_array
    cdef object actuation_array
    cdef const Motion[::1] motion
    cdef Cue[::1] cue
    cdef Actuation[::1] actuation
    cdef int lay_out(self, Group* group) except -1
    cdef int line_up(self, limits, chains) except -1
    cdef void actuate(self, const Cue* cue, Actuation* actuation) noexcept nogil
    cdef void tick(self, const Motion* motion, Cue* cue) noexcept nogil
    cdef int bind(self, motion, cue, actuation) except -1
