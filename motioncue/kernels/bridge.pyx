"""What a bridge does when a frame comes, and the bridge over arrays."""

from libc.math cimport M_PI, fabs, isfinite, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from motioncue.kernels.algorithm cimport mc_flush_denormals, mc_restore_fpu
from motioncue.kernels.records cimport Motion
from motioncue.kernels.rotation cimport between, from_angles
from motioncue.kernels.slot cimport mc_load

import numpy as np

from motioncue.errors import ConfigError
from motioncue.motion import MOTION_DTYPE

__all__ = ["KINDS", "Bridge"]

KINDS = {"hold": BRIDGE_HOLD, "linear": BRIDGE_LINEAR, "predict": BRIDGE_PREDICT}
"""What a profile may ask for."""

cdef enum:
    TARDY = 3       # late frames in a row after which the simulator's time is set again

cdef double KEEP = 1.0 - 1.0 / 64.0     # of what was learned, from a frame to the next
cdef double DOUBT = 1e-3                # share of the moments that speaks for a straight line
cdef double FARTHEST = 3.0              # slope expected, over the larger one of the last two: no sine needs more


cdef double trust(double missed, double moved) noexcept nogil:
    """Return the share of what `hold` misses, in squares, that an expectation saves; less than 0 if it misses more."""
    return 1.0 - missed / moved if moved > 0.0 else 1.0


cdef double followed(double trusted) noexcept nogil:
    """Return how far: all the way if it halves the squares, not at all if it adds half as much."""
    return 1.0 if trusted > 0.5 else (0.5 + trusted if trusted > -0.5 else 0.0)


cdef double weighed(const double* w, const double* seen) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(ORDER):
        total += w[i] * seen[i]
    return total


cdef void expect(const Forecast* f, double* curves) noexcept nogil:
    """Fill `curves` with the next two.

    The next one is a linear combination of what was seen last, by least squares over the frames before.  The normal
    equations are solved by Cholesky's decomposition; a small ridge makes them regular and prefers zero.  It is
    measured by how a channel moves, not by how far off its average that has led.
    """
    cdef double l[ORDER][ORDER]
    cdef double w[ORDER]
    cdef double then[ORDER]
    cdef double ridge = 1e-30
    cdef double total
    cdef int i, j, k
    for i in range(OFF):
        ridge += DOUBT * f.moments[i][i]
    for i in range(ORDER):
        for j in range(i + 1):
            total = f.moments[i][j] + (ridge if i == j else 0.0)
            for k in range(j):
                total -= l[i][k] * l[j][k]
            l[i][j] = sqrt(total) if i == j else total / l[j][j]
        w[i] = f.products[i]
        for k in range(i):
            w[i] -= l[i][k] * w[k]
        w[i] /= l[i][i]
    for i in range(ORDER - 1, -1, -1):
        for k in range(i + 1, ORDER):
            w[i] -= l[k][i] * w[k]
        w[i] /= l[i][i]
    curves[0] = weighed(w, f.seen)
    for i in range(1, SLOPE):
        then[i] = f.seen[i - 1]
    then[0] = curves[0]
    then[SLOPE] = f.seen[SLOPE] + curves[0]
    then[OFF] = f.seen[OFF] + then[SLOPE]
    curves[1] = weighed(w, then)


cdef double within(double x, double bound) noexcept nogil:
    return bound if x > bound else (-bound if x < -bound else x)


