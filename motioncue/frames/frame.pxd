"""One frame: from what a package says to a published motion; timed, turned into the body frame, and judged."""

from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from motioncue.core.threads cimport (
    ACCELERATION_CONTRADICTED, ACCEPTED, BEFORE_INIT, INCOMPLETE, LATE, NOT_FINITE, RATE_CONTRADICTED, RECONNECT,
    RECORD_FRAME, RECORD_CHASSIS, SPIKE, mc_count, ring_write,
)
from motioncue.core.records cimport CHASSIS, MOVING, Motion, Placement, Publication, Telemetry, publication_write
from motioncue.frames.convert cimport (
    SETTLED, BodyFrame, attitude_to_body, car_to_body, claims_to_body, claims_to_world, derive,
    derive_anew, derives, derives_rates, set_car_axes, to_world,
)
from motioncue.frames.plausibility cimport (
    Watch, check_claims, is_overtaken, length, length3, restart_claims, watch_restart, watch_step,
)
from motioncue.frames.arrival_clock cimport stamps_restart, stamps_take, timeline_frame
from motioncue.frames.intake cimport IntakeState, log_measurement, begin


cdef inline int take_axes(IntakeState* s) noexcept nogil:
    """Take the car's axes that a package announces, the fallback if it is refused; return why, or ACCEPTED."""
    cdef BodyFrame before = s.frame
    cdef int reason
    s.initialized = True
    s.frame_time = 0.0
    s.frame = s.fallback
    reason = set_car_axes(&s.frame, s.newest.forward, s.newest.up)
    if memcmp(before.car, s.frame.car, sizeof(before.car)) != 0:
        watch_restart(&s.watch)     # frames in other axes are no evidence about these
        derive_anew(&s.stages)      # and the turn from those to these is none of the car's
    return reason


cdef inline bint begins_again(IntakeState* s, int64_t now) noexcept nogil:
    """Say whether the simulator's time has begun again, which is a new session; late datagrams are not.

    If stamps fall by more than a frame-time jump, two such frames in a row are enough; otherwise they must go on for
    longer than frames may come apart.
    """
    if s.fallen == 0 or not s.newest.stamp > s.fallen_stamp:
        s.fallen = 0
        s.fallen_since = now
    s.fallen += 1
    s.fallen_stamp = s.newest.stamp
    if s.previous.stamp - s.newest.stamp > s.watch.frame_jump_s:
        return s.fallen > 1
    return now - s.fallen_since > 1e9 * s.watch.slack_s


cdef inline int time_frame(IntakeState* s, int64_t now, bint same) noexcept nogil:
    """Set the frame's duration: as reported, from its stamp, or NaN if unknown; return LATE for an old frame.

    A stamp that repeats with the `same` state says that no time has passed.
    """
    cdef double arrival = 1e-9 * (now - s.watch.last_arrival)
    if isfinite(s.newest.stamp):
        if s.watch.armed and s.newest.stamp < s.previous.stamp:
            if not begins_again(s, now):
                return LATE
            begin(s, now)
        elif s.watch.quarantined and s.newest.stamp == s.quarantined_stamp:
            return LATE         # a repeated datagram says nothing new about the frame that was set aside
        s.stamps_next = s.stamps
        s.newest.frame_duration = 0.0
        if not s.watch.armed:
            stamps_restart(&s.stamps_next, s.newest.stamp)
        elif not same or s.newest.stamp != s.previous.stamp or s.stamps.vague:
            s.newest.frame_duration = stamps_take(&s.stamps_next, s.newest.stamp, arrival)
            if s.stamps_next.vague and not s.stamps.vague:      # from here on, arrivals go on from the time so far
                s.began = s.watch.last_arrival - <int64_t>(1e9 * s.frame_time)
        s.rewound = s.rewound or s.fallen > 0
        s.fallen = 0
    if s.began == 0:
        s.began = now
    return ACCEPTED


