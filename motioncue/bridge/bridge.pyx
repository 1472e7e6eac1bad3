"""The bridge's work when a frame comes, and the bridge over arrays."""

from libc.math cimport fabs, isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memset

from motioncue.bridge.join cimport JoinTick, join_grow, join_step
from motioncue.bridge.lines cimport fade_gently, take_frame
from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport Motion, Placement, Publication
from motioncue.core.rotation cimport between, between_near, from_angles
from motioncue.core.threads cimport mc_load
from motioncue.frames.timeline cimport Timeline, timeline_frame

import numpy as np

from motioncue.core.channels import MOTION_DTYPE
from motioncue.errors import ConfigError

__all__ = ["KINDS", "Bridge"]

KINDS = {"hold": BRIDGE_HOLD, "linear": BRIDGE_LINEAR, "predict": BRIDGE_PREDICT}
"""Kinds of bridges."""

cdef enum:
    WARY = 4        # successive frames at their expected times, after which a join may end
    SAID = 10       # doubles of a motion (surge to speed) that a moving car never repeats exactly

cdef double SMOOTHEST = 1.875           # largest slope of a fade, x^3 (10 - 15 x + 6 x^2)
cdef double GENTLE = 2.0                # time of a join, relative to that for which the output was held
cdef double PACE = 3.0                  # pace of a join, times the time that it has left


cdef void bridge_restart(BridgeState* b, const Publication* newest) noexcept nogil:
    """Begin at a frame, without memory of older ones; its value is held until the next one."""
    cdef const Motion* frame = &newest.motion
    cdef int i
    memset(b.lines, 0, sizeof(b.lines))
    memset(b.forecasts, 0, sizeof(b.forecasts))
    memset(&b.turning, 0, sizeof(Turning))
    for i in range(LINES):
        b.lines[i].x = b.lines[i].begin = b.forecasts[i].x = (<const double*>frame)[channel_of(i)]
    from_angles(frame.roll, frame.pitch, frame.yaw, b.turning.q)
    for i in range(4):
        b.q[i] = b.turning.begin[i] = b.turning.q[i]
    b.motion = frame[0]
    b.frames = 1
    b.place = b.begin = newest.place
    b.first = True
    b.since = newest.place.taken
    b.joining = 0.0


cdef void velocities(const BridgeState* b, int64_t time, double* out) noexcept nogil:
    """Fill `out` with the velocity of every line at a time, those of the attitude last [unit/s]."""
    cdef const Line* l
    cdef const Turning* a = &b.turning
    cdef double t = 1e-9 * (time - b.place.taken)
    cdef double gone = 1e-9 * (time - b.since)
    cdef double along = speed(b.place.interval, t)
    cdef int i
    t = reach(b.place.interval, t)
    for i in range(LINES):
        l = &b.lines[i]
        out[i] = along * (l.slope + l.curve * t) - (l.fade * l.offset if l.fade * gone < 1.0 else 0.0)
    for i in range(3):
        out[LINES + i] = (
            along * (a.rate[i] + (a.slope[i] + 0.5 * a.curve[i] * t) * t)
            - (a.fade * a.offset[i] if a.fade * gone < 1.0 else 0.0)
        )


cdef double shortest(const BridgeState* b) noexcept nogil:
    """Return the shortest time of a join [s]: an interval between frames."""
    return b.place.interval if b.place.interval > 1e-3 else 1e-3


cdef void leave(BridgeState* b, const double* before, double held) noexcept nogil:
    """Begin a join: the output stays where it was at the last tick, with the velocities `before`.

    It takes twice as long as the output was `held` [s], less an interval; at most a fade.  A join that goes on
    keeps the time that it has left, or takes the longer one.
    """
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double now[LINES + 3]
    cdef double last[3]
    cdef double time = GENTLE * held - b.place.interval
    cdef double t = reach(b.place.interval, 1e-9 * (b.tick - b.place.taken))
    cdef int i
    if b.kind == BRIDGE_HOLD and b.joining == 0.0:
        from_angles(b.motion.roll, b.motion.pitch, b.motion.yaw, b.q)
    b.since = b.tick
    velocities(b, b.tick, now)
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
    time = time if time * b.gentle < SMOOTHEST else SMOOTHEST / b.gentle
    time = time if time > b.joining else b.joining
    b.joining = time if time > shortest(b) else shortest(b)
    b.wary = WARY


