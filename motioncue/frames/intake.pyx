"""Packages in, newest motion and replies out, without transport and without the GIL."""

from libc.math cimport NAN, fabs
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from math import radians

import numpy as np

from motioncue.core.blend cimport smooth
from motioncue.core.threads cimport (
    ACCEPTED, REASONS, RECORD_CONNECTED, RECORD_DISCONNECTED, RECORD_ENDPOINT, RECORD_PACKAGE, RECORD_RETUNED,
    REPLY_LOST, SESSION_ENDED, SIZE, TYPE, RecordRing, event_read, mc_count, mc_load, ring_write,
)
from motioncue.core.records cimport Motion, Publication, publication_clear, publication_read
from motioncue.frames.body cimport BodyStage
from motioncue.frames.frames cimport take_axes, take_motion
from motioncue.frames.stages cimport TelemetryStages
from motioncue.frames.arrival_clock cimport Stamps
from motioncue.frames.state cimport (
    REASON_COUNT, IntakeState, Tuned, tuned_clear, tuned_read, tuned_write, begin, refuse, tell,
)
from motioncue.frames.watch cimport Watch, watch_restart
from motioncue.wire.cipher cimport Cipher, mc_cipher_apply
from motioncue.wire.codec cimport F4, F8, N8, TEXT, decode
from motioncue.wire.messages cimport (
    REPLY_BYTES, ROLE_AXES, ROLE_MOTION, ROLE_NEEDED, Message, Reply, add_message, find_message, make_reply,
    reply_write, set_absent,
)

from motioncue.core.channels import MOTION_DTYPE, TELEMETRY_DTYPE
from motioncue.core.threads import NAMES
from motioncue.frames.settings import UNWATCHED
from motioncue.frames.settings import Watch as Thresholds
from motioncue.wire.messages import Echo

__all__ = ["Intake"]

cdef int STAMP = TELEMETRY_DTYPE.fields["stamp"][1] // 8    # its slot

cdef enum:
    LARGEST = 1 << 20       # [bytes]; every system's packages are smaller


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil:
    """Begin a session with a simulator that has just connected."""
    if s.ring != NULL:
        ring_write(s.ring, RECORD_CONNECTED, now, b"", 0)
    begin(s, now)


cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil:
    if s.ring != NULL:
        ring_write(s.ring, RECORD_DISCONNECTED, now, b"", 0)
    tell(s, now, SESSION_ENDED, mc_load(&s.counters.sessions))


cdef int listen(IntakeState* s, const Message* m, const uint8_t* package) noexcept nogil:
    """Decode a package into the telemetry; a refused package changes nothing."""
    cdef int i, reason
    s.known = s.said
    for i in range(64 if m.absent else 0):
        if m.absent >> i & 1:
            (<double*>&s.said)[i] = (<double*>&s.nothing)[i]
    reason = decode(m.rows, m.row_count, package, <double*>&s.said)
    if reason != ACCEPTED:
        s.said = s.known
    return reason


cdef void use_thresholds(IntakeState* s) noexcept nogil:
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
        use_thresholds(s)
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


cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil:
    """Take one whole package; return the reply, whose size is 0 if the package wants none."""
    cdef const uint8_t* plain = package
    cdef Message* m
    cdef int near, reason
    take_tuned(s, now)
    if s.ring != NULL:
        ring_write(s.ring, RECORD_PACKAGE + (s.endpoint << RECORD_ENDPOINT), now, package, size)
    if s.cipher.used and mc_cipher_apply(&s.cipher, package, size, s.plain):
        plain = s.plain
    reason = find_message(&s.messages, plain, size, &near)
    if near < 0:
        refuse(s, TYPE, now, size)
        return &s.messages.unknown
    m = &s.messages.rows[near]
    if reason == ACCEPTED:
        reason = listen(s, m, plain)
    if reason == ACCEPTED:
        if m.role == ROLE_AXES:
            reason = take_axes(s)
        elif m.role == ROLE_MOTION:
            reason = take_motion(s, now)
        else:
            if m.role == ROLE_NEEDED:
                s.part_time = now
            mc_count(&s.counters.others, 1)
    if reason != ACCEPTED:
        refuse(s, reason, now, size)
    return &m.reply


cdef Tuned tuned_of(thresholds):
    """Return a watch's thresholds, with the head at 0."""
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
    return tuned