cdef inline void claims_to_motion(IntakeState* s) noexcept nogil:
    """Fill the motion's acceleration and rates, and what the watch compares of them, as far as they are known now."""
    cdef const Telemetry* t = &s.telemetry
    cdef const Motion* m = &s.motion
    cdef int i
    claims_to_world(&s.stages, &s.newest, &s.telemetry)
    claims_to_body(&s.frame, s.axes, s.observation.axes, t, &s.motion)
    for i in range(3):
        s.observation.acceleration[i] = t.acceleration[i] + s.frame.gravity * s.frame.world[2][i]
    s.observation.rate[0], s.observation.rate[1], s.observation.rate[2] = m.roll_rate, m.pitch_rate, m.yaw_rate
    s.observation.pull = length(s.observation.acceleration)
    s.observation.spin = length(s.observation.rate)
    s.observation.felt = length3(m.surge, m.sway, m.heave)


cdef inline int to_motion(IntakeState* s, int64_t now) noexcept nogil:
    """Fill the motion, and what the watch compares of it, from the telemetry; return the reason if it is refused."""
    cdef Telemetry* t = &s.telemetry
    cdef Motion* m = &s.motion
    cdef int i
    to_world(&s.stages, &s.newest, t)
    cdef int reason = attitude_to_body(&s.frame, t.orientation, s.axes, s.observation.axes, m)
    if reason != ACCEPTED:
        return reason
    claims_to_motion(s)
    car_to_body(t, m)
    if s.stages.from_velocity and not isfinite(t.velocity[0] + t.velocity[1] + t.velocity[2]):
        return NOT_FINITE
    for i in range(MOVING):
        if not isfinite((<double*>m)[i]):
            return NOT_FINITE
    if m.speed != m.speed:      # without a velocity, take the speed reported on its own
        m.speed = s.newest.speed
    m.frame_time = s.frame_time + s.newest.frame_duration
    if not isfinite(m.frame_time):
        m.frame_time = (now - s.began) * 1e-9
    m.time = s.observation.time = now
    s.observation.duration = t.frame_duration
    memcpy(s.observation.position, t.position, sizeof(t.position))
    memcpy(s.observation.velocity, t.velocity, sizeof(t.velocity))
    s.observation.speed = m.speed
    return ACCEPTED


cdef inline bint goes_back(IntakeState* s, int64_t now) noexcept nogil:
    """Say whether a frame is older than the newest, by where the car is, from a source that gives no time.

    For as long as frames may come apart; a car that goes back for longer does.
    """
    if not s.watch.armed or s.newest.frame_duration == s.newest.frame_duration:
        return False
    if not is_overtaken(&s.watch, &s.observation):
        s.fallen = 0
        return False
    if s.fallen == 0:
        s.fallen_since = now
    s.fallen += 1
    return now - s.fallen_since <= 1e9 * s.watch.slack_s


cdef inline void treat_as_lost(IntakeState* s) noexcept nogil:
    """Treat the frame as lost; its duration still counts, unless the duration is what is implausible."""
    cdef double dt = s.newest.frame_duration
    s.quarantined_stamp = s.newest.stamp
    if not s.watch.armed:
        return
    memcpy(s.telemetry.position, s.watch.reference.position, sizeof(s.watch.reference.position))
    memcpy(s.telemetry.velocity, s.watch.reference.velocity, sizeof(s.watch.reference.velocity))
    if 0.0 < dt < s.watch.slack_s and not isfinite(s.newest.stamp):
        s.frame_time += dt
        s.watch.passed += dt


cdef inline void derive_claims(IntakeState* s, bint goes_on) noexcept nogil:
    """Derive what the source does not report, after the watch: a frame's own step must not support itself."""
    s.stages.running = s.stages.running and goes_on
    cdef bint lost = not s.watch.no_loss and s.observation.duration > s.stages.delay
    derive(&s.stages, &s.telemetry, s.watch.interval, s.watch.certain, lost)
    claims_to_motion(s)
    s.watch.reference = s.observation


