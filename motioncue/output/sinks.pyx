"""What a controller answers: finds described replies, reads them, and says what the platform does."""

from libc.math cimport NAN, fabs, fmin, isfinite
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memmove, memset

from motioncue.core.threads cimport ACCEPTED, mc_load
from motioncue.safety.supervisor cimport UNENGAGED
from motioncue.transports.handles cimport mc_line_read, mc_receive_from, sockaddr_storage
from motioncue.wire.checksum cimport Seal, checksum, put_unsigned, seal_text
from motioncue.wire.codec cimport Table, decode

from typing import NamedTuple

__all__ = ["CLAIMS", "HEARD_S", "Claimed", "Expected", "Replies"]

HEARD_S = HEARD_NS * 1e-9
"""Time without a report that nobody listens, after which somebody does [s]."""

CLAIMS = {
    "ready": SAYS_READY, "engaged": SAYS_ENGAGED, "fault": SAYS_FAULT, "emergency_stop": SAYS_STOPPED, "moving": SAYS_MOVING,
}
"""What a reply can say by yes or no."""

cdef enum:
    DATAGRAMS = 16      # most of them that are read in a tick
    SHORT = -1          # more bytes are needed to tell
    OTHER = 0           # it is no such reply

cdef double DOUBTFUL = 0.125    # share of a range by which a position may change at once without coming twice


class Claimed(NamedTuple):
    """One number of a reply."""

    says: str               # one of `CLAIMS`, "temperature", "nothing", or "" for the position of an actuator
    number: int = 0         # of the actuator, from 0
    mask: int = 0xFFFFFFFF  # bits that count
    among: tuple = ()       # numbers that mean yes; any but 0 if there is none
    scale: float = 1.0      # of a number: what it says is the reply's number times `scale` plus `bias` [SI]
    bias: float = 0.0
    low: float = float("-inf")  # range in which it is believed
    high: float = float("inf")
    at: int = 0             # of a text: its offset in the text without numbers


class Expected(NamedTuple):
    """One kind of reply."""

    table: object           # Table of a binary reply: its numbers, each with the place of its `Claimed`; or None
    size: int               # of it, or of the text without numbers [bytes]
    text: bytes             # that text
    marks: list             # (offset, bytes) of each constant
    seal: object            # Seal of its checksum, or None
    claims: list            # a Claimed for each of its numbers
    doubted: bool = False   # whether what it says has to come twice
    lost_s: object = None   # time without it that is a fault, or None
    length: object = None   # if zeros at its payload's end may be left out: offsets of its length and of the payload


cdef bint sealed(const Reading* r, const uint8_t* data, int left_out) noexcept nogil:
    """Say whether a binary reply, of which zeros are left out, has the checksum that it should have."""
    cdef uint8_t wanted[4]
    if r.seal == NULL:
        return True
    put_unsigned(wanted, checksum(r.seal, data, r.seal.end - left_out), r.seal.checksum_size, r.seal.checksum_big)
    return memcmp(wanted, data + r.seal.checksum_at - left_out, r.seal.checksum_size) == 0


cdef int matched(const Reading* r, const uint8_t* data, int size, double* numbers) noexcept nogil:
    """Return the size of the reply with which `data` begins, and fill its numbers; else OTHER, or SHORT."""
    cdef uint8_t whole[REPLY_BYTES]
    cdef const Mark* mark
    cdef int left_out = 0, i, seen
    if r.rows == NULL:
        return matched_text(r, data, size, numbers)
    for i in range(r.mark_count):
        mark = &r.marks[i]
        seen = min(mark.size, size - mark.offset)
        if seen > 0 and memcmp(data + mark.offset, mark.bytes, seen) != 0:
            return OTHER
    if r.payload:
        if size <= r.length_at:
            return SHORT
        left_out = r.seal.checksum_at - r.payload - data[r.length_at]
        if left_out < 0:
            return OTHER
    if size < r.size - left_out:
        return SHORT
    if not sealed(r, data, left_out):
        return OTHER
    if left_out:
        memcpy(whole, data, r.seal.checksum_at - left_out)
        memset(whole + r.seal.checksum_at - left_out, 0, r.size - r.seal.checksum_at + left_out)
        data = whole
    if decode(r.rows, r.word_count, data, numbers) != ACCEPTED:
        numbers[0] = NAN        # whatever it says cannot be; see `take`
    return r.size - left_out


