"""A stream session in lock-step: packages are framed by their size field; each is taken and answered.

There is no transport here: the caller feeds bytes, in pieces of any size, and sends what `out` holds.
"""

from libc.stdint cimport int64_t, uint8_t

from motioncue.frames.intake cimport Intake, IntakeState


cdef enum:
    PENDING_BYTES = 1024
    FEED_BYTES = 512        # largest piece to feed at once, so that `out` has room for all its replies
    OUT_BYTES = 4096


ctypedef struct SessionState:
    IntakeState* intake
    int size_max            # a larger size field means that framing is lost [bytes]
    bint big                # the size field's most significant byte comes first
    int64_t patience        # how long the rest of a package may take [ns]
    uint8_t pending[PENDING_BYTES]
    int have
    int64_t last_byte       # arrival of the last byte [ns]
    uint8_t out[OUT_BYTES]  # replies waiting to be sent
    int out_have


cdef void session_begin(SessionState* s, int64_t now) noexcept nogil
cdef void session_end(SessionState* s, int64_t now) noexcept nogil
cdef bint session_feed(SessionState* s, const uint8_t* data, int n, int64_t now) noexcept nogil
cdef bint session_stalled(SessionState* s, int64_t now) noexcept nogil
cdef void session_sent(SessionState* s, int n) noexcept nogil


cdef class Session(Intake):
    cdef SessionState* state
