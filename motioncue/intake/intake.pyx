"""Packages in, newest motion and replies out, without transport and without the GIL."""

from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from math import radians

import numpy as np

from motioncue.kernels.body cimport BodyFrame, BodyStage, set_car_axes, to_body
from motioncue.kernels.cipher cimport Cipher, mc_cipher_apply
from motioncue.kernels.codec cimport decode
from motioncue.kernels.fade cimport smooth
from motioncue.intake.messages cimport (
    REPLY_BYTES, ROLE_AXES, ROLE_MOTION, ROLE_NEEDED, Message, Reply, add_message, find_message, make_reply,
    reply_write, set_absent,
)
from motioncue.kernels.reasons cimport (
    ACCELERATION_CONTRADICTED, ACCEPTED, BEFORE_INIT, INCOMPLETE, LATE, NOT_FINITE, RATE_CONTRADICTED, REASONS,
    RECONNECT, REPLY_LOST, SESSION_BEGAN, SESSION_ENDED, SIZE, SPIKE, TYPE,
)
from motioncue.kernels.records cimport MOVING, Placement, publication_clear, publication_read, publication_write
from motioncue.kernels.ring cimport (
    RECORD_CONNECTED, RECORD_DISCONNECTED, RECORD_ENDPOINT, RECORD_FRAME, RECORD_HAPPENING, RECORD_PACKAGE, RECORD_RETUNED,
    RecordRing, ring_write,
)
from motioncue.kernels.slot cimport event_read, event_write, mc_count, mc_load
from motioncue.kernels.timeline cimport timeline_frame, timeline_restart
from motioncue.intake.stages cimport TelemetryStages, derive, derives, derives_rates, follow
from motioncue.intake.watch cimport (
    Seen, Watch, axes_of, length3, overtaken, watch_claims, watch_jump, watch_restart, watch_step,
)

from motioncue.intake.messages import Echo
from motioncue.kernels.reasons import NAMES
from motioncue.motion import GRAVITY, MOTION_DTYPE
from motioncue.profile import UNWATCHED
from motioncue.profile import Watch as Thresholds

__all__ = ["Intake"]

cdef double G = GRAVITY

cdef enum:
    LARGEST = 1 << 20       # [bytes]; every system's packages are smaller


cdef void tell(IntakeState* s, int64_t now, int reason, int64_t detail) noexcept nogil:
    cdef Event event = Event(now, reason, detail, 0, 0, 0.0, 0.0)
    event_write(&s.events, &event)
    if s.ring != NULL:
        ring_write(s.ring, RECORD_HAPPENING, now, &event, sizeof(Event))


cdef void tell_measure(IntakeState* s, int reason, int why, double value, double limit) noexcept nogil:
    """Count an event; queue the first ten and then every thousandth, with the measured value and the limit."""
    cdef Event event = Event(s.motion.time, reason, why, 0, 0, value, limit)
    cdef int64_t n
    mc_count(&s.counters.events[reason], 1)
    n = mc_load(&s.counters.events[reason])
    if n <= 10 or n % 1000 == 0:
        event_write(&s.events, &event)
        if s.ring != NULL:
            ring_write(s.ring, RECORD_HAPPENING, event.time, &event, sizeof(Event))


cdef void refuse(IntakeState* s, int reason, int64_t now, int64_t detail) noexcept nogil:
    """Count `reason`; queue its first occurrences and then every thousandth."""
    mc_count(&s.counters.refused[reason], 1)
    cdef int64_t n = mc_load(&s.counters.refused[reason])
    if n <= 10 or n % 1000 == 0:
        tell(s, now, reason, detail)


cdef void forget(IntakeState* s) noexcept nogil:
    """Forget the frames so far, so that nothing is compared with them."""
    s.initialized = False
    s.frame = s.fallback
    s.frame_time = 0.0
    s.part_time = 0
    s.began = 0
    timeline_restart(&s.timeline)
    s.stages.running = False
    s.fallen = 0
    watch_restart(&s.watch)


cdef void begin(IntakeState* s, int64_t now) noexcept nogil:
    """Begin a new session: what follows is another drive."""
    forget(s)
    mc_count(&s.counters.sessions, 1)
    tell(s, now, SESSION_BEGAN, mc_load(&s.counters.sessions))


cdef void intake_begin(IntakeState* s, int64_t now) noexcept nogil:
    """Begin a session with a simulator that has just connected."""
    if s.ring != NULL:
        ring_write(s.ring, RECORD_CONNECTED, now, b"", 0)
    begin(s, now)


cdef void intake_end(IntakeState* s, int64_t now) noexcept nogil:
    if s.ring != NULL:
        ring_write(s.ring, RECORD_DISCONNECTED, now, b"", 0)
    tell(s, now, SESSION_ENDED, mc_load(&s.counters.sessions))