cdef void learn(Forecast* f, double x, double dt, const BridgeState* b) noexcept nogil:
    """Take a frame, `dt` after the last: compare with what was expected, and expect again."""
    cdef double slope = (x - f.x) / dt
    cdef double missed = x - f.x - f.next * dt
    cdef double curve, most
    cdef double curves[2]
    cdef int i, j
    curves[0] = curves[1] = 0.0
    if b.frames > 1:
        curve = (slope - f.slope) / (0.5 * (dt + f.dt))     # slopes are those of the middle between two frames
        f.missed = KEEP * f.missed + missed * missed
        f.moved = KEEP * f.moved + (x - f.x) * (x - f.x)
        for i in range(ORDER):
            for j in range(i + 1):
                f.moments[i][j] = KEEP * f.moments[i][j] + f.seen[i] * f.seen[j]
            f.products[i] = KEEP * f.products[i] + f.seen[i] * curve
        for i in range(SLOPE - 1, 0, -1):
            f.seen[i] = f.seen[i - 1]
        f.seen[0] = curve
        f.seen[SLOPE] = slope / b.interval
        f.average = KEEP * f.average + (1.0 - KEEP) * x
        f.seen[OFF] = (x - f.average) / (b.interval * b.interval)
        expect(f, curves)
    else:
        f.average = x
    if not isfinite(slope + curves[0] + curves[1] + f.missed + f.moved):    # absent, or too large to be squared
        memset(f, 0, sizeof(Forecast))
        f.average = x
        slope = curves[0] = curves[1] = 0.0
    most = FARTHEST * (fabs(slope) if fabs(slope) > fabs(f.slope) else fabs(f.slope))
    f.x = x
    f.dt = dt
    f.slope = slope
    f.next = within(slope + 0.5 * curves[0] * (dt + b.interval), most)
    f.curve = within(0.5 * (curves[0] + curves[1]) * b.interval, most) / b.interval


cdef int64_t own_time(const Motion* frame) noexcept nogil:
    """Return the simulator's time of a frame [ns]; when it came, if that is no time."""
    return <int64_t>(frame.frame_time * 1e9) if -1e9 < frame.frame_time < 1e9 else frame.time


cdef double place(BridgeState* b, const Motion* frame) noexcept nogil:
    """Place a frame on the clock and return how long after the one before it was taken [s].

    Frames can only come late, so the earliest arrival tells how the clock leads the simulator's time; up to a
    thirty-second of the time that passes is taken for drift.  Where the simulator's time does not go on, or frames keep
    coming later than it says (frames before them were lost, or it tells nothing), arrival counts.
    """
    cdef double most = 0.25e9 * b.interval
    cdef int64_t own = own_time(frame)
    cdef int64_t late = frame.time - own - b.lead
    cdef int64_t drift = (frame.time - b.newest.time) // 32
    cdef double dt = frame.frame_time - b.newest.frame_time
    b.tardy += 1 if late > most else -1
    b.tardy = 0 if b.tardy < 0 else (TARDY if b.tardy > TARDY else b.tardy)
    if not dt > 0.0 or late > 16.0 * most or b.tardy == TARDY or late < -most:
        dt = (frame.time - b.newest.time) * 1e-9
        b.lead += late
    elif late < drift:
        b.lead += late
    elif late <= most:
        b.lead += drift
    b.taken = own + b.lead
    if dt < 0.5 * b.interval or dt < 1e-4:      # two frames at once make no slope
        dt = 0.5 * b.interval if b.interval > 2e-4 else 1e-4
    if b.frames == 1:
        b.interval = dt
    else:
        b.interval += ((dt if dt < 4.0 * b.interval else 4.0 * b.interval) - b.interval) / 8.0
    return dt


cdef double fade_over(const BridgeState* b, double span, double trusted) noexcept nogil:
    """Return how fast an offset goes [1/s]: until the next frame is due if all comes as expected, sooner if not.

    Never faster than within half a frame, however late the frame or small the trust in what it leads to.
    """
    cdef double time = span * (2.0 * trusted - 1.0) if trusted > 0.5 else 0.0
    return 1.0 / time if time > 0.5 * b.interval else 2.0 / b.interval


cdef void bridge_restart(BridgeState* b, const Motion* frame) noexcept nogil:
    """Begin at a frame, with no memory of older ones: until the next it stays as it is."""
    cdef const double* channels = <const double*>frame
    cdef int i
    memset(b.lines, 0, sizeof(b.lines))
    memset(b.forecasts, 0, sizeof(b.forecasts))
    memset(&b.turning, 0, sizeof(Turning))
    for i in range(LINES):
        b.lines[i].x = b.forecasts[i].x = channels[i if i < ANGLES else i + 3]
    from_angles(frame.roll, frame.pitch, frame.yaw, b.turning.q)
    b.newest = frame[0]
    b.frames = 1
    b.taken = b.since = frame.time
    b.lead = frame.time - own_time(frame)
    b.tardy = 0
    b.interval = 0.0


