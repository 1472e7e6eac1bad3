"""Interpolation between frames: the motion of a tick from the frames that have arrived so far.

A simulator sends 30 to 144 frames a second; the platform needs 333 ticks.  Between frames, every channel follows a line
from its newest frame.  The offset of the output from that line, when the frame comes, fades from then on, so that a
frame never makes a step.  The kinds differ in the line:

``hold``: the newest frame as it is, steps included.
``linear``: the line is level and the offset fades over a whole frame, which gives a straight line from each frame to
the next, one frame late.
``predict``: the line leads to the expected next frame, as far as the prediction was right for the last frames; the
offset fades within half a frame where it was wrong.  Attitude turns with the body rates.

The timeline (`motioncue.frames.arrival_clock`) says when a frame was taken.  From one and a half intervals after that, a
line slows down; after two and a half it is level.  A frame that does not continue the motion is joined: the output
moves on from where it was, see `motioncue.bridge.join`.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from motioncue.bridge.predictor cimport Predictor
from motioncue.bridge.join cimport Join
from motioncue.core.records cimport CHASSIS, MOTION_TIME, ROLL, ROLL_RATE, Motion, Placement, Publication
from motioncue.core.rotation cimport to_angles, turn_about
from motioncue.core.threads cimport mc_count


cdef enum:
    BRIDGE_HOLD
    BRIDGE_LINEAR
    BRIDGE_PREDICT

cdef enum:
    LINES = MOTION_TIME - 3     # channels of a motion that are not angles
    RATES = ROLL_RATE - 3   # index of the first body rate among the lines
    ANGLES = ROLL           # index of the first angle among the channels


ctypedef struct Line:           # one channel, in its own unit
    double x                # value at the newest frame
    double slope            # slope at the newest frame [1/s]
    double curve            # curvature [1/s^2]
    double offset           # offset of the output from the line when the frame came
    double fade             # rate at which the offset fades, as a share [1/s]
    double last             # the line's value at the last tick, while joining
    double begin            # value at the beginning of the stretch
    Join join               # join of the output with the line


ctypedef struct Turning:        # the attitude, in body axes
    double q[4]             # attitude at the newest frame
    double rate[3]          # angular rate at the newest frame [rad/s]
    double slope[3]         # its slope [rad/s^2]
    double curve[3]         # its curvature [rad/s^3]
    double offset[3]        # turn from the line to the output when the frame came [rad]
    double fade             # rate at which the offset fades, as a share [1/s]
    double last[4]          # the line's attitude at the last tick, while joining
    double begin[4]         # attitude at the beginning of the stretch
    Join join               # join of the output with the line, as turns in body axes [rad]
    Predictor turns[3]      # prediction of the turns from frame to frame [rad], independent of the body rates
    double sq_error         # decaying sum of the squared errors of the body rates' prediction [rad^2]


ctypedef struct BridgeState:
    int kind
    double max_fade_rate    # largest rate at which a fade reduces an offset, as a share [1/s]
    int64_t period          # between ticks [ns]; 0 if ticks may be any time apart
    Motion motion           # output at the last tick
    double q[4]             # its attitude; with `hold`, only while joining
    int64_t tick            # when the last tick was computed: its deadline, or later if a frame was [ns]
    bint moving             # whether the last tick moved
    int frames              # frames since the restart or a gap, up to 2
    Placement place         # placement of the newest frame
    int64_t since           # when the output turned to the newest frame [ns]
    double joining          # time that a join has left [s]; 0 while the output is on its line
    int frames_to_settle    # frames in time until a join may end
    Placement begin         # placement of the frame at which the stretch began
    bint first              # whether the stretch is the first one, which does not count
    Line lines[LINES]
    Turning turning
    Predictor predictors[LINES]
    int64_t age             # sum of the ages of what the ticks showed [ns]
    int64_t ticks           # number of ticks in that sum


ctypedef struct ChassisLines:   # wheels, suspension and cab between frames: a straight line to each frame, one frame late
    double begin[CHASSIS]   # values where the lines begin; NaN where the source says nothing
    double end[CHASSIS]     # values of the newest frame, or of the last one that had a number
    double now[CHASSIS]     # values at the last tick
    int64_t elapsed_ns      # of the newest frame, by which it is told from its repeats
    int64_t since           # when the lines began: the last tick [ns]
    int64_t tick            # the last tick [ns]
    double span             # until they end [s]
    bint begun


cdef void bridge_restart(BridgeState* b, const Publication* newest) noexcept nogil
cdef void bridge_frame(BridgeState* b, const Publication* newest, bint missed, int64_t now) noexcept nogil
cdef void bridge_join(BridgeState* b, Motion* line, double* q, int64_t now) noexcept nogil
cdef void bridge_design(BridgeState* b, int kind, double fade_rate, int64_t period) noexcept nogil
cdef void bridge_change(BridgeState* b, int kind) noexcept nogil
cdef double latency_s(BridgeState* b)


cdef inline int channel_of(int line) noexcept nogil:
    """Return the index of a line among the channels of a motion."""
    return line if line < ANGLES else line + 3


cdef inline double extrapolation_time(double interval, double t) noexcept nogil:
    """Return the extrapolation time of a line [s], `t` [s] after its frame: in full for 1.5 intervals, then less.

    In the next interval it comes to a stop.  `t` may be negative, since a join begins at the tick before the frame.
    """
    cdef double over = t - 1.5 * interval
    if over <= 0.0:
        return t if t > -interval else -interval
    return 2.0 * interval if over >= interval else t - 0.5 * over * over / interval


cdef inline double extrapolation_rate(double interval, double t) noexcept nogil:
    """Return the derivative of `extrapolation_time` by `t`."""
    cdef double over = t - 1.5 * interval
    return 1.0 if over <= 0.0 else (0.0 if over >= interval else 1.0 - over / interval)


cdef inline double share_left(double fade, double gone) noexcept nogil:
    """Return the remaining share of an offset."""
    return 1.0 - fade * gone if fade * gone < 1.0 else 0.0


cdef inline double line_at(const Line* l, double t, double gone) noexcept nogil:
    """Return the channel's value `t` [s] along the line, `gone` [s] after the output turned to it."""
    cdef double x = l.x + (l.slope + 0.5 * l.curve * t) * t + share_left(l.fade, gone) * l.offset
    return x if isfinite(x) else l.x


