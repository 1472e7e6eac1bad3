"""Compile a packet layout into the table that the loops read."""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free

from math import frexp
from typing import NamedTuple

import numpy as np

__all__ = ["DecimalSpec", "Number", "Table", "longest"]

FORMATS = {
    "<f4": F4, "<f8": F8, "|i1": I1, "|u1": U1, "<i2": I2, "<u2": U2, "<i4": I4, "<u4": U4, "<i8": I8, "<f8 whole": N8,
}


class DecimalSpec(NamedTuple):
    """How a number is written in a text, like Python's format ``[+][0][width].[digits]f``."""

    digits: int = 0             # after the point; 0: there is no point
    width: int = 0              # least number of characters
    zeros: bool = False         # whether zeros fill the width, otherwise spaces in front
    plus: bool = False          # whether a number from 0 on has a sign

    def written(self, number):
        """Return `number` as a text packet has it; a float is rounded to `digits`."""
        number = round(number, self.digits) + 0.0       # no negative zero
        return format(number, f"{'+' * self.plus}{'0' * self.zeros}{self.width or ''}.{self.digits}f")


class Number(NamedTuple):
    """One number of a packet and its place in the record of doubles."""

    offset: int                 # in the packet [bytes]
    dtype: object               # NumPy dtype in the packet; in a text packet it has no meaning
    place: int                  # index of the double in the record
    scale: float = 1.0          # decoding multiplies the number by this
    limit: float = float("inf")     # largest magnitude accepted, before scaling; infinity and NaN exceed any limit
    absent: float = 0.0         # number encoded when the double is NaN
    optional: bool = False      # a number that would be refused is decoded to NaN instead
    bias: float = -0.0          # added after scaling: when decoding to the double, when encoding to the packet's number;
                                # -0.0 changes nothing, not even the sign of a zero
    whole: bool = False         # for an f8: refuse anything but whole numbers from 0 on
    low: float = float("-inf")  # range in which the number is kept when encoding
    high: float = float("inf")
    wrap: float = 0.0           # when encoding, the remainder modulo this is sent, from 0 on; 0: the number itself
    more: bool = False          # when encoding, the next number is added to this one, and the last writes their sum
    spec: object = None         # in a text packet: the DecimalSpec by which the number is written, at `offset`


cdef class Table:
    """A compiled packet of `size`, at most `largest` [bytes]: which bytes go to and come from which doubles."""

    def __cinit__(self, int size, numbers, bint text=False):
        cdef int before = 0
        self.size = self.largest = size
        self.text = text
        self.n = len(numbers)
        self.rows = <Row*>calloc(max(self.n, 1), sizeof(Row))
        if self.rows == NULL:
            raise MemoryError
        for i, n in enumerate(numbers):
            if text:
                if not before <= n.offset <= size:
                    raise ValueError(f"number {i}: found offset {n.offset}, allowed is {before} to {size}")
                before = n.offset
                decimal_row(&self.rows[i], n)
                self.largest += 0 if n.more else longest(n)
            else:
                binary_row(&self.rows[i], n, i, size)
        for i in range(self.n - 2, -1, -1):
            if self.rows[i].floats:
                self.rows[i].floats += self.rows[i + 1].floats

    def __dealloc__(self):
        free(self.rows)


cdef int binary_row(Row* row, object n, Py_ssize_t i, int size) except -1:
    dtype = np.dtype(n.dtype)
    name = dtype.str.replace(">", "<") + (" whole" if n.whole else "")
    if name not in FORMATS:
        raise ValueError(f"number {i}: found format {name}, allowed are {', '.join(FORMATS)}")
    if not 0 <= n.offset <= size - dtype.itemsize:
        raise ValueError(f"number {i}: found offset {n.offset}, allowed is 0 to {size - dtype.itemsize}")
    fill(row, n, FORMATS[name])
    row.big = dtype.str[0] == ">"
    row.steps = 1.0 if dtype.kind in "iu" else 0.0
    free_range = n.low == -INFINITY and n.high == INFINITY
    alone = not n.more and not (i and (row - 1).more)
    row.floats = row.format == F4 and not row.big
    row.plain = row.floats and free_range and not n.wrap and alone
    return 0


cdef int decimal_row(Row* row, object n) except -1:
    fill(row, n, TEXT)
    row.digits, row.width, row.zeros, row.plus = n.spec
    row.steps = 10.0**row.digits
    if not 0 <= row.digits <= 9 or not max(row.width, longest(n)) <= DIGITS or not row.width >= 0:
        raise ValueError(f"number at {n.offset}: found more than {DIGITS} characters")
    if not max(abs(n.low), abs(n.high)) * row.steps <= 1e15:
        raise ValueError(f"number at {n.offset}: found a range of more than 15 digits")
    return 0


cdef void fill(Row* row, object n, Format format) except *:
    row.offset, row.format, row.slot, row.scale, row.bias = n.offset, format, n.place, n.scale, n.bias
    row.limit, row.absent, row.optional = min(n.limit, DBL_MAX), n.absent, n.optional
    row.more, row.low, row.high, row.wrap = n.more, n.low, n.high, n.wrap
    row.share = exact_share(n.scale)


def exact_share(scale):
    """Return 1 / scale if multiplying by it gives the bits of a division, as for a power of two; else 0."""
    return 1.0 / scale if abs(frexp(scale)[0]) == 0.5 and 2.0**-1000 <= abs(scale) <= 2.0**1000 else 0.0


def longest(n):
    """Return the largest number of characters of a number in a text."""
    return max(len(n.spec.written(end)) for end in (n.low, n.high))


cdef Outgoing outgoing_of(Table table, const uint8_t* text, Seal last) noexcept:
    """Return how a packet of this table is encoded; all arguments must outlive it."""
    cdef Outgoing o
    o.rows, o.row_count, o.size = table.rows, table.n, table.size
    o.text = text
    if not table.text:
        o.text = NULL
    o.seal = NULL
    if last is not None:
        o.seal = &last.state
    return o
