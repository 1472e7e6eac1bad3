"""Packets to and from arrays of doubles, driven by tables compiled from the packet layouts of protocols/."""

from libc.float cimport DBL_MAX
from libc.math cimport NAN, fabs, fmod, isfinite, rint
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from motioncue.core.threads cimport ACCEPTED, IMPLAUSIBLE, NOT_FINITE
from motioncue.wire.checksum cimport Seal, SealState, seal, seal_text


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
    TEXT                # decimal digits


cdef enum:
    DIGITS = 24         # most characters of a number in a text


ctypedef struct Row:
    int floats          # how many rows from this one on are little-endian F4, as most rows are
    int offset          # in the packet [bytes]
    Format format
    bint big            # most significant byte first; otherwise in host order, which is little-endian
    int slot            # index of the double it is decoded to or encoded from
    double scale        # decoding multiplies by it, encoding divides by it
    double share        # 1 / scale where that has the same bits, as for 1 and other powers of two; else 0
    double bias         # decoding adds it after multiplying, encoding after dividing; -0.0 changes nothing
    double limit        # largest magnitude accepted in a packet, in the packet's unit
    double absent       # sent when the channel is NaN
    bint optional       # decode a value beyond the limit or not finite as NaN instead of refusing the packet
    # Encoding only:
    bint plain          # a little-endian F4 of one channel, sent as it is
    bint more           # a term of a sum that the next row continues
    double low          # the value sent is kept from low to high
    double high
    double wrap         # the value sent is its remainder modulo this, from 0 on; 0: it is not
    double steps        # steps to which a unit is rounded: 1 for an integer, 10^digits in a text; 0: no rounding
    int digits          # of a text, after the point
    int width           # of a text, at least [characters]
    bint zeros          # a text is filled up to its width with zeros, otherwise with spaces
    bint plus           # a text of a number from 0 on has a sign


cdef inline double get_f4(const uint8_t* p) noexcept nogil:
    cdef float f4
    memcpy(&f4, p, 4)
    return f4


cdef inline double get(const uint8_t* p, Format format) noexcept nogil:
    cdef double f8
    cdef int16_t i2
    cdef uint16_t u2
    cdef int32_t i4
    cdef uint32_t u4
    cdef int64_t i8
    if format == F4:
        return get_f4(p)
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


cdef inline int fill_slot(const Row* row, double x, double* out) noexcept nogil:
    """Fill a row's slot from the number in a packet; return NOT_FINITE or IMPLAUSIBLE if that is refused."""
    if not fabs(x) <= row.limit:
        if not row.optional:
            return IMPLAUSIBLE if isfinite(x) else NOT_FINITE
        x = NAN
    out[row.slot] = x * row.scale + row.bias
    return ACCEPTED


cdef inline int decode(const Row* rows, int n, const uint8_t* packet, double* out) noexcept nogil:
    """Fill the slots of `out`; return NOT_FINITE or IMPLAUSIBLE at the first refused value."""
    cdef const Row* row = rows
    cdef const Row* end = rows + n
    cdef const Row* others
    cdef uint8_t bytes[8]
    cdef int reason
    while row != end:
        others = row + row.floats if row.floats < end - row else end
        while row != others:
            reason = fill_slot(row, get_f4(packet + row.offset), out)
            if reason != ACCEPTED:
                return reason
            row += 1
        if row == end:
            break
        if row.big:
            reverse(packet + row.offset, bytes, size_of(row.format))
            reason = fill_slot(row, get(bytes, row.format), out)
        else:
            reason = fill_slot(row, get(packet + row.offset, row.format), out)
        if reason != ACCEPTED:
            return reason
        row += 1
    return ACCEPTED


cdef inline double term(const Row* r, const double* values) noexcept nogil:
    cdef double x = values[r.slot]
    if x != x:
        x = r.absent
    return (x * r.share if r.share != 0.0 else x / r.scale) + r.bias


