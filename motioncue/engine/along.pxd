"""The lap before: what was felt along the way, and what it says of the next seconds where the car passes again.

Each frame that tells a position becomes, 25 times a second, a row: where the car was, its heading and speed, and what was
felt since the row before.  A car that comes by again in that direction is placed between rows; what follows them, at the
pace that the car has now, is what it will feel next.  What that is worth is for the algorithm to learn: see
`cueing/predictive`.  Rows of standing, of jumps and of positions that contradict the speed are gaps, over which nothing
is told.  What was felt can be taken out as bytes and given to another session: `Recalled`.
"""

from libc.stdint cimport int64_t

from motioncue.core.interfaces cimport AHEAD
from motioncue.core.records cimport Motion, Publication


cdef enum:
    FELT = 8                # surge, sway, heave, roll, pitch, and their rates with yaw's
    ROWS = 1 << 16          # that are kept: 43 minutes of driving
    TAPS = 151              # moments that are looked at, a row's time apart


ctypedef struct Row:
    double time             # [s]
    double place[2]         # north, east [m]
    float heading[2]        # its cosine and sine
    float speed             # [m/s]
    float felt[FELT]
    int gap                 # whether it does not follow the row before


ctypedef struct Kept:           # what an earlier session felt; once taken, what was felt before that
    Row* rows
    int64_t count
    double time             # [s] driven until the newest
    int64_t number          # another for each
    int64_t taken           # whether a tick has taken it


cdef class Recalled:
    cdef Kept kept


cdef class Along:
    cdef Row* rows          # a ring
    cdef double[:, ::1] shares  # of each moment in each row of what is told, AHEAD x TAPS
    cdef double[::1] present    # what the present has of that, to be taken off
    cdef int64_t count      # rows so far
    cdef int64_t at         # number of the row at which the car is again; -1: nowhere
    cdef int64_t sought     # number of the row from which on it is sought
    cdef int64_t best       # the nearest so far of those
    cdef double nearest     # [m]
    cdef double sum[FELT]   # since the newest row
    cdef int sums
    cdef double time        # driven so far [s]
    cdef double stamp       # the newest frame's own time [s]
    cdef int64_t epoch
    cdef bint broken        # whether the next row does not follow the one before
    cdef bint told
    cdef int64_t taken      # when the frame was that what is told counts from [ns]
    cdef int64_t recalled   # number of what was recalled last; 0: nothing
    cdef Motion now         # that frame
    cdef Motion ahead[AHEAD]
    cdef const Row* row(self, int64_t number) noexcept nogil
    cdef void lose(self) noexcept nogil
    cdef void recall(self, Kept* kept) noexcept nogil
    cdef void skip(self) noexcept nogil
    cdef void add(self, const Publication* newest) noexcept nogil
    cdef double apart(self, int64_t number) noexcept nogil
    cdef void find(self) noexcept nogil
    cdef bint fill_ahead(self, const Publication* newest) noexcept nogil
    cdef void take(self, const Publication* newest) noexcept nogil
