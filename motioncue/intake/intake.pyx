"""Packages in, newest motion and replies out, without transport and without the GIL."""

from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

import numpy as np

from motioncue.kernels.body cimport BodyStage, set_car_axes, to_body
from motioncue.kernels.codec cimport decode
from motioncue.intake.messages cimport (
    REPLY_BYTES, ROLE_AXES, ROLE_MOTION, ROLE_NEEDED, Message, Reply, add_message, find_message, make_reply,
    reply_write, set_absent,
)
from motioncue.kernels.reasons cimport (
    ACCEPTED, BEFORE_INIT, FROZEN, INCOMPLETE, NOT_FINITE, PAUSED, REASONS, RECONNECT, REPLY_LOST, SESSION_BEGAN,
    SESSION_ENDED, TYPE,
)
from motioncue.kernels.slot cimport (
    event_read, event_write, mc_count, mc_load, mc_load_acquire, mc_store_release, slot_clear, slot_read, slot_write,
)
from motioncue.kernels.timeline cimport timeline_frame, timeline_restart
from motioncue.intake.stages cimport TelemetryStages, derive, derives, follow
from motioncue.intake.watch cimport watch_step

from motioncue.kernels.reasons import NAMES
from motioncue.motion import GRAVITY, MOTION_DTYPE

__all__ = ["Intake"]

cdef double G = GRAVITY

cdef enum:
    MOVING = 9      # doubles of a motion that move the platform: surge to yaw rate


cdef void tell(IntakeState* s, int64_t now, int reason, int64_t detail) noexcept nogil:
    cdef Event event = Event(now, reason, detail, 0, 0, 0.0, 0.0)
    event_write(&s.events, &event)


cdef void refuse(IntakeState* s, int reason, int64_t now, int64_t detail) noexcept nogil:
    """Count `reason`, and put its first occurrences, then every thousandth, in the event queue."""
    mc_count(&s.counters.refused[reason], 1)
    cdef int64_t n = mc_load(&s.counters.refused[reason])
    if n <= 10 or n % 1000 == 0:
        tell(s, now, reason, detail)


cdef void forget(IntakeState* s) noexcept nogil:
    """Let nothing that comes be compared with what was."""
    s.initialised = False
    s.frame = s.fallback
    s.frame_time = 0.0
    s.part_time = 0
    s.began = 0
    s.waited = 0.0
    timeline_restart(&s.timeline)
    s.stages.running = False
    s.watch.armed = False
    s.watch.changes = 0


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil:
    """Start afresh for a simulator that has just connected."""
    forget(s)
    mc_count(&s.counters.sessions, 1)
    tell(s, now, SESSION_BEGAN, mc_load(&s.counters.sessions))


cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil:
    tell(s, now, SESSION_ENDED, mc_load(&s.counters.sessions))


cdef int take_axes(IntakeState* s) noexcept nogil:
    s.initialised = True
    s.frame_time = 0.0
    s.frame = s.fallback
    return set_car_axes(&s.frame, s.said.forward, s.said.up)


cdef void time_frame(IntakeState* s, int64_t now) noexcept nogil:
    """Say how long the frame lasted: by its own word, by its time stamp, or not at all (NaN)."""
    if isfinite(s.said.stamp):
        s.said.frame_duration = s.said.stamp - s.before.stamp if s.watch.armed else 0.0
        if s.said.frame_duration < 0.0:     # the simulator's time has begun again
            intake_begin(s, now)
            s.said.frame_duration = 0.0
    if s.began == 0:
        s.began = now


cdef int turn(IntakeState* s, int64_t now) noexcept nogil:
    """Fill the motion from what was said; the reason if that is not one."""
    cdef Motion* m = &s.motion
    follow(&s.stages, &s.said, &s.telemetry, G)
    cdef const double* v = s.telemetry.velocity
    cdef int i
    cdef int reason = to_body(&s.frame, &s.telemetry, m)
    if reason != ACCEPTED:
        return reason
    if s.stages.from_velocity and not isfinite(v[0] + v[1] + v[2]):
        return NOT_FINITE
    for i in range(MOVING):
        if not isfinite((<double*>m)[i]):
            return NOT_FINITE
    if m.speed != m.speed:      # no velocity: what else is known of the speed
        m.speed = s.said.speed
    m.frame_time = s.frame_time + s.said.frame_duration
    if not isfinite(m.frame_time):
        m.frame_time = (now - s.began) * 1e-9
    m.time = now
    return ACCEPTED


