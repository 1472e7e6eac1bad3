"""From packages to the newest motion, whatever carried them: match, decode, turn, watch, publish.

No transport here: whoever has whole packages hands them in, and sends the reply that comes back.
"""

from libc.stdint cimport int64_t, uint8_t

from motioncue.kernels.body cimport BodyFrame
from motioncue.intake.messages cimport Messages, Reply
from motioncue.kernels.records cimport Motion, Publication, PublicationSlot, Telemetry
from motioncue.kernels.slot cimport Event, Events
from motioncue.intake.stages cimport Stages
from motioncue.intake.watch cimport Watch


cdef enum:
    REASON_COUNT = 64


ctypedef struct Counters:
    int64_t accepted
    int64_t others          # packages without motion in them
    int64_t repeats         # frames that said the same again
    int64_t sessions
    int64_t replies
    int64_t refused[REASON_COUNT]
    int64_t events[REASON_COUNT]


ctypedef struct IntakeState:
    Messages messages
    bint needs_axes         # no motion before a package has announced the car's axes
    bint needs_part         # no motion before a package that it needs, or long after one
    int64_t part_time       # when the newest of those came [ns]; 0 before any has
    BodyFrame frame         # as configured; axes as announced
    BodyFrame fallback      # as configured
    Stages stages
    bint initialised
    int64_t began           # when the session's first frame came [ns]
    double frame_time       # [s]
    Telemetry nothing       # what is said before any package has come
    Telemetry said          # by the newest packages
    Telemetry known         # before the newest package
    Telemetry before        # by the frame before
    int64_t before_time     # when that came [ns]
    double waited           # frame time since the last frame that was not a repeat [s]
    Telemetry telemetry     # what the body stage reads
    Motion motion
    Watch watch             # does a frame continue the drive?
    Publication publication
    bint alone              # who feeds it reads `publication` itself, and nobody reads the slot
    PublicationSlot newest  # receiver to emitter
    Counters counters
    Events events
    uint8_t* tape           # packages as they came: time, size, bytes; NULL if nobody wants them
    int64_t tape_room       # [bytes]
    int64_t tape_used
    int64_t tape_missed     # packages that found no room


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil
cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil
cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil
cdef void tell(IntakeState* s, int64_t now, int reason, int64_t detail) noexcept nogil
cdef void refuse(IntakeState* s, int reason, int64_t now, int64_t detail) noexcept nogil


cdef class Intake:
    cdef IntakeState* intake
    cdef readonly int reply_port
    cdef object _tables     # own the rows that the messages point to
    cdef Event _event