cdef void bridge_rest(BridgeState* b) noexcept nogil:
    """Stay where the output is until a frame comes."""
    cdef const double* channels = <const double*>&b.motion
    cdef int i
    for i in range(LINES):
        b.lines[i].x = channels[i if i < ANGLES else i + 3]
        b.lines[i].slope = b.lines[i].curve = b.lines[i].offset = 0.0
    from_angles(b.motion.roll, b.motion.pitch, b.motion.yaw, b.turning.q)
    for i in range(3):
        b.turning.rate[i] = b.turning.slope[i] = b.turning.curve[i] = b.turning.offset[i] = 0.0


cdef double turn_to(BridgeState* b, const Motion* frame, double dt) noexcept nogil:
    """Take the attitude of a frame, `dt` after the last, and return the trust in it; `lines` lead on already.

    Where it turns from there, the body rates tell, and how it has turned from frame to frame; each counts the more, the
    less it has missed.
    """
    cdef Turning* a = &b.turning
    cdef Forecast* f
    cdef const Line* l
    cdef double vector[3]
    cdef double q[4]
    cdef double turned = 0.0        # squares, as `missed`
    cdef double moved = 0.0
    cdef double farthest = 0.0      # [rad]
    cdef double share, trusted, follow
    cdef int i
    from_angles(frame.roll, frame.pitch, frame.yaw, q)
    between(a.q, q, vector)
    for i in range(3):
        f = &a.turns[i]
        learn(f, f.x + vector[i], dt, b)
        turned += f.missed
        moved += f.moved
    for i in range(4):
        a.q[i] = q[i]
    share = turned / (turned + a.missed) if turned + a.missed > 0.0 else 1.0
    trusted = trust(a.missed if a.missed < turned else turned, moved)
    follow = followed(trusted)
    for i in range(3):
        f = &a.turns[i]
        l = &b.lines[RATES + i]
        a.rate[i] = follow * (share * l.x + (1.0 - share) * (f.next - 0.5 * f.curve * b.interval))
        a.slope[i] = follow * (share * l.slope + (1.0 - share) * f.curve)
        a.curve[i] = follow * share * l.curve
        farthest += 1.5 * b.interval * (fabs(a.rate[i]) + b.interval * (fabs(a.slope[i]) + b.interval * fabs(a.curve[i])))
    if not farthest < M_PI:     # no car turns half round between two frames
        for i in range(3):
            a.rate[i] = a.slope[i] = a.curve[i] = 0.0
    return trusted


cdef void watch_rates(BridgeState* b, const Motion* frame, double dt) noexcept nogil:
    """See where the rates of the last frame, and their slopes, have led."""
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


cdef void bridge_frame(BridgeState* b, const Motion* frame, int64_t deadline) noexcept nogil:
    """Turn to a new frame, from where the output was when it came."""
    cdef const double* channels = <const double*>frame
    cdef Turning* a = &b.turning
    cdef Forecast* f
    cdef Line* l
    cdef double before[LINES]
    cdef double q_before[4]
    cdef double q[4]
    cdef int64_t since = deadline
    cdef double t, gone, dt, span, trusted, follow
    cdef int i
    if b.moving:
        since = b.tick if frame.time < b.tick else (frame.time if frame.time < deadline else deadline)
    t = ahead(b, since)
    gone = (since - b.since) * 1e-9
    for i in range(LINES):
        before[i] = line_at(&b.lines[i], t, gone)
    turning_at(a, t, gone, q_before)

    dt = place(b, frame)
    b.since = since
    t = ahead(b, since)
    span = (b.taken - since) * 1e-9 + b.interval    # until the next frame is due

    if b.kind == BRIDGE_PREDICT and b.frames > 1:
        watch_rates(b, frame, dt)
    for i in range(LINES):
        l = &b.lines[i]
        l.x = channels[i if i < ANGLES else i + 3]
        trusted = 1.0
        if b.kind == BRIDGE_PREDICT:
            f = &b.forecasts[i]
            learn(f, l.x, dt, b)
            trusted = trust(f.missed, f.moved)
            follow = followed(trusted)
            l.slope = follow * (f.next - 0.5 * f.curve * b.interval)
            l.curve = follow * f.curve
        l.fade = fade_over(b, span, trusted)
        l.offset = before[i] - (l.x + (l.slope + 0.5 * l.curve * t) * t)
        if not isfinite(l.offset):
            l.offset = 0.0
    if b.kind == BRIDGE_PREDICT:
        a.fade = fade_over(b, span, turn_to(b, frame, dt))
    else:
        from_angles(frame.roll, frame.pitch, frame.yaw, a.q)
        a.fade = fade_over(b, span, 1.0)
    for i in range(3):
        a.offset[i] = 0.0
    turning_at(a, t, 0.0, q)
    between(q, q_before, a.offset)
    b.newest = frame[0]
    b.frames = 2


