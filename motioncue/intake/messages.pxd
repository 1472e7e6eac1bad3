"""Which message of a system a package is, by its size and its constant bytes, and what is answered to it."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from motioncue.kernels.codec cimport Row
from motioncue.kernels.reasons cimport ACCEPTED, ENVELOPE, SIZE, TYPE


cdef enum:
    MESSAGES = 128
    CONSTANTS = 8
    CONSTANT_BYTES = 24
    REPLY_BYTES = 512

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
    uint64_t absent         # of the telemetry's doubles, one bit each: those that only other messages of motion fill
    Reply reply


ctypedef struct Messages:
    Message rows[MESSAGES]  # the most particular first, those without a mark last
    int count
    Reply unknown           # answer to a package of no known type


cdef inline bint holds(const Constant* c, const uint8_t* package, int size) noexcept nogil:
    cdef int offset = c.offset if c.offset >= 0 else size + c.offset
    return offset >= 0 and offset + c.size <= size and memcmp(package + offset, c.bytes, c.size) == 0


cdef inline int match(const Message* m, const uint8_t* package, int size) noexcept nogil:
    """Return ACCEPTED if the package is this message, else how far it is from it: ENVELOPE, SIZE or TYPE."""
    cdef int i
    if m.constant_count and not holds(&m.constants[0], package, size):
        return TYPE
    if not m.smallest <= size <= m.largest:
        return SIZE if m.constant_count else TYPE
    for i in range(1, m.constant_count):
        if not holds(&m.constants[i], package, size):
            return ENVELOPE
    return ACCEPTED


cdef inline bint nearer(int reason, int than) noexcept nogil:
    return than == TYPE or (than == SIZE and reason == ENVELOPE)


cdef inline int find_message(const Messages* m, const uint8_t* package, int size, int* near) noexcept nogil:
    """Return ACCEPTED and the place of the message that a package is; else why it is none, and the nearest, or -1."""
    cdef int reason = TYPE
    cdef int i, found
    near[0] = -1
    for i in range(m.count):
        if near[0] >= 0 and m.rows[near[0]].marked and not m.rows[i].marked:
            break
        found = match(&m.rows[i], package, size)
        if found == ACCEPTED or (found != TYPE and nearer(found, reason)):
            reason, near[0] = found, i
        if found == ACCEPTED:
            break
    return reason


cdef inline int reply_write(const Reply* reply, const uint8_t* package, int size, uint8_t* out) noexcept nogil:
    """Write the answer to a package; return its size."""
    memcpy(out, reply.bytes, reply.size)
    if reply.echo_from + reply.echo_size <= size:
        memcpy(out + reply.echo_to, package + reply.echo_from, reply.echo_size)
    return reply.size


cdef int add_message(Messages* m, message) except -1
cdef void set_absent(Messages* m) noexcept
cdef Reply make_reply(bytes data, echo) except *
