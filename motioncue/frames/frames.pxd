"""What becomes of a frame: timed, turned into the car's axes, watched, and published or set aside."""

from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from motioncue.core.threads cimport (
    ACCELERATION_CONTRADICTED, ACCEPTED, BEFORE_INIT, INCOMPLETE, LATE, NOT_FINITE, RATE_CONTRADICTED, RECONNECT,
    RECORD_FRAME, SPIKE, mc_count, ring_write,
)
from motioncue.core.records cimport MOVING, Motion, Placement, Publication, Telemetry, publication_write
from motioncue.frames.body cimport BodyFrame, set_car_axes, to_body
from motioncue.frames.stages cimport SETTLED, derive, derives, derives_rates, follow
from motioncue.frames.arrival_clock cimport stamps_restart, stamps_take
from motioncue.frames.state cimport IntakeState, begin, tell_measure
from motioncue.frames.arrival_clock cimport timeline_frame
from motioncue.frames.watch cimport (
    Seen, Watch, axes_of, length3, overtaken, watch_claims, watch_jump, watch_restart, watch_step,
)


cdef inline int take_axes(IntakeState* s) noexcept nogil:
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


cdef inline bint begins_again(IntakeState* s, int64_t now) noexcept nogil:
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


cdef inline int time_frame(IntakeState* s, int64_t now, bint same) noexcept nogil:
    """Set the frame's duration: as reported, from its stamp, or NaN if unknown; return LATE for an old frame.

    A stamp that repeats with the `same` state says that no time has passed.
    """
    cdef double arrival = 1e-9 * (now - s.watch.heard)
    if isfinite(s.said.stamp):
        if s.watch.armed and s.said.stamp < s.before.stamp:
            if not begins_again(s, now):
                return LATE
            begin(s, now)
        elif s.watch.aside and s.said.stamp == s.aside_stamp:
            return LATE         # a repeated datagram says nothing new about the frame that was set aside
        s.stamps_next = s.stamps
        s.said.frame_duration = 0.0
        if not s.watch.armed:
            stamps_restart(&s.stamps_next, s.said.stamp)
        elif not same or s.said.stamp != s.before.stamp or s.stamps.vague:
            s.said.frame_duration = stamps_take(&s.stamps_next, s.said.stamp, arrival)
            if s.stamps_next.vague and not s.stamps.vague:      # from here on, arrivals go on from the time so far
                s.began = s.watch.heard - <int64_t>(1e9 * s.frame_time)
        s.fallen = 0
    if s.began == 0:
        s.began = now
    return ACCEPTED


cdef inline int turn(IntakeState* s, int64_t now) noexcept nogil:
    """Fill the motion from the telemetry; return the reason if the telemetry is refused."""
    cdef Motion* m = &s.motion
    follow(&s.stages, &s.said, &s.telemetry)
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


cdef inline void see(const IntakeState* s, Seen* out) noexcept nogil:
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


cdef inline bint goes_back(IntakeState* s, int64_t now) noexcept nogil:
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


cdef inline void set_aside(IntakeState* s) noexcept nogil:
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


cdef inline void derive_more(IntakeState* s, bint goes_on) noexcept nogil:
    """Derive what the source does not report, for the frames to come: a frame's own step must not support itself."""
    s.stages.running = s.stages.running and goes_on
    derive(&s.stages, &s.telemetry, s.watch.apart, s.watch.sure)
    turn(s, s.motion.time)
    see(s, &s.watch.seen)


cdef inline int watched(IntakeState* s, bint repeats) noexcept nogil:
    """Return the watch's verdict on the newest frame, and derive what the source does not report."""
    cdef Watch* w = &s.watch
    cdef bint first = not w.armed
    cdef bint goes_on
    cdef Seen seen
    cdef int reason
    see(s, &seen)
    w.stamped = isfinite(s.said.stamp) and not s.stamps_next.vague
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


cdef inline void use(IntakeState* s) noexcept nogil:
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
    # What is derived begins at zero, or stands while a change does not count, and then moves faster than the drive.
    if derives(&s.stages, &s.said) and s.stages.settled < SETTLED:
        place.joins += s.stages.settled == 0.0
        place.sure = False
        place.told += <int64_t>(1e9 * SETTLED * s.stages.delay)
    out[0] = s.motion
    s.publication.place = place[0]
    if s.watch.step.held:
        out.surge, out.sway, out.heave = before.surge, before.sway, before.heave
    if s.watch.rate_step.held:
        out.roll_rate, out.pitch_rate, out.yaw_rate = before.roll_rate, before.pitch_rate, before.yaw_rate


cdef inline void announce(IntakeState* s, int reason) noexcept nogil:
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


cdef inline void publish(IntakeState* s, bint repeats) noexcept nogil:
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


cdef inline int take_motion(IntakeState* s, int64_t now) noexcept nogil:
    cdef const double* state = <const double*>&s.said + s.stages.same_from
    cdef const double* last = <const double*>&s.before + s.stages.same_from
    cdef bint repeats = memcmp(state, last, s.stages.same_count * sizeof(double)) == 0
    cdef double frame_time = s.frame_time
    cdef int reason
    if s.needs_axes and not s.initialized:
        return BEFORE_INIT
    if s.needs_part and (s.part_time == 0 or now - s.part_time > 1e9 * s.watch.slack_s):
        return INCOMPLETE
    reason = time_frame(s, now, repeats)
    if reason != ACCEPTED:
        return reason
    repeats = repeats and s.watch.armed
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
    s.stamps = s.stamps_next
    if repeats:
        mc_count(&s.counters.repeats, 1)
    return ACCEPTED
