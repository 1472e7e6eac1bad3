"""Where packets go, and what a controller answers there.

Packets go to datagram sockets, serial lines and shared memory, each with its own packet, and packets beside those of the
motion.  Replies are described ones, found in datagrams and in what comes over a line.  A kernel of the emitting loop:
nothing here allocates or waits; what the system does not take at once is counted and dropped, and so is a reply that is
not as described.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from motioncue.core.records cimport Actuation
from motioncue.core.threads cimport mc_count, mc_store
from motioncue.safety.supervisor cimport FAULTY, FOUND, SILENT, STANDS, STOPPED, UNHEARD, UNREADY
from motioncue.transports.handles cimport (
    ADDRESS_BYTES, MC_UNHEARD, mc_fd, mc_line, mc_line_drain, mc_line_send, mc_line_take, mc_send_to,
)
from motioncue.wire.checksum cimport SealState
from motioncue.wire.codec cimport Outgoing, Row, outgoing


cdef enum:
    PACKETS = 16
    OTHERS = 32
    PACKET_BYTES = 512


cdef extern from * nogil:
    """
    #include "motioncue/core/threads.h"
    #define MC_NEVER INT64_MAX      /* index of a tick that does not come */
    /* [ns] without a report that nobody listens: then somebody does.  Distant hosts report once a second; of one that is
       gone from the network, Linux says so every 3.1 s, after three questions a second apart. */
    #define MC_HEARD_NS 4000000000
    #define MC_TOLD_NS 100000000    /* [ns] most time that a tick may tell of: more has passed without a packet */
    """
    const int64_t NEVER "MC_NEVER"
    const int64_t HEARD_NS "MC_HEARD_NS"
    const int64_t TOLD_NS "MC_TOLD_NS"


cdef extern from "motioncue/transports/memory.h" nogil:
    int write_numbers "mc_write_numbers"(uint8_t* memory, int64_t file, const uint8_t* packet, int size)


cdef enum:
    REPLIES = 4         # most kinds of replies of a controller
    NUMBERS = 24        # most numbers of a reply
    MARKS = 8           # most constants
    REPLY_BYTES = 512   # longest reply
    KEPT_BYTES = 1024   # of a stream, while its reply is incomplete
    TEXT_BYTES = 96     # of what is no reply, kept for the log
    POSITIONS = 12


cdef enum Says:         # what a reply says by yes or no, as flags
    SAYS_READY = 1
    SAYS_ENGAGED = 2
    SAYS_FAULT = 4
    SAYS_STOPPED = 8
    SAYS_MOVING = 16


ctypedef struct Word:   # one number of a reply, and what it says
    int flag            # one of Says; 0: a number
    int slot            # of a number: actuator, POSITIONS for the temperature, or beyond that if nobody asks
    uint32_t mask
    int count           # of `among`; 0: any but zero means yes
    uint32_t among[16]
    double scale        # of a number: in SI units it is the reply's times `scale` plus `bias`
    double bias
    double low          # and the range in which it is believed
    double high
    int at              # of a text: its offset in the text without numbers


ctypedef struct Mark:
    int offset
    int size
    uint8_t bytes[64]


ctypedef struct Reading:        # one kind of reply
    const Row* rows             # of a binary reply, each into the slot of its word; NULL: a text
    int size                    # of it, or of the text without numbers [bytes]
    uint8_t text[REPLY_BYTES]
    SealState* seal             # its checksum; NULL: none
    int length_at               # where it says its payload's length, if zeros at the end of that may be left out
    int payload                 # offset of it; 0: they may not
    Mark marks[MARKS]
    int mark_count
    Word words[NUMBERS]
    int word_count
    bint doubted                # nothing shows that its bytes came unharmed: what it says has to come twice
    int64_t patience            # [ns]; 0: none
    int64_t at                  # when it came last [ns]; 0: never
    int described               # flags of what it can say
    int before                  # flags that it said the time before
    int says                    # flags that are believed


ctypedef struct Heard:          # all that one controller has answered
    Reading readings[REPLIES]
    int count
    int actuators               # of the platform, if it says where each of them is; else 0
    double positions[POSITIONS]     # [m or rad]; NaN: not known
    double doubted[POSITIONS]       # positions that came once only; NaN: none
    double temperature
    uint8_t kept[KEPT_BYTES]
    int kept_size
    int64_t received
    int64_t refused             # replies with numbers that cannot be
    int64_t skipped             # bytes that belong to no reply
    char text[TEXT_BYTES]       # newest of them that can be read, for the log
    int64_t text_size           # 0: there is none


cdef int hear_datagram(Heard* h, const uint8_t* data, int size, int64_t now) noexcept nogil
cdef void hear_stream(Heard* h, const uint8_t* data, int size, int64_t now) noexcept nogil
cdef void read_replies(Heard* h, mc_fd fd, mc_line* line, const uint8_t* host, int64_t now) noexcept nogil
cdef bint placed(const Heard* h) noexcept nogil
cdef void forget(Heard* h) noexcept nogil
cdef int platform_flags(const Heard* h, int64_t now) noexcept nogil


cdef class Replies:
    cdef Heard heard
    cdef list _owned


ctypedef struct Sink:
    mc_fd fd
    char address[ADDRESS_BYTES]
    int address_size
    mc_line* line           # sent to instead, unless it is NULL
    uint8_t* memory         # written to instead, unless it is NULL
    int64_t file            # descriptor of that memory's file; on Windows it has none
    int64_t taken           # when the line took a packet last [ns]; 0: none yet
    int64_t known           # packets that it had taken by then
    bint lost               # the line gets nothing until an operator engages
    Heard* heard            # what is answered there, by `host`; NULL: nothing is read
    uint8_t host[16]
    bint held               # the motion's packets wait until the platform has said where its actuators are
    Outgoing encoding
    int output              # the output whose actuation is encoded
    uint8_t packet[PACKET_BYTES]
    int size
    int64_t sent
    int64_t unheard         # packets sent that nobody listened to, as far as the system reports it
    int64_t refused         # packets that the system refused to send
    int64_t error           # number of the newest refusal's error; 0 before the first
    bint moves              # whether it moves the platform
    bint listened           # whether somebody has listened there in this run
    int64_t troubles        # of `unheard` and `refused`, as many as the last tick knew of
    int64_t troubled        # when the newest of them was [ns]; 0: nothing sent yet
    int64_t trouble         # when the first of them was that have followed one another since [ns]
    int64_t refusals        # of `refused`, as many as the last tick knew of
    bint refusing           # whether the newest of them was a refusal
    bint passed             # and the system has taken what was sent next


ctypedef struct Other:      # a packet that goes to a sink beside those of the motion
    Outgoing encoding
    int sink
    int64_t every           # [ticks]; 0: once, before the packets of the motion
    int64_t due             # index of the tick at which it is sent next
    uint8_t packet[PACKET_BYTES]
    int size


ctypedef struct Sinks:
    Sink rows[PACKETS]
    int count
    Other others[OTHERS]
    int other_count
    int64_t looked          # when it was found out last whether somebody listens [ns]


cdef inline bint send(Sink* s, const uint8_t* packet, int size) noexcept nogil:
    """Send a packet to the output; return whether it was sent."""
    cdef int done
    if s.lost:
        mc_count(&s.refused, 1)
        return False
    if s.line != NULL:
        done = mc_line_send(s.line, packet, size)
    elif s.memory != NULL:
        done = write_numbers(s.memory, s.file, packet, size)
    else:
        done = mc_send_to(s.fd, packet, size, s.address, s.address_size)
    if done < 0:
        mc_store(&s.error, -done)
        mc_count(&s.refused, 1)
        return False
    mc_count(&s.sent, 1)
    if done == MC_UNHEARD:
        mc_count(&s.unheard, 1)
    return True


cdef inline void send_others(Sinks* s, int64_t index, bint first) noexcept nogil:
    """Send the other packets that are due at tick `index`: those that come first, or those with an interval."""
    cdef Other* other
    cdef Sink* sink
    cdef bint sent
    cdef int i
    for i in range(s.other_count):
        other = &s.others[i]
        sink = &s.rows[other.sink]
        if index < other.due or (other.every == 0) != first:
            continue
        sent = not sink.lost and send(sink, other.packet, other.size)
        if other.every:
            other.due = index + other.every
        elif sent:
            other.due = NEVER


cdef inline void encode_all(
    Sinks* s, const Actuation* const* actuations, const int* reported, int64_t index, int64_t deadline
) noexcept nogil:
    """Encode the packets of tick `index` from each output's actuation and the state that its packets report."""
    cdef Sink* sink
    cdef Other* other
    cdef int i, output
    for i in range(s.count):
        sink = &s.rows[i]
        sink.size = outgoing(
            &sink.encoding, <const double*>actuations[sink.output], deadline, reported[sink.output], sink.packet
        )
    for i in range(s.other_count):
        other = &s.others[i]
        if index < other.due:
            continue
        output = s.rows[other.sink].output
        other.size = outgoing(
            &other.encoding, <const double*>actuations[output], deadline, reported[output], other.packet
        )


