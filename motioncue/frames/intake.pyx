"""Packages in, newest motion and replies out, without transport and without the GIL; in a stream session as well."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport NAN, fabs
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memmove, memset

import sys
from math import radians

import numpy as np

from motioncue.core.blend cimport smooth
from motioncue.core.threads cimport (
    ACCELERATION_CONTRADICTED, ACCEPTED, BIG_ENDIAN, FRAMING, RATE_CONTRADICTED, REASONS, RECORD_CONNECTED,
    RECORD_DISCONNECTED, RECORD_ENDPOINT, RECORD_PACKAGE, RECORD_RETUNED, REPLY_LOST, SECOND_SIMULATOR, SESSION_ENDED,
    SIZE, SPIKE, STALLED, TYPE, RecordRing, event_read, mc_count, mc_load, mc_load_acquire, mc_store, ring_write,
)
from motioncue.core.records cimport CHASSIS, Motion, Publication, publication_clear, publication_read
from motioncue.frames.convert cimport BodyStage, TelemetryStages
from motioncue.frames.plausibility cimport watch_restart
from motioncue.frames.arrival_clock cimport Stamps
from motioncue.frames.frame cimport take_axes, take_motion
from motioncue.wire.codec cimport F4, F8, N8, TEXT, decode
from motioncue.wire.messages cimport (
    REPLY_BYTES, ROLE_AXES, ROLE_MOTION, ROLE_NEEDED, Cipher, Message, Reply, add_message, decode_chassis,
    find_message, make_reply, mc_cipher_apply, reply_write, set_absent,
)

from motioncue.core.channels import AHEAD_MARK, MOTION_DTYPE, TELEMETRY_DTYPE
from motioncue.core.channels import CHASSIS as CHASSIS_CHANNELS
from motioncue.core.table import UNWATCHED
from motioncue.core.table import Watch as Thresholds
from motioncue.core.threads import NAMES
from motioncue.wire.messages import Echo

__all__ = ["Intake", "Session", "datagram_intake", "read_frames"]

cdef int STAMP = TELEMETRY_DTYPE.fields["stamp"][1] // 8    # its slot

cdef enum:
    LARGEST = 1 << 20       # [bytes]; every system's packages are smaller
    MARK_BYTES = 8

cdef uint8_t[MARK_BYTES] mark
memcpy(mark, <const uint8_t*><bytes>AHEAD_MARK, MARK_BYTES)


cdef inline IntakeState* beside(IntakeState* s) noexcept nogil:
    """Return the next intake that takes the same packages, which another thread may set; NULL if there is none."""
    return <IntakeState*>mc_load_acquire(<int64_t*>&s.beside)


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil:
    """Begin a session with a simulator that has just connected."""
    cdef IntakeState* other = beside(s)
    if other != NULL:
        other.joins = False
        intake_begin(other, now)
    if s.ring != NULL:
        ring_write(s.ring, RECORD_CONNECTED, now, b"", 0)
    begin(s, now)


cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil:
    if beside(s) != NULL and not beside(s).joins:
        intake_end(beside(s), now)
    if s.ring != NULL:
        ring_write(s.ring, RECORD_DISCONNECTED, now, b"", 0)
    log_event(s, now, SESSION_ENDED, mc_load(&s.counters.sessions))


cdef int decode_telemetry(IntakeState* s, const Message* m, const uint8_t* package) noexcept nogil:
    """Decode a package into the telemetry; a refused package changes nothing."""
    cdef int i, reason
    s.backup = s.newest
    for i in range(64 if m.absent else 0):
        if m.absent >> i & 1:
            (<double*>&s.newest)[i] = (<double*>&s.empty)[i]
    reason = decode(m.rows, m.row_count, package, <double*>&s.newest)
    if reason != ACCEPTED:
        s.newest = s.backup
    elif m.chassis_count:
        decode_chassis(m, package, s.chassis)
    return reason


cdef void set_thresholds(IntakeState* s) noexcept nogil:
    s.watch.acceleration = s.tuned.acceleration
    s.watch.rate = s.tuned.rate
    s.watch.frozen_s = s.tuned.frozen_s
    s.watch.slack_s = s.tuned.slack_s
    s.watch.frame_jump_s = s.tuned.frame_jump_s
    s.watch.step.limit = s.tuned.acceleration_step
    s.watch.rate_step.limit = s.tuned.rate_step
    s.watch.velocity_error = s.tuned.velocity_error
    s.watch.attitude_error = s.tuned.attitude_error


cdef void take_tuned(IntakeState* s, int64_t now) noexcept nogil:
    """Use newer settings, if any, from this package on; the head moves to its new place along a fade."""
    cdef double* head = s.fallback.head
    cdef double position
    cdef int i
    if tuned_read(&s.tuning, &s.tuned):
        set_thresholds(s)
        if s.ring != NULL:
            ring_write(s.ring, RECORD_RETUNED, now, &s.tuned.number, sizeof(int64_t))
        s.head_since = now
        s.head_moves = True
        for i in range(3):
            s.head_before[i] = head[i]
    if s.head_moves:
        position = (now - s.head_since) * 1e-9 / s.tuned.move_s
        s.head_moves = position < 1.0
        for i in range(3):
            head[i] = s.tuned.head[i]
            if s.head_moves:
                head[i] += (1.0 - smooth(position)) * (s.head_before[i] - head[i])
            s.frame.head[i] = head[i]


cdef int without_ahead(IntakeState* s, const uint8_t* package, int size) noexcept nogil:
    """Find what a package says of what the car will do, behind its own bytes and a mark; return the size of its own."""
    cdef int rest = size - <int>(sizeof(s.publication.ahead) + MARK_BYTES)
    s.ahead = NULL
    if rest <= 0 or memcmp(package + rest, mark, MARK_BYTES) != 0:
        return size
    s.ahead = package + rest + MARK_BYTES
    return rest


cdef void note_car(IntakeState* s, const uint8_t* package, int size) noexcept nogil:
    """Keep the bytes that say which car it is, for other threads to read."""
    cdef int64_t car = 0
    if size >= s.car_offset + s.car_bytes and (s.car_size == 0 or size == s.car_size):
        memcpy(&car, package + s.car_offset, s.car_bytes)
        mc_store(&s.car, car)
        mc_count(&s.cars, 1)


cdef int intake_kind(IntakeState* s, const uint8_t* package, int size) noexcept nogil:
    """Return what a package is: 0 for motion in any form, another number for each other message, -1 if unknown."""
    cdef int near
    if s.cipher.used and mc_cipher_apply(&s.cipher, package, size, s.plain):
        package = s.plain
    find_message(&s.messages, package, size, &near)
    return 0 if near >= 0 and s.messages.rows[near].role == ROLE_MOTION else near + 1 if near >= 0 else -1


cdef void welcome(const IntakeState* s, IntakeState* other, int64_t now) noexcept nogil:
    """Tell an intake that joins which session it is, as its simulator would have."""
    other.joins = False
    if mc_load(&s.counters.sessions) != 0:
        intake_begin(other, now)
    if s.announced_size:
        intake_take(other, s.announced, s.announced_size, now)


cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil:
    """Take one whole package; return the reply, whose size is 0 if the package wants none."""
    cdef const uint8_t* plain = package
    cdef IntakeState* other = beside(s)
    cdef Message* m
    cdef int near, reason
    if other != NULL:
        other.endpoint = s.endpoint
        if other.joins:
            welcome(s, other, now)
        intake_take(other, package, size, now)
    take_tuned(s, now)
    if s.ring != NULL:
        ring_write(s.ring, RECORD_PACKAGE + (s.endpoint << RECORD_ENDPOINT), now, package, size)
    if s.cipher.used and mc_cipher_apply(&s.cipher, package, size, s.plain):
        plain = s.plain
    if s.with_ahead:
        size = without_ahead(s, plain, size)
    reason = find_message(&s.messages, plain, size, &near)
    if near < 0:
        refuse(s, TYPE, now, size)
        return &s.messages.unknown
    m = &s.messages.rows[near]
    if reason == ACCEPTED:
        reason = decode_telemetry(s, m, plain)
    if reason == ACCEPTED:
        if m.role == ROLE_AXES:
            reason = take_axes(s)
            if reason == ACCEPTED and size <= ANNOUNCED_BYTES:
                memcpy(s.announced, package, size)
                s.announced_size = size
        elif m.role == ROLE_MOTION:
            reason = take_motion(s, now)
        else:
            if m.role == ROLE_NEEDED:
                s.part_time = now
            mc_count(&s.counters.others, 1)
    if s.car_bytes and reason == ACCEPTED:
        note_car(s, plain, size)
    if reason != ACCEPTED:
        refuse(s, reason, now, size)
    return &m.reply


cdef Tuned tuned_of(object thresholds, object head_m=(0.0, 0.0, 0.0), double fade_s=0.0):
    """Return a watch's thresholds and the head's place, to which it moves in `fade_s`."""
    cdef Tuned tuned
    memset(&tuned, 0, sizeof(Tuned))
    tuned.acceleration = thresholds.max_acceleration_m_s2
    tuned.rate = radians(thresholds.max_rate_deg_s)
    tuned.frozen_s = thresholds.frozen_s
    tuned.slack_s = thresholds.jitter_s
    tuned.frame_jump_s = thresholds.frame_jump_s
    tuned.acceleration_step = thresholds.max_acceleration_step_m_s2
    tuned.rate_step = radians(thresholds.max_rate_step_deg_s)
    tuned.velocity_error = thresholds.velocity_error_m_s
    tuned.attitude_error = radians(thresholds.attitude_error_deg)
    tuned.head[0], tuned.head[1], tuned.head[2] = head_m[0], head_m[1], -head_m[2]
    tuned.move_s = fade_s
    return tuned


cdef void set_stamp_resolution(Stamps* stamps, const Message* m) noexcept:
    """Set how exact a message's time stamp is, from its rows."""
    cdef int i
    stamps.unit = stamps.rounding = 0.0
    for i in range(m.row_count):
        if m.rows[i].slot == STAMP:
            if m.rows[i].format == F4:
                stamps.rounding = 2.0**-23
            elif m.rows[i].format not in (F8, N8, TEXT):
                stamps.unit = fabs(m.rows[i].scale)


