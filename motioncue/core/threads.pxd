"""What one thread passes to another without a lock: events and their reasons, records in order, durations.

See threads.h; the slots for the newest value are in records.pxd, one for each record that is passed.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "motioncue/core/threads.h" nogil:
    int64_t mc_load(const int64_t* p)
    void mc_store(int64_t* p, int64_t v)
    int64_t mc_load_acquire(const int64_t* p)
    void mc_fence()
    void mc_store_release(int64_t* p, int64_t v)
    int64_t mc_exchange(int64_t* p, int64_t v)
    void mc_count(int64_t* p, int64_t n)
    void mc_add(int64_t* p, int64_t n)
    enum:
        EVENTS              # capacity of the event queue
    ctypedef struct Event:
        int64_t time        # [ns] monotonic clock
        int64_t code        # a Reason
        int64_t detail
        int64_t before      # for a transition: the State left
        int64_t after       # and the State entered
        double value        # the measured value
        double limit        # and the largest one allowed
    ctypedef struct Events:
        int64_t lost        # events dropped because the queue was full
    void event_write(Events* q, const Event* event)
    bint event_read(Events* q, Event* out)


cpdef enum Reason:
    """Why something was refused, or what happened."""
    ACCEPTED = 0
    SIZE            # a known type of another size
    TYPE            # an unknown type of package
    ENVELOPE        # a length field or an end mark that does not fit the package
    NOT_ALLOWED     # from a host that is not allowed
    NOT_FINITE      # NaN or infinity in a used field
    IMPLAUSIBLE     # a value no vehicle reaches
    QUATERNION      # zero, or far from unit length
    AXES            # announced axes zero or not orthogonal; the default axes are used instead
    BEFORE_INIT     # a frame before the session's init package
    INCOMPLETE      # a frame without the other package it needs, or long after it
    LATE            # a frame older than the newest by its own stamp
    FRAMING         # a size field that no package has: the stream has lost its framing
    BIG_ENDIAN      # the size field has its bytes swapped
    STALLED         # the rest of a package never came
    SECOND_SIMULATOR    # another simulator, refused while the first one drives
    TAKEN_OVER      # the driving simulator was silent, so another one has taken over
    NO_DESCRIPTOR   # the system has no file descriptor left for a simulator that connects
    SESSION_BEGAN
    SESSION_ENDED
    TORN            # a state in shared memory that was being written at every look
    SEEN_LATE       # a state in shared memory, of which nothing shows in time that it is whole, left out
    REPLY_LOST      # the simulator does not read its replies
    TELEPORT        # the position moved by more than the velocity allows
    IMPOSSIBLE_ACCELERATION     # reported, or the velocity changed by more than it allows
    IMPOSSIBLE_RATE     # reported, or the attitude changed by more than it allows
    FRAME_TIME_JUMP # the simulator's frame time jumped
    ACCELERATION_CONTRADICTED   # the acceleration does not add up to the change of the velocity
    RATE_CONTRADICTED   # the angular rates do not add up to the turning of the attitude
    SPIKE           # an implausible frame, acceleration or rate, held back because it did not repeat
    FROZEN          # a moving car repeats the same state
    PAUSED          # the same state with a frame time of zero
    RECONNECT       # a new session: its motion does not continue that of the session before
    INPUT           # motion is coming in
    INPUT_OVERDUE   # no new motion for three quarters of the hold time
    INPUT_LOST      # no new motion for longer than the hold time
    INPUT_BACK      # input has returned and continues the motion before the gap
    CUE_REACHED     # fade-in complete
    NEUTRAL_REACHED # fade-out complete
    NOT_FINITE_CUE  # an algorithm's cue is NaN or infinite
    OUTPUT_LOST     # a serial line is unplugged, or has taken nothing for longer than the hold time
    OPERATOR_ENGAGE
    OPERATOR_HOLD
    OPERATOR_PARK
    END_OF_RUN
    RETUNED         # other settings have come into force
    PLATFORM_STOPPED    # its emergency stop is pressed
    PLATFORM_FAULT  # it reports a fault
    PLATFORM_UNREADY    # it does not follow any more, without saying why
    PLATFORM_SILENT # its reply has stayed away for longer than allowed
    OUTPUT_UNHEARD  # nobody has listened at the platform's endpoint, or nothing could be sent, for longer than the hold time
    RECEIVE_FAILED  # the system refuses to wait at the source's endpoint, or to hand over what has come there
    REASONS         # number of reasons


cdef extern from "motioncue/core/threads.h" nogil:
    enum:
        RECORD_TICK
        RECORD_TRANSITION
        RECORD_PACKAGE
        RECORD_FRAME
        RECORD_HAPPENING
        RECORD_CONNECTED
        RECORD_DISCONNECTED
        RECORD_RETUNED
        RECORD_CHASSIS
        RECORD_ENDPOINT
    ctypedef struct RingHead:
        int32_t kind        # type of the payload: a RECORD_
        int32_t size        # size of the payload [bytes]
        int64_t time        # [ns]
    ctypedef struct Ring:
        uint8_t* room
        int64_t size        # size of `room` [bytes]
        int64_t lost        # records that did not fit
    bint ring_write(Ring* r, int32_t kind, int64_t time, const void* data, int64_t size)
    int64_t ring_padded(int64_t size)
    int64_t ring_waiting(Ring* r)
    void ring_take(Ring* r, void* out, int64_t size)


cdef class RecordRing:
    cdef Ring ring


cdef extern from "motioncue/core/threads.h" nogil:
    enum:
        HISTOGRAM_BINS
    ctypedef struct Histogram:
        int64_t* bins
        int64_t top
    int bin_of "histogram_bin"(int64_t value)
    void record "histogram_record"(Histogram* h, int64_t value)


cdef int64_t quantile(const Histogram* h, double q) noexcept nogil