cdef inline int check_plausibility(IntakeState* s, bint repeats) noexcept nogil:
    """Check the newest frame's plausibility, and derive what the source does not report; return the verdict."""
    cdef Watch* w = &s.watch
    cdef bint first = not w.armed
    cdef bint goes_on
    cdef int reason
    w.stamped = isfinite(s.newest.stamp) and not s.stamps_next.vague
    w.own_acceleration = not s.stages.from_velocity
    w.rates_lag = s.stages.delay if derives_rates(&s.stages, &s.newest) else 0.0
    reason = watch_step(w, &s.observation, repeats)
    goes_on = reason == ACCEPTED or w.lasting
    if not repeats and not w.quarantined:
        if derives(&s.stages, &s.newest) or s.stages.running:   # what is reported again may be missing once more
            derive_claims(s, goes_on)
        if goes_on and not first:
            check_claims(w)
        else:
            restart_claims(w)
    if goes_on and w.contradicted != ACCEPTED:
        w.lasting = True
        return w.contradicted
    return reason


cdef inline double along_world(const IntakeState* s, int axis) noexcept nogil:
    """Return the position of the newest frame along an axis of the world: north, east, down [m]."""
    cdef const double* row = s.frame.world[axis]
    return row[0] * s.telemetry.position[0] + row[1] * s.telemetry.position[1] + row[2] * s.telemetry.position[2]


cdef inline void publish_motion(IntakeState* s) noexcept nogil:
    """Publish the motion; an acceleration or rates that are not followed stay what they were.

    What is followed at last has changed in all the time since it was followed before, and is joined.
    """
    cdef Motion* out = &s.publication.motion
    cdef double[3] felt = [out.surge, out.sway, out.heave]
    cdef double[3] rate = [out.roll_rate, out.pitch_rate, out.yaw_rate]
    cdef Placement* place = &s.timeline.place
    cdef bint held = s.watch.step.held or s.watch.rate_step.held
    if s.held:
        place.discontinuities += 1
        place.interval_known = False
        if not held:
            place.elapsed_ns += place.elapsed_ns - s.followed
    if not held:
        s.followed = place.elapsed_ns
    s.held = held
    # What is derived begins at zero, or stands while a change does not count, and then moves faster than the drive.
    # One join is enough: with one for each frame until it has settled, the output would be back 15 ms later at most.
    if derives(&s.stages, &s.newest) and s.stages.settled < SETTLED:
        place.discontinuities += s.stages.settled == 0.0
        place.interval_known = False
        # A stretch with such a frame counts as so much longer: hardly any of its slope is taken for the drive's.
        place.unsettled_ns += <int64_t>(1e9 * SETTLED * s.stages.delay)
    out[0] = s.motion
    s.publication.foreseen = s.ahead != NULL    # of this motion; what a frame says that is set aside is lost with it
    if s.ahead != NULL:
        memcpy(s.publication.ahead, s.ahead, sizeof(s.publication.ahead))
    if s.publication.with_chassis:
        memcpy(s.publication.chassis, s.chassis, sizeof(s.chassis))
    s.publication.place = place[0]
    s.publication.place_north = along_world(s, 0)
    s.publication.place_east = along_world(s, 1)
    if s.watch.step.held:
        out.surge, out.sway, out.heave = felt[0], felt[1], felt[2]
    if s.watch.rate_step.held:
        out.roll_rate, out.pitch_rate, out.yaw_rate = rate[0], rate[1], rate[2]


cdef inline void publish_verdict(IntakeState* s, int reason) noexcept nogil:
    """Publish the newest motion, or the reason why it is not followed; a lasting reason counts once."""
    cdef Publication* p = &s.publication
    cdef Watch* w = &s.watch
    cdef bint again = w.lasting and p.frozen and p.reason == reason
    # An implausible frame must not be engaged with either.
    p.frozen = (w.lasting or not w.plausible) and not w.trusting
    if not p.frozen:
        publish_motion(s)
    if (reason != ACCEPTED and not w.lasting) or p.epoch == 0:
        p.epoch += 1
    if reason == ACCEPTED or again:
        return
    p.reason = reason
    p.value = 0.0 if reason == RECONNECT else w.value
    p.limit = 0.0 if reason == RECONNECT else w.limit
    if reason == ACCELERATION_CONTRADICTED or reason == RATE_CONTRADICTED:
        log_measurement(s, reason, reason, w.value, w.limit)
    else:
        mc_count(&s.counters.events[reason], 1)