cdef class Intake:
    """Takes whole packages of a source; gives replies and the newest motion.

    Real time: `feed` does not block and cannot fail; refused packages are counted in `rejected`.
    """

    def __cinit__(
        self, messages, BodyStage stage, TelemetryStages stages=None, *, bytes unknown_reply=b"", double patience_s=1.0,
        int reply_port=0, str byte_order="little", Cipher cipher=None, heartbeat=None,
        gather=None
    ):
        cdef IntakeState* s
        cdef int i
        if <int>REASONS > <int>REASON_COUNT:
            raise ValueError("reasons: there are more than counters")
        self.intake = s = <IntakeState*>calloc(1, sizeof(IntakeState))
        if s == NULL:
            raise MemoryError
        if byte_order not in ("little", "big"):
            raise ValueError(f"byte_order: found {byte_order!r}, allowed are 'little' and 'big'")
        self.reply_port = reply_port
        self.heartbeat = heartbeat
        self.gather = gather
        if cipher is not None:
            s.cipher = cipher.cipher
        self._tables = [(message.table, message.chassis) for message in messages]
        for message in messages:
            add_message(&s.messages, message)
        for i in range(s.messages.count):
            s.needs_axes = s.needs_axes or s.messages.rows[i].role == ROLE_AXES
            s.needs_part = s.needs_part or s.messages.rows[i].role == ROLE_NEEDED
            s.publication.with_chassis |= s.messages.rows[i].chassis_count > 0
            if s.messages.rows[i].role == ROLE_MOTION:
                set_stamp_resolution(&s.stamps, &s.messages.rows[i])
        set_absent(&s.messages)
        s.messages.unknown = make_reply(unknown_reply, Echo())
        s.stages = TelemetryStages().stages if stages is None else stages.stages
        s.fallback = stage.frame
        if s.stages.from_velocity:
            s.fallback.gravity = 0.0
        s.frame = s.fallback
        # Values that no package fills are unknown.
        s.newest.engine_speed = s.newest.speed = s.newest.stamp = s.newest.frame_duration = NAN
        for i in range(3):
            s.newest.velocity[i] = s.newest.acceleration[i] = s.newest.angular_velocity[i] = NAN
        s.empty = s.newest
        for i in range(CHASSIS):
            s.chassis[i] = s.publication.chassis[i] = NAN
        publication_clear(&s.slot)
        tuned_clear(&s.tuning)
        self.watch(Thresholds())

    def watch(self, thresholds):
        """Set what counts as a discontinuity, and how far acceleration and rates may contradict the motion."""
        self.intake.tuned = tuned_of(thresholds)
        set_thresholds(self.intake)
        self.intake.watch.trusting = thresholds == UNWATCHED
        watch_restart(&self.intake.watch)

    def retune(self, thresholds, head_m, double fade_s, int64_t number=0):
        """Change settings while packages come, as the tick that takes newer ones does: from the next package on.

        Call it only where no tick does.
        """
        cdef Tuned tuned = tuned_of(thresholds, head_m, fade_s)
        tuned.number = number
        tuned_write(&self.intake.tuning, &tuned)

    def __dealloc__(self):
        free(self.intake)

    def record(self, RecordRing ring not None):
        """Put packages, frames and events into a ring as they come; call it before the first package."""
        self._ring = ring
        self.intake.ring = &ring.ring

    def add_beside(self, Intake other not None):
        """Let another rig's intake, of the same source, take every package from now on; any thread may call it."""
        cdef IntakeState* last = self.intake
        if self._beside is None:
            self._beside = []
        self._beside.append(other)
        other.intake.joins = True
        while last.beside != NULL:
            last = last.beside
        mc_store_release(<int64_t*>&last.beside, <int64_t>other.intake)

    def remove_beside(self, Intake other not None):
        """Give it no more packages; one that is being taken may still come."""
        cdef IntakeState* last = self.intake
        while last.beside != NULL and last.beside != other.intake:
            last = last.beside
        if last.beside != NULL:
            mc_store_release(<int64_t*>&last.beside, <int64_t>other.intake.beside)

    def name_contest(self, contest):
        """Set a function that says in words who was refused because another one drives."""
        self._contest = contest

    def frame(self):
        """Return the frame of the newest accepted package, plausible or not: MOTION_DTYPE, shape (1,).

        For use without a receiver, right after `accepted` has grown.
        """
        out = np.zeros(1, dtype=MOTION_DTYPE)
        cdef Motion[::1] view = out
        view[0] = self.intake.motion
        return out

    def chassis(self):
        """Return what the newest package said of wheels, suspension and cab: an array of the order of ``CHASSIS``.

        None if the source says nothing of them.  While a receiver runs, numbers of two packages may be among them: good
        enough to be shown.
        """
        cdef int i
        if not self.intake.publication.with_chassis:
            return None
        return np.array([self.intake.chassis[i] for i in range(CHASSIS)])

    def chassis_said(self):
        """Return the same by name, without what is unknown; empty if the source says nothing."""
        values = self.chassis()
        if values is None:
            return {}
        return {channel.name: value for channel, value in zip(CHASSIS_CHANNELS, values.tolist(), strict=True) if value == value}

    def world(self):
        """Return position and velocity of the newest frame in world axes [m, m/s].

        For use without a receiver.
        """
        out = np.empty((2, 3))
        cdef double[:, ::1] view = out
        cdef const double* vector
        cdef int i, row
        for row in range(2):
            vector = &self.intake.telemetry.velocity[0] if row else &self.intake.telemetry.position[0]
            for i in range(3):
                view[row, i] = (
                    self.intake.frame.world[i][0] * vector[0]
                    + self.intake.frame.world[i][1] * vector[1]
                    + self.intake.frame.world[i][2] * vector[2]
                )
        return out

    def begin(self, int64_t now_ns):
        """Begin a session with a simulator that has just connected."""
        intake_begin(self.intake, now_ns)

    def feed(self, data, int64_t now_ns):
        """Take one whole package; return the reply, and True since more may come."""
        cdef uint8_t out[REPLY_BYTES]
        cdef Py_buffer view     # a typed memoryview would cost more than all the rest
        cdef const Reply* reply
        cdef int size = 0
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        if view.len > <Py_ssize_t>LARGEST:
            refuse(self.intake, SIZE, now_ns, view.len)
        else:
            reply = intake_take(self.intake, <const uint8_t*>view.buf, <int>view.len, now_ns)
            size = reply_write(reply, <const uint8_t*>view.buf, <int>view.len, out)
            if size:
                mc_count(&self.intake.counters.replies, 1)
        PyBuffer_Release(&view)
        return PyBytes_FromStringAndSize(<const char*>out, size), True

    def newest(self):
        """Return the newest motion, an array of shape (1,), or None if there is none since the last call.

        For use without an emitter, because a slot has one reader.
        """
        cdef Publication publication
        if not publication_read(&self.intake.slot, &publication):
            return None
        out = np.zeros(1, dtype=MOTION_DTYPE)
        cdef Motion[::1] view = out
        view[0] = publication.motion
        return out

    def events(self):
        """Remove and return the events since the last call: a list of (time [ns], reason, detail).

        The detail is a number, or a text: for a measured value the quantity, its value and its limit; for a simulator
        that was refused because another one drives, both addresses.
        """
        out = []
        while event_read(&self.intake.events, &self._event):
            detail = self._event.detail
            if self._event.limit:
                detail = f"{NAMES[detail]}, {self._event.value:.4g} where {self._event.limit:.4g} is allowed"
            elif self._event.code == SECOND_SIMULATOR and self._contest is not None:
                detail = self._contest()
            out.append((self._event.time, NAMES[self._event.code], detail))
        return out

    @property
    def discontinuities(self):
        """Number of discontinuities of each kind; kinds without any are left out."""
        counts = ((name, mc_load(&self.intake.counters.events[code])) for code, name in enumerate(NAMES))
        return {name: count for name, count in counts if count}

    def take_ahead(self):
        """Take what packages say of what the car will do; only a program's are asked, never those of a network."""
        self.intake.with_ahead = True

    def read_car(self, int offset, int bytes, int size=0):
        """From now on keep what accepted packages of this size, or of any, have there: up to 8 bytes that name the car.

        Units: `offset`, `bytes`, `size` [bytes].
        """
        if not (0 <= offset and 1 <= bytes <= 8):
            raise ValueError(f"car: found {bytes} bytes at {offset}, allowed are 1 to 8")
        self.intake.car_offset, self.intake.car_bytes, self.intake.car_size = offset, bytes, size

    @property
    def car(self):
        """The 8 bytes that hold the newest ones, zeros behind them; None before the first."""
        if mc_load(&self.intake.cars) == 0:
            return None
        return int(mc_load(&self.intake.car)).to_bytes(8, sys.byteorder, signed=True)

    @property
    def replies_lost(self):
        """Replies that found no room because the simulator did not read the ones before.

        Their packages were taken.
        """
        return mc_load(&self.intake.counters.refused[<int>REPLY_LOST])

    @property
    def accepted(self):
        """Number of packages that gave a motion."""
        return mc_load(&self.intake.counters.accepted)

    @property
    def published(self):
        """Number of frames published: those that gave a motion, repeats included."""
        return self.intake.publication.count

    @property
    def frozen(self):
        """Whether the newest frame is not followed, because it repeats or is implausible."""
        return bool(self.intake.publication.frozen)

    @property
    def others(self):
        """Number of packages without motion of their own."""
        return mc_load(&self.intake.counters.others)

    @property
    def repeats(self):
        """Number of frames that repeat the one before."""
        return mc_load(&self.intake.counters.repeats)

    @property
    def sessions(self):
        """Number of sessions so far."""
        return mc_load(&self.intake.counters.sessions)

    @property
    def replies(self):
        """Number of replies."""
        return mc_load(&self.intake.counters.replies)

    @property
    def events_lost(self):
        """Events dropped because the queue was full: `events` was not called for too long."""
        return mc_load(&self.intake.events.lost)

    @property
    def rejected(self):
        """Number of refused packages, or connections, by reason; reasons that did not occur are left out."""
        counts = ((name, mc_load(&self.intake.counters.refused[code])) for code, name in enumerate(NAMES))
        return {name: count for name, count in counts if count and name != "reply_lost"}

    @property
    def not_queued(self):
        """Number of what was refused, or held back by a measured value, without an event, by reason.

        The first ten of each reason are events, and then every thousandth.
        """
        cdef const Counters* c = &self.intake.counters
        cdef int64_t n
        cdef int code
        out = {}
        for code in range(len(NAMES)):
            n = mc_load(&c.refused[code])
            if code == SPIKE or code == ACCELERATION_CONTRADICTED or code == RATE_CONTRADICTED:
                n = mc_load(&c.events[code])
            if n > QUEUED_FIRST:
                out[NAMES[code]] = n - QUEUED_FIRST - n // QUEUED_EVERY
        return out


