"""The bridge's work when a frame comes, and the bridge over arrays."""

from libc.math cimport M_PI, fabs, isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memset

from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport Motion, Placement, Publication
from motioncue.core.rotation cimport between, between_near, from_angles, turn_about
from motioncue.core.threads cimport mc_load
from motioncue.frames.arrival_clock cimport Timeline, timeline_frame

import numpy as np

from motioncue.core.channels import MOTION_DTYPE
from motioncue.errors import ConfigError

__all__ = ["KINDS", "Bridge"]

KINDS = {"hold": BRIDGE_HOLD, "linear": BRIDGE_LINEAR, "predict": BRIDGE_PREDICT}
"""Kinds of bridges."""

cdef enum:
    SETTLE_FRAMES = 4   # successive frames at their expected times, after which a join may end
    SAID = 10           # doubles of a motion (surge to speed) that a moving car never repeats exactly

cdef double SMOOTHEST = 1.875           # largest slope of a fade, x^3 (10 - 15 x + 6 x^2)
cdef double JOIN_TIME = 2.0             # time of a join, relative to that for which the output was held
cdef double PACE = 3.0                  # pace of a join, times the time that it has left
cdef double STRETCH_S = 0.1             # [s] shortest stretch over which frames tell the slope, however they came
cdef double REMEMBER_S = 60.0           # [s] time for which the drive's largest slope counts
cdef double DOUBTED = 1.1               # largest slope, relative to the drive's, where a prediction is in doubt
cdef double CORRECT = 1.3               # the same while a trusted prediction is corrected, and of a turn
cdef double LEAD = 3.0                  # the same where predictions have been exact
cdef double PRECISE = 0.25              # squared error, relative to hold's, below which a prediction is beyond doubt


cdef double fade_over(const BridgeState* b, double span, double skill) noexcept nogil:
    """Return how fast an offset fades [1/s]: until the next frame is due with all skill, sooner with less.

    Never in less than half a frame, however late the frame or small the `skill`.
    """
    cdef double time = span * (2.0 * skill - 1.0) if skill > 0.5 else 0.0
    return 1.0 / time if time > 0.5 * b.place.interval else 2.0 / b.place.interval


cdef double predict_turn(BridgeState* b, const Motion* frame, double dt) noexcept nogil:
    """Predict the turn from a frame on, `dt` [s] after the last, and return the skill of the prediction.

    The `lines` are set already.  The turn is predicted from the body rates and from the turns between frames, each
    weighted by its accuracy so far.
    """
    cdef Turning* a = &b.turning
    cdef Predictor* f
    cdef const Line* l
    cdef double vector[3]
    cdef double q[4]
    cdef double turned = 0.0        # sums of squares, as `sq_error`
    cdef double moved = 0.0
    cdef double farthest = 0.0      # [rad]
    cdef double share, skill, gain
    cdef int i
    from_angles(frame.roll, frame.pitch, frame.yaw, q)
    between(a.q, q, vector)
    for i in range(3):
        f = &a.turns[i]
        update_predictor(f, f.x + vector[i], dt, b.place.interval, b.frames > 1)
        turned += f.sq_error
        moved += f.sq_change
    share = turned / (turned + a.sq_error) if turned + a.sq_error > 0.0 else 1.0
    skill = skill_of(a.sq_error if a.sq_error < turned else turned, moved)
    gain = gain_of(skill)
    for i in range(3):
        f = &a.turns[i]
        l = &b.lines[RATES + i]
        a.rate[i] = gain * (share * l.x + (1.0 - share) * (f.next - 0.5 * f.curve * b.place.interval))
        a.slope[i] = gain * (share * l.slope + (1.0 - share) * f.curve)
        a.curve[i] = gain * share * l.curve
        farthest += 1.5 * b.place.interval * (
            fabs(a.rate[i]) + b.place.interval * (fabs(a.slope[i]) + b.place.interval * fabs(a.curve[i]))
        )
    if not farthest < M_PI:     # no car turns by half a turn between two frames
        for i in range(3):
            a.rate[i] = a.slope[i] = a.curve[i] = 0.0
    return skill


