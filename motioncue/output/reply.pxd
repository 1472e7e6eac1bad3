"""What a controller answers: described replies, found in datagrams and in what comes over a line, and what they say.

A kernel of the emitting loop: it neither allocates nor waits, and a reply that is not as described is counted.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from motioncue.transports.line cimport mc_line
from motioncue.transports.sockets cimport mc_fd
from motioncue.wire.checksum cimport SealState
from motioncue.wire.codec cimport Row


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