cdef inline bint send_all(Sinks* s, int64_t index) noexcept nogil:
    """Send the packets of tick `index`; return whether any of the motion's was sent."""
    cdef bint sent = False
    cdef int i
    send_others(s, index, True)
    for i in range(s.count):
        if not s.rows[i].held:
            sent = send(&s.rows[i], s.rows[i].packet, s.rows[i].size) or sent
    send_others(s, index, False)
    return sent


cdef inline int hear_all(Sinks* s, int64_t deadline, int driven, double* feedback) noexcept nogil:
    """Read what has been answered; return what it says about the platforms, as flags.

    `feedback` is filled with where the actuators of the output `driven` are, as far as that is known.
    """
    cdef Sink* sink
    cdef int flags = 0, own, i
    for i in range(s.count):
        sink = &s.rows[i]
        if sink.heard == NULL:
            continue
        if not sink.lost:
            read_replies(sink.heard, sink.fd, sink.line, sink.host, deadline)
        elif sink.line != NULL:
            mc_line_drain(sink.line)    # at each tick: a controller whose answers wait would give old ones later
        own = platform_flags(sink.heard, deadline)
        if sink.output == driven and sink.heard.actuators and placed(sink.heard):
            memcpy(feedback, sink.heard.positions, sink.heard.actuators * sizeof(double))
            if sink.held:
                own |= STANDS | FOUND
            elif own & (UNREADY | FAULTY | STOPPED) and not own & SILENT:
                own |= STANDS
            sink.held = False
        flags |= own
    return flags