cdef void score_rates(BridgeState* b, const Motion* frame, double dt) noexcept nogil:
    """Score the last frame's body rates: how well they have predicted this frame's attitude."""
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
    a.sq_error = KEEP * a.sq_error + angle * angle
    if not isfinite(a.sq_error):
        a.sq_error = 0.0


cdef void update_fastest(double* fastest, double slope, double dt) noexcept nogil:
    """Update the largest slope of the last minute; a slope that is not a number does not count."""
    fastest[0] *= 1.0 - dt / REMEMBER_S if dt < REMEMBER_S else 0.0
    if isfinite(slope) and slope > fastest[0]:
        fastest[0] = slope


cdef void update_stretch(BridgeState* b, const double* q) noexcept nogil:
    """Update the largest slopes by how far the drive went since the stretch began, and begin another one.

    Over several frames, it counts little when each of them came.  It took the longer of the time between them and the
    time that they tell.  A first stretch may begin with frames that had been waiting, so it does not count.
    """
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double gone = 1e-9 * (b.place.time - b.begin.time)
    cdef double unsettled = 1e-9 * (b.place.unsettled_ns - b.begin.unsettled_ns)
    cdef double told = 1e-9 * (b.place.source_elapsed_ns - b.begin.source_elapsed_ns) + unsettled
    cdef double span = gone if gone > told else told
    cdef double vector[3]
    cdef int i
    if span < STRETCH_S:
        return
    between(a.begin, q, vector)
    for i in range(LINES):
        l = &b.lines[i]
        if not b.first:
            update_fastest(l.join.fastest, fabs(l.x - l.begin) / span, 0.0)
        l.begin = l.x
    for i in range(3):
        if not b.first:
            update_fastest(&a.join.fastest[i], fabs(vector[i]) / span, 0.0)
    for i in range(4):
        a.begin[i] = q[i]
    b.begin = b.place
    b.first = False


cdef double max_lead(const Predictor* f) noexcept nogil:
    """Return how fast a line may lead at most, relative to the largest slope of the drive.

    In doubt hardly faster than the drive was: where a landing begins, a prediction is wrong.  A prediction with less
    than half the error of `hold` may lead faster, in inverse proportion to its squared error.
    """
    if not PRECISE * f.sq_change > DOUBTED * f.sq_error:
        return DOUBTED
    return PRECISE * f.sq_change / f.sq_error if PRECISE * f.sq_change < LEAD * f.sq_error else LEAD


cdef void limit_line(Line* l, double most, double interval) noexcept nogil:
    """Limit a line's slope, at its frame and when the next one is due."""
    cdef double end = within(l.slope + l.curve * interval, most)
    l.slope = within(l.slope, most)
    l.curve = (end - l.slope) / interval if interval > 0.0 else 0.0


cdef void limit_turn(Turning* a, double share, double interval) noexcept nogil:
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


cdef double fade_within(double fade, double most, double speed, double offset) noexcept nogil:
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


cdef void limit_fades(BridgeState* b) noexcept nogil:
    """Limit the fades of the offsets so that the output moves no faster than 1.3 times the drive, 1.1 times in doubt.

    Without this, a prediction that was wrong is made up for in half a frame, so several times faster than the drive.
    """
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double most, speed
    cdef int i
    for i in range(LINES):
        l = &b.lines[i]
        most = max_lead(&b.predictors[i])
        most = (most if most < CORRECT else CORRECT) * l.join.fastest[0]
        speed = l.slope + l.curve * b.place.interval
        l.fade = fade_within(l.fade, most, l.slope, l.offset)
        l.fade = fade_within(l.fade, most, speed, l.offset)
    for i in range(3):
        a.fade = fade_within(a.fade, CORRECT * a.join.fastest[i], a.rate[i], a.offset[i])