cdef inline bint in_checksum(const Reading* r, int at) noexcept nogil:
    """Say whether an offset in a text is one of its checksum's digits."""
    return r.seal != NULL and 0 <= at - (r.size - r.seal.tail) < r.seal.digits


cdef int matched_text(const Reading* r, const uint8_t* data, int size, double* numbers) noexcept nogil:
    """Do the same for a text: numbers may have spaces in front, a sign and a point."""
    cdef int at = 0, read = 0, i, end, digits
    cdef double value, unit
    cdef bint negative, point
    for i in range(r.word_count + 1):
        end = r.words[i].at if i < r.word_count else r.size
        while at < end:
            if read == size:
                return SHORT
            if data[read] != r.text[at] and not in_checksum(r, at):
                return OTHER
            at += 1
            read += 1
        if i == r.word_count:
            break
        while read < size and data[read] == 32:
            read += 1
        negative = read < size and data[read] == 45
        if read < size and (data[read] == 45 or data[read] == 43):
            read += 1
        value, unit, digits, point = 0.0, 1.0, 0, False
        while read < size and digits < 24 and (48 <= data[read] <= 57 or (data[read] == 46 and not point)):
            if data[read] == 46:
                point = True
            else:
                value = 10.0 * value + (data[read] - 48)
                unit = 10.0 * unit if point else unit
                digits += 1
            read += 1
        if read == size and (at < r.size or i + 1 < r.word_count):
            return SHORT
        if digits == 0:
            return SHORT if read == size else OTHER
        numbers[i] = -value / unit if negative else value / unit
    return read if r.seal == NULL or sealed_text(r.seal, data, read) else OTHER


cdef bint sealed_text(const SealState* s, const uint8_t* data, int size) noexcept nogil:
    """Say whether a text has the checksum that it should have, in digits of either case."""
    cdef uint8_t wanted[REPLY_BYTES]
    cdef int i
    if size > REPLY_BYTES:
        return False
    memcpy(wanted, data, size)
    seal_text(s, wanted, size)
    for i in range(size - s.tail, size - s.tail + s.digits):
        if wanted[i] | 32 != data[i] | 32:
            return False
    return True


cdef bint take(Heard* h, Reading* r, const double* numbers, int64_t now) noexcept nogil:
    """Believe what a reply says; return False, and believe nothing of it, if one of its numbers cannot be."""
    cdef const Word* w
    cdef double value, before
    cdef uint32_t bits
    cdef int says = 0, i, k
    cdef bint yes
    for i in range(r.word_count):
        w = &r.words[i]
        if not isfinite(numbers[i]) or (w.flag and fabs(numbers[i]) > 4294967295.0):
            return False
        if not w.flag and not w.low <= numbers[i] * w.scale + w.bias <= w.high:
            return False
    for i in range(r.word_count):
        w = &r.words[i]
        if not w.flag:
            value = numbers[i] * w.scale + w.bias
            if w.slot >= POSITIONS:
                h.temperature = value if w.slot == POSITIONS else h.temperature
                continue
            before = h.positions[w.slot]
            if r.doubted and not fmin(fabs(value - before), fabs(value - h.doubted[w.slot])) <= DOUBTFUL * (w.high - w.low):
                h.doubted[w.slot] = value
                continue
            h.doubted[w.slot] = NAN
            h.positions[w.slot] = value
            continue
        bits = <uint32_t><int64_t>numbers[i] & w.mask
        yes = bits != 0 and w.count == 0
        for k in range(w.count):
            yes = yes or bits == w.among[k]
        says |= w.flag if yes else 0
    if not r.doubted or says == r.before:
        r.says = says
    r.before = says
    r.at = now
    return True


