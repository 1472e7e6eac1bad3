"""From packages to the newest motion, on any transport: match, decode, convert, watch, publish.

There is no transport here: the caller passes whole packages in and sends the reply that comes back.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t, uint8_t

from motioncue.core.threads cimport (
    RECORD_HAPPENING, SESSION_BEGAN, Event, Events, Ring, event_write, mc_count, mc_load, mc_store_release,
    ring_write,
)
from motioncue.core.records cimport CHASSIS, Motion, Publication, PublicationSlot, Telemetry
from motioncue.frames.convert cimport BodyFrame, Stages, derive_anew
from motioncue.frames.arrival_clock cimport Stamps, Timeline, timeline_restart
from motioncue.frames.plausibility cimport Observation, Watch, watch_restart
from motioncue.wire.messages cimport MC_CIPHER_BYTES, Messages, Reply, mc_cipher


cdef enum:
    REASON_COUNT = 64
    ANNOUNCED_BYTES = 512
    QUEUED_FIRST = 10       # of what is counted, so many are events, and then one of so many
    QUEUED_EVERY = 1000


ctypedef struct Counters:
    int64_t accepted
    int64_t others          # packages without motion
    int64_t repeats         # frames that repeat the state of the one before
    int64_t sessions
    int64_t replies
    int64_t refused[REASON_COUNT]
    int64_t events[REASON_COUNT]


cdef extern from *:
    """
    #include "motioncue/core/threads.h"
    typedef struct {
        double acceleration, rate, frozen_s, slack_s, frame_jump_s, acceleration_step, rate_step;
        double velocity_error, attitude_error, head[3], move_s;
        int64_t number;
    } Tuned;
    MC_SLOT(Tuned, tuned)
    """
    ctypedef struct Tuned:      # settings that may change while packages come
        double acceleration     # thresholds of the watch, explained there
        double rate
        double frozen_s
        double slack_s
        double frame_jump_s
        double acceleration_step
        double rate_step
        double velocity_error
        double attitude_error
        double head[3]          # forward, right, down of the motion reference point [m]
        double move_s           # how long the head takes to move there [s]
        int64_t number          # of the settings, for recordings
    ctypedef struct TunedSlot:  # passes them to the receiver
        pass
    void tuned_clear(TunedSlot* slot) nogil
    void tuned_write(TunedSlot* slot, const Tuned* newest) nogil
    bint tuned_read(TunedSlot* slot, Tuned* out) nogil


cdef Tuned tuned_of(object thresholds, object head_m=?, double fade_s=?)


ctypedef struct IntakeState:
    Messages messages
    mc_cipher cipher        # of every package, if used
    uint8_t plain[MC_CIPHER_BYTES]  # the newest package deciphered
    bint with_ahead         # packages come from a program, which may say what the car will do
    const uint8_t* ahead    # what the package that is being taken says of that; NULL: nothing
    bint needs_axes         # no motion until a package has announced the car's axes
    bint needs_part         # no motion without a recent package that completes it
    int64_t part_time       # arrival of the newest of those [ns]; 0 before the first
    BodyFrame frame         # as configured, with the car's axes as announced
    BodyFrame fallback      # as configured
    TunedSlot tuning        # from the tick that takes newer settings to the receiver
    Tuned tuned             # settings in use, except that the head may still be moving
    double head_before[3]   # head position before the move [m]
    int64_t head_since      # start of the move [ns]
    bint head_moves
    Stages stages
    bint initialized
    int64_t began           # arrival of the session's first frame [ns]
    double frame_time       # sum of the frames' durations [s]
    Telemetry empty         # telemetry before any package has come: NaN where a source may have none
    Telemetry newest        # telemetry of the newest packages
    Telemetry backup        # telemetry before the newest package
    Telemetry previous      # telemetry of the frame before
    Telemetry telemetry     # in world axes, with what is derived: input of the body stage
    double axes[3][3]       # the car's axes forward, right, down in the source's world axes
    Observation observation # what the watch compares of the newest frame
    Motion motion
    Stamps stamps           # when was the frame before taken, by the simulator's own time?
    Stamps stamps_next      # the same of the newest frame, if it is accepted
    int fallen              # frames in a row whose stamps rise, but are older than the newest
    double fallen_stamp     # stamp of the last of those [s]
    bint rewound            # whether there were such frames since the newest that was placed in time
    int64_t fallen_since    # when the first of those came [ns]
    double quarantined_stamp    # stamp of the frame that the watch has set aside [s]
    Timeline timeline       # when was a frame taken?
    Watch watch             # does it continue the drive?
    bint held               # a claim of the newest frame was not followed
    int64_t followed        # the time spent until the last frame whose claims were [ns]
    Publication publication
    double chassis[CHASSIS] # what the newest packages say of wheels, suspension and cab; NaN where none does
    bint alone              # the feeding thread reads `publication` itself, and nobody reads the slot
    PublicationSlot slot    # from receiver to emitter
    Counters counters
    Events events
    Ring* ring              # recorder's ring for packages, frames and events; NULL if not recording
    IntakeState* beside     # another rig's, which takes the same packages; NULL: there is none
    bint joins              # it has come to another one, and not been told yet in which session
    uint8_t announced[ANNOUNCED_BYTES]  # the package that announced the car's axes, for those who come later
    int announced_size
    int endpoint            # number of the newest package's endpoint, for the recording
    int car_offset          # where packages say which car it is
    int car_bytes           # 1 to 8; 0: nobody wants to know
    int car_size            # of the packages that say it; 0: of any size
    int64_t car             # the newest such bytes
    int64_t cars            # number of packages that said it


cdef inline void log_event(IntakeState* s, int64_t now, int reason, int64_t detail) noexcept nogil:
    cdef Event event = Event(now, reason, detail, 0, 0, 0.0, 0.0)
    event_write(&s.events, &event)
    if s.ring != NULL:
        ring_write(s.ring, RECORD_HAPPENING, now, &event, sizeof(Event))


cdef inline bint is_queued(int64_t n) noexcept nogil:
    """Say whether the n-th of what is counted is queued as an event; `Intake.not_queued` counts the others."""
    return n <= QUEUED_FIRST or n % QUEUED_EVERY == 0


cdef inline void log_measurement(IntakeState* s, int reason, int why, double value, double limit) noexcept nogil:
    """Log an event: count it, queue the first ten and then every thousandth, with the measured value and the limit."""
    cdef Event event = Event(s.motion.time, reason, why, 0, 0, value, limit)
    mc_count(&s.counters.events[reason], 1)
    if is_queued(mc_load(&s.counters.events[reason])):
        event_write(&s.events, &event)
        if s.ring != NULL:
            ring_write(s.ring, RECORD_HAPPENING, event.time, &event, sizeof(Event))


cdef inline void refuse(IntakeState* s, int reason, int64_t now, int64_t detail) noexcept nogil:
    """Count `reason`; queue its first occurrences and then every thousandth."""
    mc_count(&s.counters.refused[reason], 1)
    if is_queued(mc_load(&s.counters.refused[reason])):
        log_event(s, now, reason, detail)


cdef inline void forget(IntakeState* s) noexcept nogil:
    """Forget the frames so far, so that nothing is compared with them."""
    cdef int i
    s.initialized = False
    s.frame_time = 0.0
    s.part_time = 0
    s.began = 0
    timeline_restart(&s.timeline)
    derive_anew(&s.stages)
    s.fallen = 0
    watch_restart(&s.watch)
    for i in range(CHASSIS if s.publication.with_chassis else 0):
        s.chassis[i] = NAN


cdef inline void begin(IntakeState* s, int64_t now) noexcept nogil:
    """Begin a new session: what follows is another drive."""
    forget(s)
    s.announced_size = 0
    mc_count(&s.counters.sessions, 1)
    log_event(s, now, SESSION_BEGAN, mc_load(&s.counters.sessions))


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil
cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil
cdef int intake_kind(IntakeState* s, const uint8_t* package, int size) noexcept nogil
cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil


cdef class Intake:
    cdef IntakeState* intake
    cdef readonly int reply_port
    cdef readonly object heartbeat
    cdef readonly object gather
    cdef object _contest    # returns in words who was refused because another one drives
    cdef object _tables     # owns the rows that the messages point to
    cdef Event _event
    cdef object _ring       # owns the memory behind `ring`
    cdef list _beside       # every intake that has ever taken the same packages: a receiver may still be in it


# A stream session in lock-step: packages are framed by their size field; each is taken and answered.  The caller feeds
# bytes, in pieces of any size, and sends what `out` holds.

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
    cdef tuple answered(self, const uint8_t* data, Py_ssize_t size, int64_t now)