cdef void know_stamps(Stamps* stamps, const Message* m) noexcept:
    """Learn from a message's rows how exact its time stamp is."""
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

    Notes
    -----
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
        self._tables = [message.table for message in messages]
        for message in messages:
            add_message(&s.messages, message)
        for i in range(s.messages.count):
            s.needs_axes = s.needs_axes or s.messages.rows[i].role == ROLE_AXES
            s.needs_part = s.needs_part or s.messages.rows[i].role == ROLE_NEEDED
            if s.messages.rows[i].role == ROLE_MOTION:
                know_stamps(&s.stamps, &s.messages.rows[i])
        set_absent(&s.messages)
        s.messages.unknown = make_reply(unknown_reply, Echo())
        s.stages = TelemetryStages().stages if stages is None else stages.stages
        s.fallback = stage.frame
        if s.stages.from_velocity:
            s.fallback.gravity = 0.0
        s.frame = s.fallback
        # Values that no package fills are unknown.
        s.said.engine_speed = s.said.speed = s.said.stamp = s.said.frame_duration = NAN
        for i in range(3):
            s.said.velocity[i] = s.said.acceleration[i] = s.said.angular_velocity[i] = NAN
        s.nothing = s.said
        publication_clear(&s.newest)
        tuned_clear(&s.tuning)
        self.watch(Thresholds())

    def watch(self, thresholds):
        """Set what counts as a discontinuity, and how far acceleration and rates may contradict the motion."""
        self.intake.tuned = tuned_of(thresholds)
        use_thresholds(self.intake)
        self.intake.watch.trusting = thresholds == UNWATCHED
        watch_restart(&self.intake.watch)

    def retune(self, thresholds, head_m, double fade_s, int64_t number=0):
        """Change settings while packages come; they are taken with the next package, without a lock.

        Call it from one thread at a time.
        """
        cdef Tuned tuned = tuned_of(thresholds)
        tuned.head[0], tuned.head[1], tuned.head[2] = head_m[0], head_m[1], -head_m[2]
        tuned.move_s = fade_s
        tuned.number = number
        tuned_write(&self.intake.tuning, &tuned)

    def __dealloc__(self):
        free(self.intake)

    def record(self, RecordRing ring not None):
        """Put packages, frames and events into a ring as they come; call it before the first package."""
        self._ring = ring
        self.intake.ring = &ring.ring

    def frame(self):
        """Return the frame of the newest accepted package, plausible or not: MOTION_DTYPE, shape (1,).

        For use without a receiver, right after `accepted` has grown.
        """
        out = np.zeros(1, dtype=MOTION_DTYPE)
        cdef Motion[::1] view = out
        view[0] = self.intake.motion
        return out

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

    def feed(self, const unsigned char[::1] data not None, int64_t now_ns):
        """Take one whole package; return the reply, and True since more may come."""
        cdef uint8_t out[REPLY_BYTES]
        if data.shape[0] > <Py_ssize_t>LARGEST:
            refuse(self.intake, SIZE, now_ns, data.shape[0])
            return b"", True
        cdef int size = <int>data.shape[0]
        cdef const uint8_t* package = &data[0] if size else <const uint8_t*>b""
        cdef const Reply* reply = intake_take(self.intake, package, size, now_ns)
        size = reply_write(reply, package, size, out)
        if size:
            mc_count(&self.intake.counters.replies, 1)
        return out[:size], True

    def newest(self):
        """Return the newest motion, an array of shape (1,), or None if there is none since the last call.

        For use without an emitter, because a slot has one reader.
        """
        cdef Publication publication
        if not publication_read(&self.intake.newest, &publication):
            return None
        out = np.zeros(1, dtype=MOTION_DTYPE)
        cdef Motion[::1] view = out
        view[0] = publication.motion
        return out

    def events(self):
        """Remove and return the events since the last call: a list of (time [ns], reason, detail).

        The detail is a number, or for a measured value a text with the quantity, its value and its limit.
        """
        out = []
        while event_read(&self.intake.events, &self._event):
            detail = self._event.detail
            if self._event.limit:
                detail = f"{NAMES[detail]}, {self._event.value:.4g} where {self._event.limit:.4g} is allowed"
            out.append((self._event.time, NAMES[self._event.code], detail))
        return out

    @property
    def discontinuities(self):
        """Number of discontinuities of each kind; kinds without any are left out."""
        counts = ((name, mc_load(&self.intake.counters.events[code])) for code, name in enumerate(NAMES))
        return {name: count for name, count in counts if count}

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
