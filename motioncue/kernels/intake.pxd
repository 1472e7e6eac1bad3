"""From packages to the newest motion, whatever carried them: match, decode, turn, watch, publish.

No transport here: whoever has whole packages hands them in, and sends the reply that comes back.
"""

from libc.stdint cimport int64_t, uint8_t

from motioncue.kernels.body cimport BodyFrame
from motioncue.kernels.codec cimport Row
from motioncue.kernels.records cimport Motion, Publication, Telemetry
from motioncue.kernels.slot cimport Event, Events, Slot
from motioncue.kernels.stages cimport Stages
from motioncue.kernels.watch cimport Watch


cdef enum:
    MESSAGES = 48
    CONSTANTS = 8
    CONSTANT_BYTES = 24
    REPLY_BYTES = 512
    REASON_COUNT = 64

cdef enum Role:
    ROLE_AXES       # announces the car's axes, begins or renews the session
    ROLE_MOTION     # carries the vehicle's state
    ROLE_PART       # carries some of it, for the next motion to use
    ROLE_NEEDED     # the same, and what there is no motion without
    ROLE_OTHER      # belongs to the system, says nothing about motion


ctypedef struct Constant:
    uint8_t bytes[CONSTANT_BYTES]
    int offset              # in the package; from its end if negative
    int size


ctypedef struct Reply:
    uint8_t bytes[REPLY_BYTES]
    int size
    int echo_from           # so many bytes of the package are copied into the reply
    int echo_to
    int echo_size


ctypedef struct Message:
    Row* rows
    int row_count
    int smallest            # of the whole package [bytes]
    int largest
    Constant constants[CONSTANTS]
    int constant_count      # the first identifies the message, the others must hold
    bint marked             # the first is not all zeros
    Role role
    Reply reply


ctypedef struct Counters:
    int64_t accepted
    int64_t others          # packages without motion in them
    int64_t repeats         # frames that said the same again
    int64_t sessions
    int64_t replies
    int64_t refused[REASON_COUNT]
    int64_t events[REASON_COUNT]


ctypedef struct IntakeState:
    Message messages[MESSAGES]
    int message_count
    Reply unknown           # answer to a package of no known type
    bint needs_axes         # no motion before a package has announced the car's axes
    bint needs_part         # no motion before a package that it needs, or long after one
    int64_t part_time       # when the newest of those came [ns]; 0 before any has
    BodyFrame frame         # as configured; axes as announced
    BodyFrame fallback      # as configured
    Stages stages
    bint initialised
    int64_t began           # when the session's first frame came [ns]
    double frame_time       # [s]
    Telemetry said          # by the newest packages
    Telemetry before        # by the frame before
    int64_t before_time     # when that came [ns]
    double waited           # frame time since the last frame that was not a repeat [s]
    Telemetry telemetry     # what the body stage reads
    Motion motion
    Watch watch             # does a frame continue the drive?
    Publication publication
    bint alone              # who feeds it reads `publication` itself, and nobody reads the slot
    Slot newest             # of Publication: receiver to emitter
    Counters counters
    Events events
    uint8_t* tape           # packages as they came: time, size, bytes; NULL if nobody wants them
    int64_t tape_room       # [bytes]
    int64_t tape_used


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil
cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil
cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil
cdef int reply_write(const Reply* reply, const uint8_t* package, int size, uint8_t* out) noexcept nogil
cdef void refuse(IntakeState* s, int reason, int64_t now, int64_t detail) noexcept nogil
cdef Reply make_reply(bytes data, echo) except *


cdef class Intake:
    cdef IntakeState* intake
    cdef readonly int reply_port
    cdef object _tables     # own the rows that the messages point to
    cdef Event _event