cdef void bridge_frame(BridgeState* b, const Publication* newest, bint missed, int64_t now) noexcept nogil:
    """Turn to a new frame from the present output; join it if ticks were `missed`, though it may be no new frame."""
    cdef const Placement* p = &newest.place
    cdef Turning* a = &b.turning
    cdef Line* l
    cdef double before[LINES + 3]
    cdef double q_before[4]
    cdef double q[4]
    cdef double held = 1e-9 * (now - b.place.taken) - b.place.interval
    cdef bint joins = missed or not b.moving or p.joins != b.place.joins or (b.frames == 1 and b.joining > 0.0)
    cdef bint late = (
        1e-9 * (newest.motion.time - p.taken) > 1.5 * p.interval
        or 1e-9 * (p.spent - b.place.spent) > 2.5 * p.interval
    )
    cdef int64_t since = b.tick if newest.motion.time < b.tick else newest.motion.time
    cdef bint moved = b.moving and not (missed and 1e-9 * (now - b.tick) > p.interval)
    cdef double t, gone
    cdef int i
    if joins:
        velocities(b, b.tick, before)
        for i in range(LINES):
            before[i] = before[i] + b.lines[i].join.velocity[0] if moved else 0.0
        for i in range(3):
            before[LINES + i] = before[LINES + i] + a.join.velocity[i] if moved else 0.0
        if missed:              # nothing was sent, so nothing has moved
            b.tick = now - b.period
        if p.spent != b.place.spent:
            take_frame(b, newest, 0.0, True, late)
        leave(b, before, held)
        return
    b.wary -= b.wary > 0
    t = reach(b.place.interval, 1e-9 * (since - b.place.taken))
    gone = 1e-9 * (since - b.since)
    for i in range(LINES):
        before[i] = line_at(&b.lines[i], t, gone)
    turning_at(a, t, gone, q_before)
    take_frame(b, newest, (1e-9 * (p.taken - since) if b.kind == BRIDGE_PREDICT else 0.0) + p.interval, False, late)
    if b.kind == BRIDGE_HOLD:
        return
    b.since = since
    t = reach(p.interval, 1e-9 * (since - p.taken))
    for i in range(LINES):
        l = &b.lines[i]
        l.offset = before[i] - line_at(l, t, 0.0)
        if not isfinite(l.offset):
            l.offset = 0.0
    turning_at(a, t, 0.0, q)
    between(q, q_before, a.offset)
    if p.sure:
        fade_gently(b)


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
    b.joining = b.joining - tick.dt if b.joining - tick.dt > shortest(b) else shortest(b)
    tick.pace = PACE / b.joining
    tick.quickest = 1.0 / shortest(b)
    tick.gentle = 0.5 * b.gentle    # an offset may be twice as large as any value that fades
    tick.stairs = b.kind == BRIDGE_HOLD and b.place.sure
    for i in range(LINES):
        l = &b.lines[i]
        x = <double*>line + channel_of(i)
        gap[0] = (<const double*>&b.motion)[channel_of(i)] - x[0]
        if join_step(&l.join, 1, gap, fabs(x[0] - l.last) if tick.stairs else 0.0, &tick):
            l.last = x[0]
            x[0] += l.join.offset[0]
            apart = True
        else:
            l.last = x[0]
    turned = between(a.last, q, gap)
    between_near(q, b.q, a.join.offset, gap)
    for i in range(4):
        a.last[i] = on[i] = q[i]
    if join_step(&a.join, 3, gap, turned if tick.stairs else 0.0, &tick):
        turn_about(on, a.join.offset, q)
        apart = True
    if not apart and b.wary == 0:
        b.joining = 0.0


cdef void bridge_design(BridgeState* b, int kind, double fade_rate, int64_t period) noexcept nogil:
    """Set the kind of a bridge, the rate of a fade, as a share [1/s], and the time between ticks [ns], 0 if any."""
    b.kind = kind
    b.period = period
    b.gentle = SMOOTHEST * fade_rate


cdef bint says_more(const Motion* last, const Motion* frame) noexcept nogil:
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
    velocities(b, b.tick, before)
    b.kind = kind
    b.frames = 1
    memset(b.forecasts, 0, sizeof(b.forecasts))
    memset(a.turns, 0, sizeof(a.turns))
    a.missed = 0.0
    for i in range(LINES):
        b.lines[i].slope = b.lines[i].curve = b.lines[i].offset = 0.0
        b.forecasts[i].x = b.lines[i].x
    for i in range(3):
        a.rate[i] = a.slope[i] = a.curve[i] = a.offset[i] = 0.0
    if b.moving:
        leave(b, before, 0.0)


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
                    if n == 0 or says_more(&frames[n - 1], &frames[n]):
                        timeline_frame(&timeline, frames[n].time, frames[n].frame_time)
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