cdef int hear_datagram(Heard* h, const uint8_t* data, int size, int64_t now) noexcept nogil:
    """Read one datagram; return whether it is a reply."""
    cdef double numbers[NUMBERS]
    cdef int i
    for i in range(h.count):
        if matched(&h.readings[i], data, size, numbers) == size:
            mc_count(&h.received if take(h, &h.readings[i], numbers, now) else &h.refused, 1)
            return True
    for i in range(size):
        if not (32 <= data[i] < 127 or 9 <= data[i] <= 13):
            mc_count(&h.skipped, size)      # another message of a network that several share: nothing to read
            return False
    for i in range(size):
        skip(h, data[i])
    return False


cdef void skip(Heard* h, uint8_t byte) noexcept nogil:
    """Count a byte that belongs to no reply; what can be read of it is kept for the log."""
    cdef int64_t n = mc_load(&h.text_size)
    mc_count(&h.skipped, 1)
    if 32 <= byte < 127 and n < TEXT_BYTES:
        h.text[n] = byte
        mc_store(&h.text_size, n + 1)


cdef void hear_stream(Heard* h, const uint8_t* data, int size, int64_t now) noexcept nogil:
    """Read what has come over a line: replies in any pieces, with anything between them."""
    cdef double numbers[NUMBERS]
    cdef int at = 0, i, found
    cdef bint wait
    size = min(size, KEPT_BYTES - h.kept_size)
    memcpy(h.kept + h.kept_size, data, size)
    h.kept_size += size
    while at < h.kept_size:
        wait = False
        for i in range(h.count):
            found = matched(&h.readings[i], h.kept + at, h.kept_size - at, numbers)
            if found > 0:
                mc_count(&h.received if take(h, &h.readings[i], numbers, now) else &h.refused, 1)
                at += found
                break
            wait = wait or found == SHORT
        else:
            if wait and h.kept_size - at < REPLY_BYTES:
                break
            skip(h, h.kept[at])
            at += 1
    memmove(h.kept, h.kept + at, h.kept_size - at)
    h.kept_size -= at


cdef void read_replies(Heard* h, mc_fd fd, mc_line* line, const uint8_t* host, int64_t now) noexcept nogil:
    """Read all that has come since the last tick, from a line or from `host` by datagrams; it never waits."""
    cdef uint8_t data[REPLY_BYTES + 1]
    cdef uint8_t sender[16]
    cdef sockaddr_storage source
    cdef int i, n
    if line != NULL:
        n = mc_line_read(line, data, REPLY_BYTES)
        if n > 0:
            hear_stream(h, data, n, now)
        return
    for i in range(DATAGRAMS):
        n = mc_receive_from(fd, data, sizeof(data), &source, sender)
        if n < 0:
            return
        if memcmp(sender, host, 16) == 0:
            hear_datagram(h, data, n, now)


cdef void forget(Heard* h) noexcept nogil:
    """Forget what has been said: nobody has listened for a while, and the platform may be anywhere by now."""
    cdef int i
    for i in range(h.count):
        h.readings[i].at = h.readings[i].before = h.readings[i].says = 0
    for i in range(POSITIONS):
        h.positions[i] = h.doubted[i] = NAN
    h.temperature = NAN
    h.kept_size = 0


cdef bint placed(const Heard* h) noexcept nogil:
    """Say whether the positions of all actuators that are reported are known."""
    cdef int i
    for i in range(h.actuators):
        if not isfinite(h.positions[i]):
            return False
    return True


cdef int platform_flags(const Heard* h, int64_t now) noexcept nogil:
    """Return what a tick is told about the platform."""
    cdef const Reading* r
    cdef int described = 0, says = 0, flags = 0, i
    for i in range(h.count):
        r = &h.readings[i]
        described |= r.described
        says |= r.says
        if r.at == 0:
            flags |= UNREADY
        elif r.patience and now - r.at > r.patience:
            flags |= SILENT
    if not placed(h):
        flags |= UNREADY
    if described & ~says & SAYS_READY:
        flags |= UNREADY
    if described & ~says & SAYS_ENGAGED:
        flags |= UNENGAGED
    if says & SAYS_FAULT:
        flags |= FAULTY
    if says & SAYS_STOPPED:
        flags |= STOPPED
    return flags


