"""The settings of a packet's counter, clock, state and checksum; the pxd writes them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from typing import NamedTuple


class Sum(NamedTuple):
    """A checksum without division: the sum of the bytes, or their exclusive or."""

    bits: int                   # 8 or 16
    exclusive: bool = False     # exclusive or instead of the sum
    final: int = 0              # combined with the result by exclusive or
    negated: bool = False       # the two's complement is sent


class Crc(NamedTuple):
    """A cyclic redundancy check, in the parameters of G. Cook's catalogue (reveng.sourceforge.io/crc-catalogue)."""

    bits: int                   # 8, 16 or 32
    polynomial: int             # without its highest term, most significant bit first
    initial: int                # contents of the register at the beginning, most significant bit first
    reflected: bool             # whether the least significant bit of each byte, and of the result, comes first
    final: int                  # combined with the result by exclusive or


CHECKSUMS = {
    "sum8": Sum(8),
    "sum8-inverted": Sum(8, final=0xFF),
    "sum8-negated": Sum(8, negated=True),
    "sum16": Sum(16),
    "xor8": Sum(8, exclusive=True),
    "crc8-smbus": Crc(8, 0x07, 0x00, False, 0x00),
    "crc8-maxim": Crc(8, 0x31, 0x00, True, 0x00),
    "crc8-sae-j1850": Crc(8, 0x1D, 0xFF, False, 0xFF),
    "crc16-arc": Crc(16, 0x8005, 0x0000, True, 0x0000),
    "crc16-ccitt-false": Crc(16, 0x1021, 0xFFFF, False, 0x0000),
    "crc16-dnp": Crc(16, 0x3D65, 0x0000, True, 0xFFFF),
    "crc16-genibus": Crc(16, 0x1021, 0xFFFF, False, 0xFFFF),
    "crc16-kermit": Crc(16, 0x1021, 0x0000, True, 0x0000),
    "crc16-maxim": Crc(16, 0x8005, 0x0000, True, 0xFFFF),
    "crc16-mcrf4xx": Crc(16, 0x1021, 0xFFFF, True, 0x0000),
    "crc16-modbus": Crc(16, 0x8005, 0xFFFF, True, 0x0000),
    "crc16-spi-fujitsu": Crc(16, 0x1021, 0x1D0F, False, 0x0000),
    "crc16-umts": Crc(16, 0x8005, 0x0000, False, 0x0000),
    "crc16-usb": Crc(16, 0x8005, 0xFFFF, True, 0xFFFF),
    "crc16-x25": Crc(16, 0x1021, 0xFFFF, True, 0xFFFF),
    "crc16-xmodem": Crc(16, 0x1021, 0x0000, False, 0x0000),
    "crc32": Crc(32, 0x04C11DB7, 0xFFFFFFFF, True, 0xFFFFFFFF),
    "crc32-bzip2": Crc(32, 0x04C11DB7, 0xFFFFFFFF, False, 0xFFFFFFFF),
    "crc32-mpeg-2": Crc(32, 0x04C11DB7, 0xFFFFFFFF, False, 0x00000000),
    "crc32c": Crc(32, 0x1EDC6F41, 0xFFFFFFFF, True, 0xFFFFFFFF),
}
"""The checksums by name."""


class SealedNumber(NamedTuple):
    """A counter or a clock of a packet."""

    offset: int                 # in the packet [bytes]
    size: int                   # 1, 2 or 4 [bytes]
    big: bool = False           # whether the most significant byte comes first
    unit_ns: int = 1_000_000    # of a clock [ns]


class SealedState(NamedTuple):
    """The supervisor's state in a packet."""

    offset: int                 # in the packet [bytes]
    size: int                   # 1, 2 or 4 [bytes]
    big: bool                   # whether the most significant byte comes first
    words: tuple[int, ...]      # what is sent for each `State`, in their order, and while the platform rises


class SealedLife(NamedTuple):
    """A bit of a packet that changes again and again."""

    offset: int                 # of its byte in the packet [bytes]
    bit: int = 0                # its place in that byte, from 0
    every_ns: int = 0           # time after which it changes [ns]; 0: with every packet


class CheckedBytes(NamedTuple):
    """A checksum of a packet."""

    kind: str                   # a key of `CHECKSUMS`
    offset: int                 # in the packet [bytes]
    first: int                  # start and end of the bytes that it covers
    end: int
    big: bool = False           # whether its most significant byte comes first
    extra: bytes = b""          # up to eight bytes that it covers after those, and that are not sent


