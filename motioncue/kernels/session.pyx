"""The session state machine of a stream source, without transport and without the GIL."""

from libc.math cimport NAN
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove, memset

import numpy as np

from motioncue.kernels.body cimport BodyStage, set_car_axes, to_body
from motioncue.kernels.codec cimport Table, decode
from motioncue.kernels.reasons cimport (
    ACCEPTED, AXES, BEFORE_INIT, BIG_ENDIAN, FRAMING, FROZEN, PAUSED, REASONS, RECONNECT, REPLY_LOST, SESSION_BEGAN,
    SESSION_ENDED, SIZE, STALLED, TYPE,
)
from motioncue.kernels.slot cimport event_read, event_write, mc_count, mc_load, slot_clear, slot_read, slot_write
from motioncue.kernels.watch cimport watch_step

from motioncue.kernels.reasons import NAMES
from motioncue.motion import MOTION_DTYPE

__all__ = ["Session"]


cdef void tell(SessionState* s, int64_t now, int reason, int64_t detail) noexcept nogil:
    cdef Event event = Event(now, reason, detail, 0, 0, 0.0, 0.0)
    event_write(&s.events, &event)


cdef void refuse(SessionState* s, int reason, int64_t now, int64_t detail) noexcept nogil:
    """Count `reason`, and put its first occurrences, then every thousandth, in the event queue."""
    mc_count(&s.counters.refused[reason], 1)
    cdef int64_t n = mc_load(&s.counters.refused[reason])
    if n <= 10 or n % 1000 == 0:
        tell(s, now, reason, detail)


cdef void answer(SessionState* s, const Reply* reply, int64_t now) noexcept nogil:
    if s.out_have + reply.size > OUT_BYTES:
        refuse(s, REPLY_LOST, now, 0)
        return
    memcpy(s.out + s.out_have, reply.bytes, reply.size)
    s.out_have += reply.size
    mc_count(&s.counters.replies, 1)


cdef void session_begin(SessionState* s, int64_t now) noexcept nogil:
    """Start afresh for a simulator that has just connected."""
    s.have = 0
    s.out_have = 0
    s.initialised = False
    s.frame = s.fallback
    s.frame_time = 0.0
    s.watch.armed = False
    s.watch.changes = 0
    mc_count(&s.counters.sessions, 1)
    tell(s, now, SESSION_BEGAN, mc_load(&s.counters.sessions))


cdef void session_end(SessionState* s, int64_t now) noexcept nogil:
    tell(s, now, SESSION_ENDED, mc_load(&s.counters.sessions))


cdef int take_axes(SessionState* s) noexcept nogil:
    s.initialised = True
    s.frame_time = 0.0
    s.frame = s.fallback
    return set_car_axes(&s.frame, s.telemetry.forward, s.telemetry.up)


cdef int take_motion(SessionState* s, int64_t now) noexcept nogil:
    cdef int reason
    if not s.initialised:
        return BEFORE_INIT
    reason = to_body(&s.frame, &s.telemetry, &s.motion)
    if reason != ACCEPTED:
        return reason
    s.frame_time += s.telemetry.frame_duration
    s.motion.frame_time = s.frame_time
    s.motion.time = now
    publish(s)
    mc_count(&s.counters.accepted, 1)
    return ACCEPTED


cdef void publish(SessionState* s) noexcept nogil:
    """Hand the motion to the emitter, and say whether it continues what came before."""
    cdef Publication* p = &s.publication
    cdef bint reconnected = not s.watch.armed and p.epoch > 0
    cdef int reason = watch_step(&s.watch, &s.telemetry, &s.motion)
    cdef bint repeats = reason == FROZEN or reason == PAUSED
    cdef bint again = repeats and p.frozen and p.reason == reason
    if reconnected:
        reason = RECONNECT
        s.watch.value = s.watch.limit = 0.0
    # A frame that no car can be in is not motion to engage with either.
    p.frozen = repeats or not s.watch.believable
    if not p.frozen:
        p.motion = s.motion
        p.changed = s.watch.changed
    if (reason != ACCEPTED and not repeats) or p.epoch == 0:
        p.epoch += 1
    if reason != ACCEPTED:
        p.reason = reason
        p.value = s.watch.value
        p.limit = s.watch.limit
        if not again:       # a freeze counts once
            mc_count(&s.counters.events[reason], 1)
    slot_write(&s.newest, &s.publication, sizeof(Publication))


