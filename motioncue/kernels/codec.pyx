"""Compile a packet layout into the table that the loops read."""

from libc.stdlib cimport calloc, free

from typing import NamedTuple

import numpy as np

__all__ = ["Number", "Table"]

FORMATS = {
    "<f4": F4, "<f8": F8, "|i1": I1, "|u1": U1, "<i2": I2, "<u2": U2, "<i4": I4, "<u4": U4, "<i8": I8, "<f8 whole": N8,
}


class Number(NamedTuple):
    """One number of a packet and its place in the record of doubles.

    Attributes
    ----------
    offset : int
        Offset in the packet [bytes].
    dtype : dtype
        NumPy dtype in the packet.
    place : int
        Index of the double in the record.
    scale : float
        Decoding multiplies the number by this.
    limit : float
        Largest magnitude accepted, before scaling; infinity and NaN exceed any limit.
    absent : float
        Number encoded when the double is NaN.
    optional : bool
        A number that would be refused is decoded to NaN instead.
    bias : float
        Added after scaling: when decoding to the double, when encoding to the packet's number; -0.0 changes nothing, not
        even the sign of a zero.
    whole : bool
        For an f8: refuse anything but whole numbers from 0 on.
    """

    offset: int
    dtype: object
    place: int
    scale: float = 1.0
    limit: float = float("inf")
    absent: float = 0.0
    optional: bool = False
    bias: float = -0.0
    whole: bool = False


cdef class Table:
    """A compiled packet: which bytes go to and come from which doubles.

    Parameters
    ----------
    size : int
        Packet size [bytes].
    numbers : sequence of Number
        The numbers to read or write.

    Raises
    ------
    ValueError
        If a number does not fit into the packet or the codec lacks its format.
    """

    def __cinit__(self, int size, numbers):
        self.size = size
        self.n = len(numbers)
        self.rows = <Row*>calloc(max(self.n, 1), sizeof(Row))
        if self.rows == NULL:
            raise MemoryError
        for i, n in enumerate(numbers):
            dtype = np.dtype(n.dtype)
            name = dtype.str.replace(">", "<") + (" whole" if n.whole else "")
            if name not in FORMATS:
                raise ValueError(f"number {i}: found format {name}, allowed are {', '.join(FORMATS)}")
            if not 0 <= n.offset <= size - dtype.itemsize:
                raise ValueError(f"number {i}: found offset {n.offset}, allowed is 0 to {size - dtype.itemsize}")
            self.rows[i] = Row(
                n.offset, FORMATS[name], dtype.str[0] == ">", n.place, n.scale, n.bias, min(n.limit, DBL_MAX), n.absent,
                n.optional,
            )

    def __dealloc__(self):
        free(self.rows)
