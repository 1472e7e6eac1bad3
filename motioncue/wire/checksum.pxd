"""The seal of a packet, written last: a counter, a clock, the supervisor's state, a life bit and a checksum."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef enum:
    EXTRA = 8               # most bytes that a checksum covers after those of the packet
    WORDS = 7               # states of the supervisor, and rising


cdef enum Checksum:
    CHECKSUM_NONE
    CHECKSUM_SUM            # sum of the bytes, modulo 2^bits of the checksum
    CHECKSUM_XOR
    CHECKSUM_CRC            # remainder of a polynomial division, by table


ctypedef struct SealState:
    int counter_at          # [bytes]
    int counter_size        # [bytes]; 0: no counter
    bint counter_big        # the most significant byte comes first
    uint32_t count
    int clock_at            # [bytes]
    int clock_size          # [bytes]; 0: no clock
    bint clock_big
    int64_t clock_unit      # [ns]
    int64_t began           # time of the first packet [ns]
    bint running            # a packet has been sent
    int state_at            # [bytes]
    int state_size          # [bytes]; 0: no state
    bint state_big
    uint32_t words[WORDS]   # what is sent for each state
    int life_at             # [bytes]
    uint8_t life            # the bit that changes again and again; 0: none
    int64_t life_every      # [ns]; 0: with every packet
    int64_t lives           # packets so far
    Checksum kind
    int first               # start and end of the bytes that the checksum covers
    int end                 # of a text: counted back from the checksum
    int checksum_at
    int checksum_size
    bint checksum_big
    uint8_t extra[EXTRA]    # bytes that it covers after those, and that are not sent
    int extra_size
    int tail                # of a text: bytes from the checksum's first digit to the end of the packet
    int digits              # of a text: hexadecimal digits of the checksum; 0: it is in bytes
    bint lower              # of a text: digits from a to f instead of A to F
    int bits                # 8, 16 or 32
    bint reflected          # the least significant bit comes first
    uint32_t initial
    uint32_t final          # combined with the result by exclusive or
    bint negated            # the two's complement is sent
    uint32_t table[256]     # remainder of each byte


cdef inline void put_unsigned(uint8_t* p, uint32_t value, int size, bint big) noexcept nogil:
    cdef int i
    for i in range(size):
        p[size - 1 - i if big else i] = (value >> (8 * i)) & 255


cdef inline uint32_t checked(const SealState* s, uint32_t value, const uint8_t* p, int n) noexcept nogil:
    """Return the checksum's register after some more bytes."""
    cdef int i
    for i in range(n):
        if s.kind == CHECKSUM_SUM:
            value += p[i]
        elif s.kind == CHECKSUM_XOR:
            value ^= p[i]
        elif s.reflected:
            value = (value >> 8) ^ s.table[(value ^ p[i]) & 255]
        else:
            value = (value << 8) ^ s.table[(value >> (s.bits - 8) ^ p[i]) & 255]
    return value


cdef inline uint32_t checksum(const SealState* s, const uint8_t* packet, int end) noexcept nogil:
    """Return the checksum of the packet's bytes from the first to the one before `end`."""
    cdef uint32_t value = checked(s, s.initial, packet + s.first, end - s.first)
    value = checked(s, value, s.extra, s.extra_size) ^ s.final
    return 0 - value if s.negated else value


cdef inline void seal(SealState* s, uint8_t* packet, int64_t now, int state) noexcept nogil:
    """Write the count, the time since the first packet, the supervisor's state and the life bit, then the checksum."""
    cdef int64_t alive
    if not s.running:
        s.running = True
        s.began = now
    if s.counter_size:
        put_unsigned(packet + s.counter_at, s.count, s.counter_size, s.counter_big)
        s.count += 1
    if s.clock_size:
        put_unsigned(
            packet + s.clock_at, <uint32_t>((now - s.began) // s.clock_unit), s.clock_size, s.clock_big
        )
    if s.state_size:
        put_unsigned(packet + s.state_at, s.words[state], s.state_size, s.state_big)
    if s.life:
        alive = (now - s.began) // s.life_every if s.life_every else s.lives
        packet[s.life_at] = packet[s.life_at] | s.life if alive & 1 else packet[s.life_at] & ~s.life
        s.lives += 1
    if s.kind != CHECKSUM_NONE:
        put_unsigned(packet + s.checksum_at, checksum(s, packet, s.end), s.checksum_size, s.checksum_big)


cdef inline void seal_text(const SealState* s, uint8_t* packet, int size) noexcept nogil:
    """Write the checksum of a text of `size` bytes as hexadecimal digits."""
    cdef int at = size - s.tail
    cdef uint32_t value = checksum(s, packet, at + s.end)
    cdef int i, digit
    for i in range(s.digits):
        digit = (value >> (4 * (s.digits - 1 - i))) & 15
        packet[at + i] = 48 + digit if digit < 10 else (87 if s.lower else 55) + digit


cdef class Seal:
    cdef SealState state