# ---- a stream session ------------------------------------------------------------------------------------------------


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
                return False
            if s.have - start < size:
                break
            answer(s, intake_take(intake, package, size, now), package, size, now)
            start += size
        s.have -= start
        memmove(s.pending, s.pending + start, s.have)
    return True


cdef bint session_stalled(SessionState* s, int64_t now) noexcept nogil:
    """Say whether the rest of a package is overdue, which ends the session; if so, count it and answer it."""
    if s.have == 0 or now - s.last_byte < s.patience:
        return False
    refuse(s.intake, STALLED, now, s.have)
    answer(s, &s.intake.messages.unknown, s.pending, s.have, now)
    return True


cdef void session_sent(SessionState* s, int n) noexcept nogil:
    """Drop the first `n` bytes of `out`, which have been sent."""
    s.out_have -= n
    memmove(s.out, s.out + n, s.out_have)


cdef class Session(Intake):
    """Takes the bytes of a stream source; gives replies and the newest motion.

    Every package begins with its size: 2 bytes, counting themselves.  The parameters are those of `Intake`.

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

    @cython.binding(False)
    def feed(self, data, int64_t now_ns):
        """Take bytes as they arrive; return the replies, and whether the connection may stay open."""
        cdef Py_buffer view     # a typed memoryview would cost more than all the rest
        if isinstance(data, bytes):     # the usual case, without a buffer request
            return self.answered(<const uint8_t*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), now_ns)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            return self.answered(<const uint8_t*>view.buf, view.len, now_ns)
        finally:
            PyBuffer_Release(&view)

    cdef tuple answered(self, const uint8_t* data, Py_ssize_t size, int64_t now):
        cdef SessionState* s = self.state
        cdef int piece
        cdef bint good = True
        cdef bytes replies = b""
        while good and size > 0:
            piece = <int>size if size < FEED_BYTES else FEED_BYTES
            good = session_feed(s, data, piece, now)
            data += piece
            size -= piece
            if s.out_have:
                replies += PyBytes_FromStringAndSize(<const char*>s.out, s.out_have)
                session_sent(s, s.out_have)
        return replies, good


def read_frames(Intake intake not None, packages, came, double period_ns, most):
    """Return frames, places and velocities [m, m/s], discontinuities up to each, frames held, and the chassis of each.

    The last is None if the source says nothing of it.
    """
    motion = np.zeros(len(packages), dtype=MOTION_DTYPE)
    world = np.zeros((len(packages), 2, 3))
    part = np.zeros(len(packages), dtype=np.intp)
    chassis = np.zeros((len(packages) if intake.intake.publication.with_chassis else 0, <int>CHASSIS))
    cdef double[:, ::1] wheels = chassis
    cdef Motion[::1] motions = motion
    cdef double[:, :, ::1] places = world
    cdef Py_ssize_t[::1] parts = part
    cdef IntakeState* s = intake.intake
    cdef Py_ssize_t index, n = 0, limit = len(packages) if most is None else most
    cdef int held = 0, kinds = len(NAMES), row, i, code
    cdef int64_t before
    cdef const double* vector
    for index in range(len(packages)):
        if n >= limit:
            break
        before = mc_load(&s.counters.accepted)
        # Without arrival times, a package that is not a frame takes no time.
        intake.feed(packages[index], 1 + round(n * period_ns) if came is None else came[index])
        if mc_load(&s.counters.accepted) == before:
            continue
        motions[n] = s.motion
        for row in range(2):
            vector = &s.telemetry.velocity[0] if row else &s.telemetry.position[0]
            for i in range(3):
                places[n, row, i] = (
                    s.frame.world[i][0] * vector[0] + s.frame.world[i][1] * vector[1] + s.frame.world[i][2] * vector[2]
                )
        for code in range(kinds):
            parts[n] += mc_load(&s.counters.events[code])
        held += s.publication.frozen
        if wheels.shape[0]:
            memcpy(&wheels[n, 0], s.chassis, sizeof(s.chassis))
        n += 1
    return motion[:n], world[:n], part[:n], held, chassis[:n] if len(chassis) else None


def datagram_intake(messages, head_m, derivation, *, body=None, reply_port=0, **telemetry):
    """Return the intake of datagrams whose takes fill north, east, down and forward, right, down.

    `body` and `telemetry` are what `BodyStage` and `TelemetryStages` have to know beside or instead of that.
    """
    axes = {"world_north": (1, 0, 0), "world_up": (0, 0, -1), "car_forward": (1, 0, 0), "car_up": (0, 0, -1)}
    stages = TelemetryStages(
        acceleration_axes="car", acceleration=derivation.acceleration, delay_s=derivation.delay_s, **telemetry
    )
    stage = BodyStage(**{**axes, "rates": "car", **(body or {})}, head_m=head_m)
    return Intake(list(messages), stage, stages, reply_port=reply_port)