cdef int take_axes(IntakeState* s) noexcept nogil:
    """Take the car's axes that a package announces, the fallback if it is refused; return why, or ACCEPTED."""
    cdef BodyFrame before = s.frame
    cdef int reason
    s.initialized = True
    s.frame_time = 0.0
    s.frame = s.fallback
    reason = set_car_axes(&s.frame, s.said.forward, s.said.up)
    if memcmp(before.car, s.frame.car, sizeof(before.car)) != 0:
        watch_restart(&s.watch)     # frames in other axes are no evidence about these
    return reason


cdef bint begins_again(IntakeState* s, int64_t now) noexcept nogil:
    """Say whether the simulator's time has begun again, which is a new session; late datagrams are not.

    If stamps fall by more than a frame-time jump, two such frames in a row are enough; otherwise they must go on for
    longer than frames may come apart.
    """
    if s.fallen == 0 or not s.said.stamp > s.fallen_stamp:
        s.fallen = 0
        s.fallen_since = now
    s.fallen += 1
    s.fallen_stamp = s.said.stamp
    if s.before.stamp - s.said.stamp > s.watch.frame_jump_s:
        return s.fallen > 1
    return now - s.fallen_since > 1e9 * s.watch.slack_s


cdef int time_frame(IntakeState* s, int64_t now) noexcept nogil:
    """Set the frame's duration: as reported, from its stamp, or NaN if unknown; return LATE for an old frame."""
    if isfinite(s.said.stamp):
        s.said.frame_duration = s.said.stamp - s.before.stamp if s.watch.armed else 0.0
        if s.said.frame_duration < 0.0:
            if not begins_again(s, now):
                return LATE
            begin(s, now)
            s.said.frame_duration = 0.0
        elif s.watch.aside and s.said.stamp == s.aside_stamp:
            return LATE         # a repeated datagram says nothing new about the frame that was set aside
        s.fallen = 0
    if s.began == 0:
        s.began = now
    return ACCEPTED


cdef int turn(IntakeState* s, int64_t now) noexcept nogil:
    """Fill the motion from the telemetry; return the reason if the telemetry is refused."""
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
    if m.speed != m.speed:      # without a velocity, take the speed reported on its own
        m.speed = s.said.speed
    m.frame_time = s.frame_time + s.said.frame_duration
    if not isfinite(m.frame_time):
        m.frame_time = (now - s.began) * 1e-9
    m.time = now
    return ACCEPTED


cdef void see(const IntakeState* s, Seen* out) noexcept nogil:
    """Fill `out` with those quantities of the newest frame that the watch compares."""
    cdef const Telemetry* t = &s.telemetry
    cdef const Motion* m = &s.motion
    cdef int i
    out.time = m.time
    out.duration = t.frame_duration
    memcpy(out.position, t.position, sizeof(t.position))
    memcpy(out.velocity, t.velocity, sizeof(t.velocity))
    for i in range(3):
        out.acceleration[i] = t.acceleration[i] + s.frame.gravity * s.frame.world[2][i]
    axes_of(m, out.axes)
    out.rate[0], out.rate[1], out.rate[2] = m.roll_rate, m.pitch_rate, m.yaw_rate
    out.speed = m.speed
    out.felt = length3(m.surge, m.sway, m.heave)


cdef bint goes_back(IntakeState* s, int64_t now) noexcept nogil:
    """Say whether a frame is older than the newest, by where the car is, from a source that gives no time.

    For as long as frames may come apart; a car that goes back for longer does.
    """
    cdef Seen seen
    if not s.watch.armed or s.said.frame_duration == s.said.frame_duration:
        return False
    see(s, &seen)
    if not overtaken(&s.watch, &seen):
        s.fallen = 0
        return False
    if s.fallen == 0:
        s.fallen_since = now
    s.fallen += 1
    return now - s.fallen_since <= 1e9 * s.watch.slack_s


cdef int take_motion(IntakeState* s, int64_t now) noexcept nogil:
    cdef const double* state = <const double*>&s.said + s.stages.same_from
    cdef const double* last = <const double*>&s.before + s.stages.same_from
    cdef bint repeats
    cdef double frame_time = s.frame_time
    cdef int reason
    if s.needs_axes and not s.initialized:
        return BEFORE_INIT
    if s.needs_part and (s.part_time == 0 or now - s.part_time > 1e9 * s.watch.slack_s):
        return INCOMPLETE
    reason = time_frame(s, now)
    if reason != ACCEPTED:
        return reason
    repeats = s.watch.armed and memcmp(state, last, s.stages.same_count * sizeof(double)) == 0
    reason = turn(s, now)
    if reason == ACCEPTED and not repeats and goes_back(s, now):
        reason = LATE
    if reason != ACCEPTED:
        s.frame_time = frame_time       # undo: a refused frame advances no time
        return reason
    mc_count(&s.counters.accepted, 1)
    publish(s, repeats)
    if s.watch.aside:
        set_aside(s)
        return ACCEPTED
    s.frame_time = s.motion.frame_time      # only an accepted frame advances the time
    s.before = s.said
    if repeats:
        mc_count(&s.counters.repeats, 1)
    return ACCEPTED


