"""Packets to and from arrays of doubles, driven by tables compiled from the packet layouts of protocols/."""

from libc.float cimport DBL_MAX
from libc.math cimport NAN, fabs, isfinite, rint
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from motioncue.kernels.reasons cimport ACCEPTED, IMPLAUSIBLE, NOT_FINITE


cdef enum Format:
    F4 = 0
    F8
    I1
    U1
    I2
    U2
    I4
    U4
    I8
    N8                  # an F8 that must be a whole number >= 0


ctypedef struct Row:
    int offset          # in the packet [bytes]
    Format format
    bint big            # most significant byte first; otherwise in host order, which is little-endian
    int slot            # index of the double it is decoded to or encoded from
    double scale        # decoding multiplies by it, encoding divides by it
    double bias         # decoding adds it after multiplying, encoding after dividing; -0.0 changes nothing
    double limit        # largest magnitude accepted in a packet, in the packet's unit
    double absent       # sent when the channel is NaN
    bint optional       # decode a value beyond the limit or not finite as NaN instead of refusing the packet


cdef inline double get(const uint8_t* p, Format format) noexcept nogil:
    cdef float f4
    cdef double f8
    cdef int16_t i2
    cdef uint16_t u2
    cdef int32_t i4
    cdef uint32_t u4
    cdef int64_t i8
    if format == F4:
        memcpy(&f4, p, 4)
        return f4
    elif format == F8:
        memcpy(&f8, p, 8)
        return f8
    elif format == I1:
        return <int8_t>p[0]
    elif format == U1:
        return p[0]
    elif format == I2:
        memcpy(&i2, p, 2)
        return i2
    elif format == U2:
        memcpy(&u2, p, 2)
        return u2
    elif format == I4:
        memcpy(&i4, p, 4)
        return i4
    elif format == U4:
        memcpy(&u4, p, 4)
        return u4
    elif format == N8:
        memcpy(&f8, p, 8)
        return f8 if f8 >= 0.0 and f8 == rint(f8) else -DBL_MAX    # exceeds the limit of any field that has one
    memcpy(&i8, p, 8)
    return <double>i8


cdef inline void put_f4(uint8_t* p, double value) noexcept nogil:
    cdef float f4 = <float>value
    memcpy(p, &f4, 4)


cdef inline int size_of(Format format) noexcept nogil:
    return 1 if format == I1 or format == U1 else 2 if format == I2 or format == U2 else 8 if format == F8 or format >= I8 else 4


cdef inline void reverse(const uint8_t* p, uint8_t* out, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        out[i] = p[n - 1 - i]


cdef inline double within(double value, double low, double high) noexcept nogil:
    """Return the nearest whole number from `low` to `high`."""
    value = rint(value)
    return low if value < low else (high if value > high else value)


cdef inline void put(uint8_t* p, Format format, bint big, double value) noexcept nogil:
    """Write any format; integers are rounded and kept in range."""
    cdef uint8_t bytes[8]
    cdef int64_t i8
    cdef int n = size_of(format)
    if format == F4:
        put_f4(bytes, value)
    elif format == F8 or format == N8:
        memcpy(bytes, &value, 8)
    else:
        if format == I1 or format == I2 or format == I4:
            value = within(value, -<double>(<int64_t>1 << (8 * n - 1)), <double>(<int64_t>1 << (8 * n - 1)) - 1.0)
        elif format == I8:
            value = within(value, -9223372036854775808.0, 9223372036854774784.0)    # the largest double below 2^63
        else:
            value = within(value, 0.0, <double>(<int64_t>1 << (8 * n)) - 1.0)
        i8 = <int64_t>value
        memcpy(bytes, &i8, 8)       # the low bytes are those of any narrower integer
    if big:
        reverse(bytes, p, n)
    else:
        memcpy(p, bytes, n)


cdef inline int decode(const Row* rows, int n, const uint8_t* packet, double* out) noexcept nogil:
    """Fill the slots of `out`; return NOT_FINITE or IMPLAUSIBLE at the first refused value."""
    cdef uint8_t bytes[8]
    cdef int i
    cdef double x
    for i in range(n):
        if rows[i].big:
            reverse(packet + rows[i].offset, bytes, size_of(rows[i].format))
            x = get(bytes, rows[i].format)
        else:
            x = get(packet + rows[i].offset, rows[i].format)
        if not fabs(x) <= rows[i].limit:
            if not rows[i].optional:
                return IMPLAUSIBLE if isfinite(x) else NOT_FINITE
            x = NAN
        out[rows[i].slot] = x * rows[i].scale + rows[i].bias
    return ACCEPTED


cdef inline void encode(const Row* rows, int n, const double* values, uint8_t* packet) noexcept nogil:
    """Write the slots of `values` into `packet`; bytes that no row covers are left unchanged."""
    cdef int i
    cdef double x
    for i in range(n):
        x = values[rows[i].slot]
        if x != x:
            x = rows[i].absent
        x = x / rows[i].scale + rows[i].bias
        if rows[i].format == F4 and not rows[i].big:
            put_f4(packet + rows[i].offset, x)
        else:
            put(packet + rows[i].offset, rows[i].format, rows[i].big, x)


cdef class Table:
    cdef Row* rows
    cdef readonly int n
    cdef readonly int size      # packet size [bytes]
