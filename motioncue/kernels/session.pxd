"""A lock-step stream session: packages framed by their size field, each decoded and answered.

No transport here: whoever has bytes feeds them, in pieces of any size, and sends what `out` holds.
"""

from libc.stdint cimport int64_t, uint8_t

from motioncue.kernels.body cimport BodyFrame
from motioncue.kernels.codec cimport Row
from motioncue.kernels.records cimport Motion, Publication, Telemetry
from motioncue.kernels.slot cimport Event, Events, Slot
from motioncue.kernels.watch cimport Watch


cdef enum:
    PENDING_BYTES = 1024
    FEED_BYTES = 512        # at once: every reply that so many can ask for fits into `out`
    OUT_BYTES = 4096
    MESSAGES = 4
    REPLY_BYTES = 16
    REASON_COUNT = 48

cdef enum Role:
    ROLE_AXES       # announces the car's axes, begins or renews the session
    ROLE_MOTION     # carries the vehicle's state


ctypedef struct Reply:
    uint8_t bytes[REPLY_BYTES]
    int size


ctypedef struct Message:
    Row* rows
    int row_count
    int size                # of the whole package [bytes]
    uint8_t type
    Role role
    Reply reply


ctypedef struct Counters:
    int64_t accepted
    int64_t sessions
    int64_t replies
    int64_t refused[REASON_COUNT]
    int64_t events[REASON_COUNT]


ctypedef struct SessionState:
    Message messages[MESSAGES]
    int message_count
    Reply unknown           # answer to a package of no known type
    int size_max            # a larger size field means that framing is lost [bytes]
    int64_t patience        # how long the rest of a package may take [ns]
    BodyFrame frame         # as configured; axes as announced
    BodyFrame fallback      # as configured
    uint8_t pending[PENDING_BYTES]
    int have
    int64_t last_byte       # when the last byte came [ns]
    bint initialised
    double frame_time       # [s]
    Telemetry telemetry
    Motion motion
    uint8_t out[OUT_BYTES]  # replies waiting to be sent
    int out_have
    Watch watch             # does a frame continue the drive?
    Publication publication
    Slot newest             # of Publication: receiver to emitter
    Counters counters
    Events events


cdef void session_begin(SessionState* s, int64_t now) noexcept nogil
cdef void session_end(SessionState* s, int64_t now) noexcept nogil
cdef bint session_feed(SessionState* s, const uint8_t* data, int n, int64_t now) noexcept nogil
cdef bint session_stalled(SessionState* s, int64_t now) noexcept nogil
cdef void session_sent(SessionState* s, int n) noexcept nogil
cdef void refuse(SessionState* s, int reason, int64_t now, int64_t detail) noexcept nogil


cdef class Session:
    cdef SessionState* state
    cdef object _tables     # own the rows that the messages point to
    cdef Event _event