cdef void set_aside(IntakeState* s) noexcept nogil:
    """Treat the frame as lost; its duration still counts, unless the duration is what is implausible."""
    cdef double dt = s.said.frame_duration
    s.aside_stamp = s.said.stamp
    if not s.watch.armed:
        return
    memcpy(s.telemetry.position, s.watch.seen.position, sizeof(s.watch.seen.position))
    memcpy(s.telemetry.velocity, s.watch.seen.velocity, sizeof(s.watch.seen.velocity))
    if 0.0 < dt < s.watch.slack_s and not isfinite(s.said.stamp):
        s.frame_time += dt
        s.watch.passed += dt


cdef void derive_more(IntakeState* s, bint goes_on) noexcept nogil:
    """Derive what the source does not report, for the frames to come: a frame's own step must not support itself."""
    s.stages.running = s.stages.running and goes_on
    derive(&s.stages, &s.telemetry, s.watch.apart, s.watch.sure)
    turn(s, s.motion.time)
    see(s, &s.watch.seen)


cdef int watched(IntakeState* s, bint repeats) noexcept nogil:
    """Return the watch's verdict on the newest frame, and derive what the source does not report."""
    cdef Watch* w = &s.watch
    cdef bint first = not w.armed
    cdef bint goes_on
    cdef Seen seen
    cdef int reason
    see(s, &seen)
    w.stamped = isfinite(s.said.stamp)
    w.own_acceleration = not s.stages.from_velocity
    w.rates_lag = s.stages.delay if derives_rates(&s.stages, &s.said) else 0.0
    reason = watch_step(w, &seen, repeats)
    goes_on = reason == ACCEPTED or w.lasts
    if not repeats and not w.aside:
        if derives(&s.stages, &s.said):
            derive_more(s, goes_on)
        if goes_on and not first:
            watch_claims(w)
        else:
            watch_jump(w)
    if goes_on and w.contradicted != ACCEPTED:
        w.lasts = True
        return w.contradicted
    return reason


cdef void use(IntakeState* s) noexcept nogil:
    """Publish the motion; an acceleration or rates that are not followed stay what they were.

    What is followed at last has changed in all the time since it was followed before, and is joined.
    """
    cdef Motion* out = &s.publication.motion
    cdef Motion before = out[0]
    cdef Placement* place = &s.timeline.place
    cdef bint held = s.watch.step.held or s.watch.rate_step.held
    if s.held:
        place.joins += 1
        place.sure = False
        if not held:
            place.spent += place.spent - s.followed
    if not held:
        s.followed = place.spent
    s.held = held
    out[0] = s.motion
    s.publication.place = place[0]
    if s.watch.step.held:
        out.surge, out.sway, out.heave = before.surge, before.sway, before.heave
    if s.watch.rate_step.held:
        out.roll_rate, out.pitch_rate, out.yaw_rate = before.roll_rate, before.pitch_rate, before.yaw_rate


cdef void publish(IntakeState* s, bint repeats) noexcept nogil:
    """Pass the motion to the emitter, with whether it continues what came before."""
    cdef Publication* p = &s.publication
    cdef Watch* w = &s.watch
    cdef bint reconnected = not w.armed and p.epoch > 0
    cdef int reason = watched(s, repeats)
    # Repeats of a moving car carry no new motion, so they are not placed in time.
    if not w.aside and (not repeats or not s.motion.speed > 1.0):
        timeline_frame(&s.timeline, s.motion.time, s.motion.frame_time)
    if w.spike != ACCEPTED:
        tell_measure(s, SPIKE, w.spike, w.spike_value, w.spike_limit)
    if not w.aside or w.lasts:
        announce(s, RECONNECT if reconnected else reason)
    p.count += 1
    if s.ring != NULL:
        ring_write(s.ring, RECORD_FRAME, s.motion.time, &s.motion, sizeof(Motion))
    if p.epoch > 0 and not s.alone:
        publication_write(&s.newest, p)


