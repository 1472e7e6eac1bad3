"""What a package is: deciphered, found among a system's messages by size and constant bytes, answered."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from motioncue.core.threads cimport ACCEPTED, ENVELOPE, SIZE, TYPE
from motioncue.wire.codec cimport Row


cdef enum:
    MESSAGES = 128
    CONSTANTS = 8
    CONSTANT_BYTES = 24
    REPLY_BYTES = 512
    MC_CIPHER_BYTES = 2048      # largest packet that is deciphered

cdef enum Role:
    ROLE_AXES       # announces the car's axes; begins or renews the session
    ROLE_MOTION     # carries the vehicle's state
    ROLE_PART       # carries some of it, used by the next motion
    ROLE_NEEDED     # as ROLE_PART, and without it there is no motion
    ROLE_OTHER      # belongs to the system, but carries nothing of the motion


ctypedef struct mc_cipher:      # Salsa20, for packets that carry their own nonce
    uint32_t key[8]
    uint32_t mask[2]        # combined with the nonce by exclusive or
    int nonce[2]            # offsets of the nonce's halves, which are not enciphered themselves
    bint used


ctypedef struct Constant:
    uint8_t bytes[CONSTANT_BYTES]
    uint8_t mask[CONSTANT_BYTES]    # the bits that count
    bint masked             # not all do
    int offset              # offset in the package; from its end if negative
    int size


ctypedef struct Reply:
    uint8_t bytes[REPLY_BYTES]
    int size
    int echo_from           # offset in the package of bytes that are copied into the reply
    int echo_to
    int echo_size


ctypedef struct Message:
    Row* rows
    int row_count
    Row* chassis            # what the package says of wheels, suspension and cab, into a record of its own
    int chassis_count
    int smallest            # size of the whole package [bytes]
    int largest
    Constant constants[CONSTANTS]
    int constant_count      # the first identifies the message; the others must hold too
    bint marked             # the first constant is not all zeros
    Role role
    uint64_t absent         # one bit for each double of the telemetry: set if only other motion messages fill it
    Reply reply


ctypedef struct Messages:
    Message rows[MESSAGES]  # the most specific first, unmarked ones last
    int count
    Reply unknown           # reply to a package of unknown type


cdef inline bint holds(const Constant* c, const uint8_t* package, int size) noexcept nogil:
    cdef int offset = c.offset if c.offset >= 0 else size + c.offset
    cdef int i
    if offset < 0 or offset + c.size > size:
        return False
    if not c.masked:
        return memcmp(package + offset, c.bytes, c.size) == 0
    for i in range(c.size):
        if (package[offset + i] ^ c.bytes[i]) & c.mask[i]:
            return False
    return True


cdef inline int match(const Message* m, const uint8_t* package, int size) noexcept nogil:
    """Return ACCEPTED if the package is this message; otherwise the mismatch, from near to far: ENVELOPE, SIZE,
    TYPE."""
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
    """Return ACCEPTED and, in `near`, the package's message; otherwise the mismatch and the nearest message, or -1."""
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
    """Write the reply to a package; return its size."""
    memcpy(out, reply.bytes, reply.size)
    if reply.echo_from + reply.echo_size <= size:
        memcpy(out + reply.echo_to, package + reply.echo_from, reply.echo_size)
    return reply.size


cdef bint mc_cipher_apply(const mc_cipher* c, const uint8_t* packet, int size, uint8_t* out) noexcept nogil
cdef void decode_chassis(const Message* m, const uint8_t* package, double* out) noexcept nogil
cdef int add_message(Messages* m, message) except -1
cdef void set_absent(Messages* m) noexcept
cdef Reply make_reply(bytes data, echo) except *


cdef class Cipher:
    cdef mc_cipher cipher
