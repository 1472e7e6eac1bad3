"""Compile a packet layout into the table that the loops read."""

from libc.stdlib cimport calloc, free

import numpy as np

__all__ = ["Table"]

FORMATS = {
    "<f4": F4, "<f8": F8, "|i1": I1, "|u1": U1, "<i2": I2, "<u2": U2, "<i4": I4, "<u4": U4, "<i8": I8, "<f8 whole": N8,
}


cdef class Table:
    """A compiled packet: which bytes go to and come from which doubles.

    Parameters
    ----------
    size : int
        Of the packet [bytes].
    rows : sequence of tuple
        (offset, NumPy dtype of the field, slot, scale, limit, absent) for each number; if there are more, optional,
        bias and whole.

    Raises
    ------
    ValueError
        If a row does not fit into the packet or has a format that the codec lacks.
    """

    def __cinit__(self, int size, rows):
        self.size = size
        self.n = len(rows)
        self.rows = <Row*>calloc(max(self.n, 1), sizeof(Row))
        if self.rows == NULL:
            raise MemoryError
        for i, (offset, dtype, slot, scale, limit, absent, *more) in enumerate(rows):
            dtype = np.dtype(dtype)
            optional = bool(more) and more[0]
            bias = more[1] if len(more) > 1 else -0.0     # which added changes nothing, not even the sign of a zero
            name = dtype.str.replace(">", "<") + (" whole" if len(more) > 2 and more[2] else "")
            if name not in FORMATS:
                raise ValueError(f"row {i}: found format {name}, allowed are {', '.join(FORMATS)}")
            if not 0 <= offset <= size - dtype.itemsize:
                raise ValueError(f"row {i}: found offset {offset}, allowed is 0 to {size - dtype.itemsize}")
            self.rows[i] = Row(offset, FORMATS[name], dtype.str[0] == ">", slot, scale, bias, limit, absent, optional)

    def __dealloc__(self):
        free(self.rows)
