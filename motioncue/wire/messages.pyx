"""Compilation of a protocol's messages, and the settings of its cipher; the pxd has the search."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from motioncue.wire.codec cimport Table, decode

from typing import NamedTuple

CIPHER_BYTES = MC_CIPHER_BYTES
"""Largest packet that is deciphered [bytes]."""

ROLES = {"axes": ROLE_AXES, "motion": ROLE_MOTION, "part": ROLE_PART, "needed": ROLE_NEEDED, "other": ROLE_OTHER}


class Echo(NamedTuple):
    """Bytes of a package that the reply repeats."""

    start: int = 0              # offset in the package
    to: int = 0                 # offset in the reply
    size: int = 0               # number of bytes


class Heartbeat(NamedTuple):
    """A datagram that a simulator has to hear again and again, or it sends nothing."""

    data: bytes
    port: int                   # the simulator's
    every_s: float              # time from one to the next [s]


class CompiledMessage(NamedTuple):
    """One message of a system, in the form that `motioncue.frames.intake.Intake` takes."""

    table: Table                # the numbers to decode
    smallest: int               # size of the whole package, in its shortest and its longest form [bytes]
    largest: int
    constants: list             # (offset, bytes), and a mask if not all of their bits count; the first identifies the
                                # message, the others must hold too
    role: str                   # what the message contributes to the motion: a key of `ROLES`
    reply: bytes = b""          # empty if it wants none
    echo: Echo = Echo()         # bytes that the reply repeats
    chassis: Table | None = None    # the numbers of wheels, suspension and cab; one that is not finite or implausible
                                    # is NaN and refuses no package


cdef Reply make_reply(bytes data, echo) except *:
    cdef Reply reply
    memset(&reply, 0, sizeof(Reply))
    if len(data) > REPLY_BYTES:
        raise ValueError(f"reply: found {len(data)} bytes, allowed are {REPLY_BYTES}")
    memcpy(reply.bytes, <const uint8_t*>data, len(data))
    reply.size = len(data)
    reply.echo_from, reply.echo_to, reply.echo_size = echo.start, echo.to, echo.size
    if reply.echo_to + reply.echo_size > reply.size or min(echo) < 0:
        raise ValueError(f"echo: found {echo}, allowed is what fits into the reply's {len(data)} bytes")
    return reply


cdef int set_constants(Message* m, constants) except -1:
    cdef Constant* c
    if len(constants) > CONSTANTS:
        raise ValueError(f"constants: found {len(constants)}, allowed are {CONSTANTS}")
    for offset, data, *mask in constants:
        c = &m.constants[m.constant_count]
        if not 0 < len(data) <= CONSTANT_BYTES:
            raise ValueError(f"constant: found {len(data)} bytes, allowed are 1 to {CONSTANT_BYTES}")
        memcpy(c.bytes, <const uint8_t*><bytes>data, len(data))
        c.offset, c.size = offset, len(data)
        c.masked = bool(mask)
        if c.masked:
            if len(mask[0]) != len(data):
                raise ValueError(f"mask: found {len(mask[0])} bytes, allowed are {len(data)}")
            memcpy(c.mask, <const uint8_t*><bytes>mask[0], len(data))
        if m.constant_count == 0:
            m.marked = any(data)
        m.constant_count += 1
    return 0


cdef void decode_chassis(const Message* m, const uint8_t* package, double* out) noexcept nogil:
    """Decode what a package says of wheels, suspension and cab; apart, so that others have `decode` in line."""
    decode(m.chassis, m.chassis_count, package, out)    # all of it is optional, so nothing is refused


cdef int add_message(Messages* m, message) except -1:
    """Add a CompiledMessage; raise ValueError if it does not fit."""
    cdef Message* row = &m.rows[m.count]
    cdef Table table = message.table
    cdef Table chassis
    if m.count == MESSAGES:
        raise ValueError(f"messages: allowed are {MESSAGES}")
    row.rows, row.row_count = table.rows, table.n
    if message.chassis is not None:
        chassis = message.chassis
        row.chassis, row.chassis_count = chassis.rows, chassis.n
    row.smallest, row.largest = message.smallest, message.largest
    row.role = ROLES[message.role]
    row.reply = make_reply(message.reply, message.echo)
    set_constants(row, message.constants)
    if table.size > row.smallest:
        raise ValueError(f"message: found {row.smallest} bytes, allowed are {table.size} or more, as the table reads")
    m.count += 1
    return 0


cdef uint64_t filled(const Message* m) noexcept:
    """Return the telemetry's doubles that a message fills, one bit each."""
    cdef uint64_t slots = 0
    cdef int i
    for i in range(m.row_count):
        slots |= <uint64_t>1 << m.rows[i].slot
    return slots