cdef void set_lines(BridgeState* b, const Publication* newest, double span, bint joins, bint late) noexcept nogil:
    """Set every line anew, without an offset; the next frame is due in `span` [s].

    The lines of a `late` frame are level; those of one that `joins`, or comes while the output joins, are no faster
    than the drive was; those of any other are as fast as their predictions have skill.
    """
    cdef const Motion* frame = &newest.motion
    cdef Turning* a = &b.turning
    cdef Predictor* f
    cdef Line* l
    cdef double dt = 1e-9 * (newest.place.elapsed_ns - b.place.elapsed_ns)
    cdef double sure = 1.0 / (dt if dt > newest.place.interval else newest.place.interval) if newest.place.interval_known else 0.0
    cdef double q[4]
    cdef double vector[3]
    cdef double x, skill, gain
    cdef bint careful = joins or b.joining > 0.0
    cdef int i
    b.place = newest.place
    b.frames = 1 if late else b.frames
    from_angles(frame.roll, frame.pitch, frame.yaw, q)
    between(a.q, q, vector)
    for i in range(3):
        update_fastest(&a.join.fastest[i], sure * fabs(vector[i]), dt)
    if b.kind == BRIDGE_PREDICT and b.frames > 1:
        score_rates(b, frame, dt)
    for i in range(LINES):
        l = &b.lines[i]
        x = (<const double*>frame)[channel_of(i)]
        update_fastest(l.join.fastest, sure * fabs(x - l.x), dt)
        l.x = x
        skill = 1.0
        if b.kind == BRIDGE_PREDICT:
            f = &b.predictors[i]
            update_predictor(f, x, dt, b.place.interval, b.frames > 1)
            skill = skill_of(f.sq_error, f.sq_change)
            gain = 0.0 if late else gain_of(skill)
            l.slope = gain * (f.next - 0.5 * f.curve * b.place.interval)
            l.curve = gain * f.curve
            if careful and b.place.interval > 0.0:      # few frames say how it bends
                l.curve = within(l.curve, l.join.fastest[0] / b.place.interval)
            if careful or newest.place.interval_known:
                limit_line(l, (1.0 if careful else max_lead(f)) * l.join.fastest[0], b.place.interval)
        l.fade = fade_over(b, span, skill)
        l.offset = 0.0
    skill = 1.0
    if b.kind == BRIDGE_PREDICT:
        skill = predict_turn(b, frame, dt)
    for i in range(4):
        a.q[i] = q[i]
    for i in range(3):
        a.offset[i] = 0.0
        if late:
            a.rate[i] = a.slope[i] = a.curve[i] = 0.0
    if b.kind == BRIDGE_PREDICT and (careful or newest.place.interval_known):
        limit_turn(a, 1.0 if careful else CORRECT, b.place.interval)
    a.fade = fade_over(b, span, skill)
    b.frames = 1 if late else 2
    update_stretch(b, q)


cdef void bridge_restart(BridgeState* b, const Publication* newest) noexcept nogil:
    """Begin at a frame, without memory of older ones; its value is held until the next one."""
    cdef const Motion* frame = &newest.motion
    cdef int i
    memset(b.lines, 0, sizeof(b.lines))
    memset(b.predictors, 0, sizeof(b.predictors))
    memset(&b.turning, 0, sizeof(Turning))
    for i in range(LINES):
        b.lines[i].x = b.lines[i].begin = b.predictors[i].x = (<const double*>frame)[channel_of(i)]
    from_angles(frame.roll, frame.pitch, frame.yaw, b.turning.q)
    for i in range(4):
        b.q[i] = b.turning.begin[i] = b.turning.q[i]
    b.motion = frame[0]
    b.frames = 1
    b.place = b.begin = newest.place
    b.first = True
    b.since = newest.place.time
    b.joining = 0.0