cdef double latency_s(BridgeState* b):
    """Return how old what the ticks showed was, on average [s]."""
    cdef int64_t ticks = mc_load(&b.ticks)
    return mc_load(&b.age) * 1e-9 / ticks if ticks else 0.0


cdef class Bridge:
    """A bridge over the frames of one drive.

    Parameters
    ----------
    kind : {"hold", "linear", "predict"}
        How it is done; see `motioncue.kernels.bridge`'s declarations and ``docs/bridge.md``.

    Raises
    ------
    ConfigError
        If there is no such kind.

    Notes
    -----
    Real time: a tick does not allocate, needs no GIL and cannot fail.
    """

    def __init__(self, str kind):
        if kind not in KINDS:
            raise ConfigError(f"bridge: found {kind!r}, allowed are {', '.join(KINDS)}")
        self._state.kind = KINDS[kind]
        self.reset()

    def reset(self):
        """Forget every frame."""
        cdef int kind = self._state.kind
        memset(&self._state, 0, sizeof(BridgeState))
        self._state.kind = kind

    def process(self, const Motion[::1] frames not None, const int64_t[::1] ticks not None, Motion[::1] out=None):
        """Return the motion of every tick of a drive, from a fresh start.

        Parameters
        ----------
        frames : ndarray of MOTION_DTYPE, shape (n,)
            In the order of their `time`, when they arrived [ns].
        ticks : ndarray of int64, shape (m,)
            When a motion is wanted [ns], in order; a tick reads the newest frame that has arrived.
        out : ndarray of MOTION_DTYPE, shape (m,), optional
            Filled and returned; allocated if not given.

        Returns
        -------
        ndarray of MOTION_DTYPE, shape (m,)
            Times are those of the newest frame; all zero before the first.

        Raises
        ------
        ValueError
            If `out` has another length than `ticks`.
        """
        result = np.zeros(ticks.shape[0], dtype=MOTION_DTYPE) if out is None else np.asarray(out)
        cdef Motion[::1] motion = result
        cdef Py_ssize_t i
        cdef Py_ssize_t newest = -1
        cdef uint64_t fpu
        if motion.shape[0] != ticks.shape[0]:
            raise ValueError(f"out: found {motion.shape[0]} rows, allowed are {ticks.shape[0]}, as many as ticks")
        self.reset()
        with nogil:
            fpu = mc_flush_denormals()      # as the emitter does
            for i in range(ticks.shape[0]):
                while newest + 1 < frames.shape[0] and frames[newest + 1].time <= ticks[i]:
                    newest += 1
                if newest >= 0:
                    bridge_step(&self._state, &frames[newest], True, False, ticks[i])
                motion[i] = self._state.motion
            mc_restore_fpu(fpu)
        return result

    @property
    def interval_s(self):
        """From frame to frame, as followed [s]; 0 before the second."""
        return self._state.interval

    @property
    def latency_s(self):
        """How old what the ticks showed was, on average [s]."""
        return latency_s(&self._state)