cdef void set_absent(Messages* m) noexcept:
    """Set `absent` of each motion message: the doubles that only other motion messages fill."""
    cdef uint64_t motions = 0
    cdef uint64_t parts = 0
    cdef int i
    for i in range(m.count):
        if m.rows[i].role == ROLE_MOTION:
            motions |= filled(&m.rows[i])
        else:
            parts |= filled(&m.rows[i])
    for i in range(m.count):
        if m.rows[i].role == ROLE_MOTION:
            m.rows[i].absent = motions & ~(parts | filled(&m.rows[i]))


# Salsa20 with 20 rounds and a key of 32 bytes.  D. J. Bernstein, "Salsa20 specification", 2005: quarterround (section 3),
# rows and columns (4, 5), expansion (9).

cdef inline uint32_t word_of(const uint8_t* data) noexcept nogil:
    return data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24


cdef inline uint32_t turned(uint32_t word, int bits) noexcept nogil:
    return word << bits | word >> (32 - bits)


cdef inline void quarter(uint32_t* x, int a, int b, int c, int d) noexcept nogil:
    x[b] ^= turned(x[a] + x[d], 7)
    x[c] ^= turned(x[b] + x[a], 9)
    x[d] ^= turned(x[c] + x[b], 13)
    x[a] ^= turned(x[d] + x[c], 18)


cdef void salsa20(const uint32_t* key, const uint32_t* nonce, uint32_t block, uint32_t* out) noexcept nogil:
    cdef uint32_t* start = [
        0x61707865, key[0], key[1], key[2], key[3], 0x3320646E, nonce[0], nonce[1],
        block, 0, 0x79622D32, key[4], key[5], key[6], key[7], 0x6B206574,
    ]
    cdef int i
    memcpy(out, start, 16 * sizeof(uint32_t))
    for i in range(10):
        quarter(out, 0, 4, 8, 12)
        quarter(out, 5, 9, 13, 1)
        quarter(out, 10, 14, 2, 6)
        quarter(out, 15, 3, 7, 11)
        quarter(out, 0, 1, 2, 3)
        quarter(out, 5, 6, 7, 4)
        quarter(out, 10, 11, 8, 9)
        quarter(out, 15, 12, 13, 14)
    for i in range(16):
        out[i] += start[i]


cdef bint mc_cipher_apply(const mc_cipher* c, const uint8_t* packet, int size, uint8_t* out) noexcept nogil:
    """Write the packet enciphered, or deciphered, to `out`, which may not be the packet; return whether its size allows it.

    The nonce stays as it is.
    """
    cdef uint32_t nonce[2]
    cdef uint32_t key[16]
    cdef int i
    if size > MC_CIPHER_BYTES or size < c.nonce[0] + 4 or size < c.nonce[1] + 4:
        return False
    for i in range(2):
        nonce[i] = word_of(packet + c.nonce[i]) ^ c.mask[i]
    for i in range(size):
        if i & 63 == 0:
            salsa20(c.key, nonce, <uint32_t>i >> 6, key)
        out[i] = packet[i] ^ <uint8_t>(key[(i & 63) >> 2] >> ((i & 3) * 8))
    for i in range(2):
        memcpy(out + c.nonce[i], packet + c.nonce[i], 4)
    return True


cdef class Cipher:
    """Salsa20 (D. J. Bernstein, "Salsa20 specification", 2005) for packets that carry their nonce, not enciphered.

    `nonce` has the offsets of its halves [bytes].  Real time: `mc_cipher_apply` allocates nothing and cannot fail.
    """

    def __init__(self, bytes key not None, nonce, bytes mask not None=bytes(8)):
        cdef int i
        if len(key) != 32 or len(mask) != 8:
            raise ValueError(f"found a key of {len(key)} bytes and a mask of {len(mask)}, allowed are 32 and 8")
        for i in range(8):
            self.cipher.key[i] = word_of(<const uint8_t*>key + 4 * i)
        for i in range(2):
            self.cipher.mask[i] = word_of(<const uint8_t*>mask + 4 * i)
            self.cipher.nonce[i] = nonce[i]
            if not 0 <= self.cipher.nonce[i] <= MC_CIPHER_BYTES - 4:
                raise ValueError(f"found the nonce at {nonce[i]}, allowed are 0 to {MC_CIPHER_BYTES - 4}")
        self.cipher.used = True

    def applied(self, bytes packet not None):
        """Return the packet deciphered, or a deciphered one enciphered.

        A packet whose size allows neither is returned unchanged.
        """
        cdef uint8_t out[MC_CIPHER_BYTES]
        if not mc_cipher_apply(&self.cipher, <const uint8_t*>packet, <int>min(len(packet), MC_CIPHER_BYTES + 1), out):
            return packet
        return out[:len(packet)]