cdef void fill_velocities(const BridgeState* b, int64_t time, double* out) noexcept nogil:
    """Fill `out` with the velocity of every line at a time, those of the attitude last [unit/s]."""
    cdef const Line* l
    cdef const Turning* a = &b.turning
    cdef double t = 1e-9 * (time - b.place.time)
    cdef double gone = 1e-9 * (time - b.since)
    cdef double along = extrapolation_rate(b.place.interval, t)
    cdef int i
    t = extrapolation_time(b.place.interval, t)
    for i in range(LINES):
        l = &b.lines[i]
        out[i] = along * (l.slope + l.curve * t) - (l.fade * l.offset if l.fade * gone < 1.0 else 0.0)
    for i in range(3):
        out[LINES + i] = (
            along * (a.rate[i] + (a.slope[i] + 0.5 * a.curve[i] * t) * t)
            - (a.fade * a.offset[i] if a.fade * gone < 1.0 else 0.0)
        )


cdef double shortest_join(const BridgeState* b) noexcept nogil:
    """Return the shortest time of a join [s]: an interval between frames."""
    return b.place.interval if b.place.interval > 1e-3 else 1e-3


cdef void begin_join(BridgeState* b, const double* before, double held) noexcept nogil:
    """Begin a join: the output stays where it was at the last tick, with the velocities `before`.

    It takes twice as long as the output was `held` [s], less an interval; at most a fade.  A join that goes on
    keeps the time that it has left, or takes the longer one.
    """
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double now[LINES + 3]
    cdef double last[3]
    cdef double time = JOIN_TIME * held - b.place.interval
    cdef double t = extrapolation_time(b.place.interval, 1e-9 * (b.tick - b.place.time))
    cdef int i
    if b.kind == BRIDGE_HOLD and b.joining == 0.0:
        from_angles(b.motion.roll, b.motion.pitch, b.motion.yaw, b.q)
    b.since = b.tick
    fill_velocities(b, b.tick, now)
    for i in range(LINES):
        l = &b.lines[i]
        l.last = line_at(l, t, 0.0)
        l.join.offset[0] = (<const double*>&b.motion)[channel_of(i)] - l.last
        l.join.speed[0] = before[i]
        l.join.velocity[0] = before[i] - now[i]
        join_grow(&l.join, 1)
    turning_at(a, t, 0.0, a.last)
    for i in range(3):
        last[i] = a.join.offset[i]
    between_near(a.last, b.q, last, a.join.offset)
    for i in range(3):
        a.join.speed[i] = before[LINES + i]
        a.join.velocity[i] = before[LINES + i] - now[LINES + i]
    join_grow(&a.join, 3)
    time = time if time * b.max_fade_rate < SMOOTHEST else SMOOTHEST / b.max_fade_rate
    time = time if time > b.joining else b.joining
    b.joining = time if time > shortest_join(b) else shortest_join(b)
    b.frames_to_settle = SETTLE_FRAMES