cdef inline void record_chassis(IntakeState* s) noexcept nogil:
    """Record what the newest frame says of wheels, suspension and cab, whether or not it is followed."""
    cdef double row[CHASSIS + 1]
    memcpy(&row[0], &s.motion.time, sizeof(int64_t))
    memcpy(&row[1], s.chassis, sizeof(s.chassis))
    ring_write(s.ring, RECORD_CHASSIS, s.motion.time, row, sizeof(row))


cdef inline void publish_frame(IntakeState* s, bint repeats) noexcept nogil:
    """Publish the frame to the emitter, with whether it continues what came before."""
    cdef Publication* p = &s.publication
    cdef Watch* w = &s.watch
    cdef bint reconnected = not w.armed and p.epoch > 0
    cdef int reason = check_plausibility(s, repeats)
    # Repeats of a moving car carry no new motion, so they are not placed in time.
    if not w.quarantined and (not repeats or not s.motion.speed > 1.0):
        # A clock that has gone back does not count what passed until it was as far again.
        timeline_frame(&s.timeline, s.motion.time, s.motion.frame_time, isfinite(s.newest.stamp) and not s.rewound)
        s.rewound = False
    if w.spike != ACCEPTED:
        log_measurement(s, SPIKE, w.spike, w.spike_value, w.spike_limit)
    if not w.quarantined or w.lasting:
        publish_verdict(s, RECONNECT if reconnected else reason)
    p.count += 1
    if s.ring != NULL:
        ring_write(s.ring, RECORD_FRAME, s.motion.time, &s.motion, sizeof(Motion))
        if p.with_chassis:
            record_chassis(s)
    if p.epoch > 0 and not s.alone:
        publication_write(&s.slot, p)


cdef inline bint repeats_state(const IntakeState* s) noexcept nogil:
    """Say whether a frame repeats the state of the one before, to the last bit.

    By numbers, of which one of the first differs while a car moves: memcmp's wide reads of what has just been decoded in
    parts would wait until all of it is in the cache.  Bits are taken by memcpy, a plain load: a compiler may move what is
    read through a pointer to another type in front of what was written as doubles.
    """
    cdef const double* state = <const double*>&s.newest + s.stages.same_from
    cdef const double* last = <const double*>&s.previous + s.stages.same_from
    cdef int64_t now, before
    cdef int i
    for i in range(s.stages.same_count):
        memcpy(&now, &state[i], sizeof(now))
        memcpy(&before, &last[i], sizeof(before))
        if now != before:
            return False
    return True


cdef inline int take_motion(IntakeState* s, int64_t now) noexcept nogil:
    cdef bint repeats = repeats_state(s)
    cdef int reason
    if s.needs_axes and not s.initialized:
        return BEFORE_INIT
    if s.needs_part and (s.part_time == 0 or now - s.part_time > 1e9 * s.watch.slack_s):
        return INCOMPLETE
    reason = time_frame(s, now, repeats)
    if reason != ACCEPTED:
        return reason
    repeats = repeats and s.watch.armed
    reason = to_motion(s, now)
    if reason == ACCEPTED and not repeats and goes_back(s, now):
        reason = LATE
    if reason != ACCEPTED:
        return reason
    mc_count(&s.counters.accepted, 1)
    publish_frame(s, repeats)
    if s.watch.quarantined:
        treat_as_lost(s)
        return ACCEPTED
    s.frame_time = s.motion.frame_time      # only an accepted frame advances the time
    s.previous = s.newest
    s.stamps = s.stamps_next
    if repeats:
        mc_count(&s.counters.repeats, 1)
    return ACCEPTED
