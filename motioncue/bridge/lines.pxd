"""The lines of a bridge: what a new frame says about how its channels go on, and how fast an offset may fade."""

from libc.math cimport M_PI, fabs, isfinite

from motioncue.bridge.bridge cimport (
    BRIDGE_PREDICT, LINES, RATES, BridgeState, Line, Turning, channel_of
)
from motioncue.bridge.forecast cimport KEEP, Forecast, followed, learn, trust, within
from motioncue.core.records cimport Motion, Publication
from motioncue.core.rotation cimport between, from_angles, turn_about


cdef extern from *:
    """
    #define MC_LINES_STRETCH_S 0.1  /* [s] shortest stretch over which frames tell the drive's slope, however they came */
    #define MC_LINES_REMEMBER_S 60.0 /* [s] time for which the drive's largest slope counts */
    #define MC_LINES_DOUBTED 1.1    /* largest slope, relative to the drive's, where a prediction is in doubt */
    #define MC_LINES_CORRECT 1.3    /* the same while a trusted prediction is corrected, and of a turn */
    #define MC_LINES_LEAD 3.0       /* the same where predictions have been exact */
    #define MC_LINES_PRECISE 0.25   /* squared error, relative to hold's, below which a prediction is beyond doubt */
    """
    const double STRETCH_S "MC_LINES_STRETCH_S"
    const double REMEMBER_S "MC_LINES_REMEMBER_S"
    const double DOUBTED "MC_LINES_DOUBTED"
    const double CORRECT "MC_LINES_CORRECT"
    const double LEAD "MC_LINES_LEAD"
    const double PRECISE "MC_LINES_PRECISE"


cdef inline double fade_over(const BridgeState* b, double span, double trusted) noexcept nogil:
    """Return how fast an offset fades [1/s]: until the next frame is due if the prediction is trusted, sooner if not.

    Never in less than half a frame, however late the frame or small the trust.
    """
    cdef double time = span * (2.0 * trusted - 1.0) if trusted > 0.5 else 0.0
    return 1.0 / time if time > 0.5 * b.place.interval else 2.0 / b.place.interval


cdef inline double turn_to(BridgeState* b, const Motion* frame, double dt) noexcept nogil:
    """Take the attitude of a frame, `dt` [s] after the last, and return the trust in its prediction.

    The `lines` are set already.  The turn is predicted from the body rates and from the turns between frames, each
    weighted by its accuracy so far.
    """
    cdef Turning* a = &b.turning
    cdef Forecast* f
    cdef const Line* l
    cdef double vector[3]
    cdef double q[4]
    cdef double turned = 0.0        # sums of squares, as `missed`
    cdef double moved = 0.0
    cdef double farthest = 0.0      # [rad]
    cdef double share, trusted, follow
    cdef int i
    from_angles(frame.roll, frame.pitch, frame.yaw, q)
    between(a.q, q, vector)
    for i in range(3):
        f = &a.turns[i]
        learn(f, f.x + vector[i], dt, b.place.interval, b.frames > 1)
        turned += f.missed
        moved += f.moved
    share = turned / (turned + a.missed) if turned + a.missed > 0.0 else 1.0
    trusted = trust(a.missed if a.missed < turned else turned, moved)
    follow = followed(trusted)
    for i in range(3):
        f = &a.turns[i]
        l = &b.lines[RATES + i]
        a.rate[i] = follow * (share * l.x + (1.0 - share) * (f.next - 0.5 * f.curve * b.place.interval))
        a.slope[i] = follow * (share * l.slope + (1.0 - share) * f.curve)
        a.curve[i] = follow * share * l.curve
        farthest += 1.5 * b.place.interval * (
            fabs(a.rate[i]) + b.place.interval * (fabs(a.slope[i]) + b.place.interval * fabs(a.curve[i]))
        )
    if not farthest < M_PI:     # no car turns by half a turn between two frames
        for i in range(3):
            a.rate[i] = a.slope[i] = a.curve[i] = 0.0
    return trusted