cdef void take_package(SessionState* s, const uint8_t* package, int size, int64_t now) noexcept nogil:
    """Decode one whole package, act on it, answer it."""
    cdef int i
    cdef int reason = TYPE
    cdef const Reply* reply = &s.unknown
    cdef Message* m
    for i in range(s.message_count):
        m = &s.messages[i]
        if m.type != package[2]:
            continue
        reply = &m.reply
        reason = SIZE
        if m.size != size:
            continue
        reason = decode(m.rows, m.row_count, package, <double*>&s.telemetry)
        if reason == ACCEPTED:
            reason = take_axes(s) if m.role == ROLE_AXES else take_motion(s, now)
        break
    if reason != ACCEPTED:
        refuse(s, reason, now, size)
    answer(s, reply, now)


cdef bint known_size(const SessionState* s, int size) noexcept nogil:
    cdef int i
    for i in range(s.message_count):
        if s.messages[i].size == size:
            return True
    return False


cdef bint session_feed(SessionState* s, const uint8_t* data, int n, int64_t now) noexcept nogil:
    """Take `n` bytes that came at `now`; False if framing is lost and the connection must be closed."""
    cdef int room, taken, size, start
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
            size = s.pending[start] | (s.pending[start + 1] << 8)
            if size < 3 or size > s.size_max:
                refuse(s, BIG_ENDIAN if known_size(s, (size >> 8) | ((size & 255) << 8)) else FRAMING, now, size)
                answer(s, &s.unknown, now)
                s.have = 0
                return False
            if s.have - start < size:
                break
            take_package(s, s.pending + start, size, now)
            start += size
        s.have -= start
        memmove(s.pending, s.pending + start, s.have)
    return True


cdef bint session_stalled(SessionState* s, int64_t now) noexcept nogil:
    """Say whether the rest of a package is overdue; it is then counted, answered and forgotten."""
    if s.have == 0 or now - s.last_byte < s.patience:
        return False
    refuse(s, STALLED, now, s.have)
    answer(s, &s.unknown, now)
    s.have = 0
    return True


cdef void session_sent(SessionState* s, int n) noexcept nogil:
    """Drop the first `n` bytes of `out`: they have gone."""
    s.out_have -= n
    memmove(s.out, s.out + n, s.out_have)


cdef Reply make_reply(bytes data) except *:
    cdef Reply reply
    memset(&reply, 0, sizeof(Reply))
    if len(data) > REPLY_BYTES:
        raise ValueError(f"reply: found {len(data)} bytes, allowed are {REPLY_BYTES}")
    memcpy(reply.bytes, <const uint8_t*>data, len(data))
    reply.size = len(data)
    return reply


