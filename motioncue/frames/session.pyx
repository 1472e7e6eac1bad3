"""The state machine of a stream session, without transport and without the GIL."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove

from motioncue.core.threads cimport BIG_ENDIAN, FRAMING, REPLY_LOST, STALLED, mc_count
from motioncue.frames.convert cimport BodyStage, TelemetryStages
from motioncue.frames.intake cimport Intake, IntakeState, intake_begin, intake_end, intake_take, refuse
from motioncue.wire.messages cimport Reply, reply_write

__all__ = ["Session"]


cdef void answer(SessionState* s, const Reply* reply, const uint8_t* package, int size, int64_t now) noexcept nogil:
    if s.out_have + reply.size > OUT_BYTES:
        refuse(s.intake, REPLY_LOST, now, 0)
        return
    s.out_have += reply_write(reply, package, size, s.out + s.out_have)
    mc_count(&s.intake.counters.replies, 1)


cdef void session_begin(SessionState* s, int64_t now) noexcept nogil:
    """Begin a session with a simulator that has just connected."""
    s.have = 0
    s.out_have = 0
    intake_begin(s.intake, now)


cdef void session_end(SessionState* s, int64_t now) noexcept nogil:
    intake_end(s.intake, now)


cdef bint known_size(const IntakeState* s, int size) noexcept nogil:
    cdef int i
    for i in range(s.messages.count):
        if s.messages.rows[i].smallest <= size <= s.messages.rows[i].largest:
            return True
    return False


cdef inline int read_size(const SessionState* s, const uint8_t* package) noexcept nogil:
    return (package[0] << 8) | package[1] if s.big else package[0] | (package[1] << 8)


cdef bint session_feed(SessionState* s, const uint8_t* data, int n, int64_t now) noexcept nogil:
    """Take `n` bytes that arrived at `now`; return False if framing is lost and the connection must be closed."""
    cdef IntakeState* intake = s.intake
    cdef const uint8_t* package
    cdef int room, taken, size, start
    cdef bint swapped
    s.last_byte = now
    while n > 0:
        room = PENDING_BYTES - s.have
        taken = n if n < room else room
        memcpy(s.pending + s.have, data, taken)
        s.have += taken
        data += taken
        n -= taken
        start = 0
        while s.have - start >= 2:
            package = s.pending + start
            size = read_size(s, package)
            if size < 3 or size > s.size_max:
                swapped = not s.big and known_size(intake, (size >> 8) | ((size & 255) << 8))
                refuse(intake, BIG_ENDIAN if swapped else FRAMING, now, size)
                answer(s, &intake.messages.unknown, package, 2, now)
                s.have = 0
                return False
            if s.have - start < size:
                break
            answer(s, intake_take(intake, package, size, now), package, size, now)
            start += size
        s.have -= start
        memmove(s.pending, s.pending + start, s.have)
    return True


cdef bint session_stalled(SessionState* s, int64_t now) noexcept nogil:
    """Say whether the rest of a package is overdue; if so, count it, answer it, and drop the part that has come."""
    if s.have == 0 or now - s.last_byte < s.patience:
        return False
    refuse(s.intake, STALLED, now, s.have)
    answer(s, &s.intake.messages.unknown, s.pending, s.have, now)
    s.have = 0
    return True


cdef void session_sent(SessionState* s, int n) noexcept nogil:
    """Drop the first `n` bytes of `out`, which have been sent."""
    s.out_have -= n
    memmove(s.out, s.out + n, s.out_have)


cdef class Session(Intake):
    """Takes the bytes of a stream source; gives replies and the newest motion.

    Every package begins with its size: 2 bytes, counting themselves.  The parameters are those of `Intake`.

    Notes
    -----
    Real time: `feed` does not block and cannot fail; refused packages are counted in `rejected`.
    """

    def __cinit__(
        self, messages, BodyStage stage, TelemetryStages stages=None, *, unknown_reply=b"", double patience_s=1.0,
        reply_port=0, str byte_order="little"
    ):
        self.state = <SessionState*>calloc(1, sizeof(SessionState))
        if self.state == NULL:
            raise MemoryError
        self.state.intake = self.intake
        self.state.size_max = PENDING_BYTES // 2
        self.state.big = byte_order == "big"
        self.state.patience = <int64_t>(patience_s * 1e9)

    def __dealloc__(self):
        free(self.state)

    def begin(self, int64_t now_ns):
        """Begin a session with a simulator that has just connected."""
        session_begin(self.state, now_ns)

    def feed(self, data, int64_t now_ns):
        """Take bytes as they arrive; return the replies, and whether the connection may stay open."""
        cdef Py_buffer view     # a typed memoryview would cost more than all the rest
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t piece
        cdef bint good = True
        replies = b""
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            while good and start < view.len:
                piece = min(view.len - start, <Py_ssize_t>FEED_BYTES)
                good = session_feed(self.state, <const uint8_t*>view.buf + start, <int>piece, now_ns)
                start += piece
                replies += PyBytes_FromStringAndSize(<const char*>self.state.out, self.state.out_have)
                session_sent(self.state, self.state.out_have)
        finally:
            PyBuffer_Release(&view)
        return replies, good
