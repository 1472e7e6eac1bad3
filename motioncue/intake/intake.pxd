"""From packages to the newest motion, on any transport: match, decode, convert, watch, publish.

There is no transport here: the caller passes whole packages in and sends the reply that comes back.
"""

from libc.stdint cimport int64_t, uint8_t

from motioncue.kernels.body cimport BodyFrame
from motioncue.kernels.cipher cimport mc_cipher
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
    int64_t others          # packages without motion
    int64_t repeats         # frames that repeat the state of the one before
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
    mc_cipher cipher        # of every package, if used
    uint8_t plain[2048]     # the newest package deciphered
    bint needs_axes         # no motion until a package has announced the car's axes
    bint needs_part         # no motion without a recent package that completes it
    int64_t part_time       # arrival of the newest of those [ns]; 0 before the first
    BodyFrame frame         # as configured, with the car's axes as announced
    BodyFrame fallback      # as configured
    TunedSlot tuning        # from the thread that changes settings to the receiver
    Tuned tuned             # settings in use, except that the head may still be moving
    double head_before[3]   # head position before the move [m]
    int64_t head_since      # start of the move [ns]
    bint head_moves
    Stages stages
    bint initialized
    int64_t began           # arrival of the session's first frame [ns]
    double frame_time       # sum of the frames' durations [s]
    Telemetry nothing       # telemetry before any package has come: NaN where a source may have none
    Telemetry said          # telemetry of the newest packages
    Telemetry known         # telemetry before the newest package
    Telemetry before        # telemetry of the frame before
    Telemetry telemetry     # input of the body stage
    Motion motion
    int fallen              # frames in a row whose stamps rise, but are older than the newest
    double fallen_stamp     # stamp of the last of those [s]
    int64_t fallen_since    # when the first of those came [ns]
    double aside_stamp      # stamp of the frame that the watch has set aside [s]
    Timeline timeline       # when was a frame taken?
    Watch watch             # does it continue the drive?
    bint held               # a claim of the newest frame was not followed
    int64_t followed        # the time spent until the last frame whose claims were [ns]
    Publication publication
    bint alone              # the feeding thread reads `publication` itself, and nobody reads the slot
    PublicationSlot newest  # from receiver to emitter
    Counters counters
    Events events
    Ring* ring              # recorder's ring for packages, frames and events; NULL if not recording
    int endpoint            # number of the newest package's endpoint, for the recording


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil
cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil
cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil
cdef void tell(IntakeState* s, int64_t now, int reason, int64_t detail) noexcept nogil
cdef void refuse(IntakeState* s, int reason, int64_t now, int64_t detail) noexcept nogil


cdef class Intake:
    cdef IntakeState* intake
    cdef readonly int reply_port
    cdef readonly object heartbeat
    cdef object _tables     # owns the rows that the messages point to
    cdef Event _event
    cdef object _ring       # owns the memory behind `ring`