cdef class Replies:
    """What a controller has said, by the kinds of replies expected; `actuators`: of the platform, if it reports them."""

    def __cinit__(self, expected=(), int actuators=0):
        cdef Heard* h = &self.heard
        memset(h, 0, sizeof(Heard))
        self._owned = list(expected)
        if len(self._owned) > REPLIES:
            raise ValueError(f"replies: found {len(self._owned)}, allowed are {REPLIES}")
        reported = set()
        for each in self._owned:
            fill(&h.readings[h.count], each)
            reported |= {claim.number for claim in each.claims if not claim.says}
            h.count += 1
        forget(h)
        h.actuators = actuators if reported >= set(range(actuators)) else 0

    def hear(self, bytes data not None, int64_t now_ns, bint stream=False):
        """Read a datagram, or a piece of a stream, that has come at `now_ns`."""
        if stream:
            for at in range(0, len(data), REPLY_BYTES):
                piece = data[at : at + REPLY_BYTES]
                hear_stream(&self.heard, piece, <int>len(piece), now_ns)
        else:
            hear_datagram(&self.heard, data, <int>len(data), now_ns)

    def flags(self, int64_t now_ns):
        """Return what a tick at `now_ns` is told about the platform."""
        return platform_flags(&self.heard, now_ns)

    @property
    def placed(self):
        """Whether replies say where every actuator is."""
        return self.heard.actuators > 0

    @property
    def positions(self):
        """Where the actuators are [m or rad]; NaN if not known."""
        return [self.heard.positions[i] for i in range(POSITIONS)]

    def said(self):
        """Return what the platform says, and counters."""
        cdef int says = 0, described = 0
        for i in range(self.heard.count):
            says |= self.heard.readings[i].says
            described |= self.heard.readings[i].described
        temperature = self.heard.temperature
        return {
            "received": mc_load(&self.heard.received),
            "refused": mc_load(&self.heard.refused),
            "skipped": mc_load(&self.heard.skipped),
            **{name: bool(says & flag) for name, flag in CLAIMS.items() if described & flag},
            **({} if temperature != temperature else {"temperature": temperature}),
        }

    def text(self):
        """Return the readable part of what was no reply since the last call, up to 96 characters."""
        cdef int64_t size = mc_load(&self.heard.text_size)
        found = (<bytes>self.heard.text[:size]).decode("ascii") if size else ""
        mc_store(&self.heard.text_size, 0)
        return found


cdef int fill(Reading* r, each) except -1:
    """Compile one kind of reply."""
    cdef Table table
    cdef Seal seal
    cdef Word* w
    cdef Mark* mark
    if len(each.claims) > NUMBERS or len(each.marks) > MARKS or not 0 < each.size <= REPLY_BYTES:
        raise ValueError(f"reply: allowed are {NUMBERS} numbers, {MARKS} constants and {REPLY_BYTES} bytes")
    r.size, r.doubted = each.size, each.doubted
    r.patience = 0 if each.lost_s is None else round(1e9 * each.lost_s)
    if each.table is not None:
        table = each.table
        r.rows = table.rows
    else:
        memcpy(r.text, <const uint8_t*><bytes>each.text, each.size)
    if each.seal is not None:
        seal = each.seal
        r.seal = &seal.state
    if each.length is not None:
        r.length_at, r.payload = each.length
    for offset, data in each.marks:
        mark = &r.marks[r.mark_count]
        if not 0 < len(data) <= <Py_ssize_t>sizeof(mark.bytes):
            raise ValueError(f"reply: found a constant of {len(data)} bytes, allowed are up to {sizeof(mark.bytes)}")
        mark.offset, mark.size = offset, len(data)
        memcpy(mark.bytes, <const uint8_t*><bytes>data, len(data))
        r.mark_count += 1
    for claim in each.claims:
        w = &r.words[r.word_count]
        w.flag = CLAIMS.get(claim.says, 0)
        w.slot = {"": claim.number, "temperature": POSITIONS}.get(claim.says, POSITIONS + 1)
        w.mask, w.scale, w.bias, w.low, w.high, w.at = (
            claim.mask, claim.scale, claim.bias, claim.low, claim.high, claim.at,
        )
        for value in claim.among:
            w.among[w.count] = value
            w.count += 1
        r.described |= w.flag
        r.word_count += 1
    return 0
