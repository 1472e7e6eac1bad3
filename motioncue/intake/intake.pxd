"""From packages to the newest motion, whatever carried them: match, decode, turn, watch, publish.

No transport here: whoever has whole packages hands them in, and sends the reply that comes back.
"""

from libc.stdint cimport int64_t, uint8_t

from motioncue.kernels.body cimport BodyFrame
from motioncue.intake.messages cimport Messages, Reply
from motioncue.kernels.records cimport Motion, Publication, PublicationSlot, Telemetry
from motioncue.kernels.slot cimport Event, Events
from motioncue.kernels.ring cimport Ring
from motioncue.kernels.timeline cimport Timeline
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


cdef extern from "motioncue/intake/tuned.h" nogil:
    ctypedef struct Tuned:
        double acceleration
        double rate
        double frozen_s
        double slack_s
        double frame_jump_s
        double acceleration_step
        double rate_step
        double velocity_error
        double attitude_error
        double head[3]
        double move_s
        int64_t number
    ctypedef struct TunedSlot:
        pass
    void tuned_clear(TunedSlot* slot)
    void tuned_write(TunedSlot* slot, const Tuned* newest)
    bint tuned_read(TunedSlot* slot, Tuned* out)


ctypedef struct IntakeState:
    Messages messages
    bint needs_axes         # no motion before a package has announced the car's axes
    bint needs_part         # no motion before a package that it needs, or long after one
    int64_t part_time       # when the newest of those came [ns]; 0 before any has
    BodyFrame frame         # as configured; axes as announced
    BodyFrame fallback      # as configured
    TunedSlot tuning        # whoever changes settings to the receiver
    Tuned tuned             # in use; the head is on its way there
    double head_before[3]   # where that began [m]
    int64_t head_since      # when it did [ns]
    bint head_moves
    Stages stages
    bint initialised
    int64_t began           # when the session's first frame came [ns]
    double frame_time       # [s]
    Telemetry nothing       # what is said before any package has come
    Telemetry said          # by the newest packages
    Telemetry known         # before the newest package
    Telemetry before        # by the frame before
    Telemetry telemetry     # what the body stage reads
    Motion motion
    int fallen              # frames in a row whose stamps rise, but are older than the newest
    double fallen_stamp     # of the last of those [s]
    int64_t fallen_since    # when the first of those came [ns]
    double aside_stamp      # of the frame that is set aside [s]
    Timeline timeline       # when was a frame taken?
    Watch watch             # does it continue the drive?
    bint held               # a claim of the newest frame was not followed
    int64_t followed        # the time spent until the last frame whose claims were [ns]
    Publication publication
    bint alone              # who feeds it reads `publication` itself, and nobody reads the slot
    PublicationSlot newest  # receiver to emitter
    Counters counters
    Events events
    Ring* ring              # packages, frames and events go there as they come; NULL if nobody records
    int endpoint            # that the newest package came to, for the record


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
    cdef object _ring       # owns what `ring` points to