class CheckedText(NamedTuple):
    """A checksum of a text packet, as hexadecimal digits behind all of its numbers."""

    kind: str                   # a key of `CHECKSUMS`
    tail: int                   # bytes from its first digit to the end of the packet
    first: int = 0              # start of the bytes that it covers, from the beginning of the packet
    end: int = 0                # their end, from its own first digit: 0 or negative
    lower: bool = False         # whether the digits are a to f instead of A to F
    extra: bytes = b""          # as in `CheckedBytes`


cdef class Seal:
    """Writes a packet's counter, clock, state, life bit and checksum."""

    def __init__(self, counter=None, checksum=None, clock=None, state=None, life=None):
        cdef SealState* s = &self.state
        memset(s, 0, sizeof(SealState))
        if counter is not None:
            s.counter_at, s.counter_size, s.counter_big = counter.offset, counter.size, counter.big
        if clock is not None:
            s.clock_at, s.clock_size, s.clock_big, s.clock_unit = clock.offset, clock.size, clock.big, clock.unit_ns
        if state is not None:
            s.state_at, s.state_size, s.state_big = state.offset, state.size, state.big
            for i in range(<int>WORDS):
                s.words[i] = state.words[i]
        if life is not None:
            s.life_at, s.life, s.life_every = life.offset, 1 << life.bit, life.every_ns
        if checksum is not None:
            kind = CHECKSUMS.get(checksum.kind)
            if kind is None or len(checksum.extra) > EXTRA:
                raise ValueError(
                    f"checksum: found {checksum.kind!r} with {len(checksum.extra)} extra bytes, allowed are "
                    f"{', '.join(CHECKSUMS)} with up to {EXTRA}"
                )
            s.first, s.end = checksum.first, checksum.end
            if isinstance(checksum, CheckedText):
                s.tail, s.digits, s.lower = checksum.tail, kind.bits // 4, checksum.lower
            else:
                s.checksum_at, s.checksum_big = checksum.offset, checksum.big
            s.bits, s.checksum_size, s.final = kind.bits, kind.bits // 8, kind.final
            for i, byte in enumerate(checksum.extra):
                s.extra[i] = byte
            s.extra_size = len(checksum.extra)
            if isinstance(kind, Crc):
                prepare_crc(s, kind.polynomial, kind.initial, kind.reflected)
            else:
                s.kind, s.negated = CHECKSUM_XOR if kind.exclusive else CHECKSUM_SUM, kind.negated

    def sealed(self, const unsigned char[::1] packet not None, int64_t now_ns=0, int state=0):
        """Return a copy of `packet` with the next count, the time, the state and the checksum."""
        if not 0 <= state < <int>WORDS:
            raise ValueError(f"state: found {state}, allowed are 0 to {<int>WORDS - 1}")
        copy = bytearray(packet)
        cdef unsigned char[::1] view = copy
        if self.state.digits:
            seal_text(&self.state, <uint8_t*>&view[0], len(copy))
        else:
            seal(&self.state, <uint8_t*>&view[0], now_ns, state)
        return bytes(copy)


cdef void prepare_crc(SealState* s, uint32_t polynomial, uint32_t initial, bint reflected) except *:
    """Fill the table of a cyclic redundancy check, whose register holds the result in its low bits."""
    cdef uint32_t value, top = <uint32_t>1 << (s.bits - 1)
    cdef int byte, bit
    s.kind, s.reflected = CHECKSUM_CRC, reflected
    s.initial = mirrored(initial, s.bits) if reflected else initial
    polynomial = mirrored(polynomial, s.bits) if reflected else polynomial
    for byte in range(256):
        value = byte if reflected else <uint32_t>byte << (s.bits - 8)
        for bit in range(8):
            if reflected:
                value = (value >> 1) ^ (polynomial if value & 1 else 0)
            else:
                value = (value << 1) ^ (polynomial if value & top else 0)
        s.table[byte] = value


cdef uint32_t mirrored(uint32_t value, int bits) noexcept:
    """Return the lowest bits in reverse order."""
    cdef uint32_t out = 0
    cdef int bit
    for bit in range(bits):
        out |= (value >> bit & 1) << (bits - 1 - bit)
    return out