cdef inline double kept(const Row* r, double x) noexcept nogil:
    """Return the value to send: in range or wrapped, and as a whole number of steps where it is rounded."""
    cdef double steps = r.steps if r.steps else 1.0
    if r.wrap:
        x = rint(x * r.steps) if r.steps else x
        x = fmod(x, r.wrap * steps)
        x += r.wrap * steps if x < 0.0 else 0.0
        return x if x < r.wrap * steps and (r.format != F4 or <float>x < <float>r.wrap) else 0.0
    x = 0.0 if x != x else x        # two infinite terms of a sum
    x = r.low if x < r.low else (r.high if x > r.high else x)
    return rint(x * r.steps) if r.steps else x


cdef inline void encode(const Row* rows, int n, const double* values, uint8_t* packet) noexcept nogil:
    """Write the slots of `values` into `packet`; bytes that no row covers are left unchanged."""
    cdef double total = -0.0        # adding to it changes nothing, not even the sign of a zero
    cdef int i
    for i in range(n):
        if rows[i].plain:
            put_f4(packet + rows[i].offset, term(&rows[i], values))
            continue
        total += term(&rows[i], values)
        if not rows[i].more:
            put(packet + rows[i].offset, rows[i].format, rows[i].big, kept(&rows[i], total))
            total = -0.0


cdef inline int write_decimal(const Row* r, double steps, uint8_t* out) noexcept nogil:
    """Write a whole number of steps as a decimal number; return its length, at most DIGITS."""
    cdef uint8_t reversed[DIGITS]
    cdef uint64_t left = <uint64_t>fabs(steps)
    cdef bint negative = steps < 0.0
    cdef int n = 0
    while left or n <= r.digits + (r.digits > 0):
        if n == r.digits and n:
            reversed[n] = 46        # the point
        else:
            reversed[n] = 48 + left % 10
            left //= 10
        n += 1
    while r.zeros and n + (negative or r.plus) < r.width:
        reversed[n] = 48
        n += 1
    if negative or r.plus:
        reversed[n] = 45 if negative else 43
        n += 1
    while n < r.width:
        reversed[n] = 32
        n += 1
    reverse(reversed, out, n)
    return n


cdef inline int encode_text(
    const Row* rows, int n, const double* values, const uint8_t* text, int size, uint8_t* out
) noexcept nogil:
    """Write `text` with a number at the offset of each row; return the length."""
    cdef double total = -0.0
    cdef int i, at = 0, length = 0
    for i in range(n):
        total += term(&rows[i], values)
        if rows[i].more:
            continue
        memcpy(out + length, text + at, rows[i].offset - at)
        length += rows[i].offset - at
        at = rows[i].offset
        length += write_decimal(&rows[i], kept(&rows[i], total), out + length)
        total = -0.0
    memcpy(out + length, text + at, size - at)
    return length + size - at


ctypedef struct Outgoing:
    const Row* rows
    int row_count
    const uint8_t* text     # of a text packet, without its numbers; NULL for any other
    int size                # of the packet, or of that text [bytes]
    SealState* seal         # NULL if the packet has no counter, clock, state or checksum


cdef inline int outgoing(
    const Outgoing* o, const double* values, int64_t now, int state, uint8_t* packet
) noexcept nogil:
    """Encode a packet at the time `now` [ns] in a state of the supervisor; return its size."""
    cdef int size
    if o.text != NULL:
        size = encode_text(o.rows, o.row_count, values, o.text, o.size, packet)
        if o.seal != NULL:
            seal_text(o.seal, packet, size)
        return size
    encode(o.rows, o.row_count, values, packet)
    if o.seal != NULL:
        seal(o.seal, packet, now, state)
    return o.size


cdef class Table:
    cdef Row* rows
    cdef readonly int n
    cdef readonly int size      # packet size; of a text packet, size of its text without numbers [bytes]
    cdef readonly int largest   # largest size of the packet [bytes]
    cdef readonly bint text     # the rows are inserted into a text


cdef Outgoing outgoing_of(Table table, const uint8_t* text, Seal last) noexcept