cdef int take_motion(IntakeState* s, int64_t now) noexcept nogil:
    cdef const double* state = <const double*>&s.said + s.stages.same_from
    cdef const double* last = <const double*>&s.before + s.stages.same_from
    cdef bint repeats
    cdef double frame_time = s.frame_time
    cdef double dt
    cdef int reason
    if s.needs_axes and not s.initialised:
        return BEFORE_INIT
    if s.needs_part and (s.part_time == 0 or now - s.part_time > 1e9 * s.watch.slack_s):
        return INCOMPLETE
    time_frame(s, now)
    repeats = s.watch.armed and memcmp(state, last, s.stages.same_count * sizeof(double)) == 0
    reason = turn(s, now)
    if reason != ACCEPTED:
        s.frame_time = frame_time       # as if it had not come
        return reason
    dt = s.said.frame_duration if s.said.frame_duration > 0.0 else (now - s.before_time) * 1e-9
    s.waited += dt if s.watch.armed else 0.0
    publish(s, repeats)
    s.frame_time = s.motion.frame_time      # a frame that is refused takes no time
    s.before = s.said
    s.before_time = now
    if repeats:
        mc_count(&s.counters.repeats, 1)
    else:
        s.waited = 0.0
    mc_count(&s.counters.accepted, 1)
    return ACCEPTED


cdef void publish(IntakeState* s, bint repeats) noexcept nogil:
    """Hand the motion to the emitter, and say whether it continues what came before."""
    cdef Publication* p = &s.publication
    cdef bint reconnected = not s.watch.armed and p.epoch > 0
    cdef int reason = watch_step(&s.watch, &s.telemetry, &s.motion, repeats)
    cdef bint standing = reason == FROZEN or reason == PAUSED
    cdef bint again = standing and p.frozen and p.reason == reason
    if not repeats or not s.motion.speed > 1.0:     # a moving car that repeats itself says nothing new
        timeline_frame(&s.timeline, s.motion.time, s.motion.frame_time)
    if derives(&s.stages, &s.said) and not repeats:
        # What is derived counts for the frames to come: a step in position or speed is no evidence for itself.
        s.stages.running = s.stages.running and reason == ACCEPTED
        derive(&s.stages, &s.telemetry, s.waited)
        turn(s, s.motion.time)
        s.watch.telemetry = s.telemetry
        s.watch.motion = s.motion
    if reconnected:
        reason = RECONNECT
        s.watch.value = s.watch.limit = 0.0
    # A frame that no car can be in is not motion to engage with either.
    p.frozen = standing or not s.watch.believable
    if not p.frozen:
        p.motion = s.motion
        p.place = s.timeline.place
    if (reason != ACCEPTED and not standing) or p.epoch == 0:
        p.epoch += 1
    if reason != ACCEPTED:
        p.reason = reason
        p.value = s.watch.value
        p.limit = s.watch.limit
        if not again:       # a freeze counts once
            mc_count(&s.counters.events[reason], 1)
    if not s.alone:
        slot_write(&s.newest, &s.publication, sizeof(Publication))