cdef void bridge_frame(BridgeState* b, const Publication* newest, bint missed, int64_t now) noexcept nogil:
    """Turn to a new frame from the present output; join it if ticks were `missed`, though it may be no new frame."""
    cdef const Placement* p = &newest.place
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double before[LINES + 3]
    cdef double q_before[4]
    cdef double q[4]
    cdef double held = 1e-9 * (now - b.place.time) - b.place.interval
    cdef bint joins = missed or not b.moving or p.discontinuities != b.place.discontinuities or (b.frames == 1 and b.joining > 0.0)
    cdef bint late = (
        1e-9 * (newest.motion.time - p.time) > 1.5 * p.interval
        or 1e-9 * (p.elapsed_ns - b.place.elapsed_ns) > 2.5 * p.interval
    )
    cdef int64_t since = b.tick if newest.motion.time < b.tick else newest.motion.time
    cdef bint moved = b.moving and not (missed and 1e-9 * (now - b.tick) > p.interval)
    cdef double t, gone
    cdef int i
    if joins:
        fill_velocities(b, b.tick, before)
        for i in range(LINES):
            before[i] = before[i] + b.lines[i].join.velocity[0] if moved else 0.0
        for i in range(3):
            before[LINES + i] = before[LINES + i] + a.join.velocity[i] if moved else 0.0
        if missed:              # nothing was sent, so nothing has moved
            b.tick = now - b.period
        if p.elapsed_ns != b.place.elapsed_ns:
            set_lines(b, newest, 0.0, True, late)
        begin_join(b, before, held)
        return
    b.frames_to_settle -= b.frames_to_settle > 0
    t = extrapolation_time(b.place.interval, 1e-9 * (since - b.place.time))
    gone = 1e-9 * (since - b.since)
    for i in range(LINES):
        before[i] = line_at(&b.lines[i], t, gone)
    turning_at(a, t, gone, q_before)
    set_lines(b, newest, (1e-9 * (p.time - since) if b.kind == BRIDGE_PREDICT else 0.0) + p.interval, False, late)
    if b.kind == BRIDGE_HOLD:
        return
    b.since = since
    t = extrapolation_time(p.interval, 1e-9 * (since - p.time))
    for i in range(LINES):
        l = &b.lines[i]
        l.offset = before[i] - line_at(l, t, 0.0)
        if not isfinite(l.offset):
            l.offset = 0.0
    turning_at(a, t, 0.0, q)
    between(q, q_before, a.offset)
    if p.interval_known:
        limit_fades(b)


cdef void bridge_join(BridgeState* b, Motion* line, double* q, int64_t now) noexcept nogil:
    """Move the output from the last tick's towards `line` and its attitude `q`, and store it there."""
    cdef Turning* a = &b.turning
    cdef JoinTick tick
    cdef Line* l
    cdef double gap[3]
    cdef double on[4]
    cdef double* x
    cdef double turned
    cdef bint apart = False
    cdef int i
    tick.dt = 1e-9 * (now - b.tick)
    b.joining = b.joining - tick.dt if b.joining - tick.dt > shortest_join(b) else shortest_join(b)
    tick.pace = PACE / b.joining
    tick.max_pace = 1.0 / shortest_join(b)
    tick.fade_rate = 0.5 * b.max_fade_rate    # an offset may be twice as large as any value that fades
    tick.is_step_signal = b.kind == BRIDGE_HOLD and b.place.interval_known
    for i in range(LINES):
        l = &b.lines[i]
        x = <double*>line + channel_of(i)
        gap[0] = (<const double*>&b.motion)[channel_of(i)] - x[0]
        if join_step(&l.join, 1, gap, fabs(x[0] - l.last) if tick.is_step_signal else 0.0, &tick):
            l.last = x[0]
            x[0] += l.join.offset[0]
            apart = True
        else:
            l.last = x[0]
    turned = between(a.last, q, gap)
    between_near(q, b.q, a.join.offset, gap)
    for i in range(4):
        a.last[i] = on[i] = q[i]
    if join_step(&a.join, 3, gap, turned if tick.is_step_signal else 0.0, &tick):
        turn_about(on, a.join.offset, q)
        apart = True
    if not apart and b.frames_to_settle == 0:
        b.joining = 0.0


cdef void bridge_design(BridgeState* b, int kind, double fade_rate, int64_t period) noexcept nogil:
    """Set the kind of a bridge, the rate of a fade, as a share [1/s], and the time between ticks [ns], 0 if any."""
    b.kind = kind
    b.period = period
    b.max_fade_rate = SMOOTHEST * fade_rate


cdef bint is_new_motion(const Motion* last, const Motion* frame) noexcept nogil:
    """Say whether a frame does not just repeat the motion of a moving car."""
    return not frame.speed > 1.0 or memcmp(last, frame, SAID * sizeof(double)) != 0