cdef inline int unheard(Sinks* s, int64_t deadline, int64_t hold) noexcept nogil:
    """Return UNHEARD if what moves the platform has reached nobody for longer than `hold` [ns], or until just now.

    Who comes back must not meet the middle of a motion.  Where nobody has listened yet, the engine runs for who looks on.
    """
    cdef Sink* sink
    cdef int64_t untold = max(0, deadline - s.looked - TOLD_NS)
    cdef int64_t troubles
    cdef int flags = 0, i
    s.looked = deadline
    for i in range(s.count):
        sink = &s.rows[i]
        if not sink.moves or sink.line != NULL or sink.memory != NULL:
            continue
        troubles = sink.unheard + sink.refused
        if sink.troubled == 0:
            sink.troubled = sink.trouble = deadline
        else:       # while the machine slept, nothing was sent: that nothing was reported tells nothing
            sink.troubled, sink.trouble = sink.troubled + untold, sink.trouble + untold
        if troubles != sink.troubles:
            if deadline - sink.troubled > HEARD_NS or sink.passed:
                sink.trouble = deadline
            sink.refusing, sink.passed = sink.refused != sink.refusals, False
            sink.troubles, sink.troubled, sink.refusals = troubles, deadline, sink.refused
        elif sink.refusing and sink.troubled - sink.trouble <= hold:
            sink.passed = True      # a refusal is told at once: unlike a listener's absence, it is over with the next packet
        if deadline - sink.troubled > HEARD_NS:
            sink.listened = True
        elif sink.listened and sink.troubled - sink.trouble > hold:
            flags = UNHEARD
    return flags


cdef inline bint any_lost(Sinks* s, int64_t deadline, int64_t hold, int64_t* since) noexcept nogil:
    """Find out which lines are lost: gone, or without a packet taken for longer than `hold` [ns]; return whether any is.

    `since` becomes the time for which it has taken nothing [ns].
    """
    cdef Sink* sink
    cdef int64_t silent
    cdef bint lost = False
    cdef int i
    for i in range(s.count):
        sink = &s.rows[i]
        if sink.line == NULL:
            continue
        if sink.taken == 0 or sink.held or sink.known != sink.sent:
            sink.known = sink.sent
            sink.taken = deadline
        silent = deadline - sink.taken
        if not sink.lost and (sink.line.gone != 0 or silent > hold):
            sink.lost = True
            if sink.heard != NULL:
                forget(sink.heard)      # nobody listens from now on, and the platform may go anywhere
        if sink.lost:
            lost = True
            since[0] = silent
    return lost


cdef inline void take_back(Sinks* s, int64_t deadline, int driven) noexcept nogil:
    """Send again to lost lines that are back, first the packets that come first, those of the motion once it has said where it is."""
    cdef Sink* sink
    cdef int i, j
    for i in range(s.count):
        sink = &s.rows[i]
        if sink.line != NULL and sink.lost and mc_line_take(sink.line):
            sink.lost = False
            sink.taken = deadline
            sink.held = sink.heard != NULL and sink.output == driven and sink.heard.actuators > 0
            for j in range(s.other_count):
                if s.others[j].sink == i and s.others[j].every == 0:
                    s.others[j].due = 0
