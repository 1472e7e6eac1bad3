"""The settings of a packet's counter and checksum; the pxd computes them."""

from libc.stdint cimport uint8_t
from libc.string cimport memset

__all__ = ["CHECKSUMS", "Seal"]

CHECKSUMS = {"sum8": 1, "xor8": 1, "sum16": 2, "crc16": 2, "crc32": 4}
"""Kinds of checksums and their sizes [bytes]."""

KINDS = {
    "sum8": CHECKSUM_SUM, "xor8": CHECKSUM_XOR, "sum16": CHECKSUM_SUM, "crc16": CHECKSUM_CRC16, "crc32": CHECKSUM_CRC32,
}


cdef class Seal:
    """Writes a packet's counter and checksum.

    Parameters
    ----------
    counter : tuple of (int, int), optional
        Offset and size [bytes].
    checksum : tuple of (str, int, int, int), optional
        Kind, offset, and start and end of the bytes that it covers.
    big : bool
        Whether the most significant byte comes first.

    Raises
    ------
    ValueError
        If the kind of checksum does not exist.
    """

    def __init__(self, counter=None, checksum=None, bint big=False):
        cdef SealState* s = &self.state
        memset(s, 0, sizeof(SealState))
        s.big = big
        if counter is not None:
            s.counter_at, s.counter_size = counter
        if checksum is not None:
            kind, s.checksum_at, s.first, s.end = checksum
            if kind not in KINDS:
                raise ValueError(f"checksum: found {kind!r}, allowed are {', '.join(KINDS)}")
            s.kind, s.checksum_size = KINDS[kind], CHECKSUMS[kind]

    def sealed(self, const unsigned char[::1] packet not None):
        """Return a copy of `packet` with the next count and the checksum.

        Parameters
        ----------
        packet : bytes-like
            Must be long enough for the offsets.
        """
        copy = bytearray(packet)
        cdef unsigned char[::1] view = copy
        seal(&self.state, <uint8_t*>&view[0])
        return bytes(copy)