cdef void bridge_change(BridgeState* b, int kind) noexcept nogil:
    """Become another kind between two ticks: start at the newest frame, with nothing learned, joined as after a gap.

    If the output is not moving, the tick that moves it again begins the join.
    """
    cdef Turning* a = &b.turning
    cdef double before[LINES + 3]
    cdef int i
    if kind == b.kind or b.frames == 0:
        b.kind = kind
        return
    if b.kind == BRIDGE_HOLD and b.joining == 0.0:
        from_angles(b.motion.roll, b.motion.pitch, b.motion.yaw, b.q)
    fill_velocities(b, b.tick, before)
    b.kind = kind
    b.frames = 1
    memset(b.predictors, 0, sizeof(b.predictors))
    memset(a.turns, 0, sizeof(a.turns))
    a.sq_error = 0.0
    for i in range(LINES):
        b.lines[i].slope = b.lines[i].curve = b.lines[i].offset = 0.0
        b.predictors[i].x = b.lines[i].x
    for i in range(3):
        a.rate[i] = a.slope[i] = a.curve[i] = a.offset[i] = 0.0
    if b.moving:
        begin_join(b, before, 0.0)


cdef double latency_s(BridgeState* b):
    """Return the mean age of what the ticks showed [s]."""
    cdef int64_t ticks = mc_load(&b.ticks)
    return mc_load(&b.age) * 1e-9 / ticks if ticks else 0.0


cdef class Bridge:
    """Interpolation between the frames of one drive.

    Notes
    -----
    Real time: a tick does not allocate, needs no GIL and cannot fail.
    """

    def __init__(self, str kind, *, double fade_s=1.0):
        if kind not in KINDS:
            raise ConfigError(f"bridge: found {kind!r}, allowed are {', '.join(KINDS)}")
        if not fade_s > 0.0:
            raise ConfigError(f"fade_s: found {fade_s}, allowed is above 0")
        self._kind = KINDS[kind]
        self._fade_s = fade_s
        self.reset()

    def reset(self):
        """Forget every frame."""
        memset(&self._state, 0, sizeof(BridgeState))
        bridge_design(&self._state, self._kind, 1.0 / self._fade_s, 0)

    def process(self, const Motion[::1] frames not None, const int64_t[::1] ticks not None, Motion[::1] out=None):
        """Return the motion at every tick of a drive, starting afresh.

        Units: `frames` [ns], `ticks` [ns].
        """
        result = np.zeros(ticks.shape[0], dtype=MOTION_DTYPE) if out is None else np.asarray(out)
        cdef Motion[::1] motion = result
        cdef Publication newest
        cdef Timeline timeline
        cdef Py_ssize_t i
        cdef Py_ssize_t n = 0
        cdef uint64_t fpu
        if motion.shape[0] != ticks.shape[0]:
            raise ValueError(f"out: found {motion.shape[0]} rows, allowed are {ticks.shape[0]}, as many as ticks")
        self.reset()
        memset(&timeline, 0, sizeof(Timeline))
        with nogil:
            fpu = mc_flush_denormals()      # as in the emitter
            for i in range(ticks.shape[0]):
                while n < frames.shape[0] and frames[n].time <= ticks[i]:
                    if n == 0 or is_new_motion(&frames[n - 1], &frames[n]):
                        timeline_frame(&timeline, frames[n].time, frames[n].frame_time, True)
                    n += 1
                if n > 0:
                    newest.motion = frames[n - 1]
                    newest.place = timeline.place
                    bridge_step(&self._state, &newest, True, False, ticks[i])
                motion[i] = self._state.motion
            mc_restore_fpu(fpu)
        return result

    @property
    def interval_s(self):
        """Nominal interval between frames [s]; 0 before the second frame."""
        return self._state.place.interval

    @property
    def latency_s(self):
        """Mean age of what the ticks showed [s]."""
        return latency_s(&self._state)