cdef class Session:
    """Bytes of a stream source in, newest motion and replies out.

    Parameters
    ----------
    messages : sequence of (Table, int, str, bytes)
        For each package: its compiled table, type code, role ("axes" or "motion") and reply.
    unknown_reply : bytes
        Answer to a package of any other type.
    stage : BodyStage
        The source's axes; the car's are replaced by those an "axes" package announces.
    patience_s : float
        How long the rest of a package may take [s].

    Raises
    ------
    ValueError
        If there are too many messages, or a reply is too long.

    Notes
    -----
    Real time: `feed` does not block and cannot fail; everything it refuses is counted in `rejected`.
    """

    def __cinit__(self, messages, bytes unknown_reply, BodyStage stage, *, double patience_s=1.0):
        cdef Message* m
        cdef Table table
        cdef int i
        if <int>REASONS > <int>REASON_COUNT or len(messages) > MESSAGES:
            raise ValueError(f"messages: found {len(messages)}, allowed are {MESSAGES}")
        self.state = <SessionState*>calloc(1, sizeof(SessionState))
        if self.state == NULL:
            raise MemoryError
        self._tables = [message[0] for message in messages]
        for table, code, role, reply in messages:
            m = &self.state.messages[self.state.message_count]
            m.rows = table.rows
            m.row_count = table.n
            m.size = table.size
            m.type = code
            m.role = ROLE_AXES if role == "axes" else ROLE_MOTION
            m.reply = make_reply(reply)
            self.state.message_count += 1
        self.state.unknown = make_reply(unknown_reply)
        self.state.size_max = PENDING_BYTES // 2
        self.state.patience = <int64_t>(patience_s * 1e9)
        self.state.frame = self.state.fallback = stage.frame
        # What no package fills, the source does not have.
        self.state.telemetry.engine_speed = NAN
        for i in range(3):
            self.state.telemetry.velocity[i] = NAN
        slot_clear(&self.state.newest)

        self.watch()

    def watch(
        self,
        *,
        double acceleration=80.0,
        double rate=10.5,
        double frozen_s=1.0,
        double slack_s=0.1,
        double frame_jump_s=2.0,
    ):
        """Set what counts as a discontinuity.

        Parameters
        ----------
        acceleration, rate : float
            Largest believable acceleration [m/s^2] and angular rate [rad/s].
        frozen_s : float
            How long a moving car may repeat the same state [s].
        slack_s : float
            How unevenly frames may arrive [s].
        frame_jump_s : float
            Largest change of the simulator's frame time [s].
        """
        cdef Watch* w = &self.state.watch
        w.acceleration = acceleration
        w.rate = rate
        w.frozen_s = frozen_s
        w.slack_s = slack_s
        w.frame_jump_s = frame_jump_s

    def __dealloc__(self):
        free(self.state)

    def begin(self, int64_t now_ns):
        """Start afresh for a simulator that has just connected.

        Parameters
        ----------
        now_ns : int
            When it did, monotonic clock [ns].
        """
        session_begin(self.state, now_ns)

    def feed(self, const unsigned char[::1] data not None, int64_t now_ns):
        """Take bytes as they came; return the replies, and whether the connection may stay open.

        Parameters
        ----------
        data : bytes-like
            Any number of bytes, split anywhere.
        now_ns : int
            When they came, monotonic clock [ns].

        Returns
        -------
        replies : bytes
        open : bool
        """
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t n = data.shape[0]
        cdef int piece
        cdef bint good = True
        replies = b""
        while good and start < n:
            piece = min(n - start, FEED_BYTES)
            good = session_feed(self.state, &data[start], piece, now_ns)
            start += piece
            replies += self.state.out[: self.state.out_have]
            session_sent(self.state, self.state.out_have)
        return replies, good

    def newest(self):
        """Return the newest motion, an array of shape (1,), or None if there is none since the last call.

        For use when no emitter reads this session: a slot has one reader.
        """
        cdef Publication publication
        if not slot_read(&self.state.newest, &publication, sizeof(Publication)):
            return None
        out = np.zeros(1, dtype=MOTION_DTYPE)
        cdef Motion[::1] view = out
        view[0] = publication.motion
        return out

    def events(self):
        """Return and forget what happened since the last call: a list of (time [ns], reason, detail)."""
        out = []
        while event_read(&self.state.events, &self._event):
            out.append((self._event.time, NAMES[self._event.code], self._event.detail))
        return out

    @property
    def discontinuities(self):
        """How often each kind of discontinuity has occurred; kinds that have not are left out."""
        counts = ((name, mc_load(&self.state.counters.events[code])) for code, name in enumerate(NAMES))
        return {name: count for name, count in counts if count}

    @property
    def replies_lost(self):
        """Answers that a simulator which does not read them left no room for.

        The packages themselves were taken.
        """
        return mc_load(&self.state.counters.refused[<int>REPLY_LOST])

    @property
    def accepted(self):
        """Packages that gave a motion."""
        return mc_load(&self.state.counters.accepted)

    @property
    def sessions(self):
        """Simulators that have connected so far."""
        return mc_load(&self.state.counters.sessions)

    @property
    def replies(self):
        """Answers given."""
        return mc_load(&self.state.counters.replies)

    @property
    def events_lost(self):
        """Events that found the queue full: nobody had called `events` for too long."""
        return mc_load(&self.state.events.lost)

    @property
    def rejected(self):
        """How many packages, or connections, were refused for each reason that did occur."""
        counts = ((name, mc_load(&self.state.counters.refused[code])) for code, name in enumerate(NAMES))
        return {name: count for name, count in counts if count and name != "reply_lost"}