cdef void put_on_tape(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil:
    """Keep the package if there is room for it."""
    cdef int64_t used = mc_load(&s.tape_used)
    cdef int64_t n = size
    if used + 16 + n > s.tape_room or mc_load(&s.tape_missed):    # the beginning whole instead of all with gaps
        mc_count(&s.tape_missed, 1)
        return
    memcpy(s.tape + used, &now, 8)
    memcpy(s.tape + used + 8, &n, 8)
    memcpy(s.tape + used + 16, package, size)
    mc_store_release(&s.tape_used, used + 16 + n)


cdef int listen(IntakeState* s, const Message* m, const uint8_t* package) noexcept nogil:
    """Take what a package says; nothing of one that is refused."""
    cdef int i, reason
    s.known = s.said
    for i in range(64 if m.absent else 0):
        if m.absent >> i & 1:
            (<double*>&s.said)[i] = (<double*>&s.nothing)[i]
    reason = decode(m.rows, m.row_count, package, <double*>&s.said)
    if reason != ACCEPTED:
        s.said = s.known
    return reason


cdef const Reply* intake_take(IntakeState* s, const uint8_t* package, int size, int64_t now) noexcept nogil:
    """Take one whole package; return the answer to it, of size 0 if it wants none."""
    cdef Message* m
    cdef int near, reason
    if s.tape != NULL:
        put_on_tape(s, package, size, now)
    reason = find_message(&s.messages, package, size, &near)
    if near < 0:
        refuse(s, TYPE, now, size)
        return &s.messages.unknown
    m = &s.messages.rows[near]
    if reason == ACCEPTED:
        reason = listen(s, m, package)
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


cdef class Intake:
    """Whole packages of a source in, newest motion and replies out.

    Parameters
    ----------
    messages : sequence of tuple
        For each package, the most particular first: its compiled Table, smallest and largest size [bytes], constants as
        (offset, bytes) of which the first identifies it, role ("axes", "motion", "part", "needed", "other"), reply, and
        which bytes of the package the reply echoes (from, to, size).  Where there are needed packages, a motion counts
        for as long after one as frames may come apart.
        Those that nothing but zeros or their size identifies come last: they are not looked at for a package that bears
        another's mark.
    stage : BodyStage
        The source's axes; the car's are replaced by those an "axes" package announces.
    stages : TelemetryStages, optional
        What comes before it; nothing if not given.
    unknown_reply : bytes
        Answer to a package of any other type.
    patience_s : float
        How long the rest of a package may take [s], where packages come in pieces.
    reply_port : int
        Where the simulator expects the answers to its datagrams; 0 for where they come from.

    Raises
    ------
    ValueError
        If there are too many messages, or a reply or a constant does not fit.

    Notes
    -----
    Real time: `feed` does not block and cannot fail; everything it refuses is counted in `rejected`.
    """

    def __cinit__(
        self, messages, BodyStage stage, TelemetryStages stages=None, *, bytes unknown_reply=b"", double patience_s=1.0, int reply_port=0
    ):
        cdef IntakeState* s
        cdef int i
        if <int>REASONS > <int>REASON_COUNT:
            raise ValueError("reasons: there are more than counters")
        self.intake = s = <IntakeState*>calloc(1, sizeof(IntakeState))
        if s == NULL:
            raise MemoryError
        self.reply_port = reply_port
        self._tables = [message[0] for message in messages]
        for message in messages:
            add_message(&s.messages, message)
        for i in range(s.messages.count):
            s.needs_axes = s.needs_axes or s.messages.rows[i].role == ROLE_AXES
            s.needs_part = s.needs_part or s.messages.rows[i].role == ROLE_NEEDED
        set_absent(&s.messages)
        s.messages.unknown = make_reply(unknown_reply, (0, 0, 0))
        s.stages = TelemetryStages().stages if stages is None else stages.stages
        s.fallback = stage.frame
        if s.stages.from_velocity:
            s.fallback.gravity = 0.0
        s.frame = s.fallback
        # What no package fills, the source does not have.
        s.said.engine_speed = s.said.speed = s.said.stamp = s.said.frame_duration = NAN
        for i in range(3):
            s.said.velocity[i] = s.said.angular_velocity[i] = NAN
        s.nothing = s.said
        slot_clear(&s.newest)
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
        self.intake.watch.acceleration = acceleration
        self.intake.watch.rate = rate
        self.intake.watch.frozen_s = frozen_s
        self.intake.watch.slack_s = slack_s
        self.intake.watch.frame_jump_s = frame_jump_s

    def __dealloc__(self):
        if self.intake != NULL:
            free(self.intake.tape)
        free(self.intake)

    def record(self, Py_ssize_t room):
        """Keep the packages that come, until so many bytes are full; call it before anything comes.

        Parameters
        ----------
        room : int
            For packages and 16 bytes more for each [bytes].

        Raises
        ------
        RuntimeError
            If it has been called before.
        """
        if self.intake.tape != NULL:
            raise RuntimeError("packages are being kept already")
        self.intake.tape = <uint8_t*>malloc(max(room, 1))
        if self.intake.tape == NULL:
            raise MemoryError
        self.intake.tape_room = room

    def recorded(self):
        """Return the packages kept so far: a list of (time [ns], bytes)."""
        cdef int64_t end = mc_load_acquire(&self.intake.tape_used)
        cdef int64_t place = 0
        cdef int64_t now, size
        out = []
        while place < end:
            memcpy(&now, self.intake.tape + place, 8)
            memcpy(&size, self.intake.tape + place + 8, 8)
            out.append((now, self.intake.tape[place + 16 : place + 16 + size]))
            place += 16 + size
        return out

    @property
    def unrecorded(self):
        """How many packages came after the room for them was full."""
        return mc_load(&self.intake.tape_missed)

    def world(self):
        """Return position and velocity of the newest frame in world axes.

        For use when no loop feeds this source.

        Returns
        -------
        ndarray of shape (2, 3)
            North, east, down [m, m/s]; NaN where the source does not say it.
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
        """Start afresh for a simulator that has just connected.

        Parameters
        ----------
        now_ns : int
            When it did, monotonic clock [ns].
        """
        intake_begin(self.intake, now_ns)

    def feed(self, const unsigned char[::1] data not None, int64_t now_ns):
        """Take one whole package; return the reply, and that more may come.

        Parameters
        ----------
        data : bytes-like
            The package.
        now_ns : int
            When it came, monotonic clock [ns].

        Returns
        -------
        reply : bytes
            None if the package wants no answer.
        open : bool
        """
        cdef uint8_t out[REPLY_BYTES]
        cdef int size = <int>data.shape[0]
        cdef const uint8_t* package = &data[0] if size else <const uint8_t*>b""
        cdef const Reply* reply = intake_take(self.intake, package, size, now_ns)
        size = reply_write(reply, package, size, out)
        if size:
            mc_count(&self.intake.counters.replies, 1)
        return out[:size], True

    def newest(self):
        """Return the newest motion, an array of shape (1,), or None if there is none since the last call.

        For use when no emitter reads this source: a slot has one reader.
        """
        cdef Publication publication
        if not slot_read(&self.intake.newest, &publication, sizeof(Publication)):
            return None
        out = np.zeros(1, dtype=MOTION_DTYPE)
        cdef Motion[::1] view = out
        view[0] = publication.motion
        return out

    def events(self):
        """Return and forget what happened since the last call: a list of (time [ns], reason, detail)."""
        out = []
        while event_read(&self.intake.events, &self._event):
            out.append((self._event.time, NAMES[self._event.code], self._event.detail))
        return out

    @property
    def discontinuities(self):
        """How often each kind of discontinuity has occurred; kinds that have not are left out."""
        counts = ((name, mc_load(&self.intake.counters.events[code])) for code, name in enumerate(NAMES))
        return {name: count for name, count in counts if count}

    @property
    def replies_lost(self):
        """Answers that a simulator which does not read them left no room for.

        The packages themselves were taken.
        """
        return mc_load(&self.intake.counters.refused[<int>REPLY_LOST])

    @property
    def accepted(self):
        """Packages that gave a motion."""
        return mc_load(&self.intake.counters.accepted)

    @property
    def others(self):
        """Packages of the system that carry no motion by themselves."""
        return mc_load(&self.intake.counters.others)

    @property
    def repeats(self):
        """Frames that said what the frame before had said."""
        return mc_load(&self.intake.counters.repeats)

    @property
    def sessions(self):
        """Simulators that have connected so far."""
        return mc_load(&self.intake.counters.sessions)

    @property
    def replies(self):
        """Answers given."""
        return mc_load(&self.intake.counters.replies)

    @property
    def events_lost(self):
        """Events that found the queue full: nobody had called `events` for too long."""
        return mc_load(&self.intake.events.lost)

    @property
    def rejected(self):
        """How many packages, or connections, were refused for each reason that did occur."""
        counts = ((name, mc_load(&self.intake.counters.refused[code])) for code, name in enumerate(NAMES))
        return {name: count for name, count in counts if count and name != "reply_lost"}