cdef inline void turning_at(const Turning* a, double t, double gone, double* q) noexcept nogil:
    """Fill `q` with the attitude at that time, likewise."""
    cdef double vector[3]
    cdef double predicted[4]
    cdef double share = share_left(a.fade, gone)
    cdef int i
    for i in range(3):
        vector[i] = (a.rate[i] + (0.5 * a.slope[i] + a.curve[i] * t / 6.0) * t) * t
    turn_about(a.q, vector, predicted)
    for i in range(3):
        vector[i] = share * a.offset[i]
    turn_about(predicted, vector, q)


cdef inline bint ticks_missed(const BridgeState* b, double interval, int64_t now) noexcept nogil:
    """Say whether ticks are missing since the last one, with frames an `interval` [s] apart.

    `hold` steps from frame to frame, so for it only ticks count that are missing for longer than that interval.
    """
    cdef double most = 1.5e-9 * b.period
    if b.kind == BRIDGE_HOLD and interval > most:
        most = interval
    return b.period > 0 and 1e-9 * (now - b.tick) > most


cdef inline void bridge_step(
    BridgeState* b, const Publication* newest, bint moving, bint restart, int64_t deadline
) noexcept nogil:
    """Do one tick: set `motion` to that of the deadline, from `newest` and the frames before it.

    If not `moving`, the motion is kept; `restart` forgets the frames before.
    """
    cdef Motion line
    cdef double q[4]
    # A tick that is late has frames from after its deadline.
    cdef int64_t now = newest.motion.time if newest.motion.time > deadline else deadline
    cdef double t, gone
    cdef bint missed
    cdef int i
    if moving:
        if restart or b.frames == 0:
            bridge_restart(b, newest)
            b.tick = now
        else:
            missed = ticks_missed(b, newest.place.interval, now)
            if missed or not b.moving or newest.place.elapsed_ns != b.place.elapsed_ns:
                bridge_frame(b, newest, missed, now)
        line = newest.motion
        t = 1e-9 * (now - b.place.time)
        # The age of what is shown: a line that leads shows the present; a level one shows its frame once the offset has
        # faded.
        mc_count(&b.age, <int64_t>(1e9 * t))
        if b.kind != BRIDGE_HOLD or b.joining > 0.0:
            gone = (now - b.since) * 1e-9
            t = extrapolation_time(b.place.interval, t)
            if b.kind == BRIDGE_PREDICT:
                mc_count(&b.age, -<int64_t>(1e9 * t))
            elif b.kind == BRIDGE_LINEAR:
                mc_count(&b.age, <int64_t>(1e9 * b.place.interval * share_left(b.turning.fade, gone)))
            for i in range(LINES):
                (<double*>&line)[channel_of(i)] = line_at(&b.lines[i], t, gone)
            turning_at(&b.turning, t, gone, q)
            if b.joining > 0.0:
                bridge_join(b, &line, q, now)
            to_angles(q, &line.roll)
            for i in range(4):
                b.q[i] = q[i]
        b.motion = line
        mc_count(&b.ticks, 1)
    b.tick = now
    b.moving = moving


cdef inline void chassis_step(
    ChassisLines* c, const Publication* newest, bint moving, bint restart, int64_t deadline
) noexcept nogil:
    """Do one tick of what a source says beside the motion; if not `moving`, everything keeps its value and goes on later.

    What is no number any more keeps its value too, since what stops abruptly is felt as a blow.
    """
    cdef double share
    cdef int i
    if not moving:
        c.since += deadline - c.tick
        c.tick = deadline
        return
    if restart or not c.begun:
        for i in range(CHASSIS):
            c.begin[i] = c.end[i] = newest.chassis[i]
        c.elapsed_ns, c.since, c.span, c.begun = newest.place.elapsed_ns, deadline, 0.0, True
    elif newest.place.elapsed_ns != c.elapsed_ns:
        for i in range(CHASSIS):
            c.begin[i] = c.now[i]
            if isfinite(newest.chassis[i]):
                c.end[i] = newest.chassis[i]
                if not isfinite(c.begin[i]):
                    c.begin[i] = 0.0        # what is sent where there is none
        c.elapsed_ns, c.since, c.span = newest.place.elapsed_ns, c.tick, newest.place.interval
    share = 1e-9 * (deadline - c.since)
    share = share / c.span if share < c.span else 1.0
    for i in range(CHASSIS):
        c.now[i] = c.begin[i] + share * (c.end[i] - c.begin[i])
    c.tick = deadline


cdef class Bridge:
    cdef int _kind
    cdef double _fade_s
    cdef BridgeState _state