cdef void announce(IntakeState* s, int reason) noexcept nogil:
    """Publish the newest motion, or the reason why it is not followed; a lasting reason counts once."""
    cdef Publication* p = &s.publication
    cdef Watch* w = &s.watch
    cdef bint again = w.lasts and p.frozen and p.reason == reason
    # An implausible frame must not be engaged with either.
    p.frozen = (w.lasts or not w.believable) and not w.trusting
    if not p.frozen:
        use(s)
    if (reason != ACCEPTED and not w.lasts) or p.epoch == 0:
        p.epoch += 1
    if reason == ACCEPTED or again:
        return
    p.reason = reason
    p.value = 0.0 if reason == RECONNECT else w.value
    p.limit = 0.0 if reason == RECONNECT else w.limit
    if reason == ACCELERATION_CONTRADICTED or reason == RATE_CONTRADICTED:
        tell_measure(s, reason, reason, w.value, w.limit)
    else:
        mc_count(&s.counters.events[reason], 1)


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


cdef class Intake:
    """Takes whole packages of a source; gives replies and the newest motion.

    Parameters
    ----------
    messages : sequence of CompiledMessage
        One per package type, the most specific first.  If a system has "needed" packages, motion counts only within
        the time that frames may come apart after one.  Messages identified only by zeros or by their size come last:
        they are not tried for a package with another message's mark.
    stage : BodyStage
        The source's axes; an "axes" package replaces the car's.
    stages : TelemetryStages, optional
        Conversions before the body stage; none if not given.
    unknown_reply : bytes
        Reply to a package of any other type.
    patience_s : float
        How long the rest of a package may take to arrive [s], for stream sources.
    reply_port : int
        Port on which the simulator expects replies to its datagrams; 0: the port it sends from.
    byte_order : {"little", "big"}
        Byte order of the size field, for stream sources.
    cipher : Cipher, optional
        Deciphers every package; packages come as they are if not given.
    heartbeat : Heartbeat, optional
        The datagram without which the simulator sends nothing; whoever receives the packages sends it.

    Raises
    ------
    ValueError
        If there are too many messages, the byte order is unknown, or a reply or a constant does not fit.

    Notes
    -----
    Real time: `feed` does not block and cannot fail; refused packages are counted in `rejected`.
    """

    def __cinit__(
        self, messages, BodyStage stage, TelemetryStages stages=None, *, bytes unknown_reply=b"", double patience_s=1.0,
        int reply_port=0, str byte_order="little", Cipher cipher=None, heartbeat=None
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
        if cipher is not None:
            s.cipher = cipher.cipher
        self._tables = [message.table for message in messages]
        for message in messages:
            add_message(&s.messages, message)
        for i in range(s.messages.count):
            s.needs_axes = s.needs_axes or s.messages.rows[i].role == ROLE_AXES
            s.needs_part = s.needs_part or s.messages.rows[i].role == ROLE_NEEDED
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
        """Set what counts as a discontinuity, and how far acceleration and rates may contradict the motion.

        Parameters
        ----------
        thresholds : motioncue.profile.Watch
            The plausibility thresholds; a new intake has that type's defaults.  With `UNWATCHED` every frame is
            published as it is, to show what a source reports; discontinuities are still counted.
        """
        self.intake.tuned = tuned_of(thresholds)
        use_thresholds(self.intake)
        self.intake.watch.trusting = thresholds == UNWATCHED
        watch_restart(&self.intake.watch)

    def retune(self, thresholds, head_m, double fade_s, int64_t number=0):
        """Change settings while packages come; they are taken with the next package, without a lock.

        Call it from one thread at a time.

        Parameters
        ----------
        thresholds : motioncue.profile.Watch
            The plausibility thresholds.
        head_m : sequence of 3 floats
            The occupant's head from the motion reference point: forward, right, up [m].
        fade_s : float
            How long the head takes to move there [s].
        number : int
            Number of the settings, for recordings.
        """
        cdef Tuned tuned = tuned_of(thresholds)
        tuned.head[0], tuned.head[1], tuned.head[2] = head_m[0], head_m[1], -head_m[2]
        tuned.move_s = fade_s
        tuned.number = number
        tuned_write(&self.intake.tuning, &tuned)

    def __dealloc__(self):
        free(self.intake)

    def record(self, RecordRing ring not None):
        """Put packages, frames and events into a ring as they come; call it before the first package.

        Parameters
        ----------
        ring : RecordRing
            The thread that feeds this source writes it.
        """
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
        """Return position and velocity of the newest frame in world axes.

        For use without a receiver.

        Returns
        -------
        ndarray of shape (2, 3)
            North, east, down [m, m/s]; NaN if unknown.
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
        """Begin a session with a simulator that has just connected.

        Parameters
        ----------
        now_ns : int
            When it connected, monotonic clock [ns].
        """
        intake_begin(self.intake, now_ns)

    def feed(self, const unsigned char[::1] data not None, int64_t now_ns):
        """Take one whole package; return the reply, and True since more may come.

        Parameters
        ----------
        data : bytes-like
            The package.
        now_ns : int
            When it arrived, monotonic clock [ns].

        Returns
        -------
        reply : bytes
            Empty if the package wants no reply.
        open : bool
        """
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
