"""The seal of a packet, written last: a counter and a checksum."""

from libc.stdint cimport uint8_t, uint32_t


cdef enum Checksum:
    CHECKSUM_NONE
    CHECKSUM_SUM            # sum of the bytes, modulo 2^bits of the checksum
    CHECKSUM_XOR
    CHECKSUM_CRC16          # CRC-16/CCITT-FALSE: polynomial 1021, initial ffff, most significant bit first
    CHECKSUM_CRC32          # IEEE 802.3: polynomial 04c11db7 reflected, initial and final ffffffff


ctypedef struct SealState:
    int counter_at          # [bytes]
    int counter_size        # [bytes]; 0: no counter
    uint32_t count
    Checksum kind
    int first               # start and end of the bytes that the checksum covers
    int end
    int checksum_at
    int checksum_size
    bint big                # the most significant byte comes first


cdef inline void put_unsigned(uint8_t* p, uint32_t value, int size, bint big) noexcept nogil:
    cdef int i
    for i in range(size):
        p[size - 1 - i if big else i] = (value >> (8 * i)) & 255


cdef inline uint32_t checksum(Checksum kind, const uint8_t* p, int n) noexcept nogil:
    cdef uint32_t value = 0
    cdef int i, bit
    if kind == CHECKSUM_CRC16:
        value = 0xFFFF
    elif kind == CHECKSUM_CRC32:
        value = 0xFFFFFFFFu
    for i in range(n):
        if kind == CHECKSUM_SUM:
            value += p[i]
        elif kind == CHECKSUM_XOR:
            value ^= p[i]
        elif kind == CHECKSUM_CRC16:
            value ^= <uint32_t>p[i] << 8
            for bit in range(8):
                value = ((value << 1) ^ (0x1021 * (value >> 15 & 1))) & 0xFFFF
        else:
            value ^= p[i]
            for bit in range(8):
                value = (value >> 1) ^ (0xEDB88320u * (value & 1))
    return ~value if kind == CHECKSUM_CRC32 else value


cdef inline void seal(SealState* s, uint8_t* packet) noexcept nogil:
    """Write the count, then the checksum."""
    if s.counter_size:
        put_unsigned(packet + s.counter_at, s.count, s.counter_size, s.big)
        s.count += 1
    if s.kind != CHECKSUM_NONE:
        put_unsigned(
            packet + s.checksum_at, checksum(s.kind, packet + s.first, s.end - s.first), s.checksum_size, s.big
        )


cdef class Seal:
    cdef SealState state