cdef inline void watch_rates(BridgeState* b, const Motion* frame, double dt) noexcept nogil:
    """Measure how well the last frame's body rates have predicted this frame's attitude."""
    cdef Turning* a = &b.turning
    cdef const Line* l
    cdef double vector[3]
    cdef double q[4]
    cdef double reached[4]
    cdef double angle
    cdef int i
    for i in range(3):
        l = &b.lines[RATES + i]
        vector[i] = (l.x + (0.5 * l.slope + l.curve * dt / 6.0) * dt) * dt
    turn_about(a.q, vector, reached)
    from_angles(frame.roll, frame.pitch, frame.yaw, q)
    angle = between(reached, q, vector)
    a.missed = KEEP * a.missed + angle * angle
    if not isfinite(a.missed):
        a.missed = 0.0


cdef inline void remember(double* fastest, double slope, double dt) noexcept nogil:
    """Keep the largest slope of the last minute; a slope that is not a number does not count."""
    fastest[0] *= 1.0 - dt / REMEMBER_S if dt < REMEMBER_S else 0.0
    if isfinite(slope) and slope > fastest[0]:
        fastest[0] = slope


cdef inline void follow_stretch(BridgeState* b, const double* q) noexcept nogil:
    """Remember how far the drive went since the stretch began, and begin another one.

    Over several frames, it counts little when each of them came.  It took the longer of the time between them and the
    time that they tell.  A first stretch may begin with frames that had been waiting, so it does not count.
    """
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double gone = 1e-9 * (b.place.taken - b.begin.taken)
    cdef double told = 1e-9 * (b.place.told - b.begin.told)
    cdef double span = gone if gone > told else told
    cdef double vector[3]
    cdef int i
    if span < STRETCH_S:
        return
    between(a.begin, q, vector)
    for i in range(LINES):
        l = &b.lines[i]
        if not b.first:
            remember(l.join.fastest, fabs(l.x - l.begin) / span, 0.0)
        l.begin = l.x
    for i in range(3):
        if not b.first:
            remember(&a.join.fastest[i], fabs(vector[i]) / span, 0.0)
    for i in range(4):
        a.begin[i] = q[i]
    b.begin = b.place
    b.first = False


cdef inline double lead(const Forecast* f) noexcept nogil:
    """Return how fast a line may lead, relative to the largest slope of the drive.

    In doubt hardly faster than the drive was: where a landing begins, a prediction is wrong.  A prediction with less
    than half the error of `hold` may lead faster, in inverse proportion to its squared error.
    """
    if not PRECISE * f.moved > DOUBTED * f.missed:
        return DOUBTED
    return PRECISE * f.moved / f.missed if PRECISE * f.moved < LEAD * f.missed else LEAD


cdef inline void slow_line(Line* l, double most, double interval) noexcept nogil:
    """Limit a line's slope, at its frame and when the next one is due."""
    cdef double end = within(l.slope + l.curve * interval, most)
    l.slope = within(l.slope, most)
    l.curve = (end - l.slope) / interval if interval > 0.0 else 0.0


cdef inline void slow_turn(Turning* a, double share, double interval) noexcept nogil:
    """Limit the rates of a turn to a `share` of the drive's largest, at its frame and when the next one is due."""
    cdef double most, end
    cdef int i
    for i in range(3):
        most = share * a.join.fastest[i]
        end = a.rate[i] + (a.slope[i] + 0.5 * a.curve[i] * interval) * interval
        if fabs(a.rate[i]) > most or fabs(end) > most:
            a.rate[i] = within(a.rate[i], most)
            a.slope[i] = (within(end, most) - a.rate[i]) / interval if interval > 0.0 else 0.0
            a.curve[i] = 0.0


cdef inline double fade_within(double fade, double most, double speed, double offset) noexcept nogil:
    """Return the rate, up to `fade`, at which an offset may fade so that the output moves no faster than `most`.

    The output moves with the line's `speed`, less the fade's: |speed - fade offset| <= most.
    """
    cdef double moved = fabs(fade * offset - speed)
    cdef double allowed = most if most > fabs(speed) else fabs(speed)
    cdef double least
    if not moved > most or not isfinite(moved):
        return fade
    if offset == 0.0:
        return 0.0          # nothing is to fade
    least = ((speed if offset > 0.0 else -speed) + allowed) / fabs(offset)
    return least if 0.0 < least < fade else (fade if least >= fade else 0.0)


cdef inline void fade_gently(BridgeState* b) noexcept nogil:
    """Let the offsets fade so that the output moves no faster than 1.3 times the drive, 1.1 times in doubt.

    Without this, a prediction that was wrong is made up for in half a frame, so several times faster than the drive.
    """
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double most, speed
    cdef int i
    for i in range(LINES):
        l = &b.lines[i]
        most = lead(&b.forecasts[i])
        most = (most if most < CORRECT else CORRECT) * l.join.fastest[0]
        speed = l.slope + l.curve * b.place.interval
        l.fade = fade_within(l.fade, most, l.slope, l.offset)
        l.fade = fade_within(l.fade, most, speed, l.offset)
    for i in range(3):
        a.fade = fade_within(a.fade, CORRECT * a.join.fastest[i], a.rate[i], a.offset[i])


cdef inline void take_frame(BridgeState* b, const Publication* newest, double span, bint joins, bint late) noexcept nogil:
    """Set every line anew, without an offset; the next frame is due in `span` [s].

    The lines of a `late` frame are level; those of one that `joins`, or comes while the output joins, are no faster
    than the drive was; those of any other are as fast as their predictions are trusted.
    """
    cdef const Motion* frame = &newest.motion
    cdef Turning* a = &b.turning
    cdef Forecast* f
    cdef Line* l
    cdef double dt = 1e-9 * (newest.place.spent - b.place.spent)
    cdef double sure = 1.0 / (dt if dt > newest.place.interval else newest.place.interval) if newest.place.sure else 0.0
    cdef double q[4]
    cdef double vector[3]
    cdef double x, trusted, follow
    cdef bint careful = joins or b.joining > 0.0
    cdef int i
    b.place = newest.place
    b.frames = 1 if late else b.frames
    from_angles(frame.roll, frame.pitch, frame.yaw, q)
    between(a.q, q, vector)
    for i in range(3):
        remember(&a.join.fastest[i], sure * fabs(vector[i]), dt)
    if b.kind == BRIDGE_PREDICT and b.frames > 1:
        watch_rates(b, frame, dt)
    for i in range(LINES):
        l = &b.lines[i]
        x = (<const double*>frame)[channel_of(i)]
        remember(l.join.fastest, sure * fabs(x - l.x), dt)
        l.x = x
        trusted = 1.0
        if b.kind == BRIDGE_PREDICT:
            f = &b.forecasts[i]
            learn(f, x, dt, b.place.interval, b.frames > 1)
            trusted = trust(f.missed, f.moved)
            follow = 0.0 if late else followed(trusted)
            l.slope = follow * (f.next - 0.5 * f.curve * b.place.interval)
            l.curve = follow * f.curve
            if careful and b.place.interval > 0.0:      # few frames say how it bends
                l.curve = within(l.curve, l.join.fastest[0] / b.place.interval)
            if careful or newest.place.sure:
                slow_line(l, (1.0 if careful else lead(f)) * l.join.fastest[0], b.place.interval)
        l.fade = fade_over(b, span, trusted)
        l.offset = 0.0
    trusted = 1.0
    if b.kind == BRIDGE_PREDICT:
        trusted = turn_to(b, frame, dt)
    for i in range(4):
        a.q[i] = q[i]
    for i in range(3):
        a.offset[i] = 0.0
        if late:
            a.rate[i] = a.slope[i] = a.curve[i] = 0.0
    if b.kind == BRIDGE_PREDICT and (careful or newest.place.sure):
        slow_turn(a, 1.0 if careful else CORRECT, b.place.interval)
    a.fade = fade_over(b, span, trusted)
    b.frames = 1 if late else 2
    follow_stretch(b, q)
